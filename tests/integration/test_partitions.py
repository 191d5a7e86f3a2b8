"""Partitions of the own inbox: made ahead, moved into, booked and dropped; a message is counted once at every moment, whoever is killed."""
import re
import signal
import threading
import time

import psycopg
import pytest

from support.wait import wait_for
from test_commands import CONFIG, command_server, empty, installed, migrated, stranger  # noqa: F401

DAY = 86_400_000
OWN = {"partitions": "own", "ids": "uuidv7"}
INBOX = "receiptd.message_inbox"


def v7(ms, n=0):
    digits = f"{int(ms):012x}"
    return f"{digits[:8]}-{digits[8:]}-7{n % 4096:03x}-8{n // 4096 % 4096:03x}-{n:012x}"


def now():
    return int(time.time() * 1000)


def start_of(day):
    """The first millisecond of the UTC day that is so many days from today."""
    return (now() // DAY + day) * DAY


def name_of(ms):
    return "message_inbox_p" + time.strftime("%Y%m%d", time.gmtime(ms / 1000))


@pytest.fixture
def own(empty):
    empty.write(inbox=OWN)
    empty.migrate()
    return empty


def insert(installation, ids, days_old=0, campaign="c", status=0, org="o"):
    with installation.connection.cursor() as cursor:
        cursor.executemany(f"INSERT INTO {INBOX} (message_id, org_id, campaign_id, status, created_at)"
                           " VALUES (%s, %s, %s, %s, now() - %s * interval '1 day')", [(id, org, campaign, status, days_old) for id in ids])


def parts(installation):
    """name: number of messages, without empty ones."""
    return dict(installation.query(f"SELECT c.relname::text, count(*)::int FROM {INBOX} m JOIN pg_class c ON c.oid = m.tableoid GROUP BY 1"))


def made(installation):
    return [name for name, in installation.query("SELECT c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
                                                 f" WHERE i.inhparent = '{INBOX}'::regclass ORDER BY c.relname::text COLLATE \"C\"")]


def funnel(installation):
    return installation.query("SELECT campaign_id, status, messages FROM receiptd.campaign_funnel ORDER BY 1, 2")


def exact(installation):
    assert installation.run("audit").out.endswith(", 0 cells drift\n")


def drop_spans(installation):
    for name in made(installation)[1:]:
        installation.do(f"DROP TABLE receiptd.{name}")


def age(installation, days):
    """A partition of that age, with its messages, as if maintain had made it then."""
    low, high = start_of(-days), start_of(-days + 1)
    installation.do(f"""CREATE TABLE receiptd.{name_of(low)} PARTITION OF {INBOX} FOR VALUES FROM ('{v7(low)[:13]}') TO ('{v7(high)[:13]}')""")
    return low


# ---- made ahead

def test_migrate_makes_the_inbox_in_partitions_for_seven_days_ahead(own):
    names = made(own)
    assert names == ["message_inbox_other", *(name_of(start_of(day)) for day in range(-1, 8))]
    insert(own, [v7(now(), n) for n in range(10)])
    assert parts(own) == {name_of(now()): 10} and funnel(own)[0][1:] == (0, 10)
    assert "nothing to do" in own.migrate().out
    own.run("maintain")
    assert made(own) == names
    own.do(f"INSERT INTO receiptd.{name_of(now())} (message_id, campaign_id) VALUES ('{v7(now(), 99)}', 'c')")  # by its own name
    exact(own)
    assert funnel(own)[0][1:] == (0, 11)
    said = own.run("check-config", "--connect")
    assert "partitioned by RANGE (message_id)" in said.out and "warning" not in said.err


def test_an_empty_flat_inbox_is_partitioned_with_its_rights_and_a_filled_one_is_refused(installed, stranger):
    installed.run("migrate", "--dsn", installed.dsn, "--role", stranger)
    installed.write(inbox=OWN)
    insert(installed, ["m1"])
    assert "has messages and is not partitioned" in installed.run("migrate", "--dsn", installed.dsn, code=CONFIG).err
    assert "not partitioned" in installed.run("check-config", "--connect", code=CONFIG).err
    installed.do(f"DELETE FROM {INBOX}")
    rights = """SELECT grantee, privilege_type, column_name::text FROM information_schema.column_privileges
                WHERE table_name = 'message_inbox' AND grantee <> current_user ORDER BY 1, 2, 3"""
    before = installed.query(rights)
    installed.run("migrate", "--dsn", installed.dsn)
    assert installed.query(rights) == before and len(made(installed)) == 10
    insert(installed, [v7(now(), n) for n in range(10)])
    exact(installed)
    before = funnel(installed)
    installed.do(f"TRUNCATE {INBOX}")
    exact(installed)
    assert funnel(installed) == before and "nothing to do" in installed.run("migrate", "--dsn", installed.dsn).out


@pytest.mark.parametrize("inbox, why", (
    ({"partitions": "own"}, "inbox.ids is any"),
    ({"partitions": "own", "ids": "ulid", "table": "app.messages"}, "set external"),
    (OWN | {"partition_span": "1m"}, "partition_span")))
def test_partitions_that_cannot_be_are_refused_by_check_config(installed, inbox, why):
    installed.write(inbox=inbox)
    assert why in installed.run("check-config", code=CONFIG).err


def test_too_many_partitions_to_which_the_id_does_not_lead_are_refused(installed):
    """Each receipt would be looked up in all of them. With a recent set it is not: by created_at any number is accepted."""
    installed.do(f"DROP TABLE {INBOX}")
    installed.do(f"""CREATE TABLE {INBOX} (message_id text COLLATE "C", org_id text COLLATE "C", campaign_id text COLLATE "C",
        status smallint NOT NULL DEFAULT 0, prev_status smallint, flags integer NOT NULL DEFAULT 0, prev_flags integer, status_at timestamptz,
        updated_at timestamptz, created_at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (message_id, created_at)) PARTITION BY RANGE (created_at)""")
    for day in range(1, 10):
        installed.do(f"CREATE TABLE receiptd.d{day} PARTITION OF {INBOX} FOR VALUES FROM ('2020-01-{day:02}') TO ('2020-01-{day + 1:02}')")
    installed.migrate()
    checks = (["migrate"], ["check-config", "--connect"])
    for change, why in (({"inbox": {"recent_rows": 0}}, "looked up in all 9 partitions, and inbox.probe_partitions is 8"),
                        ({"unknown": "insert"}, "would make two rows")):
        installed.write(**change)
        for command in checks:
            assert why in installed.run(*command, code=CONFIG).err
    installed.write(inbox={"recent_rows": 0, "probe_partitions": 9}, unknown="park")
    for command in checks:
        installed.run(*command)


def test_ulids_have_partitions_too(empty):
    empty.write(inbox={"partitions": "own", "ids": "ulid", "partition_span": "6h"})
    empty.migrate()
    alphabet, value, text = "0123456789ABCDEFGHJKMNPQRSTVWXYZ", now(), ""
    for _ in range(10):
        text, value = alphabet[value % 32] + text, value // 32
    insert(empty, [text + "TSV4RRFFQ69G5FAV", text.lower() + "tsv4rrffq69g5fav"])
    assert sorted(parts(empty).values()) == [1, 1]
    assert "have ids that are no ULID" in empty.run("maintain").err
    exact(empty)


# ---- the default partition

def test_messages_without_a_partition_are_moved_and_nothing_is_counted_twice(own):
    """Few of them: partitions were not made in time, and ids come from last year; some are of another form."""
    drop_spans(own)
    age(own, 20)
    insert(own, [v7(start_of(-3) + n, n) for n in range(50)] + [v7(now(), n) for n in range(50)], status=300)
    insert(own, [v7(start_of(-400) + n, n) for n in range(20)] + ["order-1", v7(start_of(900))], campaign="d")
    before = funnel(own)
    said = own.run("check-config", "--connect")
    assert "no partition for the present" in said.err and "120 messages are in the default partition" in said.err
    said = own.run("maintain")
    assert "moved 120 messages" in said.out and "order-1" in said.err
    assert parts(own) == {name_of(start_of(-19)): 50, name_of(now()): 50, name_of(start_of(-400)): 20, "message_inbox_other": 2}
    assert funnel(own) == before and own.query("SELECT count(*) FROM receiptd.campaign_retired") == [(0,)]
    exact(own)
    insert(own, [v7(now(), 7000)])
    own.do(f"INSERT INTO receiptd.message_inbox_other (message_id, campaign_id) VALUES ('order-2', 'c')")
    exact(own)
    assert funnel(own)[0] == ("c", 0, before[0][2] + 2)


def test_a_default_partition_with_many_messages_becomes_one_of_their_time(own):
    drop_spans(own)
    age(own, 20)
    own.do(f"""INSERT INTO {INBOX} (message_id, campaign_id) SELECT overlay(lpad(to_hex({start_of(-3)} + n * 20000), 12, '0') PLACING '-' FROM 9 FOR 0)
        || '-7000-8000-' || lpad(n::text, 12, '0'), 'c' FROM generate_series(1, 10000) n""")
    said = own.run("maintain")
    assert "10000 messages of message_inbox_other become partition" in said.out
    assert parts(own) == {name_of(start_of(-19)): 10000} and len(made(own)) == 3
    insert(own, ["order-1"])
    assert parts(own)["message_inbox_other"] == 1
    exact(own)
    own.do(f"DELETE FROM receiptd.{name_of(start_of(-19))} WHERE message_id LIKE '%7'")
    exact(own)


def test_a_message_of_another_time_that_comes_meanwhile_lets_the_run_read_again(own):
    """The run has read the default partition and waits for its lock, while the message comes. There is never a check that refuses this message's receipts."""
    drop_spans(own)
    own.do("""CREATE TABLE public.checks (name text);
        CREATE FUNCTION public.note_checks() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN
            INSERT INTO public.checks SELECT conname FROM pg_constraint WHERE conname = 'receiptd_bounds'; END $$;
        CREATE EVENT TRIGGER note_checks ON ddl_command_end EXECUTE FUNCTION public.note_checks()""")
    own.do(f"""INSERT INTO {INBOX} (message_id, campaign_id) SELECT overlay(lpad(to_hex({start_of(-3)} + n * 20000), 12, '0') PLACING '-' FROM 9 FOR 0)
        || '-7000-8000-' || lpad(n::text, 12, '0'), 'c' FROM generate_series(1, 3000) n""")
    said = []
    with psycopg.connect(own.dsn) as other:
        other.execute("LOCK TABLE receiptd.message_inbox_other IN ROW EXCLUSIVE MODE")
        run = threading.Thread(target=lambda: said.append(own.run("maintain", code=65)))
        run.start()
        wait_for(lambda: own.query("SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
                                   " AND query LIKE '%LOCK TABLE ONLY%'"), 60, "maintain waits for the default partition")
        other.execute(f"INSERT INTO {INBOX} (message_id, campaign_id) VALUES ('order-1', 'c')")
    run.join(120)
    assert "of another time came" in said[0].out and "more than one kind" in said[0].err
    assert own.query("SELECT * FROM public.checks") == []
    assert parts(own) == {"message_inbox_other": 3001}
    exact(own)


def test_many_messages_of_other_ids_are_named_and_nothing_waits_for_them(own):
    own.do(f"DROP TABLE receiptd.{made(own)[-1]}")
    own.do(f"INSERT INTO {INBOX} (message_id) SELECT 'order-' || n FROM generate_series(1, 3000) n")
    said = own.run("maintain", code=65)
    assert "3000 messages in the default partition" in said.err and "order-1" in said.err
    exact(own)


def test_a_check_that_a_killed_run_has_left_is_taken_away(own):
    own.do("ALTER TABLE receiptd.message_inbox_other ADD CONSTRAINT receiptd_bounds CHECK (message_id >= 'a' AND message_id < 'b') NOT VALID")
    own.run("maintain")
    insert(own, ["order-1"])
    assert parts(own) == {"message_inbox_other": 1}


# ---- another span

def ranges(installation):
    """(from, to, name) of each partition, in ms: each begins where the one before ends."""
    bounds = installation.query("SELECT pg_get_expr(c.relpartbound, c.oid), c.relname::text FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
                                f" WHERE i.inhparent = '{INBOX}'::regclass AND c.relname <> 'message_inbox_other'")
    found = sorted((*(int(text.replace("-", ""), 16) for text in re.findall("'(.*?)'", bound)), name) for bound, name in bounds)
    assert all(one[1] == other[0] for one, other in zip(found, found[1:])), found
    return found


@pytest.mark.parametrize("command", ("maintain", "migrate"))
@pytest.mark.parametrize("first, then, span", (
    ({}, {"retention": "90d"}, 3), ({}, {"retention": "365d"}, 13), ({"retention": "90d"}, {"retention": "30d"}, 1),
    ({"retention": "90d"}, {"partition_span": "12h"}, 0.5), ({"partition_span": "7h"}, {"retention": "90d"}, 3)))
def test_with_another_span_new_partitions_begin_where_the_last_one_ends(empty, command, first, then, span):
    """An upgrade, or another retention. Those that are there stay as they are, and so do their messages."""
    empty.write(inbox=OWN | first)
    empty.migrate()
    own, before, span = empty, ranges(empty), int(span * DAY)
    own.write(inbox=OWN | then)
    ahead = min(7 * span, max(7 * DAY, span))
    if before[-1][1] >= ((now() + ahead) // span + 1) * span:  # there are enough for a while; then the present one is the last:
        own.run(command)
        assert ranges(own) == before
        for name in made(own)[3:]:
            own.do(f"DROP TABLE receiptd.{name}")
        before = before[:2]
    insert(own, [v7(ms) for low, high, _ in before for ms in (low, high - 1)])
    assert "partitions: made" in own.run(command).out
    found = ranges(own)
    assert found[:len(before)] == before and found[-1][1] > now() + ahead
    assert all(high % span == 0 and high - low <= span for low, high, _ in found[len(before):])
    insert(own, [v7(ms) for low, high, _ in found[len(before):] for ms in (low, high - 1)])
    assert parts(own) == {name: 2 for _, _, name in found}
    exact(own)
    assert "made" not in own.run(command).out and "warning" not in own.run("check-config", "--connect").err


@pytest.mark.parametrize("days", range(4))
def test_with_another_span_messages_since_the_last_partition_are_moved_too(own, days):
    """Nobody ran maintain for some days, so that the last partition ended in the present span of three days, or before it."""
    drop_spans(own)
    age(own, days + 1)
    insert(own, [v7(start_of(-day) + at, day) for day in range(days + 1) for at in (0, DAY - 1)])
    own.write(inbox=OWN | {"retention": "90d"})
    assert f"moved {2 * days + 2} messages" in own.run("maintain").out
    assert "message_inbox_other" not in parts(own) and sum(parts(own).values()) == 2 * days + 2
    assert all(high - low <= 3 * DAY for low, high, _ in ranges(own))
    exact(own)


def test_partitions_of_another_span_go_as_a_whole(own):
    """Wide and narrow ones, whatever the span is now."""
    for days, span in ((70, 1), (69, 3), (66, 13)):
        low, high = start_of(-days), start_of(-days + span)
        own.do(f"CREATE TABLE receiptd.{name_of(low)} PARTITION OF {INBOX} FOR VALUES FROM ('{v7(low)[:13]}') TO ('{v7(high)[:13]}')")
        own.migrate()  # triggers
        insert(own, [v7(low + n, n) for n in range(20)], days_old=days)
    before = funnel(own)
    own.write(inbox=OWN | {"retention": "45d"})
    said = own.run("maintain").out
    assert [f"partition {name_of(start_of(-days))}: booked 20 messages and dropped" in said for days in (70, 69, 66)] == [True] * 3
    assert parts(own) == {} and funnel(own) == before
    exact(own)


# ---- dropped

def old_day(own, days=40, n=200, **options):
    low = age(own, days)
    own.migrate()  # triggers
    insert(own, [v7(low + i, i) for i in range(n)], days_old=days, **options)
    return name_of(low)


def test_a_partition_goes_as_a_whole_when_all_of_it_is_past_its_retention(own):
    name, kept = old_day(own), old_day(own, 45, campaign="kept")
    insert(own, [v7(start_of(-45) + 9_000, 1)], days_old=45)
    own.write(inbox=OWN | {"retention": "30d", "retention_overrides": [{"campaign": "kept", "keep": "90d"}]})
    before = funnel(own)
    said = own.run("retire", "--dry-run").out
    assert f"partition {name} would be booked and dropped" in said and kept + " would be" not in said
    said = own.run("maintain").out
    assert f"partition {name}: booked 200 messages and dropped" in said and "messages: 1 deleted" in said
    assert parts(own) == {kept: 200} and funnel(own) == before
    assert own.query("SELECT count(*)::int FROM receiptd.retired_message") == [(201,)]
    exact(own)
    own.write(inbox=OWN | {"retention": "30d"})
    own.run("maintain")
    assert parts(own) == {} and funnel(own) == before and own.query("SELECT count(*)::int FROM receiptd.retired_message") == [(401,)]
    exact(own)


def test_histograms_of_times_keep_a_partition_that_goes(own):
    """It counts while it is detached, and once it is booked."""
    own.write(counters={"times": True})
    name, other = old_day(own, status=600), old_day(own, 41, status=600)
    own.do(f"""UPDATE {INBOX} SET first_gateway = 'g', first_sent_at = 'epoch', first_delivered_at = timestamptz 'epoch' + length(campaign_id) * interval '1 second'
               WHERE right(message_id, 1) < '5'""")
    own.run("audit", "--repair")
    tally = "SELECT kind, campaign_id, key, messages::int FROM receiptd.campaign_tally WHERE kind LIKE '%time_to_deliver' AND messages <> 0 ORDER BY 1, 2, 3"
    before = own.query(tally)
    counted = own.query(f"SELECT count(*)::int FROM receiptd.{name} WHERE first_sent_at IS NOT NULL")[0][0]
    assert 0 < counted < 200 and len(before) == 2
    with own.connection.transaction():
        own.do(f"ALTER TABLE {INBOX} DETACH PARTITION receiptd.{name}")
        own.do(f"ALTER TABLE receiptd.{name} INHERIT receiptd.inbox_detached")
    exact(own)
    assert f"partition {name}: booked 200 messages and dropped" in own.run("maintain").out
    exact(own)
    found = own.query(tally)
    assert [row for row in found if not row[0].startswith("forgotten")] == before
    assert sorted(row[3] for row in found if row[0].startswith("forgotten")) == [counted, counted]
    own.write(inbox=OWN | {"retention": "30d"})
    assert f"partition {other}: booked 200 messages and dropped" in own.run("maintain").out
    exact(own)


def hold(installation, what):
    holder = psycopg.connect(installation.dsn)
    holder.execute(what)
    return holder


def killed_at(installation, waiting_for):
    """maintain, killed while its session waits for the lock of this table; the session's end."""
    process = installation.start("maintain")
    waits = f"""SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted AND a.datname = current_database()
                AND a.application_name = 'receiptd/maintain' AND l.relation = 'receiptd.{waiting_for}'::regclass"""
    wait_for(lambda: installation.query(waits) == [(1,)], 30, f"maintain waits for {waiting_for}", interval=0.001)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def wait_for_end(installation):
    sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'receiptd/maintain'"
    wait_for(lambda: installation.query(sessions) == [(0,)], 30, "the session of the killed run has ended")


@pytest.mark.parametrize("what, table, left", (
    (f"LOCK TABLE ONLY {INBOX} IN ACCESS SHARE MODE", "message_inbox", 0),  # before it is detached
    ("LOCK TABLE receiptd.campaign_retired IN SHARE MODE", "campaign_retired", 1),  # detached, not booked
    ("SELECT FROM receiptd.inbox_detached", None, 1)))  # booked, not dropped
def test_killed_in_each_step_it_is_exact_and_goes_on(own, what, table, left):
    name = old_day(own, status=300)
    own.write(inbox=OWN | {"retention": "30d"})
    before = funnel(own)
    if table is None:
        first = hold(own, "LOCK TABLE receiptd.campaign_retired IN SHARE MODE")
        killed_at(own, "campaign_retired")
        first.close()
        wait_for_end(own)
        table = name
    holder = hold(own, what)
    killed_at(own, table)
    exact(own)
    assert funnel(own) == before
    holder.close()
    wait_for_end(own)
    assert own.query("SELECT count(*)::int FROM pg_inherits WHERE inhparent = 'receiptd.inbox_detached'::regclass") == [(left,)]
    exact(own)
    own.do("SET search_path = receiptd")
    assert own.query(f"SELECT message_is_retired('{v7(start_of(-40))}')") == [(bool(left),)]
    assert "booked 200 messages and dropped" in own.run("maintain").out
    exact(own)
    assert funnel(own) == before and parts(own) == {} and own.query("SELECT count(*)::int FROM receiptd.retired_message") == [(200,)]


def test_killed_at_any_moment_it_is_exact(own):
    for days in range(40, 60):
        old_day(own, days, 50, status=440)
    own.write(inbox=OWN | {"retention": "30d"})
    before, killed = funnel(own), 0
    for n in range(25):
        process = own.start("maintain")
        time.sleep(0.004 * (n + 1))
        killed += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
        exact(own)
        assert funnel(own) == before
    assert killed > 0
    wait_for_end(own)
    own.run("maintain")
    exact(own)
    assert parts(own) == {} and funnel(own) == before and own.query("SELECT count(*)::int FROM receiptd.retired_message") == [(1000,)]


def test_a_message_that_came_after_the_partition_was_read_stays(own):
    """The run was killed when the partition was detached; the retention has grown meanwhile, which has the same end."""
    name = old_day(own)
    own.write(inbox=OWN | {"retention": "30d"})
    before = funnel(own)
    holder = hold(own, "LOCK TABLE receiptd.campaign_retired IN SHARE MODE")
    killed_at(own, "campaign_retired")
    holder.close()
    wait_for_end(own)
    own.do(f"UPDATE receiptd.{name} SET created_at = now() WHERE message_id = '{v7(start_of(-40))}'")
    assert "so the partition stays" in own.run("maintain").out
    assert parts(own) == {name: 1} and funnel(own) == before  # the others went one by one
    exact(own)
    assert "so the partition stays" not in own.run("maintain").out


def test_a_partition_that_somebody_else_hands_over_is_booked(empty):
    empty.write(inbox=OWN | {"partitions": "external"})
    empty.migrate()
    assert made(empty) == ["message_inbox_other"]
    name = old_day(empty)
    before = funnel(empty)
    with empty.connection.transaction():
        empty.do(f"ALTER TABLE {INBOX} DETACH PARTITION receiptd.{name}")
        empty.do(f"ALTER TABLE receiptd.{name} INHERIT receiptd.inbox_detached")
    exact(empty)
    said = empty.run("maintain")
    assert "booked 200 messages and dropped" in said.out and "no partition for the present" in said.err
    exact(empty)
    assert funnel(empty) == before and parts(empty) == {}


def test_a_query_that_holds_the_inbox_does_not_make_batches_wait(own):
    """maintain gives way after 40 ms each time, and goes on when the query has ended."""
    old_day(own)
    own.write(inbox=OWN | {"retention": "30d"})
    holder = hold(own, f"SELECT count(*) FROM {INBOX}")
    process = own.start("maintain")
    waits = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE NOT l.granted AND a.application_name = 'receiptd/maintain' AND a.datname = current_database()"
    wait_for(lambda: own.query(waits) == [(1,)], 30, "it waits", interval=0.001)
    for n in range(20):
        own.do("SET statement_timeout = '5s'")
        own.do(f"UPDATE {INBOX} SET flags = 0 WHERE message_id = '{v7(start_of(-40), 1)}'")
    assert process.poll() is None
    holder.close()
    assert process.wait(60) == 0
    assert parts(own) == {}


# ---- with receipts

def old_ids(world, days, n):
    return [v7(start_of(-days) + i, i) for i in range(n)]


def test_receipts_flow_while_partitions_are_made_moved_booked_and_dropped(create_world):
    world = create_world(partitions=2, lanes=4, inbox=OWN | {"retention": "30d", "recent_rows": 0}, batch={"max_events": 200}, unknown="insert")
    query, execute = world.database.query, world.database.execute
    ids = {}
    for days in (40, 41, 42, 0):
        low = start_of(-days)
        if days:
            execute(f"CREATE TABLE receiptd.{name_of(low)} PARTITION OF {INBOX} FOR VALUES FROM ('{v7(low)[:13]}') TO ('{v7(low + DAY)[:13]}')")
        ids[days] = old_ids(world, days, 1500)
    world.installation.migrate()
    for days, some in ids.items():
        world.insert_ids(*some, campaign="c")
        execute(f"UPDATE {INBOX} SET created_at = now() - interval '{days} days' WHERE message_id = ANY (%s)", some)
    strange = [f"order-{n}" for n in range(500)] + [v7(start_of(-300) + n, n) for n in range(1000)]
    world.insert_ids(*strange, campaign="c")
    process = world.installation.start()
    everything = [id for some in ids.values() for id in some] + strange
    everything = everything[::2] + everything[1::2]
    for first in range(0, len(everything), 100):
        world.topic.send([{"message_id": id, "status": "SENT"} for id in everything[first:first + 100]])
        if first == 3000:
            world.installation.command("maintain")
        if first % 1500 == 600:
            killed = world.installation.start("maintain", command="maintain")
            time.sleep(world.random.uniform(0.01, 0.1))
            killed.kill()
            world.audit()
    world.installation.command("maintain")
    world.wait_until_consumed(process)
    world.audit()
    funnel = dict(query("SELECT status, events::int FROM receiptd.campaign_funnel WHERE campaign_id = 'c'"))
    letters = "SELECT count(*)::int FROM receiptd.dead_letter WHERE reason = 'retired_message'"
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.parked_event") == 0, process, 30, "late receipts are letters")
    late = world.database.value(letters)
    assert late > 0 and funnel[300] + late == len(everything)
    assert world.database.value("SELECT messages::int FROM receiptd.campaign_funnel WHERE campaign_id = 'c' AND status = 0") == len(everything)
    assert world.database.value(f"SELECT count(*)::int FROM {INBOX}") == 3000
    assert world.database.value("SELECT count(*)::int FROM receiptd.message_inbox_other") == 500
    assert world.database.value(f"SELECT count(*)::int FROM {INBOX} WHERE status = 300") == 3000
    process.stop()


def test_the_daemons_statements_read_the_partitions_of_their_ids_alone(create_world):
    """Updates, look-ups of what did not change, of unknown messages and of parked receipts."""
    world = create_world(partitions=2, lanes=4, inbox=OWN | {"recent_rows": 0})
    low = start_of(-1)
    known, unknown = [v7(low + n, n) for n in range(3000)], [v7(low + n, n) for n in range(3000, 3100)]
    world.insert_ids(*known)
    world.database.execute(f"INSERT INTO {INBOX} (message_id) SELECT overlay(lpad(to_hex({low} + {DAY} * (i % 9) + 60000000 + i), 12, '0') PLACING '-'"
                           " FROM 9 FOR 0) || '-7000-8000-' || lpad(i::text, 12, '0') FROM generate_series(0, 199999) i")
    world.database.execute(f"ANALYZE {INBOX}")
    process = world.installation.start()
    for some in (known, unknown, known):
        world.topic.send([{"message_id": id, "status": "SENT"} for id in some])
    world.wait_until_consumed(process)
    world.insert_ids(*unknown)
    world.wait_until_woken(process)
    process.stop()
    world.audit()
    scans = """SELECT relname::text, idx_scan::int FROM pg_stat_user_indexes WHERE relname LIKE 'message_inbox_%%' AND indexrelname LIKE '%%pkey'
               AND schemaname = 'receiptd' AND relname <> %s"""
    name = name_of(low)
    mine = "SELECT idx_scan::int FROM pg_stat_user_indexes WHERE relname = %s AND indexrelname LIKE '%%pkey'"
    world.wait(lambda: world.database.value(mine, name) >= 3100, None, 30, "the scans of the daemon are known")
    assert {name: n for name, n in world.database.query(scans, name) if n > 0} == {}


def test_the_batchs_join_reads_the_partition_that_the_id_leads_to(own):
    """With the settings of a lane: of 30 partitions each id descends into the index of one."""
    for days in range(2, 24):
        low = age(own, days)
        own.do(f"""INSERT INTO {INBOX} (message_id) SELECT overlay(lpad(to_hex({low} + n), 12, '0') PLACING '-' FROM 9 FOR 0)
            || '-7000-8000-' || lpad(n::text, 12, '0') FROM generate_series(0, 9999) n""")
    own.do(f"ANALYZE {INBOX}")
    for setting in ("plan_cache_mode = force_generic_plan", "enable_seqscan = off", "jit = off", "search_path = receiptd"):
        own.do(f"SET {setting}")
    own.do("""PREPARE batch (text[]) AS UPDATE message_inbox m SET flags = 1 FROM unnest($1) AS e (id) WHERE m.message_id = e.id""")
    ids = "{" + ",".join(f"{v7(start_of(-5) + n)[:13]}-7000-8000-{n:012}" for n in range(100)) + "}"
    plan = "\n".join(line for line, in own.query(f"EXPLAIN (ANALYZE, COSTS OFF, TIMING OFF) EXECUTE batch ('{ids}')"))
    scans = [line for line in plan.splitlines() if "Index Scan" in line or "Seq Scan" in line]
    assert len(scans) >= 30 and sum("loops=100" in line for line in scans) == 1, plan
    assert sum("never executed" in line for line in scans) == len(scans) - 1, plan


def test_the_newest_partitions_are_the_recent_set_and_the_batch_reads_them_first(own):
    """With the settings of a lane, and the boundary that maintain has made. Partitions that are made ahead are among the newest."""
    for days in range(60, 9, -1):
        age(own, days)
    for days in range(9, 0, -1):
        low = age(own, days) if days > 1 else start_of(-1)
        own.do(f"""INSERT INTO {INBOX} (message_id) SELECT overlay(lpad(to_hex({low} + n), 12, '0') PLACING '-' FROM 9 FOR 0)
            || '-7000-8000-' || lpad(n::text, 12, '0') FROM generate_series(0, 999) n""")
    own.do(f"ANALYZE {INBOX}")
    first = v7(start_of(-2))[:13]
    said = own.run("maintain").out
    assert f"batches look among the messages since {first} first" in said and "the newest are in 2, the others in 7" in said
    assert own.query("SELECT first_id, since FROM receiptd.inbox_recent") == [(first, None)]
    assert f"batches look in the partitions of messages since {first} first; new ones are of 24h, a longer inbox.partition_span makes fewer" in own.run("check-config", "--connect").out
    for setting in ("plan_cache_mode = force_generic_plan", "enable_seqscan = off", "jit = off", "search_path = receiptd"):
        own.do(f"SET {setting}")
    plans = []
    for condition in (f">= ALL ('{{\"{first}\"}}')", f"< ALL ('{{\"{first}\"}}')"):
        own.do(f"PREPARE p{len(plans)} (text[]) AS UPDATE message_inbox m SET flags = 1 FROM unnest($1) AS e (id) WHERE m.message_id = e.id AND m.message_id {condition}")
        plans.append("\n".join(line for line, in own.query(f"EXPLAIN EXECUTE p{len(plans)} (NULL)")))
    for days in range(-7, 10):
        assert [f"{name_of(start_of(-days))}_pkey" in plan for plan in plans] == [days <= 2, days > 2], (days, plans)


# ---- receiptd adopt

FLAT = {"partitions": "none"}


def fill_flat(installation, n=20_000):
    installation.do(f"""INSERT INTO {INBOX} (message_id, org_id, campaign_id, status, created_at)
        SELECT overlay(lpad(to_hex({start_of(-90)} + i::int8 * {90 * DAY // n}), 12, '0') PLACING '-' FROM 9 FOR 0) || '-7000-8000-' || lpad(i::text, 12, '0'),
               'o', 'c' || i % 3, 300, '{time.strftime("%Y-%m-%d", time.gmtime(start_of(-90) / 1000))}'::timestamptz + i * interval '{90 * DAY // n} milliseconds'
        FROM generate_series(0, {n - 1}) i""")


@pytest.fixture
def flat(empty):
    empty.migrate()
    fill_flat(empty)
    empty.write(inbox=OWN)
    return empty


def test_a_flat_inbox_becomes_a_partition_and_empties_by_its_retention(flat):
    before = funnel(flat)
    said = flat.run("adopt", "--dry-run").out
    assert "20000 messages, all with ids that are UUIDv7s" in said and "nothing was changed" in said
    flat.do(f"CREATE UNIQUE INDEX message_inbox_recent_0a1b2c3d_1 ON {INBOX} (message_id) WHERE created_at >= '2026-01-01'")
    assert "message_inbox is partitioned" in flat.run("adopt").out
    assert flat.query("SELECT FROM pg_class WHERE relname LIKE '%recent_0a1b2c3d%'") == []  # of a recent set, which is needed no longer
    assert parts(flat) == {"message_inbox_before": 20000} and made(flat) == ["message_inbox_before", "message_inbox_other"]
    assert "already" in flat.run("adopt").out and "nothing to do" in flat.migrate().out
    exact(flat)
    insert(flat, [v7(now(), 1), "order-1"], campaign="c1")
    insert(flat, [v7(start_of(9), 1)], campaign="c1")
    exact(flat)
    flat.write(inbox=OWN | {"retention": "30d"})
    assert "messages: 13333 deleted" in flat.run("maintain").out or parts(flat)["message_inbox_before"] < 7000
    exact(flat)
    flat.do(f"TRUNCATE {INBOX}")
    exact(flat)
    after = dict(((campaign, status), n) for campaign, status, n in funnel(flat))
    assert all(after[campaign, status] in (n, n + 3) for campaign, status, n in before)


def test_an_adopted_inbox_ends_in_a_week_and_partitions_follow_it(flat):
    """However long spans are: until then nothing goes as a whole."""
    flat.write(inbox=OWN | {"retention": "365d"})
    week = (start_of(8), start_of(9))
    flat.run("adopt")
    found = flat.query(f"SELECT pg_get_expr(c.relpartbound, c.oid) FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
                       f" WHERE i.inhparent = '{INBOX}'::regclass AND c.relname <> 'message_inbox_other'")
    ends = sorted(int(re.findall("'(.*?)'", bound)[-1].replace("-", ""), 16) for bound, in found)
    assert ends[0] in week and len(ends) > 1 and all(end % (13 * DAY) == 0 for end in ends[1:]) and ends[-1] > now() + 13 * DAY
    insert(flat, [v7(ends[0] + n) for n in (-1, 0)])
    assert parts(flat)["message_inbox_before"] == 20001 and "message_inbox_other" not in parts(flat)
    exact(flat)


@pytest.mark.parametrize("what, why", (
    (f"INSERT INTO {INBOX} (message_id) VALUES ('order-1')", "no UUIDv7, for example order-1"),
    (f"INSERT INTO {INBOX} (message_id) VALUES ('{v7(start_of(900))}')", "ids of a time in the future"),
    (f"CREATE VIEW public.mine AS SELECT message_id FROM {INBOX}", "view"),
    (f"CREATE TABLE public.sent (id text COLLATE \"C\" REFERENCES {INBOX})", "foreign key")))
def test_what_cannot_be_adopted_is_refused_with_the_reason(flat, what, why):
    flat.do(what)
    for arguments in (["adopt", "--dry-run"], ["adopt"]):
        result = flat.start(*arguments)
        _, said = result.communicate()
        assert result.returncode in (65, 78) and why in said
    assert parts(flat) == {"message_inbox": 20000 + ("INSERT" in what)}


def test_killed_at_any_moment_an_adoption_is_exact_and_goes_on(flat):
    before = funnel(flat)
    for n in range(12):
        process = flat.start("adopt")
        time.sleep(0.015 * (n + 1))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        exact(flat)
        insert(flat, [v7(now(), n)], campaign="new")
    sessions = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'receiptd/adopt'"
    wait_for(lambda: flat.query(sessions) == [(0,)], 30, "the session of the killed run has ended")
    flat.run("adopt")
    assert parts(flat) == {"message_inbox_before": 20012}
    exact(flat)
    assert [row for row in funnel(flat) if row[0] != "new"] == before


def test_the_check_of_a_killed_adoption_is_taken_away_by_maintain(flat):
    flat.do(f"ALTER TABLE {INBOX} ADD CONSTRAINT receiptd_bounds CHECK (message_id < '0') NOT VALID")
    assert "interrupted receiptd adopt" in flat.run("maintain", code=CONFIG).out
    insert(flat, [v7(now())])
    exact(flat)


def test_receipts_flow_while_an_inbox_is_adopted(create_world):
    world = create_world(partitions=2, lanes=4, inbox={"retention": "0s"}, batch={"max_events": 100})
    ids = [v7(start_of(-30) + n * 60_000, n) for n in range(20_000)]
    world.insert_ids(*ids[:15_000])
    world.installation.configure(inbox=OWN)
    process = world.installation.start()
    killed = None
    for first in range(0, len(ids), 100):
        world.topic.send([{"message_id": id, "status": "SENT"} for id in ids[first:first + 100]])
        if first == 4_000:
            killed = world.installation.start("adopt", command="adopt")
        if first == 4_500:
            killed.kill()
        if first == 8_000:
            world.installation.command("adopt")
            world.audit()
    world.insert_ids(*ids[15_000:])
    world.wait_until_consumed(process)
    world.wait_until_woken(process)
    world.audit()
    assert world.database.query("SELECT status, messages::int, events::int FROM receiptd.campaign_funnel WHERE status IN (0, 300) ORDER BY 1") == [
        (0, 20_000, 0), (300, 20_000, 20_000)]
    assert world.database.value(f"SELECT count(*)::int FROM {INBOX} WHERE status = 300") == 20_000
    process.stop()


# ---- vacuum

OPTIONS = "SELECT relname::text, array_to_string(reloptions, ' ') FROM pg_class WHERE relnamespace = 'receiptd'::regnamespace AND relkind = 'r'"


def test_every_table_that_grows_gets_its_storage_parameters_and_keeps_the_operators(own):
    options = dict(own.query(OPTIONS))
    for name in ("message_alias", "dead_letter", "message_timeline", "retired_message", "campaign_retired", *made(own)):
        assert "autovacuum_vacuum" in options[name], name
    assert "autovacuum_vacuum_insert_scale_factor=0.05" in options["dead_letter"]
    part = name_of(now())
    own.do(f"ALTER TABLE receiptd.{part} RESET (autovacuum_vacuum_threshold)")
    own.do(f"ALTER TABLE receiptd.{part} SET (autovacuum_vacuum_scale_factor = 0.5)")
    said = own.migrate().out
    assert "set for receiptd.message_inbox (one table): autovacuum_vacuum_threshold = 10000" in said
    options = dict(own.query(OPTIONS))
    assert "autovacuum_vacuum_scale_factor=0.5 " in options[part] and "autovacuum_vacuum_threshold=10000" in options[part]
    assert own.migrate().out == "nothing to do\n"


def test_of_a_table_of_the_platform_parameters_are_recommended_and_none_is_set(empty):
    empty.do("CREATE SCHEMA app; CREATE TABLE app.messages (message_id text PRIMARY KEY, org_id text, campaign_id text)")
    empty.write(inbox={"table": "app.messages"})
    said = empty.migrate().out
    assert "app.messages: recommended, and left to its owner: ALTER TABLE app.messages SET (autovacuum_analyze_scale_factor = 0.05" in said
    assert empty.query("SELECT reloptions FROM pg_class WHERE oid = 'app.messages'::regclass") == [(None,)]


def test_a_partition_is_frozen_once_two_days_after_its_end_and_one_in_a_run(own):
    days = [age(own, days) for days in (5, 4, 3, 2)]
    insert(own, [v7(low, n) for low in days for n in range(50)])
    own.do(f"UPDATE {INBOX} SET updated_at = now()")
    horizons = "SELECT relname::text, age(relfrozenxid), relallvisible = relpages, relpages FROM pg_class WHERE relname = ANY (%s)"
    names = [name_of(low) for low in days]
    assert f"froze {names[0]}\n" in own.run("maintain").out
    found = {name: rest for name, *rest in own.query(horizons, names)}
    assert found[names[0]][1] and found[names[0]][2] > 0 and found[names[0]][0] < min(found[name][0] for name in names[1:])
    frozen = own.query("SELECT relfrozenxid::text FROM pg_class WHERE relname = %s", names[0])
    assert f"froze {names[1]}\n" in own.run("maintain").out
    assert f"froze {names[2]}\n" in own.run("maintain").out
    assert "froze" not in own.run("maintain").out  # the fourth ended yesterday
    assert own.query("SELECT relfrozenxid::text FROM pg_class WHERE relname = %s", names[0]) == frozen
    exact(own)


def test_a_partition_that_is_in_use_is_frozen_by_a_later_run(own):
    low = age(own, 4)
    insert(own, [v7(low, n) for n in range(5)])
    with psycopg.connect(own.dsn) as other:
        other.execute(f"LOCK TABLE receiptd.{name_of(low)} IN SHARE MODE")
        assert f"{name_of(low)} is in use" in own.run("maintain").out
    assert f"froze {name_of(low)}\n" in own.run("maintain").out


# ---- other kinds of ids

def ksuid(ms, n=0):
    number, digits = (ms // 1000 - 1_400_000_000 << 128) + n, ""
    for _ in range(27):
        number, digit = divmod(number, 62)
        digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"[digit] + digits
    return digits


def test_an_inbox_of_ksuids_is_partitioned_by_their_days(empty):
    empty.write(inbox={"partitions": "own", "ids": "ksuid"})
    empty.migrate()
    assert len(made(empty)) == 10 and "nothing to do" in empty.migrate().out
    insert(empty, [ksuid(start_of(day) + at, n) for day in (-1, 0, 3) for at in (0, DAY - 1000) for n in (0, 2**128 - 1)])
    insert(empty, [ksuid(start_of(-20))])
    assert parts(empty) == {name_of(start_of(day)): 4 for day in (-1, 0, 3)} | {"message_inbox_other": 1}
    assert "default partition" in empty.run("maintain").err
    assert parts(empty)[name_of(start_of(-20))] == 1
    exact(empty)
