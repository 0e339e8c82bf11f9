"""Random expressions of a wanted type over given columns.

Every value is written with the parentheses that its place needs and now and then with more. What would fail for every
row (a division by a literal zero, a cast of a literal that does not fit) is avoided; what may fail for some is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from random import Random

from tests.generator.library import CASTS, LIBRARY, LITERALS, Argument, Entry
from tests.generator.literals import literal
from tests.generator.shapes import (
    BOOL,
    DURATION,
    FLOAT,
    INT,
    ORDERED,
    SOME_DECIMAL,
    TEXT,
    TIME,
    Column,
    Family,
    Function,
    Shape,
)

OR, AND, NOT, PREDICATE, CONCAT, SUM, PRODUCT, UNARY, ATOM = range(9)
"""How tightly an expression binds."""

PLAIN: dict[Family, Shape] = {
    "int": INT,
    "decimal": SOME_DECIMAL,
    "float": FLOAT,
    "bool": BOOL,
    "text": TEXT,
    "time": TIME,
    "duration": DURATION,
}


@dataclass(frozen=True)
class Written:
    """An expression as text. `nullable` may say True too often, never False too often."""

    text: str
    shape: Shape
    nullable: bool = False
    level: int = ATOM
    constant: bool = False


class Expressions:
    """Writes expressions over `columns`; `functions` are those that the program declares."""

    def __init__(self, rng: Random, columns: Sequence[Column], functions: Sequence[Function] = ()) -> None:
        self.rng = rng
        self.columns = columns
        self.functions = functions
        self._makers: dict[Family, tuple[Callable[[int], Written | None], ...]] = {
            "int": (self._int_arithmetic, self._int_arithmetic, self._negated_int),
            "decimal": (self._decimal_arithmetic, self._duration_ratio),
            "float": (self._float_arithmetic,),
            "bool": (
                *(self._comparison, self._comparison, self._range, self._membership, self._like),
                *(self._null_test, self._logic, self._logic, self._negation),
            ),
            "text": (self._concatenation,),
            "time": (self._moved_time,),
            "duration": (self._duration_arithmetic, self._time_difference),
            "enum": (),
        }
        self._entries: dict[Family, list[Entry]] = {}
        for entry in LIBRARY:
            families = {entry.result.family} if entry.result else {"int", "decimal", "float", "duration"}
            for family in families:
                self._entries.setdefault(family, []).append(entry)  # type: ignore[arg-type]

    def families(self) -> tuple[Family, ...]:
        """Those that a value can be written of: an enum only where there is a column of one."""
        with_enum = any(column.shape.family == "enum" for column in self.columns)
        return (*PLAIN, "enum") if with_enum else tuple(PLAIN)

    def any_value(self, depth: int) -> Written:
        return self.value(self.rng.choice(self.families()), depth)

    def condition(self, depth: int) -> Written:
        return self.value("bool", depth)

    def value(self, family: Family, depth: int) -> Written:
        """A value of the family; `depth` limits how far it nests."""
        if depth > 0 and self.rng.random() < 0.75:
            for _ in range(3):
                made = self._compound(family, depth - 1)
                if made is not None:
                    return made
        return self._leaf(family)

    def within(self, family: Family, depth: int, level: int) -> str:
        return self.placed(self.value(family, depth), level)

    def placed(self, written: Written, level: int) -> str:
        """The text, in parentheses if it binds less tightly than its place needs."""
        if written.level < level or self.rng.random() < 0.03:
            return f"({written.text})"
        return written.text

    def column(self, families: Iterable[Family], *, shape: Shape | None = None) -> Written | None:
        """A column as it may be written: plain, or with an alias."""
        wanted = tuple(families)
        fitting = [column for column in self.columns if column.shape.family in wanted and shape in (None, column.shape)]
        if not fitting:
            return None
        column = self.rng.choice(fitting)
        return Written(write_column(self.rng, column), column.shape, column.nullable)

    # One value out of nothing

    def _leaf(self, family: Family) -> Written:
        if self.rng.random() < 0.75 or family == "enum":
            column = self.column((family,))
            if column is not None:
                return column
        assert family != "enum", "asked for an enum where there is none"
        shape = Shape("decimal", (5, self.rng.randint(1, 3))) if family == "decimal" else PLAIN[family]
        return Written(literal(self.rng, shape), shape, constant=True)

    # One value out of others

    def _compound(self, family: Family, depth: int) -> Written | None:
        roll = self.rng.random()
        if roll < 0.4 and self._makers[family]:
            return self.rng.choice(self._makers[family])(depth)
        if roll < 0.65 and family in self._entries:
            return self._call(self.rng.choice(self._entries[family]), family, depth)
        if roll < 0.73:
            return self._declared(family, depth)
        return self.rng.choice((self._case, self._coalesce, self._nullif, self._cast, self._extreme))(family, depth)

    def _call(self, entry: Entry, family: Family, depth: int) -> Written | None:
        same_as = family if entry.result is None else None
        arguments = [self._argument(argument, same_as, depth) for argument in entry.arguments]
        complete = [argument for argument in arguments if argument is not None]
        if len(complete) < len(arguments):
            return None
        shape = entry.result or complete[0].shape
        text = f"{entry.name}({', '.join(argument.text for argument in complete)})"
        return self._made(text, shape, complete)

    def _argument(self, wanted: Argument, same_as: Family | None, depth: int) -> Written | None:
        if wanted == "<positive>":
            return self.column(("int", "decimal", "float")) or Written("2.25", SOME_DECIMAL, constant=True)
        if wanted == "<text column>":
            return self.column(("text",))
        if isinstance(wanted, str) and wanted in LITERALS:
            return Written(self.rng.choice(LITERALS[wanted]), INT, constant=True)
        families: tuple[Family, ...] = (wanted,) if isinstance(wanted, str) else wanted  # type: ignore[assignment]
        if same_as is not None:
            return self.value(same_as, depth) if same_as in families else None
        possible = [family for family in families if family in self.families()]
        return self.value(self.rng.choice(possible), depth) if possible else None

    def _declared(self, family: Family, depth: int) -> Written | None:
        fitting = [function for function in self.functions if function.result.family == family]
        if not fitting:
            return None
        function = self.rng.choice(fitting)
        arguments: list[Written] = []
        for shape, nullable in function.parameters:
            argument = self.fitting(shape, depth)
            if argument is None:
                return None
            if argument.nullable and not nullable:
                argument = self._never_null(argument, shape)
            arguments.append(argument)
        text = f"{function.name}({', '.join(argument.text for argument in arguments)})"
        return Written(text, function.result, function.nullable, constant=all(a.constant for a in arguments))

    def fitting(self, shape: Shape, depth: int) -> Written | None:
        """A value that may be assigned to `shape`."""
        if shape.family == "enum":
            return self.column(("enum",), shape=shape)
        value = self.value(shape.family, depth)
        if shape.family != "decimal" or value.shape == shape:
            return value
        assert shape.digits is not None
        if value.constant:
            return Written(literal(self.rng, shape), shape, constant=True)
        return Written(f"cast({value.text} as {shape.written})", shape, value.nullable)

    def _never_null(self, value: Written, shape: Shape) -> Written:
        return Written(f"coalesce({value.text}, {literal(self.rng, shape)})", shape, nullable=False)

    def _made(self, text: str, shape: Shape, parts: Iterable[Written], level: int = ATOM) -> Written:
        parts = tuple(parts)
        return Written(text, shape, any(part.nullable for part in parts), level, all(part.constant for part in parts))

    def _chain(self, family: Family, operators: Sequence[str], depth: int, level: int) -> Written:
        """`a + b - c`; what follows `/` or `%` is a column or a literal above zero."""
        parts = [self.value(family, depth)]
        text = self.placed(parts[0], level)
        for _ in range(self.rng.choice((1, 1, 1, 2, 3))):
            operator = self.rng.choice(operators)
            part = self._divisor(family) if operator in "/%" else self.value(family, depth)
            text += f" {operator} {self.placed(part, level + 1)}"
            parts.append(part)
        return self._made(text, parts[0].shape, parts, level)

    def _divisor(self, family: Family) -> Written:
        divisor = {"int": "7", "decimal": "2.50", "float": "4e0"}[family]
        column = self.column((family,))
        return (
            column if column is not None and self.rng.random() < 0.5 else Written(divisor, PLAIN[family], constant=True)
        )

    def _int_arithmetic(self, depth: int) -> Written:
        if self.rng.random() < 0.5:
            return self._chain("int", "+-", depth, SUM)
        return self._chain("int", "*/%", depth, PRODUCT)

    def _negated_int(self, depth: int) -> Written:
        operand = self.value("int", depth)
        return self._made(f"- {self.placed(operand, UNARY)}", INT, (operand,), UNARY)

    def _decimal_arithmetic(self, depth: int) -> Written:
        chain = self._chain("decimal", "+-", depth, SUM) if self.rng.random() < 0.6 else None
        chain = chain or self._chain("decimal", "*/%", depth, PRODUCT)
        return Written(chain.text, SOME_DECIMAL, chain.nullable, chain.level, chain.constant)

    def _duration_ratio(self, depth: int) -> Written:
        left = self.value("duration", depth)
        text = f"{self.placed(left, PRODUCT)} / {self.rng.choice(('1 s', '90 min', '1 d'))}"
        return self._made(text, Shape("decimal", (18, 6)), (left,), PRODUCT)

    def _float_arithmetic(self, depth: int) -> Written:
        left = self.value("float", depth)
        right = self.value(self.rng.choice(("int", "decimal", "float")), depth)
        operator = self.rng.choice("+-*")
        level = PRODUCT if operator == "*" else SUM
        text = f"{self.placed(left, level)} {operator} {self.placed(right, level + 1)}"
        return self._made(text, FLOAT, (left, right), level)

    def _concatenation(self, depth: int) -> Written:
        return Written(**{**vars(self._chain("text", ("||",), depth, CONCAT)), "shape": TEXT})

    def _moved_time(self, depth: int) -> Written:
        moment, distance = self.value("time", depth), self.value("duration", depth)
        text = f"{self.placed(moment, SUM)} {self.rng.choice('+-')} {self.placed(distance, PRODUCT)}"
        return self._made(text, TIME, (moment, distance), SUM)

    def _time_difference(self, depth: int) -> Written:
        one, other = self.value("time", depth), self.value("time", depth)
        return self._made(f"{self.placed(one, SUM)} - {self.placed(other, PRODUCT)}", DURATION, (one, other), SUM)

    def _duration_arithmetic(self, depth: int) -> Written:
        left = self.value("duration", depth)
        if self.rng.random() < 0.5:
            right = self.value("duration", depth)
            text = f"{self.placed(left, SUM)} {self.rng.choice('+-')} {self.placed(right, PRODUCT)}"
            return self._made(text, DURATION, (left, right), SUM)
        return self._made(f"{self.placed(left, PRODUCT)} {self.rng.choice('*/')} 3", DURATION, (left,), PRODUCT)

    # Conditions

    def _pair(self, depth: int, *, ordered: bool) -> tuple[Written, Written] | None:
        """Two values that can be compared: of one family, of two kinds of number, or an enum and one of its values."""
        families = [family for family in self.families() if not ordered or family in ORDERED]
        family = self.rng.choice(families)
        left = self.value(family, depth)
        if family == "enum":
            return left, Written(literal(self.rng, left.shape), left.shape, constant=True)
        if family in ("int", "decimal", "float") and self.rng.random() < 0.3:
            family = self.rng.choice(("int", "decimal", "float"))
        return left, self.value(family, depth)

    def _comparison(self, depth: int) -> Written | None:
        operator = self.rng.choice(("=", "<>", "<", "<=", ">", ">="))
        pair = self._pair(depth, ordered=operator not in ("=", "<>"))
        if pair is None:
            return None
        left, right = pair
        text = f"{self.placed(left, CONCAT)} {operator} {self.placed(right, CONCAT)}"
        return self._made(text, BOOL, pair, PREDICATE)

    def _not(self) -> str:
        return "not " if self.rng.random() < 0.25 else ""

    def _range(self, depth: int) -> Written | None:
        family = self.rng.choice(ORDERED)
        parts = [self.value(family, depth) for _ in range(3)]
        value, low, high = (self.placed(part, CONCAT) for part in parts)
        return self._made(f"{value} {self._not()}between {low} and {high}", BOOL, parts, PREDICATE)

    def _membership(self, depth: int) -> Written | None:
        family = self.rng.choice(self.families())
        value = self.value(family, depth)
        shape = value.shape if family == "enum" else Shape("decimal", (5, 2)) if family == "decimal" else PLAIN[family]
        items = [literal(self.rng, shape) for _ in range(self.rng.randint(1, 4))]
        text = f"{self.placed(value, CONCAT)} {self._not()}in ({', '.join(items)})"
        return self._made(text, BOOL, (value,), PREDICATE)

    def _like(self, depth: int) -> Written:
        value = self.value("text", depth)
        pattern = self.rng.choice(("'A%'", "'%x_'", "'100\\%'", "''", "'%'"))
        return self._made(f"{self.placed(value, CONCAT)} {self._not()}like {pattern}", BOOL, (value,), PREDICATE)

    def _null_test(self, depth: int) -> Written:
        value = self.any_value(depth)
        text = f"{self.placed(value, CONCAT)} is {self._not()}null"
        return Written(text, BOOL, level=PREDICATE, constant=value.constant)

    def _logic(self, depth: int) -> Written:
        word, level = self.rng.choice((("and", AND), ("or", OR)))
        parts = [self.value("bool", depth) for _ in range(self.rng.choice((2, 2, 3)))]
        return self._made(f" {word} ".join(self.placed(part, level + 1) for part in parts), BOOL, parts, level)

    def _negation(self, depth: int) -> Written:
        operand = self.value("bool", depth)
        return self._made(f"not {self.placed(operand, NOT)}", BOOL, (operand,), NOT)

    # Values of any family

    def _alternatives(self, family: Family, depth: int, count: int) -> tuple[list[Written], Shape]:
        """Values that have one type together: enums must be the same."""
        first = self.value(family, depth)
        others = [
            self.column(("enum",), shape=first.shape) or first if family == "enum" else self.value(family, depth)
            for _ in range(count - 1)
        ]
        values = [first, *others]
        if family in ("decimal", "text") and any(value.shape != first.shape for value in values):
            return values, PLAIN[family]
        return values, first.shape

    def _case(self, family: Family, depth: int) -> Written:
        count = self.rng.randint(1, 3)
        values, shape = self._alternatives(family, depth, count + 1)
        branches = " ".join(f"when {self.condition(depth).text} then {value.text}" for value in values[:count])
        nullable = any(value.nullable for value in values)
        constant = all(value.constant for value in values)
        if self.rng.random() < 0.2:
            return Written(f"case {branches} end", shape, nullable=True, constant=constant)
        otherwise = values[count].text
        if self.rng.random() < 0.1:
            otherwise, nullable = "null", True
        return Written(f"case {branches} else {otherwise} end", shape, nullable, constant=constant)

    def _coalesce(self, family: Family, depth: int) -> Written:
        values, shape = self._alternatives(family, depth, self.rng.randint(2, 3))
        return self._skipping("coalesce", values, shape)

    def _skipping(self, function: str, values: list[Written], shape: Shape) -> Written:
        """A call that is null only if all its arguments are."""
        text = f"{function}({', '.join(value.text for value in values)})"
        nullable = all(value.nullable for value in values)
        return Written(text, shape, nullable, constant=all(value.constant for value in values))

    def _nullif(self, family: Family, depth: int) -> Written:
        (one, other), shape = self._alternatives(family, depth, 2)
        constant = one.constant and other.constant
        return Written(f"nullif({one.text}, {other.text})", shape, nullable=True, constant=constant)

    def _cast(self, family: Family, depth: int) -> Written | None:
        if not CASTS[family]:
            return None
        source = self.rng.choice(CASTS[family])
        value = self.column((source,)) if source in ("text", "enum") else self.value(source, depth)
        if value is None or (value.constant and family == "decimal"):
            return None
        shape = Shape("decimal", (18, self.rng.randint(0, 4))) if family == "decimal" else PLAIN[family]
        return Written(f"cast({value.text} as {shape.written})", shape, value.nullable, constant=value.constant)

    def _extreme(self, family: Family, depth: int) -> Written | None:
        if family not in ORDERED:
            return None
        values, shape = self._alternatives(family, depth, self.rng.randint(2, 3))
        return self._skipping(self.rng.choice(("least", "greatest")), values, shape)


def write_column(rng: Random, column: Column) -> str:
    if column.qualifier is None and column.aliases and rng.random() < 0.2:
        return f"{rng.choice(column.aliases)}.{column.name}"
    return column.written
