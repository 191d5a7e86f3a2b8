"""Inboxes whose messages have ages, and receipts for the young ones: what the parts `recent` and `retention` measure.

So many messages come a day, evenly. The age of a message that gets a receipt is exponential, with a half-life of hours; one receipt in a
hundred is for a message older than a week, or of any age where the inbox is not as old as that.
"""

import os
import random
import shutil
import time

from lab import INBOX_COLUMNS, ROOT, say
from stream import Stream

END_MS = 1_780_272_000_000  # 2026-06-01, when the last message was sent
DAY_MS = 86_400_000
PER_DAY = 100_000_000 / 90  # a hundred million are 90 days
HALF_LIFE_HOURS = float(os.environ.get("RECEIPTD_BENCH_HALF_LIFE", "4"))
OLD = 0.01
SLICE_ROWS = 100_000
ROW_BYTES = 320  # with its entries in the indexes, at fillfactor 50
COPIED_ROWS = 20_000_000  # larger ones are not copied for each run
WARM_DAYS = 20  # of partitions
STATUSES = ("IN_GTW", "SENT", "DEFERRED", "UNKNOWN", "DELIVERED", "OPENED", "CLICKED")  # of one run after the other, each above the one before

OWN = {"inbox": {"recent_rows": 0}}
BY_TIME = {"inbox": {"partitions": "own", "ids": "uuidv7", "recent_rows": 0}}
MAPPED = {"inbox": {"table": "app.messages", "columns": {"created_at": "created_at"}, "recent_rows": 0}}
BY_DAYS = {"inbox": MAPPED["inbox"] | {"probe_partitions": 100}}  # or migrate refuses days without a recent set
ORDERED_ID = "overlay(lpad(to_hex(at_ms), 12, '0') PLACING '-' FROM 9 FOR 0) || '-7' || substr(gen_random_uuid()::text, 16)"
MAPPED_TABLE = """CREATE SCHEMA app; CREATE TABLE app.messages (message_id text COLLATE "C" PRIMARY KEY, org_id text, campaign_id text,
    body text NOT NULL DEFAULT repeat('x', 80), status smallint NOT NULL DEFAULT 0, created_at timestamptz NOT NULL DEFAULT now()) WITH (fillfactor = 50)"""


def ages_ms(rows, days, events):
    """Of each message that gets a receipt. Ages in messages are the same however many days the inbox is spread over."""
    draw, span = random.Random(f"ages {rows}"), rows / PER_DAY * DAY_MS
    week, mean = 7 * DAY_MS, HALF_LIFE_HOURS * 3_600_000 / 0.6931471805599453
    oldest = week if span > week else 0
    drawn = (oldest + draw.random() * (span - oldest) if draw.random() < OLD else draw.expovariate(1 / mean) for _ in range(events))
    scale = days * DAY_MS / span
    return [int(min(age, span - 1) * scale) + 1 for age in drawn]


def ordered_id(rng, at_ms):
    digits = f"{at_ms:012x}"
    return f"{digits[:8]}-{digits[8:]}-7{rng.getrandbits(12):03x}-a{rng.getrandbits(12):03x}-{rng.getrandbits(48):012x}"


class Inbox:
    """A kind of inbox of one size, its streams, which have the same messages, and the database. `days`: over how many it is spread, if not by PER_DAY."""

    def __init__(self, lab, rows, events, ordered=False, partitions=False, mapped=False, by_days=False, days=None, span_days=1):
        self.lab, self.rows, self.partitions, self.mapped, self.by_days, self.database = lab, rows, partitions, mapped, by_days, None
        self.span_days = span_days  # of a partition of time-ordered ids
        self.days = days or rows / PER_DAY
        self.ordered = ordered or partitions
        self.settings = {"inbox": BY_TIME["inbox"] | {"partition_span": f"{span_days}d"}} if partitions else BY_DAYS if by_days else MAPPED if mapped else OWN
        self.table = "app.messages" if mapped else "receiptd.message_inbox"
        self.ages = ages_ms(rows, self.days, events)
        self.streams = [self._stream(events, status) for status in STATUSES]

    def _stream(self, events, status):
        if not self.ordered:
            return Stream("single", events, status=status)
        name = f"v7_{self.rows}_{self.days:.1f}_{HALF_LIFE_HOURS:g}"
        return Stream("single", events, ids=name, status=status, make_id=lambda rng, number: ordered_id(rng, END_MS - self.ages[number]))

    # ---- made once

    def make(self):
        begun = time.monotonic()
        database = self.database = self.lab.services.create_database()
        if self.mapped:
            database.execute(self._days_table() if self.by_days else MAPPED_TABLE)
        self.lab.receiptd(database, "none", **self.settings).migrate()
        database.execute("CREATE EXTENSION pg_prewarm; SET maintenance_work_mem = '1GB'; SET work_mem = '256MB'")
        self._copy_wanted()
        self._make_parts() if self.partitions else self._fill_days() if self.by_days else self._make_whole()
        database.execute("DROP TABLE pg_temp.wanted")
        database.execute("VACUUM (FREEZE, ANALYZE)")
        database.close()
        say(f"  {self}: made in {time.monotonic() - begun:.0f} s")
        return self

    def _copy_wanted(self):
        self.database.execute(f"CREATE TEMP TABLE wanted ({INBOX_COLUMNS.replace(',', ' text,')} text, at_ms int8)")
        with self.database.connection.cursor() as cursor, cursor.copy(f"COPY pg_temp.wanted ({INBOX_COLUMNS}, at_ms) FROM STDIN") as target:
            with open(self.streams[0].messages_path) as file:
                for line, age in zip(file, self.ages):
                    target.write(f"{line.rstrip()}\t{END_MS - age}\n")
        self.database.execute("CREATE INDEX ON pg_temp.wanted (at_ms); ANALYZE pg_temp.wanted")

    def _fill(self, table, from_ms, to_ms):
        """Messages of a time, evenly, in its order; those of the streams in place of others."""
        start_ms, step = END_MS - self.days * DAY_MS, self.days * DAY_MS / self.rows
        first, end = (max(0, min(self.rows, round((ms - start_ms) / step))) for ms in (from_ms, to_ms))
        for number in range(first, end, SLICE_ROWS):
            last = min(number + SLICE_ROWS, end)
            low, high = (int(start_ms + n * step) for n in (number, last))
            low, high = (from_ms if number == first else low), (to_ms if last == end else high)
            chosen = f"FROM pg_temp.wanted WHERE at_ms >= {low} AND at_ms < {high}"
            self.database.execute(f"""INSERT INTO {table} ({INBOX_COLUMNS}, created_at)
                SELECT {INBOX_COLUMNS}, to_timestamp(at_ms / 1000.0) FROM (
                    SELECT {INBOX_COLUMNS}, at_ms {chosen}
                    UNION ALL SELECT {ORDERED_ID if self.ordered else "gen_random_uuid()::text"}, 'org-1', 'campaign-' || ({number} + i) / 10000, at_ms
                    FROM (SELECT i, LEAST({low} + i * ({high - low})::int8 / others.n, {to_ms - 1}) AS at_ms
                          FROM (SELECT {last - number} - count(*) AS n {chosen}) others, generate_series(0, others.n - 1) i) o) a ORDER BY at_ms""")

    def _make_whole(self):
        execute, value = self.database.execute, self.database.value
        campaigns = None
        execute(f"ALTER TABLE {self.table} DROP CONSTRAINT {self.table.split('.')[1]}_pkey")
        if not self.mapped:
            campaigns = value("SELECT pg_get_indexdef('receiptd.message_inbox_campaign'::regclass)")
            execute("DROP INDEX receiptd.message_inbox_campaign")
        self._fill(self.table, END_MS - int(self.days * DAY_MS) - 1, END_MS)
        execute(f"ALTER TABLE {self.table} ADD PRIMARY KEY (message_id)")
        if campaigns:
            execute(campaigns)

    def _days_table(self):
        """A partition for each day, made before the view."""
        table = MAPPED_TABLE.replace(" PRIMARY KEY", "").replace("DEFAULT now()) WITH (fillfactor = 50)", "DEFAULT now(), PRIMARY KEY (message_id, created_at))")
        ends = [time.strftime("%Y-%m-%d 00:00+00", time.gmtime(day * 86_400)) for day in range(END_MS // DAY_MS - int(self.days) - 1, END_MS // DAY_MS + 1)]
        return f"{table} PARTITION BY RANGE (created_at);" + "".join(
            f"CREATE TABLE app.d{n} PARTITION OF app.messages FOR VALUES FROM ('{low}') TO ('{high}') WITH (fillfactor = 50);"
            for n, (low, high) in enumerate(zip(ends, ends[1:])))

    def _fill_days(self):
        self._fill(self.table, END_MS - int(self.days * DAY_MS) - 1, END_MS)

    def _make_parts(self):
        """As `receiptd maintain` would have made them; filled before they are attached."""
        start_ms, span_ms = END_MS - int(self.days * DAY_MS), self.span_days * DAY_MS
        for from_ms in range(start_ms // span_ms * span_ms, END_MS, span_ms):
            name = "receiptd.message_inbox_p" + time.strftime("%Y%m%d", time.gmtime(from_ms / 1000))
            self.database.execute(f"CREATE TABLE {name} (LIKE receiptd.message_inbox INCLUDING DEFAULTS) WITH (fillfactor = 50)")
            self._fill(name, max(from_ms, start_ms - 1), min(from_ms + span_ms, END_MS))
            low, high = (ordered_id(random, ms)[:13] for ms in (from_ms, from_ms + span_ms))
            self.database.execute(f"ALTER TABLE {name} ADD PRIMARY KEY (message_id); CREATE INDEX ON {name} (campaign_id)")
            self.database.execute(f"ALTER TABLE receiptd.message_inbox ATTACH PARTITION {name} FOR VALUES FROM ('{low}') TO ('{high}')")
        self.lab.receiptd(self.database, "none", **self.settings).migrate()  # triggers

    def with_set(self, recent_rows):
        """Another one, with the recent set that `receiptd maintain` makes; a large one gets it itself, since a copy would take its disk twice."""
        other = object.__new__(Inbox)
        other.__dict__.update(self.__dict__)
        other.settings = {"inbox": self.settings["inbox"] | {"recent_rows": recent_rows}}
        if self.rows <= COPIED_ROWS:
            other.database = self.lab.services.create_database(template=self.database)
        said = self.lab.receiptd(other.database, "none", **other.settings).command("maintain", timeout=1800).stdout
        assert "first" in said, said
        other.database.close()
        return other

    def __str__(self):
        kind = f", {self.days:.0f} days in partitions of {self.span_days} d" if self.partitions else f", mapped, in {self.days:.0f} days" if self.by_days else ", mapped" if self.mapped else ""
        return f"{self.rows:,} messages, {'time-ordered' if self.ordered else 'random'} ids{kind}"

    def warm(self, database):
        """In memory as far as it fits, the newest last: tables at least in the kernel's cache, indexes in the buffers, the small one of a recent set last."""
        leaves = f"(SELECT relid FROM pg_partition_tree('{self.table}') WHERE isleaf ORDER BY relid::text DESC LIMIT {-(-WARM_DAYS // self.span_days)}) t"
        database.execute(f"SELECT pg_prewarm(n.relid, 'read') FROM (SELECT relid FROM {leaves} ORDER BY relid::text) n")
        database.execute(f"""SELECT pg_prewarm(n.indexrelid) FROM (SELECT x.indexrelid::regclass FROM {leaves} JOIN pg_index x ON x.indrelid = t.relid
            ORDER BY t.relid::text, pg_relation_size(x.indexrelid) DESC) n""")


def check_disk(rows):
    """Says what is needed before anything is made."""
    needed = sum(ROW_BYTES * number for number in rows) + ROW_BYTES * min(max(rows), COPIED_ROWS) + (10 << 30)
    free = shutil.disk_usage(ROOT).free
    say(f"  disk: {needed / 2**30:.0f} GiB are needed, {free / 2**30:.0f} GiB are free")
    if needed > free:
        raise OSError(f"{needed / 2**30:.0f} GiB of disk are needed and {free / 2**30:.0f} GiB are free: measure fewer messages (RECEIPTD_BENCH_RECENT)")
