"""The promise of the whole: whatever comes, every status, flag, counter, position, parked and dead letter is exact."""

import itertools
import json
import re

import pytest

from oracle.traffic import Outgoing
from support import publications
from support.daemon import binary
from support.wait import wait_for

MEBIBYTE = 1024 * 1024


def audit_while(world, process, feeder):
    """Audits as long as the stream is coming in or being applied; returns how often."""

    def is_busy():
        lowest = dict(world.lowest_positions())
        return feeder.is_alive() or any(lowest.get(partition, -1) < end for partition, end in world.ends().items())

    for count in itertools.count():
        if not is_busy():
            return count
        world.audit()
        assert process.running, process.log_tail()


@pytest.mark.slow
def test_a_million_receipts_with_everything_in_them_are_exact(create_world):
    world = create_world(1_000_000, parked={"poll_interval": "500ms"})
    process = world.installation.start()
    feeder = world.feed()
    world.wait_for_progress(process)
    world.audit()
    world.insert(world.stream.late)
    audits = audit_while(world, process, feeder)
    feeder.join()
    world.audit()
    world.finish(process, timeout=120)
    process.stop()
    assert audits >= 2
    assert world.stream.ghosts and world.database.value("SELECT count(*) FROM receiptd.parked_event") > 0


def fold(out, *group_key, **more):
    return {"name": "-".join(group_key), "group_key": list(group_key), "window": "500ms", "max_hold": "2s",
            "publish": {"kafka": {"topic": str(out)}}, **more}


FOLDS = {  # what the lanes are asked to tell beside the promise; inbox.… makes them look at the row once more
    "no folds": lambda out: [],
    "folds": lambda out: [fold(out, "campaign_id"), fold(out, "org_id", "prev_status", match={"status": "DELIVERED"})],
    "columns": lambda out: [fold(out, "campaign_id"), fold(out, "inbox.customer_id", match={"inbox.customer_id": "1|2"})],
}


LATER = [{"name": "s", "actions": [{"wait": "1d"}, {"webhook": "none"}]}]
# Statuses that no later receipt takes out of a message's path, so that how many runs begin does not depend on the order.
PIPELINES = [{"name": "each", "on": "OPENED", "stages": LATER},
             {"name": "once", "on": "IN_GTW", "once_per": ["campaign_id"], "stages": LATER},
             {"name": "await", "on": "IN_GTW", "stages": [{"name": "s", "actions": [{"await": {"status": "OPENED", "within": "1d"}}]}]}]
ENDPOINTS = [{"name": "none", "url": "http://127.0.0.1:9/"}]


def assert_runs(world, process):
    """A run for every message that has been OPENED, one for every campaign; those that awaited OPENED are over."""
    reached = "SELECT sum(messages) FROM receiptd.campaign_funnel WHERE status = {}"
    runs = ("SELECT count(*) FROM receiptd.run r JOIN receiptd.pipeline p ON p.id = r.pipeline_id WHERE p.name = '{}'"
            " AND r.status = ANY ('{{{}}}')")
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.run_intent") == 0, process, 90, "all runs are made")
    world.wait(lambda: world.database.value(runs.format("await", "done")) == world.database.value(reached.format(700)), process, 90,
               "all that were OPENED are awake")
    assert world.database.value(runs.format("each", "active")) == world.database.value(reached.format(700)) > 0
    assert world.database.value(runs.format("await", "active,done")) == world.database.value(reached.format(200))
    assert world.database.value(runs.format("once", "active")) == world.database.value(
        "SELECT count(DISTINCT campaign_id) FROM receiptd.campaign_funnel WHERE status = 200 AND messages > 0")


@pytest.mark.parametrize("lanes, connections, folds, pipelines",
                         [(1, 1, "no folds", []), pytest.param(8, 2, "folds", PIPELINES, marks=pytest.mark.smoke),
                          (8, 3, "columns", []), (32, 8, "folds", [])])
def test_lanes_connections_folds_and_pipelines_do_not_change_the_result(create_world, create_topic, lanes, connections, folds, pipelines):
    out = create_topic(2)
    world = create_world(
        20_000, seed=lanes, lanes=lanes, postgres={"connections": connections},
        batch={"max_events": 700}, folds=FOLDS[folds](out), pipelines=pipelines, actions={"endpoints": ENDPOINTS},
    )
    process = world.installation.start()
    feeder = world.feed()
    world.wait_for_progress(process)
    world.insert(world.stream.late)
    feeder.join()
    world.finish(process)
    if folds != "no folds":
        world.wait(lambda: publications.is_quiet(world.database), process, 90, "all folds published")
        found = [p for p in publications.read(world.brokers, out, 2) if p["rule"] == "campaign_id"]
        publications.assert_once(found)
        assert publications.statuses(found, "campaign_id") == publications.funnel(world.database)
    if pipelines:
        assert_runs(world, process)
    process.stop()


def test_a_restart_finds_nothing_to_do(create_world):
    world = create_world(10_000, seed=5)
    world.insert(world.stream.late)
    world.produce()
    first = world.installation.start("first")
    world.finish(first)
    first.stop()
    before = world.position_sum()
    second = world.installation.start("second")
    second.wait_for_log(r"consuming 8 partitions")
    world.finish(second)
    assert world.position_sum() == before
    second.stop()


def test_a_long_open_snapshot_changes_nothing_in_the_result(create_world):
    world = create_world(40_000, seed=6, counters={"rollup_interval": "100ms"})
    process = world.installation.start()
    with world.database.connect() as analyst:
        analyst.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        seen = analyst.execute("SELECT sum(events) FROM receiptd.campaign_funnel").fetchone()
        feeder = world.feed(per_second=15_000)
        world.insert(world.stream.late)
        feeder.join()
        world.wait_until_consumed(process)
        assert analyst.execute("SELECT sum(events) FROM receiptd.campaign_funnel").fetchone() == seen
        deltas = "SELECT count(*) FROM receiptd.counter_delta"
        world.wait(lambda: world.database.value(deltas) == 0, process, what="all counts rolled up")
        analyst.execute("COMMIT")
    world.finish(process)
    process.stop()


def test_the_funnel_command_shows_what_the_ledger_says(create_world):
    world = create_world(5_000, seed=7, traffic={"campaigns": 2})
    world.insert(world.stream.late)
    world.produce()
    process = world.installation.start()
    world.finish(process)
    process.stop()
    for campaign in ("c-00", "c-01"):
        shown = world.installation.json("funnel", campaign)
        assert shown["campaign_id"] == campaign
        cells = {row["status"]: row for row in shown["statuses"] + shown["flags"]}
        query = (
            "SELECT status, status_name, messages, events, current FROM receiptd.campaign_funnel WHERE campaign_id = %s"
        )
        for status, name, messages, events, current in world.database.query(query, campaign):
            cell = cells[status]
            assert (cell["name"], cell["messages"], cell["events"]) == (name, messages, events)
            assert current is None or cell["current"] == current
        opened, delivered = cells[700]["messages"], cells[600]["messages"]
        rate = shown["kpis"]["opened_per_delivered"]
        assert (rate["numerator"], rate["denominator"]) == (opened, delivered)
        assert rate["value"] == pytest.approx(opened / delivered)


def status_bytes(pid, field):
    with open(f"/proc/{pid}/status") as status:
        return int(re.search(rf"^{field}:\s+(\d+) kB", status.read(), re.MULTILINE)[1]) * 1024


def one_by_one(events):
    return [event.encode() for event in events]


def by_the_thousand(events):
    return [("[" + ",".join(events[first : first + 1000]) + "]").encode() for first in range(0, len(events), 1000)]


@pytest.mark.slow
@pytest.mark.speed
@pytest.mark.parametrize(("form", "times"), [(by_the_thousand, 10), (one_by_one, 6)])
def test_a_backlog_fits_in_96_mebibytes_and_leaves_48(create_world, form, times):
    """As 500 records with 1000 receipts each, and as 300 000 records with one: a client holds more than the bytes of a record."""
    world = create_world(partitions=8)
    world.insert_ids(*(f"m-{number:06d}" for number in range(50_000)))
    events = [
        json.dumps({"message_id": f"m-{number:06d}", "status": "DELIVERED", "at": "2026-11-21T02:30:00Z",
                    "channel": "sms", "gateway": "gateway-1", "event_id": f"e-{number:030d}"})
        for number in range(50_000)
    ]
    values = form(events)
    world.produce(Outgoing(number % 8, None, value, None, 0) for number, value in enumerate(values * times))
    process = world.installation.start()
    if status_bytes(process.pid, "VmSize") > 2**40 or "valgrind" in str(binary()):
        pytest.skip(f"{binary()} is a sanitizer build")
    world.wait_until_consumed(process, 240)
    peak = status_bytes(process.pid, "VmHWM")
    print("peak", peak // MEBIBYTE, "MiB")
    process.wait_for(lambda: status_bytes(process.pid, "VmRSS") <= 48 * MEBIBYTE, 60, "memory is given back: 48 MiB are left")
    count = world.database.value("SELECT events FROM receiptd.campaign_funnel WHERE status = 600")
    process.stop()
    assert count == 50_000 * times
    assert peak <= 96 * MEBIBYTE, f"{peak / MEBIBYTE:.1f} MiB"


def test_counters_are_there_as_soon_as_the_rows_are(create_world):
    """Status and counters of a receipt become visible together: no reader ever sees one without the other."""
    world = create_world(partitions=1)
    world.insert_ids(*(f"m{number}" for number in range(200)))
    process = world.installation.start()
    world.topic.send(*({"message_id": f"m{number}", "status": "SENT"} for number in range(200)))
    query = (
        "SELECT (SELECT count(*) FROM receiptd.message_inbox WHERE status = 300),"
        " (SELECT COALESCE(sum(messages), 0) FROM receiptd.campaign_funnel WHERE status = 300)"
    )

    def complete():
        rows, counted = world.database.query(query)[0]
        assert rows == counted
        return rows == 200

    wait_for(complete, 30, "200 messages sent", details=process.log_tail)
    process.stop()
