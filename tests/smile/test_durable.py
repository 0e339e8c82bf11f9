"""Goal: with a folder, what was acknowledged is there afterwards, whatever happened to the process."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

import smile

PROGRAM = """
stream Sales (item int, qty int[0..1000], note text null) unique item, qty;
stream Times (at time, f float) event time at late 10 s;
view Sold = from Sales |> aggregate total := sum(qty), n := count() group by item;
view Notes = from Sales |> where note is not null;
"""
ROOT = Path(__file__).parents[2]


def test_the_next_run_continues(tmp_path: Path) -> None:
    program = smile.compile(PROGRAM)
    with smile.run(program, data=tmp_path) as system:
        ticks = [system.publish("Sales", {"item": 1, "qty": qty, "note": None}) for qty in range(5)]
        ticks += system.publish_many("Sales", {"item": [2, 2], "qty": [7, 8], "note": ["a", "ü"]})
        system.publish("Times", {"at": 20_000_000, "f": 0.1})
        rows = {view: system.rows(view) for view in ("Sold", "Sales", "Times", "Notes")}
    for _ in range(2):
        with smile.run(program, data=tmp_path) as system:
            assert {view: system.rows(view) for view in rows} == rows
            with pytest.raises(smile.PublishError, match="published before"):
                system.publish("Sales", {"item": 2, "qty": 8})
            with pytest.raises(smile.PublishError, match="too late"):
                system.publish("Times", {"at": 9_000_000, "f": 0.1})
            with system.subscribe("Sold") as changes:
                assert len(changes.ready()) == 2
    with smile.run(program, data=tmp_path) as system:
        assert system.publish("Sales", {"item": 3, "qty": 1}) > max(ticks)
        assert [row["item"] for row in system.rows("Sold")] == [1, 2, 3]


FORKED = """
import os, sys
import smile

program = smile.compile("stream S (id int) unique id; view N = from S |> aggregate n := count();")
system = smile.run(program, data=sys.argv[1])
system.publish("S", {"id": 1})
assert system.rows("N") == [{"n": 1}]
child = os.fork()
if child == 0:
    try:
        for call in (lambda: system.publish("S", {"id": 2}), lambda: system.rows("N"), lambda: system.settle()):
            try:
                call()
            except smile.LogUnusable as refused:
                assert "fork" in str(refused)
            else:
                raise AssertionError("not refused")
        system.close()
    except BaseException as error:
        print(repr(error))
        sys.stdout.flush()
        os._exit(1)
    os._exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
system.publish("S", {"id": 2})
try:
    smile.run(program, data=sys.argv[1])
except smile.LogUnusable:
    pass
else:
    raise AssertionError("the child gave our lock away")
system.close()
with smile.run(program, data=sys.argv[1]) as system:
    assert [row["id"] for row in system.rows("S")] == [1, 2]
    assert system.rows("N") == [{"n": 2}]
"""


def test_a_forked_process_cannot_write_into_the_log_of_its_parent(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "ignore", "-c", FORKED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_ticks_never_repeat_even_if_the_clock_jumps_back(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = smile.compile(PROGRAM)
    seen: list[int] = []
    for now in (5_000_000_000, 1_000_000_000, 1_000_000_000):
        monkeypatch.setattr("time.time_ns", lambda now=now: now)
        with smile.run(program, data=tmp_path) as system:
            seen.append(system.publish("Sales", {"item": now + len(seen), "qty": 1}))
            system.settle()  # promises silence, ahead of the clock
    assert seen == sorted(set(seen))


def test_streams_keep_their_share_of_ticks(tmp_path: Path) -> None:
    """Another program over the same folder: streams that were there keep their ticks apart from those that are new."""
    with smile.run(smile.compile("stream A (x int); stream B (x int);"), data=tmp_path) as system:
        a, b = system.publish("A", {"x": 1}), system.publish("B", {"x": 1})
    text = "stream New (x int); stream B (x int); stream A (x int); view V = from A |> aggregate n := count();"
    with smile.run(smile.compile(text), data=tmp_path) as system:
        new, a2, b2 = (system.publish(name, {"x": 1}) for name in ("New", "A", "B"))
        assert len({a % 1024, b % 1024, new % 1024}) == 3
        assert (a2 % 1024, b2 % 1024) == (a % 1024, b % 1024)
        assert system.rows("V") == [{"n": 2}]


CHILD = """
import sys, smile
program = smile.compile({text!r})
with smile.run(program, data={folder!r}) as system:
    system.rows("Sold")
    for number in range(10_000):
        system.publish_many("Sales", {{"item": [number, number], "qty": [1, 2]}})
        print(number, flush=True)
"""


def test_what_was_acknowledged_survives_a_kill(tmp_path: Path) -> None:
    code = CHILD.format(text=PROGRAM, folder=str(tmp_path))
    acknowledged = -1
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, cwd=ROOT, text=True) as child:
        assert child.stdout is not None
        for line in child.stdout:
            acknowledged = int(line)
            if acknowledged == 30:
                os.kill(child.pid, signal.SIGKILL)
    assert acknowledged >= 30
    with smile.run(smile.compile(PROGRAM), data=tmp_path) as system:
        rows = system.rows("Sold")
        assert [row["item"] for row in rows[: acknowledged + 1]] == list(range(acknowledged + 1))
        assert len(rows) in (acknowledged + 1, acknowledged + 2)  # one more may be logged and not yet acknowledged
        assert all(row["n"] == 2 for row in rows), "a call is in or out as a whole"


def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    program = smile.compile(PROGRAM)
    with smile.run(program, data=tmp_path):
        with pytest.raises(smile.LogUnusable, match="in use"):
            smile.run(program, data=tmp_path)
        code = f"import smile; smile.run(smile.compile('stream X (x int);'), data={str(tmp_path)!r})"
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, cwd=ROOT, text=True, check=False)
        assert "LogUnusable" in done.stderr
    smile.run(program, data=tmp_path).close()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("stream S (a int, b text);", "column `a` is int [0..9] in the log and int in the program"),
        ("stream S (a int[0..9]);", "a column `b` (text) that the program no longer declares"),
        ("stream S (a int[0..9], b text, c int);", "column `c` (int) is new"),
        ("stream S (b text, a int[0..9]);", "another order"),
        ("stream S (a int[0..9], b text null);", "column `b` is text in the log and text null"),
        ("stream S (a int[0..9], b text) unique a;", "the program now says (unique a)"),
    ],
)
def test_a_changed_stream_is_refused(tmp_path: Path, text: str, said: str) -> None:
    smile.run(smile.compile("stream S (a int[0..9], b text); stream Other (x int);"), data=tmp_path).close()
    with pytest.raises(smile.LogUnusable) as caught:
        smile.run(smile.compile(text), data=tmp_path)
    assert "`S`" in str(caught.value)
    assert said in str(caught.value)
    smile.run(smile.compile("stream S (a int[0..9], b text);"), data=tmp_path).close()  # the lock is free again


def test_damage_is_an_error_never_a_skipped_row(tmp_path: Path) -> None:
    program = smile.compile(PROGRAM)
    with smile.run(program, data=tmp_path) as system:
        system.publish_many("Sales", {"item": [1, 2], "qty": [1, 2]})
        system.publish("Times", {"at": 1, "f": 0.5})
    file = sqlite3.connect(tmp_path / "events.sqlite")
    (body,) = file.execute("select body from batches where stream = 1").fetchone()
    file.execute("update batches set body = ? where stream = 1", (body[:-1] + bytes([body[-1] ^ 1]),))
    file.commit()
    file.close()
    with smile.run(program, data=tmp_path) as system:
        with pytest.raises(smile.LogUnusable, match=r"`Sales`: the batch that ends at tick .* is damaged"):
            system.rows("Sold")
        assert len(system.rows("Times")) == 1
        for read in (
            lambda: system.rows("Sold"),
            lambda: system.subscribe("Sold").ready(),
            lambda: system.rows("Sales"),
        ):
            with pytest.raises(smile.LogUnusable, match="is damaged"):
                read()
    (tmp_path / "events.sqlite").write_bytes(b"this is no database, whatever its name says" * 100)
    with pytest.raises(smile.LogUnusable, match="damaged at its beginning"):
        smile.run(program, data=tmp_path)


def test_a_failed_write_is_uncertain_and_the_stream_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from runtime.log.sqlite import SqliteLog
    from runtime.log.stream_log import LogError

    program = smile.compile(PROGRAM)
    with smile.run(program, data=tmp_path) as system:
        system.publish("Sales", {"item": 1, "qty": 1})
        assert system.rows("Sold") == [{"item": 1, "total": 1, "n": 1}]
        append, changes = SqliteLog.append, system.subscribe("Sales")
        changes.ready()

        def fails_afterwards(self: SqliteLog, *arguments: object) -> None:
            append(self, *arguments)  # type: ignore[arg-type]
            raise LogError("the disk is on fire")

        monkeypatch.setattr(SqliteLog, "append", fails_afterwards)
        with pytest.raises(smile.PublishUncertain, match="on fire"):
            system.publish("Sales", {"item": 1, "qty": 2})
        monkeypatch.setattr(SqliteLog, "append", append)
        with pytest.raises(smile.PublishError, match="published before"):  # it was written after all
            system.publish("Sales", {"item": 1, "qty": 2})
        system.publish("Sales", {"item": 1, "qty": 3})
        assert system.rows("Sold") == [{"item": 1, "total": 6, "n": 3}]
        assert [change.row["qty"] for change in changes.ready()] == [2, 3]
    with smile.run(program, data=tmp_path) as system:
        assert system.rows("Sold") == [{"item": 1, "total": 6, "n": 3}]
