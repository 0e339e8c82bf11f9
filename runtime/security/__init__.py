"""Who may do what: keys, names, rights, signatures, and the authentication of connections.

`keys.py` makes and stores key pairs, `allow_list.py` maps public keys to names with `rights.py`, `policy.py` answers
what a broker asks before it obeys, `signatures.py` says which deployments are genuine. Only `endpoints.py` and
`zap.py` know ZeroMQ. On the loopback address nothing of this is needed; anywhere else a broker does not start without
it.
"""
