"""The commands of receiptd against a real PostgreSQL: output, formats, exit codes, and what they leave in the database.

RECEIPTD_TEST_DSN names a server on which databases and roles may be created; without it a private one is started.
RECEIPTD_BINARY names another build than build/receiptd. No Kafka is needed.
"""
import contextlib
import csv
import io
import itertools
import json
import os
import pathlib
import pwd
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from types import SimpleNamespace

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from support import templates
from support.services import Database, definers

ROOT = pathlib.Path(__file__).resolve().parents[2]
BINARY = pathlib.Path(os.environ.get("RECEIPTD_BINARY", ROOT / "build/receiptd"))
USAGE, NOINPUT, UNAVAILABLE, NOPERM, CONFIG = 64, 66, 69, 77, 78
STATUSES = [
    ("TARGETED", 0, None), ("SKIPPED", 100, "TARGETED"), ("SUBMIT_FAILED", 110, "TARGETED"),
    ("IN_GTW", 200, "TARGETED"), ("SENT", 300, "IN_GTW"), ("FAILED", 440, "SENT"), ("DELIVERED", 600, "SENT"),
    ("OPENED", 700, "DELIVERED"), ("CLICKED", 800, "OPENED"),
]
FLAGS = [("COMPLAINED", "DELIVERED"), ("UNSUBSCRIBED", "DELIVERED")]
numbers = itertools.count()


# ---- a server, a database, an installation -------------------------------------------------------------------------

@pytest.fixture(scope="session")
def command_server():
    if os.environ.get("RECEIPTD_TEST_DSN"):
        yield os.environ["RECEIPTD_TEST_DSN"]
        return
    directory = pathlib.Path(tempfile.mkdtemp(prefix="receiptd-commands-"))
    user = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
    prefix = ["runuser", "-u", user, "--"] if os.getuid() == 0 else []
    if prefix:
        shutil.chown(directory, user)
    binaries = max(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), key=lambda p: int(p.parent.name))

    def run(*command):
        subprocess.run([*prefix, *map(str, command)], check=True, stdout=subprocess.DEVNULL, cwd=directory)

    run(binaries / "initdb", "-D", directory / "data", "-A", "trust", "-U", "postgres", "-E", "UTF8", "-N")
    options = f"-c listen_addresses='' -c unix_socket_directories={directory} -c fsync=off"
    run(binaries / "pg_ctl", "-D", directory / "data", "-w", "-o", options, "-l", directory / "log", "start")
    yield f"host={directory} user=postgres dbname=postgres"
    run(binaries / "pg_ctl", "-D", directory / "data", "-m", "immediate", "-w", "stop")
    shutil.rmtree(directory, ignore_errors=True)


class Result:
    def __init__(self, process):
        self.code, self.out, self.err = process.returncode, process.stdout.decode(), process.stderr.decode()

    def __repr__(self):
        return f"exit code {self.code}\n{self.out}\n{self.err}"


class Installation:
    """A database and a configuration file for it."""

    def __init__(self, server, directory):
        self.server, self.directory = server, directory
        self.database = Database(SimpleNamespace(dsn=server), f"receiptd_commands_{os.getpid()}_{next(numbers)}")
        self.config = {"kafka": {"brokers": "127.0.0.1:9", "topics": ["dlr-events"], "group": "receiptd"},
                       "postgres": {"dsn": self.database.address}, "lanes": 8}
        self.path = directory / "receiptd.yaml"
        self.write()

    @property
    def name(self):
        return self.database.name

    @property
    def dsn(self):
        return self.database.dsn

    @property
    def connection(self):
        return self.database.connection

    def write(self, **changes):
        self.config.update(changes)
        self.path.write_text(json.dumps(self.config))  # JSON is YAML too

    def command(self, *arguments):
        self.database.make()
        as_superuser = ["--as-superuser"] if arguments[0] == "migrate" else []
        return [str(BINARY), *arguments, *as_superuser, "--config", str(self.path)]

    def run(self, *arguments, code=0):
        result = Result(subprocess.run(self.command(*arguments), capture_output=True, timeout=60))
        assert result.code == code, result
        return result

    def start(self, *arguments):
        return subprocess.Popen(self.command(*arguments), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def query(self, text, *parameters):
        return self.connection.execute(text, parameters or None).fetchall()

    def do(self, text, *parameters):
        self.connection.execute(text, parameters or None)

    def migrate(self):
        return self.run("migrate")

    def add_messages(self, campaign, *statuses, flags=0):
        for status in statuses:
            self.do("INSERT INTO receiptd.message_inbox (message_id, campaign_id, status, flags) VALUES (%s, %s, %s, %s)",
                    f"m{next(numbers)}", campaign, status, flags)

    def ladder(self, statuses=STATUSES, flags=FLAGS, **changes):
        """A ladder of our own; changes: NAME=(code, parent), None to leave it out."""
        rows = {name: (code, parent) for name, code, parent in statuses}
        rows.update(changes)
        kept = [{"name": n, "code": r[0], **({"parent": r[1]} if r[1] else {})} for n, r in rows.items() if r]
        self.write(ladder={"statuses": kept, "flags": [{"name": n, "implies": i} for n, i in flags]})

    def everything(self):
        """All that a command could have changed, as text."""
        tables = self.query("SELECT relname, relkind FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace "
                            "WHERE nspname = 'receiptd' ORDER BY 1")
        content = [(name, self.query(f"SELECT t::text FROM receiptd.{name} t ORDER BY 1"))
                   for name, kind in tables if kind in "rv"]
        comments = self.query("SELECT objoid::regclass::text, description FROM pg_description "
                              "WHERE description LIKE 'receiptd%' ORDER BY 1")
        return repr((tables, content, comments))

    def close(self):
        self.database.drop()
        if self.database.made:
            with psycopg.connect(self.server, autocommit=True) as connection:
                for role in definers(self.name, "receipts_2"):
                    connection.execute(f"DROP ROLE IF EXISTS {role}")


@pytest.fixture
def empty(command_server, tmp_path):
    installation = Installation(command_server, tmp_path)
    yield installation
    installation.close()


@pytest.fixture(scope="session")
def migrated(command_server, tmp_path_factory):
    """The template of the tests with `installed`."""
    def make(name):
        installation = Installation(command_server, tmp_path_factory.mktemp("migrated"))
        installation.database = Database(SimpleNamespace(dsn=command_server), name, made=True)
        installation.write(postgres={"dsn": installation.dsn})
        installation.migrate()

    return templates.template(command_server, f"commands {BINARY}", make)


@pytest.fixture
def installed(empty, migrated):
    assert not empty.database.made, "something has used the database before"
    empty.database.template = migrated
    return empty


@pytest.fixture
def stranger(empty):
    """A role that may connect and nothing else; the configuration uses it from now on."""
    name = f"receiptd_stranger_{os.getpid()}_{next(numbers)}"
    empty.do(f"CREATE ROLE {name} LOGIN PASSWORD 'secret-of-the-stranger'")
    empty.config["postgres"]["dsn"] = make_conninfo(empty.dsn, user=name, password="secret-of-the-stranger")
    empty.write()
    yield name
    empty.do(f"DROP OWNED BY {name}")
    empty.do(f"DROP ROLE {name}")


def receiptd(*arguments):
    return Result(subprocess.run([str(BINARY), *arguments], capture_output=True, timeout=60))


def wait_for(condition, what):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def blocked(installation, command):
    return lambda: installation.query(
        "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = %s "
        "AND cardinality(pg_blocking_pids(pid)) > 0", f"receiptd/{command}")


def csv_rows(text):
    assert text.endswith("\r\n")
    return list(csv.DictReader(io.StringIO(text, newline="")))


# ---- the command line ----------------------------------------------------------------------------------------------

COMMANDS = [name for name in re.findall(r'^        \.name = "([\w-]+)"', (ROOT / "src/commands/command.c").read_text(), re.MULTILINE)
            if name != "generate"]  # which reads no configuration


def test_help_lists_every_command():
    result = receiptd("--help")
    assert result.code == 0
    for command in COMMANDS:
        assert f"\n  {command} " in result.out


@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_a_help_of_its_own_that_fits_a_terminal(command):
    result = receiptd(command, "--help")
    assert result.code == 0 and result.err == ""
    assert result.out.startswith(f"receiptd {command}: ") and "--config FILE" in result.out
    assert max(map(len, result.out.splitlines())) <= 100


@pytest.mark.parametrize("arguments, words", [
    ([], "Usage"), (["funel"], 'did you mean "funnel"'), (["xyzzy"], "unknown command"),
    (["funnel", "--formt=json"], "did you mean --format"), (["audit", "--qqq"], "unknown option --qqq"),
    (["audit", "-q"], "unknown option -q"), (["audit", "--campaign"], "needs a value"),
    (["audit", "--repair=yes"], "takes no value"), (["funnel", "a", "b"], 'unexpected argument "b"'),
    (["audit", "a"], "unexpected argument"), (["funnel", "--format", "xml"], "unknown format"),
    (["dead-letters", "--limit", "0"], "--limit"), (["dead-letters", "--limit", "9x"], "--limit"),
    (["dead-letters", "--reason", "bad_hair"], "unknown_status"), (["check-config", "--print", "--example"], "exclude"),
    (["dead-letters", "--redrive", "--payload"], "--payload"),
])
def test_a_wrong_command_line_is_a_usage_error_that_says_what_is_wrong(arguments, words):
    result = receiptd(*arguments)
    assert result.code == USAGE and words in result.err and result.out == ""


def test_version_names_all_libraries():
    words = {line.split()[0]: line.split(maxsplit=1)[1] for line in receiptd("version").out.splitlines()}
    assert words["receiptd"] == "0.1.0"
    assert {"librdkafka", "libpq", "libuv", "libcyaml", "zlib", "compiler"} <= words.keys()


def test_a_full_disk_for_the_output_is_an_error():
    with open("/dev/full", "w") as full:
        process = subprocess.run([str(BINARY), "version"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert process.returncode == 74 and "standard output" in process.stderr


# ---- check-config --------------------------------------------------------------------------------------------------

def test_check_config_says_valid_or_where_the_error_is(empty):
    assert empty.run("check-config").out == f"{empty.path} is valid\n"
    empty.write(lanez=8)
    assert str(empty.path) in empty.run("check-config", code=CONFIG).err
    assert "/nowhere.yaml" in receiptd("check-config", "--config", "/nowhere.yaml").err
    assert receiptd("check-config", "--config", "/nowhere.yaml").code == NOINPUT


def test_check_config_notes_what_is_weak_and_is_content_with_the_examples(empty, tmp_path, monkeypatch):
    (tmp_path / "dsn").write_text("host=/run/postgresql dbname=receiptd\n")
    (tmp_path / "dsn").chmod(0o600)
    monkeypatch.setenv("RECEIPTD_SECRETS", f"{tmp_path}/")
    for name in ("receiptd.yaml", "minimal.yaml"):
        example = receiptd("check-config", "--config", str(ROOT / "config" / name))
        assert (example.code, example.err) == (0, ""), name
    empty.write(kafka={"brokers": "127.0.0.1:1", "topics": ["t"], "properties": {"enable.ssl.certificate.verification": "false"}},
                http={"listen": "0.0.0.0:0"})
    result = empty.run("check-config")
    assert result.out == f"{empty.path} is valid\n"
    assert [line.split(": ")[:2] for line in result.err.splitlines()] == [
        ["note", "kafka.properties.enable.ssl.certificate.verification"], ["note", "http.listen"], ["note", "http.listen"]]


def test_check_config_says_what_once_per_means_and_that_it_holds_for_each_pipeline(empty):
    def pipeline(name, **more):
        return {"name": name, "on": "CLICKED", "produce": {"topic": "out", "key": "message_id"}, **more}

    empty.write(pipelines=[pipeline("a", once_per=["org_id", "person"]), pipeline("b", subject="person", once_per=["subject", "org_id"]),
                           pipeline("c", once_per="person"), pipeline("d"), pipeline("e")])
    assert empty.run("check-config").err.splitlines() == [
        "note: pipelines.a.once_per: one run for each org_id and person, for ever, of this pipeline alone",
        "note: pipelines.b.once_per: one run for each person and org_id, for ever, of this pipeline alone; whoever has passed a may begin it, too",
        "note: pipelines.c.once_per: one run for each person, for ever, of this pipeline alone"]


def test_no_example_of_ours_has_a_secret_outside_of_a_file():
    for path in (ROOT / "config/receiptd.yaml", *(ROOT / "docs").glob("*.md"), *(ROOT / "config/kubernetes").rglob("*.yaml")):
        for line in path.read_text().splitlines():
            if re.match(r"[#\s-]*(secrets|token|runs_token|sasl\.password|verify_token):.*\$\{", line):
                assert "file:" in line and "}:-" not in line.replace("file:${RECEIPTD_SECRETS:-", ""), (path, line)


def test_check_config_prints_the_effective_configuration_without_secrets(empty):
    empty.config["postgres"]["dsn"] = make_conninfo(empty.dsn, password="do-not-show")
    empty.write()
    result = empty.run("check-config", "--print")
    assert "lanes: 8" in result.out and "do-not-show" not in result.out


def test_reference_and_example_need_no_file():
    assert "`lanes`" in receiptd("check-config", "--reference", "--config", "/nowhere.yaml").out
    assert "kafka:" in receiptd("check-config", "--example").out


# ---- errors of the database ----------------------------------------------------------------------------------------

def test_a_server_that_is_not_there_is_unavailable(empty, tmp_path):
    empty.write(postgres={"dsn": f"host={tmp_path} dbname=x"})
    result = empty.run("funnel", code=UNAVAILABLE)
    assert "cannot connect" in result.err and "HINT" in result.err


@pytest.mark.parametrize("arguments", [
    ["migrate"], ["migrate", "--dry-run"], ["audit"], ["audit", "--repair"], ["dead-letters"], ["dead-letters", "--redrive"],
    ["explain", "m"], ["actions", "list"], ["actions", "show", "1"], ["actions", "retry", "all"], ["actions", "cancel", "1"],
    ["ctl", "org", "list"], ["ctl", "org", "pause", "acme"], ["ctl", "pipeline", "list"], ["ctl", "pipeline", "pause", "p"]])
def test_every_command_says_which_server_is_not_there(empty, tmp_path, arguments):
    empty.write(postgres={"dsn": f"host={tmp_path} port=5999 dbname=x"})
    result = empty.run(*arguments, code=UNAVAILABLE)
    assert str(tmp_path) in result.err and "5999" in result.err and "HINT: " in result.err and result.out == ""


def test_a_silent_server_is_given_up_after_the_connect_timeout(empty):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        empty.write(postgres={"dsn": f"host=127.0.0.1 port={listener.getsockname()[1]}", "connect_timeout": "1s"})
        begin = time.monotonic()
        assert "time-out" in empty.run("funnel", code=UNAVAILABLE).err
        assert time.monotonic() - begin < 20


def test_wrong_names_of_role_and_database_are_told_apart(empty):
    empty.write(postgres={"dsn": make_conninfo(empty.dsn, user="no_such_role_here")})
    assert "no_such_role_here" in empty.run("funnel", code=NOPERM).err
    empty.write(postgres={"dsn": make_conninfo(empty.dsn, dbname="no_such_database")})
    assert "no_such_database" in empty.run("funnel", code=CONFIG).err


def test_a_broken_dsn_is_a_configuration_error_that_shows_none_of_it(empty):
    empty.write(postgres={"dsn": "host=x password='hush hush"})
    for command in ("funnel", "migrate", "audit"):
        result = empty.run(command, code=CONFIG)
        assert "postgres.dsn" in result.err and "hush" not in result.err + result.out


@pytest.mark.parametrize("arguments", [["funnel"], ["audit"], ["audit", "--repair"], ["dead-letters"],
                                       ["dead-letters", "--redrive"]])
def test_before_the_first_migration_commands_say_to_migrate(empty, arguments):
    assert "receiptd migrate" in empty.run(*arguments, code=CONFIG).err


def test_without_rights_commands_say_so(installed, stranger):
    assert "permission denied for schema receiptd" in installed.run("migrate", "--dry-run", code=NOPERM).err
    installed.do(f"GRANT USAGE ON SCHEMA receiptd TO {stranger}")
    assert "permission denied" in installed.run("funnel", code=NOPERM).err
    assert "permission denied" in installed.run("audit", "--repair", code=NOPERM).err
    assert "secret-of-the-stranger" not in installed.run("dead-letters", code=NOPERM).err


def test_interrupting_a_command_ends_its_statement_on_the_server(installed):
    with psycopg.connect(installed.dsn) as other:
        other.execute("LOCK TABLE receiptd.campaign_funnel_total")
        process = installed.start("funnel")
        wait_for(blocked(installed, "funnel"), "funnel waits for the lock")
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130 and "interrupted" in process.stderr.read()
        assert not installed.query("SELECT 1 FROM pg_stat_activity WHERE application_name = 'receiptd/funnel' "
                                   "AND state = 'active' AND datname = current_database()")


# ---- migrate -------------------------------------------------------------------------------------------------------

def test_migrate_makes_everything_and_says_each_step_then_has_nothing_to_do(empty):
    result = empty.migrate()
    for word in ("schema receiptd", "version 8", "ladder", "message_inbox", "TARGETED", "committed"):
        assert word in result.out
    before = empty.everything()
    assert empty.migrate().out == "nothing to do\n"
    assert empty.everything() == before
    assert empty.query("SELECT version FROM receiptd.schema_version ORDER BY version") == [(8,)]


def test_migrate_in_another_schema_with_an_awkward_name(empty):
    empty.config["postgres"]["schema"] = "receipts_2"
    empty.write()
    empty.migrate()
    assert empty.migrate().out == "nothing to do\n"
    empty.do("INSERT INTO receipts_2.message_inbox (message_id, campaign_id) VALUES ('m', 'c')")
    assert json.loads(empty.run("funnel", "c", "--format", "json").out)["statuses"][0]["messages"] == 1


def test_dry_run_writes_nothing_and_prints_a_script_that_psql_runs(empty, tmp_path):
    listed = empty.run("migrate", "--dry-run").out.splitlines()
    steps = int(re.fullmatch("([0-9]+) steps, in one transaction; nothing was written:", listed[0]).group(1))
    assert listed[1] == "  1. create schema receiptd" and listed[-1].startswith(f"  {steps}. ") and len(listed) == steps + 1
    script = empty.run("migrate", "--dry-run", "--sql").out
    assert script.splitlines()[-steps - 1:] == [f"-- {line}" for line in listed] and "\nCOMMIT;\n" in script
    assert "goes with --dry-run" in empty.run("migrate", "--sql", code=USAGE).err
    assert empty.query("SELECT 1 FROM pg_namespace WHERE nspname = 'receiptd'") == []
    (tmp_path / "script.sql").write_text(script)
    subprocess.run(["psql", "-qX", "-v", "ON_ERROR_STOP=1", "-d", empty.dsn, "-f", str(tmp_path / "script.sql")],
                   check=True, stdout=subprocess.DEVNULL)
    assert empty.migrate().out == "nothing to do\n"
    assert empty.run("migrate", "--dry-run").out == "nothing to do\n"
    assert empty.run("migrate", "--dry-run", "--sql").out == "-- nothing to do\n"


def test_dry_run_works_for_a_role_without_any_rights(empty, stranger):
    assert "CREATE TABLE message_inbox" in empty.run("migrate", "--dry-run", "--sql").out
    assert f'role "{stranger}" may not make the roles' in empty.run("migrate", code=NOPERM).err
    for role in definers(empty.name):
        empty.do(f"CREATE ROLE {role}; GRANT {role} TO {stranger}")
    assert "permission denied" in empty.run("migrate", code=NOPERM).err
    assert empty.query("SELECT 1 FROM pg_namespace WHERE nspname = 'receiptd'") == []


def test_dry_run_by_a_reader_of_an_old_ladder_shows_the_change_and_makes_none(installed, stranger):
    installed.do(f"GRANT USAGE ON SCHEMA receiptd TO {stranger}")
    installed.do(f"GRANT SELECT ON ALL TABLES IN SCHEMA receiptd TO {stranger}")
    installed.do(f"GRANT EXECUTE ON FUNCTION receiptd.campaign_recount TO {stranger}")
    installed.ladder()
    before = installed.everything()
    assert "SELECT ladder_fill('{0," in installed.run("migrate", "--dry-run", "--sql").out
    assert installed.everything() == before


def test_a_failing_step_leaves_nothing_behind(empty):
    empty.do("CREATE SCHEMA receiptd")
    empty.do("CREATE TABLE receiptd.dead_letter (mine int)")
    result = empty.run("migrate", code=70)
    assert "dead_letter" in result.err and "nothing was changed" in result.err
    assert empty.query("SELECT relname FROM pg_class WHERE relnamespace = 'receiptd'::regnamespace") == [("dead_letter",)]


def test_two_migrations_at_once_take_turns(installed):
    empty = installed
    with psycopg.connect(empty.dsn) as other:
        other.execute("LOCK TABLE receiptd.schema_version IN SHARE UPDATE EXCLUSIVE MODE")
        waiting = empty.start("migrate")
        wait_for(blocked(empty, "migrate"), "migrate waits for the other one")
    out, err = waiting.communicate(timeout=30)
    assert waiting.returncode == 0 and out.startswith("waiting for another migration") and "committed" in out, err
    pairs = [empty.start("migrate") for _ in range(4)]
    assert all(process.communicate(timeout=30) and process.returncode == 0 for process in pairs)


def test_migrations_started_together_on_an_empty_database_all_succeed(empty):
    processes = [empty.start("migrate") for _ in range(4)]
    outs = [process.communicate(timeout=30) for process in processes]
    assert [process.returncode for process in processes] == [0] * 4, outs
    assert sum("committed" in out for out, _ in outs) == 1
    assert sum("nothing to do" in out for out, _ in outs) == 3


def test_a_schema_of_a_newer_receiptd_is_refused(installed):
    installed.do("INSERT INTO receiptd.schema_version (version) VALUES (99)")
    refused = installed.run("migrate", code=CONFIG).err
    assert "version 99" in refused and "HINT: a newer or unreleased receiptd has migrated it" in refused


@pytest.mark.parametrize("versions", [(), (1,), (1, 2, 3, 4, 5, 6, 7)])
def test_a_schema_from_before_the_baseline_is_refused_and_the_error_says_what_to_do(empty, versions):
    empty.do("CREATE SCHEMA receiptd")
    empty.do("CREATE TABLE receiptd.schema_version (version integer PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())")
    empty.do("CREATE TABLE receiptd.message_inbox (message_id text PRIMARY KEY)")
    for version in versions:
        empty.do(f"INSERT INTO receiptd.schema_version (version) VALUES ({version})")
    before = empty.everything()
    for options in ((), ("--dry-run",)):
        refused = empty.run("migrate", *options, code=CONFIG).err
        assert f"schema receiptd has version {max(versions, default=0)}, from before the first release" in refused and "brings forward version 8" in refused
        assert 'HINT: copy what you want to keep, then DROP SCHEMA "receiptd" CASCADE' in refused
    assert empty.everything() == before
    empty.do('DROP SCHEMA "receiptd" CASCADE')
    assert "committed" in empty.migrate().out


# As another release would have left them.
OTHER_PARTS = {
    "functions/action_once_key": "CREATE OR REPLACE FUNCTION receiptd.action_once_key(pipeline text, push text, fields jsonb) RETURNS text LANGUAGE sql AS 'SELECT NULL::text'",
    "functions/watch_server": "ALTER FUNCTION receiptd.watch_server() COST 77",
    "functions/install_inbox_trigger": "CREATE OR REPLACE FUNCTION receiptd.count_inserted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER"
                                       " AS 'BEGIN RETURN NULL; END'",
    "functions/map_inbox": "ALTER FUNCTION receiptd.map_inbox COST 77",
    "views/pipeline_count": "COMMENT ON VIEW receiptd.pipeline_count IS 'of another release'",
}


@pytest.mark.parametrize("mapped", (False, True), ids=("own inbox", "mapped inbox"))
def test_a_function_or_view_whose_file_differs_is_replaced_and_what_it_made_is_remade(empty, mapped):
    if mapped:
        existing_table(empty)
        empty.write(inbox={"table": "public.messages", "columns": COLUMNS})
    empty.migrate()
    definition = """SELECT p.oid::regprocedure::text, pg_get_functiondef(p.oid), p.proowner::regrole::text, p.proacl::text FROM pg_proc p
                    WHERE p.pronamespace = 'receiptd'::regnamespace AND p.proname NOT IN ('count_inserted')
                    UNION ALL SELECT c.oid::regclass::text, pg_get_viewdef(c.oid), c.relowner::regrole::text, NULL FROM pg_class c
                    WHERE c.relnamespace = 'receiptd'::regnamespace AND c.relkind = 'v' ORDER BY 1"""
    counts = "SELECT prosrc, proowner::regrole::text, proacl::text FROM pg_proc WHERE proname = 'count_inserted'"
    before = empty.query(definition), empty.query(counts)
    parts = sorted(name for name in OTHER_PARTS if mapped or name != "functions/map_inbox")
    for name in parts:
        empty.do(OTHER_PARTS[name])
        empty.do("UPDATE receiptd.schema_part SET hash = 'of another release' WHERE name = %s", name)
    said = empty.migrate().out
    assert [line.removeprefix("create or replace ") for line in said.splitlines() if line.startswith("create or replace")] == parts
    assert "create the trigger that counts TARGETED" in said and ("replace view message_inbox" in said) == mapped
    assert (empty.query(definition), empty.query(counts)) == before
    assert empty.migrate().out == "nothing to do\n"


def test_the_fillfactor_follows_the_configuration(installed):
    installed.write(inbox={"fillfactor": 70})
    assert "fillfactor" in installed.migrate().out
    assert installed.query("SELECT reloptions::text LIKE '%%fillfactor=70%%' FROM pg_class "
                           "WHERE oid = 'receiptd.message_inbox'::regclass") == [(True,)]
    assert installed.migrate().out == "nothing to do\n"
    installed.write(inbox={}, counters={"times": True})
    assert "set fillfactor of message_inbox to 40" in installed.migrate().out
    assert installed.migrate().out == "nothing to do\n"


def test_the_trigger_goes_and_comes_with_inbox_targeted(installed):
    def triggers():
        return installed.query("SELECT count(*) FROM pg_trigger WHERE tgname = 'receiptd_count_inserted'")[0][0]

    installed.write(inbox={"targeted": "none"})
    assert "drop the trigger" in installed.run("migrate", "--dry-run").out and triggers() == 1
    installed.migrate()
    assert triggers() == 0 and installed.migrate().out == "nothing to do\n"
    installed.write(inbox={"targeted": "trigger"})
    installed.migrate()
    assert triggers() == 1 and installed.migrate().out == "nothing to do\n"


# ---- the ladder ----------------------------------------------------------------------------------------------------

def pin(installed, topic="dlr-events", ladder_hash="0123456789abcdef"):
    installed.do("INSERT INTO receiptd.consumer_topic (topic, cluster_id, generation, lanes, hash_version, ladder_hash, "
                 "partitions) VALUES (%s, 'k', 5, 8, 1, %s, 1)", topic, ladder_hash)
    installed.do("INSERT INTO receiptd.consumer_progress (topic, partition, lane, next_offset, generation) "
                 "SELECT %s, 0, lane, 100, 5 FROM generate_series(0, 7) lane", topic)


@pytest.mark.parametrize("change, words", [
    ({"FAILED": None}, ["FAILED (440, 3 rows)", "not in the new ladder"]),
    ({"FAILED": (440, "IN_GTW")}, ["FAILED (440, 3 rows)", "parent changes from 300 to 200"]),
    ({"FAILED": (441, "SENT")}, ["FAILED (440, 3 rows)"]),
    ({"SENT": (300, "TARGETED")}, ["SENT (300, 5 rows)", "parent changes from 200 to 0"]),
])
def test_a_ladder_that_contradicts_rows_in_use_is_refused_with_their_count(empty, change, words):
    empty.ladder()
    empty.migrate()
    empty.add_messages("c", 440, 440, 440, 700, 300)
    pin(empty)
    empty.ladder(**change)
    before = empty.everything()
    for arguments in (["migrate"], ["migrate", "--dry-run"]):
        result = empty.run(*arguments, code=CONFIG)
        assert all(word in result.err for word in words), result
        assert empty.everything() == before


def test_flags_and_parked_receipts_count_as_use(empty):
    empty.ladder()
    empty.migrate()
    empty.add_messages("c", 600, 600, flags=2)
    empty.ladder(flags=[FLAGS[0], ("REPLIED", "DELIVERED")])
    assert "UNSUBSCRIBED (9002, 2 rows)" in empty.run("migrate", code=CONFIG).err
    empty.ladder()
    empty.do("INSERT INTO receiptd.parked_event VALUES ('t', 0, 1, 0, 0, 'later', 110, now(), now(), '{}')")
    empty.ladder(SUBMIT_FAILED=None)
    assert "SUBMIT_FAILED (110, 1 rows)" in empty.run("migrate", code=CONFIG).err


def test_a_compatible_change_is_filled_pinned_and_raises_the_generation(empty):
    empty.ladder()
    empty.migrate()
    empty.add_messages("c", 440, 700)
    pin(empty)
    empty.ladder(CONVERTED=(900, "CLICKED"), SKIPPED=None)
    assert "raise their generation" in empty.migrate().out
    assert empty.query("SELECT parent FROM receiptd.message_status_priority WHERE name = 'CONVERTED'") == [(800,)]
    (ladder_hash, generation), = empty.query("SELECT ladder_hash, generation FROM receiptd.consumer_topic")
    assert ladder_hash != "0123456789abcdef" and generation == 6
    assert empty.query("SELECT DISTINCT generation FROM receiptd.consumer_progress") == [(6,)]
    assert empty.migrate().out == "nothing to do\n"
    assert empty.run("audit").out.endswith(" 0 cells drift\n")


def test_a_ladder_that_would_stop_running_daemons_is_refused_with_their_names(empty):
    empty.ladder()
    empty.migrate()
    (stored,), = empty.query("SELECT hash FROM receiptd.status_ladder")
    pin(empty, ladder_hash=stored)
    empty.ladder(FAILED=None, BROKEN=(440, "SENT"))  # renamed
    before = empty.everything()
    with psycopg.connect(empty.dsn, application_name="receiptd/worker-1/control") as daemon, \
            psycopg.connect(empty.dsn, application_name="receiptd/worker-1/lane-0"):
        result = empty.run("migrate", code=CONFIG)
        assert "would stop running daemons: worker-1 (role " in result.err and "--force" in result.err, result
        assert str(daemon.info.backend_pid) in result.err and "nothing was changed" in result.err
        assert empty.everything() == before
        assert "refused unless --force: this ladder stops running daemons: worker-1" in empty.run("migrate", "--dry-run").out
        # What only grows stops nobody, and needs no --force.
        empty.ladder(CONVERTED=(900, "CLICKED"))
        assert "extend the ladder" in empty.migrate().out
        empty.ladder(CONVERTED=(900, "CLICKED"), FAILED=None, BROKEN=(440, "SENT"))
        assert "daemons with the old ladder stop" in empty.run("migrate", "--force").out
    empty.ladder(CONVERTED=(900, "CLICKED"))
    with psycopg.connect(empty.dsn, application_name=f"receiptd/{'h' * 60}/control"):  # PostgreSQL cuts it
        assert f"would stop running daemons: {'h' * 54}" in empty.run("migrate", code=CONFIG).err
    assert "daemons with the old ladder stop" in empty.migrate().out, "none is there"


def test_a_ladder_that_only_grows_fences_nobody_off(empty):
    empty.ladder()
    empty.migrate()
    empty.add_messages("c", 440, 700)
    (stored,), = empty.query("SELECT hash FROM receiptd.status_ladder")
    pin(empty, ladder_hash=stored)
    empty.ladder(CONVERTED=(900, "CLICKED"), flags=[*FLAGS, ("NEW", "CONVERTED")])
    with psycopg.connect(empty.dsn) as batch:  # of a daemon with the old ladder
        batch.execute("UPDATE receiptd.consumer_progress SET next_offset = 101 WHERE lane = 0")
        assert "extend the ladder" in (said := empty.migrate().out) and "go on" in said and "generation" not in said
    assert empty.query("SELECT parent FROM receiptd.message_status_priority WHERE name = 'CONVERTED'") == [(800,)]
    (pinned, generation), = empty.query("SELECT ladder_hash, generation FROM receiptd.consumer_topic")
    assert pinned != stored and [(pinned,)] == empty.query("SELECT hash FROM receiptd.status_ladder") and generation == 5
    assert empty.migrate().out == "nothing to do\n"


def test_a_changed_ladder_waits_for_batches_that_are_on_their_way(empty):
    """Else a status that is about to go could come in between the check and the commit."""
    empty.ladder()
    empty.migrate()
    empty.add_messages("c", 300)
    pin(empty)
    with psycopg.connect(empty.dsn) as batch:
        batch.execute("UPDATE receiptd.consumer_progress SET next_offset = 101 WHERE lane = 0")
        batch.execute("UPDATE receiptd.message_inbox SET status = 440")
        empty.ladder(FAILED=None)
        process = empty.start("migrate")
        wait_for(blocked(empty, "migrate"), "migrate waits for the batch")
    assert process.wait(20) == CONFIG and "FAILED (440, 1 rows)" in process.stderr.read()


# ---- an existing table as the inbox --------------------------------------------------------------------------------

COLUMNS = {"message_id": "id", "org_id": "tenant", "campaign_id": "Campaign", "status": "dlr_status"}


def existing_table(installation, extra=""):
    installation.do('CREATE TABLE public.messages (id varchar(64) PRIMARY KEY, tenant text, "Campaign" text, body text)')
    installation.do("INSERT INTO public.messages VALUES ('old-1', 't', 'c', ''), ('old-2', 't', 'c', '')")
    installation.write(inbox={"table": "public.messages", "columns": COLUMNS})


def test_an_existing_table_is_mapped_gets_its_missing_columns_and_is_counted(empty):
    existing_table(empty)
    result = empty.migrate()
    assert "view message_inbox over public.messages" in result.out and "audit --repair" in result.out
    assert empty.migrate().out == "nothing to do\n"
    empty.do("INSERT INTO public.messages (id, \"Campaign\") VALUES ('new', 'c')")
    assert empty.query("SELECT message_id, status FROM receiptd.message_inbox ORDER BY 1") == [
        ("new", 0), ("old-1", 0), ("old-2", 0)]
    assert "1 cells drift" in empty.run("audit", code=1).out
    assert "0 remain" in empty.run("audit", "--repair").out
    assert json.loads(empty.run("funnel", "c", "--format", "json").out)["statuses"][0]["messages"] == 3


def test_a_changed_mapping_moves_the_view_and_the_trigger(empty):
    existing_table(empty)
    empty.migrate()
    empty.do("ALTER TABLE public.messages RENAME TO messages_old")
    empty.do('CREATE TABLE public.messages (id varchar(64) PRIMARY KEY, tenant text, "Campaign" text, body text)')
    empty.do("COMMENT ON VIEW receiptd.message_inbox IS NULL")
    assert "replace view" in empty.migrate().out
    assert empty.query("SELECT tgrelid::regclass::text FROM pg_trigger "
                       "WHERE tgname = 'receiptd_count_inserted' ORDER BY 1") == [("messages",)]
    assert empty.migrate().out == "nothing to do\n"


def test_a_table_that_cannot_be_the_inbox_is_refused_with_the_reason(empty):
    empty.write(inbox={"table": "public.nothing"})
    assert "public.nothing does not exist" in empty.run("migrate", code=CONFIG).err
    empty.do("CREATE TABLE public.nothing (message_id text, org_id text, campaign_id text)")
    assert "no unique index on message_id" in empty.run("migrate", "--dry-run", code=CONFIG).err
    empty.do("ALTER TABLE public.nothing ADD UNIQUE (message_id), DROP COLUMN org_id")
    assert "org_id" in empty.run("migrate", code=CONFIG).err
    empty.do("ALTER TABLE public.nothing ADD COLUMN org_id text, ADD COLUMN status smallint NOT NULL DEFAULT 0")
    empty.do("INSERT INTO public.nothing (message_id, status) VALUES ('a', 77), ('b', 77)")
    assert "has a column status of its own" in empty.run("migrate", code=CONFIG).err
    empty.write(inbox={"table": "public.nothing", "columns": {"status": "status"}})
    for command in (("migrate",), ("check-config", "--connect")):
        assert "77 (77, 2 rows)" in empty.run(*command, code=CONFIG).err
    assert empty.query("SELECT 1 FROM pg_namespace WHERE nspname = 'receiptd'") == []


def test_our_own_inbox_and_a_mapped_one_do_not_replace_each_other(installed):
    existing_table(installed)
    assert "table of its own" in installed.run("migrate", code=CONFIG).err
    installed.do("DROP TABLE receiptd.message_inbox")
    installed.migrate()
    installed.write(inbox={})
    assert "view over an existing table" in installed.run("migrate", code=CONFIG).err


# ---- funnel --------------------------------------------------------------------------------------------------------

def test_the_funnel_of_a_campaign_as_json_has_the_contract_s_form(installed):
    installed.add_messages("spring", 0, 300, 440, 600, 700, 800)
    installed.add_messages("spring", 600, flags=1)
    installed.add_messages("other", 0)
    funnel = json.loads(installed.run("funnel", "spring", "--format", "json").out)
    assert list(funnel) == ["campaign_id", "org_id", "statuses", "flags", "kpis"] and funnel["campaign_id"] == "spring"
    assert all(list(s) == ["status", "name", "messages", "events", "current"] for s in funnel["statuses"])
    assert all(list(f) == ["status", "name", "messages", "events"] for f in funnel["flags"])
    by_name = {s["name"]: s for s in funnel["statuses"]}
    assert len(by_name) == 17 and by_name["TARGETED"]["messages"] == 7 and by_name["SKIPPED"]["messages"] == 0
    assert (by_name["DELIVERED"]["messages"], by_name["DELIVERED"]["current"]) == (4, 2)
    assert sum(s["current"] for s in funnel["statuses"]) == 7
    assert funnel["flags"][0] == {"status": 9001, "name": "COMPLAINED", "messages": 1, "events": 0}
    assert funnel["kpis"]["delivered_per_sent"] == {"value": 4 / 6, "numerator": 4, "denominator": 6}


HUNDRED = [0] * 10 + [100] * 4 + [200] * 2 + [460] * 4 + [300] * 3 + [310] * 2 + [470] * 5 + [650] * 3 + [430] * 4 + [450] * 2 \
    + [440] * 3 + [420] * 2 + [400] + [600] * 28 + [700] * 15 + [800] * 12
# By hand: IN_GTW 86, SENT 80, DELIVERED 55, OPENED 27, CLICKED 12; 74 that were delivered or failed, 96 that were not skipped.
VENDORS = {
    "mailchimp": {"open_rate": (27, 55), "proxy_excluded_open_rate": (27, 55), "click_rate": (12, 55)},
    "braze": {"Deliveries %": (88, 96), "Bounce Rate": (8, 96), "Spam Rate": (2, 96), "Unsubscribe Rate": (3, 88),
              "Unique Open Rate": "seven days", "Click Rate": "seven days", "Click-to-Open Rate": "seven days",
              "Total Open Rate": "repeated receipts"},
    "sparkpost": {"Accepted Rate": (55, 74), "Rejection Rate": (4, 86), "Hard Bounce Rate": (8, 74),
                  "Soft Bounce Rate": "undetermined", "Undetermined Bounce Rate": "soft", "Block Bounce Rate": "admin",
                  "Admin Bounce Rate": "block", "Delayed Rate": "DEFERRED", "Open Rate": (27, 55),
                  "Open Rate (with prefetched)": (27, 55), "Click-through Rate": (12, 55), "Spam Complaint Rate": (2, 55),
                  "Unsubscribe Rate": "repeated receipts"},
    "clevertap": {"Delivery rate": (55, 86), "Viewed": (27, 86), "Clicks": (12, 86), "CTR": (12, 27),
                  "Converted users": "afterwards"},
    "capillary": {"Delivery Rate": (55, 80), "Contacted Customer": "distinct customers", "Hit Rate": "bought"},
}


def vendor_kpis(installed, vendor, campaign="spring"):
    funnel = json.loads(installed.run("funnel", campaign, f"--kpis={vendor}", "--format=json").out)
    assert list(funnel) == ["campaign_id", "org_id", "statuses", "flags", "vendor", "vendor_kpis"] and funnel["vendor"] == vendor
    return funnel["vendor_kpis"]


def test_each_vendor_s_kpis_have_its_figures_or_the_reason_why_not(installed):
    messages = HUNDRED[:-5]
    installed.add_messages("spring", *messages)
    installed.add_messages("spring", 800, 800, flags=1)
    installed.add_messages("spring", 800, 800, 800, flags=2)
    for vendor, expected in VENDORS.items():
        found = vendor_kpis(installed, vendor)
        assert list(found) == list(expected)
        table = installed.run("funnel", "spring", "--kpis", vendor).out
        for kpi, figure in expected.items():
            kpi_found = found[kpi]
            assert kpi_found["source"].startswith("https://") and kpi_found["source"] in table
            if isinstance(figure, str):
                assert kpi_found["value"] is None and figure in kpi_found["missing"] and "numerator" not in kpi_found
                assert f"-   {kpi_found['missing']}" in table
            else:
                assert (kpi_found["numerator"], kpi_found["denominator"], kpi_found["missing"]) == (*figure, None)
                assert kpi_found["value"] == pytest.approx(figure[0] / figure[1])
        assert max(map(len, table.splitlines())) <= 130


def test_a_vendor_s_opens_are_shown_only_where_the_policy_is_the_vendor_s(installed):
    installed.add_messages("spring", 600, 700, 700, 800)
    installed.add_messages("spring", 600, flags=32)
    found = vendor_kpis(installed, "mailchimp")
    assert "is with machines" in found["open_rate"]["missing"] and "1 messages have MACHINE_OPEN" in found["open_rate"]["missing"]
    assert found["proxy_excluded_open_rate"]["value"] == pytest.approx(3 / 5)
    assert found["click_rate"]["value"] == pytest.approx(1 / 5)
    installed.add_messages("spring", 600, flags=64)
    assert "BOT_CLICK" in vendor_kpis(installed, "mailchimp")["click_rate"]["missing"]
    installed.write(machine={"opens": "count", "clicks": "count"})
    found = vendor_kpis(installed, "mailchimp")
    assert found["open_rate"]["value"] == pytest.approx(3 / 6) and found["proxy_excluded_open_rate"]["value"] is None
    installed.write(machine={"opens": "flag", "clicks": "flag", "rules": [{"kind": "open", "org_id": "o9", "policy": "count"}]})
    assert {kpi["value"] for kpi in vendor_kpis(installed, "mailchimp").values()} == {None}
    installed.add_messages("summer", 600, 700)
    assert vendor_kpis(installed, "mailchimp", "summer")["open_rate"]["value"] == pytest.approx(1 / 2)
    installed.write(machine={"opens": "ignore"})
    found = vendor_kpis(installed, "mailchimp", "summer")
    assert "ignores" in found["open_rate"]["missing"] and found["proxy_excluded_open_rate"]["value"] == pytest.approx(1 / 2)


def test_a_vendor_s_kpi_that_the_ladder_does_not_give_says_so(installed):
    rows = installed.query("SELECT code FROM receiptd.message_status_priority WHERE name = 'BOUNCED_HARD_EMAIL'")
    installed.do(f"UPDATE receiptd.message_status_priority SET name = 'RETURNED' WHERE code = {rows[0][0]}")
    installed.add_messages("spring", 600, 700)
    assert vendor_kpis(installed, "sparkpost")["Accepted Rate"]["missing"] == "the ladder has no BOUNCED_HARD_EMAIL"
    installed.do("DELETE FROM receiptd.status_path WHERE code >= 700 AND ancestor = 600")
    assert vendor_kpis(installed, "capillary")["Delivery Rate"]["value"] == 1
    assert vendor_kpis(installed, "mailchimp")["open_rate"]["missing"] == "in this ladder OPENED is not below DELIVERED"


def test_the_vendors_are_listed_with_their_definitions_and_others_refused(installed):
    listed = json.loads(installed.run("funnel", "--kpis", "list", "--format", "json").out)
    assert {row["vendor"] for row in listed} == set(VENDORS)
    assert [row["kpi"] for row in listed if row["vendor"] == "braze"] == list(VENDORS["braze"])
    braze = next(row for row in listed if row["kpi"] == "Deliveries %")
    assert braze["numerator"] == "TARGETED - SKIPPED - BOUNCED_HARD - BOUNCED_HARD_EMAIL"
    for row in listed:  # what a vendor calls deliveries is one thing in all of its rates
        assert row["vendor"] != "braze" or "DELIVERED" not in (row["numerator"], row["denominator"])
        assert row["vendor"] == "braze" or "- BOUNCED" not in f"{row['numerator']} {row['denominator']}"
    assert 'no KPIs of "acme" are known' in installed.run("funnel", "--kpis", "acme", code=64).err
    assert "csv" in installed.run("funnel", "--kpis", "braze", "--format", "csv", code=64).err


def test_a_rate_without_a_denominator_is_null(installed):
    installed.add_messages("c", 0)
    kpi = json.loads(installed.run("funnel", "c", "--format=json").out)["kpis"]["opened_per_delivered"]
    assert kpi == {"value": None, "numerator": 0, "denominator": 0}


def test_all_funnels_are_an_array_also_when_there_are_none(installed):
    assert json.loads(installed.run("funnel", "--format", "json").out) == []
    assert installed.run("funnel").out == ""
    for campaign in ("b", 'we"ird,\n\\ \x1b[2J é', None):
        installed.add_messages(campaign, 600)
    funnels = json.loads(installed.run("funnel", "--format", "json").out)
    assert [f["campaign_id"] for f in funnels] == ["", "b", 'we"ird,\n\\ \x1b[2J é']
    assert all(f["kpis"]["delivered_per_sent"]["value"] == 1 for f in funnels)
    assert json.loads(installed.run("funnel", "", "--format", "json").out)["campaign_id"] == ""
    rows = csv_rows(installed.run("funnel", "--format", "csv").out)
    assert len(rows) == 3 * 24 and {r["campaign_id"] for r in rows} == {f["campaign_id"] for f in funnels}
    assert "\x1b" not in installed.run("funnel").out


def test_the_table_shows_the_tree_with_shares_and_fits_a_terminal(installed):
    installed.add_messages("spring", *[600] * 8, 700, 440)
    installed.add_messages("spring", 600, flags=2)
    lines = installed.run("funnel", "spring").out.splitlines()
    assert lines[0] == "campaign spring"
    delivered = next(line for line in lines if line.strip().startswith("DELIVERED "))
    opened = next(line for line in lines if line.strip().startswith("OPENED "))
    assert delivered.index("DELIVERED") == 6 and opened.index("OPENED") == 8
    assert "90.9 %" in delivered and "10.0 %" in opened
    assert any(line.startswith("UNSUBSCRIBED ") for line in lines) and not any("SKIPPED" in line for line in lines)
    assert max(map(len, lines)) <= 100 and all(line == line.rstrip() for line in lines)


def test_large_numbers_are_grouped_for_readers_and_plain_for_programs(installed):
    installed.do("INSERT INTO receiptd.message_inbox (message_id, campaign_id, status) SELECT i::text, 'c', 600 FROM generate_series(1, 12345) i")
    assert "12 345" in installed.run("funnel", "c").out
    assert ",12345," in installed.run("funnel", "c", "--format", "csv").out


def test_an_unknown_campaign_is_named(installed):
    result = installed.run("funnel", "nope", code=NOINPUT)
    assert 'no campaign "nope"' in result.err and result.out == ""
    assert 'no campaign "nope"' in installed.run("audit", "--campaign", "nope", code=NOINPUT).err


# ---- audit ---------------------------------------------------------------------------------------------------------

def drift(installed, campaign, status, messages):
    installed.do("INSERT INTO receiptd.counter_delta (kind, campaign_id, status, messages, events) "
                 "VALUES ('funnel', ARRAY[%s], ARRAY[%s]::int2[], ARRAY[%s]::int8[], '{0}')", campaign, status, messages)


def test_audit_finds_drift_repairs_it_and_ends_clean(installed):
    installed.add_messages("a", 0, 600, 700)
    installed.add_messages("b", 440)
    installed.add_messages(None, 300, flags=4)
    result = installed.run("audit")
    assert result.out.startswith("3 campaigns checked, ") and result.out.endswith(", 0 cells drift\n")
    drift(installed, "a", 600, 2)
    drift(installed, "a", 100, -1)
    drift(installed, "gone", 300, 7)
    found = json.loads(installed.run("audit", "--format", "json", code=1).out)
    assert {(d["campaign_id"], d["status"], d["rows"], d["counter"], d["drift"]) for d in found["drift"]} == {
        ("a", 600, 2, 4, 2), ("a", 100, 0, -1, -1), ("gone", 300, 0, 7, 7)}
    assert (found["campaigns"], found["drift_cells"], found["remaining_cells"]) == (4, 3, 3)
    assert "3 cells drift" in installed.run("audit", code=1).out
    assert "0 cells drift" in installed.run("audit", "--campaign", "b").out
    rows = csv_rows(installed.run("audit", "--format", "csv", code=1).out)
    assert [(r["campaign_id"], r["name"], r["drift"]) for r in rows] == [
        ("a", "SKIPPED", "-1"), ("a", "DELIVERED", "2"), ("gone", "SENT", "7")]
    repaired = json.loads(installed.run("audit", "--repair", "--campaign", "a", "--format", "json").out)
    assert (repaired["drift_cells"], repaired["repaired_cells"], repaired["remaining_cells"]) == (2, 2, 0)
    assert "1 cells drift, 1 repaired, 0 remain" in installed.run("audit", "--repair").out
    assert "0 cells drift" in installed.run("audit").out


def test_the_table_of_an_audit_says_rows_and_counter(installed):
    installed.add_messages("a", 600)
    drift(installed, "a", 600, 7)
    header, row = installed.run("audit", code=1).out.splitlines()[:2]
    assert header.split() == ["campaign_id", "status", "name", "rows", "counter", "drift"]
    assert row.split() == ["a", "600", "DELIVERED", "1", "8", "7"]


def test_audit_refuses_what_row_security_would_hide(installed, stranger):
    installed.add_messages("a", 600)
    installed.do(f"GRANT USAGE ON SCHEMA receiptd TO {stranger}; GRANT SELECT ON ALL TABLES IN SCHEMA receiptd TO {stranger}; "
                 f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA receiptd TO {stranger}")
    installed.run("audit")
    installed.do("ALTER TABLE receiptd.message_inbox ENABLE ROW LEVEL SECURITY")
    for arguments in (["audit"], ["audit", "--repair"], ["audit", "--campaign", "a"]):
        result = installed.run(*arguments, code=NOPERM)
        assert 'row-level security policy for table "message_inbox"' in result.err and "BYPASSRLS" in result.err, result


def test_audit_refuses_forced_row_security_behind_a_view(empty, request):
    existing_table(empty)
    empty.migrate()
    stranger = request.getfixturevalue("stranger")
    empty.do(f"GRANT USAGE ON SCHEMA receiptd TO {stranger}; GRANT SELECT ON ALL TABLES IN SCHEMA receiptd TO {stranger}; "
             f"GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA receiptd TO {stranger}")
    empty.do("ALTER TABLE public.messages ENABLE ROW LEVEL SECURITY")
    empty.do("ALTER TABLE public.messages FORCE ROW LEVEL SECURITY")
    empty.run("audit", code=1)  # the owner of the view is a superuser
    empty.do(f"ALTER TABLE public.messages OWNER TO {stranger}")
    empty.do(f"ALTER VIEW receiptd.message_inbox OWNER TO {stranger}")
    assert "FORCE ROW LEVEL SECURITY" in empty.run("audit", code=NOPERM).err
    empty.do("ALTER TABLE public.messages NO FORCE ROW LEVEL SECURITY")
    empty.run("audit", code=1)  # a policy does not bind the owner


def test_audit_leaves_targeted_out_where_nobody_counts_it(installed):
    installed.write(inbox={"targeted": "none"})
    installed.migrate()
    installed.do("INSERT INTO receiptd.message_inbox (message_id, campaign_id) VALUES ('m', 'c')")
    assert "0 cells drift" in installed.run("audit").out


def test_repairs_at_the_same_time_repair_once(installed):
    installed.add_messages("a", *[600] * 10)
    drift(installed, "a", 600, 100)
    with psycopg.connect(installed.dsn) as other:
        other.execute("LOCK TABLE receiptd.campaign_funnel_total IN SHARE ROW EXCLUSIVE MODE")
        repairs = [installed.start("audit", "--repair") for _ in range(3)]
        wait_for(lambda: len(blocked(installed, "audit")()) == 3, "three repairs wait")
    assert [process.wait(20) for process in repairs] == [0, 0, 0]
    assert "0 cells drift" in installed.run("audit").out


def test_audit_recounts_the_histograms_of_times_and_repairs_them(installed):
    installed.write(counters={"times": True})
    installed.add_messages("a", 600, 600, 300)
    installed.do("UPDATE receiptd.message_inbox SET first_gateway = 'g', first_sent_at = 'epoch', first_delivered_at = CASE WHEN status = 600 THEN timestamptz 'epoch' END")
    installed.do("UPDATE receiptd.message_inbox SET first_delivered_at = '1970-01-01 00:00:01+00'"
                 " WHERE message_id = (SELECT min(message_id) FROM receiptd.message_inbox WHERE status = 600)")
    installed.do("INSERT INTO receiptd.counter_delta (kind, campaign_id, at, key, status, messages, events) VALUES "
                 "('time_to_deliver', '{a}', '{-infinity}', '{1}', '{600}', '{1}', '{0}'), "
                 "('gateway_time_to_deliver', '{\"\"}', '{-infinity}', '{g/1}', '{600}', '{3}', '{0}')")
    rows = csv_rows(installed.run("audit", "--format", "csv", code=1).out)
    assert [(r["campaign_id"], r["name"], r["rows"], r["counter"], r["drift"]) for r in rows] == [
        ("a", "DELIVERED, time_to_deliver 1024", "1", "0", "-1"),
        ("", "DELIVERED, gateway_time_to_deliver g/1", "1", "3", "2"),
        ("", "DELIVERED, gateway_time_to_deliver g/1024", "1", "0", "-1")]
    assert "1 cells drift, 1 repaired, 0 remain" in installed.run("audit", "--repair", "--campaign", "a").out
    assert "2 cells drift, 2 repaired, 0 remain" in installed.run("audit", "--repair").out
    assert "0 cells drift" in installed.run("audit").out
    installed.write(counters={"times": False})
    installed.do("UPDATE receiptd.message_inbox SET first_sent_at = NULL")
    assert "0 cells drift" in installed.run("audit").out, "off: not compared"


def test_audit_without_repair_writes_nothing(installed):
    installed.add_messages("a", 600)
    drift(installed, "a", 600, 1)
    before = installed.everything()
    installed.run("audit", code=1)
    assert installed.everything() == before


# ---- dead letters --------------------------------------------------------------------------------------------------

def bury(installed, offset, payload, index=0, reason="unknown_status", topic="dlr-events"):
    installed.do("INSERT INTO receiptd.dead_letter (topic, partition, \"offset\", index, lane, reason, detail, payload, "
                 "traceparent) VALUES (%s, 0, %s, %s, 0, %s, 'why', %s, 'trace')",
                 topic, offset, index, reason, payload if payload is None else payload.encode())


def event(number, status="DELIVERED", **more):
    return json.dumps({"message_id": f"id-{number}", "status": status, "at": "2026-11-21T00:00:00Z", **more})


def test_dead_letters_are_listed_without_their_payloads_unless_asked(installed):
    assert installed.run("dead-letters").out == "no dead letters\n"
    bury(installed, 1, '{"phone": "+4912345"}')
    bury(installed, 2, None, index=-1, reason="empty_record")
    for form in ("table", "json", "csv"):
        out = installed.run("dead-letters", "--format", form).out
        assert "unknown_status" in out and "empty_record" in out and "+4912345" not in out
    letters = json.loads(installed.run("dead-letters", "--format", "json").out)
    by_offset = {letter.pop("offset"): letter for letter in letters}
    assert {k: v for k, v in by_offset[1].items() if k != "dead_at"} == {
        "topic": "dlr-events", "partition": 0, "index": 0, "reason": "unknown_status", "detail": "why", "receipts": 1, "size": 21}
    assert by_offset[2]["size"] is None and by_offset[1]["dead_at"].endswith("Z")
    shown = json.loads(installed.run("dead-letters", "--payload", "--format", "json", "--reason", "unknown_status").out)
    assert [letter["payload"] for letter in shown] == ['{"phone": "+4912345"}']
    rows = csv_rows(installed.run("dead-letters", "--payload", "--format", "csv").out)
    assert {r["payload"] for r in rows} == {'{"phone": "+4912345"}', ""}
    assert len(json.loads(installed.run("dead-letters", "--limit", "1", "--format", "json").out)) == 1


def test_redrive_parks_what_is_valid_now_and_leaves_the_rest(installed):
    pin(installed)
    bury(installed, 1, event(1))
    bury(installed, 2, event(2, status="NO_SUCH"))
    bury(installed, 3, json.dumps([json.loads(event(3)), json.loads(event(4, "OPENED"))]), index=-1,
         reason="too_many_events")
    bury(installed, 4, json.dumps([json.loads(event(5)), {"status": "SENT"}]), index=-1, reason="not_an_event")
    bury(installed, 5, f"[{event(6)}]", index=2, reason="not_an_event")
    bury(installed, 6, '{"events": [%s]}' % event(7), index=3, reason="missing_id")
    bury(installed, 7, f"  {event(8, 'BOUNCED_HARD', channel='email')} \n", index=4)
    bury(installed, 8, None, index=-1, reason="empty_record")
    result = json.loads(installed.run("dead-letters", "--redrive", "--format", "json").out)
    assert result == [{"letters_moved": 3, "receipts_parked": 4, "letters_left": 5}]
    assert installed.query('SELECT "offset", index, message_id, status, traceparent FROM receiptd.parked_event '
                           "ORDER BY 1, 2") == [
        (1, 0, "id-1", 600, "trace"), (3, 0, "id-3", 600, "trace"), (3, 1, "id-4", 700, "trace"),
        (7, 4, "id-8", 650, "trace")]
    assert installed.query("SELECT bool_and(lane = hashtextextended(message_id, 0) & 7 AND at = '2026-11-21 00:00:00Z' "
                           "AND (convert_from(payload, 'UTF8')::json)->>'message_id' = message_id) "
                           "FROM receiptd.parked_event") == [(True,)]
    assert installed.query('SELECT array_agg("offset" ORDER BY 1) FROM receiptd.dead_letter') == [([2, 4, 5, 6, 8],)]
    assert "0 letters moved (0 receipts parked for the daemon), 5 left" in installed.run("dead-letters", "--redrive").out


def test_redrive_keeps_the_gateway_that_an_event_names(installed):
    pin(installed)
    bury(installed, 1, event(1, gateway="acme-twilio"))
    bury(installed, 2, event(2))
    installed.run("dead-letters", "--redrive")
    assert installed.query('SELECT "offset", gateway FROM receiptd.parked_event ORDER BY 1') == [(1, "acme-twilio"), (2, None)]


def test_redrive_heeds_reason_limit_and_the_lanes_that_the_topic_is_pinned_to(installed):
    pin(installed)
    installed.do("UPDATE receiptd.consumer_topic SET lanes = 4")
    for number in range(30):
        bury(installed, number, event(number), reason="aged_out" if number % 3 == 0 else "unknown_message")
    assert "5 letters moved" in installed.run("dead-letters", "--redrive", "--reason", "aged_out", "--limit", "5").out
    assert installed.query("SELECT count(*), bool_and(\"offset\" % 3 = 0) FROM receiptd.parked_event") == [(5, True)]
    assert "25 letters moved" in installed.run("dead-letters", "--redrive").out
    assert installed.query("SELECT bool_and(lane = hashtextextended(message_id, 0) & 3) FROM receiptd.parked_event") == [
        (True,)]


def many_letters(installed, count):
    installed.do("INSERT INTO receiptd.dead_letter (topic, partition, \"offset\", index, lane, reason, payload) "
                 "SELECT 't', i %% 7, i, 0, 0, 'unknown_message', "
                 "convert_to(format('{\"message_id\":\"m%%s\",\"status\":\"SENT\"}', i), 'UTF8') "
                 "FROM generate_series(1, %s) i", count)


def ledger(installed):
    return installed.query('SELECT (SELECT count(*) FROM receiptd.dead_letter), count(*), count(DISTINCT message_id) '
                           "FROM receiptd.parked_event")[0]


def test_redrives_at_the_same_time_move_each_letter_once(installed):
    many_letters(installed, 3000)
    processes = [installed.start("dead-letters", "--redrive", "--format", "json") for _ in range(3)]
    results = [json.loads(process.communicate(timeout=60)[0])[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0]
    assert sum(r["letters_moved"] for r in results) == 3000 == sum(r["receipts_parked"] for r in results)
    assert ledger(installed) == (0, 3000, 3000)


def test_a_killed_redrive_loses_and_doubles_nothing(installed):
    many_letters(installed, 4000)
    stop = threading.Event()

    def wake():  # as the daemon does: what was parked goes on
        with psycopg.connect(installed.dsn, autocommit=True) as daemon:
            while not stop.is_set():
                daemon.execute("WITH w AS (DELETE FROM receiptd.parked_event RETURNING message_id) "
                               "INSERT INTO public.woken SELECT message_id FROM w")

    installed.do("CREATE TABLE public.woken (id text)")
    thread = threading.Thread(target=wake)
    thread.start()
    try:
        for delay in (0.02, 0.05, 0.08, 0.12, 0.2):
            process = installed.start("dead-letters", "--redrive")
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(delay)
            process.kill()
            process.communicate()
        installed.run("dead-letters", "--redrive")
    finally:
        stop.set()
        thread.join()
    left, parked, _ = ledger(installed)
    woken, distinct = installed.query("SELECT count(*), count(DISTINCT id) FROM public.woken")[0]
    assert left == 0 and woken == distinct and woken + parked == 4000


# ---- actions -------------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("arguments, words", [
    (["dance"], 'unknown verb "dance": list, show, retry, cancel or import'), (["list", "7"], "list takes no argument"),
    (["show"], "which action?"), (["show", "all"], '"all" is not the number of an action'),
    (["retry", "-1"], "unknown option -1"), (["retry", "9x"], '"9x" is not the number of an action'),
    (["cancel", "1" * 19], "is not the number of an action"), (["import", "people.csv"], "which file, and which --pipeline?"),
    (["import", "--pipeline", "p"], "which file, and which --pipeline?"), (["list", "--limit", "x"], "--limit"),
    (["list", "--format", "xml"], "unknown format")])
def test_a_mistake_in_a_command_for_actions_is_said(arguments, words):
    result = receiptd("actions", *arguments)
    assert result.code == USAGE and words in result.err and result.out == "", result


def test_actions_that_are_not_there_are_said_in_every_format(installed):
    assert installed.run("actions").out == "no actions\n"
    assert json.loads(installed.run("actions", "list", "--format", "json").out) == []
    assert installed.run("actions", "list", "--format", "csv").out.startswith("id,run_id,pipeline,")
    assert installed.run("actions", "show", "7", code=NOINPUT).out == "no actions\n"
    assert installed.run("actions", "show", "act_7", code=NOINPUT).out == "no actions\n"
    assert installed.run("actions", "retry", "7", code=NOINPUT).out == "0 actions will be tried again\n"
    assert installed.run("actions", "cancel", "7", code=NOINPUT).out == "0 runs cancelled\n"
    assert installed.run("actions", "retry", "all").out == "0 actions will be tried again\n"


def test_actions_say_when_the_database_refuses(installed, stranger):
    installed.do(f"GRANT USAGE ON SCHEMA receiptd TO {stranger}")
    for arguments in (["list"], ["retry", "all"], ["cancel", "1"]):
        assert "permission denied" in installed.run("actions", *arguments, code=NOPERM).err


@pytest.mark.parametrize("text, words", [
    (b"", "the file has no line of titles"), (b"\n\n", "the file has no line of titles"),
    (b'"subject\nann\n', "line 1: a quote is not closed"), (b"subject\0\nann\n", "line 1: there is a NUL byte"),
    (b"," * 64 + b"subject\n", "line 1: has more than 64 fields"), (b"org_id,name\no,ann\n", "line 1: there is no column subject"),
    (b"org_id,subject\no\n", "line 2: has not as many fields as the line of titles"),
    (b"org_id,subject\no,ann,1\n", "line 2: has not as many fields"), (b"org_id,subject\no,\n", "line 2: has no subject"),
    (b"subject\nann\xff\n", "line 2: is not UTF-8"), (b"subject\nann\n\"bob", "line 3: a quote is not closed"),
    (b"subject\n" + b"x" * 70_000, "line 2: is longer than 64 KiB")])
def test_a_file_that_cannot_be_imported_is_refused_with_the_line(installed, tmp_path, text, words):
    file = tmp_path / "people.csv"
    file.write_bytes(text)
    result = installed.run("actions", "import", str(file), "--pipeline", "p", code=65)
    assert words in result.err and result.out == "0 lines read, 0 runs began\n", result


def test_an_import_says_what_is_not_there(installed, tmp_path):
    missing = installed.run("actions", "import", str(tmp_path / "none.csv"), "--pipeline", "p", code=NOINPUT)
    assert "none.csv: cannot be read: No such file" in missing.err
    folder = installed.run("actions", "import", str(tmp_path), "--pipeline", "p", code=65)
    assert "line 1: cannot be read" in folder.err
    file = tmp_path / "people.csv"
    file.write_text("subject\nann\n")
    typo = installed.run("actions", "import", str(file), "--pipeline", "typo", code=NOINPUT).err
    assert "there is no pipeline typo" in typo and "HINT: the database knows none until" in typo
    installed.do("INSERT INTO receiptd.pipeline (name, hash, active, org_field, subject_field, first_step, first_delay_ms) "
                 "VALUES ('welcome', 'h', true, 'org_id', 'message_id', 0, 0)")
    assert "HINT: pipelines: welcome" in installed.run("actions", "import", str(file), "--pipeline", "typo", code=NOINPUT).err
    file.write_text("\ufeffsubject,campaing_id\nann,c\n")
    marked = installed.run("actions", "import", str(file), "--pipeline", "typo", code=NOINPUT).err
    assert 'column "campaing_id" goes into data: did you mean "campaign_id"?' in marked and "no column subject" not in marked
    installed.write(postgres={"dsn": f"host={tmp_path} dbname=x"})
    assert "cannot connect" in installed.run("actions", "import", str(file), "--pipeline", "p", code=UNAVAILABLE).err


# ---- ctl, generate -------------------------------------------------------------------------------------------------

@pytest.mark.parametrize("arguments, words", [
    ([], "which verb?"), (["status", "--format", "csv"], "there is no csv of this: table or json"),
    (["status", "--format", "xml"], "unknown format"), (["status", "--socket", "/tmp/" + "x" * 200], "the socket's path is too long: /tmp/xxx")])
def test_a_mistake_in_a_command_for_the_daemon_is_said(arguments, words):
    result = receiptd("ctl", *arguments)
    assert result.code == USAGE and words in result.err and result.out == "", result


def test_a_daemon_without_a_socket_or_without_an_answer_is_said(empty):
    empty.write(control={"socket": ""})
    assert 'control.socket is "": the daemon has none' in empty.run("ctl", "status", code=USAGE).err
    empty.path.write_text("lanez: 8\n")
    broken = empty.run("ctl", "status", code=CONFIG)
    assert "lanez" in broken.err and "HINT: --socket PATH asks without reading the file" in broken.err
    with tempfile.TemporaryDirectory(prefix="rctl-", dir="/tmp") as folder, socket.socket(socket.AF_UNIX) as listener:
        path = f"{folder}/s"
        nobody = receiptd("ctl", "status", "--socket", path)
        assert nobody.code == UNAVAILABLE and f"no daemon answers at {path}" in nobody.err and "HINT: is it running" in nobody.err
        listener.bind(path)
        listener.listen()
        endless = receiptd("ctl", "log-level", "x" * 5000, "--socket", path)
        assert endless.code == USAGE and "that is too long to ask" in endless.err
        listener.accept()[0].close()
        asking = empty.start("ctl", "status", "--socket", path)
        connection, _ = listener.accept()
        assert connection.recv(100) == b"text status\n"
        connection.close()
        _, said = asking.communicate(timeout=60)
        assert asking.returncode == UNAVAILABLE and "the daemon went away before it answered" in said


def test_manual_pages_and_completions_are_made_of_what_the_program_knows():
    manual, keys = receiptd("generate", "man"), receiptd("generate", "config-man")
    assert ".TH RECEIPTD 1 " in manual.out and all(f"receiptd {command}" in manual.out.replace("\\-", "-") for command in COMMANDS)
    assert ".TH RECEIPTD.YAML 5 " in keys.out and "kafka.brokers" in keys.out and "shutdown.deadline" in keys.out
    bash, zsh = receiptd("generate", "bash"), receiptd("generate", "zsh")
    assert all(command in bash.out and command in zsh.out for command in COMMANDS)
    assert subprocess.run(["bash", "-n"], input=bash.out, text=True, capture_output=True).stderr == ""
    for wrong in ([], ["fish"]):
        result = receiptd("generate", *wrong)
        assert result.code == USAGE and "cannot be made: man, config-man, bash, zsh or sql" in result.err and result.out == ""
