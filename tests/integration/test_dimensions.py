"""Dimensions (counters.by) in the running daemon: the funnel by columns of the message, through kills, an expiry, and a table of the platform's own."""
import json
import random

import pytest

from oracle import broker
from oracle.traffic import Outgoing
from support.services import ROOT

VALUES = ("a", "b", "c", None)


def funnels(world, dimension):
    """{key: {status: (messages, events)}}"""
    found = {}
    for key, status, messages, events in world.database.query(
            f"SELECT key, status, messages::int, events::int FROM receiptd.campaign_tally WHERE kind = 'by_{dimension}' AND campaign_id = 'c'"):
        found.setdefault(key, {})[status] = (messages, events)
    return found


def sums(found):
    total = {}
    for cells in found.values():
        for status, counts in cells.items():
            total[status] = tuple(a + b for a, b in zip(total.get(status, (0, 0)), counts))
    return total


def whole(world):
    return {status: (messages, events) for status, messages, events in world.database.query(
        "SELECT status, messages::int, events::int FROM receiptd.campaign_funnel WHERE campaign_id = 'c'")}


def insert(world, ids, table="receiptd.message_inbox", column="variant"):
    with world.database.connect() as connection, connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} (message_id, org_id, campaign_id, {column}) VALUES (%s, 'o', 'c', %s)",
                           [(id, VALUES[int(id[1:]) % 4]) for id in ids])


def records_of(events, now):
    return [Outgoing(n % 8, None, json.dumps(events[at:at + 50]).encode(), [], now) for n, at in enumerate(range(0, len(events), 50))]


@pytest.mark.parametrize("dedup", ("0s", "24h"))
@pytest.mark.parametrize("unknown", ("park", "insert"))
def test_the_sum_over_keys_is_the_funnel_through_kills(create_world, unknown, dedup):
    world = create_world(unknown=unknown, dedup={"window": dedup}, counters={"by": ["variant", "channel"], "rollup_interval": "50ms"})
    rng = random.Random(7)
    ids = [f"m{n}" for n in range(2_000)]
    now = world.database.value("SELECT (extract(epoch FROM now()) * 1000)::int8")
    events = [{"message_id": id, "status": status, "at": now - rng.randrange(3_600_000), "event_id": f"{id}{status}", "campaign_id": "c", "org_id": "o"}
              for id in ids for status in ("SENT", rng.choice(("DELIVERED", "FAILED")))]
    events += [rng.choice(events) for _ in range(1_000)]
    rng.shuffle(events)
    insert(world, ids[:1_500])
    process = world.produce_over_kills(records_of(events[part:part + 1_000], now) for part in range(0, len(events), 1_000))
    if unknown == "park":
        insert(world, ids[1_500:])
    world.wait_until_consumed(process)
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.parked_event") == 0, process, 60, "nothing is parked")
    found = funnels(world, "variant")
    assert set(found) == {"a", "b", "c", ""} and sums(found) == whole(world)
    rows = dict(world.database.query("SELECT COALESCE(variant, ''), count(*)::int FROM receiptd.message_inbox GROUP BY 1"))
    assert {key: cells[0][0] for key, cells in found.items()} == rows == {key: cells[300][0] for key, cells in found.items()}
    delivered = dict(world.database.query("SELECT COALESCE(variant, ''), count(*)::int FROM receiptd.message_inbox WHERE status = 600 GROUP BY 1"))
    assert {key: cells[600][0] for key, cells in found.items()} == delivered
    assert funnels(world, "channel") == {"": whole(world)}
    assert world.installation.command("audit").stdout.endswith(", 0 cells drift\n")
    process.stop()


def test_a_table_of_the_platform_names_its_columns_and_an_expiry_counts_as_well(create_world):
    world = create_world(migrate=False, counters={"by": ["variant"]},
                         inbox={"table": "public.messages", "columns": {"variant": "cell"}, "expiry": [{"after": "1ms"}]})
    world.database.execute("CREATE TABLE public.messages (message_id text PRIMARY KEY, org_id text, campaign_id text, cell varchar(20))")
    world.installation.migrate()
    assert world.installation.command("migrate").stdout == "nothing to do\n"
    ids = [f"m{n}" for n in range(40)]
    insert(world, ids, "public.messages", "cell")
    process = world.installation.start()
    now = world.database.value("SELECT (extract(epoch FROM now()) * 1000)::int8")
    broker.produce(world.brokers, str(world.topic), records_of([{"message_id": id, "status": "SENT", "at": now} for id in ids[:30]], now))
    world.wait_until_consumed(process)
    world.installation.command("expire")
    found = funnels(world, "variant")
    assert sums(found) == whole(world) and whole(world)[400] == (30, 0)
    assert {key: cells[400][0] for key, cells in found.items()} == {"a": 8, "b": 8, "c": 7, "": 7}
    process.stop()


def test_switching_on_adds_the_columns_and_switching_off_leaves_them_uncounted(create_world):
    world = create_world()
    world.installation.configure(counters={"by": ["gateway"]})
    said = world.installation.command("check-config", "--connect", check=False)
    assert said.returncode != 0 and "gateway" in said.stderr
    told = world.installation.command("migrate").stdout
    assert "add column gateway to message_inbox, by which messages are counted" in told and "create the trigger" in told
    assert world.installation.command("migrate").stdout == "nothing to do\n"
    world.installation.command("check-config", "--connect")
    world.database.execute("INSERT INTO receiptd.message_inbox (message_id, campaign_id, gateway) VALUES ('m', 'c', 'g')")
    assert funnels(world, "gateway") == {"g": {0: (1, 0)}}
    world.installation.configure(counters={"by": None})
    assert "create the trigger" in world.installation.command("migrate").stdout
    world.database.execute("INSERT INTO receiptd.message_inbox (message_id, campaign_id, gateway) VALUES ('n', 'c', 'g')")
    assert funnels(world, "gateway") == {"g": {0: (1, 0)}}


@pytest.mark.parametrize("by, inbox, says", (
    (["campaign"], {}, "counters.by: each entry is one of variant, channel, gateway"),
    (["variant", "variant"], {}, "counters.by names variant twice"),
    (["variant"], {"table": "public.messages"}, "counters.by needs to know the column of inbox.table: set inbox.columns.variant"),
    (["variant"], {"table": "public.messages", "columns": {"variant": "status", "status": "receipt_status"}}, "called like one of receiptd's")))
def test_a_configuration_that_cannot_be_counted_is_refused(create_world, by, inbox, says):
    world = create_world(migrate=False, counters={"by": by}, inbox=inbox)
    refused = world.installation.command("check-config", check=False)
    assert refused.returncode == 78 and says in refused.stderr


def test_a_column_that_is_not_there_or_of_another_type_is_refused_by_migrate(create_world):
    world = create_world(migrate=False, counters={"by": ["variant", "channel"]},
                         inbox={"table": "public.messages", "columns": {"variant": "cell", "channel": "sent"}})
    world.database.execute("CREATE TABLE public.messages (message_id text PRIMARY KEY, org_id text, campaign_id text, sent timestamptz)")
    refused = world.installation.command("migrate", check=False).stderr
    assert "inbox table public.messages has no column cell, by which messages are counted" in refused
    assert "column sent of inbox table public.messages, by which messages are counted, is of type timestamp with time zone" in refused


@pytest.fixture
def counted(create_world):
    """Three keys, of which one has receipts; and a campaign without messages of its own key."""
    world = create_world(counters={"by": ["variant"]})
    insert(world, [f"m{n}" for n in (0, 1, 3, 4, 8)])
    process = world.installation.start()
    now = world.database.value("SELECT (extract(epoch FROM now()) * 1000)::int8")
    broker.produce(world.brokers, str(world.topic), records_of([{"message_id": id, "status": "SENT", "at": now} for id in ("m0", "m4", "m4")], now))
    world.wait_until_consumed(process)
    process.stop()
    return world


def test_funnel_by_shows_each_key_as_a_table_csv_and_json(counted):
    def run(*arguments, check=True):
        return counted.installation.command("funnel", *arguments, check=check)

    table = run("c", "--by", "variant").stdout.splitlines()
    assert table[0] == "campaign c, messages by variant" and table[2].split() == ["variant", "TARGETED", "IN_GTW", "SENT"]
    assert [line.split() for line in table[3:]] == [["a", "3", "2", "2"], ["(none)", "1", "0", "0"], ["b", "1", "0", "0"]]
    assert run("c", "--by", "variant", "--format", "csv").stdout.splitlines() == [
        "key,status,name,messages,events", "a,0,TARGETED,3,0", "a,200,IN_GTW,2,0", "a,300,SENT,2,3", ",0,TARGETED,1,0", "b,0,TARGETED,1,0"]
    said = json.loads(run("c", "--by", "variant", "--format", "json").stdout)
    assert (said["campaign_id"], said["by"], [key["key"] for key in said["keys"]]) == ("c", "variant", ["a", "", "b"])
    assert said["keys"][0]["statuses"][2] == {"status": 300, "name": "SENT", "messages": 2, "events": 3}
    none = run("c", "--by", "colour", check=False)
    assert none.returncode == 66 and 'campaign "c" has no counts by "colour"' in none.stderr and "counters.by" in none.stderr
    assert run("--by", "variant", check=False).returncode == 64 == run("c", "--by", "variant", "--org", "o", check=False).returncode


# ---- audit ----------------------------------------------------------------------------------------------------------------


def audit(world, *arguments):
    """Exit code, the cells that drift, and stderr."""
    done = world.installation.command("audit", "--format", "json", *arguments, check=False)
    said = json.loads(done.stdout)
    return done.returncode, {(cell["name"], cell["drift"]) for cell in said["drift"]}, said, done.stderr


def test_audit_finds_and_repairs_a_column_that_was_changed(counted):
    assert audit(counted)[:2] == (0, set())
    counted.database.execute("SET session_replication_role = replica; UPDATE receiptd.message_inbox SET variant = 'z' WHERE message_id = 'm4'")
    off = {(f"{status}, variant {key}", drift) for status in ("TARGETED", "IN_GTW", "SENT") for key, drift in (("a", 1), ("z", -1))}
    assert audit(counted)[:2] == (1, off) == audit(counted, "--campaign", "c")[:2]
    code, found, said, _ = audit(counted, "--repair")
    assert (code, found, said["repaired_cells"], said["remaining_cells"]) == (0, off, 6, 0)
    assert audit(counted)[:2] == (0, set()) and {key: cells[0][0] for key, cells in funnels(counted, "variant").items()} == {"a": 2, "b": 1, "": 1, "z": 1}


def test_audit_compares_sums_where_messages_were_deleted(counted):
    counted.database.execute("DELETE FROM receiptd.message_inbox WHERE message_id IN ('m0', 'm3')")
    assert audit(counted)[:2] == (0, set())
    counted.database.execute("INSERT INTO receiptd.counter_delta (kind, campaign_id, at, key, status, messages, events)"
                             " VALUES ('by_variant', '{c}', '{-infinity}', '{a}', '{300}', '{4}', '{0}')")
    assert audit(counted)[:2] == (1, {("SENT, all by variant", 4)})
    assert audit(counted, "--repair")[0] == 0 and audit(counted)[:2] == (0, set())
    assert sums(funnels(counted, "variant"))[300] == (2, 3) and funnels(counted, "variant")["other"][0] == (2, 0), "whose keys nobody knows"


@pytest.mark.parametrize("deleted", (False, True))
def test_a_dimension_that_comes_later_is_noted_and_counted_by_repair(create_world, deleted):
    world = create_world()
    world.database.execute("ALTER TABLE receiptd.message_inbox ADD COLUMN variant text")
    insert(world, [f"m{n}" for n in range(20)])
    if deleted:
        world.database.execute("DELETE FROM receiptd.message_inbox WHERE message_id IN ('m3', 'm4')")
    world.installation.configure(counters={"by": ["variant"]})
    world.installation.migrate()
    insert(world, [f"m{n}" for n in range(20, 40)])
    code, found, _, said = audit(world)
    assert (code, found) == (0, set()) and "1 campaigns have messages from before a column of counters.by was counted" in said
    code, found, _, said = audit(world, "--repair")
    assert (code, found, said) == (0, set(), "") and audit(world)[3] == ""
    assert sums(funnels(world, "variant")) == whole(world) == {0: (40, 0)}
    assert {key: cells[0][0] for key, cells in funnels(world, "variant").items()} == (
        {"a": 9, "b": 10, "c": 10, "": 9, "other": 2} if deleted else {"a": 10, "b": 10, "c": 10, "": 10})


def test_audit_takes_further_keys_of_a_campaign_for_other(create_world):
    world = create_world(counters={"by": ["variant"], "rollup_interval": "20ms"})
    process = world.installation.start()
    for first in range(0, 1_500, 500):
        world.database.execute("INSERT INTO receiptd.message_inbox (message_id, campaign_id, variant) SELECT n, 'c', n FROM generate_series(%s::int, %s) n", first, first + 499)
        world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.counter_delta") == 0, process, 60, "rolled up")
    assert audit(world)[:2] == (0, set()) and funnels(world, "variant")["other"] == {0: (500, 0)}
    process.stop()


@pytest.mark.parametrize("kept", (0, 400))
def test_a_further_key_is_other_at_once(create_world, kept):
    """A campaign has 1000 keys, 1300 come: 300 are `other` while nothing is rolled up, and afterwards, whichever of them have been rolled up by then."""
    world = create_world(counters={"by": ["variant"], "rollup_interval": "1h"})

    def insert_keys(first, last):
        for n in range(first, last, 100):
            world.database.execute("INSERT INTO receiptd.message_inbox (message_id, campaign_id, variant) SELECT n, 'c', n FROM generate_series(%s::int, %s) n", n, n + 99)

    text = (ROOT / "sql/control/rollup.sql").read_text().replace("$1::int4", "100000").replace("$2::int8", "0").replace("$3::text", "'rules'").rstrip(";\n ")

    def roll_up():
        world.database.execute(f"SET search_path = receiptd; {text}")

    insert_keys(0, kept)
    roll_up()
    insert_keys(kept, 1300)
    world.database.execute("INSERT INTO receiptd.message_inbox (message_id, campaign_id, variant) VALUES ('long', 'c', %s)", "x" * 101)
    found = funnels(world, "variant")
    assert len(found) == 1001 and found["other"] == {0: (301, 0)} and {str(n) for n in range(1000)} < set(found)
    assert audit(world)[:2] == (0, set())
    roll_up()
    assert funnels(world, "variant") == found and audit(world)[:2] == (0, set())


def test_the_role_of_the_platform_writes_the_columns_and_only_at_insert(create_world, database):
    world = create_world(migrate=False, counters={"by": ["variant"]})
    role = f"platform-{database.name}"
    try:
        assert f"let role {role} write column variant of message_inbox" in world.installation.command("migrate", "--platform-role", role).stdout
        may = "SELECT has_column_privilege(%s, 'receiptd.message_inbox', 'variant', %s)"
        assert world.database.value(may, role, "INSERT") and not world.database.value(may, role, "UPDATE")
    finally:
        world.database.execute(f'DROP OWNED BY "{role}"')
        world.database.execute(f'DROP ROLE "{role}"')
