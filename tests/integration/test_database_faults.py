"""PostgreSQL crashes, goes back, kicks us out, is locked or held by the dead: nothing is lost, nothing is doubled."""

import time
from contextlib import contextmanager

import psycopg
import pytest

from support.servers import Postgres
from support.wait import wait_for

BACKENDS = """
    SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND application_name LIKE 'receiptd/%' ORDER BY random()
"""


@pytest.fixture
def postgres(services):
    """The session's server, to be crashed; flushes as late as it can, so that a crash takes a lot with it."""
    server = Postgres(services)

    def set_all(*settings):
        with psycopg.connect(services.dsn, autocommit=True) as connection:
            for setting in settings:
                connection.execute(f"ALTER SYSTEM {setting}")
            connection.execute("SELECT pg_reload_conf()")

    set_all("SET wal_writer_delay = '10s'", "SET wal_writer_flush_after = '1GB'")
    yield server
    if not server.answers():
        server.start()
    set_all("RESET wal_writer_delay", "RESET wal_writer_flush_after")


def crash(world, server):
    """Returns whether the crash took some positions back."""
    before = positions(world)
    world.database.connection.close()
    server.stop_immediately()
    server.start()
    after = positions(world)
    return any(after[key] < before[key] for key in before)


def positions(world):
    return dict(world.database.query("SELECT (partition, lane)::text, next_offset FROM receiptd.consumer_progress"))


@pytest.mark.alone
@pytest.mark.slow
def test_a_database_that_crashes_and_goes_back_is_exact(create_world, postgres):
    world = create_world(200_000, seed=51, batch={"max_events": 1000})
    world.insert(world.stream.late)
    process = world.installation.start()
    feeder = world.feed(per_second=10_000)
    rewound = 0
    for turn in range(4):
        world.wait_for_progress(process)
        time.sleep(world.random.uniform(0.2, 1.5))
        rewound += crash(world, postgres)
    assert rewound > 0, "no crash took anything with it: the test has no teeth"
    feeder.join()
    world.finish(process, timeout=90)
    process.stop()


@pytest.mark.alone
def test_a_quiet_lane_notices_that_the_database_went_back(create_world, postgres):
    """Nothing is in flight and nothing more comes: what the crash took has to be read again all the same."""
    world = create_world(3_000, seed=52)
    world.insert(world.stream.late)
    process = world.installation.start()
    rewound = 0
    for turn in range(3):
        world.produce()
        world.wait_until_consumed(process)
        rewound += crash(world, postgres)
    assert rewound > 0, "no crash took anything with it: the test has no teeth"
    world.finish(process)
    process.stop()


@pytest.mark.alone
def test_a_database_that_went_back_before_a_restart_is_exact(create_world, postgres):
    world = create_world(20_000, seed=53)
    world.insert(world.stream.late)
    world.produce()
    first = world.installation.start("first")
    world.wait_until_consumed(first)
    world.database.connection.close()
    postgres.stop_immediately()
    first.kill()
    postgres.start()
    second = world.installation.start("second")
    world.finish(second)
    second.stop()


@pytest.mark.slow
def test_backends_that_are_terminated_at_random_are_exact(create_world):
    world = create_world(120_000, seed=54, batch={"max_events": 500}, postgres={"connections": 4})
    process = world.installation.start()
    feeder = world.feed(per_second=12_000)
    world.insert(world.stream.late)
    killed = 0
    while feeder.is_alive():
        for (pid,) in world.database.query(BACKENDS)[: world.random.randint(1, 3)]:
            killed += world.database.value("SELECT pg_terminate_backend(%s)", pid)
        time.sleep(world.random.uniform(0.05, 0.6))
    feeder.join()
    assert killed >= 10
    world.finish(process)
    process.stop()


@contextmanager
def zombie(world, kind):
    """A client of our role that holds every fence row of partition 0 and will never say anything again.

    In the middle of its transaction, or, like an instance that is stopped, after all of it was sent: it has moved the
    positions and changed messages, its results fill the socket, and nobody reads them.
    """
    hold = "UPDATE receiptd.consumer_progress SET next_offset = next_offset + 1 WHERE partition = 0"
    batch = "UPDATE receiptd.message_inbox SET prev_status = status, status = 800 WHERE status < 800"
    client = psycopg.pq.PGconn.connect(f"{world.database.dsn} application_name=receiptd/zombie/lanes-0".encode())
    try:
        pid = client.backend_pid
        if kind == "idle in transaction":
            client.exec_(f"BEGIN; {hold}".encode())
        else:  # one implicit transaction, as a lane's is
            client.send_query(f"{hold}; {batch}; SELECT repeat('x', 1000000) FROM generate_series(1, 50)".encode())
            client.flush()
            query = "SELECT wait_event = 'ClientWrite' FROM pg_stat_activity WHERE pid = %s"
            wait_for(lambda: world.database.value(query, pid), 10, "the zombie is stuck with unread results")
        yield pid
    finally:
        client.finish()


@pytest.mark.parametrize("kind", ["idle in transaction", "results not read"])
def test_a_zombie_that_holds_the_fence_is_evicted_and_the_lane_goes_on(create_world, kind):
    world = create_world(10_000, seed=55, partitions=2)
    world.insert(world.stream.late)
    process = world.installation.start()
    world.produce()
    world.wait_until_consumed(process)
    with zombie(world, kind) as pid:
        world.produce()
        process.wait_for_log(f"(waits for|ended) backend {pid} ", 30)  # a look at pg_stat_activity may miss it
        world.wait_until_consumed(process, timeout=30)
        assert not world.database.query("SELECT FROM pg_stat_activity WHERE pid = %s", pid)
    world.finish(process)
    process.stop()


def test_a_zombie_is_evicted_where_nobody_waits_long_for_a_lock(create_world):
    """One lane on each connection, so that no transaction waits behind another one, and none for longer than lock_timeout."""
    world = create_world(1_000, seed=56, partitions=2, lanes=2, postgres={"connections": 2, "lock_timeout": "600ms"})
    world.insert(world.stream.late)
    process = world.installation.start()
    world.produce()
    world.wait_until_consumed(process)
    with zombie(world, "idle in transaction") as pid:
        world.produce()
        process.wait_for_log(f"(waits for|ended) backend {pid} ", 30)  # for 600 ms at a time, which a look at pg_stat_activity may miss
        world.wait_until_consumed(process, timeout=20)
        assert not world.database.query("SELECT FROM pg_stat_activity WHERE pid = %s", pid)
    world.finish(process)
    process.stop()


@pytest.fixture
def operator(database):
    """A connection of another role, with all rights."""
    role = f"operator_{database.name}"
    database.execute(f"CREATE ROLE {role} SUPERUSER LOGIN")
    connection = database.connect(user=role)
    yield connection
    connection.close()
    database.execute(f"DROP ROLE {role}")


def test_an_operators_lock_is_waited_for_and_not_broken(create_world, operator):
    world = create_world(20_000, seed=56)
    process = world.installation.start()
    feeder = world.feed()
    world.wait_for_progress(process)
    with operator.transaction():
        operator.execute("LOCK TABLE receiptd.message_inbox IN ACCESS EXCLUSIVE MODE")
        time.sleep(8)
        assert operator.execute("SELECT count(*) FROM receiptd.message_inbox").fetchone()[0] > 0
        assert process.running
    world.insert(world.stream.late)
    feeder.join()
    world.finish(process)
    process.stop()


def test_the_platforms_own_updates_do_not_disturb(create_world, operator):
    """Bulk updates in any order: deadlocks are possible, and retried."""
    world = create_world(30_000, seed=57)
    world.database.execute("ALTER TABLE receiptd.message_inbox ADD COLUMN note text")
    process = world.installation.start()
    feeder = world.feed(per_second=15_000)
    world.insert(world.stream.late)
    while feeder.is_alive():
        try:
            operator.execute("UPDATE receiptd.message_inbox SET note = 'x' WHERE random() < 0.02")
        except psycopg.errors.DeadlockDetected:
            pass
    feeder.join()
    world.finish(process)
    process.stop()


@pytest.mark.alone
def test_a_database_that_is_away_at_the_start_is_waited_for(create_world, postgres):
    world = create_world(5_000, seed=58)
    world.insert(world.stream.late)
    world.produce()
    world.database.connection.close()
    postgres.stop_immediately()
    process = world.installation.start()
    process.wait_for_log(r"not ready")
    time.sleep(1)
    assert process.running
    postgres.start()
    world.finish(process)
    process.stop()
