"""latency: from the moment at which an event is due at the generator to the commit of its transaction.

The commit's time is PostgreSQL's own (track_commit_timestamp): each message gets one receipt, so the transaction that
last wrote its row (xmin) is the one that applied it; the moment when it was due is the event's time, in status_at. Both
are clocks of the same machine, nothing is polled while it runs, and nothing is sampled. A commit's timestamp is taken
some microseconds before the commit is visible. What is due in the first WARM_UP seconds is left out: then the broker opens
the producer's identity and the partitions' logs, once for each topic. What is measured is more than append to commit: the generator's linger of
1 ms and the way to the broker are in it, and, where a record carries several events, the wait for the last of them.
"""

import json
import subprocess

from lab import ROOT, fill, say
from stream import Stream
from support.progress import wait_until_consumed

# events/s, events of a record, seconds
RATES = ((100, 1, 20), (1_000, 1, 20), (10_000, 10, 20), (50_000, 50, 15))
PARTITIONS = 8
WARM_UP = 4  # seconds

LATENCY = """
SELECT count(*), percentile_cont(ARRAY[0.5, 0.9, 0.99, 0.999]) WITHIN GROUP (ORDER BY ms), max(ms)
FROM (SELECT extract(epoch FROM pg_xact_commit_timestamp(m.xmin) - m.status_at)::float8 * 1000 AS ms
      FROM receiptd.message_inbox m WHERE m.status > 0 AND {condition}) l
"""


def _produce(lab, topic, stream, rate, seconds, per_record, first=0, partitions=PARTITIONS):
    command = [ROOT / "build/tests/bench/produce", "--brokers", lab.services.brokers, "--topic", topic.name,
               "--messages", stream.messages_path, "--rate", str(rate), "--seconds", str(seconds),
               "--per-record", str(per_record), "--first-partition", str(first), "--partitions", str(partitions), "--warm-up", str(WARM_UP)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def _finish(producer, seconds):
    output, _ = producer.communicate(timeout=seconds + 90)
    assert producer.returncode == 0, "the generator failed, see above"
    return json.loads(output)


def _percentiles(database, condition="true"):
    count, found, worst = database.query(LATENCY.format(condition=condition))[0]
    if not count:
        return {"count": 0}
    return dict(zip(("p50", "p90", "p99", "p999"), found), max=worst, count=count)


def at_rate(lab, stream, rate, per_record, seconds):
    topic = lab.services.create_topic(PARTITIONS)
    with lab.database(stream) as database:
        receiptd = lab.receiptd(database, topic, log={"stats_interval": "0s"})
        process = receiptd.start()
        try:
            process.wait_for_log("consuming \\d+ partitions", timeout=60)
            generator = _finish(_produce(lab, topic, stream, rate, seconds, per_record), seconds)
            wait_until_consumed(database, topic, process)
            process.stop()
        finally:
            receiptd.close()
        arrived = database.value("SELECT count(*) FROM receiptd.message_inbox WHERE status > 0")
        result = _percentiles(database, f"m.status_at >= to_timestamp({generator['measured_from']})")
    topic.drop()
    assert arrived == rate * (WARM_UP + seconds), f"{arrived} of {rate * (WARM_UP + seconds)} events arrived"
    result.update(rate=rate, per_record=per_record, seconds=seconds, generator=generator)
    return result


def beside_backlog(lab, stream, rate=1_000, seconds=20):
    """Partition 0 has a backlog when the daemon starts; the others get fresh events meanwhile."""
    fresh = Stream("single", rate * (WARM_UP + seconds), salt=1)
    topic = lab.services.create_topic(PARTITIONS)
    fill(topic, stream, partition=0)
    with lab.database(stream) as database:
        with open(fresh.messages_path, "rb") as file, database.connection.cursor() as cursor, \
                cursor.copy("COPY receiptd.message_inbox (message_id, org_id, campaign_id) FROM STDIN") as target:
            target.write(file.read())
        database.execute("CREATE TABLE fresh AS SELECT message_id FROM receiptd.message_inbox WHERE false")
        with open(fresh.messages_path, "rb") as file, database.connection.cursor() as cursor, \
                cursor.copy("COPY fresh FROM STDIN") as target:
            target.write(b"".join(line.split(b"\t")[0] + b"\n" for line in file))
        database.execute("ALTER TABLE fresh ADD PRIMARY KEY (message_id)")
        database.execute("ANALYZE fresh")
        database.execute("VACUUM ANALYZE receiptd.message_inbox")
        receiptd = lab.receiptd(database, topic, log={"stats_interval": "0s"})
        generator = _produce(lab, topic, fresh, rate, seconds, 1, first=1, partitions=PARTITIONS - 1)
        process = receiptd.start()
        try:
            _finish(generator, seconds)
            wait_until_consumed(database, topic, process, timeout=180)
            process.stop()
        finally:
            receiptd.close()
        # While the backlog lasts: due after the first and before the last commit of the backlog.
        first, last = database.query(
            "SELECT min(t), max(t) FROM (SELECT pg_xact_commit_timestamp(xmin) AS t FROM receiptd.message_inbox m"
            " WHERE status > 0 AND NOT EXISTS (SELECT FROM fresh f WHERE f.message_id = m.message_id)) c")[0]
        during = _percentiles(database, "EXISTS (SELECT FROM fresh f WHERE f.message_id = m.message_id)"
                                        f" AND m.status_at BETWEEN '{first}' AND '{last}'")
        after = _percentiles(database, "EXISTS (SELECT FROM fresh f WHERE f.message_id = m.message_id)"
                                       f" AND m.status_at > '{last}'")
    topic.drop()
    return {"rate": rate, "backlog": stream.event_count, "backlog_seconds": (last - first).total_seconds(),
            "during": during, "after": after}


def part_latency(lab, options):
    stream = Stream("single", options.events)
    results = []
    for rate, per_record, seconds in RATES:
        seconds = min(seconds, stream.message_count // rate - WARM_UP)
        if seconds < 1:
            say(f"  {rate:>6,}/s: needs --events {rate * (WARM_UP + 1)} or more, left out")
            continue
        result = at_rate(lab, stream, rate, per_record, seconds)
        results.append(result)
        say(f"  {rate:>6,}/s: p50 {result['p50']:.1f}  p99 {result['p99']:.1f}  p99.9 {result['p999']:.1f} ms "
            f"(generator at most {result['generator']['generator_behind_ms']:.1f} ms behind)")
    backlog = beside_backlog(lab, stream)
    during = backlog["during"]
    if during["count"]:
        say(f"  beside a backlog of {backlog['backlog']:,}: p50 {during['p50']:.1f}  p99 {during['p99']:.1f} ms")
    return {"rates": results, "backlog": backlog}
