"""Free ports for servers of tests."""

import random
import socket


given = set()  # a server that gets its port now may start much later


def free_ports(count):
    """Numbers that nobody listens on: below those that the kernel gives to clients, one of which could take a port between
    its being found and the server's start. None is given twice."""
    found = set()
    if len(given) > 8_000:
        given.clear()
    while len(found) < count:
        port = random.SystemRandom().randrange(20_000, 32_000)
        if port in given:
            continue
        try:
            socket.create_server(("127.0.0.1", port)).close()
        except OSError:
            continue
        found.add(port)
        given.add(port)
    return list(found)
