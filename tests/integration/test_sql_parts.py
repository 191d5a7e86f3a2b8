"""Messages in several parts: delivered when all parts are, failed when one has failed; whatever the order, the copies and the bounds of batches and wakes."""
import collections
import dataclasses
import random
import threading

import pytest

from sql_batch import Event, add_messages, apply, drift, expected_funnel, path, stored_funnel, stored_rows, wake, wake_all
from sql_fixture import STATUSES, SqlError, database, sql_server, wait_for_lock  # noqa: F401
from test_sql_recent import days  # noqa: F401

DELIVERED, SENT = 600, 300


def of_part(event):
    return event.part is not None and event.code == DELIVERED


def outcome(events):
    """Status and flags of a message after these receipts, from the definition: no order in it."""
    tops = [max([SENT if of_part(e) else e.top, *(Event("", 9001 + bit, 0).top for bit in e.marks)]) for e in events]
    delivered = {e.part for e in events if of_part(e)}
    if delivered and delivered >= set(range(1, min(e.parts for e in events if of_part(e)) + 1)):
        tops.append(DELIVERED)
    flags = 0
    for event in events:
        flags |= event.mask
    return max(tops, default=0), flags


def expected(inbox, events):
    """Rows and funnel: `messages` follow from the outcome, `events` are what the receipts name."""
    mine = collections.defaultdict(list)
    for event in events:
        mine[event.message_id].append(event)
    rows = {i: outcome(mine[i]) for i in inbox}
    messages = collections.Counter()
    for message_id, (status, flags) in rows.items():
        for code in [*path(status), *(9001 + bit for bit in range(31) if flags >> bit & 1)]:
            messages[inbox[message_id], code] += 1
    named = {cell: n for cell, (_, n) in expected_funnel(inbox, events).items() if n}
    return rows, {cell: (messages[cell], named.get(cell, 0)) for cell in messages | named}


def histories(rng, count):
    """Messages in one to four parts with receipts that may lack, fail, repeat, or disagree about the total."""
    codes = [c for c in STATUSES if c and c < 700] + [440, 600, 600, 600, 600, 9001]
    inbox, events = {}, []
    for n in range(count):
        message_id, parts = f"m{n}", rng.randrange(1, 5)
        inbox[message_id] = f"c{n % 3}"
        for part in range(1, parts + 1):
            for _ in range(rng.randrange(0, 4)):
                total = parts if rng.random() < 0.95 else rng.randrange(part, 6)
                named = {"part": part, "parts": total} if total > 1 else {}
                events.append(Event(message_id, rng.choice(codes), 0, marks=(5,) if rng.random() < 0.05 else (), **named))
        if rng.random() < 0.1:
            events.append(Event(message_id, rng.choice((300, 440, 600, 700)), 0))
    events += rng.choices(events, k=len(events) // 3)
    rng.shuffle(events)
    return inbox, [dataclasses.replace(e, offset=n, partition=n % 3) for n, e in enumerate(events)]


def run(session, rng, inbox, events):
    """Messages land before, between and behind their receipts."""
    waiting = list(inbox.items())
    rng.shuffle(waiting)
    while events or waiting:
        size = rng.choice((3, 80, 400))
        if events:
            apply(session, events[:size])
            events = events[size:]
        landed, waiting = (waiting, []) if not events else (waiting[:size], waiting[size:])
        add_messages(session, dict(landed))
        if rng.random() < 0.5:
            wake(session, limit=rng.choice((1, 7, 1000)))
    wake_all(session)


@pytest.mark.parametrize("recent", (None, "-infinity"))
def test_random_histories_come_to_what_the_definition_says(database, recent):
    for seed in range(2):
        rng = random.Random(seed)
        inbox, events = histories(rng, 2500)
        session = database.session()
        session.recent_since = recent
        session.do("DELETE FROM message_inbox; TRUNCATE counter_delta, campaign_funnel_total, campaign_retired, retired_message, message_part")
        run(session, rng, inbox, events)
        rows, funnel = expected(inbox, events)
        assert stored_rows(session) == rows
        assert {k: v for k, v in stored_funnel(session).items()} == funnel and drift(session) == []
        assert session.query("SELECT count(*) FROM parked_event") == [(0,)]
        assert {rows[i][0] for i in inbox} >= {SENT, 440, DELIVERED}, "the histories reach what matters"
        session.close()


def test_with_rules_each_receipt_of_a_part_counts_once(database):
    session = database.session()
    session.rules = ("dedup", "series", "reasons", "gateways")
    add_messages(session, {"m": "c"})
    parts = [Event("m", DELIVERED, n, part=1 + n % 2, parts=2, key=1 + n % 2, gateway="kannel", at="2026-11-20 00:00:00+00") for n in range(4)]
    apply(session, parts)
    unknown = session.query("SELECT count(*) FROM campaign_tally WHERE kind = 'gateway_unknown'")
    assert unknown == [(0,)], "the message is known: its receipts only wait for each other"
    wake_all(session)
    assert stored_rows(session) == {"m": (DELIVERED, 0)}
    assert session.query("SELECT sum(messages)::int FROM campaign_tally WHERE kind = 'hour' AND status = 600") == [(1,)]


def test_of_two_instances_that_note_different_parts_at_once_one_sees_all(database):
    first, second, watcher = (database.session(name) for name in ("first", "second", "watcher"))
    add_messages(first, {"m": "c"})
    apply(first, [Event("m", DELIVERED, 0, part=1, parts=2)], lane=0)
    apply(second, [Event("m", DELIVERED, 1, part=2, parts=2)], lane=1)
    woken = wake(first, lane=0, hold=True)
    waiter = threading.Thread(target=lambda: wake(second, lane=1))
    waiter.start()
    wait_for_lock(watcher, second)
    woken.end()
    waiter.join()
    assert stored_rows(watcher) == {"m": (DELIVERED, 0)}
    assert stored_funnel(watcher)["c", DELIVERED] == (1, 2) and drift(watcher) == []


def test_a_receipt_of_a_part_obeys_the_organisation_of_its_message(database):
    session = database.session()
    add_messages(session, {"m": "c"})
    apply(session, [Event("m", DELIVERED, n, part=1 + n, parts=2, org="o" if n else "other") for n in range(2)])
    wake_all(session)
    assert stored_rows(session) == {"m": (SENT, 0)}
    assert session.query("SELECT reason FROM dead_letter") == [("other_organisation",)]


def test_parts_are_forgotten_by_age_and_with_an_erased_person(database):
    session = database.session()
    add_messages(session, {"m": "c", "n": "c"})
    apply(session, [Event(i, DELIVERED, n, part=1, parts=2) for n, i in enumerate("mn")])
    wake_all(session)
    assert session.one("control/parts_trim", 60_000, 100)["rows"] == "0"
    session.query("SELECT * FROM erase_messages(ARRAY['m'], NULL, NULL)")
    assert session.query("SELECT message_id, parts, delivered FROM message_part") == [("n", 2, [1])]
    assert session.one("control/parts_trim", 0, 100)["rows"] == "1"


@pytest.mark.parametrize("how", ("DELETE FROM message_inbox WHERE message_id = 'm'", "DELETE FROM message_inbox WHERE campaign_id = 'c'", "TRUNCATE message_inbox",
                                 "WITH d AS (DELETE FROM message_inbox RETURNING 1) SELECT count(*) FROM d", "SELECT * FROM erase_messages(ARRAY['m'], NULL, NULL)"))
def test_parts_go_with_their_message_and_another_of_its_id_begins_anew(database, how):
    session = database.session()
    add_messages(session, {"m": "c", "stays": "d"})
    apply(session, [Event(i, DELIVERED, n, part=1, parts=2) for n, i in enumerate(("m", "stays"))])
    wake_all(session)
    session.do(how)
    left = {i for i, in session.query("SELECT message_id FROM message_inbox")}
    assert "m" not in left and {i for i, in session.query("SELECT message_id FROM message_part")} == left
    add_messages(session, {"m": "c"})
    apply(session, [Event("m", DELIVERED, 2, part=2, parts=2)])
    wake_all(session)
    assert stored_rows(session)["m"] == (SENT, 0) and drift(session) == []


def test_a_message_with_two_rows_keeps_its_parts_until_both_are_gone(days):
    session = days.session()
    session.do("INSERT INTO app.messages (id, camp, created_at) VALUES ('m', 'c', '2026-01-02'), ('m', 'c', '2026-01-04')")
    apply(session, [Event("m", DELIVERED, 0, part=1, parts=2)])
    wake_all(session)
    for table, left in (("app.messages", [("m",)]), ("app.d4", [])):
        session.do(f"DELETE FROM {table} WHERE created_at = (SELECT min(created_at) FROM app.messages)")
        assert session.query("SELECT message_id FROM message_part") == left


@pytest.mark.parametrize("wake_first", (True, False))
def test_a_deletion_beside_a_wake_leaves_no_parts(database, wake_first):
    one, other, watcher = (database.session(name) for name in ("one", "other", "watcher"))
    add_messages(one, {"m": "c"})
    for offset in range(2):  # the row of its parts is there, so the two meet at both rows
        apply(one, [Event("m", DELIVERED, offset, part=1 + offset, parts=3)])
        if offset == 0:
            wake_all(one)

    def delete():
        other.do("DELETE FROM message_inbox")

    def wake_or_again():
        try:
            wake(other)
        except SqlError as error:
            assert error.sqlstate == "40001"  # "a message of the wake was deleted meanwhile": the lane tries again

    if wake_first:
        woken = wake(one, hold=True)
    else:
        one.do("BEGIN; DELETE FROM message_inbox")
    waiter = threading.Thread(target=delete if wake_first else wake_or_again)
    waiter.start()
    wait_for_lock(watcher, other)
    if wake_first:
        woken.end()
    else:
        one.do("COMMIT")
    waiter.join()
    assert watcher.query("SELECT count(*) FROM message_inbox") == watcher.query("SELECT count(*) FROM message_part") == [(0,)]
    assert drift(watcher) == []


def test_all_parts_must_be_there_and_not_their_number(database):
    session = database.session()
    add_messages(session, {"m": "c"})
    apply(session, [Event("m", DELIVERED, n, part=part, parts=parts) for n, (part, parts) in enumerate(((1, 3), (3, 3), (3, 3), (1, 2)))])
    wake_all(session)
    assert stored_rows(session)["m"] == (SENT, 0), "part 2 of 2 has not come"
    apply(session, [Event("m", DELIVERED, 9, part=2, parts=3)])
    wake_all(session)
    assert stored_rows(session)["m"] == (DELIVERED, 0) and drift(session) == []
