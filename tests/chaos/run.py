"""One chaos run: three real brokers behind the proxy, publishers with ledgers, subscribers with records, a schedule of
faults, and the verdict. Called by the test (a short run) and by `python -m tests.chaos` (a long one).
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path

from smile.local import LocalBrokers, free_ports
from tests.chaos import publisher, subscriber
from tests.chaos.checks import Check, View, check_available, check_event, check_sold, replay
from tests.chaos.ledger import lines_of, read_ledgers
from tests.chaos.proxy import Faults, Proxy
from tests.chaos.records import read_record
from tests.chaos.redeployment import Redeployment
from tests.chaos.schedule import Decision, draw_schedule, duration
from tests.chaos.subscriber import STOP_FILE, Wanted
from tests.chaos.truth import BUYERS, SELLERS, Truth, compute_truth

PROGRAM = Path(__file__).parent / "tickets.mpl"
BROKERS = ["west", "east", "hub"]
LINKS = [f"{name} {kind}" for name in BROKERS for kind in ("control", "data")]
ITEMS = 200
ROWS_EACH = 25
BUY_MOST = 9
BUY_IDS = 10_000_000
"""Apart, so that every life of every publisher has its own."""

USUAL = Faults(drop=0.02, duplicate=0.02, late=0.02, reorder=0.02, delay_max_s=0.1)
HURT = Faults(drop=0.15, duplicate=0.1, late=0.05, reorder=0.1, delay_max_s=0.3)
RECOVERY_S_MAX = 5.0
"""How long a kill waits for its broker to start again."""

CALM_S = 120.0
"""How long publishers and subscribers may take to finish once the faults are over."""

WANTED = [
    Wanted("sold", "Sold", "changes"),
    Wanted("rows", "Available", "changes"),
    Wanted("bounds", "Available", "bounds"),
    Wanted("cuts", "Available", "as of horizon"),
    Wanted("events", "Buyers", "changes"),
]
RESUMES = Wanted("resumes", "Available", "changes", resumes=True)
CHECKS: dict[str, Check] = {
    "sold": check_sold,
    "rows": check_available,
    "bounds": check_available,
    "cuts": check_available,
    "resumes": check_available,
    "events": check_event,
}


@dataclass
class Verdict:
    """What a run came to: `wrong` is empty if everything held."""

    seed: int
    events: int = 0
    uncertain: int = 0
    done: Counter[str] = field(default_factory=Counter)
    hurt: Counter[str] = field(default_factory=Counter)
    shown: dict[str, tuple[int, int]] = field(default_factory=dict)
    """By subscriber: rows shown, and how many of them were compared with subsets of real events."""
    starts: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    """By phase."""
    wrong: list[str] = field(default_factory=list)

    def summary(self) -> str:
        shown = ", ".join(f"{name} {rows}" for name, (rows, _) in self.shown.items())
        return (
            f"seed {self.seed}: {self.events} events logged ({self.uncertain} of uncertain publishes), "
            f"{dict(self.done)}, messages {dict(self.hurt)}, shown: {shown}; seconds {self.seconds}; "
            + ("everything held" if not self.wrong else f"WRONG: {len(self.wrong)}")
        )


class Run:
    """`folder` keeps ledgers, records and the brokers' data; it is the evidence if something is wrong."""

    def __init__(self, seed: int, kills: int, events: int, folder: Path) -> None:
        self.seed = seed
        self.events = events
        self.folder = folder
        self.verdict = Verdict(seed)
        self.schedule = draw_schedule(seed, kills, BROKERS, LINKS, list(BUYERS))
        self._stack = ExitStack()
        self._lives: Counter[str] = Counter()
        self._clients: dict[str, subprocess.Popen[bytes]] = {}
        self._healing: list[tuple[float, Decision]] = []
        self._redeployments: list[Redeployment] = []

    def __call__(self) -> Verdict:
        with self._stack:
            for phase in (
                self._set_up,
                self._subscribe_all,
                self._publish_all,
                self._carry_out,
                self._calm_down,
                self._judge,
            ):
                start = time.monotonic()
                phase()
                self.verdict.seconds[phase.__name__.strip("_")] = round(time.monotonic() - start, 1)
        return self.verdict

    # Setting up

    def _set_up(self) -> None:
        (self.folder / "records").mkdir(parents=True)
        (self.folder / "ledgers").mkdir()
        self.proxy = Proxy(self.seed)
        self._stack.callback(self.proxy.close)
        listen, announced, extra = {}, {}, {}
        ports = iter(free_ports(2 * len(BROKERS)))
        for name in BROKERS:
            control, data = next(ports), next(ports)
            listen[name] = f"tcp://127.0.0.1:{control}"
            announced[name] = f"tcp://127.0.0.1:{self.proxy.add(f'{name} control', '127.0.0.1', control)}"
            told = f"tcp://127.0.0.1:{self.proxy.add(f'{name} data', '127.0.0.1', data)}"
            extra[name] = ["--data-listen", f"tcp://127.0.0.1:{data}", "--data-announce", told]
        self.brokers = LocalBrokers(
            PROGRAM,
            BROKERS,
            self.folder / "brokers",
            listen=listen,
            announced=announced,
            extra=extra,
            checkpoint_every="1s",
        )
        self._stack.enter_context(self.brokers)
        self._stack.callback(self._end_clients)
        for link in LINKS:
            self._set_usual(link)

    def _set_usual(self, link: str) -> None:
        self._set_faults(link, USUAL)

    def _set_faults(self, link: str, faults: Faults) -> None:
        """Towards a data endpoint only subscriptions travel. ZeroMQ repeats them when it connects again: they are lost
        with a connection or not at all."""
        to_server = Faults() if link.endswith(" data") else faults
        self.proxy.set_faults(link, to_server=to_server, to_client=faults)

    @property
    def _addresses(self) -> list[str]:
        return list(self.brokers.addresses.values())

    def _start(self, name: str, module: str, order: str) -> None:
        log = self._stack.enter_context((self.folder / f"{name}.log").open("ab"))
        self._clients[name] = subprocess.Popen([sys.executable, "-m", module, order], stdout=log, stderr=log)

    def _subscribe(self, wanted: list[Wanted], name: str) -> None:
        order = subscriber.Order(self._addresses, str(self.folder / "records"), wanted)
        self._start(name, "tests.chaos.subscriber", order.to_text())

    def _subscribe_all(self) -> None:
        """Before the first fault everybody has had a snapshot: otherwise a fast run would watch nothing."""
        self._subscribe(WANTED, "watchers")
        self._subscribe([RESUMES], "resumes")
        names = [wanted.name for wanted in (*WANTED, RESUMES)]
        self._await(lambda: all(self._has_started(name) for name in names), "subscription")

    def _await(self, is_there: Callable[[], bool], what: str) -> None:
        end = time.monotonic() + CALM_S
        while not is_there():
            if time.monotonic() > end:
                raise TimeoutError(f"no {what} within {CALM_S} s; see {self.folder}")
            time.sleep(0.05)

    def _has_started(self, name: str) -> bool:
        path = self._record(name)
        return path.exists() and any(line["what"] == "start" for line in lines_of(path))

    def _record(self, name: str) -> Path:
        return self.folder / "records" / f"{name}.jsonl"

    # Publishing

    def _publish_all(self) -> None:
        """The clock of the schedule starts when all of them publish."""
        seconds = duration(self.schedule)
        for number, stream in enumerate(BUYERS):
            count = self.events // len(BUYERS)
            jobs = [publisher.Job(stream, number * BUY_IDS, count, ROWS_EACH, seconds, ITEMS, BUY_MOST)]
            self._publish(stream, jobs)
        offered = max(1, self.events * BUY_MOST // ITEMS)  # twice what is bought of an item: about half sell out
        self._publish(SELLERS, [publisher.Job(SELLERS, 0, ITEMS, 5, seconds / 2, ITEMS, offered)])
        self._await(lambda: self._writing_ledgers() == len(BUYERS) + 1, "publisher that publishes")
        self.start = time.monotonic()

    def _writing_ledgers(self) -> int:
        return sum(path.stat().st_size > 0 for path in (self.folder / "ledgers").iterdir())

    def _publish(self, name: str, jobs: list[publisher.Job]) -> None:
        self._lives[name] += 1
        ledger = self.folder / "ledgers" / f"{name}-{self._lives[name]}.jsonl"
        order = publisher.Order(self._addresses, str(ledger), self.seed, jobs)
        self._start(name, "tests.chaos.publisher", order.to_text())

    def _abandon(self, stream: str) -> None:
        """Kills a publisher; another one publishes what it had not begun, under ids of its own."""
        client = self._clients[stream]
        if client.poll() is not None:
            return
        client.kill()
        client.wait()
        ledgers = (self.folder / "ledgers").glob(f"{stream}-*.jsonl")
        begun = sum(len(publish.rows) for publish in read_ledgers(ledgers))
        left = self.events // len(BUYERS) - begun
        if left > 0:
            seconds = max(1.0, self.start + duration(self.schedule) - time.monotonic())
            first = BUYERS.index(stream) * BUY_IDS + self._lives[stream] * BUY_IDS // 10
            self._publish(stream, [publisher.Job(stream, first, left, ROWS_EACH, seconds, ITEMS, BUY_MOST)])

    # Faults

    def _carry_out(self) -> None:
        for decision in self.schedule:
            self._wait_until(self.start + decision.at)
            self._do(decision)
        self._wait_until(self.start + duration(self.schedule))
        for _, decision in self._healing:
            self._undo(decision)
        self._healing.clear()

    def _wait_until(self, moment: float) -> None:
        """Meanwhile faults end whose time is over."""
        while True:
            now = time.monotonic()
            for ends, decision in [each for each in self._healing if each[0] <= now]:
                self._healing.remove((ends, decision))
                self._undo(decision)
            if now >= moment:
                return
            time.sleep(min([moment, *(ends for ends, _ in self._healing)]) - now + 0.001)

    def _do(self, decision: Decision) -> None:
        target = decision.target
        match decision.what:
            case "kill":
                if decision.into_recovery is not None:
                    self._await_recovery(target, decision.into_recovery)
                if self.brokers.pid(target) is None:  # it is down already: the next one that runs
                    target = next((name for name in BROKERS if self.brokers.pid(name) is not None), target)
                state = self.brokers.state(target)
                self.verdict.done["kills in recovery"] += state == "starting"
                self.brokers.kill(target)
            case "cut":
                self.proxy.cut(target, decision.share)
            case "stall":
                self.proxy.stall(target)
            case "part":
                self.proxy.refuse(target, True)
                self.proxy.cut(target)
            case "hurt":
                self._set_faults(target, HURT)
            case "pause":
                self.brokers.pause(target)
            case "leave":
                self._clients["resumes"].kill()
                self._clients["resumes"].wait()
                self._subscribe([RESUMES], "resumes")
            case "abandon":
                self._abandon(target)
            case "redeploy":
                self._redeployments.append(Redeployment(self.brokers, self._redeployments[-1:]))
        self.verdict.done[decision.what] += 1
        if decision.length and decision.what != "cut":
            self._healing.append((time.monotonic() + decision.length, decision))

    def _await_recovery(self, broker: str, seconds: float) -> None:
        """How soon it starts again, and for how long it does, depends on the machine: so it is watched."""
        limit = time.monotonic() + RECOVERY_S_MAX
        while self.brokers.state(broker) != "starting" and time.monotonic() < limit:
            time.sleep(0.002)
        time.sleep(seconds)

    def _undo(self, decision: Decision) -> None:
        match decision.what:
            case "stall":
                self.proxy.resume(decision.target)
            case "part":
                self.proxy.refuse(decision.target, False)
            case "hurt":
                self._set_usual(decision.target)
            case "pause":
                self.brokers.resume(decision.target)
            case _:
                pass

    # The end

    def _calm_down(self) -> None:
        """No more faults; publishers finish, then subscribers must arrive at the truth by themselves."""
        for link in LINKS:
            self._set_faults(link, Faults())
        for name in BROKERS:
            with suppress(Exception):  # a broker that does not come back shows in what follows, with its log
                self.brokers.wait_serving(name, CALM_S)
        end = time.monotonic() + CALM_S
        for redeployment in self._redeployments:
            if not redeployment.wait(max(0.1, end - time.monotonic())):
                self.verdict.wrong.append(f"a redeployment did not finish: {redeployment.problem}")
        for name in (*BUYERS, SELLERS):
            client = self._clients[name]
            try:
                client.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.verdict.wrong.append(f"publisher {name} did not finish {CALM_S:.0f} s after the last fault")

    def _judge(self) -> None:
        end = time.monotonic() + CALM_S
        while True:
            self._await_quiet()
            truth, wrong = self._truth()
            views = {name: self._replayed(name, truth) for name in CHECKS}
            late = [text for name, view in views.items() for text in self._unfinished(name, view)]
            if not (late or wrong) or time.monotonic() > end:
                break
        (self.folder / "records" / STOP_FILE).touch()
        self.verdict.wrong += wrong + late + [f"{name}: {text}" for name, view in views.items() for text in view.wrong]
        self.verdict.shown = {name: (view.shown, view.exact) for name, view in views.items()}
        self.verdict.events = len(truth.buys) + len(truth.offers)
        self.verdict.starts = {name: self.brokers.starts(name) for name in BROKERS}
        for route in self.proxy.routes.values():
            self.verdict.hurt += route.counts
        (self.folder / "verdict.json").write_text(json.dumps(vars(self.verdict), indent=1))

    def _await_quiet(self) -> None:
        """Reading records takes long, so not before nothing more is written to them; a second is many heartbeats."""
        sizes: dict[str, int] = {}
        for _ in range(int(CALM_S)):
            before, sizes = sizes, {name: self._record(name).stat().st_size for name in CHECKS}
            if sizes == before:
                return
            time.sleep(1.0)

    def _truth(self) -> tuple[Truth, list[str]]:
        publishes = read_ledgers((self.folder / "ledgers").iterdir())
        entries = [entry for entry in read_record(self._record("events")) if entry.rows]
        logged = {shown.row["offer_id"]: shown.row["buy_id"] for entry in entries for shown in entry.rows}
        self.verdict.uncertain = sum(len(publish.rows) for publish in publishes if publish.ticks is None)
        return compute_truth(publishes, logged)

    def _replayed(self, name: str, truth: Truth) -> View:
        return replay(read_record(self._record(name)), truth, CHECKS[name], is_cut=name == "cuts")

    def _unfinished(self, name: str, view: View) -> list[str]:
        if name == "events":
            missing = len(view.truth.buys.keys() - {key[0] for key in view.rows})
        elif name == "sold":
            shown = {key[0]: (row["total"], row["bought"]) for key, row in view.rows.items()}
            missing = len(dict(shown.items() ^ view.truth.sold().items()))
        else:
            left = {key[0]: row["avail"] for key, row in view.rows.items()}
            missing = len(dict(left.items() ^ view.truth.available().items()))
        return [f"{name}: {missing} rows are not the whole truth in the end"] if missing else []

    def _end_clients(self) -> None:
        (self.folder / "records" / STOP_FILE).touch()
        for client in self._clients.values():
            try:
                client.wait(10)
            except subprocess.TimeoutExpired:
                client.kill()
                client.wait()
