"""Somebody's transaction stays open for long (a dump, an analyst, a replica with feedback): rows that are replaced or deleted
stay for it. What a lane and the roll-up look at must not grow with them: counted in pages, for time says nothing here."""
import itertools
import json

import pytest

from sql_batch import Event, decided, drift, expected_funnel, stored_funnel
from sql_fixture import database, literal, sql_server  # noqa: F401

ROUNDS = 24
DELTAS = 200  # of one round


@pytest.fixture
def analyst(database):
    """Reads one number, and keeps its snapshot."""
    session = database.session("analyst")
    session.do("BEGIN ISOLATION LEVEL REPEATABLE READ")
    session.query("SELECT count(*) FROM campaign_funnel")
    return session


def pages(session, name, *parameters):
    """Pages that a statement of sql/ visits; it takes effect."""
    session.prepare(name)
    values = ", ".join("NULL" if p is None else "'" + literal(p).decode().replace("'", "''") + "'" for p in parameters)
    plan = session.query(f'EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE "{name}"({values})')[0][0]
    top = (json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"]
    return top["Shared Hit Blocks"] + top["Shared Read Blocks"]


def last_delta(session):
    return session.query("SELECT last_value FROM counter_delta_id_seq")[0][0]


def append_deltas(session):
    """As so many batches would."""
    session.do("INSERT INTO counter_delta (kind, campaign_id, status, messages, events)"
               f" SELECT 'funnel', '{{c,c}}', '{{300,600}}', '{{1,1}}', '{{0,1}}' FROM generate_series(1, {DELTAS})")


def test_roll_ups_visit_no_more_pages_the_longer_a_snapshot_is_open(database, analyst):
    session = database.session()
    visited, before, last = [], 0, 0
    for _ in range(ROUNDS):
        append_deltas(session)
        visited.append(pages(session, "control/rollup", 10_000, before, "funnel"))  # above the last but one, as src/receipts/rollup.c
        before, last = last, last_delta(session)
    assert session.query("SELECT count(*) FROM counter_delta") == [(0,)]
    assert session.query("SELECT messages FROM campaign_funnel_total") == [(ROUNDS * DELTAS,)] * 2
    # The first ones find nothing to pass by. Versions of the two totals, one a round, are on few pages.
    assert max(visited[-4:]) <= min(visited[2:6]) + 2 * ROUNDS, visited
    # It is the beginning that does it: a look at everything passes by what was taken.
    append_deltas(session)
    assert pages(session, "control/rollup", 10_000, 0, "funnel") > max(visited[-4:])


def test_a_delta_that_becomes_visible_late_is_counted_and_rolled_up_by_a_whole_look(database):
    session, slow = database.session(), database.session("slow")
    slow.do("BEGIN")
    append_deltas(slow)
    append_deltas(session)
    assert session.one("control/rollup", 10_000, 0, "funnel") == {"rows": str(DELTAS), "last": str(2 * DELTAS)}
    slow.do("COMMIT")
    assert session.one("control/rollup", 10_000, 2 * DELTAS, "funnel")["rows"] == "0"
    assert session.query("SELECT messages FROM campaign_funnel WHERE status = 600") == [(2 * DELTAS,)]
    assert session.one("control/rollup", 10_000, 0, "funnel")["rows"] == str(DELTAS)
    assert session.query("SELECT messages FROM campaign_funnel WHERE status = 600") == [(2 * DELTAS,)]


def pages_of_batch(session, batch, messages):
    """Of the statements that decide and count. messages: how many of them are new to DELIVERED."""
    return pages(session, "lane/decide", *decided(batch)) + pages(session, "lane/counters", ["funnel"], [1], [3], ["c"] * 3, [], [], [200, 300, 600], [messages] * 3, [0, 0, len(batch)])


def test_batches_visit_no_more_pages_the_longer_a_snapshot_is_open(database):
    """A message changes a few times in its life; counters are appended. Only the analyst's own view stays behind."""
    session, analyst = database.session(), database.session("analyst")
    inbox = {f"m{n:05}": "c" for n in range(10_000)}  # of a few, the plan would read all
    session.do("INSERT INTO message_inbox (message_id, campaign_id)"
               " SELECT 'm' || lpad(n::text, 5, '0'), 'c' FROM generate_series(0, 9999) n")
    session.do("VACUUM ANALYZE message_inbox")
    analyst.do("BEGIN ISOLATION LEVEL REPEATABLE READ")
    seen = stored_funnel(analyst)
    ids, offset, sent, visited = iter(sorted(inbox)), itertools.count(), [], []
    for _ in range(ROUNDS):
        batch = [Event(i, 600, next(offset)) for i in itertools.islice(ids, 20)]
        visited.append(pages_of_batch(session, batch, len(batch)))
        sent += batch
    assert max(visited[-4:]) <= max(visited[:8]) + 4, visited
    # The same campaign's counters from many batches: each appends one row and looks at no other.
    again = [Event("m00000", 600, next(offset)) for _ in range(ROUNDS)]
    visited = [pages_of_batch(session, [event], 0) for event in again]
    # One batch may read the catalog again, when a neighbour on this server has changed it.
    assert sorted(visited[-4:])[2] <= visited[0] + 2, visited
    assert stored_funnel(analyst) == seen == {("c", 0): (len(inbox), 0)}
    assert stored_funnel(session) == expected_funnel(inbox, sent + again)
    analyst.do("COMMIT")
    assert drift(session) == []
