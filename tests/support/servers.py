"""Stopping, killing and starting the session's own PostgreSQL and Kafka while receiptd uses them."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import psycopg
import pytest
from confluent_kafka.admin import AdminClient
from psycopg.conninfo import make_conninfo

from support.ports import free_ports
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


class Replica:
    """Streams from a Postgres until it is cut off, and may then take its place, under its address: what was committed in between is gone."""

    def __init__(self, primary):
        self.primary, self.data = primary, primary.data.parent / "replica"
        shutil.rmtree(self.data, ignore_errors=True)
        as_owner = {key: primary.command[key] for key in ("user", "group", "cwd")}
        program = Path(primary.command["args"][0]).parent / "pg_basebackup"
        subprocess.run([program, "-d", primary.dsn, "-D", self.data, "-R", "-X", "stream", "--checkpoint=fast", "--no-sync"], check=True, **as_owner)
        (port,) = free_ports(1)
        self.dsn = make_conninfo(primary.dsn, port=port)
        arguments = [argument.replace(str(primary.data), str(self.data)) for argument in primary.command["args"]]
        with open(primary.log, "ab") as log:
            self.process = subprocess.Popen([*arguments, "-c", f"port={port}", "-c", "listen_addresses="], **as_owner, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, start_new_session=True)
        wait_for(lambda: Postgres.answers(self), 60, "the replica answers")

    def cut_off(self):
        """It has everything up to now, and nothing from now on."""
        with psycopg.connect(self.primary.dsn, autocommit=True) as connection:
            connection.execute("SELECT pg_logical_emit_message(true, 'replica', '')")  # a commit that flushes the log
            (end,) = connection.execute("SELECT pg_current_wal_flush_lsn()").fetchone()
        with psycopg.connect(self.dsn, autocommit=True) as connection:
            wait_for(lambda: connection.execute("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", [end]).fetchone()[0], 60, "the replica has replayed all")
            connection.execute("ALTER SYSTEM SET primary_conninfo = ''")
            connection.execute("SELECT pg_reload_conf()")
            wait_for(lambda: connection.execute("SELECT count(*) FROM pg_stat_wal_receiver").fetchone()[0] == 0, 60, "the replica is cut off")

    def take_over(self):
        self.primary.stop_immediately()
        self.stop()
        shutil.rmtree(self.primary.data)
        self.data.rename(self.primary.data)
        self.primary.start()
        with psycopg.connect(self.primary.dsn, autocommit=True) as connection:
            assert connection.execute("SELECT pg_promote()").fetchone()[0]

    def stop(self):
        self.process.send_signal(signal.SIGINT)
        self.process.wait(60)


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
