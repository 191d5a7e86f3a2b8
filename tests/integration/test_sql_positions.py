"""Fence, generations, bootstrap and eviction."""
import re
import threading
import time

import pytest

from sql_batch import TOPIC, Event, add_messages, apply, probe_batch, stored_funnel
from sql_fixture import SQL, SqlError, database, sql_server, wait_for_lock  # noqa: F401


def bootstrap(session, lanes=2, starts=(0, 100)):
    with session.transaction():
        session.one("control/synchronous")
        session.one("control/pins_insert", TOPIC, "cluster", lanes, 1, "0123456789abcdef")
    with session.transaction():
        session.one("control/synchronous")
        return session.one("control/partitions_add", TOPIC, 0, list(starts))["added"] == "t"


def fence(session, lane, moves, generation=1, anchor=(-1, 0, 0)):
    partitions, expected, following = map(list, zip(*moves))
    n = len(moves)
    session.run("lane/fence", [TOPIC] * n, partitions, lane, expected, following, [generation] * n, [anchor[0]] * n,
                [anchor[1]] * n, [anchor[2]] * n)


def positions(session, lane):
    rows = session.run("lane/positions", [TOPIC] * 3, [1, 0, 7], lane)
    return [(r["next_offset"], r["generation"]) for r in rows]


def refusal(action, *arguments, **keywords):
    with pytest.raises(SqlError) as caught:
        action(*arguments, **keywords)
    return caught.value


def test_the_fence_moves_every_position_or_none(database):
    session = database.session()
    assert bootstrap(session)
    fence(session, 0, [(0, 0, 10), (1, 100, 120)])
    assert positions(session, 0) == [("120", "1"), ("10", "1"), (None, None)]
    error = refusal(fence, session, 0, [(0, 10, 20), (1, 100, 130)])
    assert error.sqlstate == "RD001"
    assert error.text == (f"position of topic {TOPIC} partition 1 lane 0: expected 100 of generation 1,"
                          " found 120 of generation 1")
    assert positions(session, 0) == [("120", "1"), ("10", "1"), (None, None)]
    assert positions(session, 1) == [("100", "1"), ("0", "1"), (None, None)]


def test_the_fence_names_a_row_that_is_missing(database):
    error = refusal(fence, database.session(), 0, [(5, 0, 1)])
    assert error.sqlstate == "RD001" and "found no row of generation none" in error.text


def test_an_anchor_stays_where_a_batch_has_none(database):
    session = database.session()
    bootstrap(session)
    fence(session, 0, [(0, 0, 10)], anchor=(9, 1234, 4294967295))
    fence(session, 0, [(0, 10, 12)])
    row = session.run("control/progress_read", [TOPIC], [0])[0]
    assert row == {"topic": TOPIC, "partition": "0", "lane": "0", "next_offset": "12", "generation": "1",
                   "anchor_offset": "9", "anchor_timestamp": "1234", "anchor_crc": "4294967295"}


def test_a_batch_of_an_older_generation_is_fenced_though_the_position_matches(database):
    """R4: the layout changed and the rows began at the same offset again."""
    session = database.session()
    bootstrap(session)
    session.do("UPDATE consumer_progress SET generation = 2")
    assert refusal(fence, session, 0, [(0, 0, 10)]).sqlstate == "RD001"
    fence(session, 0, [(0, 0, 10)], generation=2)


def test_a_zombies_batch_is_rolled_back_with_its_receipts(database):
    owner, zombie = database.session("owner"), database.session("zombie")
    bootstrap(owner)
    add_messages(owner, {"m": "c"})

    apply(owner, [Event("m", 600, 0)], moves=[(0, 0, 1)])
    assert refusal(apply, zombie, [Event("m", 600, 0)], moves=[(0, 0, 1)]).sqlstate == "RD001"
    assert stored_funnel(owner)["c", 600] == (1, 1)


def test_a_probe_leaves_nothing_behind(database):
    session = database.session()
    add_messages(session, {"m": "c"})

    probe_batch(session, [Event("m", 600, 0), Event("nobody", 600, 1)])
    session.do("ALTER TABLE message_inbox ADD CONSTRAINT refused CHECK (message_id <> 'm' OR status = 0)")
    assert refusal(probe_batch, session, [Event("m", 600, 0)]).sqlstate == "23514"
    assert stored_funnel(session) == {("c", 0): (1, 0)}
    assert session.query("SELECT count(*) FROM parked_event") == [(0,)]


def test_of_two_instances_that_bootstrap_one_wins_whole(database):
    """R5: with different numbers of lanes there is never a mixed set of rows."""
    one, two, watcher = database.session("one"), database.session("two"), database.session("watcher")
    one.do("BEGIN")
    assert one.one("control/pins_insert", TOPIC, "cluster", 2, 1, "aaaa") == {"inserted": "t"}
    answers = []
    other = threading.Thread(target=lambda: answers.append(two.one("control/pins_insert", TOPIC, "cluster", 4, 1, "bbbb")))
    other.start()
    wait_for_lock(watcher, two)
    one.do("COMMIT")
    other.join()
    assert answers == [{"inserted": "f"}]
    assert one.run("control/pins_read", ["absent", TOPIC])[1]["lanes"] == "2"
    one.do("BEGIN")
    assert one.one("control/partitions_add", TOPIC, 0, [5, 6]) == {"added": "t"}
    other = threading.Thread(target=lambda: answers.append(two.one("control/partitions_add", TOPIC, 0, [0])))
    other.start()
    wait_for_lock(watcher, two)
    one.do("COMMIT")
    other.join()
    assert answers[1] == {"added": "f"}
    assert one.one("control/partitions_add", TOPIC, 2, [9]) == {"added": "t"}
    rows = one.query("SELECT partition, lane, next_offset, generation FROM consumer_progress ORDER BY 1, 2")
    assert rows == [(p, lane, start, 1) for p, start in enumerate([5, 6, 9]) for lane in (0, 1)]
    assert one.run("control/pins_read", [TOPIC])[0]["partitions"] == "3"


def test_synchronous_commit_is_on_for_its_transaction_only(database):
    session = database.session()
    with session.transaction():
        session.one("control/synchronous")
        assert session.query("SHOW synchronous_commit") == [("on",)]
    assert session.query("SHOW synchronous_commit") == [("off",)]


def test_a_blocker_is_named_and_ended_only_when_it_is_ours_and_old_enough(database):
    zombie, owner, control = database.session("zombie"), database.session("owner"), database.session("control")
    bootstrap(owner)
    zombie.do("BEGIN")
    fence(zombie, 0, [(0, 0, 5)])
    pid = owner.query("SELECT pg_backend_pid()")[0][0]
    outcome = []
    waiting = threading.Thread(target=lambda: outcome.append(fence(owner, 0, [(0, 0, 1)])))
    waiting.start()
    while control.query("SELECT pg_blocking_pids(%s)", [pid]) == [([],)]:
        time.sleep(0.01)
    zombie.do("SELECT set_config('application_name', 'psql', false), '+49 151 5550100', $q$ it's $q$, 4915155501 -- 'x")
    time.sleep(0.05)
    (seen,) = control.run("control/blockers", [pid], 10)
    assert (seen["application_name"], seen["state"], seen["ended"]) == ("psql", "idle in transaction", None)
    assert seen["query"] == "SELECT set_config(?, ?, false), ?, ?, ? -- ?"
    zombie.do("SET application_name = 'receiptd/test/zombie'")
    assert [row["ended"] for row in control.run("control/blockers", [pid], 60_000)] == [None]
    (ended,) = control.run("control/blockers", [pid], 10)
    assert (ended["application_name"], ended["ended"]) == ("receiptd/test/zombie", "t")
    waiting.join()
    assert outcome == [None]
    assert positions(owner, 0)[1] == ("1", "1")


def test_the_age_of_the_oldest_snapshot_is_seen(database):
    control, analyst = database.session("control"), database.session("analyst")
    before = int(control.one("control/snapshot_age")["age_ms"])
    analyst.do("BEGIN ISOLATION LEVEL REPEATABLE READ")
    analyst.query("SELECT 1")
    time.sleep(0.05)
    assert int(control.one("control/snapshot_age")["age_ms"]) >= 50 > before or before >= 50
    analyst.do("COMMIT")


def test_the_schema_says_its_version(database):
    newest = max(int(number) for path in (SQL / "tables").glob("*.sql") for number in re.findall(r"schema_version .* VALUES \((\d+)\)", path.read_text()))
    assert database.session().one("control/schema_check") == {"version": str(newest)}
