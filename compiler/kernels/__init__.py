"""Fused kernels: subgraphs whose relations share one key become one generated loop over each batch of events.

`star.py` recognises such a subgraph below a view and describes it (`model.py`): `output.py` says what is shown for a
key, `edges.py` what an event does to its state, `scalars.py` writes expressions. `module.py` prints the loops through
`codegen_templates/keyed_star.py.j2`; `fuse.py` is what planning calls.
"""
