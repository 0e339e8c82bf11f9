"""Goal: a deployment arrives whole or not at all, and nobody runs anything that the program's text does not say."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpl.source import Source
from runtime.plan import Plan, StreamSpec
from runtime.security.keys import new_keys
from smile.deploy.bundles import (
    BundleRefused,
    check_signature,
    compile_file,
    components_of,
    make_deployment,
    sign,
    table_rows_of,
    verify,
)
from smile.deploy.deployment import FILE_NAME, Deployment, DeploymentError
from smile.deploy.placement import place
from smile.program import Program, compile_source

TICKETS = Path("examples/tickets/tickets.mpl")
BROKERS = {"west": "tcp://127.0.0.1:1", "east": "tcp://127.0.0.1:2", "hub": "tcp://127.0.0.1:3"}
SMALL = "stream A (k int, x int[0..9]);\nview S = from A |> aggregate s := sum(x) group by k;\n"


def deployed(program: Program, previous: Deployment | None = None) -> Deployment:
    homes = place(program.checked.program, program.plan, list(BROKERS), ignore_absent=True).homes
    return make_deployment(program, BROKERS, homes, previous=previous)


def small(text: str = SMALL) -> Program:
    return compile_source(Source("small.mpl", text), Path())


@pytest.fixture(scope="module")
def tickets() -> Deployment:
    return deployed(compile_file(TICKETS))


def test_it_survives_the_wire_and_the_disk(tickets: Deployment, tmp_path: Path) -> None:
    assert Deployment.read(tmp_path) is None
    again = Deployment.from_wire(tickets.to_wire())
    assert again == tickets
    again.write(tmp_path / "data")
    stored = Deployment.read(tmp_path / "data")
    assert stored == tickets
    assert stored is not None
    assert stored.digest == tickets.digest
    assert [path.name for path in (tmp_path / "data").iterdir()] == [FILE_NAME], "no half-written file stays"
    assert stored.text == TICKETS.read_text()
    assert "Sold" in stored.components_on("hub")


def test_the_digest_is_about_everything_but_the_signature(tickets: Deployment) -> None:
    others = [
        replace(tickets, name="x"),
        replace(tickets, program="x"),
        replace(tickets, identity="x"),
        replace(tickets, placement={**tickets.placement, "Sold": "west"}),
        replace(tickets, brokers={**tickets.brokers, "hub": "tcp://127.0.0.1:9"}),
        replace(tickets, residues={**tickets.residues, "x": 77}),
        replace(tickets, files={**tickets.files, "plan.json": b"{}"}),
    ]
    assert len({tickets.digest, *(other.digest for other in others)}) == len(others) + 1
    assert replace(tickets, signer="x", signature=b"y").digest == tickets.digest


def test_verify_gives_the_program_to_run(tickets: Deployment) -> None:
    program = verify(tickets)
    components = components_of(tickets, program)
    assert list(components) == list(tickets.placement)
    assert Plan(tuple(components.values())).lineages["Available"] == ("Sellers", "BuyersWest", "BuyersEast")


def test_it_does_not_matter_in_which_folder_it_was_compiled(tickets: Deployment) -> None:
    homes = dict(tickets.placement)
    elsewhere = compile_source(Source("somewhere/else/tickets.mpl", TICKETS.read_text()), Path())
    assert make_deployment(elsewhere, BROKERS, homes, identity=tickets.identity) == tickets


@pytest.mark.parametrize(
    "path", ["plan.json", "modules/m0000.py", "modules/m0000.json", "manifest.json", "program.mpl"]
)
def test_one_changed_byte_is_refused(tickets: Deployment, path: str) -> None:
    changed = tickets.files[path].replace(b"Sold", b"Mold").replace(b"c0", b"c1").replace(b"total", b"tota1")
    changed = changed if changed != tickets.files[path] else changed + b" "
    with pytest.raises(BundleRefused, match=r"not what|does not compile"):
        verify(replace(tickets, files={**tickets.files, path: changed}))


def test_files_that_were_added_or_removed_are_refused(tickets: Deployment) -> None:
    with pytest.raises(BundleRefused, match=r"modules/m0999\.py is not what"):
        verify(replace(tickets, files={**tickets.files, "modules/m0999.py": b"import os"}))
    less = {path: data for path, data in tickets.files.items() if path != "plan.json"}
    with pytest.raises(BundleRefused, match=r"plan\.json is not what"):
        verify(replace(tickets, files=less))


def test_another_version_is_named(tickets: Deployment) -> None:
    manifest = json.loads(tickets.files["manifest.json"])
    manifest["compiler"] = "9.9"
    with pytest.raises(BundleRefused, match=r"made by version 9\.9, this is version"):
        verify(replace(tickets, files={**tickets.files, "manifest.json": json.dumps(manifest).encode()}))


def test_a_placement_of_another_program_is_refused(tickets: Deployment) -> None:
    with pytest.raises(BundleRefused, match="the placement is not one of this program: `Extra`"):
        verify(replace(tickets, placement={**tickets.placement, "Extra": "hub"}))
    with pytest.raises(BundleRefused, match="no share of the ticks"):
        verify(replace(tickets, residues={}))


def test_signatures() -> None:
    alice, mallory = new_keys("alice"), new_keys("mallory")
    signed = sign(deployed(small()), alice, 5)
    assert check_signature(signed, {"alice": alice.public}) == 5
    with pytest.raises(BundleRefused, match="signed by `alice`, who may not deploy"):
        check_signature(signed, {"mallory": mallory.public})
    with pytest.raises(BundleRefused, match="is not what"):
        check_signature(signed, {"alice": mallory.public})
    with pytest.raises(BundleRefused, match="is not what"):
        check_signature(replace(signed, identity="other"), {"alice": alice.public})
    with pytest.raises(BundleRefused, match="is not signed"):
        check_signature(deployed(small()), {"alice": alice.public})


def test_shares_of_ticks_stay_through_redeployments() -> None:
    first = deployed(small())
    program = small(f"stream New (k int);\n{SMALL}")
    second = deployed(program, first)
    assert second.residues["A"] == first.residues["A"]
    assert second.residues["New"] != second.residues["A"]
    assert second.identity == first.identity
    assert deployed(small()).identity != first.identity
    third = deployed(small("stream Third (k int);\nview V = from Third |> where k > 1;\n"), second)
    assert len(set(third.residues.values())) == 3, "what is gone keeps its share: its ticks are in logs"
    spec = components_of(second, program)["New"].operator
    assert isinstance(spec, StreamSpec)
    assert spec.residue == second.residues["New"]


def test_shares_run_out_with_a_remedy() -> None:
    first = deployed(small())
    full = replace(first, residues={f"old{number}": number for number in range(1024)})
    with pytest.raises(DeploymentError, match="1024 streams and tables over time"):
        deployed(small(), full)


def test_rows_of_tables_travel_along(tmp_path: Path) -> None:
    file = tmp_path / "t.mpl"
    file.write_text(
        'stream A (k int);\ntable T (k int, name text null) key k from "t.csv";\nview J = from A |> join T using k;\n'
    )
    (tmp_path / "t.csv").write_text("k,name\n1,one\n2,\n")
    made = Deployment.from_wire(deployed(compile_file(file)).to_wire())
    assert table_rows_of(made, verify(made)) == {"T": [{"k": 1, "name": "one"}, {"k": 2, "name": None}]}
    broken = replace(made, files={**made.files, "tables/T.csv": b"k,name\nx,one\n"})
    with pytest.raises(BundleRefused, match="table `T`"):
        table_rows_of(broken, verify(broken))


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"format": 2}, "format 2; this version of smile knows format 1"),
        ({"name": 7}, "name is int, not str"),
        ({"files": {"../etc/passwd": b""}}, "a file called '../etc/passwd'"),
        ({"files": {"program.mpl": b"\xff"}}, "is not UTF-8 text"),
        ({"files": {}}, "has no program.mpl"),
        ({"files": {"program.mpl": "text"}}, "no bytes by name"),
        ({"placement": {"A": "nowhere"}}, "placed on `nowhere`"),
        ({"residues": {"A": 1, "B": 1}}, "share their ticks"),
        ({"residues": {"A": 1024}}, "share their ticks"),
        ({"residues": {"A": True}}, "is no number"),
        ({"brokers": {7: "x"}}, "an entry that is no str by name"),
        ({"signature": b"x"}, "signed by nobody"),
        ({"withheld": {"program.mpl": "0" * 64}}, "withholds 'program.mpl'"),
        ({"withheld": {"tables/T.csv": "none"}}, "withholds 'tables/T.csv'"),
        ({"withheld": ["tables/T.csv"]}, "withheld is list, not dict"),
        ({"files": {"program.mpl": b"x" * (64 * 2**20 + 1)}}, "tables may be too large"),
    ],
)
def test_what_no_deployment_can_be(change: dict[str, Any], says: str) -> None:
    with pytest.raises(DeploymentError) as found:
        Deployment.from_wire({**deployed(small()).to_wire(), **change})
    assert says in str(found.value)


@given(st.integers(0, 10_000), st.integers(0, 255))
def test_a_damaged_file_is_refused_or_read_as_it_is(at: int, byte: int) -> None:
    """Never any other exception, and whatever is read has passed every check of a record."""
    path = DAMAGED / FILE_NAME
    data = bytearray(WHOLE)
    data[at % len(data)] = byte
    path.write_bytes(data)
    said = ""
    try:
        found = Deployment.read(DAMAGED)
    except DeploymentError as refused:
        found, said = None, str(refused)
    assert (found is not None and found.placement) or (str(path) in said and "put back a copy" in said)


@given(st.integers(0, 10_000))
def test_a_cut_file_is_refused(length: int) -> None:
    path = DAMAGED / FILE_NAME
    path.write_bytes(WHOLE[: length % len(WHOLE)])
    with pytest.raises(DeploymentError, match="put back a copy"):
        Deployment.read(DAMAGED)


DAMAGED: Path
WHOLE: bytes


@pytest.fixture(autouse=True, scope="module")
def _damaged(tmp_path_factory: pytest.TempPathFactory) -> None:
    global DAMAGED, WHOLE  # noqa: PLW0603
    DAMAGED = tmp_path_factory.mktemp("damaged")
    deployed(small()).write(DAMAGED)
    WHOLE = (DAMAGED / FILE_NAME).read_bytes().rstrip()
