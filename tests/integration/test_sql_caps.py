"""Caps in SQL: open runs of an organisation, whoever begins them and however; calls of a subject, by the days of its own zone."""

import datetime
import itertools
import json
import threading
import time

import pytest

from sql_batch import Event, add_messages, apply
from sql_fixture import database, sql_server, wait_for_lock  # noqa: F401
from test_sql_actions import CALL, OPENED, SENT, claim_all, finish, make_runs, pipeline, step, store  # noqa: F401

SETTINGS = {"open_runs": 0, "beyond_open_runs": "refuse", "caps": [], "cap_units": [], "beyond_subject_cap": "wait", "zone": "UTC",
            "zone_field": None}


def configure(session, **settings):
    session.do("SELECT actions_settings(%s)", (json.dumps(SETTINGS | settings),))


def ask(session, *records, name="p"):
    """(began, waiting, dropped), or what the answer says about the cap."""
    row = session.one("actions/import", name, json.dumps([{"org_id": "o"} | record for record in records]), None, None)
    return json.loads(row["over"]) if row["over"] else (int(row["rows"]), int(row["waiting"]), int(row["dropped"]))


def people(*names, **fields):
    return [{"subject": name} | fields for name in names]


def runs(session):
    return dict(session.query("SELECT subject, status FROM run"))


def counted(session):
    return session.query("SELECT started::int, repeated::int, refused::int, dropped::int, deferred::int FROM pipeline_count WHERE name = 'p'")[0]


def finish_all(session):
    finish(session, claim_all(session))


def release(session):
    """As an instance does it with every poll; not twice in a tenth of a second."""
    session.do("UPDATE org_open SET tried_at = '-infinity'")
    make_runs(session)


# ---- open runs -------------------------------------------------------------------------------------------------------------


def test_without_a_cap_all_runs_begin(store):
    session = store(pipeline("p", CALL))
    assert ask(session, *people("a", "b", "c")) == (3, 0, 0)
    assert session.query("SELECT count(*)::int FROM org_open") == [(0,)]


def test_a_request_beyond_the_cap_is_refused_as_a_whole(store):
    session = store(pipeline("p", CALL, once_per=["subject"]))
    configure(session, open_runs=3)
    assert ask(session, *people("a", "b")) == (2, 0, 0)
    assert ask(session, *people("c", "d")) == {"org_id": "o", "cap": 3, "open": 2, "beyond": 1}
    assert ask(session, *people("a", "b", "c")) == (1, 0, 0)  # once_per had two of them: they need no room
    assert ask(session, *people("a", "b", "c")) == (0, 0, 0)  # sent again, for its answer was lost
    assert ask(session, {"subject": "x", "org_id": "other"}, {"subject": "y"}) == {"org_id": "o", "cap": 3, "open": 3, "beyond": 1}
    assert runs(session) == dict.fromkeys("abc", "active") and counted(session) == (3, 5, 4, 0, 0)
    finish_all(session)
    assert ask(session, *people("c", "d", "x")) == (2, 0, 0)  # what was refused took no key


def test_what_is_dropped_is_counted_and_takes_no_key(store):
    session = store(pipeline("p", CALL, once_per=["subject"]))
    configure(session, open_runs=2, beyond_open_runs="drop")
    assert ask(session, *people("a", "a", "b", "c", "d")) == (2, 0, 2)
    assert runs(session) == {"a": "active", "b": "active"} and counted(session) == (2, 1, 0, 2, 0)
    finish_all(session)
    assert ask(session, *people("c")) == (1, 0, 0)


def test_what_is_deferred_begins_in_the_order_in_which_it_came(store):
    session = store(pipeline("p", CALL, once_per=["subject"]))
    configure(session, open_runs=2, beyond_open_runs="defer")
    assert ask(session, *people("a", "b", "c")) == (2, 1, 0)
    for name in "defghij":
        assert ask(session, *people(name)) == (0, 1, 0)
    assert ask(session, *people("j")) == (0, 0, 0)  # it has its key
    assert counted(session) == (10, 1, 0, 0, 8)
    assert session.query("SELECT DISTINCT status, held_by, because FROM action JOIN action_deferred d USING (id, status)"
                         " WHERE status = 'held'") == [("held", "cap:o", "the organisation has as many open runs as it may")]
    came = []
    for _ in range(5):
        release(session)
        came.append(sorted(name for name, status in runs(session).items() if status == "active"))
        finish_all(session)
    assert came == [["a", "b"], ["c", "d"], ["e", "f"], ["g", "h"], ["i", "j"]]


def test_a_new_run_does_not_overtake_those_that_wait(store):
    session = store(pipeline("p", CALL))
    configure(session, open_runs=1, beyond_open_runs="defer")
    ask(session, *people("a", "b"))
    finish_all(session)
    assert ask(session, *people("c")) == (0, 1, 0)
    release(session)
    assert runs(session) == {"a": "done", "b": "active", "c": "waiting"}


@pytest.mark.parametrize("lift", ["config", "org"])
def test_a_cap_that_is_lifted_lets_all_go_on(store, lift):
    session = store(pipeline("p", CALL))
    configure(session, open_runs=1, beyond_open_runs="defer")
    ask(session, *people(*"abcde"))
    if lift == "config":
        configure(session)
    else:
        session.run("command/org_set", "o", None, None, None, None, None, 0)
    release(session)
    assert set(runs(session).values()) == {"active"}
    assert ask(session, *people("f")) == (1, 0, 0)


def test_the_cap_of_an_organisation_comes_before_that_of_all(store):
    session = store(pipeline("p", CALL))
    configure(session, open_runs=1, beyond_open_runs="drop")
    session.run("command/org_set", "large", None, None, None, None, None, 3)
    assert ask(session, *people("a", "b", "c", "d", org_id="large"), *people("a", "b")) == (4, 0, 2)
    (large,) = session.run("command/org_list")
    assert (large["org_id"], large["open_runs"], large["open"], large["waiting"]) == ("large", "3", "3", "0")
    session.run("command/org_clear", "large")
    assert ask(session, *people("e", org_id="large")) == (0, 0, 1)


@pytest.mark.parametrize("mode, expected", [("refuse", {"b": "active", "a": "active"}), ("drop", {"b": "active", "a": "active"}),
                                            ("defer", {"b": "active", "a": "active", "c": "waiting", "d": "waiting"})])
def test_runs_that_transitions_begin_keep_to_the_cap(store, mode, expected):
    """The first transitions have the room, in whatever batch they were."""
    session = store(pipeline("p", CALL, subject="message_id"))
    configure(session, open_runs=2, beyond_open_runs=mode)
    add_messages(session, {id: "c" for id in "abcd"})
    for n, id in enumerate("badc"):
        apply(session, [Event(id, SENT, n)])
    make_runs(session)
    assert runs(session) == expected
    assert counted(session) == {"refuse": (2, 0, 2, 0, 0), "drop": (2, 0, 0, 2, 0), "defer": (4, 0, 0, 0, 2)}[mode]
    finish_all(session)
    for n, id in enumerate("abcd"):
        apply(session, [Event(id, OPENED, 10 + n)])
    release(session)  # what was refused does not come back
    assert runs(session) == dict.fromkeys("ab", "done") | {id: "active" for id in expected if id in "cd"}


def topic(session, *records, first=0):
    """One transaction of a reader of topics: (began, refused)."""
    session.do("INSERT INTO action_progress VALUES ('t', 0, 0) ON CONFLICT DO NOTHING")
    values = [json.dumps({"org_id": "o"} | record) for record in records]
    row = session.one("actions/topic", ["t"], [0], [first], [first + len(values)], ["t"] * len(values), [0] * len(values),
                      list(range(first, first + len(values))), values, [None] * len(values))
    return int(row["began"]), int(row["refused"])


@pytest.mark.parametrize("mode, began, refused", [("refuse", 2, 2), ("drop", 2, 0), ("defer", 4, 0)])
def test_records_of_a_topic_keep_to_the_cap_one_by_one(store, mode, began, refused):
    session = store(pipeline("p", CALL, on=None, topic="t", once_per=["subject"]))
    configure(session, open_runs=2, beyond_open_runs=mode)
    assert topic(session, *people("a", "a", "b", "c", "d")) == (began, refused)
    letters = session.query('SELECT "offset"::int, reason, detail FROM dead_letter ORDER BY 1')
    says = "pipeline p: organisation o has as many open runs as it may"
    assert letters == ([(3, "over_cap", says), (4, "over_cap", says)] if refused else [])
    finish_all(session)
    if refused:  # redriven or produced again
        assert topic(session, *people("c", "d"), first=5) == (2, 0)


def test_the_time_of_what_waits_begins_with_its_run(store):
    session = store(pipeline("p", step(0, "await", awaits=OPENED, within_ms=3_600_000, next_step=1, else_step=1), CALL | {"step": 1},
                             first_delay_ms=0))
    configure(session, open_runs=1, beyond_open_runs="defer")
    add_messages(session, {"m": "c", "n": "c"})
    ask(session, *people("a", message_id="m"), *people("b", message_id="n"))
    apply(session, [Event("n", OPENED, 0)])
    session.do("UPDATE action SET created_at = now() - interval '1 day', perform_at = now() - interval '1 day' WHERE status = 'held'")
    session.run("command/actions_cancel", None, None, None, 1)
    release(session)
    due = session.query("SELECT perform_at - now() BETWEEN interval '59 minutes' AND interval '1 hour', created_at > now() - interval '1 minute', wait_ms::int"
                        " FROM action WHERE status = 'pending'")
    assert due == [(True, True, 0)]
    for _ in range(4):  # it was reached while the run waited
        claim_all(session)
    assert session.query("SELECT class FROM action WHERE status = 'done'") == [("reached",)]


def test_runs_that_wait_can_be_cancelled_and_retried_ones_need_room(store):
    session = store(pipeline("p", CALL))
    configure(session, open_runs=1, beyond_open_runs="defer")
    ask(session, *people("a", "b", "c"))
    finish(session, claim_all(session), "dead")
    release(session)
    assert runs(session) == {"a": "dead", "b": "active", "c": "waiting"}
    assert session.one("command/actions_retry", None, None, None, 10)["rows"] == "1"
    assert runs(session) == {"a": "waiting", "b": "active", "c": "waiting"}
    (waits,) = session.query("SELECT a.id FROM action a JOIN run r ON r.id = a.run_id WHERE r.subject = 'c'")
    session.run("command/actions_cancel", waits[0], None, None, 1)
    finish_all(session)
    release(session)
    assert runs(session) == {"a": "active", "b": "done", "c": "cancelled"}


def test_whoever_begins_runs_waits_for_the_other(store, database):
    session = store(pipeline("p", CALL))
    configure(session, open_runs=3, beyond_open_runs="drop")
    first, second = database.session("first"), database.session("second")
    seen = []
    with first.transaction():
        ask(first, *people("a", "b"), *people("x", org_id="z"))
        late = threading.Thread(target=lambda: seen.append(ask(second, *people("x", org_id="z"), *people("c", "d"))))
        late.start()
        wait_for_lock(session, second)
    late.join()
    assert seen == [(2, 0, 1)] and list(runs(session).values()) == ["active"] * 4


@pytest.mark.parametrize("mode", ["drop", "defer"])
def test_no_organisation_is_ever_above_its_cap_whoever_begins_and_ends_runs(store, database, mode):
    caps, seconds = {"a": 3, "b": 7, "c": 12, "o": 5}, 4
    session = store(pipeline("p", CALL), pipeline("q", CALL, on=None, topic="t"))
    configure(session, open_runs=3, beyond_open_runs=mode)
    for org, cap in caps.items():
        session.run("command/org_set", org, None, None, None, None, None, cap)
    add_messages(session, {f"m{n}": "c" for n in range(300)})
    apply(session, [Event(f"m{n}", SENT, n) for n in range(300)])
    numbers, until, failed = itertools.count(), time.monotonic() + seconds, []

    def everyone(*orgs):
        return [{"subject": f"s{next(numbers)}", "org_id": org} for org in orgs]

    def imports(mine):
        ask(mine, *everyone(*"cbacb"))

    offsets = itertools.count(0, 3)

    def reads(mine):
        topic(mine, *everyone(*"bac"), first=next(offsets))

    def work(what, name):
        mine = database.session(name)
        try:
            while time.monotonic() < until:
                what(mine)
        except Exception as error:  # noqa: BLE001 - the test's thread says it
            failed.append(error)

    jobs = [imports, imports, reads, lambda mine: make_runs(mine, rows=3), make_runs, finish_all, finish_all]
    threads = [threading.Thread(target=work, args=(job, f"t{n}")) for n, job in enumerate(jobs)]
    for thread in threads:
        thread.start()
    most = dict.fromkeys(caps, 0)
    while time.monotonic() < until:
        for org, n in session.query("SELECT org_id, count(*)::int FROM run WHERE status = 'active' GROUP BY 1"):
            most[org] = max(most[org], n)
    for thread in threads:
        thread.join()
    assert not failed and most == caps  # as much as it may, and never more
    if mode == "defer":
        left = "SELECT count(*)::int FROM run WHERE status IN ('waiting', 'active')"
        while make_runs(session, rows=100):
            pass
        for _ in range(2000):
            if session.query(left) == [(0,)]:
                break
            release(session), finish_all(session)
        assert session.query(left) == [(0,)] and session.query("SELECT count(*)::int FROM action WHERE status <> 'done'") == [(0,)]


# ---- calls of a subject ------------------------------------------------------------------------------------------------------


def at(text):
    return datetime.datetime.fromisoformat(text)


def calls(session, *times, subject="ann"):
    for text in times:
        session.do("INSERT INTO subject_call SELECT action_subject_hash('o', %s), %s", (subject, at(text)))


def allowed(session, now):
    """Whether the only action may be called at that time; else when it is due then, in UTC."""
    ids = [id for id, in session.query("SELECT id FROM action WHERE status = 'pending'")]
    ((left, _),) = session.query("SELECT allowed, beyond FROM actions_capped(%s, %s)", (ids, at(now)))
    if left:
        return True
    ((due,),) = session.query("SELECT to_char(perform_at AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI') FROM action WHERE id = %s", (ids[0],))
    return due


DAY, WEEK = {"caps": [2], "cap_units": ["day"]}, {"caps": [2, 3], "cap_units": ["day", "week"]}


@pytest.mark.parametrize("zone, before, now, says", [
    # Two calls of the same day, of the day before, and around the border of a day.
    ("UTC", ["2026-11-25T00:00:00Z", "2026-11-25T10:00:00Z"], "2026-11-25T23:59:59Z", "2026-11-26 00:00"),
    ("UTC", ["2026-11-24T23:59:59Z", "2026-11-25T10:00:00Z"], "2026-11-25T11:00:00Z", True),
    ("Europe/Berlin", ["2026-11-24T23:30:00Z", "2026-11-25T10:00:00Z"], "2026-11-25T11:00:00Z", "2026-11-25 23:00"),
    ("America/New_York", ["2026-11-24T23:30:00Z", "2026-11-25T10:00:00Z"], "2026-11-25T11:00:00Z", True),
    ("Pacific/Auckland", ["2026-11-25T11:00:00Z", "2026-11-25T20:00:00Z"], "2026-11-25T23:00:00Z", "2026-11-26 11:00"),
    # Days of 23 and of 25 hours.
    ("Europe/Berlin", ["2026-03-28T23:00:00Z", "2026-03-29T10:00:00Z"], "2026-03-29T21:59:00Z", "2026-03-29 22:00"),
    ("Europe/Berlin", ["2026-10-24T22:00:00Z", "2026-10-25T10:00:00Z"], "2026-10-25T22:59:00Z", "2026-10-25 23:00"),
    ("Australia/Lord_Howe", ["2026-04-04T13:00:00Z", "2026-04-05T01:00:00Z"], "2026-04-05T13:29:00Z", "2026-04-05 13:30"),
    # The day has an hour twice, at its begin: both of them count.
    ("America/Havana", ["2026-11-01T04:10:00Z", "2026-11-01T05:10:00Z"], "2026-11-01T12:00:00Z", "2026-11-02 05:00"),
    ("America/Havana", ["2026-11-01T04:10:00Z", "2026-11-01T04:20:00Z"], "2026-11-01T04:30:00Z", "2026-11-02 05:00"),
    # The day has no midnight.
    ("America/Havana", ["2026-03-07T12:00:00Z", "2026-03-07T13:00:00Z"], "2026-03-07T14:00:00Z", "2026-03-08 05:00"),
])
def test_a_day_is_that_of_the_person(store, zone, before, now, says):
    session = store(pipeline("p", CALL))
    configure(session, **DAY, zone=zone)
    ask(session, *people("ann"))
    calls(session, *before)
    calls(session, before[0], before[1], before[1], subject="bob")  # another person
    assert allowed(session, now) == says


@pytest.mark.parametrize("before, now, says", [
    (["2026-11-23T01:00:00Z", "2026-11-24T01:00:00Z", "2026-11-25T01:00:00Z"], "2026-11-29T22:00:00Z", "2026-11-29 23:00"),  # a Sunday
    (["2026-11-22T22:59:00Z", "2026-11-24T01:00:00Z", "2026-11-25T01:00:00Z"], "2026-11-29T22:00:00Z", True),  # Sunday in Berlin
    (["2026-11-22T23:01:00Z", "2026-11-24T01:00:00Z", "2026-11-25T01:00:00Z"], "2026-11-29T22:00:00Z", "2026-11-29 23:00"),  # Monday there
    (["2026-11-23T01:00:00Z", "2026-11-25T01:00:00Z", "2026-11-25T02:00:00Z"], "2026-11-25T03:00:00Z", "2026-11-29 23:00"),  # both are full
    (["2026-11-25T01:00:00Z", "2026-11-25T02:00:00Z"], "2026-11-25T03:00:00Z", "2026-11-25 23:00"),
])
def test_a_week_begins_on_the_persons_monday_and_the_later_cap_counts(store, before, now, says):
    session = store(pipeline("p", CALL))
    configure(session, **WEEK, zone="Europe/Berlin")
    ask(session, *people("ann"))
    calls(session, *before)
    assert allowed(session, now) == says


def test_the_zone_comes_from_the_import_the_inbox_or_the_configuration(store):
    session = store(pipeline("p", CALL))
    add_messages(session, {"m": "Asia/Tokyo"})

    def zone(data, message, field, fallback="Europe/Berlin"):
        return session.query("SELECT action_zone(%s, %s, %s, %s)", (json.dumps(data) if data is not None else None, message, field, fallback))[0][0]

    assert zone({"tz": "America/New_York"}, "m", "tz") == "America/New_York"
    assert zone({"tz": "America/New_York"}, "m", None) == "Europe/Berlin"
    assert zone(None, "m", "campaign_id") == "Asia/Tokyo" and zone({"campaign_id": "Asia/Seoul"}, "m", "campaign_id") == "Asia/Seoul"
    for unknown in ("Mars/Olympus", "", "x" * 300, "'; DROP"):
        assert zone({"tz": unknown}, None, "tz") == "Europe/Berlin"
    assert zone({}, "gone", "campaign_id") == zone(None, None, "tz") == zone({"tz": None}, "m", "no column") == "Europe/Berlin"
    with pytest.raises(Exception, match="actions.zone: PostgreSQL knows no zone Mars/Olympus"):
        configure(session, zone="Mars/Olympus")
    configure(session, **DAY, zone="UTC", zone_field="tz")
    ask(session, *people("ann", data={"tz": "Asia/Tokyo"}))
    calls(session, "2026-11-24T15:30:00Z", "2026-11-25T10:00:00Z")
    assert allowed(session, "2026-11-25T11:00:00Z") == "2026-11-25 15:00"


def test_only_calls_that_reached_the_subject_count_over_all_pipelines(store):
    session = store(pipeline("p", CALL), pipeline("q", CALL, on=None), pipeline("free", CALL | {"capped": False}, on=None))
    configure(session, **DAY)
    for name in ("free", "free", "p", "q", "p", "q"):
        ask(session, *people("ann"), name=name)
    results, count = [], "SELECT count(*)::int FROM subject_call"
    for result in ("done", "done", "retry", "back", "dead", "done", "done", "done", "done"):
        claimed = claim_all(session)
        finish(session, claimed, result)
        if result == "retry":
            session.do("UPDATE action SET perform_at = now() WHERE attempt > 0 AND status = 'pending'")
        results.append((len(claimed), session.query(count)[0][0]))
    # The last of them waits; the two of `free` count nothing, a call that was not answered neither.
    assert results == [(1, 0), (1, 0), (1, 0), (1, 0), (1, 0), (1, 1), (1, 2), (0, 2), (0, 2)]
    assert session.query("SELECT name, capped::int FROM pipeline_count WHERE capped > 0") == [("p", 1)]
    ((because, midnight),) = session.query("SELECT because, perform_at = date_trunc('day', now(), 'UTC') + interval '1 day' FROM action_deferred")
    assert (because, midnight) == ("the subject has had as many calls as it may", True)
    session.do("UPDATE subject_call SET at = at - interval '9 days'")
    session.run("actions/tidy", 3_600_000, 1000, 0, 3_600_000)
    assert session.query(count) == [(0,)]


def test_what_is_beyond_passes_on_where_that_is_said(store):
    session = store(pipeline("p", CALL, step(1, "webhook", target="x", capped=False)))
    configure(session, **DAY, beyond_subject_cap="pass")
    ask(session, *people("ann"))
    calls(session, *[datetime.datetime.now(datetime.UTC).isoformat()] * 2)
    assert claim_all(session) == []
    finish_all(session)
    assert session.query("SELECT step, status, class FROM action ORDER BY id") == [(0, "done", "capped"), (1, "done", "x")]
    assert runs(session) == {"ann": "done"}


def test_a_wait_for_the_next_day_leaves_an_action_all_its_attempts(store):
    session = store(pipeline("p", CALL))
    configure(session, **DAY)
    ask(session, *people("ann"))
    session.do("UPDATE action SET created_at = '2026-11-25T10:00:00Z'")
    calls(session, "2026-11-25T08:00:00Z", "2026-11-25T09:00:00Z")
    assert allowed(session, "2026-11-25T12:00:00Z") == "2026-11-26 00:00"
    assert session.query("SELECT created_at = '2026-11-25T22:00:00Z' FROM action") == [(True,)]


def test_of_two_that_compete_the_one_that_is_due_earlier_wins(store):
    session = store(pipeline("p", CALL), pipeline("q", CALL, on=None))
    configure(session, caps=[1], cap_units=["day"])
    ask(session, *people("ann"), name="q"), ask(session, *people("ann"))
    session.do("UPDATE action a SET perform_at = now() - interval '1 minute' FROM pipeline p WHERE p.id = a.pipeline_id AND p.name = 'p'")
    claimed = claim_all(session)
    assert session.query("SELECT p.name FROM action a JOIN pipeline p ON p.id = a.pipeline_id WHERE a.status = 'running'") == [("p",)]
    assert claim_all(session) == []  # what is under way may count, or not
    finish(session, claimed)
    assert claim_all(session) == [] and session.query("SELECT class FROM action WHERE status = 'pending'") == [("capped",)]


def test_no_subject_is_above_its_cap_whatever_ends_beside_the_claims(store, database):
    session = store(pipeline("p", CALL), pipeline("q", CALL, on=None))
    configure(session, caps=[3], cap_units=["day"], beyond_subject_cap="pass")
    for _ in range(5):
        for name in "pq":
            ask(session, *people(*(f"s{n}" for n in range(40))), name=name)
    claimed, over = [], threading.Event()

    def finishes():
        mine = database.session("finisher")
        while not over.is_set() or claimed:
            some = [claimed.pop() for _ in range(min(len(claimed), 3))]
            if some:
                finish(mine, some)

    thread = threading.Thread(target=finishes)
    thread.start()
    until = time.monotonic() + 60
    while session.query("SELECT count(*)::int FROM run WHERE status = 'active'") != [(0,)] and time.monotonic() < until:
        claimed.extend(claim_all(session))
    over.set()
    thread.join()
    assert session.query("SELECT class, count(*)::int FROM action GROUP BY 1 ORDER BY 1") == [("capped", 280), ("x", 120)]
    assert session.query("SELECT DISTINCT n FROM (SELECT count(*)::int AS n FROM subject_call GROUP BY subject_hash) s") == [(3,)]


@pytest.mark.parametrize("erase, left", [("erase_messages('{m}', NULL, NULL)", 1), ("erase_messages('{}', 'ann', 'customer_id')", 0)])
def test_calls_are_forgotten_with_the_person_and_not_with_one_message(store, erase, left):
    session = store(pipeline("p", CALL, subject="subject"))
    configure(session, **DAY)
    add_messages(session, {"m": "c"})
    ask(session, *people("ann", message_id="m", org_id=""))
    finish_all(session)
    session.do(f"SELECT {erase}")
    assert session.query("SELECT count(*)::int FROM subject_call") == [(left,)]


def test_a_call_whose_process_has_gone_counts_until_it_is_made_again(store):
    """It may have reached the subject; so the other action waits, and the first one is repeated."""
    session = store(pipeline("p", CALL, on=None))
    configure(session, caps=[1], cap_units=["day"])
    ask(session, *people("ann"))
    first = claim_all(session)
    ask(session, *people("ann"))
    session.do("UPDATE action SET lease_until = now() - interval '1 minute', perform_at = now() + interval '1 minute' WHERE status = 'running'")
    assert claim_all(session) == [], "the first one is not due, and the second one is beyond the cap"
    session.do("UPDATE action SET perform_at = now() WHERE lease_until IS NOT NULL")
    again = claim_all(session)
    assert [id for id, _ in again] == [id for id, _ in first]
