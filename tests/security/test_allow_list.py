"""The allow-list: what a file may say, what is refused, and that a running broker follows it."""

from __future__ import annotations

import logging
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.security.allow_list import (
    AllowList,
    WatchedAllowList,
    add_entry,
    entry_for,
    read_allow_list,
    show_allow_list,
)
from runtime.security.errors import BadAllowList, BadKey
from runtime.security.keys import PublicKey, new_keys
from runtime.security.rights import PATTERNS_MAX

KEY = new_keys("a").public
OTHER = new_keys("b").public


def written(folder: Path, text: str) -> Path:
    path = folder / "allowed.toml"
    path.write_text(text)
    path.chmod(0o644)
    return path


def test_an_entry_says_who_may_do_what(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        f"""
        [[allow]]
        name = "till-7"
        key = "{KEY.text}"
        publish = ["Sales"]
        subscribe = ["Avail*"]

        [[allow]]
        name = "b1"
        key = "{OTHER.text}"
        roles = ["broker", "operator"]
        """,
    )
    allowed = read_allow_list(path)
    till, broker = allowed.by_name["till-7"].rights, allowed.by_name["b1"].rights
    assert allowed.name_of_curve == {KEY.curve: "till-7", OTHER.curve: "b1"}
    assert till.publish.contain("Sales")
    assert not till.publish.contain("SalesOld")
    assert till.subscribe.contain("AvailByHall")
    assert not till.deploy.contain("Sales")
    assert (till.is_broker, till.may_operate) == (False, False)
    assert (broker.is_broker, broker.may_operate) == (True, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("nonsense", "not TOML"),
        ("[other]\n", "unknown `other`"),
        ("allow = 3\n", "no list of entries"),
        ('[[allow]]\nname = "a"\n', "has no key"),
        ('[[allow]]\nname = "a"\nkey = "smile1-x"\n', "entry 1: .*no public key"),
        (f'[[allow]]\nname = "a"\nkey = "{KEY.text}"\nrights = []\n', "unknown `rights`"),
        (f'[[allow]]\nname = "a b"\nkey = "{KEY.text}"\n', "no name"),
        (f'[[allow]]\nname = "a"\nkey = "{KEY.text}"\nroles = ["root"]\n', "unknown role"),
        (f'[[allow]]\nname = "a"\nkey = "{KEY.text}"\npublish = "Sales"\n', "no list of texts"),
        (f'[[allow]]\nname = "a"\nkey = "{KEY.text}"\npublish = ["S*s"]\n', "no pattern"),
        (f'[[allow]]\nname = "a"\nkey = "{KEY.text}"\npublish = [""]\n', "no pattern"),
        (f'[[allow]]\nname = "a"\nkey = "{KEY.text}"\n[[allow]]\nname = "a"\nkey = "{OTHER.text}"\n', "listed twice"),
        (f'[[allow]]\nname = "a"\nkey = "{KEY.text}"\n[[allow]]\nname = "b"\nkey = "{KEY.text}"\n', "share a key"),
        (
            f'[[allow]]\nname = "a"\nkey = "{KEY.text}"\npublish = {["x"] * (PATTERNS_MAX + 1)}\n',
            "patterns in one list",
        ),
        ("allow = " + "[" * 5000 + "]" * 5000, "not TOML"),
    ],
)
def test_a_wrong_list_is_refused_as_a_whole(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadAllowList, match=said):
        read_allow_list(written(tmp_path, text))


def test_half_a_shared_key_is_refused_too(tmp_path: Path) -> None:
    entries = (entry_for("a", KEY), entry_for("b", PublicKey(OTHER.curve, KEY.signing)))
    with pytest.raises(BadAllowList, match="share a key"):
        AllowList(entries)


def test_a_list_that_others_can_change_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "")
    path.chmod(0o664)
    with pytest.raises(BadAllowList, match="chmod go-w"):
        read_allow_list(path)


def test_a_missing_list_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(BadAllowList, match="smile keys allow"):
        read_allow_list(tmp_path / "none.toml")


def test_entries_are_added_and_replaced(tmp_path: Path) -> None:
    path = tmp_path / "allowed.toml"
    add_entry(path, entry_for("a", KEY, publish=["Sales"]))
    add_entry(path, entry_for("b", OTHER, roles=["operator"], subscribe=["*"]))
    add_entry(path, entry_for("a", KEY, publish=["Events"]))
    allowed = read_allow_list(path)
    assert {name: entry.rights.publish.texts for name, entry in allowed.by_name.items()} == {"a": ("Events",), "b": ()}
    assert allowed.by_name["b"].rights.may_operate
    assert [found.name for found in tmp_path.iterdir()] == ["allowed.toml"]


def test_a_wrong_word_of_a_command_changes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "allowed.toml"
    add_entry(path, entry_for("a", KEY))
    before = path.read_bytes()
    with pytest.raises(BadAllowList, match="share a key"):
        add_entry(path, entry_for("b", KEY))
    with pytest.raises(BadAllowList):
        entry_for("b", OTHER, roles=["king"])
    with pytest.raises((BadKey, BadAllowList)):
        entry_for("b c", OTHER)
    assert path.read_bytes() == before


@given(
    st.lists(
        st.text(
            st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"], exclude_characters="*"),
            min_size=1,
            max_size=20,
        ).map(lambda text: text + "*"),
        max_size=5,
    )
)
def test_what_is_shown_is_read_back(tmp_path_factory: pytest.TempPathFactory, patterns: list[str]) -> None:
    allowed = AllowList((entry_for("a", KEY, publish=patterns, roles=["broker"]),))
    path = written(tmp_path_factory.mktemp("list"), show_allow_list(allowed))
    assert read_allow_list(path) == allowed


def test_a_running_broker_follows_the_file(tmp_path: Path) -> None:
    path = tmp_path / "allowed.toml"
    add_entry(path, entry_for("a", KEY, publish=["Sales"]))
    watched = WatchedAllowList(path)
    assert watched.reload_if_changed() == frozenset()
    add_entry(path, entry_for("b", OTHER))
    assert watched.reload_if_changed() == {"b"}
    assert watched.current.name_of_curve[OTHER.curve] == "b"
    path.write_text(show_allow_list(AllowList((entry_for("b", OTHER),))))
    os.utime(path, ns=(1, 1))
    assert watched.reload_if_changed() == {"a"}
    assert KEY.curve not in watched.current.name_of_curve


def test_a_list_that_breaks_leaves_the_last_good_one(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "allowed.toml"
    add_entry(path, entry_for("a", KEY))
    watched = WatchedAllowList(path)
    path.write_text("[[allow")
    with caplog.at_level(logging.ERROR, logger="smile.security"):
        assert watched.reload() == frozenset()
        path.unlink()
        assert watched.reload_if_changed() == frozenset()
    assert watched.current.by_name.keys() == {"a"}
    assert len([record for record in caplog.records if "stays in force" in record.message]) == 2
