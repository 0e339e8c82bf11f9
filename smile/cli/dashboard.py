"""The dashboard of `smile top`: brokers, components, horizons, gaps and rates, as they are now.

It is given a function that looks, which may take its time: it is called in a thread, one look after the other, and what
cannot be seen is said in the status line instead.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Header, Static

from smile.cli.standing import BrokerStanding, ComponentStanding, Standing
from smile.cli.status import duration

Look = Callable[[], Standing]

BEHIND_S = 5.0
"""A component that is further behind is shown in red."""

BROKER_COLUMNS = ("broker", "address", "state", "up", "components", "peers", "commits/s", "out", "drops")
COMPONENT_COLUMNS = ("component", "broker", "kind", "state", "behind", "gaps", "rows", "messages/s", "asked")


class Dashboard(App[None]):
    """`every_s`: how long to wait between two looks."""

    CSS = "#brokers { height: auto; max-height: 40%; } #components { height: 1fr; } #told { height: 1; }"
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        Binding("p", "pause", "Pause"),
        Binding("s", "sort", "Worst first"),
    ]

    def __init__(self, title: str, look: Look, every_s: float = 1.0) -> None:
        super().__init__()
        self.title = title
        self._look = look
        self._every_s = every_s
        self._paused = False
        self._worst_first = False
        self._shown: Standing | None = None

    def compose(self) -> ComposeResult:
        yield Header()
        yield DataTable[Text](id="brokers", cursor_type="none")
        yield DataTable[Text](id="components", cursor_type="row")
        yield Static(id="told")
        yield Footer()

    def on_mount(self) -> None:
        self._table("brokers").add_columns(*BROKER_COLUMNS)
        self._table("components").add_columns(*COMPONENT_COLUMNS)
        self._begin()

    def _table(self, name: str) -> DataTable[Text]:
        return self.query_one(f"#{name}", DataTable)

    def _begin(self) -> None:
        self.run_worker(self._look_once, thread=True, exclusive=True)

    def _look_once(self) -> None:
        if not self._paused:
            try:
                found = self._look()
            except Exception as error:  # noqa: BLE001  # whatever it is, the next look may succeed
                self.call_from_thread(self.tell, f"cannot see: {error}")
            else:
                self.call_from_thread(self.show, found)
        self.call_from_thread(self.set_timer, self._every_s, self._begin)

    # Keys

    def action_pause(self) -> None:
        self._paused = not self._paused
        self.tell("paused; p goes on" if self._paused else "")

    def action_sort(self) -> None:
        self._worst_first = not self._worst_first
        if self._shown is not None:
            self.show(self._shown)

    # What is shown

    def tell(self, text: str) -> None:
        self.query_one("#told", Static).update(Text(text))

    def show(self, found: Standing) -> None:
        self._shown = found
        brokers = self._table("brokers")
        brokers.clear()
        for broker in found.brokers.values():
            brokers.add_row(*_broker_cells(broker))
        components = self._table("components")
        row = components.cursor_row
        components.clear()
        for component in self._ordered(found):
            components.add_row(*_component_cells(component))
        components.move_cursor(row=row)
        self.tell("all is well" if found.is_well else "; ".join(_complaints(found)))

    def _ordered(self, found: Standing) -> list[ComponentStanding]:
        components = list(found.components.values())
        if self._worst_first:
            components.sort(key=lambda one: (not one.problem, -one.gaps, -(one.behind_s or 0.0)))
        return components


def _complaints(found: Standing) -> list[str]:
    bad = [one for one in found.brokers.values() if one.error or one.problem]
    return [f"{one.name}: {one.error or one.problem}" for one in bad] or [
        f"{one.name}: {one.problem}" for one in found.components.values() if one.problem
    ]


def _broker_cells(broker: BrokerStanding) -> list[Text]:
    state = Text("serves", "green") if broker.is_up else Text("down", "bold red")
    if not broker.is_up:
        return [Text(broker.name), Text(broker.address), state, *(Text("") for _ in BROKER_COLUMNS[3:])]
    return [
        Text(broker.name),
        Text(broker.address),
        state,
        Text(duration(broker.up_s)),
        Text(str(broker.components)),
        Text(str(broker.peers)),
        Text(_number(broker.commits_per_s)),
        Text("-" if broker.bytes_out_per_s is None else f"{_number(broker.bytes_out_per_s)}B/s"),
        Text(str(broker.drops), "yellow" if broker.drops else ""),
    ]


def _component_cells(component: ComponentStanding) -> list[Text]:
    behind = component.behind_s
    return [
        Text(component.name),
        Text(component.broker),
        Text(component.kind),
        Text(component.problem, "bold red") if component.problem else Text(component.state),
        Text(duration(behind), "red" if behind is not None and behind > BEHIND_S else ""),
        Text(str(component.gaps), "yellow" if component.gaps else ""),
        Text("-" if component.rows is None else f"{component.rows:,}"),
        Text(_number(component.messages_per_s)),
        Text(str(component.curiosity)),
    ]


def _number(value: float | None) -> str:
    """Three digits and a unit."""
    if value is None:
        return "-"
    for unit in ("", "k", "M", "G"):
        if abs(value) < 1_000 or unit == "G":
            break
        value /= 1_000
    return f"{value:.0f}{unit}" if value >= 100 or value == int(value) else f"{value:.1f}{unit}"
