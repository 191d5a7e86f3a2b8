"""folds: what they cost the core, how fast a topic is folded, how late publications are beside a million open groups."""

import json
import random
import time
from datetime import datetime

from confluent_kafka import Producer
from lab import say
from meter import percentile, summary
from runs import run_receiptd
from stream import Stream
from support import publications
from support.wait import wait_for

GROUPS = 10_000
WINDOWS = ("2s", "10s")
STEADY_GROUPS, STEADY_PER_SECOND, STEADY_SECONDS, MAX_HOLD_SECONDS = 10, 1_000, 20, 1
OPEN_GROUPS, WINDOW_SECONDS, WATCHED_SECONDS = 1_000_000, 3600, 20
AHEAD_SECONDS = 60  # until the first is due: all of them are there by then


def rule(out, **more):
    return {"name": "r", "group_key": ["campaign_id"], "window": "2s", "publish": {"kafka": {"topic": str(out)}}, **more}


def cost(lab, options, out):
    """The same traffic without a rule and with one, in alternating order. A shorter window is checked more often."""
    stream = Stream("single", options.events, campaigns=GROUPS)
    topic, seconds = lab.topic(stream), {name: [] for name in ("off", *WINDOWS)}
    for number in range(options.repeat):
        for name in seconds if number % 2 == 0 else reversed(seconds):
            settings = {} if name == "off" else {"folds": [rule(out, window=name)]}
            result = run_receiptd(lab, stream, topic, settings=settings)
            seconds[name].append(result["seconds"])
            say(f"    rule {name:4} {result['events_per_second']:>9,.0f} events/s, {result['server_us_per_event']:.1f} µs server")
    return {"seconds": seconds, "events": stream.event_count,
            "shares": {window: summary([off / on for off, on in zip(seconds["off"], seconds[window])]) for window in WINDOWS}}


def fill(lab, topic, events, groups):
    producer = Producer({"bootstrap.servers": lab.services.brokers, "linger.ms": 50, "compression.type": "lz4",
                         "queue.buffering.max.messages": 1_000_000})
    chance = random.Random(1)
    rows = [json.dumps({"account": f"a{n}", "cost": n, "metrics": {"likes": 1}}).encode() for n in range(groups)]
    for number in range(events):
        producer.produce(str(topic), rows[chance.randrange(groups)], str(number % 97))
        if number % 1000 == 0:
            producer.poll(0)
    assert producer.flush(120) == 0


def rate(lab, options, out, groups):
    events = lab.services.create_topic(4)
    fill(lab, events, options.events, groups)
    ends = {p: end for p, (_, end) in events.watermarks().items()}
    fold = rule(out, source="topic", topic=str(events), group_key=["account"],
                collect={"metrics": {"kind": "set"}, "cost": {"kind": "sum"}})
    empty = Stream("single", 1000)
    with lab.database(empty) as database:
        receiptd = lab.receiptd(database, lab.topic(empty), folds=[fold])
        process = receiptd.start()
        try:
            process.wait_for_log(r"folds: assigned 4 partitions", 60)
            begun = time.monotonic()
            read = "SELECT partition, next_offset FROM receiptd.fold_progress WHERE topic = %s"
            wait_for(lambda: dict(database.query(read, str(events))) == ends, 300, "the topic is folded", interval=0.02)
            seconds = time.monotonic() - begun
            process.stop()
        finally:
            receiptd.close()
    events.drop()
    say(f"    topic of {groups} groups: {options.events / seconds:,.0f} events/s")
    return {"groups": groups, "events_per_second": options.events / seconds}


OPEN = """
    INSERT INTO receiptd.fold_group (rule, key, lane, number, events, first_at, last_at, due_at, collected, opened_at)
    SELECT 'r', k, receiptd.fold_lane_of('r', k), 1, 5, at, at, at + interval '1 hour', '{{}}', at
    FROM (SELECT format('{{"campaign_id": "%s"}}', n) AS k,
                 now() + interval '{ahead} seconds' - interval '1 hour' + n * interval '1 hour' / {count} AS at
          FROM generate_series(1, {count}) n) g
"""


def lag(lab):
    """Publications of groups that become due while a million is open: record's time less last_at and the window."""
    out, empty = lab.services.create_topic(2), Stream("single", 1000)
    with lab.database(empty) as database:
        receiptd = lab.receiptd(database, lab.topic(empty), folds=[rule(out, window="1h", max_hold="2h")])
        process = receiptd.start()
        try:
            process.wait_for_log(r"folds is connected", 60)
            database.execute(OPEN.format(count=OPEN_GROUPS, ahead=AHEAD_SECONDS))
            database.execute("ANALYZE receiptd.fold_group")
            wait_for(lambda: database.value("SELECT COALESCE(sum(quiet), 0) FROM receiptd.fold_total") > 0, 300, "the first")
            time.sleep(WATCHED_SECONDS)  # measures how the publisher goes on by itself
            process.stop()
        finally:
            receiptd.close()
        found = publications.read(lab.services.brokers, out, 2, with_times=True)
    late = [p["_at_ms"] / 1000 - datetime.fromisoformat(p["last_at"].replace("Z", "+00:00")).timestamp() - WINDOW_SECONDS
            for p in found]
    out.drop()
    say(f"    {len(late)} publications beside {OPEN_GROUPS} open groups: p50 {percentile(late, 0.5):.3f} s late, "
        f"p99 {percentile(late, 0.99):.3f} s")
    return {"publications": len(late), "p50": percentile(late, 0.5), "p99": percentile(late, 0.99)}


def steady(lab):
    """Streams that never leave their groups idle: record's time less first_at and max_hold."""
    out, events, empty = lab.services.create_topic(2), lab.services.create_topic(4), Stream("single", 1000)
    fold = rule(out, source="topic", topic=str(events), group_key=["account"], window="500ms", max_hold=f"{MAX_HOLD_SECONDS}s")
    with lab.database(empty) as database:
        receiptd = lab.receiptd(database, lab.topic(empty), folds=[fold])
        process = receiptd.start()
        try:
            process.wait_for_log(r"folds: assigned 4 partitions", 60)
            producer = Producer({"bootstrap.servers": lab.services.brokers, "linger.ms": 1})
            begun, sent = time.monotonic(), 0
            while time.monotonic() - begun < STEADY_SECONDS:
                while sent < (time.monotonic() - begun) * STEADY_PER_SECOND:
                    producer.produce(str(events), json.dumps({"account": f"a{sent % STEADY_GROUPS}"}).encode(), str(sent % 97))
                    sent += 1
                producer.poll(0.001)
            assert producer.flush(60) == 0
            wait_for(lambda: database.value("SELECT COALESCE(sum(events), 0) FROM receiptd.fold_total") == sent, 60, "all is folded")
            wait_for(lambda: database.value("SELECT count(*) FROM receiptd.fold_group WHERE due_at IS NOT NULL") == 0, 120, "the last")
            process.stop()
        finally:
            receiptd.close()
        found = [p for p in publications.read(lab.services.brokers, out, 2, with_times=True) if p["cause"] == "hold"]
    late = [p["_at_ms"] / 1000 - datetime.fromisoformat(p["first_at"].replace("Z", "+00:00")).timestamp() - MAX_HOLD_SECONDS
            for p in found]
    events.drop()
    out.drop()
    say(f"    steady: {len(late)} publications of {STEADY_GROUPS} groups by max_hold: p50 {percentile(late, 0.5):.3f} s late, "
        f"at most {max(late):.3f} s")
    return {"publications": len(late), "groups": STEADY_GROUPS, "seconds": STEADY_SECONDS, "p50": percentile(late, 0.5),
            "worst": max(late)}


def part_folds(lab, options):
    out = lab.services.create_topic(2)
    results = {"cost": cost(lab, options, out), "rates": [rate(lab, options, out, n) for n in (100, GROUPS)], "lag": lag(lab),
               "steady": steady(lab)}
    out.drop()
    return results
