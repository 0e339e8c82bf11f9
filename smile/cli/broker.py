"""`smile broker`: one broker process."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpl.diagnostic import did_you_mean
from smile.cli.configs import required_config
from smile.cli.files import fail

if TYPE_CHECKING:
    from smile.deploy.config import BrokerSettings

PORT_MAX = 65_535


def broker(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The broker's name in the deployment.")],
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="smile.toml; default: the nearest one.")
    ] = None,
    listen: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Where to listen, such as tcp://127.0.0.1:7070.")
    ] = None,
    data: Annotated[Path | None, typer.Option(metavar="DIR", help="Where logs and checkpoints are kept.")] = None,
    http: Annotated[str | None, typer.Option(metavar="HOST:PORT", help="Serve HTTP there too.")] = None,
    http_tokens: Annotated[Path | None, typer.Option(metavar="FILE", help="Who may use HTTP.")] = None,
    sync: Annotated[str | None, typer.Option(help="When logs reach the disk: always, interval or never.")] = None,
    keep: Annotated[str | None, typer.Option(help="How long logs are kept: all, checkpoint or archive.")] = None,
    archive: Annotated[
        Path | None, typer.Option(metavar="DIR", help="With --keep archive: logs forget only what is in it.")
    ] = None,
    checkpoint_every: Annotated[str | None, typer.Option(metavar="DURATION", help="Such as 10s or 500ms.")] = None,
    data_listen: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Where knowledge is sent from; default: any free port.")
    ] = None,
    data_announce: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="What others are told instead, behind a proxy.")
    ] = None,
    log_format: Annotated[str | None, typer.Option(help="How to log: pretty or json.")] = None,
    allow_faults: Annotated[
        bool, typer.Option("--allow-faults", help="Let `smile fault` harm this broker, to see recovery.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="The same as --log-format json.")] = False,
) -> None:
    """Run one broker until it is told to stop: Ctrl-C or SIGTERM.

    Settings come from smile.toml; options win over it. Without a smile.toml, --listen and --data are enough. A broker
    that was never given a program waits for `smile deploy`; one that was goes on where it stopped.

    Example: smile broker hub --listen tcp://127.0.0.1:7070 --data data/hub
    """
    settings = _settings(
        name,
        config,
        {
            "address": listen,
            "data": data,
            "http": http,
            "http_tokens": http_tokens,
            "sync": _choice("--sync", sync, ("always", "interval", "never")),
            "keep": _choice("--keep", keep, ("all", "checkpoint", "archive")),
            "archive": archive,
            "checkpoint_every_us": _duration("--checkpoint-every", checkpoint_every),
            "data_listen": data_listen,
            "data_announced": data_announce,
            "log_format": _choice("--log-format", log_format, ("pretty", "json")) or ("json" if as_json else None),
            "allow_faults": allow_faults or None,
        },
    )
    # Here, so that other commands do not load ZeroMQ and the runtime.
    from smile.broker import serve

    raise typer.Exit(serve(settings))


def _settings(name: str, config: Path | None, given: dict[str, Any]) -> BrokerSettings:
    """Those of smile.toml, if it knows this broker, with what was given on the command line instead."""
    from smile.deploy.config import BrokerSettings, ConfigError, is_http

    http, listen = given["http"], given["address"]
    if http is not None and not is_http(http):
        fail(f"--http {http}: not host:port; write it like 127.0.0.1:8080")
    port = (listen or "").partition("?")[0].rpartition(":")[2]
    if port.isdecimal() and int(port) > PORT_MAX:  # ZeroMQ would take what is left of it after so many
        fail(f"--listen {listen}: there is no port {port}; the last one is {PORT_MAX}")
    given = {key: value for key, value in given.items() if value is not None}
    if config is None and "address" in given and "data" in given:
        return BrokerSettings(name, **given)
    found = required_config(config)
    try:
        if name not in found.brokers and "address" in given:
            return replace(found.broker_at(name, given["address"]), **given)
        return replace(found.broker(name), **given)
    except ConfigError as error:
        fail(str(error))


def _choice(option: str, given: str | None, allowed: tuple[str, ...]) -> str | None:
    if given is not None and given not in allowed:
        fail(f"{option} {given}: {did_you_mean(given, allowed) or 'one of ' + ', '.join(allowed)}")
    return given


def _duration(option: str, given: str | None) -> int | None:
    from smile.deploy.config import parse_duration_us

    found = None if given is None else parse_duration_us(given)
    if given is not None and not found:
        fail(f"{option} {given}: not a duration; write it like 10s or 500ms")
    return found
