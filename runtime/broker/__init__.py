"""Brokers: processes that host components of a plan and talk to each other and to clients over ZeroMQ.

`host.py` is the shell around components, without sockets: events in, instructions carried out. `broker.py` puts sockets
and one poll loop around it. `uplink.py` is the other end of a connection: brokers and clients use it alike to receive
from a broker. `docs/brokers.md` explains how they fit together.
"""
