"""Key pairs and their files: made, stored for one reader alone, refused when exposed or damaged."""

from __future__ import annotations

import base64
import os
import stat
from pathlib import Path

import pytest
import zmq
from zmq.utils import z85

from runtime.security.errors import BadKey, ExposedSecret
from runtime.security.keys import FILE_BYTES_MAX, PublicKey, new_keys, read_keys, read_public, write_keys


def test_a_pair_comes_back_from_its_files(tmp_path: Path) -> None:
    keys = new_keys("till-7")
    secret, public = write_keys(tmp_path / "keys", keys)
    assert read_keys(secret) == keys
    assert read_public(public) == ("till-7", keys.public)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    assert keys.curve_secret.hex() not in public.read_text()


def test_the_public_half_belongs_to_the_secret_one() -> None:
    keys = new_keys("a")
    assert zmq.curve_public(z85.encode(keys.curve_secret)) == z85.encode(keys.public.curve)
    assert new_keys("a").public != keys.public


def test_the_secret_file_is_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        secret, _ = write_keys(tmp_path, new_keys("a"))
    finally:
        os.umask(before)
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o660, 0o644])
def test_a_secret_that_others_can_read_or_change_is_refused(tmp_path: Path, mode: int) -> None:
    secret, _ = write_keys(tmp_path, new_keys("a"))
    secret.chmod(mode)
    with pytest.raises(ExposedSecret, match="chmod 600"):
        read_keys(secret)


def test_no_file_is_replaced(tmp_path: Path) -> None:
    first = new_keys("a")
    secret, public = write_keys(tmp_path, first)
    with pytest.raises(BadKey, match="exists"):
        write_keys(tmp_path, new_keys("a"))
    assert read_keys(secret) == first
    secret.unlink()
    with pytest.raises(BadKey, match="exists"):
        write_keys(tmp_path, new_keys("a"))
    assert read_public(public)[1] == first.public


def test_secrets_do_not_show() -> None:
    keys = new_keys("a")
    for secret in (keys.curve_secret, keys.signing_secret):
        assert secret.hex() not in repr(keys)
        assert repr(secret) not in repr(keys)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "smile-secret-1 a 00 00\n",
        "smile-secret-1 a " + "zz" * 32 + " " + "00" * 32,
        "smile-secret-1 a " + "00" * 31 + " " + "00" * 32,
        "smile-secret-2 a " + "00" * 32 + " " + "00" * 32,
        "smile-secret-1 a/b " + "00" * 32 + " " + "00" * 32,
        "\x00\xff" * 40,
        "# only a comment",
        "x" * (FILE_BYTES_MAX + 1),
    ],
)
def test_a_damaged_secret_file_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "a.secret"
    path.write_bytes(text.encode("latin-1"))
    path.chmod(0o600)
    with pytest.raises(BadKey):
        read_keys(path)


def test_a_missing_file_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(BadKey, match="smile keys new"):
        read_keys(tmp_path / "none.secret")


def test_a_public_key_is_one_token() -> None:
    public = new_keys("a").public
    assert PublicKey.parse(public.text) == public
    assert PublicKey.parse(f"  {public.text}\n") == public
    assert len(public.text.split()) == 1
    assert set(public.text) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_")


@pytest.mark.parametrize(
    "change", [lambda text: text[1:], lambda text: text[:-1], lambda text: text[:20] + "!" + text[21:]]
)
def test_a_damaged_public_key_is_refused(change: object) -> None:
    assert callable(change)
    with pytest.raises(BadKey, match="smile keys show"):
        PublicKey.parse(change(new_keys("a").public.text))


def test_a_key_of_another_length_is_refused() -> None:
    with pytest.raises(BadKey):
        PublicKey(bytes(31), bytes(33))
    with pytest.raises(BadKey):
        PublicKey.parse("smile1-" + base64.urlsafe_b64encode(bytes(60)).decode())


def test_fingerprints_tell_keys_apart() -> None:
    one, two = new_keys("a").public, new_keys("a").public
    assert one.fingerprint == PublicKey.parse(one.text).fingerprint
    mixed = PublicKey(one.curve, two.signing)
    assert len({one.fingerprint, two.fingerprint, mixed.fingerprint}) == 3


@pytest.mark.parametrize("name", ["", "a b", "../a", "-a", ".", "a" * 65, "a\n", "ä"])
def test_names_are_plain(name: str) -> None:
    with pytest.raises(BadKey):
        new_keys(name)
