"""Codes MPL01xx: syntax and limits."""

from mpl.diagnostic import Code, Severity

UNEXPECTED = Code("MPL0101", Severity.ERROR, "a word or sign does not fit here")
MISSING_SEMICOLON = Code("MPL0102", Severity.ERROR, "a statement does not end with `;`")
EMPTY_STATEMENT = Code("MPL0103", Severity.ERROR, "there is no statement before `;`")
UNCLOSED = Code("MPL0104", Severity.ERROR, "a parenthesis or bracket is not closed")
UNOPENED = Code("MPL0105", Severity.ERROR, "a parenthesis or bracket was never opened")
UNCLOSED_QUOTE = Code("MPL0106", Severity.ERROR, "a quote is not closed on its line")
WRONG_QUOTES = Code("MPL0107", Severity.ERROR, "the wrong kind of quotes")
WRONG_SIGN = Code("MPL0108", Severity.ERROR, "a sign is written differently in MPL")
WRONG_COMMENT = Code("MPL0109", Severity.ERROR, "a comment is written differently in MPL")
STRAY_CHARACTER = Code("MPL0110", Severity.ERROR, "a character that MPL does not use")
FORBIDDEN_CHARACTER = Code("MPL0111", Severity.ERROR, "an invisible or broken character")
NOT_A_PIPELINE = Code("MPL0112", Severity.ERROR, "a clause of SQL that MPL writes as a step of a pipeline")
MISSING_PIPE = Code("MPL0113", Severity.ERROR, "`|>` is missing between two steps")
NOT_A_DEFINITION = Code("MPL0114", Severity.ERROR, "a definition is not written `name := value`")
BAD_NUMBER = Code("MPL0115", Severity.ERROR, "neither a number nor a name nor a duration")
NEEDS_BACKTICKS = Code("MPL0116", Severity.ERROR, "a word is a name only in backticks")
NOT_AN_AGGREGATE = Code("MPL0117", Severity.ERROR, "`aggregate` was given something else than an aggregate")
CHAINED_COMPARISON = Code("MPL0118", Severity.ERROR, "comparisons do not chain")

TEXT_TOO_LONG = Code("MPL0180", Severity.ERROR, "the program is too long")
TOO_DEEP = Code("MPL0181", Severity.ERROR, "too many levels of nesting")
TOO_MANY = Code("MPL0182", Severity.ERROR, "too many columns or operators")
CHAIN_TOO_LONG = Code("MPL0183", Severity.ERROR, "too many terms in one calculation")
NAME_TOO_LONG = Code("MPL0184", Severity.ERROR, "a name is too long")
NUMBER_TOO_LARGE = Code("MPL0185", Severity.ERROR, "a number is out of range")

CODES: tuple[Code, ...] = (
    UNEXPECTED,
    MISSING_SEMICOLON,
    EMPTY_STATEMENT,
    UNCLOSED,
    UNOPENED,
    UNCLOSED_QUOTE,
    WRONG_QUOTES,
    WRONG_SIGN,
    WRONG_COMMENT,
    STRAY_CHARACTER,
    FORBIDDEN_CHARACTER,
    NOT_A_PIPELINE,
    MISSING_PIPE,
    NOT_A_DEFINITION,
    BAD_NUMBER,
    NEEDS_BACKTICKS,
    NOT_AN_AGGREGATE,
    CHAINED_COMPARISON,
    TEXT_TOO_LONG,
    TOO_DEEP,
    TOO_MANY,
    CHAIN_TOO_LONG,
    NAME_TOO_LONG,
    NUMBER_TOO_LARGE,
)
