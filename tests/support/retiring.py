"""Daemons, a stream of receipts and of new messages, and `receiptd maintain` again and again, while each of them is killed."""

import contextlib
import itertools
import json
import random
import threading
import time
from collections import Counter

import psycopg

from oracle import broker, ledger, retired
from oracle.compare import compare
from oracle.traffic import Outgoing
from support import sends
from support.layouts import keep_of
from support.servers import Postgres, Replica
from support.wait import wait_for
from support.world import Feeder

RECEIPTS_PER_SECOND = 1_500
STATUSES = ("IN_GTW", "SENT", "SENT", "DELIVERED", "DELIVERED", "OPENED", "CLICKED", "FAILED", "EXPIRED", "COMPLAINED", "UNSUBSCRIBED")
KINDS = ("daemon", "daemon", "maintain", "session", "step", "step", "step", "daemon and maintain", "sessions", "crash", "crash", "replica")
SESSIONS = "SELECT pid, query LIKE %s FROM pg_stat_activity WHERE application_name LIKE %s AND datname = current_database()"


class Retiring:
    """begin(), some cycle()s, judge(), close(). `world`: with the layout's inbox and without a stream; `services`: servers that may be
    crashed; `layout`: of support/layouts.py; `points`: failure points that advance, too."""

    def __init__(self, world, services, seed, layout, instances=2, points=None):
        self.layout, self.instances, self.points, self.ordered = layout, "ab"[:instances], points, None
        self.world, self.database, self.services, self.postgres = world, world.database, services, Postgres(services)
        self.random = random.Random(f"{seed}")
        self.quiet = threading.Lock()  # whoever holds it: no message is inserted meanwhile
        self.over, self.maintained = threading.Event(), threading.Event()
        self.ids, self.coming, self.early, self.due = [], [], set(), {}
        self.faults, self.present, self.started, self.runs, self.figures = 0, 0, 0, 0, Counter()
        self.daemons, self.run, self.threads = {}, None, []
        steps = list(layout.steps)
        self.random.shuffle(steps)
        self.steps = itertools.cycle(steps)

    def begin(self):
        self.alter_system("SET wal_writer_delay = '10s'", "SET wal_writer_flush_after = '1GB'")  # a crash takes much with it
        # Each run walks the tables, not one a day.
        self.database.execute("CREATE FUNCTION public.forget() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
        self.database.execute("CREATE TRIGGER forget BEFORE INSERT ON receiptd.maintained FOR EACH ROW EXECUTE FUNCTION public.forget()")
        self.daemons = {name: self.start(name) for name in self.instances}
        self.threads = [Feeder(self.insert), Feeder(self.feed), Feeder(self.maintain)]

    def alter_system(self, *settings):
        with psycopg.connect(self.services.dsn, autocommit=True) as connection:
            for setting in settings:
                connection.execute(f"ALTER SYSTEM {setting}")
            connection.execute("SELECT pg_reload_conf()")

    def start(self, name):
        self.started += 1
        return self.world.installation.start(f"{name}{self.started}")

    # ---- what goes on all the time

    def insert(self):
        draw, every = random.Random(self.random.random()), 0.1
        while True:
            rows = self.layout.make_rows(draw, int(self.layout.per_second * every))
            self.coming = list(rows)  # some receipts come before their message
            last = self.over.wait(every)
            wait_for(lambda: self.put(rows), 60, "the messages are taken")
            self.world.platform.update(rows)
            self.ids.extend(rows)
            if last:
                return

    def put(self, rows):
        """False: a default partition that is becoming one of its time refuses them for the moment."""
        with self.quiet, self.database.connect() as connection, contextlib.suppress(psycopg.errors.CheckViolation):
            self.due.update((id, time.time() + keep_of(row)) for id, row in rows.items() if keep_of(row))
            self.world.insert_many(connection, list(rows.items()))
            return True
        self.figures["messages refused for a moment"] += len(rows)
        return False

    def choose(self, draw):
        chance, ids, coming = draw.random(), self.ids, self.coming
        if chance < 0.01:
            return f"ghost {draw.randrange(10**9)}"
        if (chance < 0.04 or not ids) and coming:
            id = draw.choice(coming)
            self.early.add(id)
            return id
        if chance < 0.15:
            return draw.choice(ids)  # of any age: most of these have been deleted
        return ids[-1 - min(len(ids) - 1, int(draw.expovariate(1 / (3 * self.layout.per_second))))]

    def record(self, ids, draw):
        events = [{"message_id": id, "status": draw.choice(STATUSES)} for id in ids]
        return Outgoing(draw.randrange(self.world.topic.partitions), None, json.dumps(events).encode(), None, int(time.time() * 1000))

    def feed(self):
        draw, sender, began, sent = random.Random(self.random.random()), broker.Sender(self.world.brokers, str(self.world.topic)), time.monotonic(), 0
        wait_for(lambda: self.coming, 30, "the first messages")
        while not self.over.is_set():
            count = draw.choice((1, 1, 2, 5, 20))
            sender.send(self.record([self.choose(draw) for _ in range(count)], draw))
            sent += count
            ahead = sent / RECEIPTS_PER_SECOND - (time.monotonic() - began)
            if ahead > 0:
                sender.poll()
                time.sleep(ahead)
        sender.flush()

    def maintain(self):
        """A run ends well, unless a fault happened while it was there."""
        while not self.over.is_set():
            before, point = self.faults, self.ordered
            command = point.command if point else "maintain"
            log = self.world.installation.directory / f"receiptd-{command}.log"
            begun = log.stat().st_size if log.exists() else 0
            self.run = self.world.installation.start(command, command=command, environment=sends.environment(point) if point else None)
            status = self.run.wait(120)
            said = log.read_bytes()[begun:].decode(errors="replace")
            self.figures["partitions made"] += said.count("partitions: made") + said.count("become partition")
            self.figures["partitions dropped"] += said.count(" and dropped")
            self.figures["partitions that came back"] += said.count("so the partition stays")
            if point:
                self.note(point, status, said)
            elif status == 0:
                self.runs += 1
            may_fail = before != self.faults or self.present or "messages of more than one kind" in said
            assert status >= 0 or status == self.run.expected_status, f"{command} was ended by signal {-status}"
            assert status == 0 or may_fail, f"{command} ended with {status}, and nothing was done to it\n{said}"
            time.sleep(0.02)

    def note(self, point, status, said):
        """A run beside the session of a killed one leaves steps out."""
        self.run.expected_status = -9
        if status == -9 or "another run" not in said:
            self.points.note(self.layout.name, point, status == -9)
            self.figures["failure points"] += status == -9
        self.ordered = None

    # ---- the faults

    def cycle(self):
        """One fault; returns its kind."""
        kind = self.random.choice(KINDS + ("point",) * (len(KINDS) if self.points else 0))
        time.sleep(self.random.uniform(0.2, 1.2))
        kind = getattr(self, "fault_" + kind.replace(" ", "_"))() or kind
        self.check()
        return kind

    @contextlib.contextmanager
    def fault(self):
        """Meanwhile, a run of maintain may fail; also one that was there before."""
        self.faults, self.present = self.faults + 1, self.present + 1
        try:
            yield
        finally:
            self.faults, self.present = self.faults + 1, self.present - 1

    def check(self):
        """None of the threads, and none of the daemons, ended by itself."""
        for thread in self.threads:
            if thread.error is not None:
                raise thread.error
        for process in self.daemons.values():
            assert process.running, f"receiptd ended\n{process.log_tail()}"

    def fault_daemon(self):
        name = self.random.choice(self.instances)
        self.daemons[name].kill()
        time.sleep(self.random.uniform(0, 0.5))
        self.daemons[name] = self.start(name)

    def kill_run(self):
        with self.fault():
            if self.run is not None and self.run.running:
                self.run.kill()

    def fault_maintain(self):
        self.kill_run()

    def fault_daemon_and_maintain(self):
        self.kill_run()
        self.fault_daemon()

    def terminate(self, like):
        with self.fault():
            for pid, _ in self.database.query(SESSIONS, "", like):
                self.database.execute("SELECT pg_terminate_backend(%s)", pid)

    def fault_session(self):
        self.terminate("receiptd/maintain")

    def fault_sessions(self):
        self.terminate("receiptd/%")

    def fault_step(self):
        """The run, its session or both end at a step that is named. Where the step does not come, they end all the same."""
        step = next(self.steps)
        seen, deadline = False, time.monotonic() + 3
        while not seen and time.monotonic() < deadline:
            seen = any(there for _, there in self.database.query(SESSIONS, self.layout.steps[step], "receiptd/maintain"))
        which = self.random.choice(("run", "session", "both"))
        if which != "session":
            self.kill_run()
        if which != "run":
            self.fault_session()
        return f"step: {step}" if seen else "maintain"

    def fault_point(self):
        """The next run is killed at a point further on than the last."""
        with self.fault():
            self.ordered = point = self.points.next(self.layout.name)
            wait_for(lambda: self.ordered is None or not self.threads[-1].is_alive(), 120, "the run that is to be killed ends", interval=0.01)
        return f"point of {point.command}"

    def positions(self):
        return dict(((partition, lane), at) for partition, lane, at in self.database.query(
            "SELECT partition, lane, next_offset FROM receiptd.consumer_progress"))

    def fault_crash(self):
        """Nothing flushes the log for a while: then a crash takes receipts, deletions and positions back."""
        with self.quiet:
            before = self.after_a_while()
            with self.fault():
                self.postgres.stop_immediately()
                self.postgres.start()
            self.note_return("crashes", *before)

    def fault_replica(self):
        """A replica that is behind takes the place of the primary, with the same effect."""
        replica = Replica(self.postgres)
        try:
            with self.quiet:
                replica.cut_off()
                before = self.after_a_while()
                with self.fault():
                    replica.take_over()
                self.note_return("replicas", *before)
        finally:
            replica.stop()

    def after_a_while(self):
        time.sleep(self.random.uniform(0, 1))
        before = self.positions(), self.booked()
        self.database.close()
        return before

    def note_return(self, what, positions, booked):
        after = self.positions()
        self.figures[f"{what} that lost receipts"] += any(after.get(key, 0) < at for key, at in positions.items())
        self.figures[f"{what} that brought deleted messages back"] += self.booked() < booked

    def booked(self):
        return self.database.value("SELECT COALESCE(sum(messages), 0)::int8 FROM receiptd.campaign_retired")

    # ---- the judgement

    def judge(self):
        """Adds to the figures; an assertion says what is wrong."""
        self.over.set()
        for thread in self.threads:
            thread.join()
        self.check()
        self.consume()
        left = "SELECT count(*) FROM receiptd.message_inbox WHERE campaign_id <> 'kept'"
        wait_for(lambda: self.world.installation.command("retire") and self.database.value(left) == 0, 60, "all that is due goes", interval=0.5)
        sample = self.random.sample(sorted(self.due), min(300, len(self.due)))
        sent = self.world.topic.send(*({"message_id": id, "status": "CLICKED"} for id in sample))
        self.consume()
        self.mend()
        self.compare({(str(self.world.topic), *place, 0) for place in sent})
        self.world.audit()
        for process in self.daemons.values():
            process.stop(60)

    def consume(self):
        self.world.wait_until_consumed(timeout=120)
        self.world.wait_until_woken(timeout=60)
        waiting = "SELECT count(*) FROM receiptd.parked_event WHERE message_id NOT LIKE 'ghost %'"
        wait_for(lambda: self.database.value(waiting) == 0, 60, "receipts of deleted messages are not waiting")

    def mend(self):
        """The next whole run leaves nothing half done. The server may go on with a run that was killed."""
        wait_for(lambda: "another run" not in self.world.installation.command("maintain").stdout, 60, "the sessions of killed runs end")
        self.layout.check(self.database)

    def compare(self, must_be_late):
        records, ends = broker.read_log(self.world.brokers, str(self.world.topic))
        with self.database.connect() as connection:
            late = retired.read_late(connection)
            expected = ledger.ledger_of(records, self.world.platform, ends, late=late)
            report = compare(connection, expected, self.world.lanes, may_go=self.due.keys())
        due = self.due | {id: 0 for id in self.world.platform if self.layout.is_backdated(id)}
        retired.check_late(report, records, late, due, self.world.platform if self.layout.backdated else self.early)
        for key in must_be_late - late.keys():
            report.add("late, and no letter", f"{key}")
        assert not report, f"the database differs from the ledger\n{report}"
        self.figures.update({"receipts": expected.receipts + len(late) + len(expected.parked), "late": len(late),
                             "deleted": len(self.due), "messages": len(self.world.platform), "runs": self.runs})

    def close(self):
        self.over.set()
        if not self.postgres.answers():
            self.postgres.start()
        self.kill_run()
        self.alter_system("RESET wal_writer_delay", "RESET wal_writer_flush_after")
