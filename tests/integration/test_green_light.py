"""Ready means that the partitions have their positions and are consumed, or that the group has said that there is none for this instance."""

import signal
import time

from support.operations import Operations
from support.wait import wait_for

DEFAULTS = {"properties": {}}  # of the session and its heartbeat


def assigned(pages):
    return len(pages.get("/statusz").json["assignment"]["partitions"])


def own_group(world, **kafka):
    # One connection of lanes: of two the first one works while the last one is not there yet, and /readyz says so.
    world.installation.configure(http={"listen": "127.0.0.1:0"}, postgres={"connections": 1}, kafka={"group": f"receiptd-{world.topic}", **kafka})


def goes_on_after(world, first, name, **start):
    """Kills the only instance and starts another one: seconds until all is applied, and until the second one was ready."""
    first.kill()
    world.produce()
    began = time.monotonic()
    process = world.installation.start(name, **start)
    pages = Operations(process)
    while True:
        changed = world.database.value("SELECT count(*) FROM receiptd.message_inbox WHERE status > 0")
        if pages.get("/readyz").status == 200:
            break
        assert changed == 0, "applied before it was ready"
        time.sleep(0.05)
    ready = time.monotonic() - began
    assert assigned(pages) == world.topic.partitions
    world.finish(process)
    return process, time.monotonic() - began, ready


def test_after_a_kill_the_next_instance_goes_on_within_the_default_session(create_world):
    world = create_world(1_000, seed=101)
    own_group(world, **DEFAULTS)
    world.insert(world.stream.late)
    first = world.installation.start("first")
    Operations(first).wait_until_ready()
    process, applied, _ = goes_on_after(world, first, "second")
    assert applied < 20, f"{applied:.1f} s"
    assert "joining the consumer group" in process.log()
    process.stop()


def test_a_static_member_goes_on_at_once_after_a_kill(create_world):
    world = create_world(1_000, seed=102)
    own_group(world, properties={"session.timeout.ms": "30000"})
    world.insert(world.stream.late)
    static = {"environment": {"RECEIPTD_INSTANCE_ID": "host-1"}}
    first = world.installation.start("first", **static)
    Operations(first).wait_until_ready()
    process, applied, _ = goes_on_after(world, first, "second", **static)
    assert applied < 15, f"{applied:.1f} s, and the session lasts 30"
    process.stop()


def test_two_instances_with_one_id_are_a_clear_error(create_world):
    world = create_world(100, seed=103)
    own_group(world, instance_id="the-same")
    first = world.installation.start("first")
    Operations(first).wait_until_ready()
    second = world.installation.start("second")
    first.expected_status = first.wait(60)
    assert first.expected_status == 75
    assert "another process runs with the same kafka.instance_id" in first.log()
    Operations(second).wait_until_ready()
    second.stop()


def test_an_instance_without_a_partition_is_ready_once_the_group_has_said_so(create_world):
    world = create_world(2_000, partitions=1, seed=104)
    own_group(world)
    world.insert(world.stream.late)
    pages = [Operations(world.installation.start(name)) for name in "ab"]
    for page in pages:
        page.wait_until_ready(60)
    wait_for(lambda: sorted(assigned(page) for page in pages) == [0, 1], 30, "one of the two has the partition")
    owner, spare = sorted(pages, key=assigned, reverse=True)
    owner.process.kill()
    world.produce()
    world.finish(spare.process)
    assert assigned(spare) == 1
    spare.process.stop()


def test_it_is_not_ready_while_a_rebalance_waits_for_a_member_that_hangs(create_world):
    world = create_world(2_000, partitions=4, seed=105)
    own_group(world, properties={"session.timeout.ms": "8000", "heartbeat.interval.ms": "500"})
    world.insert(world.stream.late)
    first, frozen = [Operations(world.installation.start(name)) for name in "ab"]
    wait_for(lambda: [assigned(first), assigned(frozen)] == [2, 2], 30, "two partitions each")
    frozen.process.signal(signal.SIGSTOP)
    third = Operations(world.installation.start("c"))
    red = 0
    for _ in range(60):
        partitions, ready = assigned(first), first.get("/readyz")
        if partitions == 0 and assigned(first) == 0:
            assert ready.status == 503, "green, and the group has taken all partitions away"
            assert "joining the consumer group" in ready.json["reasons"]
            red += 1
        time.sleep(0.1)
    assert red > 0
    wait_for(lambda: [assigned(first), assigned(third)] == [2, 2], 30, "without the one that hangs")
    frozen.process.kill()
    world.produce()
    world.finish(first.process)
    for page in (first, third):
        page.process.stop()
