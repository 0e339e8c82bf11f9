"""Requests of a client that wait for their answers. All in the connection's thread.

A request goes out once its broker has answered a greeting. Those that only read are repeated until they are answered:
they, or their answers, are lost with a connection that is cut. All end at their deadline.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass

from runtime.broker.uplink import Uplink
from runtime.client.errors import RequestRefused
from runtime.wire import control
from runtime.wire.control import ControlRecord
from runtime.wire.errors import WireError

AGAIN_S = 1.0

Make = Callable[[int], ControlRecord]
"""The record for a request of this number."""


@dataclass(eq=False, slots=True)
class Request:
    uplink: Uplink
    make: Make
    deadline: float
    repeats: bool
    future: Future[ControlRecord]
    number: int = 0
    sent: float = 0.0


class Requests:
    def __init__(self) -> None:
        self._waiting: list[Request] = []

    def begin(self, request: Request) -> None:
        self._waiting.append(request)
        self._send(request)

    def send_again(self, uplink: Uplink) -> None:
        """The broker answers, perhaps for the first time, perhaps another incarnation."""
        for request in [one for one in self._waiting if one.uplink is uplink]:
            self._send(request)

    def _send(self, request: Request) -> None:
        if not request.uplink.is_connected or (request.number and not request.repeats):
            return
        number = request.number or request.uplink.next_request()
        try:
            if request.uplink.send_record(request.make(number)):
                request.number, request.sent = number, time.monotonic()
        except WireError as error:
            self._waiting.remove(request)
            request.future.set_exception(RequestRefused(error.code, str(error)))

    def answered(self, uplink: Uplink, record: ControlRecord) -> None:
        number = getattr(record, "request", None)
        for request in self._waiting:
            if request.uplink is uplink and number in (request.number, 0):
                self._waiting.remove(request)
                if isinstance(record, control.Refused):
                    request.future.set_exception(RequestRefused(record.code, record.reason))
                else:
                    request.future.set_result(record)
                return

    def due_us(self) -> int:
        """Microseconds until the first deadline, or until something is to be repeated."""
        if not self._waiting:
            return int(AGAIN_S * 1e6)
        first = min(request.deadline for request in self._waiting)
        return max(0, int(min(first - time.monotonic(), AGAIN_S) * 1e6))

    def expire(self) -> None:
        now = time.monotonic()
        for request in [one for one in self._waiting if one.deadline <= now]:
            self._waiting.remove(request)
            request.future.set_exception(TimeoutError(f"no answer from {request.uplink.address.partition('?')[0]}"))
        for request in [one for one in self._waiting if one.repeats and one.sent + AGAIN_S <= now]:
            self._send(request)

    def end(self, error: Exception) -> None:
        for request in self._waiting:
            request.future.set_exception(error)
