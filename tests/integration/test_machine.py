"""Opens and clicks of machines through the whole: the policies decide what is counted, and a reload changes them."""

import pytest

from support.operations import ControlSocket, Operations


@pytest.fixture
def control(receiptd):
    made = ControlSocket(receiptd)
    yield made
    made.close()


@pytest.mark.parametrize("opens, clicks", [("flag", "count"), ("count", "ignore"), ("ignore", "flag")])
def test_a_stream_full_of_machines_is_exact_under_each_policy(create_world, opens, clicks):
    machines = {"opens": opens, "clicks": clicks}
    world = create_world(20_000, seed=31, traffic={"flags": 0.4}, machine=machines, parked={"poll_interval": "500ms"})
    process = world.installation.start()
    world.produce()
    world.insert(world.stream.late)
    world.finish(process, machines=machines)
    figures = Operations(process).figures()
    for kind, policy in (("open", opens), ("click", clicks)):
        assert figures.get_one("receiptd_machine_receipts_total", kind=kind, policy=policy) > 0
        assert figures.get_one("receiptd_machine_receipts_total", kind=kind) == figures.get_one(
            "receiptd_machine_receipts_total", kind=kind, policy=policy)
    process.stop()


def test_rules_and_a_reload_decide_what_later_receipts_count_as(create_world, control):
    rule = {"kind": "open", "account": "acme", "campaign": "spring", "policy": "count"}
    world = create_world(partitions=1, lanes=1, machine={"rules": [rule]}, postgres={"connections": 1})
    world.insert_ids("a", "b", "d")
    process = world.installation.start()

    def send(id, **more):
        world.topic.send({"message_id": id, "status": "OPENED", "flags": ["MACHINE_OPEN"], **more})
        world.wait_until_consumed(process)
        return world.database.value(f"SELECT (status, flags)::text FROM receiptd.message_inbox WHERE message_id = '{id}'")

    assert send("a", gateway="acme", campaign_id="spring") == "(700,32)"
    assert send("b", gateway="acme", campaign_id="summer") == "(600,32)"
    world.installation.configure(machine={"opens": "ignore", "rules": []})
    assert "machine.opens machine.rules" in control.ctl("reload").stdout
    assert send("d", gateway="acme", campaign_id="spring") == "(600,0)"
    assert send("a", gateway="acme", campaign_id="spring") == "(700,32)"
    process.stop()


def test_what_comes_soon_after_delivery_is_a_machine_s_whichever_comes_first(create_world):
    rule = {"kind": "click", "account": "acme", "policy": "ignore"}
    world = create_world(partitions=1, lanes=2, machine={"rules": [rule], "after_delivery": "5s"}, counters={"times": True}, parked={"poll_interval": "100ms"})
    world.insert_ids("first", "last", "both", "late", "ignored", "told")
    process = world.installation.start()
    t = 1_790_000_000_000

    def send(*receipts):
        world.topic.send([{"message_id": id, "status": status, "at": at, **more} for id, status, at, more in receipts])
        world.wait_until_consumed(process)

    send(("first", "DELIVERED", t, {}), ("late", "DELIVERED", t, {}), ("ignored", "DELIVERED", t, {}))
    send(("first", "CLICKED", t + 4_999, {}), ("late", "CLICKED", t + 5_000, {}), ("ignored", "CLICKED", t, {"gateway": "acme"}),
         ("last", "OPENED", t + 1, {}), ("both", "OPENED", t + 1, {}), ("both", "DELIVERED", t, {}))
    send(("told", "OPENED", t + 60_000, {"flags": ["MACHINE_OPEN"]}), ("last", "DELIVERED", t, {}))
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.parked_event") == 0, process, 60, "all is judged")
    assert dict(world.database.query("SELECT message_id, (status, flags)::text FROM receiptd.message_inbox")) == {
        "first": "(600,64)", "late": "(800,0)", "ignored": "(600,0)", "last": "(600,32)", "both": "(600,32)", "told": "(600,32)"}
    assert world.installation.command("audit").stdout.endswith(", 0 cells drift\n")
    send(("first", "CLICKED", t + 9_000, {}))
    world.wait(lambda: world.database.value("SELECT status FROM receiptd.message_inbox WHERE message_id = 'first'") == 800, process, 60, "a person has clicked")
    process.stop()
