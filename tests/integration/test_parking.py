"""A receipt before its message waits, counts once when the row lands, and is a dead letter when it is too old."""

import json
import time

import pytest

from oracle import broker
from oracle.ledger import Row
from oracle.traffic import Outgoing
from support.world import Feeder


def receipt(id, status="DELIVERED", **extra):
    return {"message_id": id, "status": status, **extra}


def parked(world):
    return world.database.value("SELECT count(*) FROM receiptd.parked_event")


def reasons(world):
    query = 'SELECT partition, "offset", index, reason FROM receiptd.dead_letter'
    return {(partition, offset, index): reason for partition, offset, index, reason in world.database.query(query)}


def test_parked_receipts_count_once_when_their_rows_land(create_world):
    world = create_world(40_000, seed=41, traffic={"late": 0.3, "ghost": 0.05})
    world.produce()
    process = world.installation.start()
    world.wait_until_consumed(process)
    late = list(world.stream.late.items())
    assert parked(world) > len(late)
    world.wait_until_woken(process)  # receipts of known messages that name several organisations are parked for a moment
    world.assert_exact(process)  # nothing of what is parked is counted
    world.insert(dict(late[: len(late) // 2]))
    world.wait_until_woken(process)
    world.assert_exact(process)
    world.insert(dict(late[len(late) // 2 :]))
    world.finish(process)
    process.stop()


def test_receipts_of_an_unknown_message_are_parked_as_they_came(create_world):
    """Also in a batch with known messages, whose receipts are not read again."""
    world = create_world(partitions=1, lanes=1, postgres={"connections": 1})
    world.insert_ids("a")
    process = world.installation.start()
    for status in ("SENT", "DELIVERED", "OPENED"):
        world.topic.send(receipt("a", status), receipt("nobody", status, note="kept as it came"))
        world.wait_until_consumed(process)
    payloads = world.database.query("SELECT convert_from(payload, 'UTF8') FROM receiptd.parked_event ORDER BY \"offset\"")
    assert [json.loads(payload) for payload, in payloads] == [
        receipt("nobody", status, note="kept as it came") for status in ("SENT", "DELIVERED", "OPENED")]
    world.assert_exact(process)
    process.stop()


def test_rows_and_receipts_that_race_are_counted_once(create_world):
    """Each row comes at the same time as its receipts: a receipt is counted or parked, never both."""
    world = create_world(30_000, seed=42, traffic={"late": 0.95, "ghost": 0.01}, batch={"max_events": 200})
    process = world.installation.start()
    feeder = world.feed(per_second=15_000)
    late = list(world.stream.late.items())
    for first in range(0, len(late), 100):
        world.insert(dict(late[first : first + 100]))
        world.audit() if first % 2_000 == 0 else None
    feeder.join()
    world.finish(process)
    process.stop()


def test_parked_receipts_survive_a_restart(create_world):
    world = create_world(partitions=2)
    world.topic.send(receipt("m"), [receipt("m", "OPENED"), receipt("n", "COMPLAINED"), receipt("ghost")])
    first = world.installation.start("first")
    world.wait_until_consumed(first)
    first.stop()
    world.insert_ids("m", "n")
    second = world.installation.start("second")
    world.finish(second)
    assert parked(world) == 1
    second.stop()


def test_flags_beside_a_status_count_also_when_they_had_to_wait_or_were_redriven(create_world):
    """OPENED with MACHINE_OPEN is one opening and one flag: at once, after parking, and back from the dead letters."""
    world = create_world(partitions=1, parked={"max_age": "1s", "poll_interval": "200ms"}, machine={"opens": "count"})
    world.insert_ids("here")
    opened = [receipt(id, "OPENED", flags=["MACHINE_OPEN"]) for id in ("here", "later", "too-late")]
    world.topic.send(opened, [receipt("later", "IN_GTW", flags=["COMPLAINED"]), receipt("here", "REPLIED", flags=["REPLIED"])])
    process = world.installation.start()
    world.wait_until_consumed(process)
    world.insert_ids("later")
    world.wait(lambda: len(reasons(world)) == 1 and parked(world) == 0, process, what="the last one is too old")
    world.insert_ids("too-late")
    world.installation.command("dead-letters", "--redrive")
    world.finish(process, machines={"opens": "count"})
    row = "SELECT status, flags FROM receiptd.message_inbox WHERE message_id = %s"
    assert [world.database.query(row, id)[0] for id in ("here", "later", "too-late")] == [(700, 40), (700, 33), (700, 32)]
    process.stop()


def test_a_row_that_lands_on_a_quiet_topic_wakes_its_receipts_soon(create_world):
    world = create_world(partitions=1)
    world.topic.send([receipt("m"), receipt("m", "CLICKED"), receipt("m", "UNSUBSCRIBED"), receipt("m", "CLICKED")])
    process = world.installation.start()
    world.wait_until_consumed(process)
    assert parked(world) == 4
    time.sleep(1)  # a quiet second: nothing may have to happen on Kafka's side
    world.insert_ids("m")
    began = time.monotonic()
    world.wait(lambda: parked(world) == 0, process, 10, "woken")
    assert time.monotonic() - began < 30
    world.finish(process)
    process.stop()


def test_a_statement_that_takes_long_on_its_connection_does_not_keep_receipts_parked(create_world):
    """A probe that waited for another statement for three seconds has cost the server nothing, so the next one comes soon."""
    world = create_world(partitions=1, counters={"rollup_interval": "10ms"})
    world.topic.send(receipt("m"))
    process = world.installation.start()
    world.wait_until_consumed(process)
    with world.database.connect() as connection, connection.transaction():
        connection.execute("LOCK TABLE receiptd.counter_delta")
        waits = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE '%/control' AND datname = current_database() AND wait_event_type = 'Lock'"
        world.wait(lambda: world.database.value(waits) == 1, process, 30, "the roll-up waits for the lock")
        connection.execute("SELECT pg_sleep(3)")
    world.insert_ids("m")
    world.wait(lambda: parked(world) == 0, process, 20, "woken")
    world.finish(process)
    process.stop()


PROBE_WAITS = """
    SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'
        AND query LIKE '%AS applicable%' AND clock_timestamp() - query_start > interval '3 seconds'
"""


def test_a_probe_that_had_to_wait_once_does_not_put_off_the_next_ones(create_world):
    world = create_world(partitions=1, postgres={"lock_timeout": "60s"})
    world.topic.send([receipt("m")])
    process = world.installation.start()
    world.wait_until_consumed(process)
    with world.database.connect() as operator, operator.transaction():
        operator.execute("LOCK TABLE receiptd.retired_message")
        world.wait(lambda: world.database.value(PROBE_WAITS) == 1, process, 30, "a probe waits for seconds")
    world.insert_ids("m")
    world.wait(lambda: parked(world) == 0, process, 10, "woken")
    world.finish(process)
    process.stop()


def test_parked_receipts_age_out_to_dead_letters(create_world):
    world = create_world(
        10_000, seed=43, traffic={"late": 0, "ghost": 0.2}, parked={"max_age": "2s", "wake_limit": 50}
    )
    world.produce()
    process = world.installation.start()
    world.wait_until_consumed(process)
    world.wait(lambda: parked(world) == 0, process, 60, "everything aged out")
    world.finish(process, unknown="aged_out")
    assert "aged_out" in reasons(world).values()
    process.stop()


def test_a_redriven_dead_letter_is_counted_when_its_row_lands(create_world):
    world = create_world(partitions=1, parked={"max_age": "1s"})
    world.topic.send(receipt("m", "OPENED"))
    process = world.installation.start()
    world.wait_until_consumed(process)
    world.wait(lambda: reasons(world), process, 20, "aged out")
    assert reasons(world) == {(0, 0, 0): "aged_out"}
    world.insert_ids("m")
    world.installation.command("dead-letters", "--redrive", "--reason", "aged_out")
    world.wait(lambda: parked(world) == 0 and not reasons(world), process, 20, "redriven and woken")
    world.finish(process)
    assert world.database.value("SELECT status FROM receiptd.message_inbox") == 700
    process.stop()


def test_unknown_messages_become_dead_letters_by_policy(create_world):
    world = create_world(10_000, seed=44, traffic={"late": 0, "ghost": 0.1}, unknown="dead-letter")
    world.produce()
    process = world.installation.start()
    world.finish(process, unknown="dead-letter")
    assert "unknown_message" in reasons(world).values() and parked(world) == 0
    process.stop()


def test_unknown_messages_get_rows_by_policy(create_world):
    world = create_world(partitions=4, unknown="insert")
    world.insert_ids("known")
    extra = {"campaign_id": "c-é", "org_id": "o"}
    events = [
        receipt(f"m{number % 100}", status, **extra)
        for number, status in enumerate(("SENT", "DELIVERED", "OPENED", "OPENED", "COMPLAINED", "TARGETED") * 50)
    ]
    events += [receipt("known", "CLICKED", campaign_id="another"), receipt("nobody's", "SENT")]
    for first in range(0, len(events), 7):
        world.topic.send(events[first : first + 7], partition=first % 4)
    process = world.installation.start()
    world.wait_until_consumed(process)
    world.wait(lambda: parked(world) == 0, process, 20, "nothing stays parked")
    world.finish(process, unknown="insert")
    process.stop()


def test_rows_by_policy_do_not_depend_on_what_else_the_event_says(create_world):
    """Escapes that PostgreSQL's own JSON refuses are legal in JSON, and nobody asked for those fields."""
    world = create_world(partitions=1, unknown="insert")
    odd = r'{"message_id":"m%d","status":"SENT","campaign_id":"c","org_id":"o","reason":%s}'
    for number, reason in enumerate((r'"\ud800"', r'"a\u0000b"', r'{"\udc00":[]}', "1e400", '"' + "x" * 70_000 + '"')):
        world.topic.send(odd % (number, reason))
    process = world.installation.start()
    world.wait_until_consumed(process)
    world.wait(lambda: parked(world) == 0, process, 20, "nothing stays parked")
    world.finish(process, unknown="insert")
    process.stop()


def parked_at_rest(world, process):
    """How many, as soon as that and the positions have stood still for twenty looks of the daemon at its backlog."""
    seen = []

    def at_rest():
        seen.append((parked(world), world.position_sum()))
        return len(seen) > 20 and len(set(seen[-20:])) == 1

    process.wait_for(at_rest, 30, "the backlog stands still")
    return seen[-1][0]


def test_a_full_backlog_stops_the_intake_and_loses_nothing(create_world):
    """The bound is soft by what comes in between two looks at the backlog."""
    world = create_world(partitions=2, parked={"max_rows": 1000, "poll_interval": "50ms"})
    ids = [f"m{number}" for number in range(40_000)]
    records = [
        Outgoing(first // 20 % 2, None, json.dumps([receipt(id) for id in ids[first : first + 20]]).encode(), None, 0)
        for first in range(0, len(ids), 20)
    ]
    process = world.installation.start()
    feeder = Feeder(lambda: broker.produce(world.brokers, str(world.topic), records, per_second=200))
    process.wait_for_log(r"parked\.max_rows")
    before = parked_at_rest(world, process)
    feeder.join()
    assert 1000 <= before == parked_at_rest(world, process) < len(ids)
    world.insert({id: Row("o", "c") for id in ids})
    world.finish(process)
    process.stop()


@pytest.mark.parametrize("statuses", [("SENT", "SENT", "SENT"), ("RESUBSCRIBED",), ("TARGETED", "TARGETED")])
def test_a_receipt_that_changes_no_row_is_counted_when_woken(create_world, statuses):
    world = create_world(partitions=1)
    world.topic.send(*(receipt("m", status) for status in statuses))
    process = world.installation.start()
    world.wait_until_consumed(process)
    assert parked(world) == len(statuses)
    world.insert_ids("m")
    world.finish(process)
    process.stop()
