"""rows: the same receipts into an inbox of a million rows and into larger ones, whose other rows lie between theirs.

Three ways, for the largest difference is WAL: PostgreSQL writes a whole page into it when the page is changed for the first time since a
checkpoint, and in a large inbox each receipt changes another page.
  after     right after a checkpoint, so that each page is written whole: the worst moment
  between   as if all pages had been written since the last checkpoint: with full_page_writes=off for the length of the run
  packed    right after a checkpoint, with wal_compression (lz4 where the server has it)
"""

import os

from lab import say
from meter import summary
from runs import run_receiptd
from stream import Stream

EVENTS = 200_000
CASES = "1000000 10000000"
LARGE = 20_000_000  # from here on no copies: each run applies other receipts to the same database
LARGE_STREAMS = 18
FILLFACTOR = 50


def cases():
    """RECEIPTD_BENCH_ROWS: other numbers of rows, each with /FILLFACTOR if it is not 50, for a machine with more memory and more time."""
    given = os.environ.get("RECEIPTD_BENCH_ROWS", CASES).split()
    return [(int(rows), int(fill or FILLFACTOR)) for rows, _, fill in (text.partition("/") for text in given)]


def _ways(lab):
    with lab.connect() as connection:
        methods = connection.execute("SELECT enumvals FROM pg_settings WHERE name = 'wal_compression'").fetchone()[0]
    method = next(name for name in ("lz4", "zstd", "pglz") if name in methods)
    return {"after": {}, "between": {"full_page_writes": "off"}, "packed": {"wal_compression": method}}, method


class Inbox:
    """Of one number of rows: what a run needs to have fresh receipts for it."""

    def __init__(self, lab, rows, fillfactor, stream):
        self.lab, self.rows, self.fillfactor, self.stream, self.database = lab, rows, fillfactor, stream, None
        if rows >= LARGE:
            self.streams = {one.name: one for one in (Stream("single", stream.events_wanted, salt=100 + n) for n in range(LARGE_STREAMS))}
            self.database = lab.large(list(self.streams.values()), rows, fillfactor)
            self.database.execute("SELECT pg_prewarm('receiptd.message_inbox', 'read'), pg_prewarm('receiptd.message_inbox_pkey', 'read')")
            self.sizes = self._sizes(self.database)
        else:
            with lab.database(stream, fillfactor, rows) as database:
                self.sizes = self._sizes(database)
        say(f"  {rows:,} rows, fillfactor {fillfactor}: table {self.sizes[0]:,} MiB, index {self.sizes[1]:,} MiB")

    @staticmethod
    def _sizes(database):
        return [database.value(f"SELECT {what} / 1048576")
                for what in ("pg_table_size('receiptd.message_inbox')", "pg_relation_size('receiptd.message_inbox_pkey')")]

    def run(self):
        if not self.database:
            return run_receiptd(self.lab, self.stream, self.lab.topic(self.stream), fillfactor=self.fillfactor, rows=self.rows)
        name = self.database.value("DELETE FROM public.unused WHERE stream = (SELECT min(stream) FROM public.unused) RETURNING stream")
        assert name, f"all receipts for {self.database.name} are used up: drop it"
        stream = self.streams[name]
        topic = self.lab.topic(stream)
        self.database.execute("CHECKPOINT")
        try:
            return run_receiptd(self.lab, stream, topic, large=self.database)
        finally:
            self.lab.drop_topic(stream)


def part_rows(lab, options):
    """In turns: the figure is the rate of a run with more rows, as a share of one with the fewest of the same fillfactor."""
    stream = Stream("single", min(EVENTS, options.events))
    ways, method = _ways(lab)
    inboxes = [Inbox(lab, rows, fillfactor, stream) for rows, fillfactor in cases()]
    runs = {(inbox, way): [] for inbox in inboxes for way in ways}
    for number in range(options.repeat):
        for way, settings in ways.items():
            with lab.setting(**settings):
                for inbox in inboxes if number % 2 == 0 else reversed(inboxes):
                    run = inbox.run()
                    runs[inbox, way].append(run)
                    say(f"  {way}, {inbox.rows:,} rows, fillfactor {inbox.fillfactor}: {run['events_per_second']:,.0f} events/s, "
                        f"{run['server_us_per_event']:.1f} µs server, {run['wal_bytes_per_event']:,.0f} bytes of WAL")
    found = []
    for (inbox, way), made in runs.items():
        fewest = min((other for other in inboxes if other.fillfactor == inbox.fillfactor), key=lambda other: other.rows)
        found.append({
            "rows": inbox.rows, "fillfactor": inbox.fillfactor, "way": way, "table_mib": inbox.sizes[0], "index_mib": inbox.sizes[1],
            "ratio": summary([one["events_per_second"] / few["events_per_second"] for one, few in zip(made, runs[fewest, way])]),
            **{name: summary([one[name] for one in made]) for name in ("events_per_second", "server_us_per_event", "wal_bytes_per_event")}})
    return {"events": stream.event_count, "compression": method, "cases": found}
