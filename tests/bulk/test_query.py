"""Goal: a question about the past is answered only if every event up to then can be read; otherwise it is said which
are missing, where they were looked for, and what helps. Without Spark."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest
from typer.testing import CliRunner

import smile
from runtime.log.reader import LoggedStream
from runtime.protocol.coverage import Coverage
from smile.bulk import as_of
from smile.bulk.as_of import Held, condition, require_events, require_reach
from smile.bulk.sources import Sources
from smile.cli import app
from smile.cli.exits import Exit
from smile.cli.histories import Past

SOURCES = Sources(Path("history"), (Path("data"),))


def known(
    monkeypatch: pytest.MonkeyPatch,
    *,
    archived: int = -1,
    gaps: Coverage | None = None,
    trimmed: int = -1,
    lost: tuple[tuple[int, int], ...] = (),
    log: bool = True,
) -> None:
    """Of every stream there is this, and nothing else."""
    logged = LoggedStream("S", 1, (("a", "int"),), 100, trimmed, lost) if log else None
    monkeypatch.setattr(
        as_of, "held", lambda _, stream: Held(stream, archived, gaps or Coverage(), 0, Path("data"), logged)
    )
    monkeypatch.setattr(as_of, "_logged_events", lambda *_: 0)


def test_what_the_log_has_trimmed_must_be_in_the_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"S": Coverage.prefix(90)}
    known(monkeypatch, trimmed=50)
    with pytest.raises(smile.SmileError, match=r"`S` up to tick 50 .* left the log in data.*name the archive"):
        require_events(SOURCES, wanted)
    known(monkeypatch, trimmed=50, archived=49)
    with pytest.raises(smile.SmileError, match="archive history does not have them"):
        require_events(SOURCES, wanted)
    known(monkeypatch, trimmed=50, archived=50)
    require_events(SOURCES, wanted)
    # Nobody asks for what has gone.
    known(monkeypatch, trimmed=50)
    require_events(SOURCES, {"S": Coverage.of((51, 90))})


def test_lost_events_are_left_out_only_on_demand(monkeypatch: pytest.MonkeyPatch) -> None:
    known(monkeypatch, archived=40, gaps=Coverage.of((7, 9)), lost=((60, 70),))
    for last, places in ((50, "7..9;"), (65, "7..9 60..65;")):
        with pytest.raises(smile.SmileError, match=rf"lost in a repair, in ticks {places} --accept-loss"):
            require_events(SOURCES, {"S": Coverage.prefix(last)})
        require_events(SOURCES, {"S": Coverage.prefix(last)}, accept_loss=True)
    require_events(SOURCES, {"S": Coverage.of((0, 6), (10, 59))})


def test_an_archive_alone_is_taken_for_all_only_where_that_is_meant(monkeypatch: pytest.MonkeyPatch) -> None:
    known(monkeypatch, archived=40, log=False)
    with pytest.raises(smile.SmileError, match=r"`S` up to tick 40 .*no log is known"):
        require_events(SOURCES, {"S": Coverage.prefix(41)})
    require_events(SOURCES, {"S": Coverage.prefix(41)}, archive_is_all=True)


def test_an_archive_that_ends_earlier_is_not_asked(tmp_path: Path) -> None:
    with pytest.raises(smile.SmileError, match=r"ends at .*name a broker's data folder with --data"):
        require_reach(Sources(tmp_path, ()), 5)
    require_reach(Sources(tmp_path, (Path("data"),)), 5)


def test_all_events_are_those_up_to_a_tick_when_none_can_come_below_it(tmp_path: Path) -> None:
    """A slower stream may still have events below the newest one of a faster stream."""
    program = smile.compile("stream S(a int); stream T(a int); view V = merge S, T;")
    with smile.run(program, data=tmp_path) as system:
        tick = system.publish("S", {"a": 1})
    sources, known = Sources(None, (tmp_path,)), iter([tick - 9, tick - 1, tick, tick + 9])
    brokers = mock.Mock(known_up_to=mock.Mock(side_effect=lambda _: next(known)))
    assert Past(program, None, brokers).newest("V", ("S", "T"), sources, timeout=60) == tick
    assert brokers.known_up_to.call_count == 3
    assert Past(program, None, None).newest("V", ("S", "T"), sources, timeout=60) == tick
    behind = mock.Mock(known_up_to=mock.Mock(return_value=tick - 1))
    with pytest.raises(smile.SmileError, match="are known up to"):
        Past(program, None, behind).newest("V", ("S", "T"), sources, timeout=0)


def test_ticks_as_a_condition() -> None:
    assert condition("tick", Coverage.prefix(7)) == "tick <= 7"
    assert condition("tick", Coverage.of((0, 3), (6, 8))) == "tick between 0 and 3 or tick between 6 and 8"


def test_commands_say_what_is_wrong_before_spark_is_started(tmp_path: Path) -> None:
    program = tmp_path / "p.mpl"
    program.write_text("stream S(a int); view V = from S |> aggregate n := count();")
    with smile.run(smile.compile(program), data=tmp_path / "data") as system:
        system.publish("S", {"a": 1})
    places = ["--program", str(program), "--data", str(tmp_path / "data")]
    for arguments, code, words in (
        (["query", "V", "--as-of", "2999-01-01", *places], Exit.USAGE, "lies in the future"),
        (["query", "V", "--as-of", "soon", *places], Exit.USAGE, "Without a zone such as +02:00 a time is UTC"),
        (["query", "W", "--as-of", "5", *places], Exit.USAGE, "has no view, stream or table `W`"),
        (["query", "V", *places], Exit.USAGE, "add --as-of"),
        (["recompute", "W", *places], Exit.USAGE, "has no view `W`"),
        (["recompute", "V", "--install", "--accept-loss", *places], Exit.USAGE, "--accept-loss is for views"),
        (["recompute", "V", "--install", "--output", "v", *places], Exit.USAGE, "--output is for views"),
        (["query", "V", "--as-of", "5", "--data", str(tmp_path)[:-1] + "?"], Exit.USAGE, "holds no log"),
        (
            ["recompute", "V", "--data", str(tmp_path), "--address", "tcp://127.0.0.1:1", "--timeout", "0.2"],
            Exit.UNREACHABLE,
            "--program FILE",
        ),
    ):
        done = CliRunner().invoke(app, arguments)
        assert words in done.output, arguments
        assert done.exit_code == code, done.output
