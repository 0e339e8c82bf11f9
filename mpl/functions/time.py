"""Functions of time. Times are microseconds since 1970 in UTC; there are no zones and no leap seconds."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from mpl.arithmetic import INT, TIME
from mpl.failures import EvaluationError, Failure
from mpl.functions.spec import (
    Direction,
    Example,
    FunctionSpec,
    Kind,
    Nulls,
    Parameter,
    Signature,
    fixed,
    fixed_bounds,
)
from mpl.functions.time_text import format_problem, format_time, moment_of, parse_problem, parse_time
from mpl.scaled import checked
from mpl.types import DecimalType, TextType, Value

DAY_US = 86_400_000_000
SECONDS = DecimalType(18, 6)
_T = Parameter("t", Kind.TIME)


def _truncate(call: Signature, t: int, step: int) -> Value:
    if step <= 0:
        raise EvaluationError(Failure.ARGUMENT, "truncate needs a duration above zero")
    return checked(t - t % step, call.result)


def _step_problem(step: Value) -> str | None:
    assert isinstance(step, int)
    return None if step > 0 else "the duration must be above zero"


def _part(
    name: str, read: Callable[[datetime], int], low: int, high: int, summary: str, result: str, up: Direction = None
) -> FunctionSpec:
    return FunctionSpec(
        name=name,
        theme="time",
        called=name,
        parameters=(_T,),
        result=fixed(INT),
        nulls=Nulls.PROPAGATE,
        monotone=(up,),
        bounds=fixed_bounds(low, high),
        evaluate=lambda _, t: read(moment_of(t)),
        summary=summary,
        examples=(Example(f"{name}(time '2026-01-31 12:34:56')", result),),
    )


TIME_FUNCTIONS: tuple[FunctionSpec, ...] = (
    FunctionSpec(
        name="date",
        theme="time",
        called="date",
        parameters=(_T,),
        result=fixed(TIME),
        nulls=Nulls.PROPAGATE,
        monotone=("up",),
        evaluate=lambda _, t: t - t % DAY_US,
        summary="The start of the day, a time.",
        examples=(Example("date(time '2026-01-31 12:34:56')", "time '2026-01-31'"),),
    ),
    _part("year", lambda moment: moment.year, 1, 9999, "The year.", "2026", "up"),
    _part("month", lambda moment: moment.month, 1, 12, "The month, 1 to 12.", "1"),
    _part("day", lambda moment: moment.day, 1, 31, "The day of the month, 1 to 31.", "31"),
    _part("hour", lambda moment: moment.hour, 0, 23, "The hour, 0 to 23.", "12"),
    _part("minute", lambda moment: moment.minute, 0, 59, "The minute, 0 to 59.", "34"),
    _part("second", lambda moment: moment.second, 0, 59, "The whole second, 0 to 59.", "56"),
    FunctionSpec(
        name="truncate",
        theme="time",
        called="truncate",
        parameters=(_T, Parameter("step", Kind.DURATION, problem=_step_problem)),
        result=fixed(TIME),
        nulls=Nulls.PROPAGATE,
        monotone=("up", None),
        evaluate=_truncate,
        summary="The last multiple of `step`, counted from 1970, that is not after `t`: as `tumble` windows start.",
        examples=(
            Example("truncate(time '2026-01-31 12:34:56', 15 min)", "time '2026-01-31 12:30:00'"),
            Example("truncate(time '1969-12-31 23:59:59', 1 d)", "time '1969-12-31'"),
        ),
    ),
    FunctionSpec(
        name="format",
        theme="time",
        called="format",
        parameters=(_T, Parameter("pattern", Kind.TEXT, literal=True, problem=format_problem)),
        result=fixed(TextType()),
        nulls=Nulls.PROPAGATE,
        monotone=(None,),
        evaluate=lambda _, t, pattern: format_time(t, pattern),
        summary="The time as text: %Y %m %d %H %M %S %f, %j day of the year, %u weekday (Monday 1), %% a percent sign.",
        examples=(Example("format(time '2026-01-31 12:34:56', '%Y-%m-%d %H:%M')", "'2026-01-31 12:34'"),),
    ),
    FunctionSpec(
        name="parse_time",
        theme="time",
        called="parse_time",
        parameters=(Parameter("s", Kind.TEXT), Parameter("pattern", Kind.TEXT, literal=True, problem=parse_problem)),
        result=fixed(TIME),
        nulls=Nulls.PROPAGATE,
        monotone=(None,),
        evaluate=lambda _, s, pattern: parse_time(s, pattern),
        summary="The time that the text says; a text that does not fit the pattern (%Y %m %d %H %M %S %f) is an error.",
        examples=(Example("parse_time('31.01.2026', '%d.%m.%Y')", "time '2026-01-31'"),),
    ),
    FunctionSpec(
        name="epoch",
        theme="time",
        called="epoch",
        parameters=(_T,),
        result=fixed(SECONDS),
        nulls=Nulls.PROPAGATE,
        monotone=("up",),
        evaluate=lambda _, t: t,  # microseconds are seconds with six digits after the point
        summary="Seconds since 1970 as decimal(18,6); `time '1970-01-01' + n * 1 s` goes back.",
        examples=(Example("epoch(time '1970-01-02 00:00:00.25')", "86400.250000"),),
    ),
)
