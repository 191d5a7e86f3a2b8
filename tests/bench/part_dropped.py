"""dropped: `receiptd retire` books and drops a partition of many messages while receipts come at a steady rate for the messages of today.

Open loop. Three figures say what a batch feels: the time until a batch is answered, before and beside the run, which is also longer where
cores and disk are shared; how long a session of a lane waited for a lock, from PostgreSQL's log; and what is committed each second.
"""

import os
import random
import re
import subprocess
import time

import recency
from lab import INBOX_COLUMNS, copy_messages, say
from meter import percentile, summary
from part_latency import PARTITIONS, WARM_UP, _produce
from recency import DAY_MS, ordered_id
from runs import _response_times
from stream import Stream
from support.daemon import binary
from support.progress import wait_until_consumed

ROWS = int(os.environ.get("RECEIPTD_BENCH_DROPPED", "1000000"))
DAYS_OLD = 100
RATE = 2_000
CALM_SECONDS = 15
SETTINGS = {"inbox": {"partitions": "own", "ids": "uuidv7", "recent_rows": 0, "retention": "90d"}}
WAITED = re.compile(r"process (\d+) (?:acquired|still waiting for) (\w+) on (relation|transaction) .* after ([\d.]+) ms")
LANES_LOCKS = ("RowExclusiveLock", "AccessShareLock", "RowShareLock")


def make_old(database, days):
    """A partition of that day, filled before it is attached; `audit --repair` counts its messages."""
    low = (int(time.time() * 1000) // DAY_MS - days) * DAY_MS
    name = "receiptd.message_inbox_p" + time.strftime("%Y%m%d", time.gmtime(low / 1000))
    execute = database.execute
    execute(f"CREATE TABLE {name} (LIKE receiptd.message_inbox INCLUDING DEFAULTS) WITH (fillfactor = 50)")
    for first in range(0, ROWS, recency.SLICE_ROWS):
        end = min(ROWS, first + recency.SLICE_ROWS)
        execute(f"""INSERT INTO {name} ({INBOX_COLUMNS}, status, created_at)
            SELECT {recency.ORDERED_ID}, 'org-1', 'campaign-' || i % 1000, CASE WHEN i % 3 = 0 THEN 0 ELSE 600 END, to_timestamp(at_ms / 1000.0)
            FROM (SELECT i, ({low} + i * {DAY_MS / ROWS})::int8 AS at_ms FROM generate_series({first}, {end - 1}) i) o""")
    execute(f"ALTER TABLE {name} ADD PRIMARY KEY (message_id); CREATE INDEX ON {name} (campaign_id)")
    bounds = [ordered_id(random, ms)[:13] for ms in (low, low + DAY_MS)]
    execute("ALTER TABLE receiptd.message_inbox ATTACH PARTITION {} FOR VALUES FROM ('{}') TO ('{}')".format(name, *bounds))


def make(lab, stream):
    database = lab.services.create_database()
    installation = lab.receiptd(database, "none", **SETTINGS)
    installation.migrate()
    database.execute("SET maintenance_work_mem = '1GB'")
    make_old(database, DAYS_OLD)
    installation.migrate()  # triggers
    copy_messages(database, stream)
    installation.command("audit", "--repair", timeout=1800, check=False)
    assert installation.command("audit", timeout=1800).returncode == 0
    database.execute("VACUUM (FREEZE, ANALYZE)")
    database.execute("CHECKPOINT")
    return database


def longest_lock_wait(lab, begun):
    """Milliseconds; of sessions that only read and write rows."""
    with open(lab.services.directory / "postgres.log", errors="replace") as log:
        log.seek(begun)
        found = [float(match[4]) for match in map(WAITED.search, log) if match and (match[3] == "transaction" or match[2] in LANES_LOCKS)]
    return max(found, default=0.0)


def retire(installation):
    """(when it began, when it ended)."""
    begun = time.time()
    done = subprocess.run([binary(), "retire", "--config", str(installation.config_path)], text=True, capture_output=True, timeout=3600)
    assert done.returncode == 0 and "and dropped" in done.stdout, done.stdout + done.stderr
    return begun, time.time()


def run(lab, stream, seconds):
    database, topic = make(lab, stream), lab.services.create_topic(PARTITIONS)
    say(f"  a partition of {ROWS:,} messages, {stream.message_count:,} of today")
    installation = lab.receiptd(database, topic, log={"level": "debug", "stats_interval": "0s"}, **SETTINGS)
    process, begun_log = installation.start(), (lab.services.directory / "postgres.log").stat().st_size
    try:
        process.wait_for_log("consuming \\d+ partitions", timeout=60)
        generator = _produce(lab, topic, stream, RATE, seconds, 10)
        calm = time.time() + WARM_UP
        time.sleep(WARM_UP + CALM_SECONDS)
        begun, ended = retire(installation)
        assert generator.poll() is None, "the generator ended before the partition was dropped: raise `seconds`"
        time.sleep(5)
        generator.terminate()
        generator.wait()
        wait_until_consumed(database, topic, process)
        drift = installation.command("audit", check=False, timeout=1800).returncode
        process.stop()
        answers = _response_times(process.log())
    finally:
        installation.close()
    left, remembered = (database.value(f"SELECT count(*) FROM receiptd.{name}") for name in ("message_inbox", "retired_message"))
    assert left == stream.message_count and remembered == ROWS, (left, remembered)
    database.drop()
    topic.drop()
    times = {"calm_ms": [ms for at, ms, _ in answers if calm <= at < begun], "beside_ms": [ms for at, ms, _ in answers if begun <= at <= ended + 1]}
    found = {name: {"p50": percentile(all_of, 0.5), "p99": percentile(all_of, 0.99), "max": max(all_of)} for name, all_of in times.items()}
    worst = max((ms, at - begun) for at, ms, _ in answers if begun <= at <= ended + 1)
    found |= {"seconds": ended - begun, "drift": drift, "lock_ms": longest_lock_wait(lab, begun_log), "worst_at": worst[1]}
    say(f"  {found['seconds']:.1f} s, longest batch {found['beside_ms']['max']:.0f} ms ({worst[1]:.1f} s after the begin), before {found['calm_ms']['max']:.0f} ms; "
        f"longest wait for a lock {found['lock_ms']:.0f} ms; audit ended with {drift}")
    return found


def part_dropped(lab, options):
    seconds = 60 + 50 * ROWS // 1_000_000
    name = f"v7_today_{int(time.time()) // 86_400}"
    today = int(time.time() * 1000) // DAY_MS * DAY_MS
    stream = Stream("single", RATE * (seconds + WARM_UP), ids=name, make_id=lambda rng, number: ordered_id(rng, today + number))
    with lab.setting(log_lock_waits="on", deadlock_timeout="10ms"):
        runs = [run(lab, stream, seconds) for _ in range(options.repeat)]
    figures = {f"{when}_{name}": summary([one[f"{when}_ms"][name] for one in runs]) for when in ("calm", "beside") for name in ("p50", "p99", "max")}
    return {"rows": ROWS, "rate": RATE, "figures": figures, "seconds": summary([one["seconds"] for one in runs]),
            "lock_ms": summary([one["lock_ms"] for one in runs]), "drift": sum(one["drift"] != 0 for one in runs)}
