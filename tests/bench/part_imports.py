"""imports: a million people of one organisation at once, beside a steady stream of receipts and other organisations.

Three organisations have more due actions than can run (the one of the import; one of the same weight; one of weight 3), a fourth one action
every tenth of a second. Lateness is the server's clock when an action was claimed against the time at which it was due; that of receipts
is measured as in `latency`. Ends after a fixed time, not when all is done.
"""

import subprocess
import threading
import time

from lab import say
from part_actions import ENDPOINT
from part_intake import start_nginx
from part_latency import PARTITIONS, WARM_UP, _finish, _percentiles, _produce
from stream import Stream
from support.daemon import binary

RATE, QUIET, LONG = 5_000, 8, 120  # receipts/s; seconds before the import, seconds beside it
PREPARE = 100  # seconds for what is made before
SINGLES = 0.1  # seconds between two actions of the small organisation
MANY = 200_000  # actions of each of the other two large ones
WINDOW = 2  # seconds of a point of the plot

PIPELINES = [{"name": "call", "webhook": "nginx"}]

ADD = """
WITH p AS (SELECT id FROM receiptd.pipeline WHERE name = 'call'),
     r AS (INSERT INTO receiptd.run (pipeline_id, org_id, subject, subject_hash)
           SELECT p.id, %s, 'n' || g, receiptd.action_subject_hash(%s, 'n' || g) FROM p, generate_series(1, %s) g
           RETURNING id, pipeline_id, org_id, subject, subject_hash)
INSERT INTO receiptd.action (run_id, pipeline_id, step, lane, subject_hash, org_id, perform_at)
SELECT r.id, r.pipeline_id, 0, receiptd.action_lane_of(r.subject_hash), r.subject_hash, r.org_id,
       to_timestamp(%s) + row_number() OVER () * %s * interval '1 second'
FROM r
"""
LATE = """
SELECT count(*), percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY late), max(late)
FROM (SELECT extract(epoch FROM started_at - perform_at)::float8 * 1000 AS late
      FROM receiptd.action WHERE org_id = 'single' AND started_at IS NOT NULL AND perform_at BETWEEN to_timestamp(%s) AND to_timestamp(%s)) a
"""
STARTED = """
SELECT org_id, floor((extract(epoch FROM started_at)::float8 - %s) / %s)::int AS part, count(*)
FROM receiptd.action WHERE started_at IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2
"""


def add(database, org, count, at, gap):
    database.execute(ADD, org, org, count, at, gap)


def late(database, begin, end):
    count, found, worst = database.query(LATE, begin, end)[0]
    return {"count": count, "p50": found[0], "p99": found[1], "worst": worst} if count else None


def write_people(path, count):
    with open(path, "w") as file:
        file.write("org_id,subject\n")
        file.writelines(f"heavy,person-{n:07d}\n" for n in range(count))


def receipts(database, begin, end):
    return _percentiles(database, f"m.status_at BETWEEN to_timestamp({begin}) AND to_timestamp({end})")


class Import(threading.Thread):
    """The command, and when it ended."""

    def __init__(self, path, config):
        super().__init__()
        self.command = [binary(), "actions", "--config", str(config), "import", str(path), "--pipeline", "call"]
        self.ended = None

    def run(self):
        done = subprocess.run(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.ended = time.time()
        assert done.returncode == 0, done.stdout


def beside(lab, installation, database, topic, stream, people):
    seconds = QUIET + LONG
    process = installation.start()
    try:
        process.wait_for_log("consuming \\d+ partitions", timeout=60)
        process.wait_for_log("pipelines are in effect", 60)
        installation.command("ctl", "org", "set", "triple", "--weight", "3")
        due = time.time() + PREPARE
        for org in ("even", "triple"):
            add(database, org, MANY, due, 0)
        begun = due - QUIET
        add(database, "single", int(seconds / SINGLES), begun, SINGLES)
        database.execute("VACUUM ANALYZE receiptd.action")
        assert time.time() < begun - WARM_UP, "PREPARE is too short here"
        time.sleep(begun - WARM_UP - time.time())
        generator = _produce(lab, topic, stream, RATE, seconds, 10)
        time.sleep(due - time.time())
        importing = Import(people, installation.config_path)
        importing.start()
        _finish(generator, seconds)
        importing.join(120)
        assert importing.ended, "the import did not end"
        ended = time.time()
        process.stop()
    finally:
        process.close()
    runs = database.value("SELECT count(*) FROM receiptd.run WHERE org_id = 'heavy'")
    return {"runs": runs, "import_seconds": importing.ended - due, "import_ended": importing.ended - begun,
            "receipts_before": receipts(database, begun + 1, begun + QUIET), "receipts_beside": receipts(database, due, importing.ended),
            "receipts_after": receipts(database, importing.ended, ended),
            "single_before": late(database, begun, due), "single_beside": late(database, due, importing.ended),
            "single_after": late(database, importing.ended, begun + seconds),
            "due": due - begun, "ended": ended - begun,
            "started": [(org, part, count) for org, part, count in database.query(STARTED, begun, WINDOW)]}


def shares(result):
    """Calls a second of the large organisations between the beginning of the import and the end, and the plot's lines."""
    lines, rates = {}, {}
    first, last = result["due"] + WINDOW, result["ended"] - WINDOW
    for org, part, count in result["started"]:
        at = (part + 0.5) * WINDOW
        if 0 <= at <= last:
            lines.setdefault(org, []).append((at, count / WINDOW))
        if org != "single" and first <= part * WINDOW and (part + 1) * WINDOW <= last:
            rates.setdefault(org, []).append(count / WINDOW)
    return lines, {org: sum(each) / len(each) for org, each in rates.items()}


def part_imports(lab, options):
    stream = Stream("single", RATE * (WARM_UP + QUIET + LONG))
    count = options.events
    people = lab.workdir / "people.csv"
    write_people(people, count)
    topic = lab.services.create_topic(PARTITIONS)
    nginx, _ = start_nginx(lab.workdir)
    try:
        with lab.database(stream) as database:
            installation = lab.receiptd(database, topic, log={"stats_interval": "0s"}, pipelines=PIPELINES,
                                        control={"socket": str(lab.workdir / "imports.sock")},
                                        actions={"allow_private": True, "endpoints": [ENDPOINT], "poll_interval": "50ms"})
            try:
                result = beside(lab, installation, database, topic, stream, people)
            finally:
                installation.close()
    finally:
        nginx.terminate()
        nginx.wait()
        topic.drop()
    assert result["runs"] == count, f"{result['runs']} runs of {count} lines"
    lines, rates = shares(result)
    result |= {"repeat": 1, "people": count, "receipt_rate": RATE, "rates": rates, "lines": lines}
    single, beside_it = result["single_beside"], result["receipts_beside"]
    say(f"  {count:,} people in {result['import_seconds']:.1f} s; receipts p99 {result['receipts_before']['p99']:.1f} ms before,"
        f" {beside_it['p99']:.1f} ms beside; a single action late p99 {single['p99']:.0f}, at most {single['worst']:.0f} ms,"
        f" {rates}")
    return result
