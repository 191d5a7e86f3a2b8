"""One measured run each: of receiptd from Kafka, and of the bare statements."""

import json
import re
import subprocess
import time
from contextlib import nullcontext
from datetime import datetime

from lab import ROOT
from meter import Meter, percentile, rss_mib

POLL_SECONDS = 0.02
ANSWERED = re.compile(r"lane (\d+): batch \d+ of (\d+) messages, (\d+) events answered in (\d+) us")
CONSUMING = re.compile(r"^time=(\S+) .*consuming \d+ partitions", re.MULTILINE)


def _log_time(text):
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


COUNTED = "SELECT COALESCE(sum(events), 0) FROM receiptd.campaign_funnel WHERE status > 0"


def check_result(database, stream, topic=None):
    """A run that did not do all work is no figure, and may be a defect: collects everything that shows where the rest is."""
    events = database.value(COUNTED)
    changed = database.value("SELECT count(*) FROM receiptd.message_inbox WHERE status > 0")
    if events == stream.event_count and changed == stream.message_count:
        return
    found = {
        "positions": database.query("SELECT partition, min(next_offset), max(next_offset) FROM receiptd.consumer_progress GROUP BY 1 ORDER BY 1"),
        "log": topic and topic.watermarks(),
        "parked": database.value("SELECT count(*) FROM receiptd.parked_event"),
        "dead letters": database.query('SELECT reason, partition, count(*), min("offset"), max("offset") FROM receiptd.dead_letter GROUP BY 1, 2'),
        "rows": database.value("SELECT count(*) FROM receiptd.message_inbox"),
    }
    time.sleep(3)
    later = database.value(COUNTED)
    raise AssertionError(f"{stream.name}: {events} of {stream.event_count} events counted, 3 s later {later}; {changed} of "
                         f"{stream.message_count} rows changed; {found}")


def _response_times(log):
    """(seconds since the epoch of the answer, milliseconds, events) of each batch that had events."""
    found = []
    for line in log.splitlines():
        match = ANSWERED.search(line)
        if match and int(match[3]) > 0:
            found.append((_log_time(line[5:29]), int(match[4]) / 1000, int(match[3])))
    return found


def _ends(topic, records):
    """The number of records; the watermarks show acknowledged ones a little later."""
    deadline = time.monotonic() + 60
    while (ends := sum(high for low, high in topic.watermarks().values())) != records:
        assert time.monotonic() < deadline, f"the topic shows {ends} of {records} records"
        time.sleep(0.1)
    return ends


def run_receiptd(lab, stream, topic, lanes=8, connections=2, settings=None, timeout=300, around=None,
                 fillfactor=None, rows=None, large=None, rest_seconds=None):
    """From 'consuming' to the last commit. `around(process)`: a context manager that measures something else meanwhile; `.receiptd` is its
    installation. `large`: not a
    copy of a template but this database, whose rows are too many to be counted afterwards. `rest_seconds`: how long after the last
    commit memory is measured once more."""
    with nullcontext(large) if large else lab.database(stream, fillfactor, rows) as database:
        before = database.value(COUNTED) if large else 0
        receiptd = lab.receiptd(database, topic, lanes=lanes, postgres={"connections": connections},
                                log={"level": "debug", "stats_interval": "0s"}, **(settings or {}))
        ends = _ends(topic, stream.record_count)
        process = receiptd.start()
        process.receiptd = receiptd
        try:
            meter = Meter(lab, database, process.pid)
            begun = _wait_for_start(process)
            meter.start("receiptd/%/lanes-%")
            if around:
                with around(process):
                    timeline, end = _follow(database, process, topic, ends * lanes, timeout)
            else:
                timeline, end = _follow(database, process, topic, ends * lanes, timeout)
            used = meter.stop()
            if rest_seconds:
                time.sleep(rest_seconds)
                used["later_rss_mib"] = rss_mib(process.pid)
            if large:
                counted = database.value(COUNTED) - before
                assert counted == stream.event_count, f"{stream.name}: {counted} of {stream.event_count} events counted"
            else:
                check_result(database, stream, topic)
            process.stop()
        finally:
            receiptd.close()
        log = process.log()
        answers = _response_times(log)
        rows = sum(int(found[2]) for found in ANSWERED.finditer(log))
    times = [milliseconds for _, milliseconds, _ in answers] or [0.0]
    seconds = end - begun
    return {
        "begun": begun, "seconds": seconds, "events": stream.event_count, "rows": stream.message_count,
        "events_per_second": stream.event_count / seconds, "batches": len(answers), "events_per_row": stream.event_count / max(1, rows),
        "batches_per_minute": len(answers) / seconds * 60, "records_per_minute": stream.record_count / seconds * 60,
        "response_ms": {"mean": sum(times) / len(times), "p50": percentile(times, 0.5), "p99": percentile(times, 0.99),
                        "max": max(times)},
        "cpu": used, "daemon_us_per_event": used["process"] / stream.event_count * 1e6,
        "backends_us_per_event": used["backends"] / stream.event_count * 1e6,
        "server_us_per_event": used["server"] / stream.event_count * 1e6,
        "broker_us_per_event": used["broker"] / stream.event_count * 1e6,
        "wal_bytes_per_event": used["wal_bytes"] / stream.event_count, "peak_rss_mib": used["peak_rss_mib"],
        **({"later_rss_mib": used["later_rss_mib"]} if rest_seconds else {}),
        "timeline": [(at - begun, count / (ends * lanes)) for at, count in timeline],
        "answers": [(at - begun, milliseconds, events) for at, milliseconds, events in answers],
    }


def run_between(run, cases, base, repeat):
    """Each run of a case stands between two of `base`, since the host's speed changes from one minute to the next: the runs of each case, and what
    share of its neighbours' mean rate each run has."""
    runs, shares = {case: [] for case in (base, *cases)}, {case: [] for case in cases}
    runs[base].append(run(base))
    for number in range(repeat):
        for case in cases if number % 2 == 0 else reversed(cases):
            runs[case].append(run(case))
            runs[base].append(run(base))
            beside = sum(made["events_per_second"] for made in runs[base][-2:]) / 2
            shares[case].append(runs[case][-1]["events_per_second"] / beside)
    return runs, {base: [1.0], **shares}


def _wait_for_start(process):
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        match = CONSUMING.search(process.log())
        if match:
            return _log_time(match[1])
        assert process.running, process.log_tail()
        time.sleep(0.005)
    raise AssertionError(f"receiptd did not begin to consume\n{process.log_tail()}")


def _follow(database, process, topic, goal, timeout):
    """Polls the sum of all positions, one small statement, until it reaches the target: the end is at most one poll late."""
    timeline = []
    deadline = time.time() + timeout
    sql = "SELECT COALESCE(sum(next_offset), 0)::int8 FROM receiptd.consumer_progress WHERE topic = %s"
    while True:
        done = database.value(sql, topic.name)
        now = time.time()
        timeline.append((now, done))
        if done >= goal:
            return timeline, now
        assert process.running and now < deadline, f"{done} of {goal} positions\n{process.log_tail()}"
        time.sleep(POLL_SECONDS)


def _set_keys(database, keys):
    """Writes the inbox again with keys of that type, in the order in which it was: for both types, so that they differ in nothing else."""
    database.execute("SET maintenance_work_mem = '256MB'")
    database.execute("DROP TRIGGER receiptd_refuse_change ON receiptd.message_inbox")  # names the column, so its type could not change
    if keys == "uuid":
        database.execute("ALTER TABLE receiptd.message_inbox ALTER message_id TYPE uuid USING message_id::uuid")
    else:
        database.execute("ALTER TABLE receiptd.message_inbox ALTER message_id TYPE text COLLATE \"C\" USING lower(message_id)")
    database.execute("VACUUM (FREEZE, ANALYZE) receiptd.message_inbox")
    return [database.value(f"SELECT {size}::float8 / 1048576")
            for size in ("pg_table_size('receiptd.message_inbox')", "pg_relation_size('receiptd.message_inbox_pkey')")]


def run_limit(lab, stream, statement="apply", lanes=8, connections=2, batch=4000, depth=2, keys=None, large=None, recent=None):
    """The same statements with the same arrays, folded before the clock starts. `keys`: text or uuid, in a table written again. `large`: as
    of run_receiptd(). `recent`: boundary and column of its recent set."""
    with nullcontext(large) if large else lab.database(stream) as database:
        before = database.value(COUNTED) if large else 0
        sizes = _set_keys(database, keys) if keys else None
        database.execute("INSERT INTO receiptd.consumer_progress (topic, partition, lane, next_offset, generation)"
                         " SELECT 'limit', p, l, 0, 1 FROM generate_series(0, 1023) p, generate_series(0, %s - 1) l"
                         " WHERE p < 8", lanes)
        if not large:
            database.execute("CHECKPOINT")
        process = subprocess.Popen(
            [ROOT / "build/tests/bench/limit", "--dsn", database.dsn, "--records", stream.records_path,
             "--statement", statement, "--connections", str(connections), "--lanes", str(lanes),
             "--batch", str(batch), "--depth", str(depth), "--ids", keys or "text", *(["--recent-since", recent[0], "--recent-column", recent[1]] if recent else [])],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout.readline() == "ready\n", "the limit program failed, see above"
            meter = Meter(lab, database, process.pid)
            meter.start("receiptd/bench/%")
            process.stdin.write("\n")
            process.stdin.flush()
            line = process.stdout.readline()
            assert line, "the limit program failed, see above"
            used = meter.stop()
            result = json.loads(line)
            process.stdin.close()
            assert process.wait(30) == 0
        finally:
            process.kill()
            process.wait()
        if large:
            counted = database.value(COUNTED) - before
            assert counted == stream.event_count, f"{stream.name}: {counted} of {stream.event_count} events counted by the bare statement"
            database.execute("DELETE FROM receiptd.consumer_progress WHERE topic = 'limit'")
        elif statement == "apply":
            check_result(database, stream)
    result.update(events_per_second=result["events"] / result["seconds"],
                  rows_per_second=result["messages"] / result["seconds"], cpu=used,
                  backends_us_per_event=used["backends"] / result["events"] * 1e6,
                  server_us_per_event=used["server"] / result["events"] * 1e6,
                  wal_bytes_per_event=used["wal_bytes"] / result["events"])
    if sizes:
        result.update(table_mib=sizes[0], key_index_mib=sizes[1])
    return result


def run_full_update(lab, stream):
    """One UPDATE of every row, one backend: the table's cost without any search."""
    with lab.database(stream) as database:
        database.execute("SET synchronous_commit = off")
        meter = Meter(lab, database)
        meter.own = 0
        meter.start("%")
        begun = time.time()
        database.execute("UPDATE receiptd.message_inbox SET prev_status = status, prev_flags = flags, status = 600,"
                         " status_at = now(), updated_at = now()")
        seconds = time.time() - begun
        used = meter.stop()
    return {"seconds": seconds, "events": stream.message_count, "rows_per_second": stream.message_count / seconds,
            "events_per_second": stream.message_count / seconds, "cpu": used,
            "server_us_per_event": used["server"] / stream.message_count * 1e6,
            "wal_bytes_per_event": used["wal_bytes"] / stream.message_count}
