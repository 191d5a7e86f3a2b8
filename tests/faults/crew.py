"""A database, a topic and up to three instances in a laboratory: what a fault meets, whatever flows there and whoever judges it."""

import os
import re
import signal
import threading
import time
from pathlib import Path

import psycopg

from faults.lab import SEATS
from faults.servers import ROLE
from support.daemon import SANITIZER, Receiptd, binary, merge
from support.services import Database
from support.wait import wait_for
from support.world import World

RSS_LIMIT = 256 * 1024 * 1024
DESCRIPTOR_LIMIT = 200
CLEAN = frozenset({0})


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


class Crew(World):
    """`name`: of the database, the topic and the group. A subclass makes receipts flow and judges. It has what kinds of faults ask for:
    is_feeding() and finish_rows()."""

    more_drifts = ()  # of the schema: what puts it wrong, what puts it right

    def __init__(self, lab, name, directory, source, partitions, lanes):
        self.lab, self.directory = lab, Path(directory)
        with lab.primary.connect() as connection:
            connection.execute(f"CREATE DATABASE {name} OWNER {ROLE}")
        self.database, self.topic = LabDatabase(lab, name), lab.create_topic(name, partitions)
        self.seats = {seat: Seat(self, seat) for seat in SEATS}
        super().__init__(self.seats["a"].installation, self.database, self.topic, None, lanes)
        self.random = source
        self.auditor = Receiptd(self.make("audit"), lab.direct_dsn(name), lab.brokers, [self.topic])

    def equip(self, settings):
        """Configures the instances, as static members or not, and whoever audits; makes the tables."""
        self.static = self.random.random() < 0.5
        settings = merge(self.draw_settings(), settings)
        for seat in self.seats.values():
            seat.installation.configure(**settings)
            if self.static:
                seat.installation.configure(kafka={"instance_id": seat.name})
        self.auditor.configure(**{**settings, "postgres": {"connections": 1}})
        self.command("migrate")

    def draw_settings(self):
        draw = self.random.choice
        properties = {"session.timeout.ms": "2000", "heartbeat.interval.ms": "300", "reconnect.backoff.max.ms": "500", "socket.timeout.ms": "8000",
                      "max.poll.interval.ms": "6000", "topic.metadata.refresh.interval.ms": "1000"}
        return {
            "lanes": self.lanes,
            "kafka": {"group": self.database.name, "properties": properties, "on_retention_gap": "halt"},
            "postgres": {"lock_timeout": "1s", "statement_timeout": "6s", "zombie_timeout": "2s", "retry_max": "1s", "retry_min": "50ms",
                         "connect_timeout": "2s", "connections": min(self.lanes, draw((1, 2, 4)))},
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

    def settle(self):
        """Wakes or restarts every instance that should run; returns what went wrong with those that had ended."""
        trouble = [text for seat in self.seats.values() if (text := seat.settle())]
        if not self.occupied():
            self.seats["a"].start()
        return trouble

    def group_log(self):
        return "\n".join(f"-- {seat.name}\n{seat.process.log_tail(12)}" for seat in self.occupied())

    def command(self, *arguments, **options):
        """Runs a command on whichever server is the primary now, past the proxy."""
        self.auditor.configure(postgres={"dsn": self.lab.direct_dsn(self.database.name)})
        return self.auditor.command(*arguments, **options)

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
