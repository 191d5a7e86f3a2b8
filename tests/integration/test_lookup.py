"""A row of the platform's own tables before each call: in the body, as a condition, in one statement for many runs, and what follows
where it cannot be read."""

import json
import os
import signal

import pytest
from psycopg.conninfo import make_conninfo

from oracle import broker
from oracle.ledger import Row
from support.operations import Operations
from test_actions import LONG, create_actions, receipt, receiver, runs, states, wait_for_runs  # noqa: F401

CUSTOMERS = """
CREATE SCHEMA crm;
CREATE TABLE crm.customers (id text PRIMARY KEY, plan text, language text, muted boolean, vip boolean, logins int);
INSERT INTO crm.customers VALUES ('ann', 'pro', 'de', false, true, 3), ('bob', 'free', 'en', true, NULL, NULL), ('cyd', NULL, NULL, NULL, false, 0)"""
SQL = "SELECT plan, language, muted, vip FROM crm.customers WHERE id = :subject"
LOOKUP = {"as": "customer", "sql": SQL}


@pytest.fixture
def crm(database):
    """The connection string of a role that may read the platform's table and nothing else."""
    role = f"receiptd_lookup_{os.getpid()}"
    database.execute(CUSTOMERS)
    database.execute(f"CREATE ROLE {role} LOGIN; GRANT USAGE ON SCHEMA crm TO {role}; GRANT SELECT ON crm.customers TO {role}")
    yield make_conninfo(database.dsn, user=role)
    database.execute(f"DROP OWNED BY {role}; DROP ROLE {role}")


@pytest.fixture
def create(create_actions, crm):
    """create(pipelines) gives a world whose look-ups go by the role of `crm`; begin(subjects) begins runs of the pipeline."""

    def create(*pipelines, actions=None, **settings):
        return create_actions(list(pipelines), {"lookup_dsn": crm} | (actions or {}), **settings)

    return create


def begin(world, *subjects, name="p", **columns):
    file = world.installation.directory / f"{name}.csv"
    file.write_text("\n".join([",".join(["subject", *columns])] + [",".join([subject, *columns.values()]) for subject in subjects]) + "\n")
    world.installation.command("actions", "import", str(file), "--pipeline", name)


def bodies(receiver):
    return {call.subject.split("/")[1]: call.body for call in receiver.seen()}


def reload(world, process, **settings):
    done = process.log().count("reload: applied")
    world.installation.configure(**settings)
    process.signal(signal.SIGHUP)
    process.wait_for(lambda: process.log().count("reload: applied") > done, LONG, "the reload is over")


def test_the_row_is_in_the_body_of_webhooks_and_records_and_its_columns_are_conditions(create, create_topic, receiver):
    topic = create_topic(1)
    world = create({"name": "p", "lookup": LOOKUP, "stages": [{"name": "s", "actions": [
        {"webhook": "crm", "unless_lookup": "muted"},
        {"produce": str(topic), "if_lookup": ["vip"], "unless_lookup": ["muted"]}]}]}, http={"listen": "127.0.0.1:0"})
    process = world.installation.start()
    begin(world, "ann", "bob", "cyd", "dan", org_id="acme", note="hello")
    wait_for_runs(world, process, {"done": 4})
    seen = bodies(receiver)
    assert set(seen) == {"ann", "cyd", "dan"}
    assert seen["ann"]["customer"] == {"plan": "pro", "language": "de", "muted": False, "vip": True}
    assert seen["cyd"]["customer"] == {"plan": None, "language": None, "muted": None, "vip": False}
    assert "customer" not in seen["dan"] and seen["dan"]["data"] == {"note": "hello"}  # it has no row
    (record,) = [json.loads(each.value) for each in broker.read_log(world.brokers, str(topic))[0]]
    assert (record["subject"], record["customer"]["plan"], record["data"]) == ("ann", "pro", {"note": "hello"})
    classes = "SELECT r.subject, a.step, a.status, a.class, a.attempt FROM receiptd.action a JOIN receiptd.run r ON r.id = a.run_id ORDER BY 1, 2"
    assert world.database.query(classes) == [
        ("ann", 0, "done", "delivered", 1), ("ann", 1, "done", "delivered", 1),
        ("bob", 0, "done", "passed_over", 0), ("bob", 1, "done", "passed_over", 0),
        ("cyd", 0, "done", "delivered", 1), ("cyd", 1, "done", "passed_over", 0),
        ("dan", 0, "done", "delivered", 1), ("dan", 1, "done", "passed_over", 0)]
    figures = Operations(process).figures()
    assert {result: figures.get_one("receiptd_action_lookups_total", result=result) for result in ("found", "none", "passed_over")} == {
        "found": 3, "none": 1, "passed_over": 4}
    process.stop()
    assert not any(value in process.log() for value in ("ann", "bob", "cyd", "'de'"))


def test_the_runs_of_a_claim_are_one_statement(create, receiver):
    sql = "SELECT statement_timestamp()::text AS at, id, :campaign_id AS campaign, :org_id AS org, :message_id AS message FROM crm.customers WHERE id = :subject"
    world = create({"name": "p", "lookup": {"as": "row", "sql": sql}, "webhook": "crm"}, actions={"poll_interval": "200ms"})
    world.database.execute("INSERT INTO crm.customers (id) SELECT 'p' || g FROM generate_series(1, 100) g")
    world.insert({"m": Row("acme", "spring")})
    process = world.installation.start()
    world.installation.command("ctl", "org", "pause", "acme")
    begin(world, *[f"p{n}" for n in range(1, 101)], org_id="acme", campaign_id="spring", message_id="m")
    world.installation.command("ctl", "org", "resume", "acme")
    wait_for_runs(world, process, {"done": 100})
    process.stop()
    rows = [call.body["row"] for call in receiver.seen()]
    assert sorted(row["id"] for row in rows) == sorted(f"p{n}" for n in range(1, 101))
    assert all(call.body["row"]["id"] == call.body["subject"] for call in receiver.seen())
    assert {(row["campaign"], row["org"], row["message"]) for row in rows} == {("spring", "acme", "m")}
    claims = world.database.value("SELECT count(DISTINCT started_at) FROM receiptd.action")
    assert len({row["at"] for row in rows}) <= claims < 100


def test_a_slow_look_up_holds_up_its_own_calls_and_takes_no_attempt(create, receiver):
    slow = "SELECT plan FROM crm.customers, LATERAL (SELECT pg_sleep(s.seconds) FROM crm.speed s) w WHERE id = :subject"
    world = create({"name": "p", "lookup": {"as": "customer", "sql": slow}, "webhook": "crm"}, {"name": "q", "webhook": "crm"},
                   actions={"lookup_timeout": "200ms", "max_attempts": 2, "retry_max": "1s"})
    world.database.execute("CREATE TABLE crm.speed AS SELECT 60 AS seconds; GRANT SELECT ON crm.speed TO PUBLIC")
    process = world.installation.start()
    begin(world, "ann", "bob")
    begin(world, "eve", name="q")
    world.wait(lambda: len(receiver.seen()) == 1, process, LONG, "the other pipeline calls")
    failed = "SELECT count(*) FROM receiptd.action WHERE class = 'lookup_failed' AND attempt <= 1 AND answer LIKE '%statement timeout%'"
    world.wait(lambda: world.database.value(failed) == 2, process, LONG, "both look-ups have failed")
    process.wait_for_log("the look-up of pipeline p failed, and its calls wait: .*statement timeout", LONG)
    world.installation.configure()  # listed while they wait
    reasons = {row["because"] for row in world.installation.json("actions", "list")}
    assert reasons <= {"its look-up failed", "is running", "waits for its turn"}
    world.database.execute("UPDATE crm.speed SET seconds = 0")
    wait_for_runs(world, process, {"done": 3})
    process.stop()
    assert {subject: body.get("customer") for subject, body in bodies(receiver).items()} == {
        "eve": None, "ann": {"plan": "pro"}, "bob": {"plan": "free"}}
    assert [call.attempt for call in receiver.seen()] == [1, 1, 1] and "a look-up is answered again after" in process.log()


def test_a_run_whose_values_make_the_statement_fail_fails_alone(create, receiver):
    numbers = "SELECT logins FROM crm.customers WHERE logins = (:subject)::int"
    world = create({"name": "p", "lookup": {"as": "customer", "sql": numbers}, "webhook": "crm"}, actions={"max_age": "2s"})
    process = world.installation.start()
    world.installation.command("ctl", "pipeline", "pause", "p")
    begin(world, "3", "secretname", "0", "7")
    world.installation.command("ctl", "pipeline", "resume", "p")
    wait_for_runs(world, process, {"done": 3, "dead": 1})
    process.stop()
    assert {subject: body.get("customer") for subject, body in bodies(receiver).items()} == {"3": {"logins": 3}, "0": {"logins": 0}, "7": None}
    ((reason, answer),) = world.database.query("SELECT class, answer FROM receiptd.action WHERE status = 'dead'")
    assert reason == "lookup_failed" and "invalid input syntax for type integer" in answer
    assert "secretname" not in process.log()


def test_a_row_that_is_too_large_is_an_error_in_words(create, receiver):
    world = create({"name": "p", "lookup": {"as": "c", "sql": "SELECT repeat('x', CASE id WHEN 'ann' THEN 65527 ELSE 65528 END) AS t FROM crm.customers WHERE id = :subject"},
                    "webhook": "crm"}, actions={"max_age": "1s"})
    process = world.installation.start()
    begin(world, "ann", "bob")
    wait_for_runs(world, process, {"done": 1, "dead": 1})
    process.stop()
    assert {subject: len(body["c"]["t"]) for subject, body in bodies(receiver).items()} == {"ann": 65527}
    assert world.database.query("SELECT answer FROM receiptd.action WHERE status = 'dead'") == [("the row has more than 65536 bytes of JSON",)]


def test_a_wrong_look_up_is_said_at_the_start_and_by_check_config_and_holds_up_its_pipeline_alone(create, receiver, crm):
    wrong = {"as": "customer", "sql": "SELECT plan FROM crm.clients WHERE id = :subject"}
    world = create({"name": "p", "lookup": wrong, "webhook": "crm"}, {"name": "q", "lookup": LOOKUP, "webhook": "crm"})
    checked = world.installation.command("check-config", "--connect", check=False)
    assert checked.returncode == 78
    assert 'pipelines.p: lookup.sql: statement "lookup" cannot be prepared: relation "crm.clients" does not exist' in checked.stderr
    assert "HINT: names have their schema" in checked.stderr
    process = world.installation.start()
    process.wait_for_log('the look-up of pipeline p failed, and its calls wait: relation .*crm.clients.* does not exist', LONG)
    begin(world, "ann")
    begin(world, "ann", "bob", name="q")
    wait_for_runs(world, process, {"active": 1, "done": 2})
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.action WHERE class = 'lookup_failed'") == 1, process, LONG, "it waits")
    world.database.execute("CREATE VIEW crm.clients AS SELECT * FROM crm.customers; GRANT SELECT ON crm.clients TO PUBLIC")
    wait_for_runs(world, process, {"done": 3})
    process.stop()
    assert "is valid" in world.installation.command("check-config", "--connect").stdout


@pytest.mark.parametrize("sql, problem", [
    ("SELECT plan FROM customers WHERE id = :subject", 'relation "customers" does not exist'),
    ("SELECT logins AS muted FROM crm.customers WHERE logins = :subject", "operator does not exist: integer = text"),
    ("SELECT plan FROM crm.customers WHERE id = :subject", "column lookup.muted does not exist"),
    ("SELECT logins AS muted FROM crm.customers WHERE id = :subject", "argument of IS TRUE must be type boolean, not type integer"),
    ("DELETE FROM crm.customers WHERE id = :subject RETURNING muted", "syntax error"),
    ("SELECT true AS muted; SELECT 1", "syntax error"),
    ("SELECT muted FROM crm.secrets", "permission denied for table secrets"),
])
def test_check_config_says_the_servers_error(create, sql, problem):
    world = create({"name": "p", "lookup": {"as": "customer", "sql": sql}, "webhook": "crm", "unless_lookup": "muted"})
    world.database.execute("CREATE TABLE crm.secrets (muted boolean)")
    checked = world.installation.command("check-config", "--connect", check=False)
    assert checked.returncode == 78 and problem in checked.stderr and "receiptd.yaml:" in checked.stderr, checked.stderr


def test_a_role_without_rights_is_said_at_the_start(create, receiver):
    """And a second pipeline, whose statement is right, goes on."""
    world = create({"name": "p", "lookup": {"as": "customer", "sql": "SELECT muted FROM crm.secrets"}, "webhook": "crm"},
                   {"name": "q", "produce": "nowhere", "lookup": LOOKUP, "if_lookup": "vip", "on": "api"})
    world.database.execute("CREATE TABLE crm.secrets (muted boolean)")
    process = world.installation.start()
    process.wait_for_log("the look-up of pipeline p failed, and its calls wait: permission denied for table secrets", LONG)
    begin(world, "cyd", name="q")
    wait_for_runs(world, process, {"done": 1})
    process.stop()
    assert receiver.seen() == [] and process.log().count("the look-up of pipeline") == 1


def test_a_look_up_writes_nothing_whatever_its_role_may(create, receiver, database):
    """The session is read-only, with the daemon's own role, too."""
    world = create({"name": "p", "lookup": {"as": "customer", "sql": "SELECT crm.note(:subject) AS noted"}, "webhook": "crm"},
                   actions={"lookup_dsn": database.dsn, "max_age": "1s"})
    world.database.execute("CREATE FUNCTION crm.note(who text) RETURNS text LANGUAGE sql AS 'INSERT INTO crm.customers (id) VALUES (''new'') RETURNING id'")
    process = world.installation.start()
    begin(world, "ann")
    wait_for_runs(world, process, {"dead": 1})
    process.stop()
    assert world.database.query("SELECT class, answer FROM receiptd.action") == [("lookup_failed", "cannot execute INSERT in a read-only transaction")]
    assert world.database.value("SELECT count(*) FROM crm.customers") == 3 and receiver.seen() == []


def test_runs_end_by_the_look_up_that_they_began_with(create, receiver):
    def pipeline(column):
        return {"name": "p", "lookup": {"as": column, "sql": f"SELECT {column} FROM crm.customers WHERE id = :subject"},
                "stages": [{"name": "s", "actions": [{"wait": "1h", "unless": "CLICKED"}, {"webhook": "crm"}]}]}
    world = create(pipeline("plan"))
    process = world.installation.start()
    begin(world, "ann")
    wait_for_runs(world, process, {"active": 1})
    reload(world, process, pipelines=[pipeline("language")])
    process.wait_for(lambda: process.log().count("pipelines are in effect") == 2, LONG, "the new wording is stored")
    begin(world, "bob")
    world.wait(lambda: states(world).get("done", 0) == 2, process, LONG, "both wait")
    world.database.execute("UPDATE receiptd.action SET perform_at = now() WHERE status = 'pending'")
    wait_for_runs(world, process, {"done": 2})
    process.stop()
    seen = bodies(receiver)
    assert seen["ann"]["plan"] == {"plan": "pro"} and "language" not in seen["ann"]
    assert seen["bob"]["language"] == {"language": "en"} and "plan" not in seen["bob"]


def test_two_instances_that_are_killed_call_with_the_row_and_never_who_is_muted(create, receiver):
    """Whoever calls again after a kill has asked again: a row that has changed counts."""
    receiver.answer = lambda call: (200, {}, 0.02)
    endpoint = {"name": "crm", "url": receiver.url, "timeout": "500ms"}
    world = create({"name": "p", "lookup": LOOKUP, "webhook": "crm", "unless_lookup": "muted"}, actions={"lease": "2s", "endpoints": [endpoint]})
    world.database.execute("INSERT INTO crm.customers (id, plan, muted) SELECT 's' || g, 'plan ' || g, g % 3 = 0 FROM generate_series(1, 300) g")
    processes = [world.installation.start(name) for name in ("a", "b")]
    begin(world, *[f"s{n}" for n in range(1, 301)])
    for turn, name in enumerate(("a", "b", "a")):
        world.wait(lambda: len(receiver.seen()) > 40 * turn, None, LONG, "calls are made")
        processes[turn % 2].kill()
        processes[turn % 2] = world.installation.start(f"{name}{turn}")
    wait_for_runs(world, processes[0], {"done": 300})
    for process in processes:
        process.stop()
    called = {call.body["subject"]: call.body["customer"]["plan"] for call in receiver.seen()}
    assert called == {f"s{n}": f"plan {n}" for n in range(1, 301) if n % 3}
    assert world.database.query("SELECT class, count(*) FROM receiptd.action GROUP BY 1 ORDER BY 1") == [("delivered", 200), ("passed_over", 100)]


def test_an_outage_of_the_other_database_is_waited_for(create, receiver, crm):
    """No attempt is used up, and calls that need no look-up go on."""
    role = f"receiptd_lookup_{os.getpid()}"
    world = create({"name": "p", "lookup": LOOKUP, "webhook": "crm"}, {"name": "q", "webhook": "crm"},
                   actions={"max_attempts": 1, "lookup_timeout": "300ms"})
    process = world.installation.start()
    begin(world, "ann")
    wait_for_runs(world, process, {"done": 1})
    world.database.execute(f"ALTER ROLE {role} NOLOGIN")
    world.database.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = '{role}'")
    process.wait_for_log("lookup is not connected", LONG)
    begin(world, "bob")
    begin(world, "eve", name="q")
    wait_for_runs(world, process, {"active": 1, "done": 2})
    failed = "SELECT answer FROM receiptd.action WHERE class = 'lookup_failed' AND status = 'pending'"
    world.wait(lambda: world.database.query(failed) == [("no connection by actions.lookup_dsn within actions.lookup_timeout",)], process, LONG, "it waits")
    world.database.execute(f"ALTER ROLE {role} LOGIN")
    wait_for_runs(world, process, {"done": 3})
    process.stop()
    assert bodies(receiver)["bob"]["customer"]["plan"] == "free"
