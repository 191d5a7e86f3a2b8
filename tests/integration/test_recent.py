"""The recent set of the inbox while the daemon runs: it follows the boundary between batches, and the ledger is exact whatever happens to it."""

import hashlib
import itertools
import time

import psycopg
import pytest

from oracle.compare import Inbox
from support.operations import Operations
from support.wait import wait_for

NUMBERS = itertools.count(1)


def move(world, since, table="receiptd.message_inbox", column="created_at", key="message_id"):
    """As `receiptd maintain` does it: the next index, the boundary, then the old index goes."""
    schema, name = table.split(".")[0], f"message_inbox_recent_by_hand_{next(NUMBERS)}"
    old = world.database.query("SELECT index_schema, index_name FROM receiptd.inbox_recent")
    world.database.execute(f"CREATE UNIQUE INDEX CONCURRENTLY {name} ON {table} ({key}) WHERE {column} >= '{since}'")
    world.database.execute("INSERT INTO receiptd.inbox_recent (since, index_schema, index_name) VALUES (%s, %s, %s) ON CONFLICT (one) DO UPDATE"
                           " SET since = EXCLUDED.since, index_schema = EXCLUDED.index_schema, index_name = EXCLUDED.index_name", since, schema, name)
    for (one, index) in old:
        world.database.execute(f"DROP INDEX CONCURRENTLY {one}.{index}")
    return name


def spread_ages(world, table="receiptd.message_inbox", column="created_at"):
    world.database.execute(f"UPDATE {table} SET {column} = '2026-01-01'::timestamptz + (abs(hashtext(ctid::text)) % 1000) * interval '1 hour'")


def follows(world, process, since, timeout=60):
    process.wait_for_log(rf"recent set of the inbox: messages since {since}", timeout)


def scans(world, index):
    world.database.execute("SELECT pg_stat_clear_snapshot()")
    return world.database.value("SELECT COALESCE(sum(idx_scan), 0)::int FROM pg_stat_user_indexes WHERE indexrelname = %s", index)


def test_the_daemon_follows_the_boundary_between_batches_without_an_error(create_world):
    world = create_world(60_000, seed=51, batch={"max_events": 500}, traffic={"late": 0.1, "ghost": 0.02})
    spread_ages(world)
    process = world.installation.start()
    world.feed(per_second=2_500)
    first = move(world, "2026-01-15 00:00:00+00")
    follows(world, process, "2026-01-15 00:00:00\\+00 \\(before: never\\)")
    world.insert(world.stream.late)
    world.wait(lambda: scans(world, first) > 0, process, 60, "the index of the recent set is used")
    second = move(world, "2026-01-25 00:00:00+00")
    follows(world, process, "2026-01-25 00:00:00\\+00 \\(before: 2026-01-15 00:00:00\\+00\\)")
    world.wait(lambda: scans(world, second) > 0, process, 60, "the index of the recent set is used")
    world.database.execute(f"DROP INDEX receiptd.{second}")  # by hand: then there is no recent set
    follows(world, process, "never \\(before: 2026-01-25")
    world.feeder.join()
    world.finish(process, timeout=120)
    process.stop()
    assert not [line for line in process.log().splitlines() if "WARN" in line or "ERROR" in line]


@pytest.mark.slow
def test_kill_9_while_the_boundary_moves_is_exact(create_world):
    world = create_world(120_000, seed=52, kafka={"instance_id": "moving"}, batch={"max_events": 500}, traffic={"late": 0.2, "ghost": 0.02})
    spread_ages(world)
    world.feed(per_second=6_000)
    process, late = world.installation.start("0"), list(world.stream.late.items())
    for turn in range(8):
        world.insert(dict(late[turn * len(late) // 8:(turn + 1) * len(late) // 8]))
        move(world, f"2026-01-{3 * turn + 1:02} 12:00:00+00")
        time.sleep(world.random.uniform(0, 6))
        if turn % 2:
            process.kill()
            process = world.installation.start(str(turn))
    world.feeder.join()
    world.finish(process, timeout=120)
    process.stop()


def test_an_inbox_without_created_at_has_no_recent_set(create_world):
    """As after another mapping: the statement would not be accepted, so the boundary counts no longer."""
    world = create_world(2_000, seed=53)
    move(world, "2026-01-15 00:00:00+00")
    world.database.execute("ALTER TABLE receiptd.message_inbox RENAME COLUMN created_at TO made_at")
    process = world.installation.start()
    world.produce()
    world.insert(world.stream.late)
    world.finish(process)
    process.stop()
    assert "recent set of the inbox" not in process.log()


# ---- receiptd maintain

ROWS = 6000


def fill(database, count=ROWS, table="receiptd.message_inbox", ids="gen_random_uuid()::text", columns="message_id, org_id, campaign_id, created_at"):
    database.execute(f"INSERT INTO {table} ({columns}) SELECT {ids}, 'o', 'c', '2026-01-01'::timestamptz + i * interval '1 minute'"
                     f" FROM generate_series((SELECT count(*) FROM {table}) + 1, (SELECT count(*) FROM {table}) + {count}) i")


def recent_index(number, schema="receiptd"):
    """The name of an index that `receiptd maintain` makes: it says whose it is."""
    return f"message_inbox_recent_{hashlib.sha256(schema.encode()).hexdigest()[:8]}_{number}"


def maintain(receiptd):
    return receiptd.command("maintain").stdout


def layout(said):
    """The line that says how batches find their messages."""
    (line,) = [line for line in said.splitlines() if line.startswith("inbox ")]
    return line


def recent_set(database):
    """(since, rows in it) of each index that is there and finished, and of the one that is in use."""
    made = database.query("SELECT c.relname FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid WHERE c.relname LIKE 'message_inbox_recent_%'")
    return [name for (name,) in made], database.query("SELECT index_name FROM receiptd.inbox_recent")


@pytest.fixture
def installed(receiptd, database):
    receiptd.configure(inbox={"recent_rows": 1000})
    receiptd.migrate()
    return receiptd


def test_maintain_makes_the_set_and_makes_it_anew_when_it_has_grown_by_a_quarter(installed, database):
    fill(database, 1500)
    assert "too few for a recent set" in maintain(installed) and recent_set(database) == ([], [])
    fill(database)
    assert all("run receiptd maintain" in installed.command(*command).stdout for command in (["check-config", "--connect"], ["migrate"]))
    assert f"making index {recent_index(1)} " in maintain(installed)
    assert recent_set(database) == ([recent_index(1)], [(recent_index(1),)])
    newer = "SELECT count(*) FROM receiptd.message_inbox WHERE created_at >= (SELECT since FROM receiptd.inbox_recent)"
    assert database.value(newer) == 1000
    assert "about 1000 of 7500" in installed.command("check-config", "--connect").stdout
    fill(database, 200)
    assert "small enough" in maintain(installed)
    fill(database, 100)
    assert f"dropped index {recent_index(1)}\n" in maintain(installed)
    assert recent_set(database) == ([recent_index(2)], [(recent_index(2),)]) and database.value(newer) == 1000
    installed.configure(inbox={"recent_rows": 0})
    assert "needed no longer" in maintain(installed) and recent_set(database) == ([], [])


@pytest.mark.parametrize("ids, kind", [
    ("lpad(to_hex(1700000000000 + i), 12, '0') || '-7abc-8def-' || substr(md5(i::text), 1, 12)", ""),
    ("overlay(lpad(to_hex(1700000000000 + i), 12, '0') placing '-' from 9 for 0) || '-7abc-8def-' || substr(md5(i::text), 1, 12)", " (UUIDv7)"),
    ("'01HF7YAT0' || lpad(i::text, 7, '0') || upper(translate(substr(md5(i::text), 1, 10), 'abcdef', 'ABCDEF'))", " (ULID)"),
    ("(7000000000000000000 + i * 4194304)::text", " (snowflake)"),
    ("'2Yb' || lpad(i::text, 8, '0') || substr(md5(i::text), 1, 16)", " (KSUID)"),
])
def test_ids_in_the_order_of_time_are_recognised_and_need_no_set(installed, database, ids, kind):
    fill(database, ids=ids)
    said = maintain(installed)
    assert f"ids in the order of time{kind}:" in said and recent_set(database) == ([], [])
    assert layout(said) == layout(installed.command("check-config", "--connect").stdout)


def test_messages_of_one_time_have_no_boundary(installed, database):
    """As right after the upgrade that adds created_at."""
    fill(database)
    database.execute("UPDATE receiptd.message_inbox SET created_at = '2026-01-01'")
    assert "have the same created_at" in maintain(installed) and recent_set(database) == ([], [])
    database.execute("UPDATE receiptd.message_inbox SET created_at = '2026-02-01' WHERE message_id < '1'")
    maintain(installed)
    assert database.value("SELECT since FROM receiptd.inbox_recent").month == 2


def test_while_it_waits_for_a_transaction_it_says_for_whose(installed, database):
    fill(database)
    with psycopg.connect(database.dsn, application_name="nightly report") as holder:
        holder.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        (pid, _), = holder.execute("SELECT pg_backend_pid(), count(*) FROM receiptd.message_inbox WHERE message_id <> 'a secret'").fetchall()
        process = installed.start("maintain", command="maintain")
        process.wait_for_log(rf"waiting for backend {pid} \(user \w+, application nightly report\), idle in transaction, transaction open for \d+ s,"
                             r" last query begun at 20\d\d-\S+Z: it must end first")
    assert process.wait(60) == 0
    assert "secret" not in process.log() and process.log().count("waiting for backend") == 1
    assert recent_set(database) == ([recent_index(1)], [(recent_index(1),)])


def test_a_run_that_was_killed_is_mended_by_the_next(installed, database):
    fill(database)
    with database.connect() as holder:  # CREATE INDEX CONCURRENTLY waits for it
        holder.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        holder.execute("SELECT count(*) FROM receiptd.message_inbox")
        process = installed.start("maintain", command="maintain")
        wait_for(lambda: database.value("SELECT count(*) FROM pg_index WHERE NOT indisvalid") == 1, 60, "an index that is not finished")
        assert "another run" in maintain(installed)
        process.kill()
        database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'receiptd/maintain' AND datname = current_database()")
        wait_for(lambda: database.value("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'receiptd/maintain'"
                                        " AND datname = current_database()") == 0, 60, "the session is gone")
        assert recent_set(database) == ([recent_index(1)], [])
    said = maintain(installed)
    assert f"dropped index {recent_index(1)}\n" in said
    assert recent_set(database) == ([recent_index(2)], [(recent_index(2),)])


def test_a_mapped_table_gets_its_set_in_the_form_of_its_key(receiptd, database):
    """The key is a uuid: the statements see it as text, and so does the index."""
    database.execute("CREATE SCHEMA app; CREATE TABLE app.sent (id uuid PRIMARY KEY, org text, camp text, sent_at timestamptz);"
                     "CREATE UNIQUE INDEX ON app.sent ((id::text))")
    receiptd.configure(inbox={"table": "app.sent", "recent_rows": 1000,
                              "columns": {"message_id": "id", "org_id": "org", "campaign_id": "camp", "created_at": "sent_at"}})
    receiptd.migrate()
    fill(database, table="app.sent", ids="gen_random_uuid()", columns="id, org, camp, sent_at")
    database.execute("UPDATE app.sent SET sent_at = NULL WHERE id::text < '1'; ANALYZE app.sent")
    maintain(receiptd)
    assert database.query("SELECT index_schema FROM receiptd.inbox_recent") == [("app",)]
    since = database.value("SELECT since FROM receiptd.inbox_recent")
    plan = database.query("EXPLAIN SELECT 1 FROM receiptd.message_inbox m WHERE m.message_id = '5' AND m.created_at >= %s", since)
    assert recent_index(1) in str(plan)


def test_two_schemas_on_one_table_keep_their_own_sets(receiptd, database):
    """Each drops its own older indexes alone."""
    database.execute("CREATE SCHEMA app; CREATE TABLE app.sent (id text COLLATE \"C\" PRIMARY KEY, org text, camp text, sent_at timestamptz)")
    inbox = {"table": "app.sent", "columns": {"message_id": "id", "org_id": "org", "campaign_id": "camp", "created_at": "sent_at"}}
    made = "SELECT relname FROM pg_class WHERE relname LIKE 'message_inbox_recent_%' ORDER BY relname"
    fill(database, table="app.sent", columns="id, org, camp, sent_at")
    schemas = {"receiptd": 1000, "second": 2000}
    for turn in (1, 2):
        for schema, rows in schemas.items():
            receiptd.configure(inbox=inbox | {"recent_rows": rows}, postgres={"schema": schema})
            receiptd.migrate()
            maintain(receiptd)
            assert database.query(f"SELECT index_name FROM {schema}.inbox_recent") == [(recent_index(turn, schema),)]
        assert database.query(made) == sorted((recent_index(turn, schema),) for schema in schemas)
        fill(database, 1000, table="app.sent", columns="id, org, camp, sent_at")


def test_a_table_without_created_at_says_what_it_lacks(receiptd, database):
    database.execute("CREATE SCHEMA app; CREATE TABLE app.flat (id text PRIMARY KEY, org text, camp text)")
    receiptd.configure(inbox={"table": "app.flat", "columns": {"message_id": "id", "org_id": "org", "campaign_id": "camp"}})
    receiptd.migrate()
    assert "too few for a recent set" in receiptd.command("check-config", "--connect").stdout
    receiptd.configure(inbox={"table": "app.flat", "recent_rows": 1000, "columns": {"message_id": "id", "org_id": "org", "campaign_id": "camp"}})
    database.execute("INSERT INTO app.flat SELECT gen_random_uuid(), 'o', 'c' FROM generate_series(1, 6000)")
    assert "set inbox.columns.created_at" in layout(receiptd.command("check-config", "--connect").stdout)
    assert "set inbox.columns.created_at" in maintain(receiptd) and recent_set(database) == ([], [])


def test_a_daemon_follows_what_maintain_makes(create_world):
    world = create_world(20_000, seed=54, inbox={"recent_rows": 1000})
    spread_ages(world)
    process = world.installation.start()
    maintain(world.installation)
    name = world.database.value("SELECT index_name FROM receiptd.inbox_recent")
    follows(world, process, r"2026-")
    world.produce()
    world.insert(world.stream.late)
    world.wait(lambda: scans(world, name) > 0, process, 60, "the index of the recent set is used")
    world.finish(process)
    process.stop()


def test_an_inbox_in_partitions_that_an_id_does_not_lead_to_is_named_with_what_it_costs(installed, database):
    database.execute("""DROP TABLE receiptd.message_inbox;
        CREATE TABLE receiptd.message_inbox (message_id text COLLATE "C", org_id text COLLATE "C", campaign_id text COLLATE "C", status smallint NOT NULL DEFAULT 0,
            prev_status smallint, flags integer NOT NULL DEFAULT 0, prev_flags integer, status_at timestamptz, updated_at timestamptz,
            created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (message_id, campaign_id)) PARTITION BY LIST (campaign_id);
        CREATE TABLE receiptd.a PARTITION OF receiptd.message_inbox FOR VALUES IN ('a');
        CREATE TABLE receiptd.b PARTITION OF receiptd.message_inbox FOR VALUES IN ('b')""")
    said = maintain(installed)
    assert "LIST (campaign_id), which does not follow from a message's id: each receipt is looked up in all 2 partitions" in said
    assert recent_set(database) == ([], [])
    database.execute("""DROP TABLE receiptd.message_inbox;
        CREATE TABLE receiptd.message_inbox (message_id text COLLATE "C" PRIMARY KEY, org_id text COLLATE "C", campaign_id text COLLATE "C",
            status smallint NOT NULL DEFAULT 0, prev_status smallint, flags integer NOT NULL DEFAULT 0, prev_flags integer, status_at timestamptz,
            updated_at timestamptz, created_at timestamptz NOT NULL DEFAULT now()) PARTITION BY HASH (message_id)""")
    assert "partitioned by HASH (message_id): a message's id leads to its partition, and together they cost" in maintain(installed)


# ---- a table that is partitioned by the time of its messages

SENT = Inbox("app.sent", "id", "org", "camp", "status", "flags")
IN_DAYS = {"table": "app.sent", "columns": {"message_id": "id", "org_id": "org", "campaign_id": "camp", "created_at": "sent_at"}}


def make_days(database, key="text COLLATE \"C\""):
    """Ten days of another zone than the session's, the last ones made ahead, and a default partition."""
    database.execute(f"CREATE SCHEMA app; CREATE TABLE app.sent (id {key}, org text, camp text, sent_at timestamptz, PRIMARY KEY (id, sent_at)) PARTITION BY RANGE (sent_at);"
                     "CREATE TABLE app.other PARTITION OF app.sent DEFAULT;" + "".join(
                         f"CREATE TABLE app.d{n:02} PARTITION OF app.sent FOR VALUES FROM ('2026-01-{n:02} 00:00+01') TO ('2026-01-{n + 1:02} 00:00+01');"
                         for n in range(1, 11)))


def fill_day(database, day, count):
    database.execute(f"INSERT INTO app.sent (id, org, camp, sent_at) SELECT 'd{day}-' || gen_random_uuid(), 'o', 'c', '2026-01-{day:02} 12:00+01'"
                     f" FROM generate_series(1, {count}); ANALYZE app.sent")


def boundary(database):
    database.execute("SET timezone = 'Europe/Paris'")
    return [str(since) for (since,) in database.query("SELECT since FROM receiptd.inbox_recent")]


def test_the_newest_partitions_that_have_enough_messages_are_the_recent_set(receiptd, database):
    make_days(database)
    receiptd.configure(inbox=IN_DAYS | {"recent_rows": 500})
    receiptd.migrate()
    assert "all 11 partitions; run receiptd maintain" in maintain(receiptd) and boundary(database) == []  # nothing is in it yet
    for day in range(1, 9):
        fill_day(database, day, 800)
    assert "of 6400 messages in partitions, the newest are in 1, the others in 7" in maintain(receiptd)
    assert boundary(database) == ["2026-01-08 00:00:00+01:00"]
    fill_day(database, 9, 100)
    assert "batches look in the partitions of messages since 2026-01-0" in maintain(receiptd) and boundary(database) == ["2026-01-08 00:00:00+01:00"]
    fill_day(database, 9, 500)
    maintain(receiptd)
    assert boundary(database) == ["2026-01-09 00:00:00+01:00"] and recent_set(database)[0] == []
    assert layout(receiptd.command("check-config", "--connect").stdout) == layout(maintain(receiptd))
    database.execute("ALTER TABLE app.sent DETACH PARTITION app.d08; DROP TABLE app.d09; ANALYZE app.sent")
    maintain(receiptd)
    assert boundary(database) == ["2026-01-07 00:00:00+01:00"]
    receiptd.configure(inbox=IN_DAYS | {"recent_rows": 0})
    assert "needed no longer" in maintain(receiptd) and boundary(database) == []


def test_small_partitions_are_parted_too_for_their_number_costs(receiptd, database):
    make_days(database)
    receiptd.configure(inbox=IN_DAYS)
    receiptd.migrate()
    for day in range(1, 9):
        fill_day(database, day, 50)
    maintain(receiptd)
    assert boundary(database) == ["2026-01-08 00:00:00+01:00"]


def test_a_table_in_partitions_by_time_needs_a_unique_index_with_the_time(receiptd, database):
    """And one by which the text of the id is found, where it is no text."""
    make_days(database, key="uuid")
    receiptd.configure(inbox=IN_DAYS)
    refused = receiptd.command("migrate", check=False)
    assert "no index that finds id (uuid) by its text" in refused.stderr
    database.execute("CREATE INDEX ON app.sent ((id::text)); ALTER TABLE app.sent DROP CONSTRAINT sent_pkey")
    assert "CREATE UNIQUE INDEX ON app.sent (id, sent_at)" in receiptd.command("migrate", check=False).stderr
    database.execute("CREATE UNIQUE INDEX ON app.sent (id, sent_at)")
    receiptd.migrate()


def test_two_daemons_follow_the_partitions_and_count_everything_once(create_world):
    """The boundary moves while they work, over messages of all days."""
    world = create_world(20_000, seed=55, migrate=False, batch={"max_events": 500}, traffic={"late": 0.2, "ghost": 0.02}, inbox=IN_DAYS | {"recent_rows": 1000})
    make_days(world.database)
    world.database.execute("ALTER TABLE app.sent ALTER sent_at SET DEFAULT '2026-01-01'::timestamptz + random() * interval '12 days'")
    world.inbox = SENT
    world.installation.migrate()
    world.insert(world.stream.early)
    processes = [world.installation.start(name) for name in ("0", "1")]
    world.feed(per_second=1_500)
    late = list(world.stream.late.items())
    for turn, rows in enumerate((100, 6000, 100)):
        world.insert(dict(late[turn * len(late) // 3:(turn + 1) * len(late) // 3]))
        world.database.execute("ANALYZE app.sent")
        before = boundary(world.database)
        world.installation.configure(inbox={"recent_rows": rows})
        maintain(world.installation)
        assert boundary(world.database) != before
        time.sleep(4)
    world.feeder.join()
    world.finish(processes[0], timeout=120)
    for process in processes:
        process.stop()
    assert any("recent set of the inbox: messages since 2026-01" in process.log() for process in processes)


# ---- a table that is partitioned by ranges of the message's id

BY_ID = {"table": "app.sent", "columns": {"message_id": "id", "org_id": "org", "campaign_id": "camp"}}


def make_ranges(database, type, bounds):
    """The first without a lower bound, the last ones made ahead, and a default partition."""
    bounds = ["MINVALUE", *(f"'{bound}'" for bound in bounds)]
    database.execute(f"CREATE SCHEMA app; CREATE TABLE app.sent (id {type} PRIMARY KEY, org text, camp text) PARTITION BY RANGE (id); CREATE TABLE app.other PARTITION OF app.sent DEFAULT;"
                     + "".join(f"CREATE TABLE app.r{n:02} PARTITION OF app.sent FOR VALUES FROM ({low}) TO ({high});" for n, (low, high) in enumerate(zip(bounds, bounds[1:]))))


def fill_range(database, ids, count):
    database.execute(f"INSERT INTO app.sent (id, org, camp) SELECT {ids}, 'o', 'c' FROM generate_series(1, {count}) i; ANALYZE app.sent")


def first_id(database):
    return [id for (id,) in database.query("SELECT first_id FROM receiptd.inbox_recent WHERE since IS NULL")]


def uuid_of(day):
    """The lowest UUIDv7 of a day, without the two last groups."""
    digits = f"{1_767_225_600_000 + 86_400_000 * day:012x}"
    return f"{digits[:8]}-{digits[8:]}-7000"


def test_the_newest_ranges_of_uuids_are_the_recent_set(receiptd, database):
    """The key is a uuid: receipts bring a text, so no partition is left out of a batch's plan without the set."""
    make_ranges(database, "uuid", [f"{uuid_of(day)}-8000-000000000000" for day in range(1, 13)])
    database.execute("CREATE INDEX ON app.sent ((id::text))")
    receiptd.configure(inbox=BY_ID | {"recent_rows": 500})
    for command in (["migrate"], ["check-config", "--connect"]):
        refused = receiptd.command(*command, check=False)
        assert "app.sent is partitioned by RANGE (id), but receipts bring the id as a text, and its column has another type: each receipt would be looked up in all 13" in refused.stderr
        assert "say so in inbox.ids" in refused.stderr
    receiptd.configure(inbox=BY_ID | {"recent_rows": 500, "ids": "uuidv7"})
    receiptd.migrate()
    assert "no recent set: each receipt is looked up in all 13 partitions; run receiptd maintain" in maintain(receiptd) and first_id(database) == []
    for day in range(9):
        fill_range(database, f"('{uuid_of(day)}-8000-' || lpad(i::text, 12, '0'))::uuid", 800)
    said = maintain(receiptd)
    assert "of 7200 messages in partitions, the newest are in 1, the others in 8" in said and f"messages since {uuid_of(8)}-8000-000000000000 first" in said
    assert first_id(database) == [f"{uuid_of(8)}-8000-000000000000"]
    plan = str(database.query(f"EXPLAIN SELECT 1 FROM receiptd.message_inbox m WHERE m.message_id = 'x' AND m.message_key >= ALL ('{{{first_id(database)[0]}}}')"))
    assert "r08" in plan and "r12" not in plan and "r07" not in plan
    fill_range(database, f"('{uuid_of(9)}-8000-' || lpad(i::text, 12, '0'))::uuid", 600)
    assert f"look in the partitions of messages since {uuid_of(8)}" in maintain(receiptd)
    assert first_id(database) == [f"{uuid_of(9)}-8000-000000000000"]
    assert layout(receiptd.command("check-config", "--connect").stdout) == layout(maintain(receiptd))
    receiptd.configure(inbox=BY_ID | {"recent_rows": 0, "ids": "uuidv7", "probe_partitions": 100})
    assert "needed no longer" in maintain(receiptd) and first_id(database) == []


def test_ranges_of_bigints_are_in_the_order_of_numbers(receiptd, database):
    make_ranges(database, "bigint", [900, 1000, 11000, 12000])
    database.execute("CREATE INDEX ON app.sent ((id::text))")
    receiptd.configure(inbox=BY_ID | {"recent_rows": 500, "ids": "snowflake"})
    receiptd.migrate()
    fill_range(database, "i", 1900)
    fill_range(database, "11000 + i", 600)
    maintain(receiptd)
    assert first_id(database) == ["11000"]


def test_ranges_of_texts_lead_to_the_partition_and_have_a_set_where_they_are_in_the_order_of_time(receiptd, database):
    make_ranges(database, 'text COLLATE "C"', [f"m{n:02}" for n in range(1, 70)])
    receiptd.configure(inbox=BY_ID | {"recent_rows": 500})
    receiptd.migrate()
    for n in range(9):
        fill_range(database, f"'m{n:02}' || i", 300)
    assert "a message's id leads to its partition, 70 of them: above 30" in layout(maintain(receiptd)) and first_id(database) == []
    receiptd.configure(inbox=BY_ID | {"recent_rows": 500, "ids": "ksuid"})
    assert "run receiptd maintain, which makes a recent set" in layout(receiptd.command("check-config", "--connect").stdout)
    maintain(receiptd)
    assert first_id(database) == ["m07"]
    database.execute("".join(f"DROP TABLE app.r{n};" for n in range(59, 69)))  # with so few the second stage costs more
    assert "longer spans make fewer" in layout(maintain(receiptd)) and first_id(database) == []


def test_two_daemons_follow_the_ranges_and_count_everything_once(create_world):
    """The boundary moves while they work, over messages of all ranges and of none, unknown ones and repeated receipts."""
    world = create_world(20_000, seed=57, migrate=False, batch={"max_events": 500}, traffic={"late": 0.2, "ghost": 0.02}, inbox=BY_ID | {"recent_rows": 1000, "ids": "snowflake"})
    world.inbox = Inbox("app.sent", "id", "org", "camp", "status", "flags")
    count = len(world.stream.early) + len(world.stream.late)
    make_ranges(world.database, 'text COLLATE "C"', [*(f"m-{count * n // 10:07}" for n in range(1, 10)), *(f"z{n:02}" for n in range(60))])
    world.installation.migrate()
    world.insert(world.stream.early)
    processes = [world.installation.start(name) for name in ("0", "1")]
    world.feed(per_second=1_500)
    late = list(world.stream.late.items())
    for turn, rows in enumerate((100, 6000, 100)):
        world.insert(dict(late[turn * len(late) // 3:(turn + 1) * len(late) // 3]))
        world.database.execute("ANALYZE app.sent")
        before = first_id(world.database)
        world.installation.configure(inbox={"recent_rows": rows})
        maintain(world.installation)
        assert first_id(world.database) != before
        time.sleep(4)
    world.feeder.join()
    world.finish(processes[0], timeout=120)
    for process in processes:
        process.stop()
    assert any("recent set of the inbox: messages since m-" in process.log() for process in processes)


# ---- what is said of a layout

def test_ids_that_nothing_shows_the_order_of_are_in_that_of_the_configuration(receiptd, database):
    """Without created_at a sample shows UUIDv7 and ULID by their form; of others inbox.ids says it."""
    database.execute("CREATE SCHEMA app; CREATE TABLE app.flat (id text PRIMARY KEY, org text, camp text)")
    inbox = {"table": "app.flat", "recent_rows": 1000, "columns": {"message_id": "id", "org_id": "org", "campaign_id": "camp"}}
    receiptd.configure(inbox=inbox | {"ids": "snowflake"})
    assert "ids in the order of time (snowflake)" in layout(receiptd.command("migrate").stdout)
    for ids, kind in (("'017f22e2-79b0-7cc3-98c4-' || lpad(i::text, 12, '0')", "UUIDv7"), ("(7000000000000000000 + i::int8 * 4194304)::text", "snowflake")):
        database.execute(f"TRUNCATE app.flat; INSERT INTO app.flat SELECT {ids}, 'o', 'c' FROM generate_series(1, 6000) i")
        assert f"ids in the order of time ({kind}): " in layout(receiptd.command("check-config", "--connect").stdout)
    receiptd.configure(inbox=inbox | {"ids": "any"})
    assert "ids in no order of time" in layout(receiptd.command("check-config", "--connect").stdout)


def test_a_first_migration_says_which_way_batches_take(receiptd):
    assert "found by their key: too few for a recent set" in layout(receiptd.command("migrate").stdout)
    receiptd.configure(inbox={"partitions": "own", "ids": "snowflake"})
    refused = receiptd.command("check-config", check=False)
    assert refused.returncode == 78 and "only while they have the same number of digits" in refused.stderr
