"""The relations that feed the other tests: if one of them is wrong, look here first."""

import random

import pytest
from hypothesis import given

from tests.operators.histories import Network, Source, Stage
from tests.operators.inputs import Maker, allowed, alone, generators, last, middle, positive, small, totals


@pytest.mark.parametrize("make", [totals, small, middle, positive, last, alone, allowed])
@given(generator=generators)
def test_input_holds_its_view(make: Maker, generator: random.Random) -> None:
    sources = [Source(), Source()]
    stages: list[Stage] = []
    make(stages, *sources)
    Network(sources, stages).run(generator)
