"""The knowledge protocol as pure values and state machines: no socket, clock, thread, file or randomness.

`docs/protocol.md` states the rules (E1.., S1.., C1.., T1..); each is named where it is implemented. `coverage` holds
the sets of ticks everything else is stated in, `messages` what components tell each other, `events` what a shell tells
a component and what it is told to do; `build` makes the components of a plan.
"""
