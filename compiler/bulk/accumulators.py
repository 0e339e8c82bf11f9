"""Aggregates as an operator keeps them, as text of Spark aggregates: pairs where it keeps pairs, and what an aggregate
with state of its own has to look at.

`state.py` puts them into the program that computes a component's state. Shown values are computed in `relations.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from compiler.bulk.relations import RelationWriter
from compiler.plan.layout import Form
from mpl.typed import AggregateItem, Column, Schema

ZERO = 'F.lit(0).cast("bigint")'


def totals(out: RelationWriter, item: AggregateItem, column: Column, source: Schema, form: Form) -> list[str]:
    """One text for each physical column of an aggregate that has no state beside them."""
    argument = out.argument(item)
    match form:
        case "plain":
            return [out.aggregate(item, column, source)]
        case "difference":
            up, down = f"F.when({argument} > 0, {argument})", f"F.when({argument} < 0, -{argument})"
            return [f"F.coalesce(F.sum({part}), {ZERO})" for part in (up, down)]
        case "average":
            return [f"F.coalesce(F.sum({argument}), {ZERO})", f"F.count({argument})"]


def looked_at(out: RelationWriter, item: AggregateItem, order: Sequence[int]) -> str:
    """A list for each group: what is enough for an aggregate with state of its own to have the same state.

    Of `first` and `last` that is the witness, with the columns at the positions `order`, of which the first is the
    tick; of different values one each; of a sum of floats, which is exact, all of them.
    """
    argument = out.argument(item)
    if item.function in ("first", "last"):
        columns = ", ".join(f'F.col("c{position}").alias("o{at}")' for at, position in enumerate(order))
        row = f'F.when({argument}.isNotNull(), F.struct({columns}, {argument}.alias("v")))'
        tick = f'F.when({argument}.isNotNull(), F.col("c{order[0]}"))'
        chosen = f"F.{'max_by' if item.function == 'last' else 'min_by'}({row}, {tick})"
        return f"F.array_compact(F.array({chosen}))"
    return f"F.collect_set({argument})" if item.distinct else f"F.collect_list({argument})"
