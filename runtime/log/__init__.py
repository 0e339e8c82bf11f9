"""Logs of base relations: where the events of a stream live.

`stream_log.py` says what every log can do, `memory.py` keeps events in this process, `sqlite.py` on disk, `codec.py`
turns a batch into bytes. A shell carries out a stream's instructions with one of them; the protocol never sees a log.
"""
