"""Daemons, `receiptd maintain` and PostgreSQL are killed while messages come and go: the short form of scripts/campaign retention."""

import pytest

from support.layouts import Flat, Partitions
from support.retiring import Retiring


@pytest.mark.alone
@pytest.mark.parametrize("make_layout", (Flat, lambda: Partitions(backdated=True), lambda: Partitions(backdated=False)), ids=("flat", "backdated", "partitions"))
def test_whatever_is_killed_while_messages_go_nothing_is_lost_or_doubled(create_world, services, make_layout):
    layout = make_layout()
    world = create_world(partitions=6, lanes=4, inbox=layout.inbox)
    world.installation.configure(kafka={"group": f"retiring-{world.topic}"})
    retiring = Retiring(world, services, 1, layout)
    try:
        retiring.begin()
        for _ in range(7):
            retiring.cycle()
        retiring.judge()
    finally:
        retiring.close()
    assert retiring.figures["late"] >= 300 and retiring.figures["runs"] > 0
    assert retiring.figures["partitions dropped"] > 0 or layout.name == "flat"
