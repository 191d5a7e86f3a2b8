"""The log itself: produce a stream with every codec, read a topic from its beginning to its end."""

import contextlib
import socket
import struct
import time

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, ConfigResource, NewPartitions, NewTopic

from oracle.ledger import Record
from support.services import watermarks

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LARGEST = 20 * 1024 * 1024
LOST_PLACE = (KafkaError._PURGE_QUEUE, KafkaError._PURGE_INFLIGHT, KafkaError._FATAL, KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER)


def administer(brokers, request, timeout):
    """request(AdminClient) → futures; waits for them (the client has to live that long)."""
    admin = AdminClient({"bootstrap.servers": brokers})
    for future in request(admin).values():
        future.result(timeout)


def create_topic(brokers, topic, partitions, timeout=30, **config):
    new = NewTopic(topic, partitions, 1, config={"max.message.bytes": str(LARGEST), "retention.ms": "-1", **config})
    administer(brokers, lambda admin: admin.create_topics([new]), timeout)
    wait_for_partitions(brokers, topic, partitions, timeout)


def add_partitions(brokers, topic, total, timeout=30):
    administer(brokers, lambda admin: admin.create_partitions([NewPartitions(topic, total)]), timeout)
    wait_for_partitions(brokers, topic, total, timeout)


def alter_topic(brokers, topic, timeout=30, **config):
    """Its configuration becomes this one."""
    resource = ConfigResource(ConfigResource.Type.TOPIC, topic, set_config={"retention.ms": "-1", **config})
    administer(brokers, lambda admin: admin.alter_configs([resource]), timeout)


def delete_topic(brokers, topic, timeout=30):
    administer(brokers, lambda admin: admin.delete_topics([topic]), timeout)
    wait_for_partitions(brokers, topic, 0, timeout)


def delete_records(brokers, topic, before, timeout=30):
    """Moves the beginning of each partition's log to before[partition], as retention does.

    DeleteRecords (API 21, version 0) by hand: the client library has no call for it."""
    name, client = topic.encode(), b"oracle"
    body = struct.pack(f">hhih{len(client)}s", 21, 0, 1, len(client), client)
    body += struct.pack(f">ih{len(name)}si", 1, len(name), name, len(before))
    body += b"".join(struct.pack(">iq", *place) for place in before.items()) + struct.pack(">i", timeout * 1000)
    host, _, port = brokers.rpartition(":")
    with socket.create_connection((host, int(port)), timeout) as connection, connection.makefile("rb") as answer:
        connection.sendall(struct.pack(">i", len(body)) + body)
        data = answer.read(struct.unpack(">i", answer.read(4))[0])
    # correlation, throttle time, one topic with its name, then (partition, low watermark, error) each
    first = 4 + 4 + 4 + 2 + len(name) + 4
    errors = [struct.unpack_from(">iqh", data, first + 14 * index)[2] for index in range(len(before))]
    assert not any(errors), f"records of {topic} cannot be deleted: Kafka's error codes {errors}"


def partition_count(brokers, topic):
    admin = AdminClient({"bootstrap.servers": brokers})
    found = admin.list_topics(timeout=10).topics.get(topic)
    return len(found.partitions) if found is not None and found.error is None else 0


def wait_for_partitions(brokers, topic, count, timeout):
    deadline = time.monotonic() + timeout
    while partition_count(brokers, topic) != count:
        assert time.monotonic() < deadline, f"topic {topic} does not show {count} partitions after {timeout} s"
        time.sleep(0.05)


def know(producer, topic):
    """Has the producer ask where the topic is. Else its first record may wait a second, until librdkafka's timer asks."""
    with contextlib.suppress(KafkaException):  # the broker is down: it asks again
        producer.list_topics(topic, timeout=10)


class Sender:
    """Idempotent producers, one for each codec in turn, so that a partition's log mixes them."""

    def __init__(self, brokers, topic, codecs=CODECS, **properties):
        self.topic, self.failures, self.again, self.sent = topic, [], [], 0
        self.properties = {
            "bootstrap.servers": brokers,
            "enable.idempotence": True,
            "linger.ms": 20,
            "message.max.bytes": LARGEST,
            "queue.buffering.max.kbytes": 262_144,
            "queue.buffering.max.messages": 1_000_000,
            "delivery.report.only.error": True,
            "on_delivery": self.on_delivery,
            **properties,
        }
        self.codecs = codecs
        self.producers = [self.create(codec) for codec in codecs]
        for producer in self.producers:
            know(producer, topic)

    def create(self, codec):
        return Producer({**self.properties, "compression.type": codec})

    def on_delivery(self, error, message):
        """An idempotent producer that lost its place among dying leaders ends, and gives back all that it still holds."""
        if error is not None and error.code() in LOST_PLACE:
            self.again.append(message)
        elif error is not None:
            self.failures.append(error)

    def poll(self):
        """Serves all producers; a successor sends again what one that has ended gave back."""
        for producer in self.producers:
            producer.poll(0)
        while self.again:
            message = self.again.pop(0)
            self.pass_on(message.value(), message.key(), message.partition(), message.headers(), message.timestamp()[1])

    def send(self, outgoing):
        self.sent += 1
        self.pass_on(outgoing.value, outgoing.key, outgoing.partition, outgoing.headers, outgoing.timestamp_ms)

    def pass_on(self, value, key, partition, headers, timestamp_ms):
        place = self.sent // 16 % len(self.producers)
        deadline = time.monotonic() + 20
        while True:
            producer = self.producers[place]
            try:
                producer.produce(self.topic, value, key, partition, headers=headers, timestamp=timestamp_ms)
                return
            except BufferError:
                producer.poll(0.1)
            except KafkaException as error:
                if error.args[0].fatal():
                    producer.flush(10)  # reports what it holds as undelivered
                    self.producers[place] = self.create(self.codecs[place])
                # a new partition that this producer does not know yet
                elif error.args[0].name() != "_UNKNOWN_PARTITION" or time.monotonic() > deadline:
                    raise
                else:
                    producer.list_topics(self.topic, timeout=10)
                    producer.poll(0.05)

    def flush(self, timeout=120):
        left = sum(producer.flush(timeout) for producer in self.producers)
        while self.again and not left:
            self.poll()
            left = sum(producer.flush(timeout) for producer in self.producers)
        assert left == 0 and not self.failures, f"{left} records not delivered, failures: {self.failures[:3]}"


def produce(brokers, topic, records, per_second=None, stop=None):
    """Sends all; per_second paces by records; `stop` (an Event) ends it early. Returns the number of records sent."""
    sender, began = Sender(brokers, topic), time.monotonic()
    for count, outgoing in enumerate(records):
        if stop is not None and stop.is_set():
            break
        sender.send(outgoing)
        if per_second is not None and count % 20 == 0:
            ahead = count / per_second - (time.monotonic() - began)
            if ahead > 0:
                sender.poll()
                time.sleep(ahead)
    sender.flush()
    return sender.sent


def read_log(brokers, topic, timeout=120, since=None):
    """Every record of the topic, and {(topic, partition): end of its log}. since: such ends, to read only what came
    later."""
    consumer = Consumer(
        {
            "bootstrap.servers": brokers,
            "group.id": "oracle-reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "fetch.message.max.bytes": LARGEST,
            "receive.message.max.bytes": 100_000_000,
            "auto.offset.reset": "error",
            "fetch.wait.max.ms": 10,
        }
    )
    try:
        places = [TopicPartition(topic, number) for number in range(partition_count(brokers, topic))]
        ends = {}
        for place in places:
            place.offset, ends[topic, place.partition] = watermarks(consumer, place, timeout)
            place.offset = max(place.offset, (since or {}).get((topic, place.partition), 0))
        consumer.assign(places)
        assert ends, f"topic {topic} has no partitions"
        left = {place.partition for place in places if place.offset < ends[topic, place.partition]}
        records, deadline = [], time.monotonic() + timeout
        while left:
            assert time.monotonic() < deadline, f"partitions {sorted(left)} of {topic} not read to their ends"
            for message in consumer.consume(5000, timeout=0.05):
                if message.error() is not None:
                    if message.error().name() != "_PARTITION_EOF":
                        raise KafkaException(message.error())
                    left.discard(message.partition())
                    continue
                records.append(
                    Record(topic, message.partition(), message.offset(), message.value(), message.timestamp()[1])
                )
        return records, ends
    finally:
        consumer.close()
