"""receiptd erase: nothing of a person is left in the database, everything of the others is, and counters stay exact."""
import json
import pathlib
import signal
import subprocess
import time

import psycopg
import pytest

from support.wait import wait_for
from test_commands import COLUMNS, CONFIG, USAGE, command_server, empty, installed, migrated  # noqa: F401


def dump(installation):
    """The whole database as text."""
    binary = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, check=True).stdout.strip() + "/pg_dump"
    dsn = installation.server.replace("dbname=postgres", f"dbname={installation.name}")
    # Payloads are bytea: as text, so that an id in them is found.
    text = subprocess.run([binary, dsn], capture_output=True, text=True, check=True, timeout=60).stdout
    payloads = installation.query("""SELECT encode(payload, 'escape') FROM receiptd.dead_letter WHERE payload IS NOT NULL
                                     UNION ALL SELECT encode(payload, 'escape') FROM receiptd.parked_event""")
    return text + "\n".join(payload for payload, in payloads)


def funnel(installation):
    return installation.query("SELECT campaign_id, status, messages FROM receiptd.campaign_funnel ORDER BY 1, 2")


def receive(installation, person, n):
    """A row of the person in every table that can hold one: message PERSON-N, alias gPERSON-N."""
    id, customer, gateway = f"{person}-{n}", f"customer-{person}", f"g{person}-{n}"
    number = ord(person[0]) * 100 + len(person)
    place = f"'t', 0, {n * 100 + number * 10_000}"
    event = f'{{"message_id": "{id}", "status": "SENT", "gateway": "acme"}}'
    under_gateway = f'{{"message_id": "{gateway}", "gateway_message_id": "{gateway}", "status": "SENT", "gateway": "acme"}}'
    sql = f"""
        INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id, status, customer_id)
            VALUES ('{id}', 'o', 'c{n % 3}', 600, '{customer}');
        INSERT INTO receiptd.message_alias (channel_account, gateway_id, message_id)
            VALUES ('acme', '{gateway}', '{id}'), ('acme', 'first-{gateway}', '{gateway}');
        INSERT INTO receiptd.parked_event (topic, partition, "offset", index, lane, message_id, status, at, payload, account, gateway_id) VALUES
            ({place}, 0, 0, '{id}', 300, now(), '{event}', NULL, NULL),
            ({place}, 1, 0, '{gateway}', 300, now(), '{under_gateway}', 'acme', '{gateway}');
        INSERT INTO receiptd.dead_letter (topic, partition, "offset", index, lane, reason, payload) VALUES
            ({place}, 2, 0, 'aged_out', '{event}'), ({place}, 3, 0, 'aged_out', '{under_gateway}'),
            ({place}, -1, 0, 'invalid_json', 'account=acme&id={id}&status=');
        INSERT INTO receiptd.message_timeline (message_id, topic, partition, "offset", index, status, at, old, new, gained) VALUES
            ('{id}', {place}, 5, 300, now(), 0, 300, 0), ('{gateway}', {place}, 1, 300, now(), NULL, NULL, NULL),
            ('{gateway}', {place}, 3, 300, now(), NULL, NULL, NULL);
        INSERT INTO receiptd.run_intent (org_id, pipeline_id, messages, campaigns)
            SELECT 'o', id, ARRAY['{id}', 'other'], ARRAY['c', 'c'] FROM receiptd.pipeline;
        INSERT INTO receiptd.run_intent (org_id, pipeline_id, messages, campaigns)
            SELECT 'o', id, ARRAY['{id}'], ARRAY['c'] FROM receiptd.pipeline;
        WITH r AS (
            INSERT INTO receiptd.run (pipeline_id, org_id, subject, subject_hash, once_key, message_id)
            SELECT p.id, 'o', '{customer}', 1, '["p", "{customer}", {n}]', '{id}' FROM receiptd.pipeline p RETURNING id, pipeline_id)
        INSERT INTO receiptd.action (run_id, pipeline_id, step, lane, subject_hash, org_id, message_id, perform_at, answer)
            SELECT r.id, r.pipeline_id, 1, 0, {n}, 'o', '{id}', now(), 'to {customer}' FROM r;
        INSERT INTO receiptd.run (pipeline_id, org_id, subject, subject_hash, data) -- begun by an import
            SELECT p.id, 'o', '{customer}', 1, '{{"who": "{customer}"}}' FROM receiptd.pipeline p;
        INSERT INTO receiptd.fold_event (orgs, campaigns, old, new, gained, n, columns)
            VALUES ('{{o}}', '{{c}}', '{{0}}', '{{300}}', '{{0}}', '{{1}}', ARRAY['{{"customer_id": "{customer}", "message_id": "{id}"}}']);
        INSERT INTO receiptd.fold_event (rules, keys, parts, n)
            VALUES ('{{r}}', ARRAY['{{"who": "{customer}"}}'], ARRAY['{{"v": {{"ids": ["{id}"]}}}}'], '{{1}}');
        INSERT INTO receiptd.fold_group (rule, key, lane, number, events, collected)
            VALUES ('r', '{{"who": "{customer}", "n": {n}}}', 1, {n + 7}, 1, '{{}}'),
                   ('r', '{{"campaign_id": "c{number}", "n": {n}}}', 1, 1, 2, '{{"v": {{"ids": ["{id}", "someone"]}}, "o": {{}}}}');
        INSERT INTO receiptd.fold_outbox (lane, seq, rule, id, destination, message_key, payload)
            VALUES (0, {n + 1000 * number}, 'r', 'x{n}-{number}', 't', '{customer}', '{{"collected": {{"ids": ["{id}"]}}}}');
        INSERT INTO receiptd.fold_call (id, lane, rule, payload)
            VALUES ('y{n}-{number}', 0, 'r', '{{"collected": {{"ids": ["{id}"]}}, "group": {{"who": "{customer}"}}}}')"""
    installation.connection.execute(sql)


@pytest.fixture
def people(installed):
    installed.write(inbox={"columns": {"customer_id": "customer_id"}})
    installed.do("ALTER TABLE receiptd.message_inbox ADD COLUMN customer_id text")
    installed.do("CREATE INDEX ON receiptd.message_inbox (customer_id)")
    installed.do("""INSERT INTO receiptd.pipeline (name, hash, active, org_field, subject_field, first_step, first_delay_ms)
                    VALUES ('p', 'h', true, 'org_id', 'customer_id', 1, 0)""")
    for n in range(10):
        receive(installed, "anna", n)
        receive(installed, "bert", n)
    return installed


def of_bert(installation):
    text = dump(installation)
    return sorted(line for line in text.splitlines() if "bert" in line and "other" not in line)


def test_nothing_of_the_person_is_left_and_everything_of_the_other_is(people):
    before, bert = funnel(people), of_bert(people)
    assert "anna" in dump(people)
    dry = people.run("erase", "--customer", "customer-anna", "--dry-run").out
    assert "messages: 10 would go" in dry and "nothing was erased" in dry and "anna" in dump(people)
    assert people.query("SELECT count(*)::int FROM receiptd.erasure") == [(0,)]
    out = people.run("erase", "--customer", "customer-anna").out
    for said in ("messages: 10", "parked receipts: 20", "dead letters: 30", "rows of the timeline: 30", "aliases: 20", "runs: 40"):
        assert f"{said} erased\n" in out
    assert [line for line in dump(people).splitlines() if "anna" in line] == []
    assert of_bert(people) == bert
    assert funnel(people) == before and people.run("audit").out.endswith(", 0 cells drift\n")
    # A group of another key keeps what is not the person's; numbers begin above those of groups that went.
    assert people.query("""SELECT DISTINCT collected FROM receiptd.fold_group WHERE key NOT LIKE '%who%' AND collected @> '{"v": {"ids": [null]}}'""") == [({"v": {"ids": [None, "someone"]}, "o": {}},)]
    assert people.query("SELECT number_floor::int FROM receiptd.fold_lane WHERE lane = 1") == [(16,)]
    assert people.query("SELECT count(*)::int FROM receiptd.run_intent WHERE messages = '{other}'") == [(10,)]
    assert people.query("SELECT subject, reference, subject_hash IS NOT NULL, messages::int, finished_at IS NOT NULL FROM receiptd.erasure") == [
        ("customer", None, True, 10, True)]
    assert people.query("""SELECT subject_hash = sha256(subject_salt || 'customer-anna'::bytea) FROM receiptd.erasure""") == [(True,)]
    # The record of the second run says that there was nothing.
    assert "messages: 0 erased" in people.run("erase", "--customer", "customer-anna", "--reference", "T-7").out
    assert people.query("SELECT reference, subject_hash, messages::int FROM receiptd.erasure ORDER BY id DESC LIMIT 1") == [("T-7", None, 0)]


def test_messages_are_erased_by_their_ids(people, tmp_path):
    list = tmp_path / "ids"
    list.write_text("\n".join(f"anna-{n}" for n in range(9)) + "\r\n\n")
    assert "messages: 9 erased" in people.run("erase", "--messages-from", str(list)).out
    assert people.query("SELECT message_id FROM receiptd.message_inbox WHERE message_id LIKE 'anna%'") == [("anna-9",)]
    assert "messages: 1 erased" in people.run("erase", "--message", "anna-9").out
    assert people.run("audit").out.endswith(", 0 cells drift\n")
    list.write_text("x" * 300)
    assert "line 1 is no message id" in people.run("erase", "--messages-from", str(list), code=65).err


def test_an_id_that_is_part_of_another_is_another(people):
    receive(people, "anna-1", 1)  # anna-1-1
    people.run("erase", "--message", "anna-1")
    assert people.query("SELECT count(*)::int FROM receiptd.dead_letter WHERE payload LIKE '%anna-1-1%'::bytea") == [(3,)]
    assert people.query("SELECT count(*)::int FROM receiptd.parked_event WHERE message_id LIKE '%anna-1-1'") == [(2,)]


def test_dead_letters_are_found_by_ids_that_are_no_single_word(people):
    for n, payload in enumerate((r'{"message_id": "of \"anna\" 1"}', r'{"message_id": "of \"anna\" 12"}', "id=ann\u00e4.1&x", "id=xann\u00e4.1&x")):
        people.connection.execute("""INSERT INTO receiptd.dead_letter (topic, partition, "offset", index, lane, reason, payload)
                                     VALUES ('phrases', 0, %s, 0, 0, 'aged_out', convert_to(%s, 'UTF8'))""", (n, payload))
    people.run("erase", "--message", 'of "anna" 1')
    people.run("erase", "--message", "ann\u00e4.1")
    assert people.query("""SELECT "offset"::int FROM receiptd.dead_letter WHERE topic = 'phrases' ORDER BY 1""") == [(1,), (3,)]


def test_letters_are_found_whichever_encoder_wrote_them(people):
    written = json.loads((pathlib.Path(__file__).parents[1] / "fixtures/encoded_ids.json").read_text())
    for id in written["ids"]:
        people.connection.execute("INSERT INTO receiptd.message_inbox (message_id, customer_id) VALUES (%s, '77')", (id,))
    for n, (_, _, text) in enumerate(written["texts"]):
        people.connection.execute("""INSERT INTO receiptd.dead_letter (topic, partition, "offset", index, lane, reason, payload)
                                     VALUES ('written', 0, %s, 0, 0, 'aged_out', %s)""", (n, text.encode()))
    people.do("""INSERT INTO receiptd.dead_letter (topic, partition, "offset", index, lane, reason, detail, payload)
                 VALUES ('written', 1, 0, -3, 0, 'not_a_run', 'message 4915112345678 is not of organisation o', '{}'),
                        ('written', 1, 1, 0, 0, 'aged_out', 'message 49151123456789', '\\xff00ff')""")
    before = people.query("SELECT count(*)::int FROM receiptd.dead_letter")[0][0]
    assert f"dead letters: {len(written['texts']) + 1} would go\n" in people.run("erase", "--customer", "77", "--dry-run").out
    assert people.query("SELECT count(*)::int FROM receiptd.dead_letter") == [(before,)]
    assert f"dead letters: {len(written['texts']) + 1} erased\n" in people.run("erase", "--customer", "77").out
    assert people.query("""SELECT partition, "offset"::int FROM receiptd.dead_letter WHERE topic = 'written'""") == [(1, 1)]
    assert people.query("SELECT letters::int FROM receiptd.erasure") == [(len(written["texts"]) + 1,)]


def test_a_fold_loses_ids_that_are_numbers_or_part_of_an_object(people):
    kinds = json.dumps({name: name for name in ("set", "first", "last", "min", "max", "sum", "count")})
    people.connection.execute("""INSERT INTO receiptd.fold_rule (rule, source, match, by_campaign, by_org, by_status, kinds, fields, "window", max_hold,
                                     max_events, max_values, funnel, target, destination, message_key)
                                 VALUES ('n', 'topic', '{}', false, false, false, %s, '{}', '1s', '1s', 1, 1, false, 'kafka', 't', 'group')""", (kinds,))
    within = json.dumps({"who": "\u00e4", "list": [1, 880055.0]})
    escaped = '{"who": "\\u0061nna/5", "more": "' + "x" * 900  # an object that a fold has cut
    collected = {"set": [880055, "880055", 880055.5, within, escaped, "880055 is part"], "first": 880055, "last": "anna/5", "min": 880055, "max": 880056,
                 "sum": 880055, "count": 880055}
    left = {"set": [None, None, 880055.5, None, None, "880055 is part"], "max": 880056, "sum": 880055, "count": 880055}
    for customer, number in ((880055, 7), (880056, 8)):
        people.connection.execute("""INSERT INTO receiptd.fold_group (rule, key, lane, number, events, collected) VALUES ('n', %s, 1, %s, 880055, '{"v": {}}')""",
                                  (json.dumps({"customer_id": customer, "n": "x"}), number))
    group = {"v": {**collected, "": {"SENT": 880055}}, "o": {"set": 880055}}
    people.connection.execute("INSERT INTO receiptd.fold_group (rule, key, lane, number, events, collected) VALUES ('n', '{}', 1, 1, 880055, %s)",
                              (json.dumps(group),))
    people.connection.execute("""INSERT INTO receiptd.fold_event (rules, keys, parts, n) VALUES ('{n,n,gone}', %s, %s, '{1,1,1}')""",
                              ([json.dumps({"customer_id": 8.80055e5}), "{}", "{}"], [json.dumps({"v": collected}), '{"v": {}}', '{"v": {"any": 880055}}']))
    publication = {"id": "i", "number": 880055, "events": 880055, "group": {"customer_id": 880055}, "collected": collected}
    for table, more, value in (("fold_outbox", "lane, seq, destination, message_key", "0, 99, 't', '880055'"), ("fold_call", "lane", "0")):
        people.connection.execute(f"INSERT INTO receiptd.{table} (rule, id, payload, {more}) VALUES ('n', 'i', %s, {value})", (json.dumps(publication),))
    people.connection.execute("""INSERT INTO receiptd.message_inbox (message_id, customer_id) VALUES ('anna/5', '880055')""")
    out = people.run("erase", "--customer", "880055").out
    assert "entries of folds: 5 erased\n" in out
    assert people.query("SELECT key::jsonb, collected FROM receiptd.fold_group WHERE rule = 'n' ORDER BY number") == [
        ({}, {"v": {**left, "": {"SENT": 880055}}, "o": {"set": 880055}}), ({"customer_id": 880056, "n": "x"}, {"v": {}})]
    assert people.query("SELECT number_floor::int FROM receiptd.fold_lane WHERE lane = 1") == [(7,)]
    assert people.query("SELECT keys::jsonb[], parts::jsonb[] FROM receiptd.fold_event WHERE rules[1] = 'n'") == [
        ([{"customer_id": None}, {}, {}], [{"v": left}, {"v": {}}, {"v": {}}])]
    told = {**publication, "group": {"customer_id": None}, "collected": left}
    assert people.query("SELECT payload::jsonb, message_key FROM receiptd.fold_outbox WHERE rule = 'n'") == [(told, None)]
    assert people.query("SELECT payload::jsonb FROM receiptd.fold_call WHERE rule = 'n'") == [(told,)]
    # Again it finds nothing: what is left is whole.
    assert "entries of folds: 0 erased\n" in people.run("erase", "--customer", "880055").out


def test_a_publisher_that_has_read_an_erased_row_reads_it_again(people):
    """It deletes the rows by their ids with the sums that it has of them, and starts again where one is gone (fold_check_gone())."""
    rows = "SELECT id::int, rules IS NULL AS transitions, COALESCE(columns[1], parts[1]) LIKE '%%anna%%' AS hers FROM receiptd.fold_event ORDER BY 1"
    before = people.query(rows)
    people.run("erase", "--customer", "customer-anna")
    after = {id for id, _, _ in people.query(rows)}
    assert {id for id, transitions, hers in before if transitions and hers}.isdisjoint(after)
    assert {id for id, transitions, hers in before if not (transitions and hers)} < after and len(after) == len(before)


def test_runs_lead_to_messages_that_were_deleted_before(people):
    people.do("""INSERT INTO receiptd.pipeline (name, hash, active, org_field, subject_field, once_fields, first_step, first_delay_ms) VALUES
                     ('once', 'h', true, 'org_id', 'message_id', '{org_id,customer_id}', 1, 0), ('subject', 'h', false, 'org_id', 'customer_id', '{subject}', 1, 0),
                     ('import', 'h', true, 'org_id', 'subject', NULL, 1, 0)""")
    people.do("""INSERT INTO receiptd.run (pipeline_id, org_id, subject, subject_hash, once_key, message_id, data, status, ended_at)
                 SELECT p.id, w.org, w.subject, 1, w.once, w.message, w.data::jsonb, 'done', now()
                 FROM (VALUES ('once', 'o', 'carl-1', '["once", "o", "77001234"]', 'carl-1', NULL),
                              ('subject', 'o', '77001234', '["subject", "77001234"]', 'carl-2', NULL),
                              ('import', 'o', 'order 5', NULL, 'carl-3', '{"customer_id": 77001234}'),
                              ('import', 'o', '77001234', NULL, NULL, NULL),
                              ('once', '77001234', 'other', '["once", "77001234", "other"]', 'other-1', NULL), -- an organisation of that name
                              ('once', 'o', 'other', '["once", "o", "770012345"]', 'other-2', NULL),
                              ('once', 'o', 'other', repeat('ab', 32), 'other-3', NULL)) AS w (pipeline, org, subject, once, message, data)
                 JOIN receiptd.pipeline p ON p.name = w.pipeline""")
    people.do("""INSERT INTO receiptd.action (run_id, pipeline_id, step, lane, subject_hash, org_id, message_id, perform_at, status, answer)
                 SELECT id, pipeline_id, 1, 0, id, org_id, message_id, now(), 'done', 'thanks for ' || subject FROM receiptd.run WHERE ended_at IS NOT NULL""")
    for n, id in enumerate(("carl-1", "carl-2", "carl-3", "other-1", "other-2", "other-3")):
        people.connection.execute("""INSERT INTO receiptd.message_timeline (message_id, topic, partition, "offset", index, status, at, old, new, gained)
                                     VALUES (%s, 't', 5, %s, 0, 300, now(), 0, 300, 0)""", (id, n))
        people.connection.execute("""INSERT INTO receiptd.dead_letter (topic, partition, "offset", index, lane, reason, payload)
                                     VALUES ('t', 5, %s, 0, 0, 'aged_out', %s)""", (n, json.dumps({"message_id": id}).encode()))
    out = people.run("erase", "--customer", "77001234").out
    for said in ("messages: 0", "dead letters: 3", "rows of the timeline: 3", "runs: 4"):
        assert f"{said} erased\n" in out
    assert [line for line in dump(people).splitlines() if "carl-" in line] == []
    left = [("other-1",), ("other-2",), ("other-3",)]
    assert people.query("SELECT message_id FROM receiptd.run WHERE status = 'done' ORDER BY 1") == left
    assert people.query("SELECT message_id FROM receiptd.action WHERE status = 'done' ORDER BY 1") == left
    assert people.query("SELECT message_id FROM receiptd.message_timeline WHERE partition = 5 ORDER BY 1") == left
    assert people.query("SELECT count(*)::int FROM receiptd.dead_letter WHERE partition = 5") == [(3,)]


def test_hundreds_of_messages_that_were_deleted_before_are_found(people):
    people.do("""INSERT INTO receiptd.run (pipeline_id, org_id, subject, subject_hash, message_id, status, ended_at)
                 SELECT p.id, 'o', 'customer-carl', 1, 'carl-' || n, 'done', now() FROM receiptd.pipeline p, generate_series(1, 1203) n""")
    people.do("""INSERT INTO receiptd.message_timeline (message_id, topic, partition, "offset", index, status, at, old, new, gained)
                 SELECT 'carl-' || n, 't', 5, n, 0, 300, now(), 0, 300, 0 FROM generate_series(1, 1203) n""")
    out = people.run("erase", "--customer", "customer-carl").out
    assert "rows of the timeline: 1203 erased\n" in out and "runs: 1203 erased\n" in out
    assert "carl" not in dump(people)


def test_what_cannot_be_is_refused(people):
    for arguments in ((), ("--customer", "a", "--message", "b"), ("--customer", "")):
        assert people.run("erase", *arguments, code=USAGE).err
    people.do("ALTER TABLE receiptd.message_inbox DISABLE TRIGGER receiptd_count_deleted")
    assert "receiptd_count_deleted" in people.run("erase", "--customer", "customer-anna", code=CONFIG).err
    people.write(inbox={})
    assert "inbox.columns.customer_id is not set" in people.run("erase", "--customer", "a", code=CONFIG).err
    people.write(inbox={"columns": {"customer_id": "nobody"}})
    people.do("ALTER TABLE receiptd.message_inbox ENABLE TRIGGER receiptd_count_deleted")
    assert "nobody" in people.run("erase", "--customer", "a", code=CONFIG).err


def hold(installation, statement):
    """A session that has forgotten to end its transaction."""
    other = psycopg.connect(installation.dsn, application_name="forgotten")
    other.execute(f"SET search_path = receiptd; {statement}")
    return other


@pytest.mark.parametrize("command", (("erase", "--customer", "customer-anna"), ("audit", "--repair")))
def test_who_keeps_a_command_waiting_is_named(people, command):
    lock = {"erase": "SELECT FROM turn WHERE task = 'groups' FOR UPDATE",
            "audit": "LOCK TABLE campaign_funnel_total IN SHARE ROW EXCLUSIVE MODE; DELETE FROM campaign_funnel_total"}[command[0]]
    if command[0] == "audit":  # something to repair
        people.do("DELETE FROM receiptd.counter_delta; DELETE FROM receiptd.campaign_funnel_total")
    other = hold(people, lock)
    waiting = people.start(*command)
    said = ""
    while "waiting for backend" not in said:
        said += waiting.stderr.readline()
    assert f"waiting for backend {other.info.backend_pid} (user " in said and "application forgotten" in said
    other.rollback()
    waiting.communicate(timeout=60)
    assert waiting.returncode == 0
    other.close()


def test_an_erasure_that_others_hold_up_ends_and_says_so(people):
    other = hold(people, "SELECT FROM turn WHERE task = 'groups' FOR UPDATE")
    refused = people.run("erase", "--customer", "customer-anna", code=75)
    assert "lock timeout" in refused.err and "HINT: the session above" in refused.err
    other.close()
    people.run("erase", "--customer", "customer-anna")
    assert "anna" not in dump(people)


def test_killed_half_way_and_run_again_nothing_is_left(people):
    people.do("""INSERT INTO receiptd.message_inbox (message_id, campaign_id, customer_id)
                 SELECT 'anna-more-' || i, 'c' || i % 3, 'customer-anna' FROM generate_series(1, 6000) i""")
    before, killed = funnel(people), 0
    for n in range(6):
        process = people.start("erase", "--customer", "customer-anna")
        time.sleep(0.1 * (n + 1))
        killed += process.poll() is None
        process.send_signal(signal.SIGKILL)
        process.communicate()
        assert people.run("audit").out.endswith(", 0 cells drift\n")
    assert killed > 0 and people.query("SELECT count(*)::int > 0 FROM receiptd.erasure WHERE finished_at IS NULL") == [(True,)]
    # The server may still be at the step of a run that was killed: the next one waits for it.
    people.run("erase", "--customer", "customer-anna")
    wait_for(lambda: "anna" not in dump(people), 30, "nothing is left")
    assert funnel(people) == before and people.run("audit").out.endswith(", 0 cells drift\n")


def test_a_table_of_the_platforms_is_erased_too(empty):
    empty.do('CREATE TABLE public.messages (id varchar(64) PRIMARY KEY, tenant text, "Campaign" text, person bigint)')
    empty.write(inbox={"table": "public.messages", "columns": COLUMNS | {"customer_id": "person"}})
    empty.migrate()
    empty.do("""INSERT INTO public.messages (id, "Campaign", person) SELECT 'm' || i, 'c', 4000000 + i % 2 FROM generate_series(1, 1200) i""")

    assert "messages: 600 erased" in empty.run("erase", "--customer", "4000001").out
    assert empty.query("SELECT DISTINCT person::text FROM public.messages") == [("4000000",)]
    assert "4000001" not in dump(empty) and empty.run("audit").out.endswith(", 0 cells drift\n")


def receipt(id, **extra):
    return {"message_id": id, "status": "DELIVERED", **extra}


@pytest.mark.parametrize("unknown", ("park", "insert"))
def test_a_late_receipt_does_not_bring_the_person_back(create_world, unknown):
    world = create_world(partitions=1, unknown=unknown, timeline={"retention": "1h"}, parked={"poll_interval": "100ms", "alias_wait": "1s"})
    world.insert_ids("anna-1", "bert-1")
    world.database.execute("INSERT INTO receiptd.message_alias (channel_account, gateway_id, message_id) VALUES ('acme', 'ganna-1', 'anna-1')")
    world.installation.command("erase", "--message", "anna-1")
    process = world.installation.start()
    world.topic.send([receipt("anna-1", note="anna"), receipt("bert-1")],
                     [receipt("ganna-1", gateway="acme", gateway_message_id="ganna-1")])
    world.wait_until_consumed(process)
    letters = "SELECT reason, detail, payload FROM receiptd.dead_letter"
    world.wait(lambda: len(world.database.query(letters)) == 2, process, what="both late receipts are dead letters")
    assert {tuple(row) for row in world.database.query(letters)} == {("retired_message", "its message was deleted", None)}
    assert world.database.query("SELECT message_id FROM receiptd.message_inbox") == [("bert-1",)]
    assert world.database.value("SELECT count(*) FROM receiptd.message_timeline WHERE message_id = 'anna-1'") == 0
    assert world.database.value("SELECT count(*) FROM receiptd.parked_event") == 0
    process.stop()


def test_receipts_that_flow_meanwhile_are_counted_exactly(create_world):
    world = create_world(30_000, seed=77, batch={"max_events": 200}, timeline={"retention": "1h"})
    world.insert(world.stream.late)
    world.insert_ids(*(f"anna-{n}" for n in range(3000)), campaign="spring")
    process = world.installation.start()
    feeder = world.feed(per_second=15_000)
    for first in range(0, 3000, 500):
        world.topic.send([receipt(f"anna-{n}") for n in range(first, first + 500)])
        for n in range(first, first + 20, 2):
            world.installation.command("erase", "--message", f"anna-{n}")
    feeder.join()
    world.wait_until_consumed(process)
    assert world.database.value("SELECT count(*) FROM receiptd.message_inbox WHERE message_id LIKE 'anna-%'") == 3000 - 60
    assert "0 cells drift" in world.installation.command("audit").stdout
    process.stop()
