"""`receiptd migrate --role`: the daemon does all of its work as a role that can do nothing else."""

import json

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from oracle.compare import Inbox
from support import publications
from support.receiver import Receiver
from support.services import definers
from support.wait import wait_for

SCHEMA = "receiptd"
READ = {"SELECT"}
EXPECTED = {
    "counter_delta": READ | {"INSERT", "DELETE"},
    "campaign_changed": READ | {"INSERT", "UPDATE"},
    "campaign_funnel_total": READ | {"INSERT", "UPDATE"},
    "consumer_topic": READ | {"INSERT", "UPDATE"},
    "consumer_progress": READ | {"INSERT", "UPDATE"},
    "parked_event": READ | {"INSERT", "DELETE"},
    "dead_letter": READ | {"INSERT", "DELETE"},
    "message_timeline": READ | {"INSERT", "DELETE"},
    "campaign_retired": READ | {"INSERT"},
    "retired_message": READ | {"DELETE"},
    "campaign_tally_total": READ | {"INSERT", "UPDATE", "DELETE"},
    "instance_status": READ | {"INSERT", "UPDATE", "DELETE"},
    "receipt_counted": READ | {"INSERT", "DELETE"},
    "receipt_counted_other": READ | {"DELETE"},
}
NEVER_WRITTEN = ("message_inbox", "message_alias", "message_status_priority", "status_path", "path_delta", "status_override",
                 "status_ladder", "schema_version", "inbox_detached")
EXPECTED_COLUMNS = {
    *(("message_inbox", column, "INSERT") for column in ("message_id", "org_id", "campaign_id")),
    *(("message_inbox", column, "UPDATE")
      for column in ("status", "prev_status", "flags", "prev_flags", "status_at", "updated_at")),
}
TIMES = {("message_inbox", column, "UPDATE")
         for column in ("first_sent_at", "first_delivered_at", "first_opened_at", "first_clicked_at", "first_gateway", "prev_times")}
# What somebody with the daemon's password might try: each must be refused.
FORBIDDEN = [
    "DELETE FROM receiptd.message_inbox",
    "UPDATE receiptd.message_inbox SET campaign_id = 'other'",
    "TRUNCATE receiptd.message_inbox",
    "DELETE FROM receiptd.consumer_progress",
    "DELETE FROM receiptd.campaign_funnel_total",
    "UPDATE receiptd.counter_delta SET messages = '{9}'",
    "UPDATE receiptd.parked_event SET payload = 'x'",
    "UPDATE receiptd.message_status_priority SET parent = 0",
    "UPDATE receiptd.schema_version SET version = 99",
    "SELECT receiptd.ladder_fill('{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}', '{}')",
    "INSERT INTO receiptd.message_alias VALUES ('a', 'g', 'm')",
    "CREATE TABLE receiptd.own (id int)",
    "CREATE TABLE public.own (id int)",
    "CREATE SCHEMA own",
    "ALTER TABLE receiptd.message_inbox DISABLE TRIGGER ALL",
    "DROP TABLE receiptd.dead_letter",
    "CREATE ROLE another",
    "SELECT secret FROM platform.customers",
    "COPY receiptd.message_inbox TO PROGRAM 'cat'",
    "SELECT pg_read_file('/etc/passwd')",
    "ALTER SYSTEM SET fsync = off",
]


@pytest.fixture
def role(database):
    """A name for a role; what has it in the end is dropped."""
    name = f"worker-{database.name}"  # one that has to be quoted
    yield name
    database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", name)
    if database.value("SELECT 1 FROM pg_roles WHERE rolname = %s", name):
        for statement in ("DROP OWNED BY {}", "DROP ROLE {}"):
            with database.connect() as connection:
                connection.execute(sql.SQL(statement).format(sql.Identifier(name)))


def act_as(world, role):
    world.installation.configure(postgres={"dsn": make_conninfo(world.database.dsn, user=role)})


def rights(database, role):
    """What the catalogs say that the role was given, by table; and by column."""
    tables = {}
    for table, right in database.query(
            "SELECT table_name, privilege_type FROM information_schema.table_privileges"
            " WHERE grantee = %s AND table_schema = %s", role, SCHEMA):
        tables.setdefault(table, set()).add(right)
    columns = set(database.query(
        "SELECT table_name, column_name, privilege_type FROM information_schema.column_privileges"
        " WHERE grantee = %s AND table_schema = %s AND table_name = 'message_inbox' AND privilege_type <> 'SELECT'",
        role, SCHEMA))
    return tables, columns


def run_everything(world):
    """Receipts that apply, wait, are given up and are set aside, a timeline, roll-ups; then the commands."""
    process = world.installation.start()
    feeder = world.feed()
    world.wait_for_progress(process)
    world.insert(world.stream.late)
    feeder.join()
    world.topic.send({"status": "DELIVERED"}, {"message_id": "here-later", "status": "NO_SUCH"}, "not json")
    world.finish(process)
    wait_for(lambda: world.database.value("SELECT count(*) FROM receiptd.dead_letter") >= 3, 60, "dead letters")
    wait_for(lambda: world.database.value("SELECT count(*) FROM receiptd.counter_delta") == 0, 60, "rolled up")
    world.installation.command("dead-letters", "--redrive")
    world.installation.command("funnel")
    world.installation.command("audit", "--repair")
    message = next(iter(world.platform))
    assert json.loads(world.installation.command("explain", message, "--format", "json").stdout)
    process.stop()
    assert "permission denied" not in process.log()


@pytest.mark.parametrize("mapped", (False, True), ids=("own inbox", "mapped inbox"))
def test_the_daemon_does_all_its_work_as_the_role_that_migrate_made(create_world, role, mapped):
    mapping = {"inbox": {"table": "platform.messages"}} if mapped else {}
    world = create_world(20_000, seed=301, migrate=False, traffic={"late": 0.05}, timeline={"retention": "1h"}, **mapping)
    if mapped:
        world.inbox = Inbox("platform.messages", "message_id", "org_id", "campaign_id", "status", "flags")
        world.database.execute("CREATE SCHEMA platform")
        world.database.execute("CREATE TABLE platform.messages (message_id text PRIMARY KEY, org_id text, campaign_id text)")
    told = world.installation.command("migrate", "--role", role).stdout
    assert f"create role {role}, without a password" in told and f"give role {role} its rights, and no others" in told
    world.insert(world.stream.early)
    act_as(world, role)
    run_everything(world)


def test_the_daemon_refuses_what_row_security_would_hide(create_world, role):
    world = create_world(migrate=False)
    world.installation.command("migrate", "--role", role)
    world.insert_ids("a")
    act_as(world, role)
    world.database.execute("ALTER TABLE receiptd.message_inbox ENABLE ROW LEVEL SECURITY")
    process = world.installation.start()
    process.wait_for_log("by row-level security policy for table .*message_inbox.*HINT: a policy would hide rows: .*BYPASSRLS", 10)
    world.topic.send({"message_id": "a", "status": "DELIVERED"})
    world.database.execute("ALTER TABLE receiptd.message_inbox DISABLE ROW LEVEL SECURITY")
    world.wait(lambda: world.database.value("SELECT status FROM receiptd.message_inbox") == 600, process, 60, "it is applied")
    process.stop()


def test_folds_and_actions_need_no_other_rights(create_world, create_topic, role):
    receiver, out = Receiver(), create_topic(2)
    try:
        endpoint = {"name": "crm", "url": receiver.url, "secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]}
        world = create_world(2_000, seed=302, migrate=False, partitions=2,
                             folds=[{"name": "campaigns", "group_key": ["campaign_id"], "window": "500ms", "max_hold": "2s",
                                     "publish": {"kafka": {"topic": str(out)}}}],
                             actions={"allow_private": True, "endpoints": [endpoint], "poll_interval": "50ms"},
                             pipelines=[{"name": "welcome", "on": "CLICKED", "webhook": "crm"}])
        world.installation.command("migrate", "--role", role)
        world.insert(world.stream.platform)
        act_as(world, role)
        process = world.installation.start()
        world.produce()
        world.finish(process)
        runs = "SELECT count(*), count(*) FILTER (WHERE status = 'done') FROM receiptd.run"
        world.wait(lambda: world.database.query(runs)[0][0] == world.database.query(runs)[0][1] > 0, process, 120, "all runs are done",
                   details=lambda: str(world.database.query(runs)))
        world.wait(lambda: publications.is_quiet(world.database), process, 120, "all folds published")
        process.stop()
        assert "permission denied" not in process.log()
        assert receiver.seen() and publications.read(world.brokers, out, 2)
    finally:
        receiver.close()


def test_the_role_has_the_rights_it_needs_and_not_one_more(create_world, role):
    world = create_world()
    with world.database.connect() as connection:
        name = sql.Identifier(role)
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(name))
        connection.execute(sql.SQL("GRANT ALL ON ALL TABLES IN SCHEMA receiptd TO {}").format(name))
        connection.execute(sql.SQL("GRANT ALL ON SCHEMA receiptd TO {}").format(name))
    world.installation.command("migrate", "--role", role)
    tables, columns = rights(world.database, role)
    assert {table: tables.get(table) for table in EXPECTED} == EXPECTED
    assert all(found <= READ | {"INSERT", "UPDATE", "DELETE"} for found in tables.values())
    assert all(tables[table] == READ for table in NEVER_WRITTEN)
    assert columns == EXPECTED_COLUMNS
    every = {name for name, in world.database.query(
        "SELECT relname FROM pg_class WHERE relnamespace = 'receiptd'::regnamespace AND relkind IN ('r', 'p', 'v')")}
    assert set(tables) == every
    assert not world.database.value("SELECT has_schema_privilege(%s, 'receiptd', 'CREATE')", role)
    world.installation.command("migrate", "--role", role)  # once more: the same
    assert rights(world.database, role) == (tables, columns)
    world.installation.configure(counters={"times": True})
    world.installation.command("migrate", "--role", role)
    assert rights(world.database, role) == (tables, columns | TIMES)


def test_who_has_the_role_can_do_nothing_else(create_world, role):
    world = create_world()
    world.installation.command("migrate", "--role", role)
    world.database.execute("CREATE SCHEMA platform")
    world.database.execute("CREATE TABLE platform.customers (secret text)")
    allowed = []
    with psycopg.connect(make_conninfo(world.database.dsn, user=role), autocommit=True) as connection:
        connection.execute("SET search_path = receiptd")  # as the daemon has it
        for statement in FORBIDDEN:
            try:
                connection.execute(statement)
                allowed.append(statement)
            except psycopg.errors.InsufficientPrivilege:
                pass
    assert not allowed


def test_the_age_of_others_snapshots_is_seen_without_their_statements(create_world, role):
    world = create_world(migrate=False)
    world.installation.command("migrate", "--role", role)
    watch = "SELECT pid, age_ms, hidden, backends FROM receiptd.watch_server()"
    with world.database.connect() as other, psycopg.connect(make_conninfo(world.database.dsn, user=role), autocommit=True) as connection:
        other.execute("BEGIN ISOLATION LEVEL REPEATABLE READ")
        (theirs,), = other.execute("SELECT pg_backend_pid() FROM receiptd.schema_version LIMIT 1").fetchall()
        wait_for(lambda: connection.execute(watch).fetchone()[0] == theirs, 60, "the oldest snapshot of the server is theirs")
        (_, age, hidden, backends), = connection.execute(watch).fetchall()
        assert age > 0 and hidden == 0 and backends >= 2
        assert connection.execute("SELECT xact_start, query FROM pg_stat_activity WHERE pid = %s", (theirs,)).fetchall() == \
            [(None, "<insufficient privilege>")]
        world.database.execute(sql.SQL("ALTER FUNCTION receiptd.watch_server() OWNER TO {}").format(sql.Identifier(role)))
        (pid, _, hidden, again), = connection.execute(watch).fetchall()
        assert pid is None and hidden >= 1 and again >= 2


def test_the_platform_cannot_count_what_it_did_not_insert(create_world, role):
    """The trigger's function writes counters with its owner's rights: on a table of one's own it would count anything."""
    world = create_world()
    world.installation.command("migrate", "--platform-role", role)
    with psycopg.connect(make_conninfo(world.database.dsn, user=role), autocommit=True) as connection:
        connection.execute("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id) VALUES ('m', 'o', 'c')")
        connection.execute("CREATE TEMP TABLE bait (campaign_id text, status int2, flags int4)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute("CREATE TRIGGER t AFTER INSERT ON bait REFERENCING NEW TABLE AS inserted"
                               " FOR EACH STATEMENT EXECUTE FUNCTION receiptd.count_inserted()")
        for statement in ("UPDATE receiptd.message_inbox SET status = 0", "DELETE FROM receiptd.message_inbox",
                          "INSERT INTO receiptd.counter_delta (campaign_id) VALUES ('{c}')"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement)
    assert world.database.value("SELECT messages FROM receiptd.campaign_funnel WHERE campaign_id = 'c' AND status = 0") == 1


def test_a_role_that_owns_the_tables_is_refused(create_world):
    world = create_world()
    owner = world.database.value("SELECT current_user")
    endless = world.installation.command("migrate", "--role", "x" * 64, check=False)
    assert endless.returncode == 64 and "--role: a name has 1 to 63 bytes, this has 64" in endless.stderr
    refused = world.installation.command("migrate", "--role", owner, check=False)
    assert refused.returncode == 78
    assert f'role "{owner}" can act as "{owner}", which owns schema receiptd' in refused.stderr
    assert "HINT: name another role" in refused.stderr and "nothing was changed" in refused.stderr


def test_who_may_not_make_roles_is_told_what_an_administrator_has_to_do(create_world, role):
    world = create_world(migrate=False)
    with world.database.connect() as connection:
        connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
        connection.execute(sql.SQL("GRANT CREATE ON DATABASE {} TO {}").format(
            sql.Identifier(world.database.name), sql.Identifier(role)))
        for definer in definers(world.database.name):  # an administrator has made these
            connection.execute(sql.SQL("CREATE ROLE {0}; GRANT {0} TO {1}").format(sql.Identifier(definer), sql.Identifier(role)))
    act_as(world, role)
    refused = world.installation.command("migrate", "--role", "nobody-yet", check=False)
    assert refused.returncode == 77
    assert f'role "nobody-yet" does not exist, and role "{role}" may not create it' in refused.stderr
    assert 'HINT: have an administrator do it: CREATE ROLE "nobody-yet" LOGIN' in refused.stderr


def test_a_dry_run_shows_the_grants_and_makes_none(create_world, role):
    world = create_world()
    shown = world.installation.command("migrate", "--dry-run", "--sql", "--role", role).stdout
    assert f'CREATE ROLE "{role}" LOGIN' in shown and "GRANT UPDATE (status" in shown
    assert not world.database.value("SELECT 1 FROM pg_roles WHERE rolname = %s", role)
