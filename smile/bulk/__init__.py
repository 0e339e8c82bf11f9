"""Views computed in bulk by Spark, from archive and logs, at any tick of the past, and compared with live ones.

`sources.py` finds the events, `recompute.py` runs a view's bulk program over them, `verify.py` compares. Importing this
starts no JVM; whoever calls hands in a session.
"""
