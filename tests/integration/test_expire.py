"""receiptd expire: messages whose final receipt never comes get another status, counted exactly; a late receipt corrects it."""
import concurrent.futures
import json
import random
import signal
import time

import psycopg
import pytest

from oracle.ladder import PATH
from support import publications
from support.wait import wait_for
from test_actions import create_actions, receiver, wait_for_runs  # noqa: F401
from test_commands import COLUMNS, CONFIG, command_server, empty, installed, migrated, stranger  # noqa: F401
from test_folds import RULE as FOLD, published, wait_until_quiet

RULES = [{"after": "72h"}]
TO = 400


def age(installation, hours, where="true", table="receiptd.message_inbox", column="updated_at"):
    installation.do(f"UPDATE {table} SET {column} = now() - interval '{hours} hours' WHERE {where}")


def fill(installation, n, statuses=(200, 300, 310, 440, 600), hours=80):
    """Messages in these statuses, counted as receipts would have counted them."""
    installation.do("""INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id)
        SELECT 'm' || i, 'o', 'c' || i %% 3 FROM generate_series(0, %s - 1) i""", n)
    installation.do("UPDATE receiptd.message_inbox SET status = (%s::int2[])[1 + substr(message_id, 2)::int %% %s]", list(statuses), len(statuses))
    age(installation, hours)
    installation.run("audit", "--repair")


def standing(installation, where="true"):
    return dict(installation.query(f"SELECT status, count(*)::int FROM receiptd.message_inbox WHERE {where} GROUP BY 1"))


def is_exact(installation):
    return installation.run("audit").out.endswith(", 0 cells drift\n")


def test_a_message_without_a_final_status_expires_and_is_counted_on_its_new_path(installed):
    installed.write(inbox={"expiry": RULES})
    fill(installed, 1500)
    age(installed, 71, "status = 310 AND campaign_id = 'c0'")
    assert "messages: 500 would expire" in installed.run("expire", "--dry-run").out and standing(installed)[300] == 300
    done = installed.run("expire")
    assert "messages: 500 expired" in done.out and done.err == ""
    assert standing(installed) == {200: 300, 310: 100, 400: 500, 440: 300, 600: 300} and is_exact(installed)
    assert "messages: 0 expired" in installed.run("expire").out
    funnel = dict(installed.query("SELECT status, sum(events)::int FROM receiptd.campaign_funnel GROUP BY 1"))
    assert funnel[TO] == 0, "no receipt came, so none is counted"


@pytest.mark.parametrize("command", ("expire", "retire"))
def test_slow_steps_do_not_become_ever_smaller(installed, command):
    """On a busy server each step takes long, whatever it reads: with a page in a step the walk would take some hundred times longer."""
    installed.write(inbox={"expiry": RULES, "retention": "1h"})
    fill(installed, 12_000, (300,))
    age(installed, 80, column="created_at")
    pages, = installed.query("SELECT pg_relation_size('receiptd.message_inbox')::int / 8192")[0]
    installed.do("CREATE SEQUENCE public.steps")
    installed.do("""CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
                    BEGIN PERFORM nextval('public.steps'), pg_sleep(0.06); RETURN NULL; END $$""")
    installed.do("CREATE TRIGGER slow AFTER UPDATE OR DELETE ON receiptd.message_inbox FOR EACH STATEMENT EXECUTE FUNCTION public.slow()")
    assert f"messages: 12000 {'expired' if command == 'expire' else 'deleted'}" in installed.run(command).out
    steps, = installed.query("SELECT last_value::int FROM public.steps")[0]
    assert pages > 200 and steps <= pages // 32 + 1


def test_without_a_rule_nothing_expires_and_the_funnel_says_nothing(installed):
    fill(installed, 10)
    before = standing(installed)
    assert "none expires" in installed.run("expire").out and standing(installed) == before
    assert "pending" not in json.loads(installed.run("funnel", "c0", "--format", "json").out)


def test_the_first_entry_that_fits_counts_by_any_column_of_the_inbox(installed):
    installed.do("ALTER TABLE receiptd.message_inbox ADD COLUMN channel text")
    installed.write(inbox={"expiry": [{"column": "campaign_id", "value": "c2", "after": "0s"}, {"column": "channel", "value": "whatsapp", "after": "30d"},
                                      {"column": "channel", "value": "sms", "after": "3h", "status": "IN_GTW", "to": "EXPIRED"}, {"after": "72h"}]})
    with_unknown = installed.run("check-config", code=CONFIG).err
    assert "UNKNOWN (400) lies between IN_GTW and EXPIRED" in with_unknown and "terminal" in with_unknown
    installed.config["inbox"]["expiry"][2]["to"] = "UNKNOWN"
    installed.write()
    fill(installed, 900, statuses=(200, 300))
    installed.do("""UPDATE receiptd.message_inbox SET channel = CASE right(message_id, 1) WHEN '1' THEN 'whatsapp' WHEN '2' THEN 'sms' END""")
    age(installed, 80)
    installed.run("expire")
    assert set(standing(installed, "campaign_id = 'c2'")) == {200, 300}
    assert set(standing(installed, "campaign_id <> 'c2' AND channel = 'whatsapp'")) == {300}
    assert set(standing(installed, "campaign_id <> 'c2' AND channel = 'sms'")) == {400}
    assert set(standing(installed, "campaign_id <> 'c2' AND channel IS NULL")) == {200, 400} and is_exact(installed)


@pytest.mark.parametrize("rule, why", (
    ({"status": "SEND"}, '"SEND" is no status of the ladder'), ({"to": "COMPLAINED"}, '"COMPLAINED" is no status'),
    ({"to": "IN_GTW"}, "does not win over SENT"), ({"to": "CLICKED"}, "lies between SENT and CLICKED"),
    ({"status": "TARGETED"}, "SKIPPED (100) lies between TARGETED and UNKNOWN"), ({"column": "org_id"}, "go together")))
def test_a_rule_that_could_not_be_corrected_is_refused_by_check_config(installed, rule, why):
    installed.write(inbox={"expiry": [{"after": "1h", **rule}]})
    assert why in installed.run("check-config", code=CONFIG).err


def test_rules_that_are_never_used_or_name_no_column_are_refused(installed):
    installed.write(inbox={"expiry": [{"after": "1h"}, {"column": "org_id", "value": "o", "after": "2h"}]})
    assert "put it last" in installed.run("check-config", code=CONFIG).err
    installed.write(inbox={"expiry": [{"column": "chanel", "value": "sms", "after": "2h"}]})
    assert "no such column: chanel" in installed.run("expire", code=CONFIG).err


def test_the_top_of_a_ladder_is_no_target(installed):
    installed.ladder()
    installed.write(inbox={"expiry": [{"status": "OPENED", "to": "CLICKED", "after": "1h"}]})
    assert "no late receipt could correct it" in installed.run("check-config", code=CONFIG).err


def test_the_funnel_says_until_when_a_campaign_is_provisional(installed, stranger):
    installed.write(inbox={"expiry": [{"column": "org_id", "value": "bank", "after": "96h"}, *RULES]})
    installed.run("migrate", "--dsn", installed.dsn, "--role", stranger)
    fill(installed, 300, statuses=(300, 600, 700), hours=1)
    said = json.loads(installed.run("funnel", "c0", "--format", "json").out)["pending"]
    until = installed.query("SELECT to_char((max(updated_at) + interval '72 hours') AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"') "
                            "FROM receiptd.message_inbox WHERE campaign_id = 'c0'")[0][0]
    assert said == {"messages": 100, "until": until}
    assert f"provisional until {until}" in installed.run("funnel", "c0").out
    age(installed, 80)
    assert "messages: 100 expired" in installed.run("expire", "--dsn", installed.dsn).out
    assert json.loads(installed.run("funnel", "c0", "--format", "json").out)["pending"] == {"messages": 0, "until": None}
    assert "provisional" not in installed.run("funnel", "c0").out


@pytest.mark.parametrize("partitioned", (False, True), ids=("one table", "partitions"))
def test_messages_of_an_existing_table_expire_too(empty, partitioned):
    empty.do('CREATE TABLE public.messages (id varchar(64) PRIMARY KEY, tenant text, "Campaign" text, channel text)'
             + (" PARTITION BY HASH (id)" if partitioned else ""))
    for n in range(3 if partitioned else 0):
        empty.do(f"CREATE TABLE public.messages_{n} PARTITION OF public.messages FOR VALUES WITH (MODULUS 3, REMAINDER {n})")
    empty.write(inbox={"table": "public.messages", "columns": COLUMNS,
                       "expiry": [{"column": "channel", "value": "whatsapp", "after": "30d"}, *RULES]})
    empty.migrate()
    empty.do("""INSERT INTO public.messages (id, "Campaign", channel) SELECT 'm' || i, 'c', CASE WHEN i <= 100 THEN 'whatsapp' END
        FROM generate_series(1, 400) i""")
    empty.do("UPDATE receiptd.message_inbox SET status = 300, updated_at = now() - interval '80 hours'")
    empty.run("audit", "--repair")
    assert "messages: 300 expired" in empty.run("maintain").out
    assert standing(empty) == {300: 100, 400: 300} and is_exact(empty)


def test_killed_at_any_moment_and_run_twice_at_once_it_stays_exact(installed):
    installed.write(inbox={"expiry": RULES})
    fill(installed, 60_000, statuses=(300, 310, 600))
    killed = 0
    for n in range(6):
        process = installed.start("expire")
        time.sleep(0.03 * (n + 1))
        killed += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert is_exact(installed)
    assert killed > 0
    both = [installed.start("expire") for _ in range(2)]
    assert [process.wait(60) for process in both] == [0, 0]
    # The server may go on with the step of a run that was killed: its rows are held until then, and are left to the next run.
    wait_for(lambda: installed.run("expire") and standing(installed) == {400: 40_000, 600: 20_000}, 60, "all have expired", interval=1)
    assert is_exact(installed)


def test_a_message_that_a_receipt_changes_in_the_same_moment_does_not_expire(installed):
    installed.write(inbox={"expiry": RULES})
    fill(installed, 10, statuses=(300,))
    with psycopg.connect(installed.dsn) as other:
        other.execute("UPDATE receiptd.message_inbox SET status = 600, updated_at = now() WHERE message_id = 'm3'")
        assert "messages: 9 expired" in installed.run("expire").out
    assert "messages: 0 expired" in installed.run("expire").out
    assert standing(installed) == {400: 9, 600: 1}


def test_a_receipt_that_comes_while_its_message_expires_waits_and_wins(create_world):
    """Between finding the messages and changing them the rows are locked."""
    world = create_world(inbox={"expiry": [{"after": "1ms"}]}, timeline={"retention": "1d"})
    world.insert_ids("a", "b", campaign="c")
    process = world.installation.start()
    world.topic.send([{"message_id": id, "status": "SENT"} for id in "ab"])
    world.wait_until_consumed(process)
    world.database.execute("""CREATE FUNCTION public.stop() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN IF current_setting('application_name') LIKE 'receiptd/expire/%' THEN PERFORM pg_advisory_xact_lock(7); END IF; RETURN NULL; END $$""")
    world.database.execute("CREATE TRIGGER stop BEFORE UPDATE ON receiptd.message_inbox FOR EACH STATEMENT EXECUTE FUNCTION public.stop()")
    waits = "SELECT count(*) FROM pg_stat_activity WHERE application_name LIKE 'receiptd/{}/%' AND wait_event_type = 'Lock'"
    with world.database.connect() as gate, concurrent.futures.ThreadPoolExecutor() as beside:
        gate.execute("SELECT pg_advisory_lock(7)")
        expired = beside.submit(world.installation.command, "expire")
        wait_for(lambda: world.database.value(waits.format("expire")) == 1, 30, "the messages are found")
        world.topic.send([{"message_id": "a", "status": "DELIVERED"}])
        wait_for(lambda: world.database.value(waits.format("%")) == 2, 30, "the receipt waits for its row")
        gate.execute("SELECT pg_advisory_unlock(7)")
        assert "messages: 2 expired" in expired.result().stdout
    world.wait_until_consumed(process)
    assert dict(world.database.query("SELECT message_id, status::int FROM receiptd.message_inbox")) == {"a": 600, "b": 400}
    funnel = dict(world.database.query("SELECT status, messages::int FROM receiptd.campaign_funnel WHERE campaign_id = 'c' AND messages > 0"))
    assert funnel == {0: 2, 200: 2, 300: 2, 400: 1, 600: 1}
    assert "UNKNOWN → DELIVERED, a correction" in world.installation.command("explain", "a").stdout
    world.audit()
    process.stop()


@pytest.mark.parametrize("seed", range(2))
def test_receipts_in_any_order_beside_expiries_and_kills_give_the_same_funnel(create_world, seed):
    """Random histories, with repeats, through Kafka; messages expire between and beside the receipts, and the daemon is killed. What
    remains is the largest status that was named, or UNKNOWN where that is smaller and SENT at least."""
    choose = random.Random(seed)
    world = create_world(partitions=2, lanes=4, inbox={"expiry": [{"after": "1ms"}]}, batch={"max_events": 100}, timeline={"retention": "1d"})
    histories = {f"m{n}": choose.choices((200, 300, 310, 440, 600, 700), (2, 6, 3, 2, 3, 2), k=choose.randint(0, 5)) for n in range(4000)}
    world.insert_ids(*histories, campaign="c")
    receipts = [{"message_id": id, "status": code} for id, codes in histories.items() for code in codes]
    choose.shuffle(receipts)
    process = world.installation.start()
    for n, first in enumerate(range(0, len(receipts), 500)):
        world.topic.send(receipts[first:first + 500])
        if n % 3 == 2:
            world.wait_until_consumed(process)
        world.installation.command("expire")
        if n % 6 == 3:
            process.kill()
            process = world.installation.start()
    world.wait_until_consumed(process)
    wait_for(lambda: "messages: 0 expired" in world.installation.command("expire").stdout, 30, "nothing expires any more")
    tops = {id: max(codes, default=0) for id, codes in histories.items()}
    expected = {id: TO if 300 <= top < TO else top for id, top in tops.items()}
    assert dict(world.database.query("SELECT message_id, status::int FROM receiptd.message_inbox")) == expected
    counted = {code: sum(code in PATH[status] for status in expected.values()) for code in PATH}
    events = {code: sum(codes.count(code) for codes in histories.values()) for code in PATH}
    funnel = {code: (messages, n) for code, messages, n in world.database.query(
        "SELECT status, messages::int, events::int FROM receiptd.campaign_funnel WHERE campaign_id = 'c' AND status < 9001")}
    for code in PATH:
        assert funnel.get(code, (0, 0)) == (counted[code], events[code]), code
    corrected = world.database.value("SELECT count(*) FROM receiptd.message_timeline WHERE old = 400 AND new > 400")
    assert corrected > 0, "some receipts came late"
    world.audit()
    process.stop()


def test_folds_and_pipelines_see_an_expiry_as_they_see_a_receipt(create_actions, create_topic, receiver):
    out = create_topic(2)
    world = create_actions([{"name": "lost", "on": "UNKNOWN", "webhook": "crm"}], inbox={"expiry": [{"after": "1ms"}]},
                           folds=[{**FOLD, "publish": {"kafka": {"topic": str(out)}}}])
    world.out = out
    world.insert_ids("a", "b", "c", campaign="spring")
    process = world.installation.start()
    world.topic.send([{"message_id": "a", "status": "SENT"}, {"message_id": "b", "status": "SENT"}, {"message_id": "c", "status": "DELIVERED"}])
    world.wait_until_consumed(process)
    assert "messages: 2 expired" in world.installation.command("expire").stdout
    wait_for_runs(world, process, {"done": 2})
    wait_until_quiet(world, process)
    process.stop()
    assert sorted(call.body["message_id"] for call in receiver.seen()) == ["a", "b"]
    assert publications.statuses(published(world), "campaign_id") == publications.funnel(world.database)
    assert world.database.value("SELECT messages::int FROM receiptd.campaign_funnel WHERE status = 400") == 2
    world.audit()


def test_a_late_receipt_corrects_an_expiry_and_explain_tells_both(create_world):
    world = create_world(inbox={"expiry": [{"after": "1ms"}]}, timeline={"retention": "1d"})
    world.insert_ids("a", "b", campaign="c")
    process = world.installation.start()
    world.topic.send([{"message_id": id, "status": "SENT"} for id in "ab"])
    world.wait_until_consumed(process)
    assert "messages: 2 expired" in world.installation.command("expire").stdout
    world.topic.send([{"message_id": "a", "status": "DELIVERED"}])
    world.wait_until_consumed(process)
    assert dict(world.database.query("SELECT message_id, status::int FROM receiptd.message_inbox")) == {"a": 600, "b": 400}
    funnel = dict(world.database.query("SELECT status, messages::int FROM receiptd.campaign_funnel WHERE campaign_id = 'c' AND messages > 0"))
    assert funnel == {0: 2, 200: 2, 300: 2, 400: 1, 600: 1}
    told = world.installation.command("explain", "a").stdout
    assert "expired" in told and "SENT → UNKNOWN, since no receipt came in time" in told and "UNKNOWN → DELIVERED, a correction" in told
    world.audit()
    process.stop()



def test_with_every_rule_on_an_expiry_moves_messages_and_counts_no_receipt(create_actions, create_topic, receiver):
    out = create_topic(2)
    world = create_actions([{"name": "lost", "on": "UNKNOWN", "webhook": "crm"}], dedup={"window": "24h"},
                           inbox={"expiry": [{"after": "1ms"}]}, timeline={"retention": "1d"}, folds=[{**FOLD, "publish": {"kafka": {"topic": str(out)}}}],
                           counters={"series": "30d", "reasons": "true", "gateways": "30d", "times": True, "by": ["variant"], "groups": ["customer"]})
    world.database.execute("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id, customer_id, variant)"
                           " SELECT id, 'o', 'spring', id, 'v' FROM unnest('{a,b,c}'::text[]) id")
    process = world.installation.start()
    world.topic.send([{"message_id": id, "status": status, "gateway": "twilio"} for id, status in (("a", "DEFERRED"), ("b", "SENT"), ("c", "DELIVERED"))])
    world.wait_until_consumed(process)

    def counted(what):
        rows = world.database.query(f"SELECT kind, status::int, sum({what})::int FROM (SELECT '' AS kind, status, messages, events"
                                    " FROM receiptd.campaign_funnel UNION ALL SELECT kind, status, messages, events FROM receiptd.campaign_tally) t"
                                    " WHERE kind <> 'customer' GROUP BY 1, 2 HAVING sum(messages) <> 0 OR sum(events) <> 0")
        return {(kind, status): n for kind, status, n in rows}

    receipts, messages = counted("events"), counted("messages")
    assert "messages: 2 expired" in world.installation.command("expire").stdout
    moved = {key: n - messages.get(key, 0) for key, n in counted("messages").items() if n != messages.get(key, 0)}
    assert moved == {(kind, status): n for kind in ("", "by_variant", "hour", "minute") for status, n in ((310, -1), (TO, 2))}
    assert {key: n for key, n in counted("events").items() if n} == {key: n for key, n in receipts.items() if n}
    assert world.database.value("SELECT groups::int FROM receiptd.group_funnel WHERE kind = 'customer' AND status = 400") == 2
    assert world.database.query("SELECT topic, status::int, old::int, new::int FROM receiptd.message_timeline WHERE new = 400 ORDER BY old") == \
        [("", 400, 300, 400), ("", 400, 310, 400)]
    wait_for_runs(world, process, {"done": 2})
    world.audit()
    process.stop()


def test_a_message_in_several_partitions_expires_when_each_of_its_rows_is_overdue(empty):
    empty.do("CREATE TABLE public.messages (id varchar(64), tenant text, \"Campaign\" text, born timestamptz, PRIMARY KEY (id, born)) PARTITION BY RANGE (born)")
    for year in (2025, 2026):
        empty.do(f"CREATE TABLE public.messages_{year} PARTITION OF public.messages FOR VALUES FROM ('{year}-01-01') TO ('{year + 1}-01-01')")
    empty.write(inbox={"table": "public.messages", "columns": {**COLUMNS, "created_at": "born"}, "expiry": RULES})
    empty.migrate()
    empty.do("INSERT INTO public.messages (id, \"Campaign\", born) VALUES ('a', 'c', '2025-06-01'), ('a', 'c', '2026-06-01'), ('b', 'c', '2026-06-01')")
    empty.do("UPDATE receiptd.message_inbox SET status = 300, updated_at = now() - interval '80 hours'")
    empty.do("UPDATE receiptd.message_inbox SET updated_at = now() WHERE created_at < '2026-01-01'")
    empty.run("audit", "--repair")
    assert "messages: 1 expired" in empty.run("expire").out and standing(empty) == {300: 2, 400: 1}
    age(empty, 80, "status = 300")
    assert "messages: 2 expired" in empty.run("expire").out and standing(empty) == {400: 3} and is_exact(empty)


def test_an_expiry_stands_in_the_series_in_the_hour_in_which_it_happens(installed):
    installed.write(inbox={"expiry": RULES}, counters={"series": "30d"})
    fill(installed, 300)
    installed.run("expire")
    moved = dict(installed.query("SELECT status_name, sum(messages)::int FROM receiptd.campaign_tally WHERE kind = 'hour' GROUP BY 1"))
    assert moved == {"DEFERRED": -60, "UNKNOWN": 120}, "SENT stays on their path"
