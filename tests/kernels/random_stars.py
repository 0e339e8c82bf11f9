"""Random programs that are keyed stars: groups and unique rows joined by their key, conditions and computed columns.

Over the streams of `stars.py`. Everything written here can be a kernel; a program that is not fused is a mistake.
"""

from __future__ import annotations

from random import Random

COMPARISONS = ("<", "<=", ">", ">=", "=", "<>")


class RandomStar:
    """`text` declares the view V."""

    def __init__(self, seed: int) -> None:
        self.random = Random(f"star {seed}")
        self._names = 0
        self.numbers: list[str] = []  # whole-number columns that exist so far
        self.flags: list[str] = []
        self.text = self._program()

    def _name(self) -> str:
        self._names += 1
        return f"n{self._names}"

    def _program(self) -> str:
        rng = self.random
        views: list[str] = []
        has_row = rng.random() < 0.5
        body = "from Sell"
        if has_row:
            self.numbers += ["qty"]
            self.flags += ["open"]
        else:
            columns = self._group("P0", views)
            self.numbers += columns
            body = "from P0"
        for number in range(1, rng.randint(1, 3) + (1 if has_row else 0)):
            columns = self._group(f"P{number}", views)
            if rng.random() < 0.5:
                body += f" |> join P{number} using item"
            else:
                defaults = ", ".join(f"{column} := {rng.choice((0, 0, 3))}" for column in columns)
                body += f" |> left join P{number} using item default {defaults}"
            self.numbers += columns
            body += self._further()
        body += self._further()
        if rng.random() < 0.5 and not has_row:
            kept = rng.sample(self.numbers, rng.randint(1, len(self.numbers)))
            body += f" |> project item, {', '.join(kept)}"
        return " ".join([*views, f"view V = {body};"])

    def _group(self, name: str, views: list[str]) -> list[str]:
        """Declares a view of aggregates; their columns."""
        rng = self.random
        flags, self.flags = self.flags, []
        known = ["qty", "change"]
        body = rng.choice(("from West", "from East", "from Buys"))
        if rng.random() < 0.5:
            body += f" |> where {self._condition(known, ['kind'])}"
        if rng.random() < 0.3:
            extra = self._name()
            body += f" |> extend {extra} := {self._number(known)}"
            known.append(extra)
            if rng.random() < 0.4:
                body += f" |> where {self._condition(known, ['kind'])}"
        items, columns = [], []
        for _ in range(rng.randint(1, 3)):
            column = self._name()
            function = rng.choice(("sum", "sum", "count", "min", "max"))
            where = ""
            if function in ("sum", "count") and rng.random() < 0.4:
                where = f" where {self._condition(known, ['kind'])}"
            argument = "" if function == "count" else self._number(known) if rng.random() < 0.4 else rng.choice(known)
            items.append(f"{column} := {function}({argument}){where}")
            columns.append(column)
        views.append(f"view {name} = {body} |> aggregate {', '.join(items)} group by item;")
        self.flags = flags
        return columns

    def _further(self) -> str:
        """Perhaps a computed column, perhaps a condition."""
        rng = self.random
        body = ""
        if self.numbers and rng.random() < 0.5:
            column = self._name()
            body += f" |> extend {column} := {self._number(self.numbers)}"
            self.numbers.append(column)
        if self.numbers and rng.random() < 0.4:
            body += f" |> where {self._condition(self.numbers, [])}"
        return body

    def _number(self, columns: list[str], depth: int = 0) -> str:
        rng = self.random
        if depth >= 2 or rng.random() < 0.3:
            return rng.choice(columns) if rng.random() < 0.7 else str(rng.randint(0, 12))
        if rng.random() < 0.2:
            condition = self._condition(columns, [], depth + 1)
            otherwise = self._number(columns, depth + 1)
            return f"case when {condition} then {self._number(columns, depth + 1)} else {otherwise} end"
        operator = rng.choice("++--*")
        return f"({self._number(columns, depth + 1)} {operator} {self._number(columns, depth + 1)})"

    def _condition(self, columns: list[str], texts: list[str], depth: int = 0) -> str:
        rng = self.random
        if depth < 2 and rng.random() < 0.3:
            parts = [self._condition(columns, texts, depth + 1) for _ in range(2)]
            return f"({rng.choice((' and ', ' or ')).join(parts)})"
        if depth < 2 and rng.random() < 0.15:
            return f"not {self._condition(columns, texts, depth + 1)}"
        if texts and rng.random() < 0.4:
            return f"{rng.choice(texts)} {rng.choice(('=', '<>'))} '{rng.choice('abc')}'"
        if self.flags and not texts and rng.random() < 0.2:
            return rng.choice(self.flags)
        left = self._number(columns, depth + 1)
        return f"({left}) {rng.choice(COMPARISONS)} {self._number(columns, depth + 1)}"
