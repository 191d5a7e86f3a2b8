"""Instances restarted one after the other while receipts come in, and how long each partition stood still meanwhile."""

import itertools
import signal
import statistics
import threading
import time

from oracle import broker
from support.operations import Operations
from support.world import Feeder

LOOK_EVERY = 0.02  # seconds
SIZES = (1, 1, 2, 5, 10)  # receipts in a record: few, so that every partition gets some all the time


class Watcher(threading.Thread):
    """Polls the positions all the time. Every partition always gets new records, so one that does not move stands still."""

    QUERY = "SELECT partition, sum(next_offset)::int8 FROM receiptd.consumer_progress WHERE topic = %s GROUP BY partition"

    def __init__(self, world):
        super().__init__(daemon=True)
        self.world, self.topic, self.connection = world, str(world.topic), world.database.connect()
        self.lock, self.moved, self.position, self.longest, self.error = threading.Lock(), {}, {}, {}, None
        self.ended = threading.Event()
        self.start()

    def run(self):
        try:
            while not self.ended.is_set():
                self.look()
                time.sleep(LOOK_EVERY)
        except Exception as error:
            self.error = error

    def look(self):
        rows, now = self.connection.execute(self.QUERY, (self.topic,)).fetchall(), time.monotonic()
        with self.lock:
            for partition, position in rows:
                if position != self.position.get(partition):
                    self.position[partition], self.moved[partition] = position, now
                stood = now - self.moved[partition]
                self.longest[partition] = max(stood, self.longest.get(partition, 0.0))

    def take(self):
        """The longest time that any partition stood still since the last call; a standstill that still lasts counts."""
        with self.lock:
            longest, self.longest = max(self.longest.values(), default=0.0), {}
            return longest

    def still(self):
        """Partitions that have not moved since the first poll."""
        with self.lock:
            return {partition: now for partition, now in self.position.items()}

    def end(self):
        self.ended.set()
        self.join(60)
        self.connection.close()
        if self.error is not None:
            raise self.error


class Rolling:
    """The same configuration for all instances, each with its own process."""

    def __init__(self, world, instances=3, per_second=3_000):
        self.world, self.per_second = world, per_second
        self.names = [chr(ord("a") + index) for index in range(instances)]
        self.count, self.processes, self.stop_feeding = itertools.count(), {}, threading.Event()
        self.stood = {"SIGTERM": [], "SIGKILL": []}

    def begin(self):
        for name in self.names:
            self.start(name)
        world, pace = self.world, self.per_second / self.world.stream.events_per_record
        world.feeder = Feeder(lambda: broker.produce(world.brokers, str(world.topic), self.records(), per_second=pace,
                                                     stop=self.stop_feeding))
        for process in self.processes.values():
            Operations(process).wait_until_ready(120)
        world.wait_for_progress(timeout=120)
        self.watcher = Watcher(world)
        self.wait_until_all_move()
        self.watcher.take()

    def records(self):
        """Repeats the stream: however long the restarts take, receipts come in."""
        while True:
            yield from self.world.stream.records()

    def start(self, name):
        self.processes[name] = self.world.installation.start(f"{name}{next(self.count)}")

    def wait_until_all_move(self):
        """Every partition has an owner that works: its position moves."""
        before, partitions = self.watcher.still(), range(self.world.topic.partitions)

        def moved():
            assert self.world.is_feeding(), "the stream has ended"
            assert self.watcher.error is None, self.watcher.error
            now = self.watcher.still()
            return all(now.get(partition) != before.get(partition) for partition in partitions)

        self.world.wait(moved, timeout=120, what="all partitions move",
                        details=lambda: "\n".join(process.log_tail(12) for process in self.processes.values()))

    def restart(self, number, name):
        """One instance ends and starts again; the next one's turn begins when this one is ready and all partitions move."""
        process = self.processes[name]
        if number == signal.SIGTERM:
            process.stop(60)
        else:
            process.kill()
        self.start(name)
        Operations(self.processes[name]).wait_until_ready(120)
        self.wait_until_all_move()
        self.stood[number.name].append(self.watcher.take())
        return self.stood[number.name][-1]

    def roll(self, restarts, kills):
        """Yields (signal, instance, seconds that some partition stood still) for each."""
        turns = [(signal.SIGTERM, index) for index in range(restarts)] + [(signal.SIGKILL, index) for index in range(kills)]
        for number, index in turns:
            name = self.names[index % len(self.names)]
            yield number, name, self.restart(number, name)

    def finish(self):
        """The stream ends, all rows are there: everything exactly once."""
        self.stop_feeding.set()
        self.world.feeder.join()
        self.watcher.end()
        self.world.insert(self.world.stream.late)
        self.world.wait_until_consumed(timeout=120)
        self.world.wait_until_woken(timeout=120)
        self.world.audit()
        self.world.assert_exact()
        for process in self.processes.values():
            process.stop(60)

    def table(self):
        """{signal: (how often, median, longest)}"""
        return {name: (len(stood), statistics.median(stood), max(stood)) for name, stood in self.stood.items() if stood}
