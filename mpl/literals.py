"""Values as the language writes them."""

from __future__ import annotations

from mpl.functions.casts import cast_value
from mpl.types import BoolType, DurationType, EnumType, TextType, TimeType, Type, Value


def literal_text(value: Value, type: Type) -> str:
    """A canonical value of the type, which is not null, as a literal.

    Logs remember the defaults of columns in this form (`runtime/log/schema.py` reads it), so it never changes.
    """
    match type:
        case TextType() | EnumType():
            return "'" + str(value).replace("'", "''") + "'"
        case BoolType():
            return "true" if value else "false"
        case TimeType():
            return f"time '{cast_value(value, type, TextType())}'"
        case DurationType():
            return f"{value} us"
        case _:
            return str(cast_value(value, type, TextType()))
