"""Opens and clicks that come too soon after delivery (machine.after_delivery): what the wake makes of them is the definition's, in any order and with any copies."""
import dataclasses
import datetime
import itertools
import random

import pytest

from sql_batch import TOPIC, Event, add_messages, apply, drift, expected_funnel, expected_rows, stored_funnel, stored_rows
from sql_fixture import database, sql_server  # noqa: F401

DELIVERED, OPENED, CLICKED = 600, 700, 800
BITS = {OPENED: 5, CLICKED: 6}
FLAG, COUNT, IGNORE, FLAG_OPEN, IGNORE_OPEN = 1, 2, 3, 4, 5
OPEN_STAYS = {FLAG: FLAG_OPEN, IGNORE: IGNORE_OPEN}  # where the gateway has told that a machine opened, and that counts
WITHIN_MS = 5_000
BASE = datetime.datetime(2026, 11, 24, tzinfo=datetime.timezone.utc)


def moment(ms):
    return (BASE + datetime.timedelta(milliseconds=ms)).isoformat()


def of_machine(event):
    """As rcpt_machine_apply() makes it of an open or click whose gateway has told."""
    if event.machine == COUNT:
        return dataclasses.replace(event, marks=(*event.marks, BITS[event.code]))
    marks = sorted({*event.marks, *((BITS[event.code],) if event.machine in (FLAG, FLAG_OPEN) else ())})
    if event.machine > IGNORE:
        return dataclasses.replace(event, code=OPENED, marks=tuple(marks))
    return dataclasses.replace(event, code=9001 + marks[0] if marks else DELIVERED, marks=tuple(marks[1:]))


def judged(event, delivered):
    d = delivered.get(event.message_id)
    return of_machine(event) if event.machine and d is not None and event.at < moment(d + WITHIN_MS) else event


def histories(rng, count, policies):
    """One DELIVERED at most for each message, opens and clicks around the bound, some beside flags; some messages have no DELIVERED."""
    inbox, events, delivered = {}, [], {}
    for n in range(count):
        id, d = f"m{n}", rng.randrange(0, 10_000)
        inbox[id] = f"c{n % 3}"
        events.append(Event(id, 300, 0, at=moment(d - 1_000)))
        if rng.random() < 0.8:
            delivered[id] = d
            events.append(Event(id, DELIVERED, 0, at=moment(d)))
        for _ in range(rng.randrange(0, 5)):
            policy = rng.choice(policies)
            soon = rng.choice((0, 1, 4_999, 5_000, 5_001, 60_000) if policy == IGNORE else (-2_000, 0, 1, 4_999, 5_000, 5_001, 60_000))
            code, marks = rng.choice((OPENED, CLICKED)), (3,) if rng.random() < 0.1 else ()
            if code == CLICKED and policy in OPEN_STAYS and rng.random() < 0.5:
                policy, marks = OPEN_STAYS[policy], (*marks, BITS[OPENED])
            events.append(Event(id, code, 0, at=moment(d + soon), machine=policy, machine_ms=WITHIN_MS, marks=marks))
    return inbox, events, delivered


def fresh(database, *rules):
    session = database.session()
    session.rules = rules
    session.do("DELETE FROM message_inbox;"
               " TRUNCATE campaign_tally_delta, campaign_tally_total, receipt_counted, parked_event, campaign_retired, retired_message, campaign_funnel_delta, campaign_funnel_total")
    return session


def wake_all(session, limit=1000):
    while session.one("lane/wake", [TOPIC] * 3, [0, 1, 2], 0, limit)["rows"] != "0":
        pass


def give_up(session):
    """The minute is over."""
    session.do("UPDATE parked_event SET parked_at = parked_at - interval '2 minutes'")
    wake_all(session)


@pytest.mark.parametrize("policies", ((FLAG,), (COUNT,), (IGNORE,), (FLAG, COUNT)))
@pytest.mark.parametrize("rules", (("no_dedup", "times"), ("dedup", "series", "times")))
def test_what_comes_soon_after_delivery_is_a_machine_s_in_any_order_and_with_any_copies(database, rules, policies):
    for seed in range(3):
        rng = random.Random(seed)
        inbox, events, delivered = histories(rng, 120, policies)
        keys = itertools.count(1)
        events = [dataclasses.replace(e, key=next(keys)) for e in events]
        copies = events + rng.choices(events, k=len(events) // 3)
        rng.shuffle(copies)
        counted = events if rules[0] == "dedup" else copies
        session = fresh(database, *rules)
        waiting = list(inbox.items())
        rng.shuffle(waiting)
        for start in range(0, len(copies), 30):
            apply(session, [dataclasses.replace(e, offset=start + n, partition=n % 3) for n, e in enumerate(copies[start:start + 30])], raw=True)
            add_messages(session, dict(waiting[:9]))
            waiting = waiting[9:]
            if rng.random() < 0.6:
                session.one("lane/wake", [TOPIC] * 3, [0, 1, 2], 0, rng.choice((1, 7, 1000)))
        add_messages(session, dict(waiting))
        wake_all(session)
        left = {id for id, in session.query("SELECT DISTINCT message_id FROM parked_event")}
        assert left <= set(inbox) - set(delivered), "only what has no DELIVERED waits"
        give_up(session)
        assert session.query("SELECT count(*) FROM parked_event") == [(0,)]
        truth = [judged(event, delivered) for event in counted]
        assert stored_rows(session) == expected_rows(inbox, truth)
        assert stored_funnel(session) == expected_funnel(inbox, truth)
        assert drift(session) == []


@pytest.mark.parametrize("limit", (1, 1000))
def test_a_message_that_comes_late_is_judged_by_the_delivery_that_waits_with_its_open(database, limit):
    session = fresh(database, "no_dedup", "times")
    apply(session, [Event("m", OPENED, 0, at=moment(1_000), machine=FLAG, machine_ms=WITHIN_MS), Event("m", DELIVERED, 1, at=moment(0))], raw=True)
    session.do("UPDATE parked_event SET parked_at = parked_at - interval '2 minutes'")
    add_messages(session, {"m": "c"})
    wake_all(session, limit)
    assert session.query("SELECT count(*) FROM parked_event") == [(0,)]
    assert stored_rows(session) == {"m": (DELIVERED, 1 << BITS[OPENED])} and drift(session) == []
