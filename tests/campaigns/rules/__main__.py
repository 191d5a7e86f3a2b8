"""Random histories with all rules on, each in two arms: other orders, other copies, other batches, kills. Both arms must count what the oracle does."""

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

from rules.histories import DIMENSIONS, PARTITIONS, Histories
from support import services as service_pairs
from support.daemon import Receiptd
from support.record import commit_of, write_section
from support.services import ROOT
from support.world import World

ON = {"dedup": {"window": "24h"}, "counters": {"series": "30d", "reasons": "true", "gateways": "30d", "by": list(DIMENSIONS)}}
COLUMNS = ("message_id", "org_id", "campaign_id", *DIMENSIONS)
# What depends on the order of receipts has only a sum that does not: the hour of a change.
COUNTS = """
SELECT 'funnel messages', campaign_id, NULL::int8, NULL::text, status, messages FROM receiptd.campaign_funnel
UNION ALL SELECT 'funnel events', campaign_id, NULL, NULL, status, events FROM receiptd.campaign_funnel
UNION ALL SELECT kind || ' messages', campaign_id, NULL, key, status, messages FROM receiptd.campaign_tally WHERE kind LIKE 'by_%'
UNION ALL SELECT kind || ' events', campaign_id, NULL, key, status, events FROM receiptd.campaign_tally WHERE kind LIKE 'by_%'
UNION ALL SELECT 'hour', campaign_id, (extract(epoch FROM at) / 3600)::int8, NULL, status, events FROM receiptd.campaign_tally WHERE kind = 'hour'
UNION ALL SELECT 'hour messages', campaign_id, NULL, NULL, status, messages FROM receiptd.campaign_tally WHERE kind = 'hour'
UNION ALL SELECT kind, campaign_id, NULL, key, status, events FROM receiptd.campaign_tally WHERE kind IN ('duplicate', 'reason')
UNION ALL SELECT kind, NULL, NULL, key, status, events FROM receiptd.campaign_tally WHERE kind IN ('gateway', 'gateway_duplicate', 'gateway_reason')
UNION ALL SELECT kind, NULL, NULL, key, NULL, events FROM receiptd.campaign_tally WHERE kind = 'gateway_delay'
"""


class Arm:
    """A database, a topic and a daemon that is killed again and again, for one way in which the histories may come."""

    def __init__(self, pair, histories, seed, kills):
        self.directory = Path(tempfile.mkdtemp(prefix="receiptd-rules-"))
        self.random, self.histories, self.kills = random.Random(seed), histories, kills
        self.copies, self.records = histories.arm(seed)
        self.database, self.topic = pair.create_database(), pair.create_topic(PARTITIONS, retention_ms=-1)
        self.installation = Receiptd(self.directory, self.database.dsn, pair.brokers, [self.topic])
        self.world = World(self.installation, self.database, self.topic, **ON)
        self.installation.migrate()

    def run(self):
        """Some messages come after their receipts."""
        early = [message for message in self.histories.messages if self.random.random() < 0.8]
        late = set(self.histories.messages) - set(early)
        self.insert(early)
        process, feeder = self.installation.start(), self.world.feed(records=self.records)
        for _ in range(self.kills):
            self.world.wait_for_progress(process)
            process.kill()
            process = self.installation.start()
        self.insert(late)
        feeder.join(timeout=1200)
        self.world.wait_until_consumed(process, 1200)
        self.world.wait(lambda: self.database.value("SELECT count(*) FROM receiptd.parked_event") == 0, process, 600, "nothing is parked")
        self.world.audit()
        process.stop()

    def insert(self, messages):
        lines = ("\t".join((message.id, message.org, message.campaign, message.variant, message.channel, message.gateway)) for message in messages)
        with self.database.connect() as connection, connection.cursor() as cursor:
            with cursor.copy(f"COPY receiptd.message_inbox ({', '.join(COLUMNS)}) FROM STDIN") as target:
                target.write(("\n".join(lines) + "\n").encode())

    def counts(self):
        found = Counter()
        for *key, number in self.database.query(COUNTS):
            found[tuple(part for part in key if part is not None)] += int(number)
        return +found

    def close(self, keep):
        self.installation.close()
        self.database.drop()
        self.topic.drop()
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)


def difference(found, expected):
    """Some counters that differ, as text; "" if none does."""
    wrong = [key for key in sorted(found.keys() | expected.keys(), key=str) if found[key] != expected[key]]
    shown = "; ".join(f"{' '.join(map(str, key))}: {found[key]} instead of {expected[key]}" for key in wrong[:5])
    return f"{len(wrong)} counters differ: {shown}" if wrong else ""


def run_round(pair, seed, count, kills, totals):
    """An anomaly, or None."""
    now_ms = int(time.time() * 1000)
    histories, anomaly = Histories(seed, count, now_ms), None
    for side in "ab":
        arm = Arm(pair, histories, f"{seed}/{side}", kills)
        try:
            arm.run()
            anomaly = anomaly or difference(arm.counts(), histories.expected(arm.copies)) or None
        except Exception as error:  # an anomaly is reported, the next round goes on
            anomaly = f"{type(error).__name__}: {error}"
        arm.close(keep=anomaly is not None)
        totals.update(receipts=sum(arm.copies), kills=kills)
        if anomaly is not None:
            print(f"ANOMALY, seed {seed}, arm {side}, logs in {arm.directory}: {anomaly}", flush=True)
            break
    totals.update(histories=count, events=len(histories.events), anomalies=anomaly is not None)


def sentence(totals):
    return (f"{totals['histories']} histories of {totals['events']} receipts came twice, in other orders, with other copies and in other batches: "
            f"{totals['receipts']} receipts in all, and {totals['kills']} kills of the daemon")


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/campaign rules", description=__doc__)
    parser.add_argument("--histories", type=int, default=100_000, metavar="N")
    parser.add_argument("--round", type=int, default=50_000, metavar="N", help="histories of a round, which has databases of its own")
    parser.add_argument("--kills", type=int, default=3, metavar="N", help="of the daemon, in each arm of a round")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--record", action="store_true", help="write the result into docs/proof.md")
    return parser.parse_args()


def main():
    options, begun, totals = arguments(), time.monotonic(), Counter()
    name, commit = f"rules-{secrets.token_hex(3)}", commit_of(ROOT)
    pair = service_pairs.start(name)
    try:
        for done in range(0, options.histories, options.round):
            run_round(pair, f"{options.seed}.{done // options.round}", min(options.round, options.histories - done), options.kills, totals)
            print(f"{totals['histories']:9} histories, {totals['receipts']} receipts, {totals['anomalies']} anomalies, {time.monotonic() - begun:.0f} s", flush=True)
    finally:
        service_pairs.stop(name)
    if options.record and not totals["anomalies"]:
        write_section(ROOT, "Rules in any order", (
            f"`scripts/campaign rules --histories {options.histories} --seed {options.seed}`, {datetime.now(timezone.utc):%Y-%m-%d}, commit {commit},"
            f" {int(time.monotonic() - begun) // 60} minutes, with all rules on. {sentence(totals)}. Both times the counters were what the oracle computes"
            " from the distinct receipts: funnel, dimensions, series by hour, reasons, duplicates, receipts by gateway; and `receiptd audit` found no drift."
            " 0 anomalies."))
    print(f"{sentence(totals)}; {totals['anomalies']} anomalies")
    return 1 if totals["anomalies"] else 0


if __name__ == "__main__":
    sys.exit(main())
