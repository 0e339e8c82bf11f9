"""The compiling process: `python -m runtime.kernels.compile MODULE...` fills numba's cache and marks each as ready."""

from __future__ import annotations

import sys
from pathlib import Path

from runtime.kernels.native import load_native


def main(paths: list[str]) -> None:
    for path in paths:
        source = Path(path)
        load_native(source)
        source.with_suffix(".ready").touch()


if __name__ == "__main__":
    main(sys.argv[1:])
