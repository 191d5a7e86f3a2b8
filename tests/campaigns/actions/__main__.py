"""Two instances, one receiver that writes down every call, and repeated faults: see scripts/campaign actions.

Every cycle sends receipts that begin runs and disturbs a process or the database. After some cycles everything must settle: each
run ended once, each step done once, tokens in the order of the calls, nothing begun twice for one person.
"""

import argparse
import collections
import random
import secrets
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from support import records
from support import services as service_pairs
from support.daemon import Receiptd
from support.receiver import Receiver
from support.wait import wait_for

SUBJECTS = 40
PER_CYCLE = 60
REST = 180.0  # seconds within which everything must end

STAGES = [{"name": "s", "actions": [{"webhook": "crm"}, {"await": {"status": "DELIVERED", "within": "300ms"}},
                                    {"webhook": "crm"}]}]


class Campaign:
    def __init__(self, pair, seed, directory):
        self.random = random.Random(seed)
        self.pair, self.anomalies, self.sent = pair, [], 0
        self.calls = collections.Counter()
        self.receiver = Receiver(self.answer)
        self.database, self.topic = pair.create_database(), pair.create_topic(4)
        self.installation = Receiptd(directory, self.database.dsn, pair.brokers, [self.topic])
        endpoint = {"name": "crm", "url": self.receiver.url, "timeout": "700ms"}
        self.installation.configure(
            kafka={"properties": {"session.timeout.ms": "6000", "heartbeat.interval.ms": "500"}},
            postgres={"retry_max": "500ms", "lock_timeout": "2s", "zombie_timeout": "2s"},
            actions={"allow_private": True, "endpoints": [endpoint], "poll_interval": "50ms", "lane_lease": "1s", "lease": "1500ms",
                     "retry_min": "10ms", "retry_max": "1s", "max_attempts": 1000, "breaker_failures": 1000},
            pipelines=[{"name": "drip", "on": "SENT", "subject": "campaign_id", "stages": STAGES},
                       {"name": "once", "on": "SENT", "subject": "campaign_id", "once_per": ["campaign_id"], "webhook": "crm"}])
        self.installation.migrate()
        self.names = iter(range(1, 1_000_000))
        self.processes = [self.start(), self.start()]

    def start(self):
        return self.installation.start(str(next(self.names)))

    def answer(self, call):
        kind = self.random.random()
        return (503, {}, 0) if kind < 0.05 else (429, {"Retry-After": "0"}, 0) if kind < 0.08 else (200, {}, kind / 50)

    def send(self):
        first = self.sent
        ids = [f"m{n}" for n in range(first, first + PER_CYCLE)]
        wait_for(lambda: self.add(ids), 60, "messages are inserted", interval=0.2)
        self.topic.send(*[{"message_id": id, "status": "SENT"} for id in ids])
        self.topic.send(*[{"message_id": id, "status": "DELIVERED"} for id in ids[::2]])
        self.sent += PER_CYCLE

    def add(self, ids):
        try:
            self.database.execute("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id)"
                                  " SELECT i, 'o', 'c' || mod(substr(i, 2)::int, %s) FROM unnest(%s::text[]) i"
                                  " ON CONFLICT DO NOTHING", SUBJECTS, ids)
            return True
        except Exception:  # noqa: BLE001 - the server may be down
            return False

    # ---- faults

    def kill(self):
        index = self.random.randrange(2)
        self.processes[index].kill()
        self.processes[index] = self.start()

    def replace(self):
        index = self.random.randrange(2)
        self.processes[index].stop(60)
        self.processes[index] = self.start()

    def freeze(self):
        """Stopped for longer than leases: the other instance takes over its actions."""
        process = self.processes[self.random.randrange(2)]
        process.signal(signal.SIGSTOP)
        time.sleep(self.random.choice((0.3, 1.0, 2.2)))
        process.signal(signal.SIGCONT)

    def disconnect(self):
        self.add([])
        self.database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                              " AND application_name LIKE 'receiptd/%'")

    def crash_database(self):
        """The crash rolls back the last asynchronous commits."""
        self.pair.postgres("immediate")
        self.pair.postgres("start")

    def restart_database(self):
        self.pair.postgres("fast")
        self.pair.postgres("start")

    def nothing(self):
        time.sleep(0.2)

    # ---- verdict

    def at_rest(self):
        try:
            return self.database.value("SELECT count(*) FROM receiptd.run") == self.sent + min(SUBJECTS, self.sent) and \
                self.database.value("SELECT count(*) FROM receiptd.run WHERE status <> 'done'") == 0
        except Exception:  # noqa: BLE001
            return False

    def judge(self):
        def state():
            return str(self.database.query("SELECT status, count(*) FROM receiptd.run GROUP BY 1")) + str(self.sent)

        wait_for(self.at_rest, REST, "all runs end", interval=0.3, details=state)
        try:
            self.receiver.assert_tokens_grow()
        except AssertionError as error:
            self.anomalies.append(str(error))
        steps = self.database.value("SELECT count(*) FROM receiptd.action WHERE status = 'done' AND class = 'delivered'")
        expected = 2 * self.sent + min(SUBJECTS, self.sent)
        if steps != expected:
            self.anomalies.append(f"{steps} calls are done instead of {expected}")
        answered = collections.Counter(c.id for c in self.receiver.seen() if c.status == 200)
        if len(answered) != expected:
            self.anomalies.append(f"{len(answered)} actions have heard a 200 instead of {expected}")
        return sum(answered.values()) - len(answered)

    def close(self):
        for process in self.processes:
            process.kill()
        self.receiver.close()
        self.database.drop()
        self.topic.drop()


def play(campaign, options):
    """Runs cycles until there were enough, or until the time is over. Returns what was done, how long it took, the result."""
    faults = [campaign.kill, campaign.replace, campaign.freeze, campaign.disconnect, campaign.crash_database,
              campaign.restart_database, campaign.nothing]
    counts, took, begun, cycle, repeated = collections.Counter(), collections.Counter(), time.monotonic(), 0, 0
    while cycle < options.cycles and time.monotonic() - begun < options.minutes * 60:
        cycle += 1
        at = time.monotonic()
        campaign.send()
        time.sleep(campaign.random.random() * 0.3)
        fault = campaign.random.choice(faults)
        fault()
        counts[fault.__name__] += 1
        took[fault.__name__] += time.monotonic() - at
        if cycle % options.judge_every == 0:
            repeated = campaign.judge()
            print(f"cycle {cycle}: {campaign.sent} runs and more, {len(campaign.receiver.seen())} calls,"
                  f" {repeated} answered more than once, anomalies: {campaign.anomalies or 'none'}", flush=True)
    repeated = campaign.judge()
    return {"seed": options.seed, "cycles": cycle, "seconds": time.monotonic() - begun, "kinds": dict(sorted(counts.items())),
            "mean_seconds": {kind: took[kind] / counts[kind] for kind in sorted(counts)}, "runs": campaign.sent + min(SUBJECTS, campaign.sent),
            "calls": len(campaign.receiver.seen()), "answered_again": repeated, "anomalies": campaign.anomalies,
            "refused": campaign.database.value("SELECT count(*) FROM receiptd.action_overlap")}


def record(played, options, commit):
    others = {name: value for name, value in played.items() if name not in ("seed", "seconds", "cycles", "runs", "calls", "anomalies")}
    records.add_campaign("actions", f"--cycles {options.cycles} --seed {options.seed}", commit, played["seconds"],
                         figures={name: played[name] for name in ("cycles", "runs", "calls")}, **others)


def main():
    parser = argparse.ArgumentParser(prog="scripts/campaign actions")
    parser.add_argument("--cycles", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--judge-every", type=int, default=10)
    parser.add_argument("--minutes", type=float, default=600, help="no cycle begins after that")
    parser.add_argument("--record", action="store_true", help="add the result to tests/records, and to the pages that show it")
    options, commit = parser.parse_args(), records.commit()
    name = f"actions-{secrets.token_hex(3)}"
    directory = Path(tempfile.mkdtemp(prefix="receiptd-actions-"))
    failed = True
    try:
        campaign = Campaign(service_pairs.start(name), options.seed, directory)
        played = play(campaign, options)
        print(f"{played['cycles']} cycles in {played['seconds']:.0f} s ({', '.join(f'{n} {k}' for k, n in played['kinds'].items())}),"
              f" {played['runs']} runs, {played['calls']} calls, {played['refused']} results of zombies refused,"
              f" {len(played['anomalies'])} anomalies")
        failed = bool(played["anomalies"])
        if options.record and not failed:
            record(played, options, commit)
        campaign.close()
    finally:
        service_pairs.stop(name)
        if not failed:
            shutil.rmtree(directory, ignore_errors=True)
        else:
            print(f"logs are in {directory}", file=sys.stderr)
    return failed


sys.exit(main())
