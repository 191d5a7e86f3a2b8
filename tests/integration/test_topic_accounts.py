"""A topic is an account: platforms' own JSON, raw webhooks and CloudEvents, exact with the entry that docs/topics.md gives."""

import json
import random
import re
import subprocess
import time

import pytest

from oracle import ladder
from oracle.compare import compare
from oracle.ledger import Row
from support import intake
from support.daemon import binary, to_yaml
from support.operations import ControlSocket, Operations
from support.platforms import BEGIN, PLATFORMS, BinaryCloudEvents, LowerCase, Nested, Numbers, RawTwilio, Writer, ledger_of
from support.services import ROOT


@pytest.fixture
def create_platforms(create_world, create_topic):
    """create_platforms([classes]) gives a world with a topic for each, beside a native one."""

    def create(classes, seed=1, **settings):
        world = create_world(partitions=1, **settings)
        writers = [Writer(cls(), create_topic(2, retention_ms=-1), random.Random(f"{seed}{cls.__name__}")) for cls in classes]
        configure(world, writers)
        for writer in writers:
            world.insert({id: Row("o", type(writer.platform).__name__) for id in writer.ids})
        return world, writers

    return create


def configure(world, writers, **more):
    world.installation.configure(kafka={"topics": [str(world.topic), *(writer.platform.entry(writer.topic) for writer in writers)]}, **more)


def wait_until_consumed(world, writers, process):
    own = world.topic
    for topic in (own, *(writer.topic for writer in writers)):
        world.topic = topic
        world.wait_until_consumed(process)
    world.topic = own
    world.wait_until_woken(process)


def finish(world, writers, process):
    wait_until_consumed(world, writers, process)
    world.audit()
    expected = ledger_of(writers, world.platform)
    with world.database.connect() as connection:
        report = compare(connection, expected, world.lanes)
    # Letters hold what came, and not our form; check_letters() compares that. The world's own topic is empty.
    for name in ("wrong payload", "orphan progress"):
        if name == "wrong payload" or all(str(world.topic) in example for example in report.examples[name]):
            report.counts.pop(name, None)
    assert not report, f"{report}\n{process.log_tail()}"
    check_letters(world, writers)
    check_times(world, writers, expected)


def check_letters(world, writers):
    """A letter holds its item, or the whole record; its detail says what would do, and shows no number of a person."""
    places = {place: (value, writer) for writer in writers for place, value in writer.bytes.items()}
    for *place, index, reason, detail, payload in world.database.query(
            'SELECT topic, partition, "offset", index, reason, detail, payload FROM receiptd.dead_letter WHERE topic = ANY (%s)', [str(w.topic) for w in writers]):
        value, writer = places[tuple(place)]
        assert payload == value if index < 0 else payload in value
        account = writer.platform.account
        named = f", account {account['account']}" if "account" in account else ""
        assert f"topic {place[0]}{named} as {account['gateway']}: " in detail and "500555" not in detail
        if reason == "unknown_status":
            assert f'the word "{writer.platform.unknown_word}" has no meaning' in detail and "known: " in detail


def check_times(world, writers, expected):
    """status_at is the time of the receipt that gave the status."""
    found = dict(world.database.query("SELECT message_id, status_at FROM receiptd.message_inbox"))
    for writer in (writer for writer in writers if writer.platform.has_time):
        for id in writer.ids:
            at = writer.moments.get((id, ladder.NAME[expected.status[id]]))
            if at is not None and expected.status[id] != ladder.ROOT:
                assert found[id] == at.replace(microsecond=0), (id, found[id], at)


def test_the_topics_of_eleven_platforms_are_exact_also_over_kill_9(create_platforms):
    world, writers = create_platforms(PLATFORMS, batch={"max_events": 50})
    for writer in writers:
        writer.write(120)
    kills = random.Random(7)
    for attempt in range(5):
        process = world.installation.start(str(attempt))
        if attempt:
            world.wait_for_progress(process)
        time.sleep(kills.uniform(0, 0.3))
        process.kill()
        for writer in writers:
            writer.write(20)
    process = world.installation.start("last")
    finish(world, writers, process)
    process.stop()


def test_figures_of_gateways_organisations_and_machines_hold_as_for_the_intake(create_platforms):
    world, (twilio,) = create_platforms([RawTwilio], http={"listen": "127.0.0.1:0"})
    world.insert({"other": Row("another", "c")})
    value, headers = twilio.platform.record([("other", "delivered", None)])
    twilio.topic.send(value, headers=headers)
    value, headers = twilio.platform.record([(twilio.ids[0], "delivered", None)])
    twilio.topic.send(value, headers=headers)
    process = world.installation.start()
    wait_until_consumed(world, [twilio], process)
    assert world.database.query("SELECT reason FROM receiptd.dead_letter") == [("other_organisation",)]
    assert world.database.value("SELECT status FROM receiptd.message_inbox WHERE message_id = %s", twilio.ids[0]) == 600
    assert Operations(process).figures().get_one("receiptd_events_received_total", gateway="acme-twilio") == 2
    process.stop()


def test_a_receipt_by_a_gateways_id_waits_for_its_alias(create_platforms):
    world, (twilio,) = create_platforms([RawTwilio])
    value, _ = twilio.platform.record([("SM-unknown", "delivered", None)])
    twilio.topic.send(value)
    process = world.installation.start()
    wait_until_consumed(world, [twilio], process)
    assert world.database.value("SELECT count(*) FROM receiptd.parked_event") == 1
    world.database.execute("INSERT INTO receiptd.message_alias (channel_account, gateway_id, message_id) VALUES ('acme-twilio', 'SM-unknown', %s)", twilio.ids[1])
    world.wait(lambda: world.database.value("SELECT status FROM receiptd.message_inbox WHERE message_id = %s", twilio.ids[1]) == 600, process)
    process.stop()


def test_letters_of_a_form_are_explained_and_erased(create_platforms):
    world, writers = create_platforms([RawTwilio, Nested])
    for writer, id in zip(writers, ("SM-1", "m-1")):
        value, _ = writer.platform.record([(id, writer.platform.unknown_word, BEGIN)])
        writer.topic.send(value)
    world.insert({"m-1": Row("o", "c")})
    world.database.execute("INSERT INTO receiptd.message_alias (channel_account, gateway_id, message_id) VALUES ('acme-twilio', 'SM-1', 'm-1')")
    process = world.installation.start()
    wait_until_consumed(world, writers, process)
    process.stop()
    assert len(world.installation.json("explain", "m-1")["dead_letters"]) == 1
    assert len(world.installation.json("explain", "SM-1")["dead_letters"]) == 1
    world.installation.command("erase", "--message", "m-1")
    assert world.database.value("SELECT count(*) FROM receiptd.dead_letter") == 0


@pytest.mark.parametrize("cls", (Nested, LowerCase, Numbers, BinaryCloudEvents))
def test_letters_are_redriven_by_the_words_of_today(create_platforms, cls):
    world, writers = create_platforms([cls])
    writer = writers[0]
    writer.write(150)
    process = world.installation.start()
    finish(world, writers, process)
    process.stop()
    unknown = [key for key, letter in ledger_of(writers, world.platform).letters.items() if letter.reason == "unknown_status"]
    assert unknown
    moved = world.installation.json("dead-letters", "--redrive", "--format", "json")[0]
    assert moved["letters_moved"] == 0
    statuses = {**writer.platform.account["custom"]["statuses"], str(writer.platform.unknown_word): "CLICKED"}
    writer.platform.account = {**writer.platform.account, "custom": {**writer.platform.account["custom"], "statuses": statuses}}
    configure(world, writers)
    moved = world.installation.json("dead-letters", "--redrive", "--format", "json")[0]
    assert moved["letters_moved"] == moved["receipts_parked"] == len(unknown)
    process = world.installation.start("again")
    world.wait_until_woken(process)
    expected = {json.loads(record.value)[key[3]]["message_id"] for key in unknown if key[3] >= 0
                for record in writer.shadow if (record.topic, record.partition, record.offset) == key[:3]}
    clicked = {id for id, in world.database.query("SELECT message_id FROM receiptd.message_inbox WHERE status = 800")}
    assert clicked and clicked >= expected
    assert world.database.value("SELECT events FROM receiptd.campaign_funnel WHERE status_name = 'CLICKED'") == len(unknown)
    world.audit()
    process.stop()


def test_a_reload_takes_other_words_and_refuses_other_topics(create_platforms, receiptd):
    control = ControlSocket(receiptd)
    world, (writer,) = create_platforms([Nested])

    def send(word):
        writer.topic.send(writer.platform.record([(writer.ids[0], word, BEGIN)])[0])

    process = world.installation.start()
    send("VIEWED")
    wait_until_consumed(world, [writer], process)
    assert world.database.value("SELECT count(*) FROM receiptd.dead_letter") == 1
    writer.platform.account = {**writer.platform.account, "custom": {**writer.platform.account["custom"], "statuses": {"VIEWED": "OPENED"}}}
    configure(world, [writer])
    said = receiptd.command("ctl", "reload").stdout
    assert "applied: kafka.topics" in said
    send("VIEWED")
    wait_until_consumed(world, [writer], process)
    assert world.database.value("SELECT status FROM receiptd.message_inbox WHERE message_id = %s", writer.ids[0]) == 700
    receiptd.configure(kafka={"topics": [str(world.topic)]})
    assert "needs a restart: kafka.topics" in receiptd.command("ctl", "reload").stdout
    writer.platform.account = {"gateway": "twillio"}
    configure(world, [writer])
    refused = receiptd.command("ctl", "reload", check=False)
    assert refused.returncode != 0 and 'there is no adapter "twillio"' in refused.stdout + refused.stderr
    process.stop()
    control.close()


def test_records_that_are_no_receipts_move_the_position_and_nothing_else(create_platforms):
    world, writers = create_platforms([Numbers])
    topic = writers[0].topic
    topic.send('{"source":"legacy","events":[]}', "[]", " ", partition=0)
    topic.send("", None, "{", b"\xff\xfe", '{"events":7}', '{"events":[7]}', '"text"', partition=1)
    process = world.installation.start()
    wait_until_consumed(world, writers, process)
    letters = world.database.query('SELECT "offset", index, reason FROM receiptd.dead_letter WHERE partition = 1 ORDER BY 1')
    assert letters[:3] == [(0, -1, "empty_record"), (1, -1, "empty_record"), (2, -1, "invalid_json")]
    assert {offset for offset, _, _ in letters} == set(range(7))
    assert world.database.value("SELECT count(*) FROM receiptd.dead_letter WHERE partition = 0") == 0
    process.stop()


def test_the_receipts_of_two_accounts_go_to_two_topics(create_world, create_topic):
    world = create_world(partitions=2)
    other, dead = create_topic(2, retention_ms=-1), create_topic(1)
    world.insert_ids("a1", "b1")
    accounts = [dict(intake.ACCOUNTS[0]), {**intake.ACCOUNTS[1], "topic": str(other)}]
    for account in accounts:
        account["org_id"] = "o"
    world.installation.configure(kafka={"topics": [str(world.topic), str(other)]},
                                 intake={"listen": "127.0.0.1:0", "metrics_listen": "", "dead_letter_topic": str(dead), "alias": "off", "accounts": accounts})
    process = intake.start(world.installation)
    with intake.Client(process.port) as client:
        for id, account in (("a1", "acme"), ("b1", "bird")):
            client.send(intake.twilio(id, account=account))
            assert client.answer().status == 200
    assert [json.loads(value)[0]["message_id"] for value, _ in intake.read_topic(world.topic)] == ["a1"]
    assert [json.loads(value)[0]["message_id"] for value, _ in intake.read_topic(other)] == ["b1"]
    daemon = world.installation.start("run")
    world.wait(lambda: world.database.value("SELECT count(*) FROM receiptd.message_inbox WHERE status = 600") == 2, daemon)
    daemon.stop()
    process.stop()


def test_an_account_waits_for_its_own_topic_only(create_world, create_topic):
    world = create_world(partitions=2)
    dead = create_topic(1)
    accounts = [intake.ACCOUNTS[0], {**intake.ACCOUNTS[1], "topic": f"{world.topic}-missing"}]
    world.installation.configure(intake={"listen": "127.0.0.1:0", "metrics_listen": "", "dead_letter_topic": str(dead), "alias": "off", "accounts": accounts})
    process = world.installation.start("intake", command="intake")
    port = int(process.wait_for_log(intake.LISTENS).group(1))

    def answers(account):
        with intake.Client(port) as client:
            client.send(intake.twilio("x", account=account))
            return client.answer().status

    world.wait(lambda: answers("acme") == 200, process, what="the account whose topic is there is served")
    assert answers("bird") == 503
    note = world.installation.command("check-config").stderr
    assert f'note: intake.accounts.bird.topic: no entry of kafka.topics reads "{world.topic}-missing"' in note
    process.stop()


EXAMPLE = re.compile(r"```yaml\n(.*?)```\n\n```record (\S+)\n(.*?)```\n\n```receipts\n(.*?)```", re.DOTALL)


def test_the_examples_of_the_page_give_what_it_shows(tmp_path):
    examples = EXAMPLE.findall((ROOT / "docs/topics.md").read_text())
    assert len(examples) == 5
    for config, topic, record, receipts in examples:
        (tmp_path / "receiptd.yaml").write_text(config)
        done = subprocess.run([binary(), "run", "--config", tmp_path / "receiptd.yaml", "--try", topic], input=record.encode(), capture_output=True, timeout=60)
        assert (done.returncode, done.stderr.decode()) == (0, "")
        assert done.stdout.decode() == receipts


def test_a_try_says_what_becomes_a_letter(tmp_path):
    config = tmp_path / "receiptd.yaml"
    config.write_text(to_yaml({"kafka": {"topics": ["ours", BinaryCloudEvents().entry("events")]}}))

    def attempt(topic, record, *options):
        done = subprocess.run([binary(), "run", "--config", config, "--try", topic, *options], input=record.encode(), capture_output=True, timeout=60)
        return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode()

    status, receipts, said = attempt("events", '{"id":"m","state":"sent"}', "--header", "ce_specversion: 1.0; ce_type: t; ce_time: 2026-11-20T08:00:00Z")
    assert (status, receipts[0]["at"], said) == (0, "2026-11-20T08:00:00Z", "")
    status, receipts, said = attempt("events", '[{"id":"m","state":"sent"},{"id":"m","state":"sint"}]')
    assert status == 65 and len(receipts) == 1
    assert said == ('receiptd: dead letter: unknown_status: topic events as custom: the word "sint" has no meaning; did you mean "sent"?; '
                    "known: sent, delivered, failed, opened\n")
    assert attempt("ours", '{"message_id":"m","status":"SENT"}') == (0, [{"message_id": "m", "status": "SENT"}], "")
    assert attempt("ours", '{"message_id":"m","status":"NONE"}')[0] == 65
    assert attempt("events", " ") == (0, [], "receiptd: the record brings no receipts: it holds none, or only ignored ones\n")
    assert attempt("events", "{}", "--header", "ce_type=t")[0] == 64 and 'write "name: value"' in attempt("events", "{}", "--header", "ce_type=t")[2]
    said = attempt("events", '{"id":"m","state":"sent"}', "--header", "ce_type: t; ce_time: 2126-11-20T08:00:00Z")[2]
    assert "the time lies in the future" in said
    assert attempt("others", "{}")[0] == 66 and "the configuration has ours, events" in attempt("others", "{}")[2]
