"""The long form of tests/integration/test_rolling.py: restarts under load; the ledger judges, and the time that partitions stood still is measured."""

import argparse
import sys
import tempfile
from datetime import datetime, timezone
from pathlib import Path

from oracle import broker
from oracle.traffic import Traffic
from support import services as service_pairs
from support.daemon import Receiptd
from support.record import replace_between
from support.rolling import SIZES, Rolling
from support.services import ROOT
from support.world import World

PAGE = ROOT / "docs/operations.md"
BEGIN, END = "<!-- rolling: begin (scripts/campaign rolling --record) -->", "<!-- rolling: end -->"
PARTITIONS = 12


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/campaign rolling", description=__doc__)
    parser.add_argument("--restarts", type=int, default=20, help="by SIGTERM, one instance after the other (default: %(default)s)")
    parser.add_argument("--kills", type=int, default=3, help="by SIGKILL, afterwards (default: %(default)s)")
    parser.add_argument("--instances", type=int, default=3)
    parser.add_argument("--rate", type=int, default=3_000, help="receipts a second (default: %(default)s)")
    parser.add_argument("--session-timeout", type=int, default=10_000, metavar="MS", help="session.timeout.ms (default: %(default)s)")
    parser.add_argument("--record", action="store_true", help="write the figures into docs/operations.md")
    return parser.parse_args()


def create_world(services, options, directory):
    database, topic = services.create_database(), services.create_topic(PARTITIONS, retention_ms=-1)
    world = World(Receiptd(directory, database.dsn, services.brokers, [topic]), database, topic,
                  Traffic(20, 60_000, PARTITIONS, late=0.02, sizes=SIZES))
    properties = {"session.timeout.ms": str(options.session_timeout)}
    world.installation.configure(kafka={"group": f"rolling-{topic}", "properties": properties})
    world.installation.migrate()
    world.insert(world.stream.early)
    return world


def run(world, options):
    rolling = Rolling(world, options.instances, options.rate)
    rolling.begin()
    for number, name, stood in rolling.roll(options.restarts, options.kills):
        print(f"{number.name} {name}: a partition stood still for up to {stood:.2f} s", flush=True)
    rolling.finish()
    records, _ = broker.read_log(world.brokers, str(world.topic))
    return rolling.table(), len(records)


def section(table, records, options):
    yield (f"`scripts/campaign rolling --restarts {options.restarts} --kills {options.kills}`, {datetime.now(timezone.utc):%Y-%m-%d}, 2 processors with Kafka and"
           " PostgreSQL.")
    yield (f"{options.instances} instances, {PARTITIONS} partitions, `session.timeout.ms` {options.session_timeout}; {records} records; the database equals the"
           " ledger: nothing lost, nothing twice.")
    yield ""
    yield "| ended by | times | longest that any partition stood still, median | longest of all |"
    yield "|---|---|---|---|"
    for name, (times, median, longest) in table.items():
        yield f"| {name} | {times} | {median:.2f} s | {longest:.2f} s |"


def main():
    options = arguments()
    services = service_pairs.start("rolling")
    try:
        with tempfile.TemporaryDirectory(prefix="receiptd-rolling-") as directory:
            world = create_world(services, options, Path(directory))
            try:
                table, records = run(world, options)
            finally:
                world.installation.close()
    finally:
        service_pairs.stop("rolling")
    if options.record:
        replace_between(PAGE, BEGIN, END, section(table, records, options))
    for name, (times, median, longest) in table.items():
        print(f"{name}: {times} times, a partition stood still for {median:.2f} s (median), {longest:.2f} s (longest)")
    print(f"{records} records, the database equals the ledger")
    return 0


if __name__ == "__main__":
    sys.exit(main())
