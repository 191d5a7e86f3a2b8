"""Partitions that somebody else makes and takes away (inbox.partitions: external): funnels stay, audits count what has left, and say what was lost."""
import datetime
import time

import psycopg
import pytest

from oracle.compare import Inbox
from support.world import Feeder
from test_commands import command_server, empty, installed, migrated, stranger  # noqa: F401
from test_partitions import INBOX, OWN, exact, funnel, insert, name_of, old_day, parts, start_of, v7

SENT = Inbox("app.sent", "id", "org", "camp", "status", "flags")
MAPPED = {"table": "app.sent", "partitions": "external", "columns": {"message_id": "id", "org_id": "org", "campaign_id": "camp", "created_at": "sent_at"}}
OLD, DATAERR, FAILED, NOPERM = 30, 65, 1, 77


def day(days_ago):
    return datetime.datetime.now(datetime.timezone.utc).date() - datetime.timedelta(days=days_ago)


def bounds(days_ago):
    return f"FOR VALUES FROM ('{day(days_ago)} 00:00+00') TO ('{day(days_ago - 1)} 00:00+00')"


def make_day(database, days_ago):
    database.execute(f"CREATE TABLE app.d{days_ago} PARTITION OF app.sent {bounds(days_ago)}; CREATE UNIQUE INDEX ON app.d{days_ago} (id)")


class Days:
    """A table of the platform in days, 100 messages in each of three, and a daemon whose receipts have made statuses of them."""

    def __init__(self, world):
        self.world, self.database = world, world.database
        world.inbox = SENT
        self.database.execute("CREATE SCHEMA app; CREATE TABLE app.sent (id text COLLATE \"C\", org text, camp text, sent_at timestamptz, variant text, customer text, PRIMARY KEY (id, sent_at))"
                              " PARTITION BY RANGE (sent_at)")
        for days_ago in (OLD, OLD - 1, 0):
            make_day(self.database, days_ago)
        assert self.command("migrate")
        self.process = world.installation.start()
        for days_ago in (OLD, OLD - 1, 0):
            self.fill(days_ago)

    def ids(self, days_ago):
        return [f"m{days_ago}-{n}" for n in range(100)]

    def fill(self, days_ago):
        self.database.execute("INSERT INTO app.sent (id, org, camp, sent_at) SELECT unnest(%s::text[]), 'o', CASE WHEN %s = 0 THEN 'new' END, %s",
                              self.ids(days_ago), days_ago, f"{day(days_ago)} 12:00+00")
        self.send(days_ago)

    def send(self, days_ago):
        ids = self.ids(days_ago)
        self.world.topic.send([{"message_id": id, "status": "SENT"} for id in ids] + [{"message_id": id, "status": "DELIVERED"} for id in ids[:60]])
        self.world.wait_until_consumed(self.process)

    def command(self, *words, code=0):
        result = self.world.installation.command(*words, check=False)
        assert result.returncode == code, f"{words}: {result.returncode}\n{result.stdout}{result.stderr}"
        return result.stdout + result.stderr

    def funnel(self):
        return self.database.query("SELECT campaign_id, status, messages FROM receiptd.campaign_funnel ORDER BY 1, 2")

    def retired(self):
        return self.database.value("SELECT count(*)::int FROM receiptd.retired_message")

    def letters(self):
        return self.database.value("SELECT count(*)::int FROM receiptd.dead_letter WHERE reason = 'retired_message'")

    def goes_on(self, before):
        """Receipts of messages that went are late ones, the others count as before."""
        self.send(OLD)
        self.world.topic.send([{"message_id": id, "status": "OPENED"} for id in self.ids(0)])
        self.world.wait_until_consumed(self.process)
        self.world.wait(lambda: self.letters() == 160, self.process, 30, "late receipts are letters")
        self.world.audit()
        after = {row[:2]: row[2] for row in self.funnel()}
        assert {key: after[key] for key in ((campaign, status) for campaign, status, _ in before) if key[0] == ""} == {row[:2]: row[2] for row in before if row[0] == ""}
        self.process.stop()


@pytest.fixture
def days(create_world):
    return Days(create_world(migrate=False, partitions=1, lanes=2, inbox=MAPPED))


# ---- how messages leave, with a daemon

@pytest.mark.parametrize("how", ("ALTER TABLE app.sent DETACH PARTITION app.d30", "ALTER TABLE app.sent DETACH PARTITION app.d30 CONCURRENTLY",
                                 "BEGIN; ALTER TABLE app.sent DETACH PARTITION app.d30; CREATE SCHEMA archive; ALTER TABLE app.d30 SET SCHEMA archive; COMMIT"))
def test_a_detached_partition_is_counted_then_booked_and_stays(days, how):
    before = days.funnel()
    days.database.execute("INSERT INTO receiptd.message_part (message_id, parts, delivered, delivered_at) SELECT id, 2, '{1}', ARRAY[now()] FROM app.sent")
    days.database.execute(how)
    assert "app.d30 has left the inbox and is not booked yet" in days.command("audit")
    assert days.command("audit", "--repair") and days.funnel() == before and days.retired() == 0
    assert "app.d30 has left the inbox: it would be booked" in days.command("retire", "--dry-run")
    assert "app.d30 has left the inbox: booked 100 messages" in days.command("maintain")
    assert "left the inbox" not in days.command("audit") + days.command("maintain")
    assert days.funnel() == before and days.retired() == 100
    assert days.database.value("SELECT count(*)::int FROM pg_class WHERE relname = 'd30'") == 1
    assert days.database.value("SELECT count(*)::int FROM receiptd.message_part") == 200
    days.goes_on(before)


def test_a_dropped_partition_is_said_and_booked_only_on_request(days):
    before = days.funnel()
    days.database.execute("DROP TABLE app.d30")
    for _ in range(2):
        said = days.command("audit", code=FAILED)
        assert "app.d30 was dropped before its messages were booked" in said
        assert "100 messages that were deleted and not booked" in said and "receiptd audit --repair" in said
        assert "app.d30 was dropped before its messages were booked" in days.command("maintain")
    assert "app.d30 was dropped" in days.command("check-config", "--connect")
    assert days.funnel() == before
    assert "100 messages were deleted without the trigger" in days.command("audit", "--repair")
    assert days.funnel() == before and "dropped" not in days.command("audit") + days.command("maintain")
    assert days.retired() == 0  # which ids they had, nobody knows
    days.process.stop()


def test_a_truncated_partition_is_said_and_a_deletion_is_booked(days):
    before = days.funnel()
    days.database.execute("DELETE FROM app.d29")
    days.world.audit()
    assert days.funnel() == before and days.retired() == 100
    days.database.execute("TRUNCATE app.d30")
    assert "100 messages that were deleted and not booked" in days.command("audit", code=FAILED)
    assert days.funnel() == before and "100 messages were deleted without the trigger" in days.command("audit", "--repair")
    days.world.audit()
    assert days.funnel() == before
    days.database.execute("ALTER TABLE app.sent DETACH PARTITION app.d30")
    assert "booked 0 messages" in days.command("maintain")
    days.world.audit()
    days.process.stop()


def test_maintain_puts_the_triggers_on_a_partition_that_is_new(days):
    """Rows of statements that name it count from then on, and those that go are booked."""
    make_day(days.database, 1)
    assert "app.d1 is new: statements that name it are counted from now on" in days.command("maintain")
    assert "is new" not in days.command("maintain")
    days.database.execute("INSERT INTO app.d1 (id, org, camp, sent_at) SELECT 't' || n, 'o', 'new', %s FROM generate_series(1, 50) n", f"{day(1)} 12:00+00")
    days.world.audit()
    days.database.execute("DELETE FROM app.d1")
    days.world.audit()
    assert days.retired() == 50
    days.process.stop()


def test_a_booked_partition_is_dropped_by_a_later_run_where_that_is_set(days):
    before = days.funnel()
    days.world.installation.configure(inbox=MAPPED | {"drop_detached": True})
    days.database.execute("ALTER TABLE app.sent DETACH PARTITION app.d30")
    assert "dropped" not in days.command("maintain") + days.command("maintain")
    days.database.execute("UPDATE receiptd.inbox_partition SET booked_at = now() - interval '1 hour' WHERE booked_at IS NOT NULL")
    assert "app.d30 is booked: it would be dropped" in days.command("retire", "--dry-run")
    assert "app.d30 is booked: dropped" in days.command("maintain")
    assert days.database.value("SELECT to_regclass('app.d30')") is None
    assert days.database.query("SELECT name FROM receiptd.inbox_partition ORDER BY 1") == [("app.d0",), ("app.d29",)]
    days.world.audit()
    assert days.funnel() == before
    days.goes_on(before)


def test_a_partition_that_somebody_drops_after_it_was_booked_is_no_loss(days):
    days.database.execute("ALTER TABLE app.sent DETACH PARTITION app.d30")
    days.command("maintain")
    days.database.execute("DROP TABLE app.d30")
    assert "dropped" not in days.command("maintain") + days.command("audit")
    days.process.stop()


def test_a_booked_partition_that_returns_is_said_and_nothing_is_repaired(days):
    days.database.execute("ALTER TABLE app.sent DETACH PARTITION app.d30")
    days.command("maintain")
    before = days.funnel()
    days.database.execute(f"ALTER TABLE app.sent ATTACH PARTITION app.d30 {bounds(OLD)}")
    assert "app.d30 was booked after it had left the inbox, and is in it again" in days.command("maintain")
    assert "messages count twice" in days.command("audit", code=FAILED)
    assert "would count its messages twice" in days.command("audit", "--repair", code=DATAERR)
    days.database.execute("ALTER TABLE app.sent DETACH PARTITION app.d30")
    days.world.audit()
    assert days.funnel() == before
    days.process.stop()


def test_an_interrupted_detach_concurrently_is_named_and_nothing_is_counted_wrong(days):
    before = days.funnel()
    with psycopg.connect(days.database.dsn) as reader, psycopg.connect(days.database.dsn, autocommit=True) as other:
        reader.execute("SELECT count(*) FROM app.sent")
        other.execute("SET statement_timeout = '300ms'")
        with pytest.raises(psycopg.errors.QueryCanceled):
            other.execute("ALTER TABLE app.sent DETACH PARTITION app.d30 CONCURRENTLY")
    result = days.world.installation.command("audit", check=False)
    assert result.returncode not in (0, FAILED) and "app.d30 is just being detached" in result.stderr and "FINALIZE" in result.stderr
    assert "app.d30 is just being detached" in days.command("maintain")
    days.database.execute("ALTER TABLE app.sent DETACH PARTITION app.d30 FINALIZE")
    assert "booked 100 messages" in days.command("maintain")
    days.world.audit()
    assert days.funnel() == before
    days.process.stop()


def test_it_is_exact_at_each_moment_while_days_are_detached_and_maintain_is_killed(days):
    """Audits and receipts go on beside. What a killed run has not booked the next one books."""
    for days_ago in range(OLD + 1, OLD + 9):
        make_day(days.database, days_ago)
        days.fill(days_ago)
    days.command("maintain")
    before = days.funnel()
    for days_ago in range(OLD + 1, OLD + 9):
        days.world.topic.send([{"message_id": id, "status": "OPENED"} for id in days.ids(0)])
        days.database.execute(f"ALTER TABLE app.sent DETACH PARTITION app.d{days_ago}")
        killed = days.world.installation.start("maintain", command="maintain")
        audit = Feeder(days.world.audit)
        time.sleep(days.world.random.uniform(0.005, 0.08))
        killed.kill()
        audit.join()
        days.world.audit()
    days.command("maintain")
    assert days.retired() == 800
    days.world.wait_until_consumed(days.process)
    days.world.audit()
    assert [row for row in days.funnel() if row[0] == ""] == [row for row in before if row[0] == ""]
    days.process.stop()


def test_keys_and_customers_of_a_campaign_with_a_detached_partition_are_left_out_of_the_audit(create_world):
    columns = MAPPED["columns"] | {"variant": "variant", "customer_id": "customer"}
    days = Days(create_world(migrate=False, partitions=1, lanes=2, inbox=MAPPED | {"columns": columns}, counters={"by": ["variant"], "groups": ["customer"]}))
    days.database.execute("ALTER TABLE app.sent DETACH PARTITION app.d30")
    days.world.audit()
    days.command("maintain")
    days.world.audit()
    days.process.stop()


# ---- receiptd's own inbox, and roles

def times(installation):
    """Half of the messages are delivered, with the first times that receipts would have made; a repair counts them."""
    installation.write(counters={"times": True})
    installation.do(f"UPDATE {INBOX} SET status = 600, first_gateway = 'g', first_sent_at = 'epoch', first_delivered_at = '1970-01-01 00:00:05+00' WHERE right(message_id, 1) < '5'")
    installation.run("audit", "--repair")


def counted_times(installation, prefix=""):
    return installation.query("SELECT kind, campaign_id, key, messages::int FROM receiptd.campaign_tally WHERE kind IN (%s, %s) AND messages <> 0 ORDER BY 1",
                              prefix + "gateway_time_to_deliver", prefix + "time_to_deliver")


def test_the_own_inbox_in_partitions_of_somebody_else(empty):
    empty.write(inbox=OWN | {"partitions": "external"})
    empty.migrate()
    name, handed = old_day(empty, status=300), old_day(empty, 41)
    times(empty)
    before, histograms = funnel(empty), counted_times(empty)
    with empty.connection.transaction():
        empty.do(f"ALTER TABLE {INBOX} DETACH PARTITION receiptd.{handed}")
        empty.do(f"ALTER TABLE receiptd.{handed} INHERIT receiptd.inbox_detached")
    empty.do(f"ALTER TABLE {INBOX} DETACH PARTITION receiptd.{name}")
    exact(empty)
    said = empty.run("maintain")
    assert f"partition {handed}: booked 200 messages and dropped" in said.out
    assert f"partition receiptd.{name} has left the inbox: booked 200 messages" in said.out and handed not in said.err
    exact(empty)
    assert counted_times(empty) == histograms and counted_times(empty, "forgotten_") == [("forgotten_" + kind, *more) for kind, *more in histograms]
    assert funnel(empty) == before and parts(empty) == {} and empty.query(f"SELECT count(*)::int FROM receiptd.{name}") == [(200,)]


def test_the_daemons_role_audits_what_has_left_or_says_who_can(installed, stranger):
    installed.do(f"DROP TABLE {INBOX}")
    daemon = installed.config["postgres"]
    installed.write(inbox=OWN | {"partitions": "external"}, postgres={"dsn": installed.dsn})
    installed.migrate()
    name = old_day(installed)
    installed.run("migrate", "--dsn", installed.dsn, "--role", stranger)
    installed.run("maintain", "--dsn", installed.dsn)
    times(installed)
    before = counted_times(installed)
    assert before
    installed.do(f"ALTER TABLE {INBOX} DETACH PARTITION receiptd.{name}")
    installed.write(postgres=daemon)
    exact(installed)
    installed.do(f"REVOKE ALL ON receiptd.{name} FROM {stranger}; REVOKE ALL (campaign_id, status, flags, first_gateway, first_sent_at, first_delivered_at, first_opened_at)"
                 f" ON receiptd.{name} FROM {stranger}")
    installed.do(f"GRANT SELECT (campaign_id, status, flags) ON receiptd.{name} TO {stranger}")
    assert f"role {stranger} may not read its first times" in installed.run("audit", code=NOPERM).err
    installed.do(f"REVOKE ALL (campaign_id, status, flags) ON receiptd.{name} FROM {stranger}")
    said = installed.run("audit", code=NOPERM).err
    assert f"{name} has left the inbox" in said and "not booked yet: receiptd maintain books it" in said
    installed.run("maintain", "--dsn", installed.dsn)
    exact(installed)
    assert counted_times(installed) == before
