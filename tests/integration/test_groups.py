"""Groups (counters.groups) in the running daemon: customers and logical messages, through kills, expiries, audits, erasures and retention."""
import json
import pathlib
import random

import psycopg
import pytest

from oracle import broker
from test_dimensions import records_of
from test_sql_groups import expected

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOTH = {"groups": ["customer", "logical"], "rollup_interval": "50ms"}


def insert(world, messages, table="receiptd.message_inbox", columns="customer_id, logical_id"):
    """{id: (campaign, customer, logical)}"""
    with world.database.connect() as connection, connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {table} (message_id, org_id, campaign_id, {columns}) VALUES (%s, 'o', %s, %s, %s)",
                           [(id, *of) for id, of in messages.items()])


def counted(world, kind):
    return {(c, s): n for c, s, n in world.database.query(f"SELECT campaign_id, status, groups::int FROM receiptd.group_funnel WHERE kind = '{kind}'")}


def rows_of(world, table="receiptd.message_inbox"):
    return {id: (status, flags) for id, status, flags in world.database.query(f"SELECT message_id, status, flags FROM {table}")}


def now_of(world):
    return world.database.value("SELECT (extract(epoch FROM now()) * 1000)::int8")


def send(world, process, events):
    broker.produce(world.brokers, str(world.topic), records_of(events, now_of(world)))
    world.wait_until_consumed(process)


def people(count):
    """Two attempts at every second message; a customer has four messages."""
    return {f"m{n}": ("c", f"person{n // 4}", f"m{n - 1}" if n % 4 == 1 else None) for n in range(count)}


@pytest.mark.parametrize("dedup", ("0s", "24h"))
def test_customers_and_logical_messages_are_exact_through_kills(create_world, dedup):
    world = create_world(dedup={"window": dedup}, counters=BOTH)
    rng, messages = random.Random(7), people(1_200)
    events = [{"message_id": id, "status": status, "at": now_of(world)} for id in messages for status in ("SENT", rng.choice(("DELIVERED", "FAILED", "OPENED")))]
    events += [rng.choice(events) for _ in range(600)]
    rng.shuffle(events)
    insert(world, dict(list(messages.items())[:900]))
    process = world.produce_over_kills(records_of(events[part:part + 1_000], now_of(world)) for part in range(0, len(events), 1_000))
    insert(world, dict(list(messages.items())[900:]))
    world.wait_until_consumed(process)
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.parked_event") == 0, process, 60, "nothing is parked")
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.group_delta") == 0, process, 60, "all is folded")
    for kind in BOTH["groups"]:
        assert counted(world, kind) == expected(messages, rows_of(world), kind)
    assert counted(world, "customer")["c", 0] == 300 and counted(world, "logical")["c", 0] == 900
    assert world.installation.command("audit").stdout.endswith(", 0 cells drift\n")
    process.stop()


@pytest.fixture
def small(create_world):
    """Two customers: of one an SMS failed and an e-mail came, the other was not reached."""
    world = create_world(counters=BOTH, inbox={"columns": {"customer_id": "customer_id"}})
    messages = {"a1": ("c", "anna", None), "a2": ("c", "anna", "a1"), "b1": ("c", "berta", None), "x": ("c", None, None)}
    insert(world, messages)
    process = world.installation.start()
    send(world, process, [{"message_id": id, "status": status, "at": 1_790_000_000_000} for id, status in (("a1", "FAILED"), ("a2", "DELIVERED"), ("b1", "IN_GTW"))])
    process.stop()
    return world


def test_funnel_shows_customers_and_logical_messages_and_their_rates(small):
    said = json.loads(small.installation.command("funnel", "c", "--format", "json").stdout)
    found = {s["name"]: (s["messages"], s["customers"], s["logical"]) for s in said["statuses"] if s["messages"]}
    assert found == {"TARGETED": (4, 2, 3), "IN_GTW": (3, 2, 2), "SENT": (2, 1, 1), "FAILED": (1, 0, 0), "DELIVERED": (1, 1, 1)}
    rates = {name: (rate["numerator"], rate["denominator"]) for name, rate in said["kpis"].items() if "customers" in name}
    assert rates == {"contacted_customers_per_targeted": (1, 2), "delivered_customers_per_targeted": (1, 2), "delivered_customers_per_contacted": (1, 1)}
    table = small.installation.command("funnel", "c").stdout
    assert "customers      logical" in table and "contacted_customers_per_targeted" in table
    assert small.installation.command("funnel", "c", "--format", "csv").stdout.splitlines()[0].endswith(",org_id,customers,logical")
    vendor = json.loads(small.installation.command("funnel", "c", "--kpis", "capillary", "--format", "json").stdout)["vendor_kpis"]
    assert vendor["Contacted Customer"]["value"] == 0.5
    small.installation.configure(counters={"groups": None})
    without = json.loads(small.installation.command("funnel", "c", "--format", "json").stdout)
    assert "customers" not in without["statuses"][0] and not any("customers" in name for name in without["kpis"])
    vendor = json.loads(small.installation.command("funnel", "c", "--kpis", "capillary", "--format", "json").stdout)["vendor_kpis"]
    assert "counters.groups" in vendor["Contacted Customer"]["missing"]


def test_readers_see_customers_and_logical_messages_as_the_last_roll_up_left_them(small):
    """By the statement of serve, and the view for the platform."""
    said = json.loads(small.installation.command("funnel", "c", "--format", "json").stdout)
    process = small.installation.start()
    small.wait(lambda: small.database.value("SELECT count(*) FROM receiptd.group_delta") == 0, process, 60, "all is folded")
    process.stop()
    text = "PREPARE shown AS " + (ROOT / "sql/serve/funnel.sql").read_text().replace(":'many'", "'one'")
    with psycopg.connect(small.database.dsn, autocommit=True) as connection:
        connection.execute("SET search_path = receiptd")
        connection.execute(text)
        body, _ = connection.execute("EXECUTE shown (NULL, 'c', NULL, NULL, NULL, NULL)").fetchone()
        rates = dict(connection.execute("SELECT kpi, (numerator, denominator)::text FROM campaign_kpi WHERE campaign_id = 'c' AND kpi ~ 'customers'").fetchall())
        for table in ("campaign_tally_total", "counter_delta"):
            connection.execute(f"DELETE FROM {table} WHERE kind IN ('customer', 'logical')")
        without, _ = connection.execute("EXECUTE shown (NULL, 'c', NULL, NULL, NULL, NULL)").fetchone()
        assert connection.execute("SELECT FROM campaign_kpi WHERE kpi ~ 'customers'").fetchall() == []
    shown, without = json.loads(body), json.loads(without)
    for row in said["statuses"] + said["flags"]:
        (found,) = (s for s in shown["statuses"] + shown["flags"] if s["name"] == row["name"])
        assert (found["customers"], found["logical"]) == (row["customers"], row["logical"])
    assert rates == {name: f"({rate['numerator']},{rate['denominator']})" for name, rate in said["kpis"].items() if "customers" in name}
    assert {rate["name"]: rate["value"] for rate in shown["rates"] if "customers" in rate["name"]} == {
        name: rate["value"] for name, rate in said["kpis"].items() if "customers" in name}
    assert {(s["customers"], s["logical"]) for s in without["statuses"]} == {(None, None)}
    assert not any("customers" in rate["name"] for rate in without["rates"])


def test_explain_says_where_the_other_attempts_stand(small):
    process = small.installation.start()
    small.wait(lambda: small.database.value("SELECT count(*) FROM receiptd.group_delta") == 0, process, 60, "all is folded")
    process.stop()
    said = json.loads(small.installation.command("explain", "a1", "--format", "json").stdout)["groups"]
    assert said == [{"kind": "customer", "status": "DELIVERED", "statuses": "FAILED 1, DELIVERED 1"},
                    {"kind": "logical", "status": "DELIVERED", "statuses": "FAILED 1, DELIVERED 1"}]
    assert "logical       DELIVERED (FAILED 1, DELIVERED 1)" in small.installation.command("explain", "a2").stdout


def audit(world, *arguments):
    done = world.installation.command("audit", "--format", "json", *arguments, check=False)
    return done.returncode, {(cell["name"], cell["drift"]) for cell in json.loads(done.stdout)["drift"]}


def test_audit_finds_and_repairs_a_customer_that_was_changed_also_with_changes_that_wait(small):
    assert audit(small) == (0, set())
    small.database.execute("INSERT INTO receiptd.message_inbox (message_id, campaign_id, customer_id) VALUES ('d1', 'c', 'dora')")
    small.database.execute("SET session_replication_role = replica; UPDATE receiptd.message_inbox SET customer_id = 'anna' WHERE message_id = 'b1'")
    off = {("TARGETED, all by customer", 1), ("IN_GTW, all by customer", 1)}
    assert audit(small) == (1, off)
    code, found = audit(small, "--repair")
    assert (code, found) == (0, off) and audit(small) == (0, set())
    process = small.installation.start()
    send(small, process, [{"message_id": id, "status": "OPENED", "at": 1_790_000_000_000} for id in ("b1", "d1")])
    process.stop()
    assert audit(small) == (0, set()) and counted(small, "customer")["c", 700] == 2


def test_a_kind_that_comes_later_is_noted_and_counted_by_repair(create_world):
    world = create_world()
    world.database.execute("ALTER TABLE receiptd.message_inbox ADD COLUMN customer_id text, ADD COLUMN logical_id text")
    insert(world, people(20))
    world.installation.configure(counters=BOTH)
    world.installation.migrate()
    assert audit(world) == (0, set())
    assert audit(world, "--repair")[0] == 0
    for kind in BOTH["groups"]:
        assert counted(world, kind) == expected(people(20), rows_of(world), kind)


def test_an_erasure_takes_the_group_of_the_customer_and_no_counter(small):
    before = counted(small, "customer")
    small.installation.command("erase", "--customer", "anna")
    assert small.database.value("SELECT count(*) FROM receiptd.group_delta") == 0
    assert small.database.value("SELECT count(*) FROM receiptd.message_group WHERE kind = 'customer'") == 1 and counted(small, "customer") == before
    assert audit(small) == (0, set())


def test_retention_drops_the_groups_of_a_campaign_when_its_last_message_has_gone(small):
    before = counted(small, "customer")
    small.database.execute("DELETE FROM receiptd.message_inbox WHERE message_id <> 'x'")
    process = small.installation.start()
    small.wait(lambda: small.database.value("SELECT count(*) FROM receiptd.group_delta") == 0, process, 60, "all is folded")
    process.stop()
    small.installation.command("retire")
    assert small.database.value("SELECT count(*) FROM receiptd.message_group") > 0
    small.database.execute("DELETE FROM receiptd.message_inbox")
    small.installation.command("retire")
    assert small.database.value("SELECT count(*) FROM receiptd.message_group") == 0 and counted(small, "customer") == before


@pytest.mark.parametrize("counters", (BOTH, {**BOTH, "by": ["variant"]}))  # an expiry binds the names of both
def test_a_table_of_the_platform_names_its_columns_and_an_expiry_counts_as_well(create_world, counters):
    columns = {"customer_id": "person", "logical_id": "first", "variant": "cell"}
    world = create_world(migrate=False, counters=counters, inbox={"table": "public.messages", "columns": columns, "expiry": [{"after": "1ms"}]})
    world.database.execute("CREATE TABLE public.messages (message_id text PRIMARY KEY, org_id text, campaign_id text, person bigint, first varchar(20), cell text)")
    world.installation.migrate()
    assert world.installation.command("migrate").stdout == "nothing to do\n"
    messages = {f"m{n}": ("c", n // 3, f"m{n - 1}" if n % 3 == 1 else None) for n in range(30)}
    insert(world, messages, "public.messages", "person, first")
    process = world.installation.start()
    send(world, process, [{"message_id": id, "status": "SENT", "at": 1_790_000_000_000} for id in list(messages)[:15]])
    world.installation.command("expire")
    named = {id: (campaign, str(person), first) for id, (campaign, person, first) in messages.items()}
    for kind in BOTH["groups"]:
        assert counted(world, kind) == expected(named, rows_of(world, "receiptd.message_inbox"), kind)
    assert counted(world, "customer")["c", 400] == 5 and audit(world) == (0, set())
    process.stop()


@pytest.mark.parametrize("groups, inbox, says", (
    (["person"], {}, "counters.groups: each entry is one of customer, logical"),
    (["logical", "logical"], {}, "counters.groups names logical twice"),
    (["customer"], {"targeted": "none"}, "counters.groups needs inbox.targeted: trigger"),
    (["customer"], {"table": "public.messages"}, "counters.groups needs to know the column of inbox.table: set inbox.columns.customer_id")))
def test_a_configuration_that_cannot_be_counted_is_refused(create_world, groups, inbox, says):
    world = create_world(migrate=False, counters={"groups": groups}, inbox=inbox)
    refused = world.installation.command("check-config", check=False)
    assert refused.returncode == 78 and says in refused.stderr
