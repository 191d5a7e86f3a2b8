"""An existing table as the inbox."""
import psycopg
import pytest

from sql_batch import Event, apply, decided, drift, expected_funnel, stored_funnel, stored_rows, wake
from sql_fixture import Database, sql_server  # noqa: F401
from support import inbox

TABLE = """
CREATE SCHEMA platform;
CREATE TABLE platform."Outbound Messages" (
    "Id" {id} PRIMARY KEY, tenant text, "campaign" {campaign}, body text DEFAULT 'hello', delivery smallint NOT NULL DEFAULT 0
);
"""
MAPPING = {"inbox_schema": "platform", "inbox_table": "Outbound Messages", "message_id": "Id", "org_id": "tenant",
           "campaign_id": "campaign", "status": "delivery", "flags": "delivery flags"}


@pytest.fixture
def mapped(sql_server):
    made = []

    def make(id="varchar(64)", campaign="text"):
        made.append(Database(sql_server, inbox=MAPPING, setup=TABLE.format(id=id, campaign=campaign)))
        return made[-1]

    yield make
    for database in made:
        database.drop()


def test_a_table_with_other_names_serves_as_the_inbox(mapped):
    database = mapped()
    session = database.session()
    session.do("""INSERT INTO platform."Outbound Messages" ("Id", tenant, campaign) VALUES ('a', 't', 'c'), ('b', 't', 'c')""")
    events = [Event("a", 600, 0), Event("a", 9001, 1), Event("b", 300, 2), Event("new", 700, 3, campaign_id="k")]
    apply(session, events, unknown="insert")
    assert wake(session)["rows"] == 1
    inbox = {"a": "c", "b": "c", "new": "k"}
    assert stored_rows(session) == {"a": (600, 1), "b": (300, 0), "new": (700, 0)}
    assert stored_funnel(session) == expected_funnel(inbox, events)
    assert drift(session) == []
    assert session.query("""SELECT "Id", tenant, body, delivery, "delivery flags", prev_status FROM platform."Outbound Messages"
                            ORDER BY 1""") == [("a", "t", "hello", 600, 1, 0), ("b", "t", "hello", 300, 0, 0),
                                               ("new", "o", "hello", 700, 0, 0)]


def test_plans_reach_the_table_behind_the_view_by_its_key(mapped):
    session = mapped().session()
    plan = session.explain("lane/decide", *decided([Event("a", 600, 0)]))
    assert 'Index Scan using "Outbound Messages_pkey"' in plan and "Seq Scan on \"Outbound" not in plan


def test_keys_that_are_no_text_work_by_an_index_on_their_text(mapped):
    session = mapped(id="uuid", campaign="bigint").session()
    session.do("""CREATE INDEX by_text ON platform."Outbound Messages" (("Id"::text))""")
    key = "6f9619ff-8b86-d011-b42d-00cf4fc964ff"
    session.do(f"""INSERT INTO platform."Outbound Messages" ("Id", tenant, campaign) VALUES ('{key}', 't', 42)""")
    apply(session, [Event(key, 600, 0)])
    assert stored_funnel(session)["42", 600] == (1, 1) and drift(session) == []
    assert "Index Scan using by_text" in session.explain("lane/decide", *decided([Event("a", 600, 0)]))


@pytest.mark.parametrize("mapping, message", [
    ({"inbox_table": "absent"}, "inbox table platform.absent does not exist"),
    ({"campaign_id": "absent"}, "has no column absent"),
    ({"status": "body"}, "is of type text, not smallint"),
])
def test_a_mapping_that_cannot_work_is_refused_by_name(sql_server, mapping, message):
    with pytest.raises(psycopg.Error, match=message):
        Database(sql_server, inbox=MAPPING | mapping, setup=TABLE.format(id="text", campaign="text"))


def test_the_mapping_can_be_made_again(mapped):
    database = mapped()
    with psycopg.connect(database.dsn) as connection:
        from sql_fixture import SQL, fill_in
        connection.execute("SET search_path = receiptd")
        names = {n: n for n in ("prev_status", "prev_flags", "status_at", "updated_at")} | {"created_at": "", "dimension_kinds": "{}", "dimension_columns": "{}", "group_kinds": "{}", "group_columns": "{}"}
        names |= inbox.variables(MAPPING | names)
        for _ in range(2):
            connection.execute(fill_in((SQL / "migrate/inbox_view.sql").read_text(), MAPPING | names))
            connection.execute(fill_in((SQL / "migrate/inbox_trigger.sql").read_text(), MAPPING | names))
