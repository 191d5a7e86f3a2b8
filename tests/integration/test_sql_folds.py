"""What the publisher of folds looks at: as much as is due, however much is open."""
import json
import random

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
        visited[open_groups] = pages(session, "fold/look", 0, 2), pages(session, "fold/claim", 0, 2000)
        assert session.query(f"SELECT count(*) FROM fold_outbox WHERE payload LIKE '%due-{open_groups}%'") == [(10,)]
    for small, large in zip(visited[1_000], visited[40_000]):
        assert large <= small + 60, f"pages visited with 1 000 and with 40 000 open groups: {visited}"
    plan = session.query('EXPLAIN (FORMAT JSON) EXECUTE "fold/claim"(0, 2000)')[0][0]
    found = scans((json.loads(plan) if isinstance(plan, str) else plan)[0]["Plan"], "fold_group")
    assert ("Index Scan", "fold_group_due") in found and not [scan for scan in found if scan[0] == "Seq Scan"], found


def test_a_gathering_takes_no_more_than_it_is_allowed_and_says_that_there_is_more(database):
    session = database.session()
    session.do(RULE.replace("'transitions'", "'topic'").replace('"": "tally"', '"s": "set"'))
    append = ("INSERT INTO fold_event (rules, keys, parts, n, size) SELECT array_agg('r'::text), array_agg(format('{\"k\": %s}', n)),"
              " array_agg(format('{\"v\": {\"s\": [%s]}, \"o\": {}}', ROW)), array_agg(1), count(*) FROM generate_series(1, 100) n")
    for row in range(5):
        session.do(append.replace("ROW", str(row)))
    session.prepare("fold/gather")
    taken = []
    while not taken or taken[-1][1]:
        taken += session.query('EXECUTE "fold/gather"(0, 2, 500, 200, 0)')
        assert len(taken) < 10
    assert [rows for rows, _ in taken] == [2, 2, 1]
    assert session.query('EXECUTE "fold/gather"(1, 2, 500, 200, 1)') == [(0, False)]  # topics are the first lane's
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
        session.query('EXECUTE "fold/gather"(0, 2, 500, 1000, 1)')
        session.do("UPDATE fold_group SET due_at = now(), lane = 0 WHERE due_at IS NOT NULL")
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


def test_lanes_share_rows_in_blocks_unless_a_group_is_due(database):
    session = database.session()
    session.do(RULE)
    session.prepare("fold/gather")

    def append(count):
        session.do("INSERT INTO fold_event (orgs, campaigns, old, new, gained, n, size) SELECT '{o}', '{c}', '{0}',"
                   " (SELECT ARRAY[min(new)] FROM path_delta WHERE old = 0 AND new > 0), '{0}', '{1}', 1"
                   f" FROM generate_series(1, {count})")

    def lying():
        return {id for id, in session.query("SELECT id FROM fold_event")}

    append(300)
    everything = lying()
    assert session.query('EXECUTE "fold/gather"(1, 2, 500, 1000, 0)')[0][0] == len(everything - lying())
    assert lying() == {id for id in everything if id // 64 % 2 == 0} and len(lying()) > 100
    append(100)
    everything = lying()
    assert session.query('EXECUTE "fold/gather"(1, 2, 500, 1000, 1)') == [(len(everything), False)]
    assert lying() == set()
    assert session.query("SELECT sum(events)::int FROM fold_group") == [(400,)]


def test_a_gathering_counts_whatever_number_of_statuses_meet_in_a_group(database):
    session = database.session()
    session.do(RULE)
    session.prepare("fold/gather")
    ladder = [code for code, in session.query("SELECT DISTINCT new FROM path_delta WHERE old = 0 AND new > 0 ORDER BY new")]
    expected = {}
    for count in (1, 2, 3, 4, 7, len(ladder), 1):
        codes = ladder[:count]
        session.do("INSERT INTO fold_event (orgs, campaigns, old, new, gained, n, size) SELECT array_agg('o'::text), array_agg('c'::text),"
                   " array_agg(0::smallint), array_agg(c::smallint), array_agg(0), array_agg(3::int8), count(*)"
                   f" FROM unnest(ARRAY{codes}) c")
        for name, delta in session.query("SELECT p.name, sum(d.delta)::int FROM path_delta d JOIN message_status_priority p"
                                         f" ON p.code = d.code WHERE d.old = 0 AND d.new = ANY (ARRAY{codes}) GROUP BY p.name"):
            expected[name] = expected.get(name, 0) + 3 * delta
        session.query('EXECUTE "fold/gather"(0, 2, 500, 1000, 1)')
        found = session.query("SELECT collected -> 'v' -> '', key FROM fold_group")
        assert len(found) == 1 and json.loads(found[0][1]) == {"campaign_id": "c"}
        assert {name: n for name, n in found[0][0].items() if n} == {name: n for name, n in expected.items() if n}
