"""CURVE on sockets, and addresses that carry the key of whoever listens there.

`tcp://10.0.0.5:7070?key=smile1-...` is an address with the public key of its broker, so a list of addresses is all
that a client or another broker needs to know. Called before `bind` and `connect`; the sockets themselves belong to
the caller.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable

import zmq
from zmq.utils import z85

from runtime.security.errors import BadKey, NotSecured
from runtime.security.keys import Keys, PublicKey

ZAP_DOMAIN = b"smile"
HANDSHAKE_MS = 5_000
"""A peer that has not proved who it is by then is cut off."""

_KEY_MARK = "?key="


def secure_server(socket: zmq.Socket[bytes], keys: Keys) -> None:
    """For a ROUTER or XPUB, before `bind`. Nobody gets in without an `Authenticator` in the same context."""
    socket.curve_server = True
    _set_pair(socket, keys)
    socket.zap_domain = ZAP_DOMAIN
    # Otherwise a context in which nobody answers lets every key in.
    socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)


def secure_client(socket: zmq.Socket[bytes], keys: Keys, server: PublicKey) -> None:
    """For a DEALER or SUB, before `connect`: talks to the holder of `server` and to nobody else."""
    socket.curve_serverkey = z85.encode(server.curve)
    _set_pair(socket, keys)


def _set_pair(socket: zmq.Socket[bytes], keys: Keys) -> None:
    socket.curve_publickey = z85.encode(keys.public.curve)
    socket.curve_secretkey = z85.encode(keys.curve_secret)
    socket.setsockopt(zmq.HANDSHAKE_IVL, HANDSHAKE_MS)


def split_address(address: str) -> tuple[str, PublicKey | None]:
    """What ZeroMQ connects to, and the key to expect there, if the address names one."""
    endpoint, mark, text = address.partition(_KEY_MARK)
    return endpoint, PublicKey.parse(text) if mark else None


def join_address(endpoint: str, key: PublicKey | None) -> str:
    if _KEY_MARK in endpoint:
        raise BadKey(f"{endpoint} has a key already", "give the address without it")
    return endpoint if key is None else f"{endpoint}{_KEY_MARK}{key.text}"


def is_local(address: str) -> bool:
    """Does it stay on this machine? Names other than `localhost` are not looked up: they may mean another tomorrow."""
    endpoint, _ = split_address(address)
    transport, mark, rest = endpoint.partition("://")
    if not mark:
        transport, rest = "tcp", endpoint
    if transport in ("ipc", "inproc"):
        return True
    host = rest.rpartition(":")[0] if not rest.endswith("]") else rest
    host = host.strip("[]")
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def check_binding(addresses: Iterable[str], *, has_keys: bool, has_allow_list: bool) -> None:
    """At the start of a broker: an address that others can reach needs keys and an allow-list."""
    if has_keys != has_allow_list:
        given, missing = ("keys", "an allow-list") if has_keys else ("an allow-list", "keys")
        raise NotSecured(
            f"{given} without {missing} let nobody in", "make both with `smile keys new NAME` and `smile keys allow`"
        )
    if has_keys:
        return
    for address in addresses:
        if not is_local(address):
            raise NotSecured(
                f"{address} can be reached from other machines, and this broker has no keys",
                "make a pair with `smile keys new NAME`, a list with `smile keys allow`, or listen on 127.0.0.1",
            )


def check_connecting(address: str, *, has_keys: bool) -> PublicKey | None:
    """Before a connection: the key to expect, or None for an open one on this machine."""
    _, key = split_address(address)
    if key is not None and not has_keys:
        raise NotSecured(f"the broker at {address.partition(_KEY_MARK)[0]} asks for keys", "give yours: `keys=`")
    if key is None and not is_local(address):
        raise NotSecured(
            f"{address} is on another machine, and the address does not say which key to expect there",
            "append ?key=smile1-..., as `smile keys show` of the broker's key prints it",
        )
    return key
