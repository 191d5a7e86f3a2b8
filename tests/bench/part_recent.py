"""recent: receipts as they come, for messages of the last hours, into an inbox of a million rows and into larger ones, with random ids.

The age of a message, counted in messages that were sent after it, is exponential; one receipt in a hundred is for a message of any age. Beside
the larger inboxes as they are: with the recent set that `receiptd maintain` makes. Shares are of the first case, pair by pair.
"""

import os
import time

from lab import INBOX_COLUMNS, SLICE_ROWS, copy_messages, say
from meter import summary
from runs import run_receiptd
from stream import Stream
from support.services import Database

EVENTS = 200_000
ROWS = "1000000 10000000"
MEAN_AGE = 200_000  # messages; nearly all are younger than a million
OLD = 0.01
RECENT_ROWS = 1_000_000
FIGURES = ("events_per_second", "server_us_per_event", "wal_bytes_per_event")


def make(lab, stream, rows):
    """Messages in the order in which they were sent, a second apart; those of the stream at their places among the others."""
    database = lab.services.create_database()
    lab.receiptd(database, "none").migrate()
    database.execute("CREATE EXTENSION pg_prewarm; ALTER TABLE receiptd.message_inbox DROP CONSTRAINT message_inbox_pkey")
    campaigns = database.value("SELECT pg_get_indexdef('receiptd.message_inbox_campaign'::regclass)")
    database.execute(f"DROP INDEX receiptd.message_inbox_campaign; CREATE TEMP TABLE wanted (n serial, {INBOX_COLUMNS.replace(',', ' text,')} text)")
    copy_messages(database, stream, "pg_temp.wanted")
    database.execute(f"""CREATE TEMP TABLE placed AS SELECT {INBOX_COLUMNS}, GREATEST(0, {rows} - CASE WHEN random() < {OLD} THEN random() * {rows}
                             ELSE -ln(1 - random()) * {MEAN_AGE} END)::int8 AS place FROM pg_temp.wanted""")
    database.execute("CREATE INDEX ON pg_temp.placed (place); ANALYZE pg_temp.placed")
    for first in range(0, rows + 1, SLICE_ROWS):
        database.execute(
            f"""INSERT INTO receiptd.message_inbox ({INBOX_COLUMNS}, created_at)
                SELECT {INBOX_COLUMNS}, '2026-01-01'::timestamptz + place * interval '1 second' FROM (
                    SELECT {INBOX_COLUMNS}, place FROM pg_temp.placed WHERE place >= {first} AND place < {first + SLICE_ROWS}
                    UNION ALL SELECT gen_random_uuid()::text, 'org-1', 'campaign-' || i / 10000, i
                    FROM generate_series({first}, {min(first + SLICE_ROWS, rows) - 1}) i) a ORDER BY place""")
    database.execute("SET maintenance_work_mem = '1GB'")
    database.execute("ALTER TABLE receiptd.message_inbox ADD CONSTRAINT message_inbox_pkey PRIMARY KEY (message_id)")
    database.execute(campaigns)
    database.execute("DROP TABLE pg_temp.wanted, pg_temp.placed")
    database.execute("VACUUM (FREEZE, ANALYZE)")
    database.close()
    return database


def run(lab, stream, topic, template, with_set):
    name = f"b_{os.getpid()}_{time.monotonic_ns()}"
    with lab.connect() as connection:
        connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template.name}" STRATEGY file_copy')
    database = Database(lab.services, name)
    try:
        if with_set:
            said = lab.receiptd(database, "none", inbox={"recent_rows": RECENT_ROWS}).command("maintain", timeout=600).stdout
            assert "first" in said, said
        database.execute("SELECT pg_prewarm(indexrelid::regclass) FROM pg_index WHERE indrelid = 'receiptd.message_inbox'::regclass")
        database.execute("SELECT pg_prewarm('receiptd.message_inbox', 'read')")
        database.execute("CHECKPOINT")
        return run_receiptd(lab, stream, topic, large=database)
    finally:
        database.drop()


def part_recent(lab, options):
    stream = Stream("single", min(EVENTS, options.events))
    topic = lab.topic(stream)
    rows = [int(text) for text in os.environ.get("RECEIPTD_BENCH_RECENT", ROWS).split()]
    cases = [(rows[0], False)] + [(more, with_set) for more in rows[1:] for with_set in (False, True)]
    templates = {}
    for number in rows:
        templates[number] = make(lab, stream, number)
        say(f"  {number:,} messages")
    runs = {case: [] for case in cases}
    with lab.setting(full_page_writes="off"):  # as between two checkpoints, long after the first
        for number in range(options.repeat):
            for case in cases if number % 2 == 0 else reversed(cases):
                made = run(lab, stream, topic, templates[case[0]], case[1])
                runs[case].append(made)
                say(f"  {case[0]:,} messages{', recent set' if case[1] else ''}: {made['events_per_second']:,.0f} events/s, "
                    f"{made['server_us_per_event']:.1f} µs server")
    found = []
    for case, made in runs.items():
        pairs = list(zip(made, runs[cases[0]]))
        found.append({"rows": case[0], "recent_set": case[1], **{name: summary([one[name] for one in made]) for name in FIGURES},
                      "share": summary([one["events_per_second"] / first["events_per_second"] for one, first in pairs]),
                      "server_share": summary([first["server_us_per_event"] / one["server_us_per_event"] for one, first in pairs])})
        say(f"  {case[0]:,} messages{', recent set' if case[1] else ''}: share of the rate {found[-1]['share']['median']:.2f}, "
            f"of the server's CPU {found[-1]['server_share']['median']:.2f}")
    for template in templates.values():
        template.drop()
    return {"events": stream.event_count, "recent_rows": RECENT_ROWS, "cases": found}
