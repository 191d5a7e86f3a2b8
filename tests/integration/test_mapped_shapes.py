"""Existing tables of many shapes as the inbox: each is exact, or `migrate` and `check-config --connect` refuse it with the SQL that helps.

A refused table gets that SQL literally, and is exact afterwards; where PostgreSQL has no such statement, the refusal says what else to do.
"""

import json
import random
import re
from dataclasses import dataclass, field

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from oracle.ledger import Row
from oracle.traffic import JOURNEYS, Outgoing

SQL = re.compile(r"^HINT: .*?: ((?:CREATE|ALTER|UPDATE|DROP|GRANT) .*)$", re.MULTILINE)
REST = "org_id text, campaign_id text"
ID = f"message_id text PRIMARY KEY, {REST}"
CONFIG = 78
NOT_YET = "note: postgres.schema: there is no inbox yet; run receiptd migrate\n"


def number(n):
    return str(10_000 + n)


def uuid(n):
    return f"6f9619ff-8b86-d011-b42d-{n:012x}"


def word(n):
    return f"M-{n}é"


def twins(n):
    """Ids that differ in their case only."""
    return f"M-{n // 2}" if n % 2 else f"m-{n // 2}"


@dataclass
class Shape:
    setup: str  # makes public.t
    id: callable = word
    campaign: callable = lambda n: f"c-{n % 3}"
    inbox: dict = field(default_factory=lambda: {"table": "public.t"})
    unknown: str = "park"
    said: str = None  # words of the refusal; None: accepted as it is
    mends: bool = True  # the refusal's SQL makes it exact
    columns: str = "message_id, org_id, campaign_id"  # as the platform inserts them
    table: str = "public.t"
    overrides: bool = False  # gives ids to a column that makes its own


def table(columns, more=""):
    return f"CREATE TABLE public.t ({columns}); {more}"


def mapping(name, **columns):
    return {"table": name, "columns": columns}


def days(type, n, id="text", key="message_id, born"):
    """A table in n partitions by the time of insertion."""
    return (f"CREATE TABLE public.t (message_id {id}, {REST}, born {type} NOT NULL DEFAULT now(), PRIMARY KEY ({key})) PARTITION BY RANGE (born);"
            "CREATE TABLE t_0 PARTITION OF t FOR VALUES FROM ('2020-02-01') TO (MAXVALUE);"
            + "".join(f"CREATE TABLE t_{day} PARTITION OF t FOR VALUES FROM ('2020-01-{day:02}') TO ('2020-01-{day + 1:02}');" for day in range(1, n)))


UPPER = 'CREATE COLLATION ignoring (provider = icu, locale = \'und-u-ks-level2\', deterministic = false);'
TRIGGER = """CREATE FUNCTION public.touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN {} RETURN NEW; END $$;
    CREATE TRIGGER touch BEFORE INSERT OR UPDATE ON public.t FOR EACH ROW EXECUTE FUNCTION public.touch()"""
INTEGER_CAMPAIGN = table("message_id text PRIMARY KEY, org_id text, campaign_id integer")
BIGINT = table(f"message_id bigint PRIMARY KEY, {REST}")
UUID = table("message_id uuid PRIMARY KEY, org_id text, campaign_id uuid")
TEXTY = dict(said=r"no index that finds message_id \(\w+\) by its text")
PLAIN = "column campaign_id of inbox table public.t is no plain text: a new row could not be made"
ALONE = "no unique index on message_id alone"

SHAPES = {
    "text": Shape(table(ID)),
    "text, insert": Shape(table(ID), unknown="insert"),
    "text, dead-letter": Shape(table(ID), unknown="dead-letter"),
    "integer campaign": Shape(INTEGER_CAMPAIGN, campaign=lambda n: str(n % 3)),
    "integer campaign, insert": Shape(INTEGER_CAMPAIGN, campaign=lambda n: str(n % 3), unknown="insert", said=PLAIN),
    "smallint organisation": Shape(table("message_id text PRIMARY KEY, org_id smallint, campaign_id text")),
    "bigint": Shape(BIGINT, number, **TEXTY),
    "bigint, insert": Shape(BIGINT, number, unknown="insert", **TEXTY),
    "uuid": Shape(UUID, uuid, lambda n: uuid(n % 3), **TEXTY),
    "uuid, insert": Shape(UUID, uuid, lambda n: uuid(n % 3), unknown="insert", **TEXTY),
    "numeric": Shape(table(f"message_id numeric(20) PRIMARY KEY, {REST}"), number, **TEXTY),
    "varchar": Shape(table("message_id varchar(64) PRIMARY KEY, org_id varchar(20), campaign_id varchar(20)"), unknown="insert"),
    "char": Shape(table("message_id char(40) PRIMARY KEY, org_id char(9), campaign_id char(9)"), number, unknown="insert", **TEXTY),
    "citext": Shape("CREATE EXTENSION citext;" + table("message_id citext PRIMARY KEY, org_id text, campaign_id citext"), twins,
                    said="column message_id of inbox table public.t is of type public.citext"),
    "domains": Shape("CREATE DOMAIN id AS text CHECK (VALUE <> ''); CREATE DOMAIN wave AS integer CHECK (VALUE >= 0);"
                     + table("message_id id PRIMARY KEY, org_id text, campaign_id wave"), campaign=lambda n: str(n % 3)),
    "enum": Shape("CREATE TYPE wave AS ENUM ('c-0', 'c-1', 'c-2');" + table("message_id text PRIMARY KEY, org_id text, campaign_id wave"),
                  said="column campaign_id of inbox table public.t is of type public.wave"),
    "date as campaign": Shape(table("message_id text PRIMARY KEY, org_id text, campaign_id date"), campaign=lambda n: f"2026-11-0{n % 3 + 1}",
                              said="is of type date"),
    "generated id": Shape(table("org_id text, number text, campaign_id text, message_id text GENERATED ALWAYS AS (org_id || '/' || number) STORED "
                                "UNIQUE"), lambda n: f"o-{n % 3}/{n}", columns="GENERATED"),
    "generated id, insert": Shape(table(f"message_id text GENERATED ALWAYS AS ('m') STORED UNIQUE, {REST}"), unknown="insert",
                                  said="column message_id of inbox table public.t is generated"),
    "generated status": Shape(table(f"{ID}, state smallint, status smallint GENERATED ALWAYS AS (COALESCE(state, 0::smallint)) STORED NOT NULL"),
                              inbox=mapping("public.t", status="status"), said="column status of inbox table public.t is generated"),
    "identity": Shape(table(f"message_id bigint GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, {REST}"), number, unknown="insert", **TEXTY),
    "identity, always": Shape(table(f"message_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, {REST}",
                                    "CREATE INDEX ON public.t ((message_id::text))"), number, unknown="insert",
                              said="column message_id of inbox table public.t is no plain text"),
    "identity, always, park": Shape(table(f"message_id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, {REST}"), number, overrides=True, **TEXTY),
    "serial beside the id": Shape(table(f"row_id bigserial PRIMARY KEY, message_id text NOT NULL UNIQUE, {REST}"), unknown="insert"),
    "partitioned by hash": Shape("CREATE TABLE public.t (message_id text PRIMARY KEY, org_id text, campaign_id text) PARTITION BY HASH (message_id);"
                                 + "".join(f"CREATE TABLE t_{n} PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER {n});" for n in range(3)),
                                 unknown="insert"),
    "bigint, partitioned by hash": Shape(
        "CREATE TABLE public.t (message_id bigint NOT NULL, org_id text, campaign_id text) PARTITION BY HASH (message_id);"
        + "".join(f"CREATE TABLE t_{n} PARTITION OF t FOR VALUES WITH (MODULUS 3, REMAINDER {n});" for n in range(3)), number, said=ALONE),
    "partitioned by date": Shape(days("date", 8)),
    "partitioned by date, insert": Shape(days("date", 8), unknown="insert", said="would make two rows", mends=False),
    "partitioned by date, uuid": Shape(days("date", 8, id="uuid"), uuid, **TEXTY),
    "partitioned by date, key in another order": Shape(days("date", 8, key="born, message_id"),
                                                       said="on message_id with the columns by which it is partitioned"),
    "partitioned by many dates": Shape(days("date", 9), said="looked up in all 9 partitions, and inbox.probe_partitions is 8", mends=False),
    "partitioned by many dates, accepted": Shape(days("date", 9), inbox={"table": "public.t", "probe_partitions": 9}),
    "partitioned by a time without a name": Shape(days("timestamptz", 9), said="name that column in inbox.columns.created_at", mends=False),
    "partitioned by created_at": Shape(days("timestamptz", 9), inbox=mapping("public.t", created_at="born")),
    "partitioned by created_at, no recent set": Shape(days("timestamptz", 9), inbox=mapping("public.t", created_at="born") | {"recent_rows": 0},
                                                      said="set inbox.recent_rows", mends=False),
    "partitioned by date, then by hash": Shape(
        f"CREATE TABLE public.t (message_id text, {REST}, born date DEFAULT '2026-11-23', PRIMARY KEY (message_id, born)) PARTITION BY RANGE (born);"
        "CREATE TABLE t_11 PARTITION OF t FOR VALUES FROM ('2026-11-01') TO ('2026-12-01') PARTITION BY HASH (message_id);"
        + "".join(f"CREATE TABLE t_11_{n} PARTITION OF t_11 FOR VALUES WITH (MODULUS 9, REMAINDER {n});" for n in range(9))),
    "partitioned by hash, then by time": Shape(
        f"CREATE TABLE public.t (message_id text, {REST}, born timestamptz DEFAULT '2020-01-01', PRIMARY KEY (message_id, born)) PARTITION BY HASH (message_id);"
        "CREATE TABLE t_0 PARTITION OF t FOR VALUES WITH (MODULUS 1, REMAINDER 0) PARTITION BY RANGE (born);"
        + "".join(f"CREATE TABLE t_0_{n} PARTITION OF t_0 FOR VALUES FROM ('2020-01-{n + 1:02}') TO ('2020-01-{n + 2:02}');" for n in range(9)),
        inbox=mapping("public.t", created_at="born"), mends=False,
        said=r"partitioned by HASH \(message_id\), and each partition by RANGE \(born\): each receipt would be looked up in all 9 partitions below one.*\n"
             r".*by ranges of created_at \(inbox.columns.created_at\) and only those partitions by hash"),
    "uuid, in many partitions by hash": Shape(
        f"CREATE TABLE public.t (message_id uuid PRIMARY KEY, {REST}) PARTITION BY HASH (message_id); CREATE INDEX ON public.t ((message_id::text));"
        + "".join(f"CREATE TABLE t_{n} PARTITION OF t FOR VALUES WITH (MODULUS 9, REMAINDER {n});" for n in range(9)), uuid, mends=False,
        said="receipts bring the id as a text, and its column has another type: each receipt would be looked up in all 9"),
    "uuid, in many partitions by ranges": Shape(
        f"CREATE TABLE public.t (message_id uuid PRIMARY KEY, {REST}) PARTITION BY RANGE (message_id); CREATE INDEX ON public.t ((message_id::text));"
        "CREATE TABLE t_other PARTITION OF t DEFAULT;" + "".join(f"CREATE TABLE t_{n} PARTITION OF t FOR VALUES FROM ('{n}0000000-0000-0000-0000-000000000000') TO"
                                                                 f" ('{n + 1}0000000-0000-0000-0000-000000000000');" for n in range(9)),
        uuid, inbox={"table": "public.t", "ids": "uuidv7"}),
    "domain, in many partitions by hash": Shape(
        f"CREATE DOMAIN id AS text; CREATE TABLE public.t (message_id id PRIMARY KEY, {REST}) PARTITION BY HASH (message_id); CREATE INDEX ON public.t ((message_id::text));"
        + "".join(f"CREATE TABLE t_{n} PARTITION OF t FOR VALUES WITH (MODULUS 9, REMAINDER {n});" for n in range(9))),
    "composite key": Shape(table(f"message_id text, {REST}, PRIMARY KEY (org_id, message_id)"), said=ALONE),
    "key that begins with the id": Shape(table(f"message_id text, {REST}, PRIMARY KEY (message_id, org_id)"), said=ALONE),
    "no key": Shape(table(f"message_id text, {REST}"), said=ALONE),
    "index that is not unique": Shape(table(f"message_id text, {REST}", "CREATE INDEX ON public.t (message_id)"), said=ALONE),
    "partial unique index": Shape(table(f"message_id text, {REST}", "CREATE UNIQUE INDEX ON public.t (message_id) WHERE org_id = 'o-1'"),
                                  said=ALONE),
    "unique index on an expression": Shape(table(f"message_id text, {REST}", "CREATE UNIQUE INDEX ON public.t (lower(message_id))"), twins,
                                           said=ALONE, mends=False),
    "unique index by another collation": Shape(table(f"message_id text, {REST}", "CREATE UNIQUE INDEX ON public.t (message_id COLLATE \"POSIX\")"),
                                               said="no index that finds message_id"),
    "unique index with more columns": Shape(table(f"message_id text, {REST}", "CREATE UNIQUE INDEX ON public.t (message_id) INCLUDE (org_id)")),
    "deferrable key": Shape(table(f"message_id text, {REST}, CONSTRAINT k PRIMARY KEY (message_id) DEFERRABLE INITIALLY DEFERRED"), said="deferrable"),
    "a second key, deferrable, insert": Shape(table(f"{ID}, UNIQUE (message_id) DEFERRABLE"), unknown="insert", said="is deferrable"),
    "invalid unique index": Shape(table(f"message_id text, {REST}", "CREATE UNIQUE INDEX i ON public.t (message_id);"
                                        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'i'::regclass"), said=ALONE),
    "collation without case": Shape(UPPER + table("message_id text COLLATE ignoring PRIMARY KEY, org_id text, campaign_id text COLLATE ignoring"),
                                    twins, lambda n: "c" if n % 3 else "C", said="has no index that finds message_id", mends=False),
    "campaigns without case": Shape(UPPER + table("message_id text PRIMARY KEY, org_id text, campaign_id text COLLATE ignoring"),
                                    campaign=lambda n: "c" if n % 3 else "C"),
    "campaigns without case, insert": Shape(UPPER + table("message_id text PRIMARY KEY, org_id text, campaign_id text COLLATE ignoring"),
                                            campaign=lambda n: "c" if n % 3 else "C", unknown="insert", said=PLAIN),
    "another collation": Shape(table(f'message_id text COLLATE "en-x-icu" PRIMARY KEY, org_id text COLLATE "de-x-icu", campaign_id text COLLATE "fr-x-icu"'), twins),
    "names in upper case": Shape('CREATE SCHEMA "MyApp"; CREATE TABLE "MyApp"."Table" ("Id" bigint PRIMARY KEY, "Org" text, "Select" text,'
                          ' "Status" text DEFAULT \'open\', "User" integer)', number, said="by its text",
                          inbox=mapping("MyApp.Table", message_id="Id", org_id="Org", campaign_id="Select", status="Receipt_Status",
                                        flags="User"), columns='"Id", "Org", "Select"', table='"MyApp"."Table"'),
    "status of another type": Shape(table(f"{ID}, status integer NOT NULL DEFAULT 0"), said="of type integer, not smallint",
                                    inbox=mapping("public.t", status="status")),
    "status as a text": Shape(table(f"{ID}, status text"), said="of type text, not smallint", mends=False),
    "status without a zero": Shape(table(f"{ID}, status smallint, flags integer"), said="column status of inbox table public.t may be NULL",
                                   inbox=mapping("public.t", status="status", flags="flags")),
    **{f"a {name} of the platform's own": Shape(table(f"{ID}, {name} {type}"), mends=False,
                                                said=f"has a column {name} of its own, which inbox.columns does not name.*\n.*inbox.columns.{name} name another")
       for name, type in (("status", "smallint NOT NULL DEFAULT 0"), ("prev_status", "smallint"), ("flags", "integer NOT NULL DEFAULT 0"),
                          ("prev_flags", "integer"), ("status_at", "timestamptz"), ("updated_at", "timestamptz"))},
    "columns of the platform's own under other names": Shape(
        table(f"{ID}, flags integer NOT NULL DEFAULT 7, updated_at timestamptz DEFAULT now()"),
        inbox=mapping("public.t", flags="receipt_flags", updated_at="receipt_at")),
    "columns that are named as they are": Shape(table(f"{ID}, flags integer NOT NULL DEFAULT 0, updated_at timestamptz"),
                                                inbox=mapping("public.t", flags="flags", updated_at="updated_at")),
    "a partition of another table": Shape(
        "CREATE TABLE public.whole (message_id text PRIMARY KEY, org_id text, campaign_id text) PARTITION BY HASH (message_id);"
        "CREATE TABLE public.t PARTITION OF public.whole FOR VALUES WITH (MODULUS 1, REMAINDER 0)", said="is a partition of public.whole", mends=False),
    "a table of a type": Shape("CREATE TYPE message AS (message_id text, org_id text, campaign_id text);"
                               "CREATE TABLE public.t OF message (PRIMARY KEY (message_id))", said="is made of type public.message"),
    "rows within another table": Shape(table(ID, "CREATE DOMAIN packed AS t[]; CREATE TYPE pair AS (a int, b packed);"
                                                 "CREATE TABLE other (p pair, t t)"),
                                       said="column p of public.other is made of rows of inbox table public.t", mends=False),
    "no organisation": Shape(table("message_id text PRIMARY KEY, campaign_id text"), said="has no column org_id"),
    "a further column, insert": Shape(table(f"{ID}, body text NOT NULL"), unknown="insert", said="column body of inbox table public.t may not be NULL",
                                      columns="message_id, org_id, campaign_id, body"),
    "a further column, park": Shape(table(f"{ID}, body text NOT NULL"), columns="message_id, org_id, campaign_id, body"),
    "a further column with a default, insert": Shape(table(f"{ID}, body text NOT NULL DEFAULT ''"), unknown="insert"),
    "trigger that notes the time": Shape(table(f"{ID}, updated_at timestamptz", TRIGGER.format("NEW.updated_at := clock_timestamp();")),
                                         inbox=mapping("public.t", updated_at="updated_at")),
    "trigger that changes new rows": Shape(table(ID, TRIGGER.format("IF TG_OP = 'INSERT' THEN NEW.campaign_id := lower(NEW.campaign_id); END IF;"))),
    "trigger that sets the status": Shape(table(f"{ID}, status smallint NOT NULL DEFAULT 0", TRIGGER.format("NEW.status := 0;")),
                                          said="trigger touch of inbox table public.t sets status", inbox=mapping("public.t", status="status")),
    "rule": Shape(table(ID, "CREATE RULE r AS ON UPDATE TO public.t DO INSTEAD NOTHING"), said="has rule r"),
    "child tables": Shape(table(ID, "CREATE TABLE child () INHERITS (public.t)"), said="has child public.child"),
    "unlogged": Shape("CREATE UNLOGGED TABLE public.t (message_id text PRIMARY KEY, org_id text, campaign_id text)", said="is not logged"),
    "view": Shape("CREATE TABLE public.base (message_id text PRIMARY KEY, org_id text, campaign_id text); CREATE VIEW public.t AS SELECT * FROM base",
                  said="is a view", mends=False),
    "materialized view": Shape("CREATE MATERIALIZED VIEW public.t AS SELECT ''::text message_id, ''::text org_id, ''::text campaign_id",
                               said="is a materialized view", mends=False),
    "foreign table": Shape("CREATE FOREIGN DATA WRAPPER w; CREATE SERVER s FOREIGN DATA WRAPPER w; CREATE FOREIGN TABLE public.t "
                           "(message_id text, org_id text, campaign_id text) SERVER s", said="is a foreign table", mends=False),
    "absent": Shape("", said="inbox table public.t does not exist", mends=False),
    "columns of many types": Shape("CREATE TYPE mood AS ENUM ('good'); CREATE TYPE pair AS (a int, b text); CREATE EXTENSION hstore;"
                                   + table(f"{ID}, m mood, p pair, ms mood[], h hstore, j json, r int4range, x xml, prev text, lane int"),
                                   unknown="insert"),
}


# ---- a small stream ------------------------------------------------------------------------------------------------

class Stream:
    """Receipts of 90 messages: 60 that are there, 15 whose row comes later, 15 without one."""

    def __init__(self, shape):
        self.shape, self.random = shape, random.Random(5)
        self.ids = [shape.id(n) for n in range(90)]
        assert len(set(self.ids)) == 90

    def rows(self, first, end):
        return {self.ids[n]: Row(f"{n % 3}" if "smallint" in self.shape.setup else f"o-{n % 3}", self.shape.campaign(n)) for n in range(first, end)}

    def records(self):
        stories = [story.split() for _, story in JOURNEYS]
        known = self.rows(0, 90)
        events = []
        for n, id in enumerate(self.ids):
            events += [{"message_id": id, "status": json.loads(status), "org_id": known[id].org_id, "campaign_id": known[id].campaign_id}
                       for status in stories[n % len(stories)]] * (1 + n % 2)
        self.random.shuffle(events)
        for first in range(0, len(events), 7):
            yield Outgoing(first % 4, None, json.dumps(events[first:first + 7]).encode(), None, 1_795_000_000_000)


def insert(world, shape, rows):
    """As the platform does, in its own types: one statement for many rows, and one for one."""
    if shape.columns == "GENERATED":
        lines = [f"('{org}', '{id.split('/')[1]}', '{campaign}')" for id, (org, campaign) in rows.items()]
        columns = "org_id, number, campaign_id"
    else:
        more = ", 'b'" if "body" in shape.columns else ""
        lines = [f"('{id}', '{org}', '{campaign}'{more})" for id, (org, campaign) in rows.items()]
        columns = shape.columns
    for some in (lines[1:], lines[:1]):
        override = "OVERRIDING SYSTEM VALUE" if shape.overrides else ""
        world.database.execute(f"INSERT INTO {shape.table} ({columns}) {override} VALUES {', '.join(some)}")
    world.platform.update(rows)


def both(installation, *arguments):
    """migrate and check-config --connect say the same; returns the status and what was said."""
    checked = installation.command("check-config", "--connect", check=False)
    migrated = installation.command("migrate", *arguments, check=False)
    checked.stderr = checked.stderr.replace(NOT_YET, "")
    assert (checked.returncode, migrated.returncode) in ((0, 0), (CONFIG, CONFIG)), checked.stderr + migrated.stderr
    if migrated.returncode:
        assert "nothing was changed" in migrated.stderr
        assert checked.stderr.splitlines()[:2] == [line for line in migrated.stderr.splitlines() if line != "nothing was changed"][:2]
        for name in ("migrate", "check-config"):
            assert not re.search(f"receiptd {name}", (migrated if name == "migrate" else checked).stderr), "a hint names what was just done"
    return migrated.returncode, migrated.stderr


def mend(world):
    """Runs what the refusals advise until there is none; returns what was said at first."""
    status, first = both(world.installation)
    said = first
    for _ in range(5):
        if status == 0:
            return first
        statements = SQL.findall(said)
        assert statements, said
        for statement in statements:
            world.database.execute(statement)
        status, said = both(world.installation)
    raise AssertionError(said)


@pytest.mark.parametrize("name", SHAPES)
def test_each_shape_is_exact_or_refused_with_the_sql_that_mends_it(create_world, name):
    shape = SHAPES[name]
    world = create_world(partitions=4, migrate=False, inbox=shape.inbox, unknown=shape.unknown)
    if shape.setup:
        world.database.execute(shape.setup)
    if not shape.mends:
        status, said = both(world.installation)
        assert status == CONFIG and re.search(shape.said, said) and "HINT: " in said, said
        return
    said = mend(world)
    assert (said == "") if shape.said is None else re.search(shape.said, said), said
    world.installation.command("check-config", "--connect")
    stream = Stream(shape)
    insert(world, shape, stream.rows(0, 60))
    process = world.installation.start()
    world.produce(stream.records())
    if shape.unknown == "park":
        world.wait_until_consumed(process)
        insert(world, shape, stream.rows(60, 75))
    world.wait_until_consumed(process)
    query = ("SELECT count(*) FROM receiptd.parked_event p WHERE EXISTS"
             " (SELECT FROM receiptd.message_inbox m WHERE m.message_id = p.message_id)")
    world.wait(lambda: world.database.value(query) == 0, process, 30, "parked receipts woken")
    world.audit()
    world.assert_exact(process, unknown=shape.unknown)
    process.stop()
    assert shape.unknown == "dead-letter" or world.database.value("SELECT count(*) FROM receiptd.dead_letter") == 0
    assert world.installation.command("migrate").stdout.splitlines()[0] == "nothing to do"


# ---- shapes that nobody has thought of: whatever migrate would refuse, check-config --connect finds -------------------

KINDS = ("text", "text COLLATE \"C\"", "varchar(60)", "char(40)", "uuid", "bigint", "numeric(20)", "citext", "wave", "date", "packed", "inet", "name", "jsonb", "text[]")
OURS = {"status": ("smallint NOT NULL DEFAULT 0", "smallint", "integer NOT NULL DEFAULT 0", "text", "smallint NOT NULL DEFAULT 77", "smallint GENERATED ALWAYS AS (3) STORED NOT NULL"),
        "flags": ("integer NOT NULL DEFAULT 0", "integer NOT NULL DEFAULT 7", "integer NOT NULL DEFAULT 1073741824", "bigint NOT NULL DEFAULT 0", "integer"),
        "prev_status": ("smallint", "integer"), "prev_flags": ("integer", "smallint", "integer NOT NULL DEFAULT 0"),
        "status_at": ("timestamptz", "timestamp", "date"), "updated_at": ("timestamptz", "timestamptz NOT NULL DEFAULT now()", "moment")}
MORE = ("", "body text NOT NULL", "message_key text", "counted bytea", "created_at date", "m wave", "lane int", "ctid_ text", '"Quoted ""name" text', "first_opened_at timestamptz")
AFTER = ("", "CREATE RULE r AS ON DELETE TO public.t DO INSTEAD NOTHING", "ALTER TABLE public.t ENABLE ROW LEVEL SECURITY", "ALTER TABLE public.t FORCE ROW LEVEL SECURITY",
         "CREATE TABLE public.child () INHERITS (public.t)", "CREATE TABLE public.other (p public.t)", "CREATE TABLE public.other (p public.t[])",
         "CREATE VIEW public.above AS SELECT * FROM public.t", "CREATE STATISTICS public.s ON org_id, campaign_id FROM public.t",
         "CREATE INDEX ON public.t (lower(org_id::text))", "ALTER TABLE public.t SET UNLOGGED", "ALTER TABLE public.t ADD CHECK (org_id IS NOT NULL) NOT VALID",
         TRIGGER.format("NEW.status := 0;"), TRIGGER.format("NULL;"), "CREATE INDEX ON public.t ((message_id::text))", "CREATE PUBLICATION p FOR TABLE public.t",
         "ALTER TABLE public.t ALTER COLUMN org_id SET NOT NULL, ALTER COLUMN campaign_id SET DEFAULT NULL", "CLUSTER public.t USING t_key", "CREATE TYPE public.more AS (a public.t)")
KEYS = ("PRIMARY KEY (message_id)", "UNIQUE (message_id)", "PRIMARY KEY (message_id) DEFERRABLE", "PRIMARY KEY (org_id, message_id)", "")
PARTS = ("", "", "", "PARTITION BY HASH (message_id)", "PARTITION BY LIST (org_id)", "PARTITION BY RANGE (message_id)")


def draw(source):
    """Statements for a table public.t, and what the configuration says of it."""
    columns = {name: source.choice(OURS[name]) for name in OURS if source.random() < 0.15}
    named = {name: source.choice((name, name, f"own_{name}")) for name in OURS if name in columns or source.random() < 0.1}
    mostly = ("text",) * 40
    lines = [f"message_id {source.choice(mostly + KINDS)}", f"org_id {source.choice(mostly + KINDS)}", f"campaign_id {source.choice(mostly + KINDS)}",
             *(f"{name} {type}" for name, type in columns.items()), source.choice(MORE), source.choice(KEYS[:1] * 9 + KEYS)]
    parts = source.choice(PARTS)
    made = [f"CREATE TABLE public.t ({', '.join(line for line in lines if line)}) {parts}"]
    if parts:
        made += ["CREATE TABLE public.t_1 PARTITION OF public.t " + ("FOR VALUES WITH (MODULUS 1, REMAINDER 0)" if "HASH" in parts else "DEFAULT")]
    made += [source.choice(AFTER) for _ in range(source.choice((0, 0, 1, 2)))]
    if source.random() < 0.4:
        made.append("INSERT INTO public.t (org_id) SELECT NULL")
    inbox = {"table": "public.t_1" if parts and source.random() < 0.2 else "public.t", "targeted": source.choice(("trigger", "trigger", "none"))}
    return made, inbox | ({"columns": named} if named else {}), source.choice(("park", "park", "insert", "dead-letter"))


@pytest.mark.parametrize("seed", range(6))
def test_whatever_migrate_would_refuse_is_found_before(create_world, seed):
    source, outcomes = random.Random(seed), []
    world = create_world(partitions=1, migrate=False)
    world.database.execute("CREATE EXTENSION citext; CREATE TYPE wave AS ENUM ('a'); CREATE TYPE packed AS (a int); CREATE DOMAIN moment AS timestamptz")
    clean = "DROP SCHEMA IF EXISTS receiptd CASCADE; DROP TABLE IF EXISTS public.t CASCADE; DROP TABLE IF EXISTS public.other; DROP TYPE IF EXISTS public.more;" \
            "DROP FUNCTION IF EXISTS public.touch CASCADE; DROP PUBLICATION IF EXISTS p; ANALYZE"
    while len(outcomes) < 8:
        made, inbox, unknown = draw(source)
        world.database.execute(clean)
        for number, statement in enumerate(made):
            try:
                statement and world.database.execute(statement)
            except psycopg.Error:
                if number == 0:  # PostgreSQL has no such table
                    break
        else:
            world.installation.configure(inbox=inbox, unknown=unknown)
            checked = world.installation.command("check-config", "--connect", check=False)
            migrated = world.installation.command("migrate", check=False)
            told = f"seed {seed}: {made} {inbox} {unknown}\nchecked {checked.returncode}: {checked.stderr}\nmigrated {migrated.returncode}: {migrated.stderr}"
            assert (checked.returncode == 0) == (migrated.returncode == 0), told
            assert checked.returncode in (0, CONFIG), told
            outcomes.append(migrated.returncode)
