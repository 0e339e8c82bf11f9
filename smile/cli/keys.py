"""`smile keys`: key pairs, and the list that says whose keys are let in and what they may do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from smile.cli.connecting import AsJson
from smile.cli.files import fail

keys = typer.Typer(
    name="keys",
    help="Make keys and say what their owners may do. Needed as soon as a broker listens beyond this machine.",
    no_args_is_help=True,
    rich_markup_mode="markdown",
)

Names = Annotated[list[str] | None, typer.Option(metavar="NAME", help="A name, or a beginning of names and *.")]


@keys.command()
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Whose keys they are: a broker, a person, a program.")],
    folder: Annotated[Path, typer.Option("--folder", metavar="DIR", help="Where the two files go.")] = Path("keys"),
    as_json: AsJson = False,
) -> None:
    """Make a pair of keys: NAME.secret, which stays where it is, and NAME.public, which others may have.

    Example: smile keys new hub --folder keys
    """
    from runtime.security.keys import new_keys, write_keys

    with _told():
        made = new_keys(name)
        secret, public = write_keys(folder, made)
    if as_json:
        typer.echo(json.dumps({"name": name, "secret": str(secret), "public": str(public), "key": made.public.text}))
        return
    typer.echo(f"{secret}: keep it to yourself\n{public}: {made.public.text}")
    typer.echo(f'next: smile keys allow {folder}/allowed.toml {name} {public} --subscribe "*"')


@keys.command()
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A .secret or .public file.")], as_json: AsJson = False
) -> None:
    """Print the public key of a file, as addresses and lists take it.

    Example: smile keys show keys/hub.public
    """
    from runtime.security.keys import SECRET_SUFFIX, read_keys, read_public

    with _told():
        key = read_keys(file).public if file.suffix == SECRET_SUFFIX else read_public(file)[1]
    if as_json:
        typer.echo(json.dumps({"key": key.text, "fingerprint": key.fingerprint}))
    else:
        typer.echo(key.text)


@keys.command()
def allow(
    allowed: Annotated[Path, typer.Argument(metavar="LIST", help="The list of a broker; made if it is not there.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the owner of the key is called.")],
    key: Annotated[str, typer.Argument(metavar="KEY", help="smile1-..., or a .public file.")],
    publish: Names = None,
    subscribe: Names = None,
    deploy: Names = None,
    role: Annotated[list[str] | None, typer.Option(metavar="ROLE", help="broker or operator.")] = None,
    as_json: AsJson = False,
) -> None:
    """Let the owner of a key in. Brokers notice a changed list by themselves.

    Whoever may read all streams of a view may read the view. Brokers need --role broker; whoever stops brokers or
    injects faults needs --role operator.

    Example: smile keys allow keys/allowed.toml till-7 keys/till-7.public --publish Sales --subscribe "Stock*"
    """
    from runtime.security.allow_list import add_entry, entry_for
    from runtime.security.keys import PREFIX, PublicKey, read_public

    with _told():
        public = PublicKey.parse(key) if key.startswith(PREFIX) else read_public(Path(key))[1]
        entry = entry_for(
            name, public, roles=role or (), publish=publish or (), subscribe=subscribe or (), deploy=deploy or ()
        )
        add_entry(allowed, entry)
    if as_json:
        typer.echo(json.dumps({"list": str(allowed), "name": name, "key": public.text}))
    else:
        typer.echo(f"{allowed}: {name} is let in ({public.fingerprint})")


@contextmanager
def _told() -> Iterator[None]:
    from runtime.security.errors import SecurityError

    try:
        yield
    except SecurityError as error:
        fail(str(error))
    except OSError as error:
        fail(f"{error.filename or 'keys'}: {error.strerror or error}")
