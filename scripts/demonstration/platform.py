"""The platform that brings its messages to receiptd: by SQL, or by a topic alone."""

import json

from confluent_kafka import Producer

from demonstration import campaigns

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
