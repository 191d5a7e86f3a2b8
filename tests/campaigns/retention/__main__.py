"""The long form of tests/integration/test_retire_faults.py: messages come, get receipts and go, while each process and session is killed.

Eras alternate between a flat inbox and one in partitions, and between one daemon and two."""

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
from support.layouts import Flat, Partitions
from support.retiring import Retiring
from support.sends import FailurePoints
from support.world import World

ERA_CYCLES, PARTITIONS, LANES = 25, 6, 4
# Layouts by name, with the number of daemons.
ERAS = ((Flat, 2), (lambda: Partitions(backdated=False), 2), (Flat, 1), (lambda: Partitions(backdated=True), 2), (lambda: Partitions(backdated=False), 1))


def run_era(pair, seed, cycles, make_layout, instances, points):
    """(kinds, figures, anomaly or None): some cycles, then the judgement."""
    layout = make_layout()
    directory = Path(tempfile.mkdtemp(prefix="receiptd-retention-"))
    database, topic = pair.create_database(), pair.create_topic(PARTITIONS, retention_ms=-1)
    installation = Receiptd(directory, database.dsn, pair.brokers, [topic])
    world = World(installation, database, topic, lanes=LANES, inbox=layout.inbox)
    installation.configure(kafka={"group": f"retention-{topic}"})
    installation.migrate()
    retiring, kinds, anomaly = Retiring(world, pair, seed, layout, instances, points), Counter(), None
    try:
        retiring.begin()
        for _ in range(cycles):
            kinds[retiring.cycle()] += 1
        retiring.judge()
    except Exception as error:  # an anomaly is reported, the next era goes on
        anomaly = f"{type(error).__name__}: {error}"
        print(f"ANOMALY, seed {seed}, logs in {directory}: {anomaly}", flush=True)
    retiring.close()
    installation.close()
    database.drop()
    topic.drop()
    if anomaly is None:
        shutil.rmtree(directory, ignore_errors=True)
    cycles_of = f"cycles, {layout.name}, {instances} daemon{'s' if instances > 1 else ''}"
    return kinds, retiring.figures + Counter({cycles_of: kinds.total()}), anomaly


def sentence(kinds, figures, points):
    named = ", ".join(f"{count} {kind}" for kind, count in sorted(kinds.items()))
    layouts = "; ".join(f"{count} {name}" for name, count in sorted(figures.items()) if name.startswith("cycles"))
    return (f"{kinds.total()} cycles ({named}; {layouts}): {figures['receipts']} receipts of {figures['messages']} messages. {figures['deleted']} of these"
            f" were due and went in {figures['runs']} whole runs of `receiptd maintain` and those that were ended; {figures['late']} receipts came"
            f" late. {figures['partitions made']} times partitions were made, {figures['partitions dropped']} were booked and dropped,"
            f" {figures['partitions that came back']} came back. {figures['failure points']} runs of `maintain` and `retire` were killed before or"
            f" after their Nth send to the server, N from 1 to {points.most}. {figures['crashes that lost receipts']} crashes took positions back,"
            f" {figures['crashes that brought deleted messages back']} brought deleted messages back; so did {figures['replicas that brought deleted messages back']} replicas"
            f" that were behind when they took over, {figures['replicas that lost receipts']} of them took positions back")


def record(kinds, figures, points, options, commit, seconds):
    sums = {"cycles": kinds.total(), "receipts": figures["receipts"], "messages": figures["messages"]}
    records.add_campaign("retention", f"--cycles {options.cycles} --seed {options.seed}", commit, seconds, figures=sums, kinds=dict(sorted(kinds.items())),
                         details={**{name: count for name, count in sorted(figures.items()) if name not in sums}, "most failure point": points.most})


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/campaign retention", description=__doc__)
    parser.add_argument("--cycles", type=int, default=50, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--stride", type=int, default=3, metavar="N", help="the failure point of a run is so many further on than the last one's")
    parser.add_argument("--record", action="store_true", help="add the result to tests/records, and to the pages that show it")
    return parser.parse_args()


def main():
    options, begun = arguments(), time.monotonic()
    name, commit = f"retention-{secrets.token_hex(3)}", records.commit()
    kinds, figures, anomalies, points = Counter(), Counter(), 0, FailurePoints(stride=options.stride)
    pair = service_pairs.start(name)
    try:
        for done in range(0, options.cycles, ERA_CYCLES):
            more, told, anomaly = run_era(pair, f"{options.seed}/{done}", min(ERA_CYCLES, options.cycles - done), *ERAS[done // ERA_CYCLES % len(ERAS)], points)
            kinds, figures, anomalies = kinds + more, figures + told, anomalies + (anomaly is not None)
            print(f"{kinds.total():5} cycles, {figures['receipts']} receipts, {anomalies} anomalies, {time.monotonic() - begun:.0f} s", flush=True)
    finally:
        service_pairs.stop(name)
    if options.record and not anomalies:
        record(kinds, figures, points, options, commit, time.monotonic() - begun)
    print(f"{sentence(kinds, figures, points)}; {anomalies} anomalies")
    return 1 if anomalies else 0


if __name__ == "__main__":
    sys.exit(main())
