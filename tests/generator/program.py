"""One random program: what the tests, the fuzzer and later the compiler's tests ask for.

    generate(7).text          the program of seed 7, always the same one
    generate(7, size=40)      a larger one; the default fits on a screen

Every generated program checks without an error. `columns` says what each view must come out with.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random

from tests.generator.deployment import Deployments
from tests.generator.layout import lay_out
from tests.generator.names import Names
from tests.generator.relations import Known
from tests.generator.shapes import Column
from tests.generator.statements import Declarations

SIZE = 2
"""About as many views as the tests' programs have at most."""


@dataclass(frozen=True)
class Generated:
    seed: int
    text: str
    columns: dict[str, tuple[Column, ...]]


def generate(seed: int, size: int = SIZE) -> Generated:
    rng = Random(f"mpl {seed} {size}")
    known = Known(rng, Names(rng), depth=rng.choice((1, 1, 2, 3)), steps=rng.choice((1, 2, 4)))
    declarations = Declarations(known)
    statements = [declarations.stream() for _ in range(rng.choice((1, 2)) + rng.randint(0, size // 4))]
    statements += [declarations.table() for _ in range(rng.choice((0, 0, 1)))]
    statements += [declarations.function() for _ in range(rng.choice((0, 0, 0, 1, 2)))]
    statements += [declarations.view() for _ in range(rng.randint(1, size))]
    deployment = Deployments(rng, known.names)
    if rng.random() < 0.2:
        statements += [deployment.broker() for _ in range(rng.randint(1, 3))]
    subscriptions = [declarations.subscription(deployment.brokers) for _ in range(rng.choice((0, 0, 1, 2)))]
    statements += [text for text, _ in subscriptions]
    if deployment.brokers:
        statements += _deployed(rng, deployment, declarations, [name for _, name in subscriptions])
    if rng.random() < 0.1:
        statements.append(deployment.drop())
    if rng.random() < 0.5:
        rng.shuffle(statements)
    text = lay_out(rng, statements, known.names.issued)
    return Generated(seed, text, {name.strip("`"): rows.columns for name, rows in declarations.views.items()})


def _deployed(rng: Random, deployment: Deployments, declarations: Declarations, subscriptions: list[str]) -> list[str]:
    relations = list(declarations.known.relations)
    statements = [deployment.publish(stream) for stream in declarations.streams if rng.random() < 0.5]
    if len(deployment.brokers) > 1:
        statements += [deployment.link() for _ in range(rng.randint(0, 2))]
    statements += [deployment.place(relations, subscriptions) for _ in range(rng.randint(0, 2))]
    statements += [deployment.protect(relations) for _ in range(rng.randint(0, 1))]
    statements += [deployment.tune(relations) for _ in range(rng.randint(0, 1))]
    return statements
