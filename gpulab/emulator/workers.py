"""OS threads that wait for work, kept from one launch to the next: to start one takes longer than a small kernel."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable

_Work = Callable[[], None]
_idle: list[queue.SimpleQueue[_Work]] = []


def start(work: _Work) -> None:
    """Run a function in an OS thread of its own; it must not raise."""
    try:
        inbox = _idle.pop()
    except IndexError:
        inbox = queue.SimpleQueue()
        threading.Thread(target=_serve, args=(inbox,), daemon=True).start()
    inbox.put(work)


def _serve(inbox: queue.SimpleQueue[_Work]) -> None:
    while True:
        work = inbox.get()
        work()
        # A waiting thread must not keep the arrays of the last launch.
        del work
        _idle.append(inbox)


# A forked process has only the thread that forked.
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)
