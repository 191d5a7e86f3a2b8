"""A connection pooler between receiptd and PostgreSQL: one that gives each session a connection changes nothing, another one is named."""

import pathlib
import shutil
import tempfile
import time

import pytest

from support.pooler import Pooler
from test_database_faults import crash, postgres  # noqa: F401 - a fixture


@pytest.fixture
def create_pooler():
    made = []

    def create(dsn, mode):
        made.append(Pooler(pathlib.Path(tempfile.mkdtemp(prefix="pooler.")), dsn, mode))
        return made[-1]

    yield create
    for pooler in made:
        pooler.end()
        shutil.rmtree(pooler.directory)


@pytest.mark.alone
@pytest.mark.slow
def test_a_session_pool_that_dies_or_loses_its_server_is_exact(create_world, create_pooler, postgres):  # noqa: F811
    world = create_world(150_000, seed=57, batch={"max_events": 1000})
    world.insert(world.stream.late)
    pooler = create_pooler(world.database.dsn, "session")
    world.installation.configure(postgres={"dsn": pooler.dsn})
    process = world.installation.start()
    feeder = world.feed(per_second=10_000)
    for turn in range(4):
        world.wait_for_progress(process)
        time.sleep(world.random.uniform(0.1, 1.0))
        if turn % 2 == 0:
            pooler.end()
            pooler.start()
        else:
            crash(world, postgres)
    feeder.join()
    world.finish(process, timeout=90)
    assert process.log().count("is not connected") > 4, "hardly a connection was lost: the test has no teeth"
    process.stop()


def test_a_transaction_pool_is_named_and_nothing_is_lost_by_it(create_world, create_pooler):
    world = create_world(20_000, seed=58)
    world.insert(world.stream.late)
    world.produce()
    pooler = create_pooler(world.database.dsn, "transaction")
    world.installation.configure(postgres={"dsn": pooler.dsn, "connections": 2})
    process = world.installation.start()
    process.wait_for_log("use a direct connection or session pooling", timeout=60)
    pooler.end()
    pooler.write("session")
    pooler.start()
    world.finish(process, timeout=90)
    process.stop()
