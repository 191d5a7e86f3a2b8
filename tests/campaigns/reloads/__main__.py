"""The long form of the reloads in tests/integration/test_reload.py: a thousand under load; the ledger judges."""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

from oracle import broker
from oracle.traffic import Traffic
from support import records
from support import services as service_pairs
from support.daemon import Receiptd
from support.operations import ControlSocket
from support.reloading import Reloading
from support.world import World

PARTITIONS = 8
MOST_GROWTH = 32e6  # bytes


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/campaign reloads", description=__doc__)
    parser.add_argument("--reloads", type=int, default=1_000, help="default: %(default)s")
    parser.add_argument("--rate", type=int, default=12_000, help="receipts a second (default: %(default)s)")
    parser.add_argument("--events", type=int, default=600_000, help="receipts of the stream before it begins anew (default: %(default)s)")
    parser.add_argument("--record", action="store_true", help="add the figures to tests/records, and to the pages that show them")
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
    began = time.monotonic()
    for turn in range(options.reloads):
        reloading.reload(turn)
        if turn % 50 == 49:
            print(f"{turn + 1} reloads, {reloading.resident[-1] / 1e6:.0f} MB resident", flush=True)
    reloading.lasted = time.monotonic() - began
    reloading.finish()
    assert reloading.growth() < MOST_GROWTH, f"{reloading.growth() / 1e6:.0f} MB more than at first"
    return reloading


def row(reloading, options):
    took, resident = sorted(reloading.took), reloading.resident
    return {"case": f"{records.number(options.reloads)} reloads in {reloading.lasted:.0f} s", "applied": reloading.applied - 1, "refused": reloading.refused,
            "moved again ms": round(statistics.median(took) * 1000), "longest ms": round(took[-1] * 1000), "resident MB, least": round(min(resident) / 1e6),
            "resident MB, most": round(max(resident) / 1e6), "growth MB": round(reloading.growth() / 1e6, 1)}


def main():
    options, begun, commit = arguments(), time.monotonic(), records.commit()
    services = service_pairs.start("reloads")
    try:
        with tempfile.TemporaryDirectory(prefix="receiptd-reloads-") as directory:
            world = create_world(services, options, Path(directory))
            control = ControlSocket(world.installation)
            try:
                reloading = run(world, control, options)
                sent, _ = broker.read_log(world.brokers, str(world.topic))
            finally:
                world.installation.close()
                control.close()
    finally:
        service_pairs.stop("reloads")
    found = row(reloading, options)
    if options.record:
        records.add_campaign("reloads", f"--reloads {options.reloads} --rate {options.rate}", commit, time.monotonic() - begun,
                             figures={"reloads": options.reloads, "records": len(sent)}, rows=[found])
    print("; ".join(f"{name} {value}" for name, value in found.items()))
    print(f"{len(sent)} records, the database equals the ledger")
    return 0


if __name__ == "__main__":
    sys.exit(main())
