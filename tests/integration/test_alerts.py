"""Each alert of config/prometheus/rules.yaml by what really causes it, on a running receiptd that a real Prometheus scrapes; and its end by
what docs/operations.md says to do.

A case is a generator: what causes the alert, then a `yield` for each time that it has to go on; when the alert has fired it is sent
False and does what the runbook says. Cases that do not disturb each other run at the same time.
"""

import fcntl
import itertools
import os
import re
import select
import shutil
import signal
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress

import psycopg
import pytest

from oracle import broker, ladder
from oracle.ledger import Row
from support import correction, reader
from support.foreigner import Foreigner
from support.intake import LISTENS, Client, twilio
from support.operations import ControlSocket, Operations
from support.prometheus import Prometheus, one_target, shortened
from support.receiver import Receiver
from support.servers import Kafka
from support.services import ROOT
from support.wait import wait_for
from support.world import Feeder
from test_folds import Receiver as FoldsReceiver
from test_partitions import name_of, start_of, v7

RULES = ROOT / "config/prometheus/rules.yaml"
AGAIN = 2  # seconds until what has to go on is done once more
HOUR_MS = 3600 * 1000
MIB = 1024 * 1024
ACCOUNTS = [
    {"name": "acme", "gateway": "twilio", "org_id": "o1", "verify": "off", "message_id": "?mid"},
    {"name": "signed", "gateway": "twilio", "org_id": "o1", "auth": "bearer", "secrets": ["right"], "message_id": "?mid"},
]


class Reader(threading.Thread):
    """Reads the daemon's error output into its log file, unless it is told to stop reading."""

    def __init__(self):
        super().__init__(daemon=True)
        self.reader, self.writer = os.pipe()
        fcntl.fcntl(self.writer, fcntl.F_SETPIPE_SZ, 4096)
        self.reading, self.path, self.ended = threading.Event(), None, False
        self.reading.set()
        self.start()

    def run(self):
        while not self.ended:
            self.reading.wait()
            if not select.select([self.reader], [], [], 0.2)[0]:
                continue
            try:
                data = os.read(self.reader, 65536)
            except BlockingIOError:  # the daemon does not wait for a reader, and that is a property of both ends
                continue
            if not data:
                return
            with open(self.path, "ab") as log:
                log.write(data)

    def close(self):
        self.ended = True
        self.reading.set()
        self.join(60)
        os.close(self.writer)
        os.close(self.reader)


class Site:
    """One receiptd with its intake, one Prometheus, and receipts that come in all the time."""

    def __init__(self, world, control, events, letters, directory, stack):
        self.world, self.control, self.stack, self.events = world, control, stack, events
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        world.installation.configure(
            http={"listen": f"127.0.0.1:{self.port}"}, timeline={"retention": "1h"},
            postgres={"zombie_timeout": "5m", "connections": 8},
            intake={"enabled": True, "listen": "127.0.0.1:0", "topic": str(events), "dead_letter_topic": str(letters),
                    "ack_timeout": "1s", "accounts": ACCOUNTS})
        self.reader = stack.enter_context(closing(Reader()))
        self.start("a")
        rules = directory / "rules.yaml"
        rules.write_text(shortened(RULES.read_text()))
        self.prometheus = stack.enter_context(closing(Prometheus(directory, one_target(self.port), rules)))
        self.stop_feeding = threading.Event()
        world.feeder = Feeder(lambda: broker.produce(world.brokers, str(world.topic), self.records(), stop=self.stop_feeding,
                                                     per_second=300 / world.stream.events_per_record))
        stack.callback(world.feeder.join)
        stack.callback(self.stop_feeding.set)

    def records(self):
        while True:
            yield from self.world.stream.records()

    def start(self, name):
        installation = self.world.installation
        self.reader.path = installation.directory / f"receiptd-{name}.log"
        self.process = installation.start(name, output=self.reader.writer)
        self.pages = Operations(self.process)
        self.intake_port = int(self.process.wait_for_log(LISTENS).group(1))
        self.pages.wait_until_ready(60)

    def execute(self, sql, *parameters):
        return self.world.database.query(sql, *parameters)

    def end_backends(self):
        self.world.database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                                    " WHERE datname = current_database() AND application_name LIKE 'receiptd%%' AND pid <> pg_backend_pid()")

    def call(self, *requests):
        """Status codes of the answers to webhooks."""
        with closing(Client(self.intake_port)) as client:
            codes = []
            for one in requests:
                client.send(one)
                codes.append(client.answer().status)
            return codes

    def wait(self, condition, what):
        wait_for(condition, 60, what, interval=0.1)

    def run(self, *cases):
        """Causes all of them and goes on until each has fired, then ends all of them."""
        running = {name(case): case(self) for case in cases}
        for case in running.values():
            next(case)
        missing, self.caused = set(running), 0

        def all_have_fired():
            missing.difference_update(self.prometheus.firing() or ())
            if time.monotonic() - self.caused > AGAIN:
                for alert in missing:
                    running[alert].send(True)
                self.caused = time.monotonic()
            return not missing

        wait_for(all_have_fired, 60, "all alerts fire", interval=0.1, details=lambda: f"missing: {sorted(missing)}")
        for alert, case in running.items():
            with suppress(StopIteration):
                case.send(False)
                raise AssertionError(f"{alert}: the case has no end")

    def is_quiet(self):
        self.last = self.prometheus.firing()
        return self.last == set()


def name(case):
    return "Receiptd" + "".join(word.capitalize() for word in case.__name__.split("_"))


def receipts(gateway, status, count, first=0):
    return [{"message_id": f"m{number}", "status": status, "gateway": gateway} for number in range(first, first + count)]


# ---- what happens to receipts


def parked_too_long(site):
    world = site.world
    world.topic.send([{"message_id": "behind", "status": "SENT"}])
    parked = "SELECT count(*) FROM receiptd.parked_event WHERE message_id = 'behind'"
    site.wait(lambda: world.database.value(parked) == 1, "parked")
    world.database.execute("UPDATE receiptd.parked_event SET parked_at = now() - interval '7 hours' WHERE message_id = 'behind'")
    while (yield):
        pass
    assert [receipt["why"] for receipt in world.installation.json("explain", "behind")["receipts"]] == ["the message has no row yet"]
    world.insert_ids("behind")
    site.wait(lambda: world.database.value(parked) == 0, "woken")


def dead_letters(site):
    world = site.world
    while (yield):
        world.topic.send(receipts("slow", "POSTPONED", 150))
    listed = world.installation.command("dead-letters", "--reason", "unknown_status").stdout
    assert "POSTPONED" in listed
    statuses = [{"name": name, "code": code, **({} if parent is None else {"parent": ladder.NAME[parent]})}
                for code, name, parent in ladder.STATUSES] + [{"name": "POSTPONED", "code": 305, "parent": "SENT"}]
    flags = [{"name": name, **({} if implied is None else {"implies": ladder.NAME[implied]})} for name, implied in ladder.FLAGS]
    overrides = [{"channel": "email", "status": "BOUNCED_HARD", "becomes": "BOUNCED_HARD_EMAIL"}]
    world.installation.configure(ladder={"statuses": statuses, "flags": flags, "overrides": overrides})
    world.installation.command("migrate")
    assert "ladder.statuses" in site.control.ctl("reload").stdout
    world.installation.command("dead-letters", "--redrive", "--reason", "unknown_status")
    redriven = "SELECT count(*) FROM receiptd.message_inbox WHERE status = 305"
    site.wait(lambda: world.database.value(redriven) == 150, "applied once the ladder has it")


def other_organisation(site):
    world = site.world
    world.insert({"theirs": Row("org3", "c")})
    while (yield):
        world.topic.send([{"message_id": "theirs", "status": "SENT", "org_id": "org1", "gateway": "tenant"}])
    letter = "SELECT detail FROM receiptd.dead_letter WHERE reason = 'other_organisation'"
    assert {detail for detail, in world.database.query(letter)} == {
        'the receipt is of organisation "org1", its message of "org3"'}
    assert 'of "org3"' in world.installation.command("dead-letters", "--reason", "other_organisation").stdout
    world.database.execute(correction.of_organisation("org3", "org1", "c"))
    world.installation.command("dead-letters", "--redrive", "--reason", "other_organisation")
    sent = "SELECT status FROM receiptd.message_inbox WHERE message_id = 'theirs'"
    site.wait(lambda: world.database.value(sent) == 300, "applied once the row is right")


def contradictions(site):
    world = site.world
    world.topic.send(receipts("liar", "DELIVERED", 200, 1_000))
    site.wait(lambda: site.prometheus.query('receiptd_events_contradiction_total{gateway="liar"} == 0'), "the gateway's series")
    while (yield):
        world.topic.send(receipts("liar", "FAILED", 200, 1_000))
    assert "contradicted" in world.installation.command("explain", "m1000").stdout


def record_too_large(site):
    """One batch, once: the first one has to fire."""
    world = site.world
    producer = world.topic.producer(compression_type="gzip", message_max_bytes=100 * MIB, enable_idempotence=False)
    producer.produce(str(world.topic), b" " * (60 * MIB), partition=0)
    assert producer.flush(60) == 0
    while (yield):
        pass
    listed = world.installation.command("dead-letters", "--reason", "record_too_large").stdout
    assert str(world.topic) in listed and "offsets" in listed


def database_went_back(site):
    """Positions of before, as after a restore of a moment ago."""
    behind = "UPDATE receiptd.consumer_progress SET next_offset = next_offset - 1 WHERE lane = 0 AND next_offset > 0"
    while (yield):
        site.execute(behind + " RETURNING 1")

    def lost_lines():
        return float(re.search(r"^receiptd_log_lines_dropped_total (\S+)", site.pages.get("/metrics").text, re.MULTILINE)[1])

    site.wait(lambda: "database went back" in site.process.log() or lost_lines() > 0, "the log says so, or has lost lines")
    site.world.installation.command("audit")


def fence_conflicts(site):
    """Another group of instances on the same database; it takes part of the work, and of the figures."""
    installation = site.world.installation
    other = installation.directory / "other.yaml"
    text = installation.config_path.read_text().replace(str(site.control.path), "").replace(f"127.0.0.1:{site.port}", "127.0.0.1:0")
    other.write_text(re.sub(r'group: "[\w-]+"', 'group: "other"', text))
    second = installation.start("second", config=other)
    second.wait_for_log(r'msg="ready"', 60)
    while (yield):
        pass
    site.pages.wait_for_figure("receiptd_exclusivity_messages_total", lambda value: value > 0, 60)
    second.stop(60)


def partition_idle(site):
    """Another program joins the group and takes partitions."""
    foreigner = Foreigner(site.world, site.world.installation.settings["kafka"]["group"])
    while (yield):
        pass
    site.wait(lambda: "console-consumer" in str(site.pages.get("/readyz").json["reasons"]), "the reason names it")
    foreigner.close()
    site.pages.wait_until_ready(60)


# ---- PostgreSQL


def old_snapshot(site):
    connection = psycopg.connect(site.world.database.dsn, application_name="forgotten")
    connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
    connection.execute("SELECT count(*) FROM receiptd.message_inbox")
    while (yield):
        pass
    (pid,), = site.execute("SELECT pid FROM pg_stat_activity WHERE backend_xmin IS NOT NULL AND pid <> pg_backend_pid()"
                           " AND application_name = 'forgotten'")
    site.execute("SELECT pg_terminate_backend(%s)", pid)
    connection.close()


def roll_up_stalled(site):
    connection = psycopg.connect(site.world.database.dsn, application_name="half a repair")
    connection.execute("LOCK TABLE receiptd.campaign_funnel_total IN SHARE ROW EXCLUSIVE MODE")
    while (yield):
        pass
    runbook = (ROOT / "docs/operations.md").read_text().split("### ReceiptdRollUpStalled")[1]
    held = [row[0] for row in site.execute(runbook.split("```sql")[1].split("```")[0]) if row[2] == "half a repair"]
    site.execute("SELECT pg_terminate_backend(%s)", held[0])
    connection.close()


def database_connections(site):
    (most,), = site.execute("SELECT current_setting('max_connections')::int")
    held = []
    while (yield):
        if not held:
            with ExitStack() as opened:
                (used,), = site.execute("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'")
                for _ in range(int(most * 0.9) + 2 - used):
                    opened.enter_context(psycopg.connect(site.world.database.dsn, application_name="too many"))
                held.append(opened.pop_all())
    (holders, _), = site.execute("SELECT count(*), application_name FROM pg_stat_activity GROUP BY 2 ORDER BY 1 DESC LIMIT 1")
    assert holders > most / 2
    held[0].close()


def maintain_overdue(site):
    while (yield):
        pass
    site.world.installation.command("maintain")


def inbox_catch_all(site):
    site.world.insert_ids(v7(start_of(-5)))
    while (yield):
        pass
    site.world.installation.command("maintain")
    found = site.execute("SELECT c.relname::text FROM receiptd.message_inbox m JOIN pg_class c ON c.oid = m.tableoid")
    assert found == [(name_of(start_of(-5)),)]


def partitions_end(site):
    for day in range(1, 8):
        site.world.database.execute(f"DROP TABLE receiptd.{name_of(start_of(day))}")
    while (yield):
        pass
    site.world.installation.command("maintain")


def partitions_unbooked(site):
    site.world.database.execute("ALTER TABLE app.sent DETACH PARTITION app.old")
    while (yield):
        pass
    site.world.installation.command("maintain")


def connection_flapping(site):
    while (yield):
        site.end_backends()
    site.pages.wait_until_ready(60)
    assert "is not connected" in site.process.log()


def log_lost(site):
    site.reader.reading.clear()
    site.control.ctl("log-level", "debug")
    while (yield):
        pass
    site.control.ctl("log-level", "warn")
    site.reader.reading.set()
    site.control.ctl("log-level", "info")


# ---- the intake


def intake_unmapped(site):
    while (yield):
        assert set(site.call(*[twilio(f"u{number}", "dancing") for number in range(10)])) == {200}
    assert 'status="dancing"' in site.pages.get("/metrics").text


def intake_unknown_form(site):
    """A form with the gateway's fields under other names, which is answered and kept."""
    while (yield):
        assert set(site.call(*[twilio(f"w{number}").replace(b"Message", b"Content") for number in range(5)])) == {200}
    letters = site.world.installation.command("intake", "--letters", "acme").stdout.splitlines()
    assert any("ContentStatus=delivered" in line for line in letters), letters[:5]
    assert site.call(twilio("w1")) == [200]


def intake_signatures(site):
    wrong, right = (twilio("s1", account="signed").replace(b"\r\n", f"\r\nAuthorization: Bearer {secret}\r\n".encode(), 1)
                    for secret in ("old", "right"))
    while (yield):
        assert set(site.call(*[wrong] * 10)) <= {401, 403}
    assert site.call(right) == [200]


def intake_refuses(site):
    """The brokers hang."""
    broker_pid = Kafka(site.world.topic.services).pid()
    site.stack.callback(os.kill, broker_pid, signal.SIGCONT)
    os.kill(broker_pid, signal.SIGSTOP)
    while (yield):
        site.call(twilio("refused"))
    os.kill(broker_pid, signal.SIGCONT)
    site.wait(lambda: site.call(twilio("taken")) == [200], "webhooks are taken again")
    site.pages.wait_until_ready(60)


def intake_slow(site):
    """The brokers stand still for moments, shorter than intake.ack_timeout."""
    broker_pid = Kafka(site.world.topic.services).pid()
    site.stack.callback(os.kill, broker_pid, signal.SIGCONT)
    while (yield):
        for number in range(4):
            os.kill(broker_pid, signal.SIGSTOP)
            with ThreadPoolExecutor(1) as pool:
                answer = pool.submit(site.call, twilio(f"slow{number}"))
                time.sleep(0.5)
                os.kill(broker_pid, signal.SIGCONT)
                assert answer.result() == [200]
    site.wait(lambda: site.call(twilio("quick")) == [200], "webhooks are taken")


# ---- the process


def lagging(site):
    """A lock of somebody on the inbox; what waits was sent ten minutes ago."""
    world = site.world
    operator = psycopg.connect(world.database.dsn, application_name="somebody")
    operator.execute("LOCK TABLE receiptd.message_inbox IN ACCESS EXCLUSIVE MODE")
    (pid,), = operator.execute("SELECT pg_backend_pid()").fetchall()
    for partition in range(world.topic.partitions):
        world.topic.send({"message_id": "late", "status": "SENT"}, partition=partition, timestamp_ms=int(time.time() * 1000) - HOUR_MS // 6)
    while (yield):
        pass
    blockers = "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY (pg_blocking_pids(pid))"
    site.wait(lambda: world.database.value(blockers, pid) > 0, "the backends of the lanes wait for it")
    site.execute("SELECT pg_terminate_backend(%s)", pid)
    operator.close()


def no_progress(_):
    """By the same lock."""
    while (yield):
        pass


def memory(site):
    """A budget above the limit, and records that wait for the lock of `lagging`."""
    world = site.world
    world.installation.configure(memory={"budget": "256MiB"})
    assert "memory.budget" in site.control.ctl("reload").stdout
    record = [{"message_id": "late", "status": "SENT", "padding": "x" * 500_000}]
    while (yield):
        world.topic.send(*[record] * 50)
    assert site.pages.figures().get_one("receiptd_queue_bytes") > 16 * MIB
    world.installation.configure(memory={"budget": "16MiB"})
    assert "memory.budget" in site.control.ctl("reload").stdout


def paused(site):
    site.control.ctl("pause")
    while (yield):
        pass
    site.control.ctl("resume")


def stream_behind(site):
    """The topic of the stream does not exist."""
    topic = f"{site.world.topic}-stream"
    site.world.installation.configure(stream={"topic": topic})
    site.control.ctl("reload")
    while (yield):
        pass
    site.process.wait_for_log(f"topic {topic} does not take a publication: .*HINT: create the topic", 60)
    broker.create_topic(site.world.brokers, topic, 1)
    site.pages.wait_for_figure("receiptd_stream_lag_seconds", lambda lag: lag < 3, 60)
    site.world.installation.configure(stream={"topic": None})
    site.control.ctl("reload")
    site.wait(lambda: site.execute("SELECT count(*) FROM receiptd.stream_event") == [(0,)], "what is left is published")


def not_ready(site):
    database = site.world.database
    database.connection.close()
    with psycopg.connect(site.world.topic.services.dsn, autocommit=True) as outside:
        outside.execute(f'ALTER DATABASE "{database.name}" CONNECTION LIMIT 0')
        outside.execute(f'ALTER DATABASE "{database.name}" ALLOW_CONNECTIONS false')
        outside.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", (database.name,))
    while (yield):
        pass
    assert site.pages.get("/readyz").json["reasons"]
    with psycopg.connect(site.world.topic.services.dsn, autocommit=True) as outside:
        outside.execute(f'ALTER DATABASE "{database.name}" ALLOW_CONNECTIONS true')
        outside.execute(f'ALTER DATABASE "{database.name}" CONNECTION LIMIT -1')
    site.pages.wait_until_ready(60)


def halted(site):
    (site.deleted,), = site.execute("DELETE FROM receiptd.consumer_progress p WHERE partition = 0 AND lane = 0 RETURNING p::text")
    while (yield):
        pass
    assert "consumer_progress" in str(site.pages.get("/readyz").json["reasons"])
    site.execute("INSERT INTO receiptd.consumer_progress SELECT (%s::receiptd.consumer_progress).* RETURNING 1", site.deleted)


def down(site):
    """The restart that a halt wants, with an end in between that lasts."""
    site.process.stop(60)
    while (yield):
        pass
    site.start("b")


def proof_overdue(site):
    site.execute("UPDATE receiptd.campaign_proof SET proven_at = now() - interval '27 hours' RETURNING 1")
    while (yield):
        pass
    site.world.installation.command("maintain")


def counter_drift(site):
    """A hand in the counters."""
    site.execute("UPDATE receiptd.campaign_funnel_total SET messages = messages + 1 WHERE status = 0 RETURNING 1")
    site.execute("UPDATE receiptd.campaign_proof SET proven_at = now() - interval '23 hours' RETURNING 1")
    site.world.installation.command("maintain")
    while (yield):
        pass
    site.world.installation.command("audit", "--repair")
    site.world.installation.command("maintain")


OF_PROOFS = (proof_overdue, counter_drift)  # one after the other
OF_PARTITIONS = (maintain_overdue, inbox_catch_all, partitions_end)  # they need another inbox
OF_OTHERS_PARTITIONS = (partitions_unbooked,)  # and this one a third


# ---- folds and actions


def folds_behind(site):
    """The topic of a rule does not exist."""
    topic = f"{site.world.topic}-sums"
    site.configure_folds({"kafka": {"topic": topic}})
    while (yield):
        site.begin("w")
    site.process.wait_for_log(f"topic {topic} does not take a publication: .*HINT: create the topic", 60)
    broker.create_topic(site.world.brokers, topic, 1)
    site.pages.wait_for_figure("receiptd_fold_lag_seconds", lambda lag: lag < 3, 60)


def fold_calls_fail(site):
    hook = site.stack.enter_context(FoldsReceiver())
    site.stack.callback(hook.shutdown)
    hook.answer = lambda attempt: 410
    site.configure_folds({"webhook": {"url": hook.url, "allow_private": True, "retry_min": "20ms", "retry_max": "100ms"}})
    while (yield):
        site.begin("h")
    assert "refused, status 410" in site.world.installation.command("folds", "list").stdout
    hook.answer = lambda attempt: 200
    site.world.installation.command("folds", "retry", "all")
    site.wait(lambda: site.execute("SELECT count(*) FROM receiptd.fold_call") == [(0,)], "all are delivered")


def action_overlaps(site):
    """A call takes longer than the lease of an instance that stood still, and is made again."""
    site.receiver.answer = lambda call: (200, {}, 1.5)
    while (yield):
        site.begin("o")
        site.wait(lambda: site.execute("SELECT count(*) FROM receiptd.action WHERE status = 'running'")[0][0] > 0, "a call is on its way")
        site.execute("UPDATE receiptd.action SET lease_until = now() - interval '1 s' WHERE status = 'running' RETURNING 1")
    site.receiver.answer = lambda call: (200, {}, 0)
    (_, instance, action, *_), *_ = site.execute(site.sql_of("ReceiptdActionOverlaps"))
    twice = [call for call in site.receiver.seen() if call.id == f"act_{action}"]
    assert len(twice) > 1 and len({call.token for call in twice}) == len(twice) and instance


def actions_late(site):
    """Somebody's lock on the rows of the shards: nothing is claimed, so no lateness is measured either."""
    operator = psycopg.connect(site.world.database.dsn, application_name="half a repair")
    operator.execute("SELECT FROM receiptd.action_lane FOR UPDATE")
    site.begin("l")
    while (yield):
        pass
    site.wait(lambda: operator.info.backend_pid in [row[0] for row in site.execute(site.sql_of("ReceiptdActionsLate"))], "the query names it")
    site.execute("SELECT pg_terminate_backend(%s)", operator.info.backend_pid)
    operator.close()
    site.wait_for_runs()


def dead_actions(site):
    site.receiver.answer = lambda call: (404, {}, 0)
    while (yield):
        site.begin("d", 20)
    assert "refused" in site.world.installation.command("actions", "list", "--status", "dead").stdout
    site.receiver.answer = lambda call: (200, {}, 0)
    site.world.installation.command("actions", "retry", "all")
    site.wait_for_runs()


def endpoint_disabled(site):
    site.receiver.answer = lambda call: (500, {}, 0)
    while (yield):
        site.begin("e")
    (named,) = site.pages.get("/statusz").json["actions"]["endpoints"]
    assert (named["name"], named["breaker"]) == ("crm", "disabled")
    site.receiver.answer = lambda call: (200, {}, 0)
    site.process.signal(signal.SIGHUP)
    site.wait_for_runs()


OF_ACTIONS = (folds_behind, fold_calls_fail, action_overlaps, actions_late, dead_actions, endpoint_disabled)


# ---- readers


def serve_slow(site):
    """A lock that comes and goes."""
    while (yield):
        with psycopg.connect(site.world.database.dsn) as operator, ThreadPoolExecutor(10) as pool:
            operator.execute("LOCK TABLE receiptd.campaign_funnel_total IN ACCESS EXCLUSIVE MODE")
            codes = pool.map(lambda _: reader.get(site.process, "/campaigns", site.token).status, range(10))
            time.sleep(0.3)
            operator.rollback()
            assert set(codes) == {200}
    assert reader.get(site.process, "/campaigns", site.token).status == 200


def serve_errors(site):
    """Somebody's lock on the counters."""
    operator = psycopg.connect(site.world.database.dsn)
    operator.execute("LOCK TABLE receiptd.campaign_funnel_total IN ACCESS EXCLUSIVE MODE")
    while (yield):
        with ThreadPoolExecutor(30) as pool:
            codes = pool.map(lambda _: reader.get(site.process, "/campaigns", site.token).status, range(30))
        assert set(codes) == {503}
    blockers = "SELECT DISTINCT unnest(pg_blocking_pids(pid)) FROM pg_stat_activity"
    named = threading.Event()

    def ask():
        while not named.is_set():
            reader.get(site.process, "/campaigns", site.token)

    asking = threading.Thread(target=ask)
    asking.start()
    try:
        site.wait(lambda: [(operator.info.backend_pid,)] == site.execute(blockers), "the runbook's query names who holds the lock")
    finally:
        named.set()
    site.execute("SELECT pg_terminate_backend(%s)", operator.info.backend_pid)
    asking.join()
    operator.close()
    assert reader.get(site.process, "/campaigns", site.token).status == 200


def serve_refused(site):
    """A program goes on with a token that was revoked."""
    token = reader.make_token(site.world.installation, "old")
    assert reader.get(site.process, "/campaigns", token).status == 200
    site.world.installation.command("serve", "token", "revoke", "--name", "old")
    while (yield):
        assert {reader.get(site.process, "/campaigns", token).status for _ in range(120)} == {401}
    assert " old " not in site.world.installation.command("serve", "token", "list").stdout
    assert reader.get(site.process, "/campaigns", reader.make_token(site.world.installation, "new")).status == 200


def serve_down(site):
    site.process.stop()
    while (yield):
        pass
    site.process = reader.start(site.world.installation)


OF_READERS = (serve_slow, serve_errors, serve_refused, serve_down)


@pytest.mark.alone
@pytest.mark.timeout(1200)
@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Debian's prometheus is not installed")
def test_each_alert_fires_by_its_cause_and_ends_by_its_runbook(create_world, create_topic, receiptd, tmp_path):
    together = (database_connections, parked_too_long, dead_letters, other_organisation, record_too_large, contradictions, database_went_back,
                old_snapshot, intake_unmapped, intake_unknown_form, intake_signatures)
    alone = ((stream_behind,), (roll_up_stalled,), (fence_conflicts,), (partition_idle,), (log_lost,), (connection_flapping,), (intake_slow,), (intake_refuses,),
             (memory, lagging, no_progress), (paused,), (not_ready,), (halted,), (down,))
    cases = {name(case) for group in (together, *alone, OF_PARTITIONS, OF_PROOFS, OF_OTHERS_PARTITIONS, OF_ACTIONS, OF_READERS) for case in group}
    assert cases == set(re.findall(r"alert: (\w+)", RULES.read_text())), "an alert without its case"
    with ExitStack() as stack:
        control = stack.enter_context(closing(ControlSocket(receiptd)))
        world = create_world(5_000, partitions=2, seed=66, traffic={"crossing": 0})
        world.insert(world.stream.late)
        world.insert_ids("late", *(f"m{number}" for number in range(1_200)))
        site = Site(world, control, create_topic(1), create_topic(1), tmp_path, stack)
        site.wait(lambda: site.prometheus.query("sum_over_time(up[15s]) >= 3"), "scrapes")
        site.wait(site.is_quiet, "nothing fires")
        site.run(*together)
        for group in alone:
            site.run(*group)
        wait_for(site.is_quiet, 60, "nothing fires any more", interval=0.2, details=lambda: f"firing: {site.last}")
        site.process.stop(60)


class SmallSite(Site):
    """One receiptd on an inbox in partitions, without receipts."""

    def __init__(self, world, directory, stack):
        self.world, self.reader = world, stack.enter_context(closing(Reader()))
        self.reader.path = world.installation.directory / "receiptd-a.log"
        self.pages = Operations(world.installation.start("a", output=self.reader.writer))
        rules = directory / "rules.yaml"
        rules.write_text(shortened(RULES.read_text()))
        self.prometheus = stack.enter_context(closing(Prometheus(directory, one_target(self.pages.port), rules)))


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Debian's prometheus is not installed")
def test_each_alert_of_maintenance_fires_and_ends_with_maintain(create_world, tmp_path):
    with ExitStack() as stack:
        world = create_world(partitions=1, http={"listen": "127.0.0.1:0"}, inbox={"partitions": "own", "ids": "uuidv7", "partition_span": "1d", "retention": "90d"})
        world.installation.command("maintain")
        site = SmallSite(world, tmp_path, stack)
        figure = "receiptd_maintained_timestamp_seconds"
        site.wait(lambda: site.prometheus.query(f"time() - {figure} < 60"), "the walk is known")
        assert site.prometheus.query("receiptd_inbox_partitions_ahead > 7") and site.prometheus.query("receiptd_inbox_other_messages == 0")
        site.wait(site.is_quiet, "nothing fires")
        site.execute("UPDATE receiptd.maintained SET ended_at = now() - interval '27 hours' RETURNING 1")
        site.run(*OF_PARTITIONS)
        for case in OF_PROOFS:
            site.run(case)
        wait_for(site.is_quiet, 60, "nothing fires any more", interval=0.2, details=lambda: f"firing: {site.last}")
        world.database.execute("DELETE FROM receiptd.message_inbox")
        assert world.database.value("SELECT count(*)::int FROM receiptd.retired_message") == 1


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Debian's prometheus is not installed")
def test_the_alert_of_partitions_that_somebody_else_takes_away_ends_with_maintain(create_world, tmp_path):
    with ExitStack() as stack:
        columns = {"message_id": "id", "org_id": "org", "campaign_id": "camp", "created_at": "born"}
        world = create_world(migrate=False, partitions=1, http={"listen": "127.0.0.1:0"}, inbox={"table": "app.sent", "columns": columns, "partitions": "external"})
        world.database.execute("""CREATE SCHEMA app;
            CREATE TABLE app.sent (id text COLLATE "C", org text, camp text, born timestamptz DEFAULT now(), PRIMARY KEY (id, born)) PARTITION BY RANGE (born);
            CREATE TABLE app.old PARTITION OF app.sent FOR VALUES FROM (MINVALUE) TO ('2026-01-01');
            CREATE TABLE app.new PARTITION OF app.sent FOR VALUES FROM ('2026-01-01') TO (MAXVALUE);""")
        world.installation.migrate()
        world.database.execute("INSERT INTO app.sent SELECT 'm' || i, 'o', 'c', '2025-06-01' FROM generate_series(1, 10) i")
        world.installation.command("maintain")
        site = SmallSite(world, tmp_path, stack)
        site.wait(lambda: site.prometheus.query("receiptd_inbox_partitions_unbooked == 0"), "the partitions are known")
        site.wait(site.is_quiet, "nothing fires")
        site.run(*OF_OTHERS_PARTITIONS)
        wait_for(site.is_quiet, 60, "nothing fires any more", interval=0.2, details=lambda: f"firing: {site.last}")
        assert world.database.value("SELECT count(*)::int FROM receiptd.retired_message") == 10


class ActionsSite(SmallSite):
    """One receiptd with a pipeline and one endpoint."""

    def __init__(self, create_world, directory, stack):
        self.stack, self.receiver, self.numbers = stack, stack.enter_context(closing(Receiver())), itertools.count()
        actions = {"allow_private": True, "endpoints": [{"name": "crm", "url": self.receiver.url, "timeout": "5s"}], "poll_interval": "20ms",
                   "lease": "20s", "retry_min": "10ms", "retry_max": "1s", "max_attempts": 1000, "breaker_failures": 3, "breaker_open": "50ms",
                   "disable_after": "1s"}
        pipelines = [{"name": "p", "on": "SENT", "webhook": "crm"}]
        super().__init__(create_world(partitions=1, http={"listen": "127.0.0.1:0"}, actions=actions, pipelines=pipelines), directory, stack)
        self.process = self.pages.process

    def begin(self, prefix, count=1):
        """So many messages are sent, and their runs begin."""
        ids = [f"{prefix}{next(self.numbers)}" for _ in range(count)]
        self.world.insert_ids(*ids)
        self.world.topic.send(*[{"message_id": id, "status": "SENT"} for id in ids])

    def configure_folds(self, publish):
        rule = {"name": f"r{next(self.numbers)}", "group_key": ["campaign_id"], "window": "200ms", "publish": publish}
        self.world.installation.configure(folds=[rule])
        self.process.signal(signal.SIGHUP)
        self.wait(lambda: self.execute("SELECT count(*) FROM receiptd.fold_rule WHERE rule = %s", rule["name"]) == [(1,)], "the rule is stored")

    def wait_for_runs(self):
        self.wait(lambda: self.execute("SELECT DISTINCT status FROM receiptd.run") == [("done",)], "all runs are done")

    def sql_of(self, alert):
        return (ROOT / "docs/operations.md").read_text().split(f"### {alert}\n")[1].split("```sql")[1].split("```")[0]


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Debian's prometheus is not installed")
def test_each_alert_of_actions_and_folds_fires_by_its_cause_and_ends_by_its_runbook(create_world, tmp_path):
    with ExitStack() as stack:
        site = ActionsSite(create_world, tmp_path, stack)
        site.pages.wait_until_ready(60)
        site.wait(lambda: site.prometheus.query("sum_over_time(up[15s]) >= 3"), "scrapes")
        site.wait(site.is_quiet, "nothing fires")
        for case in OF_ACTIONS:
            site.run(case)
        wait_for(site.is_quiet, 60, "nothing fires any more", interval=0.2, details=lambda: f"firing: {site.last}")
        site.process.stop()


class ReadersSite(Site):
    """receiptd serve alone: no daemon is scraped here, which is an alert of its own."""

    def __init__(self, world, directory, stack):
        self.world = world
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        world.installation.configure(serve={"listen": "127.0.0.1:0", "metrics_listen": f"127.0.0.1:{port}", "statement_timeout": "500ms"})
        self.process, self.token = reader.start(world.installation), reader.make_token(world.installation, "all")
        rules = directory / "rules.yaml"
        rules.write_text(shortened(RULES.read_text()))
        self.prometheus = stack.enter_context(closing(Prometheus(directory, one_target(port, "receiptd-serve"), rules)))

    def is_quiet(self):
        self.last = self.prometheus.firing()
        return self.last == {"ReceiptdDown"}


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Debian's prometheus is not installed")
def test_each_alert_of_readers_fires_by_its_cause_and_ends_by_its_runbook(create_world, tmp_path):
    with ExitStack() as stack:
        site = ReadersSite(create_world(partitions=1), tmp_path, stack)
        site.wait(site.is_quiet, "nothing fires")
        for case in OF_READERS:
            site.run(case)
        wait_for(site.is_quiet, 60, "nothing fires any more", interval=0.2, details=lambda: f"firing: {site.last}")
        site.process.stop()
