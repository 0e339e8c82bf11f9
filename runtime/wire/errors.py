"""What decoding raises, and nothing else. Encoding raises the same for what a peer would have to refuse."""

from __future__ import annotations


class WireError(ValueError):
    """Bytes that are not a message of ours. `code` is what refusals are counted by."""

    code = "wire"


class WireVersion(WireError):
    """The peer speaks another version of the wire format."""

    code = "wire-version"


class WireGarbage(WireError):
    """Bytes that no encoder of this version makes."""

    code = "wire-garbage"


class WireTooLarge(WireError):
    """A size or count beyond its bound in `limits`; found before anything of that size was made."""

    code = "wire-too-large"
