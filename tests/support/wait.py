"""Waiting for conditions, never for time."""

import time

PATIENCE = 3  # limits are those of a quiet machine; one that is shared may take longer, and nothing is proven by that


class Timeout(AssertionError):
    pass


def wait_for(condition, timeout=30.0, what="the condition", interval=0.02, details=None):
    """Calls `condition` until it returns something true, and returns that.

    `details` is called for the message when time is up: it should say what is there instead.
    """
    deadline = time.monotonic() + timeout * PATIENCE
    while True:
        result = condition()
        if result:
            return result
        if time.monotonic() > deadline:
            more = f"\n{details()}" if details else ""
            raise Timeout(f"{what}: not within {timeout * PATIENCE:g} s{more}")
        time.sleep(interval)
