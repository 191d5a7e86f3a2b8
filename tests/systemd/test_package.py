"""The Debian package: what is in it, and that it comes, changes and goes without a trace."""

import hashlib
import json
import os
import re
import secrets
import subprocess
from pathlib import Path

import psycopg
import pytest

from support.hardening import complaints
from support.machine import HERE, RELEASES, Unit
from support.services import ROOT
from test_service import Service

pytestmark = pytest.mark.timeout(900)  # the first one builds the package and boots a machine
CONFIGURATION = "/etc/receiptd/receiptd.yaml"
THIS_DEBIAN = pytest.mark.parametrize("machine", [HERE], indirect=True)  # others lack what the test runs
UNITS = ("receiptd.service", "receiptd-intake.service", "receiptd-serve.service", "receiptd-maintain.service")


def output(*command, **options):
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def sha256(path):
    """Pytest explains how two texts differ; of two packages that takes it most of an hour."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_lintian_has_nothing_to_say(package):
    # As root it would add a remark of its own.
    assert output("lintian", "--allow-root", "--fail-on=error,warning", package) == ""


def test_the_same_sources_give_the_same_package(package, tmp_path):
    again = output(ROOT / "scripts/package", "--output", tmp_path).strip()
    assert sha256(Path(again)) == sha256(package)


def test_its_symbols_and_its_changelog_are_those_of_this_build_and_distribution(package, tmp_path):
    symbols = package.with_name(package.name.replace("receiptd_", "receiptd-dbgsym_"))
    assert output("lintian", "--allow-root", "--fail-on=error,warning", symbols) == ""
    for deb in (package, symbols):
        output("dpkg-deb", "--extract", deb, tmp_path)
    build_id = re.search(r"Build ID: (\w+)", output("readelf", "-n", tmp_path / "usr/bin/receiptd")).group(1)
    debug = tmp_path / f"usr/lib/debug/.build-id/{build_id[:2]}/{build_id[2:]}.debug"
    assert "command_migrate" in output("nm", debug) and ".debug_info" in output("readelf", "-S", "--wide", debug)
    assert output("dpkg-deb", "--field", symbols, "Build-Ids").strip() == build_id
    codename = re.search(r"^VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(), re.MULTILINE).group(1)
    changelog = output("gzip", "-dc", tmp_path / "usr/share/doc/receiptd/changelog.Debian.gz")
    assert re.match(rf"receiptd \([\w.+~-]+\) {codename}; urgency=", changelog)


def test_the_program_in_it_is_hardened(package, tmp_path):
    output("dpkg-deb", "--extract", package, tmp_path)
    assert complaints(tmp_path / "usr/bin/receiptd") == []


def test_make_install_puts_the_same_files_in_place(package, tmp_path):
    output("make", "-C", ROOT, "install", f"DESTDIR={tmp_path}", "PREFIX=/usr", "UNITDIR=/lib/systemd/system", "ZSHDIR=/usr/share/zsh/vendor-completions",
           env=dict(os.environ, MAKEFLAGS=""))
    installed = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*") if path.is_file()}
    listed = output("dpkg-deb", "--contents", package).splitlines()
    packaged = {line.split(" ./", 1)[1] for line in listed if not line.startswith("d")}
    added = {"usr/share/doc/receiptd/copyright", "usr/share/doc/receiptd/changelog.Debian.gz",
             "usr/share/lintian/overrides/receiptd"}
    # postinst puts it there, once.
    assert packaged - added - {"usr/share/receiptd/receiptd.yaml"} | {"etc/receiptd/receiptd.yaml"} == installed


@pytest.mark.parametrize("unit", UNITS)
def test_the_units_are_in_order_and_little_exposed(installed, unit):
    found = installed.run("systemd-analyze", "verify", f"--man={'yes' if installed.release == HERE else 'no'}", unit)
    assert found.stdout + found.stderr == ""
    installed.run("systemd-analyze", "security", "--offline=true", "--threshold=15", f"/lib/systemd/system/{unit}")


TABLES_OF_KEYS = re.compile(r"^\| Key \|.*\n(?:\|.*\n)+", re.MULTILINE)


@THIS_DEBIAN
def test_pages_name_every_command_and_key_without_a_complaint(installed):
    for page, section in (("receiptd", 1), ("receiptd.yaml", 5)):
        path = f"/usr/share/man/man{section}/{page}.{section}.gz"
        shown = installed.run("man", "--warnings", "-E", "UTF-8", "-l", path)
        assert shown.stderr == ""
        text = shown.stdout
        names = re.findall(r"^\| `([\w.]+)` \|", "".join(TABLES_OF_KEYS.findall((ROOT / "docs/configuration.md").read_text())), re.MULTILINE) \
            if section == 5 else re.findall(r"^  ([a-z-]+) ", installed.run("receiptd", "--help").stdout, re.MULTILINE)
        assert names and not [name for name in names if name not in text]


@THIS_DEBIAN
def test_completion_gives_commands_verbs_and_choices(installed):
    script = """
        source /usr/share/bash-completion/completions/receiptd
        ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _receiptd; echo "${COMPREPLY[*]}"; }
        ask receiptd mig
        ask receiptd ctl re
        ask receiptd funnel --format ''
        ask receiptd audit --re"""
    assert installed.run("bash", "-c", script).stdout.splitlines() == \
        ["migrate", "resume resync reload", "table json csv", "--repair"]


@THIS_DEBIAN
def test_completion_in_a_real_zsh_gives_the_same(installed):
    """Zsh completes at a terminal only: a second one at a pseudo-terminal writes down what is offered to whom presses the key."""
    script = r"""
        zmodload zsh/zpty
        found=$(mktemp)
        zpty shell zsh -f -i
        zpty -w shell "autoload -Uz compinit; compinit -u -D; LISTMAX=0
            compadd() { [[ \${@[1,(i)(-|--)]} == *-(O|A|D)\ * ]] || { local -a hits; builtin compadd -A hits \"\$@\"; print -rl -- \$hits >> $found }
                        builtin compadd \"\$@\" }; print ready >> $found"
        ask() {
            local before=$(wc -l < $found)
            zpty -w -n shell "$1"$'\t'
            for i in {1..600}; do sleep 0.1; (( $(wc -l < $found) > before )) && break; done
            sleep 0.3
            print -- $(tail -n +$((before + 1)) $found | sort -u)
            zpty -w -n shell $'\x15'
        }
        for i in {1..600}; do [[ -s $found ]] && break; sleep 0.1; done
        ask 'receiptd mig'
        ask 'receiptd ctl re'
        ask 'receiptd funnel --format '
        ask 'receiptd audit --re'
        zpty -d shell; rm $found"""
    assert installed.run("zsh", "-f", "-c", script).stdout.splitlines() == \
        ["migrate", "reload resume resync", "csv json table", "--repair"]


def test_it_is_installed_upgraded_while_it_runs_and_purged(machine, database, topic):
    package = machine.build_package()
    machine.run("dpkg", "--purge", "receiptd")
    machine.run("dpkg", "--install", package)
    unit = Unit(machine, "receiptd")
    try:
        assert unit.show("ActiveState") == "inactive"
        assert unit.systemctl("is-enabled", check=False).stdout.strip() == "disabled"
        service = Service(unit, database, topic)
        service.migrate()
        unit.systemctl("enable", "--now")
        service.send("a", 300)
        before = unit.pid
        # The administrator's file stays, and what ran goes on with the new version.
        changed = machine.path("/etc/receiptd/receiptd.yaml").read_text()
        machine.run("dpkg", "--install", machine.build_package("0.1.0-1+next"), timeout=300)
        assert machine.path("/etc/receiptd/receiptd.yaml").read_text() == changed
        unit.wait_for(lambda: unit.pid not in (0, before), "another process")
        unit.wait_for_state("active")
        assert unit.systemctl("is-enabled").stdout.strip() == "enabled"
        service.send("b", 300)
        service.wait_until_counted("SENT", 600)
        service.audit()
        machine.run("dpkg", "--remove", "receiptd")
        assert unit.show("ActiveState") != "active"
        machine.run("dpkg", "--purge", "receiptd")
        unit.reset()
        places = ("/etc", "/lib/systemd", "/usr/bin", "/usr/share", "/var/lib/systemd", "/var/lib/dpkg/info", "/run/receiptd")
        left = machine.run("find", *places, "-xdev", "-name", "*receiptd*", check=False).stdout.splitlines()
        assert left == []
    finally:
        unit.reset()
        machine.run("dpkg", "--install", package)  # for the others


def test_the_chapter_upgrade_works_as_it_stands(machine, database, topic):
    """Its lines, with this package as the old one: the new one is migrated by its own program before anything restarts."""
    package = machine.build_package()
    machine.run("dpkg", "--install", package)
    unit = Unit(machine, "receiptd")
    role = f"daemon_{database.name}"
    following = machine.build_package("0.1.0-1+next")
    chapter = re.search(r"^## Upgrade\n.*?```sh\n(.*?)```", (ROOT / "docs/operations.md").read_text(), re.MULTILINE | re.DOTALL).group(1)
    lines = chapter.replace("--role receiptd", f"--role {role}").replace("receiptd_VERSION_ARCHITECTURE.deb", str(following))
    lines = lines.replace("--dsn file:", "--as-superuser --dsn file:").replace(f"apt install ./{following}", f"systemctl show -P NRestarts receiptd; dpkg -i {following}")
    try:
        service = Service(unit, database, topic)
        owner = machine.path("/etc/receiptd/owner-secrets/dsn")
        owner.write_text(database.tcp_dsn)
        owner.chmod(0o600)
        machine.run("receiptd", "migrate", "--as-superuser", "--dsn", "file:/etc/receiptd/owner-secrets/dsn", "--role", role)
        database.execute(f"ALTER ROLE {role} LOGIN PASSWORD 'of-the-daemon'")
        daemon_dsn = re.sub(r"(user|password)=\S+", "", database.tcp_dsn) + f" user={role} password=of-the-daemon"
        machine.path("/etc/receiptd/secrets/dsn").write_text(daemon_dsn)
        unit.systemctl("start")
        before = unit.pid
        service.send("a", 100)
        upgrade = machine.run("sh", "-euxc", lines, timeout=300)
        assert "nothing to do" in upgrade.stdout or "committed" in upgrade.stdout
        unit.wait_for(lambda: unit.pid not in (0, before), "another process")
        unit.wait_for_state("active")
        service.send("b", 100)
        service.wait_until_counted("SENT", 200)
    finally:
        unit.reset()
        machine.run("dpkg", "--install", package)
        database.execute(f"DROP OWNED BY {role}")
        database.execute(f"DROP ROLE IF EXISTS {role}")


def test_the_page_of_the_first_start_works_as_it_stands(machine, topic, create_database):
    """Eight commands, then a message, a receipt, and the funnel has it."""
    page = (ROOT / "docs/install.md").read_text()
    blocks = re.findall(r"^```(sh|sql)\n(.*?)```", page, re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks] == ["sh", "sql", *["sh"] * 4, "sql", *["sh"] * 2, "sql", "sh"]
    name = f"first_{secrets.token_hex(4)}"
    server = create_database()
    port = re.search(r"port=(\d+)", server.tcp_dsn).group(1)
    mine = {"receiptd_owner": f"{name}_owner", "DATABASE receiptd ": f"DATABASE {name} ", "ROLE receiptd ": f"ROLE {name} ", "dbname=receiptd": f"dbname={name}",
            "user=receiptd ": f"user={name} ", "--role receiptd": f"--role {name}", "DATABASE_SERVER": f"127.0.0.1 port={port}", "BROKERS": topic.services.brokers,
            "./receiptd_VERSION_ARCHITECTURE.deb": machine.build_package()}

    def as_here(text):
        for page_says, here in mine.items():
            text = text.replace(page_says, here)
        return text

    machine.run("dpkg", "--purge", "receiptd")
    unit = Unit(machine, "receiptd")
    owners = re.sub(r"(user|password|dbname)=\S+", "", server.tcp_dsn) + f" dbname={name} user={name}_owner password=OWNERS_PASSWORD"
    try:
        for number, (kind, text) in enumerate(blocks[:9]):
            if kind == "sql":
                with psycopg.connect(server.dsn, autocommit=True) as administrator:
                    for statement in as_here(text).split(";\n"):
                        statement.strip() and administrator.execute(statement)
            else:
                machine.run("sh", "-euc", as_here(text), timeout=300)
            if number == 4:  # a topic of this test's, and no wait of seconds between two groups of tests
                machine.run("sed", "-i", f"s/dlr-events/{topic}/; s/^kafka:/kafka:\\n  group: {name}/", CONFIGURATION)
        assert unit.show("ActiveState") == "active"
        assert machine.run("systemctl", "is-active", "receiptd-maintain.timer").stdout.strip() == "active"
        with psycopg.connect(owners, autocommit=True) as platform:
            platform.execute(blocks[9][1])
        topic.send(json.loads(re.search(r'`(\{"message_id".*?\})`', page).group(1)))
        unit.wait_for(lambda: "DELIVERED" in machine.run("sh", "-euc", blocks[10][1]).stdout, "the funnel has it")
        # The maintenance has what it needs, too.
        machine.run("systemctl", "start", "receiptd-maintain.service")
    finally:
        machine.run("systemctl", "disable", "--now", "receiptd-maintain.timer", check=False)
        unit.reset()
        machine.run("dpkg", "--purge", "receiptd")
        machine.run("dpkg", "--install", machine.build_package())  # for the others
        with psycopg.connect(server.dsn, autocommit=True) as administrator:
            administrator.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
            for role in administrator.execute("SELECT rolname FROM pg_roles WHERE rolname LIKE %s", [f"{name}%"]).fetchall():
                administrator.execute(f'DROP ROLE "{role[0]}"')


# ---- the configuration is the administrator's: no upgrade asks about it, since an unattended one has nobody to ask

EDITED = "kafka: {brokers: 'kafka.internal:9092', topics: [receipts]}\npostgres: {dsn: host=db.internal}\n"


def repacked(machine, version, changes, without=()):
    """The package with another version, with files that `changes` gives by path, and without others."""
    source, target = machine.build_package(), f"/root/receiptd_{version}.deb"
    machine.run("rm", "-rf", "/root/tree")
    machine.run("dpkg-deb", "--raw-extract", source, "/root/tree")
    machine.run("sed", "-i", f"s/^Version: .*/Version: {version}/", "/root/tree/DEBIAN/control")
    for path, text in changes.items():
        machine.write(f"/root/tree{path}", text, mode=0o755 if path == "/DEBIAN/postinst" else 0o644)
    machine.run("rm", "-f", *(f"/root/tree{path}" for path in without))
    machine.run("dpkg-deb", "-Zgzip", "-z1", "--root-owner-group", "--build", "/root/tree", target)
    return target


def old_layout(machine, version="0.0.9-1"):
    """As releases before this one had it: the whole example as a conffile, and a postinst that put nothing there."""
    postinst = re.sub(r"\nconfiguration=.*?\nfi\n", "", (ROOT / "config/debian/postinst").read_text(), count=1, flags=re.DOTALL)
    assert CONFIGURATION not in postinst
    example = f"{(ROOT / 'config/receiptd.yaml').read_text()}# of {version}\n"
    return repacked(machine, version, {CONFIGURATION: example, "/DEBIAN/postinst": postinst, "/DEBIAN/conffiles": f"{CONFIGURATION}\n"},
                    without=["/usr/share/receiptd/receiptd.yaml"])


def edit(machine, how):
    """What the administrator does; what must stand there afterwards."""
    place = machine.path(CONFIGURATION)
    if how == "edited":
        machine.write(CONFIGURATION, EDITED, mode=0o640)
    elif how == "removed":
        place.unlink()
    elif how == "a link":
        machine.write("/srv/receiptd.yaml", EDITED)
        place.unlink()
        place.symlink_to("/srv/receiptd.yaml")
    return None if how == "removed" else machine.run("cat", CONFIGURATION).stdout


def unattended(machine, deb):
    """As unattended-upgrades does it: no terminal, no answer to a question, no option that answers beforehand."""
    machine.run("env", "DEBIAN_FRONTEND=noninteractive", "apt-get", "-y", "install", "--reinstall", "--allow-downgrades", deb, timeout=300)
    assert machine.run("dpkg-query", "-W", "-f", "${db:Status-Status}", "receiptd").stdout == "installed"
    assert machine.run("dpkg", "--audit").stdout == ""


@pytest.mark.parametrize("how, machine", [("edited", release) for release in RELEASES] + [(how, HERE) for how in ("untouched", "removed", "a link")],
                         indirect=["machine"])
@pytest.mark.parametrize("layout", ["old layout", "this layout"])
def test_an_unattended_upgrade_leaves_the_configuration_alone(machine, layout, how):
    machine.run("dpkg", "--purge", "receiptd")
    try:
        machine.run("dpkg", "--install", old_layout(machine) if layout == "old layout" else machine.build_package())
        expected = edit(machine, how)
        others = {"/usr/share/receiptd/receiptd.yaml": "# the next release has other words\n", "/usr/share/doc/receiptd/examples/receiptd.yaml": "# and keys\n"}
        unattended(machine, machine.build_package())
        unattended(machine, repacked(machine, "0.1.0-2", others))
        left = sorted(machine.path("/etc/receiptd").glob("receiptd.yaml*"))
        assert [path.name for path in left] == ([] if how == "removed" else ["receiptd.yaml"])
        if expected is not None:
            assert machine.run("cat", CONFIGURATION).stdout == expected
            assert machine.path(CONFIGURATION).is_symlink() == (how == "a link")
            assert how != "edited" or machine.path(CONFIGURATION).stat().st_mode & 0o777 == 0o640
        # What was removed and comes back finds its file as it was.
        machine.run("dpkg", "--remove", "receiptd")
        unattended(machine, machine.build_package())
        assert machine.run("cat", CONFIGURATION, check=False).stdout == (expected or "")
    finally:
        machine.run("dpkg", "--purge", "receiptd")
        machine.run("rm", "-f", "/srv/receiptd.yaml")
        machine.run("dpkg", "--install", machine.build_package())  # for the others
    # After a purge it is a first installation.
    assert machine.path(CONFIGURATION).read_text() == (ROOT / "config/minimal.yaml").read_text()
