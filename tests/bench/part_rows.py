"""rows: the same receipts into an inbox of a million rows and into larger ones, whose other rows lie between theirs."""

import os

from lab import say
from meter import summary
from runs import run_receiptd
from stream import Stream

EVENTS = 200_000
SIZES = (1_000_000, 10_000_000)


def sizes():
    """RECEIPTD_BENCH_ROWS: other numbers of rows, for a machine with more memory and more time."""
    given = os.environ.get("RECEIPTD_BENCH_ROWS")
    return [int(text) for text in given.split()] if given else list(SIZES)


def part_rows(lab, options):
    """In turns: the figure is what a run with more rows does beside one with the fewest."""
    stream = Stream("single", min(EVENTS, options.events))
    topic, runs = lab.topic(stream), {rows: [] for rows in sizes()}
    sizes_mib = {}
    for rows in runs:
        with lab.database(stream, rows=rows) as database:
            sizes_mib[rows] = [database.value(f"SELECT {what}('receiptd.message_inbox') / 1048576")
                               for what in ("pg_table_size", "pg_indexes_size")]
        say(f"  {rows:,} rows: table {sizes_mib[rows][0]:,} MiB, index {sizes_mib[rows][1]:,} MiB")
    for number in range(options.repeat):
        for rows in runs if number % 2 == 0 else reversed(runs):
            runs[rows].append(run_receiptd(lab, stream, topic, rows=rows))
            say(f"  {rows:,} rows: {runs[rows][-1]['events_per_second']:,.0f} events/s, "
                f"{runs[rows][-1]['server_us_per_event']:.1f} µs server")
    fewest = runs[min(runs)]
    return {"events": stream.event_count, "cases": [
        {"rows": rows, "table_mib": sizes_mib[rows][0], "index_mib": sizes_mib[rows][1],
         "ratio": summary([one["events_per_second"] / few["events_per_second"] for one, few in zip(found, fewest)]),
         **{name: summary([one[name] for one in found])
            for name in ("events_per_second", "server_us_per_event", "wal_bytes_per_event")}} for rows, found in runs.items()]}
