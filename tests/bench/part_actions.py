"""actions: what pipelines cost receipts, how late actions begin, how many, and what waiting rows cost.

Rows are inserted as transitions and imports insert them; the receiver is nginx with an empty 200. Lateness is the server's clock
when an action was claimed against the time at which it was due.
"""

import statistics
import time
from contextlib import contextmanager

from lab import say
from meter import summary
import part_actions_receipts
from part_intake import NGINX_PORT, start_nginx

PACED, PACED_SECONDS, AHEAD = 2_000, 15, 4
FLOOD = 20_000
DECISIONS = 100_000
LANES = list(range(16))
LOOKS = 400
DUE = 64  # of a round that has something to do

ENDPOINT = {"name": "nginx", "url": f"http://127.0.0.1:{NGINX_PORT}/", "concurrency": 64}
PIPELINES = [{"name": "call", "webhook": "nginx"}, {"name": "pass", "webhook": "nginx", "if": "CLICKED"}]

ADD = """
WITH p AS (SELECT id FROM receiptd.pipeline WHERE name = %s),
     r AS (INSERT INTO receiptd.run (pipeline_id, org_id, subject, subject_hash)
           SELECT p.id, 'o' || mod(g, 100), %s || g, receiptd.action_subject_hash('o' || mod(g, 100), %s || g)
           FROM p, generate_series(1, %s) g
           RETURNING id, pipeline_id, org_id, subject, subject_hash)
INSERT INTO receiptd.action (run_id, pipeline_id, step, lane, subject_hash, org_id, perform_at)
SELECT r.id, r.pipeline_id, 0, receiptd.action_lane_of(r.subject_hash), r.subject_hash, r.org_id,
       clock_timestamp() + %s * interval '1 second' + row_number() OVER () * %s * interval '1 second'
FROM r
"""
LOOK = "SELECT * FROM receiptd.actions_claim(%s, 'bench', 128, 64, 60000, '{}', '{}', '{}', 0, 1, 0, 0, 1, 0, 'UTC', NULL)"
BACK = """
UPDATE receiptd.action SET status = 'pending', lease_until = NULL, attempt = 0 WHERE status = 'running'
"""
LATE = """
SELECT percentile_cont(ARRAY[0.5, 0.99]) WITHIN GROUP (ORDER BY extract(epoch FROM a.started_at - a.perform_at)::float8 * 1000),
       max(extract(epoch FROM a.started_at - a.perform_at)::float8 * 1000), count(*)
FROM receiptd.action a JOIN receiptd.run r ON r.id = a.run_id WHERE r.subject LIKE 'paced%%'
"""


def add(database, pipeline, name, count, ahead=0.0, gap=0.0):
    database.execute(ADD, pipeline, name, name, count, ahead, gap)


def wait_until_done(database, process, timeout=300):
    process.wait_for(lambda: database.value("SELECT count(*) FROM receiptd.run WHERE status = 'active'") == 0, timeout,
                     "all runs end")


@contextmanager
def running(lab):
    topic, database = lab.services.create_topic(1), lab.services.create_database()
    receiptd = lab.receiptd(database, topic, log={"stats_interval": "0s"}, pipelines=PIPELINES,
                            actions={"allow_private": True, "endpoints": [ENDPOINT], "poll_interval": "50ms"})
    receiptd.migrate()
    process = receiptd.start()
    try:
        process.wait_for_log("pipelines are in effect", 60)
        yield database, process
    finally:
        if process.running:
            process.stop()
        database.drop()
        topic.drop()


def flood(database, process, pipeline, name, count):
    add(database, pipeline, name, count)
    database.execute("ANALYZE receiptd.action")
    begun = time.monotonic()
    wait_until_done(database, process)
    return count / (time.monotonic() - begun)


@contextmanager
def copy(lab, database):
    """Repeats the same for a comparison turn by turn: a host that gets slower makes both slower. Connections are new."""
    twin = lab.services.create_database(f"{database.name}_twin", template=database)
    for each in (database, twin):
        each.execute("SET search_path = receiptd")
    try:
        yield twin
    finally:
        twin.drop()


def in_turns(databases, turns, done):
    """For each database the median time of a round of all lanes, in ms; `done` is called behind each with its rows."""
    times = {database: [] for database in databases}
    for database in databases:
        database.execute("UPDATE receiptd.action_lane SET owner = 'bench', lease_until = now() + interval '1 hour'")
    for turn in range(turns):
        for database in databases if turn % 2 == 0 else reversed(databases):
            begun = time.perf_counter()
            rows = database.query(LOOK, LANES)
            times[database].append((time.perf_counter() - begun) * 1000)
            done(database, rows)
    return [statistics.median(times[database][turns // 4:]) for database in databases]


def look(databases):
    """Rounds that have nothing to do."""
    def nothing(_, rows):
        assert len(rows) == 1
    return in_turns(databases, LOOKS, nothing)


def claim(databases):
    """Rounds in which so many are due. They stay due."""
    def put_back(database, rows):
        assert len(rows) > 1, "nothing was due"
        database.execute(BACK)
    for database in databases:
        add(database, "call", "due-", DUE)
        database.execute("ANALYZE receiptd.action")
    return in_turns(databases, LOOKS // 4, put_back)


def part_actions(lab, options):
    receipts = part_actions_receipts.cost(lab, options)
    nginx, _ = start_nginx(lab.workdir)
    waiting = 10 * options.events
    try:
        with running(lab) as (database, process):
            database.execute("SET search_path = receiptd")
            add(database, "call", "paced", PACED * PACED_SECONDS, AHEAD, 1 / PACED)
            wait_until_done(database, process)
            (p50, p99), worst, count = database.query(LATE)[0]
            calls = [flood(database, process, "call", f"flood{n}-", FLOOD) for n in range(options.repeat)]
            passed = [flood(database, process, "pass", f"pass{n}-", DECISIONS) for n in range(options.repeat)]
            process.stop()
            database.execute("VACUUM ANALYZE receiptd.action")
            with copy(lab, database) as twin:
                say(f"  {waiting:,} rows that wait")
                for part in range(10):
                    add(database, "call", f"waits{part}-", waiting // 10, 86_400)
                database.execute("VACUUM ANALYZE receiptd.action")
                database.execute("CHECKPOINT")  # what has to be written is, before anything is measured
                empty, full = look([twin, database])
                due_empty, due_full = claim([twin, database])
    finally:
        nginx.terminate()
        nginx.wait()
    say(f"  late: p50 {p50:.1f} ms, p99 {p99:.1f} ms of {count}; calls/s {max(calls):.0f}; passed over/s {max(passed):.0f};"
        f" a look {empty:.2f} ms, with {waiting:,} waiting {full:.2f} ms; a claim {due_empty:.2f} ms, {due_full:.2f} ms")
    return {"receipts": receipts, "claim_empty_ms": due_empty, "claim_full_ms": due_full, "due": DUE, "rate": PACED, "p50": p50, "p99": p99, "worst": worst, "calls": summary(calls), "passed": summary(passed), "look_empty_ms": empty,
            "look_full_ms": full, "waiting": waiting}
