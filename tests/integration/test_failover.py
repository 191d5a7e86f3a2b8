"""Two PostgreSQL servers in one dsn: after a fail-over no process takes the old primary, however it is started; what is meant is accepted."""

import os
import re
import shlex
import signal
import subprocess
from types import SimpleNamespace

import pytest

from faults.servers import Postgres, make_directory
from support.operations import Operations
from support.ports import free_ports
from support.services import Database

COUNTED = "SELECT COALESCE(sum(events), 0)::int8 FROM receiptd.campaign_funnel"


class Site:
    """Servers, and a receiptd that knows both of them, the first one first."""

    def __init__(self, world):
        self.world, self.directory, self.sent, self.started = world, make_directory(), 0, 0
        self.first, self.second = (Postgres(self.directory, name, port) for name, port in zip(("one", "two"), free_ports(2)))
        self.first.create()
        self.execute(self.first, "CREATE DATABASE receipts")
        self.use(self.first)
        world.installation.configure(
            kafka={"group": f"receiptd-{world.topic}"}, http={"listen": "127.0.0.1:0"},
            postgres={"dsn": f"host={self.first.socket},{self.second.socket} port={self.first.port},{self.second.port} user=receiptd dbname=receipts"})
        world.installation.migrate()
        world.insert_ids("m")

    @staticmethod
    def execute(server, sql):
        with server.connect() as connection:
            connection.execute(sql)

    def use(self, server):
        """The database that the test looks at."""
        self.world.database.close()
        self.world.database = Database(SimpleNamespace(dsn=server.dsn(), tcp_dsn=None), "receipts", made=True)

    def start(self, ready=True):
        self.started += 1
        process = self.world.installation.start(f"n{self.started}")
        self.pages = Operations(process)
        if ready:
            self.pages.wait_until_ready(60)
        return process

    def send(self, count):
        self.world.topic.send(*[[{"message_id": "m", "status": "SENT"}]] * count, partition=0)
        self.sent += count

    def wait_for_all(self, process):
        self.world.wait(lambda: self.world.database.value(COUNTED) == self.sent, process, 60, f"{self.sent} receipts counted")

    def fail_over(self):
        """Before that, all that is committed is on the standby."""
        self.execute(self.first, "CHECKPOINT")
        flushed = self.first.value("SELECT pg_current_wal_flush_lsn()::text")
        self.world.wait(lambda: self.second.value("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", flushed), timeout=60, what="replayed")
        self.first.kill()
        self.second.value("SELECT pg_promote(true, 60)")
        self.use(self.second)

    def copy(self):
        """A backup of the first server becomes the data of the second place."""
        self.second.run("pg_basebackup", "-h", self.first.socket, "-p", self.first.port, "-U", "receiptd", "-D", self.second.data,
                        "-X", "stream", "--checkpoint=fast", "--no-sync")

    def restore_to(self, point):
        """The backup in the second place, up to a point that the first server's WAL names: a timeline of its own from there on."""
        with open(self.second.data / "postgresql.conf", "a") as conf:
            conf.write(f"restore_command = 'cp {self.first.data}/pg_wal/%f %p'\nrecovery_target_name = '{point}'\n"
                       "recovery_target_action = promote\n")
        (self.second.data / "recovery.signal").touch()
        self.second.start()
        self.world.wait(lambda: not self.second.value("SELECT pg_is_in_recovery()"), timeout=60, what="restored")
        self.use(self.second)

    def upgrade(self):
        """pg_upgrade from the first place into the second: the data under another system identifier. Both have the same release here."""
        self.second.run("initdb", "-D", self.second.data, "-U", "receiptd", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync",
                        "--auth=trust", "--wal-segsize=4")
        self.second.run("pg_upgrade", "-b", self.first.bin, "-B", self.second.bin, "-d", self.first.data, "-D", self.second.data,
                        "-p", self.first.port, "-P", self.second.port, "-U", "receiptd", "-s", self.first.socket, "--no-sync")
        self.second.start()
        self.use(self.second)

    def close(self):
        for server in (self.first, self.second):
            if server.running:
                server.kill()
        self.world.database.close()
        subprocess.run(["rm", "-rf", str((self.directory / "socket").resolve()), str(self.directory)], check=False)


@pytest.fixture
def site(create_world):
    world = create_world(partitions=1, lanes=4, migrate=False)
    made = Site(world)
    yield made
    for process in world.installation.processes:
        if process.running:
            process.kill()
    made.close()


def accept(site, *options):
    """The command that /readyz names, as it stands there."""
    named = site.pages.process.wait_for(lambda: re.search(r"receiptd (positions accept-database)", str(site.pages.get("/readyz").json["reasons"])),
                                        60, "the command")
    return site.world.installation.command(*shlex.split(named.group(1)), *options).stdout


def test_the_old_primary_is_refused_by_a_new_process_and_by_a_running_one(site):
    site.second.follow(site.first)
    process = site.start()
    site.send(5)
    site.wait_for_all(process)
    site.fail_over()
    site.send(5)
    site.wait_for_all(process)  # a fail-over as it should be: nobody is asked
    process.stop()

    site.first.start()  # it comes back as it was, and is the first in the dsn
    process = site.start()
    assert re.search(r"server is on timeline 1, but was on 2.*HINT: this is an old primary", process.log()) or \
        "control is connected" in process.log()
    site.send(5)
    site.wait_for_all(process)
    assert site.first.value(COUNTED, database="receipts") <= 5
    process.stop()

    site.second.kill()  # and now it is the only one
    process = site.start(ready=False)
    told = accept(site, "--dry-run")
    assert re.search(r"connected: server at .* timeline 1\nwould accept: it may follow system \d+, timeline 2\n", told)
    assert site.pages.get("/readyz").status == 503 and site.first.value(COUNTED, database="receipts") <= 5
    accept(site)
    site.use(site.first)
    site.wait_for_all(process)  # Kafka replays what it has not
    site.pages.wait_until_ready(60)
    process.stop()


def freeze_standby(site):
    """The standby gets nothing from now on."""
    with site.first.connect() as connection:
        senders = [pid for (pid,) in connection.execute("SELECT pid FROM pg_stat_replication")]
    assert senders
    for pid in senders:
        os.kill(pid, signal.SIGSTOP)
    return senders


def promote_behind(site, senders):
    """The first server dies at once; what the frozen senders hold is lost."""
    site.first.signal(signal.SIGSTOP)
    for pid in senders:
        os.kill(pid, signal.SIGKILL)
    site.first.kill()
    site.second.value("SELECT pg_promote(true, 60)")
    site.use(site.second)


def counts(site):
    """(messages there, booked, remembered, letters retired_message, receipts counted)"""
    return site.world.database.query(f"""SELECT (SELECT count(*) FROM receiptd.message_inbox), (SELECT COALESCE(sum(messages), 0)::int FROM receiptd.campaign_retired),
        (SELECT count(*) FROM receiptd.retired_message), (SELECT count(*) FROM receiptd.dead_letter WHERE reason = 'retired_message'), ({COUNTED})""")[0]


def test_deletions_that_the_new_primary_does_not_have_go_back_with_receipts_and_positions(site):
    world, ids = site.world, [f"old {n}" for n in range(200)]
    world.installation.configure(inbox={"retention": "1h"})
    world.insert_ids(*ids)
    world.database.execute("UPDATE receiptd.message_inbox SET created_at = now() - interval '2 hours' WHERE message_id LIKE 'old %'")
    site.second.follow(site.first)
    process = site.start()
    world.topic.send([{"message_id": id, "status": "SENT"} for id in ids], partition=0)
    world.wait_until_consumed(process)
    flushed = site.first.value("SELECT pg_current_wal_insert_lsn()::text")
    site.execute(site.first, "CHECKPOINT")
    world.wait(lambda: site.second.value("SELECT pg_last_wal_replay_lsn() >= %s::pg_lsn", flushed), timeout=60, what="replayed")
    senders = freeze_standby(site)
    assert "messages: 200 deleted" in world.installation.command("retire").stdout
    world.topic.send([{"message_id": id, "status": "DELIVERED"} for id in ids], partition=0)
    world.wait_until_consumed(process)
    assert counts(site) == (1, 200, 200, 200, 200)

    promote_behind(site, senders)
    world.wait(lambda: counts(site) == (201, 0, 0, 0, 400), process, 60, "the messages are back, and their receipts are counted")
    world.wait_until_consumed(process)
    world.assert_exact(process)
    assert "messages: 200 deleted" in world.installation.command("retire").stdout
    world.topic.send([{"message_id": id, "status": "OPENED"} for id in ids], partition=0)
    world.wait_until_consumed(process)
    assert counts(site) == (1, 200, 200, 200, 400)
    assert world.database.query("SELECT status, flags, sum(messages)::int FROM receiptd.campaign_retired GROUP BY 1, 2") == [(600, 0, 200)]
    world.audit()
    process.stop()


def test_a_restored_backup_replays_and_is_exact(site):
    process = site.start()
    site.send(5)
    site.wait_for_all(process)
    site.copy()
    site.send(7)
    site.wait_for_all(process)
    process.stop()
    site.first.kill()
    site.second.start()
    site.use(site.second)
    assert site.world.database.value(COUNTED) == 5
    process = site.start()
    site.wait_for_all(process)
    process.stop()


@pytest.mark.parametrize("how", ["running", "started again"])
def test_a_restore_to_a_point_in_time_is_a_new_timeline_and_exact(site, how):
    process = site.start()
    site.send(5)
    site.wait_for_all(process)
    site.copy()
    site.send(4)
    site.wait_for_all(process)
    site.first.value("SELECT pg_create_restore_point('before')::text")
    site.send(6)
    site.wait_for_all(process)
    if how != "running":
        process.stop()
    site.first.end(signal.SIGINT)  # fast: its WAL is whole
    site.restore_to("before")
    assert site.second.value("SELECT timeline_id FROM pg_control_checkpoint()") == 2
    if how != "running":
        process = site.start()
    site.wait_for_all(process)  # Kafka replays what came after the point; nobody is asked
    site.pages.wait_until_ready(60)
    site.send(3)
    site.wait_for_all(process)
    process.stop()
    site.second.kill()
    site.first.start()  # what was restored is the newer one from now on
    process = site.start(ready=False)
    assert "timeline 2" in accept(site, "--dry-run") and site.first.value(COUNTED, database="receipts") == 15
    process.stop()


def test_an_upgraded_server_is_accepted_on_purpose(site):
    process = site.start()
    site.send(5)
    site.wait_for_all(process)
    process.stop()
    before = site.first.value("SELECT system_identifier::text FROM pg_control_system()")
    site.first.end(signal.SIGINT)
    site.upgrade()
    process = site.start(ready=False)
    assert f"accepted: it may follow system {before}, timeline 1" in accept(site)
    site.pages.wait_until_ready(60)
    site.send(3)
    site.wait_for_all(process)
    process.stop()
    process = site.start()
    site.send(3)
    site.wait_for_all(process)
    process.stop()
    site.world.audit()


def test_the_same_data_on_another_system_is_accepted_on_purpose(site):
    """As a restored dump leaves it."""
    process = site.start()
    site.send(5)
    site.wait_for_all(process)
    process.stop()
    dump = site.directory / "one" / "dump"
    site.first.run("pg_dumpall", "-h", site.first.socket, "-p", site.first.port, "-U", "receiptd", "-f", dump)
    site.first.kill()
    site.second.create()
    site.second.run("psql", "-q", "-h", site.second.socket, "-p", site.second.port, "-U", "receiptd", "-d", "postgres", "-f", dump)
    site.use(site.second)
    process = site.start(ready=False)
    assert re.search(r"accepted: it may follow system \d+, timeline 1", accept(site))
    site.pages.wait_until_ready(60)
    site.send(3)
    site.wait_for_all(process)
    process.stop()
    assert "nothing to accept" in site.world.installation.command("positions", "accept-database").stdout
