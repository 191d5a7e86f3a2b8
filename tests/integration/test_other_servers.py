"""Servers that are not the one that receiptd knows, behind the same address: another database system, a standby, one that was
promoted. The cases are those of test_connection_setup.c, which needs three servers that share a port to play them."""

import os
import shutil
import subprocess

import pytest

from faults.servers import PASSWORD, Postgres, make_directory
from support.daemon import binary
from support.ports import free_ports

PROGRAM = "tests/integration/test_connection_setup"


class AtAddress(Postgres):
    """One that listens at its own socket and at this address: others may have the same port."""

    def __init__(self, name, port, address):
        super().__init__(make_directory(), name, port)
        self.address = address

    def spawn(self, *arguments):
        super().spawn(*arguments, "-h", self.address)


@pytest.fixture
def create_postgres():
    made = []

    def create(*arguments):
        made.append(AtAddress(*arguments))
        return made[-1]

    yield create
    for server in made:
        server.crash()
        shutil.rmtree(server.socket)
        shutil.rmtree(server.directory)


def test_another_system_a_standby_and_another_timeline_are_told_apart(create_postgres):
    program = binary().parent / PROGRAM
    if not program.exists():
        pytest.skip(f"{program} is not built: make integration-programs")
    port = free_ports(1)[0]
    primary = create_postgres("primary", port, "127.0.0.1")
    standby, other = create_postgres("standby", port, ""), create_postgres("other", port, "")
    primary.create()
    other.create()
    standby.follow(primary)
    environment = {**os.environ, "PGPASSWORD": PASSWORD, "RECEIPTD_TEST_DSN": primary.dsn(), "RECEIPTD_TEST_STANDBY": str(standby.socket),
                   "RECEIPTD_TEST_OTHER": str(other.socket)}
    environment.pop("RECEIPTD_TEST_TCP_DSN", None)  # of another server
    result = subprocess.run([program], env=environment, text=True, capture_output=True, timeout=300, stdin=subprocess.DEVNULL)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "skipped" not in result.stdout.lower() + result.stderr.lower(), result.stdout + result.stderr
