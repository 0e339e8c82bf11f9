"""Soft checkpoints on disk: saved state that speeds up a restart and may be lost at any time.

`codec.py` turns what a component exports into bytes and back, `store.py` keeps those bytes. Plain files only: a forked
child writes them.
"""
