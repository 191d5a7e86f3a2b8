"""Free ports for servers of tests."""

import os
import random
import socket


given = set()  # a server that gets its port now may start much later
# Tests that run beside each other take theirs from ranges of their own: a server that restarts has left its port for a moment.
RANGE = range(*(int(end) for end in os.environ.get("RECEIPTD_TEST_PORTS", "20000-32000").split("-")))


def free_ports(count):
    """Numbers that nobody listens on: below those that the kernel gives to clients, one of which could take a port between
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
