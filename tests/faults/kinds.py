"""What a kind of fault is, and what it may use.

A kind is a function of the cycle. It is called while receipts flow, injects its fault, and returns when the fault is over.
(Links and processes that it leaves broken are repaired afterwards.) It names the row of the fault matrix that it serves.
"""

import random
import threading
import time
from collections import namedtuple
from contextlib import contextmanager

import psycopg

from faults.lab import SEATS
from support.wait import wait_for

# seats: fewest instances it needs. brokers: how many, 0 for any. needs: what the machine must have.
Kind = namedtuple("Kind", "name cells title seats brokers needs run")
KINDS = {}


def kind(cells, title, seats=1, brokers=0, needs=None):
    """Declares a kind; `cells` are the rows of the matrix that it serves."""

    def declare(function):
        name = function.__name__.replace("_", "-")
        KINDS[name] = Kind(name, tuple(cells.split()), title, seats, brokers, needs, function)
        return function

    return declare


class Cycle:
    """What a kind works with: the laboratory, the era, and random numbers that depend on the seed alone."""

    def __init__(self, era, seed):
        self.era, self.lab, self.random = era, era.lab, random.Random(seed)
        self.notes, self.times = [], {}

    # ---- chance and time

    def pause(self, shortest=0.05, longest=0.8):
        time.sleep(self.random.uniform(shortest, longest))

    def wait_for_receipts(self):
        """Waits until some position has moved, so that the next fault hits instances at work; at most 10 s, as other faults may go on."""
        before = self.positions()
        try:
            wait_for(lambda: self.positions() != before, 10, "positions move")
        except AssertionError:
            self.notes.append("nothing moved for 10 s before the fault")

    def must_move(self):
        """Waits until the running instances consume receipts."""
        before = self.positions()
        wait_for(lambda: self.positions() != before or not self.era.is_feeding(), 15, "positions move",
                 details=self.era.group_log)

    def positions(self):
        return dict(self.era.database.query(
            "SELECT (partition, lane)::text, next_offset FROM receiptd.consumer_progress"))

    # ---- instances

    def victim(self):
        return self.random.choice(self.era.occupied())

    def victims(self):
        """Some of the instances, in any order, at least one."""
        here = self.era.occupied()
        return self.random.sample(here, self.random.randint(1, len(here)))

    def some_seats(self):
        """Names of one seat, or of the seats of all instances."""
        return self.random.choice([[self.victim().name], list(SEATS)])

    def links(self, what, seats=None):
        return self.lab.links(what, self.some_seats() if seats is None else seats)

    # ---- the database

    def value(self, sql, *parameters):
        return self.era.database.value(sql, *parameters)

    def execute(self, sql, *parameters):
        self.era.database.execute(sql, *parameters)

    @contextmanager
    def operator(self):
        """A connection of a superuser, whose server may end under it."""
        try:
            with psycopg.connect(self.era.database.dsn, autocommit=True) as connection:
                yield connection
        except psycopg.OperationalError as error:
            self.notes.append(f"operator: {type(error).__name__}")

    def backends(self):
        """Process ids of the instances' sessions, in any order."""
        query = ("SELECT pid FROM pg_stat_activity WHERE datname = current_database()"
                 " AND application_name LIKE 'receiptd/%'")
        found = [pid for (pid,) in self.era.database.query(query)]
        self.random.shuffle(found)
        return found

    def terminate(self, pids):
        for pid in pids:
            self.value("SELECT pg_terminate_backend(%s)", pid)

    # ---- several at once

    def beside(self, *functions):
        """Runs the first in this thread, which starts servers, and the others beside it."""
        errors = []

        def work(function):
            try:
                function(self)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(function,)) for function in functions[1:]]
        for thread in threads:
            thread.start()
        try:
            functions[0](self)
        finally:
            for thread in threads:
                thread.join()
        if errors:
            raise errors[0]


def load():
    """All kinds, in the order of their first cell."""
    from faults import kinds_flights, kinds_kafka, kinds_links, kinds_postgres, kinds_process, kinds_together  # noqa: F401

    return dict(sorted(KINDS.items(), key=lambda item: item[1].cells))
