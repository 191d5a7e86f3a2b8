"""commands: `audit` and `funnel` of 10 000 campaigns beside one plain statement that reads the same rows, pair by pair.

The plain statement runs in psql, so that it connects and receives its rows as a command does. `audit` recounts a million messages;
`funnel` reads the counters alone.
"""

import subprocess
import tempfile
import time

from lab import ROOT, say
from meter import summary
from support.daemon import binary

CAMPAIGNS, CHUNK = 10_000, 100_000

# Most are delivered, a third of these opened, some clicked; every fiftieth complains.
ADD = """INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id, status, flags)
SELECT gen_random_uuid()::text, 'org-' || r.c %% 50, 'campaign-' || r.c,
       CASE WHEN r.p < 0.03 THEN 0 WHEN r.p < 0.08 THEN 300 WHEN r.p < 0.1 THEN 440 WHEN r.p < 0.13 THEN 470 WHEN r.p < 0.7 THEN 600
            WHEN r.p < 0.92 THEN 700 ELSE 800 END, CASE WHEN r.p > 0.98 THEN 1 ELSE 0 END
FROM (SELECT floor(random() * %s)::int AS c, random() AS p FROM generate_series(1, %s)) r"""

PLAIN = {
    "audit": "SELECT count(*) FROM (SELECT campaign_id, status, flags, count(*) FROM receiptd.message_inbox GROUP BY 1, 2, 3) g",
    "funnel": "SELECT campaign_id, status, messages, events FROM receiptd.campaign_funnel ORDER BY campaign_id, status",
}
COMMANDS = {"audit": ("audit",), "funnel": ("funnel",), "funnel, JSON": ("funnel", "--format", "json")}


def make(lab, messages):
    """Messages of all campaigns lie among each other. The trigger counts them; the roll-up leaves one row for each count."""
    database = lab.services.create_database()
    installation = lab.receiptd(database, "none")
    installation.migrate()
    for _ in range(messages // CHUNK):
        database.execute(ADD, CAMPAIGNS, CHUNK)
    database.execute("SET search_path = receiptd")
    database.execute("PREPARE rollup AS " + (ROOT / "sql/control/rollup.sql").read_text())
    database.execute("EXECUTE rollup (1000000, 0, 'funnel')")
    database.execute("VACUUM (FREEZE, ANALYZE)")
    return database, installation


def seconds(arguments):
    """Until the process has ended, its output written to a file, as a shell does it."""
    with tempfile.TemporaryFile() as output:
        begun = time.monotonic()
        subprocess.run(arguments, stdin=subprocess.DEVNULL, stdout=output, check=True)
        return time.monotonic() - begun


def part_commands(lab, options):
    """In turns, each command after its plain statement."""
    database, installation = make(lab, options.events)
    plain = {name: ["psql", "-Xqd", database.dsn, "-c", sql] for name, sql in PLAIN.items()}
    commands = {name: [binary(), *arguments, "--config", installation.config_path] for name, arguments in COMMANDS.items()}
    runs = {name: [] for name in COMMANDS}
    try:
        for _ in range(options.repeat):
            for name, arguments in commands.items():
                runs[name].append((seconds(plain[name.partition(",")[0]]), seconds(arguments)))
    finally:
        database.drop()
    results = {name: {"plain": summary([bare for bare, _ in made]), "seconds": summary([own for _, own in made]),
                      "multiple": summary([own / bare for bare, own in made])} for name, made in runs.items()}
    for name, found in results.items():
        say(f"  {name}: {found['seconds']['median']:.2f} s, the plain statement {found['plain']['median']:.2f} s, "
            f"{found['multiple']['median']:.2f} times as long")
    return {"campaigns": CAMPAIGNS, "messages": options.events, "commands": results}
