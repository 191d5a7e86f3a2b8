"""A stream, a topic, a database and an installation of receiptd, and the ledger that judges all of them."""

import itertools
import random
import signal
import threading
import time

from oracle import broker, ledger
from oracle.compare import OWN_INBOX, compare
from oracle.ledger import Row
from support.wait import wait_for

# Quick reactions: a test waits for them.
QUICK = {
    "kafka": {"properties": {"session.timeout.ms": "2000", "heartbeat.interval.ms": "300"}},
    "postgres": {"lock_timeout": "1s", "zombie_timeout": "2s", "retry_max": "1s"},
    "progress": {"verify_interval": "1s", "idle_interval": "200ms", "rewind_timeout": "2s"},
    "parked": {"poll_interval": "200ms"},
}
ESCAPED = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


class Feeder(threading.Thread):
    """Produces in the background; join() raises the error that occurred there."""

    def __init__(self, work):
        super().__init__(daemon=True)
        self.work, self.error = work, None
        self.start()

    def run(self):
        try:
            self.work()
        except BaseException as error:
            self.error = error

    def join(self, timeout=180):
        super().join(timeout)
        assert not self.is_alive(), f"the stream was not produced within {timeout} s"
        if self.error is not None:
            raise self.error


class World:
    def __init__(self, installation, database, topic, stream=None, lanes=8, **settings):
        self.installation, self.database, self.topic, self.stream = installation, database, topic, stream
        self.brokers, self.lanes = topic.services.brokers, lanes
        self.inbox = OWN_INBOX  # a test with a mapped table sets its own
        self.platform, self.feeder = {}, None
        self.random = random.Random(11)
        installation.configure(**QUICK)
        installation.configure(lanes=lanes, **settings)

    # ---- the platform

    def insert(self, rows):
        """Inserts rows as the platform does: sometimes by COPY, sometimes by INSERT, many rows at a time or one by one."""
        left = iter(rows.items())
        with self.database.connect() as connection:
            for turn in itertools.count():
                some = list(itertools.islice(left, (20_000, 500, 1)[turn % 3]))
                if not some:
                    break
                (self.copy, self.insert_many)[turn % 3 > 0](connection, some)
        self.platform.update(rows)

    def copy(self, connection, rows):
        fields = ((id, *row) for id, row in rows)
        lines = ("\t".join("\\N" if field is None else field.translate(ESCAPED) for field in row) for row in fields)
        columns = ", ".join((self.inbox.message_id, self.inbox.org_id, self.inbox.campaign_id))
        with connection.cursor() as cursor, cursor.copy(f"COPY {self.inbox.table} ({columns}) FROM STDIN") as target:
            target.write(("\n".join(lines) + "\n").encode())

    def insert_many(self, connection, rows):
        columns = ", ".join((self.inbox.message_id, self.inbox.org_id, self.inbox.campaign_id))
        ids, orgs, campaigns = zip(*((id, row.org_id, row.campaign_id) for id, row in rows))
        connection.execute(
            f"INSERT INTO {self.inbox.table} ({columns}) SELECT * FROM unnest(%s::text[], %s::text[], %s::text[])",
            (list(ids), list(orgs), list(campaigns)),
        )

    def insert_ids(self, *ids, campaign="c"):
        self.insert({id: Row("o", campaign) for id in ids})

    # ---- the gateways

    def feed(self, per_second=None, records=None):
        """Produces the stream in the background; per_second counts events."""
        records = self.stream.records() if records is None else records
        paced = None if per_second is None else per_second / self.stream.events_per_record
        self.feeder = Feeder(lambda: broker.produce(self.brokers, str(self.topic), records, per_second=paced))
        return self.feeder

    def produce(self, records=None):
        broker.produce(self.brokers, str(self.topic), self.stream.records() if records is None else records)

    def produce_over_kills(self, parts):
        """Kills the instance while it works on each part, and returns the last one."""
        process = self.installation.start()
        for records in parts:
            self.produce(records)
            self.wait_for_progress(process)
            process.kill()
            process = self.installation.start()
        return process

    def trouble_two_instances(self, feeder, seed):
        """Starts two, and while the stream is fed kills, stops and starts one after the other; the second freezes once for longer than
        the group waits, and wakes up in the middle of its work. Returns those that run."""
        chance = random.Random(seed)
        running = {name: self.installation.start(name) for name in "ab"}
        for turn in itertools.count():
            if not feeder.is_alive():
                break
            self.wait_for_progress(timeout=60)
            name = "ab"[turn % 2]
            if turn == 1:
                running[name].signal(signal.SIGSTOP)
                time.sleep(3)
                running[name].signal(signal.SIGCONT)
                continue
            if chance.random() < 0.7:
                running[name].kill()
            else:
                running[name].stop(60)
            time.sleep(chance.random() * 0.3)  # the other is alone for a while, in whatever it was doing
            running[name] = self.installation.start(name)
        feeder.join()
        return running

    # ---- how far it is

    def position_sum(self):
        return self.database.value("SELECT COALESCE(sum(next_offset), 0)::int8 FROM receiptd.consumer_progress")

    def wait_for_progress(self, process=None, timeout=30.0):
        """Until some position has moved, or the stream is over."""
        before = self.position_sum()
        self.wait(lambda: self.position_sum() > before or not self.is_feeding(), process, timeout, "positions move")

    def is_feeding(self):
        return self.feeder is not None and self.feeder.is_alive()

    def wait(self, condition, process=None, timeout=30.0, what="the condition", details=None):
        if process is not None:
            process.wait_for(condition, timeout, what)
        else:
            wait_for(condition, timeout, what, interval=0.05, details=details)

    def ends(self):
        return {partition: end for partition, (_, end) in self.topic.watermarks().items()}

    def wait_until_consumed(self, process=None, timeout=60.0):
        """Until every lane of every partition stands at the end of the log as it is now."""
        lowest, ends = {}, self.ends()

        def consumed():
            nonlocal lowest
            lowest = dict(self.lowest_positions())
            return all(lowest.get(partition, -1) >= end for partition, end in ends.items())

        what = f"everything consumed up to {ends}"
        self.wait(consumed, process, timeout, what, details=lambda: f"positions: {lowest}")

    def lowest_positions(self):
        return self.database.query(
            "SELECT partition, CASE WHEN count(*) = %s THEN min(next_offset) ELSE -1 END"
            " FROM receiptd.consumer_progress WHERE topic = %s GROUP BY partition",
            self.lanes,
            str(self.topic),
        )

    def wait_until_woken(self, process=None, timeout=30.0):
        """Waits until no receipt is parked whose message has a row."""
        query = (
            "SELECT count(*) FROM receiptd.parked_event p WHERE EXISTS"
            f" (SELECT FROM {self.inbox.table} m WHERE m.{self.inbox.message_id} = p.message_id)"
        )
        self.wait(lambda: self.database.value(query) == 0, process, timeout, "parked receipts of known messages woken")

    # ---- the judgement

    def audit(self):
        """Asserts that there is no drift now, whatever else runs."""
        result = self.installation.command("audit", check=False)
        assert result.returncode == 0, f"audit: status {result.returncode}\n{result.stdout}{result.stderr}"

    def differences(self, **options):
        """Reads the log back, computes the expected rows and compares."""
        records, ends = broker.read_log(self.brokers, str(self.topic))
        expected = ledger.ledger_of(records, self.platform, ends, **options)
        with self.database.connect() as connection:
            return compare(connection, expected, self.lanes, inbox=self.inbox)

    def assert_exact(self, process=None, **options):
        report = self.differences(**options)
        tail = process.log_tail() if process is not None else ""
        assert not report, f"the database differs from the ledger\n{report}\n{tail}"

    def finish(self, process=None, timeout=60.0, **options):
        """Waits until everything is consumed and woken, then compares."""
        self.wait_until_consumed(process, timeout)
        self.wait_until_woken(process, timeout)
        self.audit()
        self.assert_exact(process, **options)
