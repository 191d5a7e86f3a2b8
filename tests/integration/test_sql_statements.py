"""What a batch becomes at a server, of each kind, and what comes back; how it ends where it cannot be written."""
import pytest

from sql_batch import TOPIC, Event, add_messages, apply, drift, moves_of, probe_batch, stands_at, stored_funnel, stored_rows, wake
from sql_fixture import SqlError, database, sql_server, wait_for_lock  # noqa: F401
from sql_lane import lane_of
from test_sql_positions import bootstrap
from test_sql_races import Waiting

TRACEPARENT = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
ALPHA = '{"message_id":"alpha","status":"OPENED","at":"2026-01-02T03:04:05Z"}'
BETA = '{"message_id":"beta","status":"FAILED"}'
UNKNOWN = '{"message_id":"gamma","status":"DELIVERED","campaign_id":"k","n":"\u00fc"}'
POISON = '{"message_id":"x","status":"NONSENSE"}'
NAME = "äöü" * 6


@pytest.fixture
def session(database):
    made = database.session()
    bootstrap(made, lanes=1, starts=[50])
    add_messages(made, {"alpha": "c", "beta": "c"})
    return made


def send(session, kind, *payloads, moves=(), rejects=0, **more):
    """A record as it came from Kafka."""
    good = len(payloads) - rejects
    record = {"topic": TOPIC, "partition": 0, "offset": 50, "traceparent": TRACEPARENT, "value": f"[{','.join(payloads)}]", "rejects": rejects,
              "indexes": list(range(good)), "keys": [0] * good}
    return lane_of(session).ask({kind: {"records": [record] if payloads else [], "moves": moves_of(moves) if moves else stands_at(session, 0, [0]), **more}})


def progress(session):
    return session.query("SELECT next_offset, anchor_offset, anchor_timestamp, anchor_crc FROM consumer_progress")


def test_a_batch_applies_parks_writes_letters_and_moves_its_position(session):
    answer = send(session, "apply", ALPHA, ALPHA, BETA, UNKNOWN, POISON, moves=[(0, 50, 52)], rejects=1)
    assert (answer["known"], answer["changed"], answer["parked"]) == (2, 2, 1)
    assert stored_rows(session) == {"alpha": (700, 0), "beta": (440, 0)}
    assert session.query("SELECT status_at = timestamptz '2026-01-02 03:04:05Z' FROM message_inbox WHERE message_id = 'alpha'") == [(True,)]
    assert stored_funnel(session) == {("c", 0): (2, 0), ("c", 200): (2, 0), ("c", 300): (2, 0), ("c", 440): (1, 1), ("c", 600): (1, 0), ("c", 700): (1, 2)}
    assert session.query('SELECT topic, partition, "offset", index, lane, message_id, status, payload, traceparent FROM parked_event') == [
        (TOPIC, 0, 50, 3, 0, "gamma", 600, UNKNOWN.encode(), TRACEPARENT)]
    assert session.query('SELECT "offset", index, lane, reason, payload, traceparent FROM dead_letter') == [
        (50, 4, 0, "unknown_status", POISON.encode(), TRACEPARENT)]
    assert progress(session) == [(52, 51, 1234, 4294967295)] and drift(session) == []


def test_a_batch_without_messages_moves_its_position_and_writes_its_letters(session):
    apply(session, [], moves=[(0, 50, 60)])
    send(session, "apply", POISON, moves=[(0, 60, 61)], rejects=1)
    assert progress(session)[0][:2] == (61, 60) and session.query("SELECT reason FROM dead_letter") == [("unknown_status",)]


def test_a_batch_for_another_position_is_fenced_and_leaves_nothing(session):
    for events in ([Event("alpha", 700, 0)], []):
        with pytest.raises(SqlError, match="expected 49 of generation 1, found 50") as fenced:
            apply(session, events, moves=[(0, 49, 52)])
        assert fenced.value.sqlstate == "RD001" and fenced.value.answer["outcome"] == "fenced"
    with pytest.raises(SqlError) as fenced:
        send(session, "wake", moves=[(0, 49, 49)])
    assert fenced.value.answer["outcome"] == "fenced"
    assert stored_rows(session) == {"alpha": (0, 0), "beta": (0, 0)} and progress(session)[0][0] == 50
    apply(session, [Event("alpha", 700, 0)], moves=[(0, 50, 52)])
    assert stored_rows(session)["alpha"] == (700, 0), "the connection is good for the next one"


def test_a_probe_is_rolled_back_whatever_the_policy(session):
    lane_of(session, insert=True)
    for policy in ("park", "insert", "dead-letter"):
        assert send(session, "probe", ALPHA, UNKNOWN, unknown=policy)["outcome"] == "probed"
    assert stored_rows(session) == {"alpha": (0, 0), "beta": (0, 0)}
    assert session.query("SELECT 1 FROM parked_event UNION ALL SELECT 1 FROM dead_letter") == []


def test_a_row_that_the_database_refuses_is_described_for_its_letter(session):
    session.do(f'ALTER TABLE message_inbox ADD CONSTRAINT "{NAME}" CHECK (status <> 700)')
    with pytest.raises(SqlError) as refused:
        probe_batch(session, [Event("alpha", 700, 0), Event("beta", 440, 1)])
    answer = refused.value.answer
    assert answer["outcome"] == "data" and answer["detail"].startswith("23514 new row for relation")
    assert len(answer["detail"]) > 60 and "\ufffd" not in answer["detail"], "valid, though it was cut"


def test_parked_receipts_are_woken_discarded_or_expired(session):
    apply(session, [Event("m1", 300, 50), Event("m2", 300, 50, 1), Event("m3", 300, 50, 2)], moves=[(0, 50, 51)])
    add_messages(session, {"m1": "w"})
    answer = send(session, "wake")
    assert (answer["rows"], answer["changed"]) == (1, 1)
    add_messages(session, {"m2": "w"})
    answer = send(session, "discard")
    assert answer["rows"] == answer["effects"]["handled"] == 1
    answer = send(session, "expire", max_age_ms=0)
    assert (answer["rows"], answer["moved"], answer["made"]) == (1, 0, 0)
    assert session.query("SELECT index, reason FROM dead_letter ORDER BY 1") == [(1, "database"), (2, "aged_out")]


def test_what_waited_for_an_alias_is_moved_or_gets_a_bare_row(session):
    lane_of(session, insert=True)
    apply(session, [Event("g1", 300, 50, gateway="acme", own=True), Event("g2", 300, 50, 1, gateway="acme", own=True, campaign_id="k")], moves=[(0, 50, 51)])
    session.do("INSERT INTO message_alias VALUES ('acme', 'g1', 'alpha')")
    answer = send(session, "expire", max_age_ms=3_600_000, alias_wait_ms=0, unknown="insert")
    assert (answer["rows"], answer["moved"], answer["made"]) == (0, 1, 1)
    assert wake(session)["rows"] == 2 and stored_rows(session) == {"alpha": (300, 0), "beta": (0, 0), "g2": (300, 0)}


def test_a_blocked_batch_is_tried_again_and_a_lost_one_is_unknown(session, database):
    zombie, watcher = database.session("zombie"), database.session("watcher")
    session.lock_timeout_ms = 200
    zombie.do("BEGIN; UPDATE consumer_progress SET next_offset = 51")
    with pytest.raises(SqlError) as blocked:
        apply(session, [Event("alpha", 700, 0)], moves=[(0, 50, 51)])
    assert blocked.value.sqlstate == "55P03" and blocked.value.answer["outcome"] == "retry"
    session.lock_timeout_ms = 60_000
    batch = Waiting(watcher, session, apply, session, [Event("alpha", 700, 0)], 0, "park", [(0, 50, 51)])
    watcher.query("SELECT pg_terminate_backend(%s)", [session.lane.pid])
    assert batch.done().answer["outcome"] == "unknown"
    zombie.do("ROLLBACK")
    assert stored_rows(watcher)["alpha"] == (0, 0) and progress(watcher)[0][0] == 50


# ---- between the flights


def test_a_batch_that_is_ended_between_its_flights_leaves_nothing_and_holds_nobody(session, database):
    """As a daemon that is stopped there: the server ends the session, which idles in its transaction."""
    other = database.session("other")
    held = apply(session, [Event("alpha", 700, 0), Event("nobody", 300, 1)], moves=[(0, 50, 52)], hold=True)
    assert other.query("SELECT state FROM pg_stat_activity WHERE pid = %s", [session.lane.pid]) == [("idle in transaction",)]
    waiting = Waiting(database.session("watcher"), other, apply, other, [Event("alpha", 300, 2)], 0, "park", [(0, 50, 53)])
    database.session("watcher").query("SELECT pg_terminate_backend(%s)", [session.lane.pid])
    assert waiting.done()["messages_changed"] == 1
    with pytest.raises(SqlError) as lost:
        held.end()
    assert lost.value.answer["outcome"] == "unknown"
    assert stored_rows(other) == {"alpha": (300, 0), "beta": (0, 0)} and progress(other)[0][0] == 53
    assert other.query("SELECT count(*) FROM parked_event") == [(0,)] and drift(other) == []


def test_a_stopped_daemon_s_transaction_is_ended_by_the_server(session, database):
    held = apply(session, [Event("alpha", 700, 0)], hold=True)
    platform = database.session("platform")
    platform.do("SET statement_timeout = '60s'")
    platform.do("UPDATE message_inbox SET updated_at = now() WHERE message_id = 'alpha'")  # waits for idle_in_transaction_session_timeout, 30 s
    with pytest.raises(SqlError):
        held.end()
    assert stored_rows(platform)["alpha"] == (0, 0) and drift(platform) == []


def test_a_message_that_comes_between_the_flights_is_parked_and_woken(session, database):
    platform = database.session("platform")
    held = apply(session, [Event("late", 700, 0)], hold=True)
    add_messages(platform, {"late": "c"})
    assert held.end()["events_parked"] == 1
    assert wake(session)["rows"] == 1 and stored_rows(session)["late"] == (700, 0) and drift(session) == []


def test_a_row_that_the_second_flight_cannot_write_takes_the_first_one_back(session):
    session.do("ALTER TABLE parked_event ADD CONSTRAINT refused CHECK (message_id <> 'gamma')")
    with pytest.raises(SqlError) as refused:
        apply(session, [Event("alpha", 700, 0), Event("gamma", 700, 1)], moves=[(0, 50, 52)])
    assert refused.value.answer["outcome"] == "data"
    assert stored_rows(session)["alpha"] == (0, 0) and progress(session)[0][0] == 50 and drift(session) == []
    with pytest.raises(SqlError) as probed:
        probe_batch(session, [Event("gamma", 700, 1)])
    assert probed.value.answer["outcome"] == "data", "a probe finds it as well"
