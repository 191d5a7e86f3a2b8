"""Faults of Kafka: brokers die and freeze, leaders and coordinators move, topics change."""

import signal
import time

from confluent_kafka import KafkaException, Producer

from faults.kinds import kind
from oracle import broker
from support.wait import wait_for


@kind("F30", "kill -9 of the only broker, started again", brokers=1)
def broker_killed(cycle):
    cycle.pause()
    only = cycle.lab.brokers_list[0]
    only.kill()
    cycle.pause(0, 0.5)
    only.start()


@kind("F30", "the only broker stops in good order and starts again", brokers=1)
def broker_stopped(cycle):
    cycle.pause()
    only = cycle.lab.brokers_list[0]
    only.terminate()
    cycle.pause(0, 1)
    only.start()


def freeze(cycle, one, shortest, longest):
    one.signal(signal.SIGSTOP)
    time.sleep(cycle.random.uniform(shortest, longest))
    one.signal(signal.SIGCONT)


@kind("F30", "a broker stands still for seconds")
def broker_frozen(cycle):
    cycle.pause()
    freeze(cycle, cycle.random.choice(cycle.lab.brokers_list), 0.5, 4)


@kind("F30", "all brokers die and come back", brokers=3)
def all_brokers_killed(cycle):
    cycle.pause()
    for one in cycle.lab.brokers_list:
        one.kill()
    for one in cycle.lab.brokers_list:
        one.start(wait=False)
    for one in cycle.lab.brokers_list:
        one.await_answer()


def leader_of_some_partition(cycle):
    topic = cycle.era.topic
    number = wait_for(lambda: max(cycle.lab.leader(str(topic), cycle.random.randrange(topic.partitions)), 0), 15,
                      "a partition has a leader")
    return cycle.lab.brokers_list[number - 1]


def leaders_settle(cycle):
    topic = cycle.era.topic
    wait_for(lambda: all(cycle.lab.leader(str(topic), number) > 0 for number in range(topic.partitions)), 30,
             "all partitions have leaders", interval=0.1)


@kind("F31", "kill -9 of a leader: its partitions move", brokers=3)
def leader_killed(cycle):
    cycle.pause()
    one = leader_of_some_partition(cycle)
    one.kill()
    cycle.pause(0.5, 3.5)
    one.start()


@kind("F31", "a leader stops in good order: its partitions move", brokers=3)
def leader_stopped(cycle):
    cycle.pause()
    one = leader_of_some_partition(cycle)
    one.terminate()
    cycle.pause(0, 1)
    one.start()


@kind("F31", "a leader freezes beyond its session and wakes up as a zombie", brokers=3)
def leader_frozen(cycle):
    cycle.pause()
    freeze(cycle, leader_of_some_partition(cycle), 3.2, 6)
    leaders_settle(cycle)


@kind("F35", "the group's coordinator dies: another broker takes over", brokers=3)
def coordinator_killed(cycle):
    cycle.pause()
    one = cycle.lab.brokers_list[max(cycle.lab.leader("__consumer_offsets", 0), 1) - 1]
    one.kill()
    cycle.pause(0.5, 3)
    one.start()


@kind("F33", "retention takes what is consumed, and instances crash and come back behind it")
def retention(cycle):
    """Deletes only records that were consumed before this cycle and are durable since then."""
    ends = {number: end for (_, number), end in cycle.era.read_to.items()}
    if ends and len(cycle.lab.brokers_list) == 1:
        broker.delete_records(cycle.lab.brokers, str(cycle.era.topic), ends)
    cycle.pause()
    seat = cycle.victim()
    seat.kill()
    seat.start()
    cycle.pause(0, 0.5)


@kind("F36", "another process takes the identity of a static member: the first one is fenced")
def identity_taken(cycle):
    """It ends with 75, for its supervisor to start it again, or goes on if it is the one that wins."""
    seat = cycle.victim()
    if not cycle.era.static:
        seat.kill()
        seat.installation.configure(kafka={"instance_id": seat.name})
        seat.start()
        cycle.pause(0.5, 1)
    first = seat.process
    seat.expect(0, 75)
    seat.start()
    cycle.pause(0.5, 2)
    first.expected_status = first.wait(1) if not first.running else -signal.SIGKILL
    assert first.running or first.expected_status in (0, 75), \
        f"the fenced instance ended with {first.expected_status}\n{first.log_tail(12)}"
    if first.running:
        first.kill()
    seat.expect(0, 75)
    seat.kill()
    if not cycle.era.static:
        seat.installation.configure(kafka={"instance_id": None})
    seat.start()


@kind("F40", "partitions are added while receipts flow")
def partitions_added(cycle):
    topic = cycle.era.topic
    cycle.pause()
    if topic.partitions < 16:
        more = topic.partitions + cycle.random.randint(1, 3)
        broker.add_partitions(cycle.lab.brokers, str(topic), more)
        topic.partitions = more
        cycle.era.stream.partitions = more
    cycle.pause(0.5, 1.2)


@kind("F42", "aborted transactions among the records, and one that stays open for a while")
def transactions(cycle):
    topic = str(cycle.era.topic)
    producer = Producer({"bootstrap.servers": cycle.lab.brokers, "transactional.id": f"t-{topic}", "log_level": 0})
    producer.init_transactions(20)
    values = [outgoing.value or b"[]" for outgoing, _ in zip(cycle.era.some_records(cycle.random), range(60))]
    for turn in range(cycle.random.randint(2, 5)):
        producer.begin_transaction()
        for value in values[turn * 10 : turn * 10 + 10]:
            producer.produce(topic, value, partition=cycle.random.randrange(cycle.era.topic.partitions))
        producer.flush(20)
        cycle.pause(0, 0.6)
        try:
            if cycle.random.random() < 0.6:
                producer.abort_transaction(20)
            else:
                producer.commit_transaction(20)
        except KafkaException as error:
            cycle.notes.append(f"transaction: {error}")
    # A position moves only with a record, so no mark of a transaction may be the last of a partition.
    plain = Producer({"bootstrap.servers": cycle.lab.brokers, "log_level": 0})
    for partition in range(cycle.era.topic.partitions):
        plain.produce(topic, b"[]", partition=partition)
    assert plain.flush(20) == 0
