"""Faults of PostgreSQL: it crashes, goes back, is promoted, full, locked, or maintained during the work."""

import errno
import os
import signal
import subprocess
import time

import psycopg

from faults.kinds import kind
from faults.lab import SEATS
from faults.servers import PASSWORD, ROLE, as_service
from support.wait import Timeout, wait_for


@kind("F10", "backends terminated at random")
def backends_terminated(cycle):
    for _ in range(cycle.random.randint(2, 8)):
        cycle.pause(0.02, 0.4)
        cycle.terminate(cycle.backends()[: cycle.random.randint(1, 3)])


@kind("F10", "every backend terminated, as often as it comes back")
def backends_terminated_on_sight(cycle):
    deadline = time.monotonic() + cycle.random.uniform(0.5, 2)
    while time.monotonic() < deadline:
        cycle.terminate(cycle.backends())
        time.sleep(cycle.random.uniform(0, 0.08))


def went_back(cycle, before):
    after = cycle.positions()
    if any(after.get(key, 0) < place for key, place in before.items()):
        cycle.notes.append("the database went back")


def crash(cycle, end):
    cycle.wait_for_receipts()
    cycle.pause()
    before = cycle.positions()
    end(cycle.lab.primary)
    cycle.pause(0, 0.3)
    cycle.lab.primary.start()
    went_back(cycle, before)


@kind("F11", "immediate stop: commits that were only in memory are lost")
def crashed(cycle):
    crash(cycle, lambda server: server.crash())


@kind("F11", "kill -9 of the postmaster")
def postmaster_killed(cycle):
    crash(cycle, lambda server: server.kill())


@kind("F11", "crashes again while it is still catching up")
def crashed_twice(cycle):
    crash(cycle, lambda server: server.crash())
    time.sleep(cycle.random.uniform(0, 0.6))
    cycle.lab.primary.crash()
    cycle.lab.primary.start()


@kind("F11", "a backend is killed by SIGKILL: the server throws all sessions out and recovers")
def backend_killed(cycle):
    cycle.wait_for_receipts()
    for pid in cycle.backends()[:1]:
        os.kill(pid, signal.SIGKILL)
    wait_for(cycle.lab.primary.answers, 30, "PostgreSQL answers")


@kind("F12", "fast restart")
def restarted(cycle):
    for _ in range(cycle.random.randint(1, 2)):
        cycle.pause()
        cycle.lab.primary.restart_fast()


@kind("F12", "away for seconds: connections are refused")
def away(cycle):
    cycle.pause()
    cycle.lab.primary.end(signal.SIGINT)
    time.sleep(cycle.random.uniform(0.5, 3))
    cycle.lab.primary.start()


def fail_over(cycle, end):
    """The standby stops receiving, the primary goes on for a while, then the standby takes over: a suffix is lost."""
    cycle.era.finish_rows()
    lab = cycle.lab
    lab.prepare_standby()
    senders = [pid for (pid,) in cycle.era.database.query("SELECT pid FROM pg_stat_replication")]
    for pid in senders:
        os.kill(pid, signal.SIGSTOP)
    cycle.pause(0.2, 1.5)
    before, old = cycle.positions(), lab.primary
    end(old, senders)
    lab.promote()
    cycle.era.database.forget()
    went_back(cycle, before)
    return old


def end_at_once(server, senders):
    server.signal(signal.SIGSTOP)
    for pid in senders:
        os.kill(pid, signal.SIGKILL)
    server.kill()


@kind("F13", "the primary dies, a replica that lags is promoted")
def promoted(cycle):
    fail_over(cycle, end_at_once)


@kind("F13", "the old primary freezes, its replica is promoted, the old one wakes up again")
def old_primary_comes_back(cycle):
    """The order of the dsn may name the old one first: its smaller timeline has to be refused."""
    frozen = []

    def freeze(server, senders):
        frozen.extend(server.freeze())

    old = fail_over(cycle, freeze)
    place = cycle.lab.places.index(old)
    for seat in SEATS:
        cycle.lab.pg_links[seat][place].reset()
        cycle.lab.pg_links[seat][place].silent = True  # as the kernel of a frozen machine
    query = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'receiptd/%%'"
    wait_for(lambda: cycle.value(query) > 0, 30, "somebody has found the new primary", details=cycle.era.group_log)
    cycle.must_move()
    old.thaw(frozen)
    for seat in SEATS:
        cycle.lab.pg_links[seat][place].heal()
    if cycle.random.random() < 0.7:
        cycle.terminate(cycle.backends())
    cycle.pause(0.3, 1.5)
    old.kill()


@kind("F14", "a copy of some seconds ago is put in place of the database")
def restored(cycle):
    cycle.era.finish_rows()
    cycle.wait_for_receipts()
    server = cycle.lab.primary
    copy = server.data.parent / "copy"
    server.end(signal.SIGINT)
    subprocess.run(as_service("cp", "-a", server.data, copy), check=True)
    server.start()
    cycle.pause(0.3, 1.5)
    before = cycle.positions()
    server.crash()
    server.remove()
    subprocess.run(as_service("mv", copy, server.data), check=True)
    server.start()
    went_back(cycle, before)


@kind("F17", "an operator holds the tables locked")
def locked(cycle):
    cycle.wait_for_receipts()
    with cycle.operator() as operator:
        operator.execute("BEGIN")
        table = cycle.random.choice(("message_inbox", "consumer_progress", "counter_delta", "parked_event"))
        mode = cycle.random.choice(("ACCESS EXCLUSIVE", "EXCLUSIVE", "SHARE"))
        operator.execute("SET lock_timeout = '5s'")
        operator.execute(f"LOCK TABLE receiptd.{table} IN {mode} MODE")
        time.sleep(cycle.random.uniform(0.3, 3))
        operator.execute("ROLLBACK")


@kind("F17", "the server stands still: all its processes stopped for seconds")
def server_frozen(cycle):
    cycle.wait_for_receipts()
    frozen = cycle.lab.primary.freeze()
    time.sleep(cycle.random.uniform(0.3, 3))
    cycle.lab.primary.thaw(frozen)


@kind("F18", "statements cancelled at random, as by statement_timeout")
def cancelled(cycle):
    for _ in range(cycle.random.randint(5, 30)):
        time.sleep(cycle.random.uniform(0, 0.1))
        for pid in cycle.backends()[:2]:
            cycle.value("SELECT pg_cancel_backend(%s)", pid)


@kind("F18", "deadlocks: the platform locks rows from the other end")
def deadlocks(cycle):
    count = "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()"
    before, deadline = cycle.value(count), time.monotonic() + cycle.random.uniform(1, 2.5)
    first = f"m-{cycle.era.first_message - len(cycle.era.stream.messages):07d}"
    with cycle.operator() as operator:
        while time.monotonic() < deadline:
            try:
                operator.execute("SELECT FROM receiptd.message_inbox WHERE message_id >= %s"
                                 " ORDER BY message_id DESC FOR UPDATE", (first,))
            except psycopg.errors.DeadlockDetected:
                pass
    cycle.execute("SELECT pg_stat_force_next_flush()")
    cycle.notes.append(f"{cycle.value(count) - before} deadlocks")


@kind("F18", "single rows held for longer than lock_timeout")
def rows_held(cycle):
    cycle.wait_for_receipts()
    with cycle.operator() as operator:
        for _ in range(cycle.random.randint(1, 2)):
            operator.execute("BEGIN")
            operator.execute("SELECT FROM receiptd.message_inbox ORDER BY random() LIMIT 50 FOR UPDATE")
            if cycle.random.random() < 0.5:
                operator.execute("SELECT FROM receiptd.consumer_progress ORDER BY random() LIMIT 1 FOR UPDATE")
            time.sleep(cycle.random.uniform(0.2, 1.8))
            operator.execute("ROLLBACK")


@kind("F19 F41", "poison: the database refuses rows for their content, and an instance dies of something else")
def poison(cycle):
    """Era.poison chose the refused rows before the stream began; undecodable records are in every stream."""
    for _ in range(cycle.random.randint(1, 3)):
        cycle.pause(0.3, 0.8)
        seat = cycle.victim()
        seat.kill()
        seat.start()


DRIFTS = (
    ("ALTER TABLE receiptd.parked_event RENAME TO away", "ALTER TABLE receiptd.away RENAME TO parked_event"),
    ("ALTER TABLE receiptd.message_inbox RENAME flags TO away", "ALTER TABLE receiptd.message_inbox RENAME away TO flags"),
    ("ALTER TABLE receiptd.consumer_progress RENAME TO away", "ALTER TABLE receiptd.away RENAME TO consumer_progress"),
    ("ALTER TABLE receiptd.message_inbox ADD COLUMN more int DEFAULT 7", "ALTER TABLE receiptd.message_inbox DROP COLUMN more"),
    ("ALTER SCHEMA receiptd RENAME TO away", "ALTER SCHEMA away RENAME TO receiptd"),
)


@kind("F20", "the schema drifts: a table or column is away for a while")
def drift(cycle):
    cycle.wait_for_receipts()
    there, back = cycle.random.choice(DRIFTS + cycle.era.more_drifts)
    with cycle.era.database.connect() as operator:
        operator.execute(there)
        time.sleep(cycle.random.uniform(0.2, 1.5))
        operator.execute(back)


@kind("F20", "rights taken away and given back")
def revoked(cycle):
    cycle.wait_for_receipts()
    what = cycle.random.choice(("UPDATE ON receiptd.message_inbox", "INSERT ON receiptd.counter_delta",
                                "UPDATE ON receiptd.consumer_progress", "SELECT ON receiptd.path_delta"))
    cycle.execute(f"REVOKE {what} FROM {ROLE}")
    time.sleep(cycle.random.uniform(0.2, 1.5))
    cycle.execute(f"GRANT {what} TO {ROLE}")


@kind("F20", "the database can only be read (25006)")
def read_only(cycle):
    cycle.wait_for_receipts()
    cycle.execute(f"ALTER ROLE {ROLE} SET default_transaction_read_only = on")
    cycle.terminate(cycle.backends())
    time.sleep(cycle.random.uniform(0.2, 1.5))
    cycle.execute(f"ALTER ROLE {ROLE} RESET default_transaction_read_only")
    cycle.terminate(cycle.backends())


@kind("F20", "the disk of PostgreSQL is full", needs="disk")
def disk_full(cycle):
    filler, complaint = cycle.lab.disk / "filler", "No space left on device"
    cycle.wait_for_receipts()
    before = cycle.lab.primary.log.read_text(errors="replace").count(complaint)
    with open(filler, "wb") as file:
        size = 1 << 28
        while size >= 4096:
            try:
                os.posix_fallocate(file.fileno(), file.tell(), size)
                file.seek(size, os.SEEK_CUR)
            except OSError as error:
                if error.errno != errno.ENOSPC:
                    raise
                size //= 2
    time.sleep(cycle.random.uniform(0.5, 2.5))
    filler.unlink()
    complaints = cycle.lab.primary.log.read_text(errors="replace").count(complaint) - before
    cycle.notes.append(f"PostgreSQL complained {complaints} times")
    if not cycle.lab.primary.running:
        cycle.notes.append("PostgreSQL ended for want of room")


@kind("F22", "no connections left (53300)")
def too_many_connections(cycle):
    hogs = []
    try:
        cycle.pause(0, 0.3)
        cycle.terminate(cycle.backends())
        while True:
            try:
                hogs.append(psycopg.connect(cycle.era.database.dsn, user=ROLE))
            except psycopg.OperationalError:
                break
        cycle.terminate(cycle.backends())
        deadline = time.monotonic() + cycle.random.uniform(0.5, 2)
        while time.monotonic() < deadline:
            try:
                hogs.append(psycopg.connect(cycle.era.database.dsn, user=ROLE))
            except psycopg.OperationalError:
                time.sleep(0.02)
    finally:
        for hog in hogs:
            hog.close()


@kind("F22", "the password is wrong for a while (28P01)")
def wrong_password(cycle):
    cycle.pause(0, 0.5)
    cycle.execute(f"ALTER ROLE {ROLE} PASSWORD 'another'")
    cycle.terminate(cycle.backends())
    time.sleep(cycle.random.uniform(0.3, 1.5))
    cycle.execute(f"ALTER ROLE {ROLE} PASSWORD '{PASSWORD}'")


@kind("F23", "somebody deletes a row of positions: consumption stops, and goes on when it is put back")
def position_deleted(cycle):
    cycle.wait_for_receipts()
    with cycle.era.database.connect() as operator:
        cursor = operator.execute(
            "DELETE FROM receiptd.consumer_progress WHERE (topic, partition, lane) ="
            " (SELECT topic, partition, lane FROM receiptd.consumer_progress ORDER BY random() LIMIT 1) RETURNING *")
        row, columns = cursor.fetchone(), [column.name for column in cursor.description]
        try:
            wait_for(lambda: any("stopped consuming" in seat.process.log() for seat in cycle.era.occupied()), 8,
                     "somebody says so")
        except Timeout:
            cycle.notes.append("nobody noticed in time")
        for seat in cycle.era.occupied():
            seat.kill()
        operator.execute(f"INSERT INTO receiptd.consumer_progress ({', '.join(columns)})"
                         f" VALUES ({', '.join(['%s'] * len(columns))})", row)
    for seat in cycle.era.seats.values():
        if seat.process is not None:
            seat.start()


@kind("F24", "VACUUM FULL, CLUSTER, REINDEX, ANALYZE of the hot tables")
def maintenance(cycle):
    cycle.wait_for_receipts()
    tables = ["message_inbox", "consumer_progress", "counter_delta", "campaign_funnel_total", "parked_event"]
    with cycle.operator() as operator:
        for _ in range(cycle.random.randint(2, 5)):
            table = "receiptd." + cycle.random.choice(tables)
            command = cycle.random.choice(("VACUUM FULL", "REINDEX TABLE", "ANALYZE", "VACUUM (FREEZE)", "CHECKPOINT"))
            try:
                operator.execute("CHECKPOINT" if command == "CHECKPOINT" else f"{command} {table}")
            except psycopg.errors.DeadlockDetected:
                pass


@kind("F24", "an open snapshot all the time")
def open_snapshot(cycle):
    with cycle.operator() as operator:
        operator.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        operator.execute("SELECT count(*) FROM receiptd.message_inbox")
        cycle.pause(1, 2.5)
        operator.execute("ROLLBACK")
