"""The LALR tables of `grammar.lark`, and the loop that runs them over one statement's tokens.

lark reads the grammar, makes the tables and prepares the builder calls. The loop is ours for three reasons: it takes a
keyword for a name where only a name fits, it hands back a failure that can be explained instead of raising, and it
goes through the long chains of one-child rules of every expression in one step, which halves the time of a parse.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from sys import intern
from typing import Any, NamedTuple, cast

from lark import Lark
from lark.grammar import Rule
from lark.parse_tree_builder import ExpandSingleChild

from mpl.nodes import Statement
from mpl.syntax.builders import Builders
from mpl.syntax.builders.expressions import name
from mpl.syntax.lexing import Lexicon
from mpl.syntax.tokens import NAME, RESERVED, Token


class Reduce(NamedTuple):
    """Replace the last `size` values by the one that `build` makes of them, as a `rule`."""

    size: int
    build: Callable[[list[Any]], Any]
    rule: str


@dataclass(frozen=True, slots=True)
class Stay:
    """Take the last value for a `rule` that has only this part.

    Such rules follow each other in long chains. Where a chain ends depends only on the state below, so it is
    remembered: `ends` has it by that state.
    """

    rule: str
    ends: dict[int, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Failure:
    """Where a statement stopped making sense: the index of the token, and the states that refused it."""

    index: int
    states: list[int]


class Tables:
    """What lark made of the grammar. Built once; afterwards only the memory of chains grows."""

    def __init__(self) -> None:
        text = files("mpl").joinpath("grammar.lark").read_text(encoding="utf-8")
        lark = Lark(
            text,
            parser="lalr",
            lexer="basic",
            start="statement",
            keep_all_tokens=True,
            maybe_placeholders=True,
            transformer=cast(Any, Builders()),
        )
        self.lexicon = Lexicon.of(lark.terminals)
        self.soft = frozenset(kind for word, kind in self.lexicon.keywords.items() if word not in RESERVED)
        conf = lark.parse_interactive().parser_state.parse_conf
        self.start: int = conf.start_state
        self.end: int = conf.end_state
        self.actions: list[dict[str, int | Reduce | Stay]] = [{} for _ in conf.states]
        self.gotos: list[dict[str, int]] = [{} for _ in conf.states]
        for state, row in conf.states.items():
            for symbol, (_, target) in row.items():
                if not isinstance(target, int):
                    self.actions[state][_plain(symbol)] = _reduction(target, conf.callbacks[target])
                elif symbol.isupper():
                    self.actions[state][_plain(symbol)] = target
                else:
                    self.gotos[state][_plain(symbol)] = target

    def parse(self, tokens: list[Token], start: int, end: int, end_token: Token) -> Statement | Failure:
        """Parse tokens `start` up to `end` as one statement that `end_token` closes."""
        actions = self.actions
        gotos = self.gotos
        soft = self.soft
        last_state = self.end
        states = [self.start]
        values: list[Any] = []
        for index in range(start, end + 1):
            token = tokens[index] if index < end else end_token
            kind = token.type
            if kind in soft:
                row = actions[states[-1]]
                if kind not in row and NAME in row:
                    kind = token.type = NAME
            while True:
                action = actions[states[-1]].get(kind)
                if isinstance(action, int):
                    states.append(action)
                    values.append(name(token) if kind == NAME else token)
                    break
                if isinstance(action, Stay):
                    below = states[-2]
                    state = action.ends.get(below)
                    states[-1] = self._follow(action, below, kind) if state is None else state
                    if states[-1] == last_state:
                        return cast(Statement, values[0])
                    continue
                if action is None:
                    return Failure(index, states)
                size, build, rule = action
                children = values[-size:] if size else []
                if size:
                    del values[-size:]
                    del states[-size:]
                values.append(build(children))
                states.append(gotos[states[-1]][rule])
        raise AssertionError("an end token is refused or ends the statement")

    def _follow(self, first: Stay, below: int, kind: str) -> int:
        """The state where the chain of one-part rules that begins with `first` ends."""
        action: int | Reduce | Stay | None = first
        state = self.start
        while isinstance(action, Stay) and state != self.end:
            state = self.gotos[below][action.rule]
            action = self.actions[state].get(kind)
        first.ends[below] = state
        return state

    def accepted(self, states: list[int]) -> frozenset[str]:
        """The terminals that could really follow, given all states of a failure."""
        return frozenset(kind for kind in self.actions[states[-1]] if self._accepts(states, kind))

    def _accepts(self, states: list[int], kind: str) -> bool:
        """Run the reductions that `kind` asks for; a row alone is too generous, because LALR merges contexts."""
        trial = states[:]
        while trial[-1] != self.end:
            action = self.actions[trial[-1]].get(kind)
            if action is None:
                return False
            if isinstance(action, int):
                return True
            size = 1 if isinstance(action, Stay) else action.size
            if size:
                del trial[-size:]
            trial.append(self.gotos[trial[-1]][action.rule])
        return True


def _reduction(rule: Rule, build: Callable[[list[Any]], Any]) -> Reduce | Stay:
    if len(rule.expansion) == 1 and isinstance(build, ExpandSingleChild):
        return Stay(_plain(rule.origin.name))
    return Reduce(len(rule.expansion), build, _plain(rule.origin.name))


def _plain(symbol: str) -> str:
    """lark names symbols by its tokens, which compare in Python; interned strings compare by identity."""
    return intern(str(symbol))


@cache
def tables() -> Tables:
    """The tables, made at the first parse: importing the package costs nothing."""
    return Tables()
