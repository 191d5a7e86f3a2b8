"""Messages that the platform announces on topics: each counts once, in any order with its receipts, over crashes and copies; a tombstone deletes."""

import json
import random
import time

import pytest

from oracle.ledger import Row
from oracle.compare import Inbox
from support import templates
from support.operations import Operations
from test_database_faults import crash, postgres  # noqa: F401

LONG = 60


@pytest.fixture
def create_announced(create_world, create_topic):
    """A world whose messages come by a topic: world.messages. columns: of the inbox, as the platform has added them."""

    def create(events=None, partitions=3, columns=(), **settings):
        messages = create_topic(partitions, retention_ms=-1)
        world = create_world(events, migrate=False, **settings)
        world.installation.configure(kafka={"message_topics": [str(messages)]})
        world.messages = messages
        templates.migrate(world.installation, world.database)
        for column in columns:
            world.database.execute(f"ALTER TABLE receiptd.message_inbox ADD COLUMN {column}")
        return world

    return create


def announcement(id, row, **fields):
    return {"message_id": id, **{name: value for name, value in zip(("org_id", "campaign_id"), row) if value is not None}, **fields}


def announce(world, rows, rng=random.Random(5)):
    """Each row in a record of its own or in an array of some, in any partition unless its id is the key."""
    left = [announcement(id, row) for id, row in rows.items()]
    rng.shuffle(left)
    records = []
    while left:
        some = [left.pop() for _ in range(min(len(left), rng.choice((1, 1, 7, 300))))]
        records.append({"value": some if len(some) > 1 else some[0], "key": some[0]["message_id"].encode() if len(some) == 1 else None})
    world.messages.send_records(records)
    world.platform.update(rows)


def tombstone(world, id):
    world.messages.send_records([{"value": None, "key": id}])


def progress(world):
    return dict(world.database.query("SELECT partition, next_offset FROM receiptd.message_progress WHERE topic = %s", str(world.messages)))


def wait_until_read(world, process, timeout=LONG):
    def read():
        stands = progress(world)
        return all(stands.get(partition, 0) >= end for partition, (_, end) in world.messages.watermarks().items())

    world.wait(read, process, timeout, "the announcements are read")


def letters(world):
    return world.database.query("SELECT reason, index, detail, convert_from(payload, 'UTF8') FROM receiptd.dead_letter WHERE topic = %s"
                                " ORDER BY dead_at, \"offset\", index DESC", str(world.messages))


def inbox(world, columns="message_id, org_id, campaign_id"):
    return world.database.query(f"SELECT {columns} FROM receiptd.message_inbox ORDER BY message_id")


def test_receipts_and_announcements_in_any_order_are_exact(create_announced):
    world = create_announced(20_000, seed=71)
    process = world.installation.start()
    late = dict(world.stream.late)
    early = dict(world.stream.early)
    half = {id: early.pop(id) for id in sorted(early)[::2]}
    announce(world, half)
    world.feed()
    announce(world, early)  # many of their receipts are parked by now
    announce(world, late)
    announce(world, {**half, **late})  # and a second time: nothing is doubled
    world.feeder.join()
    wait_until_read(world, process)
    world.finish(process)
    assert letters(world) == []
    process.stop()


def test_a_parked_receipt_is_woken_soon_after_its_announcement(create_announced):
    """Not only by the next poll, which is an hour away here."""
    world = create_announced(parked={"poll_interval": "1h"})
    process = world.installation.start()
    process.wait_for_log("messages: assigned 3 partitions", LONG)
    world.topic.send({"message_id": "m", "status": "DELIVERED"})
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.parked_event") == 1, process, LONG, "it is parked")
    announce(world, {"m": Row("o", "c")})
    world.wait(lambda: inbox(world, "status") == [(600,)], process, LONG, "it is woken")
    world.finish(process)
    process.stop()


def test_a_message_that_is_announced_again_stays_as_it_was_first(create_announced):
    world = create_announced(columns=("customer_id text", "price numeric"))
    process = world.installation.start()
    first = announcement("m", ("o", "c"), customer_id="ann", price=1.50)
    world.messages.send(first, first, [first, first], {**first, "price": "1.500"}, {"message_id": "m"}, partition=0)
    world.messages.send({**first, "campaign_id": "other", "customer_id": "bob", "status": "SENT"}, partition=0)
    wait_until_read(world, process)
    assert inbox(world, "org_id, campaign_id, customer_id, price::text, status") == [("o", "c", "ann", "1.5", 0)]
    [(reason, index, detail, payload)] = letters(world)
    assert (reason, index) == ("announced_differently", -4) and json.loads(payload)["customer_id"] == "bob"
    assert detail == "the message stays as it is; other values: campaign_id, customer_id"
    assert world.database.query("SELECT campaign_id, status, messages::int FROM receiptd.campaign_funnel") == [("c", 0, 1)]
    assert "bob" not in process.log() and "1 announcements are dead letters: announced_differently" in process.log()
    process.stop()


def test_a_tombstone_deletes_as_the_platform_does(create_announced):
    world = create_announced(columns=("customer_id text",))
    process = world.installation.start()
    announce(world, {id: Row("o", "c") for id in "abcd"})
    wait_until_read(world, process)
    world.topic.send({"message_id": "a", "status": "DELIVERED"}, {"message_id": "b", "status": "SENT"})
    world.wait_until_consumed(process)
    funnel = "SELECT campaign_id, status, messages::int FROM receiptd.campaign_funnel ORDER BY 1, 2"
    before = world.database.query(funnel)
    tombstone(world, "a")
    tombstone(world, "nobody")  # nothing
    tombstone(world, "a")       # nothing more
    wait_until_read(world, process)
    assert world.database.query(funnel) == before and [id for id, *_ in inbox(world)] == ["b", "c", "d"]
    world.audit()
    world.topic.send({"message_id": "a", "status": "CLICKED"})  # late
    # While its id is remembered it does not come back, so a topic that is read again counts nothing twice.
    announce(world, {"a": Row("o", "c")})
    wait_until_read(world, process)
    world.wait_until_consumed(process)
    assert world.database.query("SELECT reason, index FROM receiptd.dead_letter ORDER BY index") == [("retired_message", -4), ("retired_message", 0)]
    # In one record after the other, whatever batch they are in: the last one counts.
    world.messages.send_records([{"value": announcement("e", ("o", "c")), "partition": 0}, {"value": None, "key": "e", "partition": 0},
                                 {"value": None, "key": "f", "partition": 0}, {"value": announcement("f", ("o", "c")), "partition": 0}])
    wait_until_read(world, process)
    assert [id for id, *_ in inbox(world)] == ["b", "c", "d", "f"]
    assert dict(world.database.query("SELECT status, messages::int FROM receiptd.campaign_funnel"))[0] == 6
    world.audit()
    world.installation.command("erase", "--message", "b")
    announce(world, {"b": Row("o", "c")})
    wait_until_read(world, process)
    assert letters(world)[-1][::3] == ("retired_message", None), "the person stays erased"
    figures = Operations(process).figures()
    results = {name: figures.get_one("receiptd_announcements_total", result=name) for name in ("announced", "retired", "unknown", "retired_message")}
    assert results == {"announced": 6, "retired": 2, "unknown": 3, "retired_message": 2}
    assert figures.get_one("receiptd_events_dead_total", reason="retired_message", gateway="none") >= 2
    shown = [(one["reader"], one["lag"]) for one in world.installation.json("positions", "show", "--reader", "messages", "--format", "json")]
    assert shown == 3 * [("messages", 0)]
    read = {(place["reader"], place["topic"]) for place in Operations(process).get("/statusz").json["topics"]}
    assert ("messages", str(world.messages)) in read
    process.stop()


def test_bad_records_are_dead_letters_and_their_neighbours_land(create_announced):
    world = create_announced(columns=("customer_id text", "price numeric CHECK (price >= 0)", "ref text UNIQUE", "seen timestamptz"))
    process = world.installation.start()
    good = announcement("good", ("o", "c"), status="SENT", price=3, phone="+36301234567", flags=7, prev_status=3, channel=None)
    world.messages.send(
        good, b"no json", b"\xff", b"7", b"{}", {"message_id": 5}, {"message_id": ""}, {"message_id": "x" * 256}, {"message_id": "nul\0"},
        b"[" + b" " * 100_000 + b"]x", b" " * (8 * 1024 * 1024 + 1),
        announcement("m1", ("o", "c"), status="LOST"), announcement("m2", ("o", "c"), price="call +36301234567"), announcement("m3", ("o", "c"), price=-1),
        announcement("m4", ("o", "c"), ref="r"), announcement("m5", ("o", "c"), ref="r"), announcement("m6", ("o", "c"), seen="yesterday or so"),
        [announcement("m7", ("o", "c")), 9, announcement("m8", (None, None)), {"org_id": "o"}], [], partition=0)
    world.messages.send_records([{"value": None, "partition": 0}, {"value": None, "key": b"\xff", "partition": 0},
                                 {"value": b"", "key": "good", "partition": 0}])
    wait_until_read(world, process)
    assert inbox(world, "message_id, status, flags, campaign_id") == [
        ("good", 300, 0, "c"), ("m4", 0, 0, "c"), ("m7", 0, 0, "c"), ("m8", 0, 0, None)]
    found = world.database.query('SELECT "offset"::int, index, reason FROM receiptd.dead_letter ORDER BY 1, 2 DESC')
    assert found == [*[(offset, -4, "not_a_message") for offset in range(1, 11)], (11, -4, "unknown_status"),
                     *[(offset, -4, "database") for offset in (12, 13, 15, 16)],
                     (17, -6, "not_a_message"), (17, -8, "not_a_message"), *[(offset, -4, "not_a_message") for offset in (19, 20, 21)]]
    details = {offset: detail for offset, detail in world.database.query('SELECT "offset"::int, detail FROM receiptd.dead_letter WHERE index = -4')}
    assert details[9].endswith("the first of 100003 bytes") and details[13].startswith('23514 new row for relation "message_inbox"')
    assert details[12] == '22P02 invalid input syntax for type numeric: "…"'
    assert details[15] == "a message with another id has its values of a unique key"
    world.audit()
    log = process.log()
    assert "fields of announcements are left out, since the inbox has no such columns for the platform: flags, phone, prev_status" in log
    assert "3630" not in log and "yesterday" not in log
    process.stop()


def test_each_announcement_counts_once_over_crashes_and_with_two_instances(create_announced):
    world = create_announced(30_000, seed=72, counters={"by": ["variant"]}, partitions=4)
    rows = world.stream.platform
    first, second = world.installation.start("a"), world.installation.start("b")
    feeder = world.feed(per_second=15_000)
    names = iter("cdefghij")
    parts = [dict(list(rows.items())[n::6]) for n in range(6)]
    for part in parts:
        announce(world, part)
        announce(world, dict(list(part.items())[:100]))
        first.kill()
        first, second = second, world.installation.start(next(names))
    feeder.join()
    wait_until_read(world, first, 2 * LONG)
    world.finish(second, 2 * LONG)
    assert letters(world) == []
    first.stop()
    second.stop()


TURNS = 6  # of crashes


@pytest.mark.alone
def test_a_database_that_went_back_gets_its_announcements_again(create_announced, postgres):  # noqa: F811
    world = create_announced(3_000, seed=73)
    process = world.installation.start()
    rewound = 0
    ids = sorted(world.stream.platform)
    for turn in range(TURNS):  # on a busy machine a commit may be durable before the crash
        announce(world, {id: world.stream.platform[id] for id in ids[turn::TURNS]})
        world.produce()
        wait_until_read(world, process)
        before = progress(world)
        crash(world, postgres)
        after = progress(world)
        rewound += any(after.get(partition, 0) < stood for partition, stood in before.items())
    assert rewound > 0, "no crash took anything with it: the test has no teeth"
    wait_until_read(world, process)
    world.finish(process, 2 * LONG)
    assert letters(world) == []
    process.stop()


def test_a_mapped_table_gets_announcements_under_its_own_columns(create_world, create_topic):
    messages = create_topic(1)
    mapping = {"table": "platform.sent", "columns": {"message_id": "Id", "org_id": "account", "campaign_id": "wave", "status": "state2"}}
    world = create_world(migrate=False, inbox=mapping)
    world.inbox, world.messages = Inbox("platform.sent", '"Id"', "account", "wave", "state2", "flags"), messages
    world.installation.configure(kafka={"message_topics": [str(messages)]})
    world.database.execute("""CREATE SCHEMA platform; CREATE TABLE platform.sent ("Id" uuid PRIMARY KEY, account text, wave text, body text NOT NULL, x int, items text);
                              CREATE INDEX ON platform.sent (("Id"::text))""")
    refused = world.installation.command("check-config", "--connect", check=False)
    assert refused.returncode == 78 and "kafka.message_topics is set, but column \"Id\" of inbox table platform.sent is no plain text" in refused.stderr
    assert "HINT: insert messages in SQL, or: ALTER TABLE" in refused.stderr
    world.database.execute('ALTER TABLE platform.sent ALTER COLUMN "Id" TYPE text')
    world.installation.migrate()
    process = world.installation.start()
    messages.send(announcement("m", ("o", "c"), body="hello", x=4, items="i"), announcement("n", ("o", "c")), announcement("m", ("o", "c"), body="bye"))
    wait_until_read(world, process)
    assert world.database.query('SELECT "Id", account, wave, body, x, items, state2 FROM platform.sent') == [("m", "o", "c", "hello", 4, "i", 0)]
    assert [(reason, detail.split(";")[0]) for reason, _, detail, _ in letters(world)] == [
        ("database", '23502 null value in column "body" of relation "sent" violates not-null constraint'),
        ("announced_differently", "the message stays as it is")]
    world.platform["m"] = Row("o", "c")
    world.topic.send({"message_id": "m", "status": "SENT"})
    world.wait_until_consumed(process)
    tombstone(world, "m")
    wait_until_read(world, process)
    assert world.database.value("SELECT count(*) FROM platform.sent") == 0
    world.audit()
    process.stop()


def test_partitions_of_a_day_take_announcements(create_world, create_topic):
    """By the time of insertion: an id stands once, whatever created_at a copy names."""
    messages = create_topic(1)
    world = create_world(migrate=False, inbox={"table": "app.days", "columns": {"created_at": "at"}})
    world.messages = messages
    world.installation.configure(kafka={"message_topics": [str(messages)]})
    world.database.execute("""CREATE SCHEMA app; CREATE TABLE app.days (message_id text, org_id text, campaign_id text,
        at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (message_id, at)) PARTITION BY RANGE (at)""")
    for day in range(-2, 2):
        world.database.execute(f"""DO $$ BEGIN EXECUTE format('CREATE TABLE app.day{day + 2} PARTITION OF app.days FOR VALUES FROM (%L) TO (%L)',
            current_date + {day}, current_date + {day + 1}); END $$""")
    world.installation.migrate()
    process = world.installation.start()
    today, old = time.strftime("%Y-%m-%dT00:00:00Z", time.gmtime()), "2020-01-01T00:00:00Z"
    messages.send(announcement("a", ("o", "c")), announcement("b", ("o", "c"), created_at=today), announcement("a", ("o", "c"), created_at=today),
                  announcement("z", ("o", "c"), created_at=old), announcement("d", ("o", "c")))
    wait_until_read(world, process)
    assert world.database.query("SELECT message_id FROM app.days ORDER BY 1") == [("a",), ("b",), ("d",)]
    assert [(reason, detail) for reason, _, detail, _ in letters(world)] == [
        ("announced_differently", "the message stays as it is; other values: created_at"),
        ("database", '23514 no partition of relation "days" found for row')]
    tombstone(world, "a")
    wait_until_read(world, process)
    world.audit()
    process.stop()


def test_the_daemons_role_may_insert_and_delete_only_with_the_key(create_announced):
    world = create_announced()
    rights = "SELECT has_table_privilege('announcer', 'receiptd.message_inbox', r) FROM unnest('{INSERT,DELETE}'::text[]) r"
    world.database.execute("DROP ROLE IF EXISTS announcer; CREATE ROLE announcer LOGIN")
    try:
        world.installation.command("migrate", "--role", "announcer")
        assert world.database.query(rights) == [(True,), (True,)]
        world.installation.configure(postgres={"dsn": world.database.dsn + " user=announcer"})
        process = world.installation.start()
        announce(world, {"m": Row("o", "c"), "n": Row("o", "c")})
        tombstone(world, "n")
        wait_until_read(world, process)
        assert [id for id, *_ in inbox(world)] == ["m"]
        process.stop()
        world.installation.settings["kafka"].pop("message_topics")
        world.installation.configure(postgres={"dsn": world.database.dsn})
        world.installation.command("migrate", "--role", "announcer")
        assert world.database.query(rights) == [(False,), (False,)]
    finally:
        world.database.execute("DROP OWNED BY announcer; DROP ROLE announcer")


def test_a_topic_of_receipts_or_an_uncounted_inbox_is_refused(create_world):
    world = create_world(migrate=False)
    for settings, why in (({"kafka": {"message_topics": [str(world.topic)]}}, f'"{world.topic}" carries receipts: announce messages on a topic of their own'),
                          ({"kafka": {"message_topics": ["other"]}, "inbox": {"targeted": "none"}}, "inbox.targeted is none")):
        world.installation.configure(**settings)
        refused = world.installation.command("check-config", check=False)
        assert refused.returncode == 78 and "kafka.message_topics" in refused.stderr and why in refused.stderr
