"""The knowledge protocol as pure values and state machines: no socket, clock, thread, file or randomness.

`coverage` holds the sets of ticks everything else is stated in, `gap_list` the view of them that a merge needs.
"""
