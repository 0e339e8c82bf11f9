"""From a checked MPL program to modules that brokers can run.

    graph/                the transform graph: the checked program in normal form, one operator per relation
    passes/               what improves it, one file each, ordered in one tuple
    expressions.py, identity.py, passages.py, needs.py
                          what passes ask about expressions and operators, free of graphs
    unsupported.py, codes.py
                          what cannot run yet, refused with a code and a place
    stages.py, algebra.py, pictures.py, layout.py
                          every stage as text and as a picture
    plan/, codegen/       from the graph to what the runtime runs

It imports `mpl` for its input and `runtime` for what generated code refers to, and never the command line.
"""
