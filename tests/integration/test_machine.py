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
    assert send("d", gateway="acme", campaign_id="spring") == "(0,0)"
    assert send("a", gateway="acme", campaign_id="spring") == "(700,32)"
    process.stop()


def test_policies_drop_nothing_that_a_receipt_names_besides(create_world):
    """Opens count, clicks are ignored. CLICKED with MACHINE_OPEN is a person's click, a machine's open and its flag; its copy is one duplicate. Of a scanner's
    click with COMPLAINED the complaint is left, and what it implies; of one by itself nothing, not even what it proves. Parked or not."""
    world = create_world(partitions=1, machine={"opens": "count", "clicks": "ignore"}, dedup={"window": "24h"}, counters={"times": True, "series": "30d"})
    at = world.database.value("SELECT (extract(epoch FROM now()) * 1000)::int8") - 3_600_000
    early = {"both": ("CLICKED", "MACHINE_OPEN"), "angry": ("CLICKED", "BOT_CLICK", "COMPLAINED"), "scanned": ("CLICKED", "BOT_CLICK")}
    world.insert_ids(*early)
    process = world.installation.start()
    for prefix in ("", "late "):
        for id, (status, *flags) in early.items():
            for _ in range(2):
                world.topic.send({"message_id": prefix + id, "status": "SENT", "at": at}, {"message_id": prefix + id, "status": status, "flags": flags, "at": at + 1000})
    world.wait_until_consumed(process)
    assert world.database.value("SELECT count(*)::int FROM receiptd.parked_event") == 10, "what is ignored never waits"
    world.insert_ids(*(f"late {id}" for id in early))
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.parked_event") == 0, process, what="all parked receipts to be woken")
    rows = world.database.query("""SELECT message_id, status, flags, first_delivered_at IS NOT NULL, (extract(epoch FROM first_opened_at) * 1000)::int8 - %(at)s,
        (extract(epoch FROM first_clicked_at) * 1000)::int8 - %(at)s FROM receiptd.message_inbox""" % {"at": at})
    states = {"angry": (600, 1, False, None, None), "both": (800, 32, False, 1000, 1000), "scanned": (300, 0, False, None, None)}
    assert sorted(rows) == sorted((prefix + id, *states[id]) for prefix in ("", "late ") for id in states)
    counts = {300: (6, 6), 600: (4, 0), 700: (2, 2), 800: (2, 2), 9001: (2, 2), 9006: (2, 2)}
    funnel = "SELECT status, sum(messages)::int, sum(events)::int FROM receiptd.{} GROUP BY status HAVING status >= 300"
    for source in ("campaign_funnel", "campaign_tally WHERE kind = 'hour'"):
        assert {status: numbers for status, *numbers in world.database.query(funnel.format(source))} == {code: list(of) for code, of in counts.items()}
    assert dict(world.database.query("SELECT status, sum(duplicates)::int FROM receiptd.campaign_funnel GROUP BY 1 HAVING sum(duplicates) > 0")) == {300: 6, 800: 2, 9001: 2}
    process.stop()
