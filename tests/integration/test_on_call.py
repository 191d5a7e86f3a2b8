"""What the person on call reads: who holds a lock, each cause of an outage once, and nothing from a daemon that has nothing to do."""

import re
import time

import psycopg
import pytest

from support.operations import ControlSocket, Operations
from support.servers import Postgres
from support.wait import wait_for

FIGURES = "events=[0-9]+ batches="
WRITES = """SELECT COALESCE(sum(s.n_tup_ins + s.n_tup_upd + s.n_tup_del), 0)::int8 FROM pg_stat_all_tables s
            WHERE s.relid NOT IN (SELECT unnest(ARRAY[c.oid, c.reltoastrelid]) FROM pg_class c
                                  WHERE c.oid = 'receiptd.instance_status'::regclass OR c.relisshared)"""  # shared: tests beside this one make databases


def since(process, size, pattern):
    return [line for line in process.log()[size:].splitlines() if re.search(pattern, line)]


def test_whoever_holds_a_lock_is_named_and_lives(create_world):
    world = create_world(2_000, seed=81, partitions=2, lanes=4, postgres={"connections": 2, "lock_timeout": "600ms", "zombie_timeout": "1s"})
    world.insert(world.stream.late)
    process = world.installation.start()
    world.produce()
    world.wait_until_consumed(process)
    with psycopg.connect(world.database.dsn, application_name="somebody") as holder:
        holder.execute("UPDATE receiptd.consumer_progress SET anchor_crc = anchor_crc WHERE '+4915155501001' <> ''")
        (pid,), = holder.execute("SELECT pg_backend_pid()").fetchall()
        (user,), = holder.execute("SELECT current_user").fetchall()
        holder.execute("SELECT 4915155501002, '+4915155501003'")
        world.produce()
        process.wait_for(lambda: world.database.value(
            "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))", pid), 30, "a lane waits")
        named = rf"backend {pid} \(user {user}, application somebody\), idle in transaction, transaction open for [0-9.]+ s, last query: SELECT \?, \?"
        process.wait_for_log(f"connection lanes-[01] waits for {named}")
        process.wait_for_log(rf"will be tried again: .*lock timeout \(55P03\); HINT: the lock is held by {named}")
        time.sleep(3)  # longer than zombie_timeout, and several lock time-outs
        assert holder.execute("SELECT 1").fetchone() == (1,), "only sessions of receiptd are ended"
    world.wait_until_consumed(process)
    process.wait_for_log("no lane is rolled back now after .* failures: [0-9]+ times canceling statement due to lock timeout")
    assert len(since(process, 0, "canceling statement due to lock timeout .55P03")) == 1
    assert len(since(process, 0, "connection .* waits for")) <= 2, "one line for each blocker and query"
    assert "+4915155501" not in process.log() and "4915155501002" not in process.log()
    process.stop()


def test_whoever_the_control_connection_waits_for_is_named(create_world):
    """By a lane's connection: the one that asks otherwise waits itself."""
    world = create_world(2_000, seed=84, partitions=2, postgres={"lock_timeout": "1s"}, counters={"rollup_interval": "200ms"})
    world.insert(world.stream.late)
    process = world.installation.start()
    process.wait_for_log('msg="ready"')
    with psycopg.connect(world.database.dsn, application_name="somebody") as holder:
        holder.execute("LOCK TABLE receiptd.campaign_funnel_total")
        pid = holder.info.backend_pid
        world.produce()
        process.wait_for_log(f"connection control waits for backend {pid} .*application somebody.*LOCK TABLE", 60)
        process.wait_for_log(f"roll-up of counters failed, .*lock timeout.*HINT: the lock is held by backend {pid} .*application somebody", 60)
    world.finish(process)
    process.stop()


@pytest.mark.alone
def test_each_cause_of_an_outage_is_one_line(create_world, services):
    world = create_world(1_000, seed=82, partitions=2, postgres={"connections": 8})
    process = world.installation.start()
    process.wait_for_log('msg="ready"')
    server, size = Postgres(services), len(process.log())
    world.database.connection.close()
    server.stop_immediately()
    time.sleep(6)
    server.start()
    process.wait_for_log("PostgreSQL is connected again after [0-9.]+ s and [0-9]+ failures: .*[0-9]+ times ")
    process.wait_for(lambda: since(process, size, 'msg="ready"'), 30, "it is ready again")
    lines = since(process, size, "is not connected")
    causes = [re.search(r"is not connected(: .*)?\"?$", line).group() for line in lines]
    assert len(causes) == len(set(causes)), "\n".join(lines)
    assert len(since(process, size, "No such file|Connection refused")) == 2, "the cause, and its count at the end"
    assert not since(process, size, "suppressed")
    process.stop()


def test_an_idle_daemon_writes_nothing(create_world):
    """Neither a line with zeros nor a row, but that of its own state."""
    world = create_world(2_000, seed=83, partitions=4, log={"stats_interval": "500ms"}, timeline={"retention": "1h"},
                         counters={"rollup_interval": "200ms"})
    world.insert(world.stream.late)
    process = world.installation.start()
    world.produce()
    world.wait_until_consumed(process)
    process.wait_for_log(FIGURES)

    def writes():
        with world.database.connect() as connection:
            connection.execute("SELECT pg_stat_force_next_flush()") if connection.info.server_version >= 150000 else None
            return connection.execute(WRITES).fetchone()[0]

    def is_still():
        before, size = writes(), len(process.log())
        time.sleep(4)
        return writes() == before and not since(process, size, "level=")

    wait_for(is_still, 60, "four seconds without a row and without a line", details=process.log_tail)
    world.finish(process)
    process.stop()


@pytest.fixture
def guarded(create_world, services):
    """A world whose dsn is a file with a password, and the change of that password on the server."""
    world = create_world()
    role = f"rotated_{world.database.name}"
    world.database.execute(f"CREATE ROLE {role} SUPERUSER LOGIN PASSWORD 'first'")
    secret = world.installation.directory / "dsn"
    tcp = dict(part.split("=", 1) for part in services.tcp_dsn.split() if not part.startswith(("user", "password")))
    place = f"host={tcp['host']} port={tcp['port']} dbname={world.database.name} user={role} password="
    secret.write_text(place + "first")
    control = ControlSocket(world.installation)
    world.installation.configure(postgres={"dsn": f"file:{secret}", "retry_max": "500ms"})

    def write(password):
        secret.write_text(place + password)

    def change(password):
        with world.database.connect() as owner:
            owner.execute(f"ALTER ROLE {role} PASSWORD '{password}'")

    yield world, control, write, change
    for process in world.installation.processes:
        process.close()
    control.close()
    world.database.execute(f"DROP ROLE {role}")


def test_a_reload_tries_a_credential_before_it_says_applied(guarded):
    world, control, write, change = guarded
    process = world.installation.start()
    pages = Operations(process)
    pages.wait_until_ready()
    write("wrong")
    refused = control.ctl("reload", check=False)
    assert refused.returncode == 78 and "applied" not in refused.stdout
    assert "refused: postgres.dsn: no connection with it: " in refused.stderr and "password authentication failed" in refused.stderr
    assert pages.get("/readyz").status == 200, "the credential in effect goes on working"
    process.wait_for_log("reload: refused: postgres.dsn: .*; the configuration stays as it was")
    change("second")
    write("second")
    process.wait_for_log("level=warn component=config .*postgres.dsn: file .*/dsn has changed, and what was read before is in effect; HINT: ")
    assert len(since(process, 0, "has changed, and what was read")) <= 2, "once for each change"
    assert "applied: postgres.dsn" in control.ctl("reload").stdout
    with world.database.connect() as owner:
        owner.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND usename LIKE 'rotated%%'")
    process.wait_for_log("PostgreSQL is connected again")
    assert "second" not in process.log() and "wrong" not in process.log()
    process.stop()


def test_an_audit_of_all_campaigns_is_a_few_statements(create_world):
    """A statement for each campaign took 15 s for 10 000. Drift is found, and repaired, on both sides of a boundary of 500."""
    world = create_world()
    campaigns = [f"c{number:04}" for number in range(1_200)]
    with world.database.connect() as platform:
        platform.execute("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id)"
                         " SELECT name || '-' || n, 'o', name FROM unnest(%s::text[]) name, generate_series(1, 2) n", (campaigns,))
        platform.execute("INSERT INTO receiptd.message_inbox (message_id, org_id) VALUES ('without', 'o')")

    def commits():
        with world.database.connect() as connection:
            return connection.execute("SELECT xact_commit FROM pg_stat_database WHERE datname = current_database()").fetchone()[0]

    before = commits()
    found = world.installation.json("audit")
    assert (found["campaigns"], found["cells"], found["drift_cells"]) == (1_201, 1_201, 0)
    assert commits() - before < 60
    world.database.execute("UPDATE receiptd.message_inbox SET flags = 5 WHERE message_id IN ('c0000-1', 'c0499-1', 'c0500-1', 'c1199-2', 'without')")
    drift = world.installation.json("audit", check=False)
    off = {(row["campaign_id"], row["status"]) for row in drift["drift"]}
    assert off == {(name, status) for name in ("", "c0000", "c0499", "c0500", "c1199") for status in (9001, 9003)}
    repaired = world.installation.json("audit", "--repair")
    assert (repaired["campaigns"], repaired["repaired_cells"], repaired["remaining_cells"]) == (1_201, 10, 0)


def test_a_reload_tries_what_reaches_kafka_before_a_restart_needs_it(create_world):
    world = create_world(kafka={"properties": {"security.protocol": "plaintext"}})
    control = ControlSocket(world.installation)
    process = world.installation.start()
    pages = Operations(process)
    pages.wait_until_ready()
    world.installation.configure(kafka={"properties": {"security.protocol": "sasl_plaintext", "sasl.mechanism": "PLAIN",
                                                       "sasl.username": "u", "sasl.password": "wrong-password"}})
    refused = control.ctl("reload", check=False)
    assert refused.returncode == 78 and "refused: kafka.properties: no connection with them: " in refused.stderr
    assert "wrong-password" not in refused.stderr + process.log()
    world.installation.configure(kafka={"properties": {"security.protocol": "plaintext", "sasl.mechanism": None, "sasl.username": None,
                                                       "sasl.password": None, "socket.keepalive.enable": "true"}})
    answer = control.ctl("reload", check=False)
    assert "needs a restart: kafka.properties" in answer.stdout + answer.stderr
    assert pages.get("/readyz").status == 200
    control.close()
    process.stop()
