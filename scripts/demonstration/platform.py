"""The platform that brings its messages to receiptd: by SQL, or by a topic alone. Then it reads the statuses from a topic, too."""

import json
import time
from collections import Counter

from confluent_kafka import Consumer, Producer

from demonstration import campaigns
from demonstration.view import number

COLUMNS = ("message_id", "org_id", "campaign_id", "variant", "channel", "gateway", "customer_id", "logical_id")
NULL = "\\N"  # of COPY


def _rows(numbers, total_messages):
    ends = [(end, campaign) for campaign, _, end in campaigns.messages_of(total_messages)]
    position = 0
    for value in numbers:
        while value >= ends[position][0]:
            position += 1
        campaign = ends[position][1]
        yield (campaigns.message_id(value), "acme", campaign.name, campaigns.variant(value), campaign.channel, campaign.gateway, *campaigns.groups(value))


def insert(connection, numbers, total_messages):
    """Inserts rows: ids, and by what the funnel is counted, too."""
    copy = f"COPY receiptd.message_inbox ({', '.join(COLUMNS)}) FROM STDIN"
    with connection.cursor() as cursor, cursor.copy(copy) as target:
        lines = []
        for row in _rows(numbers, total_messages):
            lines.append("\t".join(row) + "\n")
            if len(lines) == 10000:
                target.write("".join(lines))
                lines = []
        target.write("".join(lines))


class Announcer:
    """Announces the same rows, each as a record with the id as its key, so that all records of a message keep their order."""

    def __init__(self, brokers, topic):
        self.topic, self.errors = topic, []
        self.producer = Producer({"bootstrap.servers": brokers, "enable.idempotence": True, "compression.type": "lz4",
                                  "linger.ms": 20, "log_level": 2, "queue.buffering.max.messages": 1_000_000})

    def announce(self, numbers, total_messages):
        for row in _rows(numbers, total_messages):
            value = {name: field for name, field in zip(COLUMNS, row) if field != NULL}
            self.producer.produce(self.topic, json.dumps(value), key=row[0], on_delivery=self._on_delivery)
            self.producer.poll(0)
        if self.producer.flush(120) or self.errors:
            raise RuntimeError(f"Kafka did not take the announcements: {self.errors[:1] or 'time is up'}")

    def _on_delivery(self, error, _):
        if error:
            self.errors.append(str(error))


def compare(brokers, topic, connection, patience_s=60):
    """Reads the status stream from its beginning until it says what the table says, and prints both; False: it does not in this time."""
    changed = dict(connection.execute("SELECT m.message_id, p.name FROM receiptd.message_inbox m JOIN receiptd.message_status_priority p"
                                      " ON p.code = m.status WHERE m.status > 0 OR m.flags <> 0").fetchall())
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": "demo-platform", "auto.offset.reset": "earliest", "log_level": 2,
                         "isolation.level": "read_committed", "enable.auto.commit": False})
    consumer.subscribe([topic])
    last, deadline = {}, time.monotonic() + patience_s
    try:
        while last != changed and time.monotonic() < deadline:
            for message in consumer.consume(10000, timeout=1):
                if message.error() is None:
                    last[message.key().decode()] = json.loads(message.value())["status"]
    finally:
        consumer.close()
    table, stream = Counter(changed.values()), Counter(last.values())
    for status, count in table.most_common():
        print(f"  {status:<20}{number(count):>10} in the table{number(stream[status]):>10} in the stream")
    print("  equal" if last == changed else "  NOT equal")
    return last == changed
