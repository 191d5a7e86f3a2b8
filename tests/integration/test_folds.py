"""Folds: bursts become one publication, exactly once, whatever happens to those who publish."""

import collections
import random
import time

import psycopg
import pytest

from support import publications
from support.servers import Postgres

RULE = {"name": "campaigns", "group_key": ["campaign_id"], "window": "1s", "max_hold": "5s"}


@pytest.fixture
def create_folds(create_world, create_topic):
    """A world with one rule for campaigns; world.out is the topic of its publications."""

    def create(events=None, rule=None, **settings):
        out = create_topic(2)
        fold = {**RULE, **(rule or {}), "publish": {"kafka": {"topic": str(out)}}}
        world = create_world(events, folds=[fold], **settings)
        world.out = out
        return world

    return create


def published(world):
    return publications.read(world.brokers, world.out, 2)


def wait_until_quiet(world, process=None, timeout=90.0):
    world.wait(lambda: publications.is_quiet(world.database), process, timeout, "all folds published")


def assert_told(world):
    """The publications tell every change of the funnel, each once."""
    found = published(world)
    publications.assert_once(found)
    assert publications.statuses(found, "campaign_id") == publications.funnel(world.database)
    counts = publications.totals(world.database)["campaigns"]
    assert sum(p["events"] for p in found) == counts["events"]
    assert len(found) == counts["groups"] == sum(counts[c] for c in ("quiet", "hold", "full", "removed"))
    return found


def test_the_publications_tell_every_change_once(create_folds):
    world = create_folds(20_000, seed=21)
    process = world.installation.start()
    feeder = world.feed()
    world.wait_for_progress(process)
    world.insert(world.stream.late)
    feeder.join()
    world.finish(process)
    wait_until_quiet(world, process)
    found = assert_told(world)
    assert {p["cause"] for p in found} <= {"quiet", "hold"}
    process.stop()


def test_kills_restarts_and_rebalances_of_two_instances_lose_and_double_nothing(create_folds):
    world = create_folds(60_000, seed=22, rule={"window": "300ms", "max_hold": "1s"})
    feeder = world.feed(per_second=6_000)
    chance = random.Random(22)
    running = {name: world.installation.start(name) for name in "ab"}
    while feeder.is_alive():
        world.wait_for_progress()
        name = chance.choice("ab")
        if chance.random() < 0.6:
            running[name].kill()
        else:
            running[name].stop(60)
        time.sleep(chance.random() * 0.3)  # somebody is alone for a while, in whatever it was doing
        running[name] = world.installation.start(name)
    feeder.join()
    world.insert(world.stream.late)
    world.finish(timeout=120)
    wait_until_quiet(world)
    assert_told(world)
    for process in running.values():
        process.stop(60)


def test_a_database_that_crashes_and_goes_back_loses_and_doubles_nothing(create_folds, services):
    world = create_folds(30_000, seed=23, rule={"window": "300ms", "max_hold": "1s"})
    server = Postgres(services)
    process = world.installation.start()
    feeder = world.feed(per_second=6_000)
    for _ in range(2):
        world.wait_for_progress(process, 60)
        world.database.connection.close()
        server.stop_immediately()
        server.start()
        world.wait_for_progress(process, 60)
    feeder.join()
    world.insert(world.stream.late)
    world.finish(process, timeout=120)
    wait_until_quiet(world, process)
    assert_told(world)
    process.stop()


def test_a_failover_that_lost_claims_tells_again_under_the_same_ids(create_folds, create_database, services):
    world = create_folds(10_000, seed=24)
    world.insert(world.stream.late)
    records = list(world.stream.records())
    world.produce(records[: len(records) // 2])
    process = world.installation.start()
    world.finish(process)
    wait_until_quiet(world, process)
    process.stop()
    before = {p["id"] for p in published(world)}
    world.database.connection.close()
    copy = f"{world.database.name}_copy"
    with psycopg.connect(services.dsn, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{copy}" TEMPLATE "{world.database.name}"')

    world.produce(records[len(records) // 2 :])
    process = world.installation.start()
    world.finish(process)
    wait_until_quiet(world, process)
    process.stop()
    lost = {p["id"] for p in published(world)} - before
    assert lost

    # The copy knows nothing of the second half: Kafka does.
    world.database.connection.close()
    with psycopg.connect(services.dsn, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE "{world.database.name}" WITH (FORCE)')
        connection.execute(f'ALTER DATABASE "{copy}" RENAME TO "{world.database.name}"')
    process = world.installation.start()
    process.wait_for_log(r"the database has forgotten \d+ publications", 60)
    world.finish(process)
    wait_until_quiet(world, process)
    found = published(world)
    counts = collections.Counter(p["id"] for p in found)
    assert {id for id, n in counts.items() if n == 2} <= lost
    assert max(counts.values()) == 2
    told = {p["id"]: p for p in found}  # the later one of two counts
    publications.assert_once(told.values())
    assert publications.statuses(told.values(), "campaign_id") == publications.funnel(world.database)
    process.stop()
