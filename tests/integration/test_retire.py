"""receiptd retire: what goes, what stays, and that counters and audits stay exact whoever deletes, kills or runs it twice."""
import json
import signal
import time

import pytest

from support.wait import wait_for
from support.operations import Operations
from test_commands import COLUMNS, CONFIG, NOPERM, command_server, empty, installed, migrated, stranger  # noqa: F401

DAY = "interval '1 day'"


def fill(installation, n, campaigns=4, days=200):
    """Messages of each age up to `days`, statuses and flags of all kinds."""
    installation.do(f"""INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id, status, flags, created_at)
        SELECT 'm' || i, 'o' || i %% 3, 'c' || i %% {campaigns}, (ARRAY[0, 300, 440, 600, 700])[1 + i %% 5]::int2, i %% 2,
               now() - i * {days} * {DAY} / {n} FROM generate_series(0, {n} - 1) i""".replace("%%", "%"))


def rows(installation):
    return installation.query("SELECT count(*)::int FROM receiptd.message_inbox")[0][0]


def funnel(installation):
    return installation.query("SELECT campaign_id, status, messages FROM receiptd.campaign_funnel ORDER BY 1, 2")


def test_messages_that_are_too_old_go_and_the_funnel_stays(installed):
    installed.write(inbox={"retention": "90d", "retention_overrides": [
        {"campaign": "c1", "keep": "150d"}, {"org_id": "o2", "keep": "10d"}, {"campaign": "c3", "keep": "0s"}]})
    fill(installed, 3000)
    before = funnel(installed)
    expected = installed.query(f"""SELECT count(*)::int FROM receiptd.message_inbox WHERE created_at < now() -
        CASE WHEN campaign_id = 'c1' THEN 150 WHEN campaign_id = 'c3' THEN NULL WHEN org_id = 'o2' THEN 10 ELSE 90 END * {DAY}""")[0][0]
    dry = installed.run("retire", "--dry-run").out
    assert f"{expected} rows of message_inbox would go" in dry and "of 3 campaigns" in dry and rows(installed) == 3000
    assert f"messages: {expected} deleted" in installed.run("retire").out
    assert rows(installed) == 3000 - expected and funnel(installed) == before
    assert installed.run("audit").out.endswith(", 0 cells drift\n")
    assert "messages: 0 deleted" in installed.run("maintain").out
    assert "the tables were last walked at" in installed.run("maintain").out
    installed.do(f"UPDATE receiptd.maintained SET ended_at = ended_at - {DAY}")
    assert "messages: 0 deleted" in installed.run("maintain").out and "last walked at" in installed.run("maintain").out
    # What was booked step by step is added together: one row for each kind.
    assert installed.query("SELECT count(*) = count(DISTINCT (campaign_id, status, flags)), sum(messages)::int FROM receiptd.campaign_retired") == [
        (True, expected)]


def test_without_a_retention_nothing_goes(installed):
    fill(installed, 100)
    assert "none is deleted" in installed.run("retire").out and rows(installed) == 100


@pytest.mark.parametrize("changes, why", (
    ({"inbox": {"retention": "1d", "targeted": "none"}}, "inbox.targeted is none"),
    ({"inbox": {"retention": "1d", "table": "public.messages"}}, "inbox.columns.created_at is not set"),
    ({"inbox": {"retention_overrides": [{"keep": "1d"}]}}, "either a campaign or an org_id"),
    ({"inbox": {"retention_overrides": [{"keep": "1d", "campaign": "c", "org_id": "o"}]}}, "either a campaign or an org_id")))
def test_a_retention_that_cannot_be_is_refused_by_check_config(installed, changes, why):
    installed.write(**changes)
    assert why in installed.run("check-config", code=CONFIG).err


def test_a_table_whose_trigger_is_off_is_refused(installed):
    installed.write(inbox={"retention": "1d"})
    fill(installed, 10)
    installed.do("ALTER TABLE receiptd.message_inbox DISABLE TRIGGER receiptd_count_deleted")
    assert "receiptd_count_deleted" in installed.run("retire", code=CONFIG).err and rows(installed) == 10


def test_killed_at_any_moment_and_run_twice_at_once_it_stays_exact(installed):
    installed.write(inbox={"retention": "1d"})
    fill(installed, 60_000)
    before = funnel(installed)
    killed = 0
    for n in range(8):
        process = installed.start("retire")
        time.sleep(0.05 * (n + 1))
        killed += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert installed.run("audit").out.endswith(", 0 cells drift\n")
        if n == 3:
            fill_more(installed)
            before = funnel(installed)
    assert killed > 0
    both = [installed.start("retire") for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    # The server may go on with the step of a run that was killed: its rows are held until then, and are left to the next run.
    wait_for(lambda: installed.run("retire") and rows(installed) < 600, 60, "messages that another transaction held are retired, too", interval=1)
    assert funnel(installed) == before
    assert installed.run("audit").out.endswith(", 0 cells drift\n")


def fill_more(installed):
    installed.do(f"""INSERT INTO receiptd.message_inbox (message_id, campaign_id, created_at)
        SELECT 'n' || i, 'later', now() - 2 * {DAY} FROM generate_series(1, 60000) i""")


@pytest.mark.parametrize("partitioned", (False, True), ids=("one table", "partitions"))
def test_an_existing_table_with_its_own_names_is_retired_too(empty, partitioned):
    empty.do('CREATE TABLE public.messages (id varchar(64) PRIMARY KEY, tenant text, "Campaign" text, born timestamptz DEFAULT now())'
             + (" PARTITION BY HASH (id)" if partitioned else ""))
    for n in range(4 if partitioned else 0):
        empty.do(f"CREATE TABLE public.messages_{n} PARTITION OF public.messages FOR VALUES WITH (MODULUS 4, REMAINDER {n})")
    empty.write(inbox={"table": "public.messages", "columns": COLUMNS | {"created_at": "born"}, "retention": "90d"})
    empty.migrate()
    empty.do(f"""INSERT INTO public.messages (id, tenant, "Campaign", born)
        SELECT 'm' || i, 'o', 'c' || i % 3, CASE WHEN i <= 1000 THEN now() - i * {DAY} / 5 END FROM generate_series(1, 1100) i""")
    before = funnel(empty)
    assert "created_at" in [column for column, in empty.query(
        "SELECT attname::text FROM pg_attribute WHERE attrelid = 'receiptd.message_inbox'::regclass AND attnum > 0")]
    young = "SELECT count(*)::int FROM public.messages WHERE born >= now() - interval '90 days' OR born IS NULL"  # without a time it stays
    empty.run("retire")
    assert 500 < rows(empty) == empty.query(young)[0][0] < 600
    assert funnel(empty) == before and empty.run("audit").out.endswith(", 0 cells drift\n")
    empty.do("DELETE FROM public.messages WHERE id = 'm1'")
    empty.do("TRUNCATE public.messages")
    assert funnel(empty) == before and empty.run("audit").out.endswith(", 0 cells drift\n")


def test_a_partition_that_is_dropped_is_booked_by_a_repair(empty):
    empty.do('CREATE TABLE public.messages (id varchar(64) PRIMARY KEY, tenant text, "Campaign" text) PARTITION BY HASH (id)')
    for n in range(2):
        empty.do(f"CREATE TABLE public.messages_{n} PARTITION OF public.messages FOR VALUES WITH (MODULUS 2, REMAINDER {n})")
    empty.write(inbox={"table": "public.messages", "columns": COLUMNS})
    empty.migrate()
    empty.do("""INSERT INTO public.messages (id, "Campaign") SELECT 'm' || i, 'c' || i % 3 FROM generate_series(1, 300) i""")
    gone = empty.query("SELECT count(*)::int FROM public.messages_1")[0][0]
    before = funnel(empty)
    empty.do("DROP TABLE public.messages_1")
    said = json.loads(empty.run("audit", "--repair", "--format", "json").out)
    assert said["booked_messages"] == gone and said["remaining_cells"] == 0 and funnel(empty) == before
    assert empty.run("audit").out.endswith(", 0 cells drift\n")


def test_parts_go_with_the_messages_that_retire_and_with_those_that_left_unbooked(installed):
    installed.write(inbox={"retention": "90d"})
    fill(installed, 100)
    installed.do("""INSERT INTO receiptd.message_part (message_id, parts, delivered, delivered_at)
        SELECT 'm' || i, 2, '{1}', ARRAY[now()] FROM generate_series(0, 149) i""")  # 100 of messages
    left = "SELECT count(*)::int FROM receiptd.message_part"
    assert "parts of messages that are gone: 50 would go" in installed.run("retire", "--dry-run").out and installed.query(left) == [(150,)]
    assert "parts of messages that are gone: 50 deleted" in installed.run("retire").out
    assert installed.query(left) == [(rows(installed),)] == [(45,)]


def test_aliases_go_after_their_message_is_forgotten(installed):
    installed.write(inbox={"retention": "90d", "alias_retention": "1d"})
    fill(installed, 100)
    installed.do(f"""INSERT INTO receiptd.message_alias (channel_account, gateway_id, message_id, created_at)
        SELECT 'a', 'g' || i, 'm' || i, now() - CASE WHEN i < 120 THEN 2 ELSE 0 END * {DAY} FROM generate_series(0, 139) i""")
    left = "SELECT count(*)::int FROM receiptd.message_alias"
    assert "aliases: 20 would go" in installed.run("retire", "--dry-run").out  # of no message; 20 others are too young
    installed.run("retire")
    assert installed.query(left) == [(120,)] and rows(installed) == 45
    installed.do("DELETE FROM receiptd.retired_message")
    assert "aliases: 55 deleted" in installed.run("retire").out and installed.query(left) == [(65,)]


def test_the_daemon_deletes_dead_letters_and_forgotten_ids_by_their_age(create_world):
    world = create_world(dead_letters={"retention": "1d"}, inbox={"remember_retired": "2d"})
    world.database.execute("""INSERT INTO receiptd.dead_letter (topic, partition, "offset", index, lane, reason, dead_at)
        SELECT 't', 0, i, 0, 0, 'aged_out', now() - i * interval '1 hour' FROM generate_series(1, 25000) i""")
    world.database.execute("""INSERT INTO receiptd.retired_message (hash, retired_at)
        SELECT i, now() - i * interval '1 hour' FROM generate_series(1, 25000) i""")
    process = world.installation.start()
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.retired_message") == 47, process, what="ids are forgotten")
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.dead_letter") == 23, process, what="old letters go")
    process.stop()


def test_receipts_of_messages_that_go_meanwhile_are_counted_or_named_late(create_world):
    """The daemon consumes while its messages are retired in steps, some of which are killed: every receipt is counted or a letter."""
    world = create_world(partitions=2, lanes=4, inbox={"retention": "1h"}, batch={"max_events": 200})
    ids = [f"m{n}" for n in range(6000)]
    world.insert_ids(*ids, campaign="c")
    world.database.execute("UPDATE receiptd.message_inbox SET created_at = now() - interval '1 day' WHERE hashtext(message_id) % 2 = 0")
    old = world.database.value("SELECT count(*)::int FROM receiptd.message_inbox WHERE created_at < now() - interval '1 hour'")
    process = world.installation.start()
    for first in range(0, 6000, 100):
        world.topic.send([{"message_id": id, "status": "SENT"} for id in ids[first:first + 100]])
        if first % 2000 == 1000:
            world.installation.command("retire")
            world.database.execute("UPDATE receiptd.message_inbox SET created_at = now() - interval '1 day' WHERE hashtext(message_id) % 4 = 1")
    world.wait_until_consumed(process)
    world.installation.command("retire")
    funnel = dict(world.database.query("SELECT status, events::int FROM receiptd.campaign_funnel WHERE campaign_id = 'c'"))
    late = world.database.value("SELECT count(*)::int FROM receiptd.dead_letter WHERE reason = 'retired_message'")
    assert late > 0 and funnel[300] + late == 6000
    assert world.database.value("SELECT messages::int FROM receiptd.campaign_funnel WHERE campaign_id = 'c' AND status = 0") == 6000
    assert world.database.value("SELECT count(*)::int FROM receiptd.message_inbox") <= 6000 - old
    assert Operations(process).figures().get_one("receiptd_events_dead_total", reason="retired_message") == late
    world.audit()
    process.stop()


def test_the_daemons_role_may_say_what_would_go_and_not_delete_it(installed, stranger):
    installed.write(inbox={"retention": "90d"})
    installed.run("migrate", "--dsn", installed.dsn, "--role", stranger)
    fill(installed, 100)
    assert "55 rows of message_inbox would go" in installed.run("retire", "--dry-run").out
    refused = installed.run("retire", code=NOPERM)
    assert "permission denied" in refused.err and "--dsn" in refused.err and rows(installed) == 100
    assert "messages: 55 deleted" in installed.run("retire", "--dsn", installed.dsn).out


@pytest.mark.parametrize("command, inbox", (
    (("erase", "--message", "m1"), {}),
    (("adopt",), {"partitions": "own", "ids": "uuidv7"})))
def test_a_command_of_the_owner_that_the_daemons_role_runs_says_whose_it_is(installed, stranger, command, inbox):
    installed.run("migrate", "--dsn", installed.dsn, "--role", stranger)
    installed.write(inbox=inbox)
    refused = installed.run(*command, code=NOPERM)
    assert "permission denied" in refused.err or "must be owner" in refused.err
    assert "run it with --dsn, as the owner of the schema" in refused.err


# ---- histograms of times

INBOX = "receiptd.message_inbox"
TIMES = ", ".join(f"ADD COLUMN first_{name}_at timestamptz" for name in ("sent", "delivered", "opened", "clicked")) \
    + ', ADD COLUMN first_gateway text COLLATE "C", ADD COLUMN prev_times text COLLATE "C"'


def note_times(installation):
    """First times as receipts would have made them, of all messages but those of `c0`; a repair counts them."""
    installation.write(counters={"times": True})
    installation.do(f"""UPDATE {INBOX} SET first_gateway = 'g/' || right(message_id, 1), first_sent_at = 'epoch',
        first_delivered_at = timestamptz 'epoch' + length(message_id) * interval '1 second',
        first_opened_at = CASE WHEN message_id LIKE '%%7' THEN timestamptz 'epoch' END WHERE campaign_id <> 'c0'""".replace("%%", "%"))
    installation.run("audit", "--repair")


def histograms(installation, booked=False):
    return installation.query("SELECT kind, campaign_id, key, status, messages::int FROM receiptd.campaign_tally WHERE kind LIKE %s AND messages <> 0 ORDER BY 1, 2, 3",
                              "forgotten%" if booked else "%time_to%")


def live_histograms(installation):
    return [row for row in histograms(installation) if not row[0].startswith("forgotten")]


def exact_times(installation, before):
    assert live_histograms(installation) == before and installation.run("audit").out.endswith(", 0 cells drift\n")


def test_histograms_of_times_keep_messages_that_go(installed):
    installed.write(inbox={"retention": "90d"})
    fill(installed, 400)
    note_times(installed)
    before = live_histograms(installed)
    assert {row[0] for row in before} == {"time_to_deliver", "time_to_open", "gateway_time_to_deliver", "gateway_time_to_open"}
    installed.do(f"DELETE FROM {INBOX} WHERE campaign_id = 'c0'")
    assert histograms(installed, booked=True) == [], "they have counted nowhere"
    installed.do(f"DELETE FROM {INBOX} WHERE message_id LIKE 'm1%'")
    assert histograms(installed, booked=True)
    exact_times(installed, before)
    installed.run("retire")
    exact_times(installed, before)
    installed.do(f"SET session_replication_role = replica; DELETE FROM {INBOX} WHERE message_id LIKE 'm2%'; RESET session_replication_role")
    assert "time_to_deliver" in installed.run("audit", code=1).out
    installed.run("audit", "--repair")
    exact_times(installed, before)
    installed.do(f"TRUNCATE {INBOX}")
    exact_times(installed, before)
    assert [(kind.removeprefix("forgotten_"), *more) for kind, *more in histograms(installed, booked=True)] == before


def test_a_table_that_gets_the_columns_of_times_later_books_them(empty):
    empty.do('CREATE TABLE public.messages (id varchar(64) PRIMARY KEY, tenant text, "Campaign" text, prev_times int)')
    empty.write(inbox={"table": "public.messages", "columns": COLUMNS})
    empty.migrate()
    empty.do("""INSERT INTO public.messages (id, "Campaign") SELECT 'm' || i, 'c' || i % 3 FROM generate_series(1, 300) i""")
    empty.do("DELETE FROM public.messages WHERE id = 'm1'")
    empty.write(counters={"times": True})
    for command in (("migrate",), ("check-config", "--connect")):
        refused = empty.run(*command, code=CONFIG).err
        assert refused.count("for counters.times") == 6 and "add the column, or leave counters.times out: ALTER TABLE public.messages ADD COLUMN first_sent_at timestamptz;" in refused
        assert 'ADD COLUMN first_gateway text COLLATE "C";' in refused
        assert "column prev_times of inbox table public.messages, for counters.times, is of type integer, not text" in refused
    empty.do(f"DROP VIEW {INBOX}; ALTER TABLE public.messages DROP COLUMN prev_times; ALTER TABLE public.messages {TIMES}")
    assert "create the trigger" in empty.migrate().out and empty.migrate().out == "nothing to do\n"
    note_times(empty)
    before = live_histograms(empty)
    empty.do("DELETE FROM public.messages WHERE id LIKE 'm1%'")
    exact_times(empty, before)
    assert histograms(empty, booked=True)
    empty.do("TRUNCATE public.messages")
    exact_times(empty, before)
    empty.write(counters={"times": False})
    empty.do(f"DROP VIEW {INBOX}; ALTER TABLE public.messages DROP COLUMN first_sent_at")
    assert "create the trigger" in empty.migrate().out and empty.migrate().out == "nothing to do\n"
    empty.do("""INSERT INTO public.messages (id, "Campaign") VALUES ('late', 'c'); DELETE FROM public.messages""")
