"""Every partition of the topics is seen, whoever has it: its lag, its owner; and a lag that is not known is never shown as 0."""

import re
import time
from contextlib import closing

from oracle import broker
from support.foreigner import Foreigner
from support.operations import Operations
from support.wait import wait_for


def begin(world, **kafka):
    world.installation.configure(http={"listen": "127.0.0.1:0"}, kafka={"group": f"receiptd-{world.topic}", **kafka})
    process = world.installation.start()
    pages = Operations(process)
    pages.wait_until_ready(60)
    return process, pages


def places(pages, reader="receipts"):
    return {place["partition"]: place for place in pages.get("/statusz").json["topics"] if place["reader"] == reader}


def test_partitions_that_another_program_took_are_seen_and_not_green(create_world):
    world = create_world(partitions=8)
    process, pages = begin(world)
    wait_for(lambda: {place["owner"] for place in places(pages).values()} == {"receiptd"}, 30, "all are ours")
    assert len(pages.figures().label_values("receiptd_topic_partition_owned", "partition")) == 8
    with closing(Foreigner(world, f"receiptd-{world.topic}")) as foreigner:
        wait_for(lambda: len(foreigner.partitions()) == 4, 30, "it has half of them")
        began = time.monotonic()
        for partition in range(8):
            world.topic.send([{"message_id": f"m{partition}", "status": "SENT"}], partition=partition)
        taken = foreigner.partitions()
        process.wait_for(lambda: pages.get("/readyz").status == 503, 15, "not green")
        assert time.monotonic() - began < 15
        reason = pages.get("/readyz").json["reasons"][0]
        assert re.search(r"nobody works on topic \S+ partition \d and others: group \S+ gave it to console-consumer at .*HINT", reason)

        def told():
            figures = pages.figures()
            owned = {p: figures.get_one("receiptd_topic_partition_owned", reader="receipts", partition=str(p)) for p in range(8)}
            lag = {p: figures.get_one("receiptd_topic_partition_lag_records", reader="receipts", partition=str(p)) for p in range(8)}
            return owned == {p: p not in taken for p in range(8)} and lag == {p: p in taken for p in range(8)}

        process.wait_for(told, 30, "owner and lag of every partition")
        found = places(pages)
        assert {p for p, place in found.items() if place["owner"] == "other"} == taken
        assert all(found[p]["member"].startswith("console-consumer at ") and found[p]["lag_records"] == 1 for p in taken)
    pages.wait_until_ready(30)
    process.wait_for(lambda: pages.figures().get_one("receiptd_topic_partition_lag_records") == 0, 30, "all is applied")
    assert pages.figures().get_one("receiptd_topic_partition_owned") == 8
    process.stop()


def test_behind_a_retention_gap_no_lag_of_0_is_shown(create_world):
    world = create_world(partitions=1, postgres={"zombie_timeout": "8s"})
    world.insert_ids("m")
    process, pages = begin(world, on_retention_gap="skip")
    world.topic.send(*[[{"message_id": "m", "status": "SENT"}]] * 3, partition=0)
    process.wait_for(lambda: places(pages)[0]["lag_records"] == 0 and places(pages)[0]["position"] == 3, 30, "applied")
    process.stop()
    world.topic.send(*[[{"message_id": "m", "status": "DELIVERED"}]] * 7, partition=0)
    broker.delete_records(world.brokers, str(world.topic), {0: 6})
    process = world.installation.start("b")
    pages = Operations(process)
    seen, red = set(), []  # red: when
    while world.database.value("SELECT min(next_offset) FROM receiptd.consumer_progress") < 6:
        lags = [one["lag_records"] for one in pages.get("/statusz").json["assignment"]["partitions"]]
        ready = pages.get("/readyz")
        if world.database.value("SELECT min(next_offset) FROM receiptd.consumer_progress") < 6:
            seen.update(lags)
            red += [time.monotonic()] if ready.status == 503 else []
            assert ready.status == 503 or lags == [7]
        time.sleep(0.1)
    assert seen <= {7, None} and 7 in seen and red[-1] - red[0] > 3, (seen, red)
    process.wait_for(lambda: places(pages)[0]["lag_records"] == 0, 30, "applied")
    pages.wait_until_ready()
    process.stop()


def test_the_topics_of_folds_are_seen_as_well(create_world, create_topic):
    events, out = create_topic(3), create_topic(1)
    world = create_world(partitions=2, folds=[{"name": "r", "source": "topic", "topic": str(events), "group_key": ["a"], "window": "1s",
                                               "publish": {"kafka": {"topic": str(out)}}}])
    process, pages = begin(world)

    def all_known():
        found = places(pages, "folds")
        return len(found) == 3 and all(place["owner"] == "receiptd" and place["lag_records"] == 0 for place in found.values())

    process.wait_for(all_known, 60, "all places are known")
    assert pages.figures().get_one("receiptd_topic_partition_owned", reader="folds", topic=str(events)) == 3
    process.stop()



def test_a_retention_gap_is_one_reason_and_leaves_the_other_partitions_alone(create_world):
    world = create_world(partitions=4, postgres={"zombie_timeout": "6s"})
    world.insert_ids("m", *[f"n{number}" for number in range(2000)])
    process, pages = begin(world, on_retention_gap="skip")
    world.topic.send(*[[{"message_id": "m", "status": "SENT"}]] * 3, partition=0)
    process.wait_for(lambda: places(pages)[0]["position"] == 3, 30, "applied")
    process.stop()
    world.topic.send(*[[{"message_id": "m", "status": "DELIVERED"}]] * 7, partition=0)
    broker.delete_records(world.brokers, str(world.topic), {0: 6})
    process = world.installation.start("b")
    pages = Operations(process)
    sent, done = 0, "SELECT min(next_offset) FROM receiptd.consumer_progress WHERE partition = 0"
    while world.database.value(done) < 10:
        for partition in (1, 2, 3):
            world.topic.send([{"message_id": f"n{sent % 2000}", "status": "DELIVERED"}], partition=partition)
            sent += 1
    pages.wait_until_ready()
    world.wait_until_consumed(process)
    lines = process.log()
    assert sent > 30 and len(re.findall('msg="not ready: the log of a partition begins above', lines)) == 1, lines
    assert len(re.findall('msg="ready', lines)) <= 2, lines
    figures = pages.figures()
    assert figures.get_one("receiptd_exclusivity_conflicts_total") == figures.get_one("receiptd_fence_conflicts_total") == 0
    assert world.database.value("SELECT sum(events)::int FROM receiptd.campaign_funnel") == 3 + 4 + sent
    world.audit()
    process.stop()
