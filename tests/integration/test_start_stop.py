"""Starting against what is not as it should be, stopping under load: clear words, no loss, recovery without restart."""

import signal
import time
from contextlib import contextmanager

import psycopg
import pytest

from support.operations import Operations

EX_CONFIG = 78


def test_sigterm_under_load_ends_in_time_and_the_next_one_goes_on_exactly(create_world):
    world = create_world(120_000, seed=81, batch={"max_events": 500})
    world.insert(world.stream.late)
    feeder = world.feed(per_second=15_000)
    for turn in range(4):
        process = world.installation.start(str(turn))
        world.wait_for_progress(process)
        time.sleep(world.random.uniform(0, 0.5))
        began = time.monotonic()
        process.stop()
        assert time.monotonic() - began < 30
    feeder.join()
    process = world.installation.start("last")
    world.finish(process)
    process.stop()


@contextmanager
def hanging(world):
    """A process whose transactions are in flight and will not come back."""
    process = world.installation.start("first")
    world.wait_until_consumed(process)
    with world.database.connect() as operator, operator.transaction():
        operator.execute("LOCK TABLE receiptd.message_inbox IN ACCESS EXCLUSIVE MODE")
        world.produce()
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'receiptd.message_inbox'::regclass"
        world.wait(lambda: world.database.value(waiting) > 0, process, 20, "the lanes hang")
        yield process


def test_sigterm_while_the_database_hangs_ends_within_the_deadline(create_world):
    patient = {"lock_timeout": "30s", "zombie_timeout": "30s"}
    world = create_world(5_000, seed=82, shutdown={"deadline": "2s"}, postgres=patient)
    world.insert(world.stream.late)
    with hanging(world) as process:
        began = time.monotonic()
        process.signal(signal.SIGTERM)
        process.expected_status = process.wait(25)
        assert process.expected_status >= 0 and 1 < time.monotonic() - began < 20
    process = world.installation.start("second")
    world.finish(process)
    process.stop()


def test_it_is_not_ready_while_the_group_still_waits_for_a_killed_member(create_world):
    slow = {"properties": {"session.timeout.ms": "6000", "heartbeat.interval.ms": "1000"}}
    world = create_world(1_000, seed=86, kafka=slow, http={"listen": "127.0.0.1:0"})
    world.insert(world.stream.late)
    first = world.installation.start("first")
    Operations(first).wait_until_ready()
    first.kill()
    world.produce()
    joining = 0
    process = world.installation.start("second")
    pages = Operations(process)
    while (answer := pages.get("/readyz")).status != 200:
        joining += "joining the consumer group" in answer.json["reasons"]
        assert world.database.value("SELECT count(*) FROM receiptd.message_inbox WHERE status > 0") == 0
        time.sleep(0.1)
    assert joining > 0
    assert len(pages.get("/statusz").json["assignment"]["partitions"]) == world.topic.partitions
    world.finish(process)
    process.stop()


def test_a_second_sigterm_is_immediate(create_world):
    patient = {"lock_timeout": "30s", "zombie_timeout": "30s"}
    world = create_world(5_000, seed=83, shutdown={"deadline": "60s"}, postgres=patient)
    world.insert(world.stream.late)
    with hanging(world) as process:
        process.signal(signal.SIGTERM)
        process.wait_for_log("stopping")
        process.signal(signal.SIGTERM)
        began = time.monotonic()
        process.expected_status = process.wait(25)
        assert time.monotonic() - began < 20
    process = world.installation.start("second")
    world.finish(process)
    process.stop()


def test_a_missing_schema_is_named_and_waited_for(create_world):
    world = create_world(5_000, seed=84, migrate=False)
    process = world.installation.start()
    process.wait_for_log(r"not ready.*")
    process.wait_for_log(r"HINT.*receiptd migrate")
    world.installation.migrate()
    world.insert(world.stream.platform)
    world.produce()
    world.finish(process)
    process.stop()


def test_a_read_only_database_is_named_and_waited_for(create_world):
    world = create_world(60_000, seed=85)
    world.insert(world.stream.late)
    process = world.installation.start()
    feeder = world.feed(per_second=15_000)
    world.wait_for_progress(process)
    set_read_only(world, "on")
    process.wait_for_log(r"read-only")
    time.sleep(1)
    set_read_only(world, "off")
    feeder.join()
    world.finish(process)
    process.stop()


def set_read_only(world, value):
    with psycopg.connect(world.topic.services.dsn, autocommit=True) as connection:
        connection.execute(f"ALTER DATABASE {world.database.name} SET default_transaction_read_only = {value}")
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = %s AND application_name LIKE 'receiptd/%%'",
            [world.database.name],
        )


@pytest.fixture
def role(database, services):
    """A role without any right beyond its own objects."""
    name = f"role_{database.name}"
    database.execute(f"CREATE ROLE {name} LOGIN CREATEROLE")
    database.execute(f"GRANT CREATE ON DATABASE {database.name} TO {name}")
    yield name
    database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", name)
    database.execute(f"DROP OWNED BY {name} CASCADE")
    database.execute(f"DROP ROLE {name}")


def test_a_permission_that_is_taken_away_is_named_and_waited_for(create_world, role):
    world = create_world(60_000, seed=86, migrate=False)
    dsn = psycopg.conninfo.make_conninfo(world.database.dsn, user=role)
    world.installation.configure(postgres={"dsn": dsn})
    world.installation.migrate()
    world.insert(world.stream.platform)
    process = world.installation.start()
    feeder = world.feed(per_second=15_000)
    world.wait_for_progress(process)
    world.database.execute(f"REVOKE UPDATE ON receiptd.message_inbox FROM {role}")
    process.wait_for_log(r"permission denied")
    time.sleep(1)
    world.database.execute(f"GRANT UPDATE ON receiptd.message_inbox TO {role}")
    feeder.join()
    world.finish(process)
    process.stop()


def test_a_number_of_lanes_that_is_not_the_pinned_one_refuses_to_start(create_world):
    world = create_world(2_000, seed=87)
    world.insert(world.stream.late)
    world.produce()
    process = world.installation.start("eight")
    world.finish(process)
    process.stop()
    world.installation.configure(lanes=4)
    process = world.installation.start("four")
    assert process.wait() == EX_CONFIG
    assert "lanes" in process.log() and "HINT" in process.log()
    world.assert_exact()


def test_a_ladder_that_is_not_the_pinned_one_refuses_to_start(create_world):
    world = create_world(1_000, seed=88)
    world.insert(world.stream.late)
    world.produce()
    process = world.installation.start("default")
    world.finish(process)
    process.stop()
    statuses = [{"name": "TARGETED", "code": 0}, {"name": "SENT", "code": 300, "parent": "TARGETED"}]
    text = world.installation.config_path.read_text()
    text += "ladder:\n  statuses:\n" + "".join(
        f"    - {{{', '.join(f'{key}: {value}' for key, value in status.items())}}}\n" for status in statuses
    )
    world.installation.write_config(text)
    process = world.installation.start("other")
    assert process.wait() == EX_CONFIG
    assert "ladder" in process.log()
    world.assert_exact()


@pytest.mark.parametrize("when", ["running", "stopped"])
def test_a_progress_row_that_somebody_deleted_stops_the_consumer(create_world, when):
    world = create_world(2_000, seed=89)
    world.insert(world.stream.late)
    world.produce()
    process = world.installation.start("before")
    world.finish(process)
    if when == "stopped":
        process.stop()
    world.database.execute("DELETE FROM receiptd.consumer_progress WHERE partition = 3 AND lane = 5")
    if when == "stopped":
        process = world.installation.start("after")
    process.wait_for_log(r"stopped consuming: .*consumer_progress.*partition 3.*HINT")
    assert process.running
    time.sleep(1)
    assert world.database.value("SELECT count(*) FROM receiptd.consumer_progress") == 8 * 8 - 1
    process.stop()


def test_a_wrong_password_is_named_without_showing_it(create_world):
    world = create_world(1_000, seed=90)
    if world.database.tcp_dsn is None:
        pytest.skip("RECEIPTD_TEST_TCP_DSN is not set: nothing asks for a password")
    secret = "not-the-password"
    dsn = psycopg.conninfo.make_conninfo(world.database.tcp_dsn, password=secret)
    world.installation.configure(postgres={"dsn": dsn})
    process = world.installation.start()
    process.wait_for_log(r"HINT.*password")
    assert secret not in process.log()
    process.stop()


@pytest.mark.parametrize("command", ["run", "intake"])
def test_signals_that_come_while_all_is_closed_do_not_kill(create_world, create_topic, command):
    """The loop's handlers end before the process does."""
    topics = {"topic": str(create_topic(1)), "dead_letter_topic": str(create_topic(1))}
    world = create_world(partitions=2, intake={"listen": "127.0.0.1:0", **topics, "accounts": [
        {"name": "acme", "gateway": "twilio", "org_id": "o1", "verify": "off"}]})
    for turn in range(3):
        process = world.installation.start(f"{command}-{turn}", command=command)
        process.wait_for_log('msg="ready"')
        process.signal(signal.SIGTERM)
        process.wait_for_log("stopping: SIGTERM")
        process.wait_for_log("^time=.*level=info component=operate msg=\"events=" if command == "run" else "stopping")
        while process.running:
            process.signal(signal.SIGTERM)
        process.expected_status = process.wait()
        assert process.expected_status in (0, 75)
