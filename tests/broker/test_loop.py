"""Whose turn it is: callers send through a socket that a sleeping thread reads, and no answer is left lying there.

The thread is told to sleep for a minute. Whatever is not read at once because a wake-up was lost is read too late.
"""

from __future__ import annotations

import select
import threading
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial

import pytest
import zmq

from runtime.broker.multipart import has_input, receive_now
from runtime.client.errors import ConnectionClosed
from runtime.client.loop import Loop
from tests.measures import eventually

MINUTE_US = 60_000_000
PATIENCE_S = 20.0
CALLERS = 4
EACH = 1_000


class Echo:
    """A socket whose messages come back, and the loop that reads them."""

    def __init__(self, context: zmq.Context[zmq.Socket[bytes]]) -> None:
        self.count = self.asked = self.inline = 0
        self.has_all = threading.Event()
        self.has_ended = False
        self._others = context.socket(zmq.DEALER)
        self._socket = context.socket(zmq.DEALER)
        for one in (self._others, self._socket):
            one.set_hwm(0)  # sending never waits
        self._others.bind("inproc://echo")
        self._socket.connect("inproc://echo")
        self._server = threading.Thread(target=self._serve)
        self._server.start()
        self.loop = Loop(self._turn, self._end)
        self.loop.watch([int(self._socket.getsockopt(zmq.FD))])
        self.loop.start()

    def _serve(self) -> None:
        while message := self._others.recv():
            self._others.send(message)
        self._others.close(0)

    def send(self) -> None:
        if not self.loop.now(self._send_here):
            self.loop.add(lambda: self._socket.send(b"x"))
            self.loop.wake()

    def _send_here(self) -> bool:
        self._socket.send(b"x")
        self.inline += 1
        return has_input(self._socket)

    def send_all(self) -> None:
        for number in range(EACH):
            self.send()
            if number % 50 == 0:
                time.sleep(0.001)

    def _turn(self, ready: Collection[int], *, has_worked: bool) -> int:
        while receive_now(self._socket) is not None:
            self.count += 1
        if self.count == CALLERS * EACH:
            self.has_all.set()
        self.asked += 1
        return 0 if has_input(self._socket) else MINUTE_US

    def _end(self) -> None:
        self._socket.send(b"")
        self._server.join()
        self._socket.close(0)
        self.has_ended = True


@contextmanager
def echo() -> Iterator[Echo]:
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    made = Echo(context)
    try:
        yield made
    finally:
        made.loop.close()
        context.destroy(0)


def in_threads(work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for _ in range(CALLERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def test_no_answer_is_left_lying_whoever_sends() -> None:
    with echo() as made:
        in_threads(made.send_all)
        assert made.has_all.wait(PATIENCE_S), f"{made.count} of {CALLERS * EACH}"
        assert made.inline, "callers have sent themselves"


def test_what_a_descriptor_shows_is_gone_once_its_socket_was_used() -> None:
    """Why callers look before they leave."""
    context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
    ours, others = context.socket(zmq.DEALER), context.socket(zmq.DEALER)
    others.bind("inproc://pair")
    ours.connect("inproc://pair")
    shows = select.poll()
    shows.register(int(ours.getsockopt(zmq.FD)), select.POLLIN)
    assert not has_input(ours)
    others.send(b"answer")
    assert shows.poll(5_000)
    time.sleep(0.01)  # a socket does not look at its mailbox more often than every few milliseconds
    ours.send(b"question")
    assert not shows.poll(0)
    assert has_input(ours)
    assert receive_now(ours) is not None
    assert not has_input(ours)
    context.destroy(0)


def test_the_thread_is_woken_only_if_there_is_a_reason() -> None:
    with echo() as made:
        asked = settled(made)
        for is_needed in (False, True, False):
            assert made.loop.now(lambda is_needed=is_needed: is_needed)  # type: ignore[misc]
            if is_needed:
                eventually(partial(has_looked, made, asked))
            found = settled(made)
            assert (found > asked) == is_needed
            asked = found
        assert 0 < made.loop.wakes_us - time.monotonic_ns() // 1_000 <= MINUTE_US


def test_one_at_a_time() -> None:
    with echo() as made:
        settled(made)
        found: list[bool] = []
        ours, theirs = threading.Event(), threading.Event()

        def hold() -> bool:
            ours.set()
            return not theirs.wait(PATIENCE_S)

        holder = threading.Thread(target=lambda: found.append(made.loop.now(hold)))
        holder.start()
        assert ours.wait(PATIENCE_S)
        assert not made.loop.now(lambda: False)
        theirs.set()
        holder.join()
        assert found == [True]
        asked = settled(made)
        assert made.loop.now(lambda: made.loop.now(lambda: False))
        assert settled(made) == asked, "nor twice in one thread, as a handler of signals would"


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_what_breaks_in_the_middle_leaves_the_sockets_to_others(error: type[BaseException]) -> None:
    with echo() as made:
        asked = settled(made)

        def broken() -> bool:
            raise error

        with pytest.raises(error):
            made.loop.now(broken)
        eventually(lambda: made.asked > asked, "the thread to look whether something has come in")
        assert made.loop.now(lambda: False)


def test_an_interruption_while_the_sockets_are_taken_leaves_them_to_others() -> None:
    """Between `acquire` and everything after it: there the caller does not know yet that they are his."""

    class Taken:
        def __init__(self) -> None:
            self.real = threading.RLock()

        def acquire(self, *, blocking: bool) -> bool:
            self.real.acquire(blocking=blocking)
            raise KeyboardInterrupt

        def release(self) -> None:
            self.real.release()

        def _is_owned(self) -> bool:
            return False

    with echo() as made:
        settled(made)
        taken, lock = Taken(), made.loop._lock
        made.loop._lock = taken  # type: ignore[assignment]
        with pytest.raises(KeyboardInterrupt):
            made.loop.now(lambda: False)
        made.loop._lock = lock
        with pytest.raises(RuntimeError):
            taken.real.release()


def has_looked(made: Echo, asked: int) -> bool:
    return made.asked > asked


def settled(made: Echo) -> int:
    """How often the thread has looked when it sleeps again."""
    while True:
        before = made.asked
        time.sleep(0.05)
        if made.asked == before:
            return before


def test_nobody_overtakes_work_that_waits() -> None:
    with echo() as made:
        order: list[str] = []
        done = threading.Event()

        def first() -> None:
            order.append("first")
            assert made.loop.is_here
            made.loop.later(lambda: order.append("later"))
            made.loop.later(done.set)

        settled(made)
        made.loop.add(first)
        assert not made.loop.now(lambda: False)
        assert not order
        made.loop.wake()
        assert done.wait(PATIENCE_S)
        assert order == ["first", "later"]
        assert not made.loop.is_here


def test_what_was_added_is_done_when_the_loop_is_closed() -> None:
    with echo() as made:
        done: list[int] = []
        settled(made)
        made.loop.add(lambda: done.append(1))  # and nobody wakes it
        made.loop.close()
        assert (done, made.has_ended, made.loop.is_closed) == ([1], True, True)
        with pytest.raises(ConnectionClosed):
            made.loop.add(lambda: done.append(2))
        assert not made.loop.now(lambda: False)
