"""By what a message was counted does not change: an UPDATE of it is refused, on receiptd's own table, one of the platform's, and in partitions."""
import psycopg
import pytest

from test_commands import command_server, empty  # noqa: F401

COUNTERS = {"by": ["variant"], "groups": ["customer", "logical"]}
MAPPED = {"message_id": "id", "org_id": "tenant", "campaign_id": "Campaign", "variant": "cell", "customer_id": "person", "logical_id": "first"}
UUID = "0190b5c0-0000-7000-8000-00000000000{}"


def platform(key, partition="", parts=()):
    """A table of the platform's: column `n` and the id are numbers, so receiptd compares their text."""
    return (f'CREATE TABLE public.messages (id text, tenant text, "Campaign" int, cell text, person bigint, first text, day timestamptz DEFAULT now(), '
            f'note text, PRIMARY KEY ({key})) {partition}',
            *(f"CREATE TABLE public.part{n} PARTITION OF public.messages {bound}" for n, bound in enumerate(parts)))


SHAPES = {
    "own": ({}, (), "receiptd.message_inbox", {}),
    "own in partitions": ({"partitions": "own", "ids": "uuidv7"}, (), "receiptd.message_inbox", {}),
    "mapped": ({"table": "public.messages"}, platform("id"), "public.messages", MAPPED),
    "mapped, by hash of the id": ({"table": "public.messages"}, platform("id", "PARTITION BY HASH (id)", (
        "FOR VALUES WITH (MODULUS 2, REMAINDER 0)", "FOR VALUES WITH (MODULUS 2, REMAINDER 1)")), "public.messages", MAPPED),
    "mapped, by campaign": ({"table": "public.messages"}, platform('id, "Campaign"', 'PARTITION BY LIST ("Campaign")', ("FOR VALUES IN (1)", "DEFAULT")),
                            "public.messages", MAPPED),
    "mapped, a partition by its name": ({"table": "public.messages"}, platform("id, day", "PARTITION BY RANGE (day)", ("DEFAULT",)), "public.part0", MAPPED),
}


@pytest.fixture(params=SHAPES)
def shape(request, empty):
    inbox, statements, table, names = SHAPES[request.param]
    for statement in statements:
        empty.do(statement)
    mapped = "table" in inbox
    empty.write(inbox=inbox | {"columns": MAPPED if mapped else {"customer_id": "customer_id", "logical_id": "logical_id", "variant": "variant"}},
                counters=COUNTERS, unknown="park")
    if not mapped:
        empty.migrate()
        empty.do("ALTER TABLE receiptd.message_inbox ADD COLUMN IF NOT EXISTS customer_id text, ADD COLUMN IF NOT EXISTS logical_id text, ADD COLUMN IF NOT EXISTS variant text")
    empty.migrate()
    empty.table = table
    empty.names = {name: f'"{names.get(name, name)}"' for name in MAPPED}
    columns = ", ".join(empty.names[name] for name in ("message_id", "org_id", "campaign_id", "variant", "customer_id", "logical_id"))
    for n in range(4):
        empty.do(f"INSERT INTO {table} ({columns}) VALUES ('{UUID.format(n)}', 'o', '{1 + n % 2}', 'a', '{70 + n}', 'l')")
    return empty


def counted(installation):
    return [sorted(map(str, installation.query(f"SELECT * FROM receiptd.{view}"))) for view in ("campaign_count", "campaign_organisation", "campaign_tally")]


CHANGES = {"campaign_id": "'2'", "org_id": "NULL", "message_id": "'" + UUID.format(9) + "'", "variant": "'b'", "customer_id": "NULL", "logical_id": "'k'"}


def test_what_a_message_was_counted_by_does_not_change(shape):
    before, id = counted(shape), shape.names["message_id"]
    for name, value in CHANGES.items():
        with pytest.raises(psycopg.errors.RestrictViolation) as refused:
            shape.do(f"UPDATE {shape.table} SET {shape.names[name]} = {value} WHERE {id} = '{UUID.format(0)}'")
        assert "counted" in refused.value.diag.message_primary and refused.value.diag.message_hint
    # Whatever else the platform writes stays allowed, also a whole row as it was.
    same = ", ".join(f"{shape.names[name]} = {shape.names[name]}" for name in CHANGES
                     if not (name == "campaign_id" and "(\"Campaign\")" in str(shape.query("SELECT pg_get_partkeydef(to_regclass('public.messages'))"))
                             or name == "message_id"))
    shape.do(f"UPDATE {shape.table} SET {same}")
    if shape.names["message_id"] == '"id"':
        shape.do(f"UPDATE {shape.table} SET note = 'x'")
    shape.do("UPDATE receiptd.message_inbox SET status = 600, prev_status = 300")
    shape.do("UPDATE receiptd.message_inbox SET status = 0")
    assert counted(shape) == before and "0 cells drift" in shape.run("audit").out


def test_an_upsert_that_changes_nothing_is_allowed(empty):
    for statement in platform("id"):
        empty.do(statement)
    empty.write(inbox={"table": "public.messages", "columns": MAPPED})
    empty.migrate()
    upsert = """INSERT INTO public.messages (id, "Campaign", note) VALUES ('a', %s, 'n') ON CONFLICT (id)
                DO UPDATE SET "Campaign" = EXCLUDED."Campaign", note = EXCLUDED.note"""
    for campaign in (1, 1):
        empty.connection.execute(upsert, (campaign,))
    with pytest.raises(psycopg.errors.RestrictViolation, match="column Campaign of (public.)?messages cannot change from '1' to '2'"):
        empty.connection.execute(upsert, (2,))
    # Columns that nothing is counted by are the platform's.
    empty.do("UPDATE public.messages SET cell = 'b', person = 7, first = 'z'")


def test_partitions_that_come_later_and_an_inbox_that_is_adopted_refuse_too(empty):
    empty.write(inbox={"retention": "30d"})
    empty.migrate()
    empty.do(f"INSERT INTO receiptd.message_inbox (message_id, campaign_id) VALUES ('{UUID.format(1)}', 'c')")
    empty.write(inbox={"partitions": "own", "ids": "uuidv7", "retention": "30d"})
    empty.run("adopt")
    for table in ("receiptd.message_inbox", "receiptd.message_inbox_before", "receiptd.message_inbox_other"):
        if empty.query(f"SELECT to_regclass('{table}') IS NOT NULL") == [(True,)]:
            assert empty.query(f"SELECT count(*)::int FROM pg_trigger WHERE tgrelid = '{table}'::regclass AND tgname = 'receiptd_refuse_change'") == [(1,)]
    with pytest.raises(psycopg.errors.RestrictViolation):
        empty.do("UPDATE receiptd.message_inbox SET campaign_id = 'd'")
    with pytest.raises(psycopg.errors.RestrictViolation):
        empty.do(f"UPDATE receiptd.message_inbox SET message_id = '{UUID.format(2)}'")
    assert empty.migrate().out == "nothing to do\n"


def test_a_partition_of_another_owner_does_not_stop_migrate(empty):
    for statement in platform("id, day", "PARTITION BY RANGE (day)", ("FOR VALUES FROM ('2020-01-01') TO ('2021-01-01')", "DEFAULT")):
        empty.do(statement)
    other = f"{empty.name}_other"
    empty.do(f"CREATE ROLE {other}")
    empty.do(f"ALTER TABLE public.part0 OWNER TO {other}")
    try:
        empty.write(inbox={"table": "public.messages", "columns": MAPPED, "probe_partitions": 8})
        empty.migrate()
        empty.do("INSERT INTO public.messages (id, \"Campaign\") VALUES ('a', 1)")
        with pytest.raises(psycopg.errors.RestrictViolation):
            empty.do('UPDATE public.messages SET "Campaign" = 2')
    finally:
        empty.do(f"DROP OWNED BY {other} CASCADE")
        empty.do(f"DROP ROLE {other}")


def test_where_nothing_is_counted_on_insert_nothing_is_refused(empty):
    for statement in platform("id", "PARTITION BY HASH (id)", ("FOR VALUES WITH (MODULUS 1, REMAINDER 0)",)):
        empty.do(statement)
    empty.write(inbox={"table": "public.messages", "columns": MAPPED})
    empty.migrate()
    empty.write(inbox={"table": "public.messages", "columns": MAPPED, "targeted": "none"})
    empty.migrate()
    empty.do("INSERT INTO public.messages (id, \"Campaign\") VALUES ('a', 1)")
    empty.do('UPDATE public.messages SET "Campaign" = 2, id = \'b\'')
    assert empty.query("SELECT count(*)::int FROM pg_trigger WHERE tgname LIKE 'receiptd_refuse%'") == [(0,)]
