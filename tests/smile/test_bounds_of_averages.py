"""Goal: bounds of an average are the average itself where it is known, with its decimals, and none where it is not."""

from __future__ import annotations

from decimal import Decimal

import smile


def test_a_known_average_is_its_own_bound() -> None:
    program = smile.compile(
        "stream S(a int, d decimal(8,2)); view V = from S |> aggregate m := avg(d), n := count() group by a;"
    )
    with smile.run(program) as system:
        system.publish_many("S", [{"a": 1, "d": "1.00"}, {"a": 1, "d": "1.01"}, {"a": 1, "d": "1.01"}])
        with system.subscribe("V", emit="bounds") as changes:
            (change,) = changes.ready()
    mean = change.row["m"]
    assert isinstance(mean, Decimal)
    assert abs(mean - Decimal("3.02") / 3) < Decimal("0.00001")
    assert change.bounds == {"a": (1, 1), "m": (mean, mean), "n": (3, 3)}
