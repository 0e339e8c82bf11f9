"""Goal: statements about brokers and placement refer to what exists, and arrive in the typed program in plain units."""

import pytest

from tests.mpl.shown import checked, errors

DECLARED = """
stream S (x int);
view V = from S |> aggregate n := count() group by x;
broker west at "tcp://w:7001" cpu 4 memory 8 GiB edge;
broker hub at "ipc://hub";
subscribe s to V;
"""


def test_brokers() -> None:
    brokers = checked(DECLARED).program.brokers
    west, hub = brokers["west"], brokers["hub"]
    assert (west.address, west.cpu, west.memory_bytes, west.edge) == ("tcp://w:7001", 4, 8 * 2**30, True)
    assert (hub.address, hub.cpu, hub.memory_bytes, hub.edge) == ("ipc://hub", None, None, False)


def test_links() -> None:
    links = checked(
        f"{DECLARED} link west - hub latency 20 ms bandwidth 100 Mbps loss 0.5%; link hub - west;"
    ).program.links
    assert [(link.left, link.right) for link in links] == [("west", "hub"), ("hub", "west")]
    assert (links[0].latency_us, links[0].bandwidth_bps, links[0].loss_ppm) == (20_000, 100_000_000, 5_000)
    assert (links[1].latency_us, links[1].bandwidth_bps, links[1].loss_ppm) == (None, None, None)


@pytest.mark.parametrize(
    ("written", "bits"), [("7 bps", 7), ("7 kbps", 7_000), ("7 mbps", 7_000_000), ("7 Gbps", 7_000_000_000)]
)
def test_bandwidth_units(written: str, bits: int) -> None:
    assert checked(f"{DECLARED} link west - hub bandwidth {written};").program.links[0].bandwidth_bps == bits


@pytest.mark.parametrize(
    ("written", "size"),
    [("3 kb", 3_000), ("3 MB", 3 * 10**6), ("3 gb", 3 * 10**9), ("3 KiB", 3 * 2**10), ("3 mib", 3 * 2**20)],
)
def test_memory_units(written: str, size: int) -> None:
    assert checked(f'broker b at "tcp://b:1" memory {written};').program.brokers["b"].memory_bytes == size


def test_placements() -> None:
    program = checked(
        f"""{DECLARED} publish S at west; place V on hub; place V near s; place V with S; place V avoid west;
        place S near hub;"""
    ).program
    assert [(item.relation, item.how, item.target) for item in program.placements] == [
        ("S", "at", "west"),
        ("V", "on", "hub"),
        ("V", "near", "s"),
        ("V", "with", "S"),
        ("V", "avoid", "west"),
        ("S", "near", "hub"),
    ]


def test_protections_and_tunings() -> None:
    program = checked(
        f"""{DECLARED}
        protect V by semiactive lag 2 s on west; protect all by passive every 30 s; protect S by upstream;
        tune all gap 200 ms idle 2 s pull checkpoint every 30 s; tune V push quench off;"""
    ).program
    assert [(item.relation, item.scheme, item.duration_us, item.broker) for item in program.protections] == [
        ("V", "semiactive", 2_000_000, "west"),
        (None, "passive", 30_000_000, None),
        ("S", "upstream", None, None),
    ]
    everything, one = program.tunings
    assert (everything.gap_us, everything.idle_us, everything.liveness) == (200_000, 2_000_000, "pull")
    assert (everything.quench, everything.checkpoint_us) == (None, 30_000_000)
    assert (one.relation, one.liveness, one.quench) == ("V", "push", False)


def test_drops() -> None:
    program = checked(f"{DECLARED} drop view Old; drop stream S0; drop subscribe s0;").program
    assert [(item.what, item.name) for item in program.drops] == [
        ("view", "Old"),
        ("stream", "S0"),
        ("subscribe", "s0"),
    ]


@pytest.mark.parametrize(
    ("statements", "expected"),
    [
        ("link west - nowhere;", ["MPL0601"]),
        ("link nowhere - elsewhere;", ["MPL0601", "MPL0601"]),
        ("link west - west;", ["MPL0602"]),
        ("link west - hub loss 101%;", ["MPL0603"]),
        ("link west - hub bandwidth 0 kbps;", ["MPL0603"]),
        ("protect V by passive every 0 s;", ["MPL0603"]),
        ("tune V checkpoint every 0 s;", ["MPL0603"]),
        ("tune V gap 0 ms idle 0 ms;", ["MPL0603", "MPL0603"]),
        ("subscribe t to V every 0 s within 0 s;", ["MPL0603", "MPL0603"]),
        ('broker b at "tcp://b:1" cpu 0;', ["MPL0603"]),
        ('broker b at "tcp://b:1" cpu 5000;', ["MPL0603"]),
        ('broker b at "tcp://b:1" memory 0 gb;', ["MPL0603"]),
        ('broker b at "http://b:1";', ["MPL0606"]),
        ('broker b at "tcp://";', ["MPL0606"]),
        ('broker hub at "tcp://b:1";', ["MPL0203"]),
        ("publish S at west; publish S at hub;", ["MPL0604"]),
        ("publish S at west; place S on hub;", ["MPL0604"]),
        ("place V on west; place V on hub;", ["MPL0604"]),
        ("publish V at west;", ["MPL0605"]),
        ("publish S at nowhere;", ["MPL0601"]),
        ("place Nobody on hub;", ["MPL0605"]),
        ("place V on S;", ["MPL0601"]),
        ("place V with hub;", ["MPL0605"]),
        ("place V near nobody;", ["MPL0605"]),
        ("protect Nobody by active;", ["MPL0605"]),
        ("protect V by active on nowhere;", ["MPL0601"]),
        ("tune Nobody pull;", ["MPL0605"]),
        ("tune V pull push;", ["MPL0205"]),
        ("tune V gap 1 s gap 2 s;", ["MPL0205"]),
        ("protect V by active; protect V by upstream;", ["MPL0607"]),
        ("tune V gap 1 s; tune V gap 2 s;", ["MPL0607"]),
        ("tune all pull; tune all push;", ["MPL0607"]),
    ],
)
def test_refused(statements: str, expected: list[str]) -> None:
    assert errors(DECLARED + statements) == expected
