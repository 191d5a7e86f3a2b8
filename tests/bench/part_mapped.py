"""mapped: an existing table as the inbox, by the fillfactor of its pages and by an index on the status."""

from lab import copy_messages, say
from meter import summary
from runs import run_receiptd
from stream import Stream

EVENTS = 200_000
INBOX = {"inbox": {"table": "app.messages"}}
FIGURES = ("events_per_second", "server_us_per_event", "wal_bytes_per_event", "hot")
# (fillfactor, is there an index on the status); shares are of the first
CASES = ((100, False), (80, False), (50, False), (50, True))


def make(lab, stream, fillfactor, indexed):
    """A database whose messages stand in a table of the platform's, with columns of its own; pages are as full as they are set."""
    database = lab.services.create_database()
    database.execute(f"""CREATE SCHEMA app; CREATE EXTENSION pg_prewarm;
        CREATE TABLE app.messages (message_id text PRIMARY KEY, org_id text, campaign_id text, body text NOT NULL DEFAULT repeat('x', 80),
                                   status smallint NOT NULL DEFAULT 0) WITH (fillfactor = {fillfactor})""")
    lab.receiptd(database, "none", **INBOX).migrate()
    copy_messages(database, stream, "app.messages")
    if indexed:
        database.execute("CREATE INDEX ON app.messages (status)")
    database.execute("VACUUM (FREEZE, ANALYZE)")
    return database


def run(lab, stream, topic, template):
    """The share of updates that are HOT is counted by the table's own statistics."""
    database = lab.services.create_database(template=template)
    try:
        database.execute("SELECT pg_prewarm('app.messages'), pg_prewarm('app.messages_pkey'), pg_stat_reset()")
        database.execute("CHECKPOINT")
        made = run_receiptd(lab, stream, topic, settings=INBOX, large=database)
        database.execute("SELECT pg_stat_force_next_flush()" if database.connection.info.server_version >= 150000 else "SELECT pg_sleep(1)")
        made["hot"] = database.value("SELECT n_tup_hot_upd::float8 / n_tup_upd FROM pg_stat_user_tables WHERE relname = 'messages'")
        return made
    finally:
        database.drop()


def part_mapped(lab, options):
    stream = Stream("single", min(EVENTS, options.events))
    topic = lab.topic(stream)
    templates = {case: make(lab, stream, *case) for case in CASES}
    runs = {case: [] for case in CASES}
    for number in range(options.repeat):
        for case in CASES if number % 2 == 0 else reversed(CASES):
            runs[case].append(run(lab, stream, topic, templates[case]))
    results = []
    for case, made in runs.items():
        templates[case].drop()
        found = {name: summary([run[name] for run in made]) for name in FIGURES}
        share = summary([run["events_per_second"] / first["events_per_second"] for run, first in zip(made, runs[CASES[0]])])
        results.append({"fillfactor": case[0], "indexed": case[1], "figures": found, "share": share})
        say(f"  fillfactor {case[0]}{', status indexed' if case[1] else ''}: {found['events_per_second']['median']:,.0f} events/s, "
            f"{share['median']:.2f}, {found['wal_bytes_per_event']['median']:.0f} bytes of WAL an event, {found['hot']['median']:.0%} HOT")
    return {"events": stream.event_count, "cases": results}
