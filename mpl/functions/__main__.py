"""Prints docs/functions.md: `python -m mpl.functions > docs/functions.md`. A test sees that the file is up to date."""

import sys

from mpl.functions.reference import reference

sys.stdout.write(reference())
