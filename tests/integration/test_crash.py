"""kill -9 at any moment loses nothing and doubles nothing."""

import time

import pytest


@pytest.mark.slow
def test_kill_9_at_random_moments_is_exact(create_world):
    world = create_world(300_000, seed=21, kafka={"instance_id": "crashing"}, batch={"max_events": 1000})
    world.feed(per_second=12_000)
    world.insert(world.stream.late)
    process = world.installation.start("0")
    kills = 0
    while kills < 10 or world.is_feeding():
        if not world.is_feeding():
            world.feeder.join()
            world.feed(per_second=12_000)  # a slow machine: the same receipts again
        if kills % 3:
            world.wait_for_progress(process)
        time.sleep(world.random.uniform(0, 1))
        process.kill()
        kills += 1
        process = world.installation.start(str(kills))
    world.feeder.join()
    world.finish(process, timeout=90)
    process.stop()


def test_kill_9_in_the_first_moments_of_an_installation_is_exact(create_world):
    """Progress rows and generations are made here: each kill comes a little later than the one before."""
    world = create_world(5_000, seed=22, kafka={"instance_id": "starting"})
    world.insert(world.stream.late)
    world.produce()
    for attempt in range(8):
        process = world.installation.start(str(attempt))
        time.sleep(0.03 * attempt)
        process.kill()
    process = world.installation.start("last")
    world.finish(process)
    process.stop()


def test_kill_9_while_parked_receipts_are_woken_is_exact(create_world):
    world = create_world(
        20_000, seed=23, traffic={"late": 0.6}, kafka={"instance_id": "waking"}, parked={"wake_limit": 100}
    )
    world.produce()
    process = world.installation.start("0")
    world.wait_until_consumed(process)
    late = list(world.stream.late.items())
    for kills in range(1, 5):
        world.insert(dict(late[(kills - 1) * len(late) // 4 : kills * len(late) // 4]))
        time.sleep(world.random.uniform(0, 0.5))
        process.kill()
        process = world.installation.start(str(kills))
    world.finish(process)
    process.stop()
