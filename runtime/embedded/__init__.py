"""The embedded engine: components in the caller's own process, joined by a queue of messages.

`engine.py` starts components, carries messages between them and answers for their logs; `tuning.py` has the delays and
bounds that suit a place where nothing is lost. It knows plans, not MPL: `smile/` puts names and values around it.
"""
