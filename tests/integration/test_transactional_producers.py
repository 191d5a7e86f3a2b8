"""Producers with transactions leave records that no consumer gets: marks of commits and aborts, and what was aborted. They are no lag."""

import itertools
import json

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from support.operations import Operations

NAMES = itertools.count()
LEDGER = [("m", 600), ("n", 0)]


class Transactional:
    def __init__(self, world, topic):
        self.topic = str(topic)
        self.producer = Producer({"bootstrap.servers": world.brokers, "transactional.id": f"{topic}-{next(NAMES)}", "log_level": 0})
        self.producer.init_transactions(30)

    def begin(self, *values):
        self.producer.begin_transaction()
        for value in values:
            self.producer.produce(self.topic, json.dumps(value).encode(), b"key", partition=0)
        assert self.producer.flush(30) == 0

    def commit(self, *values):
        self.begin(*values)
        self.producer.commit_transaction(30)

    def abort(self, *values):
        self.begin(*values)
        self.producer.abort_transaction(30)


@pytest.fixture
def world(create_world, create_topic):
    events, people = create_topic(1), create_topic(1)
    world = create_world(
        partitions=1,
        kafka={"commit_interval": "200ms"},
        folds=[{"name": "seen", "source": "topic", "topic": str(events), "group_key": ["account_id"],
                "publish": {"kafka": {"topic": str(create_topic(1))}}}],
        pipelines=[{"name": "greet", "on": {"topic": str(people)}, "produce": {"topic": str(create_topic(1))}}])
    world.installation.configure(http={"listen": "127.0.0.1:0"}, kafka={"group": f"receiptd-{world.topic}"})
    world.insert_ids("m", "n")
    world.topics = {"receipts": world.topic, "folds": events, "actions": people}
    return world


VALUES = {"receipts": {"message_id": "m", "status": "DELIVERED"}, "folds": {"account_id": "a"}, "actions": {"subject": "anna"}}
# What a transaction leaves last, behind one that was applied.
LAST = {
    "commit": lambda one, value: one.commit(value),
    "abort": lambda one, value: one.abort({**value, "status": "CLICKED"}),
    "empty commit": lambda one, value: (one.abort(value), one.commit(value), one.abort(value), one.abort(value)),
}


def lags(pages):
    figures = pages.figures()
    return {reader: figures.get_one("receiptd_topic_partition_lag_records", reader=reader) for reader in VALUES}


def end_of(topic):
    return topic.watermarks()[0][1]


def committed(world, topic, group):
    consumer = Consumer({"bootstrap.servers": world.brokers, "group.id": group})
    try:
        return consumer.committed([TopicPartition(str(topic), 0)], timeout=30)[0].offset
    finally:
        consumer.close()


def shown(world):
    rows = json.loads(world.installation.command("positions", "show", "--format", "json").stdout)
    return {row["reader"]: row["lag"] for row in rows}


NOTHING = dict.fromkeys(VALUES, 0)


@pytest.mark.parametrize("last", LAST)
def test_what_a_transaction_leaves_last_is_no_lag(world, last):
    process = world.installation.start()
    pages = Operations(process)
    pages.wait_until_ready(60)
    for reader, topic in world.topics.items():
        producer = Transactional(world, topic)
        producer.commit(VALUES[reader])
        LAST[last](producer, VALUES[reader])
    process.wait_for(lambda: lags(pages) == NOTHING, 60, "no lag anywhere")
    figures = pages.figures()
    assert figures.get_one("receiptd_partition_lag_records") == figures.get_one("receiptd_partition_lag_seconds") == 0
    assert dict(world.database.query("SELECT message_id, status FROM receiptd.message_inbox")) == {"m": 600, "n": 0}
    for reader, topic in world.topics.items():
        name = f"receiptd-{world.topic}" + ("" if reader == "receipts" else f"-{reader}")
        process.wait_for(lambda: committed(world, topic, name) == end_of(topic), 30, f"tools of Kafka see no lag of {reader} either")
    process.stop()
    assert shown(world) == NOTHING
    process = world.installation.start("again")  # nothing comes there but the end of the log
    pages = Operations(process)
    process.wait_for(lambda: lags(pages) == NOTHING and pages.figures().get_one("receiptd_partition_lag_records") == 0, 60, "no lag")
    process.stop()


def test_what_waits_for_an_open_transaction_and_behind_it_is_lag(world):
    process = world.installation.start()
    pages = Operations(process)
    pages.wait_until_ready(60)
    producer = Transactional(world, world.topic)
    producer.abort({"message_id": "n", "status": "CLICKED"})
    process.wait_for(lambda: pages.figures().get_one("receiptd_partition_lag_records") == 0, 60, "no lag")
    producer.begin({"message_id": "m", "status": "SENT"})
    world.topic.send({"message_id": "m", "status": "DELIVERED"}, partition=0)
    process.wait_for(lambda: pages.figures().get_one("receiptd_partition_lag_records") == 2, 60, "both wait")
    producer.producer.commit_transaction(30)
    process.wait_for(lambda: pages.figures().get_one("receiptd_partition_lag_records") == 0, 60, "no lag")
    assert world.database.value("SELECT status FROM receiptd.message_inbox WHERE message_id = 'm'") == 600
    world.audit()
    process.stop()
