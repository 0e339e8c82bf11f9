"""The deterministic simulator that attacks the protocol: one seed, one run, the same on every machine.

`docs/simulation.md` is the manual. `command.py` is what the command line calls, `schedules.py` turns a seed into a
schedule, `simulator.py` carries it out, `checks.py` and `delivery.py` judge it with the help of `oracle.py`, which
shares no code with the engine. `explore.py` takes small graphs apart completely; `mistakes.py` shows that all this
would notice a mistake.
"""
