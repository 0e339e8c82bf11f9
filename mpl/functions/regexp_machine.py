"""Searches a text for a pattern: all ways through the pattern at once, one character after the other.

Time is at most text * program, whatever the pattern: no backtracking (Pike's machine). Threads are kept in the order
in which a backtracking matcher would try them, so the result is the same: the leftmost match, and of those the first
alternative. Slow and obvious; engines that run patterns faster are compared with it.
"""

from __future__ import annotations

from mpl.functions.regexp import Edge, Fork, Found, Mark, Program, Step

Slots = tuple[int | None, ...]


def search(program: Program, text: str) -> Slots | None:
    """Start and end of the match and of every group (None, None for a group that took no part); None without match."""
    empty: Slots = (None,) * (2 * program.groups + 2)
    threads: dict[int, Slots] = {}
    seen: set[int] = set()
    best: Slots | None = None
    for at in range(len(text) + 1):
        if best is None:
            # A match may start here, but every earlier start goes first.
            _follow(program, 0, empty, at, len(text), threads, seen)
        following: dict[int, Slots] = {}
        seen = set()
        for place, slots in threads.items():
            instruction = program.instructions[place]
            if isinstance(instruction, Found):
                best = slots
                break  # whatever comes later would have been tried later
            assert isinstance(instruction, Step)
            if at < len(text) and instruction.characters.holds(text[at]):
                _follow(program, place + 1, slots, at + 1, len(text), following, seen)
        threads = following
        if not threads and best is not None:
            break
    return best


def _follow(
    program: Program, start: int, slots: Slots, at: int, end: int, threads: dict[int, Slots], seen: set[int]
) -> None:
    """Adds the places that consume a character (or end) and can be reached from `start` without consuming one.

    A place in `seen` was reached at this position by a thread that goes first.
    """
    waiting = [(start, slots)]
    while waiting:
        place, slots = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        instruction = program.instructions[place]
        match instruction:
            case Fork():
                waiting.append((instruction.second, slots))
                waiting.append((instruction.first, slots))
            case Mark():
                marked = (*slots[: instruction.slot], at, *slots[instruction.slot + 1 :])
                waiting.append((place + 1, marked))
            case Edge():
                if at == (0 if instruction.at_start else end):
                    waiting.append((place + 1, slots))
            case Step() | Found():
                threads[place] = slots
