"""Fixtures for the tests of the whole: real PostgreSQL, real Kafka, the real binary.

services            the two servers of the session (from RECEIPTD_TEST_DSN and RECEIPTD_TEST_BROKERS, or our own)
own_services        a pair for tests that stop and kill servers, shared by the tests of one module
create_database()   a database, made at its first use and dropped after the test      database   one of them
create_topic(n)     a fresh topic with n partitions, likewise     topic      one of them, with 8 partitions
receiptd            an installation on `database` and `topic`: configure, command, migrate, start
create_receiptd()   further installations
"""

import contextlib
import os

import psycopg
import pytest

from support import services as service_pairs
from support import templates
from support.daemon import Receiptd, binary

PAIR = "pytest"
SLOW_LIMIT = 1200  # seconds for a test with the mark slow; pytest.ini has those of the others


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config):
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(AtOnce(config))


class AtOnce:
    """Shows a failure when it happens: pytest keeps them until the end of a run, which may be half an hour away.

    RECEIPTD_TEST_FAILED names a file that gets a line for each, for the second try of scripts/test.
    """

    def __init__(self, config):
        self.config = config

    def pytest_runtest_logreport(self, report):
        terminal = self.config.pluginmanager.getplugin("terminalreporter")
        if report.failed and terminal is not None:
            crash = getattr(report.longrepr, "reprcrash", None)
            terminal.write_line("")
            terminal.write_line(f"failed ({report.when}): {report.nodeid}: {crash.message.splitlines()[0] if crash else ''}")
            if os.environ.get("RECEIPTD_TEST_FAILED"):
                with open(os.environ["RECEIPTD_TEST_FAILED"], "a", encoding="utf-8") as names:
                    names.write(f"{self.config.rootpath}/{report.nodeid}\n")


def pytest_collection_modifyitems(items):
    for item in items:
        if item.get_closest_marker("slow") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(SLOW_LIMIT))


def pytest_sessionfinish(session):
    if os.environ.get("RECEIPTD_TEST_DSN") and not hasattr(session.config, "workerinput"):
        with contextlib.suppress(psycopg.OperationalError):  # a failed test may have left it down
            templates.drop_all(os.environ["RECEIPTD_TEST_DSN"])


@pytest.fixture(scope="session")
def services():
    named = service_pairs.from_environment()
    if named is not None:
        yield named
        return
    try:
        yield service_pairs.start(PAIR)
    finally:
        service_pairs.stop(PAIR)


@pytest.fixture(scope="module")
def own_services():
    """A module that wants everything on its own pair overrides `services` with this one."""
    name = f"own-{os.getpid()}"
    try:
        yield service_pairs.start(name)
    finally:
        service_pairs.stop(name)


@pytest.fixture
def create_database(services):
    made = []

    def create(name=None):
        made.append(services.create_database(name))
        return made[-1]

    yield create
    for database in made:
        database.drop()


@pytest.fixture
def create_topic(services):
    made = []

    def create(partitions=8, name=None, **properties):
        made.append(services.create_topic(partitions, name, **properties))
        return made[-1]

    yield create
    for topic in made:
        topic.drop()


@pytest.fixture
def database(create_database):
    return create_database()


@pytest.fixture
def topic(create_topic):
    return create_topic()


@pytest.fixture
def create_receiptd(services, tmp_path):
    made = []

    def create(database, *topics, dsn=None, brokers=None):
        assert binary().exists(), f"{binary()} is not built: make all"
        directory = tmp_path / f"receiptd-{len(made)}"
        directory.mkdir()
        made.append(Receiptd(directory, dsn or database.address, brokers or services.brokers, topics, prepare=database.make))
        return made[-1]

    yield create
    errors = []
    for installation in made:
        try:
            installation.close()
        except AssertionError as error:
            errors.append(str(error))
    assert not errors, "\n".join(errors)


@pytest.fixture
def receiptd(create_receiptd, database, topic):
    return create_receiptd(database, topic)
