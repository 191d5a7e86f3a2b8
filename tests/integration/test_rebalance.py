"""Partitions move between instances while receipts come in: nothing lost, nothing doubled, zombies change nothing."""

import signal
import time

import pytest
from confluent_kafka.admin import AdminClient

from oracle import broker


class Group:
    def __init__(self, world):
        self.world, self.admin = world, AdminClient({"bootstrap.servers": world.brokers})

    def members(self):
        """How many members have partitions, once the group is stable."""
        found = self.admin.list_groups("receiptd-" + str(self.world.topic), timeout=10)
        if not found or found[0].state != "Stable":
            return -1
        return sum(1 for member in found[0].members if len(member.assignment) > 20)

    def wait_for(self, count, *processes):
        def stable():
            for process in processes:
                assert process.running, process.log_tail()
            return self.members() == count

        self.world.wait(stable, timeout=30, what=f"{count} members have partitions",
                        details=lambda: "\n".join(process.log_tail(15) for process in processes))


@pytest.fixture
def create_pair(create_world):
    """A world whose group has a name of its own."""

    def create(*arguments, **settings):
        world = create_world(*arguments, **settings)
        world.installation.configure(kafka={"group": "receiptd-" + str(world.topic)})
        return world, Group(world)

    return create


@pytest.mark.slow
def test_two_instances_that_come_stop_crash_and_freeze_are_exact(create_pair):
    world, group = create_pair(300_000, seed=31, batch={"max_events": 1000})
    start = world.installation.start
    feeder = world.feed(per_second=9_000)
    first = start("a0")
    group.wait_for(1, first)
    world.insert(world.stream.late)

    for turn in range(2):  # comes and goes in good order
        second = start(f"b{turn}")
        group.wait_for(2, first, second)
        time.sleep(world.random.uniform(0, 0.5))
        second.stop()
        group.wait_for(1, first)

    second = start("b2")  # crashes
    group.wait_for(2, first, second)
    world.wait_for_progress(first)
    second.kill()
    group.wait_for(1, first)

    second = start("b3")  # freezes, is taken for dead, comes back with transactions and records of its former life
    group.wait_for(2, first, second)
    for turn in range(2):
        frozen, other = ((first, second), (second, first))[turn]
        world.wait_for_progress(other)
        frozen.signal(signal.SIGSTOP)
        group.wait_for(1, other)
        world.wait_for_progress(other)
        frozen.signal(signal.SIGCONT)
        group.wait_for(2, first, second)

    first.stop()  # the first one leaves, the second has it all
    feeder.join()
    world.finish(second, timeout=90)
    second.stop()


def test_three_instances_share_the_work_exactly(create_pair):
    world, group = create_pair(40_000, seed=32)
    processes = [world.installation.start(name) for name in "abc"]
    group.wait_for(3, *processes)
    feeder = world.feed(per_second=20_000)
    world.insert(world.stream.late)
    feeder.join()
    world.finish(processes[0])
    for process in processes:
        process.stop()


def test_two_instances_that_start_at_once_make_the_positions_once(create_pair):
    world, group = create_pair(10_000, seed=33, partitions=16)
    world.insert(world.stream.late)
    world.produce()
    processes = [world.installation.start(name) for name in "ab"]
    group.wait_for(2, *processes)
    world.finish(processes[0])
    for process in processes:
        process.stop()


def test_partitions_that_are_added_while_it_runs_are_consumed_from_their_start(create_world):
    properties = {"topic.metadata.refresh.interval.ms": "500"}
    world = create_world(12_000, seed=34, partitions=4, kafka={"properties": properties})
    world.insert(world.stream.late)
    process = world.installation.start()
    feeder = world.feed()
    world.wait_for_progress(process)
    broker.add_partitions(world.brokers, str(world.topic), 7)
    world.topic.partitions = 7
    feeder.join()
    more = [outgoing._replace(partition=4 + outgoing.partition % 3) for outgoing in world.stream.records()]
    world.produce(more)
    world.finish(process)
    assert world.database.value("SELECT partitions FROM receiptd.consumer_topic") == 7
    process.stop()
