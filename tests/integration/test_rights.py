"""What each role may do: the table in docs/security.md against the catalogs; and attempts to get more."""

import fnmatch
import json
import re

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

from support import intake
from support.services import ROOT, definers
from support.world import QUICK

NAMES = ("daemon", "intake", "serve", "platform")
OPTIONS = {"daemon": "--role", "intake": "--intake-role", "serve": "--serve-role", "platform": "--platform-role"}
MAPPING = {"table": "messaging.outbound"}
MESSAGES = "CREATE TABLE messaging.outbound (message_id text PRIMARY KEY, org_id text, campaign_id {}, first_sent_at timestamptz," \
           " first_delivered_at timestamptz, first_opened_at timestamptz, first_clicked_at timestamptz, first_gateway text COLLATE \"C\", prev_times text COLLATE \"C\")"
# A cast that runs something with the rights of whoever casts, in a body of its own or within the plan.
EVIL = {
    "called": "CREATE FUNCTION {0}.cast_it({0}.evil) RETURNS text LANGUAGE plpgsql AS $$ BEGIN PERFORM {0}.run(); RETURN 'c'; END $$",
    "inlined": "CREATE FUNCTION {0}.cast_it({0}.evil) RETURNS text LANGUAGE sql IMMUTABLE AS $$ SELECT {0}.run() $$",
}
RUN = """
    CREATE TYPE {0}.evil AS (a text);
    CREATE FUNCTION {0}.run() RETURNS text LANGUAGE plpgsql IMMUTABLE
        AS $$ BEGIN RAISE NOTICE 'ran as % for %', current_user, session_user; RETURN 'c'; END $$;
    {1};
    CREATE CAST ({0}.evil AS text) WITH FUNCTION {0}.cast_it({0}.evil);
"""


class Site:
    """A database with its roles; `owner` makes the schema, who is a superuser or may make roles and no more."""

    def __init__(self, receiptd, database, superuser):
        self.receiptd, self.database = receiptd, database
        self.names = {name: f"{name}-{database.name}" for name in (*NAMES, "owner", "mapped")}
        self.made = []
        self.owner = None if superuser else self.make_role("owner", "LOGIN CREATEROLE")
        if self.owner:
            database.execute(f'GRANT CREATE ON DATABASE "{database.name}" TO "{self.owner}"')
            # Since PostgreSQL 16 CREATEROLE alone is not enough for this one.
            database.execute(f'GRANT pg_read_all_stats TO "{self.owner}" WITH ADMIN OPTION')
            receiptd.configure(postgres={"dsn": self.dsn("owner")})

    def make_role(self, name, attributes="LOGIN"):
        self.database.execute(f'CREATE ROLE "{self.names[name]}" {attributes}')
        return self.names[name]

    def dsn(self, name):
        return make_conninfo(self.database.dsn, user=self.names[name])

    def map_inbox(self, type="text"):
        """A table of somebody else; an owner that is no superuser has to be a member of him."""
        name = self.make_role("mapped")
        self.database.execute(f'CREATE SCHEMA messaging AUTHORIZATION "{name}"')
        with self.connect("mapped") as connection:
            connection.execute(MESSAGES.format(type))
        if self.owner:
            self.database.execute(f'GRANT "{name}" TO "{self.owner}"')
        self.receiptd.configure(inbox=MAPPING)

    def connect(self, name):
        connection = psycopg.connect(self.dsn(name), autocommit=True)
        connection.ran = []
        connection.add_notice_handler(lambda notice: connection.ran.append(notice.message_primary))
        return connection

    def migrate(self, *arguments, **options):
        if self.owner is None:
            return self.receiptd.command("migrate", *arguments, **options)
        return self.receiptd.command("migrate", "--config", str(self.receiptd.config_path), *arguments, **options)

    def drop(self):
        self.database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = ANY (%s)",
                              list(self.names.values()))
        with self.database.connect() as connection:
            roles = [*definers(self.database.name), *self.names.values()]
            roles = [role for role in roles if self.database.value("SELECT 1 FROM pg_roles WHERE rolname = %s", role)]
            for statement in ("DROP OWNED BY {} CASCADE", "DROP ROLE {}"):
                for role in roles:
                    connection.execute(sql.SQL(statement).format(sql.Identifier(role)))


@pytest.fixture(params=(False, True), ids=("ordinary owner", "superuser"))
def site(request, receiptd, database):
    site = Site(receiptd, database, request.param)
    yield site
    site.drop()


@pytest.fixture
def owned(receiptd, database):
    site = Site(receiptd, database, superuser=False)
    yield site
    site.drop()


# ---- what was tried ------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("kind", EVIL)
def test_the_daemons_role_cannot_run_code_with_the_rights_of_a_function_of_ours(site, kind):
    """A temporary table whose column has a type with a cast of one's own, and our trigger function on it."""
    site.migrate("--role", site.names["daemon"])
    with site.connect("daemon") as attacker:
        attacker.execute(RUN.format("pg_temp", EVIL[kind].format("pg_temp")))
        attacker.execute("CREATE TEMP TABLE bait (campaign_id pg_temp.evil, status int2 DEFAULT 0, flags int4 DEFAULT 0)")
        trigger = "CREATE TRIGGER t AFTER INSERT ON bait REFERENCING NEW TABLE AS inserted FOR EACH STATEMENT" \
                  " EXECUTE FUNCTION receiptd.count_inserted()"
        insert = "INSERT INTO bait (campaign_id) VALUES (ROW('x')::pg_temp.evil)"
        refused = False
        try:
            attacker.execute(trigger)
        except psycopg.errors.InsufficientPrivilege:
            refused = True
            # Were it his to use, it would look where it is before it looks at a value.
            site.database.execute(f'GRANT EXECUTE ON FUNCTION receiptd.count_inserted() TO "{site.names["daemon"]}"')
            attacker.execute(trigger)
        try:
            attacker.execute(insert)
        except psycopg.errors.InsufficientPrivilege as error:
            assert "is not the inbox: its rows are not counted" in str(error)
        assert attacker.ran == [] and refused


@pytest.mark.parametrize("kind", EVIL)
@pytest.mark.parametrize("domain", (False, True), ids=("type", "domain"))
def test_the_owner_of_a_mapped_table_cannot_run_code_with_the_rights_of_a_function_of_ours(site, kind, domain):
    """The trigger knows its columns by name: another column of this name, of a type with a cast of one's own."""
    site.map_inbox()
    site.migrate()
    with site.connect("mapped") as attacker:
        attacker.execute("INSERT INTO messaging.outbound VALUES ('a', 'o', 'c')")
        attacker.execute(RUN.format("messaging", EVIL[kind].format("messaging")))
        attacker.execute("CREATE DOMAIN messaging.nested AS messaging.evil")
        attacker.execute("ALTER TABLE messaging.outbound RENAME COLUMN campaign_id TO other")
        with pytest.raises(psycopg.errors.UndefinedColumn):
            attacker.execute("INSERT INTO messaging.outbound VALUES ('b', 'o', 'c')")
        attacker.execute(f"ALTER TABLE messaging.outbound ADD COLUMN campaign_id messaging.{'nested' if domain else 'evil'}")
        try:
            attacker.execute("INSERT INTO messaging.outbound (message_id, campaign_id) VALUES ('b', ROW('x')::messaging.evil)")
        except psycopg.errors.DatatypeMismatch as error:
            assert "column campaign_id of inbox table" in str(error) and "not one of PostgreSQL's own" in str(error)
            assert "HINT:  make it text, or let inbox.columns name another column" in str(error)
        assert attacker.ran == []
    counted = "SELECT campaign_id, sum(messages) FROM receiptd.campaign_funnel WHERE status = 0 GROUP BY 1"
    assert site.database.query(counted) == [("c", 1)]


@pytest.mark.parametrize("column", ("message_id", "org_id", "campaign_id"))
def test_a_column_of_a_foreign_type_is_refused_by_name(site, column):
    site.map_inbox()
    with site.connect("mapped") as connection:
        connection.execute("CREATE TYPE messaging.brand AS ENUM ('x', 'y')")
        connection.execute(f"ALTER TABLE messaging.outbound ALTER COLUMN {column} TYPE messaging.brand USING NULL::messaging.brand")
    refused = site.migrate(check=False)
    assert refused.returncode == 78 and "nothing was changed" in refused.stderr
    assert f"column {column} of inbox table messaging.outbound is of type messaging.brand" in refused.stderr
    assert "HINT: make it text" in refused.stderr


def test_a_policy_on_a_mapped_table_is_not_run_by_who_migrates(owned):
    """Row security calls functions of the table's owner, with the rights of whoever reads it."""
    owned.map_inbox()
    owned.migrate()
    with owned.connect("mapped") as attacker:
        attacker.execute("CREATE FUNCTION messaging.run() RETURNS bool LANGUAGE plpgsql AS"
                         " $$ BEGIN RAISE EXCEPTION 'ran as %', current_user; END $$")
        attacker.execute("INSERT INTO messaging.outbound VALUES ('a', 'o', 'c')")
        attacker.execute("CREATE POLICY p ON messaging.outbound USING (messaging.run())")
        attacker.execute("ALTER TABLE messaging.outbound ENABLE ROW LEVEL SECURITY, FORCE ROW LEVEL SECURITY")
    owned.receiptd.configure(ladder={"statuses": [{"name": "TARGETED", "code": 0}, {"name": "SENT", "code": 300, "parent": "TARGETED"}]})
    refused = owned.migrate(check=False)
    assert refused.returncode == 77 and "row-level security policy" in refused.stderr and "ran as" not in refused.stderr


# What the planner evaluates before a query reads a row, or instead of one.
PLANNED = {
    "index": "CREATE INDEX ON messaging.outbound ((messaging.run(1)))",
    "condition": "CREATE INDEX ON messaging.outbound (message_id) WHERE 1 === 1",
    "statistics": "CREATE STATISTICS messaging.s ON (messaging.run(1)), message_id FROM messaging.outbound",
    "child": "CREATE TABLE messaging.child () INHERITS (messaging.outbound); CREATE INDEX ON messaging.child ((messaging.run(1)))",
}


@pytest.mark.parametrize("kind", PLANNED)
@pytest.mark.parametrize("first", (True, False), ids=("first", "again"))
def test_what_the_planner_evaluates_on_a_mapped_table_is_not_run_by_who_migrates(site, kind, first):
    """Calls with constants, of functions that say they are immutable: with the rights of whoever plans a query."""
    site.map_inbox()
    if not first:
        site.migrate()
        site.receiptd.configure(ladder={"statuses": [{"name": "TARGETED", "code": 0}, {"name": "SENT", "code": 300, "parent": "TARGETED"}]})
    with site.connect("mapped") as attacker:
        attacker.execute("SET search_path = messaging")
        attacker.execute("CREATE FUNCTION run(int) RETURNS int LANGUAGE plpgsql IMMUTABLE AS"
                         " $$ BEGIN RAISE WARNING 'ran as %', current_user; RETURN $1; END $$")
        attacker.execute("CREATE FUNCTION same(int, int) RETURNS bool LANGUAGE plpgsql IMMUTABLE AS"
                         " $$ BEGIN RAISE WARNING 'ran as %', current_user; RETURN true; END $$;"
                         "CREATE OPERATOR === (FUNCTION = same, LEFTARG = int, RIGHTARG = int)")
        attacker.execute(PLANNED[kind])
    for arguments in ((), ("--dry-run",)):
        refused = site.migrate(*arguments, check=False)
        assert "ran as" not in refused.stdout + refused.stderr
        if arguments and first:
            continue  # there is no view yet that could be asked
        if kind == "child" and "has child messaging.child" in refused.stderr:
            continue  # refused by its shape, before anything reads it
        assert refused.returncode == 77 and "nothing was changed" in refused.stderr or arguments
        assert f'of role "{site.names["mapped"]}": a session that reads the inbox table runs it' in refused.stderr
        assert "HINT: drop the " in refused.stderr
    with site.connect("mapped") as attacker:
        attacker.execute("DROP FUNCTION messaging.run, messaging.same CASCADE")
    site.database.execute("CREATE FUNCTION messaging.run(text) RETURNS text LANGUAGE sql IMMUTABLE AS 'SELECT $1'")  # a superuser's
    with site.connect("mapped") as attacker:
        attacker.execute("CREATE INDEX ON messaging.outbound (messaging.run(message_id))")
        attacker.execute("DROP TABLE IF EXISTS messaging.child")  # a table with children is refused anyway
    site.migrate()


def test_a_mapped_table_that_became_a_view_is_not_read_by_who_migrates(owned):
    """Before PostgreSQL 16 a rule makes a view of an empty table, below the view that is the inbox."""
    if owned.database.value("SELECT current_setting('server_version_num')::int") >= 160000:
        pytest.skip("tables stay tables since PostgreSQL 16")
    owned.map_inbox()
    owned.receiptd.configure(inbox={"targeted": "none"})
    owned.migrate()
    with owned.connect("mapped") as attacker:
        columns = attacker.execute("SELECT string_agg(format('%s::%s AS %I', CASE attname WHEN 'message_id' THEN 'messaging.run()'"
                                   " ELSE 'NULL' END, format_type(atttypid, atttypmod), attname), ', ' ORDER BY attnum)"
                                   " FROM pg_attribute WHERE attrelid = 'messaging.outbound'::regclass AND attnum > 0").fetchone()[0]
        attacker.execute("CREATE FUNCTION messaging.run() RETURNS text LANGUAGE plpgsql AS"
                         " $$ BEGIN RAISE WARNING 'ran as %', current_user; RETURN 'm'; END $$")
        attacker.execute("ALTER TABLE messaging.outbound DROP CONSTRAINT outbound_pkey")
        attacker.execute("VACUUM messaging.outbound")  # which notes that there is no index
        attacker.execute(f'CREATE RULE "_RETURN" AS ON SELECT TO messaging.outbound DO INSTEAD SELECT {columns} FROM generate_series(1, 1)'
                         " WHERE messaging.run() = 'm'")
    owned.receiptd.configure(ladder={"statuses": [{"name": "TARGETED", "code": 0}, {"name": "SENT", "code": 300, "parent": "TARGETED"}]})
    refused = owned.migrate(check=False)
    assert "ran as" not in refused.stdout + refused.stderr
    assert refused.returncode == 77 and "view messaging.outbound calls what a view has in it" in refused.stderr


def test_a_domain_of_a_type_of_our_own_and_a_table_under_a_new_name_are_counted(site):
    site.database.execute("CREATE DOMAIN public.name AS text CHECK (value <> ''); CREATE DOMAIN public.wave AS public.name")
    site.map_inbox("public.wave")
    site.migrate()
    with site.connect("mapped") as platform:
        platform.execute("INSERT INTO messaging.outbound VALUES ('a', 'o', 'c'), ('b', 'o', 'c')")
        platform.execute("ALTER TABLE messaging.outbound RENAME TO sent")
        with platform.cursor().copy("COPY messaging.sent (message_id, campaign_id) FROM STDIN") as copy:
            copy.write_row(("d", "c"))
    assert site.database.value("SELECT messages FROM receiptd.campaign_funnel WHERE campaign_id = 'c' AND status = 0") == 3


def test_a_partitioned_inbox_counts_what_is_inserted_by_its_name(site):
    site.map_inbox()
    with site.connect("mapped") as platform:
        platform.execute("DROP TABLE messaging.outbound;" + MESSAGES.format("text") + " PARTITION BY HASH (message_id);"
                         + "".join(f"CREATE TABLE messaging.part_{n} PARTITION OF messaging.outbound"
                                   f" FOR VALUES WITH (MODULUS 2, REMAINDER {n});" for n in range(2)))
        site.migrate()
        platform.execute("INSERT INTO messaging.outbound SELECT 'm' || n, 'o', 'c' || n % 2 FROM generate_series(1, 9) n")
    counted = "SELECT campaign_id, messages FROM receiptd.campaign_funnel WHERE status = 0 ORDER BY 1"
    assert site.database.query(counted) == [("c0", 4), ("c1", 5)]


# ---- what the documentation says ------------------------------------------------------------------------------------

def documented(found):
    """{object: {role: rights}} of the rows between the marks of scripts/rights, for the objects that were found."""
    said = {name: {role: set() for role in columns} for name, columns in found.items()}
    rows = (ROOT / "docs/security.md").read_text().split("| role | may | why |\n|---|---|---|\n")[1].split("<!-- end -->")[0]
    for roles, may, _ in (line.strip("| ").split(" | ") for line in rows.splitlines()):
        for given in may.split("; "):
            what, on = re.fullmatch(r"(.*?) (?:on|of) (.*)", given).groups()
            for name in objects(on, found) if what != "member" else []:
                for role in roles.split(", "):
                    said[name][role] |= {"owner"} if what == "owner" else rights(what)  # KeyError: it is not there
    return said


def objects(text, found):
    """`a`, `b` or a*() of the page, among those that were found."""
    if text == "all tables and views":
        return [name for name in found if not name.endswith(("()", "_id_seq")) and " " not in name]
    patterns = re.findall(r"`([^`]+)`", text) or [text]
    return [name for pattern in patterns for name in (fnmatch.filter(found, pattern) if "*" in pattern else [pattern])]


def rights(text):
    """"SELECT, INSERT (a, b)" as {"SELECT", "INSERT a", "INSERT b"}; what a key wants is there, as all keys of the page are set."""
    found = set()
    for right, columns in re.findall(r"([A-Z]+)(?: \(([^)]*)\))?", re.sub(r"with `[^`]*`", "", text)):
        found |= {f"{right} {column}" for column in columns.split(", ")} if columns else {right}
    return found


ACTUAL = """
    SELECT '`the schema' AS object, a.grantee, a.privilege_type, n.nspowner AS owner
    FROM pg_namespace n, aclexplode(COALESCE(n.nspacl, acldefault('n', n.nspowner))) a WHERE n.nspname = 'receiptd'
    UNION ALL
    SELECT '`the database', a.grantee, a.privilege_type, 0
    FROM pg_database d, aclexplode(COALESCE(d.datacl, acldefault('d', d.datdba))) a WHERE d.datname = current_database()
    UNION ALL
    SELECT c.relname, a.grantee, a.privilege_type, c.relowner
    FROM pg_class c
    LEFT JOIN aclexplode(COALESCE(c.relacl, acldefault(CASE c.relkind WHEN 'S' THEN 's' ELSE 'r' END::"char", c.relowner))) a ON true
    WHERE c.relnamespace = 'receiptd'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'S')
    UNION ALL
    SELECT c.relname, a.grantee, a.privilege_type || ' ' || t.attname, c.relowner
    FROM pg_class c JOIN pg_attribute t ON t.attrelid = c.oid, aclexplode(t.attacl) a WHERE c.relnamespace = 'receiptd'::regnamespace
    UNION ALL
    SELECT p.proname || '()', a.grantee, a.privilege_type, p.proowner
    FROM pg_proc p LEFT JOIN aclexplode(COALESCE(p.proacl, acldefault('f', p.proowner))) a ON true
    WHERE p.pronamespace = 'receiptd'::regnamespace
"""


def actual(site):
    roles = dict(site.database.query("SELECT oid, rolname FROM pg_roles")) | {0: "PUBLIC"}
    columns = {site.names[name]: name for name in NAMES} | dict(zip(definers(site.database.name), ("counter", "watcher")))
    found, owner = {}, site.owner or site.database.value("SELECT current_user")
    for name, grantee, right, belongs in site.database.query(ACTUAL):
        row = found.setdefault(name.lstrip("`"), {column: set() for column in columns.values()})
        role = roles.get(grantee)
        if name == "`the database":
            assert role not in columns
            continue
        assert roles[belongs] in (owner, *columns)
        if belongs == grantee and role in columns:
            row[columns[role]].add("owner")
        elif role is not None and role != owner:
            row[columns[role]].add(right)  # KeyError: somebody whom the table does not know, PUBLIC for one
    return found


@pytest.mark.parametrize("mapped", (False, True), ids=("own inbox", "mapped inbox"))
def test_the_documentation_says_what_each_role_may_do_and_the_catalogs_agree(site, mapped):
    if mapped:
        site.map_inbox()
    site.receiptd.configure(counters={"times": True})
    site.migrate(*(word for name in NAMES for word in (OPTIONS[name], site.names[name])))
    found = actual(site)
    assert found == documented(found)
    if mapped:
        touched = "SELECT count(*) FROM pg_class c, aclexplode(c.relacl) a JOIN pg_roles r ON r.oid = a.grantee" \
                  " WHERE c.oid = 'messaging.outbound'::regclass AND r.rolname = ANY (%s)"
        assert site.database.value(touched, [site.names[name] for name in NAMES] + definers(site.database.name)) == 0
    attributes = "SELECT rolcanlogin OR rolsuper OR rolcreaterole OR rolcreatedb OR rolreplication OR rolbypassrls FROM pg_roles" \
                 " WHERE rolname = ANY (%s)"
    assert site.database.query(attributes, definers(site.database.name)) == [(False,), (False,)]
    groups = "SELECT g.rolname FROM pg_auth_members m JOIN pg_roles g ON g.oid = m.roleid JOIN pg_roles r ON r.oid = m.member" \
             " WHERE r.rolname = ANY (%s)"
    assert site.database.query(groups, [*definers(site.database.name), *(site.names[name] for name in NAMES)]) == \
        [("pg_read_all_stats",)], "the watcher's, and no other membership"


def test_without_any_role_named_nobody_but_the_owner_may_execute_a_function(site):
    site.migrate()
    assert site.database.query("SELECT p.oid::regprocedure::text FROM pg_proc p WHERE p.pronamespace = 'receiptd'::regnamespace"
                               " AND has_function_privilege('public', p.oid, 'EXECUTE')") == []
    definer = "SELECT proname, proowner::regrole::text FROM pg_proc WHERE pronamespace = 'receiptd'::regnamespace AND prosecdef ORDER BY 1"
    counter, watcher = definers(site.database.name)
    assert site.database.query(definer) == [("claim_push", counter), ("count_deleted", counter), ("count_inserted", counter), ("watch_server", watcher)]


def test_the_intakes_role_reads_aliases_and_nothing_else(owned):
    owned.migrate("--intake-role", owned.names["intake"])
    with owned.connect("intake") as intake:
        assert intake.execute("SELECT count(*) FROM receiptd.message_alias").fetchone() == (0,)
        for statement in ("INSERT INTO receiptd.message_alias VALUES ('a', 'g', 'm')", "SELECT 1 FROM receiptd.message_inbox",
                          "SELECT receiptd.actions_leave('me')", "SELECT * FROM receiptd.watch_server()", "SELECT 1 FROM receiptd.schema_version",
                          "CREATE TABLE receiptd.own (id int)"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                intake.execute(statement)


def test_the_intake_looks_up_aliases_as_its_own_role_and_a_reload_takes_another_one(owned, topic, create_topic):
    owned.migrate("--role", owned.names["daemon"], "--intake-role", owned.names["intake"])
    owned.database.execute("INSERT INTO receiptd.message_alias VALUES ('acme', 'SM1', 'ours-1')")
    letters = create_topic(1)
    owned.receiptd.configure(**QUICK)
    owned.receiptd.configure(postgres={"dsn": owned.dsn("daemon")}, control={"socket": str(owned.receiptd.directory / "ctl")}, intake={
        "enabled": True, "dsn": owned.dsn("intake"), "listen": "127.0.0.1:0", "metrics_listen": "127.0.0.1:0", "topic": str(topic),
        "dead_letter_topic": str(letters), "alias": "required", "accounts": [{"name": "acme", "gateway": "twilio", "verify": "off"}]})
    process = intake.start(owned.receiptd, command="run")
    sessions = "SELECT DISTINCT usename::text FROM pg_stat_activity WHERE application_name LIKE 'receiptd/%/intake'"
    with intake.Client(process.port) as client:
        client.send(intake.twilio(None, gateway_id="SM1"))
        assert client.answer().status // 100 == 2
    ((value, _),) = intake.read_topic(topic)
    (event,) = json.loads(value)
    assert event["message_id"] == "ours-1"
    assert owned.database.query(sessions) == [(owned.names["intake"],)]
    owned.receiptd.configure(intake={"dsn": None})  # then it is postgres.dsn
    assert "applied: intake.dsn" in owned.receiptd.command("ctl", "reload").stdout
    owned.database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", owned.names["intake"])
    process.wait_for(lambda: owned.database.query(sessions) == [(owned.names["daemon"],)], what="the intake is back as the daemon's role")
    process.stop()


# ---- what readers see -------------------------------------------------------------------------------------------------

def test_readers_see_no_payload_and_no_answer(owned):
    owned.migrate("--serve-role", owned.names["serve"])
    with owned.connect("serve") as reader:
        reader.execute("SET search_path = receiptd")
        for query in ("SELECT payload FROM dead_letter", "SELECT * FROM dead_letter", "SELECT d FROM dead_letter d", "SELECT payload FROM parked_event",
                      "SELECT traceparent FROM parked_event", "SELECT gateway_id FROM parked_event", "SELECT to_jsonb(p) FROM parked_event p",
                      "SELECT answer FROM action", "SELECT subject_hash FROM action", "SELECT data FROM run"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                reader.execute(query)
        reader.execute("SELECT d.reason, z.size FROM dead_letter d JOIN dead_letter_size z USING (topic, partition, \"offset\", index)")


def may_read(reader, column):
    try:
        reader.execute(sql.SQL("SELECT {} FROM message_inbox").format(sql.Identifier(column)))
    except psycopg.errors.InsufficientPrivilege:
        return False
    return True


# As spelt in the table: letters of both cases, a quote, and types that are no text.
NAMED = {"Brand": "text", 'it"s': "boolean", "tags": "text[]", "created_at": "timestamptz", "customer": "bigint", "secret": "text"}


@pytest.mark.parametrize("mapped", (False, True), ids=("own inbox", "mapped inbox"))
def test_readers_read_the_columns_of_the_inbox_that_the_configuration_names(site, mapped):
    """Nothing names `secret`; what a rule no longer names is taken away again."""
    if mapped:
        site.map_inbox()
    else:
        site.migrate()
    with (site.connect("mapped") if mapped else site.database.connect()) as connection:
        for column, kind in NAMED.items():
            connection.execute(sql.SQL("ALTER TABLE {} ADD COLUMN IF NOT EXISTS {} {}").format(
                sql.SQL("messaging.outbound" if mapped else "receiptd.message_inbox"), sql.Identifier(column), sql.SQL(kind)))
    own = {"message_id", "org_id", "campaign_id", "status", "flags", "status_at", "updated_at"}
    rules = [{"column": name, "value": "x", "after": "72h"} for name in ("Brand", 'it"s', "Brand", "tags", "missing", "ctid")]
    columns = {"customer_id": "customer", "created_at": "created_at"}
    for expiry, keys, named in ((rules, columns, {"Brand", 'it"s', "tags"} | ({"customer", "created_at"} if mapped else set())),
                                ([*rules[1:2], {"after": "1h"}], dict.fromkeys(columns), {'it"s'}), ([], dict.fromkeys(columns), set())):
        site.receiptd.configure(inbox={"expiry": expiry} | ({**MAPPING, "columns": keys} if mapped else {}))
        site.migrate("--serve-role", site.names["serve"])
        with site.connect("serve") as reader:
            reader.execute("SET search_path = receiptd")
            there = {row[0] for row in site.database.query("SELECT attname::text FROM pg_attribute WHERE attnum > 0 AND NOT attisdropped"
                                                           " AND attrelid = 'receiptd.message_inbox'::regclass")}
            assert there >= NAMED.keys() and {column for column in there if may_read(reader, column)} == own | named
            for query in ("SELECT * FROM message_inbox", "SELECT to_jsonb(m) FROM message_inbox m", "SELECT count(m) FROM message_inbox m",
                          "SELECT ctid FROM message_inbox", "SELECT 1 FROM message_inbox WHERE secret = 'x'"):
                with pytest.raises((psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedColumn)):
                    reader.execute(query)


# ---- what holds others up ---------------------------------------------------------------------------------------------

def test_who_has_no_right_to_work_holds_nobody_up(owned):
    """Turns are rows and tables. Advisory locks, which every role may take, and names of sessions, which every role may choose, decide nothing."""
    owned.migrate(*(value for name in NAMES for value in (OPTIONS[name], owned.names[name])))
    tables = [row[0] for row in owned.database.query(
        "SELECT relname FROM pg_class WHERE relnamespace = 'receiptd'::regnamespace AND relkind IN ('r', 'p') ORDER BY 1")]
    written = {"platform": {"message_alias", "message_inbox"}}
    live = (ROOT / "sql/migrate/live_daemons.sql").read_text()
    with owned.connect("owner") as owner:
        owner.execute("SET search_path = receiptd")
        for name in ("intake", "serve", "platform"):
            dsn = make_conninfo(owned.dsn(name), application_name="receiptd/elsewhere-1/control")
            with psycopg.connect(dsn, autocommit=True) as stranger:
                for table in set(tables) - written.get(name, set()):
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        stranger.execute(f"DO $$ BEGIN LOCK TABLE receiptd.{table} IN SHARE UPDATE EXCLUSIVE MODE; END $$")
                    with pytest.raises(psycopg.errors.InsufficientPrivilege):
                        stranger.execute(f"SELECT FROM receiptd.{table} FOR KEY SHARE")
                assert owner.execute(live).fetchone() == (None,)
        # The daemon's own sessions are seen.
        with psycopg.connect(make_conninfo(owned.dsn("daemon"), application_name="receiptd/host-1/control")):
            assert "host-1" in owner.execute(live).fetchone()[0]


# ---- who migrates -----------------------------------------------------------------------------------------------------

def test_a_superuser_migrates_only_where_it_says_so(receiptd, database):
    refused = receiptd.command("migrate", "--config", str(receiptd.config_path), check=False)
    assert refused.returncode == 77 and "nothing was changed" in refused.stderr
    assert f'role "{database.value("SELECT current_user")}" is a superuser' in refused.stderr
    assert f'GRANT CREATE ON DATABASE "{database.name}" TO receiptd_owner' in refused.stderr and "--as-superuser" in refused.stderr
    receiptd.command("migrate", "--config", str(receiptd.config_path), "--as-superuser")


def test_an_owner_that_may_not_make_roles_is_told_what_to_have_run(owned):
    owned.database.execute(f'ALTER ROLE "{owned.owner}" NOCREATEROLE; REVOKE pg_read_all_stats FROM "{owned.owner}"')
    refused = owned.migrate(check=False)
    assert refused.returncode == 77 and "HINT: have an administrator run the statements above" in refused.stderr
    assert not owned.database.value("SELECT 1 FROM pg_namespace WHERE nspname = 'receiptd'")
    statements = "".join(line for line in refused.stderr.splitlines() if line.endswith(";"))
    owned.database.execute(statements)
    owned.migrate()
    assert owned.migrate().stdout == "nothing to do\n"
    _, watcher = definers(owned.database.name)
    owned.database.execute(f'REVOKE pg_read_all_stats FROM "{watcher}"')
    assert f'until an administrator runs: GRANT pg_read_all_stats TO "{watcher}"' in owned.migrate().stdout


PROGRAMS = "GRANT pg_execute_server_program TO \"{0}\""


def warned(result):
    """The roles that the command warns of, each with the statement that it names."""
    return dict(re.findall(r'^warning: role "([^"]+)" .*; have an administrator run: (.+)$', result.stderr, re.MULTILINE))


def before_16(owned):
    if int(owned.database.value("SHOW server_version_num")) >= 160000:
        pytest.skip("since PostgreSQL 16 CREATEROLE gives no role that others have made")


def test_an_owner_gives_createrole_back_after_the_first_migration(owned):
    """With it, before PostgreSQL 16, the owner's password is one for the whole server."""
    before_16(owned)
    options = [value for name in NAMES for value in (OPTIONS[name], owned.names[name])]
    undo = {owned.owner: f'ALTER ROLE "{owned.owner}" NOCREATEROLE'}
    assert warned(owned.migrate(*options)) == undo
    # Who checks as the daemon hears of the owner, too.
    for name in ("owner", "daemon"):
        owned.receiptd.configure(postgres={"dsn": owned.dsn(name)})
        assert warned(owned.receiptd.command("check-config", "--connect")) == undo
    owned.receiptd.configure(postgres={"dsn": owned.dsn("owner")})
    with owned.connect("owner") as connection:
        connection.execute(PROGRAMS.format(owned.owner))  # what the warning is about
    # The server still has the role that CREATEROLE gave.
    assert f'"{owned.owner}" is a member of "pg_execute_server_program"' in owned.migrate().stderr
    owned.database.execute(f'REVOKE pg_execute_server_program FROM "{owned.owner}"')
    owned.database.execute(undo[owned.owner])
    for name in ("owner", *NAMES):
        with owned.connect(name) as connection, pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(PROGRAMS.format(owned.names[name]))
    # Nothing later needs it.
    owned.database.execute("INSERT INTO receiptd.message_inbox VALUES ('m', 'o', 'c')")
    for command in (("migrate", *options), ("maintain",), ("erase", "--message", "m"), ("audit", "--repair"), ("check-config", "--connect")):
        assert not warned(owned.receiptd.command(*command, "--config", str(owned.receiptd.config_path)))
    owned.receiptd.configure(counters={"by": ["channel"], "groups": ["customer"]})
    owned.migrate(*options)


@pytest.mark.parametrize("attributes", ("CREATEROLE", "SUPERUSER", "IN ROLE pg_read_server_files"))
def test_a_role_that_acts_as_one_with_such_rights_is_named(owned, attributes):
    before_16(owned)
    owned.migrate()
    owned.database.execute(f'ALTER ROLE "{owned.owner}" NOCREATEROLE')
    assert not warned(owned.migrate())
    owned.database.execute(f'GRANT "{owned.make_role("mapped", f"NOLOGIN {attributes}")}" TO "{owned.owner}"')
    undo = warned(owned.migrate())[owned.owner]
    assert undo == f'REVOKE "{owned.names["mapped"]}" FROM "{owned.owner}"'
    owned.database.execute(undo)
    assert not warned(owned.migrate())


def test_a_named_role_that_makes_roles_is_named(owned):
    before_16(owned)
    owned.make_role("serve", "LOGIN CREATEROLE")
    assert set(warned(owned.migrate("--serve-role", owned.names["serve"]))) == {owned.owner, owned.names["serve"]}


@pytest.mark.parametrize("made, message, undo", [
    ("ALTER ROLE {counter} LOGIN", "may log in or has other attributes", "ALTER ROLE {counter} NOLOGIN"),
    ("GRANT {counter} TO {mapped}", 'has the member "{mapped}"', "REVOKE {counter} FROM {mapped}"),
    ("GRANT {mapped} TO {counter}", 'is a member of "{mapped}"', "REVOKE {mapped} FROM {counter}"),
])
def test_a_role_of_this_name_that_serves_others_is_refused(owned, made, message, undo):
    names = {"counter": definers(owned.database.name)[0], "mapped": owned.make_role("mapped")}
    quoted = {key: f'"{name}"' for key, name in names.items()}
    owned.database.execute(f"CREATE ROLE {quoted['counter']} NOLOGIN; GRANT {quoted['counter']} TO \"{owned.owner}\"")
    owned.database.execute(made.format(**quoted))
    refused = owned.migrate(check=False)
    assert refused.returncode == 77 and message.format(**names) in refused.stderr
    assert undo.format(counter=names["counter"], mapped=quoted["mapped"]) in refused.stderr
    owned.database.execute(undo.format(counter=quoted["counter"], mapped=quoted["mapped"]))
    owned.migrate()


def test_a_role_that_is_more_than_this_is_refused(owned):
    """Rights that go to all members of it, or that take away what it has to have."""
    owned.migrate()
    counter, watcher = definers(owned.database.name)
    for option in OPTIONS.values():
        for name, why in ((counter, "that of a function of ours"), (watcher, "that of a function of ours"),
                          ("pg_monitor", "of PostgreSQL's own")):
            refused = owned.migrate(option, name, check=False)
            assert refused.returncode == 64 and "nothing was changed" in refused.stderr
            assert f'{option}: role "{name}" is {why}' in refused.stderr
    daemon = owned.names["daemon"]
    refused = owned.migrate("--role", daemon, "--intake-role", daemon, check=False)
    assert refused.returncode == 64 and f'--intake-role: role "{daemon}" is named twice' in refused.stderr


def test_two_databases_of_one_server_have_nothing_in_common(create_database, create_receiptd, topic):
    sites = []
    try:
        for _ in range(2):
            database = create_database()
            sites.append(Site(create_receiptd(database, topic), database, superuser=False))
            sites[-1].migrate()
        one, two = sites
        assert not set(definers(one.database.name)) & set(definers(two.database.name))
        for role in definers(one.database.name):
            assert one.database.value("SELECT pg_has_role(%s, %s, 'MEMBER')", one.owner, role)
            assert not one.database.value("SELECT pg_has_role(%s, %s, 'MEMBER')", two.owner, role)
            for table in ("counter_delta", "status_path"):
                assert not two.database.value("SELECT has_any_column_privilege(%s, %s, 'SELECT, INSERT')", role, f"receiptd.{table}")
    finally:
        for site in reversed(sites):
            site.drop()


def test_a_migration_takes_back_what_others_gave(owned):
    """The functions belong to the owner, as a restored dump may have them, and the daemon's role may execute all of them."""
    daemon = owned.make_role("daemon")
    owned.migrate()
    given = owned.database.query("SELECT oid::regprocedure::text FROM pg_proc WHERE pronamespace = 'receiptd'::regnamespace AND prosecdef")
    assert len(given) == 4
    for function, in given:
        owned.database.execute(f'ALTER FUNCTION {function} OWNER TO "{owned.owner}"')
    owned.database.execute(f'GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA receiptd TO "{daemon}"')
    owned.migrate()
    executes = "SELECT p.proname FROM pg_proc p WHERE p.pronamespace = 'receiptd'::regnamespace AND has_function_privilege(%s, p.oid, 'EXECUTE')"
    left = {name for name, in owned.database.query(executes, daemon)}
    assert left and not left & {"count_inserted", "count_deleted", "refuse_change", "install_inbox_trigger", "install_retired_trigger", "install_change_trigger", "map_inbox", "ladder_fill"}
    owners = "SELECT DISTINCT proowner::regrole::text FROM pg_proc WHERE pronamespace = 'receiptd'::regnamespace AND prosecdef ORDER BY 1"
    assert [name for name, in owned.database.query(owners)] == definers(owned.database.name)
    with owned.connect("owner") as owner:
        owner.execute("INSERT INTO receiptd.message_inbox (message_id, campaign_id) VALUES ('m', 'c')")
        assert owner.execute("SELECT messages FROM receiptd.campaign_funnel WHERE campaign_id = 'c'").fetchall() == [(1,)]
    assert owned.migrate().stdout == "nothing to do\n"
