"""The long form of tests/integration/test_intake_kills.py: an intake and its broker killed under load, cycle by cycle."""

import argparse
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from support import records
from support import services as service_pairs
from support.daemon import Receiptd
from support.servers import Kafka
from support.storm import Storm

ERA_CYCLES, PARTITIONS = 25, 4


def run_era(pair, kafka, seed, cycles):
    """(kinds, figures, anomaly or None): some cycles, then the judgement."""
    directory = Path(tempfile.mkdtemp(prefix="receiptd-storm-"))
    database, topic, letters = pair.create_database(), pair.create_topic(PARTITIONS, retention_ms=-1), pair.create_topic(1)
    storm, kinds, figures, anomaly = None, Counter(), Counter(), None
    try:
        storm = Storm(Receiptd(directory, database.dsn, pair.brokers, [topic]), database, topic, letters, kafka, seed)
        for _ in range(cycles):
            kinds[storm.cycle()] += 1
        figures = storm.judge()
    except Exception as error:  # an anomaly is reported, the next era goes on
        anomaly = f"{type(error).__name__}: {error}"
    if storm is not None:
        storm.close()
    if not kafka.answers():
        kafka.start()
    database.drop()
    topic.drop()
    letters.drop()
    if anomaly is None:
        shutil.rmtree(directory, ignore_errors=True)
    else:
        print(f"ANOMALY, seed {seed}, logs in {directory}: {anomaly}", flush=True)
    return kinds, figures, anomaly


def sentence(kinds, figures):
    named = ", ".join(f"{kinds[kind]} {name}" for kind, name in (("intake", "the intake"), ("broker", "the broker"), ("both", "both")))
    return (f"{sum(kinds.values())} cycles (killed: {named}): {figures['receipts']} receipts answered with 2xx,"
            f" all of them in Kafka; requests repeated {figures['repeated']} receipts, {figures['doubled']} of them are there"
            " more than once, and no other")


def record(kinds, figures, options, commit, seconds):
    records.add_campaign("intake", f"--cycles {options.cycles} --seed {options.seed}", commit, seconds,
                         figures={"cycles": kinds.total(), "receipts answered with 2xx": figures["receipts"]}, kills=dict(kinds),
                         repeated=figures["repeated"], doubled=figures["doubled"])


def main():
    parser = argparse.ArgumentParser(prog="scripts/campaign intake", description=__doc__)
    parser.add_argument("--cycles", type=int, default=50, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--record", action="store_true", help="add the result to tests/records, and to the pages that show it")
    options = parser.parse_args()
    name, commit, begun = f"storm-{secrets.token_hex(3)}", records.commit(), time.monotonic()
    kinds, figures, anomalies = Counter(), Counter(), 0
    pair = service_pairs.start(name)
    try:
        kafka = Kafka(pair)
        while sum(kinds.values()) < options.cycles:
            done = sum(kinds.values())
            more, told, anomaly = run_era(pair, kafka, f"{options.seed}/{done}", min(ERA_CYCLES, options.cycles - done))
            kinds, figures, anomalies = kinds + more, figures + told, anomalies + (anomaly is not None)
            print(f"{sum(kinds.values()):5} cycles, {figures['receipts']} receipts, {anomalies} anomalies,"
                  f" {time.monotonic() - begun:.0f} s", flush=True)
            if not more:
                break  # nothing can be started: the reason has been printed
    finally:
        service_pairs.stop(name)
    if options.record and not anomalies:
        record(kinds, figures, options, commit, time.monotonic() - begun)
    print(f"{sentence(kinds, figures) if not anomalies else f'{sum(kinds.values())} cycles'}; {anomalies} anomalies")
    return 1 if anomalies else 0


if __name__ == "__main__":
    sys.exit(main())
