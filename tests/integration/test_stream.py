"""The status stream: every transition of a message once and in order, whatever happens to those who publish."""

import signal
import threading
import time
from datetime import datetime

import pytest
from confluent_kafka.admin import ConfigResource

from support import stream
from support.operations import Operations


@pytest.fixture
def create_streamer(create_world, create_topic):
    """A world with a stream; world.out is its topic."""

    def create(events=None, mode="changes", columns=(), **settings):
        out = create_topic(4)
        world = create_world(events, **settings)
        world.out = out
        world.installation.configure(stream={"topic": str(out), "mode": mode, "columns": list(columns)})
        return world

    return create


def published(world):
    return stream.read(world.brokers, world.out, 4)


def wait_until_quiet(world, process=None, timeout=90.0):
    world.wait(lambda: stream.is_quiet(world.database), process, timeout, "everything published")


def receipt(id, status, **more):
    return {"message_id": id, "status": status, **more}


def bodies(world, id):
    return [record.body for record in published(world) if record.key == id]


def reload(world, process, **settings):
    """Waits until lanes work with the new configuration."""
    before = process.log().count("connections for lanes now")
    world.installation.configure(**settings)
    process.signal(signal.SIGHUP)
    process.wait_for(lambda: process.log().count("connections for lanes now") > before, 60, "lanes have the new statements")


def test_every_transition_is_published_once_and_in_order(create_streamer):
    world = create_streamer(20_000, seed=31)
    process = world.installation.start()
    feeder = world.feed()
    world.wait_for_progress(process)
    world.insert(world.stream.late)
    feeder.join()
    world.finish(process)
    wait_until_quiet(world, process)
    records = published(world)
    stream.assert_changes(records, world.database)
    pages = Operations(process)
    assert pages.figures().get_one("receiptd_stream_published_total") == len(records)
    pages.wait_for_figure("receiptd_stream_lag_seconds", lambda value: value == 0)
    assert pages.get("/statusz").json["stream"] == {
        "topic": str(world.out), "mode": "changes", "lag_seconds": 0, "published": len(records), "refused": 0}
    process.stop()


def test_kills_and_two_instances_lose_double_and_disorder_nothing(create_streamer):
    world = create_streamer(48_000, seed=32)
    feeder = world.feed(per_second=6_000)
    running = world.trouble_two_instances(feeder, seed=32)
    world.insert(world.stream.late)
    world.finish(timeout=120)
    wait_until_quiet(world)
    stream.assert_changes(published(world), world.database)
    for process in running.values():
        process.stop(60)


def test_after_a_failover_that_lost_commits_each_message_converges(create_streamer, services):
    world = create_streamer(10_000, seed=34)
    world.insert(world.stream.late)
    records = list(world.stream.records())
    world.produce(records[: len(records) // 2])
    process = world.installation.start()
    world.finish(process)
    wait_until_quiet(world, process)
    process.stop()
    copy = services.create_database(template=world.database)
    process = world.installation.start()
    world.produce(records[len(records) // 2 :])
    world.finish(process)
    wait_until_quiet(world, process)
    process.stop()
    told = published(world)
    stream.assert_changes(told, world.database)

    # The copy knows nothing of the second half: Kafka does.
    world.database.go_back_to(copy)
    process = world.installation.start()
    process.wait_for_log(r"folds: shard 2: the database has forgotten \d+ publications", 60)
    world.finish(process)
    wait_until_quiet(world, process)
    found = published(world)
    assert len(found) > len(told)
    rows, chains = stream.rows(world.database), stream.by_message(found)
    assert set(chains) == set(rows)
    for id, chain in chains.items():
        assert (chain[-1].body["new"], chain[-1].body["flags"]) == rows[id][:2], "the last record is the row"
    before = {record.headers["ce_id"] for record in told}
    again = [record for record in found if record.headers["ce_id"] in before]
    assert len(again) > len(before), "what came again has the same ids"
    process.stop()


def test_a_change_names_the_receipt_that_made_it_and_the_columns_asked_for(create_streamer):
    world = create_streamer(columns=["channel", "score", "nowhere"], partitions=1)
    with world.database.connect() as connection:
        connection.execute("ALTER TABLE receiptd.message_inbox ADD channel text, ADD score int")
        connection.execute("""INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id, channel, score)
            VALUES ('m"1', 'o', 'c\u00e9', repeat('x', 1200), 7), ('m2', NULL, NULL, NULL, NULL)""")
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    first = receipt('m"1', "SENT", at="2026-11-28T10:00:00Z", gateway="g1")
    failed = receipt('m"1', "BOUNCED_HARD", at="2026-11-28T10:00:02.5Z", gateway="g2", reason_class="invalid_recipient")
    flag = receipt('m"1', "RESUBSCRIBED", at="2026-11-28T11:00:00+01:00", gateway="g3")
    process = world.installation.start()
    for event in (first, failed, flag, receipt("m2", "CLICKED", at="2026-11-28T10:00:00Z")):
        world.topic.send(event, headers=[("traceparent", trace)])
        world.wait_until_consumed(process)
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.message_inbox WHERE status > 0") == 2, process)
    wait_until_quiet(world, process)
    columns = {"channel": "x" * 1000, "score": "7", "nowhere": None}
    common = {"message_id": 'm"1', "campaign_id": "c\u00e9", "org_id": "o", "columns": columns}
    found = published(world)
    assert [record.body for record in found if record.key == 'm"1'] == [
        {**common, "old": "TARGETED", "new": "SENT", "gained": [], "flags": [], "at": "2026-11-28T10:00:00Z", "gateway": "g1"},
        {**common, "old": "SENT", "new": "BOUNCED_HARD", "gained": [], "flags": [], "at": "2026-11-28T10:00:02.5Z",
         "gateway": "g2", "reason": "invalid_recipient"},
        {**common, "old": "BOUNCED_HARD", "new": "BOUNCED_HARD", "gained": ["RESUBSCRIBED"], "flags": ["RESUBSCRIBED"],
         "at": "2026-11-28T10:00:00Z", "gateway": "g3"}]
    (other,) = [record for record in found if record.key == "m2"]
    assert other.body == {"message_id": "m2", "old": "TARGETED", "new": "CLICKED", "gained": [], "flags": [],
                          "at": "2026-11-28T10:00:00Z", "columns": {"channel": None, "score": None, "nowhere": None}}
    assert other.headers == {
        "ce_specversion": "1.0", "ce_id": "m2/CLICKED", "ce_source": "/receiptd/receiptd", "ce_type": "receiptd.message.changed",
        "ce_subject": "m2", "ce_time": "2026-11-28T10:00:00Z", "content-type": "application/json", "traceparent": trace}
    process.wait_for_log("stream: the inbox has no such column: nowhere; it is null in every record", 30)
    process.stop()


def test_in_the_state_mode_the_last_record_of_a_message_is_its_row(create_streamer):
    world = create_streamer(10_000, seed=33, mode="state", columns=["org_id"])
    process = world.installation.start()
    world.insert(world.stream.late)
    world.produce()
    world.finish(process)
    wait_until_quiet(world, process)
    chains = stream.by_message(published(world))
    expected = stream.rows(world.database)
    times = dict(world.database.query("SELECT message_id, status_at FROM receiptd.message_inbox"))
    assert set(chains) == set(expected)
    for id, (status, flags, campaign, org) in expected.items():
        body = chains[id][-1].body
        assert (body["status"], body["flags"], body.get("campaign_id"), body.get("org_id")) == (status, flags, campaign, org)
        assert body["columns"] == {"org_id": org} and chains[id][-1].headers["ce_type"] == "receiptd.message.state"
        assert times[id] is None or times[id] == datetime.fromisoformat(body["status_at"])
    process.stop()


def test_all_ways_to_a_transition_are_in_the_stream(create_streamer):
    """A wake, a redriven dead letter, and an expiry by the command."""
    world = create_streamer(partitions=1, parked={"max_age": "1s", "poll_interval": "200ms"},
                            inbox={"expiry": [{"after": "1h"}]})
    world.insert_ids("here", "waits")
    process = world.installation.start()
    world.topic.send([receipt("here", "SENT"), receipt("later", "DELIVERED", gateway="g")], receipt("too-late", "OPENED"))
    world.wait_until_consumed(process)
    world.insert_ids("later")
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.dead_letter") == 1, process, 30, "one is too old")
    world.insert_ids("too-late")
    world.installation.command("dead-letters", "--redrive")
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.message_inbox WHERE status > 0") == 3, process, 30, "redriven")
    with world.database.connect() as connection:
        connection.execute("UPDATE receiptd.message_inbox SET updated_at = now() - interval '2 hours' WHERE message_id = 'here'")
    assert "messages: 1 expired" in world.installation.command("expire").stdout
    wait_until_quiet(world, process)
    found = published(world)
    stream.assert_changes(found, world.database)
    assert {record.headers["ce_id"] for record in found} == {"here/SENT", "here/UNKNOWN", "later/DELIVERED", "too-late/OPENED"}
    (woken,) = [record.body for record in found if record.key == "later"]
    assert woken["gateway"] == "g"
    process.stop()


def test_rows_that_the_policy_makes_have_their_transitions(create_streamer):
    world = create_streamer(partitions=1, unknown="insert")
    process = world.installation.start()
    world.topic.send([receipt(f"m{n % 20}", status, campaign_id="c") for n, status in enumerate(("SENT", "DELIVERED", "OPENED") * 20)])
    world.wait_until_consumed(process)
    world.wait_until_woken(process)
    world.finish(process, unknown="insert")
    wait_until_quiet(world, process)
    found = published(world)
    stream.assert_changes(found, world.database)
    assert len(stream.by_message(found)) == 20
    process.stop()


def test_a_reload_switches_the_stream_on_changes_and_removes_it(create_world, create_topic):
    world = create_world(partitions=1)
    world.out = create_topic(4)
    world.insert_ids("a", "b", "c", "d")
    process = world.installation.start()

    def send(id):
        world.topic.send(receipt(id, "BOUNCED_HARD", reason_class="blocked"))
        world.wait_until_consumed(process)
        world.wait(lambda: world.database.value("SELECT status FROM receiptd.message_inbox WHERE message_id = %s", id) > 0, process)

    send("a")
    reload(world, process, stream={"topic": str(world.out)})
    send("b")
    wait_until_quiet(world, process)
    reload(world, process, stream={"mode": "state", "columns": ["org_id"]})
    send("c")
    wait_until_quiet(world, process)
    reload(world, process, stream={"topic": None})
    send("d")
    assert world.database.value("SELECT count(*) FROM receiptd.stream_event") == 0
    first, second = sorted(published(world), key=lambda record: record.key)
    assert (first.key, first.body["new"], first.body["reason"]) == ("b", "BOUNCED_HARD", "blocked")
    assert (second.key, second.body["status"], second.body["columns"]) == ("c", "BOUNCED_HARD", {"org_id": "o"})
    world.finish(process)
    process.stop()


def test_what_is_left_when_the_stream_is_off_waits_for_the_next_one(create_streamer):
    world = create_streamer(partitions=1)
    with world.database.connect() as connection:
        connection.execute("INSERT INTO receiptd.stream_event (ids, old, new, flags, gained) VALUES ('{x,y}', '{0}', '{300}', '{0}', '{0}')")
    other = {"name": "f", "group_key": ["org_id"], "window": "1s", "publish": {"kafka": {"topic": str(world.out)}}}
    world.installation.configure(stream={"topic": None}, folds=[other])
    process = world.installation.start()
    Operations(process).wait_until_ready()
    time.sleep(1)  # some polls
    assert not stream.is_quiet(world.database)
    reload(world, process, stream={"topic": str(world.out)})
    wait_until_quiet(world, process)
    assert {record.headers["ce_id"] for record in published(world)} == {"x/SENT", "y/SENT"}
    process.stop()


def test_a_topic_that_does_not_take_records_is_waited_for_and_said(create_streamer, create_topic, services):
    world = create_streamer(partitions=1)
    small = create_topic(2, max_message_bytes=300)
    world.installation.configure(stream={"topic": str(small)})
    world.insert_ids("m", campaign="c" * 1500)
    process = world.installation.start()
    world.topic.send(receipt("m", "SENT"))
    process.wait_for_log(f"publishing failed, again in .*topic {small} does not take a publication: .*HINT: raise max.message.bytes", 60)
    pages = Operations(process)
    pages.wait_for_figure("receiptd_stream_refused_total", lambda value: value > 0)
    pages.wait_for_figure("receiptd_stream_lag_seconds", lambda value: value > 1)
    larger = ConfigResource(ConfigResource.Type.TOPIC, str(small), set_config={"max.message.bytes": "1000000"})
    services.admin.alter_configs([larger])[larger].result(30)
    wait_until_quiet(world, process)
    (only,) = stream.read(world.brokers, small, 2)
    assert only.body["campaign_id"] == "c" * 1500
    process.stop()


def test_a_tombstone_has_no_value_and_a_row_is_a_state(create_streamer):
    """Other commands write these kinds of rows."""
    world = create_streamer(partitions=1)
    process = world.installation.start()
    with world.database.connect() as connection:
        connection.execute("INSERT INTO receiptd.stream_event (ids, new, flags, times, campaigns, kind)"
                           " VALUES ('{a,b}', '{300,500}', '{0,1}', ARRAY['2026-11-28 10:00:00Z'::timestamptz], '{c}', 'row')")
        connection.execute("INSERT INTO receiptd.stream_event (ids, kind) VALUES ('{b}', 'gone')")
    wait_until_quiet(world, process)
    chains = stream.by_message(published(world))
    (a,), (b, gone) = chains["a"], chains["b"]
    assert a.body == {"message_id": "a", "status": "SENT", "flags": [], "status_at": "2026-11-28T10:00:00Z", "campaign_id": "c"}
    assert len(b.body["flags"]) == 1
    assert gone.body is None and gone.headers["ce_id"] == "b/gone" and gone.headers["ce_type"] == "receiptd.message.gone"
    assert "content-type" not in gone.headers
    process.stop()


def test_of_two_writers_of_a_message_the_later_has_the_larger_id_and_is_seen_later(create_streamer):
    """The id is taken while the message is locked: a reader never sees a transition before the one that it follows."""
    world = create_streamer(partitions=1)
    world.insert_ids("m")
    stopping, seen = threading.Event(), []

    def write():
        with world.database.connect() as connection:
            while not stopping.is_set():
                with connection.transaction():
                    (status,) = connection.execute("UPDATE receiptd.message_inbox SET flags = flags + 1 WHERE message_id = 'm'"
                                                   " RETURNING flags").fetchone()
                    connection.execute("INSERT INTO receiptd.stream_event (ids, flags) VALUES ('{m}', %s::int[])", ([status],))

    writers = [threading.Thread(target=write) for _ in range(2)]
    for writer in writers:
        writer.start()
    deadline = time.monotonic() + 3
    with world.database.connect() as reader:
        while time.monotonic() < deadline:
            seen = [flags for (flags,) in reader.execute("SELECT flags[1] FROM receiptd.stream_event ORDER BY id")]
            assert seen == list(range(1, len(seen) + 1))
    stopping.set()
    for writer in writers:
        writer.join()
    assert len(seen) > 100


@pytest.mark.parametrize("settings, said", [
    ({"topic": "a b"}, 'stream.topic: "a b" is not a topic name'),
    ({"topic": "receipts"}, 'stream.topic: "receipts" is a topic of receipts'),
    ({"topic": "t", "columns": ["a", "a"]}, 'stream.columns: "a" is named twice'),
    ({"topic": "t", "columns": ["a b"]}, 'stream.columns: "a b" is not the name of a column'),
    ({"topic": "t", "mode": "rows"}, "stream.mode"),
])
def test_a_mistake_in_the_configuration_is_named(receiptd, settings, said):
    receiptd.configure(kafka={"topics": ["receipts"]}, stream=settings)
    result = receiptd.command("check-config", check=False)
    assert result.returncode == 78 and said in result.stderr
