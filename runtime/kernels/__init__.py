"""Fused kernels: one generated loop in place of a chain of operators whose relations all have the same key.

`spec.py` says what a kernel is, `operator.py` is the operator that components see, `rows.py` its table of slots in flat
arrays, `dictionary.py` the codes that stand for texts. The same generated functions run in two tiers: as plain Python
over memoryviews, and compiled by numba (`tier.py`, `native.py`, `compile.py`). The text of the functions is generated
and checked by the compiler; nothing here looks into it.
"""
