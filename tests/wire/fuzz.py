"""Coverage-guided fuzzing of the wire's decoders, with atheris.

    python -m tests.wire.fuzz --seconds 600 [--corpus FOLDER]

The fixed samples are the first corpus; what is found beyond them is kept in the folder, if one is named. A decoder must
raise a `WireError` or give something that encodes and decodes to itself. Anything else, or more than `RSS_MB_MAX` of
memory or ten seconds for one input, ends the run with an exit code other than 0; the input is written to the current
folder.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import atheris  # type: ignore[import-untyped]

with atheris.instrument_imports(include=["runtime.wire", "runtime.protocol.coverage"]):
    from runtime.wire.control import encode_control
    from runtime.wire.errors import WireError
    from runtime.wire.frames import decode_frames
    from runtime.wire.messages import encode_message

from tests.wire.samples import plainly, sample_frames

RSS_MB_MAX = 1_024
INPUT_BYTES_MAX = 4_096
INPUT_SECONDS_MAX = 10


def joined(frames: list[bytes]) -> bytes:
    """Frames as one input: the header's length in two bytes, the header, then the body if there is one."""
    return len(frames[0]).to_bytes(2, "little") + b"".join(frames)


def split(data: bytes) -> list[bytes]:
    size = int.from_bytes(data[:2], "little")
    header, body = data[2 : 2 + size], data[2 + size :]
    return [header, body] if body else [header]


def decode_one(data: bytes) -> bool:
    """Was it a message? Anything but a `WireError` or a faithful message raises."""
    try:
        found: Any = decode_frames(split(data))
    except WireError:
        return False
    again = encode_message(*found) if isinstance(found, tuple) else encode_control(found)
    assert plainly(decode_frames(again)) == plainly(found)
    return True


def run(seconds: int, inputs: int, corpus: Path, one_input: Callable[[bytes], object]) -> NoReturn:
    """Fuzz and end the process."""
    corpus.mkdir(parents=True, exist_ok=True)
    for number, frames in enumerate(sample_frames().values()):
        (corpus / f"sample_{number}").write_bytes(joined(frames))
    options = [
        f"-max_total_time={seconds}",
        f"-runs={inputs}",
        f"-max_len={INPUT_BYTES_MAX}",
        f"-rss_limit_mb={RSS_MB_MAX}",
        f"-timeout={INPUT_SECONDS_MAX}",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], one_input)
    atheris.Fuzz()
    raise AssertionError("fuzzing ends the process")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.wire.fuzz", description="fuzz the wire's decoders")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--inputs", type=int, default=-1, help="or as many as these, if they take less time")
    parser.add_argument("--corpus", type=Path, help="folder with inputs to start from, and where new ones are kept")
    parser.add_argument("--planted", action="store_true", help="with a mistake in the decoder, to see it found")
    options = parser.parse_args()
    one_input: Callable[[bytes], object] = _with_a_mistake if options.planted else decode_one
    if options.corpus is not None:
        run(options.seconds, options.inputs, options.corpus, one_input)
    with tempfile.TemporaryDirectory() as folder:  # fuzzing ends its process, and somebody has to clean up
        command = [sys.executable, "-m", "tests.wire.fuzz", *sys.argv[1:], "--corpus", folder]
        sys.exit(subprocess.run(command, check=False).returncode)


def _with_a_mistake(data: bytes) -> None:
    if decode_one(data):
        raise IndexError("planted")


if __name__ == "__main__":
    main()
