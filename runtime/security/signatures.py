"""Signed deployments: which digest was meant, by whom, and which one is newer.

What is signed is a statement of purpose, the deployment's name, the digest of everything in it, and a serial number
that rises, so that an old deployment, however genuine, cannot be sent again later. The serial travels inside the
signature field. Pure; who may deploy is the policy's matter, what the digest covers the deployer's.
"""

from __future__ import annotations

import struct
import time

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from runtime.security.errors import BadSignature, OldDeployment
from runtime.security.keys import Keys, PublicKey

VERSION = 1
SERIAL_AHEAD_MAX_US = 24 * 3600 * 1_000_000
"""A serial from a clock that is further ahead than this would lock out every later deployment."""

_HEAD = struct.Struct("<Bq")
_SIGNATURE_BYTES = 64


def serial_now() -> int:
    """Microseconds since 1970: rises by itself, from whichever machine is deployed."""
    return time.time_ns() // 1000


def _statement(deployment: str, digest: str, serial: int) -> bytes:
    parts = (b"smile deployment", deployment.encode(), digest.encode(), str(serial).encode())
    return b"".join(struct.pack("<I", len(part)) + part for part in parts)


def sign_digest(keys: Keys, deployment: str, digest: str, serial: int) -> bytes:
    secret = Ed25519PrivateKey.from_private_bytes(keys.signing_secret)
    return _HEAD.pack(VERSION, serial) + secret.sign(_statement(deployment, digest, serial))


def verify_digest(signer: PublicKey, deployment: str, digest: str, signature: bytes) -> int:
    """The serial, if the holder of `signer` signed this digest under this name; BadSignature otherwise."""
    if len(signature) != _HEAD.size + _SIGNATURE_BYTES:
        raise BadSignature("that is no signature", "deploy again with `smile deploy --keys`")
    version, serial = _HEAD.unpack_from(signature)
    if version != VERSION or serial < 0:
        raise BadSignature(f"a signature of version {version}", "deploy with the version of SMILE that the brokers run")
    try:
        public = Ed25519PublicKey.from_public_bytes(signer.signing)
        public.verify(signature[_HEAD.size :], _statement(deployment, digest, serial))
    except (InvalidSignature, ValueError) as wrong:
        raise BadSignature(
            f"`{deployment[:80]}` is not what {signer.fingerprint} signed", "sign and deploy it again"
        ) from wrong
    return int(serial)


def serial_of(signature: bytes) -> int:
    """What a signature says, verified or not: one that was accepted counts also when its signer is gone. -1: none."""
    return int(_HEAD.unpack_from(signature)[1]) if len(signature) >= _HEAD.size else -1


def check_serial(serial: int, digest: str, stored_serial: int, stored_digest: str, now: int | None = None) -> None:
    """May this one follow the one that is stored? The same one again is fine: a deployer repeats until answered."""
    if serial > (serial_now() if now is None else now) + SERIAL_AHEAD_MAX_US:
        raise OldDeployment(
            "the deployment is dated more than a day ahead", "set the deployer's clock and sign it again"
        )
    if serial < stored_serial or (serial == stored_serial and digest != stored_digest):
        raise OldDeployment("a newer deployment is running", "sign it again if this older one is what should run")
