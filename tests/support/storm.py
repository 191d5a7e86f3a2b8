"""Gateways that call an intake which is killed repeatedly, and the judgement over Kafka and the funnel afterwards."""

import random
import time
from collections import Counter

from oracle.ledger import Row
from support import intake
from support.intake import ACCOUNTS, Gateway
from support.wait import wait_for
from support.world import World

# What a cycle kills. A broker takes seconds to come back.
KINDS = ("intake",) * 17 + ("broker",) * 2 + ("both",)
PATHS = {"sent": ("SENT",), "delivered": ("SENT", "DELIVERED"), "read": ("SENT", "DELIVERED", "OPENED"),
         "open": ("SENT", "DELIVERED", "OPENED")}


class Storm:
    """An installation, its topics, and gateways of each sort: single receipts, batches, and some that hang up before the answer."""

    def __init__(self, installation, database, topic, letters, kafka, seed):
        self.installation, self.database, self.kafka = installation, database, kafka
        self.random = random.Random(seed)
        self.world = World(installation, database, topic)
        installation.configure(kafka={"topics": [str(topic)]}, intake={
            "listen": "127.0.0.1:0", "metrics_listen": "127.0.0.1:0", "topic": str(topic), "dead_letter_topic": str(letters),
            "accounts": ACCOUNTS, "ack_timeout": "2s"})
        installation.migrate()
        self.process = intake.start(installation)
        self.gateways = [
            *(self.gateway(f"one-{number}") for number in range(3)),
            self.gateway("three", statuses=("sent", "delivered", "read"), impatience=0.05),
            self.gateway("batches", statuses=("delivered", "open"), batch=40, pause=0.02),
            self.gateway("hasty", statuses=("delivered", "open"), batch=40, pause=0.02, impatience=0.2),
        ]

    def gateway(self, name, **options):
        return Gateway(lambda: self.process.port, name, **{"pause": 0.003, **options})

    # ---- a cycle

    def acknowledged(self):
        for gateway in self.gateways:
            assert gateway.error is None, repr(gateway.error)
        return [len(gateway.acknowledged) for gateway in self.gateways]

    def wait_for_receipts(self):
        """Until each gateway has been answered again."""
        before = self.acknowledged()
        wait_for(lambda: all(now > then for now, then in zip(self.acknowledged(), before)), 120, "receipts are acknowledged",
                 details=self.process.log_tail)

    def cycle(self, kind=None):
        """One kill under load; the kind is drawn unless it is given. Returns it."""
        kind = kind or self.random.choice(KINDS)
        self.wait_for_receipts()
        time.sleep(self.random.uniform(0, 0.1))  # so that the kill hits any step
        if kind in ("intake", "both"):
            self.process.kill()
        if kind in ("broker", "both"):
            self.kafka.kill()
            time.sleep(self.random.uniform(0, 1))
            self.kafka.start()
        if kind in ("intake", "both"):
            self.process = intake.start(self.installation)
        return kind

    # ---- the judgement

    def judge(self):
        """Figures; an assertion says what is wrong."""
        for gateway in self.gateways:
            gateway.finish()
        self.process.stop()
        acknowledged = {receipt for gateway in self.gateways for receipt in gateway.acknowledged}
        attempts = sum((gateway.attempts for gateway in self.gateways), Counter())
        there = Counter((event["message_id"], event["gateway_status"]) for event in intake.read_events(self.world.topic))
        lost = sorted(acknowledged - there.keys())
        assert not lost, f"{len(lost)} receipts were answered with 2xx and are not in Kafka: {lost[:10]}"
        more = {receipt: (times, attempts[receipt]) for receipt, times in there.items() if times > attempts[receipt]}
        assert not more, f"receipts are in Kafka more often than their clients sent them: {dict(list(more.items())[:10])}"
        self.judge_funnel(acknowledged)
        return Counter(receipts=len(acknowledged), repeated=sum(attempts.values()) - len(attempts),
                       doubled=sum(there.values()) - len(there))

    def judge_funnel(self, acknowledged):
        """Consumed whole, the database equals the ledger of the log, and its `messages` are those that the gateways meant."""
        self.world.insert({message_id: Row("o1", "c") for message_id in sorted({message_id for message_id, _ in acknowledged})})
        run = self.installation.start("run")
        self.world.finish(run, timeout=120)
        run.stop()
        meant = Counter(name for _, name in {(message_id, name) for message_id, status in acknowledged for name in PATHS[status]})
        told = dict(self.database.query(
            "SELECT p.name, sum(f.messages)::int FROM receiptd.campaign_funnel f JOIN receiptd.message_status_priority p"
            " ON p.code = f.status WHERE p.name = ANY(%s) GROUP BY 1", ["SENT", "DELIVERED", "OPENED"]))
        assert told == dict(meant), f"the funnel has {told}, the gateways meant {dict(meant)}"

    def close(self):
        for gateway in self.gateways:
            gateway.stopped.set()
        self.installation.close()
