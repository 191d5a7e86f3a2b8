"""What a service manager is told, word by word: the socket is a test's own."""

import shutil
import signal
import socket
import tempfile
import time
from pathlib import Path

import pytest

from support.wait import wait_for


class Manager:
    def __init__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="rnotify-", dir="/tmp"))
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self.folder / "s"))
        self.socket.setblocking(False)
        self.environment = {"NOTIFY_SOCKET": str(self.folder / "s"), "WATCHDOG_USEC": "3000000"}
        self.messages = []

    def read(self):
        """All messages so far, as lists of lines."""
        while True:
            try:
                self.messages.append(self.socket.recv(4096).decode().splitlines())
            except BlockingIOError:
                return self.messages

    def lines(self):
        return [line for message in self.read() for line in message]

    def wait_for(self, process, line, after=0):
        """Until a line begins so, among those after the first `after`; returns how many there are up to it."""
        def found():
            return next((index + 1 for index, text in enumerate(self.lines()) if index >= after and text.startswith(line)),
                        None)
        return wait_for(found, 60, line, details=lambda: f"{self.messages}\n{process.log_tail()}")

    def close(self):
        self.socket.close()
        shutil.rmtree(self.folder)


@pytest.fixture
def manager():
    made = Manager()
    yield made
    made.close()


def test_start_life_reload_and_stop_are_told_in_this_order(receiptd, manager):
    process = receiptd.start(environment=manager.environment)
    # No schema yet: more time, the reason, signs of life, and no READY.
    manager.wait_for(process, "EXTEND_TIMEOUT_USEC=")
    at = manager.wait_for(process, "STATUS=not ready: ")
    manager.wait_for(process, "WATCHDOG=1", at)
    # A reload is part of the start until then: its READY=1 would end it.
    process.signal(signal.SIGHUP)
    process.wait_for_log("nothing has changed")
    assert "READY=1" not in manager.lines()
    receiptd.migrate()
    at = manager.wait_for(process, "READY=1")
    assert "RELOADING=1" not in manager.lines()
    at = manager.wait_for(process, "STATUS=0 receipts/s; 0 records, 0.0 s behind; ", at)
    manager.wait_for(process, "WATCHDOG=1", at)
    began = time.monotonic_ns() // 1000
    process.signal(signal.SIGHUP)
    at = manager.wait_for(process, "RELOADING=1", at)
    stamp = manager.lines()[at]
    assert stamp.startswith("MONOTONIC_USEC=")
    assert began <= int(stamp.split("=")[1]) <= time.monotonic_ns() // 1000
    at = manager.wait_for(process, "READY=1", at)
    process.signal(signal.SIGTERM)
    at = manager.wait_for(process, "STOPPING=1", at)
    manager.wait_for(process, "EXTEND_TIMEOUT_USEC=", at)
    process.expected_status = 0
    assert process.wait() == 0
    assert manager.lines().count("READY=1") == 2
