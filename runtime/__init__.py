"""What runs in a broker: the knowledge protocol, the operators' state, and the shell around them.

The protocol is pure (events in, instructions out) and the simulator drives the same code as the
brokers do. Nothing here knows MPL or the compiler; generated modules import from here.
"""
