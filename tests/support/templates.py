"""Schemas of tests, made once in a run and then copied, by all workers: a copy of a database takes a tenth of `receiptd migrate`."""

import hashlib
import json
import os

import psycopg

from support.daemon import Receiptd, binary, merge
from support.services import copy_database, definers, with_database

RUN = os.environ.setdefault("RECEIPTD_TEST_RUN", os.urandom(6).hex())  # workers of pytest-xdist inherit it
PREFIX = f"template_{RUN}_"
ELSEWHERE = ("kafka", "http", "control", "batch")  # settings that make no difference to the schema


def template(server, kind, make):
    """The name of the database of this kind. Whoever asks first makes it, by make(name) in an empty one; the others wait meanwhile."""
    name = PREFIX + hashlib.sha256(kind.encode()).hexdigest()[:16]
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("SELECT pg_advisory_lock(hashtext(%s))", (name,))
        if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s AND datistemplate", (name,)).fetchone():
            connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
            copy_database(connection, name)
            make(name)
            connection.execute(f'ALTER DATABASE "{name}" IS_TEMPLATE true')
    return name


def drop_all(server):
    with psycopg.connect(server, autocommit=True) as connection:
        for (name,) in connection.execute("SELECT datname FROM pg_database WHERE starts_with(datname, %s)", (PREFIX,)).fetchall():
            connection.execute(f'ALTER DATABASE "{name}" IS_TEMPLATE false')
            connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
            for role in definers(name):
                connection.execute(f'DROP ROLE IF EXISTS "{role}"')


def migrate(receiptd, database):
    """`receiptd migrate`; a copy of what it makes with these settings, if the test has not touched the database yet."""
    if database.made or receiptd.settings["postgres"]["dsn"] != database.address:
        receiptd.migrate()
        return

    def make(name):
        directory = receiptd.directory / "template"
        directory.mkdir()
        first = Receiptd(directory, None, None, ())
        first.configure(**merge(receiptd.settings, {"postgres": {"dsn": with_database(database.services.dsn, name)}}))
        first.migrate()

    database.template = template(database.services.dsn, _kind(receiptd.settings), make)


def _kind(settings):
    chosen = {name: value for name, value in settings.items() if name not in ELSEWHERE}
    chosen["postgres"] = {name: value for name, value in settings["postgres"].items() if name != "dsn"}
    return json.dumps([str(binary()), chosen], sort_keys=True, default=str)
