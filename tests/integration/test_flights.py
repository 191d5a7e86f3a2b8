"""Between the two flights of a transaction: rows are locked, the daemon counts. What others wait for, and for how long."""

import signal
import time

import psycopg
import pytest

from support.wait import wait_for

BOUND = 30  # seconds: idle_in_transaction_session_timeout of src/postgres/conninfo.c, as docs/architecture.md says
LANES = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND application_name LIKE 'receiptd/%/lanes-%' AND "
IDLE = LANES + "state = 'idle in transaction'"
# What waits for the rest of a flight, of which the process has sent a part, says "active".
WORKING = LANES + "state = 'active' AND wait_event IS DISTINCT FROM 'ClientRead'"


def held_messages(world):
    """Ids of messages that some other session has locked."""
    return [id for (id,) in world.database.query(
        "SELECT message_id FROM receiptd.message_inbox EXCEPT"
        " SELECT s.message_id FROM (SELECT message_id FROM receiptd.message_inbox FOR UPDATE SKIP LOCKED) s")]


def stop_between_flights(world, process):
    """Stops the daemon, and again until a session of it is idle in a transaction that holds messages. Returns these."""
    for _ in range(400):
        process.signal(signal.SIGSTOP)
        wait_for(lambda: not world.database.query(WORKING), 10, "what was sent is executed")
        if world.database.query(IDLE):
            held = held_messages(world)
            if held:
                return held
        process.signal(signal.SIGCONT)
        time.sleep(0.005)
    pytest.fail("the daemon was never stopped between two flights")


def update(world, message):
    """The platform's own UPDATE; returns how long it waited."""
    began = time.monotonic()
    with psycopg.connect(world.database.dsn) as connection:
        connection.execute("SET lock_timeout = %s" % (2000 * BOUND))
        connection.execute("UPDATE receiptd.message_inbox SET created_at = created_at WHERE message_id = %s", (message,))
    return time.monotonic() - began


@pytest.mark.slow
def test_the_platforms_update_waits_for_a_stopped_daemon_no_longer_than_the_bound(create_world):
    world = create_world(40_000, seed=58)
    world.insert(world.stream.late)
    process = world.installation.start()
    feeder = world.feed(per_second=4_000)
    world.wait_for_progress(process)
    held = stop_between_flights(world, process)
    waited = update(world, held[0])
    assert waited < BOUND + 5
    assert not world.database.query(IDLE), "the server has ended the session"
    process.signal(signal.SIGCONT)
    feeder.join()
    world.finish(process, timeout=90)
    process.stop()


@pytest.mark.parametrize("how", ["killed", "terminated"])
def test_a_transaction_that_ends_between_its_flights_leaves_nothing(create_world, how):
    world = create_world(20_000, seed=59)
    world.insert(world.stream.late)
    process = world.installation.start()
    feeder = world.feed(per_second=4_000)
    world.wait_for_progress(process)
    for _ in range(3):
        stop_between_flights(world, process)
        if how == "killed":
            process.kill()
            process = world.installation.start()
        else:
            for (pid,) in world.database.query(IDLE):
                world.database.value("SELECT pg_terminate_backend(%s)", pid)
            process.signal(signal.SIGCONT)
        world.wait_for_progress(process)
    feeder.join()
    world.finish(process, timeout=90)
    process.stop()
