"""retention: what a message, an alias and a remembered id take on disk, and what `receiptd retire` costs: its rate, its WAL, and the receipts
that are applied meanwhile.

Messages with random ids. Those of the stream are young and get a receipt each; the others are older than their retention.
"""

import subprocess
import threading
import time
from contextlib import contextmanager

from lab import INBOX_COLUMNS, copy_messages, say
from meter import summary
from runs import run_receiptd
from stream import Stream
from support.daemon import binary

EVENTS = 200_000
OLD = 1_000_000
SIZES = {"row": "pg_table_size('receiptd.message_inbox')", "key": "pg_relation_size('receiptd.message_inbox_pkey')",
         "campaign": "pg_relation_size('receiptd.message_inbox_campaign')", "alias": "pg_total_relation_size('receiptd.message_alias')",
         "remembered": "pg_total_relation_size('receiptd.retired_message')"}
SETTINGS = {"inbox": {"retention": "90d"}}


def make(lab, stream):
    database = lab.services.create_database()
    lab.receiptd(database, "none").migrate()
    database.execute("CREATE EXTENSION pg_prewarm")
    database.execute(f"""INSERT INTO receiptd.message_inbox ({INBOX_COLUMNS}, status, created_at)
        SELECT gen_random_uuid()::text, 'org-1', 'campaign-' || i / 10000, 600, now() - interval '100 days' FROM generate_series(1, {OLD}) i""")
    copy_messages(database, stream)
    database.execute("VACUUM (FREEZE, ANALYZE)")
    database.execute("CHECKPOINT")
    return database


def size(database, name):
    return database.value(f"SELECT {SIZES[name]}")


class Retiring:
    """`receiptd retire` from now on, in a thread that notes how long it took."""

    def __init__(self, installation, database):
        self.command = [binary(), "retire", "--config", str(installation.config_path)]
        self.database, self.seconds = database, None
        self.thread = threading.Thread(target=self.run)

    def run(self):
        begun = time.monotonic()
        subprocess.run(self.command, check=True, capture_output=True, timeout=900)
        self.seconds = time.monotonic() - begun


@contextmanager
def beside(retiring):
    retiring.thread.start()
    yield


def alone(lab, stream):
    """Retired with nothing beside: rate, WAL, sizes."""
    database = make(lab, stream)
    try:
        per_message = {name: size(database, name) / (OLD + stream.message_count) for name in ("row", "key", "campaign")}
        database.execute("INSERT INTO receiptd.message_alias (channel_account, gateway_id, message_id)"
                         " SELECT 'account', gen_random_uuid()::text, message_id FROM receiptd.message_inbox")
        per_message["alias"] = size(database, "alias") / (OLD + stream.message_count)
        retiring = Retiring(lab.receiptd(database, "none", **SETTINGS), database)
        wal = database.value("SELECT pg_current_wal_lsn()")
        retiring.run()
        per_message["remembered"] = size(database, "remembered") / OLD
        per_message["wal"] = float(database.value("SELECT pg_current_wal_lsn() - %s::pg_lsn", wal)) / OLD
        assert database.value("SELECT count(*) FROM receiptd.message_inbox") == stream.message_count
        return OLD / retiring.seconds, per_message
    finally:
        database.drop()


def receipts(lab, stream, topic, retires):
    database = make(lab, stream)
    try:
        retiring = Retiring(lab.receiptd(database, "none", **SETTINGS), database)
        found = run_receiptd(lab, stream, topic, large=database, around=(lambda _: beside(retiring)) if retires else None)
        if retires:
            retiring.thread.join()
        return found
    finally:
        database.drop()


def part_retention(lab, options):
    stream = Stream("single", min(EVENTS, options.events))
    topic = lab.topic(stream)
    rates, sizes, pairs = [], [], []
    for number in range(options.repeat):
        rate, per_message = alone(lab, stream)
        rates.append(rate)
        sizes.append(per_message)
        say(f"  {rate:,.0f} messages/s retired; bytes a message: " + ", ".join(f"{name} {n:.0f}" for name, n in per_message.items()))
        order = (False, True) if number % 2 == 0 else (True, False)
        made = {retires: receipts(lab, stream, topic, retires) for retires in order}
        pairs.append(made)
        say(f"  receipts: {made[False]['events_per_second']:,.0f} events/s, beside retire {made[True]['events_per_second']:,.0f}, longest batch "
            f"{made[False]['response_ms']['max']:.0f} and {made[True]['response_ms']['max']:.0f} ms")
    return {"events": stream.event_count, "old": OLD, "retired_per_second": summary(rates),
            "bytes": {name: summary([one[name] for one in sizes]) for name in sizes[0]},
            "share": summary([made[True]["events_per_second"] / made[False]["events_per_second"] for made in pairs]),
            "longest_ms": summary([made[True]["response_ms"]["max"] for made in pairs]),
            "longest_without_ms": summary([made[False]["response_ms"]["max"] for made in pairs])}
