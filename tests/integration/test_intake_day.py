"""A simulated day: five gateways, retries and outages, and in the end the funnel that the gateways meant."""

import pytest

from oracle.ledger import Row
from support import intake
from support.day import ACCOUNTS, GATEWAYS, Sender
from support.servers import Kafka
from support.wait import wait_for


@pytest.fixture
def kafka(services):
    server = Kafka(services)
    yield server
    if not server.answers():
        server.start()


@pytest.mark.alone
def test_a_day_of_five_gateways_with_outages_ends_in_the_exact_funnel(create_world, create_topic, kafka):
    world = create_world(lanes=8)
    world.installation.configure(intake={
        "listen": "127.0.0.1:0", "metrics_listen": "127.0.0.1:0", "topic": str(world.topic), "dead_letter_topic": str(create_topic(1)),
        "alias": "required", "ack_timeout": "2s", "accounts": ACCOUNTS})
    state = {"intake": intake.start(world.installation)}
    core = world.installation.start("core")
    gateways = [Sender(name, lambda: state["intake"].port, seed=3) for name in GATEWAYS]
    for gateway in gateways:  # some rows come after their receipts
        ids = sorted(gateway.paths)
        world.insert({message: Row("o1", gateway.name) for message in ids[::2]})
        if gateway.name == "whatsapp":
            with world.database.connect().cursor() as cursor:
                cursor.executemany("INSERT INTO receiptd.message_alias VALUES (%s, %s, %s)", map(gateway.alias, ids))
        gateway.start()

    def wait_for_share(share):
        total = sum(gateway.total for gateway in gateways)

        def sent():
            for gateway in gateways:
                assert gateway.error is None, repr(gateway.error)
            return sum(gateway.sent for gateway in gateways) >= share * total

        wait_for(sent, 240, f"{share:.0%} of the day", details=lambda: {gateway.name: (gateway.sent, gateway.total) for gateway in gateways})

    wait_for_share(0.2)
    state["intake"].kill()
    state["intake"] = intake.start(world.installation)
    wait_for_share(0.4)
    kafka.kill()
    kafka.start()
    wait_for_share(0.6)
    core.kill()
    core = world.installation.start("core-again")
    for gateway in gateways:
        world.insert({message: Row("o1", gateway.name) for message in sorted(gateway.paths)[1::2]})
    wait_for_share(1)
    state["intake"].stop()
    world.finish(core, timeout=120)
    codes = dict(world.database.query("SELECT name, code FROM receiptd.message_status_priority"))
    meant = {message: code for gateway in gateways for message, code in gateway.last_statuses(codes).items()}
    assert dict(world.database.query("SELECT message_id, status FROM receiptd.message_inbox")) == meant
    assert sum(gateway.repeated for gateway in gateways) > 0
    core.stop()
