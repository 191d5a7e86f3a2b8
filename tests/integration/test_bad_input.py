"""Bad input is a dead letter with its reason, and its neighbours land: in the record, in the batch, on the lane."""

import json
import re

import pytest

from oracle.ledger import MAX_BYTES
from oracle.traffic import BAD_ELEMENTS, BAD_RECORDS, EMPTY_RECORDS, ODD_ELEMENTS
from support.operations import Operations

GOOD = '{"message_id":"good","status":"SENT"}'


def receipt(id, status="SENT", **extra):
    return {"message_id": id, "status": status, **extra}


def letters(world):
    query = 'SELECT partition, "offset", index, reason, detail FROM receiptd.dead_letter ORDER BY 1, 2, 3'
    return world.database.query(query)


def test_every_kind_of_bad_record_and_element_is_set_aside_alone(create_world):
    world = create_world(partitions=3)
    world.insert_ids("good", "m", "nan", "twice", "first of two", "m-0000001")
    for number, bad in enumerate(BAD_RECORDS + EMPTY_RECORDS):
        world.topic.send(GOOD, bad, GOOD, partition=number % 3)
    for bad in BAD_ELEMENTS + ODD_ELEMENTS:
        bad = bad.replace("{id}", '"m"')
        world.topic.send(bad, f"[{GOOD},{bad},{GOOD}]", f'{{"events":[{bad},{GOOD},{bad}]}}')
    process = world.installation.start()
    world.finish(process)
    process.stop()


@pytest.mark.parametrize("element", ("{}", "7", '{"message_id":"m"}', '{"message_id":"m","status":"NONE","gateway":"g"}', '{"message_id":"m","status":"SENT","part":-1}',
                                     '{"message_id":"m","status":"SENT","at":"never"}', '{"message_id":1,"status":"SENT"}', '{"status":"OPENED","until":1,"recipient":"r","gateway":"g"}'))
def test_a_record_of_many_refusals_is_a_hundred_letters(create_world, element):
    world = create_world(partitions=2, http={"listen": "127.0.0.1:0"})
    world.insert_ids("good", "m")
    elements = [element if n % 100 else GOOD for n in range(10_000)]
    world.topic.send("[" + ",".join(elements) + "]", GOOD, partition=0)
    world.topic.send("[" + ",".join([element] * 10_000) + "]", "[" + ",".join([element] * 100) + "]", partition=1)
    process = world.installation.start()
    world.wait_until_consumed(process)
    if "part" in element or "until" in element:
        world.audit()  # the ledger knows neither parts nor ranges
    else:
        world.finish(process)
    counts = dict(world.database.query("""SELECT format('%s/%s', partition, "offset"), array[count(*), sum(COALESCE(cardinality(indexes), 1))]::int[] FROM receiptd.dead_letter GROUP BY 1"""))
    assert counts == {"0/0": [100, 9_900], "1/0": [100, 10_000], "1/1": [100, 100]}
    assert Operations(process).figures().get_one("receiptd_events_dead_total") == 20_000
    listed = world.installation.json("dead-letters", "--limit", "1000", "--format", "json")
    assert sum(int(letter["receipts"]) for letter in listed) == 20_000 and len(listed) == 300
    process.stop()


def test_many_refusals_are_redriven_each_once_when_the_ladder_takes_them(create_world):
    """Also where other receipts of the record stand between them, and wait at their own indexes."""
    world = create_world(partitions=1)
    world.insert_ids("known")
    odd = [receipt(f"m{n}", "NEW_STATUS", event_id=f"e{n}") for n in range(500)]
    record = [event for n, event in enumerate(odd) for event in ([event, receipt(f"waits{n}")] if n % 3 == 0 else [event])]
    world.topic.send(record, GOOD)
    process = world.installation.start()
    world.wait_until_consumed(process)
    process.stop()
    assert world.database.value("SELECT count(*) FROM receiptd.dead_letter") == 100
    assert world.installation.json("dead-letters", "--redrive", "--format", "json")[0]["letters_left"] == 100, "the ladder lacks it still"
    world.database.execute("UPDATE receiptd.dead_letter SET payload = convert_to(replace(convert_from(payload, 'UTF8'), 'NEW_STATUS', 'DELIVERED'), 'UTF8')")
    said = world.installation.json("dead-letters", "--redrive", "--format", "json")
    assert said == [{"letters_moved": 100, "receipts_parked": 500, "letters_left": 0}]
    parked = dict(world.database.query('SELECT index, message_id FROM receiptd.parked_event WHERE "offset" = 0'))
    assert parked == {index: event["message_id"] for index, event in enumerate(record)}
    assert world.installation.json("dead-letters", "--format", "json") == []


def test_half_a_surrogate_pair_costs_an_id_its_event_and_nothing_else(create_world):
    """Legal JSON, as gateways send it when they cut a text in the middle of an emoji; but no UTF-8 for an id."""
    world = create_world(partitions=1)
    world.insert_ids("good", "m")
    cut = r'{"message_id":"m","status":"DELIVERED","reason":"sorry \ud83d"}'
    world.topic.send(cut, f"[{GOOD},{cut},{GOOD}]", *(
        rf'[{GOOD},{{"message_id":"{id}","status":"SENT"}},{GOOD}]'
        for id in (r"\ud800", r"x\udc00\ud800y", r"\ude00\ud83d")
    ))
    process = world.installation.start()
    world.finish(process)
    process.stop()


def test_the_largest_records_land_and_larger_ones_do_not(create_world):
    world = create_world(partitions=1)
    world.insert_ids(*(f"m{number}" for number in range(10_000)), "big")
    most = [receipt(f"m{number}") for number in range(10_000)]
    head, tail = b'{"message_id":"big","status":"DELIVERED","reason":"', b'"}'
    largest = head + b"x" * (MAX_BYTES - len(head) - len(tail)) + tail
    assert len(largest) == MAX_BYTES
    world.topic.send(most, [*most, receipt("m1", "CLICKED")], GOOD, largest, b" " + largest, receipt("m0", "OPENED"))
    process = world.installation.start()
    world.finish(process)
    assert [(offset, index, reason) for _, offset, index, reason, _ in letters(world)] == [
        (1, -1, "too_many_events"), (4, -1, "record_too_large"),
    ]
    process.stop()


def test_the_traceparent_of_a_record_goes_with_its_letters(create_world):
    world = create_world(partitions=1)
    good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    for header in (good.encode(), b"nonsense", good.encode() * 2, b""):
        world.topic.send("{", "[{}]", headers=[("traceparent", header)])
    process = world.installation.start()
    world.finish(process)
    query = 'SELECT "offset", COALESCE(traceparent, %s) FROM receiptd.dead_letter'
    assert dict(world.database.query(query, "")) == {0: good, 1: good, **dict.fromkeys(range(2, 8), "")}
    process.stop()


def test_a_channel_that_is_nearly_one_of_the_ladder_is_named_once(create_world):
    """Any name may be a channel, so the receipt counts; but a hard bounce of "emial" is not one of e-mail."""
    world = create_world(partitions=1)
    world.insert_ids("good", "m")
    bounce = receipt("m", "BOUNCED_HARD", channel="emial")
    world.topic.send(bounce, bounce, receipt("good", "BOUNCED_HARD", channel="sms"))
    process = world.installation.start()
    process.wait_for_log(r'level=warn .*name the channel \\"emial\\", which has no override in the ladder: did the sender mean \\"email\\"')
    world.finish(process)
    process.stop()
    assert len(re.findall("has no override", process.log())) == 1


REFUSING_TRIGGER = """
    CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        IF NEW.message_id = 'culprit' THEN RAISE EXCEPTION 'the platform does not want this'; END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER refuse BEFORE UPDATE ON receiptd.message_inbox FOR EACH ROW EXECUTE FUNCTION public.refuse()
"""


@pytest.mark.parametrize("position", [0, 500, 999])
def test_an_event_that_only_postgresql_refuses_is_set_aside_alone(create_world, position):
    world = create_world(partitions=4)
    world.insert_ids("culprit", *(f"m{number}" for number in range(1000)))
    world.database.execute(REFUSING_TRIGGER)
    for partition in range(4):
        events = [receipt(f"m{number}", ("SENT", "DELIVERED")[number % 2]) for number in range(1000)]
        events[position] = receipt("culprit", "OPENED")
        world.topic.send(events, [receipt("m1", "CLICKED")], partition=partition)
    process = world.installation.start()
    world.finish(process, refused={"culprit"})
    found = letters(world)
    assert [(offset, index, reason) for _, offset, index, reason, _ in found] == [(0, position, "database")] * 4
    assert all("P0001" in detail for *_, detail in found)
    process.stop()


def test_only_the_event_that_breaks_a_constraint_is_refused(create_world):
    """The fold of one message holds good and bad receipts: the good ones count, in one record and in several."""
    world = create_world(partitions=1)
    world.insert_ids("culprit", "m")
    world.database.execute(
        "ALTER TABLE receiptd.message_inbox ADD CONSTRAINT tame CHECK (message_id <> 'culprit' OR status < 700)"
    )
    world.topic.send([receipt("culprit"), receipt("m"), receipt("culprit", "CLICKED"), receipt("culprit", "DELIVERED")],
                     [receipt("m", "OPENED"), receipt("culprit", "REPLIED")], receipt("culprit", "OPENED"),
                     [receipt("m", "CLICKED"), receipt("culprit", "SENT")])
    process = world.installation.start()
    world.wait_until_consumed(process)
    world.audit()
    assert [(offset, index, reason) for _, offset, index, reason, _ in letters(world)] == [
        (0, 2, "database"), (2, 0, "database"),
    ]
    states = world.database.query("SELECT message_id, status, flags FROM receiptd.message_inbox ORDER BY 1")
    assert states == [("culprit", 600, 8), ("m", 800, 0)]
    funnel = dict(world.database.query("SELECT status, events FROM receiptd.campaign_funnel WHERE events > 0"))
    assert funnel == {300: 3, 600: 1, 700: 1, 800: 1, 9004: 1}
    process.stop()


def test_a_parked_receipt_that_postgresql_refuses_is_set_aside_alone(create_world):
    world = create_world(partitions=2)
    world.database.execute(REFUSING_TRIGGER)
    for partition in range(2):
        world.topic.send([receipt(f"m{number}") for number in range(50)] + [receipt("culprit", "OPENED")] * 2,
                         partition=partition)
    process = world.installation.start()
    world.wait_until_consumed(process)
    world.insert_ids("culprit", *(f"m{number}" for number in range(50)))
    world.finish(process, refused={"culprit"})
    assert len(letters(world)) == 4
    process.stop()


def test_many_refused_events_do_not_stop_the_stream(create_world):
    world = create_world(partitions=2, lanes=4)
    ids = [f"m{number}" for number in range(400)]
    bad = set(ids[::10])
    world.insert_ids(*ids)
    world.database.execute("CREATE TABLE public.unwanted AS SELECT unnest(%s::text[]) AS id", list(bad))
    world.database.execute(REFUSING_TRIGGER.replace("NEW.message_id = 'culprit'",
                                                    "NEW.message_id IN (SELECT id FROM public.unwanted)"))
    for turn, status in enumerate(("SENT", "DELIVERED", "OPENED", "COMPLAINED")):
        for first in range(0, 400, 40):
            world.topic.send([receipt(id, status) for id in ids[first : first + 40]], partition=(first + turn) % 2)
    process = world.installation.start()
    world.finish(process, timeout=120, refused=bad)
    assert len(letters(world)) == 4 * len(bad)
    process.stop()


def test_no_id_and_no_payload_reaches_the_log(create_world):
    world = create_world(partitions=1)
    secret = "491700000000"
    world.insert_ids(secret)
    world.database.execute(
        f"ALTER TABLE receiptd.message_inbox ADD CONSTRAINT secretive CHECK (message_id <> '{secret}' OR status = 0)"
    )
    world.topic.send(receipt(secret), f'{{"message_id":"{secret}"', receipt(secret, "NO_SUCH"), json.dumps([secret]),
                     receipt(secret + "9" * 250), receipt("unknown-" + secret))
    world.installation.configure(log={"level": "debug"})
    process = world.installation.start()
    world.finish(process, refused={secret})
    process.stop()
    assert secret not in process.log()


LETTER_BYTES = 65536
PADDING = "x" * 100_000


def check_cut(world, expected):
    """The letters are of these (offset, index, reason), cut to 64 KiB; each says how large it was."""
    query = ('SELECT "offset", index, reason, octet_length(payload), detail FROM receiptd.dead_letter'
             " WHERE index >= -1 ORDER BY 1, 2")
    found = world.database.query(query)
    assert [row[:3] for row in found] == expected
    for *_, size, detail in found:
        assert size == LETTER_BYTES
        assert int(re.search(r"the first of (\d+) bytes$", detail)[1]) > LETTER_BYTES
    moved = world.installation.command("dead-letters", "--redrive").stdout
    assert f"0 letters moved (0 receipts parked for the daemon), {len(found)} left" in moved
    assert f"{len(found)} of those left hold only the first 64 KiB" in moved
    assert world.installation.command("dead-letters").stdout.count("the first of ") == len(found)


def test_letters_of_large_records_and_events_hold_64_kib_and_say_so(create_world):
    world = create_world(partitions=1)
    world.insert_ids("culprit", "good")
    world.database.execute(REFUSING_TRIGGER)
    large = receipt("culprit", "OPENED", text=PADDING)
    world.topic.send('{"a":"' + PADDING, [large, receipt("good")], [receipt("good", "NO_SUCH", text=PADDING)],
                     "[" + ",".join("{}" for _ in range(40_000)) + "]", b" " * (MAX_BYTES + 1), receipt("good", "CLICKED"))
    process = world.installation.start()
    world.finish(process, refused={"culprit"})
    check_cut(world, [(0, -1, "invalid_json"), (1, 0, "database"), (2, 0, "unknown_status"),
                      (3, -1, "too_many_events"), (4, -1, "record_too_large")])
    process.stop()


def test_letters_of_large_receipts_without_a_message_hold_64_kib(create_world):
    world = create_world(partitions=1, unknown="dead-letter")
    world.topic.send(receipt("nobody", text=PADDING))
    process = world.installation.start()
    world.wait_until_consumed(process)
    check_cut(world, [(0, 0, "unknown_message")])
    process.stop()


def test_letters_of_large_receipts_that_grew_old_or_were_refused_later_hold_64_kib(create_world):
    world = create_world(partitions=1, parked={"max_age": "3s"})
    world.database.execute(REFUSING_TRIGGER)
    world.topic.send(receipt("culprit", "OPENED", text=PADDING), receipt("nobody", text=PADDING))
    process = world.installation.start()
    world.wait_until_consumed(process)
    world.insert_ids("culprit")
    world.wait(lambda: len(letters(world)) == 2, process, 30, "both letters")
    check_cut(world, [(0, 0, "database"), (1, 0, "aged_out")])
    process.stop()
