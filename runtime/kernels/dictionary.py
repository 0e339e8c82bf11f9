"""Codes for texts: kernels compare and pass on whole numbers only.

One dictionary per operator, shared by all its columns, so that equal codes are equal texts. Codes are given in order of
arrival and are never taken back; they mean nothing outside the operator.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from runtime.values import Value


class Dictionary:
    """`texts[code]` is the text of a code."""

    __slots__ = ("_codes", "texts")

    def __init__(self) -> None:
        self.texts: list[str] = []
        self._codes: dict[str, int] = {}

    def replace(self, texts: Iterable[str]) -> None:
        """Use the codes of a checkpoint instead: the position in this list."""
        self.texts = list(texts)
        self._codes = {text: code for code, text in enumerate(self.texts)}

    def code(self, text: str) -> int:
        code = self._codes.setdefault(text, len(self.texts))
        if code == len(self.texts):
            self.texts.append(text)
        return code

    def find(self, text: Value) -> int:
        """The code of a text, or -1."""
        return self._codes.get(text, -1) if isinstance(text, str) else -1

    def encode(self, texts: Sequence[Value]) -> list[int]:
        try:
            return [self._codes[text] for text in texts]  # type: ignore[index]  # usually all are known
        except KeyError:
            return [self.code(str(text)) for text in texts]

    def decode(self, codes: Iterable[int]) -> list[str]:
        texts = self.texts
        return [texts[code] for code in codes]
