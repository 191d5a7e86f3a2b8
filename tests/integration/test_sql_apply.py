"""The batch statement: one snapshot, exact counters, any order, any batching."""
import random
import threading

import pytest

from sql_batch import (Event, add_messages, apply, decided, drift, expected_funnel, expected_rows, stored_funnel,
                       stored_rows, wake)
from sql_fixture import FLAGS, STATUSES, SqlError, database, sql_server, wait_for_lock  # noqa: F401

CODES = list(STATUSES) + [9001 + b for b in FLAGS]


def make_marks(rng):
    """Flags beside a status, where one says any: not those of machines, which the decoder judges."""
    return tuple(rng.sample(range(5), rng.choice([1, 2]))) if rng.random() < 0.05 else ()


def make_events(rng, ids, count):
    return [Event(rng.choice(ids), rng.choice(CODES), offset=n // 7, index=n % 7, partition=rng.randrange(3),
                  at=f"2026-01-01 00:{rng.randrange(60):02}:00+00", marks=make_marks(rng)) for n in range(count)]


@pytest.mark.parametrize("seed", range(4))
def test_any_order_and_batching_gives_the_rows_and_counters_of_the_definition(database, seed):
    rng = random.Random(seed)
    session = database.session()
    inbox = {f"m{rng.randrange(10**9)}": rng.choice(["a", "b", "ü, {x} \"y\" \\"]) for _ in range(150)}
    add_messages(session, inbox)
    events = make_events(rng, list(inbox), 900)
    rng.shuffle(events)
    position = 0
    while position < len(events):
        batch = events[position:position + rng.choice([1, 2, 50, 300])]
        position += len(batch)
        answer = apply(session, batch)
        assert answer["events_counted"] == sum(len(e.codes) for e in batch) and answer["events_parked"] == 0
        assert answer["messages_known"] == len({e.message_id for e in batch})
        if rng.random() < 0.3:
            session.one("control/rollup", rng.choice([1, 3, 1000]), 0, "funnel")
    assert stored_rows(session) == expected_rows(inbox, events)
    assert stored_funnel(session) == expected_funnel(inbox, events)
    assert drift(session) == []


def test_current_is_what_stands_in_a_status_and_sums_to_the_root(database):
    session = database.session()
    rng = random.Random(7)
    inbox = {f"m{n}": "c" for n in range(200)}
    add_messages(session, inbox)
    events = make_events(rng, list(inbox), 400)
    apply(session, events)
    standing = {}
    for status, _ in expected_rows(inbox, events).values():
        standing[status] = standing.get(status, 0) + 1
    rows = session.query("SELECT status, messages, current FROM campaign_funnel")
    assert {s: c for s, _, c in rows if s < 9001 and c} == standing
    assert all(c is None for s, _, c in rows if s >= 9001)
    assert sum(c for _, _, c in rows if c is not None) == dict((s, m) for s, m, _ in rows)[0] == 200


def test_a_late_correction_moves_one_count_across(database):
    session = database.session()
    add_messages(session, {"m": "c"})
    for offset, code in enumerate([440, 600, 440, 800, 300]):
        apply(session, [Event("m", code, offset)])
    assert stored_rows(session) == {"m": (800, 0)}
    assert stored_funnel(session) == {("c", 0): (1, 0), ("c", 200): (1, 0), ("c", 300): (1, 1), ("c", 440): (0, 2),
                                      ("c", 600): (1, 1), ("c", 700): (1, 0), ("c", 800): (1, 1)}


def test_a_refused_message_takes_back_that_it_was_sent(database):
    session = database.session()
    add_messages(session, {"m": "c"})
    apply(session, [Event("m", 300, 0)])
    apply(session, [Event("m", 460, 1)])
    assert stored_funnel(session) == {("c", 0): (1, 0), ("c", 200): (1, 0), ("c", 300): (0, 1), ("c", 460): (1, 1)}


def test_a_flag_counts_its_message_once_and_carries_what_it_implies(database):
    session = database.session()
    add_messages(session, {"m": "c", "n": "c"})
    apply(session, [Event("m", 9001, 0), Event("m", 9001, 1), Event("n", 9003, 2)])
    apply(session, [Event("m", 9001, 3), Event("m", 9004, 4)])
    apply(session, [Event("m", 600, 5)])
    assert stored_rows(session) == {"m": (600, 0b1001), "n": (0, 0b100)}
    funnel = stored_funnel(session)
    assert funnel["c", 9001] == (1, 3) and funnel["c", 9003] == (1, 1) and funnel["c", 9004] == (1, 1)
    assert funnel["c", 600] == (1, 1)
    assert drift(session) == []


def test_a_flag_after_a_status_does_not_count_the_transition_again(database):
    session = database.session()
    add_messages(session, {"m": "c"})
    apply(session, [Event("m", 700, 0)])
    answer = apply(session, [Event("m", 9006, 1)])
    assert answer["messages_changed"] == 1
    assert stored_funnel(session)["c", 700] == (1, 1)
    assert session.query("SELECT prev_status, status FROM message_inbox") == [(700, 700)]


def test_status_at_is_the_time_of_the_winner_the_smallest_among_equals(database):
    session = database.session()
    add_messages(session, {"m": "c"})
    times = [f"2026-01-01 0{h}:00:00+00" for h in range(5)]
    apply(session, [Event("m", 600, 0, at=times[3]), Event("m", 600, 1, at=times[2]), Event("m", 300, 2, at=times[0])])
    apply(session, [Event("m", 600, 3, at=times[1]), Event("m", 9002, 4, at=times[4])])
    assert session.query("SELECT extract(hour FROM status_at AT TIME ZONE 'UTC')::int FROM message_inbox") == [(2,)]


def test_receipts_that_change_nothing_still_count_as_events(database):
    session = database.session()
    add_messages(session, {"m": "c"})
    apply(session, [Event("m", 600, 0)])
    answer = apply(session, [Event("m", 600, 1), Event("m", 300, 2), Event("m", 600, 3)])
    assert answer["messages_changed"] == 0 and answer["messages_known"] == 1 and answer["events_counted"] == 3
    funnel = stored_funnel(session)
    assert funnel["c", 600] == (1, 3) and funnel["c", 300] == (1, 1)


def test_one_batch_appends_one_row_of_counters_and_none_without_known_messages(database):
    session = database.session()
    add_messages(session, {f"m{n}": f"c{n % 9}" for n in range(50)})
    session.do("TRUNCATE counter_delta")
    apply(session, [Event(f"m{n}", 600, n) for n in range(50)])
    apply(session, [Event("nobody", 600, 51)])
    assert session.query("SELECT count(*) FROM counter_delta") == [(1,)]


def test_messages_without_a_campaign_count_under_the_empty_name(database):
    session = database.session()
    session.do("INSERT INTO message_inbox (message_id) VALUES ('m')")
    apply(session, [Event("m", 200, 0)])
    assert stored_funnel(session) == {("", 0): (1, 0), ("", 200): (1, 1)}
    assert drift(session) == []


def test_unknown_messages_are_parked_whole_and_only_they(database):
    session = database.session()
    add_messages(session, {"known": "c"})
    unknown = [Event("alpha", 300, 5, 0, traceparent="00-" + "a" * 32 + "-" + "b" * 16 + "-01"), Event("alpha", 9001, 6, 3),
               Event("zeta", 600, 6, 4, partition=2, at="2026-02-03 04:05:06.789+00")]
    answer = apply(session, unknown[:2] + [Event("known", 600, 6, 1)] + unknown[2:], lane=3)
    assert answer == {"messages_known": 1, "messages_changed": 1, "rows": 0, "events_parked": 3, "events_dead": 0, "events_counted": 1,
                      "events_refused": 0, "events_retired": 0, "kinds": answer["kinds"], "gateways": {}, "refused_gateways": {}}
    rows = session.query('SELECT topic, partition, "offset", index, lane, message_id, status, at = %s, payload, traceparent'
                         ' FROM parked_event ORDER BY message_id, "offset"', [unknown[2].at])
    assert rows == [(e.topic, e.partition, e.offset, e.index, 3, e.message_id, e.code, e is unknown[2], e.payload,
                     e.traceparent) for e in unknown]
    assert stored_funnel(session) == {("c", c): (1, int(c == 600)) for c in (0, 200, 300, 600)}


def test_unknown_messages_become_dead_letters_where_the_policy_says_so(database):
    session = database.session()
    event = Event("nobody", 600, 9, 2)
    answer = apply(session, [event], lane=5, unknown="dead-letter")
    assert answer["events_dead"] == 1 and answer["events_parked"] == 0
    assert session.query("SELECT count(*) FROM parked_event") == [(0,)]
    assert session.query('SELECT topic, partition, "offset", index, lane, reason, payload FROM dead_letter') == [
        (event.topic, 0, 9, 2, 5, "unknown_message", event.payload)]


def test_unknown_messages_are_inserted_bare_where_the_policy_says_so(database):
    session = database.session()
    events = [Event("new", 300, 1), Event("new", 600, 2, campaign_id="c1"), Event("new", 600, 3, campaign_id="c2"),
              Event("other", 600, 4, campaign_id="c9", partition=1)]
    assert apply(session, events, unknown="insert")["events_parked"] == 4
    assert sorted(session.query("SELECT message_id, org_id, campaign_id, status FROM message_inbox")) == [
        ("new", "o", "c1", 0), ("other", "o", "c9", 0)]
    assert wake(session, partitions=(0, 1))["rows"] == 4
    inbox = {"new": "c1", "other": "c9"}
    assert stored_rows(session) == expected_rows(inbox, events)
    assert stored_funnel(session) == expected_funnel(inbox, events)
    # A message that is known by then is not inserted again, and keeps its campaign.
    assert apply(session, [Event("new", 800, 5, campaign_id="c7")], unknown="insert")["events_parked"] == 0
    assert session.query("SELECT count(*) FROM message_inbox") == [(2,)]


def test_a_message_that_lands_during_the_batch_is_parked_never_lost(database):
    """R8: known or unknown is decided once, in the statement's snapshot."""
    lane, platform = database.session("lane"), database.session("platform")
    platform.do("BEGIN")
    platform.do("INSERT INTO message_inbox (message_id, campaign_id) VALUES ('m', 'c')")
    answer = apply(lane, [Event("m", 600, 0, gateway="acme, inc\n")])
    platform.do("COMMIT")
    assert answer["events_parked"] == 1 and answer["events_counted"] == 0
    answer = wake(lane)
    assert (answer["rows"], answer["messages_changed"], answer["events_refused"]) == (1, 1, 0)
    assert answer["kinds"] == {(0, 600, 0, -1): 1} and answer["gateways"] == {"acme, inc\n": 1} and answer["refused_gateways"] == {}
    assert stored_funnel(lane) == {("c", c): (1, int(c == 600)) for c in (0, 200, 300, 600)}


def test_the_old_status_is_that_of_the_row_after_a_wait_not_of_the_snapshot(database):
    first, second = database.session("first"), database.session("second")
    add_messages(first, {"m": "c"})
    held = apply(first, [Event("m", 440, 0)], hold=True)
    waiting = threading.Thread(target=apply, args=(second, [Event("m", 600, 1), Event("m", 9001, 2)]))
    waiting.start()
    watcher = database.session("watcher")
    wait_for_lock(watcher, second)
    held.end()
    waiting.join()
    events = [Event("m", 440, 0), Event("m", 600, 1), Event("m", 9001, 2)]
    assert stored_funnel(watcher) == expected_funnel({"m": "c"}, events)


def test_two_writers_of_the_same_messages_stay_exact_without_deadlock(database):
    rng = random.Random(11)
    inbox = {f"m{n:03}": "c" for n in range(100)}
    add_messages(database.session(), inbox)
    shares = [make_events(random.Random(n), list(inbox), 1500) for n in range(3)]
    failures = []

    def write(share):
        session = database.session("writer")
        try:
            for start in range(0, len(share), 75):
                apply(session, share[start:start + 75])
        except SqlError as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(s,)) for s in shares]
    for writer in writers:
        writer.start()
    reader = database.session("reader")
    while any(w.is_alive() for w in writers):
        assert drift(reader) == []
        reader.one("control/rollup", rng.choice([1, 20]), 0, "funnel")
    for writer in writers:
        writer.join()
    assert failures == []
    assert stored_funnel(reader) == expected_funnel(inbox, sum(shares, []))


@pytest.mark.parametrize("rows", [0, 3, 20000])
def test_plans_reach_messages_by_their_key_in_the_order_of_the_batch(database, rows):
    session = database.session()
    session.do("INSERT INTO message_inbox (message_id, campaign_id) SELECT md5(n::text), 'c' || n %% 5"
               " FROM generate_series(1, %s) n", [rows])
    if rows:
        session.do("ANALYZE")
    plan = session.explain("lane/decide", *decided([Event("m", 600, 0)]))
    assert "Seq Scan on message_inbox" not in plan
    update = plan[plan.index("Update on message_inbox"):]
    if rows == 20000:
        assert plan.count("Index Scan using message_inbox_pkey on message_inbox") == 2
        assert update.split("\n")[1].strip().startswith("->  Nested Loop")
        for name, parameters in (("lane/wake", [["t"], [0], 0, 10]), ("lane/expire", [["t"], [0], 0, 10, 1]),
                                 ("lane/discard", [["t"], [0], 0, 1, "x"]), ("control/parked_probe", [["t"], [0], 1])):
            plan = session.explain(name, *parameters)
            assert "Seq Scan on message_inbox" not in plan and "message_inbox_pkey" in plan, name
            assert "Seq Scan on parked_event" not in plan, name


def test_the_answer_tells_what_became_of_the_messages(database):
    session = database.session()
    add_messages(session, {"a": "x", "b": "y", "c": "x", "d": "x"})
    apply(session, [Event("b", 600, 0), Event("c", 440, 1)])
    codes = [("a", 300), ("b", 300), ("c", 600), ("d", 9001), ("d", 9001), ("nobody", 300)]
    kinds = apply(session, [Event(id, code, 10 + n) for n, (id, code) in enumerate(codes)])["kinds"]
    by_fate = {(was, now, gained): messages for (was, now, gained, _), messages in kinds.items()}
    assert by_fate == {(0, 300, 0): 1, (600, 600, 0): 1, (440, 600, 0): 1, (0, 600, 1): 1}
    signature = {(was, now): number for was, now, _, number in kinds}
    assert signature[0, 300] == signature[600, 600] != signature[440, 600]


def test_a_batch_of_the_greatest_diversity_has_a_kind_for_each_signature(database):
    session = database.session()
    ids = [f"m{n:04}" for n in range(1200)]  # as many signatures: each names SENT another number of times
    add_messages(session, dict.fromkeys(ids, "x"))
    answer = apply(session, [Event(id, 300, 0, i * 1200 + n) for n, id in enumerate(ids) for i in range(1 + n // 150)])
    assert set(answer["kinds"].values()) == {150} and len(answer["kinds"]) == 8


def test_folds_are_told_every_transition_of_batches_and_wakes(database):
    session = database.session()
    session.rules = ("folds",)
    add_messages(session, {"a": "x", "b": "x", "same": "y"})
    apply(session, [Event("a", 600, 0), Event("b", 600, 1), Event("same", 300, 2), Event("late", 9001, 3)])
    apply(session, [Event("same", 300, 4)])
    add_messages(session, {"late": "z"})
    assert wake(session)["rows"] == 1
    assert session.query("SELECT e.* FROM fold_event f, unnest(f.orgs, f.campaigns, f.old, f.new, f.gained, f.n) e ORDER BY 2") == [
        ("o", "x", 0, 600, 0, 2), ("o", "y", 0, 300, 0, 1), ("o", "z", 0, 600, 1, 1)]
