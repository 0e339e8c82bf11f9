"""Coverage-guided fuzzing of what reads stored bytes, with atheris: batches, positions, checkpoints.

    python -m tests.log.fuzz --seconds 600

The checksums are made right first, as only somebody who knows the formats could. A decoder must raise its one error or
give something that encodes and decodes to itself. Anything else, more than `RSS_MB_MAX` of memory or ten seconds for
one input, ends the run with an exit code other than 0.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import zlib
from pathlib import Path

import atheris  # type: ignore[import-untyped]

with atheris.instrument_imports(include=["runtime.log.codec", "runtime.log.state", "runtime.checkpoints.codec"]):
    from runtime.checkpoints import codec as checkpoints
    from runtime.log import codec
    from runtime.log.state import Position, Seal, State

import numpy as np

from runtime.batch import Batch
from runtime.columns import numbers
from tests.checkpoints.test_codec import sealed

RSS_MB_MAX = 1_024
INPUT_BYTES_MAX = 4_096


def batch(data: bytes) -> bool:
    try:
        rows = codec.decode(data)
    except ValueError:
        return False
    if len(rows) < INPUT_BYTES_MAX:  # a batch without columns may say that it has billions of rows
        assert repr(codec.decode(codec.encode(rows)).rows()) == repr(rows.rows())  # not every number equals itself
    return True


def positions(data: bytes) -> bool:
    try:
        state = State.decode(data + zlib.crc32(data).to_bytes(4, "little"))
    except ValueError:
        return False
    assert State.decode(state.encode()) == state
    return True


def checkpoint(data: bytes) -> bool:
    try:
        checkpoints.decode(sealed(data))
    except checkpoints.CheckpointDamaged:
        return False
    return True


TARGETS = (batch, positions, checkpoint)


def samples() -> list[bytes]:
    """The first byte chooses the target."""
    rows = [
        Batch.events([1, 4, 5], [["a", None, "b"], [1, 2, 3]]),
        Batch.events(range(70), [numbers(np.arange(70) / 2)]),
    ]
    state = State(Seal(5, 4), 3, (Position(lost=((1, 2),)), Position(epoch=9)))
    kept = {"columns": [np.arange(3), [1, None]], "texts": ["x"], "edges": [[1, 2, []]]}
    return [
        *(b"\0" + codec.encode(one) for one in rows),
        b"\1" + state.encode()[:-4],
        b"\2" + checkpoints.encode(kept)[checkpoints._HEAD.size :],
    ]


def one_input(data: bytes) -> None:
    if data:
        TARGETS[data[0] % len(TARGETS)](data[1:])


def with_a_mistake(data: bytes) -> None:
    if data[:1] == b"\1" and positions(data[1:]):
        raise IndexError("planted")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.log.fuzz", description="fuzz what reads stored bytes")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--inputs", type=int, default=-1, help="or as many as these, if they take less time")
    parser.add_argument("--planted", action="store_true", help="with a mistake, to see it found")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        for number, data in enumerate(samples()):
            (Path(folder) / f"sample_{number}").write_bytes(data)
        flags = [f"-max_total_time={options.seconds}", f"-max_len={INPUT_BYTES_MAX}", f"-rss_limit_mb={RSS_MB_MAX}"]
        flags += [f"-runs={options.inputs}", "-timeout=10", "-print_final_stats=1"]
        atheris.Setup([sys.argv[0], *flags, folder], with_a_mistake if options.planted else one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main()
