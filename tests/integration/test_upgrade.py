"""The build before and the present one on one database: updated one by one under load, taken back, never inexact."""

import contextlib

import pytest

from support import release
from test_rebalance import Group

pytestmark = pytest.mark.xdist_group("upgrade")  # one worker waits for the build before, and the others do not


@pytest.fixture(scope="module")
def before():
    return release.build()


@pytest.fixture
def create_old_world(create_world, before):
    """A world in which the build before has made the schema; the group has a name of its own."""

    def create(*arguments, **settings):
        world = create_world(*arguments, migrate=False, **settings)
        # One file for both: only keys that the build before knows, too.
        world.installation.configure(kafka={"group": "receiptd-" + str(world.topic)})
        with release.running(before):
            world.installation.migrate()
        world.insert(world.stream.early)
        return world, Group(world)

    return create


def start(world, name, program=None):
    with release.running(program) if program else contextlib.nullcontext():
        return world.installation.start(name)


@pytest.mark.slow
def test_a_rolling_update_under_load_is_exact(create_old_world, before):
    world, group = create_old_world(200_000, seed=71, batch={"max_events": 1000})
    first, second = start(world, "old-a", before), start(world, "old-b", before)
    feeder = world.feed(per_second=8_000)
    group.wait_for(2, first, second)
    world.wait_for_progress(first)
    world.insert(world.stream.late)
    world.installation.migrate()  # forward, while both old ones consume
    world.wait_for_progress(first)
    second.stop()
    second = start(world, "new-b")
    group.wait_for(2, first, second)
    world.audit()
    world.wait_for_progress(second)
    first.kill()  # the update of this host is less gentle
    first = start(world, "new-a")
    group.wait_for(2, first, second)
    world.wait_for_progress(first)
    assert world.is_feeding(), "the stream ended before the update did: the test has no teeth"
    feeder.join()
    world.finish(first, timeout=90)
    for process in (first, second):
        process.stop()


@pytest.mark.slow
def test_a_roll_back_under_load_is_exact(create_old_world, before):
    """After the migration the binary alone is taken back: the schema stays, and the build before runs on it."""
    world, group = create_old_world(110_000, seed=72, batch={"max_events": 1000})
    world.installation.migrate()
    world.insert(world.stream.late)
    first, second = start(world, "new-a"), start(world, "new-b")
    feeder = world.feed(per_second=8_000)
    group.wait_for(2, first, second)
    world.wait_for_progress(first)
    first.stop()
    first = start(world, "old-a", before)
    group.wait_for(2, first, second)
    world.wait_for_progress(first)
    second.kill()
    second = start(world, "old-b", before)
    group.wait_for(2, first, second)
    feeder.join()
    world.finish(second, timeout=90)
    for process in (first, second):
        process.stop()


def test_the_schema_of_the_build_before_is_brought_forward_whole(create_world, before):
    world = create_world(5_000, seed=73, migrate=False)
    with release.running(before):
        world.installation.migrate()
    world.insert(world.stream.early)
    assert world.database.value("SELECT count(*) FROM receiptd.counter_delta") > 0, "deltas of the build before wait to be rolled up"
    world.installation.migrate()
    again = world.installation.command("migrate", "--dry-run")
    assert "nothing to do" in again.stdout
    world.insert(world.stream.late)
    world.produce()
    process = world.installation.start()
    world.finish(process)
    process.stop()
