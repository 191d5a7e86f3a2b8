"""The statements in two stages, while the inbox has a recent set: exact for any mix of recent and older messages, whatever sessions use."""
import random
import re
import threading

import pytest

from sql_batch import Event, add_messages, apply, decided, drift, expected_funnel, expected_rows, stored_funnel, stored_rows, wake, wake_all
from sql_fixture import SqlError, Database, database, sql_server, wait_for_lock  # noqa: F401
from test_sql_apply import make_events
from test_sql_parking import parked

SINCE = "2026-01-02 00:00:00+00"
BOUNDARIES = (None, "-infinity", "2026-01-01 12:00:00+00", SINCE, "infinity")


def recent(database, since=SINCE, name="recent"):
    session = database.session(name)
    session.recent_since = since
    return session


def age(session, rng, ids):
    """Some of the messages stand before the boundary, some exactly at it, some after it."""
    for i in ids:
        session.do("UPDATE message_inbox SET created_at = %s WHERE message_id = %s",
                   [rng.choice(["2026-01-01 00:00:00+00", "2026-01-01 23:59:59.999999+00", SINCE, "2026-01-03 00:00:00+00"]), i])


def make_index(session, since=SINCE):
    session.do(f"CREATE UNIQUE INDEX recent ON message_inbox (message_id) WHERE created_at >= '{since}'")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("indexed", [True, False])
def test_any_mix_of_ages_gives_the_rows_and_counters_of_the_definition(database, seed, indexed):
    rng = random.Random(seed)
    platform, sessions = database.session(), [recent(database, since) for since in BOUNDARIES]
    inbox = {f"m{rng.randrange(10**9)}": rng.choice(["a", "b"]) for _ in range(150)}
    add_messages(platform, inbox)
    age(platform, rng, inbox)
    if indexed:
        make_index(platform)
    events = make_events(rng, list(inbox), 900)
    events += rng.sample(events, 200)  # again, in other batches: they change nothing, and count
    rng.shuffle(events)
    position = 0
    while position < len(events):
        batch = events[position:position + rng.choice([1, 2, 50, 300])]
        position += len(batch)
        answer = apply(rng.choice(sessions), batch)
        assert answer["events_counted"] == sum(len(e.codes) for e in batch) and answer["events_parked"] == 0
        assert answer["messages_known"] == len({e.message_id for e in batch})
    assert stored_rows(platform) == expected_rows(inbox, events)
    assert stored_funnel(platform) == expected_funnel(inbox, events)
    assert drift(platform) == []


@pytest.fixture
def alike(sql_server):
    """A database for each boundary: {boundary: session}."""
    made = [Database(sql_server) for _ in BOUNDARIES]
    yield {since: recent(database, since) for since, database in zip(BOUNDARIES, made)}
    for database in made:
        database.drop()


def age_alike(alike, inbox, org):
    """Each gets the same messages; those below m2 are of this organisation."""
    for session in alike.values():
        add_messages(session, inbox)
        age(session, random.Random(5), inbox)
        session.do("SET session_replication_role = replica")
        session.do("UPDATE message_inbox SET org_id = %s WHERE message_id < 'm2'", [org])
        session.do("SET session_replication_role = origin")


def test_both_stages_answer_as_one_does(alike):
    """The same batches by one stage and by two: fates, transitions and what is parked agree."""
    rng = random.Random(5)
    inbox = {f"m{n}": rng.choice("ab") for n in range(80)}
    age_alike(alike, inbox, None)
    names = [*inbox, *(f"ghost{n}" for n in range(9))]
    for number in range(6):
        events = [Event(rng.choice(names), rng.choice([200, 300, 600, 9001, 9004]), offset=number * 1000 + n, org=rng.choice([None, None, "o", "other", ""]))
                  for n in range(90)]
        seen = [(apply(session, events), stored_rows(session), stored_funnel(session),
                 session.query('SELECT message_id, "offset", org_id FROM parked_event ORDER BY 1, 2'),
                 session.query('SELECT reason, "offset" FROM dead_letter ORDER BY 2')) for session in alike.values()]
        assert all(one == seen[0] for one in seen[1:])


def test_an_unknown_message_is_parked_once_and_woken_in_either_stage(database):
    rng = random.Random(7)
    session = recent(database)
    make_index(session)
    inbox = {f"m{n}": "c" for n in range(40)}
    events = make_events(rng, list(inbox) + ["never"], 400)
    landed = []
    for start in range(0, len(events), 40):
        apply(session, events[start:start + 40])
        fresh = [i for i in rng.sample(sorted(inbox), 8) if i not in landed]
        add_messages(session, {i: "c" for i in fresh})
        age(session, rng, fresh)
        landed += fresh
        wake(session, limit=rng.choice([1, 5, 1000]))
    late = [i for i in inbox if i not in landed]
    add_messages(session, {i: "c" for i in late})
    age(session, rng, late)
    wake_all(session, limit=37)
    assert parked(session) == sum(e.message_id == "never" for e in events)
    assert stored_rows(session) == expected_rows(inbox, events)
    assert stored_funnel(session) == expected_funnel(inbox, events)
    assert drift(session) == []


def test_an_unknown_message_is_found_after_both_stages(database):
    session = recent(database)
    add_messages(session, {"new": "c", "old": "c"})
    session.do("UPDATE message_inbox SET created_at = '2020-01-01' WHERE message_id = 'old'")
    answer = apply(session, [Event("new", 300, 0), Event("old", 300, 1), Event("x", 600, 4)])
    assert (answer["messages_changed"], answer["events_counted"], answer["events_parked"]) == (2, 2, 1)
    assert stored_rows(session) == {"new": (300, 0), "old": (300, 0)}


@pytest.mark.parametrize("first", [None, SINCE])
@pytest.mark.parametrize("created", ["2020-01-01", "2026-02-01"])
def test_a_batch_that_waited_for_another_sees_what_that_one_wrote(database, first, created):
    """The old status is that of the row as it was found after the wait, in either stage."""
    one, two, watcher = recent(database, first, "one"), recent(database, SINCE, "two"), database.session("watcher")
    add_messages(watcher, {"m": "c", "n": "c"})
    watcher.do("UPDATE message_inbox SET created_at = %s", [created])
    held = apply(one, [Event("m", 600, 0), Event("n", 700, 1)], hold=True)
    answer = []
    waiting = threading.Thread(target=lambda: answer.append(apply(two, [Event("m", 700, 2), Event("n", 300, 3)])), daemon=True)
    waiting.start()
    wait_for_lock(watcher, two)
    held.end()
    waiting.join(30)
    assert answer[0]["messages_changed"] == 1 and answer[0]["events_counted"] == 2
    events = [Event("m", 600, 0), Event("n", 700, 1), Event("m", 700, 2), Event("n", 300, 3)]
    assert stored_rows(watcher) == {"m": (700, 0), "n": (700, 0)}
    assert stored_funnel(watcher) == expected_funnel({"m": "c", "n": "c"}, events) and drift(watcher) == []


def apply_at_once(sessions, events):
    """Each session applies its share of the events, in batches of 40; one that PostgreSQL ends to break a deadlock is sent again."""
    failed = []

    def work(number, session):
        mine = events[number::len(sessions)]
        for start in range(0, len(mine), 40):
            while True:
                try:
                    apply(session, mine[start:start + 40])
                    break
                except SqlError as error:
                    if error.sqlstate != "40P01":
                        failed.append(error)
                        return

    threads = [threading.Thread(target=work, args=(number, session)) for number, session in enumerate(sessions)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert failed == []


def test_sessions_of_several_boundaries_at_once_count_everything_once(database):
    """A boundary moves while batches of several instances are in flight: what deadlocks is sent again, and nothing is lost or doubled."""
    rng = random.Random(11)
    watcher = database.session("watcher")
    inbox = {f"m{n}": rng.choice("ab") for n in range(60)}
    add_messages(watcher, inbox)
    age(watcher, rng, inbox)
    events = make_events(rng, list(inbox), 1600)
    apply_at_once([recent(database, since, f"s{n}") for n, since in enumerate((None, SINCE, "2026-01-01 12:00:00+00", SINCE))], events)
    assert stored_rows(watcher) == expected_rows(inbox, events)
    assert stored_funnel(watcher) == expected_funnel(inbox, events) and drift(watcher) == []


def test_stage_one_is_by_the_index_of_the_recent_set_and_stage_two_by_the_key(database):
    session = recent(database)
    session.do("""INSERT INTO message_inbox (message_id, campaign_id, created_at)
                  SELECT 'm' || i, 'c', '2026-01-01'::timestamptz + i * interval '10 seconds' FROM generate_series(1, 20000) i""")
    make_index(session)
    session.do("ANALYZE message_inbox")
    lines = session.explain("lane/decide", *[None] * 5).split("\n")
    scans = [line.split(" on ")[0].split("using ")[1] for line in lines if "message_inbox m" in line and "using" in line]
    assert "Seq Scan" not in "".join(lines) and scans.count("recent") == 2 and "message_inbox_pkey" in scans


def test_the_timeline_and_bare_rows_are_those_of_one_stage(alike):
    rng = random.Random(17)
    inbox = {f"m{n}": "c" for n in range(40)}
    age_alike(alike, inbox, "other")
    events = [Event(i, 300, n, org=rng.choice([None, "o", "other"])) for n, i in enumerate([*inbox, *(f"ghost{n}" for n in range(5))])]
    seen = []
    for session in alike.values():
        session.timeline = True
        apply(session, events, unknown="insert")
        seen.append((session.query("SELECT message_id, old, new, gained FROM message_timeline ORDER BY 1"), stored_rows(session)))
    assert len(seen[0][1]) == 45 and all(one == seen[0] for one in seen[1:])


def test_where_all_messages_are_recent_stage_two_is_never_executed(database):
    session = recent(database)
    add_messages(session, {f"m{n}": "c" for n in range(50)})
    make_index(session)
    for status, again in ((300, False), (300, True)):  # the second time nothing changes, and stage one knows all of them
        plan = session.explain("lane/decide", *decided([Event(f"m{n}", status, n) for n in range(50)]), options="ANALYZE, COSTS OFF, TIMING OFF")
        read = {line.split("message_inbox ")[1][:3]: "never executed" not in line for line in plan.split("\n") if " Scan " in line and "message_inbox" in line}
        assert read == {"m_1": True, "m_2": again, "m_3": False, "m (": False}, plan


def test_a_mapped_table_whose_rows_may_be_without_a_time(sql_server):
    """A row without a time is in no recent set, and found by the key."""
    setup = """CREATE SCHEMA app; CREATE TABLE app.messages (id text PRIMARY KEY, org text, camp text, created_at timestamptz)"""
    made = Database(sql_server, inbox={"inbox_schema": "app", "inbox_table": "messages", "message_id": "id", "org_id": "org", "campaign_id": "camp"},
                    setup=setup)
    try:
        rng = random.Random(3)
        platform = made.session()
        inbox = {f"m{n}": "c" for n in range(60)}
        for i in inbox:
            platform.do("INSERT INTO app.messages (id, org, camp, created_at) VALUES (%s, 'o', 'c', %s)",
                        [i, rng.choice([None, "2026-01-01", SINCE, "2026-01-05"])])
        platform.do(f"CREATE UNIQUE INDEX recent ON app.messages (id) WHERE created_at >= '{SINCE}'")
        events = make_events(rng, list(inbox), 500)
        for start in range(0, len(events), 50):
            apply(recent(made, SINCE if start % 100 else None), events[start:start + 50])
        assert stored_rows(platform) == expected_rows(inbox, events)
        assert stored_funnel(platform) == expected_funnel(inbox, events) and drift(platform) == []
    finally:
        made.drop()


# ---- a table that is partitioned by the time of its messages

DAYS = """CREATE SCHEMA app; CREATE TABLE app.messages (id text, org text, camp text, created_at timestamptz, counted bytea, UNIQUE (id, created_at)) PARTITION BY RANGE (created_at);
    CREATE TABLE app.other PARTITION OF app.messages DEFAULT;
    """ + "".join(f"CREATE TABLE app.d{n} PARTITION OF app.messages FOR VALUES FROM ('2026-01-0{n} 00:00+00') TO ('2026-01-0{n + 1} 00:00+00');" for n in range(1, 6))
DAYS_SINCE = "2026-01-04 00:00:00+00"


@pytest.fixture
def days(sql_server):
    made = Database(sql_server, setup=DAYS, inbox={"inbox_schema": "app", "inbox_table": "messages", "message_id": "id", "org_id": "org",
                                                   "campaign_id": "camp", "created_at": "created_at"})
    yield made
    made.drop()


def add_days(session, rng, inbox):
    """Of the five days, of a day without a partition, and without a time."""
    for i, campaign in inbox.items():
        session.do("INSERT INTO app.messages (id, org, camp, created_at) VALUES (%s, 'o', %s, %s)",
                   [i, campaign, rng.choice([None, "2025-06-01", *(f"2026-01-0{n} {rng.choice(['00:00', '23:59'])}+00" for n in range(1, 6))])])


def test_each_stage_reads_its_own_partitions_alone(days):
    """The literal prunes in the generic plan, through the view; the default partition may hold anything, and is in both."""
    session = recent(days, DAYS_SINCE)
    check_stages(session.explain("lane/decide", *[None] * 5), {"d4", "d5", "other"}, {"d1", "d2", "d3", "other"})


def check_stages(plan, newest, older):
    """Partitions in the order of the plan: those of the one stage and of the other, side by side, as often as the statement looks."""
    rest, stages = re.findall(r"(?:Scan|using \S+) on (d\d|other) ", plan), []
    while rest:
        size = next(n for n in (len(newest), len(older)) if set(rest[:n]) in (newest, older))
        stages.append(set(rest[:size]))
        rest = rest[size:]
    assert stages.count(newest) == stages.count(older) == 2, plan


@pytest.mark.parametrize("seed", range(3))
def test_messages_of_any_partition_give_the_rows_and_counters_of_the_definition(days, seed):
    """Recent, old, without a partition, without a time, unknown, and receipts that come again; boundaries of several sessions in turn."""
    rng = random.Random(seed)
    platform = days.session()
    sessions = [recent(days, since) for since in (None, "-infinity", "2026-01-02 12:00:00+00", DAYS_SINCE, "infinity")]
    inbox = {f"m{rng.randrange(10**9)}": rng.choice("ab") for _ in range(120)}
    late = {f"late{n}": "a" for n in range(20)}
    add_days(platform, rng, inbox)
    events = make_events(rng, [*inbox, *late, "never"], 900)
    events += rng.sample([e for e in events if e.message_id in inbox], 200)
    rng.shuffle(events)
    for number, start in enumerate(range(0, len(events), 60)):
        apply(rng.choice(sessions), events[start:start + 60])
        if number == 5:
            add_days(platform, rng, late)
            platform.do("ALTER TABLE app.messages DETACH PARTITION app.d1; ALTER TABLE app.messages ATTACH PARTITION app.d1"
                        " FOR VALUES FROM ('2026-01-01 00:00+00') TO ('2026-01-02 00:00+00')")
    while wake(rng.choice(sessions), limit=50)["rows"] > 0:
        pass
    assert parked(platform) == sum(e.message_id == "never" for e in events)
    assert stored_rows(platform) == expected_rows(inbox | late, events)
    assert stored_funnel(platform) == expected_funnel(inbox | late, events) and drift(platform) == []


def test_where_all_messages_are_in_the_newest_partitions_no_other_is_read(days):
    session = recent(days, DAYS_SINCE)
    for n in range(50):
        session.do("INSERT INTO app.messages (id, org, camp, created_at) VALUES (%s, 'o', 'c', '2026-01-05 01:00+00')", [f"m{n}"])
    for status in (300, 300):
        plan = session.explain("lane/decide", *decided([Event(f"m{n}", status, n) for n in range(50)]), options="ANALYZE, COSTS OFF, TIMING OFF")
        assert not [line for line in plan.split("\n") if re.search(r" on d[123] ", line) and "Scan" in line and "never executed" not in line], plan


# ---- one id in two partitions, of two organisations

OLD, NEW = "2026-01-01 12:00+00", "2026-01-05 12:00+00"


def add_twins(session, i, first, second, times=(OLD, NEW)):
    for org, at in zip((first, second), times):
        session.do("INSERT INTO app.messages (id, org, camp, created_at) VALUES (%s, %s, %s, %s)", [i, org, f"of {org}", at])


def standing(session):
    return sorted(session.query("SELECT org_id, status FROM message_inbox"), key=str)


def letters(session):
    return session.query('SELECT reason, "offset" FROM dead_letter ORDER BY 2')


@pytest.mark.parametrize("since", (None, DAYS_SINCE))
@pytest.mark.parametrize("times", ((OLD, NEW), (NEW, OLD), (OLD, "2026-01-02 12:00+00"), (NEW, "2026-01-04 12:00+00")))
def test_a_receipt_changes_the_row_of_its_organisation_and_is_not_refused_for_the_other(days, since, times):
    """Changed, up to date and behind: counted once each, whichever stage finds either row. Of a third organisation it is refused once."""
    session = recent(days, since)
    add_twins(session, "m", "a", "b", times)
    for offset, (org, status) in enumerate([("a", 300), ("a", 300), ("b", 600), ("a", 200), ("b", 600), ("b", 300)]):
        answer = apply(session, [Event("m", status, offset, org=org)])
        assert (answer["events_counted"], answer["events_refused"], answer["events_parked"]) == (1, 0, 0), (org, status)
    assert standing(session) == [("a", 300), ("b", 600)] and letters(session) == [] and drift(session) == []
    answer = apply(session, [Event("m", 300, 7, org="c"), Event("ghost", 300, 8, org="c")])
    assert (answer["events_counted"], answer["events_refused"], answer["events_parked"]) == (0, 1, 1)
    assert letters(session) == [("other_organisation", 7)] and parked(session) == 1
    assert standing(session) == [("a", 300), ("b", 600)] and drift(session) == []
    apply(session, [Event("m", 300, 9, org="a"), Event("m", 700, 10, org="b"), Event("m", 300, 11, org="c")])  # the wake decides one by one
    assert parked(session) == 4
    wake_all(session, limit=50)
    assert parked(session) == 1 and letters(session) == [("other_organisation", 7), ("other_organisation", 11)]
    assert standing(session) == [("a", 300), ("b", 700)] and drift(session) == []
    events = {(c, s): e for (c, s), (_, e) in stored_funnel(session).items() if e}
    assert events == {("of a", 300): 3, ("of a", 200): 1, ("of b", 600): 2, ("of b", 300): 1, ("of b", 700): 1}


@pytest.mark.parametrize("since", (None, DAYS_SINCE))
def test_woken_receipts_of_two_organisations_reach_their_own_rows(days, since):
    session = recent(days, since)
    events = [Event("m", 300, 0, org="a"), Event("m", 600, 1, org="b"), Event("m", 200, 2, org="a"), Event("m", 700, 3, org="c"), Event("n", 600, 4), Event("n", 300, 5)]
    for event in events:
        apply(session, [event])
    assert parked(session) == len(events)
    add_twins(session, "m", "a", "b")
    session.do("INSERT INTO app.messages (id, org, camp, created_at) VALUES ('n', 'a', 'of a', %s)", [OLD])
    wake_all(session, limit=50)
    assert parked(session) == 0 and letters(session) == [("other_organisation", 3)]
    assert session.query("SELECT message_id, org_id, status FROM message_inbox ORDER BY 1, 2, created_at") == [
        ("m", "a", 300), ("m", "b", 600), ("n", "a", 600)]
    assert drift(session) == []


@pytest.mark.parametrize("since", (None, DAYS_SINCE))
def test_the_timeline_shows_the_row_of_the_receipts_organisation(days, since):
    session = recent(days, since)
    session.timeline = True
    add_twins(session, "m", "a", "b")
    for number, (org, status) in enumerate([("a", 300), ("b", 600)]):
        apply(session, [Event("m", status, number, org=org)])
    assert session.query('SELECT "offset", old, new FROM message_timeline ORDER BY 1') == [(0, 0, 300), (1, 0, 600)]


# ---- a table that is partitioned by ranges of the message's id

KEYS = {  # type of the id, the n-th id, the column of the view that is compared with the boundary
    "text": ('text COLLATE "C"', lambda n: f"m{n:04}", "message_id"),
    "varchar": ("varchar(40)", lambda n: f"m{n:04}", "message_id"),
    "uuid": ("uuid", lambda n: f"017f22e2-79b0-7cc3-98c4-{n:012}", "message_key"),
    "bigint": ("bigint", lambda n: str(9_000 + 5 * n), "message_key"),  # texts of 4 digits come after those of 5
    "char": ("char(8)", lambda n: f"m{n:04}", "message_key"),
}


@pytest.fixture
def ranges(sql_server, request):
    """Five hundreds of ids, what is above them in the default partition."""
    type, id_of, column = KEYS[request.param]
    setup = (f"CREATE SCHEMA app; CREATE TABLE app.messages (id {type} PRIMARY KEY, org text, camp text) PARTITION BY RANGE (id);"
             "CREATE TABLE app.other PARTITION OF app.messages DEFAULT;" + "".join(
                 f"CREATE TABLE app.d{n} PARTITION OF app.messages FOR VALUES FROM ('{id_of(100 * n)}') TO ('{id_of(100 * n + 100)}');" for n in range(1, 6)))
    if column == "message_key":
        setup += "CREATE INDEX ON app.messages ((id::text))"
    made = Database(sql_server, setup=setup, inbox={"inbox_schema": "app", "inbox_table": "messages", "message_id": "id", "org_id": "org", "campaign_id": "camp"})
    made.id_of, made.column = id_of, column
    yield made
    made.drop()


def recent_ids(database, first, name="recent"):
    session = recent(database, None if first is None else database.id_of(first), name)
    session.recent_column = database.column
    return session


@pytest.mark.parametrize("ranges", KEYS, indirect=True)
def test_each_stage_reads_its_own_ranges_of_ids_alone(ranges):
    """The boundary is compared with the id in its own type and collation, and prunes in the generic plan, through the view."""
    session = recent_ids(ranges, 400)
    check_stages(session.explain("lane/decide", *[None] * 5), {"d4", "d5", "other"}, {"d1", "d2", "d3", "other"})


@pytest.mark.parametrize("ranges", KEYS, indirect=True)
def test_messages_of_any_range_of_ids_give_the_rows_and_counters_of_the_definition(ranges):
    """Recent, old, outside of all ranges, unknown, and receipts that come again; boundaries of several sessions in turn."""
    rng = random.Random(8)
    platform, id_of = ranges.session(), ranges.id_of
    sessions = [recent_ids(ranges, first) for first in (None, 0, 250, 400, 900)]
    ids = [id_of(n) for n in rng.sample(range(100, 700), 160)]
    inbox, late = {i: rng.choice("ab") for i in ids[:130]}, {i: "a" for i in ids[130:]}

    def add(some):
        for i, campaign in some.items():
            platform.do("INSERT INTO app.messages (id, org, camp) VALUES (%s, 'o', %s)", [i, campaign])

    add(inbox)
    events = make_events(rng, [*inbox, *late, id_of(399), id_of(400), "never"], 900)
    events += rng.sample([e for e in events if e.message_id in inbox], 200)
    rng.shuffle(events)
    for number, start in enumerate(range(0, len(events), 60)):
        apply(rng.choice(sessions), events[start:start + 60])
        if number == 5:
            add(late)
    while wake(rng.choice(sessions), limit=50)["rows"] > 0:
        pass
    known = inbox | late
    assert parked(platform) == sum(e.message_id not in known for e in events)
    assert stored_rows(platform) == expected_rows(known, events)
    assert stored_funnel(platform) == expected_funnel(known, events) and drift(platform) == []


@pytest.mark.parametrize("ranges", ["text"], indirect=True)
def test_a_receipt_of_an_id_in_the_newest_ranges_reads_no_other(ranges):
    session = recent_ids(ranges, 400)
    ids = [ranges.id_of(n) for n in range(410, 460)]
    for i in ids:
        session.do("INSERT INTO app.messages (id, org, camp) VALUES (%s, 'o', 'c')", [i])
    for status in (300, 300):
        plan = session.explain("lane/decide", *decided([Event(i, status, n) for n, i in enumerate(ids)]), options="ANALYZE, COSTS OFF, TIMING OFF")
        assert not [line for line in plan.split("\n") if re.search(r" on d[1235] ", line) and "Scan" in line and "never executed" not in line], plan
