"""Pushes in SQL alone: claims beside runs, the deal, the decision, and the races between them (sql/functions/push*.sql)."""

import datetime
import json
import random
import threading

import pytest

from sql_fixture import SCHEMA, SQL, database, fill_in, sql_server, wait_for_lock  # noqa: F401
from test_sql_actions import HOUR, claim, finish, pipeline, step

MINUTE = 60_000


def split_steps(stages, push="spring", size=None, share=None, gather_ms=10 * MINUTE, after_ms=4 * HOUR, kpi=None, campaign=None, margin=0,
                otherwise="nobody", parts=None):
    """Steps of a split at step 0, and a call for each stage behind it."""
    kind = "size" if share is None else "share"
    parts = parts or [size or share] * len(stages)
    rule = {"variants": [{"stage": stage, kind: part} for stage, part in zip(stages, parts)], "after_ms": after_ms, "kpi": kpi,
            "campaign": campaign, "by": "variant" if kpi else None, "margin": margin, "otherwise": otherwise}
    if share is None:
        rule["gather_ms"] = gather_ms
    end = len(stages) + 1
    exits = {stage: [n + 1, 0] for n, stage in enumerate(stages)}
    calls = [step(n + 1, "webhook", stage=stage, target="x", next_step=end, else_step=end) for n, stage in enumerate(stages)]
    return [step(0, "split", stage="deal", target=push, exits=exits, rule=rule, next_step=end, else_step=end), *calls]


def push_pipeline(name="p", stages=("a", "b"), push="spring", **options):
    return pipeline(name, *split_steps(stages, push=push, **options), on=None, once_per=["subject"], push=push)


@pytest.fixture
def store(database):
    def store(*pipelines, name="store"):
        session = database.session(name)
        session.actions = True
        session.do("SELECT pipelines_store(%s)", (json.dumps(pipelines),))
        session.do("UPDATE action_lane SET owner = 'me', lease_until = now() + interval '1 day'")
        return session

    return store


def begin(session, subjects, name="p", org="o"):
    return int(session.one("actions/import", name, json.dumps([{"org_id": org, "subject": subject} for subject in subjects]), None, None)["rows"])


def claim_push(session, *fields):
    return session.query(f"SELECT claim_push({', '.join(['%s'] * len(fields))})", fields)[0][0]


def turn(session, limit=100):
    """Claims until nothing is due; calls end well. (subject, stage) of each call."""
    called = []
    for _ in range(limit):
        claimed, went_on = claim(session, range(16), most=1000, look=16000)
        ids = [i for i, _ in claimed]
        called += session.query("SELECT r.subject, s.stage FROM action a JOIN run r ON r.id = a.run_id JOIN pipeline_step s"
                                " ON s.pipeline_id = a.pipeline_id AND s.step = a.step WHERE a.id = ANY (%s)", (ids,))
        if claimed:
            finish(session, claimed)
        elif not went_on:
            return called
    raise AssertionError("it does not end")


def held(session):
    return dict(session.query("SELECT held_by, count(*)::int FROM action WHERE status = 'held' GROUP BY held_by"))


def members(session):
    return dict(session.query("SELECT r.subject, m.stage FROM push_member m JOIN run r ON r.id = m.run_id"))


def pass_time(session, push="spring", column="deal_at"):
    session.do(f"UPDATE push SET {column} = now() - interval '1 s' WHERE name = %s", (push,))
    return int(session.one("actions/pushes")["rows"])


# ---- nobody twice

def test_one_caller_gets_a_subject_of_a_push_run_or_sender(store):
    one = pipeline("one", step(0, "webhook", target="x"), on=None, once_per=["org_id", "subject"], push="spring")
    session = store(one, one | {"name": "two"}, pipeline("alone", step(0, "webhook", target="x"), on=None, once_per=["org_id", "subject"]))
    assert begin(session, ["ann", "bob"], "one") == 2
    assert begin(session, ["bob", "cid"], "two") == 1, "bob has a run of the push already"
    assert begin(session, ["ann", "bob"], "alone") == 2, "which counts by itself"
    assert [claim_push(session, "spring", "o", subject) for subject in ("ann", "bob", "cid", "dan", "dan")] == [False, False, False, True, False]
    assert begin(session, ["dan"], "one") == 0
    assert claim_push(session, "summer", "o", "ann") and claim_push(session, "spring", "other", "ann")
    assert session.query("SELECT DISTINCT once_key FROM run WHERE subject = 'dan'") == [('[null, "spring", "o", "dan"]',)]


def test_no_pipeline_has_the_key_of_a_push(store):
    """A pipeline may be called like a push, and its key be built of the same texts."""
    session = store(pipeline("spring", step(0, "webhook", target="x"), on=None, once_per=["subject"]),
                    pipeline("p", step(0, "webhook", target="x"), on=None, once_per=["subject"], push="spring"))
    assert begin(session, ["ann"], "spring") == 1 and claim_push(session, "spring", "ann") and begin(session, ["ann"], "p") == 0


@pytest.mark.parametrize("end", ("COMMIT", "ROLLBACK"))
def test_a_claim_waits_for_one_that_may_roll_back_and_goes_with_its_own_transaction(store, database, end):
    session, other, answers = store(push_pipeline()), database.session("other"), []
    thread = threading.Thread(target=lambda: answers.append(claim_push(other, "spring", "ann")))
    session.do("BEGIN")
    assert claim_push(session, "spring", "ann")
    thread.start()
    wait_for_lock(database.session("watcher"), other)
    session.do(end)
    thread.join(10)
    assert answers == [end == "ROLLBACK"]
    assert begin(session, ["ann"]) == 0


@pytest.mark.parametrize("texts", (("spring", None), (None, "ann"), ("spring", ""), ("spring", "a" * 1001)), ids=str)
def test_a_claim_of_nobody_is_refused(store, texts):
    with pytest.raises(Exception, match="texts of 1 to 1000 bytes"):
        claim_push(store(), *texts)


def test_the_platform_claims_and_sees_no_run(store, database):
    session = store(push_pipeline())
    role = f"platform_{database.name}"
    session.do(f"CREATE ROLE {role}")
    try:
        variables = {"schema": SCHEMA, "platform_role": role, "platform_columns": "message_id"}
        session.do(fill_in((SQL / "migrate/platform_role.sql").read_text(), variables))
        session.do(f"SET ROLE {role}")
        session.do("CREATE TEMP TABLE run (once_key text UNIQUE)")  # does not take the place of the real one
        assert claim_push(session, "spring", "ann") and not claim_push(session, "spring", "ann")
        with pytest.raises(Exception, match="permission denied"):
            session.do("SELECT 1 FROM receiptd.run")
        session.do("DROP TABLE pg_temp.run")
        session.do("RESET ROLE")
        assert begin(session, ["ann"]) == 0
    finally:
        session.do("RESET ROLE")
        session.do(f"DROP OWNED BY {role}; DROP ROLE {role}")


def test_claims_are_remembered_like_runs_and_erased_with_the_person(store):
    session = store(push_pipeline() | {"subject": "customer_id"})
    claim_push(session, "spring", "ann")
    claim_push(session, "spring", "o", "77001234")
    begin(session, ["77001234", "bob"])
    session.run("actions/tidy", 0, 1000, 0, HOUR)
    assert not claim_push(session, "spring", "ann"), "without a limit"
    assert session.query("SELECT count(*)::int FROM run r WHERE erase_run_is_of(r, '77001234', 'customer_id')") == [(2,)]
    assert session.query("SELECT erase_runs('{}', '77001234', 'customer_id')::int") == [(2,)]
    assert session.query("SELECT subject FROM run ORDER BY 1") == [("ann",), ("bob",)]
    assert claim_push(session, "spring", "77001234"), "what is erased is unknown again"
    session.do("UPDATE run SET ended_at = now() - interval '2 hours' WHERE subject = 'ann'")
    session.run("actions/tidy", 0, 1000, 90 * MINUTE, HOUR)
    assert claim_push(session, "spring", "ann")


# ---- the deal

def test_sizes_are_dealt_once_gathered_and_later_arrivals_are_the_remainder(store):
    session = store(push_pipeline(size=10))
    assert begin(session, [f"s{n}" for n in range(50)]) == 50
    assert turn(session) == [] and held(session) == {"deal:spring": 50}
    assert int(session.one("actions/pushes")["rows"]) == 0, "the time has not come"
    assert pass_time(session) == 1 and int(session.one("actions/pushes")["rows"]) == 0
    begin(session, ["late"])
    called = turn(session)
    assert sorted(stage for _, stage in called) == ["a"] * 10 + ["b"] * 10 and dict(called) == members(session)
    assert "late" not in dict(called) and held(session) == {"push:spring": 31}
    assert turn(session) == []
    assert session.query("SELECT decide_at - dealt_at FROM push") == [(datetime.timedelta(hours=4),)]
    rows = {row["stage"]: row for row in session.run("command/push_show", "spring")}
    assert [rows[stage]["dealt"] for stage in "ab"] == ["10", "10"] and rows["remainder"]["waiting"] == "31"


@pytest.mark.parametrize("there, dealt", ((0, (0, 0, 0)), (1, (0, 0, 1)), (7, (1, 2, 4)), (69, (9, 20, 40)), (70, (10, 20, 40)), (71, (10, 20, 40))))
def test_fewer_subjects_than_the_sizes_are_dealt_in_their_proportion(store, there, dealt):
    session = store(push_pipeline(stages=("a", "b", "c"), parts=[10, 20, 40]))
    if there > 0:
        begin(session, [f"s{n}" for n in range(there)])
    else:  # all that came were cancelled
        session.do("UPDATE push SET started_at = now()")
    turn(session)
    pass_time(session)
    stages = list(members(session).values())
    assert tuple(stages.count(stage) for stage in "abc") == dealt


def test_the_deal_is_the_same_at_any_time_and_in_any_order_of_the_list(store):
    subjects = [f"s{n}" for n in range(300)]
    session = store(push_pipeline("p", push="spring", size=40), push_pipeline("q", push="spring 2", size=40),
                    push_pipeline("r", push="shares", share=25))
    begin(session, subjects)
    turn(session)
    pass_time(session)
    first = members(session)
    random.Random(40).shuffle(subjects)
    session.do("DELETE FROM run; DELETE FROM action; DELETE FROM push_member; UPDATE push SET started_at = NULL, deal_at = NULL, dealt_at = NULL")
    for some in (subjects[:100], subjects[100:]):
        begin(session, some)
        turn(session)
    pass_time(session)
    assert members(session) == first and len(first) == 80
    place = session.query("SELECT s FROM unnest(%s::text[]) s ORDER BY push_place('spring', s) LIMIT 80", (subjects,))
    assert {subject for subject, in place} == set(first)
    numbers = sorted(int(subject[1:]) for subject in first)
    assert numbers[0] < 60 and numbers[-1] > 240, "it has nothing to do with the order of the list"
    begin(session, subjects, "q")
    turn(session)
    pass_time(session, "spring 2")
    of_q = session.query("SELECT count(*)::int FROM push_member m JOIN run r ON r.id = m.run_id WHERE push = 'spring 2' AND r.subject = ANY (%s)",
                         (list(first),))[0][0]
    assert 5 < of_q < 40, "another push deals in another order"


def test_places_are_even_and_do_not_change_with_the_version(store):
    session = store()
    places = session.query("SELECT round(push_place('spring', s)::numeric, 6)::float8 FROM unnest('{ann,bob,cid}'::text[]) s")
    assert [place for place, in places] == [0.698496, 0.687634, 0.930589]
    shares = session.query("SELECT width_bucket(push_place('spring', 's' || n), 0, 1, 10), count(*)::int FROM generate_series(1, 20000) n GROUP BY 1")
    assert sorted(bucket for bucket, _ in shares) == list(range(1, 11)) and all(1800 < n < 2200 for _, n in shares)


def test_shares_are_dealt_on_arrival_and_the_rest_waits(store):
    session = store(push_pipeline(share=20))
    begin(session, [f"s{n}" for n in range(1000)])
    called = turn(session)
    place = dict(session.query("SELECT 's' || n, push_place('spring', 's' || n) FROM generate_series(0, 999) n"))
    assert dict(called) == {subject: "a" if at < 0.2 else "b" for subject, at in place.items() if at < 0.4} == members(session)
    assert held(session) == {"push:spring": 1000 - len(called)}
    assert session.query("SELECT dealt_at = started_at, decide_at - started_at FROM push") == [(True, datetime.timedelta(hours=4))]
    assert claim_push(session, "spring", "s1") is False


def test_two_instances_deal_and_decide_once(store, database):
    session = store(push_pipeline(size=100))
    begin(session, [f"s{n}" for n in range(1000)])
    turn(session)
    for column in ("deal_at", "decide_at"):
        session.do(f"UPDATE push SET {column} = now() - interval '1 s'")
        moved, sessions = [], [database.session(f"i{n}") for n in range(4)]
        threads = [threading.Thread(target=lambda each=each: moved.append(int(each.one("actions/pushes")["rows"]))) for each in sessions]
        [thread.start() for thread in threads]
        [thread.join(30) for thread in threads]
        assert sorted(moved) == [0, 0, 0, 1]
    stages = list(members(session).values())
    assert (stages.count("a"), stages.count("b"), len(stages)) == (100, 100, 200)


def test_a_claim_that_has_not_seen_the_deal_holds_a_subject_that_comes_back(store):
    """The deal does not lock actions: a subject may be held for a deal that is over."""
    session = store(push_pipeline(size=1))
    begin(session, ["s1", "s2", "s3"])
    turn(session)
    pass_time(session)
    turn(session)
    begin(session, ["late"])
    session.do("UPDATE action SET status = 'held', held_by = 'deal:spring' WHERE status = 'pending'")
    assert turn(session) == [] and held(session) == {"push:spring": 2}


# ---- the decision

def decide(session, stage, by="ann", push="spring"):
    return session.one("command/push_decide", push, stage, by)


def dealt_push(store, **options):
    session = store(push_pipeline(size=10, **options))
    begin(session, [f"s{n}" for n in range(50)])
    turn(session)
    pass_time(session)
    assert len(turn(session)) == 20
    return session


def test_a_person_decides_once_and_the_remainder_gets_it(store):
    session = dealt_push(store)
    assert decide(session, "c") == {"done": "f", "stages": "a, b", "decided": None}
    assert decide(session, "a", push="x") == {"done": "f", "stages": None, "decided": None}
    assert decide(session, "b")["done"] == "t"
    again = decide(session, "a", "bob")
    assert again["done"] == "f" and again["decided"].startswith("b by ann at 20")
    called = turn(session)
    assert len(called) == 30 and {stage for _, stage in called} == {"b"} and not set(dict(called)) & set(members(session))
    begin(session, ["late"])
    assert turn(session) == [("late", "b")]
    assert pass_time(session, column="decide_at") == 0, "the horizon changes nothing any more"
    assert session.query("SELECT winner, decided_by, figures FROM push") == [("b", "ann", None)]
    assert session.query("SELECT status, count(*)::int FROM run GROUP BY 1") == [("done", 51)]


def test_for_nobody_the_runs_of_the_remainder_end(store):
    session = dealt_push(store)
    assert decide(session, "nobody")["done"] == "t"
    assert turn(session) == [] and held(session) == {}
    assert sorted(session.query("SELECT status, count(*)::int FROM run GROUP BY 1")) == [("cancelled", 30), ("done", 20)]
    assert session.query("SELECT class, count(*)::int FROM action WHERE status = 'cancelled' GROUP BY 1") == [("no_winner", 30)]
    assert not claim_push(session, "spring", "s1") and begin(session, ["s1"]) == 0


def test_a_decision_before_the_deal_leaves_the_deal_as_it_is(store):
    session = store(push_pipeline(size=10))
    begin(session, [f"s{n}" for n in range(50)])
    turn(session)
    decide(session, "a")
    assert turn(session) == [] and held(session) == {"deal:spring": 50}
    pass_time(session)
    stages = [stage for _, stage in turn(session)]
    assert (stages.count("a"), stages.count("b")) == (40, 10)


def test_who_decides_second_waits_for_the_first_and_is_refused(store, database):
    session = dealt_push(store)
    other, answers = database.session("other"), []
    thread = threading.Thread(target=lambda: answers.append(decide(other, "a", "bob")))
    with session.transaction():
        assert decide(session, "b")["done"] == "t"
        thread.start()
        wait_for_lock(database.session("watcher"), other)
    thread.join(10)
    assert answers[0]["done"] == "f" and answers[0]["decided"].startswith("b by ann")


def count(session, stage, delivered, clicked, campaign="c", rolled_up=True, opened=0, machine=0):
    """Counters by variant, as batches and the roll-up leave them."""
    rows = [(600, delivered, delivered), (700, opened, opened), (800, clicked, clicked), (9006, machine, machine), (9007, machine, machine)]
    for status, messages, events in rows:
        if rolled_up:
            session.do("INSERT INTO campaign_tally_total (campaign_id, kind, at, key, status, messages, events)"
                       " VALUES (%s, 'by_variant', '-infinity', %s, %s, %s, %s)", (campaign, stage, status, messages, events))
        else:
            session.do("INSERT INTO counter_delta (kind, campaign_id, key, status, messages, events)"
                       " VALUES ('by_variant', %s, %s, %s, %s, %s)", ([campaign], [stage], [status], [messages], [events]))


RULE = {"kpi": "clicked_per_delivered", "campaign": "c"}


@pytest.mark.parametrize("a, b, options, winner, by", (
    ((100, 10), (100, 12), {}, "b", "rule"),
    ((100, 10), (1000, 99), {}, "a", "rule"),
    ((100, 10), (100, 10), {}, None, "otherwise"),                                        # a tie has no winner
    ((100, 10), (100, 10), {"otherwise": "best"}, "a", "otherwise"),                      # then the first one
    ((100, 10), (100, 11), {"margin": 0.1}, "b", "rule"),                                 # exactly the margin
    ((1000, 100), (1000, 109), {"margin": 0.1}, None, "otherwise"),
    ((1000, 100), (1000, 109), {"margin": 0.1, "otherwise": "best"}, "b", "otherwise"),
    ((1000, 100), (1000, 109), {"margin": 0.1, "otherwise": "a"}, "a", "otherwise"),
    ((100, 0), (100, 1), {"margin": 5}, "b", "rule"),
    ((100, 0), (100, 0), {"margin": 5}, None, "otherwise"),
    ((100, 10), (0, 0), {}, None, "otherwise"),                                           # no figure, no rule
    ((0, 0), (0, 0), {"otherwise": "best"}, "a", "otherwise")))
def test_the_rule_decides_by_the_figures_at_the_horizon(store, a, b, options, winner, by):
    session = dealt_push(store, **RULE, **options)
    for stage, (delivered, clicked) in (("a", a), ("b", b)):
        count(session, stage, delivered, clicked)
    assert int(session.one("actions/pushes")["rows"]) == 0, "nobody looks before the horizon"
    assert pass_time(session, column="decide_at") == 1
    assert session.query("SELECT winner, decided_by FROM push") == [(winner, by)]
    figures = [{"stage": stage, "numerator": clicked, "denominator": delivered} for stage, (delivered, clicked) in (("a", a), ("b", b))]
    assert session.query("SELECT figures FROM push") == [(figures,)]
    called = turn(session)
    assert {stage for _, stage in called} == ({winner} if winner else set()) and len(called) == (30 if winner else 0)


def test_counts_that_are_not_rolled_up_count_and_those_of_machines_and_other_campaigns_do_not(store):
    session = dealt_push(store, **RULE)
    count(session, "a", 50, 5)
    count(session, "a", 50, 4, rolled_up=False)
    count(session, "b", 100, 8, machine=90)
    count(session, "b", 100, 90, campaign="other")
    pass_time(session, column="decide_at")
    assert session.query("SELECT winner, figures -> 0 ->> 'numerator', figures -> 1 ->> 'numerator' FROM push") == [("a", "9", "8")]


def test_without_a_kpi_the_horizon_decides_otherwise(store):
    session = dealt_push(store, otherwise="b")
    pass_time(session, column="decide_at")
    assert session.query("SELECT winner, decided_by, figures FROM push") == [("b", "otherwise", None)]


@pytest.mark.parametrize("kpi", ("delivered_per_sent", "opened_per_delivered", "clicked_per_delivered", "clicked_per_opened", "replied_per_delivered",
                                 "total_opens_per_delivered", "total_clicks_per_delivered"))
def test_each_rate_that_may_decide_is_one_of_the_definitions(store, kpi):
    """src/config/pipelines_split.c has the names; here is what they are made of."""
    session = store()
    parts = session.query("SELECT part, measure FROM kpi_part WHERE kpi = %s", (kpi,))
    assert {part for part, _ in parts} == {"numerator", "denominator"} and {measure for _, measure in parts} <= {"messages", "events"}


# ---- with everything else

def test_pauses_cancels_and_conditions_go_before(store):
    session = store(push_pipeline(size=10))
    begin(session, [f"s{n}" for n in range(30)])
    session.do("INSERT INTO pipeline_pause (name) VALUES ('p')")
    assert turn(session) == [] and held(session) == {"pipeline:p": 30}
    session.do("DELETE FROM pipeline_pause")
    assert turn(session) == [] and held(session) == {"deal:spring": 30}
    session.run("command/actions_cancel", None, None, "p", 10)
    pass_time(session)
    session.do("INSERT INTO org_limit (org_id, paused) VALUES ('o', true)")
    assert turn(session) == [] and held(session) == {"org:o": 20}
    session.do("DELETE FROM org_limit")
    assert len(turn(session)) == 20
    assert session.query("SELECT count(*)::int FROM push_member") == [(20,)]


def test_a_changed_pipeline_does_not_change_a_push_that_has_begun(store):
    session = store(push_pipeline(size=10))
    begin(session, [f"s{n}" for n in range(40)])
    turn(session)
    changed = push_pipeline(stages=("b", "c"), size=5)
    session.do("SELECT pipelines_store(%s)", (json.dumps([changed]),))
    begin(session, [f"t{n}" for n in range(20)])
    turn(session)
    pass_time(session)
    assert decide(session, "a")["done"] == "t", "the rule is that of the beginning"
    turn(session)
    stages = list(members(session).values())
    assert (stages.count("a"), stages.count("b")) == (10, 10)
    dead = session.query("SELECT r.subject FROM action a JOIN run r ON r.id = a.run_id WHERE a.class = 'no_stage' AND a.status = 'dead'")
    assert dead and all(subject.startswith("t") for subject, in dead), "a wording without the stage: seen, and not forgotten"
    assert session.query("SELECT count(*)::int FROM run WHERE status NOT IN ('done', 'dead')") == [(0,)]


def test_a_push_that_has_not_begun_takes_the_new_rule(store):
    session = store(push_pipeline(size=10))
    session.do("SELECT pipelines_store(%s)", (json.dumps([push_pipeline(size=5)]),))
    assert session.query("SELECT rule -> 'variants' -> 0 ->> 'size' FROM push") == [("5",)]


def test_an_erased_person_leaves_the_push(store):
    session = dealt_push(store)
    one = next(iter(members(session)))
    session.query("SELECT erase_runs(%s, NULL, NULL)", ([one],))
    assert one not in members(session) and len(members(session)) == 19
    assert session.query("SELECT count(*)::int FROM push_member") == [(19,)]


def test_members_go_with_their_runs(store):
    session = dealt_push(store)
    session.do("UPDATE run SET ended_at = now() - interval '2 hours' WHERE status = 'done'")
    session.run("actions/tidy", 0, 1000, HOUR, HOUR)
    assert session.query("SELECT count(*)::int FROM push_member") == [(0,)]


def test_why_a_subject_waits_is_said(store):
    session = store(push_pipeline(size=1))
    begin(session, ["s1", "s2"])
    turn(session)
    because = "SELECT because, count(*)::int FROM action_deferred GROUP BY 1"
    assert session.query(because) == [("gathers until push spring is dealt", 2)]
    session.do("UPDATE push SET rule = jsonb_set(rule, '{variants}', '[{\"stage\": \"a\", \"size\": 1}]')")
    pass_time(session)
    turn(session)
    assert session.query(because) == [("waits for the decision of push spring", 1)]
    assert [row["state"] for row in session.run("command/push_list")] == ["dealt"]


def test_the_figure_of_held_actions_is_about_what_an_operator_can_release(store):
    session = store(push_pipeline(size=10))
    begin(session, [f"s{n}" for n in range(50)])
    turn(session)
    figures = "SELECT n::int FROM actions_counts() WHERE name = 'held'"
    assert session.query(figures) == [(0,)]
    pass_time(session)
    turn(session)
    assert held(session) == {"push:spring": 30} and session.query(figures) == [(0,)]
    for reason in ("org:o", "pipeline:p", "endpoint:crm", "zzz:x"):
        session.do("UPDATE action SET held_by = %s WHERE id = (SELECT max(id) FROM action WHERE held_by = 'push:spring')", (reason,))
    assert session.query(figures) == [(4,)]
