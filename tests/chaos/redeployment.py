"""Another program for brokers that are running, and being killed: what is watched stays the same, a view comes or goes.

Works in a thread of its own, since brokers may be down: each is asked until it has accepted.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from mpl.source import Source
from runtime.client.connection import Connection
from runtime.client.errors import ConnectFailed, RequestRefused
from smile.deploy.bundles import make_deployment
from smile.deploy.deployment import Deployment
from smile.deploy.placement import place
from smile.local import LocalBrokers
from smile.program import compile_source

FURTHER_VIEW = "\nview Busy = from Sold |> where bought > 10;\n"
PATIENCE_S = 3.0


class Redeployment:
    """`before`: the one before it, if there is one; it is finished first, so that brokers end with the newest."""

    def __init__(self, brokers: LocalBrokers, before: Sequence[Redeployment]) -> None:
        self.problem = ""
        self._before = before
        self._brokers = brokers
        previous = before[-1].deployment if before else brokers.deployment
        source = brokers.program.checked.source
        is_odd = FURTHER_VIEW not in previous.text
        program = compile_source(Source(source.name, source.text + FURTHER_VIEW * is_odd), brokers.program.folder)
        homes = place(program.checked.program, program.plan, brokers.names, previous=previous, ignore_absent=True).homes
        self.deployment: Deployment = make_deployment(program, brokers.addresses, homes, previous=previous)
        self._thread = threading.Thread(target=self._work, name="redeploy", daemon=True)
        self._thread.start()

    def _work(self) -> None:
        for one in self._before:
            one.wait(None)
        for address in self._brokers.addresses.values():
            while not self._is_accepted(address):
                time.sleep(0.2)

    def _is_accepted(self, address: str) -> bool:
        try:
            connection = Connection(address, request_timeout=PATIENCE_S)
        except ConnectFailed as error:
            self.problem = str(error)
            return False
        try:
            connection.deploy(self.deployment.to_wire())
        except (TimeoutError, RequestRefused) as error:
            self.problem = str(error)
            return False
        finally:
            connection.close()
        return True

    def wait(self, seconds: float | None) -> bool:
        self._thread.join(seconds)
        return not self._thread.is_alive()
