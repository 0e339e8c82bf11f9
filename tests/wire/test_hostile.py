"""Goal: whatever arrives, decoding raises a `WireError` or gives a message, in bounded memory and time.

Damage of every kind to real frames (each truncation, each bit, frames left out, added and swapped), pure garbage, and
headers made by hand that claim more than they have.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgpack
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from runtime.protocol.coverage import TICK_MAX
from runtime.wire import control
from runtime.wire.errors import WireError, WireGarbage, WireTooLarge, WireVersion
from runtime.wire.frames import decode_frames
from runtime.wire.framing import VERSION
from runtime.wire.limits import (
    FRAME_BYTES_MAX,
    HEADER_BYTES_MAX,
    INLINE_BYTES_MAX,
    KEYS_MAX,
    NAME_BYTES_MAX,
    PLAIN_DEPTH_MAX,
    PLAIN_ITEMS_MAX,
    RANGES_MAX,
    ROWS_MAX,
)
from runtime.wire.messages import Kind
from runtime.wire.plain import pack_plain, unpack_plain
from tests.measures import least_kept_bytes, least_peak_bytes
from tests.wire.samples import sample_frames

MEMORY_MAX = 24 * 1024 * 1024
"""What decoding any message of few bytes may take at once: headers are bounded, bodies are as long as they are."""

SAMPLES = sample_frames()


def refusal(frames: Sequence[bytes]) -> WireError | None:
    """The error of decoding; any other exception passes and fails the test."""
    try:
        decode_frames(frames)
    except WireError as refused:
        return refused
    return None


@pytest.mark.parametrize("name", SAMPLES)
def test_every_truncation_is_refused(name: str) -> None:
    frames = SAMPLES[name]
    for at, frame in enumerate(frames):
        for end in range(len(frame)):
            assert refusal([*frames[:at], frame[:end], *frames[at + 1 :]]) is not None, (at, end)
        assert refusal([*frames[:at], frame + b"\0", *frames[at + 1 :]]) is not None
    assert refusal(frames) is None


@pytest.mark.parametrize("name", SAMPLES)
def test_every_bit_flip_is_refused_or_a_message(name: str) -> None:
    frames = SAMPLES[name]
    for at, frame in enumerate(frames):
        for bit in range(8 * len(frame)):
            damaged = bytearray(frame)
            damaged[bit // 8] ^= 1 << bit % 8
            refusal([*frames[:at], bytes(damaged), *frames[at + 1 :]])


@pytest.mark.parametrize("name", SAMPLES)
def test_frames_left_out_added_or_swapped(name: str) -> None:
    frames = SAMPLES[name]
    assert refusal([]) is not None
    assert refusal([*frames, b""]) is not None
    assert refusal([b"", *frames]) is not None
    assert refusal(frames[::-1]) is not None or len(frames) == 1
    assert refusal(frames[:-1]) is not None


@given(st.lists(st.binary(max_size=200), max_size=3))
def test_garbage_is_refused(frames: list[bytes]) -> None:
    refusal(frames)
    refusal([bytes([0x95, VERSION]) + b"".join(frames)])


wire_values = st.recursive(
    st.one_of(
        st.none(),
        st.booleans(),
        st.integers(-3, 12),
        st.integers(-(2**63), 2**64 - 1),
        st.floats(),
        st.text(max_size=5),
        st.binary(max_size=64),
    ),
    lambda inner: st.lists(inner, max_size=6),
    max_leaves=25,
)


@given(st.integers(0, 60), st.lists(wire_values, max_size=9), st.one_of(st.binary(max_size=64), st.none()), st.binary())
def test_well_formed_headers_of_anything(kind: int, fields: list[Any], inline: bytes | None, body: bytes) -> None:
    header = msgpack.packb([VERSION, kind, *fields, inline])
    refusal([header])
    refusal([header, body])


@given(st.integers(0, 2**32))
def test_messages_with_a_wrong_value_inside(seed: int) -> None:
    """Replace one value of the header, at any depth, by another one: the fields are looked at one by one."""
    chance = random.Random(seed)
    frames = SAMPLES[chance.choice(list(SAMPLES))]
    header = msgpack.unpackb(frames[0])
    place: Any = header
    while True:
        at = chance.randrange(len(place))
        if not (isinstance(place[at], list) and place[at] and chance.random() < 0.8):
            break
        place = place[at]
    place[at] = chance.choice([None, True, -1, 0, 3, 2**40, 2**63, TICK_MAX, 1.5, "x", b"x", [], [[]], [4, []], [5, 0]])
    refusal([msgpack.packb(header), *frames[1:]])


def test_versions() -> None:
    frames = [*SAMPLES["knowledge"]]
    for version in (0, VERSION + 1, 100):
        frames[0] = frames[0][:1] + bytes([version]) + frames[0][2:]
        assert isinstance(refusal(frames), WireVersion)


# Claims

BATCH = [1, [4, [5]], True, None, [[4, [7]]]]
COVERAGE = [[0, 9]]


def knowledge(batch: Any, coverage: Any = COVERAGE) -> list[Any]:
    return [VERSION, Kind.KNOWLEDGE, "e", 1, 2, 3, coverage, batch, None, 0, b""]


@dataclass(frozen=True)
class Claim:
    """A header that claims much, and what must come of it."""

    name: str
    header: list[Any] | bytes
    error: type[WireError]
    body: bytes | None = None


ROW_CLAIMS = [
    Claim(f"{form} of {count} rows", knowledge([count, [5, 0, 1], True, None, [description]]), error)
    for form, description in {
        "ints": 0,
        "floats": 1,
        "bools": 2,
        "values": [4, []],
        "texts": [6, 2**40],
        "no texts": [6, 0],
        "codes": [7, 2**40, 2**40, 4],
        "no codes": [7, 1, 0, 1],
        "nullable": [8, 2**40, 0],
        "nested nullable": [8, 0, [8, 0, [4, []]]],
        "mixed": [9, 2**40],
        "no mixed": [9, 0],
    }.items()
    for count, error in ((ROWS_MAX, WireGarbage), (ROWS_MAX + 1, WireTooLarge), (2**62, WireTooLarge))
]
CLAIMS = [
    *ROW_CLAIMS,
    Claim("visible bits", knowledge([ROWS_MAX, [5, 0, 1], 2, None, []]), WireGarbage),
    Claim("lineages", knowledge([ROWS_MAX, [5, 0, 1], True, [0], []]), WireGarbage),
    Claim("a tick column without ticks", [VERSION, Kind.QUENCH, "e", 1, 1, [3], b""], WireGarbage),
    Claim("keys", [VERSION, Kind.QUENCH, "e", 1, KEYS_MAX + 1, [], b""], WireTooLarge),
    Claim("keys of no bytes", [VERSION, Kind.QUENCH, "e", 1, KEYS_MAX, [0], b""], WireGarbage),
    Claim("ranges", knowledge(BATCH, [RANGES_MAX + 1]), WireTooLarge),
    Claim("ranges of no bytes", knowledge(BATCH, [RANGES_MAX]), WireGarbage),
    Claim("negative ranges", knowledge(BATCH, [-1]), WireGarbage),
    Claim("no lineages", knowledge(BATCH, []), WireGarbage),
    Claim("ticks beyond 64 bits", knowledge([3, [5, TICK_MAX - 1, 1], True, None, []]), WireGarbage),
    Claim("a progression that stands still", knowledge([3, [5, 1, 0], True, None, []]), WireGarbage),
    Claim("an int beyond 64 bits", knowledge([1, [4, [5]], True, None, [[4, [2**63]]]]), WireGarbage),
    Claim("a text in a body's place", [VERSION, Kind.ACK, "e", 1, 1, 1, 1, ""], WireGarbage),
    Claim("two bodies", [VERSION, Kind.ACK, "e", 1, 1, 1, 1, b""], WireGarbage, b"x"),
    Claim("a body nobody asked for", [VERSION, Kind.ACK, "e", 1, 1, 1, 1, None], WireGarbage, b"x" * 8),
    Claim("a long list", b"\x95" + bytes([VERSION, 3]) + b"\xdd\x7f\xff\xff\xff", WireTooLarge),
    Claim("a long text", b"\x95" + bytes([VERSION, 3]) + b"\xdb\x7f\xff\xff\xff", WireGarbage),
    Claim("long bytes", b"\x95" + bytes([VERSION, 3]) + b"\xc6\x7f\xff\xff\xff", WireGarbage),
    Claim("a map", b"\x95" + bytes([VERSION, 3]) + b"\xdf\x7f\xff\xff\xff", WireTooLarge),
    Claim("an extension", b"\x95" + bytes([VERSION, 3]) + b"\xc9\x7f\xff\xff\xff\x01", WireGarbage),
    Claim("lists in lists", b"\x95" + bytes([VERSION, 3]) + b"\xdc\x04\x00" * 900, WireGarbage),
    Claim("too many lists in lists", b"\x95" + bytes([VERSION, 3]) + b"\xdc\x04\x00" * 40_000, WireGarbage),
    Claim("a large header", bytes([0x95, VERSION]) + bytes(HEADER_BYTES_MAX), WireTooLarge),
    Claim(
        "empty lists", bytes([0x93, VERSION, 3, 0xDC, 0x04, 0x00]) + b"\xdc\x00\x78" + b"\x90" * 130_000, WireGarbage
    ),
    Claim("plain data", [VERSION, 35, 1, 2**40, b""], WireGarbage),
    Claim("a long reason", [VERSION, 38, 1, "code", 2**30, b""], WireTooLarge),
    Claim("names", [VERSION, 47, 1, [2**30, [[6, 0]]], b""], WireTooLarge),
    Claim("a name too long", [VERSION, 42, "x" * 5_000, b""], WireTooLarge),
    Claim("a topic too long", [VERSION, 41, "e", b"x" * 65, b""], WireTooLarge),
]


def claimed(claim: Claim) -> list[bytes]:
    header = claim.header if isinstance(claim.header, bytes) else msgpack.packb(claim.header)
    return [header] if claim.body is None else [header, claim.body]


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.name)
def test_claims_are_refused_before_memory_is_taken(claim: Claim) -> None:
    frames = claimed(claim)
    found = refusal(frames)
    assert type(found) is claim.error, found
    assert least_peak_bytes(lambda: refusal(frames), MEMORY_MAX) < MEMORY_MAX


def test_memory_stays_flat_over_many_refusals() -> None:
    """Nothing of a refused message is kept, neither by us nor by the unpacker."""
    frames = [claimed(claim) for claim in CLAIMS]
    for each in frames:
        refusal(each)

    def refuse_all() -> None:
        for each in frames * 20:
            refusal(each)

    assert least_kept_bytes(refuse_all, 64 * 1024, "runtime/wire") < 64 * 1024


def test_frames_beyond_the_bound_are_refused() -> None:
    large = memoryview(bytes(FRAME_BYTES_MAX + 1))
    with pytest.raises(WireTooLarge):
        decode_frames([msgpack.packb([VERSION, Kind.ACK, "e", 1, 1, 1, 1, None]), large])


# Plain data


def nested(depth: int) -> dict[str, Any]:
    return {"in": nested(depth - 1)} if depth else {}


@pytest.mark.parametrize(
    ("data", "error"),
    [
        (pack_plain({"a": 1}) + b"\0", WireGarbage),
        (b"\x90", WireGarbage),
        (b"\x81\x01\x01", WireGarbage),
        (b"\xc1", WireGarbage),
        (b"\xd4\x01\x01", WireGarbage),
        (b"\x81\xa1a\xc7\x00\x01", WireGarbage),
        (b"", WireGarbage),
        (b"\x81\xa1a\xdd\x7f\xff\xff\xff", WireTooLarge),
        (b"\x81\xa1a\xdf\xff\xff\xff\xff", WireTooLarge),
        (b"\x81\xa1a\xc6\xff\xff\xff\xff", WireGarbage),
        (b"\x81\xa1a" + b"\x91" * (PLAIN_DEPTH_MAX + 1) + b"\x90", WireTooLarge),
        (b"\x81\xa1a\xdd" + (2 * PLAIN_ITEMS_MAX).to_bytes(4, "big") + b"\x90" * 2 * PLAIN_ITEMS_MAX, WireTooLarge),
    ],
)
def test_plain_data_is_measured_before_it_is_made(data: bytes, error: type[WireError]) -> None:
    def refuse() -> None:
        with pytest.raises(error) as refused:
            unpack_plain(data)
        assert type(refused.value) is error

    assert least_peak_bytes(refuse, 1024 * 1024) < 1024 * 1024


@pytest.mark.parametrize(
    ("value", "error"),
    [
        (nested(PLAIN_DEPTH_MAX + 2), WireTooLarge),
        ({"list": [0] * PLAIN_ITEMS_MAX}, WireTooLarge),
        ({"set": {1}}, WireGarbage),
        ({"number": 2**64}, WireGarbage),
    ],
)
def test_data_that_a_peer_would_refuse_is_not_sent(value: dict[str, Any], error: type[WireError]) -> None:
    with pytest.raises(error):
        pack_plain(value)


def test_plain_data_may_be_large() -> None:
    data = {"files": {f"file {i}": bytes(1_000) for i in range(1_000)}, "numbers": list(range(100_000))}
    assert unpack_plain(pack_plain(data)) == data


def test_inline_texts_have_their_own_bound() -> None:
    header = msgpack.packb([VERSION, 42, "x" * (INLINE_BYTES_MAX + 1), b""])
    assert isinstance(refusal([header]), WireTooLarge)


ROW: list[Any] = [1, [4, [9]], True, None, [[4, [7]]]]


def single_change(*numbers: object, row: object = ROW) -> list[bytes]:
    """Frames of a message with these epoch, steps and floor."""
    epoch, from_step, to_step, floor = numbers
    fields = ["e", epoch, from_step, to_step, [[0, 5]], row, None, floor]
    return [msgpack.packb([VERSION, Kind.KNOWLEDGE, *fields, b""])]


def test_numbers_of_a_single_change_are_checked() -> None:
    good = (1, 0, 1, -1)
    assert refusal(single_change(*good)) is None
    for at in range(4):
        for bad in (-2, 2**63, None, True, 1.0, "1"):
            damaged = [*good[:at], bad, *good[at + 1 :]]
            assert isinstance(refusal(single_change(*damaged)), WireGarbage), damaged


@pytest.mark.parametrize("values", [[], [7, 8], [2**63], [b"7"], [[7]], None, 7], ids=repr)
def test_values_of_a_single_row_are_checked(values: object) -> None:
    good = (1, 0, 1, -1)
    assert isinstance(refusal(single_change(*good, row=[1, [4, [9]], True, None, [[4, values]]])), WireGarbage)
    assert isinstance(refusal(single_change(*good, row=[1, [4, values], True, None, [[4, [7]]]])), WireGarbage)


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**63), 2**64 - 1),
    st.floats(allow_nan=False),
    st.text(max_size=3),
    st.binary(max_size=3),
    st.lists(st.one_of(st.integers(0, 12), st.booleans(), st.text(max_size=2)), max_size=4),
)
SHORT_WAYS = ("_read_single_publish", "_read_progress")


@st.composite
def nearly_right(draw: st.DrawFn) -> list[object]:
    """The header of a publish or of an answer, with something else at one place of it, at any depth."""
    record: control.ControlRecord
    if draw(st.booleans()):
        row = draw(st.lists(st.one_of(st.integers(-9, 9), st.text(max_size=2)), min_size=1, max_size=3))
        record = control.Publish("S", "p", 5, tuple([value] for value in row), draw(st.one_of(st.none(), st.just(4))))
    else:
        record = control.Acknowledged("p", 5, range(7, 7 + 2 * draw(st.integers(1, 3)), 2), draw(st.booleans()))
    header: list[object] = msgpack.unpackb(control.encode_control(record)[0])
    place, at = header, draw(st.integers(2, len(header) - 1))
    while isinstance(inner := place[at], list) and inner and draw(st.booleans()):
        place, at = inner, draw(st.integers(0, len(inner) - 1))
    place[at] = draw(JUNK)
    return header


@given(nearly_right())
@example([VERSION, 44, "S", "p", 5, [1, ""], None, b""])
def test_the_short_ways_take_nothing_that_the_long_one_refuses(header: list[object]) -> None:
    frame = msgpack.packb(header)

    def outcome() -> object:
        try:
            return repr(control.decode_control([frame]))
        except WireError:
            return "refused"

    short = outcome()
    with pytest.MonkeyPatch.context() as patch:
        for name in SHORT_WAYS:
            patch.setattr(control, name, lambda _: None)
        assert short == outcome()


@pytest.mark.parametrize("kind", [32, 42, 44])
def test_names_are_bounded_in_bytes_whatever_their_letters(kind: int) -> None:
    """An answer repeats them: what could not be encoded again must not be let in."""
    for letter in ("x", "é", "界", "😀"):
        most = NAME_BYTES_MAX // len(letter.encode())
        for length in (most, most + 1):
            name = letter * length
            all_fields: dict[int, list[object]] = {
                32: [1, name, "client", 1],
                42: [name],
                44: ["S", name, 0, [1, [[4, [1]]]], None],
            }
            refused = refusal([msgpack.packb([VERSION, kind, *all_fields[kind], b""])])
            assert (refused is None) == (length == most), (letter, length)
            assert refused is None or isinstance(refused, WireTooLarge)
