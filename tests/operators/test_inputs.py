"""The relations that feed the other tests, and with them latest, sums, selections, semi- and anti-joins."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.operators.histories import Network, Source, Stage
from tests.operators.inputs import Maker, allowed, alone, last, middle, positive, small, totals


@pytest.mark.parametrize("make", [totals, small, middle, positive, last, alone, allowed])
@given(generator=st.integers(0, 2**32).map(random.Random))
def test_input_holds_its_view(make: Maker, generator: random.Random) -> None:
    sources = [Source(), Source()]
    stages: list[Stage] = []
    make(stages, *sources)
    Network(sources, stages).run(generator)
