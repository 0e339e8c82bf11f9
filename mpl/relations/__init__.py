"""Checking relations: from the syntax of a pipeline to a typed tree with columns and keys.

`pipeline.py` walks a pipeline and hands each operator to the file that knows its group: `rows.py` (one row in, one row
out), `groups.py` (many rows in, one out), `joins.py`, `sets.py`. Kinds, visibility and finality are not decided here
but by `mpl/knowledge/`.
"""
