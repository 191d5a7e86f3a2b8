"""The status stream: every transition of a message once and in order, whatever happens to those who publish."""

import itertools
import json
import random
import signal
import time

import pytest

from oracle.ledger import Row
from support import stream
from support.operations import Operations


@pytest.fixture
def create_streamer(create_world, create_topic):
    """A world with a stream; world.out is its topic."""

    def create(events=None, mode="changes", columns=(), **settings):
        out = create_topic(4)
        world = create_world(events, **settings)
        world.out = out
        world.installation.configure(stream={"topic": str(out), "mode": mode, "columns": list(columns)})
        return world

    return create


def published(world):
    return stream.read(world.brokers, world.out, 4)


def wait_until_quiet(world, process=None, timeout=90.0):
    world.wait(lambda: stream.is_quiet(world.database), process, timeout, "everything published")


def receipt(id, status, **more):
    return json.dumps({"message_id": id, "status": status, **more}).encode()


def send(world, *receipts):
    """Each in a record of its own, all of a message in one partition."""
    world.produce([(0, None, receipt) for receipt in receipts])


def test_every_transition_is_published_once_and_in_order(create_streamer):
    world = create_streamer(20_000, seed=31)
    process = world.installation.start()
    feeder = world.feed()
    world.wait_for_progress(process)
    world.insert(world.stream.late)
    feeder.join()
    world.finish(process)
    wait_until_quiet(world, process)
    records = published(world)
    stream.assert_changes(records, world.database)
    pages = Operations(process)
    assert pages.figures().get_one("receiptd_stream_published_total") == len(records)
    pages.wait_for_figure("receiptd_stream_lag_seconds", lambda value: value == 0)
    assert pages.get("/statusz").json["stream"] == {
        "topic": str(world.out), "mode": "changes", "lag_seconds": 0, "published": len(records), "refused": 0}
    process.stop()
