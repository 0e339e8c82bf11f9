"""The command line `smile`: check, format, explain and simulate.

The outermost layer. It reads files, calls `mpl` (and later `compiler` and `runtime`), prints what they
say and chooses the exit code. Nothing imports it.
"""
