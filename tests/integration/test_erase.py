"""receiptd erase: nothing of a person is left in the database, everything of the others is, and counters stay exact."""
import signal
import subprocess
import time

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
