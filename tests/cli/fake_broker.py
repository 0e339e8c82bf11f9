"""Stands in for a broker where only its life matters: says that it serves, and lives until it is told to end.

Arguments as `smile broker` takes them. A folder with a file `crash` in it makes it die at once, as a broker that cannot
start would.
"""

import json
import os
import signal
import sys
from itertools import pairwise
from pathlib import Path


def main() -> None:
    arguments = sys.argv[1:]
    options = dict(pairwise(arguments))
    folder = Path(options["--data"])
    if (folder.parent / "crash").exists():
        sys.exit("cannot start: the file `crash` is there")
    (folder / "serving.json").write_text(json.dumps({"pid": os.getpid(), "arguments": arguments}))
    signal.sigwait([signal.SIGTERM])


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    main()
