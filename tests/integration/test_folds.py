"""Folds: bursts become one publication, exactly once, whatever happens to those who publish."""

import base64
import collections
import hashlib
import hmac
import http.server
import json
import random
import secrets
import signal
import threading
import time

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import ConfigResource

from oracle import broker
from support import publications
from support.failing import failing
from support.operations import Operations
from support.ports import free_ports
from support.servers import Postgres

RULE = {"name": "campaigns", "group_key": ["campaign_id"], "window": "1s", "max_hold": "5s"}


@pytest.fixture
def create_folds(create_world, create_topic):
    """A world with one rule for campaigns; world.out is the topic of its publications."""

    def create(events=None, rule=None, **settings):
        out = create_topic(2)
        fold = {**RULE, **(rule or {}), "publish": {"kafka": {"topic": str(out)}}}
        world = create_world(events, folds=[fold], **settings)
        world.out = out
        return world

    return create


def published(world):
    return publications.read(world.brokers, world.out, 2)


def wait_until_quiet(world, process=None, timeout=90.0):
    world.wait(lambda: publications.is_quiet(world.database), process, timeout, "all folds published")


def assert_told(world):
    """The publications tell every change of the funnel, each once."""
    found = published(world)
    publications.assert_once(found)
    assert publications.statuses(found, "campaign_id") == publications.funnel(world.database)
    counts = publications.totals(world.database)["campaigns"]
    assert sum(p["events"] for p in found) == counts["events"]
    assert len(found) == counts["groups"] == sum(counts[c] for c in ("quiet", "hold", "full", "removed"))
    return found


def shown_figures(pages):
    """What the process shows of its one rule."""
    figures = {"events": pages.figures().get_one("receiptd_fold_events_total", rule="campaigns")}
    for cause in ("quiet", "hold", "full", "removed"):
        figures[cause] = pages.figures().get_one("receiptd_fold_published_total", rule="campaigns", cause=cause)
    return figures


def test_the_publications_tell_every_change_once(create_folds):
    world = create_folds(20_000, seed=21, rule={"funnel": True})
    process = world.installation.start()
    feeder = world.feed()
    world.wait_for_progress(process)
    world.insert(world.stream.late)
    feeder.join()
    world.finish(process)
    wait_until_quiet(world, process)
    found = assert_told(world)
    assert {p["cause"] for p in found} <= {"quiet", "hold"}
    last = {p["group"]["campaign_id"]: p for p in sorted(found, key=lambda p: p["number"])}
    funnel = "SELECT status_name, messages FROM receiptd.campaign_funnel WHERE campaign_id = %s"
    for campaign, publication in last.items():  # nothing has changed since
        assert publication["funnel"] == dict(world.database.query(funnel, campaign))
    counts, pages = publications.totals(world.database)["campaigns"], Operations(process)
    wanted = {name: count for name, count in counts.items() if name not in ("groups", "avoidable")}
    world.wait(lambda: shown_figures(pages) == wanted, process, 60, f"the metrics show {wanted}")
    assert len(found) == counts["groups"]
    process.stop()


def test_kills_restarts_and_rebalances_of_two_instances_lose_and_double_nothing(create_folds):
    world = create_folds(48_000, seed=22, rule={"window": "300ms", "max_hold": "1s"})
    feeder = world.feed(per_second=6_000)
    running = world.trouble_two_instances(feeder, seed=22)
    world.insert(world.stream.late)
    world.finish(timeout=120)
    wait_until_quiet(world)
    assert_told(world)
    for process in running.values():
        process.stop(60)


@pytest.mark.alone
def test_a_database_that_crashes_and_goes_back_loses_and_doubles_nothing(create_folds, services):
    world = create_folds(30_000, seed=23, rule={"window": "300ms", "max_hold": "1s"})
    server = Postgres(services)
    process = world.installation.start()
    feeder = world.feed(per_second=6_000)
    for _ in range(2):
        world.wait_for_progress(process, 60)
        world.database.connection.close()
        server.stop_immediately()
        server.start()
        world.wait_for_progress(process, 60)
    feeder.join()
    world.insert(world.stream.late)
    world.finish(process, timeout=120)
    wait_until_quiet(world, process)
    assert_told(world)
    process.stop()


def test_a_failover_that_lost_claims_tells_again_under_the_same_ids(create_folds, create_database, services):
    world = create_folds(10_000, seed=24)
    world.insert(world.stream.late)
    records = list(world.stream.records())
    world.produce(records[: len(records) // 2])
    process = world.installation.start()
    world.finish(process)
    wait_until_quiet(world, process)
    process.stop()
    before = {p["id"] for p in published(world)}
    copy = services.create_database(template=world.database)

    # Told in two parts, of which the second telling may make one.
    process = world.installation.start()
    for part in (records[len(records) // 2 : len(records) * 3 // 4], records[len(records) * 3 // 4 :]):
        world.produce(part)
        world.finish(process)
        wait_until_quiet(world, process)
    process.stop()
    lost = {p["id"] for p in assert_told(world)} - before
    assert lost

    # The copy knows nothing of the second half: Kafka does.
    world.database.go_back_to(copy)
    process = world.installation.start()
    process.wait_for_log(r"the database has forgotten \d+ publications", 60)
    world.finish(process)
    wait_until_quiet(world, process)
    found = published(world)
    counts = collections.Counter(p["id"] for p in found)
    assert {id for id, n in counts.items() if n == 2} <= lost
    assert max(counts.values()) == 2
    told = publications.newest(found)
    publications.assert_once(told)
    assert publications.statuses(told, "campaign_id") == publications.funnel(world.database)
    process.stop()


# ---- source: topic -------------------------------------------------------------------------------------------------

def produce_json(world, topic, events, headers=None):
    """events: (key, dict, bytes or None) in order."""
    producer = Producer({"bootstrap.servers": world.brokers, "linger.ms": 20, "enable.idempotence": True})  # order matters
    for key, value in events:
        value = value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
        producer.produce(str(topic), value, key.encode(), headers=headers)
        producer.poll(0)
    assert producer.flush(60) == 0


@pytest.fixture
def create_folder(create_world, create_topic):
    """A world that folds a topic: world.events, world.out."""

    def create(*rules, **settings):
        out, events = create_topic(2), create_topic(4)
        folds = [{"source": "topic", "topic": str(events), "publish": {"kafka": {"topic": str(out)}}, **rule}
                 for rule in rules]
        world = create_world(folds=folds, **settings)
        world.out, world.events = out, events
        return world

    return create


def wait_until_read(world, process=None):
    """Until every event of the topic is folded."""
    ends = {p: end for p, (_, end) in world.events.watermarks().items()}

    def read():
        rows = world.database.query("SELECT partition, next_offset FROM receiptd.fold_progress WHERE topic = %s",
                                    str(world.events))
        return dict(rows) == ends

    world.wait(read, process, 90, f"events read up to {ends}")


def test_the_published_example_gives_exactly_two_publications(create_folder):
    world = create_folder({"name": "accounts", "group_key": ["account_id"], "window": "2s", "max_hold": "1m",
                           "collect": {"metrics": {"field": "metrics", "kind": "set"}}})
    events = [("1", {"account_id": "1", "metrics": {"likes": 10}}), ("2", {"account_id": "2", "metrics": {"likes": 1}}),
              ("1", {"account_id": "1", "metrics": {"shares": 2}}), ("1", {"account_id": "1", "metrics": {"comments": 4}}),
              ("2", {"account_id": "2", "metrics": {"shares": 7}}), ("1", {"account_id": "1", "metrics": {"impressions": 99}})]
    produce_json(world, world.events, events)
    process = world.installation.start()
    wait_until_read(world, process)
    wait_until_quiet(world, process)
    found = {p["group"]["account_id"]: p for p in published(world)}
    assert len(published(world)) == 2
    assert found["1"]["collected"] == {"metrics": ["likes", "shares", "comments", "impressions"]}
    assert found["2"]["collected"] == {"metrics": ["likes", "shares"]}
    assert (found["1"]["events"], found["2"]["events"]) == (4, 2)
    process.stop()


def test_every_kind_is_collected_and_a_full_set_says_what_had_no_room(create_folder):
    kinds = ("set", "sum", "min", "max", "count", "first", "last")
    world = create_folder({"name": "r", "group_key": ["g.id"], "window": "1s", "max_values": 3, "match": {"type": "a|b"},
                           "collect": {kind: {"field": "v.x", "kind": kind} for kind in kinds}})
    values = [5, -2, 2.5, 7, 8, 9]  # beyond the limit none twice: that counts again only where both come in one transaction
    events = [("k", {"g": {"id": 1}, "type": "ab"[n % 2], "v": {"x": v}}) for n, v in enumerate(values)]
    events += [("k", {"g": {"id": 1}, "type": "c", "v": {"x": 1000}}), ("k", b"no JSON"), ("k", {"type": "a"}),
               ("k", {"g": {"id": 1}, "type": "a", "v": {"x": None}}), ("k", {"g": {"id": 1}, "type": "b"})]
    process = world.installation.start()
    produce_json(world, world.events, events)
    wait_until_read(world, process)
    wait_until_quiet(world, process)
    (only,) = published(world)
    assert only["collected"] == {"set": [5, -2, 2.5], "sum": 29.5, "min": -2, "max": 9, "count": 6, "first": 5, "last": 9}
    assert only["overflow"] == {"set": 3} and only["events"] == 8 and only["group"] == {"g.id": 1}
    process.stop()


def test_events_of_a_topic_are_folded_once_under_kills_and_rebalances(create_folder):
    world = create_folder({"name": "r", "group_key": ["account"], "window": "300ms", "max_hold": "1s",
                           "collect": {"n": {"field": "n", "kind": "sum"}, "seen": {"field": "n", "kind": "count"}}})
    chance, expected, events = random.Random(25), collections.Counter(), []
    for n in range(60_000):
        account = f"a{chance.randrange(40)}"
        expected[account] += n
        events.append((account, {"account": account, "n": n}))
    running = {name: world.installation.start(name) for name in "ab"}
    for start in range(0, len(events), 10_000):
        produce_json(world, world.events, events[start : start + 10_000])
        name = chance.choice("ab")
        running[name].kill()
        running[name] = world.installation.start(name)
    wait_until_read(world)
    wait_until_quiet(world)
    found = published(world)
    publications.assert_once(found)
    sums, seen = collections.Counter(), 0
    for publication in found:
        sums[publication["group"]["account"]] += publication["collected"]["n"]
        seen += publication["collected"]["seen"]
    assert (sums, seen) == (expected, len(events))
    for process in running.values():
        process.stop(60)


SESSIONS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s AND application_name LIKE '%%fold-topics'"


@pytest.mark.alone
def test_events_that_were_read_and_not_appended_when_the_database_went_away_are_read_again(create_folder, services):
    world = create_folder({"name": "r", "group_key": ["account"], "window": "300ms", "max_hold": "1s",
                           "collect": {"n": {"field": "n", "kind": "sum"}}})
    server, process, expected = Postgres(services), world.installation.start(), collections.Counter()
    process.wait_for_log(r"folds: assigned 4 partitions", 60)
    for turn in range(12):
        events = [(f"a{n % 7}", {"account": f"a{n % 7}", "n": turn * 1000 + n}) for n in range(500)]
        for account, event in events:
            expected[account] += event["n"]
        produce_json(world, world.events, events[:250])
        if turn == 6:  # what was committed in the background is lost with it
            world.database.connection.close()
            server.stop_immediately()
            server.start()
        else:
            world.database.query(SESSIONS, world.database.name)
        produce_json(world, world.events, events[250:])
    wait_until_read(world, process)
    wait_until_quiet(world, process)
    found, sums = published(world), collections.Counter()
    publications.assert_once(found)
    for publication in found:
        sums[publication["group"]["account"]] += publication["collected"]["n"]
    assert sums == expected
    process.stop()


def test_a_topic_that_lost_records_or_was_made_anew_is_said(create_folder):
    world = create_folder({"name": "r", "group_key": ["id"], "window": "1s"})
    running = world.installation.start()
    produce_json(world, world.events, [("k", {"id": n}) for n in range(20)])
    wait_until_read(world, running)
    wait_until_quiet(world, running)
    running.stop()
    ends = {partition: high for partition, (_, high) in world.events.watermarks().items()}
    produce_json(world, world.events, [("k", {"id": "gone"})] * 3 + [("k", {"id": "kept"})] * 2)
    (partition,) = [p for p, (_, high) in world.events.watermarks().items() if high > ends[p]]
    first = ends[partition]
    broker.delete_records(world.brokers, str(world.events), {partition: first + 3})
    running = world.installation.start()
    running.wait_for_log(f"retention has deleted records {first}…{first + 2} before they were read, going on behind them", 60)
    wait_until_read(world, running)
    wait_until_quiet(world, running)
    running.stop()
    found = published(world)
    publications.assert_once(found)
    assert sum(p["events"] for p in found) == 22 and [p["events"] for p in found if "kept" in str(p["group"])] == [2]
    world.database.execute("UPDATE receiptd.fold_progress SET next_offset = 5000 WHERE partition = %s", partition)
    running = world.installation.start()
    said = running.wait_for_log(f"ends at {first + 5}, but 5000 was read already.*HINT: receiptd (positions set .* --reader folds)", 60)
    world.installation.command(*said.group(1).split())
    wait_until_read(world, running)
    running.stop()


def test_a_compressed_batch_beyond_the_limit_is_one_letter_and_its_neighbours_are_folded(create_folder):
    world = create_folder({"name": "r", "group_key": ["id"], "window": "1s"})
    running = world.installation.start()
    produce_json(world, world.events, [("k", {"id": 1})])
    packed = Producer({"bootstrap.servers": world.brokers, "compression.type": "gzip", "message.max.bytes": 100_000_000})
    packed.produce(str(world.events), b" " * 40_000_000, key="k")
    assert packed.flush(30) == 0
    produce_json(world, world.events, [("k", {"id": 1})])
    wait_until_read(world, running)
    wait_until_quiet(world, running)
    assert world.database.query("SELECT reason, index, octet_length(payload) FROM receiptd.dead_letter") == [("record_too_large", -2, 0)]
    assert sum(p["events"] for p in published(world)) == 2
    running.stop()


def test_what_cannot_be_folded_is_a_dead_letter_and_its_neighbours_land(create_folder):
    world = create_folder({"name": "r", "group_key": ["id"], "window": "1s"},
                          {"name": "other", "group_key": ["id", "more"], "window": "1s", "match": {"type": "b"}})
    bad = [(b"no JSON", "invalid_json", "invalid_json"), (b"[1]", "not_an_event", "no JSON object"),
           (b'{"id": "\xff\xfe"}', "invalid_utf8", None), (None, "empty_record", None),
           (b'{"x": 1}', "no_group_key", "no usable group_key for rule r"),
           (b'{"id": 1, "type": "b"}', "no_group_key", "no usable group_key for rule other"),
           (b'{"type": "b"}', "no_group_key", "no usable group_key for rule r, other"),
           (b"x" * 100_000, "invalid_json", "invalid_json; the first of 100000 bytes")]
    good = ("k", {"id": 1})
    running = world.installation.start()
    produce_json(world, world.events, [good] + [event for value, _, _ in bad for event in (("k", value), good)],
                 [("traceparent", TRACE.format(7).encode())])
    running.kill()  # whatever it had: letters move with the positions
    running = world.installation.start("b")
    wait_until_read(world, running)
    wait_until_quiet(world, running)
    letters = world.database.query('SELECT payload, reason, detail, "offset", index FROM receiptd.dead_letter ORDER BY "offset"')
    assert [(bytes(p), reason, detail) for p, reason, detail, _, _ in letters] == \
        [((value or b"")[:65536], reason, detail) for value, reason, detail in bad]
    assert [(offset, index) for *_, offset, index in letters] == [(2 * n + 1, -2) for n in range(len(bad))]
    assert world.database.query("SELECT DISTINCT traceparent FROM receiptd.dead_letter") == [(TRACE.format(7),)]
    found = published(world)
    publications.assert_once(found)
    assert sum(p["events"] for p in found if p["rule"] == "r") == len(bad) + 2  # one of them lacks only what the other wants
    assert not [p for p in found if p["rule"] == "other"]
    listed = world.installation.json("dead-letters", "--reason", "no_group_key")
    assert len(listed) == 3
    world.installation.command("dead-letters", "--redrive")  # they are no receipts
    assert world.database.value("SELECT count(*) FROM receiptd.dead_letter") == len(bad)
    produce_json(world, world.events, [("k", b"no JSON")] * 5000)
    wait_until_read(world, running)
    assert world.database.value("SELECT count(*) FROM receiptd.dead_letter") == len(bad) + 5000
    assert Operations(running).figures().get_one("receiptd_fold_skipped_total", topic=str(world.events)) >= 5000
    assert running.log().count("is a dead letter: ") <= 3  # one of ten seconds is logged, the others are counted
    running.stop()


# ---- what transitions have -----------------------------------------------------------------------------------------

TRACE = "00-0af7651916cd43dd8448eb211c80319c-{:016x}-01"


def receipts(world, status, ids, trace=None):
    headers = [("traceparent", TRACE.format(trace).encode())] if trace else None
    produce_json(world, world.topic, [(m, {"message_id": m, "status": status}) for m in ids], headers)


def told(world, rule, *fields):
    """values of the group's fields -> events, over all publications of the rule."""
    groups = collections.Counter()
    for publication in published(world):
        if publication["rule"] == rule:
            assert set(publication["group"]) == set(fields)
            groups[tuple(publication["group"][field] for field in fields)] += publication["events"]
    return groups


def test_rules_know_where_a_message_came_from_its_flags_and_columns_of_the_inbox(create_world, create_topic):
    out = create_topic(2)
    base = {"window": "300ms", "max_hold": "1s", "publish": {"kafka": {"topic": str(out)}}}
    world = create_world(folds=[
        {**base, "name": "from", "group_key": ["prev_status", "status"], "match": {"prev_status": "SENT|DELIVERED"}},
        {**base, "name": "flags", "group_key": ["campaign_id", "flags"], "match": {"flags": "COMPLAINED|UNSUBSCRIBED"}},
        {**base, "name": "columns", "group_key": ["inbox.channel"], "match": {"inbox.customer_id": "k1|k2"},
         "collect": {"customers": {"field": "inbox.customer_id", "kind": "set"}, "flags": {"kind": "set"}}},
        {**base, "name": "typing", "group_key": ["inbox.chanel"]}])
    world.out = out
    world.database.execute("ALTER TABLE receiptd.message_inbox ADD COLUMN channel text, ADD COLUMN customer_id bigint")
    world.database.execute("ALTER TABLE receiptd.message_inbox ALTER customer_id TYPE text")
    rows = [("a", "sms", "k1"), ("b", "sms", "k2"), ("c", "email", "k1"), ("d", "sms", "k3"), ("e", None, "k2")]
    world.insert_ids(*(row[0] for row in rows))
    for id, channel, customer in rows:
        world.database.execute("UPDATE receiptd.message_inbox SET channel = %s, customer_id = %s WHERE message_id = %s",
                               channel, customer, id)
    process = world.installation.start()
    process.wait_for_log(r"the inbox has no such column: typing: inbox.chanel", 60)
    for status, ids in (("SENT", "abcde"), ("DELIVERED", "abc"), ("OPENED", "a"), ("UNSUBSCRIBED", "b"), ("COMPLAINED", "cd")):
        receipts(world, status, ids)
        world.wait_until_consumed(process)
    wait_until_quiet(world, process)
    assert told(world, "from", "prev_status", "status") == \
        {("DELIVERED", "OPENED"): 1, ("SENT", "DELIVERED"): 4, ("DELIVERED", "DELIVERED"): 2}
    assert told(world, "flags", "campaign_id", "flags") == {("c", "UNSUBSCRIBED"): 1, ("c", "COMPLAINED"): 2}
    assert told(world, "columns", "inbox.channel") == {("sms",): 6, ("email",): 3, (None,): 1}
    assert told(world, "typing", "inbox.chanel") == {(None,): 12}
    customers, flags = {}, {}
    for publication in published(world):
        if publication["rule"] == "columns":
            channel = publication["group"]["inbox.channel"]
            customers.setdefault(channel, set()).update(publication["collected"]["customers"])
            flags.setdefault(channel, set()).update(publication["collected"].get("flags", []))
    assert customers == {"sms": {"k1", "k2"}, "email": {"k1"}, None: {"k2"}}
    assert flags == {"sms": {"UNSUBSCRIBED"}, "email": {"COMPLAINED"}, None: set()}
    publications.assert_once(published(world))
    world.finish(process)
    process.stop()


def test_publications_link_to_the_traces_of_the_receipts_that_caused_them(create_folds):
    world = create_folds(rule={"window": "1s", "max_hold": "5s"})
    world.insert_ids(*(f"m{n}" for n in range(20)))
    process = world.installation.start()
    for n in range(20):
        receipts(world, "SENT", [f"m{n}"], trace=n + 1)
    receipts(world, "SENT", ["late"], trace=100)
    receipts(world, "SENT", ["bare"])
    world.wait_until_consumed(process)
    wait_until_quiet(world, process)
    world.insert_ids("late", campaign="parked")  # woken: the row that waited has its trace
    world.insert_ids("bare", campaign="none")
    world.wait_until_woken(process)
    wait_until_quiet(world, process)
    links = collections.defaultdict(list)
    for publication in published(world):
        links[publication["group"]["campaign_id"]] += publication.get("traces", [])
        assert len(publication.get("traces", [])) <= 8
    assert links["c"] and set(links["c"]) <= {TRACE.format(n + 1) for n in range(20)}
    assert links["parked"] == [TRACE.format(100)] and links["none"] == []
    process.stop()


# ---- rules come and go ---------------------------------------------------------------------------------------------

def test_a_reload_adds_rules_and_publishes_the_open_groups_of_removed_ones(create_world, create_topic):
    out = create_topic(2)
    world = create_world()
    world.out = out
    rule = {"name": "slow", "group_key": ["org_id"], "window": "1h", "max_hold": "1h",
            "collect": {"campaigns": {"field": "campaign_id", "kind": "set"}},
            "publish": {"kafka": {"topic": str(out), "key": "org_id"}}}
    process = world.installation.start()
    world.insert_ids("before", "a", "b", campaign="x")
    produce_json(world, world.topic, [("before", {"message_id": "before", "status": "SENT"})])
    world.wait_until_consumed(process)

    world.installation.configure(folds=[rule])
    process.signal(signal.SIGHUP)
    process.wait_for_log(r"connections for lanes now", 60)
    produce_json(world, world.topic, [(m, {"message_id": m, "status": "DELIVERED"}) for m in "ab"])
    world.wait_until_consumed(process)
    opened = "SELECT sum(events) FROM receiptd.fold_group WHERE rule = 'slow'"
    world.wait(lambda: world.database.value(opened) == 2, process, 60, "the group has both transitions")
    assert published(world) == []

    world.installation.configure(folds=[])
    process.signal(signal.SIGHUP)
    process.wait_for_log(r"1 rules are removed; their 1 open groups are published at once", 60)
    wait_until_quiet(world, process)
    (only,) = published(world)
    assert (only["cause"], only["events"], only["group"], only["_key"]) == ("removed", 2, {"org_id": "o"}, "o")
    assert only["collected"] == {"campaigns": ["x"]}
    assert only["statuses"] == {"IN_GTW": 2, "SENT": 2, "DELIVERED": 2}
    world.finish(process)
    process.stop()


def test_what_a_removed_rule_left_behind_is_published_after_a_restart(create_folder, receiver):
    hook = {"url": receiver.url, "allow_private": True, "retry_min": "50ms", "retry_max": "200ms"}
    rules = [{"name": "told", "group_key": ["id"], "window": "1h", "max_hold": "1h"},
             {"name": "called", "group_key": ["id"], "window": "1h", "max_hold": "1h",
              "publish": {"kafka": None, "webhook": hook}}]
    world = create_folder(*rules)
    folds = world.installation.settings["folds"]
    process = world.installation.start()
    produce_json(world, world.events, [("k", {"id": n}) for n in range(5)])
    wait_until_read(world, process)
    world.wait(lambda: world.database.value("SELECT sum(events) FROM receiptd.fold_group") == 10, process, 60, "all are open")
    process.stop()

    world.installation.configure(folds=[])
    process = world.installation.start()
    process.wait_for_log(r"2 rules are removed; their 10 open groups are published at once", 60)
    wait_until_quiet(world, process)
    found = published(world)
    publications.assert_once(found)
    assert [(p["rule"], p["cause"], p["events"]) for p in found] == [("told", "removed", 1)] * 5
    given_up = "SELECT count(*) FROM receiptd.fold_call WHERE failed_at IS NOT NULL AND error LIKE '%%no longer configured'"
    world.wait(lambda: world.database.value(given_up) == 5, process, 60, "calls without an address are kept")
    process.stop()

    world.installation.configure(folds=folds)  # back again: whom to call is known
    process = world.installation.start()
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.fold_call") == 0, process, 60, "all are called")
    assert sorted(publication["group"]["id"] for _, publication in receiver.taken) == list(range(5))
    process.stop()


def test_a_steady_stream_is_published_every_max_hold_and_a_full_group_at_once(create_folder):
    world = create_folder({"name": "held", "group_key": ["id"], "window": "1s", "max_hold": "1500ms", "match": {"id": "a"}},
                          {"name": "filled", "group_key": ["id"], "window": "1h", "max_hold": "1h", "max_events": 100,
                           "match": {"id": "b"}})
    process = world.installation.start()
    produce_json(world, world.events, [("b", {"id": "b"})] * 100)
    deadline = time.monotonic() + 90
    while publications.totals(world.database).get("held", {}).get("hold", 0) < 2:
        produce_json(world, world.events, [("a", {"id": "a"})])
        assert time.monotonic() < deadline, "a steady stream is never published"
        time.sleep(0.1)
    wait_until_quiet(world, process)
    found = published(world)
    publications.assert_once(found)
    assert [(p["cause"], p["events"]) for p in found if p["rule"] == "filled"] == [("full", 100)]
    process.stop()


KEPT_BACK = "SELECT COALESCE(sum(size), 0) FROM receiptd.fold_event WHERE firsts IS NOT NULL"
BUSY_CAMPAIGNS = 12
INSERT = "INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id) SELECT m, 'o', 'busy-' || n FROM unnest(%s::text[]) WITH ORDINALITY u (m, n)"


class Busy:
    """Each campaign gets a receipt of another message in each round, so none of them goes quiet."""

    def __init__(self, world, process):
        self.world, self.process, self.rounds = world, process, 0

    def until(self, condition, what):
        assert self.meets(condition, 120), f"{what}\n{self.process.log_tail()}"

    def meets(self, condition, seconds):
        deadline = time.monotonic() + seconds
        while not condition():
            assert self.process.running, self.process.log_tail()
            if time.monotonic() > deadline:
                return False
            self.round()
        return True

    def round(self):
        ids = [f"busy-{self.rounds}-{n}" for n in range(BUSY_CAMPAIGNS)]
        self.rounds += 1
        self.world.database.execute(INSERT, ids)
        receipts(self.world, "SENT", ids)


def hand_over_slowly(world, busy):
    """Sums lie for so many times as long as handing over the last ones took: for much longer than the window, then."""
    waits = ("SELECT count(*) FROM pg_locks WHERE NOT granted AND relation = 'receiptd.fold_group'::regclass"
             " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())")
    with world.database.connect() as operator, operator.transaction():
        operator.execute("LOCK TABLE receiptd.fold_group IN EXCLUSIVE MODE")
        busy.until(lambda: world.database.value(waits) > 0, "sums are handed over")
        assert not busy.meets(lambda: False, 1.5)  # what comes behind those waits too


def test_a_group_that_goes_quiet_is_published_beside_others_that_stay_busy_and_those_survive_a_kill(create_folds):
    patient = {"lock_timeout": "60s", "zombie_timeout": "60s", "statement_timeout": "90s"}
    world = create_folds(rule={"window": "2s", "max_hold": "1h"}, postgres=patient)
    process = world.installation.start()
    busy = Busy(world, process)
    busy.until(lambda: publications.totals(world.database).get("campaigns", {}).get("groups", 0) >= BUSY_CAMPAIGNS, "groups")
    bursts, again = 0, 0.0

    def are_kept_back():
        """Another burst every now and then: as one goes quiet, sums of the others lie apart."""
        nonlocal bursts, again
        if time.monotonic() > again:
            again = time.monotonic() + 0.5
            world.insert_ids(f"once-{bursts}", campaign=f"once-{bursts}")
            receipts(world, "DELIVERED", [f"once-{bursts}"])
            bursts += 1
        return world.database.value(KEPT_BACK) >= BUSY_CAMPAIGNS / 2

    def bursts_are_published():
        told = {publication["group"]["campaign_id"] for publication in published(world)}
        return told >= {f"once-{burst}" for burst in range(bursts)}

    for _ in range(2):
        for _ in range(10):  # where the machine made all of them quiet meanwhile
            hand_over_slowly(world, busy)
            if busy.meets(are_kept_back, 10):
                break
        else:
            pytest.fail(f"no sums of busy groups are kept back\n{process.log_tail()}")
        process.kill()  # whoever comes next has them from there
        process = busy.process = world.installation.start()
        busy.until(bursts_are_published, "the bursts are published")
    world.wait_until_consumed(process)
    wait_until_quiet(world, process)
    assert_told(world)
    process.stop()


# ---- fold-plan -----------------------------------------------------------------------------------------------------

def replay(events, window, hold):
    """(publications, avoidable) of a rule over (time, group), by the definition."""
    open_groups, last_published, publications_, avoidable = {}, {}, 0, 0
    for at, group in sorted(events):
        first, last = open_groups.get(group, (None, None))
        if first is not None and at >= min(last + window, first + hold):
            publications_ += 1
            last_published[group] = min(last + window, first + hold)
            first = None
        if first is None:
            first = at
            avoidable += at - last_published.get(group, -10**15) < window
        open_groups[group] = (first, at)
    return publications_ + len(open_groups), avoidable


def test_fold_plan_says_what_other_windows_would_publish(create_folder, tmp_path):
    world = create_folder({"name": "r", "group_key": ["id"], "window": "1s", "max_hold": "1m"})
    chance, now, events = random.Random(7), 1_700_000_000_000, []
    producer = Producer({"bootstrap.servers": world.brokers})
    for _ in range(3_000):
        now += chance.choice((1, 5, 200, 3_000))
        events.append((now, f"g{chance.randrange(12)}"))
        producer.produce(str(world.events), json.dumps({"id": events[-1][1]}), events[-1][1], timestamp=now)
    assert producer.flush(60) == 0
    picture = tmp_path / "plan.svg"
    answer = world.installation.command("fold-plan", "--rule", "r", "--windows", "500ms,10s,2m", "--svg", str(picture))
    rows = [line.split() for line in answer.stdout.splitlines()[1:]]
    for row, (name, window) in zip(rows, (("500ms", 500), ("10s", 10_000), ("2m", 120_000)), strict=True):
        published_, avoidable = replay(events, window, max(60_000, window))
        assert (row[0], int(row[1]), int(row[2]), int(row[-1])) == (name, len(events), published_, avoidable)
        assert row[3] == f"{100 * (1 - published_ / len(events)):.2f}%"
    assert picture.read_text().startswith("<svg") and picture.read_text().rstrip().endswith("</svg>")
    assert world.installation.command("fold-plan", "--rule", "none", check=False).returncode == 66
    assert world.installation.command("fold-plan", "--rule", "r", "--windows", "x", check=False).returncode == 64


def test_a_mistake_in_a_plan_is_said(create_folder, tmp_path):
    world = create_folder({"name": "r", "group_key": ["id"]})
    rule = world.installation.settings["folds"][0]
    world.installation.configure(folds=[rule, {"name": "changes", "group_key": ["org_id"], "publish": rule["publish"]}])
    produce_json(world, world.events, [("k", {"id": 1}), ("k", b"no JSON"), ("k", {"other": 1})])

    def plan(*arguments, code):
        result = world.installation.command("fold-plan", *arguments, check=False)
        assert result.returncode == code, result
        return result

    assert "--rule names one of folds" in plan(code=64).stderr
    for windows, words in ((",".join(["1s"] * 17), "--windows takes at most 16 durations"), ("", "--windows names durations"),
                           ("1s,0s", '"0s" is no duration'), ("1" * 40, "at most 16 durations"), ("1s,soon", '"soon" is no duration')):
        assert words in plan("--rule", "r", "--windows", windows, code=64).stderr, windows
    assert "the rule reads no topic: name one with --topic" in plan("--rule", "changes", code=64).stderr
    assert "2 records are no events of this rule" in plan("--rule", "r", code=0).stdout
    # Receipts have no org_id, and are no transitions: zeros for every window would read like an answer.
    produce_json(world, world.topic, [("k", {"message_id": "a", "status": "DELIVERED"})])
    refused = plan("--rule", "changes", "--topic", str(world.topic), code=65)
    assert "none of the 1 records of topic" in refused.stderr and "folds transitions" in refused.stderr and refused.stdout == ""
    missing = plan("--rule", "r", "--topic", "no-such-topic", code=69)
    assert "no-such-topic" in missing.stderr
    for picture, code in ((tmp_path / "none" / "plan.svg", 73), ("/dev/full", 74)):
        assert f"{picture}: cannot be written: " in plan("--rule", "r", "--svg", str(picture), code=code).stderr
    world.installation.write_config("lanez: 1\n")
    assert "lanez" in plan("--rule", "r", code=78).stderr


# ---- webhooks ------------------------------------------------------------------------------------------------------

SECRET = b"twenty-four bytes of key"


class Receiver(http.server.ThreadingHTTPServer):
    """Refuses the first attempt of every publication, takes the second, unless `answer` says something else of it; remembers
    what it took and with which ids."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = lambda attempt: 503 if attempt == 1 else 200
        self.attempts, self.taken, self.wrong, self.signed = collections.Counter(), [], [], 0
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/hook"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        id, at = self.headers["webhook-id"], self.headers["webhook-timestamp"]
        mac = hmac.new(SECRET, f"{id}.{at}.".encode() + body, hashlib.sha256).digest()
        if self.headers["webhook-signature"] not in (None, "v1," + base64.b64encode(mac).decode()):
            self.server.wrong.append(id)
        self.server.signed += self.headers["webhook-signature"] is not None
        self.server.attempts[id] += 1
        status = self.server.answer(self.server.attempts[id])
        if status == 200:
            self.server.taken.append((id, json.loads(body)))
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def receiver():
    with Receiver() as server:
        yield server
        server.shutdown()


def test_a_webhook_is_called_until_it_takes_what_is_published(create_folder, receiver):
    hook = {"url": receiver.url, "secrets": ["whsec_" + base64.b64encode(SECRET).decode()], "allow_private": True,
            "retry_min": "50ms", "retry_max": "200ms"}
    world = create_folder({"name": "r", "group_key": ["id"], "window": "500ms", "publish": {"webhook": hook}})
    process = world.installation.start()
    produce_json(world, world.events, [(f"g{n % 7}", {"id": f"g{n % 7}"}) for n in range(70)])
    wait_until_read(world, process)
    wait_until_quiet(world, process)
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.fold_call") == 0, process, 90, "all calls answered")
    told = {id: publication for id, publication in receiver.taken}
    assert receiver.wrong == [] and receiver.signed == len(receiver.taken) * 2 and len(told) == len(receiver.taken)
    assert all(n == 2 for n in receiver.attempts.values())
    assert {id == publication["id"] for id, publication in told.items()} == {True}
    assert sum(publication["events"] for publication in told.values()) == 70
    shown = world.installation.command("check-config", "--print").stdout
    assert receiver.url not in shown and "whsec" not in shown
    process.stop()


CALLS = "SELECT rule, failed_at IS NOT NULL, error, attempts FROM receiptd.fold_call ORDER BY rule, id"


def hook_to(url, **more):
    return {"kafka": None, "webhook": {"url": url, "allow_private": True, "retry_min": "20ms", "retry_max": "100ms", **more}}


def test_a_webhook_that_is_given_up_is_named_counted_and_kept(create_folder, receiver):
    """What is refused at once, what is too old for another attempt, and who does not even listen."""
    receiver.answer = lambda attempt: 410
    failing = Receiver()
    failing.answer = lambda attempt: 503
    with failing:
        rules = {"refused": hook_to(receiver.url), "failing": hook_to(failing.url, max_age="1s"),
                 "nobody": hook_to(f"http://127.0.0.1:{free_ports(1)[0]}/hook", max_age="1s")}
        world = create_folder(*[{"name": name, "group_key": ["id"], "window": "200ms", "publish": publish}
                                for name, publish in rules.items()])
        process = world.installation.start()
        produce_json(world, world.events, [("a", {"id": "a"})])
        given_up = "SELECT count(*) FROM receiptd.fold_call WHERE failed_at IS NOT NULL"
        world.wait(lambda: world.database.value(given_up) == 3, process, 60, "all three are given up")
        failing.shutdown()
    kept = {rule: (error, attempts) for rule, _, error, attempts in world.database.query(CALLS)}
    assert kept["refused"] == ("refused, status 410", 1)
    assert kept["failing"][0] == "server_error, status 503" and kept["failing"][1] > 2
    assert kept["nobody"][0] == "connection" and kept["nobody"][1] > 2
    ids = dict(world.database.query("SELECT rule, id FROM receiptd.fold_call"))
    for rule, (error, _) in kept.items():
        process.wait_for_log(f"level=error .*folds: rule {rule}: publication {ids[rule]} is given up: {error}", 10)
    pages = Operations(process)
    for rule, outcome in (("refused", "refused"), ("failing", "server_error"), ("nobody", "connection")):
        counted = pages.figures().get_one("receiptd_fold_calls_total", rule=rule, outcome=outcome)
        assert counted == kept[rule][1], (rule, counted, kept)
    process.stop()


def folds(world, *arguments, code=0):
    result = world.installation.command("folds", *arguments, check=False)
    assert result.returncode == code, result
    return result.stdout


def test_what_was_given_up_is_listed_and_called_again_once(create_folder, receiver):
    """The address is private: the log and the list name the key. After a reload the retry delivers."""
    def rule(**more):
        return {"name": "r", "source": "topic", "group_key": ["id"], "window": "200ms",
                "publish": {"webhook": hook_to(receiver.url, **more)["webhook"]}}

    world = create_folder(rule(allow_private=False))
    process = world.installation.start()
    produce_json(world, world.events, [("a", {"id": "a"}), ("b", {"id": "b"})])
    given_up = "SELECT count(*) FROM receiptd.fold_call WHERE failed_at IS NOT NULL"
    world.wait(lambda: world.database.value(given_up) == 2, process, 60, "both are given up")
    process.wait_for_log("is given up: forbidden: .*publish.webhook.allow_private is not set; HINT: .*receiptd folds retry", 10)
    listed = json.loads(folds(world, "list", "--format", "json"))
    assert [(row["rule"], row["attempts"]) for row in listed] == [("r", 1), ("r", 1)]
    assert all("allow_private" in row["error"] and row["age"] and row["failed_at"] for row in listed)
    assert "2 publications would be called again; nothing was changed" in folds(world, "retry", "all", "--dry-run")
    assert world.database.value(given_up) == 2 and not receiver.attempts
    assert folds(world, "retry", "all", "--rule", "other") == "0 publications will be called again\n"
    assert folds(world, "retry", "nothing", code=66) == "0 publications will be called again\n"

    world.installation.configure(folds=[{**rule(), "topic": str(world.events)}])
    process.signal(signal.SIGHUP)
    process.wait_for_log("reload", 30)
    receiver.answer = lambda attempt: 200
    ids = [row["id"] for row in listed]
    assert ids[0] in folds(world, "retry", ids[0])
    process.wait_for_log(f"rule [a-z]+: publication {ids[0]} is called again; it had been given up: forbidden", 60)
    world.wait(lambda: [id for id, _ in receiver.taken] == [ids[0]], process, 60, "one is delivered")
    assert "1 publications will be called again" in folds(world, "retry", "all")
    assert folds(world, "retry", "all") == "0 publications will be called again\n"
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.fold_call") == 0, process, 60, "both are delivered")
    assert sorted(id for id, _ in receiver.taken) == sorted(ids)
    assert folds(world) == "nothing was given up\n"
    process.stop()


def test_a_webhook_takes_no_more_at_once_than_it_may(create_folder, receiver):
    busy, most, lock = 0, 0, threading.Lock()

    def answer(attempt):
        nonlocal busy, most
        with lock:
            busy, most = busy + 1, max(most, busy + 1)
        time.sleep(0.02)
        with lock:
            busy -= 1
        return 200

    receiver.answer = answer
    world = create_folder({"name": "r", "group_key": ["id"], "window": "200ms", "publish": hook_to(receiver.url, concurrency=2)})
    process = world.installation.start()
    produce_json(world, world.events, [(f"g{n}", {"id": f"g{n}"}) for n in range(60)])
    wait_until_read(world, process)
    wait_until_quiet(world, process)
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.fold_call") == 0, process, 60, "all calls answered")
    assert sorted(publication["group"]["id"] for _, publication in receiver.taken) == sorted(f"g{n}" for n in range(60))
    assert most <= 2
    process.stop()


def test_calls_of_a_rule_that_has_no_webhook_any_more_are_kept_until_it_has_one_again(create_folder, receiver):
    receiver.answer = lambda attempt: 503
    rule = {"name": "r", "group_key": ["id"], "window": "200ms", "publish": hook_to(receiver.url)}
    other = {"name": "other", "group_key": ["id"], "window": "200ms", "match": {"id": "none"}, "publish": hook_to(receiver.url)}
    world = create_folder(rule, other)
    process = world.installation.start()
    produce_json(world, world.events, [("a", {"id": "a"})])
    world.wait(lambda: receiver.attempts, process, 60, "it is called in vain")
    process.kill()
    hooked = world.installation.settings["folds"]
    told = {**hooked[0], "publish": {"kafka": {"topic": str(world.out)}}}
    world.installation.configure(folds=[told, hooked[1]])
    world.database.execute("UPDATE receiptd.fold_call SET retry_at = now()")  # its lease is over
    process = world.installation.start()
    process.wait_for_log("level=warn .*is not sent: its rule has no webhook here; HINT: it is kept in fold_call", 60)
    kept = [("r", True, "its rule is no longer configured")]
    world.wait(lambda: [row[:3] for row in world.database.query(CALLS)] == kept, process, 30, "it is kept")
    assert receiver.taken == [] and published(world) == []
    receiver.answer = lambda attempt: 200
    world.installation.configure(folds=hooked)
    process.signal(signal.SIGHUP)
    world.wait(lambda: world.database.query(CALLS) == [], process, 60, "it is called")
    assert [publication["group"] for _, publication in receiver.taken] == [{"id": "a"}]
    process.stop()


# ---- what Kafka and PostgreSQL refuse ------------------------------------------------------------------------------

def test_topics_that_do_not_exist_are_named_and_nothing_is_lost(create_world, create_topic):
    events, late, target = create_topic(2), f"late-{secrets.token_hex(6)}", f"target-{secrets.token_hex(6)}"
    out = create_topic(2)
    base = {"source": "topic", "group_key": ["id"], "window": "200ms"}
    world = create_world(folds=[
        {**base, "name": "read", "topic": late, "publish": {"kafka": {"topic": str(out)}}},
        {**base, "name": "written", "topic": str(events), "publish": {"kafka": {"topic": target}}},
        {**base, "name": "beside", "topic": str(events), "publish": {"kafka": {"topic": str(out)}}}])
    world.out, world.events = out, events
    process = world.installation.start()
    process.wait_for_log(f"level=warn .*folds: there is no topic {late} yet", 60)
    produce_json(world, events, [(f"g{n}", {"id": f"g{n}"}) for n in range(20)])
    wait_until_read(world, process)
    process.wait_for_log(f"folds: shard [0-9]+: publishing failed, again in .*topic {target} does not take a publication: .*"
                         "HINT: create the topic, or correct publish.kafka.topic of folds", 60)
    made = create_topic(2, name=target)
    world.late = create_topic(2, name=late)
    produce_json(world, world.late, [("a", {"id": "a"})])
    wait_until_quiet(world, process)
    world.wait(lambda: "read" in publications.totals(world.database), process, 60, "the late topic is read")
    wait_until_quiet(world, process)
    counts = collections.Counter(publication["rule"] for publication in published(world))
    assert counts == {"beside": 20, "read": 1} and len(publications.read(world.brokers, made, 2)) == 20
    publications.assert_once(published(world) + publications.read(world.brokers, made, 2))
    process.stop()


def test_a_publication_that_is_too_large_for_its_topic_is_said_and_goes_out_when_there_is_room(create_folder, create_topic, services):
    small = create_topic(2, max_message_bytes=2000)
    world = create_folder({"name": "r", "group_key": ["id"], "window": "200ms", "collect": {"x": {"field": "x", "kind": "set"}},
                           "publish": {"kafka": {"topic": str(small)}}})
    process = world.installation.start()
    produce_json(world, world.events, [("a", {"id": "a", "x": secrets.token_hex(500)}) for _ in range(20)])
    wait_until_read(world, process)
    process.wait_for_log(f"publishing failed, again in .*topic {small} does not take a publication: .*HINT: raise max.message.bytes", 60)
    assert not publications.is_quiet(world.database)
    larger = ConfigResource(ConfigResource.Type.TOPIC, str(small), set_config={"max.message.bytes": "1000000"})
    services.admin.alter_configs([larger])[larger].result(30)
    wait_until_quiet(world, process)
    (only,) = publications.read(world.brokers, small, 2)
    assert only["events"] == 20 and len(only["collected"]["x"]) == 20
    process.stop()


def test_a_property_that_no_transaction_can_be_made_with_is_said(create_folder):
    world = create_folder({"name": "r", "group_key": ["id"], "window": "200ms"}, kafka={"properties": {"acks": "1"}})
    process = world.installation.start("a")
    produce_json(world, world.events, [("a", {"id": "a"})])
    wait_until_read(world, process)
    process.wait_for_log("folds: shard [0-9]+: opening its producer failed, again in .*librdkafka refuses the producer of folds: .*acks", 60)
    assert published(world) == []
    process.stop()
    world.installation.configure(kafka={"properties": {"acks": None}})
    process = world.installation.start("b")
    wait_until_quiet(world, process)
    assert [publication["group"] for publication in published(world)] == [{"id": "a"}]
    process.stop()


TABLES = ("fold_rule", "fold_group", "fold_event", "fold_progress", "fold_total", "fold_lane", "fold_outbox", "dead_letter")


def test_an_operator_who_locks_the_tables_of_folds_delays_them_only(create_folder):
    world = create_folder({"name": "r", "group_key": ["id"], "window": "200ms"})
    process = world.installation.start()
    produce_json(world, world.events, [(f"g{n % 7}", {"id": f"g{n % 7}"}) for n in range(100)])
    wait_until_read(world, process)
    with world.database.connect() as operator, operator.transaction():
        for table in TABLES:
            operator.execute(f"LOCK TABLE receiptd.{table}")
        produce_json(world, world.events, [(f"g{n % 7}", {"id": f"g{n % 7}"}) for n in range(100)] + [("k", b"no JSON")])
        # one line for the cause on each of the two connections, by the statement that meets it first
        process.wait_for_log("folds: .* failed, .*lock timeout", 60)
        process.wait_for_log('(appending events|reading (positions of topics|the positions of all partitions)) failed, will be tried again: .*lock timeout', 60)
        world.installation.configure(folds=[{**world.installation.settings["folds"][0], "window": "300ms"}])
        process.signal(signal.SIGHUP)
        process.wait_for_log("reload: applied", 60)
        time.sleep(6)  # several lock time-outs
        causes = [line for line in process.log().splitlines() if "level=warn component=folds" in line and "lock timeout" in line]
        assert len(causes) == 2, "\n".join(causes)
        assert all(f"the lock is held by backend {operator.info.backend_pid} " in line for line in causes), "\n".join(causes)
    wait_until_read(world, process)
    process.wait_for_log("component=folds .* again after [0-9.]+ s and [0-9]+ failures: ")
    wait_until_quiet(world, process)
    found = published(world)
    publications.assert_once(found)
    assert sum(publication["events"] for publication in found) == 200
    assert world.database.value("SELECT count(*) FROM receiptd.dead_letter") == 1
    process.stop()


def test_a_batch_of_a_topic_may_fail_after_the_rules_have_changed(create_folder):
    world = create_folder({"name": "r", "group_key": ["id"], "window": "200ms"})
    process = world.installation.start()
    produce_json(world, world.events, [("g", {"id": "g"})])
    wait_until_read(world, process)
    with world.database.connect() as operator, operator.transaction():
        operator.execute("LOCK TABLE receiptd.fold_progress, receiptd.fold_event")
        produce_json(world, world.events, [("g", {"id": "g"})] * 50)
        process.wait_for(lambda: world.database.value("SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                                                      " AND application_name LIKE '%fold-topics%' AND wait_event_type = 'Lock'") == 1, 60, "a batch waits")
        world.installation.configure(folds=[{**world.installation.settings["folds"][0], "window": "300ms"}])
        process.signal(signal.SIGHUP)
        process.wait_for_log("reload: applied", 60)
        process.wait_for_log("failed, will be tried again: .*lock timeout", 60)
    wait_until_read(world, process)
    wait_until_quiet(world, process)
    found = published(world)
    publications.assert_once(found)
    assert sum(publication["events"] for publication in found) == 51
    process.stop()


def test_publications_are_told_once_however_often_statements_fail(create_folds):
    world = create_folds(20_000, seed=24, rule={"window": "300ms", "max_hold": "1s"})
    tables = [table for table in TABLES if table not in ("fold_progress", "dead_letter")]
    process = world.installation.start()
    with failing(world.database, tables, 0.1):
        feeder = world.feed(per_second=4_000)
        feeder.join()
        world.insert(world.stream.late)
        world.finish(process, timeout=120)
        process.wait_for_log("folds: shard [01]: .* refused by the test", 60)
        wait_until_quiet(world, process)
    assert_told(world)
    process.stop()


def test_an_outbox_that_could_not_be_emptied_holds_up_nothing_for_longer_than_that(create_folder):
    world = create_folder({"name": "r", "group_key": ["id"], "window": "200ms"})
    process = world.installation.start()
    with failing(world.database, ["fold_outbox"], 1, "DELETE", "ROW"):
        produce_json(world, world.events, [(f"g{n % 7}", {"id": f"g{n % 7}"}) for n in range(100)])
        process.wait_for_log("emptying its outbox failed, again in", 60)
    produce_json(world, world.events, [(f"g{n % 7}", {"id": f"g{n % 7}"}) for n in range(100)])
    wait_until_read(world, process)
    process.wait_for_log("component=folds .* again after [0-9.]+ s and [0-9]+ failures: ")
    wait_until_quiet(world, process)
    found = published(world)
    publications.assert_once(found)
    assert sum(publication["events"] for publication in found) == 200
    process.stop()


def test_a_reload_changes_a_rule_over_a_topic_and_no_event_is_counted_twice(create_folder):
    world = create_folder({"name": "r", "group_key": ["id"], "window": "200ms", "match": {"type": "a"}})
    process = world.installation.start()
    both = [("k", {"id": 1, "type": "a"}), ("k", {"id": 1, "type": "b"})] * 50
    produce_json(world, world.events, both)
    wait_until_read(world, process)
    rule = world.installation.settings["folds"][0]
    world.installation.configure(folds=[{**rule, "match": {"type": "b"}}, {**rule, "name": "s", "match": {"type": "a|b"}}])
    process.signal(signal.SIGHUP)
    process.wait_for(lambda: process.log().count("folds: assigned 4 partitions") == 2, 60, "the consumer is made anew")
    produce_json(world, world.events, both)
    wait_until_read(world, process)
    wait_until_quiet(world, process)
    publications.assert_once(published(world))
    events = {rule: counts["events"] for rule, counts in publications.totals(world.database).items()}
    assert events == {"r": 100, "s": 100}
    process.stop()
