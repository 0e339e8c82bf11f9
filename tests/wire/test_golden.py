"""Goal: the bytes of a version stay what they are.

A test that fails here means that peers of the same version no longer understand each other: a change of layout needs a
new `VERSION`, and with it a new golden file.
"""

from __future__ import annotations

from pathlib import Path

from runtime.wire.frames import decode_frames
from runtime.wire.framing import VERSION
from tests.conftest import GOLDEN_FOLDER, Golden
from tests.wire.samples import MESSAGES, RECORDS, plainly, sample_frames

NAME = f"wire/version_{VERSION}.txt"
CHARACTERS_MAX = 100


def written(frames: dict[str, list[bytes]]) -> str:
    lines: list[str] = []
    for name, parts in frames.items():
        lines.append(name)
        for part in parts:
            text = part.hex()
            lines += [f"  {text[at : at + CHARACTERS_MAX]}" for at in range(0, len(text), CHARACTERS_MAX)]
            lines.append("  .")
    return "\n".join(lines) + "\n"


def read(path: Path) -> dict[str, list[bytes]]:
    found: dict[str, list[bytes]] = {}
    name, part = "", ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if not line.startswith("  "):
            name, found[line] = line, []
        elif line == "  .":
            found[name].append(bytes.fromhex(part))
            part = ""
        else:
            part += line.strip()
    return found


def test_samples_have_the_bytes_they_always_had(golden: Golden) -> None:
    golden(NAME, written(sample_frames()))


def test_bytes_written_earlier_are_still_understood() -> None:
    expected: dict[str, object] = {name: plainly(("an edge", message)) for name, message in MESSAGES.items()}
    expected |= {name: plainly(record) for name, record in RECORDS.items()}
    assert {name: plainly(decode_frames(frames)) for name, frames in read(GOLDEN_FOLDER / NAME).items()} == expected
