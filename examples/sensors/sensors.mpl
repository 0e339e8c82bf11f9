-- Thermometers report now and then; what were the extremes, and which rooms are too hot?

stream Rooms (sensor int, room text) unique sensor;
stream Readings (sensor int, celsius decimal(5,2)[-50.00..150.00], at time)
  event time at late 1 min;

view Stats = from Readings
  |> aggregate readings := count(), low := min(celsius), high := max(celsius), mean := avg(celsius)
    group by sensor;
view Alarms = from Stats
  |> where high > 30
  |> join Rooms using sensor
  |> project sensor, room, high;

subscribe alarms to Alarms;
