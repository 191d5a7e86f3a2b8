"""Scenario drip: receipts begin runs of two stages, and one run for each person.

Everything must settle: each run ended once, each step done once, tokens in the order of the calls, nothing begun twice for one person.
"""

import collections

from support.daemon import Receiptd
from support.receiver import Receiver
from support.wait import wait_for

from .faults import Instances

SUBJECTS = 40
PER_CYCLE = 60
REST = 180.0  # seconds within which everything must end

STAGES = [{"name": "s", "actions": [{"webhook": "crm"}, {"await": {"status": "DELIVERED", "within": "300ms"}},
                                    {"webhook": "crm"}]}]


class Drip:
    def __init__(self, pair, random, directory):
        self.random, self.anomalies, self.sent = random, [], 0
        self.receiver = Receiver(self.answer)
        self.database, self.topic = pair.create_database(), pair.create_topic(4)
        installation = Receiptd(directory, self.database.dsn, pair.brokers, [self.topic])
        endpoint = {"name": "crm", "url": self.receiver.url, "timeout": "700ms"}
        installation.configure(
            kafka={"properties": {"session.timeout.ms": "6000", "heartbeat.interval.ms": "500"}},
            postgres={"retry_max": "500ms", "lock_timeout": "2s", "zombie_timeout": "2s"},
            actions={"allow_private": True, "endpoints": [endpoint], "poll_interval": "50ms", "lane_lease": "1s", "lease": "1500ms",
                     "retry_min": "10ms", "retry_max": "1s", "max_attempts": 1000, "breaker_failures": 1000},
            pipelines=[{"name": "drip", "on": "SENT", "subject": "campaign_id", "stages": STAGES},
                       {"name": "once", "on": "SENT", "subject": "campaign_id", "once_per": ["campaign_id"], "webhook": "crm"}])
        installation.migrate()
        self.instances = Instances(pair, self.database, installation, random)

    def answer(self, call):
        kind = self.random.random()
        return (503, {}, 0) if kind < 0.05 else (429, {"Retry-After": "0"}, 0) if kind < 0.08 else (200, {}, kind / 50)

    def send(self):
        first = self.sent
        ids = [f"m{n}" for n in range(first, first + PER_CYCLE)]
        wait_for(lambda: self.add(ids), 60, "messages are inserted", interval=0.2)
        self.topic.send(*[{"message_id": id, "status": "SENT"} for id in ids])
        self.topic.send(*[{"message_id": id, "status": "DELIVERED"} for id in ids[::2]])
        self.sent += PER_CYCLE

    def add(self, ids):
        try:
            self.database.execute("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id)"
                                  " SELECT i, 'o', 'c' || mod(substr(i, 2)::int, %s) FROM unnest(%s::text[]) i"
                                  " ON CONFLICT DO NOTHING", SUBJECTS, ids)
            return True
        except Exception:  # noqa: BLE001 - the server may be down
            return False

    @property
    def runs(self):
        return self.sent + min(SUBJECTS, self.sent)

    # ---- verdict

    def at_rest(self):
        try:
            return self.database.value("SELECT count(*) FROM receiptd.run") == self.runs and \
                self.database.value("SELECT count(*) FROM receiptd.run WHERE status <> 'done'") == 0
        except Exception:  # noqa: BLE001
            return False

    def judge(self):
        """Returns how many calls were answered again."""
        def state():
            return str(self.database.query("SELECT status, count(*) FROM receiptd.run GROUP BY 1")) + str(self.sent)

        wait_for(self.at_rest, REST, "all runs end", interval=0.3, details=state)
        try:
            self.receiver.assert_tokens_grow()
        except AssertionError as error:
            self.anomalies.append(str(error))
        steps = self.database.value("SELECT count(*) FROM receiptd.action WHERE status = 'done' AND class = 'delivered'")
        expected = 2 * self.sent + min(SUBJECTS, self.sent)
        if steps != expected:
            self.anomalies.append(f"{steps} calls are done instead of {expected}")
        answered = collections.Counter(c.id for c in self.receiver.seen() if c.status == 200)
        if len(answered) != expected:
            self.anomalies.append(f"{len(answered)} actions have heard a 200 instead of {expected}")
        return sum(answered.values()) - len(answered)

    def close(self):
        self.instances.close()
        self.receiver.close()
        self.database.drop()
        self.topic.drop()
