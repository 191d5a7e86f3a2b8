"""Daemons, `receiptd maintain` and PostgreSQL are killed while messages come and go: the short form of scripts/campaign retention."""

import pytest

from support.retiring import INBOX, Retiring


@pytest.mark.alone
def test_whatever_is_killed_while_messages_go_nothing_is_lost_or_doubled(create_world, services):
    world = create_world(partitions=6, lanes=4, inbox=INBOX)
    world.installation.configure(kafka={"group": f"retiring-{world.topic}"})
    retiring = Retiring(world, services, seed=1)
    try:
        retiring.begin()
        for _ in range(7):
            retiring.cycle()
        retiring.judge()
    finally:
        retiring.close()
    assert retiring.figures["late"] >= 300 and retiring.figures["runs"] > 0
