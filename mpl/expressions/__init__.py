"""Scalar expressions: syntax nodes in, typed nodes out.

Called by the relation checker. What the functions mean is in `mpl/functions/`, what an expression gives for a row in
`mpl/evaluate.py`; names of relations and everything about rows is the relation checker's.
"""

from mpl.expressions.checker import check_expression, check_predicate, check_value
from mpl.expressions.constants import NOT_CONSTANT, NotConstant, constant_value
from mpl.expressions.conversions import assign, can_convert, convert, unify
from mpl.expressions.table import FunctionTable

__all__ = [
    "NOT_CONSTANT",
    "FunctionTable",
    "NotConstant",
    "assign",
    "can_convert",
    "check_expression",
    "check_predicate",
    "check_value",
    "constant_value",
    "convert",
    "unify",
]
