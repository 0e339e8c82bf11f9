"""From a checked MPL program to modules that brokers can run.

The stages are relational algebra, transform graph, placed graph and generated modules, one folder
each, with one pass per file. It imports `mpl` for its input and `runtime` for what generated code
refers to, and never the command line.
"""
