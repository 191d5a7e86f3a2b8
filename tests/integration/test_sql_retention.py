"""Messages that go: the triggers that book them, recounts and repairs, what a ladder may do to what is booked."""
import random
import threading

import psycopg
import pytest

from sql_batch import Event, add_messages, apply, drift, stored_funnel
from sql_fixture import STATUSES, Database, SqlError, database, sql_server  # noqa: F401
from test_sql_apply import make_events
from test_sql_funnel import contradictions, repair


def some_messages(session, n=60):
    add_messages(session, {f"m{i}": (f"c{i % 3}" if i % 4 else None) for i in range(n)})
    apply(session, [Event(f"m{i}", (600, 700, 440, 9001, 300)[i % 5], i) for i in range(n) if i % 6])


def booked(session):
    return session.query("SELECT COALESCE(sum(messages), 0)::int FROM campaign_retired")[0][0]


def remembers(session, *ids):
    return session.query("SELECT count(*) FROM unnest(%s::text[]) id JOIN retired_message r ON r.hash = hashtextextended(id, 0)", [list(ids)])[0][0]


@pytest.mark.parametrize("unknown", ("park", "dead-letter", "insert"))
def test_a_late_receipt_is_told_from_one_that_came_too_early(database, unknown):
    session = database.session()
    add_messages(session, {"old": "c", "young": "c"})
    session.do("DELETE FROM message_inbox WHERE message_id = 'old'")
    answer = apply(session, [Event("old", 600, 0), Event("young", 600, 1), Event("old", 9001, 2), Event("early", 300, 3)], unknown=unknown)
    assert (answer["events_retired"], answer["events_counted"]) == (2, 1)
    letters = session.query('SELECT "offset", reason, detail FROM dead_letter WHERE reason = \'retired_message\' ORDER BY 1')
    assert letters == [(0, "retired_message", "its message was deleted"), (2, "retired_message", "its message was deleted")]
    assert session.query("SELECT count(*) FROM parked_event WHERE message_id = 'old'") == [(0,)]
    assert session.query("SELECT count(*) FROM message_inbox WHERE message_id = 'old'") == [(0,)] and drift(session) == []
    # A message that comes again under its id is known, whatever is remembered.
    add_messages(session, {"old": "c"})
    assert apply(session, [Event("old", 600, 4)], unknown=unknown)["events_counted"] == 1


def test_a_parked_receipt_whose_message_is_deleted_does_not_wait(database):
    session = database.session()
    apply(session, [Event("m", 600, 0), Event("other", 600, 1)], lane=4)
    add_messages(session, {"m": "c"})
    session.do("DELETE FROM message_inbox")
    (probed,) = session.run("control/parked_probe", [Event("m", 600, 0).topic], [0], 3_600_000)
    assert (probed["applicable"], probed["expired"], probed["rows"]) == ("f", "t", "2")
    session.run("lane/insert_parked", [Event("m", 600, 0).topic], [0], 4, 10, 3_600_000)
    answer = session.one("lane/expire", [Event("m", 600, 0).topic], [0], 4, 10, 3_600_000)
    assert (answer["rows"], answer["retired"]) == ("1", "1")
    assert session.query("SELECT reason, detail FROM dead_letter") == [("retired_message", "its message was deleted")]
    assert session.query("SELECT message_id FROM parked_event") == [("other",)] and session.query("SELECT count(*) FROM message_inbox") == [(0,)]


@pytest.mark.parametrize("how, gone", (
    ("DELETE FROM message_inbox WHERE message_id LIKE 'm1%'", 11), ("DELETE FROM message_inbox", 60), ("TRUNCATE message_inbox", 60),
    ("WITH d AS (DELETE FROM message_inbox WHERE campaign_id = 'c1' RETURNING 1) SELECT count(*) FROM d", 15)))
def test_a_deletion_is_booked_and_the_funnel_stays(database, how, gone):
    session = database.session()
    some_messages(session)
    before = stored_funnel(session)
    session.do(how)
    assert stored_funnel(session) == before and drift(session) == []
    assert booked(session) == gone and session.query("SELECT count(*) FROM retired_message") == [(gone,)]
    assert remembers(session, "m1", "m2") == (2 if gone == 60 else 1)
    assert [repair(session, campaign) for campaign in ("c0", "c1", "c2", "")] == [0, 0, 0, 0] and stored_funnel(session) == before


def test_a_deletion_that_is_rolled_back_books_nothing(database):
    session = database.session()
    some_messages(session)
    with pytest.raises(ZeroDivisionError), session.transaction():
        session.do("TRUNCATE message_inbox")
        raise ZeroDivisionError
    assert booked(session) == 0 and drift(session) == []


def test_a_truncate_that_might_not_see_all_messages_is_refused(database):
    session = database.session()
    session.do("SET default_transaction_isolation = 'repeatable read'")
    with pytest.raises(psycopg.Error, match="might not see all messages") as refused:
        session.do("TRUNCATE message_inbox")
    assert refused.value.sqlstate == "25001"


def apply_again(session, events):
    """As the daemon does it: a batch that waited for a deletion starts again."""
    try:
        apply(session, events)
    except SqlError as error:
        assert error.sqlstate == "40001"
        apply_again(session, events)


def test_deletions_beside_receipts_stay_exact(database):
    session = database.session()
    inbox = {f"m{i}": f"c{i % 4}" for i in range(400)}
    add_messages(session, inbox)
    events = make_events(random.Random(7), list(inbox), 4000)
    failures = []

    def delete():
        deleter = database.session("deleter")
        try:
            for i in range(0, 300, 3):
                deleter.do("DELETE FROM message_inbox WHERE message_id = ANY (%s)", [[f"m{i}", f"m{i + 1}"]])
            deleter.do("TRUNCATE message_inbox")
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    thread = threading.Thread(target=delete)
    thread.start()
    for first in range(0, len(events), 100):
        apply_again(session, events[first:first + 100])
    thread.join()
    assert failures == [] and drift(session) == [] and booked(session) == 400
    assert session.query("SELECT count(*) FROM message_inbox") == [(0,)]


def test_messages_that_went_without_the_trigger_are_booked_by_a_repair(database):
    session = database.session()
    some_messages(session)
    before = stored_funnel(session)
    session.do("ALTER TABLE message_inbox DISABLE TRIGGER receiptd_count_deleted")
    session.do("DELETE FROM message_inbox WHERE campaign_id = 'c1' AND message_id < 'm4' AND message_id <> 'm25'")
    session.do("ALTER TABLE message_inbox ENABLE TRIGGER receiptd_count_deleted")
    session.do("DELETE FROM message_inbox WHERE campaign_id = 'c1' AND message_id < 'm5'")
    assert drift(session) != []
    answer = session.one("command/audit_repair", "c1", True)
    assert int(answer["booked"]) > 0 and drift(session) == [] and stored_funnel(session) == before
    assert session.one("command/audit_repair", "c1", True) == {"repaired": "0", "booked": "0"}


def test_where_someone_else_counts_the_root_a_repair_books_what_looks_deleted_and_subtracts_the_rest(sql_server):
    database = Database(sql_server, targeted=False)
    try:
        session = database.session()
        some_messages(session)
        before = stored_funnel(session)
        session.do("DELETE FROM message_inbox WHERE message_id < 'm4'")
        for campaign in ("c0", "c1", "c2", ""):
            session.one("command/audit_repair", campaign, False)
        assert stored_funnel(session) == before and drift(session, False) == [] and booked(session) > 0
        total = booked(session)
        session.do("INSERT INTO counter_delta (kind, campaign_id, status, messages, events) VALUES ('funnel', '{c1}', '{700}', '{3}', '{0}')")
        assert session.one("command/audit_repair", "c1", False) == {"repaired": "1", "booked": "0"}
        assert stored_funnel(session) == before and booked(session) == total
    finally:
        database.drop()


def test_a_ladder_may_grow_after_a_booking_and_not_lose_what_is_booked(database):
    session = database.session()
    add_messages(session, {"m": "c", "n": "c"})
    apply(session, [Event("m", 440, 1), Event("n", 9002, 2)])
    session.do("DELETE FROM message_inbox")
    grown = STATUSES | {445: ("FAILED_AGAIN", 440, True)}
    assert contradictions(session, grown) == []
    assert [code for code, *_ in contradictions(session, {c: s for c, s in STATUSES.items() if c != 440})] == [440]
    database.fill_ladder(session, grown)
    assert drift(session) == []
