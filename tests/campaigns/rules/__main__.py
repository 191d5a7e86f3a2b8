"""Random histories with all rules on, in any order, with copies, over several lanes and two instances that are killed: they must count what the oracle does."""

import argparse
import random
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from datetime import datetime, timezone
from pathlib import Path

from rules.histories import DIMENSIONS, EXPIRES, MACHINE_RULES, PARTITIONS, WITHIN_MS, Histories, is_exact
from support import services as service_pairs
from support.daemon import Receiptd
from support.record import commit_of, write_section
from support.services import ROOT
from support.wait import wait_for
from support.world import World

INSTANCES = "ab"
ON = {
    "dedup": {"window": "24h"},
    "counters": {"series": "30d", "reasons": "true", "gateways": "30d", "times": True, "by": list(DIMENSIONS), "groups": ["customer", "logical"]},
    "machine": {"after_delivery": f"{WITHIN_MS}ms", "rules": [{"kind": kind, name: value, "policy": policy} for kind, name, value, policy in MACHINE_RULES]},
    "inbox": {"columns": {"recipient": "recipient"}, "expiry": [{"column": EXPIRES[0], "value": EXPIRES[1], "after": "1s"}]},
}
COLUMNS = ("message_id", "org_id", "campaign_id", *DIMENSIONS, "customer_id", "logical_id", "recipient", "created_at")
# Opens wait for their DELIVERED, and ranges for late rows, until end_waiting(), however slow the machine is: neither minute passes by itself.
SLOW_CLOCK = """
ALTER TABLE receiptd.parked_event ALTER parked_at SET DEFAULT now() + interval '1 day';
ALTER TABLE receiptd.range_receipt ALTER stored_at SET DEFAULT now() + interval '1 day';
"""
# What depends on the order of receipts has only a sum that does not: the hour of a change.
COUNTS = """
SELECT 'funnel messages', campaign_id, NULL::int8, NULL::text, status, messages FROM receiptd.campaign_funnel
UNION ALL SELECT 'funnel events', campaign_id, NULL, NULL, status, events FROM receiptd.campaign_funnel
UNION ALL SELECT kind || ' messages', campaign_id, NULL, key, status, messages FROM receiptd.campaign_tally WHERE kind LIKE 'by_%'
UNION ALL SELECT kind || ' events', campaign_id, NULL, key, status, events FROM receiptd.campaign_tally WHERE kind LIKE 'by_%'
UNION ALL SELECT 'hour', campaign_id, (extract(epoch FROM at) / 3600)::int8, NULL, status, events FROM receiptd.campaign_tally WHERE kind = 'hour'
UNION ALL SELECT kind || ' messages', campaign_id, NULL, NULL, status, messages FROM receiptd.campaign_tally WHERE kind IN ('hour', 'minute')
UNION ALL SELECT kind, campaign_id, NULL, NULL, status, events FROM receiptd.campaign_tally WHERE kind = 'minute'
UNION ALL SELECT kind, campaign_id, NULL, key, status, events FROM receiptd.campaign_tally WHERE kind IN ('duplicate', 'reason')
UNION ALL SELECT kind, NULL, NULL, key, status, events FROM receiptd.campaign_tally WHERE kind IN ('gateway', 'gateway_duplicate', 'gateway_reason')
UNION ALL SELECT kind, NULL, NULL, key, NULL, events FROM receiptd.campaign_tally WHERE kind = 'gateway_delay'
UNION ALL SELECT kind, campaign_id, NULL, key, status, messages FROM receiptd.campaign_tally WHERE kind IN ('time_to_deliver', 'time_to_open')
UNION ALL SELECT kind, NULL, NULL, key, status, messages FROM receiptd.campaign_tally WHERE kind IN ('gateway_time_to_deliver', 'gateway_time_to_open')
UNION ALL SELECT kind, campaign_id, NULL, NULL, status, groups FROM receiptd.group_funnel
"""


class Arm:
    """A database, a topic and two instances that are killed again and again, for one way in which the histories may come. Without `late` all messages are
    there before their receipts. With it some come among them, and some after all of them, when the minute has gone in which an open waits for its DELIVERED."""

    def __init__(self, pair, histories, seed, kills, late):
        self.directory = Path(tempfile.mkdtemp(prefix="receiptd-rules-"))
        self.random, self.histories, self.kills, self.late = random.Random(seed), histories, kills, late
        self.copies, self.records = histories.arm(seed)
        self.database, self.topic = pair.create_database(), pair.create_topic(PARTITIONS, retention_ms=-1)
        self.installation = Receiptd(self.directory, self.database.dsn, pair.brokers, [self.topic])
        draw = self.random.choice
        self.world = World(self.installation, self.database, self.topic, lanes=draw((4, 8, 16)), **ON, batch={"max_events": draw((200, 1000, 4000))})
        self.installation.configure(parked={"wake_limit": draw((300, 3000))})
        self.installation.migrate()
        self.database.execute(SLOW_CLOCK)
        self.processes = {}

    def run(self):
        """An anomaly, or ""."""
        early, late, later = self.rows()
        self.insert(early)
        feeder = self.world.feed(records=self.records)
        for name in INSTANCES:
            self.start(name)
        for _ in range(self.kills):
            self.world.wait_for_progress()
            victim = self.random.choice(INSTANCES)
            self.processes[victim].kill()
            self.start(victim)
            self.installation.command("expire")
        self.insert(late)
        feeder.join(timeout=1200)
        self.world.wait_until_consumed(self.process, 1200)
        self.end_minute("NOT EXISTS (SELECT FROM receiptd.message_inbox m WHERE m.message_id = p.message_id)")
        self.insert(later)
        self.end_waiting()
        self.world.audit()
        anomaly = "\n".join(filter(None, (self.wrong_states(), difference(self.counts(), self.histories.expected(self.copies), is_exact), self.missed(), self.forgotten())))
        for process in self.processes.values():
            process.stop()
        return anomaly

    def rows(self):
        """Messages that are there before their receipts, that come among them, and that come after all of them."""
        early, late, later = [], [], []
        for message in self.histories.messages:
            draw = self.random.random() if self.late else 1
            (later if draw < 0.02 else late if draw < 0.05 else early).append(message)
        return early, late, later

    def start(self, name):
        self.processes[name] = self.installation.start(name)

    @property
    def process(self):
        return self.processes[INSTANCES[0]]

    def insert(self, messages):
        if not messages:
            return
        lines = ("\t".join("\\N" if field is None else field for field in (*message[:-1], datetime.fromtimestamp(message.sent / 1000, timezone.utc).isoformat()))
                 for message in messages)
        with self.database.connect() as connection, connection.cursor() as cursor:
            with cursor.copy(f"COPY receiptd.message_inbox ({', '.join(COLUMNS)}) FROM STDIN") as target:
                target.write(("\n".join(lines) + "\n").encode())

    # ---- clocks: both minutes of waiting end when the campaign says so

    def end_minute(self, which="true"):
        """In which opens and clicks wait for a DELIVERED. Only when all receipts are there: then those come out alike that waited for their rows."""
        self.database.execute(f"UPDATE receiptd.parked_event p SET parked_at = now() - interval '2 minutes' WHERE {which}")

    def end_waiting(self):
        """What has all that it waits for is applied. Then nothing more comes: ranges look again, and opens without a DELIVERED are of persons."""
        self.until_none("receiptd.parked_event WHERE machine IS NULL")
        self.until_none("receiptd.range_receipt WHERE looks = 0 OR due_at <= now()")
        self.database.execute("UPDATE receiptd.range_receipt SET due_at = now()")
        self.until_none("receiptd.range_receipt")
        self.until_none("receiptd.parked_event p WHERE machine IS NULL"
                   " OR EXISTS (SELECT FROM receiptd.message_inbox m WHERE m.message_id = p.message_id AND m.first_delivered_at IS NOT NULL)")
        self.end_minute()
        self.until_none("receiptd.parked_event")
        time.sleep(1.1)
        self.installation.command("expire")
        self.until_none("receiptd.group_delta")

    def until_none(self, rows):
        """Asks seldom: tables that were full for a while are slow to read."""
        wait_for(lambda: self.process.running and not self.database.value(f"SELECT EXISTS (SELECT FROM {rows})"), 900, f"none is left: {rows}", interval=0.5)

    # ---- the judgement

    def counts(self):
        found = Counter()
        for *key, number in self.database.query(COUNTS):
            found[tuple(part for part in key if part is not None)] += int(number)
        return +found

    def wrong_states(self):
        """Messages that stand where they must not."""
        rows = self.database.query("SELECT message_id, status, flags FROM receiptd.message_inbox")
        wrong = [f"{id} stands in {tuple(state)} and not in {self.histories.states[id]}: {self.histories.story(id)}"
                 for id, *state in rows if tuple(state) not in self.histories.states[id]]
        return "\n".join([f"{len(wrong)} messages", *wrong[:5]]) if wrong else ""

    def missed(self):
        """Where no message is late, no receipt is one of an unknown message, whatever it waits for."""
        count = 0 if self.late else self.database.value("SELECT COALESCE(sum(events), 0)::int8 FROM receiptd.campaign_tally WHERE kind = 'gateway_unknown'")
        return f"{count} receipts of known messages count as unknown" if count else ""

    def forgotten(self):
        """Messages that do not have one key for each of their receipts, in their rows and in the store."""
        keys = dict(self.database.query(
            "SELECT m.message_id, COALESCE(octet_length(m.counted) / 8, 0) + COALESCE(s.n, 0) FROM receiptd.message_inbox m LEFT JOIN"
            " (SELECT c.message, count(*) AS n FROM receiptd.receipt_counted c GROUP BY 1) s ON s.message = hashtextextended(m.message_id, 0)"))
        came = Counter(message.id for message, _, _ in self.histories.events if message)
        wrong = [f"{id} has {keys[id]} keys of {count} receipts: {self.histories.story(id)}" for id, count in came.items() if keys[id] != count]
        return "\n".join([f"{len(wrong)} messages with other keys than receipts", *wrong[:5]]) if wrong else ""

    def close(self, keep):
        self.installation.close()
        self.database.drop()
        self.topic.drop()
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)


def difference(found, expected, is_exact):
    """Some counters that differ, as text; "" if none does."""
    wrong = sorted((key for key in found.keys() | expected.keys() if found[key] != expected[key] and is_exact(key)), key=str)
    shown = "; ".join(f"{' '.join(map(str, key))}: {found[key]} instead of {expected[key]}" for key in wrong[:5])
    return f"{len(wrong)} counters differ: {shown}" if wrong else ""


def run_round(pair, seed, count, kills, sides, totals):
    """sides: in which ways they come, see Arm."""
    now_ms = int(time.time() * 1000)
    histories, anomaly = Histories(seed, count, now_ms), None
    for side in sides:
        arm = Arm(pair, histories, f"{seed}/{side}", kills, side == "b")
        try:
            anomaly = arm.run() or None
        except Exception as error:  # an anomaly is reported, the next round goes on
            anomaly = f"{type(error).__name__}: {error}"
        arm.close(keep=anomaly is not None)
        totals.update(receipts=sum(arm.copies), kills=kills)
        if anomaly is not None:
            print(f"ANOMALY, seed {seed}, arm {side}, logs in {arm.directory}: {anomaly}", flush=True)
            break
    totals.update(histories=count, events=len(histories.events), anomalies=anomaly is not None)


def sentence(totals):
    return (f"{totals['histories']} histories of {totals['events']} receipts came in any order, with copies, in any batches and over two instances: "
            f"{totals['receipts']} receipts in all, and {totals['kills']} kills of an instance")


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/campaign rules", description=__doc__)
    parser.add_argument("--histories", type=int, default=100_000, metavar="N")
    parser.add_argument("--round", type=int, default=20_000, metavar="N", help="histories of a round, which has databases of its own")
    parser.add_argument("--kills", type=int, default=3, metavar="N", help="of an instance, in each round")
    parser.add_argument("--twice", action="store_true", help="each history comes twice, in other orders, with other copies and in other batches")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--record", action="store_true", help="write the result into docs/proof.md")
    return parser.parse_args()


def main():
    options, begun, totals = arguments(), time.monotonic(), Counter()
    name, commit = f"rules-{secrets.token_hex(3)}", commit_of(ROOT)
    pair = service_pairs.start(name)
    try:
        for done in range(0, options.histories, options.round):
            run_round(pair, f"{options.seed}.{done // options.round}", min(options.round, options.histories - done), options.kills, "ab" if options.twice else "ab"[done // options.round % 2], totals)
            print(f"{totals['histories']:9} histories, {totals['receipts']} receipts, {totals['anomalies']} anomalies, {time.monotonic() - begun:.0f} s", flush=True)
    finally:
        service_pairs.stop(name)
    if options.record and not totals["anomalies"]:
        write_section(ROOT, "Rules in any order", (
            f"`scripts/campaign rules --histories {options.histories} --seed {options.seed}`, {datetime.now(timezone.utc):%Y-%m-%d}, commit {commit},"
            f" {int(time.monotonic() - begun) // 60} minutes, with all rules on. {sentence(totals)}. The statuses and counters were what the oracle computes"
            " from the distinct receipts: funnel, dimensions, customers and logical messages, messages in parts, ranges, machines, expiry, series, times, reasons,"
            " duplicates, receipts by gateway; and `receiptd audit` found no drift. 0 anomalies."))
    print(f"{sentence(totals)}; {totals['anomalies']} anomalies")
    return 1 if totals["anomalies"] else 0


if __name__ == "__main__":
    sys.exit(main())
