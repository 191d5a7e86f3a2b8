"""Parked receipts: woken once, expired once, never both and never lost."""
import random
import time

import pytest

from sql_batch import (TOPIC, Event, add_messages, apply, drift, expected_funnel, expected_rows, stored_funnel,
                       stored_rows, wake, wake_all)
from sql_fixture import SqlError, database, sql_server  # noqa: F401
from test_sql_apply import make_events


def probe(session, max_age_ms=10**9):
    rows = session.run("control/parked_probe", [TOPIC] * 3, [0, 1, 2], max_age_ms)
    return {int(r["lane"]): (r["applicable"] == "t", r["expired"] == "t", int(r["rows"])) for r in rows}


def parked(session):
    return session.query("SELECT count(*) FROM parked_event")[0][0]


def test_receipts_before_their_message_count_exactly_when_it_lands(database):
    rng = random.Random(3)
    session = database.session()
    inbox = {f"m{n}": rng.choice("ab") for n in range(60)}
    events = make_events(rng, list(inbox) + ["never"], 600)
    landed = {}
    for start in range(0, len(events), 60):
        apply(session, events[start:start + 60])
        fresh = dict(rng.sample(sorted(inbox.items()), 12))
        fresh = {i: c for i, c in fresh.items() if i not in landed}
        add_messages(session, fresh)
        landed |= fresh
        wake(session, limit=rng.choice([1, 5, 1000]))
    add_messages(session, {i: c for i, c in inbox.items() if i not in landed})
    wake_all(session, limit=37)
    assert parked(session) == sum(e.message_id == "never" for e in events)
    assert stored_rows(session) == expected_rows(inbox, events)
    assert stored_funnel(session) == expected_funnel(inbox, events)
    assert drift(session) == []


def test_a_wake_takes_only_its_lane_its_partitions_and_its_limit_in_order(database):
    session = database.session()
    events = [Event(f"m{n}", 600, offset=n, partition=n % 2) for n in range(10)]
    apply(session, events, lane=1)
    apply(session, [Event("m0", 700, offset=99)], lane=2)
    add_messages(session, {f"m{n}": "c" for n in range(2, 10)} | {"m0": "c"})
    assert wake(session, lane=1, limit=2, partitions=(0,))["rows"] == 2
    left = session.query('SELECT partition, "offset" FROM parked_event WHERE lane = 1 ORDER BY 1, 2')
    assert left == [(0, 4), (0, 6), (0, 8)] + [(1, o) for o in (1, 3, 5, 7, 9)]
    assert wake(session, lane=1, limit=100)["rows"] == 7
    assert parked(session) == 2  # m1 has no message, lane 2 was not asked


def test_a_wake_of_flags_and_a_skipped_parent_counts_like_a_batch(database):
    session = database.session()
    events = [Event("m", 9001, 0), Event("m", 800, 1), Event("m", 9003, 2), Event("m", 800, 3), Event("n", 9003, 4)]
    apply(session, events)
    add_messages(session, {"m": "c", "n": "c"})
    answer = wake(session)
    assert (answer["rows"], answer["messages_changed"], answer["events_refused"], answer["gateways"], answer["refused_gateways"]) == (5, 2, 0, {}, {})
    assert answer["kinds"] == {(0, 800, 5, -1): 1, (0, 0, 4, -1): 1}
    assert stored_funnel(session) == expected_funnel({"m": "c", "n": "c"}, events)


def test_the_probe_says_which_lanes_have_what(database):
    session = database.session()
    apply(session, [Event("a", 600, 0), Event("b", 600, 1)], lane=0)
    apply(session, [Event("c", 600, 2)], lane=1)
    apply(session, [Event("d", 600, 3)], lane=2)
    add_messages(session, {"a": "x"})
    session.do("UPDATE parked_event SET parked_at = now() - interval '2 hours' WHERE message_id IN ('a', 'c')")
    assert probe(session, 3_600_000) == {0: (True, False, 2), 1: (False, True, 1), 2: (False, False, 1)}
    assert session.run("control/parked_probe", [TOPIC], [7], 1) == []


def test_what_waited_too_long_becomes_a_dead_letter_unless_its_message_came(database):
    session = database.session()
    apply(session, [Event("late", 600, 0), Event("gone", 600, 1), Event("fresh", 600, 2)], lane=4)
    add_messages(session, {"late": "c"})
    session.do("UPDATE parked_event SET parked_at = now() - interval '90 s' WHERE message_id <> 'fresh'")
    assert session.one("lane/expire", [TOPIC], [0], 4, 10, 60_000)["rows"] == "1"
    assert session.query('SELECT "offset", lane, reason, detail, payload FROM dead_letter') == [
        (1, 4, "aged_out", "parked for 90 s", Event("gone", 600, 1).payload)]
    assert session.one("lane/expire", [TOPIC], [0], 4, 10, 60_000)["rows"] == "0"
    assert wake(session, lane=4)["rows"] == 1 and parked(session) == 1
    assert stored_funnel(session)["c", 600] == (1, 1)


def test_expiring_keeps_to_its_limit(database):
    session = database.session()
    apply(session, [Event(f"m{n}", 600, n) for n in range(10)])
    time.sleep(0.01)
    assert session.one("lane/expire", [TOPIC], [0], 0, 4, 1)["rows"] == "4"
    assert parked(session) == 6


def test_discard_takes_the_row_that_a_wake_of_one_would_take(database):
    session = database.session()
    apply(session, [Event("unknown", 600, 0), Event("bad", 600, 1), Event("good", 600, 2), Event("good", 700, 0, partition=2)])
    add_messages(session, {"bad": "c", "good": "c"})
    session.do("ALTER TABLE message_inbox ADD CONSTRAINT refused CHECK (message_id <> 'bad' OR status = 0)")
    with pytest.raises(SqlError) as refused:
        wake(session, limit=1)
    assert refused.value.sqlstate == "23514"
    assert session.one("lane/discard", [TOPIC] * 3, [0, 1, 2], 0, 1, "23514 refused")["rows"] == "1"
    assert session.query('SELECT "offset", reason, detail FROM dead_letter') == [(1, "database", "23514 refused")]
    assert wake(session)["rows"] == 2
    assert stored_rows(session) == {"bad": (0, 0), "good": (700, 0)}


def test_a_row_that_parks_while_the_platform_inserts_is_found_by_the_next_look(database):
    """R1, R2: nothing but looking again is needed; no trigger has to fire."""
    lane, platform = database.session("lane"), database.session("platform")
    batch = apply(lane, [Event("m", 600, 0)], hold=True)
    add_messages(platform, {"m": "c"})
    assert probe(platform) == {}
    batch.end()
    assert probe(platform) == {0: (True, False, 1)}
    wake(lane)
    assert stored_rows(lane) == {"m": (600, 0)}


def test_two_wakers_count_a_receipt_once(database):
    """R3: what a wake applies is what its own DELETE returned."""
    one, two = database.session("one"), database.session("two")
    two.lock_timeout_ms = 200
    apply(one, [Event("m", 600, 0)])
    add_messages(one, {"m": "c"})
    woken = wake(one, hold=True)
    with pytest.raises(SqlError) as waited:
        wake(two)
    assert waited.value.sqlstate == "55P03"
    assert woken.end()["rows"] == 1 and wake(two)["rows"] == 0
    assert stored_funnel(one)["c", 600] == (1, 1)


def test_a_position_that_comes_again_keeps_the_row_that_is_parked(database):
    session = database.session()
    apply(session, [Event("m", 600, 0)])
    apply(session, [Event("m", 600, 0)])
    session.run("lane/letters", [TOPIC] * 2, [0, 0], [8, 9], [-1, 2], 1, ["invalid_json", "unknown_status"],
                ["at byte 3", None], [b"\xff\x00{", b"{}"], [None, "00-a-b-01"], ["2026-01-01 00:00:00+00"] * 2, [None, "{2,5}"])
    session.run("lane/letters", [TOPIC], [0], [8], [-1], 1, ["invalid_json"], [None], [b""], [None], ["2026-01-01 00:00:00+00"], [None])
    assert parked(session) == 1
    assert session.query('SELECT "offset", index, lane, reason, detail, payload, traceparent FROM dead_letter ORDER BY 1') == [
        (8, -1, 1, "invalid_json", "at byte 3", b"\xff\x00{", None), (9, 2, 1, "unknown_status", None, b"{}", "00-a-b-01")]


def test_a_dead_letter_is_driven_again_exactly_once(database):
    session = database.session()
    apply(session, [Event("m", 600, 7, 3)], unknown="dead-letter")
    letter = session.one("command/dead_letters_for_redrive", "unknown_message", "", -1, -1, -1, 10, 1)
    assert letter["offset"] == "7" and letter["index"] == "3"
    assert session.run("command/dead_letters_for_redrive", None, TOPIC, 0, 7, 3, 10, 1000) == []
    move = [TOPIC, 0, 7, 3, 1, [3], ["m"], [600], ["2026-01-01 00:00:00+00"], [b"{}"], [1 << 5], ["acme"], [None], ["acme"], *[[None]] * 7]
    assert session.one("command/redrive", *move) == {"taken": "t", "moved": "1"}
    assert session.one("command/redrive", *move) == {"taken": "f", "moved": "0"}
    assert session.run("command/dead_letters_list", None, None, True) == []
    add_messages(session, {"m": "c"})
    assert wake(session)["rows"] == 1
    funnel = stored_funnel(session)
    assert funnel["c", 600] == (1, 1) and funnel["c", 9006] == (1, 1)
