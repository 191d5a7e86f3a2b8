"""receiptd under a real systemd: what the manager is told, and what it does with that."""

import json
import re
import secrets
import urllib.request

import pytest

from support import intake as gateways
from support.daemon import merge, to_yaml
from support.ports import free_ports
from support.world import QUICK

pytestmark = pytest.mark.timeout(900)  # the first one builds the package and boots a machine
SECRET = 'file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}dsn'


class Service:
    """The unit with a database and a topic; the password of the database is a credential."""

    def __init__(self, unit, database, topic):
        self.unit, self.machine, self.database, self.topic = unit, unit.machine, database, topic
        self.settings = merge(QUICK, {
            "kafka": {"brokers": topic.services.brokers, "topics": [str(topic)], "group": secrets.token_hex(6)},
            "postgres": {"dsn": SECRET},
            "http": {"listen": ""},
        })
        for folder in ("secrets", "intake-secrets", "serve-secrets"):
            self.machine.path(f"/etc/receiptd/{folder}/dsn").write_text(database.tcp_dsn)
            self.machine.path(f"/etc/receiptd/{folder}/dsn").chmod(0o600)
        self.configure()

    def configure(self, **settings):
        self.settings = merge(self.settings, settings)
        self.machine.write("/etc/receiptd/receiptd.yaml", to_yaml(self.settings) + "\n")

    def migrate(self):
        self.machine.run("receiptd", "migrate", "--as-superuser")

    def start(self):
        self.unit.systemctl("start")

    def send(self, prefix, count, status="SENT"):
        """Messages, a receipt of each."""
        ids = [f"{prefix}-{number}" for number in range(count)]
        self.database.add_messages((id, "o", "c") for id in ids)
        self.receipts(ids, status)

    def receipts(self, ids, status):
        events = [{"message_id": id, "status": status} for id in ids]
        self.topic.send(*[{"events": events[at:at + 100]} for at in range(0, len(events), 100)])

    def wait_until_counted(self, status, count):
        query = "SELECT coalesce(sum(messages), 0) FROM receiptd.campaign_funnel WHERE status = " \
                "(SELECT code FROM receiptd.message_status_priority WHERE name = %s)"
        self.unit.wait_for(lambda: self.database.value(query, status) >= count, f"{count} in {status}")
        assert self.database.value(query, status) == count

    def audit(self):
        self.machine.run("receiptd", "audit")


@pytest.fixture
def service(daemon, database, topic):
    made = Service(daemon, database, topic)
    yield made
    daemon.reset()  # before its database and topic go


def numbers(text):
    return [float(number) for number in re.findall(r"[\d.]+", text)]


def test_it_starts_says_rate_and_lag_and_has_no_rights_of_its_own(service):
    service.migrate()
    service.start()
    shown = service.unit.show("ActiveState", "SubState", "Type", "UID", "NRestarts")
    assert shown["ActiveState"] == "active" and shown["Type"] == "notify" and shown["NRestarts"] == "0"
    service.send("m", 2000)
    service.wait_until_counted("SENT", 2000)
    # What was done since the last line stands in the next one.
    status = service.unit.wait_for_status(r"^([\d.]+) receipts/s; (\d+) records, ([\d.]+) s behind; 8 partitions$")
    assert all(number >= 0 for number in numbers(status.group(0)))
    service.unit.wait_for_status(r"^\d+ receipts/s; 0 records, 0.0 s behind")
    process = f"/proc/{service.unit.pid}/status"
    found = dict(line.split(":\t", 1) for line in service.machine.path(process).read_text().splitlines() if ":\t" in line)
    uids = {int(uid) for uid in found["Uid"].split()}
    assert all(61184 <= uid <= 65519 for uid in uids)  # a dynamic one
    assert found["CapEff"] == found["CapPrm"] == found["CapBnd"] == "0000000000000000"
    assert found["NoNewPrivs"] == "1" and found["Seccomp"] == "2"
    # An operator's commands, as root.
    assert "ready           yes" in service.machine.run("receiptd", "ctl", "status").stdout
    service.audit()


def test_lines_have_the_priorities_of_the_journal_and_no_secret(service):
    service.migrate()
    service.start()
    service.unit.systemctl("stop")
    output = service.machine.run("journalctl", "--unit=receiptd", "--output=json", "--no-pager").stdout
    lines = [json.loads(line) for line in output.splitlines()]
    starting = [line for line in lines if "msg=\"starting" in line["MESSAGE"]]
    assert starting and all(line["PRIORITY"] == "6" for line in starting)
    password = re.search(r"password=(\S+)", service.database.tcp_dsn).group(1)
    assert password not in output
    assert password not in service.machine.run("systemctl", "show", "receiptd").stdout


def test_under_the_filter_of_system_calls_nothing_is_lost_under_load(service):
    service.migrate()
    service.start()
    ids = [f"m-{number}" for number in range(30_000)]
    service.database.add_messages((id, "o", f"c{number % 7}") for number, id in enumerate(ids))
    for status in ("SENT", "DELIVERED", "OPENED"):
        service.receipts(ids, status)
    service.wait_until_counted("OPENED", len(ids))
    service.audit()
    assert service.unit.show("NRestarts") == "0"
    assert not re.search(r"level=(error|warn).*(EPERM|not permitted)", service.unit.journal())


def test_the_start_waits_for_the_database_beyond_its_time_and_says_so(service):
    service.unit.set(TimeoutStartSec=6)
    service.unit.systemctl("start", "--no-block")
    service.unit.wait_for_status("^not ready: .*does not exist")
    # Time that was asked for: the limit of the start is long over.
    begun = int(service.unit.show("ExecMainStartTimestampMonotonic"))
    service.unit.wait_for(lambda: now_us(service.machine) - begun > 12_000_000, "twice the limit")
    assert service.unit.show("ActiveState", "NRestarts") == {"ActiveState": "activating", "NRestarts": "0"}
    service.migrate()
    service.unit.wait_for_state("active")
    service.send("m", 100)
    service.wait_until_counted("SENT", 100)


def now_us(machine):
    return float(machine.path("/proc/uptime").read_text().split()[0]) * 1e6


def test_a_process_that_stands_still_is_replaced_and_one_that_waits_for_others_is_not(service):
    service.unit.set(WatchdogSec=5)
    service.migrate()
    service.start()
    service.unit.signal("STOP")
    service.unit.wait_for(lambda: int(service.unit.show("NRestarts")) >= 1, "a restart")
    service.unit.wait_for_journal("Watchdog timeout")
    service.unit.wait_for_state("active")
    service.send("m", 500)
    service.wait_until_counted("SENT", 500)
    service.audit()


def test_killed_it_comes_back_and_goes_on(service):
    service.migrate()
    service.start()
    service.send("a", 500)
    before = service.unit.pid
    service.unit.signal("KILL")
    service.send("b", 500)
    service.unit.wait_for(lambda: service.unit.pid not in (0, before), "another process")
    service.wait_until_counted("SENT", 1000)
    service.audit()


def test_a_reload_is_answered_and_a_bad_file_changes_nothing(service):
    service.migrate()
    service.start()
    before = service.unit.pid
    service.configure(batch={"max_events": 123})
    service.unit.systemctl("reload")
    service.unit.wait_for_journal("reload: applied: batch.max_events")
    service.configure(batch={"max_events": "many"})
    assert service.unit.systemctl("reload", check=False).returncode != 0
    assert service.unit.show("ActiveState") == "active" and service.unit.pid == before
    # The same by the signal.
    service.configure(batch={"max_events": 124})
    service.unit.signal("HUP")
    service.unit.wait_for(lambda: service.unit.journal().count("reload: applied: batch.max_events") == 2, "a reload")
    service.unit.wait_for_state("active")
    assert service.unit.pid == before
    service.send("m", 100)
    service.wait_until_counted("SENT", 100)


def test_a_drain_may_take_longer_than_the_stop_timeout_and_less_than_its_deadline(service):
    service.unit.set(TimeoutStopSec=6)
    service.configure(shutdown={"deadline": "2m"}, postgres={"lock_timeout": "90s", "zombie_timeout": "5m",
                                                             "statement_timeout": "100s"})
    service.migrate()
    service.start()
    service.database.add_messages([("m", "o", "c")])
    with service.database.connect() as blocker:
        with blocker.transaction():
            blocker.execute("SELECT FROM receiptd.message_inbox WHERE message_id = 'm' FOR UPDATE")
            service.receipts(["m"], "SENT")
            waiting = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
            service.unit.wait_for(lambda: service.database.value(waiting) > 0, "a batch that waits")
            service.unit.systemctl("stop", "--no-block")
            service.unit.wait_for_status("^stopping$")
            asked = now_us(service.machine)
            service.unit.wait_for(lambda: now_us(service.machine) - asked > 12_000_000, "twice the limit")
            assert service.unit.show("ActiveState") == "deactivating"
    service.unit.wait_for_state("inactive")
    assert service.unit.show("Result", "ExecMainStatus") == {"Result": "success", "ExecMainStatus": "0"}
    assert "leaving at once" not in service.unit.journal() and "took longer than" not in service.unit.journal()
    assert service.database.value("SELECT status FROM receiptd.message_inbox") > 0


def test_a_mistake_in_the_configuration_is_not_tried_again(service):
    service.configure(kafka={"brokerz": "x"})
    assert service.unit.systemctl("start", check=False).returncode != 0
    assert service.unit.show("ActiveState", "NRestarts", "ExecMainStatus") == \
        {"ActiveState": "failed", "NRestarts": "0", "ExecMainStatus": "78"}
    assert "kafka.brokerz: unknown key" in service.unit.journal()


def test_without_its_secret_it_says_where_to_put_it(service):
    """The unit sees a copy below /run, and that is no place to write to."""
    service.machine.path("/etc/receiptd/secrets/dsn").unlink()
    assert service.unit.systemctl("start", check=False).returncode != 0
    assert service.unit.show("ActiveState", "ExecMainStatus") == {"ActiveState": "failed", "ExecMainStatus": "78"}
    assert re.search(r"postgres.dsn: cannot read file .*HINT: systemd hands over .*/etc/receiptd/secrets\): put the file there", service.unit.journal(), re.DOTALL)


def test_the_intake_takes_webhooks_in_its_own_unit(service, intake, create_topic):
    letters = create_topic(1)
    service.configure(intake={"listen": "127.0.0.1:0", "dead_letter_topic": str(letters), "alias": "off",
                              "accounts": gateways.ACCOUNTS})
    intake.systemctl("start")
    port = int(intake.wait_for_journal(gateways.LISTENS).group(1))
    with gateways.Client(port) as client:
        for number in range(200):
            answer = client.request("POST", f"/dlr/acme?mid=m-{number}", b"MessageSid=SM1&MessageStatus=delivered",
                                    ["Content-Type: application/x-www-form-urlencoded"])
            assert answer.status == 204 or answer.status == 200, answer
    intake.wait_for_status(r"^\d+ records/s to Kafka; 0 requests wait$")
    before = intake.pid
    intake.systemctl("reload")
    assert intake.show("ActiveState") == "active" and intake.pid == before
    intake.signal("STOP")
    intake.systemctl("kill", "--signal=KILL")
    intake.wait_for(lambda: intake.pid not in (0, before), "another process")
    intake.wait_for_state("active")
    intake.systemctl("stop")
    assert intake.show("Result", "ExecMainStatus") == {"Result": "success", "ExecMainStatus": "0"}
    assert sum(high for _, high in service.topic.watermarks().values()) > 0


def test_readers_are_answered_by_a_unit_of_their_own(service, serve):
    port = free_ports(1)[0]
    service.configure(serve={"listen": f"127.0.0.1:{port}", "dsn": SECRET, "open": True})
    service.migrate()
    serve.systemctl("start")
    serve.wait_for_status("^answers readers$")
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/v1/status", timeout=10) as answer:
        assert answer.status == 200
    before = serve.pid
    serve.systemctl("reload")
    assert serve.show("ActiveState") == "active" and serve.pid == before
    assert {entry.name for entry in service.machine.path("/run/credentials/receiptd-serve.service").iterdir()} == {"secret_dsn"}
    serve.systemctl("kill", "--signal=KILL")
    serve.wait_for(lambda: serve.pid not in (0, before), "another process")
    serve.wait_for_state("active")
    serve.systemctl("stop")
    assert serve.show("Result", "ExecMainStatus") == {"Result": "success", "ExecMainStatus": "0"}


@pytest.mark.parametrize("unit, own, foreign", [("receiptd", "secrets", "intake-secrets"), ("receiptd-intake", "intake-secrets", "secrets")])
def test_a_unit_gets_its_own_secrets_and_leaves_none_in_a_core_file(service, intake, create_topic, unit, own, foreign):
    letters = create_topic(1)
    service.configure(intake={"listen": "127.0.0.1:0", "dead_letter_topic": str(letters), "alias": "off", "accounts": gateways.ACCOUNTS})
    service.migrate()
    for folder in (own, foreign):
        path = service.machine.path(f"/etc/receiptd/{folder}")
        assert path.stat().st_mode & 0o777 == 0o700 and path.stat().st_uid == 0
        (path / f"of-{folder}").write_text("a secret of one unit")
    tested = intake if unit == "receiptd-intake" else service.unit
    try:
        tested.systemctl("start")
        handed = {entry.name for entry in service.machine.path(f"/run/credentials/{unit}.service").iterdir()}
        assert handed == {"secret_dsn", f"secret_of-{own}"}
        limits = service.machine.path(f"/proc/{tested.pid}/limits").read_text()
        assert re.search(r"Max core file size +0 +0 ", limits), limits
        assert service.machine.path(f"/proc/{tested.pid}/mem").stat().st_uid == 0  # the kernel keeps it from the unit's user
        assert int(tested.show("MemoryMax")) >= 2**20 * (352 if unit == "receiptd-intake" else 192)
    finally:
        for folder in (own, foreign):
            service.machine.path(f"/etc/receiptd/{folder}/of-{folder}").unlink()


def test_a_secret_that_has_changed_fails_the_reload_by_its_name(service):
    """systemd hands over credentials at the start alone: the daemon goes on with the old one, and an operator must know."""
    service.migrate()
    service.start()
    before, path = service.unit.pid, service.machine.path("/etc/receiptd/secrets/dsn")
    service.unit.systemctl("reload")
    path.write_text(path.read_text() + " ")
    service.configure(batch={"max_events": 123})
    assert service.unit.systemctl("reload", check=False).returncode != 0
    service.unit.wait_for_journal("reload: applied: batch.max_events")
    service.unit.wait_for_journal("/etc/receiptd/secrets/dsn has changed since receiptd started: systemctl restart receiptd")
    assert service.unit.show("ActiveState") == "active" and service.unit.pid == before
    service.unit.systemctl("restart")
    service.unit.systemctl("reload")


def test_a_maintenance_that_was_killed_runs_again(maintain, database, topic):
    """It may have left something half done, and the timer's next run is an hour away."""
    service = Service(maintain, database, topic)
    service.configure(inbox={"retention": "90d"})
    service.migrate()
    owner = service.machine.path("/etc/receiptd/owner-secrets/dsn")
    owner.write_text(database.tcp_dsn)
    owner.chmod(0o600)
    waits = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    with database.connect() as held, held.transaction():
        held.execute("LOCK TABLE receiptd.maintained, receiptd.message_inbox IN ACCESS EXCLUSIVE MODE")
        maintain.systemctl("start", "--no-block")
        maintain.wait_for(lambda: database.value(waits) == 1, "it waits for a lock")
        maintain.signal(9)
        maintain.wait_for_journal("status=9/KILL")
    maintain.wait_for_journal("Scheduled restart job")
    maintain.wait_for_journal("Finished receiptd-maintain")
    maintain.wait_for(lambda: maintain.show("ActiveState") == "inactive", "its run ends")
    assert maintain.show("Result") == "success"
