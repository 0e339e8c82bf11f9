"""Other ways to run the tickets query, one small program each: `run.py` starts them and reads their one line of JSON.

Each is run as `python -m bench.peers.NAME --buys N --seconds S` by an interpreter that has its package, and must pass
the same check as the engine: the view it told its sink is the one that `bench/tickets_events.py` computes from scratch.
"""
