"""stream: what the status stream costs the core, and how fast waiting transitions and a backfill are published."""

import time

from lab import say
from meter import summary
from runs import run_between, run_receiptd
from stream import Stream
from support import stream as published
from support.wait import wait_for

A_ROW = 1_000  # transitions of one transaction of a lane

# As lanes write them: what is the same for all of a row stands once.
WAITING = """
    INSERT INTO receiptd.stream_event (ids, orgs, campaigns, old, new, flags, gained, times, gateways)
    SELECT array_agg(gen_random_uuid()::text), '{{o}}', '{{campaign-1}}', '{{300}}', '{{600}}', '{{0}}', '{{0}}',
           array_agg(now() - n * interval '1 ms'), '{{kannel}}'
    FROM generate_series(1, {count}) n GROUP BY n % {rows}
"""


def drained(lab, options, out):
    """Seconds until a backlog is published, from the first claim on."""
    empty = Stream("single", 1000)
    with lab.database(empty) as database:
        database.execute(WAITING.format(count=options.events, rows=options.events // A_ROW))
        database.execute("VACUUM ANALYZE receiptd.stream_event")
        receiptd = lab.receiptd(database, lab.topic(empty), stream={"topic": str(out)})
        process = receiptd.start()
        try:
            wait_for(lambda: database.value("SELECT next_seq FROM receiptd.fold_lane WHERE lane = 2") > 1, 60, "the first claim", interval=0.01)
            begun = time.monotonic()
            wait_for(lambda: published.is_quiet(database), 300, "all are published", interval=0.05)
            seconds = time.monotonic() - begun
            process.stop()
        finally:
            receiptd.close()
    say(f"    {options.events / seconds:,.0f} records/s published")
    return options.events / seconds


def backfilled(lab, options, out):
    """Rows of the inbox a second that a backfill brings to the topic."""
    rows = Stream("single", options.events)
    with lab.database(rows) as database:
        receiptd = lab.receiptd(database, lab.topic(Stream("single", 1000)), stream={"topic": str(out), "mode": "state"})
        process = receiptd.start()
        try:
            process.wait_for_log('msg="ready"')
            begun = time.monotonic()
            receiptd.command("stream", "--backfill", timeout=300)
            wait_for(lambda: published.is_quiet(database), 300, "all are published", interval=0.05)
            seconds = time.monotonic() - begun
            process.stop()
        finally:
            receiptd.close()
    say(f"    {rows.message_count / seconds:,.0f} rows/s by a backfill")
    return rows.message_count / seconds


def part_stream(lab, options):
    out, traffic = lab.services.create_topic(4), Stream("single", options.events)
    topic = lab.topic(traffic)

    def run(case):
        settings = {"off": {}, "on": {"stream": {"topic": str(out)}},
                    "columns": {"stream": {"topic": str(out), "columns": ["org_id", "created_at"]}}}[case]
        result = run_receiptd(lab, traffic, topic, settings=settings)
        say(f"    stream {case}: {result['events_per_second']:,.0f} events/s, server {result['server_us_per_event']:.1f} us,"
            f" daemon {result['daemon_us_per_event']:.1f} us, {result['wal_bytes_per_event']:.0f} bytes of WAL an event")
        return result

    runs, shares = run_between(run, ["on", "columns"], "off", options.repeat)
    rates = [drained(lab, options, out) for _ in range(options.repeat)]
    filled = [backfilled(lab, options, out) for _ in range(options.repeat)]
    out.drop()
    figures = ("events_per_second", "server_us_per_event", "daemon_us_per_event", "wal_bytes_per_event")
    cases = [{"case": case, "share": summary(shares[case]) if case in shares else None,
              "figures": {name: summary([one[name] for one in made]) for name in figures}} for case, made in runs.items()]
    for case in cases[1:]:
        say(f"  {case['case']}: {case['share']['median']:.2f} of the rate without")
    return {"events": traffic.event_count, "cases": cases, "published_per_second": summary(rates), "backfilled_per_second": summary(filled)}
