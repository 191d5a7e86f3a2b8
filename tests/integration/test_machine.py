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
