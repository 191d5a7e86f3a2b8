"""Scenario push: pushes that two pipelines and the platform's own sender reach people by.

Each round has a push of its own: people come by two topics, the first pipeline deals them to two variants and a remainder, the
second one mails a part of the same people, and the sender claims some more. After the decision everybody was mailed exactly once.
"""

import collections

from support.daemon import Receiptd
from support.receiver import Receiver
from support.wait import wait_for

from .faults import Instances

SIZE = 15  # of each variant
PER_CYCLE = 20
GATHER, AFTER = 3, 4  # seconds
REST = 180.0  # seconds within which everything must end


class Push:
    def __init__(self, pair, random, directory):
        self.random, self.anomalies, self.runs, self.round = random, [], 0, 0
        self.receiver = Receiver(self.answer)
        self.database, self.topic, self.people, self.others = pair.create_database(), pair.create_topic(1), pair.create_topic(4), pair.create_topic(2)
        self.installation = Receiptd(directory, self.database.dsn, pair.brokers, [self.topic])
        self.subjects, self.judged, self.records, self.outcomes = set(), 0, 0, collections.Counter()
        self.configure()
        self.installation.migrate()
        self.database.execute("CREATE TABLE sent (push text, subject text)")
        self.instances = Instances(pair, self.database, self.installation, random)

    @property
    def name(self):
        return f"push-{self.round}"

    def configure(self):
        once_per = {"push": self.name, "by": ["subject"]}
        split = {"variants": [{"stage": "a", "size": SIZE}, {"stage": "b", "size": SIZE}], "gather": f"{GATHER}s",
                 "decide": {"after": "1h" if self.by_a_person else f"{AFTER}s", "otherwise": self.winner}}
        stages = [{"name": "deal", "actions": [{"split": split}]}, *({"name": stage, "actions": [{"webhook": "crm"}]} for stage in "ab")]
        endpoint = {"name": "crm", "url": self.receiver.url, "timeout": "700ms"}
        self.installation.configure(
            kafka={"properties": {"session.timeout.ms": "6000", "heartbeat.interval.ms": "500"}},
            postgres={"retry_max": "500ms", "lock_timeout": "2s", "zombie_timeout": "2s"},
            actions={"allow_private": True, "endpoints": [endpoint], "poll_interval": "50ms", "lane_lease": "1s", "lease": "1500ms",
                     "retry_min": "10ms", "retry_max": "1s", "max_attempts": 1000, "breaker_failures": 1000},
            pipelines=[{"name": "mail", "on": {"topic": str(self.people)}, "once_per": once_per, "stages": stages},
                       {"name": "other", "on": {"topic": str(self.others)}, "once_per": once_per, "webhook": "crm"}])

    @property
    def by_a_person(self):
        return self.round % 2 == 1

    @property
    def winner(self):
        return "ab"[self.round % 3 % 2]

    def answer(self, call):
        kind = self.random.random()
        return (503, {}, 0) if kind < 0.05 else (429, {"Retry-After": "0"}, 0) if kind < 0.08 else (200, {}, kind / 50)

    def send(self):
        new = [f"{self.name}-{n}" for n in range(len(self.subjects), len(self.subjects) + PER_CYCLE)]
        self.subjects.update(new)
        known = sorted(self.subjects)
        self.people.send(*[{"subject": subject} for subject in new + self.random.sample(known, 5)])
        self.others.send(*[{"subject": subject} for subject in self.random.sample(known, 5)])
        self.records += len(new) + 10
        claimed = sorted(self.random.sample(known, 5))
        wait_for(lambda: self.mail(claimed), 60, "the platform's sender has its turn", interval=0.2)
        self.runs += PER_CYCLE

    def mail(self, subjects):
        """The platform's sender: whom it claims it mails, in one transaction."""
        try:
            self.database.execute("INSERT INTO sent SELECT %s, s FROM unnest(%s::text[]) s WHERE receiptd.claim_push(%s, s)", self.name, subjects, self.name)
            return True
        except Exception:  # noqa: BLE001 - the server may be down
            return False

    # ---- verdict

    def count(self, sql, *parameters):
        try:
            return self.database.value(sql, *parameters)
        except Exception:  # noqa: BLE001 - the server may be down
            return None

    def at_rest(self):
        # A record that is read in the next round would belong to the next push.
        return self.count("SELECT sum(next_offset) FROM receiptd.action_progress") == self.records and \
            self.count("SELECT count(*) FROM receiptd.run WHERE status <> 'done'") == 0 and \
            self.count("SELECT count(*) FROM receiptd.run r WHERE subject = ANY (%s)", sorted(self.subjects)) == len(self.subjects)

    def decide(self):
        shown = self.installation.command("push", "decide", self.name, self.winner, "--by", "campaign", check=False)
        return shown.returncode == 0 or "decided" in shown.stderr

    def judge(self):
        """Ends a round and begins the next. Returns how many calls were answered again."""
        if self.subjects:
            if self.by_a_person:
                wait_for(self.decide, 60, "a person decides", interval=0.3)
            wait_for(self.at_rest, REST, "all runs end", interval=0.3, details=self.state)
            self.compare()
            self.round += 1
            self.subjects = set()
            self.configure()
            for index, process in enumerate(self.instances.processes):
                process.stop(60)
                self.instances.processes[index] = self.instances.start()
        answered = collections.Counter(call.id for call in self.receiver.seen() if call.status == 200)
        return sum(answered.values()) - len(answered)

    def state(self):
        return str(self.database.query("SELECT r.status, a.status, a.held_by, count(*) FROM receiptd.run r LEFT JOIN receiptd.action a ON a.run_id = r.id"
                                       " AND a.ended_at IS NULL WHERE r.status <> 'done' GROUP BY 1, 2, 3")) + str(len(self.subjects))

    def compare(self):
        mails = collections.defaultdict(set)
        calls = self.receiver.seen()
        for call in calls[self.judged:]:
            if call.status == 200:
                mails[call.body["subject"]].add((call.id, call.body["stage"]))
        self.judged = len(calls)
        for subject, in self.database.query("SELECT subject FROM sent WHERE push = %s", self.name):
            mails[subject].add((subject, "sent"))
        for subject in self.subjects:
            if len(mails[subject]) != 1:
                self.anomalies.append(f"{subject} was mailed {len(mails[subject])} times: {sorted(mails[subject])}")
        strange = mails.keys() - self.subjects
        if strange:
            self.anomalies.append(f"{sorted(strange)} are mailed and not of {self.name}")
        stages = collections.Counter(stage for found in mails.values() for _, stage in found)
        loser = "b" if self.winner == "a" else "a"
        # Where fewer people than 2 * SIZE came in time, each variant has half of them.
        dealt = collections.Counter(dict(self.database.query("SELECT stage, count(*)::int FROM receiptd.push_member WHERE push = %s GROUP BY 1", self.name)))
        if stages[loser] != dealt[loser] or abs(dealt["a"] - dealt["b"]) > 1 or not 0 < dealt["a"] <= SIZE or not 0 < dealt["b"] <= SIZE:
            self.anomalies.append(f"{self.name}: {dict(stages)} were mailed, {dict(dealt)} dealt; the winner was {self.winner}")
        self.outcomes.update(stages)

    def close(self):
        print(f"mails by stage: {dict(self.outcomes)}, {self.round} pushes")
        self.instances.close()
        self.receiver.close()
        self.database.drop()
        for topic in (self.topic, self.people, self.others):
            topic.drop()
