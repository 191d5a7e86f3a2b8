"""One database, one topic and up to three instances, for many cycles; and the judgement over all records so far."""

import json
import os
import random
import re
import signal
import threading
import time
from pathlib import Path

import psycopg

from faults.lab import SEATS
from faults.servers import ROLE
from oracle import broker, rules
from oracle.compare import Report, compare
from oracle.ledger import Ledger
from oracle.traffic import Traffic
from support.daemon import SANITIZER, Receiptd, binary
from support.services import Database
from support.wait import wait_for
from support.world import Feeder, World

RECORD_SIZES = (1, 1, 1, 2, 5, 20, 50)
EVENTS = 6_000  # the most in a cycle: the feeder stops when the faults have ended
RATE = 1_500  # events a second
RSS_LIMIT = 256 * 1024 * 1024
DESCRIPTOR_LIMIT = 200
CLEAN = frozenset({0})

# The database refuses rows of these ids, as a platform's own constraint would.
REFUSAL = """
    CREATE TABLE public.unwanted (id text PRIMARY KEY);
    GRANT SELECT ON public.unwanted TO PUBLIC;
    CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF EXISTS (SELECT FROM public.unwanted WHERE id = NEW.message_id) THEN
            RAISE EXCEPTION 'not wanted' USING ERRCODE = 'P0001';
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER refuse BEFORE UPDATE ON receiptd.message_inbox FOR EACH ROW EXECUTE FUNCTION public.refuse();
"""


class LabDatabase(Database):
    """The era's database on the server that is the primary now; queries outlive outages."""

    name = None  # it is there from the start

    def __init__(self, lab, name):
        self.lab, self.name, self._connection = lab, name, None
        self.lock = threading.Lock()

    @property
    def dsn(self):
        return self.lab.primary.dsn(self.name)

    def connect(self, **arguments):
        return psycopg.connect(self.dsn, autocommit=True, **arguments)

    def execute(self, sql, *parameters):
        deadline = time.monotonic() + 30
        while True:
            try:
                with self.lock:
                    return self.connection.execute(sql, parameters or None)
            except psycopg.OperationalError:
                self.forget()
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def forget(self):
        """After a fail-over: the connection may still reach the old server."""
        if self._connection is not None:
            self._connection.close()


class Seat:
    """A seat for an instance of receiptd: its links, its configuration, its process."""

    def __init__(self, era, name):
        self.era, self.name, self.process, self.allowed, self.count = era, name, None, CLEAN, 0
        self.installation = Receiptd(era.make(name), era.lab.seat_dsn(name, era.database.name),
                                     era.lab.seat_brokers(name), [era.topic])

    @property
    def running(self):
        return self.process is not None and self.process.running

    def start(self, **options):
        self.count += 1
        self.allowed = CLEAN
        self.process = self.installation.start(f"{self.name}{self.count}", **options)
        return self.process

    def kill(self, number=signal.SIGKILL):
        """Ends as by a crash."""
        self.expect(-number)
        if self.running:
            self.process.signal(number)
            self.process.wait()

    def expect(self, *statuses):
        """Ways to end that are no anomaly."""
        self.allowed = frozenset(statuses)
        self.process.expected_status = min(statuses)

    def ended(self, statuses, timeout):
        """Ends by itself within the time, with one of these."""
        self.expect(*statuses)
        status = self.process.wait(timeout)
        assert status in statuses, f"instance {self.name} ended with {status}, not {statuses}\n{self.process.log_tail(12)}"
        self.process = None

    def leave(self, in_order=True):
        """Ends, and is not started again."""
        if in_order:
            self.process.stop()
        else:
            self.kill()
        self.process = None

    def settle(self):
        """Makes it awake and running; if it has ended, returns what is wrong with that end."""
        if self.process is None:
            return None
        if self.process.running:
            self.process.signal(signal.SIGCONT)
            return None
        status, self.process.expected_status = self.process.wait(), self.process.wait()
        trouble = None if status in self.allowed or self.is_fenced(status) else f"instance {self.name} ended with {status}"
        tail = "" if trouble is None else "\n" + self.process.log_tail(12)
        self.process = None
        return trouble and trouble + tail

    def is_fenced(self, status):
        """A static member whose answer to a join was lost is fenced by its own next one (librdkafka #3437): its supervisor starts it again."""
        return status == 75 and self.era.static and "Static consumer fenced" in self.process.log_tail(12)

    def measure(self):
        """(resident bytes, open descriptors) of the running process."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return (int(re.search(r"VmRSS:\s+(\d+)", status)[1]) * 1024,
                len(os.listdir(f"/proc/{self.process.pid}/fd")))


class Era(World):
    def __init__(self, lab, seed, directory):
        self.lab, self.directory, self.random = lab, Path(directory), random.Random(seed)
        name = f"era_{seed & 0xFFFFFFFF:x}_{time.monotonic_ns() & 0xFFFFFF:x}"
        with lab.primary.connect() as connection:
            connection.execute(f"CREATE DATABASE {name} OWNER {ROLE}")
        self.database = LabDatabase(lab, name)
        self.topic = lab.create_topic(name, self.random.choice((3, 8, 8)))
        self.lanes = self.random.choice((1, 8, 8, 32))
        self.seats = {seat: Seat(self, seat) for seat in SEATS}
        super().__init__(self.seats["a"].installation, self.database, self.topic, None, self.lanes)
        self.static = self.random.random() < 0.5
        settings = self.draw_settings()
        for seat in self.seats.values():
            own = {"instance_id": seat.name} if self.static else {}
            seat.installation.configure(**{**settings, "kafka": {**settings["kafka"], **own}})
        self.auditor = Receiptd(self.make("audit"), lab.direct_dsn(name), lab.brokers, [self.topic])
        self.auditor.configure(lanes=self.lanes, postgres={"connections": 1}, **rules.SETTINGS)
        self.auditor.migrate()
        self.database.execute(REFUSAL)
        self.ledger, self.read_to, self.first_message = Ledger({}), {}, 0
        self.sender, self.inserter, self.stop_feeding = None, None, threading.Event()

    def draw_settings(self):
        draw = self.random.choice
        properties = {"session.timeout.ms": "2000", "heartbeat.interval.ms": "300", "reconnect.backoff.max.ms": "500", "socket.timeout.ms": "8000",
                      "max.poll.interval.ms": "6000", "topic.metadata.refresh.interval.ms": "1000"}
        return {
            **rules.SETTINGS,
            "lanes": self.lanes,
            "kafka": {"group": self.database.name, "properties": properties, "on_retention_gap": "halt"},
            "postgres": {"lock_timeout": "1s", "statement_timeout": "6s", "zombie_timeout": "2s", "retry_max": "1s", "retry_min": "50ms",
                         "connect_timeout": "2s", "connections": min(self.lanes, draw((1, 2, 4))), "pipeline_depth": draw((1, 2, 3))},
            "batch": {"max_events": draw((100, 500, 4000))},
            "memory": {"budget": draw(("256KiB", "16MiB"))},
            "progress": {"verify_interval": "1s", "idle_interval": "200ms", "rewind_timeout": "2s"},
            "parked": {"poll_interval": "200ms", "wake_limit": draw((100, 1000))},
            "shutdown": {"deadline": "4s"},
            "log": {"stats_interval": "1s"},
        }

    def make(self, name):
        path = self.directory / name
        path.mkdir(parents=True)
        return path

    # ---- instances

    def occupied(self):
        return [seat for seat in self.seats.values() if seat.running]

    def occupy(self, count):
        """Sets the number of instances: starts some, or ends some in good order. Does not wait for partitions to move."""
        here = self.occupied()
        for seat in here[count:]:
            seat.process.signal(signal.SIGTERM)
        for seat in here[count:]:
            seat.ended((0,), 10)
        for seat in self.seats.values():
            if len(here) < count and not seat.running:
                seat.start()
                here.append(seat)

    # ---- traffic

    def begin(self, seed, poisoned=0):
        """Receipts flow from now on, and rows of late messages are inserted. poisoned: messages that the database refuses."""
        self.stream = Traffic(seed, EVENTS, self.topic.partitions, late=0.05, first=self.first_message,
                              sizes=RECORD_SIZES)
        self.first_message += len(self.stream.messages)
        self.stop_feeding.clear()
        self.insert_always(self.stream.early)
        self.ledger_rows(self.stream.platform)
        if poisoned:
            self.poison(poisoned)
        if self.sender is None:
            self.sender = broker.Sender(self.lab.brokers, str(self.topic), log_level=0, **{"reconnect.backoff.max.ms": 500})
        self.feeder = Feeder(self.send_stream)
        self.inserter = Feeder(self.insert_late)

    def some_records(self, source):
        """Makes a few more receipts of messages of this cycle, and some of messages without a row."""
        first = self.first_message - len(self.stream.messages)
        return Traffic(source.random(), 400, self.topic.partitions, first=first, sizes=RECORD_SIZES).records()

    def send_stream(self):
        interval, began = self.stream.events_per_record / RATE, time.monotonic()
        for count, outgoing in enumerate(self.stream.records()):
            if self.stop_feeding.is_set():
                break
            self.sender.send(outgoing)
            ahead = count * interval - (time.monotonic() - began)
            if ahead > 0.005:
                self.sender.poll()
                time.sleep(ahead)

    def insert_late(self):
        late = list(self.stream.late.items())
        while late:
            some, late = late[:50], late[50:]
            self.insert_always(dict(some))
            if late and not self.stop_feeding.is_set():
                time.sleep(0.1)

    def insert_always(self, rows, timeout=60):
        """The platform retries through every fault of the database, also after a lost answer."""
        deadline = time.monotonic() + timeout
        columns = [list(values) for values in zip(*((id, row.org_id, row.campaign_id, *rules.facets_of(id)) for id, row in rows.items()))]
        while True:
            try:
                with self.database.connect() as connection:
                    connection.execute(
                        f"INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id, {', '.join(rules.COLUMNS)})"
                        f" SELECT * FROM unnest({', '.join(['%s::text[]'] * len(columns))}) ON CONFLICT DO NOTHING", columns)
                return
            except psycopg.Error:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def poison(self, count):
        """The database will refuse every receipt of so many messages. Receipts that change no row are never refused:
        messages that have one do not serve."""
        harmless = {message for message, status in self.stream.happenings if status in ('"TARGETED"', "0")}
        chosen = [message for message in self.random.sample(self.stream.messages, count) if message not in harmless]
        ids = {json.loads(message.spellings[0]) for message in chosen} & self.stream.platform.keys()
        self.database.execute("INSERT INTO public.unwanted SELECT unnest(%s::text[])", list(ids))
        self.ledger.refused |= ids

    def ledger_rows(self, rows):
        self.ledger.platform.update(rows)
        for id in rows:
            self.ledger.status.setdefault(id, 0)

    def finish_rows(self):
        """Waits until all rows of the cycle are there: for faults that would also lose rows of the platform."""
        if self.inserter is not None:
            self.inserter.join()

    def end_feeding(self):
        self.stop_feeding.set()
        self.feeder.join()
        self.inserter.join()
        self.sender.flush()

    # ---- judgement

    def settle(self):
        """Wakes or restarts every instance that should run; returns what went wrong with those that had ended."""
        trouble = [text for seat in self.seats.values() if (text := seat.settle())]
        if not self.occupied():
            self.seats["a"].start()
        return trouble

    def group_log(self):
        return "\n".join(f"-- {seat.name}\n{seat.process.log_tail(12)}" for seat in self.occupied())

    def differences(self):
        records, ends = broker.read_log(self.lab.brokers, str(self.topic), since=self.read_to)
        self.ledger.positions.update(ends)
        for record in records:
            self.ledger.add(record)
        self.read_to = ends
        with self.database.connect() as connection:
            report = compare(connection, self.ledger, self.lanes)
            rules.compare_rules(report, connection, self.ledger)
            return report

    def judge(self):
        """{anomaly: (how many, examples)}; nothing is in flight any more."""
        report, self.caught_up_at = Report(), time.monotonic()
        try:
            self.wait_until_consumed(timeout=60)
            self.caught_up_at = time.monotonic()
            self.wait_until_woken(timeout=30)
        except AssertionError as error:
            report.add("stuck", f"{error}\n{self.group_log()}")
            return report
        self.auditor.configure(postgres={"dsn": self.lab.direct_dsn(self.database.name)})
        audit = self.auditor.command("audit", check=False)
        if audit.returncode != 0:
            report.add("audit", f"status {audit.returncode}\n{audit.stdout}{audit.stderr}")
        found = self.differences()
        for name, count in found.counts.items():
            report.counts[name] += count
            report.examples[name] += found.examples[name]
        self.measure(report)
        return report

    def measure(self, report):
        if "asan" in str(binary()) or "tsan" in str(binary()):
            return
        for seat in self.occupied():
            resident, descriptors = seat.measure()
            if resident > RSS_LIMIT:
                report.add("memory", f"instance {seat.name}: {resident >> 20} MiB resident")
            if descriptors > DESCRIPTOR_LIMIT:
                report.add("descriptors", f"instance {seat.name}: {descriptors} open")

    # ---- the end

    def close(self):
        """Instances end in good order; returns what went wrong, sanitizer reports included."""
        trouble = []
        for seat in self.seats.values():
            try:
                if seat.running:
                    seat.process.stop()
            except AssertionError as error:
                trouble.append(str(error))
            for process in seat.installation.processes:
                if process.running:
                    process.kill()
                process._log.close()
        for path in self.directory.glob("*/*.log"):
            found = SANITIZER.search(path.read_text(errors="replace"))
            if found:
                trouble.append(f"{path}: sanitizer report")
        self.database.forget()
        wait_for(self.drop, 30, f"database {self.database.name} dropped")
        return trouble

    def drop(self):
        try:
            with self.lab.primary.connect() as connection:
                connection.execute(f"DROP DATABASE IF EXISTS {self.database.name} WITH (FORCE)")
            return True
        except psycopg.OperationalError:
            return False
