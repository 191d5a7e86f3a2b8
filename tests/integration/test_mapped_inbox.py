"""The inbox can be a table that the platform has already, under its own names."""

import json
import re

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from oracle.compare import Inbox
from support import publications
from support.receiver import Receiver
from support.services import ROOT

TABLE = """
    CREATE SCHEMA platform;
    CREATE TABLE platform."Outbound" (
        "Id" text PRIMARY KEY, account text, wave text, body text DEFAULT 'hello', state smallint NOT NULL DEFAULT 0,
        bits integer NOT NULL DEFAULT 0, created timestamptz DEFAULT now()
    )
"""
MAPPING = {
    "table": "platform.Outbound",
    "columns": {"message_id": "Id", "org_id": "account", "campaign_id": "wave", "status": "state", "flags": "bits"},
}
INBOX = Inbox('platform."Outbound"', '"Id"', "account", "wave", "state", "bits")


def test_a_mapped_table_is_exact(create_world):
    world = create_world(30_000, seed=61, migrate=False, inbox=MAPPING)
    world.inbox = INBOX
    world.database.execute(TABLE)
    world.installation.migrate()
    world.insert(world.stream.early)
    process = world.installation.start()
    feeder = world.feed()
    world.insert(world.stream.late)
    feeder.join()
    world.finish(process)
    process.stop()
    assert world.database.value('SELECT count(*) FROM platform."Outbound" WHERE body <> %s', "hello") == 0
    kind = "SELECT relkind FROM pg_class WHERE oid = 'receiptd.message_inbox'::regclass"
    assert world.database.value(kind) == "v", "our name for it is a view; there is no second table"


def test_rows_that_were_there_before_count_after_a_repair(create_world):
    world = create_world(2_000, seed=62, migrate=False, inbox=MAPPING)
    world.inbox = INBOX
    world.database.execute(TABLE)
    world.insert(world.stream.platform)
    world.installation.migrate()
    assert world.installation.command("audit", check=False).returncode == 1
    world.installation.command("audit", "--repair")
    world.audit()
    world.produce()
    process = world.installation.start()
    world.finish(process)
    process.stop()


# ---- names -----------------------------------------------------------------------------------------------------------

OURS = ("message_id", "org_id", "campaign_id", "status", "prev_status", "flags", "prev_flags", "status_at", "updated_at")
SYSTEM = ("tableoid", "xmin", "cmin", "xmax", "cmax", "ctid")


def words_of_sql():
    """Every name that a statement of receiptd uses, for a column, a parameter or a variable. Those of functions alone are none: a call has
    its parenthesis, and a table has no room for all of them."""
    text = "".join(re.sub(r"--.*|'[^']*'", "", file.read_text()) for file in (ROOT / "sql").rglob("*.sql"))
    return sorted(set(re.findall(r"\b[a-z_][a-z_0-9]*\b(?!\()", text)) - {*OURS, *SYSTEM})


def test_the_platforms_columns_may_have_any_name(create_world, create_topic):
    """The view shows them all, so a name that a statement leaves unqualified would mean the platform's column. No operator of ours takes a
    box, so that this fails; the text in three of them would be taken and is read back."""
    receiver, out = Receiver(), create_topic(1)
    endpoint = {"name": "crm", "url": receiver.url, "secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]}
    world = create_world(1_000, seed=63, partitions=2, migrate=False, inbox={"table": "public.wide"}, timeline={"retention": "1h"},
                         folds=[{"name": "f", "group_key": ["inbox.message"], "window": "100ms", "max_hold": "1s", "publish": {"kafka": {"topic": str(out)}}}],
                         pipelines=[{"name": "p", "on": "CLICKED", "subject": "org", "once_per": ["message_id", "Größe & Farbe"], "stages": [
                             {"name": "s", "actions": [{"await": {"flag": "COMPLAINED", "within": "1ms"}}, {"webhook": "crm"}]}]}],
                         actions={"allow_private": True, "endpoints": [endpoint], "poll_interval": "20ms"})
    texts = ("message", "org", "m")
    columns = "".join(f', "{word}" {"text DEFAULT " + repr("their " + word) if word in texts else "box"}' for word in words_of_sql())
    world.database.execute(f"CREATE TABLE public.wide (message_id text PRIMARY KEY, org_id text, campaign_id text, \"Größe & Farbe\" text{columns})")
    world.inbox = Inbox("public.wide", "message_id", "org_id", "campaign_id", "status", "flags")
    world.installation.migrate()
    world.insert(world.stream.early)
    process = world.installation.start()
    feeder = world.feed()
    world.insert(world.stream.late)
    feeder.join()
    world.finish(process)
    clicked = world.database.value("SELECT count(*) FROM public.wide w JOIN receiptd.status_path p ON p.code = w.status WHERE p.ancestor = 800")
    world.wait(lambda: len(receiver.seen()) == clicked > 0, process, 60, "a call for each message that was clicked")
    assert {call.body["subject"] for call in receiver.seen()} == {"their org"}
    world.wait(lambda: publications.read(world.brokers, str(out), 1), process, 60, "a publication")
    assert {tuple(one["group"].values()) for one in publications.read(world.brokers, str(out), 1)} == {("their message",)}
    world.topic.send({"message_id": "g", "gateway_message_id": "g", "gateway": "acme", "status": "DELIVERED"})
    world.wait_until_consumed(process)
    world.database.execute("INSERT INTO public.wide (message_id, org_id, campaign_id) VALUES ('late', 'o', 'c')")
    world.database.execute("INSERT INTO receiptd.message_alias (channel_account, gateway_id, message_id) VALUES ('acme', 'g', 'late')")
    world.wait(lambda: world.database.value("SELECT status FROM public.wide WHERE message_id = 'late'") == 600, process, 60, "the alias is found")
    world.audit()
    assert "level=error" not in process.log(), process.log_tail()
    process.stop()
    receiver.close()


# ---- partitions ------------------------------------------------------------------------------------------------------

PARTITIONED = """
    CREATE TABLE public.messages (message_id text PRIMARY KEY, org_id text, campaign_id text) PARTITION BY RANGE (message_id);
    CREATE TABLE public.early PARTITION OF public.messages FOR VALUES FROM ('a') TO ('m') PARTITION BY RANGE (message_id);
    CREATE TABLE public.first PARTITION OF public.early FOR VALUES FROM ('a') TO ('f');
    CREATE TABLE public.second PARTITION OF public.early FOR VALUES FROM ('f') TO ('m')
"""


def targeted(world, campaign="c"):
    return world.database.value("SELECT COALESCE(sum(messages), 0) FROM receiptd.campaign_funnel WHERE campaign_id = %s AND status = 0", campaign)


def insert(world, table, *ids):
    rows = ", ".join(f"('{id}', 'o', 'c')" for id in ids)
    world.database.execute(f"INSERT INTO public.{table} (message_id, org_id, campaign_id) VALUES {rows}")


def test_rows_that_are_inserted_into_a_partition_are_counted_once(create_world):
    world = create_world(migrate=False, inbox={"table": "public.messages"})
    world.database.execute(PARTITIONED)
    world.installation.migrate()
    for number, table in enumerate(("messages", "early", "first", "second"), 1):
        insert(world, table, *([f"a{number}", f"b{number}"] if table == "first" else [f"f{number}", f"g{number}"]))
        assert targeted(world) == 2 * number, table
    insert(world, "messages", "a9", "f9")
    world.database.execute("INSERT INTO public.second (message_id, org_id, campaign_id) VALUES ('f9', 'o', 'c') ON CONFLICT DO NOTHING")
    assert targeted(world) == 10
    assert world.installation.command("migrate").stdout == "nothing to do\n"
    world.installation.command("audit")


def test_a_new_partition_is_named_until_migrate_counts_it_and_a_detached_one_is_left_alone(create_world):
    world = create_world(migrate=False, inbox={"table": "public.messages"})
    world.database.execute(PARTITIONED)
    world.installation.migrate()
    world.database.execute("CREATE TABLE public.late PARTITION OF public.messages FOR VALUES FROM ('m') TO ('z')")
    said = world.installation.command("check-config", "--connect").stderr
    assert "partitions whose rows are not counted when they are inserted there directly: public.late; run receiptd migrate" in said
    insert(world, "messages", "m1")
    assert targeted(world) == 1
    assert "create the trigger" in world.installation.command("migrate").stdout
    assert "partitions whose rows" not in world.installation.command("check-config", "--connect").stderr
    insert(world, "late", "m2", "m3")
    assert targeted(world) == 3
    world.database.execute("ALTER TABLE public.messages DETACH PARTITION public.late")
    insert(world, "late", "m4")
    assert targeted(world) == 3
    assert "drop the trigger that counts TARGETED on public.late" in world.installation.command("migrate").stdout


def test_without_counting_no_partition_keeps_a_trigger(create_world):
    world = create_world(migrate=False, inbox={"table": "public.messages"})
    world.database.execute(PARTITIONED)
    world.installation.migrate()
    triggers = "SELECT count(*) FROM pg_trigger WHERE tgname = 'receiptd_count_inserted'"
    assert world.database.value(triggers) == 4
    world.installation.configure(inbox={"table": "public.messages", "targeted": "none"})
    world.installation.migrate()
    assert world.database.value(triggers) == 0
    assert world.installation.command("migrate").stdout == "nothing to do\n"


# ---- the platform's own columns --------------------------------------------------------------------------------------

PEOPLE = """
    CREATE TYPE channel AS ENUM ('sms', 'email');
    CREATE TABLE public.messages (message_id text PRIMARY KEY, org_id text, campaign_id integer, customer_id bigint, channel channel)
"""
INSERT = "INSERT INTO public.messages (message_id, org_id, campaign_id, customer_id, channel) VALUES (%s, 'o', 7, %s, %s)"


@pytest.fixture
def people(create_world):
    """A mapped table with customers, and a receiver of webhooks; people.pipeline(FIELD) is one by that field."""
    receiver = Receiver()
    endpoint = {"name": "crm", "url": receiver.url, "secrets": ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"]}

    def pipeline(subject):
        return [{"name": "p", "on": "DELIVERED", "subject": subject, "once_per": ["subject"], "webhook": "crm"}]

    world = create_world(partitions=2, migrate=False, inbox={"table": "public.messages"}, pipelines=pipeline("customer_id"),
                         actions={"allow_private": True, "endpoints": [endpoint], "poll_interval": "20ms"})
    world.receiver, world.pipeline = receiver, pipeline
    world.database.execute(PEOPLE)
    yield world
    receiver.close()


def delivered(world, process, *ids):
    world.topic.send(*({"message_id": id, "status": "DELIVERED"} for id in ids))
    world.wait_until_consumed(process)


def subjects(world):
    return sorted(call.body["subject"] for call in world.receiver.seen())


def test_pipelines_and_folds_read_every_column_of_a_mapped_table(people, create_topic):
    out = create_topic(1)
    people.installation.configure(folds=[{"name": "f", "group_key": ["inbox.channel"], "match": {"inbox.customer_id": "1|2"}, "window": "100ms",
                                          "publish": {"kafka": {"topic": str(out)}}}])
    people.installation.migrate()
    for id, customer, channel in (("a", 1, "sms"), ("b", 1, "email"), ("c", 2, "sms"), ("d", 3, "sms")):
        people.database.execute(INSERT, id, customer, channel)
    process = people.installation.start()
    delivered(people, process, *"abcd")
    people.wait(lambda: subjects(people) == ["1", "2", "3"], process, 60, "one run for each customer")
    people.wait(lambda: publications.is_quiet(people.database), process, 60, "publications")
    groups = sorted(record["group"]["inbox.channel"] for record in publications.read(people.brokers, out, 1))
    assert set(groups) == {"sms", "email"}, "the enumeration is read as a text"
    people.audit()
    process.stop()


def test_a_column_that_is_not_there_is_refused_before_the_start(people, create_topic):
    rule = {"name": "f", "group_key": ["inbox.chanel"], "window": "100ms", "publish": {"kafka": {"topic": str(create_topic(1))}}}
    people.installation.configure(pipelines=people.pipeline("customer"), folds=[rule])
    people.installation.migrate()
    check = people.installation.command("check-config", "--connect", check=False)
    assert check.returncode == 78 and "pipelines: the inbox has no such column: p: customer\n" in check.stderr
    assert "note: folds: the inbox has no such column: f: chanel;" in check.stderr
    people.installation.configure(pipelines=people.pipeline("customer_id"))
    assert "f: chanel" in people.installation.command("check-config", "--connect").stderr


def test_the_view_follows_a_table_that_gains_columns_and_its_grants_stay(people):
    people.installation.migrate()
    people.database.execute(f'CREATE ROLE "reader {people.database.name}"')
    people.database.execute(f'GRANT SELECT, UPDATE (status) ON receiptd.message_inbox TO "reader {people.database.name}"')
    rights = ("SELECT relacl::text, (SELECT attacl::text FROM pg_attribute WHERE attrelid = c.oid AND attname = 'status')"
              " FROM pg_class c WHERE oid = 'receiptd.message_inbox'::regclass")
    before = people.database.query(rights)
    people.database.execute("ALTER TABLE public.messages ADD COLUMN account text DEFAULT 'acme'")
    said = people.installation.command("check-config", "--connect").stderr
    assert "columns that message_inbox does not show yet: account; run receiptd migrate" in said
    people.installation.configure(pipelines=people.pipeline("account"))
    process = people.installation.start()
    assert process.wait() == 78 and "no such column: p: account" in process.log() and "run receiptd migrate" in process.log()
    assert "replace view message_inbox" in people.installation.command("migrate").stdout
    assert people.installation.command("migrate").stdout == "nothing to do\n"
    people.database.execute(INSERT, "a", 1, "sms")
    process = people.installation.start("b")
    delivered(people, process, "a")
    people.wait(lambda: subjects(people) == ["acme"], process, 60, "a run for the account")
    people.database.execute("ALTER TABLE public.messages RENAME COLUMN account TO tenant")
    assert "replace view" in people.installation.command("migrate").stdout
    people.database.execute(INSERT, "b", 1, "sms")
    delivered(people, process, "b")
    assert people.database.value("SELECT status FROM public.messages WHERE message_id = 'b'") == 600
    process.stop()
    assert people.database.query(rights) == before
    people.database.execute(f'DROP OWNED BY "reader {people.database.name}"; DROP ROLE "reader {people.database.name}"')


# ---- what changes after the migration --------------------------------------------------------------------------------

def test_a_constraint_of_new_rows_does_not_concern_receipts_of_messages_that_are_there(create_world):
    """NOT NULL fires before ON CONFLICT: the rows that are known must not even be tried."""
    world = create_world(partitions=1, migrate=False, inbox={"table": "public.messages"}, unknown="insert")
    world.database.execute("CREATE TABLE public.messages (message_id text PRIMARY KEY, org_id text, campaign_id text)")
    world.installation.migrate()
    world.database.execute("ALTER TABLE public.messages ADD COLUMN body text NOT NULL DEFAULT ''; ALTER TABLE public.messages ALTER body DROP DEFAULT")
    world.database.execute("INSERT INTO public.messages (message_id, campaign_id, body) SELECT 'm' || n, 'c', 'hello' FROM generate_series(1, 50) n")
    process = world.installation.start()
    delivered(world, process, *(f"m{n}" for n in range(1, 51)), "unknown")
    assert world.database.value("SELECT count(*) FROM public.messages WHERE status = 600") == 50
    assert world.database.query("SELECT reason FROM receiptd.dead_letter") == [("database",)]
    said = world.installation.command("migrate", check=False)
    assert said.returncode == 78 and 'ALTER TABLE public.messages ALTER COLUMN body DROP NOT NULL' in said.stderr
    world.audit()
    process.stop()


@pytest.fixture
def owned(create_world):
    """A table whose owner is no superuser, and who migrates."""
    world = create_world(partitions=1, migrate=False, inbox={"table": "public.messages"})
    owner = f"owner {world.database.name}"
    world.database.execute(f'CREATE ROLE "{owner}" LOGIN CREATEROLE; GRANT CREATE ON DATABASE "{world.database.name}" TO "{owner}";'
                           f'GRANT pg_read_all_stats TO "{owner}" WITH ADMIN OPTION; GRANT ALL ON SCHEMA public TO "{owner}"')
    world.owner = owner
    world.superuser = world.installation.settings["postgres"]["dsn"]
    world.installation.configure(postgres={"dsn": make_conninfo(world.database.dsn, user=owner)})
    with psycopg.connect(make_conninfo(world.database.dsn, user=owner), autocommit=True) as connection:
        connection.execute("CREATE TABLE public.messages (message_id text PRIMARY KEY, org_id text, campaign_id text)")
        connection.execute("CREATE POLICY p ON public.messages USING (org_id = 'mine')")
        connection.execute("ALTER TABLE public.messages ENABLE ROW LEVEL SECURITY")
        world.as_owner = connection
        yield world
    world.database.execute(f'REASSIGN OWNED BY "{owner}" TO CURRENT_USER; DROP OWNED BY "{owner}"; DROP ROLE "{owner}"')


def test_policies_that_would_hide_rows_are_refused_and_never_silent(owned):
    command, forced = owned.installation.command, "ALTER TABLE public.messages FORCE ROW LEVEL SECURITY"
    owned.as_owner.execute(forced)
    for words in (("migrate", "--config", str(owned.installation.config_path)), ("check-config", "--connect")):
        said = command(*words, check=False)
        assert said.returncode == 78 and "row-level security" in said.stderr
        assert "HINT: let it not hold for the owner: ALTER TABLE public.messages NO FORCE ROW LEVEL SECURITY" in said.stderr
    owned.as_owner.execute("ALTER TABLE public.messages NO FORCE ROW LEVEL SECURITY")
    command("migrate", "--config", str(owned.installation.config_path))
    command("check-config", "--connect")
    owned.as_owner.execute("INSERT INTO public.messages VALUES ('a', 'theirs', 'c'), ('b', 'mine', 'c')")
    process = owned.installation.start()
    delivered(owned, process, "a", "b")
    assert owned.database.value("SELECT count(*) FROM public.messages WHERE status = 600") == 2
    process.stop()
    owned.as_owner.execute(forced)  # later, and nobody thought of receipts
    owned.topic.send({"message_id": "a", "status": "OPENED"})
    audit = command("audit", check=False)
    assert audit.returncode == 77 and "row-level security" in audit.stderr
    process = owned.installation.start("b")
    process.wait_for_log("row-level security policy for table .*BYPASSRLS", 60)
    assert owned.database.value("SELECT count(*) FROM receiptd.parked_event") == 0
    owned.as_owner.execute("ALTER TABLE public.messages NO FORCE ROW LEVEL SECURITY")
    owned.wait_until_consumed(process)
    assert owned.database.value("SELECT status FROM public.messages WHERE message_id = 'a'") == 700
    process.stop()
    command("audit")


def test_rights_that_the_owner_of_the_view_lacks_are_named_with_the_grants(create_world):
    world = create_world(partitions=1, migrate=False, inbox={"table": "app.messages"})
    owner = f"owner {world.database.name}"
    world.database.execute(f'CREATE ROLE "{owner}" LOGIN CREATEROLE; GRANT CREATE ON DATABASE "{world.database.name}" TO "{owner}";'
                           f'GRANT pg_read_all_stats TO "{owner}" WITH ADMIN OPTION; CREATE SCHEMA app;'
                           "CREATE TABLE app.messages (message_id text PRIMARY KEY, org_id text, campaign_id text)")
    world.installation.configure(postgres={"dsn": make_conninfo(world.database.dsn, user=owner)})
    said = world.installation.command("migrate", "--config", str(world.installation.config_path), check=False)
    assert said.returncode == 78 and "does not own the table" in said.stderr and "has not all rights" in said.stderr
    for statement in re.findall(r"^HINT: .*?: ((?:GRANT|ALTER) .*)$", said.stderr, re.MULTILINE):
        world.database.execute(statement)
    world.installation.command("migrate", "--config", str(world.installation.config_path))
    world.installation.command("check-config", "--connect")
    world.database.execute(f'REASSIGN OWNED BY "{owner}" TO CURRENT_USER; DROP OWNED BY "{owner}"; DROP ROLE "{owner}"')


def test_a_hint_never_names_the_command_that_has_just_failed(create_world):
    world = create_world(partitions=1, migrate=False)
    role = f"nobody {world.database.name}"
    world.database.execute(f'CREATE ROLE "{role}" LOGIN CREATEROLE')
    world.installation.configure(postgres={"dsn": make_conninfo(world.database.dsn, user=role)})
    said = world.installation.command("migrate", "--config", str(world.installation.config_path), check=False)
    assert said.returncode == 77 and "permission denied" in said.stderr and "receiptd migrate" not in said.stderr
    world.database.execute(f'DROP ROLE "{role}"')


# ---- as docs/your-table.md leads there -------------------------------------------------------------------------------

APP = """CREATE SCHEMA app AUTHORIZATION "{0}"; SET ROLE "{0}"; CREATE TYPE app.way AS ENUM ('sms', 'e''mail');
    CREATE TABLE app.messages (message_id uuid NOT NULL DEFAULT gen_random_uuid(), org_id integer, campaign_id integer, channel app.way,
        created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (message_id, created_at)) PARTITION BY RANGE (created_at);
    CREATE INDEX ON app.messages ((message_id::text));
    CREATE TABLE app.old PARTITION OF app.messages FOR VALUES FROM (MINVALUE) TO ('2026-01-01');
    CREATE TABLE app.young PARTITION OF app.messages FOR VALUES FROM ('2026-01-01') TO (MAXVALUE);
    INSERT INTO app.messages (org_id, campaign_id, channel, created_at) VALUES (1, 7, 'sms', '2025-12-31'), (1, 7, 'e''mail', '2026-01-02');
    RESET ROLE"""


def test_the_daemons_role_checks_a_table_whose_schema_it_cannot_see(create_world):
    world = create_world(partitions=1, migrate=False, counters={"by": ["channel"]},
                         inbox={"table": "app.messages", "columns": {"created_at": "created_at", "channel": "channel"}})
    owner, daemon = (f"{name} {world.database.name}" for name in ("owner", "daemon"))
    world.database.execute(f'CREATE ROLE "{owner}" LOGIN CREATEROLE; GRANT CREATE ON DATABASE "{world.database.name}" TO "{owner}";'
                           f'GRANT pg_read_all_stats TO "{owner}" WITH ADMIN OPTION; {APP.format(owner)}')
    command = world.installation.command
    migrate = ("migrate", "--config", str(world.installation.config_path), "--role", daemon)
    world.installation.configure(postgres={"dsn": make_conninfo(world.database.dsn, user=owner)})
    # The enumeration stays: a column of text beside it takes its place.
    for words in (("check-config", "--connect"), migrate):
        refused = command(*words, check=False)
        assert refused.returncode == 78 and "column channel of inbox table app.messages, by which messages are counted, is of type app.way" in refused.stderr
    world.database.execute(f'SET ROLE "{owner}"; {re.search(r": (ALTER TABLE .*)$", refused.stderr, re.MULTILINE)[1]}; RESET ROLE')
    world.installation.configure(inbox={"table": "app.messages", "columns": {"created_at": "created_at", "channel": "channel_text"}})
    # The campaign is no text: its index is offered, and not again when it is there.
    index = re.search(r"app\.messages: recommended, and left to its owner: (CREATE INDEX .*\(\(\(campaign_id\)::text\)\)): ", command(*migrate).stdout)[1]
    world.database.execute(f'SET ROLE "{owner}"; {index}; RESET ROLE')
    world.database.execute(f'SET ROLE "{owner}"; ALTER TABLE app.messages ADD COLUMN more text; RESET ROLE')
    assert "CREATE INDEX" not in command(*migrate).stdout
    command("audit", "--repair")
    command("maintain")
    # Step 7: the daemon's role, which reads the view and has no right on the table's schema.
    world.installation.configure(postgres={"dsn": make_conninfo(world.database.dsn, user=daemon)})
    assert world.database.value("SELECT has_schema_privilege(%s, 'app', 'USAGE')", daemon) is False
    command("check-config", "--connect")
    world.database.execute("INSERT INTO app.messages (org_id, campaign_id, channel) VALUES (1, 7, 'sms')")
    ids = [row[0] for row in world.database.query("SELECT message_id::text FROM app.messages")]
    process = world.installation.start()
    delivered(world, process, *ids)
    process.stop()
    assert json.loads(command("funnel", "7", "--by", "channel", "--format", "json").stdout)
    counts = world.database.query("SELECT key, sum(messages)::int FROM receiptd.campaign_tally WHERE kind = 'by_channel' AND status = 600 GROUP BY 1 ORDER BY 1")
    assert counts == [("e'mail", 1), ("sms", 2)]
    command("audit")
    world.database.execute(f'REASSIGN OWNED BY "{owner}" TO CURRENT_USER; DROP OWNED BY "{owner}", "{daemon}"; DROP ROLE "{owner}", "{daemon}"')
