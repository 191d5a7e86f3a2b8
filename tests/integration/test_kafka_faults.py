"""The broker goes away, comes back, loses the topic: nothing lost, nothing doubled, nothing taken for another."""

import time

import pytest

from oracle import broker
from support.servers import Kafka

PROPERTIES = {"reconnect.backoff.max.ms": "500"}


@pytest.fixture
def kafka(services):
    server = Kafka(services)
    yield server
    if not server.answers():
        server.start()


@pytest.mark.alone
@pytest.mark.slow
def test_a_broker_that_crashes_and_restarts_under_load_is_exact(create_world, kafka):
    world = create_world(100_000, seed=71, kafka={"properties": PROPERTIES})
    process = world.installation.start()
    feeder = world.feed(per_second=15_000)
    world.insert(world.stream.late)
    world.wait_for_progress(process)
    time.sleep(world.random.uniform(0, 2))
    kafka.kill()
    kafka.start()
    world.wait_for_progress(process, timeout=60)
    feeder.join()
    world.finish(process, timeout=90)
    process.stop()


@pytest.mark.alone
def test_a_broker_that_is_away_at_the_start_is_waited_for(create_world, kafka):
    world = create_world(3_000, seed=72, kafka={"properties": PROPERTIES})
    world.insert(world.stream.late)
    world.produce()
    kafka.kill()
    process = world.installation.start()
    process.wait_for_log(r"not ready")
    kafka.start()
    world.finish(process, timeout=90)
    process.stop()


def test_a_topic_that_does_not_exist_yet_is_waited_for(create_world):
    world = create_world(3_000, seed=73)
    world.insert(world.stream.late)
    name = str(world.topic)
    broker.delete_topic(world.brokers, name)
    world.installation.configure(kafka={"properties": {"topic.metadata.refresh.interval.ms": "500"}})
    process = world.installation.start()
    process.wait_for_log(rf"{name}")
    time.sleep(1)
    assert process.running
    broker.create_topic(world.brokers, name, 8)
    world.produce()
    world.finish(process)
    process.stop()


@pytest.mark.parametrize("records", [3, 5, 8])
def test_a_topic_that_was_made_anew_stops_the_consumer(create_world, records):
    """Shorter than before, as long, longer: what stands there now is not what the positions mean."""
    world = create_world(partitions=1)
    world.insert_ids("m", "n")
    world.topic.send(*[{"message_id": "m", "status": "SENT"}] * 5)
    process = world.installation.start("before")
    world.finish(process)
    process.stop()
    before = world.database.query("SELECT * FROM receiptd.consumer_progress ORDER BY lane")
    name = str(world.topic)
    broker.delete_topic(world.brokers, name)
    broker.create_topic(world.brokers, name, 1)
    world.topic.send(*[{"message_id": "n", "status": "CLICKED"}] * records, timestamp_ms=1_700_000_000_000)
    process = world.installation.start("after")
    process.wait_for_log(rf"stopped consuming: .*{name}.*HINT")
    time.sleep(1)
    assert process.running
    assert world.database.query("SELECT * FROM receiptd.consumer_progress ORDER BY lane") == before
    assert world.database.query("SELECT message_id, status FROM receiptd.message_inbox ORDER BY 1") == [
        ("m", 300), ("n", 0),
    ]
    process.stop()


def test_records_that_retention_took_before_they_were_read_stop_the_consumer_or_are_skipped(create_world):
    world = create_world(partitions=1)
    world.insert_ids("m", "n")
    world.topic.send(*[{"message_id": "m", "status": "SENT"}] * 5)
    process = world.installation.start("before")
    world.finish(process)
    process.stop()
    world.topic.send(*[{"message_id": "m", "status": "DELIVERED"}] * 5, {"message_id": "n", "status": "OPENED"})
    broker.delete_records(world.brokers, str(world.topic), {0: 10})
    process = world.installation.start("halting")
    process.wait_for_log(r"stopped consuming: .*retention.*HINT.*kafka\.on_retention_gap")
    process.stop()
    world.installation.configure(kafka={"on_retention_gap": "skip"})
    process = world.installation.start("skipping")
    world.wait_until_consumed(process)
    world.audit()
    assert world.database.query("SELECT message_id, status FROM receiptd.message_inbox ORDER BY 1") == [
        ("m", 300), ("n", 700),
    ]
    process.stop()
