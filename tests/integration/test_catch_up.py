"""Transactions are larger while all partitions are behind, and only then."""

import re
import time

import pytest

LIMIT, MESSAGES, PARTITIONS, PER_RECORD = 50, 8_000, 4, 10
HOUR_MS = 3_600_000
ANSWERED = re.compile(r"batch \d+ of \d+ messages, (\d+) events answered")


def produce(world, shift_ms):
    """A receipt for each message; shift_ms(partition) is added to the time at which Kafka got it."""
    now_ms = int(time.time() * 1000)
    world.insert_ids(*(f"m-{number}" for number in range(MESSAGES)))
    world.topic.send_records([
        {"value": [{"message_id": f"m-{number}", "status": "SENT"} for number in range(first, first + PER_RECORD)],
         "partition": first // PER_RECORD % PARTITIONS, "timestamp_ms": now_ms + shift_ms(first // PER_RECORD % PARTITIONS)}
        for first in range(0, MESSAGES, PER_RECORD)])


@pytest.mark.parametrize("times, shift_ms, largest", [
    pytest.param(4, lambda _: -HOUR_MS, 4 * LIMIT, id="all are behind"),
    pytest.param(1, lambda _: -HOUR_MS, LIMIT, id="all are behind, but it is not wanted"),
    pytest.param(4, lambda partition: HOUR_MS if partition == 0 else -HOUR_MS, LIMIT, id="one is fresh")])
def test_a_transaction_is_larger_while_all_partitions_are_behind(create_world, times, shift_ms, largest):
    world = create_world(partitions=PARTITIONS, lanes=1, postgres={"connections": 1},
                         batch={"max_events": LIMIT, "catch_up": times}, log={"level": "debug"})
    produce(world, shift_ms)
    process = world.installation.start()
    world.wait_until_consumed(process)
    process.stop()
    sizes = [int(events) for events in ANSWERED.findall(process.log())]
    assert sum(sizes) == MESSAGES
    assert largest // 2 < max(sizes) <= largest  # shares of partitions are whole records
