"""One deployment after another in the same brokers, tables among them, and what a subscriber may resume from."""

from __future__ import annotations

import resource
from dataclasses import replace
from pathlib import Path

import pytest

import smile
from runtime.client.connection import Connection
from runtime.client.errors import ConnectFailed, RequestRefused
from runtime.plan import Emit, Plan
from runtime.protocol.events import Deliver, Stepped
from smile.delivery import leaf_of
from smile.deploy.bundles import components_of, make_deployment
from smile.deploy.placement import hosted_components
from smile.digests import component_digests
from smile.program import Program
from tests.broker.processes import WAIT_S, Brokers, Zygote, running, wait_for
from tests.broker.test_processes import ONE, PROGRAM, totals

CHANGED = PROGRAM.replace("qty > 500", "qty > 5") + "view Often = from Sold |> where number > 1;\n"


def redeploy(brokers: Brokers, program: Program, placement: dict[str, str]) -> None:
    deployment = make_deployment(program, brokers.addresses, placement, previous=brokers.deployment)
    brokers.deployment = deployment
    with_connection = Connection(brokers.address, request_timeout=WAIT_S, needs_deployment=False)
    try:
        for address in brokers.addresses.values():
            with_connection.deploy(deployment.to_wire(), address)
    finally:
        with_connection.close()


def test_a_new_deployment_keeps_what_has_not_changed_and_computes_the_rest_from_the_log(
    zygote: Zygote, tmp_path: Path
) -> None:
    with running(zygote, tmp_path, PROGRAM, ONE) as brokers:
        with smile.connect(brokers.address) as system:
            system.publish_many("Buys", {"item": [1, 2, 1], "qty": [5, 6, 600]})
            assert totals(system) == {1: 605, 2: 6}
        program = smile.compile(CHANGED)
        placement = dict.fromkeys([*ONE, "Often"], "a")
        redeploy(brokers, program, placement)
        wait_for(lambda: "deployment" in brokers.log("a") and brokers.log("a").count("serves at") == 2, "the new one")
        with smile.connect(brokers.address) as system:
            assert totals(system) == {1: 605, 2: 6}
            assert [row["qty"] for row in system.rows("Large")] == [6, 600]
            assert [row["item"] for row in system.rows("Often")] == [1]
            began = {name: one["began_with"] for name, one in brokers.status(system, "a")["components"].items()}
        assert began["Sold"] == "a checkpoint"
        assert began["Large"] == began["Often"] == "nothing"
        brokers.restart("a")  # it is the stored one
        with smile.connect(brokers.address) as system:
            assert [row["item"] for row in system.rows("Often")] == [1]


@pytest.mark.parametrize("address", ["10.0.0.5:7070", "tcp://10.0.0.5:707070", "tcp://10.0.0.5:7070?key=smile1-x", ""])
def test_a_deployment_with_an_address_that_is_none_is_refused(zygote: Zygote, tmp_path: Path, address: str) -> None:
    """It used to be stored, and to end the broker then and at every start."""
    with running(zygote, tmp_path, PROGRAM, ONE) as brokers:
        addresses = {**brokers.addresses, "b": address}
        moved = make_deployment(smile.compile(PROGRAM), addresses, ONE | {"Shown": "b"}, previous=brokers.deployment)
        connection = Connection(brokers.address, request_timeout=WAIT_S)
        try:
            with pytest.raises(RequestRefused, match=r"no address|no public key"):
                connection.deploy(moved.to_wire(), brokers.address)
        finally:
            connection.close()
        with smile.connect(brokers.address) as system:
            assert totals(system) == {}


def test_a_broker_without_a_deployment_waits_for_one(zygote: Zygote, tmp_path: Path) -> None:
    program = smile.compile(PROGRAM)
    brokers = Brokers(zygote, tmp_path, program, ONE)
    (tmp_path / "a" / "deployment.json").unlink()
    try:
        brokers.start()
        with pytest.raises(ConnectFailed, match="deploy"):
            Connection(brokers.address, request_timeout=WAIT_S)
        redeploy(brokers, program, ONE)
        wait_for(lambda: brokers.log("a").count("serves at") == 2, "the deployment")
        with smile.connect(brokers.address) as system:
            system.publish("Buys", {"item": 1, "qty": 5})
            assert totals(system) == {1: 5}
    finally:
        brokers.close()


def test_what_cannot_be_deployed_is_refused_and_the_present_one_goes_on(zygote: Zygote, tmp_path: Path) -> None:
    with running(zygote, tmp_path, PROGRAM, ONE) as brokers, smile.connect(brokers.address) as system:
        system.publish("Buys", {"item": 1, "qty": 5})
        good = brokers.deployment.to_wire()
        other = make_deployment(smile.compile(PROGRAM), brokers.addresses, ONE).to_wire()
        damaged = {**good, "files": {**good["files"], "plan.json": good["files"]["plan.json"] + b" "}}
        elsewhere = {**good, "brokers": {"z": "tcp://127.0.0.1:1"}, "placement": dict.fromkeys(ONE, "z")}
        for wrong in ({}, {"format": 99}, damaged, other, elsewhere):
            with pytest.raises(RequestRefused):
                system.connection.deploy(wrong)
        assert totals(system) == {1: 5}


def test_a_table_keeps_its_rows_and_ticks_through_restarts(zygote: Zygote, tmp_path: Path) -> None:
    (tmp_path / "prices.csv").write_text("item,price\n1,10\n2,20\n")
    (tmp_path / "program.mpl").write_text(
        """
table Prices (item int, price int) key item from "prices.csv";
stream Buys (item int, qty int[0..1000]);
view Sold = from Buys |> aggregate total := sum(qty) group by item;
view Worth = from Sold |> join Prices using item |> extend worth := total * price;
"""
    )
    program = smile.compile(tmp_path / "program.mpl")
    placement = {one.name: "b" if one.name == "Prices" else "a" for one in hosted_components(program.plan)}
    brokers = Brokers(zygote, tmp_path, program, placement)
    try:
        brokers.start()
        with smile.connect(brokers.address) as system:
            system.publish_many("Buys", {"item": [1, 2, 3], "qty": [1, 2, 3]})
            for name in ("b", "a", "b"):
                assert [row["worth"] for row in system.rows("Worth")] == [10, 40]
                assert [row["price"] for row in system.rows("Prices")] == [10, 20]
                brokers.restart(name)
            assert [row["worth"] for row in system.rows("Worth")] == [10, 40]
            with pytest.raises(smile.SmileError):
                system.publish("Prices", {"item": 3, "price": 30})
    finally:
        brokers.close()


def test_a_table_that_found_no_room_is_filled_when_there_is(zygote: Zygote, tmp_path: Path) -> None:
    """Only its rows are too many for the disk: everything small works, so that the broker serves."""
    rows, room_bytes = 20_000, 250_000
    (tmp_path / "prices.csv").write_text("item,price\n" + "".join(f"{item},1\n" for item in range(rows)))
    (tmp_path / "program.mpl").write_text(
        """
table Prices (item int, price int) key item from "prices.csv";
view All = from Prices |> aggregate number := count();
"""
    )
    program = smile.compile(tmp_path / "program.mpl")
    brokers = Brokers(zygote, tmp_path, program, {one.name: "a" for one in hosted_components(program.plan)})
    with zygote.files_bounded(room_bytes):
        brokers.start()
    try:
        wait_for(lambda: "starts again" in brokers.log("a"), "the log to be full")
        with smile.connect(brokers.address) as system:
            assert system.rows("Prices") == []
            resource.prlimit(brokers.pids["a"], resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            wait_for(lambda: system.rows("All") == [{"number": rows}], "the rows of the table")
    finally:
        brokers.close()


def test_a_subscriber_resumes_with_what_it_kept_and_is_told_only_what_changed(zygote: Zygote, tmp_path: Path) -> None:
    with running(zygote, tmp_path, PROGRAM, ONE) as brokers, smile.connect(brokers.address) as system:
        system.publish_many("Buys", {"item": list(range(500)), "qty": [1] * 500})
        program = system.program
        components = components_of(brokers.deployment, program)
        digest = component_digests(brokers.deployment, program)["Sold"]
        leaf = leaf_of(program.plan.views["Sold"], Emit.CHANGES)
        plan = Plan((components["Buys"], components["Sold"], leaf))
        told: list[Deliver | Stepped] = []
        first = Connection(brokers.address, request_timeout=WAIT_S)
        handle = first.open_leaf(plan, leaf, told.append, watch=True, digest=digest)
        wait_for(lambda: handle.run(lambda leaf: len(leaf.operator.rows)) == 500, "the snapshot")
        assert isinstance(told[0], Deliver)
        assert told[0].kind == "snapshot"
        kept = handle.run(lambda leaf: leaf.checkpoint())
        first.close()
        system.publish("Buys", {"item": 7, "qty": 5})
        brokers.restart("a")
        again: list[Deliver | Stepped] = []
        second = Connection(brokers.address, request_timeout=WAIT_S)
        second.open_leaf(plan, leaf, again.append, watch=True, digest=digest, kept=kept)
        wait_for(lambda: again, "what changed")
        assert [list(one.rows.rows()) for one in again if isinstance(one, Stepped)] == [[(7, 6, 2)]]
        second.close()
        third = Connection(brokers.address, request_timeout=WAIT_S)
        other = third.open_leaf(plan, leaf, again.append, watch=True, digest="of another program")
        wait_for(lambda: other.failure, "a refusal")
        assert "changed" in str(other.failure)
        third.close()


def test_a_stored_deployment_of_another_version_waits_to_be_deployed_again(zygote: Zygote, tmp_path: Path) -> None:
    program = smile.compile(PROGRAM)
    brokers = Brokers(zygote, tmp_path, program, ONE)
    good = brokers.deployment
    other = replace(good, files={**good.files, "manifest.json": b"{}"})
    other.write(tmp_path / "a")
    try:
        brokers.start()
        with pytest.raises(ConnectFailed, match="deploy again"):
            Connection(brokers.address, request_timeout=WAIT_S)
        redeploy(brokers, program, ONE)
        wait_for(lambda: brokers.log("a").count("serves at") == 2, "the deployment")
        with smile.connect(brokers.address) as system:
            system.publish("Buys", {"item": 1, "qty": 5})
            assert totals(system) == {1: 5}
    finally:
        brokers.close()


def test_a_stream_with_other_columns_is_refused_before_it_is_stored(zygote: Zygote, tmp_path: Path) -> None:
    with running(zygote, tmp_path, PROGRAM, ONE) as brokers, smile.connect(brokers.address) as system:
        system.publish("Buys", {"item": 1, "qty": 5})
        other = smile.compile(PROGRAM.replace("qty int[0..1000]", "qty int[0..2000]"))
        before = brokers.deployment
        with pytest.raises(RequestRefused, match="qty"):
            redeploy(brokers, other, ONE)
        brokers.deployment = before
        brokers.restart("a")
        assert totals(system) == {1: 5}
