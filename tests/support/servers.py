"""Stopping, killing and starting the session's own PostgreSQL and Kafka while receiptd uses them."""

import os
import signal
import subprocess
from pathlib import Path

import psycopg
import pytest
from confluent_kafka.admin import AdminClient

from support.wait import wait_for


def own_directory(services):
    """Refuses servers that the environment has given, and servers that tests of other workers use at the same time."""
    assert "PYTEST_XDIST_WORKER" not in os.environ, "a test that stops the session's servers needs the mark alone"
    if services.directory is None:
        pytest.skip("RECEIPTD_TEST_SERVICES is not set: the servers are not ours to stop")
    return services.directory


def command_of(pid):
    """How to start this process again: argv, directory, user."""
    process = Path(f"/proc/{pid}")
    return {
        "args": [os.fsdecode(argument) for argument in process.joinpath("cmdline").read_bytes().split(b"\0")[:-1]],
        "cwd": os.readlink(process / "cwd"),
        "user": process.stat().st_uid if os.getuid() == 0 else None,
        "group": process.stat().st_gid if os.getuid() == 0 else None,
    }


def is_gone(pid):
    """Ended; a zombie that its parent has not waited for counts too."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


class Postgres:
    """Connections of the test that were open before a crash have to be closed by the test."""

    def __init__(self, services):
        self.dsn = services.dsn
        self.data = own_directory(services) / "postgres"
        self.log = own_directory(services) / "postgres.log"
        self.command = command_of(self.pid())

    def pid(self):
        return int((self.data / "postmaster.pid").read_text().split()[0])

    def stop_immediately(self):
        """Ends PostgreSQL as a crash would: commits that are not in the flushed WAL are lost. Waits for the last process."""
        pid = self.pid()
        os.kill(pid, signal.SIGQUIT)
        wait_for(lambda: is_gone(pid), 30, "PostgreSQL is down")

    def start(self):
        with open(self.log, "ab") as log:
            subprocess.Popen(**self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)
        wait_for(self.answers, 60, "PostgreSQL answers")

    def answers(self):
        try:
            psycopg.connect(self.dsn).close()
            return True
        except psycopg.OperationalError:
            return False


class Kafka:
    def __init__(self, services):
        self.brokers = services.brokers
        self.directory = own_directory(services)
        self.command = command_of(self.pid())

    def pid(self):
        return int((self.directory / "kafka.pid").read_text())

    def kill(self):
        pid = self.pid()
        os.kill(pid, signal.SIGKILL)
        wait_for(lambda: is_gone(pid), 30, "Kafka is down")

    def start(self):
        with open(self.directory / "kafka.log", "ab") as log:
            process = subprocess.Popen(
                **self.command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )
        (self.directory / "kafka.pid").write_text(f"{process.pid}\n")
        wait_for(self.answers, 90, "Kafka answers")

    def answers(self):
        try:
            return bool(AdminClient({"bootstrap.servers": self.brokers, "log_level": 0}).list_topics(timeout=2).brokers)
        except Exception:
            return False
