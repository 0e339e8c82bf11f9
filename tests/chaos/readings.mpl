-- What the crowd of `stalled.py` subscribes to: the newest reading of each sensor, with the moment it was sent.

stream Readings (sensor int, sent int, note text);
view Newest = from Readings |> aggregate sent := max(sent), note := max(note) group by sensor;
