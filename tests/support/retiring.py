"""Two daemons, a stream of receipts and of new messages, and `receiptd maintain` again and again, while each of them is killed."""

import contextlib
import json
import random
import threading
import time
import uuid
from collections import Counter

import psycopg

from oracle import broker, ledger, retired
from oracle.compare import compare
from oracle.ledger import Row
from oracle.traffic import Outgoing
from support.servers import Postgres
from support.wait import wait_for
from support.world import Feeder

MESSAGES_PER_SECOND, RECEIPTS_PER_SECOND = 500, 1_500
# Seconds that a message stays: a campaign counts before an organisation, and both before the rest. 0: without limit.
CAMPAIGNS, ORGANISATIONS, REST = {"longer": 8, "kept": 0}, {"bank": 6}, 4
INBOX = {"recent_rows": 500, "retention": f"{REST}s", "retention_overrides": [
    *({"campaign": name, "keep": f"{keep}s"} for name, keep in CAMPAIGNS.items()),
    *({"org_id": name, "keep": f"{keep}s"} for name, keep in ORGANISATIONS.items())]}
STATUSES = ("IN_GTW", "SENT", "SENT", "DELIVERED", "DELIVERED", "OPENED", "CLICKED", "FAILED", "EXPIRED", "COMPLAINED", "UNSUBSCRIBED")
KINDS = ("daemon", "daemon", "maintain", "session", "step", "step", "step", "daemon and maintain", "sessions", "crash", "crash")
# What the last statement of a run's session has in it, once the run has come to that step.
STEPS = {"delete": "%picked AS (%", "add together": "%campaign_retired r%", "sample": "%TABLESAMPLE%", "make the index": "%CREATE UNIQUE INDEX%",
         "move the boundary": "%INSERT INTO inbox_recent%", "drop the index": "%DROP INDEX%"}
SESSIONS = "SELECT pid, query LIKE %s FROM pg_stat_activity WHERE application_name LIKE %s AND datname = current_database()"


def keep_of(row):
    return CAMPAIGNS.get(row.campaign_id, ORGANISATIONS.get(row.org_id, REST))


class Retiring:
    """begin(), some cycle()s, judge(), close(). `world`: with INBOX and without a stream; `services`: servers that may be crashed."""

    def __init__(self, world, services, seed):
        self.world, self.database, self.services, self.postgres = world, world.database, services, Postgres(services)
        self.random = random.Random(f"{seed}")
        self.quiet = threading.Lock()  # whoever holds it: no message is inserted meanwhile
        self.over, self.maintained = threading.Event(), threading.Event()
        self.ids, self.coming, self.early, self.due = [], [], set(), {}
        self.faults, self.present, self.started, self.runs, self.figures = 0, 0, 0, 0, Counter()
        self.daemons, self.run, self.threads = {}, None, []

    def begin(self):
        self.alter_system("SET wal_writer_delay = '10s'", "SET wal_writer_flush_after = '1GB'")  # a crash takes much with it
        # Each run walks the tables, not one a day.
        self.database.execute("CREATE FUNCTION public.forget() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END'")
        self.database.execute("CREATE TRIGGER forget BEFORE INSERT ON receiptd.maintained FOR EACH ROW EXECUTE FUNCTION public.forget()")
        self.daemons = {name: self.start(name) for name in "ab"}
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

    def make_rows(self, draw, count):
        return {str(uuid.UUID(int=draw.getrandbits(128), version=4)): Row(draw.choice(("shop", "shop", "bank")), draw.choice((
            "c0", "c1", "c2", "c3", "longer", "kept"))) for _ in range(count)}

    def insert(self):
        draw, every = random.Random(self.random.random()), 0.1
        while True:
            rows = self.make_rows(draw, int(MESSAGES_PER_SECOND * every))
            self.coming = list(rows)  # some receipts come before their message
            last = self.over.wait(every)
            with self.quiet, self.database.connect() as connection:
                self.due.update((id, time.time() + keep_of(row)) for id, row in rows.items() if keep_of(row))
                self.world.insert_many(connection, list(rows.items()))
            self.world.platform.update(rows)
            self.ids.extend(rows)
            if last:
                return

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
        return ids[-1 - min(len(ids) - 1, int(draw.expovariate(1 / (3 * MESSAGES_PER_SECOND))))]

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
            before = self.faults
            self.run = self.world.installation.start("maintain", command="maintain")
            status = self.run.wait(120)
            if status == 0:
                self.runs += 1
            assert status >= 0 or status == self.run.expected_status, f"maintain was ended by signal {-status}"
            assert status == 0 or before != self.faults or self.present, f"maintain ended with {status}, and nothing was done to it\n{self.run.log_tail()}"
            time.sleep(0.02)

    # ---- the faults

    def cycle(self):
        """One fault; returns its kind."""
        kind = self.random.choice(KINDS)
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
        name = self.random.choice("ab")
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
        step = self.random.choice(tuple(STEPS))
        seen, deadline = False, time.monotonic() + 3
        while not seen and time.monotonic() < deadline:
            seen = any(there for _, there in self.database.query(SESSIONS, STEPS[step], "receiptd/maintain"))
        which = self.random.choice(("run", "session", "both"))
        if which != "session":
            self.kill_run()
        if which != "run":
            self.fault_session()
        return f"step: {step}" if seen else "maintain"

    def positions(self):
        return dict(((partition, lane), at) for partition, lane, at in self.database.query(
            "SELECT partition, lane, next_offset FROM receiptd.consumer_progress"))

    def fault_crash(self):
        """Nothing flushes the log for a while: then a crash takes receipts, deletions and positions back."""
        with self.quiet:
            time.sleep(self.random.uniform(0, 1))
            before = self.positions()
            booked = self.booked()
            self.database.close()
            with self.fault():
                self.postgres.stop_immediately()
                self.postgres.start()
            after = self.positions()
            self.figures["crashes that lost receipts"] += any(after.get(key, 0) < at for key, at in before.items())
            self.figures["crashes that brought deleted messages back"] += self.booked() < booked

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
        """The next whole run leaves one index, that of the boundary. The server may go on with a run that was killed."""
        wait_for(lambda: "another run" not in self.world.installation.command("maintain").stdout, 60, "the sessions of killed runs end")
        indexes = self.database.query("SELECT c.relname::text, x.indisvalid FROM pg_index x JOIN pg_class c ON c.oid = x.indexrelid WHERE x.indrelid ="
                                      " 'receiptd.message_inbox'::regclass AND (c.relname LIKE 'message_inbox_recent%' OR NOT x.indisvalid)")
        named = self.database.query("SELECT index_name, true FROM receiptd.inbox_recent")
        assert indexes == named, f"indexes {indexes}, boundaries {named}"

    def compare(self, must_be_late):
        records, ends = broker.read_log(self.world.brokers, str(self.world.topic))
        with self.database.connect() as connection:
            late = retired.read_late(connection)
            expected = ledger.ledger_of(records, self.world.platform, ends, late=late)
            report = compare(connection, expected, self.world.lanes, may_go=self.due.keys())
        retired.check_late(report, records, late, self.due, self.early)
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
