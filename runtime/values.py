"""The scalar values that cells hold.

Decimals arrive as scaled ints and times as int microseconds, so equality and addition are exact. Compound domains
(up-down numbers, averages) are two columns, never a pair in one cell: kernels need flat columns.
"""

Value = int | float | str | bool | None
Key = tuple[Value, ...]
