"""`receiptd positions`: what a halt says to type is typed as it stands there, and the daemon goes on exactly."""

import re
import shlex
import shutil
import subprocess
import time

import pytest

from faults.servers import Broker, library, make_directory
from oracle import broker
from support.operations import Operations
from support.ports import free_ports
from support.services import Topic
from support.wait import wait_for

PARTITIONS = 2
UNAVAILABLE, TEMPORARY, USAGE, NO_INPUT = 69, 75, 64, 66


def create(create_world, **settings):
    world = create_world(partitions=PARTITIONS, lanes=4, postgres={"zombie_timeout": "2s"}, http={"listen": "127.0.0.1:0"}, **settings)
    world.installation.configure(kafka={"group": f"receiptd-{world.topic}"})
    return world


def send(world, partition, *ids, status="SENT"):
    world.topic.send(*[[{"message_id": id, "status": status}] for id in ids], partition=partition)


def applied(world, process, partition):
    """Until everything in the partition's log is applied."""
    end = world.topic.watermarks()[partition][1]
    world.wait(lambda: low_of(world, partition) == end, process, 60, f"position {end}", details=process.log_tail)


def low_of(world, partition):
    return world.database.value("SELECT min(next_offset) FROM receiptd.consumer_progress WHERE partition = %s", partition)


def run(world, name, *records):
    process = world.installation.start(name)
    Operations(process).wait_until_ready(60)
    for partition, ids in records:
        send(world, partition, *ids)
        applied(world, process, partition)
    return process


def command_of(process, pattern):
    """The command that the log names, as one would type it."""
    return shlex.split(process.wait_for_log(rf"stopped consuming: .*HINT: .*?receiptd (positions {pattern})", 60).group(1))


def play(world, command, *options, code=0):
    result = world.installation.command(*command, *options, check=False)
    assert result.returncode == code, result.stdout + result.stderr
    return result.stdout + result.stderr


def make_again(world):
    broker.delete_topic(world.brokers, str(world.topic))
    wait_for(lambda: try_to_create(world), 60, "the topic is created again", interval=1)


def try_to_create(world):
    try:
        broker.create_topic(world.brokers, str(world.topic), PARTITIONS)
        return True
    except Exception:
        return False


def events(world, id):
    return world.database.value("SELECT COALESCE(sum(f.events), 0)::int8 FROM receiptd.campaign_funnel f JOIN receiptd.message_inbox m"
                                " USING (campaign_id) WHERE m.message_id = %s", id)


def test_a_retention_gap_is_skipped_once_by_the_command_that_the_halt_names(create_world):
    world = create(create_world)
    world.insert_ids("a", "gone", "kept", "other")
    process = run(world, "first", (0, ["a"]), (1, ["a"]))
    process.stop()
    send(world, 0, "gone", "gone", "kept")
    broker.delete_records(world.brokers, str(world.topic), {0: 3})
    process = world.installation.start("second")
    command = command_of(process, rf"skip-gap {world.topic} 0")
    pages = Operations(process)
    assert pages.figures().get_one("receiptd_halted") == 1 and pages.get("/readyz").status == 503
    shown = world.installation.command("positions", "show").stdout
    assert "next records are gone" in shown and " ok" in shown
    assert "position 1 -> 3, records 1…2 are not applied" in play(world, command, "--dry-run")
    assert low_of(world, 0) == 1
    send(world, 1, "other")  # the lanes are not idle: the others go on
    play(world, command)
    applied(world, process, 0)
    pages.wait_until_ready(60)
    assert pages.figures().get_one("receiptd_halted") == 0
    assert "has no gap" in play(world, command, code=USAGE)  # once
    assert world.database.query("SELECT topic, partition, after, reason FROM receiptd.position_change") == [(str(world.topic), 0, 3, "skip-gap")]
    assert dict(world.database.query("SELECT message_id, status FROM receiptd.message_inbox")) == {"a": 300, "gone": 0, "kept": 300, "other": 300}
    process.stop()


def test_a_topic_that_was_made_again_goes_on_from_its_beginning(create_world):
    world = create(create_world)
    world.insert_ids("a")
    process = run(world, "first", (0, ["a"] * 5 + ["unknown1", "unknown2"]), (1, ["a"]))
    process.stop()
    make_again(world)
    send(world, 0, "unknown3", "a")  # at offsets of receipts that are parked already, or were
    process = world.installation.start("second")
    command = command_of(process, rf"set {world.topic} 0 beginning")
    pages = Operations(process)
    play(world, command)
    process.wait_for_log(rf"topic {world.topic} partition 0 stands still no longer", 60)
    applied(world, process, 0)
    wait_for(lambda: "ends at 0, but 1 was applied" in str(pages.get("/readyz").json["reasons"])
             or pages.get("/readyz").status == 200, 30, "the other partition")
    play(world, ["positions", "set", str(world.topic), "1", "beginning"])
    pages.wait_until_ready(60)
    parked = world.database.query("SELECT message_id, \"offset\" >= 0 FROM receiptd.parked_event ORDER BY 1")
    assert parked == [("unknown1", False), ("unknown2", False), ("unknown3", True)]
    world.insert_ids("unknown1", "unknown2", "unknown3")
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.parked_event") == 0, process, 30, "all are woken")
    process.stop()


def test_a_topic_that_was_made_again_and_is_longer_is_found_by_its_records(create_world):
    world = create(create_world)
    world.insert_ids("a", "b")
    process = run(world, "first", (0, ["a"] * 3), (1, ["a"] * 2))
    process.stop()
    make_again(world)
    for partition in range(PARTITIONS):
        send(world, partition, *["b"] * 6)
    process = world.installation.start("second")
    command = command_of(process, rf"set {world.topic} \d beginning")
    for partition in range(PARTITIONS):  # "likewise its other partitions"
        play(world, [*command[:3], str(partition), *command[4:]])
    process.stop()  # "then restart"
    process = run(world, "third")
    for partition in range(PARTITIONS):
        applied(world, process, partition)
    assert world.database.value("SELECT status FROM receiptd.message_inbox WHERE message_id = 'b'") == 300
    process.stop()


def test_show_says_of_a_topic_that_was_made_again_that_it_is_another_log(create_world):
    """Its ends fit; only the record below the position is another one. A partition that nobody wrote to is as it was."""
    world = create(create_world)
    world.insert_ids("a")
    run(world, "first", (0, ["a"] * 2)).stop()
    make_again(world)
    send(world, 0, "a", "a", "a")
    process = world.installation.start("second")
    process.wait_for_log("stopped consuming: .*is not the one that was consumed", 60)
    states = {one["partition"]: one["state"] for one in world.installation.json("positions", "show", "--format", "json") if one["reader"] == "receipts"}
    assert states == {0: "another log", 1: "ok"}
    said = play(world, ["positions", "set", str(world.topic), "all", "beginning"])
    assert said.count("set: ") == 1 and "(another log): position 2 -> 0" in said
    world.installation.command("ctl", "reload", check=False)
    process.stop()
    process = world.installation.start("third")
    applied(world, process, 0)
    assert "nothing to do: of 2 partitions" in play(world, ["positions", "set", str(world.topic), "all", "end", "--dry-run"])
    process.stop()


def test_all_partitions_go_on_behind_their_gaps_in_one_transaction(create_world):
    world = create(create_world)
    world.insert_ids("a", "gone", "kept")
    topic = str(world.topic)
    run(world, "first", (0, ["a"]), (1, ["a"])).stop()
    assert "nothing to do: of 2 partitions" in play(world, ["positions", "skip-gap", topic, "all"])
    for partition in range(PARTITIONS):
        send(world, partition, "gone", "gone", "kept")
    broker.delete_records(world.brokers, topic, {0: 3, 1: 2})
    assert play(world, ["positions", "skip-gap", topic, "all", "--dry-run"]).count("would set: ") == 2
    # One that cannot be moved keeps the others where they are.
    world.database.execute("CREATE FUNCTION receiptd.refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''no''; END'")
    world.database.execute("CREATE TRIGGER t BEFORE INSERT ON receiptd.position_change FOR EACH ROW WHEN (NEW.partition = 1) EXECUTE FUNCTION receiptd.refuse()")
    assert world.installation.command("positions", "skip-gap", topic, "all", check=False).returncode != 0
    assert [low_of(world, partition) for partition in range(PARTITIONS)] == [1, 1]
    world.database.execute("DROP TRIGGER t ON receiptd.position_change")
    said = play(world, ["positions", "skip-gap", topic, "all"])
    assert "partition 0 (next records are gone): position 1 -> 3" in said and "partition 1 (next records are gone): position 1 -> 2" in said
    process = run(world, "second")
    for partition in range(PARTITIONS):
        applied(world, process, partition)
    process.stop()


@pytest.mark.parametrize("which", ["all", "0"])
def test_a_replay_by_time_begins_at_the_first_record_of_that_time_and_counts_again(create_world, which):
    world = create(create_world)
    world.insert_ids("a", "b")
    topic, begin = str(world.topic), (int(time.time()) - 3600) * 1000
    process = run(world, "first")
    # Hours 0, 1 and 2 in partition 0, of which the second is late; partition 1 has nothing after hour 0.
    for partition, hours in ((0, [0, 2, 1, 2]), (1, [0])):
        world.topic.send_records([{"value": '{"message_id": "%s", "status": "SENT"}' % "ab"[partition], "partition": partition,
                                   "timestamp_ms": begin + 1000 * hour} for hour in hours])
        applied(world, process, partition)
    process.stop()

    def at(milliseconds):
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime((begin + milliseconds) // 1000))
        return ["positions", "set", topic, which, "--at", f"{moment}.{(begin + milliseconds) % 1000:03d}Z"]

    before = events(world, "a")
    assert "records 1…3 were applied already\nHINT: --replay applies them again" in play(world, at(1000), code=USAGE)
    said = play(world, at(1000), "--dry-run")
    assert "would set, with --replay: topic" in said and "position 4 -> 1, records 1…3 are applied again" in said and "partition 1" not in said
    assert "position 4 -> 1," in play(world, at(1), "--dry-run")  # the first that is not older
    assert "position 4 -> 0," in play(world, at(-7_000_000), "--dry-run")
    later = play(world, at(10_000_000), "--dry-run")
    assert "nothing to do" in later if which == "all" else "position 4 -> 4" in later
    assert low_of(world, 0) == 4
    assert "set: topic" in play(world, at(1000), "--replay")
    process = run(world, "second")
    applied(world, process, 0)
    world.wait(lambda: events(world, "a") == before + 3, process, 30, "counted again, as announced")
    world.installation.command("audit")
    assert dict(world.database.query("SELECT message_id, status FROM receiptd.message_inbox")) == {"a": 300, "b": 300}
    process.stop()


@pytest.mark.parametrize("window, counted", [("0s", 2), ("1d", 1)])
def test_what_a_replay_counts_again_and_what_it_does_not(create_world, window, counted):
    world = create(create_world, dedup={"window": window})
    world.insert_ids("a", "last")
    process = run(world, "first")
    send(world, 0, "a", "unknown")
    world.topic.send("no receipt", partition=0)
    applied(world, process, 0)
    process.stop()
    play(world, ["positions", "set", str(world.topic), "0", "beginning", "--replay"])
    process = run(world, "second", (0, ["last"]))
    world.wait(lambda: events(world, "a") == counted + 1, process, 30, "as announced")  # with that of `last`
    assert world.database.query("SELECT message_id FROM receiptd.parked_event") == [("unknown",)]
    assert world.database.value("SELECT count(*) FROM receiptd.dead_letter") == 1
    world.installation.command("audit")
    process.stop()


@pytest.mark.parametrize("arguments, said", [
    (["--at", "yesterday"], "--at yesterday: a time is written"), (["--at", "1763692200"], "--at 1763692200: a time is written"),
    ([], "A number, beginning, end, or --at TIME"), (["0", "--at", "2026-11-21T02:30:00Z"], "A number, beginning, end, or --at TIME")])
def test_a_target_is_an_offset_or_a_time(create_world, arguments, said):
    world = create(create_world)
    assert said in play(world, ["positions", "set", str(world.topic), "all", *arguments], code=USAGE)
    assert "set TOPIC PARTITION|all OFFSET" in play(world, ["positions", "set", str(world.topic), "every", "0"], code=USAGE)


@pytest.mark.parametrize("how", ["CreateTime", "LogAppendTime"])
def test_a_timestamp_that_means_nothing_makes_no_other_log(create_world, how):
    """A topic without the limit that brokers have since 4.0; the anchor as an older version stored it."""
    world = create(create_world)
    broker.alter_topic(world.brokers, str(world.topic), **{"message.timestamp.after.max.ms": str(2 ** 63 - 1), "message.timestamp.type": how})
    world.insert_ids("a")
    process = run(world, "first")
    odd = [9 * 10 ** 18, 253402300799000, 1795782291000000000, 1795782291000000, 1]
    for number, timestamp in enumerate(odd):
        world.topic.send({"message_id": "a", "status": "SENT"}, partition=0, timestamp_ms=timestamp)
        applied(world, process, 0)
        process.stop()
        if how == "CreateTime":
            stored = world.database.value("SELECT max(anchor_timestamp) FROM receiptd.consumer_progress WHERE partition = 0")
            assert stored == min(timestamp, 253402300799999)
            world.database.execute("UPDATE receiptd.consumer_progress SET anchor_timestamp = %s WHERE anchor_timestamp = %s", timestamp, stored)
        (shown,) = [one for one in world.installation.json("positions", "show", "--format", "json") if one["partition"] == 0]
        assert (shown["position"], shown["state"]) == (number + 1, "ok")
        assert f"records {number}…{number} are applied again" in play(
            world, ["positions", "set", str(world.topic), "0", str(number), "--replay", "--dry-run"])
        process = run(world, f"again-{number}")
        Operations(process).get("/statusz")
        assert Operations(process).figures().get_one("receiptd_halted") == 0
    assert events(world, "a") == len(odd)
    process.stop()


def test_a_position_is_not_moved_while_a_receiptd_works_on_it(create_world):
    world = create(create_world)
    world.insert_ids("a")
    process = run(world, "first", (0, ["a"] * 4))
    wait_for(lambda: {place["owner"] for place in Operations(process).get("/statusz").json["topics"]} == {"receiptd"}, 30, "owned")
    topic = str(world.topic)
    assert re.search(r"receiptd at \S+ works on topic .* partition 0\nHINT: stop the instances", play(world, ["positions", "set", topic, "0", "2"], code=TEMPORARY))
    process.stop()
    assert "were applied already" in play(world, ["positions", "set", topic, "0", "1"], code=USAGE)
    assert "is no offset" in play(world, ["positions", "set", topic, "0", "5"], code=USAGE)
    play(world, ["positions", "set", topic, "7", "0"], code=NO_INPUT)
    play(world, ["positions", "set", "no-such-topic", "0", "0"], code=UNAVAILABLE)
    before = events(world, "a")
    assert "records 1…3 are applied again" in play(world, ["positions", "set", topic, "0", "1", "--replay"])
    process = run(world, "second")
    applied(world, process, 0)
    world.wait(lambda: events(world, "a") == before + 3, process, 30, "counted again, as announced")
    shown = {(one["reader"], one["partition"]): one for one in world.installation.json("positions", "show", "--format", "json")}
    assert shown["receipts", 0]["position"] == shown["receipts", 0]["ends"] == 4 and shown["receipts", 0]["state"] == "ok"
    process.stop()


def test_rows_that_somebody_deleted_are_made_again(create_world):
    world = create(create_world)
    world.insert_ids("a")
    process = run(world, "first", (0, ["a"] * 4), (1, ["a"]))
    process.stop()
    world.database.execute("DELETE FROM receiptd.consumer_progress WHERE partition = 0 AND lane IN (1, 2)")
    process = world.installation.start("second")
    command = command_of(process, rf"set {world.topic} 0 OFFSET")
    play(world, [*command[:-1], "4"])
    process.stop()
    process = run(world, "third", (0, ["a"]))
    assert world.database.value("SELECT count(*) FROM receiptd.consumer_progress WHERE partition = 0") == 4
    process.stop()


# ---- another cluster


class OtherCluster:
    """With a topic of the same name."""

    def __init__(self, topic):
        self.directory = make_directory()
        port, control = free_ports(2)
        self.broker = Broker(self.directory, 1, {"PLAINTEXT": (port, port)}, {1: control}, "AbcdefghijklmnopqrstuC",
                             library("fetch_kafka; kafka_class_path"))
        self.brokers = f"127.0.0.1:{port}"
        self.broker.start()
        broker.create_topic(self.brokers, str(topic), PARTITIONS)
        self.topic = Topic(self, str(topic), PARTITIONS)

    def close(self):
        self.broker.kill()
        shutil.rmtree((self.directory / "socket").resolve(), ignore_errors=True)
        subprocess.run(["rm", "-rf", str(self.directory)], check=False)


@pytest.fixture
def mirrored(create_world):
    """A world whose two records are applied, and another cluster with a copy of the first one, and another second one."""
    world = create(create_world)
    world.insert_ids("a")
    process = world.installation.start("first")
    records = [{"value": '{"message_id": "a", "status": "SENT"}', "partition": p, "timestamp_ms": int(time.time()) * 1000 - p} for p in (0, 1)]
    world.topic.send_records(records)
    for partition in range(PARTITIONS):
        applied(world, process, partition)
    process.stop()
    other = OtherCluster(world.topic)
    other.topic.send_records([records[0], {**records[1], "timestamp_ms": records[1]["timestamp_ms"] - 5000}])
    yield world, other
    for process in world.installation.processes:
        if process.running:
            process.kill()
    other.close()


def test_another_cluster_is_accepted_on_purpose_and_another_log_there_is_still_found(mirrored):
    world, other = mirrored
    topic, former = str(world.topic), world.topic
    world.installation.configure(kafka={"brokers": other.brokers})
    process = world.installation.start("second")
    process.expected_status = process.wait(60)
    assert process.expected_status == 78
    told = re.search(rf"topic {topic} was consumed from Kafka cluster ([\w-]+), and kafka.brokers lead to ([\w-]+).*HINT: .*receiptd (positions accept-cluster) --dry-run",
                     process.log().replace('"', " "))
    was, now = told.group(1), told.group(2)
    command = shlex.split(told.group(3))
    assert "another cluster" in world.installation.command("positions", "show").stdout
    assert "HINT: if it is the right one: receiptd positions accept-cluster" in play(world, ["positions", "set", topic, "0", "beginning"], code=USAGE)
    shown = play(world, command, "--dry-run")
    assert shown == (f"would accept: topic {topic} goes on in cluster {now}, was in {was}\n"
                     "  partition 0: at 1, the log there holds 0 up to 1\n  partition 1: at 1, the log there holds 0 up to 1\n")
    cluster = "SELECT cluster_id FROM receiptd.consumer_topic"
    assert world.database.value(cluster) == was
    generation = world.database.value("SELECT generation FROM receiptd.consumer_topic")
    assert play(world, command) == shown.replace("would accept", "accepted")
    assert world.database.value(cluster) == now
    assert world.database.query("SELECT DISTINCT generation FROM receiptd.consumer_progress") == [(generation + 1,)]
    assert world.database.query("SELECT partition, before, after, reason FROM receiptd.position_change ORDER BY 1") == [
        (p, "1,1,1,1", 1, f"cluster {was} -> {now}") for p in range(PARTITIONS)]
    assert f"nothing to accept: the topics are consumed from cluster {now}" in play(world, command)

    process = world.installation.start("third")  # one partition has the same log, the other has not
    halt = command_of(process, rf"set {topic} 1 beginning")
    play(world, halt)
    process.stop()
    world.topic = other.topic
    process = run(world, "fourth", (0, ["a"]), (1, ["a"]))
    world.wait(lambda: events(world, "a") == 5, process, 30, "two before, then two, and the one of the other log")
    process.stop()
    world.topic = former
