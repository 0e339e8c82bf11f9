"""`python -m smile`: the command `smile` where the script is not on the path."""

from smile.cli import main

main()
