"""The long form of tests/integration/test_rolling.py: restarts under load; the ledger judges, and the time that partitions stood still is measured."""

import argparse
import sys
import tempfile
import time
from pathlib import Path

from oracle import broker
from oracle.traffic import Traffic
from support import records
from support import services as service_pairs
from support.daemon import Receiptd
from support.rolling import SIZES, Rolling
from support.world import World

PARTITIONS = 12


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/campaign rolling", description=__doc__)
    parser.add_argument("--restarts", type=int, default=20, help="by SIGTERM, one instance after the other (default: %(default)s)")
    parser.add_argument("--kills", type=int, default=3, help="by SIGKILL, afterwards (default: %(default)s)")
    parser.add_argument("--instances", type=int, default=3)
    parser.add_argument("--rate", type=int, default=3_000, help="receipts a second (default: %(default)s)")
    parser.add_argument("--session-timeout", type=int, default=10_000, metavar="MS", help="session.timeout.ms (default: %(default)s)")
    parser.add_argument("--record", action="store_true", help="add the figures to tests/records, and to the pages that show them")
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
    sent, _ = broker.read_log(world.brokers, str(world.topic))
    return rolling.table(), len(sent)


def rows(table):
    for name, (times, median, longest) in table.items():
        yield {"case": name, "times": times, "stood still s, median": round(median, 2), "stood still s, longest": round(longest, 2)}


def main():
    options, begun, commit = arguments(), time.monotonic(), records.commit()
    services = service_pairs.start("rolling")
    try:
        with tempfile.TemporaryDirectory(prefix="receiptd-rolling-") as directory:
            world = create_world(services, options, Path(directory))
            try:
                table, sent = run(world, options)
            finally:
                world.installation.close()
    finally:
        service_pairs.stop("rolling")
    if options.record:
        records.add_campaign("rolling", f"--restarts {options.restarts} --kills {options.kills}", commit, time.monotonic() - begun,
                             setting={"instances": options.instances, "partitions": PARTITIONS, "receipts_per_second": options.rate,
                                      "session.timeout.ms": options.session_timeout},
                             figures={"restarts": options.restarts, "kills": options.kills, "records": sent}, rows=list(rows(table)))
    for name, (times, median, longest) in table.items():
        print(f"{name}: {times} times, a partition stood still for {median:.2f} s (median), {longest:.2f} s (longest)")
    print(f"{sent} records, the database equals the ledger")
    return 0


if __name__ == "__main__":
    sys.exit(main())
