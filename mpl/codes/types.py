"""Codes MPL03xx: types and expressions."""

from mpl.diagnostic import Code, Severity

OPERAND_TYPE = Code("MPL0301", Severity.ERROR, "an operator does not take these types")
COMPARISON_TYPE = Code("MPL0302", Severity.ERROR, "these types cannot be compared")
CONDITION_TYPE = Code("MPL0303", Severity.ERROR, "a condition must be true or false")
NULL_OPERAND = Code("MPL0304", Severity.ERROR, "`null` makes the whole expression null")
NO_COMMON_TYPE = Code("MPL0305", Severity.ERROR, "values that must have one type have several")
FUNCTION_UNKNOWN = Code("MPL0307", Severity.ERROR, "no function of that name")
ARGUMENT_COUNT = Code("MPL0308", Severity.ERROR, "wrong number of arguments")
ARGUMENT_TYPE = Code("MPL0309", Severity.ERROR, "an argument has the wrong type")
ARGUMENT_NULL = Code("MPL0310", Severity.ERROR, "an argument may be null but the parameter may not")
AGGREGATE_MISPLACED = Code("MPL0311", Severity.ERROR, "an aggregate outside `aggregate`")
ENUM_VALUE = Code("MPL0312", Severity.ERROR, "a text that is not among the values of the enum")
LITERAL_WANTED = Code("MPL0313", Severity.ERROR, "this argument must be written as a literal")
PATTERN_INVALID = Code("MPL0314", Severity.ERROR, "a pattern that is not understood")
CONSTANT_FAILS = Code("MPL0315", Severity.ERROR, "an expression that fails for every row")
NUMBER_TOO_LARGE = Code("MPL0316", Severity.ERROR, "a number that does not fit")
TIME_INVALID = Code("MPL0317", Severity.ERROR, "a time that is not understood")
CAST_IMPOSSIBLE = Code("MPL0318", Severity.ERROR, "no cast between these types")
FUNCTION_RECURSIVE = Code("MPL0319", Severity.ERROR, "a function that calls itself")
EXPRESSION_TOO_LARGE = Code("MPL0320", Severity.ERROR, "an expression beyond the limits")
FUNCTION_RESULT = Code("MPL0321", Severity.ERROR, "a function body that does not fit its declared result")
FUNCTION_DECLARATION = Code("MPL0322", Severity.ERROR, "a function declaration that cannot be right")
TYPE_INVALID = Code("MPL0323", Severity.ERROR, "a type with impossible numbers or values")
RANGE_INVALID = Code("MPL0324", Severity.ERROR, "a range that does not suit its type")
AGGREGATE_ARGUMENT = Code("MPL0325", Severity.ERROR, "an aggregate that does not take this argument")
VALUE_UNTYPED = Code("MPL0326", Severity.ERROR, "a bare `null` has no type")
VALUE_TYPE = Code("MPL0327", Severity.ERROR, "a value that does not fit the type it is given to")
CONDITION_CONSTANT = Code("MPL0328", Severity.WARNING, "a condition that is the same for every row")
DEFAULT_INVALID = Code("MPL0329", Severity.ERROR, "a default that does not suit its column")

CODES: tuple[Code, ...] = (
    OPERAND_TYPE,
    COMPARISON_TYPE,
    CONDITION_TYPE,
    NULL_OPERAND,
    NO_COMMON_TYPE,
    FUNCTION_UNKNOWN,
    ARGUMENT_COUNT,
    ARGUMENT_TYPE,
    ARGUMENT_NULL,
    AGGREGATE_MISPLACED,
    ENUM_VALUE,
    LITERAL_WANTED,
    PATTERN_INVALID,
    CONSTANT_FAILS,
    NUMBER_TOO_LARGE,
    TIME_INVALID,
    CAST_IMPOSSIBLE,
    FUNCTION_RECURSIVE,
    EXPRESSION_TOO_LARGE,
    FUNCTION_RESULT,
    FUNCTION_DECLARATION,
    TYPE_INVALID,
    RANGE_INVALID,
    AGGREGATE_ARGUMENT,
    VALUE_UNTYPED,
    VALUE_TYPE,
    CONDITION_CONSTANT,
    DEFAULT_INVALID,
)
