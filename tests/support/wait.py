"""Waiting for conditions, never for time."""

import time

PATIENCE = 3  # limits are those of an idle machine; a shared one may take longer, which proves nothing


class Timeout(AssertionError):
    pass


def wait_for(condition, timeout=30.0, what="the condition", interval=0.02, details=None):
    """Calls `condition` until it returns something true, and returns that.

    `details` is called for the message when time is up: it should describe the present state.
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
