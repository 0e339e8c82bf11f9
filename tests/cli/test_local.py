"""Goal: brokers of a local run are started, looked after and ended, and none outlives its run, whatever happens.

Processes are real; what a broker does besides living is left out (`fake_broker.py`), so that this takes seconds.
"""

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
import typer

import smile.local
from smile.cli.run import _wait as wait_for_end
from smile.deploy import local_broker
from smile.deploy.deployment import Deployment
from smile.deploy.run_record import RunRecord, find_run, read_run
from smile.local import LocalBrokers, LocalRunError, free_ports
from tests.measures import PATIENCE_S, eventually

TICKETS = "examples/tickets/tickets.mpl"
FAKE = str(Path(__file__).with_name("fake_broker.py").absolute())


def local(data: Path | None = None, brokers: int | list[str] | None = None, **named: object) -> LocalBrokers:
    return LocalBrokers(TICKETS, brokers, data, script=FAKE, **named)  # type: ignore[arg-type]


def process_state(pid: int | None) -> str:
    """The kernel's letter: T frozen, Z ended and not yet buried, empty if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return ""


def is_running(pid: int | None) -> bool:
    return process_state(pid) not in ("", "Z")


def test_a_run_from_start_to_end(tmp_path: Path) -> None:
    with local(tmp_path) as run:
        assert run.names == ["west", "east", "hub"], "those that the program declares"
        pids = [run.pid(name) for name in run.names]
        assert all(is_running(pid) for pid in pids)
        record = read_run(tmp_path)
        assert record == run.record
        assert record is not None
        assert record.is_alive
        assert record.address == run.address == run.addresses["west"]
        for name in run.names:
            stored = Deployment.read(tmp_path / name)
            assert stored == run.deployment
            said = json.loads((tmp_path / name / "serving.json").read_text())["arguments"]
            assert said[: said.index("--data")] == [name, "--listen", run.addresses[name]]
    assert not any(is_running(pid) for pid in pids)
    ended = read_run(tmp_path)
    assert ended is not None
    assert {broker.state for broker in ended.brokers.values()} == {"stopped"}
    assert not ended.is_alive, "although the process that ran it is"


def test_a_temporary_folder_is_removed() -> None:
    with local(brokers=1) as run:
        folder = run.data
        assert folder.is_dir()
    assert not folder.exists()


@pytest.mark.parametrize(("brokers", "names"), [(1, ["west"]), (4, ["west", "east", "hub", "b4"]), (["x"], ["x"])])
def test_how_many_and_what_they_are_called(brokers: int | list[str], names: list[str]) -> None:
    run = local(brokers=brokers)
    assert run.names == names
    run.close()


def test_a_killed_broker_is_started_again_in_the_same_place(tmp_path: Path) -> None:
    seen: list[tuple[str, str]] = []
    with local(tmp_path, 2, changed=lambda name, state: seen.append((name, state))) as run:
        before, address = run.pid("east"), run.addresses["east"]
        run.kill("east")
        eventually(lambda: run.starts("east") == 2 and run.state("east") == "serving")
        assert run.pid("east") != before
        assert run.addresses["east"] == address
        assert run.starts("west") == 1
        record = read_run(tmp_path)
        assert record is not None
        assert record.brokers["east"].starts == 2
    assert [state for name, state in seen if name == "east"] in (
        ["starting", "serving", "down", "starting", "serving"],
        ["starting", "serving", "down", "serving"],
    )


def test_without_restart_it_stays_down_until_asked() -> None:
    with local(brokers=1, restart=False) as run:
        run.kill("west")
        eventually(lambda: run.state("west") == "stopped")
        time.sleep(0.3)
        assert run.pid("west") is None
        run.restart("west")
        assert run.state("west") == "serving"
        run.restart("west")
        assert run.starts("west") == 3


def test_stop_is_orderly_and_lasting() -> None:
    with local(brokers=1) as run:
        run.stop("west")
        assert run.state("west") == "stopped"
        time.sleep(0.3)
        assert run.starts("west") == 1
        run.restart("west")
        assert run.state("west") == "serving"


def test_pause_and_resume() -> None:
    with local(brokers=1) as run:
        pid = run.pid("west")
        assert pid is not None
        run.pause("west")
        eventually(lambda: process_state(pid) == "T")
        assert run.state("west") == "paused"
        run.resume("west")
        eventually(lambda: process_state(pid) != "T")
        run.pause("west")
    assert not is_running(pid), "a frozen one ends too"


def test_one_that_cannot_start_is_told_with_its_own_words(tmp_path: Path) -> None:
    (tmp_path / "crash").touch()
    with pytest.raises(LocalRunError, match=r"broker west ended with code 1 before it served: cannot start: the file"):
        local(tmp_path, 1).start()


def test_one_that_dies_at_once_is_tried_more_and_more_slowly(tmp_path: Path) -> None:
    with local(tmp_path, 1) as run:
        (tmp_path / "crash").touch()
        run.kill("west")
        began = time.monotonic()
        eventually(lambda: run.starts("west") >= 3)
        time.sleep(1.0)
        assert run.starts("west") <= 6 + 2 * (time.monotonic() - began), "it does not spin"
        (tmp_path / "crash").unlink()
        eventually(lambda: run.state("west") == "serving")


def test_a_full_disk_stops_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The record cannot be written, and a broker that dies cannot start for longer than others are tried."""
    written, tries = RunRecord.write, []

    def no_space(record: RunRecord) -> None:
        tries.append(record)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(smile.local, "EARLY_DEATHS_MAX", 2)
    monkeypatch.setattr(smile.local, "RECORD_AGAIN_S", 0.1)
    monkeypatch.setattr(local_broker, "RESTART_DELAY_S_MAX", 0.1)
    monkeypatch.setattr(smile.local, "FULL_DISK_BYTES", 2**80)
    with local(tmp_path, 2) as run:
        west = run.pid("west")
        monkeypatch.setattr(RunRecord, "write", no_space)
        (tmp_path / "crash").touch()
        run.kill("east")
        eventually(lambda: run.starts("east") > 4 and len(tries) > 4)
        with monkeypatch.context() as patched:
            patched.setattr(run, "_spawn", no_space)
            with pytest.raises(LocalRunError, match="could not be started within"):
                run.restart("east", timeout=0.5)
        assert run.failure is None
        assert (run.pid("west"), run.starts("west")) == (west, 1)
        monkeypatch.setattr(RunRecord, "write", written)
        (tmp_path / "crash").unlink()
        eventually(lambda: run.state("east") == "serving" and read_run(tmp_path) == run.record, "space")
        monkeypatch.setattr(smile.local, "FULL_DISK_BYTES", 0)
        (tmp_path / "crash").touch()
        run.kill("east")
        eventually(lambda: run.state("east") == "failed", "it to be given up, since there is space")


def test_a_supervisor_that_fails_says_so(tmp_path: Path) -> None:
    def changed(name: str, state: str) -> None:
        if state == "down":
            raise ZeroDivisionError("a mistake")

    with local(tmp_path, 1, changed=changed) as run:
        ended = threading.Event()
        run.kill("west")
        with pytest.raises(typer.Exit) as code:
            wait_for_end(run, ended, None)
        assert code.value.exit_code == 1
        assert "a mistake" in str(run.failure)
        with pytest.raises(LocalRunError, match="a mistake"):
            run.restart("west")


def test_one_that_is_stopped_while_all_are_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the end of the process that is waited for, not the time that it may take."""
    monkeypatch.setattr(smile.local, "STOP_TIMEOUT_S", 600.0)
    with local(brokers=1) as run:

        def stop() -> None:
            with run._wake:
                run._is_closing = True
                run.stop("west")

        stopping = threading.Thread(target=stop, daemon=True)
        stopping.start()
        stopping.join(PATIENCE_S)
        assert not stopping.is_alive()
        with pytest.raises(LocalRunError, match="was stopped before it served"):
            run.restart("west", timeout=600.0)


def test_starting_ends_when_nobody_wants_it_any_more(tmp_path: Path) -> None:
    """Ctrl-C, for one: a broker may take long to read its log."""
    (tmp_path / "slow.py").write_text("import time; time.sleep(600)")
    run = LocalBrokers(TICKETS, 1, tmp_path / "data", script=str(tmp_path / "slow.py"))
    ended = threading.Event()
    failures: list[Exception] = []

    def start() -> None:
        try:
            run.start(ended)
        except LocalRunError as error:
            failures.append(error)

    starting = threading.Thread(target=start, daemon=True)
    starting.start()
    eventually(lambda: run.state("west") == "starting")
    pid = run.pid("west")
    ended.set()
    starting.join(PATIENCE_S / 2)
    assert [str(one) for one in failures] == ["broker west was stopped before it served"]
    assert not is_running(pid)


def test_one_run_per_folder(tmp_path: Path) -> None:
    with local(tmp_path, 1), pytest.raises(LocalRunError, match="in use by another run"):
        local(tmp_path, 1).start()


def test_the_next_run_continues(tmp_path: Path) -> None:
    with local(tmp_path) as first:
        deployment = first.deployment
    with local(tmp_path) as second:
        assert second.deployment.identity == deployment.identity
        assert second.deployment.residues == deployment.residues
    with pytest.raises(Exception, match="the log of stream `Sellers` is on broker `hub`"):
        local(tmp_path, 1).start()


RUN = """
import sys, time
from smile.local import LocalBrokers
with LocalBrokers(sys.argv[1], 2, sys.argv[2], script=sys.argv[3]) as run:
    run.pause("east")
    print("ready", flush=True)
    time.sleep(60)
"""


def test_nobody_is_orphaned_when_the_run_is_killed(tmp_path: Path) -> None:
    process = subprocess.Popen([sys.executable, "-c", RUN, TICKETS, str(tmp_path), FAKE], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    found = read_run(tmp_path)
    assert found is not None
    pids = [broker.pid for broker in found.brokers.values()]
    assert all(is_running(pid) for pid in pids)
    process.kill()
    process.wait()
    process.stdout.close()
    eventually(lambda: not any(is_running(pid) for pid in pids))
    assert not found.is_alive


def test_others_find_the_newest_run_that_is_alive(tmp_path: Path) -> None:
    folder = tmp_path / "project" / ".smile" / "tickets"
    (tmp_path / "project" / "deep").mkdir(parents=True)
    assert find_run(tmp_path / "project" / "deep") is None
    with local(folder, 1) as run:
        found = find_run(tmp_path / "project" / "deep")
        assert found is not None
        assert (found.folder, found.address) == (folder, run.address)
        ended = subprocess.run([sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True)
        (tmp_path / "project" / ".smile" / "old").mkdir()
        RunRecord(tmp_path / "project" / ".smile" / "old", int(ended.stdout), "x", found.brokers).write()
        again = find_run(tmp_path / "project")
        assert again is not None
        assert again.folder == folder


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"format": 1, "brokers": {}}', '{"format": 1, "brokers": {"a": 3}}'])
def test_a_record_that_makes_no_sense_is_none(tmp_path: Path, text: str) -> None:
    (tmp_path / "run.json").write_text(text)
    assert read_run(tmp_path) is None


def test_ports_are_free_and_not_those_of_outgoing_connections() -> None:
    ports = free_ports(20)
    low = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    assert len(set(ports)) == 20
    assert all(1024 < port < low for port in ports)
    first = free_ports(1)[0]
    assert free_ports(1, first) == [first]
    assert len(free_ports(2, 65_535)) == 2, "others, since there is no port after the last"


def test_arguments_for_one_broker_and_addresses_behind_a_proxy(tmp_path: Path) -> None:
    port = free_ports(1)[0]
    run = local(
        tmp_path,
        2,
        listen={"west": f"tcp://127.0.0.1:{port}"},
        announced={"west": "tcp://127.0.0.1:9"},
        extra={"west": ["--data-listen", "x"]},
        http=True,
        checkpoint_every="1s",
    )
    with run:
        assert run.deployment.brokers["west"] == run.address == "tcp://127.0.0.1:9"
        said = json.loads((tmp_path / "west" / "serving.json").read_text())["arguments"]
        assert said[2] == f"tcp://127.0.0.1:{port}"
        assert said[-2:] == ["--data-listen", "x"]
        assert said[said.index("--checkpoint-every") + 1] == "1s"
        assert run.record.brokers["west"].http == said[said.index("--http") + 1]


def test_sigterm_can_be_waited_for_as_the_fake_does() -> None:
    """Otherwise every end above would have been one by force."""
    with local(brokers=1) as run:
        pid = run.pid("west")
        assert pid is not None
        os.kill(pid, signal.SIGTERM)
        eventually(lambda: run.starts("west") == 2)


def parent_of(pid: int | None) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def test_the_process_that_starts_brokers_may_die_too() -> None:
    with local(brokers=2) as run:
        nursery = parent_of(run.pid("west"))
        assert nursery == parent_of(run.pid("east"))
        os.kill(nursery, signal.SIGKILL)
        eventually(lambda: all(run.starts(name) == 2 and run.state(name) == "serving" for name in run.names))
        assert parent_of(run.pid("west")) != nursery
