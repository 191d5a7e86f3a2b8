"""What the publisher of folds looks at: as much as is due, however much is open."""
import json
import random

import psycopg
import pytest
from sql_fixture import database, sql_server  # noqa: F401
from test_sql_snapshot import pages

RULE = """
    INSERT INTO fold_rule (rule, source, match, by_campaign, by_org, by_status, kinds, fields, "window", max_hold, max_events,
                           max_values, funnel, target, destination, message_key)
    VALUES ('r', 'transitions', '{}', true, false, false, '{"": "tally"}', '{}', '1 hour', '2 hours', 1000000, 1000, false,
            'kafka', 'out', 'group')
"""
# n groups of lane 0 that are due in an hour, and k that are due.
OPEN = """
    INSERT INTO fold_group (rule, key, lane, number, events, first_at, last_at, due_at, collected, opened_at)
    SELECT 'r', format('{{"campaign_id": "%s-{name}"}}', n), 0, 1, 5, now(), now() - {ago} * interval '1 hour',
           now() + {due} * interval '1 hour', '{{}}', now()
    FROM generate_series(1, {count}) n
"""


NO_EVENTS = "'{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', 1"
APPEND = """
    INSERT INTO fold_event (orgs, campaigns, old, new, gained, n, size)
    SELECT array_agg('o'::text), array_agg('c'::text), array_agg(0::smallint), array_agg(c::smallint), array_agg(0), array_agg(3::int8), count(*)
    FROM unnest(ARRAY{codes}) c
"""
ENTRIES = """
    ARRAY{ids}::int8[], ARRAY{campaigns}::text[], ARRAY{campaigns}::text[], array_fill(0::int2, ARRAY[{count}]), ARRAY{codes}::int2[],
    array_fill(0, ARRAY[{count}]), array_fill(NULL::text, ARRAY[{count}]), array_fill(3::int8, ARRAY[{count}]),
    array_fill({at}, ARRAY[{count}]), array_fill({at}, ARRAY[{count}]), array_fill(NULL::text, ARRAY[{count}]),
    ARRAY{rows}::int8[], ARRAY{rows}::int8[], {new}
"""


def gather_topics(session, rows=500, entries=1000):
    return [row[:2] for row in session.query(f'EXECUTE "fold/gather"({NO_EVENTS}, {rows}, {entries}, NULL)')]


def gather(session, ids, campaigns, codes, at="now()", new=1, as_of="NULL", rows=None):
    """The answer: rules, keys and windows of the entries from `new` on."""
    at = f"(extract(epoch FROM {at}) * 1000000)::int8"
    given = ENTRIES.format(ids=ids, campaigns=campaigns, codes=codes, count=len(codes), at=at, new=new, rows=rows or [1] * len(codes))
    return session.query(f'EXECUTE "fold/gather"({given}, 500, 1000, {as_of})')[0][2:6]


def reached_from_nothing(session):
    return [code for code, in session.query("SELECT DISTINCT new FROM path_delta WHERE old = 0 AND new > 0 ORDER BY new")]


def append(session, count, codes):
    """Rows of one entry for each code; their ids."""
    before = {id for id, in session.query("SELECT id FROM fold_event")}
    for _ in range(count):
        session.do(APPEND.format(codes=codes))
    return sorted({id for id, in session.query("SELECT id FROM fold_event")} - before)


def add_groups(session, name, count, due):
    session.do(OPEN.format(name=name, count=count, due="-0.1" if due else "1", ago="2" if due else "0"))
    session.do("ANALYZE fold_group")


def scans(node, relation):
    """Types and indexes of what reads the relation."""
    found = [(node["Node Type"], node.get("Index Name"))] if node.get("Relation Name") == relation and "Scan" in node["Node Type"] else []
    return found + [scan for child in node.get("Plans", []) for scan in scans(child, relation)]


def test_due_groups_are_found_by_index_in_as_many_pages_as_are_due(database):
    session = database.session()
    session.do(RULE)
    visited = {}
    for open_groups in (1_000, 40_000):
        add_groups(session, f"open-{open_groups}", open_groups, due=False)
        add_groups(session, f"due-{open_groups}", 10, due=True)
        session.do("VACUUM fold_group")
        visited[open_groups] = pages(session, "fold/poll", 0), pages(session, "fold/claim", 0, 2000)
        assert session.query(f"SELECT count(*) FROM fold_outbox WHERE payload LIKE '%due-{open_groups}%'") == [(10,)]
    for small, large in zip(visited[1_000], visited[40_000]):
        assert large <= small + 60, f"pages visited with 1 000 and with 40 000 open groups: {visited}"
    plan = session.query('EXPLAIN (FORMAT JSON) EXECUTE "fold/claim"(0, 2000)')[0][0]
    found = scans((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"], "fold_group")
    assert ("Index Scan", "fold_group_due") in found and not [scan for scan in found if scan[0] == "Seq Scan"], found


def test_a_gathering_takes_no_more_than_it_is_allowed_and_says_that_there_is_more(database):
    session = database.session()
    session.do(RULE.replace("'transitions'", "'topic'").replace('"": "tally"', '"s": "set"'))
    event = ("INSERT INTO fold_event (rules, keys, parts, n, size) SELECT array_agg('r'::text), array_agg(format('{\"k\": %s}', n)),"
              " array_agg(format('{\"v\": {\"s\": [%s]}, \"o\": {}}', ROW)), array_agg(1), count(*) FROM generate_series(1, 100) n")
    for row in range(5):
        session.do(event.replace("ROW", str(row)))
    session.prepare("fold/gather")
    taken = []
    while not taken or taken[-1][1]:
        taken += gather_topics(session, entries=200)
        assert len(taken) < 10
    assert [rows for rows, _ in taken] == [2, 2, 1]
    assert gather_topics(session) == [(0, False)]
    assert session.query("SELECT DISTINCT collected -> 'v' -> 's', events FROM fold_group") == [([0, 1, 2, 3, 4], 5)]


def test_a_group_that_opens_again_within_the_window_was_published_too_early(database):
    session = database.session()
    session.do(RULE.replace("'transitions'", "'topic'"))
    for name in ("fold/gather", "fold/claim"):
        session.prepare(name)
    event = "INSERT INTO fold_event (rules, keys, parts, n, size, at) VALUES ('{r}', ARRAY['{\"k\": 1}'], '{\"{}\"}', '{3}', 1, now() - %s)"
    quiet = "interval '3 hours'"

    def publish(age):
        session.do(event % age)
        gather_topics(session)
        session.do("UPDATE fold_group SET due_at = now() - interval '1 minute', lane = 0 WHERE due_at IS NOT NULL")
        return session.query('EXECUTE "fold/claim"(0, 10)')

    assert publish(quiet) == [(1, 1)]
    session.do("UPDATE fold_group SET published_at = now() - interval '5 hours'")
    assert publish(quiet) == [(1, 1)]  # two hours after it: the window is one
    session.do("UPDATE fold_group SET published_at = now() - interval '3 hours 30 minutes'")
    assert publish(quiet) == [(1, 1)]
    totals = session.query("SELECT sum(events)::int8, sum(groups)::int8, sum(quiet)::int8, sum(avoidable)::int8 FROM fold_total")
    assert totals == [(9, 3, 3, 1)]


def test_the_short_way_to_add_counts_gives_what_the_long_one_gives(database):
    session, chance = database.session(), random.Random(7)
    names = ["SENT", "DELIVERED", "OPENED", "CLICKED", "FAILED", 'a "quoted" \\ name']
    for _ in range(300):
        mine = {name: chance.randrange(-3, 10**12) for name in chance.sample(names, chance.randrange(7))}
        theirs = {name: chance.randrange(-3, 10**12) for name in chance.sample(names, chance.randrange(5))}
        a, b = ({"v": {"": counts}} for counts in (mine, theirs))
        short, long = session.query("SELECT fold_sum(%s, %s), fold_merge(%s, '{\"\": \"tally\"}', 10, %s)",
                                    [json.dumps(value) for value in (a, {**b, "k": list(theirs)}, a, b)])[0]
        assert short["v"] == long["v"] == {"": {name: mine.get(name, 0) + theirs.get(name, 0) for name in {**mine, **theirs}}}
        assert session.query("SELECT fold_sum(%s, %s)", [json.dumps(a), json.dumps(b)]) == [(None,)]  # not listed: not its case
    first = {"v": {"": {"SENT": 1}}, "k": ["SENT"]}
    assert session.query("SELECT fold_sum('{}', %s)", [json.dumps(first)]) == [(first,)]


def test_rows_of_transitions_are_read_once_and_stay_until_they_are_gathered(database):
    session = database.session()
    session.do(RULE)
    code = reached_from_nothing(session)[0]
    for name in ("fold/events", "fold/gather"):
        session.prepare(name)
    ids = append(session, 5, [code, code])
    session.do("INSERT INTO fold_event (rules, keys, parts, n, size) VALUES ('{r}', '{k}', ARRAY['{}'], '{1}', 1)")  # a topic's
    first = session.query("EXECUTE \"fold/events\"('{}', 500, 4)")
    assert [row[0] for row in first] == ids[:2] and all(row[2] == 2 for row in first)
    assert [row[0] for row in session.query(f'EXECUTE "fold/events"(ARRAY{ids[:2]}, 2, 1000)')] == ids[2:4]
    assert [row[0] for row in session.query(f'EXECUTE "fold/events"(ARRAY{ids[:2]}, 500, 1)')] == ids[2:3]  # one comes in any case
    gather(session, ids[:2], ["c"], [code])
    assert [id for id, in session.query("SELECT id FROM fold_event WHERE rules IS NULL ORDER BY id")] == ids[2:]
    assert session.query("SELECT events::int FROM fold_group WHERE key <> 'k'") == [(3,)]


def test_sums_that_are_kept_back_are_read_again_with_their_own_times(database):
    session = database.session()
    for name in ("fold/events", "fold/keep"):
        session.prepare(name)
    kept = session.query("""EXECUTE "fold/keep"('{o,o}', '{a,b}', '{0,200}', '{200,300}', '{0,1}', ARRAY[NULL, '{"x": 1}'], '{7,8}', '{1000,2000}',
                            '{3000,4000}', ARRAY[NULL, 'link'], '{5,6}', '{7,9}')""")
    row = session.query("EXECUTE \"fold/events\"('{}', 500, 1000)")[0]
    assert [(row[0],)] == kept and row[2:] == (2, ["o"], ["a", "b"], [0, 200], [200, 300], [0, 1], [7, 8], [None, '{"x": 1}'],
                                               [None, "link"], [1000, 2000], [3000, 4000], [5, 6], [7, 9])


def test_arrays_of_one_value_come_with_one_element(database):
    session = database.session()
    session.prepare("fold/events")
    session.do("INSERT INTO fold_event (orgs, campaigns, old, new, gained, n, size) VALUES"
               " ('{o,o,o}', '{a,b,c}', '{0,0,0}', '{200,200,200}', '{0,0,0}', '{1,1,1}', 3),"
               " ('{o,o,p}', '{a,a,a}', '{0,0,300}', '{200,300,200}', '{0,4,0}', '{1,1,2}', 3), ('{o}', '{a}', '{0}', '{200}', '{0}', '{1}', 1)")
    assert [row[2:9] for row in session.query("EXECUTE \"fold/events\"('{}', 500, 1000)")] == [
        (3, ["o"], ["a", "b", "c"], [0], [200], [0], [1]), (3, ["o", "o", "p"], ["a", "a", "a"], [0, 0, 300], [200, 300, 200], [0, 4, 0], [1, 1, 2]),
        (1, ["o"], ["a"], [0], [200], [0], [1])]


def test_nothing_is_added_if_somebody_else_has_taken_a_row(database):
    session = database.session()
    session.do(RULE)
    code = reached_from_nothing(session)[0]
    session.prepare("fold/gather")
    ids = append(session, 3, [code])
    session.do(f"DELETE FROM fold_event WHERE id = {ids[1]}")
    with pytest.raises(psycopg.Error) as raised:
        gather(session, ids, ["c"], [code])
    assert raised.value.sqlstate == "RD001" and "2 of 3 rows" in str(raised.value)
    assert session.query("SELECT (SELECT count(*) FROM fold_event)::int, (SELECT count(*) FROM fold_group)::int") == [(2, 0)]


def test_the_answer_says_which_groups_new_entries_belong_to(database):
    session = database.session()
    session.do(RULE)
    session.do(RULE.replace("'r'", "'s'").replace("true, false, false", "true, false, true").replace("'1 hour'", "'5 seconds'"))
    session.do(RULE.replace("'r'", "'elsewhere'").replace("'{}', true", "'{\"campaign_id\": [\"other\"]}', true"))
    session.prepare("fold/gather")
    code = reached_from_nothing(session)[0]
    status, = session.query(f"SELECT name FROM message_status_priority WHERE code = {code}")[0]
    entries, rules, keys, windows = gather(session, [], ["a", "b", 'c"'], [code] * 3, new=2)
    found = sorted(zip(entries, rules, (json.loads(key) for key in keys), windows), key=str)
    assert found == sorted([(2, "r", {"campaign_id": "b"}, 3_600_000_000), (3, "r", {"campaign_id": 'c"'}, 3_600_000_000),
                            (2, "s", {"campaign_id": "b", "status": status}, 5_000_000),
                            (3, "s", {"campaign_id": 'c"', "status": status}, 5_000_000)], key=str)
    assert gather(session, [], ["a"], [code], new=2) == (None, None, None, None)


def test_entries_of_no_transitions_are_only_asked_about(database):
    session = database.session()
    session.do(RULE)
    session.prepare("fold/gather")
    code = reached_from_nothing(session)[0]
    session.do("INSERT INTO fold_event (rules, keys, parts, n, size) VALUES ('{r}', '{k}', ARRAY['{}'], '{1}', 1)")  # a topic's
    given = ENTRIES.format(ids=[], campaigns=["a", "b"], codes=[code] * 2, count=2, at="0", new=1, rows=[1, 1]).replace("array_fill(3::int8", "array_fill(0::int8")
    rows, rest, entries, rules, keys, _, _ = session.query(f'EXECUTE "fold/gather"({given}, 0, 0, NULL)')[0]
    assert (rows, sorted(zip(entries, rules, keys))) == (0, [(1, "r", '{"campaign_id": "a"}'), (2, "r", '{"campaign_id": "b"}')])
    assert session.query("SELECT (SELECT count(*) FROM fold_event)::int, (SELECT count(*) FROM fold_group)::int,"
                         " (SELECT count(*) FROM fold_total)::int") == [(1, 0, 0)]


def test_a_group_that_was_put_off_is_due_when_its_last_events_have_been_handed_over(database):
    session = database.session()
    session.do(RULE)
    code = reached_from_nothing(session)[0]
    for name in ("fold/gather", "fold/due", "fold/put_off", "fold/claim"):
        session.prepare(name)
    gather(session, [], ["c"], [code], at="now() - interval '61 minutes'")
    session.do("UPDATE fold_group SET lane = 0")
    key = '{"campaign_id": "c"}'
    due = [("r", key, 3_600_000_000, False)]
    assert session.query('EXECUTE "fold/due"(10)') == due
    session.do(f"""EXECUTE "fold/put_off"('{{r}}', ARRAY['{key}'], ARRAY[now() + interval '1 minute'])""")
    assert session.query("SELECT due_at > now() AND due_at <= now() + interval '1 minute' FROM fold_group") == [(True,)]
    session.do("UPDATE fold_group SET due_at = now()")
    session.do(f"""EXECUTE "fold/put_off"('{{r}}', ARRAY['{key}'], ARRAY[NULL::timestamptz])""")
    assert session.query("SELECT due_at = first_at + interval '2 hours' FROM fold_group") == [(True,)]
    assert session.query('EXECUTE "fold/due"(10)') == []
    gather(session, [], ["c"], [code], at="now() - interval '60 minutes'", as_of="(extract(epoch FROM now()) * 1000000)::int8")
    assert session.query("SELECT due_at <= now() FROM fold_group") == [(True,)]
    assert session.query('EXECUTE "fold/claim"(0, 10)') == [(1, 1)]


def test_the_other_lane_waits_until_everything_is_gathered_but_not_for_ever(database):
    session = database.session()
    session.do(RULE)
    for name in ("fold/poll", "fold/due", "fold/claim"):
        session.prepare(name)
    session.do(OPEN.format(name="x", count=1, due="0", ago="2"))
    session.do("UPDATE fold_group SET lane = 1, due_at = now() - interval '3 seconds'")

    def looked(lane):
        return session.query(f'EXECUTE "fold/poll"({lane})')[0][2]

    assert (looked(0), looked(1)) == (True, False)
    assert session.query('EXECUTE "fold/due"(10)')[0][0] == "r"
    assert session.query('EXECUTE "fold/claim"(1, 10)') == [(0, 0)]
    session.do("UPDATE fold_lane SET gathered_at = now() - interval '2 seconds' WHERE lane = 0")
    assert (looked(0), looked(1)) == (False, True)
    session.do("UPDATE fold_lane SET gathered_at = now() - interval '1 hour' WHERE lane = 0")
    assert (looked(0), looked(1)) == (True, False)
    session.do("UPDATE fold_group SET due_at = now() - interval '11 seconds'")  # nobody gathers
    assert looked(1)
    assert session.query('EXECUTE "fold/claim"(1, 10)') == [(1, 1)]


def test_a_gathering_counts_whatever_number_of_statuses_meet_in_a_group(database):
    session = database.session()
    session.do(RULE)
    session.prepare("fold/gather")
    ladder = reached_from_nothing(session)
    expected = {}
    for count in (1, 2, 3, 4, 7, len(ladder), 1):
        codes = ladder[:count]
        for name, delta in session.query("SELECT p.name, sum(d.delta)::int FROM path_delta d JOIN message_status_priority p"
                                         f" ON p.code = d.code WHERE d.old = 0 AND d.new = ANY (ARRAY{codes}) GROUP BY p.name"):
            expected[name] = expected.get(name, 0) + 3 * delta
        gather(session, [], ["c"] * count, codes)
        found = session.query("SELECT collected -> 'v' -> '', key FROM fold_group")
        assert len(found) == 1 and json.loads(found[0][1]) == {"campaign_id": "c"}
        assert {name: n for name, n in found[0][0].items() if n} == {name: n for name, n in expected.items() if n}


COLLECTED = {"": "tally", "now": "last", "born": "first", "note": "last", "new": "last", "all": "set"}
FIELDS = {"now": "status", "born": "prev_status", "note": "inbox.note", "new": "flags", "all": "status"}


def entries_of(session, *given):
    """Gathers entries of one campaign: status before, status now, flags gained, note, first row, last row."""
    old, new, gained, notes, firsts, lasts = (list(column) for column in zip(*given))
    count, notes = len(given), [json.dumps({"note": note}) for note in notes]
    entries = ENTRIES.format(ids=[], campaigns=["c"] * count, codes=new, count=count, at="7", new=1, rows=firsts)
    entries = entries.replace("array_fill(0::int2, ARRAY[%d])" % count, f"ARRAY{old}::int2[]").replace("array_fill(0, ARRAY[%d])" % count, f"ARRAY{gained}::int4[]")
    entries = entries.replace("array_fill(NULL::text, ARRAY[%d])" % count, f"ARRAY{notes}::text[]", 1)
    entries = f"ARRAY{lasts}::int8[]".join(entries.rsplit(f"ARRAY{firsts}::int8[]", 1))
    session.query(f'EXECUTE "fold/gather"({entries}, 500, 1000, NULL)')
    return session.query("SELECT collected -> 'v' FROM fold_group")[0][0]


def test_first_and_last_follow_the_rows_in_which_a_messages_transitions_came(database):
    session = database.session()
    session.do(RULE.replace("""'{"": "tally"}', '{}'""", f"'{json.dumps(COLLECTED)}', '{json.dumps(FIELDS)}'"))
    session.prepare("fold/gather")
    code = dict(session.query("SELECT name, code::int FROM message_status_priority"))
    bits = dict(session.query("SELECT name, (1 << flag_bit)::int FROM message_status_priority WHERE flag_bit IS NOT NULL"))
    sent, delivered, opened, failed = (code[name] for name in ("SENT", "DELIVERED", "OPENED", "FAILED"))
    # In memory the order is lost: the entry of the newest row stands in the middle.
    found = entries_of(session, (sent, failed, 0, "b", 12, 12), (delivered, opened, bits["REPLIED"] | bits["COMPLAINED"], None, 20, 31),
                       (0, sent, 0, "a", 11, 11), (failed, delivered, 0, "c", 13, 30))
    assert (found["now"], found["note"], found["born"]) == ("OPENED", None, "TARGETED")
    assert found["new"] == "+".join(name for name in sorted(("REPLIED", "COMPLAINED"), key=code.get))
    assert sorted(found["all"]) == ["DELIVERED", "FAILED", "OPENED", "SENT"]
    found = entries_of(session, (sent, delivered, 0, "z", 40, 40))  # what is handed over later is later
    assert (found["now"], found["note"], found["born"], found["new"]) == ("DELIVERED", "z", "TARGETED", None)
    found = entries_of(session, (sent, delivered, 0, "y", 41, 41), (sent, opened, 0, "x", 41, 41))  # two messages of one batch
    assert (found["now"], found["note"]) == ("OPENED", "x")


def test_an_erasure_leaves_the_order_of_the_rows_that_it_changes(database):
    session = database.session()
    session.prepare("fold/events")
    row = ("INSERT INTO fold_event (orgs, campaigns, old, new, gained, n, columns, size)"
           " VALUES ('{o,o}', '{c,c}', '{0,0}', '{200,200}', '{0,0}', '{1,1}', %s, 2)")
    for who in ("gone", "here"):
        session.do(row.replace("%s", f"""ARRAY['{{"who": "{who}"}}', '{{"who": "x"}}']"""))
    session.query("SELECT erase_folds('{gone}')")
    kept, changed = session.query("EXECUTE \"fold/events\"('{}', 500, 1000)")
    assert kept[9] == ['{"who": "here"}', '{"who": "x"}'] and kept[-1] is None
    assert changed[9][0] == '{"who": null}' and changed[0] > kept[0] and changed[-2] == changed[-1] == [kept[0] - 1] * 2


# ---- what groups and calls wait for ----------------------------------------------------------------------------------------

def rule(**changes):
    fields = {"rule": "r", "source": "transitions", "match": {}, "by_campaign": True, "by_org": False, "by_status": False, "by_prev_status": False,
              "by_flags": False, "key_columns": [], "columns": [], "kinds": {"": "tally"}, "fields": {}, "window": "3600000 ms", "max_hold": "7200000 ms", "max_events": 1_000_000,
              "max_values": 1000, "funnel": False, "target": "kafka", "destination": "out", "message_key": "group", "longest_wait": "3600000 ms"}
    return json.dumps([fields | changes])


@pytest.mark.parametrize("changes, seconds", [
    ({}, 3600), ({"window": "60000 ms"}, 60), ({"max_hold": "30000 ms", "window": "30000 ms"}, 30), ({"max_events": 5}, 0), ({"window": "7200000 ms"}, 3600),
], ids=["the same", "window", "max_hold", "max_events", "longer"])
def test_an_open_group_is_due_no_later_than_todays_rule_has_it(database, changes, seconds):
    session = database.session()
    session.one("fold/rules", rule())
    add_groups(session, "g", 3, due=False)
    session.one("fold/rules", rule(**changes))
    assert session.query("SELECT DISTINCT round(extract(epoch FROM due_at - now()) / 5)::int * 5 FROM fold_group") == [(seconds,)]


def test_a_group_from_before_the_clock_went_back_is_due_as_if_its_last_event_had_just_come(database):
    session = database.session()
    session.one("fold/rules", rule())
    add_groups(session, "g", 3, due=False)
    session.do("UPDATE fold_group SET first_at = first_at + interval '1 day', last_at = last_at + interval '1 day', due_at = due_at + interval '1 day'")
    session.one("fold/rules", rule())
    assert session.query("SELECT bool_and(due_at BETWEEN now() + interval '59 min' AND now() + interval '1 hour' AND last_at <= now() AND first_at <= now())"
                         " FROM fold_group") == [(True,)]


def test_a_call_waits_no_longer_than_the_longest_wait_of_today(database):
    session = database.session()
    session.one("fold/rules", rule(target="webhook"))
    session.do("INSERT INTO fold_call (id, lane, rule, payload, retry_at, failed_at) SELECT n::text, 0, 'r', '{}', now() + n * interval '10 min', CASE WHEN n = 9 THEN now() END"
               " FROM unnest('{1, 5, 9}'::int[]) n")
    session.one("fold/rules", rule(target="webhook", longest_wait="1200000 ms"))
    assert session.query("SELECT id, round(extract(epoch FROM retry_at - now()) / 60)::int FROM fold_call ORDER BY id") == [("1", 10), ("5", 20), ("9", 90)]
