"""One stream of receipts and one of events, two instances, one database; cycles until the streams are over, then the judgement.

The oracle knows nothing of folds: the ledger replays the log of receipts and says what the funnel must be; the log of events
is added up separately. The publications must give the same sums, each number of each group once. Beside the folds runs the status
stream: the records of each message must lead to its row, each beginning where the one before ended.
"""

import collections
import json
import random
import shutil
import signal
import tempfile
import threading
import time
from pathlib import Path

from confluent_kafka import Producer
from oracle import broker
from oracle.traffic import Traffic
from support import publications, stream as status_stream
from support.daemon import Receiptd
from support.servers import Postgres
from support.world import World

PER_SECOND, EVENTS_PER_SECOND, PARTITIONS = 2_400, 600, 8
KINDS = ("kill", "kill", "kill", "stop", "freeze", "crash", "terminate")
BACKENDS = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'receiptd/%%' AND datname = %s"


class EventFeeder(threading.Thread):
    """Produces JSON events of 30 accounts, and now and then a record that is no event, until it is stopped."""

    def __init__(self, brokers, topic, seed):
        super().__init__(daemon=True)
        self.brokers, self.topic, self.random, self.over = brokers, str(topic), random.Random(seed), threading.Event()
        self.start()

    def run(self):
        producer = Producer({"bootstrap.servers": self.brokers, "linger.ms": 5, "enable.idempotence": True})
        for n in range(10**9):
            account = f"a{self.random.randrange(30)}"
            value = b"no JSON" if n % 100 == 7 else json.dumps({"account": account, "n": n}).encode()
            producer.produce(self.topic, value, account.encode())
            if n % 30 == 0:
                producer.poll(0)
                if self.over.wait(30 / EVENTS_PER_SECOND):
                    break
        assert producer.flush(60) == 0


class Era:
    def __init__(self, pair, number, seed, events):
        self.random = random.Random(f"{seed}/{number}")
        self.directory = Path(tempfile.mkdtemp(prefix="receiptd-folds-"))
        self.database, self.postgres = pair.create_database(), Postgres(pair)
        self.topic, self.out = pair.create_topic(PARTITIONS, retention_ms=-1), pair.create_topic(2)
        self.events, self.changes = pair.create_topic(4, retention_ms=-1), pair.create_topic(4, retention_ms=-1)
        base = {"window": "300ms", "max_hold": "1s", "publish": {"kafka": {"topic": str(self.out)}}}
        folds = [{**base, "name": "campaigns", "group_key": ["campaign_id"]},
                 {**base, "name": "accounts", "source": "topic", "topic": str(self.events), "group_key": ["account"],
                  "collect": {"sum": {"field": "n", "kind": "sum"}}}]
        installation = Receiptd(self.directory, self.database.dsn, pair.brokers, [self.topic])
        stream = Traffic(self.random.randrange(10**6), events, PARTITIONS)
        self.world = World(installation, self.database, self.topic, stream, folds=folds)
        installation.configure(stream={"topic": str(self.changes)})
        installation.migrate()
        self.world.insert(stream.early)
        self.running = {name: installation.start(name) for name in "ab"}
        self.feeders = self.world.feed(per_second=PER_SECOND), EventFeeder(pair.brokers, self.events, f"{seed}/{number}")

    def is_feeding(self):
        return self.feeders[0].is_alive()

    def crash(self):
        self.database.connection.close()
        self.postgres.stop_immediately()
        self.postgres.start()

    def cycle(self):
        name, kind = self.random.choice("ab"), self.random.choice(KINDS)
        process = self.running[name]
        time.sleep(self.random.random())  # so that the fault hits any step
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

    # ---- the judgement

    def finish(self):
        self.feeders[1].over.set()
        self.feeders[1].join(120)
        self.feeders[0].join(600)
        self.world.insert(self.world.stream.late)
        self.world.finish(timeout=180)
        ends = {partition: end for partition, (_, end) in self.events.watermarks().items()}
        read = "SELECT partition, next_offset FROM receiptd.fold_progress WHERE topic = %s"
        self.world.wait(lambda: dict(self.database.query(read, str(self.events))) == ends, None, 180, "all events are read")
        self.world.wait(lambda: publications.is_quiet(self.database), None, 180, "all folds are published")
        self.world.wait(lambda: status_stream.is_quiet(self.database), None, 180, "all of the stream is published")

    def replay(self):
        """Of the topic of events: account -> (events, sum), and the positions of records that are no events."""
        accounts, bad = collections.defaultdict(lambda: (0, 0)), set()
        for record in broker.read_log(self.world.brokers, str(self.events))[0]:
            try:
                event = json.loads(record.value)
            except ValueError:
                bad.add((record.partition, record.offset))
                continue
            events, total = accounts[event["account"]]
            accounts[event["account"]] = events + 1, total + event["n"]
        return dict(accounts), bad

    def judge(self):
        """The number of publications; an assertion says what is wrong."""
        self.finish()
        status_stream.assert_changes(status_stream.read(self.world.brokers, self.changes, 4), self.database)
        found = publications.read(self.world.brokers, self.out, 2)
        publications.assert_once(found)
        of = {rule: [p for p in found if p["rule"] == rule] for rule in ("campaigns", "accounts")}
        told, counted = publications.statuses(of["campaigns"], "campaign_id"), publications.funnel(self.database)
        assert told == counted, f"told and counted differ: {sorted(set(told.items()) ^ set(counted.items()))[:10]}"
        totals = publications.totals(self.database)
        assert sum(p["events"] for p in of["campaigns"]) == totals["campaigns"]["events"]
        accounts, bad = self.replay()
        sums = collections.defaultdict(lambda: (0, 0))
        for publication in of["accounts"]:
            events, total = sums[publication["group"]["account"]]
            sums[publication["group"]["account"]] = events + publication["events"], total + publication["collected"]["sum"]
        assert dict(sums) == accounts, f"told and replayed differ: {sorted(set(sums.items()) ^ set(accounts.items()))[:10]}"
        letters = self.database.query("SELECT partition, \"offset\" FROM receiptd.dead_letter WHERE topic = %s", str(self.events))
        assert sorted(letters) == sorted(bad), "dead letters differ from what is no event in the log"
        return len(found)

    def close(self, keep):
        self.feeders[1].over.set()
        self.world.installation.close()
        self.database.drop()
        for topic in (self.topic, self.out, self.events, self.changes):
            topic.drop()
        if not keep:
            shutil.rmtree(self.directory, ignore_errors=True)
