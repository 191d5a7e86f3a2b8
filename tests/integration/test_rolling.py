"""Three instances under load, restarted one after the other: the short form of scripts/campaign rolling."""

from support.rolling import SIZES, Rolling


def test_instances_restarted_in_turn_and_one_killed_lose_and_double_nothing(create_world):
    world = create_world(40_000, partitions=6, seed=411, traffic={"late": 0.02, "sizes": SIZES})
    world.installation.configure(kafka={"group": f"rolling-{world.topic}"})
    rolling = Rolling(world, per_second=1_500)
    rolling.begin()
    assert len([stood for _, _, stood in rolling.roll(restarts=3, kills=1)]) == 4
    rolling.finish()
