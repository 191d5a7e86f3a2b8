"""Servers and libraries that are too old are named as such, by the daemon and by the commands."""

import os
import socket
import struct
import subprocess
import threading

import pytest

from support.operations import Operations

EX_CONFIG = 78
TOO_OLD = "PostgreSQL 13 is too old: 14 or newer"


class OldPostgres(threading.Thread):
    """Lets everybody in without a password, says that it is release 13, and then nothing more."""

    def __init__(self):
        super().__init__(daemon=True)
        self.server = socket.create_server(("127.0.0.1", 0))
        self.port = self.server.getsockname()[1]
        self.start()

    @staticmethod
    def message(kind, body):
        return kind + struct.pack("!i", len(body) + 4) + body

    def greet(self, client):
        while True:
            (size,) = struct.unpack("!i", client.recv(4, socket.MSG_WAITALL))
            (request,) = struct.unpack("!i", client.recv(size - 4, socket.MSG_WAITALL)[:4])
            if request == 3 << 16:
                break
            client.sendall(b"N")  # neither TLS nor GSSAPI
        status = b"".join(self.message(b"S", f"{name}\0{value}\0".encode()) for name, value in (
            ("server_version", "13.22"), ("server_encoding", "UTF8"), ("client_encoding", "UTF8"), ("in_hot_standby", "off"),
            ("default_transaction_read_only", "off"), ("standard_conforming_strings", "on"), ("integer_datetimes", "on")))
        client.sendall(self.message(b"R", struct.pack("!i", 0)) + status + self.message(b"K", struct.pack("!ii", 1, 1))
                       + self.message(b"Z", b"I"))

    def run(self):
        clients = []
        while True:
            try:
                clients.append(self.server.accept()[0])
                self.greet(clients[-1])
            except (OSError, struct.error):
                if self.server.fileno() < 0:
                    return

    def close(self):
        self.server.close()


@pytest.fixture
def old(receiptd):
    server = OldPostgres()
    receiptd.configure(postgres={"dsn": f"host=127.0.0.1 port={server.port} user=u dbname=d sslmode=disable"})
    yield server
    server.close()


@pytest.mark.parametrize("command", [("migrate",), ("migrate", "--dry-run"), ("audit",), ("funnel",)])
def test_commands_refuse_a_postgresql_that_is_too_old(receiptd, old, command):
    refused = receiptd.command(*command, check=False)
    assert TOO_OLD in refused.stdout + refused.stderr and "syntax error" not in refused.stderr
    assert refused.returncode == EX_CONFIG, refused.stderr


def test_the_daemon_says_that_postgresql_is_too_old(receiptd, old):
    process = receiptd.start()
    process.wait_for_log(f"is not connected: {TOO_OLD}")
    reasons = Operations(process).get("/readyz")
    assert reasons.status == 503 and TOO_OLD in reasons.text
    process.stop()


def test_a_librdkafka_that_is_too_old_is_refused(receiptd, tmp_path):
    source, library = tmp_path / "old.c", tmp_path / "old.so"
    source.write_text('int rd_kafka_version(void);\nconst char *rd_kafka_version_str(void);\n'
                      'int rd_kafka_version(void) { return 0x010900ff; }\nconst char *rd_kafka_version_str(void) { return "1.9.0"; }\n')
    subprocess.run([os.environ.get("CC", "cc"), "-shared", "-fPIC", "-o", library, source], check=True)
    refused = receiptd.command("run", check=False, environment={"LD_PRELOAD": str(library)})
    assert refused.returncode == EX_CONFIG and "librdkafka 1.9.0 is too old: 2.0.2 or newer" in refused.stderr


@pytest.mark.parametrize("in_file", [False, True])
def test_the_owner_migrates_with_a_dsn_of_his_own(receiptd, database, tmp_path, in_file):
    """The configuration holds the daemon's, which may not."""
    owner = tmp_path / "owner-dsn"
    owner.write_text(database.dsn + "\n")
    receiptd.configure(postgres={"dsn": "host=127.0.0.1 port=1 dbname=nobody"})
    assert receiptd.command("migrate", check=False).returncode == 69
    receiptd.command("migrate", "--dsn", f"file:{owner}" if in_file else database.dsn)
    assert database.value("SELECT count(*) FROM receiptd.schema_version") >= 1
    missing = receiptd.command("migrate", "--dsn", f"file:{owner}.not", check=False)
    assert missing.returncode == 66 and "--dsn: cannot read file" in missing.stderr
