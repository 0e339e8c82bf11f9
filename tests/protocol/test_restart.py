"""Rules C1 to C7: restarts from any checkpoint or none, durable acknowledgements, trimming, bulk installs."""

import json

import pytest

from runtime.protocol.checkpoint import Checkpoint, bulk_install
from runtime.protocol.errors import BadCheckpoint, BadEpoch
from runtime.protocol.events import CheckpointDue, CheckpointFailed, CheckpointWritten, PersistCheckpoint, Restarted
from runtime.protocol.messages import Curiosity, Durable, Snapshot
from tests.protocol.graphs import copy, merge, small, total
from tests.protocol.net import Net, leaf, stream


def sum_to_leaf() -> Net:
    net = Net(stream("s"), total("S", "s"), leaf("L", "S"))
    for tick, key, value in ((1, "A", 2), (2, "B", 3), (3, "A", 1)):
        net.publish("s", tick, key, value)
    net.settle()
    return net


@pytest.mark.parametrize("name", ["S", "L"])
def test_c1_a_checkpoint_is_plain_data_and_restores_everything(name: str) -> None:
    net = sum_to_leaf()
    saved = net.checkpoint(name)
    wire = json.loads(json.dumps(saved.to_wire()))
    before = (net.rows(name), net.covers(name))
    net.publish("s", 9, "A", 50)
    net.settle()
    net.restart(name, Checkpoint.from_wire(wire))
    assert (net.rows(name), net.covers(name)) == before, "later changes do not leak into a checkpoint"
    net.settle()
    net.sync(name)
    assert net.rows(name) == {"A": (53,), "B": (3,)}


def test_c1_a_merge_keeps_its_events_in_the_checkpoint() -> None:
    net = Net(stream("s"), merge("m", "s"), total("S", "m"))
    net.publish("s", 1, "A", 2)
    net.settle()
    saved = net.checkpoint("m", written=False)
    net.restart("m", saved)
    net.take()
    net.restart("S")
    net.settle(without=lambda mail: mail.edge == "s>m")
    assert net.rows("S") == {"A": (2,)}


def test_c2_a_restart_without_a_new_epoch_is_refused() -> None:
    """Mistake 7."""
    net = sum_to_leaf()
    with pytest.raises(BadEpoch):
        net.components["S"].handle(Restarted(1))
    assert net.rows("S") == {"A": (3,), "B": (3,)}
    assert net.state("S").epoch == 1


def test_c2_a_restarted_component_counts_steps_from_zero_and_asks_everywhere() -> None:
    net = Net(stream("s"), total("S", "s"), total("T", "s"), copy("X", "S"))
    net.publish("s", 1, "A", 2)
    net.settle()
    net.restart("X", net.checkpoint("X"))
    assert net.state("X").step == 0
    assert [question.applied_step for question in net.find(Curiosity, "S>X")] == [1]
    rows = net.state("X").operator.rows
    assert rows.last_step == [0]


def test_c2_any_receiver_state_converges_after_a_restart_from_nothing() -> None:
    net = sum_to_leaf()
    net.restart("S")
    net.settle()
    net.sync("L")
    assert net.rows("L") == net.rows("S") == {"A": (3,), "B": (3,)}
    assert net.state_edge("L", "S>L").adopted_epoch == 2


def test_c3_c4_durable_is_sent_after_the_checkpoint_is_and_for_what_is_in_it() -> None:
    """Mistake 22."""
    net = sum_to_leaf()
    done = net.handle("S", CheckpointDue())
    (persist,) = [i for i in done if isinstance(i, PersistCheckpoint)]
    net.publish("s", 8, "A", 1)
    net.settle()
    assert not net.sent("S", Durable)
    net.handle("S", CheckpointWritten(persist.number))
    assert [durable.horizon for durable in net.sent("S", Durable)] == [3]


def test_c4_a_failed_checkpoint_acknowledges_nothing() -> None:
    net = sum_to_leaf()
    done = net.handle("S", CheckpointDue())
    (persist,) = [i for i in done if isinstance(i, PersistCheckpoint)]
    net.handle("S", CheckpointFailed(persist.number, "disk full"))
    net.handle("S", CheckpointWritten(persist.number))
    assert not net.sent("S", Durable)


def test_c5_the_log_is_trimmed_below_its_slowest_direct_receiver() -> None:
    net = Net(stream("s"), total("S", "s"), total("T", "s"))
    net.publish("s", 4, "A", 1)
    net.settle()
    net.checkpoint("S")
    net.settle()
    assert net.logs["s"].trimmed == -1, "T has not reported: it blocks"
    net.checkpoint("T")
    net.publish("s", 6, "A", 1)
    net.settle()
    net.checkpoint("S")
    net.settle()
    assert net.logs["s"].trimmed == 4


def test_c5_a_new_incarnation_of_a_receiver_blocks_until_it_reports() -> None:
    net = Net(stream("s"), total("S", "s"))
    net.publish("s", 4, "A", 1)
    net.settle()
    saved = net.checkpoint("S")
    late = net.take("s>S", Durable)
    net.restart("S", saved)
    net.settle()
    net.deliver(*late)
    assert net.logs["s"].trimmed == -1, "the word of a replaced incarnation counts no more"
    net.checkpoint("S")
    net.settle()
    assert net.logs["s"].trimmed == 4


def bulk(net: Net, horizon: int, rows: list[tuple[str, int]]) -> Checkpoint:
    """What a job outside computed for S from all ticks <= horizon."""
    state: dict[str, object] = {
        "rows": {
            "columns": [[key for key, _ in rows], [value for _, value in rows]],
            "visible": [True] * len(rows),
            "max_tick": [0] * len(rows),
        },
        "inputs": [None],
        "extra": net.state("S").operator.export_extra(),
    }
    return bulk_install("S", (1,), horizon, state)


def test_c6_a_bulk_install_is_a_restart_with_floors_and_ticks_at_its_horizon() -> None:
    """Mistakes 27 and 28."""
    net = sum_to_leaf()
    net.restart("S", bulk(net, 2, [("A", 2), ("B", 3)]))
    component = net.state("S")
    assert (component.drop_floor, component.in_floor, component.coverage().show()) == (2, 2, "0..2")
    assert component.operator.rows.max_tick == [2, 2]
    assert net.rows("L") == {"A": (3,), "B": (3,)}
    net.settle()
    net.sync("S")
    net.sync("L")
    assert net.rows("L") == net.rows("S") == {"A": (3,), "B": (3,)}
    assert net.state_edge("L", "S>L").adopted_epoch == 2


def test_c6_a_receiver_behind_the_bulk_horizon_gets_a_complete_snapshot() -> None:
    """Mistake 28, second half: L still shows a row that was hidden below the bulk horizon."""
    net = Net(stream("s"), total("S", "s"), small("W", "S"), leaf("L", "W"))
    net.publish("s", 1, "A", 2)
    net.settle()
    net.publish("s", 2, "A", 3)
    net.settle(without=lambda mail: mail.edge == "W>L")
    assert net.rows("L") == {"A": (2,)}
    totals: dict[str, object] = {"columns": [["A"], [5]], "visible": [True], "max_tick": [0]}
    none: dict[str, object] = {"columns": [[], []], "visible": [], "max_tick": []}
    net.restart("W", bulk_install("W", (1,), 2, {"rows": none, "inputs": [totals], "extra": {}}))
    net.settle()
    net.sync("W")
    net.sync("L")
    assert net.sent("W", Snapshot)[-1].complete
    assert net.rows("L") == {}


def test_c6_a_bulk_install_below_an_acknowledged_horizon_is_refused() -> None:
    """Mistake 29."""
    net = sum_to_leaf()
    before = net.rows("S")
    with pytest.raises(BadCheckpoint, match="acknowledged 3"):
        net.restart("S", bulk(net, 2, [("A", 2)]), acknowledged=3)
    assert (net.rows("S"), net.state("S").epoch) == (before, 1)


@pytest.mark.parametrize(
    "broken",
    [
        {"rows": {"columns": [["A"]], "visible": [True], "max_tick": [1]}, "inputs": [None], "extra": {}},
        {"rows": {"columns": [["A", "A"], [1, 2]], "visible": [True] * 2, "max_tick": [1] * 2}, "inputs": [None]},
        {"inputs": []},
        {},
    ],
)
def test_a_checkpoint_that_does_not_fit_is_refused_and_changes_nothing(broken: dict[str, object]) -> None:
    net = sum_to_leaf()
    good = net.checkpoint("S")
    before = (net.rows("S"), net.covers("S"))
    with pytest.raises(BadCheckpoint):
        net.restart("S", Checkpoint("S", good.edges, -1, -1, broken))
    with pytest.raises(BadCheckpoint):
        net.restart("S", Checkpoint("T", good.edges, -1, -1, good.state))
    assert (net.rows("S"), net.covers("S"), net.state("S").epoch) == (*before, 1)


def test_a_damaged_checkpoint_cannot_be_read() -> None:
    good = sum_to_leaf().checkpoint("L").to_wire()
    assert Checkpoint.from_wire(good).to_wire() == good
    for change in ({"version": 2}, {"edges": [[1, 2]]}, {"edges": [[1, 2, [[5]]]]}, {"state": 3}, {"drop_floor": "x"}):
        with pytest.raises(ValueError, match="checkpoint"):
            Checkpoint.from_wire({**good, **change})
    for value in (None, {}, [1], {"version": 1}):
        with pytest.raises(ValueError, match="checkpoint"):
            Checkpoint.from_wire(value)
