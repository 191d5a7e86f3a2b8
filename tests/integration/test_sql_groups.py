"""The rule `groups`: messages that count as one. What it must say is written from the definition: a group stands in the best status of its messages."""
import collections
import random
import dataclasses

import pytest

from sql_batch import apply, expected_rows, path, stored_rows, wake_all
from sql_fixture import FLAGS, STATUSES, Database, fill_in, sql_server, text_of  # noqa: F401
from test_sql_rules import batches_of, histories

GROUPS = {"customer": "customer_id", "logical": "logical_id"}
# From the worst to the best: by stage, and at each what ended there before what is under way.
ORDER = (100, 0, 110, 460, 200, 400, 420, 430, 440, 450, 470, 650, 300, 310, 600, 700, 800)
CLEAN = ("TRUNCATE campaign_tally_total, message_group, receipt_counted, campaign_funnel_total;"
         " DELETE FROM message_inbox; TRUNCATE group_delta, campaign_retired, retired_message, counter_delta")


@pytest.fixture
def database(sql_server):  # noqa: F811
    made = Database(sql_server, groups=GROUPS)
    yield made
    made.drop()


def grouping(database, rules=(), kinds=GROUPS):
    session = database.session()
    session.groups = {kind: GROUPS[kind] for kind in kinds}
    session.rules = rules
    return session


def add(session, messages):
    """{id: (campaign, customer, logical)}"""
    with session.connection.cursor() as cursor:
        cursor.executemany("INSERT INTO message_inbox (message_id, org_id, campaign_id, customer_id, logical_id) VALUES (%s, 'o', %s, %s, %s)",
                           [(id, *of) for id, of in messages.items()])


def best(statuses):
    return max(statuses, key=ORDER.index)


def counted(session, kind):
    """{(campaign, code): groups}"""
    return {(c, s): n for c, s, n in session.query("SELECT campaign_id, status, groups::int FROM group_funnel WHERE kind = %s", [kind])}


def folded(session, kind):
    """The same, when all is folded."""
    return {(c, s): n for c, s, n in session.query("SELECT campaign_id, status, messages::int FROM campaign_tally WHERE kind = %s", [kind])}


def expected(messages, rows, kind):
    """rows: {id: (status, flags)}"""
    members = collections.defaultdict(list)
    for id, (campaign, customer, logical) in messages.items():
        key = customer if kind == "customer" else logical or id
        if key:
            members[campaign, key].append(rows[id])
    cells = collections.Counter()
    for (campaign, _), of in members.items():
        flags = 0
        for _, more in of:
            flags |= more
        for code in [*path(best([status for status, _ in of])), *(9001 + bit for bit in range(31) if flags >> bit & 1)]:
            cells[campaign, code] += 1
    return dict(cells)


def with_groups(rng, inbox):
    ids = list(inbox)
    return {id: (campaign, rng.choice((None, "", "anna", "berta", "carl", "dora", "emil")), rng.choice((None, "", "l1", "l2", "l3", rng.choice(ids))))
            for id, campaign in inbox.items()}


def fold(session, most=10_000):
    while int(session.one("control/rollup_groups", most, 0)["rows"]) >= most:
        pass


def test_the_order_of_statuses_is_by_stage_and_what_ended_comes_first(database):
    session = database.session()
    assert tuple(code for code, in session.query("SELECT code FROM group_rank ORDER BY rank")) == ORDER
    stages = [code for code, (_, _, terminal) in STATUSES.items() if not terminal]
    for a in STATUSES:
        for b in STATUSES:
            assert {s for s in stages if s not in (110, 310)} & set(path(best([a, b]))) == {s for s in stages if s not in (110, 310)} & (set(path(a)) | set(path(b)))


@pytest.mark.parametrize("recent", (None, "-infinity", "infinity"))
@pytest.mark.parametrize("rules", ((), ("series",), ("dedup", "gateways")))
def test_a_group_stands_in_the_best_status_of_its_messages(database, rules, recent):
    for seed in range(2):
        rng, inbox, events = histories(seed)
        messages = with_groups(rng, inbox)
        session = grouping(database, rules)
        session.recent_since = recent
        session.do(CLEAN)
        add(session, messages)
        for batch in batches_of(rng, events):
            apply(session, batch)
            if rng.random() < 0.3:
                fold(session, rng.choice((1, 2, 1_000)))
        rows = expected_rows(inbox, events)
        assert stored_rows(session) == rows
        for kind in GROUPS:
            assert counted(session, kind) == expected(messages, rows, kind), "the view is exact before the last roll-up"
        fold(session)
        for kind in GROUPS:
            assert counted(session, kind) == folded(session, kind) == expected(messages, rows, kind)


@pytest.mark.parametrize("part", range(3))
def test_thirty_thousand_groups_in_any_order_of_changes_and_roll_ups(database, part):
    """Straight to the deltas: each group is a history of its own. Changes of a message come in any order, folded in any portions, even before its insert."""
    rng, session = random.Random(part), database.session()
    codes, changes, rows = [code for code in STATUSES if code], [], {}
    messages = {}
    for group in range(10_000):
        for member in range(rng.choice((1, 1, 2, 3))):
            id, old, gained = f"{group}/{member}", None, 0
            messages[id] = (f"c{group % 7}", str(group), None)
            flags = 0
            for new in [0, *sorted({rng.choice(codes) for _ in range(rng.randrange(5))})]:
                gained = rng.choice((0, 0, 0, 1, 32)) & ~flags
                flags |= gained
                changes.append((messages[id][0], group.to_bytes(16, "big"), old, new, gained))
                old = new
            rows[id] = (old, flags)
    rng.shuffle(changes)
    at = 0
    while at < len(changes):
        size = rng.randrange(1, 20_000)
        campaigns, keys, olds, news, gaineds = zip(*changes[at:at + size])
        session.do("INSERT INTO group_delta (kind, campaign_id, key, old, new, gained) VALUES ('customer', %s, %s, %s::int2[], %s::int2[], %s::int4[])",
                   [list(campaigns), list(keys), list(olds), list(news), list(gaineds)])
        at += size
        if rng.random() < 0.6:
            fold(session, 1)
    assert counted(session, "customer") == expected(messages, rows, "customer")
    fold(session)
    assert folded(session, "customer") == expected(messages, rows, "customer")


def test_woken_receipts_count_in_the_groups_of_their_messages(database):
    rng, inbox, events = histories(3, 30, 100)
    messages = with_groups(rng, inbox)
    session = grouping(database)
    early = {id: of for n, (id, of) in enumerate(messages.items()) if n % 2}
    add(session, early)
    for batch in batches_of(rng, events):
        apply(session, batch)
    add(session, {id: of for id, of in messages.items() if id not in early})
    wake_all(session, limit=7)
    for kind in GROUPS:
        assert counted(session, kind) == expected(messages, expected_rows(inbox, events), kind)


def test_inserts_that_are_not_fresh_and_deleted_messages(database):
    session = grouping(database)
    session.do("INSERT INTO message_inbox (message_id, campaign_id, customer_id, status, flags) VALUES ('1', 'c', 'anna', 440, 0), ('2', 'c', 'anna', 600, 1),"
               " ('3', NULL, 'anna', 0, 0), ('4', 'c', NULL, 300, 0)")
    before = counted(session, "customer")
    assert before == {("c", 0): 1, ("c", 200): 1, ("c", 300): 1, ("c", 600): 1, ("c", 9001): 1, ("", 0): 1}
    session.do("DELETE FROM message_inbox WHERE message_id IN ('1', '2')")
    fold(session)
    assert counted(session, "customer") == before, "counters stay"
    session.do("INSERT INTO message_inbox (message_id, campaign_id, customer_id, status) VALUES ('5', 'c', 'anna', 700)")
    assert counted(session, "customer") == before | {("c", 700): 1}, "a later message joins the group"


def test_no_id_of_a_customer_is_in_the_tables_of_groups(database):
    session = grouping(database)
    add(session, {"m1": ("c", "+4915112345678", None), "m2": ("d", "+4915112345678", None)})
    keys = session.query("SELECT DISTINCT k FROM group_delta, unnest(key) k WHERE kind = 'customer'")
    assert len(keys) == 2 and all(len(key) == 16 for key, in keys), "another campaign, another key"
    assert "49151" not in str(session.query("SELECT d::text FROM group_delta d"))


def test_a_roll_up_of_many_new_messages_takes_a_part_of_them(database):
    session = grouping(database, kinds=("customer",))
    session.do("INSERT INTO message_inbox (message_id, org_id, campaign_id, customer_id) SELECT n::text, 'o', 'c', (n % 7)::text FROM generate_series(1, 25000) n")
    assert session.query("SELECT cardinality(key) FROM group_delta WHERE kind = 'customer' ORDER BY id") == [(5_000,)] * 5, "two kinds share 10 000"
    session.do("DELETE FROM group_delta WHERE kind <> 'customer'")
    taken = []
    while session.query("SELECT count(*) FROM group_delta") != [(0,)]:
        taken.append(int(session.one("control/rollup_groups", 10_001, 0)["rows"]))
        assert counted(session, "customer") == {("c", 0): 7}, "what waits counts as well"
    assert taken == [15_000, 10_000]


def test_two_roll_ups_at_once_fold_each_change_once(database):
    one, two = grouping(database), grouping(database)
    add(one, {f"m{n}": ("c", str(n % 3), None) for n in range(9)})
    with one.transaction():
        assert int(one.one("control/rollup_groups", 100, 0)["rows"]) > 0
        assert two.one("control/rollup_groups", 100, 0)["rows"] == "0", "the second does nothing, and waits for nobody"
    fold(two)
    assert folded(two, "customer") == {("c", 0): 3} and folded(two, "logical") == {("c", 0): 9}


def loops(plan, relation):
    """How often the plan has read this table."""
    own = plan["Actual Loops"] if plan.get("Relation Name") == relation else 0
    return own + sum(loops(part, relation) for part in plan.get("Plans", ()))


@pytest.mark.parametrize("kind", GROUPS)
def test_an_audit_asks_once_what_groups_of_one_kind_count(database, kind):
    """Not for each of them: that took a minute for half a million messages."""
    session = grouping(database)
    add(session, {f"m{n}": (f"c{n % 2}", f"p{n}", None) for n in range(400)})
    session.do("UPDATE message_inbox SET status = 300 + 300 * (hashtext(message_id) & 1), flags = 3 * (hashtext(message_id) >> 1 & 1)")
    text = fill_in(text_of("command/audit_group/10_cells") + text_of("command/audit_group/90_list"), {"column": GROUPS[kind], "kind": kind})
    text = text.replace("$1", "'{c0,c1}'").replace("$2", "true").replace("%", "%%")
    ((plan,),), = session.query("EXPLAIN (ANALYZE, FORMAT json) " + text)
    assert 0 < loops(plan["Plan"], "status_path") < 100, "some for each campaign, status and flags; there are 400 groups"
