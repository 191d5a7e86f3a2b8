"""Receipts of all messages to a person up to a time: each message is moved once, whatever the order, the copies and the bounds of steps."""
import dataclasses
import json
import random
import threading

import pytest

import sql_batch
from sql_batch import TOPIC, Event, apply, drift, path, stored_funnel, stored_rows
from sql_fixture import Database, sql_server, wait_for_lock  # noqa: F401
from test_sql_parking import probe

LANES = 4
DELIVERED, OPENED = 600, 700
HOUR = 3_600_000


@pytest.fixture
def ranged(sql_server):
    made = Database(sql_server, ranges=True)
    made.session("topic").do("INSERT INTO consumer_topic (topic, cluster_id, lanes, hash_version, ladder_hash) VALUES (%s, 'c', %s, 1, 'h')", [TOPIC, LANES])
    yield made
    made.drop()


@dataclasses.dataclass(frozen=True)
class Range:
    recipient: str
    code: int
    until: int  # minutes of the day
    offset: int
    account: str = "page"
    org: str = None
    at: int = 0

    @property
    def lane(self):
        return (ord(self.recipient[0]) - ord("a")) % LANES  # any function of the person


@dataclasses.dataclass(frozen=True)
class Message:
    message_id: str
    recipient: str
    sent: int
    account: str = "page"
    org: str = "o"

    def is_meant(self, by):
        return by.recipient == self.recipient and by.account == self.account and self.sent <= by.until and by.org in (None, self.org)


def moment(minutes):
    return f"2026-11-20 {minutes // 60:02}:{minutes % 60:02}:00+00"


def insert(session, messages):
    with session.connection.cursor() as cursor:
        cursor.executemany("INSERT INTO message_inbox (message_id, org_id, campaign_id, recipient, gateway, created_at) VALUES (%s, %s, 'c', %s, %s, %s)",
                           [(m.message_id, m.org, m.recipient, m.account, moment(m.sent)) for m in messages])


def store(session, ranges):
    for lane in range(LANES):
        mine = [r for r in ranges if r.lane == lane]
        session.run("lane/range_store", [TOPIC] * len(mine), [0] * len(mine), [r.offset for r in mine], [0] * len(mine), lane, [r.account for r in mine],
                    [r.recipient for r in mine], [r.org for r in mine], [r.code for r in mine], [moment(r.until) for r in mine],
                    [moment(r.at) for r in mine], ["g" for _ in mine], [None for _ in mine])


def resolve(session, lane=0, limit=1000, wait_ms=HOUR, timeline=0, partition=0):
    session.run("lane/range_lock", lane)
    row = session.one("lane/range_resolve", [TOPIC], [partition], lane, limit, wait_ms, timeline)
    return {name: value == "t" if name == "again" else int(value) for name, value in row.items()}


def wake(session, lane=0, limit=1000):
    return sql_batch.wake(session, lane, limit)["rows"]


def settle(session, limit=1000):
    """Until every range has looked and every parked receipt was woken."""
    while any([resolve(session, lane, limit)["again"] for lane in range(LANES)]) or any([wake(session, lane) for lane in range(LANES)]):
        pass


def look_again(session):
    session.do("UPDATE range_receipt SET due_at = now() WHERE looks > 0")


def histories(rng, count):
    """Messages to few persons over two accounts, with receipts of their own, and ranges that come in any order and several times."""
    messages = [Message(f"m{n}", rng.choice("abcde"), rng.randrange(1000), rng.choice(("page", "other")), rng.choice("op")) for n in range(count)]
    events = [Event(rng.choice(messages).message_id, rng.choice((200, 300, 310, 400, 600, 700, 800, 9001)), n) for n in range(count)]
    ranges = [Range(rng.choice("abcdex"), rng.choice((300, DELIVERED, OPENED)), rng.randrange(-1, 1000) if rng.random() < 0.9 else 999, 0,
                    rng.choice(("page", "other")), rng.choice((None, None, "o"))) for n in range(count // 4)]
    ranges += rng.choices(ranges, k=len(ranges) // 3)
    rng.shuffle(ranges)
    return messages, events, [dataclasses.replace(r, offset=10_000 + n, until=max(r.until, 0)) for n, r in enumerate(ranges)]


def expected(messages, events, ranges):
    tops = {m.message_id: max([0, *(r.code for r in ranges if m.is_meant(r))]) for m in messages}
    flags = dict.fromkeys(tops, 0)
    for event in events:
        tops[event.message_id] = max(tops[event.message_id], event.top)
        flags[event.message_id] |= event.mask
    return {i: (tops[i], flags[i]) for i in tops}


def funnel_of(rows):
    cells = {}
    for status, flags in rows.values():
        for code in [*path(status), *(9001 + bit for bit in range(31) if flags >> bit & 1)]:
            cells[code] = cells.get(code, 0) + 1
    return cells


def counted(session):
    return {code: messages for (_, code), (messages, _) in stored_funnel(session).items() if messages}


@pytest.mark.parametrize("recent", (None, "-infinity"))
def test_random_histories_come_to_what_the_definition_says(ranged, recent):
    for seed in range(3):
        rng = random.Random(seed)
        messages, events, ranges = histories(rng, 400)
        session = ranged.session()
        session.recent_since = recent
        session.do("DELETE FROM message_inbox; TRUNCATE counter_delta, campaign_funnel_total, campaign_retired, retired_message, parked_event, range_receipt")
        work = [("insert", messages[n::9]) for n in range(9)] + [("apply", events[n::7]) for n in range(7)] + [("store", ranges[n::8]) for n in range(8)]
        rng.shuffle(work)
        for what, items in work:
            {"insert": insert, "apply": lambda s, e: apply(s, e, lane=rng.randrange(LANES)), "store": store}[what](session, items)
            for _ in range(rng.randrange(4)):
                resolve(session, rng.randrange(LANES), rng.choice((1, 3, 50)))
            wake(session, rng.randrange(LANES), rng.choice((1, 9, 1000)))
        settle(session, limit=rng.choice((2, 1000)))
        look_again(session)  # the rows of some messages came after their range had looked
        settle(session)
        rows = expected(messages, events, ranges)
        assert stored_rows(session) == rows, seed
        assert counted(session) == funnel_of(rows) and drift(session) == []
        assert session.query("SELECT (SELECT count(*) FROM parked_event), (SELECT count(*) FROM range_receipt)") == [(0, 0)]
        before = stored_funnel(session)
        store(session, [dataclasses.replace(r, offset=r.offset + 100_000) for r in rng.sample(ranges, len(ranges))])
        settle(session)
        assert stored_funnel(session) == before, "repetition changes nothing, receipts included"
        session.close()


def test_what_was_sent_later_to_others_or_by_another_account_stays(ranged):
    session = ranged.session()
    insert(session, [Message("before", "a", 9), Message("then", "a", 10), Message("later", "a", 11), Message("other", "b", 5),
                     Message("elsewhere", "a", 5, account="other"), Message("foreign", "a", 5, org="p")])
    store(session, [Range("a", OPENED, 10, 0, org="o")])
    settle(session)
    assert {i for i, (status, _) in stored_rows(session).items() if status == OPENED} == {"before", "then"}
    assert stored_funnel(session)["c", OPENED] == (2, 2), "each message counts as one receipt"
    assert session.query("SELECT DISTINCT status_at = timestamptz '2026-11-20 00:00+00' FROM message_inbox WHERE status = 700") == [(True,)]


def test_a_message_that_failed_was_not_sent_to_the_person(ranged):
    session = ranged.session()
    codes = {"SKIPPED": 100, "REJECTED": 460, "FAILED": 440, "UNKNOWN": 400, "DEFERRED": 310, "TARGETED": 0}
    insert(session, [Message(name, "a", 1) for name in codes])
    apply(session, [Event(name, code, n) for n, (name, code) in enumerate(codes.items()) if code])
    store(session, [Range("a", DELIVERED, 10, 100)])
    settle(session)
    assert {i: status for i, (status, _) in stored_rows(session).items()} == codes | dict.fromkeys(("UNKNOWN", "DEFERRED", "TARGETED"), DELIVERED)
    assert drift(session) == []


def test_older_and_repeated_ranges_are_idle(ranged):
    session = ranged.session()
    insert(session, [Message(f"m{n}", "a", n) for n in range(20)])
    store(session, [Range("a", OPENED, 19, 0)])
    assert resolve(session) == {"ranges": 1, "again": False, "messages": 20, "idle": 0}
    store(session, [Range("a", OPENED, 19, 4), Range("a", DELIVERED, 19, 8), Range("a", OPENED, 7, 12)])
    assert resolve(session) == {"ranges": 3, "again": False, "messages": 20, "idle": 2}, "DELIVERED is not repeated: the wake of OPENED is to come"
    settle(session)
    funnel = stored_funnel(session)
    assert funnel["c", OPENED] == (20, 20) and funnel["c", DELIVERED] == (20, 20) and drift(session) == []


def test_two_instances_that_hold_ranges_of_one_person_at_once_count_each_message_once(ranged):
    first, second, watcher = (ranged.session(name) for name in ("first", "second", "watcher"))
    insert(first, [Message("m", "a", 1)])
    store(first, [Range("a", OPENED, 5, 1), Range("a", OPENED, 6, 2)])
    first.do("UPDATE range_receipt SET partition = 1 WHERE \"offset\" = 2")
    first.do("BEGIN")
    assert resolve(first)["messages"] == 1
    found = []

    def of_the_other():
        second.do("BEGIN")
        found.append(resolve(second, partition=1))
        second.do("COMMIT")

    other = threading.Thread(target=of_the_other)
    other.start()
    wait_for_lock(watcher, second)
    first.do("COMMIT")
    other.join()
    assert found[0]["messages"] == 0 and found[0]["idle"] == 1
    settle(watcher)
    assert stored_funnel(watcher)["c", OPENED] == (1, 1) and drift(watcher) == []


def test_ten_thousand_messages_of_one_person_go_in_bounded_steps(ranged):
    session = ranged.session()
    session.do("""INSERT INTO message_inbox (message_id, org_id, campaign_id, recipient, gateway, created_at)
                  SELECT 'm' || n, 'o', 'c', 'a', 'page', timestamptz '2026-11-20 00:00+00' + n / 100 * interval '1 s' FROM generate_series(1, 10000) n""")
    store(session, [Range("a", OPENED, 600, 0)])
    steps = 0
    while True:
        step = resolve(session, limit=700)
        steps += 1
        assert step["messages"] <= 700
        if not step["again"]:
            break
        assert sum(wake(session, lane) for lane in range(LANES)) <= 700
    assert steps == 15
    settle(session)
    assert stored_funnel(session)["c", OPENED] == (10000, 10000) and drift(session) == []


def test_a_step_uses_the_index_and_reads_no_message_twice(ranged):
    session = ranged.session()
    insert(session, [Message(f"m{n}", f"p{n % 500}", n % 1000) for n in range(3000)])
    session.do("ANALYZE message_inbox")
    store(session, [Range("p7", OPENED, 999, 0)])
    plan = session.explain("lane/range_resolve", [TOPIC], [0], 3, 1000, HOUR, 0, options="ANALYZE, COSTS OFF, TIMING OFF")
    assert "message_inbox_recipient" in plan and "Seq Scan on message_inbox" not in plan
    assert "parked_event_message" in plan


def test_the_probe_tells_lanes_with_ranges_that_are_due(ranged):
    session = ranged.session()
    store(session, [Range("b", OPENED, 10, 1)])
    (row,) = session.run("control/parked_probe", [TOPIC], [0], 1000)
    assert row == {"lane": "1", "applicable": "f", "expired": "f", "rows": "0", "oldest_ms": "0", "for_alias": "0", "ranges": "t", "took_ms": row["took_ms"]}
    resolve(session, lane=1)
    assert probe(session) == {}, "it looks again after the wait"
    look_again(session)
    assert resolve(session, lane=1)["ranges"] == 1 and session.query("SELECT count(*) FROM range_receipt") == [(0,)]


def test_parked_receipts_name_the_message_and_not_the_person(ranged):
    session = ranged.session()
    insert(session, [Message("m", "491700000000", 1)])
    store(session, [Range("491700000000", OPENED, 10, 5, org="o", at=12)])
    resolve(session, lane=3, timeline=1)
    payload, index, lane = session.query("SELECT payload, index, lane FROM parked_event")[0]
    assert json.loads(payload) == {"message_id": "m", "status": "OPENED", "gateway": "page", "org_id": "o", "at": "2026-11-20T00:12:00.000000Z"}
    assert index == 200_000 and 0 <= lane < LANES
    assert session.query("SELECT message_id, status, index FROM message_timeline") == [("m", OPENED, 200_000)]


def test_numbers_begin_again_only_when_none_of_them_waits(ranged):
    session = ranged.session()
    insert(session, [Message(f"m{n}", "a", n) for n in range(3)])
    store(session, [Range("a", OPENED, 10, 0)])
    resolve(session, limit=2)
    session.do("UPDATE range_receipt SET found = 199999")
    assert resolve(session, limit=2)["ranges"] == 0, "two receipts wait, whose numbers might be given again"
    assert sum(wake(session, lane) for lane in range(LANES)) == 2
    assert resolve(session, limit=2)["messages"] == 1
    settle(session)
    assert stored_funnel(session)["c", OPENED] == (3, 3)


def test_with_rules_a_range_counts_like_receipts_of_its_messages(ranged):
    session = ranged.session()
    session.rules = ("dedup", "series", "reasons", "gateways", "times")
    insert(session, [Message(f"m{n}", "a", n) for n in range(3)])
    store(session, [Range("a", OPENED, 10, 0)])
    settle(session)
    assert stored_funnel(session)["c", OPENED] == (3, 3)
    assert session.query("SELECT sum(messages)::int FROM campaign_tally WHERE kind = 'hour' AND status = 700") == [(3,)]
    assert session.query("SELECT key, sum(events)::int FROM campaign_tally WHERE kind = 'gateway' AND status = 700 GROUP BY 1") == [("g", 3)]
    assert session.query("SELECT count(*) FROM message_inbox WHERE first_opened_at = timestamptz '2026-11-20 00:00+00'") == [(3,)]


def test_ranges_go_by_age_and_with_an_erased_person(ranged):
    session = ranged.session()
    insert(session, [Message("m", "a", 1), Message("n", "b", 1)])
    store(session, [Range(person, OPENED, 10, n) for n, person in enumerate("ab")])
    session.do("INSERT INTO erasure (subject, reference) VALUES ('messages', 'r')")
    assert session.one("erase/ranges", ["m"], 1) == {"rows": "1"}
    assert session.query("SELECT recipient, (SELECT parked FROM erasure) FROM range_receipt") == [("b", 1)]
    assert session.one("control/ranges_trim", HOUR, 100) == {"rows": "0"}
    session.do("UPDATE range_receipt SET stored_at = now() - interval '2 h'")
    assert session.one("control/ranges_trim", HOUR, 100) == {"rows": "1"}
