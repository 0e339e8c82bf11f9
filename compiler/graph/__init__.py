"""The transform graph: the checked program in normal form, one operator per relation.

`transform.py` has the records, `build.py` makes a graph of a checked program, `draft.py` is how passes make another,
`validate.py` checks the invariants, `show.py` prints it. What the operators mean is said in `mpl/typed/relations.py`:
there is no second vocabulary.
"""

from compiler.graph.build import build_graph
from compiler.graph.draft import Draft
from compiler.graph.show import show
from compiler.graph.transform import Keeping, Output, Transform, TransformGraph, operator_word
from compiler.graph.validate import GraphError, validate

__all__ = [
    "Draft",
    "GraphError",
    "Keeping",
    "Output",
    "Transform",
    "TransformGraph",
    "build_graph",
    "operator_word",
    "show",
    "validate",
]
