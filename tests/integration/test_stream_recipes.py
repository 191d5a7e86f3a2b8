"""The recipes of docs/stream.md, run as they are written there: a follower table, a search index, files for a warehouse."""
import collections
import json
import pathlib
import random
import re
import subprocess
import sys
import threading

import psycopg

from oracle.traffic import Outgoing
from support import publications, stream
from support.wait import wait_for
from test_stream import create_streamer, wait_until_quiet  # noqa: F401

ROOT = pathlib.Path(__file__).resolve().parents[2]
STATUSES = ("SENT", "DELIVERED", "OPENED", "CLICKED", "FAILED", "COMPLAINED", "UNSUBSCRIBED")
# message_id, status and flags by name, status_at, campaign, organisation.
INBOX = """SELECT m.message_id, p.name, COALESCE(ARRAY(SELECT f.name FROM receiptd.message_status_priority f WHERE m.flags >> f.flag_bit & 1 = 1 ORDER BY f.code), '{}'),
                  m.status_at, m.campaign_id, m.org_id
           FROM receiptd.message_inbox m JOIN receiptd.message_status_priority p ON p.code = m.status ORDER BY m.message_id"""
FOLLOWER = "SELECT message_id, status, flags, status_at, campaign_id, org_id FROM message_status ORDER BY message_id"


class Recipe:
    """A program of config/stream, killed and started again as often as a test wants."""

    def __init__(self, name, *arguments, output=subprocess.DEVNULL):
        self.command = [sys.executable, str(ROOT / "config" / "stream" / name), *map(str, arguments)]
        self.output, self.process = output, None

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=self.output, stderr=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        failed = self.process.poll()
        self.process.kill()
        error = self.process.communicate(timeout=30)[1]
        assert failed is None, error

    def crash(self):
        self.__exit__()
        self.__enter__()


def receipts(ids, count, seed, statuses=STATUSES):
    """Receipts in any order, each message's in any partition."""
    chance = random.Random(seed)
    for n in range(count):
        event = {"message_id": chance.choice(ids), "status": chance.choice(statuses), "at": f"2026-10-01T12:{n // 60 % 60:02}:{n % 60:02}Z"}
        yield Outgoing(chance.randrange(8), None, json.dumps(event).encode(), [], 0)


def documented_table():
    """The CREATE TABLE of the page."""
    return re.search(r"```sql\n(CREATE TABLE message_status .*?)```", (ROOT / "docs" / "stream.md").read_text(), re.DOTALL)[1]


def test_a_follower_table_equals_the_inbox_after_a_backfill_under_traffic_and_an_erasure(create_streamer, create_database, tmp_path):
    world = create_streamer(mode="state")
    topic = str(world.out)
    ids = [f"m-{n:05}" for n in range(6000)]
    world.insert_ids(*ids)
    world.installation.configure(stream={"topic": None})
    process = world.installation.start()  # before there is a stream
    world.produce(list(receipts(ids, 5000, 1)))
    world.wait_until_consumed(process)
    process.stop()

    world.installation.configure(stream={"topic": topic})
    process = world.installation.start()
    follower = create_database()
    with psycopg.connect(follower.dsn, autocommit=True) as copy, Recipe("follower.py", world.brokers, topic, follower.dsn) as recipe:
        copy.execute(documented_table())
        feeder = threading.Thread(target=lambda: [world.produce(list(receipts(ids, 500, 100 + turn))) for turn in range(30)])
        feeder.start()
        world.wait(lambda: copy.execute("SELECT count(*) FROM message_status").fetchone()[0] > 0, process, what="the follower has begun")
        out = world.installation.command("stream", "--backfill").stdout
        assert "stream: 6000 messages written; all are in the stream" in out
        recipe.crash()
        named = tmp_path / "ids"
        named.write_text("\n".join(ids[10:700:7]) + "\n")
        world.installation.command("erase", "--messages-from", str(named))
        feeder.join()
        world.wait_until_consumed(process)
        wait_until_quiet(world, process)
        expected = world.database.query(INBOX)
        assert len(expected) == 6000 - len(ids[10:700:7]) and len({row[1] for row in expected}) > 4
        world.wait(lambda: copy.execute(FOLLOWER).fetchall() == expected, process, 60, "the follower to equal the inbox")
    process.stop()


def judge(lines):
    """A search index with external versions: the highest version of an id is the document."""
    index, versions = {}, collections.Counter()
    for action, document in zip(lines[::2], lines[1::2]):
        where = json.loads(action)["index"]
        if where["version"] > versions[where["_id"]]:
            versions[where["_id"]], index[where["_id"]] = where["version"], json.loads(document)
    return index, sum(versions.values())


def test_a_search_index_gets_one_document_a_burst_and_ends_with_the_newest(create_world, create_topic, tmp_path):
    out = create_topic(4)
    world = create_world(folds=[{
        "name": "documents", "group_key": ["inbox.message_id"], "window": "1s", "publish": {"kafka": {"topic": str(out)}},
        "collect": {"status": {"kind": "last"}, "subject": {"field": "inbox.subject", "kind": "last"}, "before": {"field": "prev_status", "kind": "first"}}}])
    world.database.execute("ALTER TABLE receiptd.message_inbox ADD COLUMN subject text")
    ids = [f"m-{n:03}" for n in range(400)]
    world.insert_ids(*ids)
    world.database.execute("UPDATE receiptd.message_inbox SET subject = 'about ' || message_id WHERE message_id < 'm-300'")
    process = world.installation.start()
    with open(tmp_path / "bulk", "w+") as bulk, Recipe("index.py", world.brokers, out, output=bulk) as recipe:
        for turn in range(3):
            world.produce(list(receipts(ids, 4000, turn, STATUSES[:2 + turn])))
            world.wait_until_consumed(process)
            wait_for(lambda: publications.is_quiet(world.database), 60, "every burst published")
            recipe.crash()
        expected = {id: {"status": status, "subject": subject} for id, status, subject in world.database.query(
            "SELECT m.message_id, p.name, m.subject FROM receiptd.message_inbox m JOIN receiptd.message_status_priority p ON p.code = m.status")}

        def indexed():
            lines = (tmp_path / "bulk").read_text().splitlines()
            return {id: {name: document[name] for name in ("status", "subject")} for id, document in judge(lines)[0].items()} == expected

        wait_for(indexed, 60, "the newest document of each message in the index")
    transitions, = world.database.query("SELECT sum(events)::int FROM receiptd.fold_total")[0]
    writes = len({json.loads(line)["index"]["_id"] + str(json.loads(line)["index"]["version"]) for line in (tmp_path / "bulk").read_text().splitlines()[::2]})
    assert writes <= 3 * len(ids) and transitions >= writes
    process.stop()


def test_the_files_of_a_warehouse_hold_each_transition_once(create_streamer, tmp_path):
    world = create_streamer(mode="changes")
    ids = [f"m-{n:04}" for n in range(2000)]
    world.insert_ids(*ids)
    process = world.installation.start()
    with Recipe("warehouse.py", world.brokers, world.out, tmp_path) as recipe:
        for turn in range(4):
            world.produce(list(receipts(ids, 3000, turn)))
            world.wait_until_consumed(process)
            recipe.crash()
        wait_until_quiet(world, process)
        expected = collections.Counter(record.headers["ce_id"] for record in stream.read(world.brokers, world.out, 4))

        def loaded():
            return collections.Counter(json.loads(line)["id"] for path in tmp_path.glob("*.ndjson") for line in path.read_text().splitlines())

        wait_for(lambda: loaded() == expected, 60, "each transition in a file, once")
    assert max(expected.values()) == 1
    last = {}
    for path in sorted(tmp_path.glob("*.ndjson")):  # partition, then offset: the order of each message
        for line in path.read_text().splitlines():
            event = json.loads(line)
            last[event["message_id"]] = event["new"], event["flags"]
    assert last == {id: row[:2] for id, row in stream.rows(world.database).items()}
    process.stop()
