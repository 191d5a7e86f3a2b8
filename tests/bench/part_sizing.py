"""sizing: what each option adds to the WAL of a receipt, in small batches and in large ones, and to the disk for each message.

How many receipts a batch has depends on the machine, and WAL on that; so all receipts wait in Kafka beforehand, and `batch.max_events` bounds each
batch: SMALL as at some thousand receipts a second, LARGE as in a backlog. Every case has the same messages, receipts and columns. What stays is the
size of all tables after VACUUM FULL, beside that without options. `full_page_writes` is off, as between two checkpoints.
"""

import datetime
import json

from lab import copy_messages, say
from meter import summary
from stream import Stream
from support.progress import wait_until_consumed

EVENTS = 30_000
SMALL, LARGE = 10, 1_000
COLUMNS = {"variant": "'variant-' || floor(random() * 4)", "customer_id": "'customer-' || floor(random() * 7500)"}
RULES = {"series": "90d", "reasons": True, "gateways": "90d", "times": True}
CASES = {
    "none": {},
    "dedup.window": {"dedup": {"window": "7d"}},
    **{f"counters.{name}": {"counters": {name: value}} for name, value in RULES.items()},
    "counters.by, one column": {"counters": {"by": ["variant"]}},
    "counters.groups, of customers": {"counters": {"groups": ["customer"]}, "inbox": {"columns": {"customer_id": "customer_id"}}},
    "timeline.retention": {"timeline": {"retention": "30d"}},
    "all rules (dedup, series, reasons, gateways, times)": {"dedup": {"window": "7d"}, "counters": RULES},
}
SIZE = """
    SELECT sum(pg_total_relation_size(c.oid))::int8 FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = 'receiptd' AND c.relkind = 'r'"""


def make(lab, stream, settings):
    database = lab.services.create_database()
    receiptd = lab.receiptd(database, "none")
    receiptd.migrate()
    for name, value in COLUMNS.items():
        database.execute(f"ALTER TABLE receiptd.message_inbox ADD COLUMN {name} text COLLATE \"C\"")
        database.execute(f"ALTER TABLE receiptd.message_inbox ALTER COLUMN {name} SET DEFAULT {value}")
    receiptd.configure(**settings)
    receiptd.migrate()
    copy_messages(database, stream)
    database.execute("VACUUM (FREEZE, ANALYZE)")
    database.execute("CHECKPOINT")
    return database


def fill(topic, stream):
    """Each receipt is a record of its own."""
    producer, sent = topic.producer(linger_ms=5), 0
    for record in stream.records():
        for event in json.loads(record):
            producer.produce(topic.name, json.dumps(event), partition=sent % topic.partitions)
            sent += 1
        producer.poll(0)
    assert producer.flush(60) == 0 and sent == stream.event_count


def run(lab, stream, topic, settings, most):
    database = make(lab, stream, settings)
    try:
        receiptd = lab.receiptd(database, topic, log={"stats_interval": "0s"}, batch={"max_events": most, "catch_up": 1}, **settings)
        before = database.value("SELECT pg_current_wal_insert_lsn()::text")
        process = receiptd.start()
        try:
            wait_until_consumed(database, topic, process, timeout=300)
            wal = float(database.value("SELECT pg_current_wal_insert_lsn() - %s::pg_lsn", before))
            process.stop()
        finally:
            receiptd.close()
        database.execute("VACUUM FULL")
        return {"wal": wal / stream.event_count, "bytes": database.value(SIZE) / stream.message_count}
    finally:
        database.drop()


def part_sizing(lab, options):
    stream = Stream("mix", min(EVENTS, options.events), day=str(datetime.date.today() - datetime.timedelta(days=1)))
    topic, cases, none = lab.services.create_topic(8), [], 0.0
    fill(topic, stream)
    with lab.setting(full_page_writes="off"):
        for name, settings in CASES.items():
            runs = [[run(lab, stream, topic, settings, most) for most in (SMALL, LARGE)] for _ in range(options.repeat)]
            stays = summary([small["bytes"] for small, _ in runs])["median"]
            none = none or stays
            case = {"option": name, "small": summary([small["wal"] for small, _ in runs]), "large": summary([large["wal"] for _, large in runs]), "stays": stays - none}
            cases.append(case)
            say(f"  {name}: {case['small']['median']:,.0f} and {case['large']['median']:,.0f} bytes of WAL a receipt, {case['stays']:,.0f} bytes stay of a message")
    topic.drop()
    return {"events": stream.event_count, "messages": stream.message_count, "batches": [SMALL, LARGE], "cases": cases}
