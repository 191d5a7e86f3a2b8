"""dimensions: the rate with the funnel also by columns of the message (counters.by), and without, of the same databases in one run."""

import re

from lab import copy_messages, say
from meter import summary
from runs import run_between, run_receiptd
from stream import Stream

CAMPAIGNS, VARIANTS = 10_000, 4
EVENTS = 4_000_000  # 400 of each campaign: its cells are made once
BY = ("variant", "channel", "gateway")
FIGURES = ("events_per_second", "server_us_per_event", "wal_bytes_per_event")
CASES = (0, 1, 3)  # so many dimensions; shares are of the first
BAR = 0.9
SUMS = """
    SELECT count(*) FROM (SELECT campaign_id, status, messages, events FROM receiptd.campaign_funnel) f
    FULL JOIN (SELECT campaign_id, status, sum(messages) AS messages, sum(events) AS events FROM receiptd.campaign_tally
               WHERE kind = 'by_variant' GROUP BY 1, 2) d USING (campaign_id, status)
    WHERE (f.messages, f.events) IS DISTINCT FROM (d.messages, d.events)"""


def make(lab, stream, count):
    """Each message has one of four values in each column. As many dimensions are counted, the columns are always there."""
    database = lab.services.create_database()
    receiptd = lab.receiptd(database, "none")
    receiptd.migrate()
    database.execute("CREATE EXTENSION pg_prewarm")
    for name in BY:
        database.execute(f"ALTER TABLE receiptd.message_inbox ADD COLUMN {name} text COLLATE \"C\"")
        database.execute(f"ALTER TABLE receiptd.message_inbox ALTER COLUMN {name} SET DEFAULT '{name}-' || floor(random() * {VARIANTS})")
    receiptd.configure(counters={"by": list(BY[:count])})
    receiptd.migrate()
    copy_messages(database, stream)
    prepared = receiptd.command("generate", "sql").stdout
    text = re.search(r'^PREPARE "control/rollup" AS\n(.*?;)$', prepared, re.MULTILINE | re.DOTALL)[1]
    for deltas in ("funnel", "rules"):  # what COPY has counted, as this build does it
        database.execute("SET search_path = receiptd; " + text.replace("$1::int4", "10000").replace("$2::int8", "0").replace("$3::text", f"'{deltas}'"))
    database.execute("RESET search_path")
    database.execute("VACUUM (FREEZE, ANALYZE)")
    return database


def run(lab, stream, topic, template, count):
    database = lab.services.create_database(template=template)
    try:
        database.execute("SELECT pg_prewarm('receiptd.message_inbox'), pg_prewarm('receiptd.message_inbox_pkey')")
        database.execute("CHECKPOINT")
        made = run_receiptd(lab, stream, topic, settings={"counters": {"by": list(BY[:count])}}, large=database)
        assert count == 0 or database.value(SUMS) == 0, "the sum over keys is not the funnel"
        return made
    finally:
        database.drop()


def part_dimensions(lab, options):
    stream = Stream("mix", min(EVENTS, 4 * options.events), campaigns=CAMPAIGNS)
    topic = lab.topic(stream)
    templates = {count: make(lab, stream, count) for count in CASES}

    def one(count):
        made = run(lab, stream, topic, templates[count], count)
        say(f"    {count} dimensions {made['events_per_second']:>9,.0f} events/s")
        return made

    runs, shares = run_between(one, CASES[1:], CASES[0], options.repeat)
    results = []
    for count, made in runs.items():
        templates[count].drop()
        found = {name: summary([run[name] for run in made]) for name in FIGURES}
        share = summary(shares[count])
        results.append({"dimensions": count, "figures": found, "share": share})
        say(f"  {count} dimensions: {found['events_per_second']['median']:,.0f} events/s, {share['median']:.2f} of the rate without, "
            f"{found['wal_bytes_per_event']['median']:.0f} bytes of WAL an event")
    return {"events": stream.event_count, "campaigns": CAMPAIGNS, "variants": VARIANTS, "bar": BAR, "cases": results}
