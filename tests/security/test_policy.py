"""Rights: each action needs its own, reading a view follows from its streams, and refusals leave a bounded trace."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.security.allow_list import AllowList, WatchedAllowList, add_entry, entry_for, show_allow_list
from runtime.security.keys import new_keys
from runtime.security.policy import Action, Policy
from runtime.security.refusals import LINES_PER_SECOND, Refusals
from runtime.security.rights import Patterns, Rights

TICKETS = ("Sales", "Events")


@pytest.fixture
def policy(tmp_path: Path) -> Policy:
    path = tmp_path / "allowed.toml"
    for entry in (
        entry_for("till", new_keys("till").public, publish=["Sales"]),
        entry_for("desk", new_keys("desk").public, subscribe=["Sales", "Events"]),
        entry_for("board", new_keys("board").public, subscribe=["Tickets"]),
        entry_for("half", new_keys("half").public, subscribe=["Sales"]),
        entry_for("author", new_keys("author").public, deploy=["Sales", "Events", "Tick*"]),
        entry_for("root", new_keys("root").public, roles=["operator"], publish=["*"], subscribe=["*"], deploy=["*"]),
        entry_for("b1", new_keys("b1").public, roles=["broker"]),
    ):
        add_entry(path, entry)
    return Policy.listed(WatchedAllowList(path))


def test_every_action_needs_its_own_right(policy: Policy) -> None:
    wanted = {
        (Action.PUBLISH, "Sales", ()): {"till", "root"},
        (Action.PUBLISH, "Events", ()): {"root"},
        (Action.SUBSCRIBE, "Tickets", TICKETS): {"desk", "board", "root", "b1"},
        (Action.SUBSCRIBE, "", TICKETS): {"desk", "root", "b1"},
        (Action.SUBSCRIBE, "Sales", ("Sales",)): {"desk", "half", "root", "b1"},
        (Action.SUBSCRIBE, "Other", ("Sales", "Returns")): {"root", "b1"},
        (Action.DEPLOY, "tickets.mpl", ("Sales", "Events", "Tickets")): {"author", "root"},
        (Action.DEPLOY, "tickets.mpl", ("Sales", "Events", "Other")): {"root"},
        (Action.OPERATE, "", ()): {"root"},
        (Action.PEER, "", ()): {"b1"},
    }
    names = ["till", "desk", "board", "half", "author", "root", "b1", "stranger", ""]
    for (action, what, relations), allowed in wanted.items():
        got = {name for name in names if policy.may(name, action, what, relations) is None}
        assert got == allowed, (action, what, relations)


def test_a_refusal_says_what_is_missing(policy: Policy) -> None:
    refusal = policy.may("half", Action.SUBSCRIBE, "Tickets", TICKETS)
    assert refusal is not None
    assert refusal.code == "subscribe"
    assert "`Events`" in refusal.reason
    assert "`Sales`" not in refusal.reason


def test_a_relation_without_known_streams_needs_its_own_grant(policy: Policy) -> None:
    assert policy.may("desk", Action.SUBSCRIBE, "Tickets", ()) is not None
    assert policy.may("board", Action.SUBSCRIBE, "Tickets", ()) is None


def test_deploying_nothing_needs_a_right_as_well(policy: Policy) -> None:
    assert policy.may("till", Action.DEPLOY, "empty.mpl", ()) is not None
    assert policy.may("author", Action.DEPLOY, "empty.mpl", ()) is None


def test_on_the_loopback_address_everybody_may(policy: Policy) -> None:
    local = Policy.local()
    assert all(local.may("", action, "x", ("y",)) is None for action in Action)
    assert all(policy.may("", action, "x", ("y",)) is not None for action in Action)


def test_a_name_is_known_as_long_as_it_is_listed(policy: Policy) -> None:
    assert policy.watched is not None
    assert policy.knows("till")
    assert not policy.knows("stranger")
    assert Policy.local().knows("")
    others = [entry for entry in policy.watched.current.entries if entry.name != "till"]
    policy.watched.path.write_text(show_allow_list(AllowList(tuple(others))))
    assert policy.watched.reload_if_changed() == {"till"}
    assert not policy.knows("till")


def test_a_right_taken_away_is_gone_at_once(policy: Policy) -> None:
    assert policy.watched is not None
    assert policy.may("till", Action.PUBLISH, "Sales") is None
    entry = policy.watched.current.by_name["till"]
    add_entry(policy.watched.path, entry_for("till", entry.key, publish=["Events"]))
    assert policy.watched.reload_if_changed() == {"till"}
    assert policy.may("till", Action.PUBLISH, "Sales") is not None
    assert policy.may("till", Action.PUBLISH, "Events") is None


def test_refusals_are_logged_and_counted(policy: Policy, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, logger="smile.security"):
        policy.may("till", Action.PUBLISH, "Events")
        policy.may("bad\nname", Action.PUBLISH, "Events")
    assert policy.refusals.counts == {"publish": 1, "not-listed": 1}
    assert [record.message.count("\n") for record in caplog.records] == [0, 0]
    assert "till" in caplog.records[0].message
    assert "Events" in caplog.records[0].message


def test_a_storm_of_refusals_leaves_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    now = [100.0]
    refusals = Refusals(clock=lambda: now[0])
    with caplog.at_level(logging.WARNING, logger="smile.security"):
        for number in range(5000):
            refusals.note("unknown-key", f"10.0.0.{number}", "x" * 10_000)
        now[0] = 101.0
        refusals.note("unknown-key", "10.0.0.1", "again")
    assert refusals.counts["unknown-key"] == 5001
    assert len(caplog.records) == LINES_PER_SECOND + 2
    assert f"{5000 - LINES_PER_SECOND} more" in caplog.records[-2].message
    assert max(len(record.message) for record in caplog.records) < 600


NAMES = st.text("ab", min_size=1, max_size=4)


@given(st.lists(NAMES), st.lists(NAMES), NAMES)
def test_patterns_mean_exactly_names_and_prefixes(names: list[str], prefixes: list[str], asked: str) -> None:
    patterns = Patterns((*names, *(prefix + "*" for prefix in prefixes)))
    meant = asked in names or any(asked[: len(prefix)] == prefix for prefix in prefixes)
    assert patterns.contain(asked) == meant


@given(st.sets(NAMES), st.sets(NAMES, min_size=1), NAMES)
def test_the_derivation_rule(granted: set[str], streams: set[str], view: str) -> None:
    rights = Rights(subscribe=Patterns(tuple(granted)))
    assert (not rights.lacking_to_read(view, streams)) == (view in granted or streams <= granted)
