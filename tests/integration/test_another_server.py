"""The chapter on another database server, followed as it stands with two servers; and what is said where a step is missing."""

import re
import shutil
import subprocess

import pytest

from support.operations import Operations
from support.services import ROOT
from test_failover import site  # noqa: F401, a fixture

OWNER, DAEMON = "receiptd_owner", "receiptd_daemon"


def blocks(heading):
    chapter = (ROOT / "docs/operations.md").read_text().split("## Another database server\n")[1].split("\n## ")[0]
    part = chapter.split(f"### {heading}\n")[1].split("\n### ")[0]
    return [line for block in re.findall(r"^```sh\n(.*?)```", part, re.MULTILINE | re.DOTALL) for line in block.splitlines()]


class Follower:
    """Types the chapter's lines. The daemon has a role of its own, and the schema an owner, as install.md makes them."""

    def __init__(self, site):
        self.site, self.process, self.installation = site, None, site.world.installation
        site.execute(site.first, f"CREATE ROLE {OWNER} LOGIN CREATEROLE")
        site.execute(site.first, f"CREATE ROLE {DAEMON} LOGIN")
        site.execute(site.first, "DROP DATABASE receipts")
        site.execute(site.first, f"CREATE DATABASE receipts OWNER {OWNER}")
        site.use(site.first)
        self.lead_to(site.first)
        self.installation.command("migrate", "--dsn", self.owner, "--role", DAEMON)
        site.world.insert_ids("m")

    def lead_to(self, *servers):
        where = f"host={','.join(str(one.socket) for one in servers)} port={','.join(str(one.port) for one in servers)} dbname=receipts"
        self.owner = f"{where} user={OWNER}"
        self.installation.configure(postgres={"dsn": f"{where} user={DAEMON}"})

    def type(self, line):
        first, second = self.site.first, self.site.second
        word, *arguments = line.split()
        if word == "systemctl":
            self.process = self.process.stop() if arguments[0] == "stop" else self.site.start()
        elif word == "sed":
            self.lead_to(second)
        elif word == "receiptd":
            line = line.replace("file:/etc/receiptd/owner-secrets/dsn", "OWNER").replace("--role receiptd", f"--role {DAEMON}")
            return self.installation.command(*(self.owner if one == "OWNER" else one for one in line.split()[1:])).stdout
        else:
            for name, server in (("OLD_SERVER", first), ("NEW_SERVER", second)):
                line = line.replace(f"-h {name}", f"-h {server.socket} -p {server.port}")
            line = line.replace("-U postgres", "-U receiptd").replace("DATA", str(second.data)).replace("-d receiptd ", "-d receipts ")
            line = re.sub(r"\breceiptd( \||$)", r"receipts\1", line)
            user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"] if shutil.os.getuid() == 0 else []
            done = subprocess.run([*user, "bash", "-c", f"set -o pipefail; PATH={first.bin}:$PATH; {line}"], capture_output=True, text=True, cwd="/",
                                  stdin=subprocess.DEVNULL)
            assert done.returncode == 0, f"{line}\n{done.stdout}{done.stderr}"
            return done.stderr
        return ""

    def follow(self, lines):
        return {line.split()[0] + (f" {line.split()[1]}" if line.startswith("receiptd") else ""): self.type(line) for line in lines}


@pytest.fixture
def follower(site):  # noqa: F811
    return Follower(site)


def test_a_dump_goes_to_another_server_by_the_chapter(follower):
    site = follower.site  # noqa: F811
    follower.process = site.start()
    site.send(5)
    site.wait_for_all(follower.process)
    site.second.create()
    lines = blocks("By a dump")
    stop, start = lines[0], lines[-1]
    assert stop.startswith("systemctl stop") and start.startswith("systemctl start")
    said = follower.follow(lines[:-1])
    # The administrators of both servers have one name, and the test's servers a role of the servers' own.
    assert set(re.findall(r"ERROR: +(.*)", said["pg_dumpall"])) <= {'role "receiptd" already exists', 'role "daemon" already exists'}, said["pg_dumpall"]
    assert "accepted: it may follow system" in said["receiptd positions"] and "0 " in said["receiptd audit"]
    site.first.kill()
    site.use(site.second)
    site.send(3)  # that came meanwhile
    follower.type(start)
    site.wait_for_all(follower.process)
    site.send(3)
    site.wait_for_all(follower.process)
    follower.process.stop()
    site.world.audit()


def test_a_standby_takes_over_by_the_chapter(follower):
    site = follower.site  # noqa: F811
    follower.process = site.start()
    site.send(5)
    site.wait_for_all(follower.process)
    base, promote = blocks("By a standby")
    follower.type(base)
    site.second.start()
    site.world.wait(lambda: site.first.value("SELECT state FROM pg_stat_replication") == "streaming", timeout=60, what="it streams")
    follower.process.stop()
    follower.lead_to(site.first, site.second)
    follower.process = site.start()
    site.send(3)
    site.wait_for_all(follower.process)
    site.first.kill()
    follower.type(promote)
    site.use(site.second)
    site.send(3)
    site.wait_for_all(follower.process)
    follower.process.stop()
    site.world.audit()


@pytest.mark.parametrize("reason, broken, hint", [
    ("permission denied for schema", f"REVOKE USAGE ON SCHEMA receiptd FROM {DAEMON}", "run receiptd migrate with its name"),
    ("does not exist", f"ALTER ROLE {DAEMON} RENAME TO receiptd_gone", "receiptd migrate --role makes it"),
    ("permission denied for table", f"REVOKE SELECT ON receiptd.consumer_progress FROM {DAEMON}", "run receiptd migrate with its name"),
    ("receiptd.", "ALTER SCHEMA receiptd RENAME TO elsewhere", "run receiptd migrate")])
def test_a_right_that_is_missing_is_told_as_that(follower, reason, broken, hint):
    site = follower.site  # noqa: F811
    with site.first.connect("receipts") as connection:
        connection.execute(broken)
    process = site.start(ready=False)
    told = process.wait_for(lambda: (reasons := str(Operations(process).get("/readyz").json["reasons"])) and hint in reasons + process.log() and reasons, 60, hint)
    log = process.log()
    if "schema" in reason or "table" in reason or "exist" in reason:
        assert reason in log + told
    assert hint in log + told and ("migrate --role" not in hint or "pg_hba.conf" in log + told)
    if "schema" in reason:
        assert "a table is missing" not in log + told
    process.stop()
