"""Receipts of parts through Kafka: each message counts once, whatever the order, the copies and the kills."""
import itertools
import random

from test_sql_parts import expected, histories, outcome

from sql_batch import NAMES
from sql_fixture import FLAGS


def as_json(event):
    fields = {"message_id": event.message_id, "status": NAMES[event.code]}
    if event.marks:
        fields["flags"] = [FLAGS[bit][0] for bit in event.marks]
    if event.part is not None:
        fields |= {"part": event.part, "parts": event.parts}
    return fields


def parked(world):
    return world.database.value("SELECT count(*) FROM receiptd.parked_event")


def test_a_message_in_parts_is_delivered_when_all_are_over_kills(create_world):
    rng = random.Random(8)
    world = create_world(partitions=4)
    inbox, events = histories(rng, 1500)
    ids = sorted(inbox)
    world.insert_ids(*ids[:1000])
    for start in range(0, len(events), 40):
        world.topic.send(*(as_json(event) for event in events[start:start + 40]))
    process = world.installation.start("0")
    for kill in range(1, 4):
        world.wait_for_progress(process)
        process.kill()
        process = world.installation.start(str(kill))
    world.wait_until_consumed(process)
    world.insert_ids(*ids[1000:])
    world.wait(lambda: parked(world) == 0, process, what="all parked receipts to be woken")
    mine = {i: [] for i in ids}
    for event in events:
        mine[event.message_id].append(event)
    rows = {i: (status, flags) for i, status, flags in world.database.query("SELECT message_id, status, flags FROM receiptd.message_inbox")}
    assert rows == {i: outcome(mine[i]) for i in ids}
    funnel = world.database.query("SELECT status, sum(messages)::int, sum(events)::int FROM receiptd.campaign_funnel GROUP BY 1")
    totals = {}
    for (_, code), (messages, named) in expected(inbox, events)[1].items():
        was = totals.get(code, (0, 0))
        totals[code] = (was[0] + messages, was[1] + named)
    assert {code: (messages, named) for code, messages, named in funnel} == totals
    whole = next(i for i in ids if rows[i][0] == 600 and len({e.part for e in mine[i]}) > 1)
    assert " delivered: 1" in world.installation.json("explain", whole)["message"]["parts"]
    process.stop()


# ---- how long a message in parts took: until its last part was delivered


def finish(world, process):
    world.wait_until_consumed(process)
    world.wait(lambda: parked(world) == 0, process, what="all parked receipts to be woken")


def at_hour_of(world):
    """An hour ago, in ms."""
    return world.database.value("SELECT (extract(epoch FROM date_trunc('hour', now())) * 1000)::int8") - 3_600_000


def test_a_message_took_until_its_last_part_came_in_any_order(create_world):
    """Sent at 0 s, the first part delivered at 10 s and, by a late repetition, at 50 s, the second at 20 s: that is 20 s, so the bucket that ends at 23 170 ms."""
    world = create_world(partitions=1, counters={"times": True})
    begin = at_hour_of(world)
    receipts = [{"status": "SENT", "at": begin}, {"status": "DELIVERED", "at": begin + 10_000, "part": 1, "parts": 2},
                {"status": "DELIVERED", "at": begin + 50_000, "part": 1, "parts": 2}, {"status": "DELIVERED", "at": begin + 20_000, "part": 2, "parts": 2}]
    orders = {f"m{n}": order for n, order in enumerate(itertools.permutations(receipts))}
    world.insert_ids(*orders)
    process = world.installation.start()
    for turn in range(len(receipts)):
        world.topic.send(*({"message_id": id, **order[turn]} for id, order in orders.items()))
        finish(world, process)
    assert world.database.query("SELECT key, messages::int FROM receiptd.campaign_tally WHERE kind = 'time_to_deliver'") == [("23170", 24)]
    assert world.database.value("SELECT array_agg(DISTINCT (extract(epoch FROM first_delivered_at) * 1000)::int8) FROM receiptd.message_inbox") == [begin + 20_000]
    assert ", 0 cells drift" in world.installation.command("audit").stdout
    process.stop()


def delivered_at(receipts):
    """The last of its parts' earliest times, or earlier where a receipt says that the whole is delivered."""
    times = [receipt["at"] for receipt in receipts if "part" not in receipt]
    parts, total = {}, min((receipt["parts"] for receipt in receipts if "part" in receipt), default=0)
    for receipt in receipts:
        if "part" in receipt:
            parts[receipt["part"]] = min(receipt["at"], parts.get(receipt["part"], receipt["at"]))
    if total and parts.keys() >= set(range(1, total + 1)):
        times.append(max(parts[part] for part in range(1, total + 1)))
    return min(times, default=None)


def test_random_parts_are_delivered_when_the_definition_says(create_world):
    world, rng = create_world(partitions=2, counters={"times": True}), random.Random(3)
    begin, receipts = at_hour_of(world), []
    ids = [f"m{n}" for n in range(400)]
    for id in ids:
        parts = rng.randrange(2, 5)
        for _ in range(rng.randrange(1, 10)):
            receipts.append({"message_id": id, "status": "DELIVERED", "at": begin + rng.randrange(3_600_000), "part": rng.randrange(1, parts + 1), "parts": parts})
            if rng.random() < 0.05:
                receipts[-1]["parts"] = rng.randrange(max(2, receipts[-1]["part"]), 6)
        if rng.random() < 0.1:
            receipts.append({"message_id": id, "status": "DELIVERED", "at": begin + rng.randrange(3_600_000)})
    came = receipts + rng.choices(receipts, k=len(receipts) // 4)
    rng.shuffle(came)
    world.insert_ids(*ids[:300])
    process = world.installation.start()
    for start in range(0, len(came), 100):
        world.topic.send(*came[start:start + 100])
        if start % 400 == 0:
            world.wait_until_consumed(process)
    world.insert_ids(*ids[300:])
    finish(world, process)
    mine = {id: [receipt for receipt in receipts if receipt["message_id"] == id] for id in ids}
    expected = {id: delivered_at(mine[id]) for id in ids}
    assert dict(world.database.query("SELECT message_id, (extract(epoch FROM first_delivered_at) * 1000)::int8 FROM receiptd.message_inbox")) == expected
    assert 50 < sum(at is None for at in expected.values()) < 350
    process.stop()


# ---- parts without a total


def test_parts_without_a_total_are_never_copies_of_each_other(create_world):
    """Two parts at one time, each of them twice: two events and two duplicates. A copy that comes with the total, since an alias has it by then, is one, too."""
    world = create_world(partitions=1, dedup={"window": "24h"})
    at = at_hour_of(world)
    world.insert_ids("m", "long")
    process = world.installation.start()
    for part in (1, 2, 1, 2):
        world.topic.send({"message_id": "m", "status": "DELIVERED", "at": at, "part": part})
        world.topic.send({"message_id": f"g.{part}", "gateway_message_id": f"g.{part}", "gateway": "acme", "status": "DELIVERED", "at": at, "part": part})
    world.wait_until_consumed(process)
    for part in (1, 2):
        world.database.execute(f"INSERT INTO receiptd.message_alias (channel_account, gateway_id, message_id, part, parts) VALUES ('acme', 'g.{part}', 'long', {part}, 2)")
    finish(world, process)
    for part in (1, 2):
        world.topic.send({"message_id": "long", "gateway_message_id": f"g.{part}", "gateway": "acme", "status": "DELIVERED", "at": at, "part": part, "parts": 2})
    finish(world, process)
    assert world.database.query("SELECT status, messages::int, events::int, duplicates::int FROM receiptd.campaign_funnel WHERE status = 600") == [(600, 2, 4, 6)]
    assert world.database.query("SELECT message_id, status FROM receiptd.message_inbox ORDER BY 1") == [("long", 600), ("m", 600)]
    process.stop()
