"""Making deployments, and trusting them: nobody runs code that came over a wire.

A deployment carries a bundle: the program's text and everything the compiler made of it. Whoever receives one compiles
the text itself and compares: only if every byte is what its own compiler makes is the result used, and what is used is
the result, not the files that came. The signature says who wanted it, the comparison that it is what it says.

`make_deployment` and `sign` are called by `smile deploy` and `smile run`, `verify` by brokers and clients.
"""

from __future__ import annotations

import csv
import io
import secrets
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import version
from json import loads
from pathlib import Path

from compiler.bundle import bundle_files
from compiler.plan.build import TICK_MODULUS, ProgramPlan
from mpl.diagnostic import MplError
from mpl.render import render_all
from mpl.source import Source
from mpl.typed import Table
from runtime.plan import Component, StreamSpec
from runtime.security.errors import SecurityError
from runtime.security.keys import Keys, PublicKey
from runtime.security.signatures import sign_digest, verify_digest
from smile.deploy.deployment import PROGRAM_FILE, TABLES_FOLDER, Deployment, DeploymentError
from smile.deploy.placement import hosted_components
from smile.errors import NotAllowed, SmileError
from smile.program import Program, compile_source
from smile.tables import read_table_text, table_rows


class BundleRefused(Exception):
    """This deployment will not be run: why, and what to do."""

    def __init__(self, reason: str, remedy: str) -> None:
        self.reason = reason
        self.remedy = remedy
        super().__init__(f"{reason}; {remedy}")


def make_deployment(
    program: Program,
    brokers: Mapping[str, str],
    placement: Mapping[str, str],
    *,
    previous: Deployment | None = None,
    identity: str | None = None,
) -> Deployment:
    """The unsigned record. `previous` is what runs now: its identity and its streams' shares of the ticks stay."""
    source = program.checked.source
    file_name = Path(source.name).name
    # Compiled under its bare name, so that it does not matter in which folder somebody compiles it.
    bare = program if source.name == file_name else compile_source(Source(file_name, source.text), program.folder)
    files = bundle_files(bare.graph, bare.plan, file_name, source.text)
    for table in program.checked.program.tables.values():
        files[f"{TABLES_FOLDER}{table.name}.csv"] = _table_file(program, table)
    return Deployment(
        Path(file_name).stem,
        file_name,
        identity or (previous.identity if previous else secrets.token_hex(16)),
        dict(placement),
        dict(brokers),
        _residues(program.plan, previous),
        files,
    )


def compile_file(path: Path) -> Program:
    """A program under its bare file name, as deployments need it. Raises OSError, UnicodeDecodeError, MplError."""
    return compile_source(Source(path.name, path.read_text(encoding="utf-8")), path.parent)


def _table_file(program: Program, table: Table) -> bytes:
    """The rows as they are now; a table without a file has none."""
    if table.path is None:
        return b""
    table_rows(program, table, {})  # refuses what brokers would refuse, here, where somebody can repair it
    return (program.folder / table.path).read_bytes().removeprefix(b"\xef\xbb\xbf")


def _residues(plan: ProgramPlan, previous: Deployment | None) -> dict[str, int]:
    """Shares of the ticks: names keep theirs for ever, new names get free ones."""
    residues = dict(previous.residues) if previous else {}
    free = (share for share in range(TICK_MODULUS) if share not in set(residues.values()))
    for name in (*plan.streams, *plan.tables):
        if name not in residues:
            share = next(free, None)
            if share is None:
                raise DeploymentError(
                    f"there were {TICK_MODULUS} streams and tables over time, as many as a system can have; "
                    "start a new one with empty data folders"
                )
            residues[name] = share
    return residues


def sign(deployment: Deployment, keys: Keys, serial: int) -> Deployment:
    """`serial` orders deployments: brokers refuse one that is older than what they run."""
    signature = sign_digest(keys, deployment.name, deployment.digest, serial)
    return replace(deployment, signer=keys.name, signature=signature)


def check_signature(deployment: Deployment, signers: Mapping[str, PublicKey]) -> int:
    """The serial of a deployment that one of these signed. Raises BundleRefused."""
    if not deployment.signature:
        raise BundleRefused("the deployment is not signed", "sign it: `smile deploy --keys FILE`")
    public = signers.get(deployment.signer)
    if public is None:
        raise BundleRefused(
            f"the deployment is signed by `{deployment.signer}`, who may not deploy here",
            "add the key with `smile keys allow ... --deploy`",
        )
    try:
        return verify_digest(public, deployment.name, deployment.digest, deployment.signature)
    except SecurityError as error:
        raise BundleRefused(error.reason, error.remedy or "deploy again") from error


def verify(deployment: Deployment) -> Program:
    """The program that this deployment's text compiles to, if that is what its files say. Raises BundleRefused."""
    try:
        program = compile_source(Source(deployment.program, deployment.text), Path())
    except MplError as error:
        shown = render_all(error.diagnostics).splitlines()[0]
        raise BundleRefused(
            f"the program does not compile here: {shown}", "deploy what `smile check` accepts"
        ) from error
    own = bundle_files(program.graph, program.plan, deployment.program, deployment.text)
    came = {path: data for path, data in deployment.files.items() if not path.startswith(TABLES_FOLDER)}
    if own != came:
        raise BundleRefused(*_difference(own, came))
    expected = {component.name for component in hosted_components(program.plan)}
    if set(deployment.placement) != expected:
        odd = sorted(set(deployment.placement) ^ expected)[0]
        raise BundleRefused(f"the placement is not one of this program: `{odd}`", "deploy again")
    for name in (*program.plan.streams, *program.plan.tables):
        if name not in deployment.residues:
            raise BundleRefused(f"stream `{name}` has no share of the ticks", "deploy again")
    return program


def _difference(own: Mapping[str, bytes], came: Mapping[str, bytes]) -> tuple[str, str]:
    here = version("smile-mpl")
    try:
        there = str(loads(came["manifest.json"])["compiler"])
    except (KeyError, ValueError, TypeError):
        there = "nobody knows"
    if there != here:
        return f"the bundle was made by version {there}, this is version {here}", "use the same version everywhere"
    path = next(path for path in sorted({*own, *came}) if own.get(path) != came.get(path))
    return f"{path} is not what {PROGRAM_FILE} compiles to", "the bundle was changed on its way: deploy again"


def components_of(deployment: Deployment, program: Program) -> dict[str, Component]:
    """All hosted components, in reading order; streams and tables with their lasting share of the ticks."""
    made: dict[str, Component] = {}
    for component in hosted_components(program.plan):
        if component.is_stream:
            component = replace(component, operator=StreamSpec(deployment.residues[component.name], TICK_MODULUS))
        made[component.name] = component
    return made


def table_rows_of(deployment: Deployment, program: Program) -> dict[str, list[dict[str, object]]]:
    """The rows of every table, as `StreamInput.encode_many` takes them. Raises BundleRefused, NotAllowed."""
    rows: dict[str, list[dict[str, object]]] = {}
    for table in program.checked.program.tables.values():
        path = f"{TABLES_FOLDER}{table.name}.csv"
        if path in deployment.withheld:
            raise NotAllowed(
                f"you may not read the rows of table `{table.name}`; ask for a right to subscribe to it, or name the"
                " program with --program FILE"
            )
        content = deployment.files.get(path, b"")
        try:
            rows[table.name] = read_table_text(table, io.StringIO(content.decode(), newline=""))
        except (SmileError, csv.Error) as error:
            raise BundleRefused(f"table `{table.name}`: {error}", "repair its file and deploy again") from error
    return rows
