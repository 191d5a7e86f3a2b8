"""The command behind scripts/folds."""

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from oracle.traffic import Traffic
from support import publications
from support import services as service_pairs
from support.daemon import Receiptd
from support.servers import Postgres
from support.world import World

ERA_EVENTS, PER_SECOND, PARTITIONS = 120_000, 2_400, 8
KINDS = ("kill", "kill", "kill", "stop", "freeze", "crash", "terminate")
BACKENDS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'receiptd/%%' AND datname = %s"


class Era:
    """One stream, two instances, one database; cycles until the stream is over, then the judgement."""

    def __init__(self, pair, number, seed):
        self.pair, self.random = pair, random.Random(f"{seed}/{number}")
        self.directory = Path(tempfile.mkdtemp(prefix="receiptd-folds-"))
        self.database, self.postgres = pair.create_database(), Postgres(pair)
        self.topic, self.out = pair.create_topic(PARTITIONS, retention_ms=-1), pair.create_topic(2)
        rule = {"name": "campaigns", "group_key": ["campaign_id"], "window": "300ms", "max_hold": "1s",
                "publish": {"kafka": {"topic": str(self.out)}}}
        installation = Receiptd(self.directory, self.database.dsn, pair.brokers, [self.topic])
        stream = Traffic(self.random.randrange(10**6), ERA_EVENTS, PARTITIONS)
        self.world = World(installation, self.database, self.topic, stream, folds=[rule])
        installation.migrate()
        self.world.insert(stream.early)
        self.running = {name: installation.start(name) for name in "ab"}

    def crash(self):
        self.database.connection.close()
        self.postgres.stop_immediately()
        self.postgres.start()

    def cycle(self):
        name, kind = self.random.choice("ab"), self.random.choice(KINDS)
        process = self.running[name]
        time.sleep(self.random.random())  # so that it is anywhere in what it does
        if kind == "crash":
            self.crash()
        elif kind == "terminate":
            self.database.query(BACKENDS, self.database.name)
        elif kind == "freeze":  # longer than the group waits: a zombie
            process.signal(signal.SIGSTOP)
            time.sleep(3)
            process.signal(signal.SIGCONT)
        else:
            process.kill() if kind == "kill" else process.stop(90)
            time.sleep(self.random.random() / 2)
            self.running[name] = self.world.installation.start(name)
        return kind

    def judge(self):
        """The number of publications; an assertion says what is wrong."""
        self.world.insert(self.world.stream.late)
        self.world.finish(timeout=180)
        self.world.wait(lambda: publications.is_quiet(self.database), None, 180, "all folds published")
        found = publications.read(self.world.brokers, self.out, 2)
        publications.assert_once(found)
        told, counted = publications.statuses(found, "campaign_id"), publications.funnel(self.database)
        assert told == counted, f"told and counted differ: {sorted(set(told.items()) ^ set(counted.items()))[:10]}"
        assert sum(p["events"] for p in found) == publications.totals(self.database)["campaigns"]["events"]
        return len(found)

    def close(self, keep):
        self.world.installation.close()
        self.database.drop()
        for topic in (self.topic, self.out):
            topic.drop()
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)


def run_era(pair, number, options, done):
    """(cycles, publications, anomaly or None)"""
    era, cycles, anomaly, published = Era(pair, number, options.seed), 0, None, 0
    try:
        feeder = era.world.feed(per_second=PER_SECOND)
        while feeder.is_alive() and done + cycles < options.cycles:
            print(f"{done + cycles:5} {era.cycle()}", flush=True)
            cycles += 1
        feeder.join(600)
        published = era.judge()
        print(f"      exact: {published} publications", flush=True)
    except Exception as error:  # an anomaly is reported, the next era goes on
        anomaly = f"{type(error).__name__}: {error}"
        print(f"      ANOMALY in era {number}, logs in {era.directory}: {anomaly}", flush=True)
    era.close(keep=anomaly is not None)
    return cycles, published, anomaly


def main():
    parser = argparse.ArgumentParser(prog="scripts/folds", description=__doc__)
    parser.add_argument("--cycles", type=int, default=50, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    options = parser.parse_args()
    pair, cycles, published, anomalies = service_pairs.start("folds-campaign"), 0, 0, 0
    try:
        for number in range(options.cycles):
            if cycles >= options.cycles:
                break
            more, told, anomaly = run_era(pair, number, options, cycles)
            cycles, published, anomalies = cycles + more, published + told, anomalies + (anomaly is not None)
    finally:
        service_pairs.stop("folds-campaign")
    print(f"{cycles} cycles, {published} publications, {anomalies} anomalies")
    return 1 if anomalies else 0


if __name__ == "__main__":
    sys.exit(main())
