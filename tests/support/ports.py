"""Free ports for servers of tests."""

import os
import random
import socket


given = set()  # a server that gets its port now may start much later


def own_range():
    """The range of this worker. Tests that run side by side need ranges of their own: a server that restarts leaves its port for a
    moment. RECEIPTD_TEST_PORTS is shared out among the workers of pytest-xdist."""
    first, end = (int(number) for number in os.environ.get("RECEIPTD_TEST_PORTS", "20000-32000").split("-"))
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    share = (end - first) // int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return range(first + worker * share, first + (worker + 1) * share)


RANGE = own_range()


def free_ports(count):
    """Numbers on which no process listens. They lie below those that the kernel gives to clients, for a client could take a port between
    its being found and the server's start. None is given twice."""
    found = set()
    if len(given) > len(RANGE) // 2:
        given.clear()
    while len(found) < count:
        port = random.SystemRandom().choice(RANGE)
        if port in given:
            continue
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        found.add(port)
        given.add(port)
    return list(found)
