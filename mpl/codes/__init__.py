"""All diagnostic codes, in the order of their numbers.

One file per group; a code is never reused for another meaning. `docs/errors.md` has an entry for each, and the tests
walk `CODES` to see that it has.

    MPL01xx  syntax and limits          MPL04xx  relations and operators
    MPL02xx  names and declarations     MPL05xx  knowledge: kinds, finality, state
    MPL03xx  types and expressions      MPL06xx  deployment
"""

from mpl.codes import deployment, knowledge, names, relations, syntax, types
from mpl.diagnostic import Code

CODES: tuple[Code, ...] = (
    *syntax.CODES,
    *names.CODES,
    *types.CODES,
    *relations.CODES,
    *knowledge.CODES,
    *deployment.CODES,
)
