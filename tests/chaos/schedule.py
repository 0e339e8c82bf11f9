"""What is done to a running system, decided beforehand from a seed.

A schedule is a list of decisions with their instants. Real processes do not repeat themselves, but the same seed
kills the same brokers, cuts the same links and hurts the same messages at the same instants of the run.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Literal

What = Literal["kill", "cut", "stall", "part", "hurt", "pause", "leave", "abandon", "redeploy"]

START_S = 1.0
SECONDS_PER_KILL = 2.2


@dataclass(frozen=True)
class Decision:
    """At `at` seconds do this to `target` (a broker, link or client), for `length` seconds where that has a meaning.

    kill: -9 to a broker; with `into_recovery`, so many seconds after it has begun to start again. cut: reset a share of
    a link's connections. stall: a link passes nothing and stays open. part: a link refuses connections. hurt: a link
    loses, repeats, delays and reorders more messages. pause: SIGSTOP to a broker. leave: -9 to the subscriber that
    resumes. abandon: -9 to a publisher; its open publishes are uncertain. redeploy: all brokers are given another
    program, in which what is watched stays the same.
    """

    at: float
    what: What
    target: str
    length: float = 0.0
    share: float = 1.0
    into_recovery: float | None = None


def draw_schedule(seed: int, kills: int, brokers: list[str], links: list[str], publishers: list[str]) -> list[Decision]:
    """`kills` kills of brokers, about a third of them aimed at a recovery, and other faults in between."""
    chance = random.Random(f"{seed} schedule")
    made: list[Decision] = []
    now, done = START_S, 0
    while done < kills:
        victim = chance.choice(brokers)
        made.append(Decision(now, "kill", victim))
        done += 1
        if done < kills and chance.random() < 0.35:  # again while it recovers, or another one that it needs for that
            if chance.random() < 0.6:
                made.append(Decision(now + 0.05, "kill", victim, into_recovery=chance.uniform(0.0, 0.15)))
            else:
                made.append(Decision(now + chance.uniform(0.15, 1.6), "kill", chance.choice(brokers)))
            done += 1
            now += SECONDS_PER_KILL * 0.5
        made += _between(chance, now, brokers, links)
        now += SECONDS_PER_KILL * chance.uniform(0.6, 1.4)
    made += [Decision(chance.uniform(0.15, 0.8) * now, "leave", "resumes") for _ in range(3)]
    made += [Decision(chance.uniform(0.15, 0.8) * now, "abandon", name) for name in publishers]
    made += [Decision(chance.uniform(0.1, 0.9) * now, "redeploy", "all") for _ in range(2)]
    return sorted(made, key=lambda decision: decision.at)


def _between(chance: random.Random, now: float, brokers: list[str], links: list[str]) -> list[Decision]:
    """Other faults until the next kill: one or two."""
    made = []
    for _ in range(chance.randint(1, 2)):
        what: What = chance.choices(("cut", "stall", "part", "hurt", "pause"), (5, 2, 2, 4, 1))[0]
        target = chance.choice(brokers if what == "pause" else links)
        length = chance.uniform(0.2, 1.0)
        at = now + chance.uniform(0.0, SECONDS_PER_KILL)
        made.append(Decision(at, what, target, length, chance.choice((0.5, 1.0))))
    return made


def duration(schedule: list[Decision]) -> float:
    return max(decision.at + decision.length for decision in schedule)
