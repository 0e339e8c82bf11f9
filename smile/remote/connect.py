"""`smile.connect`: a running deployment, from any process that can reach one of its brokers."""

from __future__ import annotations

import threading
from collections import OrderedDict
from os import PathLike
from pathlib import Path

from runtime.client.connection import Connection
from runtime.client.errors import ConnectFailed as NoConnection
from runtime.security.errors import SecurityError
from runtime.security.keys import read_keys
from smile.deploy.bundles import BundleRefused, verify
from smile.deploy.deployment import Deployment, DeploymentError
from smile.errors import ConnectFailed
from smile.program import Program
from smile.remote.system import RemoteSystem

PROGRAMS_KEPT_MAX = 4
"""Compiled programs of deployments that this process was connected to: connecting again costs no compiling."""

TIMEOUT = 30.0
"""Seconds that a call waits for brokers, unless told otherwise: long enough for one to restart."""


def connect(
    address: str, *, keys: str | PathLike[str] | None = None, name: str | None = None, timeout: float = TIMEOUT
) -> RemoteSystem:
    """The deployment that the broker at this address belongs to; any of its brokers will do.

    `keys` is the file of our secret keys (`smile keys new`), needed for brokers that are not on this machine; `name` is
    for their logs. `timeout` bounds every wait for a broker. Raises ConnectFailed with reason and remedy. The program
    is not trusted to be what the broker says: it is compiled here, and compared.
    """
    try:
        own = None if keys is None else read_keys(Path(keys))
        connection = Connection(address, keys=own, name=name or "", request_timeout=timeout)
    except SecurityError as error:
        raise ConnectFailed(address, error.reason, error.remedy or "see docs/security.md") from error
    except NoConnection as error:
        more = ", or is your key not on its allow-list?" if own is not None else ""  # then it does not answer at all
        raise ConnectFailed(address, error.reason, f"{error.remedy}{more}") from error
    try:
        deployment = Deployment.from_wire(connection.deployment)
        return RemoteSystem(connection, deployment, _compiled(deployment), timeout)
    except BundleRefused as error:
        connection.close()
        raise ConnectFailed(address, error.reason, error.remedy) from error
    except DeploymentError as error:
        connection.close()
        raise ConnectFailed(address, str(error), "use the version of smile that the brokers use") from error
    except BaseException:
        connection.close()
        raise


_programs: OrderedDict[str, Program] = OrderedDict()
_lock = threading.Lock()


def _compiled(deployment: Deployment) -> Program:
    """Checked against what the deployment says it is; programs never change, so several systems may use one."""
    with _lock:
        program = _programs.pop(deployment.digest, None) or verify(deployment)
        _programs[deployment.digest] = program
        if len(_programs) > PROGRAMS_KEPT_MAX:
            _programs.popitem(last=False)
        return program
