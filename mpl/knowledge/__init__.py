"""The monotonic type system: how every value and every row of a program may move as more becomes known.

`analyse` derives, for each relation of a checked program, the kind of every column, the visibility of rows, when they
become final, and what bounds the state of the operator. Kinds are never stronger than the truth: what cannot be proved
is versioned. `docs/kinds.md` has the rules for readers.

    motion.py, path.py, kind.py       the vocabulary: values, truth, columns
    fact.py, expressions.py,          expressions over columns of known kinds
      truth.py, choices.py
    closing.py, finality.py, state.py when rows are settled, and what has to be kept until then
    knowledge.py                      the record of a relation
    scans.py, rows.py, groups.py,     one rule per operator
      aggregates.py, pairing.py,
      joins.py, matching.py
    keyed.py                          keys that a view declares for itself
    analysis.py, walk.py, warnings.py the whole program, and what its author should know
"""

from mpl.knowledge.analysis import ProgramKnowledge, analyse
from mpl.knowledge.finality import Finality, FinalWhen
from mpl.knowledge.kind import ColumnKnowledge, Kind, Nulls
from mpl.knowledge.knowledge import Knowledge, Visibility
from mpl.knowledge.motion import Motion
from mpl.knowledge.path import Path
from mpl.knowledge.state import Growth, StateBound
from mpl.knowledge.walk import operators_of

__all__ = [
    "ColumnKnowledge",
    "FinalWhen",
    "Finality",
    "Growth",
    "Kind",
    "Knowledge",
    "Motion",
    "Nulls",
    "Path",
    "ProgramKnowledge",
    "StateBound",
    "Visibility",
    "analyse",
    "operators_of",
]
