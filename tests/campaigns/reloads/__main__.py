"""The long form of the reloads in tests/integration/test_reload.py: a thousand under load; the ledger judges."""

import argparse
import statistics
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path

from oracle import broker
from oracle.traffic import Traffic
from support import services as service_pairs
from support.daemon import Receiptd
from support.operations import ControlSocket
from support.record import replace_between
from support.reloading import Reloading
from support.services import ROOT
from support.world import World

PAGE = ROOT / "docs/operations.md"
BEGIN, END = "<!-- reloads: begin (scripts/campaign reloads --record) -->", "<!-- reloads: end -->"
PARTITIONS = 8
MOST_GROWTH = 32e6  # bytes


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/campaign reloads", description=__doc__)
    parser.add_argument("--reloads", type=int, default=1_000, help="default: %(default)s")
    parser.add_argument("--rate", type=int, default=12_000, help="receipts a second (default: %(default)s)")
    parser.add_argument("--events", type=int, default=600_000, help="receipts of the stream before it begins anew (default: %(default)s)")
    parser.add_argument("--record", action="store_true", help="write the figures into docs/operations.md")
    return parser.parse_args()


def create_world(services, options, directory):
    database, topic = services.create_database(), services.create_topic(PARTITIONS, retention_ms=-1)
    world = World(Receiptd(directory, database.dsn, services.brokers, [topic]), database, topic,
                  Traffic(30, options.events, PARTITIONS, late=0.02))
    world.installation.migrate()
    world.insert(world.stream.early)
    return world


def run(world, control, options):
    reloading = Reloading(world, control, options.rate)
    reloading.begin()
    for turn in range(options.reloads):
        reloading.reload(turn)
        if turn % 50 == 49:
            print(f"{turn + 1} reloads, {reloading.resident[-1] / 1e6:.0f} MB resident", flush=True)
    reloading.finish()
    assert reloading.growth() < MOST_GROWTH, f"{reloading.growth() / 1e6:.0f} MB more than at first"
    return reloading


def section(reloading, records, options):
    took, resident = sorted(reloading.took), reloading.resident
    yield (f"`scripts/campaign reloads --reloads {options.reloads} --rate {options.rate}`, {datetime.now(timezone.utc):%Y-%m-%d}, 2 processors with Kafka and"
           f" PostgreSQL: {reloading.applied - 1} reloads applied, {reloading.refused} refused.")
    yield f"Positions moved again after {statistics.median(took) * 1000:.0f} ms (median), {took[-1] * 1000:.0f} ms (longest)."
    yield f"Resident memory: at most {max(resident) / 1e6:.0f} MB, {reloading.growth() / 1e6:+.1f} MB between the second and the last fifth."
    yield f"{records} records; the database equals the ledger: nothing lost, nothing twice."


def main():
    options = arguments()
    services = service_pairs.start("reloads")
    try:
        with tempfile.TemporaryDirectory(prefix="receiptd-reloads-") as directory:
            world = create_world(services, options, Path(directory))
            control = ControlSocket(world.installation)
            try:
                reloading = run(world, control, options)
                records, _ = broker.read_log(world.brokers, str(world.topic))
            finally:
                world.installation.close()
                control.close()
    finally:
        service_pairs.stop("reloads")
    lines = list(section(reloading, len(records), options))
    if options.record:
        replace_between(PAGE, BEGIN, END, lines)
    print("\n".join(lines))
    return 0


if __name__ == "__main__":
    sys.exit(main())
