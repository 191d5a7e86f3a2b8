"""Suppressed persons in SQL alone: who is, what soft bounces add up to, removals, imports, erasures, and claims that pass over."""

import json

import pytest

from sql_fixture import SqlError, database, sql_server  # noqa: F401
from test_sql_actions import begin, claim_all, pipeline, step, store  # noqa: F401

ROWS = "SELECT class, message_id, made_by FROM suppression ORDER BY id"


def suppress(session, *rows, count=3, within_ms=86_400_000):
    """What a batch appends. Rows: (message, person, class, time), a fifth member says that it is soft."""
    columns = zip(*[(row[0], "o", row[1], row[2], row[3], count if len(row) > 4 else 0, within_ms) for row in rows])
    session.run("lane/suppression", *[list(column) for column in columns])


def soft(session, *rows, **settings):
    suppress(session, *[(*row[:2], "BOUNCED_SOFT", row[2], True) for row in rows], **settings)


def is_suppressed(session, person="ann", org="o"):
    return session.query("SELECT is_suppressed(%s, %s)", (org, person))[0][0]


def bring(session, *rows, by="me"):
    return int(session.one("command/suppressions_import", json.dumps(rows), by)["rows"])


def remove(session, person="ann", reason="asked"):
    return int(session.one("command/suppressions_remove", "o", person, reason, "me")["rows"])


def test_a_person_is_suppressed_in_the_organisation_over_all_messages(database):
    session = database.session()
    suppress(session, ("m1", "ann", "UNSUBSCRIBED", "2026-01-01T00:00:00Z"), ("m2", "bob", "COMPLAINED", "2026-01-01T00:00:00Z"))
    assert is_suppressed(session) and is_suppressed(session, "bob")
    assert not is_suppressed(session, "ann", "another") and not is_suppressed(session, "nobody")
    assert session.query("SELECT is_suppressed('o', NULL), is_suppressed(NULL, 'ann')") == [(False, False)]
    bring(session, {"person": "eve", "class": "MANUAL"})
    assert session.query("SELECT is_suppressed(NULL, 'eve'), is_suppressed('', 'eve')") == [(True, True)]


def test_a_message_that_comes_again_adds_nothing(database):
    session = database.session()
    one = ("m1", "ann", "UNSUBSCRIBED", "2026-01-01T00:00:00Z")
    suppress(session, one, one)
    suppress(session, one, ("m1", "ann", "COMPLAINED", "2026-01-01T00:00:00Z"), ("m2", "ann", "UNSUBSCRIBED", "2026-01-02T00:00:00Z"))
    assert session.query(ROWS) == [("UNSUBSCRIBED", "m1", "receipt"), ("COMPLAINED", "m1", "receipt"), ("UNSUBSCRIBED", "m2", "receipt")]


@pytest.mark.parametrize("times, suppressed", [
    (["01T00", "01T12"], False), (["01T00", "01T12", "02T00"], True), (["01T00", "01T12", "02T01"], False),
    (["02T00", "01T00", "01T12"], True),  # whatever their order
    (["01T00", "02T12", "03T12", "05T00", "05T01", "05T02"], True), (["01T00", "01T00", "01T00"], True)])
def test_soft_bounces_suppress_where_so_many_lie_within_the_time(database, times, suppressed):
    session = database.session()
    for number, time in enumerate(times):
        soft(session, (f"m{number}", "ann", f"2026-01-{time}:00:00Z"))
    assert is_suppressed(session) is suppressed


def test_two_transactions_that_each_see_one_too_few_suppress_together(database):
    session, left, right = database.session(), database.session(), database.session()
    soft(session, ("m1", "ann", "2026-01-01T00:00:00Z"))
    with left.transaction(), right.transaction():
        soft(left, ("m2", "ann", "2026-01-01T01:00:00Z"))
        soft(right, ("m3", "ann", "2026-01-01T02:00:00Z"))  # it does not wait
        assert not is_suppressed(left) and not is_suppressed(right)
    assert is_suppressed(session)


def test_the_number_and_the_time_are_those_of_when_it_came(database):
    session = database.session()
    soft(session, ("m1", "ann", "2026-01-01T00:00:00Z"), ("m2", "ann", "2026-01-02T00:00:00Z"), count=3)
    soft(session, ("m3", "ann", "2026-01-03T00:00:00Z"), count=1)
    assert is_suppressed(session)
    soft(session, ("m4", "bob", "2026-01-03T00:00:00Z"), count=2, within_ms=0)
    soft(session, ("m5", "bob", "2026-01-03T00:00:01Z"), count=2, within_ms=0)
    assert not is_suppressed(session, "bob")


def test_a_removal_keeps_the_history_and_does_not_reach_what_commits_later(database):
    session, lane = database.session(), database.session()
    soft(session, ("m1", "ann", "2026-01-01T00:00:00Z"), ("m2", "ann", "2026-01-01T01:00:00Z"))
    suppress(session, ("m3", "ann", "UNSUBSCRIBED", "2026-01-01T00:00:00Z"))
    assert remove(session) == 3 and not is_suppressed(session) and remove(session) == 0
    soft(session, ("m4", "ann", "2026-01-01T02:00:00Z"))  # the first two no longer count
    assert not is_suppressed(session)
    with lane.transaction():
        suppress(lane, ("m5", "ann", "COMPLAINED", "2025-12-31T00:00:00Z"))
        assert remove(session) == 1 and not is_suppressed(session)
    assert is_suppressed(session)
    assert session.query("SELECT count(*), min(removed_by), min(removed_because) FROM suppression") == [(5, "me", "asked")]
    assert remove(session, reason="again") == 1
    assert session.query("SELECT DISTINCT removed_because FROM suppression ORDER BY 1") == [("again",), ("asked",)]


def test_an_import_adds_each_person_once_and_names_the_line_that_is_wrong(database):
    session = database.session()
    ann = {"line": 2, "org_id": "o", "person": "ann", "class": "MANUAL"}
    assert bring(session, ann, ann, ann | {"class": "COMPLAINED", "since": "2026-01-01T00:00:00Z", "made_by": "crm"}) == 2
    assert bring(session, ann) == 0
    assert session.query(ROWS) == [("MANUAL", None, "me"), ("COMPLAINED", None, "crm")]
    assert remove(session) == 2 and bring(session, ann) == 1
    for wrong, text in (({"person": None}, "line 7: there is no person"), ({"person": ""}, "line 7: there is no person"),
                        ({"class": "manual"}, 'line 7: the class "manual" is none'), ({"class": None}, 'line 7: the class "" is none'),
                        ({"since": "soon"}, "line 7: invalid input syntax for type timestamp"), ({"key": "xyz"}, "line 7: invalid hexadecimal"),
                        ({"key": "00"}, "line 7: the key is not that of"), ({"soft_count": 3}, "line 7: soft_count and soft_within belong"),
                        ({"soft_count": 0, "soft_within": "1 day", "person": "eve"}, "line 7: ")):
        before = session.query(ROWS)
        with pytest.raises(SqlError, match=text.replace('"', '.')) as error:
            bring(session, ann | {"person": "new"}, ann | {"line": 7} | wrong)
        assert error.value.sqlstate == "22023" and session.query(ROWS) == before


def test_a_guard_in_front_of_a_number_is_taken_off_where_the_key_says_so(database):
    session = database.session()
    bring(session, {"org_id": "o", "person": "+41", "class": "MANUAL"}, {"org_id": "o", "person": "'+42", "class": "MANUAL"})
    keys = dict(session.query("SELECT person, encode(key, 'hex') FROM suppression"))
    session.do("DELETE FROM suppression")
    bring(session, {"org_id": "o", "person": "'+41", "class": "MANUAL", "key": keys["+41"]},
          {"org_id": "o", "person": "'+42", "class": "MANUAL", "key": keys["'+42"]}, {"org_id": "o", "person": "'+43", "class": "MANUAL"})
    assert session.query("SELECT person FROM suppression ORDER BY id") == [("+41",), ("'+42",), ("'+43",)]


def test_an_erasure_keeps_the_key_so_the_person_stays_suppressed(database):
    session = database.session()
    suppress(session, ("m1", "ann", "UNSUBSCRIBED", "2026-01-01T00:00:00Z"), ("m2", "bob", "UNSUBSCRIBED", "2026-01-01T00:00:00Z"))
    bring(session, {"org_id": "o", "person": "ann", "class": "MANUAL"}, {"org_id": "o", "person": "cid", "class": "MANUAL"})
    session.do("SELECT * FROM erase_messages('{}', 'cid', 'customer_id')")
    session.do("SELECT * FROM erase_messages('{m1}', NULL, NULL)")
    assert session.query("SELECT person, message_id, class FROM suppression ORDER BY id") == [
        (None, None, "UNSUBSCRIBED"), ("bob", "m2", "UNSUBSCRIBED"), (None, None, "MANUAL"), (None, None, "MANUAL")]
    assert is_suppressed(session) and is_suppressed(session, "cid")
    key = session.query("SELECT encode(key, 'hex') FROM suppression WHERE person IS NULL ORDER BY id")[0][0]
    session.do("DELETE FROM suppression")
    bring(session, {"org_id": "o", "key": key, "class": "UNSUBSCRIBED"})  # an export has the key alone
    assert is_suppressed(session)


def test_a_claim_passes_over_whoever_is_suppressed_at_that_moment(store):
    session = store(pipeline("p", step(0, "webhook", target="crm", unless=[9001, 10000]), step(1, "produce", target="t"), on=None))
    begin(session, 3)
    suppress(session, ("another", "s0", "UNSUBSCRIBED", "2026-01-01T00:00:00Z"), ("another", "s1", "BOUNCED_SOFT", "2026-01-01T00:00:00Z", True))
    claimed = [id for id, _ in claim_all(session)]
    assert session.query("SELECT r.subject FROM run r JOIN action a ON a.run_id = r.id WHERE a.id = ANY (%s) ORDER BY 1",
                         (claimed,)) == [("s1",), ("s2",)]
    assert session.query("SELECT r.subject, a.class FROM run r JOIN action a ON a.run_id = r.id WHERE a.status = 'done'") == [("s0", "passed_over")]
    assert session.query("SELECT step FROM action a JOIN run r ON r.id = a.run_id WHERE r.subject = 's0' AND a.status = 'pending'") == [(1,)]


def test_the_look_up_goes_by_the_key_whatever_the_number_of_rows(database):
    session = database.session()
    session.do("INSERT INTO suppression (key, org_id, person, class, since) SELECT suppression_key('o', g::text), 'o', g, 'X', now()"
               " FROM generate_series(1, 20000) g")
    session.do("ANALYZE suppression")
    plan = "\n".join(row for row, in session.query("EXPLAIN SELECT FROM suppression_state s WHERE s.key = suppression_key('o', '5') AND s.suppresses"))
    assert "suppression_key" in plan and "Seq Scan" not in plan, plan
