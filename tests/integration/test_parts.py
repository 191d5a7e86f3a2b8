"""Receipts of parts through Kafka: each message counts once, whatever the order, the copies and the kills."""
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
