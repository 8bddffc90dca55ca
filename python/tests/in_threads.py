"""Calls in threads of their own."""

import threading
import time


def in_threads(*calls, timeout=120):
    """What the calls return, each made by a thread of its own at the same time.

    The first error of a call is raised here, when all have ended; a call that has not ended in time
    fails the test, and its thread does not keep the process from ending.
    """
    results, errors = [None] * len(calls), [None] * len(calls)

    def make(number):
        try:
            results[number] = calls[number]()
        except BaseException as error:
            errors[number] = error

    deadline = time.monotonic() + timeout
    threads = [threading.Thread(target=make, args=(i,), daemon=True) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    busy = [calls[i] for i, thread in enumerate(threads) if thread.is_alive()]
    assert not busy, f"{busy} of {len(calls)} calls have not ended after {timeout} s"
    for error in errors:
        if error is not None:
            raise error
    return results
