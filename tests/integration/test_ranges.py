"""Ranges through Kafka: each message that they mean is moved and counted once, over kills; from a webhook of Messenger; and off."""
import json
import random

from support import intake
from support.operations import Operations
from test_sql_ranges import expected, funnel_of, histories, insert, moment

from sql_batch import NAMES
from sql_fixture import FLAGS

RANGED = {"columns": {"recipient": "recipient"}}


class Platform:
    """Inserts messages as the tests of the statements do."""

    def __init__(self, world):
        self.world = world

    def insert(self, messages):
        with self.world.database.connect() as connection:
            connection.execute("SET search_path = receiptd")
            insert(type("Session", (), {"connection": connection}), messages)


def as_json(item):
    if hasattr(item, "recipient"):
        fields = {"recipient": item.recipient, "gateway": item.account, "until": moment(item.until).replace(" ", "T") + ":00", "at": "2026-11-20T00:00:00Z",
                  "status": NAMES[item.code]}
        return fields | ({"org_id": item.org} if item.org else {})
    return {"message_id": item.message_id, "status": NAMES[item.code]} | ({"flags": [FLAGS[bit][0] for bit in item.marks]} if item.marks else {})


def counts(world, what):
    return world.database.value(f"SELECT count(*) FROM receiptd.{what}")


def figure(process, name):
    return Operations(process).figures().get_one(name)


def test_each_message_of_a_range_counts_once_over_kills(create_world):
    rng = random.Random(5)
    world = create_world(partitions=4, inbox=RANGED, parked={"poll_interval": "200ms", "alias_wait": "20s", "wake_limit": 50})
    messages, events, ranges = histories(rng, 1200)
    items = [*events, *ranges]
    rng.shuffle(items)
    platform = Platform(world)
    platform.insert(messages[:800])
    for start in range(0, len(items), 20):
        world.topic.send(*(as_json(item) for item in items[start:start + 20]))
    process = world.installation.start("0")
    world.wait_for_progress(process)
    platform.insert(messages[800:])  # ranges look again after alias_wait
    for kill in range(1, 4):
        process.kill()
        process = world.installation.start(str(kill))
        world.wait_for_progress(process)
    world.wait_until_consumed(process)
    world.wait(lambda: counts(world, "range_receipt") == 0 == counts(world, "parked_event"), process, 90, "all ranges to be resolved")
    rows = {i: (status, flags) for i, status, flags in world.database.query("SELECT message_id, status, flags FROM receiptd.message_inbox")}
    assert rows == expected(messages, events, ranges)
    funnel = dict(world.database.query("SELECT status, sum(messages)::int FROM receiptd.campaign_funnel GROUP BY 1 HAVING sum(messages) <> 0"))
    assert funnel == funnel_of(rows)
    assert counts(world, "dead_letter") == 0
    process.stop()


def watermark(kind, sender, until, at):
    return {"object": "page", "entry": [{"id": "1", "time": at, "messaging": [
        {"sender": {"id": sender}, "recipient": {"id": "1"}, "timestamp": at, kind: {"watermark": until}}]}]}


def test_a_watermark_of_messenger_reads_what_was_sent_before_it(create_world, create_topic):
    world = create_world(partitions=2, inbox=RANGED | {"columns": {"recipient": "recipient", "customer_id": "customer_id"}}, counters={"groups": ["customer"]},
                         timeline={"retention": "1d"}, parked={"poll_interval": "200ms", "alias_wait": "1h"})
    world.installation.configure(intake={"listen": "127.0.0.1:0", "topic": str(world.topic), "dead_letter_topic": str(create_topic(1)), "metrics_listen": "127.0.0.1:0",
                                         "accounts": [{"name": "page", "gateway": "fb_messenger", "verify": "off"}]})
    day = 1_795_132_800_000  # 2026-11-20
    with world.database.connect() as connection:
        connection.execute("SET search_path = receiptd")
        connection.execute("""INSERT INTO message_inbox (message_id, campaign_id, recipient, gateway, customer_id, created_at)
                              SELECT 'm' || n, 'c', '5678', 'page', 'ann', timestamptz '2026-11-20 00:00+00' + n * interval '1 min' FROM generate_series(1, 5) n""")
    process, door = world.installation.start("0"), intake.start(world.installation)
    with intake.Client(door.port) as client:
        for kind, minutes in (("delivery", 5), ("read", 3), ("read", 2), ("read", 3)):
            body = json.dumps(watermark(kind, "5678", day + minutes * 60_000, day + 3_600_000 + minutes)).encode()
            client.send(intake.request("POST", "/dlr/page", body, ["Content-Type: application/json"]))
            assert client.answer().status == 200
    standing = "SELECT string_agg(status::text, ' ' ORDER BY message_id) FROM receiptd.message_inbox"
    world.wait(lambda: world.database.value(standing) == "700 700 700 600 600", process, what="three messages to be read, two delivered")
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.range_receipt WHERE looks = 1") == 4, process, what="all four to be stored and resolved")
    assert figure(process, "receiptd_ranges_idle_total") >= 1
    waiting = world.installation.json("parked", "--ranges")
    assert len(waiting) == 4 and {row["source"] for row in waiting} == {"page"} and "5678" not in json.dumps(waiting)
    (receipt,) = [r for r in world.installation.json("explain", "m1")["receipts"] if r["status_name"] == "OPENED"]
    assert receipt["effect"] == "range" and "all messages to the person up to a time" in receipt["why"]
    world.installation.command("erase", "--customer", "ann", "--reference", "r", "--dsn", world.database.dsn)
    assert counts(world, "range_receipt") == 0 == counts(world, "message_inbox")
    assert "5678" not in process.log() + door.log()
    process.stop()
    door.stop()


def test_where_the_column_is_not_named_a_range_is_a_dead_letter(create_world):
    world = create_world(partitions=1)
    world.insert_ids("m")
    process = world.installation.start()
    world.topic.send({"recipient": "5678", "gateway": "page", "until": 1760789440, "status": "OPENED"}, {"message_id": "m", "status": "SENT"})
    world.wait(lambda: counts(world, "dead_letter") == 1, process, what="the range to be set aside")
    assert world.database.query("SELECT reason, detail FROM receiptd.dead_letter") == [("range_off", "inbox.columns.recipient is not set")]
    process.stop()


def test_a_table_of_the_platform_needs_its_columns_and_the_index(create_world):
    world = create_world(partitions=1, migrate=False)
    world.database.execute("""CREATE SCHEMA app; CREATE TABLE app.messages (id text PRIMARY KEY, org text, campaign text, person varchar(40), account text, sent timestamptz);
                              INSERT INTO app.messages SELECT 'x' || n, 'o', 'c', 'p' || n % 50, 'page', now() FROM generate_series(1, 5000) n; ANALYZE app.messages""")
    columns = {"message_id": "id", "org_id": "org", "campaign_id": "campaign", "recipient": "person", "gateway": "account", "sent_at": "when_sent"}
    world.installation.configure(inbox={"table": "app.messages", "columns": columns}, parked={"poll_interval": "200ms"})
    refused = world.installation.command("migrate", check=False)
    assert refused.returncode == 78 and "has no column when_sent, by which ranges find messages" in refused.stderr
    world.installation.configure(inbox={"columns": {"sent_at": "sent"}})
    refused = world.installation.command("migrate", check=False)
    assert refused.returncode != 0 and "range_resolve" in refused.stderr and "index on what inbox.columns.recipient, gateway and sent_at" in refused.stderr
    world.database.execute("CREATE INDEX ON app.messages (person, account, sent, id)")
    world.installation.migrate()
    world.installation.command("check-config", "--connect")
    process = world.installation.start()
    world.topic.send({"recipient": "p7", "gateway": "page", "until": "2100-01-01T00:00:00Z", "status": "OPENED"})
    world.wait(lambda: world.database.value("SELECT count(*) FROM app.messages WHERE status = 700") == 100, process, what="the messages of the person to be read")
    assert world.database.value("SELECT count(*) FROM app.messages WHERE status <> 0") == 100
    process.stop()
