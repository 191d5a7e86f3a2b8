"""soak: an hour of real traffic at about half of two cores' capacity; measures what grows meanwhile.

It behaves as a platform does: messages are inserted (COPY, every half second) some seconds before their first receipt, their receipts come by an open-loop
generator in hundreds a record, and five minutes after their insert `receiptd retire` deletes them. Campaigns come and go. Autovacuum and
checkpoints come as they like; Kafka deletes old segments; the daemon forgets the ids of deleted messages after ten minutes. The daemon is started when a minute's receipts wait for it, so that it has been at full
load before the hour. In the middle of the hour it is stopped for twenty seconds (SIGSTOP): its catching up must not need more. At the end every
receipt must have been counted once, and the audit finds no drift.
"""

import hashlib
import json
import os
import queue
import random
import re
import signal
import threading
import time
import urllib.request
from pathlib import Path

from lab import OUT, say
from meter import Meter, cpu, cpu_ticks
from support.progress import wait_until_consumed

MINUTES = 60
RATE = int(os.environ.get("RECEIPTD_BENCH_SOAK_RATE", "20000"))  # receipts/s
PER_MESSAGE = 3.15  # receipts of a message, as in stream.real
PARTITIONS = 8
PER_RECORD = 100
TICK = 0.02  # seconds; what falls into one leaves together
LEAD = 3.0  # seconds from a message's insert until its first receipt may come
LIFE = 300  # seconds that messages are kept (inbox.retention); a quarter of a shorter run, but a minute
REMEMBERED = "10m"  # how long ids of deleted messages are
COPY_EVERY, RETIRE_EVERY, SAMPLE_EVERY = 0.5, 15.0, 10.0
BACKLOG, PAUSE = 60.0, 20.0  # seconds of receipts that wait at the start; how long the daemon is stopped in the middle
CAMPAIGN_MESSAGES, CAMPAIGNS_AT_ONCE = 2_000, 25
RETENTION = {"retention_bytes": 128 << 20, "segment_bytes": 32 << 20}  # of a partition; the broker checks every five minutes
DELIVERED = 600

TABLES = """
SELECT relname, pg_table_size(relid), pg_indexes_size(relid), n_dead_tup, autovacuum_count
FROM pg_stat_user_tables WHERE schemaname = 'receiptd' AND (pg_table_size(relid) > 65536 OR n_dead_tup > 0)
"""
POSITIONS = "SELECT COALESCE(sum(next_offset), 0)::int8 FROM receiptd.consumer_progress"


class Traffic:
    """The coming traffic: messages are made a lead ahead, their receipts lie in the slot of the tick at which they are due."""

    def __init__(self, rate, seed="soak"):
        self.rng, self.rate, self.slots = random.Random(seed), rate, {}
        self.messages, self.due = 0, 0.0

    def make(self, tick):
        """The messages of that tick, as lines for COPY."""
        self.due += self.rate / PER_MESSAGE * TICK
        lines, rng = [], self.rng
        while self.messages < self.due:
            number, self.messages = self.messages, self.messages + 1
            digits = hashlib.md5(b"%d" % number).hexdigest()
            name = f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
            campaign = f"campaign-{number // (CAMPAIGN_MESSAGES * CAMPAIGNS_AT_ONCE) * CAMPAIGNS_AT_ONCE + number % CAMPAIGNS_AT_ONCE}"
            lines.append(f"{name}\torg-{number % 7}\t{campaign}\n")
            head = f'{{"message_id":"{name}","campaign_id":"{campaign}","channel":"sms","gateway":"gateway-{number % 3}","status":"'
            at = LEAD
            for status in ("IN_GTW", "SENT", "DELIVERED"):
                at += rng.expovariate(1 / 2.0)
                self._put(tick, at + rng.uniform(-0.5, 0.5), head + status)
                if rng.random() < 0.05:
                    self._put(tick, at + rng.uniform(0, 5), head + status)
        return lines

    def _put(self, tick, later, text):
        self.slots.setdefault(tick + int(later / TICK), []).append(text)

    def take(self, tick, now):
        """The records of that tick: (number of receipts, value)."""
        events = self.slots.pop(tick, [])
        stamp = time.strftime('","at":"%Y-%m-%dT%H:%M:%S', time.gmtime(now)) + f'.{int(now * 1000) % 1000:03d}Z"}}'
        for first in range(0, len(events), PER_RECORD):
            part = events[first:first + PER_RECORD]
            yield len(part), "[" + (stamp + ",").join(part) + stamp + "]"


class Soak:
    """Threads that make, insert and retire, and what they have done so far. The first failure ends all of them."""

    def __init__(self, database, topic, receiptd, seconds):
        self.database, self.topic, self.receiptd, self.seconds = database, topic, receiptd, seconds
        self.traffic, self.inserts = Traffic(RATE), queue.Queue()
        self.events, self.records, self.behind, self.deleted, self.parked = 0, 0, 0.0, 0, 0
        self.failure, self.ended = None, threading.Event()
        self.threads = [threading.Thread(target=self._guarded, args=(work,), daemon=True)
                        for work in (self._generate, self._insert, self._retire)]

    def start(self):
        self.begun = time.time()
        for thread in self.threads:
            thread.start()

    def _guarded(self, work):
        try:
            work()
        except BaseException as error:  # noqa: BLE001 - the main thread raises it
            self.failure = self.failure or error

    def _generate(self):
        producer, tick, lines = self.topic.producer(linger_ms=5), 0, []
        last = int(self.seconds / TICK)
        while (tick < last or self.traffic.slots) and not self.failure:
            at = self.begun + tick * TICK
            wait = at - time.time()
            if wait > 0:
                time.sleep(wait)
            self.behind = max(self.behind, -wait)
            if tick < last:
                lines += self.traffic.make(tick)
                if tick % int(COPY_EVERY / TICK) == 0 or tick == last - 1:
                    self.inserts.put(lines)
                    lines = []
            for count, value in self.traffic.take(tick, at):
                producer.produce(self.topic.name, value, partition=self.records % PARTITIONS)
                self.records += 1
                self.events += count
            producer.poll(0)
            tick += 1
        self.inserts.put(None)
        assert producer.flush(60) == 0, "records were not acknowledged"

    def _insert(self):
        with self.database.connect(application_name="bench-platform") as connection, connection.cursor() as cursor:
            while (lines := self.inserts.get()) is not None and not self.failure:
                with cursor.copy("COPY receiptd.message_inbox (message_id, org_id, campaign_id) FROM STDIN") as target:
                    target.write("".join(lines))

    def _retire(self):
        while not self.ended.wait(RETIRE_EVERY):
            said = self.receiptd.command("retire", timeout=600).stdout
            self.deleted += int(re.findall(r"^messages: (\d+) deleted", said, re.MULTILINE)[-1])  # the lines before are progress


def _status(pid):
    found = dict(re.findall(r"^(VmRSS|VmHWM|Threads):\s+(\d+)", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE))
    return {"rss_mib": int(found["VmRSS"]) / 1024, "peak_rss_mib": int(found["VmHWM"]) / 1024, "threads": int(found["Threads"]),
            "fds": len(os.listdir(f"/proc/{pid}/fd"))}


def _sample(soak, database, process, meter, lanes):
    tables = {name: {"table": table, "index": index, "dead": dead, "vacuums": vacuums}
              for name, table, index, dead, vacuums in database.query(TABLES)}
    records = soak.records
    records_done = database.value(POSITIONS) / lanes
    return {"at": time.time() - soak.begun, **_status(process.pid), "tables": tables,
            "wal": int(database.value("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn")),
            "parked": database.value("SELECT count(*) FROM receiptd.parked_event"),
            "events": soak.events, "lag": max(0.0, records - records_done) * soak.events / max(1, soak.records),
            "cpu": {"daemon": cpu(process.pid), "server": meter._server(), "broker": cpu_ticks(meter.broker),
                    "generator": time.process_time()}}


def _check(database, soak, receiptd):
    """Asserts that exactly the sent receipts are counted, that none waits, was refused or came late, and that no counter has drifted."""
    found = dict(database.query("SELECT status, sum(messages) FROM receiptd.campaign_funnel GROUP BY 1"))
    events = database.value("SELECT sum(events) FROM receiptd.campaign_funnel WHERE status > 0")
    left = {table: database.value(f"SELECT count(*) FROM receiptd.{table}") for table in ("parked_event", "dead_letter")}
    assert events == soak.events and not any(left.values()), f"{events} of {soak.events} events counted, {left}"
    assert found[DELIVERED] == soak.traffic.messages, f"{found[DELIVERED]} of {soak.traffic.messages} messages delivered"
    rows, early = database.query("SELECT count(*), count(*) FILTER (WHERE status <> %s) FROM receiptd.message_inbox", DELIVERED)[0]
    assert rows == soak.traffic.messages - soak.deleted and early == 0, f"{rows} rows left, {early} not delivered"
    receiptd.command("audit", timeout=600)


def _run(soak, database, process, meter, lanes, port):
    """A sample every ten seconds until everything is sent; they are in a file as well, in case the run does not end."""
    samples, begun = [], time.time()
    pause = threading.Timer(max(0.0, soak.begun + soak.seconds / 2 - begun), process.signal, [signal.SIGSTOP])
    resume = threading.Timer(pause.interval + min(PAUSE, soak.seconds / 20), process.signal, [signal.SIGCONT])
    pause.start()
    resume.start()
    with open(OUT / "soak.samples", "w") as file:
        while soak.threads[0].is_alive():
            time.sleep(max(0.0, begun + len(samples) * SAMPLE_EVERY - time.time()))
            samples.append(_sample(soak, database, process, meter, lanes))
            print(json.dumps(samples[-1], default=str), file=file, flush=True)
            urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60).read()  # as Prometheus does
            if soak.failure:
                raise soak.failure
            if len(samples) % 6 == 1:
                _tell(soak, samples)
    return samples


def _tell(soak, samples):
    last = samples[-1]
    inbox = last["tables"].get("message_inbox", {"table": 0, "index": 0, "dead": 0})
    say(f"  {last['at'] / 60:.1f} min: {last['events']:,} receipts, lag {last['lag']:,.0f}, {last['rss_mib']:.1f} MiB, {last['fds']} fds, "
        f"inbox {inbox['table'] >> 20:,}+{inbox['index'] >> 20:,} MiB, {inbox['dead']:,} dead, {soak.behind * 1000:.0f} ms behind, "
        f"cores {', '.join(f'{name} {value:.2f}' for name, value in _cores(samples).items())}")


def _cores(samples):
    """Seconds of CPU a second, from the first sample to the last."""
    first, last = samples[0], samples[-1]
    seconds = last["at"] - first["at"]
    return {name: (last["cpu"][name] - first["cpu"][name]) / seconds if seconds else 0.0 for name in last["cpu"]}


def part_soak(lab, options):
    seconds = (options.minutes or MINUTES) * 60
    lanes = 8
    topic = lab.services.create_topic(PARTITIONS, **RETENTION)
    database = lab.services.create_database("b_soak")
    keep = max(60, min(LIFE, int(seconds / 4)))
    receiptd = lab.receiptd(database, topic, lanes=lanes, postgres={"connections": 2}, inbox={"retention": f"{keep}s", "remember_retired": REMEMBERED})
    receiptd.migrate()
    soak = Soak(database, topic, receiptd, seconds)
    soak.start()
    time.sleep(min(BACKLOG, seconds / 10))
    process = receiptd.start()
    try:
        process.wait_for_log("consuming \\d+ partitions", timeout=60)
        port = re.search(r"metrics and status at .*, port (\d+)", process.log())[1]
        meter = Meter(lab, database, process.pid)
        samples = _run(soak, database, process, meter, lanes, port)
        wait_until_consumed(database, topic, process)
        soak.ended.set()
        soak.threads[2].join()
        _check(database, soak, receiptd)
        process.stop()
    finally:
        log = process.log()
        (OUT / "soak.log").write_text(log)
        receiptd.close()
    log_levels = {level: len(re.findall(rf"level={level}", log)) for level in ("warn", "error")}
    database.drop()
    topic.drop()
    return {"repeat": 1, "rate": RATE, "seconds": seconds, "events": soak.events, "messages": soak.traffic.messages, "deleted": soak.deleted,
            "behind_ms": soak.behind * 1000, "samples": samples, "cores": _cores(samples), "log": log_levels}
