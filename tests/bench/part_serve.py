"""serve: how long `receiptd serve` takes for a question, beside 10 000 campaigns and one of 50 million messages; through HTTP on loopback."""

import time

from lab import say
from meter import Meter, percentile
from support import reader

CAMPAIGNS, LARGE = 10_000, 50_000_000
REQUESTS = 20  # of each question, for each run
PATHS = {"the list, by last change": "/campaigns", "the list, by rate": "/campaigns?sort=rate", "the list, by problems": "/campaigns?sort=problems",
         "a search": "/campaigns?q=777", "the funnel of 50 million messages": "/campaigns/large/funnel",
         "its funnel by reason": "/campaigns/large/funnel?by=reason", "its timeline": "/campaigns/large/timeline"}
# As the roll-up leaves them; no message has to stand behind a counter.
FILL = """
INSERT INTO receiptd.campaign_funnel_total (campaign_id, status, messages, events)
SELECT 'campaign-' || n, s, 100 + n, 100 FROM generate_series(1, {campaigns}) n, unnest('{{0,200,300,310,420,430,440,600,700,800,9001,9002}}'::int2[]) s
UNION ALL SELECT 'large', s, {large} / (1 + s / 100), {large} FROM unnest('{{0,200,300,310,420,430,440,600,700,800,9001,9002}}'::int2[]) s;
INSERT INTO receiptd.campaign_changed SELECT 'campaign-' || n, now() - n * interval '1 second' FROM generate_series(1, {campaigns}) n UNION ALL SELECT 'large', now();
INSERT INTO receiptd.campaign_organisation SELECT 'campaign-' || n, 'o' || n % 10 FROM generate_series(1, {campaigns}) n UNION ALL SELECT 'large', 'o3';
INSERT INTO receiptd.campaign_tally_total (campaign_id, kind, at, key, status, messages, events)
SELECT 'large', 'hour', date_trunc('hour', now()) - n * interval '1 hour', '', s, 1000, 1000 FROM generate_series(0, 24 * 90) n, unnest('{{300,600,700}}'::int2[]) s
UNION ALL SELECT 'large', 'reason', '-infinity', k, 440, 0, 1000 FROM unnest('{{absent,blocked,invalid}}'::text[]) k;
ANALYZE receiptd.campaign_funnel_total, receiptd.campaign_changed, receiptd.campaign_organisation, receiptd.campaign_tally_total
"""


def ask(process, path, token):
    begun = time.monotonic()
    answer = reader.get(process, path, token)
    assert answer.status == 200, f"{path}: {answer}"
    return (time.monotonic() - begun) * 1000


def part_serve(lab, options):
    database = lab.services.create_database("b_serve")
    receiptd = lab.receiptd(database, "none", serve={"listen": "127.0.0.1:0"}, counters={"series": "90d", "reasons": "true"})
    questions = []
    try:
        receiptd.migrate()
        database.execute(FILL.format(campaigns=CAMPAIGNS, large=LARGE))
        process = reader.start(receiptd)
        tokens = {"all": reader.make_token(receiptd, "all", "read"), "one organisation": reader.make_token(receiptd, "own", "read", "--org", "o3")}
        meter = Meter(lab, database, process.pid)
        for name, path in PATHS.items():
            for whose, token in tokens.items():
                ask(process, path, token)
                before, number = meter._server(), REQUESTS * options.repeat
                took = [ask(process, path, token) for _ in range(number)]
                found = {"question": name, "whose": whose, "p50_ms": percentile(took, 0.5), "p95_ms": percentile(took, 0.95),
                         "server_ms": (meter._server() - before) / number * 1000}
                questions.append(found)
                say(f"  {name}, {whose}: {found['p50_ms']:.1f} ms, p95 {found['p95_ms']:.1f} ms, {found['server_ms']:.1f} ms of the server's CPU")
    finally:
        receiptd.close()
        database.drop()
    return {"campaigns": CAMPAIGNS, "requests": REQUESTS * options.repeat, "questions": questions}
