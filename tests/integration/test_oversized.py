"""Compressed batches that inflate to more than the daemon takes: passed over, one dead letter each, within its memory."""

import re
from pathlib import Path

import pytest

from support.operations import Operations

MIB = 1024 * 1024
MEMORY_MAX = 256 * MIB  # of the unit


def check_memory(process):
    """The most that was resident, which the kernel notes, is below what the unit may have."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    most = int(re.search(r"^VmHWM:\s+(\d+) kB$", status, re.MULTILINE)[1]) * 1024
    print("at most", most // MIB, "MiB")
    assert most < MEMORY_MAX


def receipt(id, status):
    return {"message_id": id, "status": status}


def send_batch(topic, values, codec):
    """All values in one batch: it goes when all are there, with flush(), which does not wait for the linger."""
    producer = topic.producer(compression_type=codec, message_max_bytes=1_000_000_000, batch_size=1_500_000_000,
                              queue_buffering_max_kbytes=2_000_000, linger_ms=100_000, batch_num_messages=1_000_000,
                              enable_idempotence=False)
    for value in values:
        producer.produce(str(topic), value, partition=0)
    assert producer.flush(120) == 0


def letters(world):
    return world.database.query('SELECT "offset", index, reason, octet_length(payload), detail FROM receiptd.dead_letter ORDER BY 1, 2')


def check_neighbours(world, process):
    world.wait_until_consumed(process, 120)
    check_memory(process)
    world.audit()
    assert world.database.query("SELECT message_id, status FROM receiptd.message_inbox ORDER BY 1") == [
        ("after", 700), ("before", 600)]
    assert dict(world.database.query("SELECT status, events FROM receiptd.campaign_funnel WHERE events > 0")) == {
        300: 2, 600: 1, 700: 1}


def start(world):
    process = world.installation.start()
    world.wait_until_consumed(process)
    return process


def send_around(world, send_bomb):
    world.topic.send(receipt("before", "SENT"), receipt("before", "DELIVERED"))
    send_bomb()
    world.topic.send(receipt("after", "SENT"), receipt("after", "OPENED"))


@pytest.mark.parametrize(("codec", "megabytes"), [("gzip", 900), ("lz4", 200), ("zstd", 300), ("zstd", 60)])
def test_a_record_that_inflates_beyond_all_bounds_is_passed_over(create_world, codec, megabytes):
    world = create_world(partitions=1)
    world.insert_ids("before", "after")
    world.installation.configure(http={"listen": "127.0.0.1:0"})
    process = start(world)
    send_around(world, lambda: send_batch(world.topic, [b" " * (megabytes * 1_000_000)], codec))
    check_neighbours(world, process)
    [(offset, index, reason, size, detail)] = letters(world)
    assert (offset, index, reason, size) == (2, -1, "record_too_large", 0)
    assert "offsets 2 to 2: a compressed batch of" in detail and "33554432" in detail
    pages = Operations(process)
    assert pages.figures().get_one("receiptd_events_dead_total", reason="record_too_large", gateway="none") == 1
    process.stop()


def test_a_batch_of_many_records_that_inflates_beyond_all_bounds_is_one_letter(create_world):
    world = create_world(partitions=1)
    world.insert_ids("before", "after")
    process = start(world)
    send_around(world, lambda: send_batch(world.topic, [b" " * 100_000] * 777, "gzip"))
    check_neighbours(world, process)
    [(offset, index, reason, _, detail)] = letters(world)
    assert (offset, index, reason) == (778, -1, "record_too_large")
    assert "offsets 2 to 778" in detail
    process.stop()
    process = world.installation.start("again")
    world.topic.send(receipt("before", "DELIVERED"))
    world.wait_until_consumed(process)
    assert len(letters(world)) == 1
    process.stop()


@pytest.mark.parametrize(("codec", "megabytes", "count"), [("gzip", 30, 40), ("lz4", 20, 40), ("zstd", 30, 40), ("snappy", 15, 10)])
def test_many_batches_below_the_bound_do_not_add_up(create_world, codec, megabytes, count):
    world = create_world(partitions=1)
    world.insert_ids("before", "after")
    process = start(world)

    def send():
        producer = world.topic.producer(compression_type=codec, message_max_bytes=1_000_000_000, linger_ms=0,
                                        batch_num_messages=1, enable_idempotence=False)
        for _ in range(count):
            producer.produce(str(world.topic), b" " * (megabytes * MIB), partition=0)
            producer.flush(60)

    process.stop()  # so that they come in one fetch
    send_around(world, send)
    process = world.installation.start("again")
    check_neighbours(world, process)
    found = letters(world)
    assert [row[:4] for row in found] == [(2 + n, -1, "record_too_large", 65536) for n in range(count)]
    process.stop()


def test_a_large_batch_at_the_end_of_the_log_is_passed_over_too(create_world):
    world = create_world(partitions=1)
    process = start(world)
    send_batch(world.topic, [b" " * 1_000_000] * 99, "gzip")
    world.wait_until_consumed(process, 60)
    check_memory(process)
    assert [row[:3] for row in letters(world)] == [(98, -1, "record_too_large")]
    process.stop()
