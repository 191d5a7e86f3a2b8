"""What is not there is a reason: a coordinator, a topic, a part of the process; and READY=1 says no more than /readyz."""

import re
import subprocess
import time
from contextlib import closing

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from faults.servers import Broker, library, make_directory
from oracle import broker
from support.operations import Operations
from support.ports import free_ports
from support.receiver import Receiver
from support.services import Topic
from support.wait import wait_for
from test_notify import Manager

COORDINATOR = "the coordinator of the group does not answer: group "


@pytest.fixture
def manager():
    made = Manager()
    yield made
    made.close()


class TwoBrokers:
    """Broker 1 has the topics; of broker 2 the groups have their coordinator, and nothing else."""

    def __init__(self):
        self.directory = make_directory()
        ports = free_ports(3)
        class_path, cluster_id = library("fetch_kafka; kafka_class_path"), "AbcdefghijklmnopqrstuB"
        self.first, self.second = (Broker(self.directory, node, {"PLAINTEXT": (port, port)}, {1: ports[2]}, cluster_id, class_path)
                                   for node, port in zip((1, 2), ports))
        self.brokers = f"127.0.0.1:{self.first.port},127.0.0.1:{self.second.port}"
        for one in (self.first, self.second):
            one.start(wait=False)
        for one in (self.first, self.second):
            one.await_answer()
        self.admin = AdminClient({"bootstrap.servers": self.brokers, "log_level": 2})
        self.place("__consumer_offsets", 2, **{"cleanup.policy": "compact"})

    def place(self, name, node, **config):
        new = NewTopic(name, 1, replica_assignment=[[node]], config=config)
        self.admin.create_topics([new])[name].result(60)
        wait_for(lambda: broker.partition_count(self.brokers, name) == 1, 60, f"topic {name}")
        return Topic(self, name, 1)

    def close(self):
        for one in (self.first, self.second):
            one.kill()
        subprocess.run(["rm", "-rf", str((self.directory / "socket").resolve()), str(self.directory)], check=False)


@pytest.fixture
def two_brokers():
    made = TwoBrokers()
    yield made
    made.close()


def reasons(pages):
    answer = pages.get("/readyz")
    return answer.status, " | ".join(answer.json["reasons"])


def wait_until_red(pages, words, timeout=30):
    def is_red():
        status, text = reasons(pages)
        return status == 503 and words in text
    pages.process.wait_for(is_red, timeout, f"not ready: {words}")


@pytest.mark.slow
def test_without_its_coordinator_no_instance_is_green(two_brokers, create_world, manager):
    """Neither one that starts, nor the owner of the partition, nor a spare one."""
    world = create_world(2_000, partitions=1, seed=106)
    world.topic = two_brokers.place("receipts", 1, **{"retention.ms": "-1"})
    world.brokers = two_brokers.brokers
    world.installation.configure(kafka={"brokers": two_brokers.brokers, "topics": ["receipts"], "group": "lone"})
    world.insert(world.stream.late)
    two_brokers.second.kill()
    first = Operations(world.installation.start("first", environment=manager.environment))
    wait_until_red(first, f"{COORDINATOR}lone: ", 60)
    assert "READY=1" not in manager.lines() and first.get("/startupz").status == 503
    two_brokers.second.start()
    first.wait_until_ready(60)
    manager.wait_for(first.process, "READY=1")
    spare = Operations(world.installation.start("spare"))
    spare.wait_until_ready(60)
    wait_for(lambda: sorted(len(page.get("/statusz").json["assignment"]["partitions"]) for page in (first, spare)) == [0, 1], 60, "one spare")
    two_brokers.second.kill()
    for page in (first, spare):
        wait_until_red(page, COORDINATOR, 60)
    two_brokers.second.start()
    for page in (first, spare):
        page.wait_until_ready(60)
    world.produce()
    world.finish(first.process)
    for page in (first, spare):
        page.process.stop()


def test_ready_is_sent_when_the_partitions_are_assigned_and_their_positions_read(create_world, manager):
    """A member that was killed keeps the partitions for its session; then a lock keeps the positions from being read."""
    world = create_world(500, partitions=2, seed=107)
    world.installation.configure(kafka={"group": f"receiptd-{world.topic}", "properties": {"session.timeout.ms": "8000"}},
                                 postgres={"lock_timeout": "30s", "statement_timeout": "60s"})
    world.insert(world.stream.late)
    dead = world.installation.start("dead")
    Operations(dead).wait_until_ready(60)
    dead.kill()
    with world.database.connect() as connection, connection.transaction():
        connection.execute("LOCK receiptd.consumer_progress IN ACCESS EXCLUSIVE MODE")
        process = world.installation.start("next", environment=manager.environment)
        pages = Operations(process)
        wait_until_red(pages, "joining the consumer group")
        process.wait_for_log("assigned 2 partitions; reading their positions", 60)
        time.sleep(3)
        status, text = reasons(pages)
        assert status == 503 and "reading positions" in text and "READY=1" not in manager.lines()
    manager.wait_for(process, "READY=1")
    found = pages.get("/statusz").json["assignment"]
    assert len(found["partitions"]) == 2 and found["state"] == "settled"
    world.produce()
    world.finish(process)
    process.stop()


def fold_over(topic, out):
    return {"folds": [{"name": "r", "source": "topic", "topic": topic, "group_key": ["a"], "window": "1s",
                       "publish": {"kafka": {"topic": out}}}]}


def pipeline(receiver, **more):
    return {"pipelines": [{"name": "p", **more}],
            "actions": {"allow_private": True, "endpoints": [{"name": "crm", "url": receiver.url, "secrets": ["whsec_" + "QUJD" * 8]}]}}


# what: (configuration with a topic that does not exist, the key that the hint names)
MISSING = {
    "receipts": (lambda missing, there, receiver: {"kafka": {"topics": [there, missing]}}, "kafka.topics"),
    "folds": (lambda missing, there, receiver: fold_over(missing, there), "folds"),
    "begins runs": (lambda missing, there, receiver: pipeline(receiver, on={"topic": missing}, webhook="crm"), "pipelines"),
    "produced to": (lambda missing, there, receiver: pipeline(receiver, on="SENT", produce={"topic": missing, "key": "subject"}),
                    "the step of pipelines that produces to it"),
}


@pytest.mark.parametrize("what", MISSING)
def test_a_missing_topic_is_a_reason_until_it_is_there(create_world, create_topic, what, manager):
    world = create_world(partitions=1)
    settings, key = MISSING[what]
    missing = f"{world.topic}-missing"
    with closing(Receiver()) as receiver:
        world.installation.configure(kafka={"group": f"receiptd-{world.topic}"})
        world.installation.configure(**settings(missing, str(world.topic), receiver))
        process = world.installation.start(environment=manager.environment)
        pages = Operations(process)
        wait_until_red(pages, missing)
        status, text = reasons(pages)
        assert re.search(rf"{missing}.*HINT: create (it|the topic), or correct {re.escape(key)}", text), text
        time.sleep(2)
        assert pages.get("/readyz").status == 503 and "READY=1" not in manager.lines()
        broker.create_topic(world.brokers, missing, 1)
        try:
            pages.wait_until_ready(60)
            manager.wait_for(process, "READY=1")
            process.stop()
        finally:
            broker.delete_topic(world.brokers, missing)


@pytest.mark.parametrize("what, table, words", [
    ("folds", "fold_rule", "the rules of folds are not stored yet"),
    ("actions", "action_instance", "actions have no lease of their shards"),
])
def test_a_part_that_cannot_work_yet_is_a_reason(create_world, create_topic, what, table, words):
    world = create_world(partitions=1, postgres={"lock_timeout": "30s", "statement_timeout": "60s"})
    world.database.execute("CREATE FUNCTION receiptd.waits() RETURNS trigger LANGUAGE plpgsql AS"
                           " $$ BEGIN PERFORM pg_advisory_xact_lock(42); RETURN NEW; END $$")
    world.database.execute(f"CREATE TRIGGER waits BEFORE INSERT OR UPDATE ON receiptd.{table} FOR EACH ROW EXECUTE FUNCTION receiptd.waits()")
    with closing(Receiver()) as receiver:
        world.installation.configure(**(fold_over(str(create_topic(1)), str(create_topic(1))) if what == "folds"
                                        else pipeline(receiver, on="SENT", webhook="crm")))
        with world.database.connect() as connection, connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(42)")
            pages = Operations(world.installation.start())
            wait_until_red(pages, words, 60)
        pages.wait_until_ready(60)
        pages.process.stop()
