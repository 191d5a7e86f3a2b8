"""Statements of the second flight (sql/lane): what they append is what the views and the roll-ups read."""
import pytest

from sql_batch import add_messages
from sql_fixture import database, sql_server  # noqa: F401
from test_sql_races import Waiting
from test_sql_rules import audit_times


def rows(session, table, *columns):
    return session.query(f"SELECT {', '.join(columns)} FROM {table} ORDER BY id")


def test_cells_of_each_kind_become_one_row(database):
    session = database.session()
    session.run("lane/counters", ["by_channel", "gateway"], [1, 3], [2, 3], ["a", "b", ""], ["-infinity", "-infinity", "2026-01-02 03:00:00+00"],
                ["sms", "", "kannel"], [600, 600, 300], [1, -1, 0], [2, 0, 5])
    assert rows(session, "counter_delta", "kind", "campaign_id", "key", "status", "messages", "events") == [
        ("by_channel", ["a", "b"], ["sms", ""], [600, 600], [1, -1], [2, 0]), ("gateway", [""], ["kannel"], [300], [0], [5])]
    found = session.query("SELECT kind, campaign_id, at IS NULL, key, status, messages, events FROM campaign_tally ORDER BY 1, 2")
    assert found == [("by_channel", "a", True, "sms", 600, 1, 2), ("by_channel", "b", True, "", 600, -1, 0), ("gateway", "", False, "kannel", 300, 0, 5)]


def test_the_funnel_has_minutes_only_with_the_series(database):
    session = database.session()
    session.run("lane/counters", ["funnel"], [1], [2], ["a", "a"], ["2023-11-15 00:00+00", "2023-11-15 01:01+00"], ["", ""], [300, 600], [1, 1], [1, 1])
    session.run("lane/counters", ["funnel", "duplicate", "funnel"], [1, 2, 3], [1, 2, 4], ["a"] * 4, ["-infinity"] * 2, ["", ""], [300] * 3 + [700],
                [0, 0, 0, 1], [-1, 1, 1, 1])
    assert rows(session, "counter_delta", "kind", "at IS NULL", "key", "events") == [
        ("funnel", False, ["", ""], [1, 1]), ("funnel", False, [""], [-1]), ("duplicate", False, [""], [1]), ("funnel", True, None, [1, 1])]

    def shown():
        return (session.query("SELECT status, messages, events, duplicates FROM campaign_funnel WHERE campaign_id = 'a' AND status <> 0 ORDER BY 1"),
                session.query("SELECT kind, status, at::text, events FROM campaign_tally ORDER BY 1, 2"))

    session.do("SET timezone = 'Asia/Kolkata'")  # where hours begin in between
    before = shown()
    assert before == ([(300, 1, 1, 1), (600, 1, 1, 0), (700, 1, 1, 0)], [
        ("duplicate", 300, None, 1), ("hour", 300, "2023-11-15 05:30:00+05:30", 1), ("hour", 600, "2023-11-15 06:30:00+05:30", 1)])
    for deltas in ("funnel", "rules"):
        session.run("control/rollup", 10, 0, deltas)
        assert shown() == before


def test_places_of_times_are_taken_and_left(database):
    session = database.session()
    keys = ["4//kannel", "//x", "/5/x/y", "4//", "4/5/x/y", "4//kannel"]
    session.run("lane/counters", ["time_place"], [1], [6], ["a", "b", "b", "b", "b", "a"], ["-infinity"] * 6, keys, [0] * 6, [1, 1, 1, -1, -1, 1], [0] * 6)

    def shown():
        return session.query("SELECT kind, campaign_id, key, status, messages FROM campaign_tally ORDER BY 1, 2, 3")

    before = shown()
    assert before == [("gateway_time_to_deliver", "", "/4", 600, -1), ("gateway_time_to_deliver", "", "kannel/4", 600, 2), ("gateway_time_to_deliver", "", "x/y/4", 600, -1),
                      ("time_to_deliver", "a", "4", 600, 2), ("time_to_deliver", "b", "4", 600, -2)]
    session.run("control/rollup", 10, 0, "rules")
    assert shown() == before and session.query("SELECT count(*) FROM campaign_tally_total") == [(5,)], "what cancels out makes no total"
    session.run("lane/counters", ["time_place"], [1], [2], ["c", "c"], [], ["0//", "1//"], [0, 0], [1, 1], [0, 0])
    session.run("control/rollup", 10, 0, "rules")
    assert session.query("SELECT key, messages FROM campaign_tally WHERE campaign_id = 'c'") == [("1", 2)], "two buckets have one key"


def times_of_a_detached_partition(session):
    """As if the inbox itself were one."""
    with session.connection.transaction(force_rollback=True):
        session.do("ALTER VIEW inbox_partition_state RENAME TO other; CREATE VIEW inbox_partition_state AS SELECT 'message_inbox'::regclass AS part,"
                   " 'detached' AS state, 'receiptd' AS part_schema, 'campaign_id' AS campaign_id, 'status' AS status, 'message_inbox' AS name, 'message_inbox' AS inbox")
        return session.query("SELECT campaign_id, place, messages::int FROM detached_times(ARRAY['c']) ORDER BY 2 NULLS LAST")


def test_time_to_deliver_is_of_delivered_messages_alone(database):
    """A returned e-mail has the times of a delivery, and no delivery: what audits recount and deletions book agrees with what lanes count."""
    session = database.session()
    add_messages(session, {"delivered": "c", "returned": "c", "opened": "c"})
    session.do("UPDATE message_inbox SET prev_status = 0, status = CASE WHEN message_id = 'delivered' THEN 600 ELSE 650 END,"
               " first_sent_at = '2026-01-02', first_delivered_at = '2026-01-02 00:00:01',"
               " first_opened_at = CASE WHEN message_id = 'opened' THEN timestamptz '2026-01-02 00:00:03' END")
    session.run("lane/counters", ["time_place"], [1], [2], ["c", "c"], [], ["20//", "/22/"], [0, 0], [1, 1], [0, 0])
    assert audit_times(session, ["c"]) == []
    assert times_of_a_detached_partition(session) == [("c", "/22/", 1), ("c", "20//", 1), ("c", None, 1)]
    session.do("DELETE FROM message_inbox WHERE message_id <> 'delivered'")
    assert audit_times(session, ["c"]) == []
    assert session.query("SELECT kind, campaign_id, sum(messages)::int FROM campaign_tally WHERE kind LIKE 'forgotten%%' GROUP BY 1, 2 ORDER BY 1") == [
        ("forgotten_gateway_time_to_open", "", 1), ("forgotten_time_to_open", "c", 1)]
    session.do("TRUNCATE message_inbox")
    assert audit_times(session, ["c"]) == []


def test_keys_of_groups_are_those_of_their_messages(database):
    session = database.session()
    session.run("lane/groups", ["customer", "logical"], [1, 3], [2, 4], ["a", "b", "a", "b"], ["c1", "c2", "l1", "m-2"], [300, 0, 300, 0], [600, 300, 600, 300],
                [0, 1, 0, 1])
    found = rows(session, "group_delta", "kind", "campaign_id", "key", "old", "new", "gained")
    assert [row[:2] + row[3:] for row in found] == [("customer", ["a", "b"], [300, 0], [600, 300], [0, 1]), ("logical", ["a", "b"], [300, 0], [600, 300], [0, 1])]

    def key(kind, campaign, value, message):
        return session.query("SELECT group_key(s.salt, %s, %s, %s, %s) FROM group_salt s", [kind, campaign, value, message])[0][0]

    assert found[0][2] == [key("customer", "a", "c1", "m-1"), key("customer", "b", "c2", "m-2")]
    assert found[1][2] == [key("logical", "a", "l1", "m-1"), key("logical", "b", None, "m-2")], "an attempt that names none is one of its own"


@pytest.mark.parametrize("columns, links", ((["{}", '{"x": 1}'], [None, "00-a"]), ([], [])))
def test_folds_get_one_row_of_all(database, columns, links):
    session = database.session()
    session.run("lane/folds", ["o", ""], ["a", "b"], [300, 600], [600, 700], [0, 1], [5, 1], columns, links)
    found = rows(session, "fold_event", "orgs", "campaigns", "old", "new", "gained", "n", "columns", "links", "size")
    assert found == [(["o", ""], ["a", "b"], [300, 600], [600, 700], [0, 1], [5, 1], columns or None, links or None, 2)]


def store(session, *keys, window="48 hours"):
    """keys: (message, event, days ago). What was not stored: {place: whether it was there}."""
    times = [session.query("SELECT (now() - %s * interval '1 day')::text", [days])[0][0] for _, _, days in keys]
    answer = session.run("lane/keys", [k[0] for k in keys], [k[1] for k in keys], times, window)
    return {int(row["n"]): row["there"] == "t" for row in answer}, times


def stored_keys(session):
    return session.query("SELECT message, event FROM receipt_counted ORDER BY 1, 2")


def test_a_key_is_stored_once_within_the_window(database):
    session = database.session()
    assert store(session, (1, 1, 0), (1, 2, 0), (-5, 1, 1))[0] == {}
    assert store(session, (1, 1, 0), (1, 3, 0), (-5, 1, 1))[0] == {1: True, 3: True}
    assert store(session, (1, 3, 0), (1, 1, 4), (1, 9, -2), (2, 2, 16))[0] == {1: True, 2: False, 3: False, 4: False}
    assert store(session, (1, 1, 4))[0] == {1: False}, "outside of the window nothing is stored"
    assert stored_keys(session) == [(-5, 1), (1, 1), (1, 2), (1, 3)]


def test_keys_of_unknown_messages_are_taken_back(database):
    session = database.session()
    kept, times = store(session, (1, 1, 0), (1, 2, 0), (2, 1, 1))
    assert kept == {}
    session.run("lane/keys_undo", [1, 2], [2, 1], [times[1], times[2]])
    assert stored_keys(session) == [(1, 1)]
    session.run("lane/keys_undo", [1], [1], [times[2]])
    assert stored_keys(session) == [(1, 1)], "of another day it is another key"
    assert store(session, (1, 2, 0))[0] == {}


@pytest.mark.parametrize("end, there", (("undo", {}), ("rollback", {}), ("commit", {1: True})))
def test_a_writer_waits_for_the_key_of_another(database, end, there):
    """What the first has taken back, since it knew no message, comes for the first time; what it has counted is a copy."""
    first, second, watcher = database.session(), database.session(), database.session()
    first.do("BEGIN")
    _, times = store(first, (1, 1, 0))
    second.prepare("lane/keys")
    waiting = Waiting(watcher, second, second.run, "lane/keys", [1], [1], times, "48 hours")
    if end == "undo":
        first.run("lane/keys_undo", [1], [1], times)
    first.do("ROLLBACK" if end == "rollback" else "COMMIT")
    assert {int(row["n"]): row["there"] == "t" for row in waiting.done()} == there
    assert stored_keys(watcher) == [(1, 1)]
