"""How the inbox's table is laid out: which way batches take is said, what would be slow is refused, and one id in two partitions is exact."""

import json

import pytest

from support.operations import Operations

SINCE = "2020-06-01 00:00:00+00"


def by_time(partitions):
    """A table of the platform in so many partitions by the time of insertion, the last one without an end."""
    days = "".join(f"CREATE TABLE public.t_{day} PARTITION OF public.t FOR VALUES FROM ('2020-01-{day:02}') TO ('2020-01-{day + 1:02}');"
                   for day in range(1, partitions))
    return ("CREATE TABLE public.t (message_id text, org_id text, campaign_id text, born timestamptz NOT NULL DEFAULT now(),"
            " PRIMARY KEY (message_id, born)) PARTITION BY RANGE (born);"
            f"CREATE TABLE public.t_0 PARTITION OF public.t FOR VALUES FROM ('2020-02-01') TO (MAXVALUE); {days}")


BY_TIME = {"table": "public.t", "columns": {"created_at": "born"}}


def insert(world, *rows):
    """(id, time) of each."""
    for id, at in rows:
        world.database.execute("INSERT INTO public.t (message_id, org_id, campaign_id, born) VALUES (%s, 'o', 'c', %s)", id, at)


def twins(*ids, times=("2020-01-01", "2020-07-01")):
    return [(id, at) for id in ids for at in times]


def standing(world):
    """How many rows have each status."""
    return dict(world.database.query("SELECT status, count(*)::int FROM receiptd.message_inbox GROUP BY status"))


def use_recent_set(world):
    """As `receiptd maintain` does it; the index is that of one partition, and batches are as exact without it."""
    world.database.execute("CREATE INDEX recent ON public.t_0 (message_id)")
    world.database.execute("INSERT INTO receiptd.inbox_recent (since, index_schema, index_name) VALUES (%s, 'public', 'recent')", SINCE)


# ---- one id in two partitions

@pytest.mark.parametrize("recent", (False, True), ids=("by the key", "with a recent set"))
@pytest.mark.parametrize("more", ({}, {"counters": {"series": "30d", "by": []}, "dedup": {"window": "1d"}, "timeline": {"retention": "1d"}},
                                  {"counters": {"by": ["variant"], "groups": ["customer"]}, "inbox": BY_TIME | {"columns": {"created_at": "born", "customer_id": "customer", "variant": "variant"}}}),
                         ids=("plain", "with rules and timeline", "with dimensions and groups"))
def test_one_id_in_two_partitions_is_exact_and_hides_no_other_message(create_world, recent, more):
    """A batch of one such id and one unknown id changes two rows for two ids: the unknown one must still be parked."""
    world = create_world(partitions=1, lanes=1, postgres={"connections": 1}, migrate=False, **{"inbox": BY_TIME} | more)
    world.database.execute(by_time(3) + "ALTER TABLE public.t ADD variant text DEFAULT 'v', ADD customer text DEFAULT 'p'")
    world.installation.migrate()
    if recent:
        use_recent_set(world)
    insert(world, *twins("a", "b"), *twins("c", "d", times=("2020-07-01", "2020-07-02")))
    process = world.installation.start()
    if recent:
        process.wait_for_log("recent set of the inbox: messages since 2020-06-01")
    for known in "abcd":
        world.topic.send([{"message_id": known, "status": "SENT"}, {"message_id": f"late {known}", "status": "DELIVERED"}])
    world.wait_until_consumed(process)
    assert world.database.value("SELECT count(*) FROM receiptd.parked_event") == 4
    assert standing(world) == ({0: 2, 300: 6} if recent else {300: 8})
    world.audit()
    insert(world, *twins("late a", "late b"), *twins("late c", "late d", times=("2020-07-01", "2020-07-02")))
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.parked_event") == 0, process, 30, "parked receipts woken")
    for known in "abcd":  # up to date: counted again for each row
        world.topic.send([{"message_id": known, "status": "SENT"}, {"message_id": f"late {known}", "status": "DELIVERED"}])
    world.wait_until_consumed(process)
    process.stop()
    assert world.database.value("SELECT count(*) FROM receiptd.dead_letter") == 0
    assert sum(n for status, n in standing(world).items() if status == 600) == (6 if recent else 8)
    world.audit()


@pytest.mark.parametrize("type", ("text", "uuid"))
def test_audit_finds_the_ids_that_stand_in_several_rows(create_world, type):
    world = create_world(migrate=False, inbox=BY_TIME)
    world.database.execute(by_time(3).replace("message_id text", f"message_id {type}"))
    if type == "uuid":
        world.database.execute("CREATE INDEX ON public.t ((message_id::text))")
    world.installation.migrate()
    audit = lambda *options: world.installation.command("audit", "--ids", *options, check=False)  # noqa: E731
    assert (audit().stdout, audit().returncode) == ("0 messages, 0 ids stand in several rows\n", 0)
    world.database.execute("INSERT INTO public.t (message_id, org_id, campaign_id, born) SELECT md5(i::text)::uuid, 'o', 'c', '2020-02-01'::timestamptz"
                           " + i % 200 * interval '1 day' FROM generate_series(1, 150000) i; ANALYZE public.t")
    assert audit().stdout == "150000 messages, 0 ids stand in several rows\n"
    twins = sorted(value for value, in world.database.query("SELECT message_id::text FROM public.t ORDER BY message_id::text COLLATE \"C\" DESC LIMIT 30"))
    world.database.execute("INSERT INTO public.t (message_id, org_id, campaign_id, born) SELECT message_id, 'o' || n, 'c', '2019-12-31'::timestamptz + n * interval '1 day'"
                           " FROM public.t, generate_series(1, 2) n WHERE message_id::text = ANY (%s)", twins)
    found = audit()
    assert found.returncode == 1 and "150060 messages, 30 ids stand in several rows, in 90; the first 20 are above\n" in found.stdout
    assert [line.split() for line in found.stdout.splitlines()[1:21]] == [[id, "3", "3", "1"] for id in twins[:20]]
    assert "delete the rows that are wrong" in found.stderr
    found = json.loads(audit("--format", "json").stdout)
    assert {name: found[name] for name in ("messages", "ids", "rows")} == {"messages": 150060, "ids": 30, "rows": 90} and found["first"][0]["message_id"] == twins[0]


def test_an_inbox_whose_key_is_the_id_needs_no_search_for_twins(create_world):
    world = create_world()
    assert world.installation.command("audit", "--ids").stdout == "the inbox's key makes each id unique\n"
    assert "goes without --repair" in world.installation.command("audit", "--ids", "--repair", check=False).stderr


def test_retire_leaves_the_younger_row_of_an_id(create_world):
    world = create_world(migrate=False, inbox=BY_TIME | {"retention": "30d"})
    world.database.execute(by_time(3))
    world.installation.migrate()
    insert(world, ("a", "2020-01-01"), ("a", "now"), ("b", "2020-01-01"))
    assert "messages: 2 deleted" in world.installation.command("retire").stdout
    assert world.database.query("SELECT message_id FROM public.t") == [("a",)]
    world.audit()


# ---- partitions to which the id does not lead

def test_the_daemon_is_not_ready_for_the_reason_of_the_commands_and_goes_on(create_world):
    world = create_world(migrate=False, inbox={"table": "public.t"})
    world.database.execute(by_time(8))
    world.installation.migrate()
    process = world.installation.start()
    pages = Operations(process)
    pages.wait_until_ready()
    world.database.execute("CREATE TABLE public.t_31 PARTITION OF public.t FOR VALUES FROM ('2020-01-31') TO ('2020-02-01')")

    def reason():
        answer = pages.get("/readyz")
        return " | ".join(answer.json["reasons"]) if answer.status == 503 else ""

    why = "public.t is partitioned by RANGE (born), which does not follow from a message's id: each receipt would be looked up in all 9 partitions"
    world.wait(lambda: why in reason(), process, 60, "not ready")
    assert "name that column in inbox.columns.created_at" in reason()
    for command in (["migrate"], ["check-config", "--connect"]):
        assert why in world.installation.command(*command, check=False).stderr
    insert(world, ("a", "now"))
    world.topic.send([{"message_id": "a", "status": "SENT"}])
    world.wait_until_consumed(process)
    assert standing(world) == {300: 1}
    world.database.execute("DROP TABLE public.t_31")
    world.wait(lambda: reason() == "", process, 60, "ready again")
    process.stop()
