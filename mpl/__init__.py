"""The language MPL: from source text to a checked program.

Grammar, syntax nodes, types, monotonic domains, the checker, the formatter and the diagnostics
live here. The compiler and the command line call it. It knows nothing about how a program is run:
it imports neither `compiler` nor `runtime`.
"""
