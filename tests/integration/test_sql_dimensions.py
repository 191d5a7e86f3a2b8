"""The rule `dimensions`: the funnel by columns of the message. What it must say is written from the definition: a funnel of the messages of each key."""
import collections
import dataclasses

import pytest

from sql_batch import Event, apply, expected_funnel, expected_rows, stored_funnel, stored_rows, wake_all
from sql_fixture import Database, sql_server  # noqa: F401
from test_sql_rules import batches_of, histories, without_echoes

BY = ("variant", "channel", "gateway")
VALUES = {"variant": ("a", "b", None, ""), "channel": ("sms", None, "x" * 101), "gateway": ("kannel", "twilio")}
CLEAN = ("TRUNCATE campaign_tally_total, campaign_funnel_total, receipt_counted; DELETE FROM message_inbox;"
         " TRUNCATE campaign_retired, retired_message, counter_delta")


@pytest.fixture
def database(sql_server):  # noqa: F811
    made = Database(sql_server, dimensions=BY)
    yield made
    made.drop()


def dimensioned(database, *by, rules=()):
    session = database.session()
    session.dimensions = by or BY
    session.rules = rules
    return session


def key_of(value):
    return "other" if value is not None and len(value.encode()) > 100 else value or ""


def add(session, messages):
    """{id: (campaign, {dimension: value})}"""
    with session.connection.cursor() as cursor:
        cursor.executemany("INSERT INTO message_inbox (message_id, org_id, campaign_id, variant, channel, gateway) VALUES (%s, 'o', %s, %s, %s, %s)",
                           [(id, campaign, *(of.get(name) for name in BY)) for id, (campaign, of) in messages.items()])


def counted(session, dimension):
    """{(campaign, key, status): (messages, events)}"""
    return {row[:3]: row[3:] for row in session.query(
        "SELECT campaign_id, key, status, messages::int, events::int FROM campaign_tally WHERE kind = %s", [f"by_{dimension}"])}


def expected(messages, events, dimension):
    """The funnel of the messages of each key."""
    cells = {}
    for key in {key_of(of.get(dimension)) for _, of in messages.values()}:
        mine = {id: campaign for id, (campaign, of) in messages.items() if key_of(of.get(dimension)) == key}
        for (campaign, code), counts in expected_funnel(mine, [e for e in events if e.message_id in mine]).items():
            cells[campaign, key, code] = counts
    return cells


def sums(cells):
    """{(campaign, status): (messages, events)} over all keys."""
    total = collections.defaultdict(lambda: [0, 0])
    for (campaign, _, code), counts in cells.items():
        for part in range(2):
            total[campaign, code][part] += counts[part]
    return {cell: tuple(counts) for cell, counts in total.items() if counts != [0, 0]}


def with_values(rng, inbox):
    return {id: (campaign, {name: rng.choice(VALUES[name]) for name in BY}) for id, campaign in inbox.items()}


@pytest.mark.parametrize("recent", (None, "-infinity", "infinity"))
@pytest.mark.parametrize("by, rules", ((BY, ()), (("channel",), ("dedup", "series", "gateways")), (("gateway", "variant"), ("reasons",))))
def test_every_key_has_the_funnel_of_its_messages_and_their_sum_is_the_funnel(database, recent, by, rules):
    for seed in range(2):
        rng, inbox, events = histories(seed)
        messages = with_values(rng, inbox)
        session = dimensioned(database, *by, rules=rules)
        session.recent_since = recent
        session.do(CLEAN)
        add(session, messages)
        for batch in batches_of(rng, events):
            apply(session, batch)
            if rng.random() < 0.3:
                session.run("control/rollup", 10_000, 0, "rules")
        once = without_echoes(events) if "dedup" in rules else events
        assert stored_rows(session) == expected_rows(inbox, events) and stored_funnel(session) == expected_funnel(inbox, once)
        for dimension in by:
            assert counted(session, dimension) == expected(messages, once, dimension)
            assert sums(counted(session, dimension)) == stored_funnel(session)


def test_order_and_batches_change_nothing(database):
    rng, inbox, events = histories(11)
    messages, found = with_values(rng, inbox), []
    for _ in range(3):
        session = dimensioned(database)
        session.do(CLEAN)
        add(session, messages)
        mine = list(events)
        rng.shuffle(mine)
        for batch in batches_of(rng, [dataclasses.replace(e, offset=n) for n, e in enumerate(mine)]):
            apply(session, batch)
        found.append([counted(session, dimension) for dimension in BY])
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize("recent", (None, "-infinity", "infinity"))
def test_woken_receipts_count_by_the_message_that_came_late(database, recent):
    rng, inbox, events = histories(3, 30, 100)
    messages = with_values(rng, inbox)
    session = dimensioned(database)
    session.recent_since = recent
    early = {id: of for n, (id, of) in enumerate(messages.items()) if n % 2}
    add(session, early)
    for batch in batches_of(rng, events):
        apply(session, batch)
    add(session, {id: of for id, of in messages.items() if id not in early})
    wake_all(session, limit=7)
    for dimension in BY:
        assert counted(session, dimension) == expected(messages, events, dimension)
        assert sums(counted(session, dimension)) == stored_funnel(session)


def test_the_trigger_counts_rows_that_are_not_fresh_by_their_path_and_flags(database):
    session = dimensioned(database)
    session.do("INSERT INTO message_inbox (message_id, campaign_id, variant, status, flags) SELECT m, 'c', v, s, f FROM (VALUES"
               " ('1', 'a', 600, 0), ('2', 'a', 0, 0), ('3', NULL, 300, 1), ('4', 'a', 0, 3)) x (m, v, s, f)")
    assert {k: m for k, (m, _) in counted(session, "variant").items()} == {
        ("c", "a", 0): 3, ("c", "a", 200): 1, ("c", "a", 300): 1, ("c", "a", 600): 1, ("c", "a", 9001): 1, ("c", "a", 9002): 1,
        ("c", "", 0): 1, ("c", "", 200): 1, ("c", "", 300): 1, ("c", "", 9001): 1}
    assert sums(counted(session, "variant")) == stored_funnel(session)


def test_counters_stay_when_messages_are_deleted(database):
    rng, inbox, events = histories(5, 20, 60)
    messages = with_values(rng, inbox)
    session = dimensioned(database)
    add(session, messages)
    apply(session, events)
    before = [counted(session, dimension) for dimension in BY]
    session.do("DELETE FROM message_inbox WHERE hashtext(message_id) % 2 = 0")
    assert [counted(session, dimension) for dimension in BY] == before
    apply(session, [dataclasses.replace(e, offset=e.offset + 1_000_000) for e in events])
    assert sums(counted(session, "variant")) == stored_funnel(session), "late receipts count nowhere"


def test_a_campaign_has_a_thousand_keys_and_other(database):
    session = dimensioned(database, "variant")
    for first in range(0, 3_000, 300):
        session.do("INSERT INTO message_inbox (message_id, campaign_id, variant) SELECT n, 'c', n FROM generate_series(%s::int, %s) n", [first, first + 299])
        session.do("INSERT INTO message_inbox (message_id, campaign_id, variant) VALUES ('d' || %s::int, 'd', %s)", [first, str(first)])
        session.run("control/rollup", 10_000, 0, "rules")
    kept = counted(session, "variant")
    mine = {key: counts[0] for (campaign, key, _), counts in kept.items() if campaign == "c"}
    assert len(mine) == 1_001 and mine["other"] == 2_000 and {str(n) for n in range(900)} < set(mine)
    assert sum(campaign == "d" for campaign, _, _ in kept) == 10, "another campaign has its own"
    for first in range(0, 3_000, 500):
        apply(session, [Event(str(n), 300, n) for n in range(first, first + 500)])
        session.run("control/rollup", 10_000, 0, "rules")
    sent = {key: counts for (campaign, key, status), counts in counted(session, "variant").items() if campaign == "c" and status == 300}
    assert sent == {key: (n, n) for key, n in mine.items()}, "receipts count under the key of their message"


def test_of_two_roll_ups_at_once_the_second_does_nothing(database):
    session, other = dimensioned(database, "variant"), dimensioned(database, "variant")
    session.do("INSERT INTO message_inbox (message_id, campaign_id, variant) VALUES ('m', 'c', 'a')")
    with session.transaction():
        assert session.run("control/rollup", 10, 0, "rules")[0]["rows"] == "3", "one of each dimension"
        assert other.run("control/rollup", 10, 0, "rules")[0]["rows"] == "0"
    assert counted(session, "variant") == {("c", "a", 0): (1, 0)}
