"""The two loops of a columnar copy, in the little Python that runs in both tiers: see `copy_rows.py` for the arrays.

A module of its own, imported by nothing but its text: what is compiled is a file of exactly this content.
"""

from typing import Any


def loop_0(
    rows: int,
    key_width: int,
    stride: int,
    always: int,
    batch: Any,
    table: Any,
    state: Any,
    stamps: Any,
    free: Any,
    touched: Any,
    changes: Any,
    seen: Any,
    hidden: Any,
    meta: Any,
) -> None:
    """Take rows one after the other: find or make the slot, compare, store, note what changed."""
    visible_at = stride - 3
    tick_at = stride - 2
    used_at = stride - 1
    mask = len(table) - 1
    count = meta[0]
    free_count = meta[1]
    stamp = meta[2] + 1
    touched_count = 0
    change_count = 0
    seen_count = 0
    hidden_count = 0
    for i in range(rows):
        mixed = 0
        for c in range(key_width):
            mixed = mixed ^ batch[c, i]
            mixed = ((mixed & 4294967295) * 1327217885 ^ ((mixed >> 32) & 4294967295) * 1123082731) >> 20
        probe = mixed & mask
        slot = table[probe]
        while slot >= 0:
            c = 0
            while c < key_width and state[slot * stride + c] == batch[c, i]:
                c += 1
            if c == key_width:
                break
            probe = (probe + 1) & mask
            slot = table[probe]
        is_changed = always
        if slot < 0:
            if free_count > 0:
                free_count -= 1
                slot = free[free_count]
            else:
                slot = count
                count += 1
            table[probe] = slot
            for c in range(key_width):
                state[slot * stride + c] = batch[c, i]
            state[slot * stride + visible_at] = 0
            state[slot * stride + used_at] = 1
            is_changed = 1
        was_visible = state[slot * stride + visible_at]
        is_news = is_changed
        for c in range(key_width, used_at):
            if state[slot * stride + c] != batch[c, i]:
                state[slot * stride + c] = batch[c, i]
                is_changed = 1
                if c != tick_at:
                    is_news = 1
        if is_changed == 0:
            continue
        if stamps[slot] != stamp:
            stamps[slot] = stamp
            touched[touched_count] = slot
            touched_count += 1
        changes[change_count] = i
        change_count += 1
        if is_news != 0 and (batch[visible_at, i] != 0 or was_visible != 0):
            seen[seen_count] = i
            seen_count += 1
        if batch[visible_at, i] == 0:
            hidden[hidden_count] = slot
            hidden_count += 1
    meta[0] = count
    meta[1] = free_count
    meta[2] = stamp
    meta[3] = touched_count
    meta[4] = change_count
    meta[5] = seen_count
    meta[6] = hidden_count


def loop_1(rows: int, key_width: int, stride: int, slots: Any, table: Any, state: Any, free: Any, meta: Any) -> None:
    """Forget the rows of these slots. What stands behind one in the table moves up, so that probing still finds it."""
    mask = len(table) - 1
    free_count = meta[1]
    for i in range(rows):
        slot = slots[i]
        mixed = 0
        for c in range(key_width):
            mixed = mixed ^ state[slot * stride + c]
            mixed = ((mixed & 4294967295) * 1327217885 ^ ((mixed >> 32) & 4294967295) * 1123082731) >> 20
        hole = mixed & mask
        while table[hole] != slot:
            hole = (hole + 1) & mask
        place = (hole + 1) & mask
        while table[place] >= 0:
            mixed = 0
            for c in range(key_width):
                mixed = mixed ^ state[table[place] * stride + c]
                mixed = ((mixed & 4294967295) * 1327217885 ^ ((mixed >> 32) & 4294967295) * 1123082731) >> 20
            if ((place - mixed) & mask) >= ((place - hole) & mask):
                table[hole] = table[place]
                hole = place
            place = (place + 1) & mask
        table[hole] = -1
        for c in range(stride):
            state[slot * stride + c] = 0
        state[slot * stride + stride - 2] = -1
        free[free_count] = slot
        free_count += 1
    meta[1] = free_count
