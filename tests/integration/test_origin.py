"""A receipt that comes before its alias finds its message later; one that names another organisation finds none. The daemon, as it is
killed, and each way by which a receipt comes in."""
import contextlib
import random
import threading

import pytest

from oracle.ledger import Row
from support import correction, intake
from support.intake import Client, twilio
from support.operations import Operations

QUICK = {"poll_interval": "100ms"}
ACCOUNTS = [{"name": "acme", "gateway": "twilio", "org_id": "org1", "verify": "off", "message_id": "?mid"},
            {"name": "bird", "gateway": "twilio", "org_id": "org3", "verify": "off", "message_id": "?mid"},
            {"name": "free", "gateway": "twilio", "verify": "off", "message_id": "?mid"}]


def under_gateway_id(id, status="DELIVERED", account="acme", **more):
    """A receipt as the intake sends it when there is no alias yet."""
    return {"message_id": id, "gateway_message_id": id, "gateway": account, "status": status, **more}


def add_alias(world, account, gateway_id, message_id):
    world.database.execute("INSERT INTO receiptd.message_alias VALUES (%s, %s, %s)", account, gateway_id, message_id)


def parked(world):
    return world.database.value("SELECT count(*) FROM receiptd.parked_event")


def statuses(world):
    return dict(world.database.query("SELECT message_id, status FROM receiptd.message_inbox ORDER BY 1"))


def letters(world):
    return world.database.query("SELECT reason, detail FROM receiptd.dead_letter ORDER BY partition, \"offset\", index")


def events(world, status):
    return world.database.value("SELECT COALESCE(sum(events), 0)::int FROM receiptd.campaign_funnel WHERE status = %s", status)


def with_intake(world, create_topic, **settings):
    world.installation.configure(intake={"enabled": True, "listen": "127.0.0.1:0", "topic": str(world.topic),
                                         "dead_letter_topic": str(create_topic(1)), "accounts": ACCOUNTS, **settings})
    return intake.start(world.installation, command="run")


def call(process, *requests):
    with Client(process.port) as client:
        for request in requests:
            client.send(request)
            assert client.answer().status // 100 == 2


@pytest.mark.parametrize("order", ["message first", "alias first"])
def test_a_callback_before_its_alias_is_applied_when_the_alias_lands(create_world, create_topic, order):
    world = create_world(partitions=2, lanes=8, parked=QUICK)
    process = with_intake(world, create_topic)
    call(process, twilio(None, gateway_id="SM1"), twilio(None, gateway_id="SM1", status="read"), twilio(None, gateway_id="SM2"))
    world.wait(lambda: parked(world) == 3, process, what="the receipts are parked")
    figures = Operations(process).figures
    world.wait(lambda: figures().get_one("receiptd_parked_for_alias_events") == 3, process, what="they wait for an alias")
    steps = [lambda: world.insert({"ours": Row("org1", "c")}), lambda: add_alias(world, "acme", "SM1", "ours")]
    for do in steps if order == "message first" else reversed(steps):
        do()
    world.wait(lambda: statuses(world)["ours"] == 700 and parked(world) == 1, process, what="applied")
    assert (events(world, 600), events(world, 700)) == (1, 1)
    assert figures().get_one("receiptd_events_aliased_total") == 2
    world.wait(lambda: figures().get_one("receiptd_parked_for_alias_events") == 1, process, what="one is left")
    assert Operations(process).get("/statusz").json["parked_for_alias"] == 1
    world.audit()
    process.stop()


@pytest.mark.slow
def test_aliases_under_kills_apply_each_receipt_exactly_once(create_world):
    """The daemon is killed while receipts move to the lanes of their messages and wake there; the database is the only memory."""
    world = create_world(partitions=4, lanes=16, parked={**QUICK, "wake_limit": 20}, postgres={"connections": 4})
    rng, messages = random.Random(5), 3_000
    sent = [(number, rng.choice(["SENT", "DELIVERED", "OPENED", "FAILED", "COMPLAINED"])) for number in range(messages)
            for _ in range(rng.choice([1, 1, 2, 4]))]
    rng.shuffle(sent)
    for start in range(0, len(sent), 50):
        world.topic.send([under_gateway_id(f"g{number}", status) for number, status in sent[start:start + 50]])

    def platform():
        order = list(range(messages))
        rng.shuffle(order)
        for start in range(0, messages, 100):
            some = order[start:start + 100]
            steps = [lambda: world.insert({f"m{n}": Row("o", f"c{n % 3}") for n in some}),
                     lambda: [add_alias(world, "acme", f"g{n}", f"m{n}") for n in some]]
            for do in rng.sample(steps, 2):
                do()

    process = world.installation.start()
    lands = threading.Thread(target=platform)
    lands.start()
    for _ in range(6):
        before = world.database.value("SELECT count(*) FROM receiptd.parked_event WHERE gateway_id <> message_id")
        with contextlib.suppress(AssertionError):
            world.wait(lambda: world.database.value(
                "SELECT count(*) FROM receiptd.parked_event WHERE gateway_id <> message_id") != before, process, 5, "receipts move")
        process.kill()
        process = world.installation.start()
    lands.join()
    world.wait(lambda: world.position_sum() > 0 and parked(world) == 0, process, 120, "all are applied")
    world.wait_until_consumed(process)
    counted = dict(world.database.query("SELECT status_name, sum(events)::int FROM receiptd.campaign_funnel WHERE events > 0 GROUP BY 1"))
    assert counted == {status: sum(1 for _, other in sent if other == status) for _, status in sent}
    rank = {"SENT": 300, "FAILED": 440, "DELIVERED": 600, "COMPLAINED": 600, "OPENED": 700}
    expected = dict.fromkeys((f"m{n}" for n in range(messages)), 0)
    for number, status in sent:
        expected[f"m{number}"] = max(expected[f"m{number}"], rank[status])
    assert statuses(world) == expected
    world.audit()
    process.stop()


@pytest.mark.parametrize("waits", [True, False])
def test_where_unknown_messages_are_inserted_a_gateway_id_waits_for_its_alias(create_world, waits):
    world = create_world(partitions=1, lanes=4, unknown="insert", parked={**QUICK, "alias_wait": "10s" if waits else "0s"})
    world.topic.send([under_gateway_id("g1"), {"message_id": "plain", "status": "SENT"}])
    process = world.installation.start()
    world.wait(lambda: statuses(world).get("plain") == 300, process, what="an id of the platform gets its row at once")
    if waits:
        assert "g1" not in statuses(world)
        add_alias(world, "acme", "g1", "ours")
        world.wait(lambda: statuses(world) == {"ours": 600, "plain": 300}, process, 60, "the message of the alias gets it")
    else:
        world.wait(lambda: statuses(world) == {"g1": 600, "plain": 300}, process, what="the gateway's id becomes a message")
    assert parked(world) == 0 and events(world, 600) == 1
    world.audit()
    process.stop()


# ---- organisations


CROSSING = ("other_organisation", 'the receipt is of organisation "org1", its message of "org3"')


def test_no_way_leads_a_receipt_into_another_organisation(create_world, create_topic):
    """Webhook, record, parked, alias, redrive: each is refused with both names, and counted."""
    world = create_world(partitions=1, lanes=4, parked=QUICK)
    world.insert({"m1": Row("org1", "c1"), "m3": Row("org3", "c3")})
    add_alias(world, "acme", "SM-theirs", "m3")
    process = with_intake(world, create_topic)
    call(process, twilio("m3"), twilio("m1"), twilio(None, gateway_id="SM-theirs"), twilio("late"))
    world.wait(lambda: statuses(world)["m1"] == 600 and len(letters(world)) == 2 and parked(world) == 1, process, what="webhooks")
    world.insert({"late": Row("org3", "c3")})
    world.wait(lambda: len(letters(world)) == 3, process, what="the parked one")
    call(process, twilio(None, gateway_id="SM-late"))
    world.wait(lambda: parked(world) == 1, process, what="it waits for its alias")
    add_alias(world, "acme", "SM-late", "m3")
    world.wait(lambda: len(letters(world)) == 4, process, what="the one with an alias")
    world.topic.send([{"message_id": "m3", "status": "DELIVERED", "org_id": "org1"},
                      {"message_id": "m3", "status": "SENT", "org_id": "org3"},
                      {"message_id": "m3", "status": "OPENED", "org_id": "\\u006frg1"}],
                     {"message_id": "m3", "status": "OPENED", "org_id": "org1", "reason": "\0"})
    world.wait(lambda: len(letters(world)) == 7 and statuses(world)["m3"] == 300, process, what="records")
    world.installation.command("dead-letters", "--redrive")
    world.wait(lambda: len(letters(world)) == 7 and parked(world) == 0, process, what="redriven, they come back")
    assert [reason for reason, _ in letters(world)] == ["other_organisation"] * 7
    assert sum(row == CROSSING for row in letters(world)) == 6
    assert statuses(world) == {"m1": 600, "m3": 300, "late": 0}
    assert Operations(process).figures().get_one("receiptd_events_dead_total", reason="other_organisation") == 14
    world.audit()
    process.stop()


def test_a_redriven_receipt_is_applied_when_its_message_is_of_the_organisation(create_world):
    world = create_world(partitions=1, parked=QUICK)
    world.insert({"m": Row("org3", "c")})
    world.topic.send({"message_id": "m", "status": "DELIVERED", "org_id": "org1"})
    process = world.installation.start()
    world.wait(lambda: len(letters(world)) == 1, process, what="refused")
    world.database.execute(correction.of_organisation("org3", "org1", "c"))
    assert world.database.query("SELECT org_id FROM receiptd.campaign_organisation") == [("org1",)]
    world.installation.command("dead-letters", "--redrive", "--reason", "other_organisation")
    world.wait(lambda: statuses(world) == {"m": 600}, process, what="applied")
    process.stop()


def test_the_funnel_of_an_organisation_shows_its_campaigns_and_no_others(create_world):
    world = create_world(partitions=1)
    world.insert({"a": Row("org1", "c1"), "b": Row("org3", "c3"), "x": Row("org1", "both"), "y": Row("org3", "both"), "n": Row(None, "c0")})

    def shown(*arguments):
        return world.installation.json("funnel", *arguments)

    assert [(funnel["campaign_id"], funnel["org_id"]) for funnel in shown()] == [
        ("both", None), ("c0", None), ("c1", "org1"), ("c3", "org3")]
    assert [funnel["campaign_id"] for funnel in shown("--org", "org1")] == ["c1"]
    assert shown("c3", "--org", "org3")["campaign_id"] == "c3"
    for arguments in (("c3", "--org", "org1"), ("both", "--org", "org1"), ("--org", "nobody")):
        result = world.installation.command("funnel", *arguments, check=False)
        assert result.returncode == 66 and f'organisation "{arguments[-1]}" has no campaign' in result.stderr
    assert "organisation org1" in world.installation.command("funnel", "c1").stdout
