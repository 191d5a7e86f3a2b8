"""The functions of sql/functions/actions_*.sql alone: who schedules, who may run, what may be spent, and the races between them."""

import itertools
import json
import threading
import time

import psycopg
import pytest

from sql_batch import Event, add_messages, apply
from sql_fixture import FLAGS, STATUSES, SqlError, database, sql_server, wait_for_lock  # noqa: F401
from support.wait import wait_for

SENT, DELIVERED, OPENED = 300, 600, 700
HOUR = 3_600_000


def step(number, op, **fields):
    defaults = {"step": number, "stage": "s", "op": op, "target": None, "key": None, "if": [], "unless": [], "awaits": None,
                "within_ms": 0, "next_step": number + 1, "next_delay_ms": 0, "else_step": number + 1, "else_delay_ms": 0}
    return defaults | fields


def pipeline(name, *steps, on=SENT, **fields):
    end = step(len(steps), "end", stage="", next_step=len(steps), else_step=len(steps))
    return {"name": name, "hash": json.dumps(steps), "on": on, "org": "org_id", "subject": "message_id", "orgs": None,
            "campaigns": None, "once_per": None, "first_step": 0, "first_delay_ms": 0, "steps": [*steps, end]} | fields


@pytest.fixture
def store(database):
    def store(*pipelines):
        session = database.session()
        session.actions = True
        session.do("SELECT pipelines_store(%s)", (json.dumps(pipelines),))
        session.do("UPDATE action_lane SET owner = 'me', lease_until = now() + interval '1 day'")
        return session

    return store


def claim(session, lane, me="me", most=64, org=(0, 1, 0), total=(0, 1, 0), shut=(), goals=(), rooms=(), lease_ms=60_000, look=None,
          zone=("UTC", None)):
    """Ids and tokens of what was claimed, and how many went on. Of a lane, or of several at once."""
    lanes = [lane] if isinstance(lane, int) else list(lane)
    rows = session.run("actions/claim", lanes, me, look or most, most, lease_ms, list(shut), list(goals), list(rooms), *org, *total, *zone)
    claimed = [(int(r["action_id"]), int(r["token"])) for r in rows if r["action_id"] is not None]
    return claimed, int(rows[0]["went_on"]) if rows else None


def claim_all(session, **options):
    return [one for lane in range(16) for one in claim(session, lane, **options)[0]]


def make_runs(session, rows=100, after=""):
    """What transactions of lanes have begun becomes runs, as an instance does it. How many rows of run_intent it took."""
    return int(session.one("actions/begin", rows, after)["taken"])


def finish(session, claimed, result="done", me="me"):
    n = len(claimed)
    row = session.one("actions/finish", me, [i for i, _ in claimed], [t for _, t in claimed], [result] * n, [0] * n, ["x"] * n,
                      [200] * n, ["answer"] * n)
    return int(row["finished"]), int(row["overlapped"])


def begin(session, count, org="o", name="p", prefix="s"):
    records = [{"org_id": org, "subject": f"{prefix}{n}"} for n in range(count)]
    return session.one("actions/import", name, json.dumps(records), None, None)["rows"]


def test_lanes_are_shared_out_without_a_leader_and_go_to_the_others(database):
    session = database.session()

    def own(me, lease_ms=60_000):
        return [int(r["actions_own"]) for r in session.run("actions/own", me, lease_ms)]

    assert own("a") == list(range(16))
    assert own("b") == []  # nothing is taken away, it is given
    assert len(own("a")) == 8 and len(own("b")) == 8
    assert sorted(own("a") + own("b")) == list(range(16))
    session.run("actions/leave", "a")
    assert own("b") == list(range(16))
    session.do("UPDATE action_lane SET lease_until = now() - interval '1 s'")  # b has died
    session.do("UPDATE action_instance SET seen_at = now() - interval '2 s'")
    assert own("c", 1000) == list(range(16))


def test_who_does_not_own_a_lane_claims_nothing(store):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    begin(session, 50)
    assert [claim(session, lane, me="other") for lane in range(16)] == [([], None)] * 16
    assert len(claim_all(session)) == 50


def test_a_subject_has_one_running_action_whatever_anybody_does(store):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    begin(session, 1)
    begin(session, 1)
    first = claim_all(session)
    assert len(first) == 1 and claim_all(session) == []
    with pytest.raises(psycopg.errors.UniqueViolation):
        session.do("UPDATE action SET status = 'running' WHERE status = 'pending'")
    assert finish(session, first) == (1, 0)
    second = claim_all(session)
    assert len(second) == 1 and second[0][1] > first[0][1]


def test_an_old_token_changes_nothing_and_is_counted(store):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    begin(session, 1)
    old = claim_all(session, lease_ms=0)
    new = claim_all(session)
    assert old[0][0] == new[0][0] and new[0][1] > old[0][1]
    assert finish(session, old) == (0, 1)
    assert session.query("SELECT status FROM action") == [("running",)]
    assert finish(session, new) == (1, 0) and finish(session, new) == (0, 0)  # once more is no overlap
    assert session.query("SELECT status FROM run") == [("done",)]


@pytest.mark.alone  # it is found when nothing runs any more that is older, on the whole server
def test_an_await_that_both_sides_miss_is_found(store, database):
    """The transition's statement does not see the await, and the await's transaction not the transition. Behind that statement, the batch waits
    for the timeline."""
    session = store(pipeline("p", step(0, "webhook", target="x"),
                             step(1, "await", awaits=OPENED, within_ms=3_600_000, else_step=2)))
    other, holder = database.session("lane"), database.session("holder")
    other.actions = other.timeline = True
    add_messages(session, {"m": "c"})
    apply(session, [Event("m", SENT, 0)])
    make_runs(session)
    claimed = claim_all(session)
    apply(other, [])  # it comes up before the lock
    holder.do("BEGIN; LOCK TABLE message_timeline IN EXCLUSIVE MODE")
    late = threading.Thread(target=apply, args=(other, [Event("m", OPENED, 1)]))
    late.start()
    wait_for_lock(session, other)
    assert finish(session, claimed) == (1, 0)
    for _ in range(3):
        assert sum(claim(session, lane)[1] for lane in range(16)) == 0
    holder.do("COMMIT")
    late.join()
    for _ in range(3):
        claim_all(session)
    assert session.query("SELECT class FROM action ORDER BY id") == [("x",), ("reached",)]
    assert session.query("SELECT status FROM run") == [("done",)]


def test_an_await_is_woken_by_the_transition_and_else_by_its_deadline(store):
    session = store(pipeline("p", step(0, "await", awaits=OPENED, within_ms=3_600_000, next_step=1, else_step=2),
                             step(1, "webhook", target="good", next_step=3), step(2, "webhook", target="late")))
    add_messages(session, {"m": "c", "n": "c"})
    apply(session, [Event("m", SENT, 0), Event("n", SENT, 1)])
    make_runs(session)
    assert claim_all(session) == []
    apply(session, [Event("m", OPENED, 2)])
    session.do("UPDATE action SET perform_at = now() WHERE message_id = 'n'")
    claim_all(session), claim_all(session)
    assert session.query("SELECT a.message_id, s.target FROM action a JOIN pipeline_step s USING (pipeline_id, step)"
                         " WHERE a.status = 'running' ORDER BY 1") == [("m", "good"), ("n", "late")]


def test_the_rate_holds_exactly_however_many_claim_at_once(store, database):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    begin(session, 400)
    began = time.monotonic()
    interval_us, burst = 10_000, 7

    def work(name):
        mine = database.session(name)
        while time.monotonic() - began < 0.5:
            claim_all(mine, org=(interval_us, burst, 0))

    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took_us = (time.monotonic() - began) * 1e6
    granted, full_at, running = session.query(
        "SELECT granted, full_at_us, (SELECT count(*) FROM action WHERE status = 'running') FROM org_limit WHERE org_id = 'o'")[0]
    assert granted == running and 0 < granted <= burst + took_us / interval_us
    times = [row[0] for row in session.query("SELECT extract(epoch FROM started_at)::float8 FROM action WHERE status = 'running'"
                                             " ORDER BY 1")]
    assert len(times) == granted and times[-1] * 1e6 <= full_at + 1e6


def test_concurrency_and_the_ceiling_of_all_hold_and_what_is_not_spent_goes_back(store):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    begin(session, 30, "a"), begin(session, 30, "b", prefix="t")
    claimed = claim_all(session, org=(0, 1, 5), total=(0, 1, 8))
    assert len(claimed) == 8
    assert max(n for _, n in session.query("SELECT org_id, count(*) FROM action WHERE status = 'running' GROUP BY 1")) <= 5
    finish(session, claimed)
    session.do("UPDATE org_limit SET paused = true WHERE org_id = 'a'")
    before = session.query("SELECT granted FROM org_limit WHERE org_id = '*'")[0][0]
    claimed = claim_all(session, org=(0, 1, 5), total=(0, 1, 8))
    assert len(claimed) == 5 and session.query("SELECT granted FROM org_limit WHERE org_id = '*'")[0][0] == before + 5
    assert {r[0] for r in session.query("SELECT held_by FROM action WHERE status = 'held'")} <= {"org:a"}


def test_organisations_take_turns_when_there_is_too_much(store):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    begin(session, 4000, "big")
    begin(session, 16, "small", prefix="t")
    seen = claim_all(session)
    orgs = session.query("SELECT org_id, count(*) FROM action WHERE status = 'running' GROUP BY 1 ORDER BY 1")
    assert len(seen) > 16 and orgs[1] == ("small", 16)


def orgs_of(session, claimed):
    return [org for org, in session.query("SELECT org_id FROM action WHERE id = ANY (%s) ORDER BY id", ([id for id, _ in claimed],))]


def test_one_claim_of_all_lanes_finds_the_single_action_of_a_small_organisation(store):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    begin(session, 4000, "big")
    for n in range(5):
        begin(session, 1, "small", prefix=f"t{n}-")
        claimed, _ = claim(session, range(16), look=128)
        assert len(claimed) == 64 and "small" in orgs_of(session, claimed)


def test_a_lane_with_much_gets_what_the_others_leave_over(store):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    begin(session, 2000, "big")
    session.do("DELETE FROM action WHERE lane <> 3")
    session.do("DELETE FROM run r WHERE NOT EXISTS (SELECT FROM action a WHERE a.run_id = r.id)")
    begin(session, 15, "small", prefix="t")
    claimed, _ = claim(session, range(16))
    orgs = orgs_of(session, claimed)
    assert orgs.count("small") == 15 and orgs.count("big") >= 20  # and not the sixteenth part


def test_where_there_is_room_for_one_organisations_take_turns_by_weight(store):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    begin(session, 300, "old"), begin(session, 300, "new", prefix="t"), begin(session, 300, "triple", prefix="u")
    session.do("INSERT INTO org_limit (org_id, weight) VALUES ('triple', 3)")
    turns = []
    for _ in range(150):
        claimed, _ = claim(session, range(16), goals=["webhook:x"], rooms=[1])
        turns += orgs_of(session, claimed)
        finish(session, claimed)
    assert len(turns) == 150 and all(10 <= turns.count(org) <= 55 for org in ("old", "new")) and 60 <= turns.count("triple") <= 120


def test_the_ceiling_of_all_is_shared_by_organisations_too(store):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    begin(session, 100, "a"), begin(session, 100, "b", prefix="t"), begin(session, 100, "c", prefix="u")
    turns = []
    for _ in range(60):
        claimed, _ = claim(session, range(16), org=(1000, 1000, 0), total=(0, 1, 2))
        assert len(claimed) == 2
        turns += orgs_of(session, claimed)
        finish(session, claimed)
    assert all(turns.count(org) >= 15 for org in "abc")
    granted = dict(session.query("SELECT org_id, granted::int FROM org_limit"))
    assert granted == {"*": 120} | {org: turns.count(org) for org in "abc"}  # what was charged beyond it went back


# ---- once for each message -----------------------------------------------------------------------------------------------

BOUNCED = 650  # BOUNCED_HARD_EMAIL: the message leaves DELIVERED
offsets = itertools.count(1000)


def goes(session, id, *codes):
    for code in codes:
        apply(session, [Event(id, code, next(offsets))])


def comes_back(session, id="m"):
    """Through DELIVERED, out of it, and into it again by what implies it."""
    goes(session, id, DELIVERED, BOUNCED, OPENED)


def started(session):
    return session.query("SELECT count(*)::int FROM run")[0][0]


CALL = step(0, "webhook", target="x")


@pytest.mark.parametrize("once_per", [None, ["message_id"], ["campaign_id"], ["message_id", "status"]])
def test_a_pipeline_begins_once_for_a_message_that_leaves_its_status_and_comes_back(store, once_per):
    session = store(pipeline("p", CALL, on=DELIVERED, once_per=once_per), pipeline("q", CALL, on=BOUNCED), pipeline("r", CALL, on=9001))
    add_messages(session, {"m": "c", "n": "d"})
    comes_back(session)
    make_runs(session)
    comes_back(session, "n")
    make_runs(session)
    assert session.query("SELECT p.name, r.message_id FROM run r JOIN pipeline p ON p.id = r.pipeline_id ORDER BY 1, 2") == [
        ("p", "m"), ("p", "n"), ("q", "m"), ("q", "n")]
    assert session.query("SELECT count(*)::int FROM run_begun") == [(4,)]


def test_a_message_that_comes_back_begins_nothing_after_its_run_was_tidied_up_or_cancelled(store):
    session = store(pipeline("p", CALL, on=DELIVERED))
    add_messages(session, {"m": "c", "n": "c"})
    goes(session, "m", DELIVERED), goes(session, "n", DELIVERED)
    make_runs(session)
    (first, _), *rest = claimed = claim_all(session)
    session.one("command/actions_cancel", first, None, None, 1)
    finish(session, claimed)
    session.do("UPDATE action SET ended_at = now() - interval '1 day'; UPDATE run SET ended_at = now() - interval '1 day'")
    session.run("actions/tidy", 1000, 1000, 0, HOUR)
    assert started(session) == 0
    for id in "mn":
        goes(session, id, BOUNCED, OPENED)
    make_runs(session)
    assert started(session) == 0


def test_pairs_that_have_begun_are_remembered_as_long_as_once_per_is(store):
    session = store(pipeline("p", CALL, on=DELIVERED))
    add_messages(session, {"m": "c"})
    goes(session, "m", DELIVERED)
    make_runs(session)
    session.do("UPDATE run_begun SET begun_at = now() - interval '1 hour'")
    session.run("actions/tidy", 1000, 1000, 0, HOUR)
    session.run("actions/tidy", 1000, 1000, 2 * HOUR, HOUR)
    assert session.query("SELECT count(*)::int FROM run_begun") == [(1,)]
    session.run("actions/tidy", 1000, 1000, 1000, HOUR)
    assert session.query("SELECT count(*)::int FROM run_begun") == [(0,)]


def test_a_message_that_comes_back_begins_nothing_in_another_wording_nor_after_its_pipeline_was_away(store):
    first, other = pipeline("p", CALL, on=DELIVERED), pipeline("p", CALL, CALL | {"step": 1}, on=DELIVERED)
    session = store(first)
    add_messages(session, {"m": "c", "n": "c"})
    for id in "mn":
        goes(session, id, DELIVERED)
    make_runs(session)
    session.do("SELECT pipelines_store(%s)", (json.dumps([other]),))
    comes_back(session, "m")
    session.do("SELECT pipelines_store('[]')")
    goes(session, "n", BOUNCED)
    session.do("SELECT pipelines_store(%s)", (json.dumps([first]),))
    goes(session, "n", OPENED)
    make_runs(session)
    assert started(session) == 2


def test_two_instances_that_make_runs_of_one_message_begin_one(store, database):
    session = store(pipeline("p", CALL, on=DELIVERED))
    add_messages(session, {"m": "c", "n": "c"})
    for id in "mn":
        goes(session, id, DELIVERED)
    for id in "nm":
        goes(session, id, BOUNCED, OPENED)
    others = [database.session(f"instance-{n}") for n in range(3)]
    threads = [threading.Thread(target=lambda other=other: [make_runs(other, rows=1) for _ in range(4)]) for other in others]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert started(session) == 2 and session.query("SELECT count(*)::int FROM run_intent") == [(0,)]


def test_an_instance_waits_for_the_one_that_begins_a_run_of_the_same_message(store, database):
    session = store(pipeline("p", CALL, on=DELIVERED))
    add_messages(session, {"m": "c"})
    goes(session, "m", DELIVERED)
    first, second = database.session("first"), database.session("second")
    with first.transaction():
        make_runs(first)
        goes(session, "m", BOUNCED, OPENED)
        waiting = threading.Thread(target=lambda: make_runs(second))
        waiting.start()
        wait_for_lock(session, second)
    waiting.join()
    assert started(session) == 1


def test_rows_of_one_id_in_two_organisations_are_two_messages(store):
    session = store(pipeline("p", CALL, on=DELIVERED))
    session.do("INSERT INTO run_intent (org_id, pipeline_id, messages, orgs, campaigns) SELECT '', id, '{m,m,m}', '{a,b,a}', '{c,c,c}' FROM pipeline")
    make_runs(session)
    assert session.query("SELECT org_id FROM run ORDER BY 1") == [("a",), ("b",)]


def test_an_import_begins_a_run_for_a_message_whatever_on_has_begun(store):
    session = store(pipeline("p", CALL, on=DELIVERED))
    add_messages(session, {"m": "c"})
    goes(session, "m", DELIVERED)
    make_runs(session)
    assert session.one("actions/import", "p", json.dumps([{"subject": "s", "message_id": "m"}]), None, None)["rows"] == "1"
    assert started(session) == 2


# ---- messages that are deleted ---------------------------------------------------------------------------------------------

AWAIT = [step(0, "await", awaits=OPENED, within_ms=3_600_000, next_step=1, else_step=1), step(1, "webhook", target="x")]
WAITS = {"call": [CALL], "wait": [step(0, "wait", next_delay_ms=0), CALL | {"step": 1, "next_step": 2}], "await": AWAIT,
         "unless": [CALL | {"unless": [9001]}], "record": [step(0, "produce", target="t")]}


@pytest.mark.parametrize("steps", WAITS.values(), ids=WAITS)
@pytest.mark.parametrize("delete", ["DELETE FROM message_inbox WHERE message_id = 'm'", "TRUNCATE message_inbox",
                                    "SELECT erase_messages('{m}', NULL, NULL)"], ids=["delete", "truncate", "erase"])
def test_a_run_whose_message_was_deleted_calls_no_more(store, steps, delete):
    session = store(pipeline("p", *steps))
    add_messages(session, {"m": "c"})
    goes(session, "m", SENT)
    make_runs(session)
    session.do(delete)
    session.do("UPDATE action SET perform_at = now()")
    for _ in range(3):
        assert claim_all(session) == []
    left = [] if "erase" in delete else [("cancelled", "message_gone", "cancelled")]
    assert session.query("SELECT a.status, a.class, r.status FROM action a JOIN run r ON r.id = a.run_id") == left


def test_a_run_is_made_of_a_message_that_was_deleted_meanwhile_and_ends(store):
    session = store(pipeline("p", CALL, subject="campaign_id"))
    add_messages(session, {"m": "c"})
    goes(session, "m", SENT)
    session.do("DELETE FROM message_inbox")
    make_runs(session)
    assert claim_all(session) == [] and session.query("SELECT status FROM run") == [("cancelled",)]


@pytest.mark.parametrize("how", ["retry", "lease", "held", "dead"])
def test_another_attempt_is_not_made_for_a_message_that_was_deleted(store, how):
    session = store(pipeline("p", CALL))
    add_messages(session, {"m": "c"})
    goes(session, "m", SENT)
    make_runs(session)
    if how == "held":
        assert claim_all(session, shut=["x"]) == []
    else:
        claimed = claim_all(session, lease_ms=0 if how == "lease" else 60_000)
        if how != "lease":
            finish(session, claimed, how)
    session.do("DELETE FROM message_inbox")
    if how == "dead":
        session.one("command/actions_retry", None, None, None, 1)
    assert claim_all(session) == [] and claim_all(session) == []
    assert session.query("SELECT a.status, r.status FROM action a JOIN run r ON r.id = a.run_id") == [("cancelled", "cancelled")]


def test_a_call_in_flight_while_its_message_is_deleted_is_the_last(store):
    session = store(pipeline("p", CALL, CALL | {"step": 1, "next_step": 2}))
    add_messages(session, {"m": "c"})
    goes(session, "m", SENT)
    make_runs(session)
    claimed = claim_all(session)
    session.do("DELETE FROM message_inbox")
    assert finish(session, claimed) == (1, 0) and claim_all(session) == []
    assert session.query("SELECT status FROM run") == [("cancelled",)]


def test_an_import_may_come_before_its_message_and_ends_with_it(store):
    session = store(pipeline("p", CALL | {"next_delay_ms": 0}, CALL | {"step": 1, "next_step": 2}, on=None))
    add_messages(session, {"there": "c"})
    session.one("actions/import", "p", json.dumps([{"subject": id, "message_id": id} for id in ("there", "later")] + [{"subject": "none"}]), None, None)
    first = claim_all(session)
    assert len(first) == 3
    add_messages(session, {"later": "c"})
    session.do("DELETE FROM message_inbox")
    finish(session, first)
    assert len(claim_all(session)) == 1
    assert session.query("SELECT subject, status FROM run ORDER BY 1") == [("later", "cancelled"), ("none", "active"), ("there", "cancelled")]


def test_of_two_rows_of_one_id_one_may_go(store):
    session = store(pipeline("p", CALL))
    session.do("ALTER TABLE message_inbox DROP CONSTRAINT message_inbox_pkey; CREATE INDEX ON message_inbox (message_id)")
    session.do("INSERT INTO message_inbox (message_id, org_id, campaign_id, created_at) VALUES ('m', 'o', 'c', now()), ('m', 'o', 'c', now() - interval '1 day')")
    goes(session, "m", SENT)
    make_runs(session)
    session.do("DELETE FROM message_inbox WHERE created_at > now() - interval '1 hour'")
    assert len(claim_all(session)) == 1


# ---- limits let go -----------------------------------------------------------------------------------------------------

FULL = {"org": {"org": (0, 1, 1)}, "all": {"total": (0, 1, 1)}, "both": {"org": (0, 1, 1), "total": (0, 1, 1)}}


@pytest.mark.parametrize("limits", FULL.values(), ids=FULL)
def test_a_call_of_a_dead_process_keeps_its_place_no_longer_than_its_lease(store, limits):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    begin(session, 3, org="a")
    begin(session, 3, org="b", prefix="t")
    orgs = 2 if "total" not in limits else 1
    old = claim_all(session, lease_ms=60_000, **limits)
    assert len(old) == orgs and claim_all(session, **limits) == []
    session.do("UPDATE action SET lease_until = clock_timestamp() WHERE status = 'running'")  # the process is gone
    new = claim_all(session, **limits)
    assert len(new) == orgs and claim_all(session, **limits) == []
    for _ in range(6):
        finish(session, new)
        new = claim_all(session, **limits)
    assert session.query("SELECT status, count(*)::int FROM run GROUP BY status") == [("done", 6)]


def test_calls_in_shards_that_nobody_has_keep_no_place_after_their_lease(store):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    begin(session, 20)
    assert len(claim_all(session, org=(0, 1, 4), total=(0, 1, 4))) == 4
    session.do("UPDATE action SET lease_until = clock_timestamp() WHERE status = 'running'")
    session.do("UPDATE action_lane SET owner = NULL WHERE lane IN (SELECT lane FROM action WHERE status = 'running')")
    assert len(claim_all(session, org=(0, 1, 4), total=(0, 1, 4))) == 4


@pytest.mark.parametrize("pause, resume", [
    ("UPDATE org_limit SET paused = true WHERE org_id = 'o'", "UPDATE org_limit SET paused = false"),
    ("INSERT INTO pipeline_pause (name) VALUES ('p')", "DELETE FROM pipeline_pause"),
])
def test_what_a_dead_process_called_is_held_by_a_pause_and_goes_on_afterwards(store, pause, resume):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    begin(session, 2)
    (old,) = claim_all(session, org=(0, 1, 1))
    session.do("UPDATE action SET lease_until = clock_timestamp() WHERE status = 'running'")
    session.do(pause)
    assert claim_all(session, org=(0, 1, 1)) == []
    assert session.query("SELECT status, count(*)::int FROM action GROUP BY status") == [("held", 2)]
    session.do(resume)
    assert len(claim_all(session)) == 2
    assert session.query("SELECT attempt FROM action WHERE id = %s", [old[0]]) == [(2,)]


def test_a_result_after_its_lease_counts_until_the_action_is_claimed_again(store):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    begin(session, 1)
    begin(session, 1)
    late = claim_all(session, lease_ms=0)
    assert claim_all(session, shut=["x"]) == []
    assert session.query("SELECT status, count(*)::int FROM action GROUP BY status") == [("held", 2)]
    assert finish(session, late) == (1, 0) and finish(session, late) == (0, 0)
    assert session.query("SELECT status, count(*)::int FROM action GROUP BY status ORDER BY 1") == [("done", 1), ("held", 1)]


def test_a_call_that_was_cancelled_or_retried_gives_its_place_back(store):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    begin(session, 3)
    full = {"org": (0, 1, 1)}
    (first,) = claim_all(session, **full)
    assert session.one("command/actions_cancel", first[0], None, None, 1)["rows"] == "1"
    (second,) = claim_all(session, **full)
    assert finish(session, [first]) == (0, 0) and claim_all(session, **full) == []
    finish(session, [second], "retry")
    assert len(claim_all(session, **full)) == 1


def test_a_clock_that_went_back_delays_a_lost_call_by_no_more_than_its_lease(store):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    begin(session, 2)
    (old,) = claim_all(session, lease_ms=10_000, org=(0, 1, 1))
    session.do("UPDATE action SET started_at = started_at + interval '1 day', lease_until = lease_until + interval '1 day' WHERE status = 'running'")
    assert claim_all(session, org=(0, 1, 1)) == []
    assert session.query("SELECT count(*)::int FROM action WHERE lease_until BETWEEN now() + interval '9 s' AND now() + interval '11 s'") == [(1,)]
    session.do("UPDATE action SET lease_until = clock_timestamp() WHERE status = 'running'")
    assert [id for id, _ in claim_all(session, org=(0, 1, 1))] == [old[0]]


def test_a_clock_that_went_back_keeps_no_shard_and_no_instance_alive(database):
    session = database.session()

    def own(me):
        return [int(r["actions_own"]) for r in session.run("actions/own", me, 10_000)]

    assert own("dead") == list(range(16))
    session.do("UPDATE action_lane SET lease_until = lease_until + interval '1 day'; UPDATE action_instance SET seen_at = seen_at + interval '1 day'")
    assert own("b") == []
    assert session.query("SELECT max(lease_until) <= now() + interval '10 s' FROM action_lane") == [(True,)]
    assert session.query("SELECT max(seen_at) <= now() FROM action_instance") == [(True,)]
    session.do("UPDATE action_lane SET lease_until = now() - interval '1 s' WHERE owner = 'dead'")
    session.do("UPDATE action_instance SET seen_at = now() - interval '11 s' WHERE instance = 'dead'")
    assert own("b") == list(range(16))


def test_another_attempt_waits_no_longer_than_the_longest_wait_of_today(store):
    """It was made shorter since, or the clock went back. What waits for another reason is left alone."""
    session = store(pipeline("p", step(0, "webhook", target="x")), pipeline("later", step(0, "webhook", target="x"), first_delay_ms=3 * HOUR, on=None))
    begin(session, 3)
    begin(session, 1, name="later", prefix="t")
    claimed = claim_all(session)
    finish(session, claimed, "retry")
    session.do("UPDATE action SET perform_at = now() + id * interval '40 minutes' WHERE attempt > 0")
    waits = "SELECT attempt, round(extract(epoch FROM perform_at - now()) / 60)::int FROM action ORDER BY perform_at"
    assert session.query(waits) == [(1, 40), (1, 80), (1, 120), (0, 180)]
    session.run("actions/tidy", HOUR, 1000, 0, HOUR)
    assert session.query(waits) == [(1, 40), (1, 60), (1, 60), (0, 180)]
    session.run("actions/tidy", HOUR, 1000, 0, 60_000)
    assert session.query(waits) == [(1, 1), (1, 1), (1, 1), (0, 180)]


MINUTE = 60_000_000


def wait_us(session, org="o"):
    """How far ahead of now an organisation's bucket is full, and of all together ('*')."""
    return session.query("SELECT (full_at_us - extract(epoch FROM clock_timestamp()) * 1000000)::int8 FROM org_limit WHERE org_id = %s", [org])[0][0]


def spend(session, **limits):
    begin(session, 200, prefix=str(time.monotonic_ns()))
    return len(claim_all(session, **limits))


SLOW, FAST = (MINUTE, 60, 0), (10_000, 60, 0)  # 1 and 6 000 a minute


@pytest.mark.parametrize("which, org", [("org", "o"), ("total", "*")])
def test_a_raised_rate_counts_at_once_whatever_the_old_one_has_left_behind(store, which, org):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    assert spend(session, **{which: SLOW}) == 60 and spend(session, **{which: SLOW}) == 0
    assert wait_us(session, org) > 59 * MINUTE
    began = time.monotonic()
    calls = 0
    while calls < 60:  # the bucket is empty, and fills at today's rate
        calls += spend(session, **{which: FAST})
        assert time.monotonic() - began < 60
    assert wait_us(session, org) <= 60 * 10_000


@pytest.mark.parametrize("which, org", [("org", "o"), ("total", "*")])
@pytest.mark.parametrize("today, ahead, calls", [
    ((MINUTE, 200, 0), 200, 140),  # a larger burst: what is above the old one, at once
    ((MINUTE, 5, 0), 5, 0),  # a smaller burst: an empty bucket of today's
    ((0, 60, 0), 0, 200),  # no rate any more
], ids=["burst raised", "burst lowered", "rate removed"])
def test_what_is_stored_ahead_is_bounded_by_todays_limit(store, which, org, today, ahead, calls):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    assert spend(session, **{which: SLOW}) == 60
    session.do("INSERT INTO org_limit (org_id) VALUES (%s) ON CONFLICT DO NOTHING", [org])
    assert spend(session, **{which: today}) >= calls
    assert wait_us(session, org) <= ahead * MINUTE
    if not today[0]:  # and set back: a full bucket
        assert spend(session, **{which: SLOW}) == 60


def test_a_lowered_rate_that_is_set_back_counts_at_once(store):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    hour = 60 * MINUTE
    assert spend(session, org=FAST) >= 60
    spend(session, org=(hour, 60, 0))
    session.do("UPDATE org_limit SET full_at_us = full_at_us + 3600 * 1000000::int8 * 24 * 365")  # or the clock went back by a year
    spend(session, org=FAST)
    assert wait_us(session) <= 60 * 10_000
    wait_for(lambda: spend(session, org=FAST) > 0, 30, "calls at the fast rate")


@pytest.mark.parametrize("on", [200, SENT, 440, DELIVERED, OPENED, 9001, 9003])
def test_a_batch_is_quiet_exactly_if_no_pipeline_hears_of_it(store, on):
    session = store(pipeline("p", step(0, "webhook", target="x"), on=on))
    wanted = {int(row["code"]) for row in session.run("actions/subscriptions")}
    for n, code in enumerate([*STATUSES, *(9001 + bit for bit in FLAGS)]):
        event = Event(f"m{n}", code, n)
        add_messages(session, {f"m{n}": "c"})
        session.do("DELETE FROM run_intent")
        apply(session, [event])
        heard = session.query("SELECT count(*) FROM run_intent")[0][0] > 0
        try:
            session.do("SELECT actions_unsubscribed(%s::int2[], %s)", ([event.top], event.mask))
            refused = False
        except psycopg.Error as error:
            assert error.sqlstate == "RD003"
            refused = True
        known = event.top in wanted or any(event.mask >> (flag - 9001) & 1 for flag in wanted if flag >= 9001)
        assert (heard, refused) == (known, known), code


def test_an_import_sets_up_the_first_step_whatever_it_is(store):
    session = store(pipeline("waits", step(0, "await", awaits=OPENED, within_ms=3_600_000), step(1, "webhook", target="x"), on=None),
                    pipeline("nothing", on=None))
    add_messages(session, {"m": "c", "n": "c"})
    apply(session, [Event("m", OPENED, 0)])
    session.one("actions/import", "waits", json.dumps([{"subject": id, "message_id": id} for id in "mnx"]), None, None)
    begin(session, 2, name="nothing")
    assert session.query("SELECT r.subject, a.awaits, a.settle IS NULL, a.perform_at <= clock_timestamp() FROM action a"
                         " JOIN run r ON r.id = a.run_id ORDER BY 1") == [
        ("m", OPENED, True, True), ("n", OPENED, False, False), ("x", OPENED, False, False)]
    assert session.query("SELECT r.status, r.ended_at IS NOT NULL, count(*) FROM run r GROUP BY 1, 2 ORDER BY 1") == [
        ("active", False, 3), ("done", True, 2)]


def test_once_per_counts_what_it_refuses_and_batches_do_not_block_each_other(store):
    session = store(pipeline("p", step(0, "webhook", target="x"), once_per=["campaign_id"]))
    add_messages(session, {f"m{n}": f"c{n % 3}" for n in range(30)})
    apply(session, [Event(f"m{n}", SENT, n) for n in range(20)])
    apply(session, [Event(f"m{n}", SENT, n) for n in range(20, 30)])
    assert make_runs(session) == 2
    assert session.query("SELECT started::int, repeated::int FROM pipeline_count") == [(3, 27)]
    session.run("actions/tidy", 0, 1000, 0, HOUR)
    assert session.query("SELECT started::int, repeated::int FROM pipeline_count") == [(3, 27)]


def test_once_per_is_remembered_for_ever_or_for_as_long_as_is_said(store):
    session = store(pipeline("p", step(0, "webhook", target="x"), once_per=["subject"]))
    assert begin(session, 5) == "5" and begin(session, 5) == "0"
    finish(session, claim_all(session))
    session.do("UPDATE run SET ended_at = now() - interval '1 hour' WHERE subject <> 's0'")
    session.run("actions/tidy", 0, 1000, 0, HOUR)
    assert begin(session, 5) == "0"
    session.run("actions/tidy", 0, 1000, 60_000, HOUR)
    assert session.query("SELECT subject FROM run") == [("s0",)]
    assert begin(session, 5) == "4"


def test_what_a_transaction_begins_is_one_row_and_rolls_back_with_it(store):
    session = store(pipeline("p", step(0, "webhook", target="x")), pipeline("q", step(0, "webhook", target="x"), on=DELIVERED))
    add_messages(session, {f"m{n}": "c" for n in range(900)})
    apply(session, [Event(f"m{n}", SENT, n) for n in range(900)])
    assert session.query("SELECT org_id, cardinality(messages) FROM run_intent") == [("o", 900)]
    session.timeline = True
    session.do("ALTER TABLE message_timeline ADD CONSTRAINT refused CHECK (status <> 600)")  # it is written behind the intents
    with pytest.raises(SqlError, match="refused"):
        apply(session, [Event(f"m{n}", DELIVERED, n) for n in range(900)])
    assert session.query("SELECT count(*) FROM run_intent") == [(1,)] and session.query("SELECT count(*) FROM run") == [(0,)]
    assert make_runs(session) == 1 and make_runs(session) == 0
    assert session.query("SELECT count(*), count(DISTINCT message_id) FROM run") == [(900, 900)]


TRACES = [f"00-{'ab' * 16}-{n:016x}-{flags}" for n, flags in ((1, "01"), (2, "01"), (3, "00"))]


def test_a_run_keeps_the_sampled_trace_of_the_receipt_that_began_it(store):
    session = store(pipeline("p", CALL, on=DELIVERED))
    add_messages(session, {id: "c" for id in "abcdefg"})
    apply(session, [Event("a", DELIVERED, 0), Event("b", DELIVERED, 1, traceparent=TRACES[2])])
    assert session.query("SELECT traces FROM run_intent") == [(None,)]  # no receipt of the batch is in a sampled trace
    make_runs(session)
    apply(session, [Event("c", DELIVERED, 2, traceparent=TRACES[0]), Event("d", DELIVERED, 3),
                    Event("e", SENT, 4, traceparent=TRACES[0]), Event("e", DELIVERED, 5, traceparent=TRACES[1]), Event("e", DELIVERED, 6),
                    Event("f", SENT, 7, traceparent=TRACES[1]), Event("f", DELIVERED, 8)])
    make_runs(session)
    assert session.query("SELECT message_id, trace FROM run ORDER BY 1") == [
        ("a", None), ("b", None), ("c", TRACES[0]), ("d", None), ("e", TRACES[1]), ("f", TRACES[1])]
    apply(session, [Event("g", DELIVERED, 9, traceparent=TRACES[1])])
    session.query("SELECT erase_runs('{x}', NULL, NULL)")
    make_runs(session)
    assert session.query("SELECT trace FROM run WHERE message_id = 'g'") == [(TRACES[1],)]
    claimed = session.query("SELECT t.trace FROM action a JOIN action_lane l USING (lane), actions_claim(ARRAY[l.lane], 'me', 99, 99, 60000, "
                            "'{}', '{}', '{}', 0, 1, 0, 0, 1, 0, 'UTC', NULL) t WHERE a.message_id = 'e' AND t.action_id = a.id")
    assert claimed == [(TRACES[1],)]


def test_an_intent_that_loses_an_erased_message_keeps_the_traces_of_the_others(store):
    session = store(pipeline("p", CALL, on=DELIVERED))
    add_messages(session, {id: "c" for id in "abc"})
    apply(session, [Event(id, DELIVERED, n, traceparent=trace) for n, (id, trace) in enumerate(zip("abc", (TRACES[0], None, TRACES[1])))])
    session.query("SELECT erase_runs('{a}', NULL, NULL)")
    make_runs(session)
    assert session.query("SELECT message_id, trace FROM run ORDER BY 1") == [("b", None), ("c", TRACES[1])]


def test_what_a_batch_wakes_is_looked_up_by_key_even_if_planned_while_nothing_waits(store):
    session = store(pipeline("p", step(0, "await", awaits=OPENED, within_ms=3_600_000), step(1, "webhook", target="x")))
    plan = session.explain("lane/intents", *[None] * 9)
    woken = plan[plan.index("Update on action a"):].split("\n  ->")[0]
    assert "on action_pkey" in woken or "using action_pkey" in woken, plan
    assert "Index Cond: (id = ANY" in woken and "Index Cond: (message_id = (u" in woken, plan
    assert woken.count("Scan ") - woken.count("CTE Scan ") <= 3, plan  # one by message; a bitmap scan by id is two


def test_runs_are_made_exactly_once_however_many_make_them(store, database):
    session = store(pipeline("p", step(0, "webhook", target="x")),
                    pipeline("once", step(0, "webhook", target="x"), once_per=["campaign_id"]))
    add_messages(session, {f"m{n}": f"c{n % 10}" for n in range(3000)})
    failures = []

    def work(name):
        mine = database.session(name)
        try:
            while not done or mine.query("SELECT count(*) FROM run_intent")[0][0]:
                with mine.transaction():
                    make_runs(mine, 2)
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    done = []
    threads = [threading.Thread(target=work, args=(f"t{n}",)) for n in range(3)]
    for thread in threads:
        thread.start()
    for first in range(0, 3000, 100):
        apply(session, [Event(f"m{n}", SENT, n) for n in range(first, first + 100)])
    done.append(True)
    for thread in threads:
        thread.join()
    assert failures == []
    assert session.query("SELECT p.name, count(*), count(DISTINCT r.message_id) FROM run r JOIN pipeline p ON p.id = r.pipeline_id"
                         " GROUP BY 1 ORDER BY 1") == [("once", 10, 10), ("p", 3000, 3000)]
    assert session.query("SELECT name, started::int, repeated::int FROM pipeline_count ORDER BY 1") == [
        ("once", 10, 2990), ("p", 3000, 0)]


def test_organisations_with_few_begin_before_those_with_many_and_these_take_turns(store):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    for org, count in (("b", 120), ("a", 120), ("small", 3)):
        session.do("INSERT INTO message_inbox (message_id, org_id, campaign_id) SELECT %s || g, %s, 'c' FROM generate_series(1, %s) g",
                   (org, org, count))
    for turn in range(2):
        apply(session, [Event(f"b{n}", SENT, n) for n in range(turn * 60 + 1, turn * 60 + 61)])
    for turn in range(2):
        apply(session, [Event(f"a{n}", SENT, n) for n in range(turn * 60 + 1, turn * 60 + 61)])
    apply(session, [Event(f"small{n}", SENT, n) for n in range(1, 4)])
    order, last = [], ""
    for _ in range(5):
        row = session.one("actions/begin", 1, last)
        last = row["last"]
        order += session.query("SELECT DISTINCT org_id FROM run WHERE xmin = (SELECT xmin FROM run ORDER BY id DESC LIMIT 1)")
    assert [org for org, in order] == ["small", "a", "b", "a", "b"]
    assert session.query("SELECT count(*) FROM run") == [(243,)]


def test_a_run_begins_at_the_time_of_its_transition_with_the_fields_of_the_inbox(database, store):
    session = store(pipeline("p", step(0, "webhook", target="x"), first_delay_ms=5000, org="platform", subject="customer",
                             once_per=["customer", "campaign_id"]))
    session.do("ALTER TABLE message_inbox ADD customer text, ADD platform text")
    add_messages(session, {"m": "c", "n": "c", "l": "c"})
    session.do("UPDATE message_inbox SET customer = 'ann', platform = 'web' WHERE message_id <> 'l'")
    apply(session, [Event(id, SENT, n) for n, id in enumerate("lmn")])
    begun_at = session.query("SELECT begun_at FROM run_intent")[0][0]
    make_runs(session)
    assert session.query("SELECT org_id, subject, once_key, started_at = %s FROM run ORDER BY 2", (begun_at,)) == [
        ("web", "ann", '["p", "ann", "c"]', True), ("", "l", '["p", "", "c"]', True)]
    assert session.query("SELECT DISTINCT perform_at - %s = interval '5 s' FROM action", (begun_at,)) == [(True,)]


def test_what_a_first_await_waits_for_may_come_before_its_run_is_made(store):
    session = store(pipeline("p", step(0, "await", awaits=OPENED, within_ms=3_600_000), step(1, "webhook", target="x")))
    add_messages(session, {"m": "c"})
    apply(session, [Event("m", SENT, 0)])
    apply(session, [Event("m", OPENED, 1)])
    make_runs(session)
    claim_all(session)
    assert len(claim_all(session)) == 1


def test_what_a_shut_endpoint_waits_for_is_out_of_the_way(store):
    session = store(pipeline("bad", step(0, "webhook", target="broken"), on=None), pipeline("good", step(0, "webhook", target="x"),
                                                                                            on=None))
    begin(session, 300, name="bad")
    begin(session, 40, name="good", prefix="t")
    shut = ["broken"]
    claimed = [one for _ in range(10) for one in claim_all(session, shut=shut)]
    assert len(claimed) == 40
    assert session.query("SELECT count(*) FROM action WHERE status = 'held' AND held_by = 'endpoint:broken'") == [(300,)]
    assert len([one for _ in range(10) for one in claim_all(session)]) == 300


def test_a_wait_does_not_age_the_call_behind_it(store):
    """actions.max_age counts from when a call was due first: a wait of weeks leaves it all its attempts."""
    week = 7 * 86_400_000
    session = store(pipeline("p", step(0, "wait", **{"if": [], "unless": [DELIVERED], "next_delay_ms": week}), CALL | {"step": 1, "next_step": 2, "else_step": 2},
                             on=None, first_delay_ms=week))
    begin(session, 1)
    for _ in range(2):
        session.do("UPDATE action SET perform_at = perform_at - interval '7 days', created_at = created_at - interval '7 days' WHERE status = 'pending'")
        row = session.run("actions/claim", list(range(16)), "me", 64, 64, 60_000, [], [], [], 0, 1, 0, 0, 1, 0, "UTC", None)[0]
    assert row["action_id"] is not None and int(row["age_ms"]) < 60_000
