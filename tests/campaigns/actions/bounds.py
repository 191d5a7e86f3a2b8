"""Scenario bounds: a window, a cap of open runs, a cap of a person, and persons who are suppressed while runs go on.

Each round has an organisation and a window of its own. Two pipelines reach the same people. No call arrives outside of the window,
no organisation has more open runs than its cap, nobody is called twice, and nobody after the suppression was to be seen.
"""

import collections
import datetime
import threading
import time

from support.daemon import Receiptd
from support.receiver import Receiver
from support.wait import wait_for

from .faults import Instances

OPEN_RUNS = 15
PER_CYCLE = 8
BEFORE, LENGTH = 3, 20  # seconds until the window opens, and how long it is
REST = 60.0


class Bounds:
    def __init__(self, pair, random, directory):
        self.random, self.anomalies, self.runs, self.round = random, [], 0, 0
        self.receiver = Receiver(self.answer)
        self.database, self.topic, self.people = pair.create_database(), pair.create_topic(2), pair.create_topic(4)
        self.installation = Receiptd(directory, self.database.dsn, pair.brokers, [self.topic])
        self.subjects, self.complained, self.seen, self.judged, self.outcomes = [], set(), {}, 0, collections.Counter()
        self.configure()
        self.installation.migrate()
        self.instances = Instances(pair, self.database, self.installation, random)
        self.ended, self.most = threading.Event(), 0
        self.watcher = threading.Thread(target=self.watch)
        self.watcher.start()

    @property
    def org(self):
        return f"o{self.round}"

    def configure(self):
        self.opens = (datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=BEFORE)).replace(microsecond=0)
        self.closes = self.opens + datetime.timedelta(seconds=LENGTH)
        stages = [{"name": "s", "actions": [{"webhook": "crm", "unless": "suppressed"}]}]
        between = f"{self.opens:%H:%M:%S}-{self.closes:%H:%M:%S}"
        endpoint = {"name": "crm", "url": self.receiver.url, "timeout": "700ms"}
        self.installation.configure(
            kafka={"properties": {"session.timeout.ms": "6000", "heartbeat.interval.ms": "500"}},
            postgres={"retry_max": "500ms", "lock_timeout": "2s", "zombie_timeout": "2s"},
            inbox={"columns": {"customer_id": "customer_id"}}, suppression={"subject": "customer_id"},
            actions={"allow_private": True, "endpoints": [endpoint], "poll_interval": "50ms", "lane_lease": "1s", "lease": "1500ms",
                     "retry_min": "10ms", "retry_max": "1s", "max_attempts": 1000, "breaker_failures": 1000,
                     "open_runs": OPEN_RUNS, "beyond_open_runs": "defer",
                     "subject_caps": [{"max": 1, "per": "week"}], "beyond_subject_cap": "pass"},
            pipelines=[{"name": name, "on": {"topic": str(self.people)}, "between": between, "stages": stages} for name in ("first", "second")])

    def answer(self, call):
        kind = self.random.random()
        return (503, {}, 0) if kind < 0.05 else (429, {"Retry-After": "0"}, 0) if kind < 0.08 else (200, {}, kind / 20)

    def send(self):
        new = [f"{self.org}-{n}" for n in range(len(self.subjects), len(self.subjects) + PER_CYCLE)]
        wait_for(lambda: self.add(new), 60, "messages are inserted", interval=0.2)
        self.subjects += new
        self.people.send(*[{"subject": subject, "org_id": self.org} for subject in new])
        complaining = self.random.sample(self.subjects, 3)
        self.complained.update(complaining)
        self.topic.send(*[{"message_id": f"m-{subject}", "status": "COMPLAINED"} for subject in complaining])
        self.runs += 2 * PER_CYCLE

    def add(self, subjects):
        try:
            self.database.execute("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id, customer_id)"
                                  " SELECT 'm-' || s, %s, 'c', s FROM unnest(%s::text[]) s ON CONFLICT DO NOTHING", self.org, subjects)
            return True
        except Exception:  # noqa: BLE001 - the server may be down
            return False

    def watch(self):
        """How many runs are open, and from when on, by the server's clock, a person's suppression was to be seen."""
        while not self.ended.wait(0.05):
            try:
                with self.database.connect() as connection:
                    while not self.ended.wait(0.02):
                        most = connection.execute("SELECT max(n) FROM (SELECT count(*)::int AS n FROM receiptd.run WHERE status = 'active' GROUP BY org_id) r")
                        self.most = max(self.most, most.fetchone()[0] or 0)
                        people = connection.execute("SELECT DISTINCT person FROM receiptd.suppression").fetchall()
                        now = connection.execute("SELECT clock_timestamp()").fetchone()[0]
                        for person, in people:
                            self.seen.setdefault(person, now)
                        connection.rollback()
            except Exception:  # noqa: BLE001 - the server may be down
                pass

    # ---- verdict

    def value(self, sql, *parameters):
        try:
            return self.database.value(sql, *parameters)
        except Exception:  # noqa: BLE001 - the server may be down
            return None

    def judge(self):
        """Ends a round and begins the next. Returns how many calls were answered again."""
        if self.subjects:
            wait_for(lambda: self.value("SELECT count(*) FROM receiptd.run WHERE org_id = %s", self.org) == 2 * len(self.subjects), REST, "all runs are made",
                     interval=0.3)
            wait_for(lambda: self.value("SELECT count(DISTINCT person) FROM receiptd.suppression WHERE person = ANY (%s)", sorted(self.complained))
                     == len(self.complained), REST, "all who complained are suppressed", interval=0.3)
            wait_for(lambda: datetime.datetime.now(datetime.timezone.utc) > self.closes + datetime.timedelta(seconds=2), REST, "the window is closed", interval=0.3)
            self.compare()
            self.round += 1
            self.subjects, self.complained = [], set()
            self.configure()
            for index, process in enumerate(self.instances.processes):
                process.stop(60)
                self.instances.processes[index] = self.instances.start()
        answered = collections.Counter(call.id for call in self.receiver.seen() if call.status == 200)
        return sum(answered.values()) - len(answered)

    def compare(self):
        away = time.time() - time.monotonic()
        calls = self.receiver.seen()
        reached = collections.defaultdict(set)
        for call in calls[self.judged:]:
            began = datetime.datetime.fromtimestamp(call.began + away, datetime.timezone.utc)
            if not self.opens <= began < self.closes:
                self.anomalies.append(f"{call.id} came at {began}, outside of {self.opens} to {self.closes}")
            if call.status == 200:
                reached[call.body["subject"]].add(call.id)
        self.judged = len(calls)
        self.anomalies += [f"{subject} was called {len(ids)} times" for subject, ids in reached.items() if len(ids) > 1]
        if self.most > OPEN_RUNS:
            self.anomalies.append(f"{self.most} runs were open at once")
        late = self.database.query("SELECT r.subject, a.started_at FROM receiptd.action a JOIN receiptd.run r ON r.id = a.run_id"
                                   " WHERE r.org_id = %s AND a.started_at IS NOT NULL", self.org)
        self.anomalies += [f"{subject} was called at {at}, suppressed at {self.seen[subject]}" for subject, at in late
                           if subject in self.seen and at > self.seen[subject]]
        waiting = {subject for subject, in self.database.query("SELECT DISTINCT subject FROM receiptd.run WHERE org_id = %s AND status IN ('active', 'waiting')", self.org)}
        forgotten = set(self.subjects) - reached.keys() - self.complained - waiting
        if forgotten:
            self.anomalies.append(f"{sorted(forgotten)} were not called, and nothing waits")
        self.outcomes.update(reached=len(reached), suppressed=len(self.complained), waiting=len(waiting))

    def close(self):
        print(f"{self.round} rounds: {dict(self.outcomes)} people, at most {self.most} runs of an organisation open")
        self.ended.set()
        self.watcher.join(10)
        self.instances.close()
        self.receiver.close()
        self.database.drop()
        for topic in (self.topic, self.people):
            topic.drop()
