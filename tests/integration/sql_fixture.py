"""A private PostgreSQL, receiptd's schema in it, and its statements as Python calls.

For the tests of sql/ alone: no daemon, no Kafka. RECEIPTD_TEST_DSN gives a server to use instead (its role must be allowed
to create databases); else one is started under a temporary directory, as `postgres` when the tests run as root.
"""
import atexit
import contextlib
import itertools
import os
import pathlib
import pwd
import re
import shutil
import subprocess
import tempfile

import psycopg
import pytest

from support import inbox as inbox_columns
from support import templates
from support.services import copy_database, definers, with_database
from support.wait import wait_for

ROOT = pathlib.Path(__file__).resolve().parents[2]
SQL = ROOT / "sql"
SCHEMA = "receiptd"

# What a lane's session is set to: the plans are those of the daemon.
SESSION = (
    f"SET search_path = {SCHEMA}; SET plan_cache_mode = force_generic_plan; SET jit = off; SET enable_seqscan = off;"
    " SET synchronous_commit = off"
)

# code: (name, parent, terminal) and flag bit: (name, implied status); docs/semantics.md, written down once more.
STATUSES = {
    0: ("TARGETED", None, False), 100: ("SKIPPED", 0, True), 110: ("SUBMIT_FAILED", 0, False),
    200: ("IN_GTW", 0, False), 300: ("SENT", 200, False), 310: ("DEFERRED", 300, False),
    400: ("UNKNOWN", 300, True), 420: ("EXPIRED", 300, True), 430: ("BOUNCED_SOFT", 300, True),
    440: ("FAILED", 300, True), 450: ("BLOCKED", 300, True), 460: ("REJECTED", 200, True),
    470: ("BOUNCED_HARD", 300, True), 600: ("DELIVERED", 300, False), 650: ("BOUNCED_HARD_EMAIL", 300, True),
    700: ("OPENED", 600, False), 800: ("CLICKED", 700, False),
}
FLAGS = {
    0: ("COMPLAINED", 600), 1: ("UNSUBSCRIBED", 600), 2: ("RESUBSCRIBED", None), 3: ("REPLIED", 600),
    4: ("AUTORESPONDED", 600), 5: ("MACHINE_OPEN", 600), 6: ("BOT_CLICK", 600),
}


class SqlError(Exception):
    def __init__(self, sqlstate, text, answer=None):
        self.sqlstate, self.text, self.answer = sqlstate, text, answer  # answer: of a lane
        super().__init__(f"{sqlstate} {text}")

    @classmethod
    def of(cls, result):
        fields = psycopg.pq.DiagnosticField
        return cls((result.error_field(fields.SQLSTATE) or b"").decode(), (result.error_field(fields.MESSAGE_PRIMARY) or result.error_message).decode())


def bin_directory():
    for directory in sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin"), reverse=True):
        return directory
    return pathlib.Path(shutil.which("initdb") or pytest.skip("no PostgreSQL server binaries")).parent


def start_private_server():
    """Returns a DSN. The server is stopped, and its data removed, when the test process ends."""
    directory = pathlib.Path(tempfile.mkdtemp(prefix="receiptd-sql-"))
    user = "postgres" if os.getuid() == 0 else pwd.getpwuid(os.getuid()).pw_name
    prefix = ["runuser", "-u", user, "--"] if os.getuid() == 0 else []
    if prefix:
        shutil.chown(directory, user)
    bin_dir, data = bin_directory(), directory / "data"

    def run(*command):
        subprocess.run([*prefix, *map(str, command)], check=True, stdout=subprocess.DEVNULL, cwd=directory)

    run(bin_dir / "initdb", "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "-N")
    options = f"-c listen_addresses='' -c unix_socket_directories={directory} -c fsync=off"
    run(bin_dir / "pg_ctl", "-D", data, "-w", "-o", options, "-l", directory / "log", "start")

    def stop():
        run(bin_dir / "pg_ctl", "-D", data, "-m", "immediate", "-w", "stop")
        shutil.rmtree(directory, ignore_errors=True)

    atexit.register(stop)
    return f"host={directory} user=postgres dbname=postgres"


@pytest.fixture(scope="session")
def sql_server():
    return os.environ.get("RECEIPTD_TEST_DSN") or start_private_server()


def fill_in(text, variables):
    """psql's :"name", :'name' and :name."""
    text = re.sub(r"--.*", "", text)
    text = re.sub(r':"(\w+)"', lambda m: '"' + variables[m[1]].replace('"', '""') + '"', text)
    text = re.sub(r":'(\w+)'", lambda m: "'" + variables[m[1]].replace("'", "''") + "'", text)
    return re.sub(r"(?<![:\w\[]):([a-z_]+)\b", lambda m: str(variables[m[1]]), text)


# Columns of the inbox by which ranges find messages, as they are called in our own.
RANGES = {"range_recipient": "recipient", "range_account": "gateway", "range_sent": "created_at"}


def bind_ranges(text, columns=None):
    for variable, column in (columns or RANGES).items():
        text = text.replace(f':"{variable}"', f'"{column}"')
    return text


# Variables of sql/lane/decide: nothing more is wanted of a row.
EXTRA = {"changed": "", "same": "", "seen": "", "updated_at": "now()", "set_times": "", "or_earlier": ""}


def text_of(name, recent_since=None, recent_column="created_at"):
    """The text of a statement: a file, or the files of a folder in order. lane/decide has another one for an inbox with a recent set."""
    if name == "lane/decide" and recent_since is not None:
        name = "lane/decide_recent"
    file = SQL / f"{name}.sql"
    text = file.read_text() if file.exists() else "".join(path.read_text() for path in sorted((SQL / name).glob("*.sql")))
    if name.startswith("lane/decide"):
        text = re.sub(rf"(?<![:\w]):({'|'.join(EXTRA)})\b", lambda found: EXTRA[found[1]], re.sub(r"--.*", "", text))
        text = text.replace(":'since'", f"'{{\"{recent_since}\"}}'").replace(':"column"', f'"{recent_column}"')
    if name == "lane/wake":
        text = text.replace(":payload", "NULL")  # no rule reads it
    return bind_ranges(text)


def literal(value):
    """A parameter in text format."""
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return b"{" + b",".join(element(v) for v in value) + b"}"
    if isinstance(value, bytes):
        return b"\\x" + value.hex().encode()
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return str(value).encode()


def element(value):
    if value is None:
        return b"NULL"
    return b'"' + literal(value).replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"'


class Session:
    """One connection with the statements of sql/ prepared on demand."""

    def __init__(self, dsn, name="test"):
        self.dsn = dsn
        self.connection = psycopg.connect(dsn, autocommit=True, application_name=f"receiptd/test/{name}")
        self.connection.execute(SESSION)
        self.prepared = set()
        self.lane = None  # what sends its batches (sql_lane.py): a connection of its own, with these settings
        self.rules = ()
        self.dimensions = ()  # columns of the inbox, each called as its dimension is, or pairs (dimension, column)
        self.groups = {}  # kinds of groups and their columns of the inbox
        self.actions, self.timeline = False, False
        self.recent_since, self.recent_column = None, "created_at"  # the boundary of the inbox's recent set, and its column
        self.role, self.lock_timeout_ms, self.ladder = None, 60_000, None  # of the lane; ladder: (statuses, flags)

    def prepare(self, name):
        if name not in self.prepared:
            self.check(self.connection.pgconn.prepare(name.encode(), text_of(name, self.recent_since, self.recent_column).encode()))
            self.prepared.add(name)

    @staticmethod
    def check(result):
        if result.status not in (psycopg.pq.ExecStatus.TUPLES_OK, psycopg.pq.ExecStatus.COMMAND_OK):
            raise SqlError.of(result)
        return result

    def run(self, name, *parameters):
        """Runs sql/<name>.sql; rows as lists of dicts of texts (None for NULL)."""
        self.prepare(name)
        result = self.check(self.connection.pgconn.exec_prepared(name.encode(), [literal(p) for p in parameters]))
        names = [result.fname(i).decode() for i in range(result.nfields)]
        return [{n: (lambda v: v.decode() if v is not None else None)(result.get_value(r, i))
                 for i, n in enumerate(names)} for r in range(result.ntuples)]

    def one(self, name, *parameters):
        rows = self.run(name, *parameters)
        assert len(rows) == 1
        return rows[0]

    def forget(self):
        """After a transaction that was rolled back: psycopg may have deallocated all statements then."""
        self.do("DEALLOCATE ALL")
        self.prepared.clear()

    @contextlib.contextmanager
    def transaction(self):
        with self.connection.transaction():
            yield self

    def query(self, text, parameters=None):
        return self.connection.execute(text, parameters).fetchall()

    def do(self, text, parameters=None):
        self.connection.execute(text, parameters)

    def explain(self, name, *parameters, options="COSTS"):
        self.prepare(name)
        values = ", ".join("NULL" if p is None else "'" + literal(p).decode().replace("'", "''") + "'" for p in parameters)
        call = f"EXPLAIN ({options}) EXECUTE \"{name}\"" + (f"({values})" if parameters else "")
        return "\n".join(row[0] for row in self.query(call))

    @property
    def backends(self):
        return [self.connection.info.backend_pid, *([self.lane.pid] if self.lane else [])]

    def close_lane(self):
        if self.lane is not None:
            self.lane.close()
        self.lane = None

    def close(self):
        self.close_lane()
        self.connection.close()


class Database:
    """A database of its own with the schema, made by the files that the migration runs: once, then it is copied."""

    def __init__(self, server, inbox=None, setup=None, targeted=True, dimensions=(), groups=None, ranges=False):
        self.server = server
        self.sessions = []
        kind = repr(("sql", inbox, setup, targeted, dimensions, groups, ranges))
        self.template = templates.template(server, kind, lambda name: self.migrate(name, inbox, setup, targeted, dimensions, groups or {}, ranges))
        self.name = f"receiptd_test_{os.getpid()}_{next(self.numbers)}"
        self.dsn = with_database(server, self.name)
        with psycopg.connect(server, autocommit=True) as connection:
            copy_database(connection, self.name, self.template)

    numbers = itertools.count()

    def migrate(self, name, inbox, setup, targeted, dimensions, groups, ranges):
        columns = ("message_id", "org_id", "campaign_id", "status", "prev_status", "flags", "prev_flags", "status_at",
                   "updated_at")
        variables = {"schema": SCHEMA, "fillfactor": 50, "inbox_schema": SCHEMA, "inbox_table": "message_inbox", "created_at": ""}
        variables.update({c: c for c in columns})
        variables.update({"dimension_kinds": "{" + ",".join(f"by_{name}" for name in dimensions) + "}", "dimension_columns": "{" + ",".join(dimensions) + "}"})
        variables.update({"group_kinds": "{" + ",".join(groups) + "}", "group_columns": "{" + ",".join(groups.values()) + "}"})
        variables.update(inbox or {})
        variables.update(inbox_columns.variables(variables))
        dsn = with_database(self.server, name)
        with psycopg.connect(dsn) as connection:
            if setup:
                connection.execute(setup)
            connection.execute(fill_in((SQL / "migrate/schema.sql").read_text(), variables))
            connection.execute(f"SET search_path = {SCHEMA}")
            connection.execute("SET check_function_bodies = off")
            for folder in ("tables", "functions", "views"):
                for path in sorted((SQL / folder).glob("*.sql")):
                    connection.execute(path.read_text())
            connection.execute(fill_in((SQL / "migrate/functions_private.sql").read_text(), variables))
            columns = [("inbox_dimension", {"column": name}) for name in (*dimensions, *groups.values()) if not inbox]
            columns += [("ranges", RANGES)] if ranges else []
            files = ["inbox_view" if inbox else "inbox_table"] + columns + (["inbox_trigger"] if targeted else [])
            for role, kind in zip(definers(name, SCHEMA), ("counter_role", "watcher_role")):
                variables.update({"role": role, "purpose": "test", kind: role})
                connection.execute(fill_in((SQL / "migrate/definer_create.sql").read_text(), variables))
            files += (["definer_counter", *([] if inbox else ["definer_times"])] if targeted else []) + ["definer_watcher", "definer_stats"]
            for name in files:
                name, more = name if isinstance(name, tuple) else (name, {})
                connection.execute(fill_in((SQL / f"migrate/{name}.sql").read_text(), variables | more))
        session = Session(dsn, "migrate")
        self.fill_ladder(session)
        session.close()

    @staticmethod
    def ladder_rows(statuses=None, flags=None):
        rows = [(c, n, p, t, None, None) for c, (n, p, t) in (statuses or STATUSES).items()]
        return rows + [(9001 + b, n, None, False, b, i) for b, (n, i) in (flags or FLAGS).items()]

    def fill_ladder(self, session, statuses=None, flags=None):
        rows = self.ladder_rows(statuses, flags)
        session.run("migrate/ladder_fill", *[list(column) for column in zip(*rows)], ["email"], ["BOUNCED_HARD"],
                    ["BOUNCED_HARD_EMAIL"])

    def session(self, name="test"):
        self.sessions.append(Session(self.dsn, name))
        return self.sessions[-1]

    def drop(self):
        try:
            for session in self.sessions:
                session.close()
        finally:
            with psycopg.connect(self.server, autocommit=True) as connection:
                connection.execute(f"DROP DATABASE {self.name} WITH (FORCE)")


def wait_for_lock(watcher, waiting):
    """Until the session or its lane, busy in another thread, waits for somebody."""
    def waits():
        return watcher.query("SELECT bool_or(pg_blocking_pids(pid) <> '{}') FROM unnest(%s::int4[]) pid", [waiting.backends]) == [(True,)]
    wait_for(waits, 10, "a backend waits")


@pytest.fixture
def database(sql_server):
    made = Database(sql_server)
    yield made
    made.drop()
