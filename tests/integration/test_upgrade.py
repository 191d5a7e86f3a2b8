"""The release before and the present code on one database: updated one by one under load, taken back, never inexact."""

import contextlib
import os
import subprocess

import pytest

from oracle import traffic
from support import release
from test_rebalance import Group


@pytest.fixture(scope="module")
def before():
    return release.build(release.newest())


# The release before ignores wrong flags, overrides of "Email" and organisations; this one refuses the first and the last where they
# are wrong, and knows the second. That one counts every open of a machine, this one by its policy.
# That one refuses a byte order mark, this one reads over it.
FLAG_LISTS = ('["COMPLAINED"]', '["AUTORESPONDED","COMPLAINED"]', '["UNSUBSCRIBED","UNSUBSCRIBED"]', '[]', 'null')
CHANNELS = ("sms", "email", "email", "whatsapp", "push", "email", None)


@pytest.fixture
def create_old_world(create_world, before, monkeypatch):
    """A world in which the release before has made the schema; the group has a name of its own."""
    monkeypatch.setattr(traffic, "FLAG_LISTS", FLAG_LISTS)
    monkeypatch.setattr(traffic, "CHANNELS", CHANNELS)
    monkeypatch.setattr(traffic, "MARKS", ())

    def create(*arguments, **settings):
        world = create_world(*arguments, migrate=False, traffic={"crossing": 0}, **settings)
        # One file for both: only keys that the release before knows, too.
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
    """After the migration the binary alone is taken back: the schema stays, and the release before runs on it."""
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


def load_old_schema(database):
    """The dump needs no old binary: what it holds is what stands in databases out there."""
    subprocess.run(["psql", "-q", "-X", "-v", "ON_ERROR_STOP=1", "-d", database.dsn, "-f", release.newest() / "schema.sql"],
                   check=True, stdout=subprocess.DEVNULL, env=dict(os.environ))


def test_message_ids_of_runs_get_the_collation_that_gives_way_and_rights_on_their_view_stay(receiptd, database):
    load_old_schema(database)
    database.execute("GRANT SELECT ON receiptd.action_deferred TO pg_monitor WITH GRANT OPTION; GRANT SELECT ON receiptd.action_deferred TO PUBLIC")
    rights = "SELECT relacl::text, relowner FROM pg_class WHERE oid = 'receiptd.action_deferred'::regclass"
    before = database.query(rights)
    database.execute("INSERT INTO receiptd.action (run_id, pipeline_id, step, lane, subject_hash, org_id, message_id, awaits, perform_at)"
                     " VALUES (1, 1, 0, 0, 0, 'o', 'm', 700, now())")
    receiptd.migrate()
    collations = """SELECT l.collname FROM pg_attribute a JOIN pg_collation l ON l.oid = a.attcollation
                    WHERE a.attrelid = ANY ('{receiptd.run,receiptd.action,receiptd.action_deferred,receiptd.run_intent}'::regclass[])
                      AND a.attname IN ('message_id', 'messages')"""
    assert database.query(collations) == [("default",)] * 4
    assert database.query(rights) == before
    assert database.value("SELECT message_id FROM receiptd.action WHERE message_id = 'm' COLLATE \"C\" AND status = 'pending' AND awaits IS NOT NULL") == "m"
    assert "nothing to do" in receiptd.command("migrate", "--dry-run").stdout


def test_the_schema_of_the_release_before_is_brought_forward_whole(create_world, database):
    world = create_world(5_000, seed=73, migrate=False)
    load_old_schema(database)
    world.insert(world.stream.early)
    assert world.database.value("SELECT count(*) FROM receiptd.campaign_funnel_delta") > 0, "deltas of the release before wait to be rolled up"
    world.installation.migrate()
    again = world.installation.command("migrate", "--dry-run")
    assert "nothing to do" in again.stdout
    world.insert(world.stream.late)
    world.produce()
    process = world.installation.start()
    world.finish(process)
    process.stop()
