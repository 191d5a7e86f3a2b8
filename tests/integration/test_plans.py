"""Every statement that meets a mapped table reaches it through an index, whatever type its key has: the key's collation is the
database's default, as it is in nearly every table that was there before receiptd."""

import json
import re

import psycopg
import pytest

from sql_batch import Event, apply
from sql_fixture import SQL, Session, fill_in
from test_sql_actions import OPENED, SENT, claim_all, finish, make_runs, pipeline, step

KEYS = {"uuid": "gen_random_uuid()", "bigint": "n", "text": "'m' || n", "varchar(64)": "'m' || n", 'text COLLATE "C"': "'m' || n"}
TABLE = """
    CREATE SCHEMA crm;
    CREATE TABLE crm.messages (id {type} PRIMARY KEY, tenant text, wave text, buyer text, sender text, recipient text, born timestamptz NOT NULL DEFAULT now(),
        first_sent_at timestamptz, first_delivered_at timestamptz, first_opened_at timestamptz, first_clicked_at timestamptz, first_gateway text,
        prev_times text);
    CREATE INDEX ON crm.messages (wave);
    CREATE INDEX ON crm.messages (buyer, born);
    CREATE INDEX messages_range ON crm.messages (sender, recipient, born, {text});
    {index}
    INSERT INTO crm.messages (id, tenant, wave, buyer)
    SELECT {make}, 'o' || n % 5, 'c' || n % 50, 'b' || n % 999 FROM generate_series(1, 20000) n;
    ANALYZE crm.messages;
"""
COLUMNS = {"message_id": "id", "org_id": "tenant", "campaign_id": "wave", "customer_id": "buyer", "created_at": "born"}
# As a lane and the functions of actions have it: a plan that scans the table stands out under any estimate.
SESSION = "SET search_path = receiptd; SET plan_cache_mode = force_generic_plan; SET jit = off; SET enable_seqscan = off"


@pytest.fixture(params=KEYS)
def mapped(request, receiptd, database):
    """A migrated installation on a table whose key has that type; a session there."""
    is_text = KEYS[request.param].startswith("'m'")
    cast = "" if is_text else "CREATE INDEX ON crm.messages ((id::text));"
    database.execute(TABLE.format(type=request.param, make=KEYS[request.param], index=cast, text="id" if is_text else "(id::text)"))
    receiptd.configure(inbox={"table": "crm.messages", "columns": COLUMNS})
    receiptd.migrate()
    with psycopg.connect(database.dsn, autocommit=True) as connection:
        connection.execute(SESSION)
        connection.takes_bare_rows = is_text
        yield connection


def nodes(plan):
    yield plan
    for inner in plan.get("Plans", ()):
        yield from nodes(inner)


def scans(plan):
    """Scans of the mapped table that read more than an index condition asks for."""
    return [node["Node Type"] for node in nodes(plan)
            if node.get("Relation Name") == "messages" and node["Node Type"] in ("Seq Scan", "Index Scan", "Index Only Scan") and "Index Cond" not in node
            or node.get("Index Name", "").startswith("messages_") and node["Node Type"] == "Bitmap Index Scan" and "Index Cond" not in node]


# ---- statements ----------------------------------------------------------------------------------------------------------

PREPARED = re.compile(r'^PREPARE "([^"]+)" AS\n(.*?);\n(?=\nPREPARE |\Z)', re.MULTILINE | re.DOTALL)
VARIABLES = {"part_schema": "crm", "part_table": "messages", "inbox_schema": "crm", "inbox_table": "messages", "message_id": "id", "org_id": "tenant",
             "campaign_id": "wave", "customer_id": "buyer", "created_at": "born", "kind": "customer", "column": "buyer", "customer": "buyer",
             "status": "status", "updated_at": "updated_at",
             "newest": "created_at", "range_account": "sender", "range_recipient": "recipient", "range_sent": "born"}
# A whole walk is what these are for; a page of a campaign's recipients, in the order of ids, is a walk where that is the cheaper plan.
WALKS = {"audit_campaigns", "audit_dimension", "audit_group", "audit_ids", "audit_times", "pending", "recent_partitions", "recipients"}
MEETS = re.compile(r"(?:FROM|JOIN|UPDATE|INTO|USING) message_inbox\b.*")


def code_of(path):
    return re.sub(r"--.*", "", path.read_text())


def of_commands():
    """{name: text} of what commands prepare, which `generate sql` does not print: files that name the inbox, bound to the table."""
    for folder in ("command", "retire", "erase"):
        for path in sorted((SQL / folder).glob("**/*.sql")):
            name = path.stem if path.parent.name == folder else path.parent.name
            if MEETS.search(code_of(path)) and name not in WALKS:
                yield f"{folder}/{name}", fill_in(path.read_text(), VARIABLES)


def plan_of(connection, name, text):
    """The plan of a statement under any parameters."""
    connection.execute(f'PREPARE "{name}" AS {text.rstrip().rstrip(";")}')
    count = connection.execute("SELECT cardinality(parameter_types) FROM pg_prepared_statements WHERE name = %s", [name]).fetchone()[0]
    call = f'EXECUTE "{name}"' + (f"({', '.join(['NULL'] * count)})" if count else "")
    plan = connection.execute(f"EXPLAIN (FORMAT JSON) {call}").fetchone()[0]
    connection.execute(f'DEALLOCATE "{name}"')
    return plan[0]["Plan"]


def test_every_prepared_statement_reaches_the_table_by_an_index(mapped, receiptd):
    printed = dict(PREPARED.findall(receiptd.command("generate", "sql").stdout))
    statements = {name: text for name, text in printed.items() if "message_inbox" in text}
    for name in ("serve/messages_of_customer", "lane/range_resolve", "expiry/candidates"):  # printed with columns of receiptd's own table
        statements[name] = fill_in((SQL / f"{name}.sql").read_text(), VARIABLES)
    if not mapped.takes_bare_rows:  # unknown: insert is refused
        statements = {name: text for name, text in statements.items() if not name.startswith("lane/insert")}
    statements |= of_commands()
    plans = {name: plan_of(mapped, name, text) for name, text in statements.items() if name.split("/")[1] not in WALKS}
    assert sum(any(node.get("Relation Name") == "messages" for node in nodes(plan)) for plan in plans.values()) > 20
    assert {name: found for name, plan in plans.items() if (found := scans(plan))} == {}


# ---- functions ---------------------------------------------------------------------------------------------------------

# Functions of migrate, those that are part of the statements that call them, what counts all messages of a campaign, and what makes its SQL.
NO_LOOKUP = {"messages_store", "map_inbox", "install_inbox_trigger", "install_retired_trigger", "inbox_others", "parked_applicable", "fold_columns",
             "campaign_recount"}


class Plans:
    """The plans of all statements that functions run in a session, as auto_explain gives them."""

    def __init__(self, session):
        self.seen = []
        try:
            session.do("LOAD 'auto_explain'")
        except psycopg.Error as error:
            pytest.skip(f"the server has no auto_explain: {error}")
        session.connection.add_notice_handler(self.take)
        session.do("SET auto_explain.log_level = notice; SET auto_explain.log_format = json; SET auto_explain.log_nested_statements = on;"
                   " SET auto_explain.log_min_duration = 0")

    def take(self, notice):
        if "plan:\n" in notice.message_primary:
            self.seen.append(json.loads(notice.message_primary.split("plan:\n")[1]))

    def texts(self):
        return {" ".join(re.sub(r"--.*", "", plan["Query Text"]).split()) for plan in self.seen}


def lookups():
    """{(function, line)}: the lines of functions that name the inbox, with their variables as patterns."""
    for path in sorted((SQL / "functions").glob("*.sql")):
        for line in MEETS.findall(code_of(path)) if path.stem not in NO_LOOKUP else ():
            yield path.stem, " ".join(re.split(r"', |\) THEN$|;$", line)[0].split())


def batch(session, *events):
    for event in events:
        apply(session, [event])


def walk_through(session, ids, inserts):
    """All functions that meet the inbox run, each with ids of messages that are there and of one that is not."""
    first, second, third, fourth = ids
    on_sent = pipeline("p", step(0, "await", awaits=OPENED, within_ms=60_000, next_step=1, else_step=1),
                       step(1, "webhook", target="x", unless=[9001]), step(2, "webhook", target="x"), subject="buyer", once_per=["buyer"])
    bulk = pipeline("bulk", step(0, "webhook", target="x", from_second=0, till_second=86_400), step(1, "await", awaits=OPENED, within_ms=60_000), on=None)
    session.do("SELECT pipelines_store(%s)", (json.dumps([on_sent, bulk]),))
    session.do("INSERT INTO pipeline_source (pipeline_id, topic) SELECT id, 'people' FROM pipeline WHERE name = 'bulk'")
    session.do("INSERT INTO action_progress VALUES ('people', 0, 0)")
    session.do("UPDATE action_lane SET owner = 'me', lease_until = now() + interval '1 day'")
    org = session.query("SELECT org_id FROM message_inbox WHERE message_id = %s", [third])[0][0]
    session.one("actions/import", "bulk", json.dumps([{"subject": "s", "org_id": org, "message_id": third}]), None, None)
    record = json.dumps({"subject": "t", "org_id": org, "message_id": third})
    session.one("actions/topic", ["people"], [0], [0], [1], ["people"], [0], [0], [record], [None])
    records = [(None, json.dumps({"message_id": id, "org_id": "other"})) for id in ("new", third)] if inserts else []
    session.do("INSERT INTO message_progress VALUES ('news', 0, 0)")
    columns = [list(column) for column in zip(*[("news", 0, n, *record) for n, record in enumerate([*records, ("old", None)])])]
    assert len(session.run("messages/announce", ["news"], [0], [0], [9], *columns, [])) == (3 if inserts else 1)
    batch(session, Event(first, SENT, 0), Event(second, SENT, 1))
    make_runs(session)
    for _ in range(3):
        finish(session, claim_all(session, zone=("UTC", "buyer")))
    batch(session, Event(first, OPENED, 2), Event(second, 9001, 3))
    for _ in range(3):
        finish(session, claim_all(session))
    assert session.query("SELECT count(*) FROM run WHERE status <> 'active'") != [(0,)]
    session.do("INSERT INTO message_alias (channel_account, gateway_id, message_id) VALUES ('a', 'g', 'h'), ('a', 'h', %s)", [first])
    session.do("SELECT messages_held(%s)", [[first]])
    assert session.query("SELECT alias_target('a' COLLATE \"C\", 'g')") == [(first,)]
    session.one("erase/step", [fourth], None, None, 0)


def test_every_function_reaches_the_table_by_an_index(mapped, database):
    session = Session(database.dsn)
    session.actions = True
    ids = [row[0] for row in session.query("SELECT id::text FROM crm.messages ORDER BY id LIMIT 4")]
    plans = Plans(session)
    walk_through(session, ids, mapped.takes_bare_rows)
    session.close()
    texts = plans.texts()
    missing = [(name, line) for name, line in lookups() if not any(line in text for text in texts)]
    assert missing == [], "nothing has been said about these"
    bad = {plan["Query Text"][:300]: found for plan in plans.seen if (found := scans(plan["Plan"]))}
    assert bad == {}


def waits(plan):
    """Look-ups of actions that await a status of a message, by its id."""
    return [node for node in nodes(plan) if node.get("Index Name") == "action_awaits" and "message_id" in node.get("Index Cond", "")]


def assert_that_waits_are_found(connection, receiptd):
    printed = dict(PREPARED.findall(receiptd.command("generate", "sql").stdout))
    for name in ("lane/intents", "serve/message"):
        assert waits(plan_of(connection, name, printed[name])), name


def test_waiting_actions_are_found_by_their_message(mapped, receiptd):
    assert_that_waits_are_found(mapped, receiptd)


def test_waiting_actions_are_found_by_their_message_in_our_own_inbox(receiptd, database):
    """Its key has the collation "C"."""
    receiptd.migrate()
    with database.connect() as connection:
        connection.execute(SESSION)
        assert_that_waits_are_found(connection, receiptd)
