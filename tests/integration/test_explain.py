"""receiptd explain: the row, and what each receipt did and why."""

import pytest

from support.operations import ControlSocket, Operations

EX_USAGE, EX_NOINPUT = 64, 66


def receipt(status, id="m"):
    return [{"message_id": id, "status": status}]


def test_every_receipt_is_explained_by_what_it_did(create_world):
    world = create_world(partitions=1, lanes=1, postgres={"connections": 1}, timeline={"retention": "1h"})
    world.insert_ids("m", campaign="spring")
    process = world.installation.start()
    for status in ("SENT", "FAILED", "DELIVERED", "SENT", "DELIVERED", "FAILED", "COMPLAINED", "COMPLAINED", "CLICKED"):
        world.topic.send(receipt(status))
        world.wait_until_consumed(process)
    world.topic.send(receipt("OPENED") + receipt("OPENED"), [{"message_id": "m", "status": "NONSENSE"}])
    world.topic.send(receipt("SENT", "late"))
    world.wait_until_consumed(process)
    told = world.installation.json("explain", "m")
    assert told["message"]["status_name"] == "CLICKED" and told["message"]["campaign_id"] == "spring"
    assert told["message"]["path"] == ["TARGETED", "IN_GTW", "SENT", "DELIVERED", "OPENED", "CLICKED"]
    assert told["message"]["flags"] == ["COMPLAINED"]
    assert [(r["status_name"], r["effect"]) for r in told["receipts"]] == [
        ("SENT", "applied"), ("FAILED", "applied"), ("DELIVERED", "applied"), ("SENT", "stale"),
        ("DELIVERED", "duplicate"), ("FAILED", "contradicted"), ("COMPLAINED", "applied"), ("COMPLAINED", "duplicate"),
        ("CLICKED", "applied"), ("OPENED", "stale"), ("OPENED", "stale"),
    ]
    assert told["receipts"][2]["why"] == "FAILED → DELIVERED, a correction"
    assert [letter["reason"] for letter in told["dead_letters"]] == ["unknown_status"]
    text = world.installation.command("explain", "m").stdout
    assert "CLICKED" in text and "a correction" in text and "unknown_status" in text
    waiting = world.installation.json("explain", "late")
    assert waiting["message"] is None and waiting["receipts"][0]["effect"] == "waiting"
    assert "no row: the platform has not made this message yet" in world.installation.command("explain", "late").stdout
    world.insert_ids("late")
    world.wait_until_woken(process)
    assert world.installation.json("explain", "late")["receipts"][0]["effect"] == "woken"
    assert world.installation.command("explain", "nobody", check=False).returncode == EX_NOINPUT
    for arguments, word in ((), "which message?"), (("m", "--format", "csv"), "no csv of this"), (("m", "--format", "xml"), "xml"):
        wrong = world.installation.command("explain", *arguments, check=False)
        assert wrong.returncode == EX_USAGE and word in wrong.stderr
    world.finish(process)
    process.stop()


def test_what_waited_by_rule_is_told_with_its_rule_and_each_receipt_with_why_and_through_whom(create_world, receiptd):
    world = create_world(partitions=1, lanes=2, timeline={"retention": "1h"}, counters={"times": True, "groups": ["customer", "logical"]},
                         inbox={"columns": {"customer_id": "customer_id", "logical_id": "logical_id"}})
    world.database.execute("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id, customer_id, logical_id) VALUES ('long', 'o', 'c', '4711', 'first')")
    process = world.installation.start()
    bounce = "452 4.2.2 mailbox full " + "é" * 300
    long = {"message_id": "long", "gateway": "kannel"}
    world.topic.send([{**long, "status": "DELIVERED", "part": 1, "parts": 2, "event_id": "e-1"}, {**long, "status": "SENT", "part": 1, "parts": 2}])
    world.topic.send({**long, "status": "DELIVERED", "part": 2, "parts": 2},
                     {**long, "status": "BOUNCED_SOFT", "reason": bounce, "reason_class": "mailbox_full", "event_id": 7}, {**long, "org_id": "other", "status": "OPENED"})
    world.wait_until_consumed(process)
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.parked_event") == 0, process, what="all are woken")
    told = world.installation.json("explain", "long")
    assert told["message"]["parts"] == "2 of 2 delivered: 1 2" and (told["message"]["customer"], told["message"]["logical"]) == ("4711", "first")
    effects = [(one["status_name"], one["effect"], one.get("part")) for one in told["receipts"]]
    assert sorted(effects[:2]) == [("DELIVERED", "part", 1), ("SENT", "beside", 1)] and ("DELIVERED", "part", 2) in effects and ("OPENED", "dead", None) in effects
    assert not [one for one in told["receipts"] if "no row" in one["why"]], "the message was there all the time"
    (refused,) = [one for one in told["receipts"] if one["effect"] == "dead"]
    assert refused["why"] == "refused (other_organisation); it is a dead letter now"
    (failed,) = [one for one in told["receipts"] if one["status_name"] == "BOUNCED_SOFT"]
    assert (failed["gateway"], failed["reason_class"], failed["event_id"]) == ("kannel", "mailbox_full", "7")
    assert failed["reason"] == bounce.encode()[:500].decode(errors="ignore")
    text = world.installation.command("explain", "long").stdout
    assert "gateway kannel, reason 452 4.2.2 mailbox full" in text and "class mailbox_full, event 7" in text and "gateway kannel, event e-1, part 1 of 2" in text
    assert "customer      4711" in text and "logical       first" in text
    process.stop()


def test_what_others_wrote_does_not_steer_the_terminal(create_world):
    world = create_world()
    world.database.execute("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id)"
                           " VALUES ('m', E'o\\x1b[2J', E'c\\u009b2J')")
    text = world.installation.command("explain", "m").stdout
    assert "o?[2J" in text and "c?2J" in text and not any(c != "\n" and (c < " " or "\x7f" <= c <= "\x9f") for c in text)


def test_what_is_dead_or_was_not_recorded_is_said(create_world):
    world = create_world(partitions=1, lanes=2, timeline={"retention": "1h"}, parked={"max_age": "1s", "poll_interval": "100ms"})
    world.insert_ids("quiet")
    process = world.installation.start()
    world.topic.send(receipt("SENT", "gone"))
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.dead_letter") == 1, process)
    told = world.installation.json("explain", "gone")
    assert told["receipts"][0]["effect"] == "dead" and "it is a dead letter now" in told["receipts"][0]["why"]
    assert "no receipts are known (what each one does is kept with timeline.retention)" in world.installation.command("explain", "quiet").stdout
    process.stop()


def test_without_a_retention_nothing_is_written_and_it_can_be_switched_while_running(create_world, receiptd):
    control = ControlSocket(receiptd)
    try:
        world = create_world(4_000, seed=91, batch={"max_events": 300})
        world.insert(world.stream.late)
        process = world.installation.start()
        Operations(process).wait_until_ready()
        world.produce()
        world.wait_until_consumed(process)
        rows = "SELECT count(*) FROM receiptd.message_timeline"
        assert world.database.value(rows) == 0
        world.insert_ids("m")
        world.installation.configure(timeline={"retention": "1h"})
        assert "timeline.retention" in control.ctl("reload").stdout
        world.topic.send(receipt("SENT"))
        world.wait_until_consumed(process)
        assert world.database.value(rows) == 1
        world.installation.configure(timeline={"retention": "0s"})
        control.ctl("reload")
        world.wait(lambda: world.database.value(rows) == 0, process, what="the timeline is emptied")
        told = world.installation.json("explain", "m")
        assert told["message"]["status_name"] == "SENT" and told["receipts"] == []
        world.finish(process)
        process.stop()
    finally:
        control.close()


@pytest.mark.slow
def test_the_timeline_holds_every_receipt_once_whatever_happens(create_world):
    # Flags beside a status count as events of their own, and are told with their receipt.
    world = create_world(30_000, seed=92, traffic={"flags": 0}, batch={"max_events": 300}, timeline={"retention": "1h"})
    world.insert(world.stream.late)
    feeder = world.feed(per_second=15_000)
    for turn in range(3):
        process = world.installation.start(str(turn))
        world.wait_for_progress(process)
        process.kill()
    feeder.join()
    process = world.installation.start("last")
    world.finish(process)
    total, distinct = world.database.query(
        'SELECT count(*), count(DISTINCT (partition, "offset", index)) FROM receiptd.message_timeline'
    )[0]
    events = world.database.value("SELECT sum(events)::int8 FROM receiptd.campaign_funnel")
    parked = world.database.value("SELECT count(*) FROM receiptd.parked_event")
    refused = world.database.value("SELECT count(*) FROM receiptd.dead_letter WHERE reason = 'other_organisation'")
    assert total == distinct == events + parked + refused
    process.stop()
