"""Worlds for the tests of the whole: see support/world.py."""

import pytest

from oracle.traffic import Traffic
from support import templates
from support.world import World


@pytest.fixture
def create_world(receiptd, database, create_topic):
    """create_world(events=…) gives an installation with a stream, its schema made and the early rows inserted."""

    def create(events=None, partitions=8, seed=1, traffic=None, migrate=True, **settings):
        stream = None if events is None else Traffic(seed, events, partitions, **(traffic or {}))
        topic = create_topic(partitions, retention_ms=-1)  # the stream's records are older than a week
        if "max_events" in settings.get("batch", {}):
            settings["batch"].setdefault("catch_up", 1)  # so many, and no more because of their age
        receiptd.configure(kafka={"topics": [str(topic)]})
        world = World(receiptd, database, topic, stream, **settings)
        if migrate:
            templates.migrate(receiptd, database)
            if stream is not None:
                world.insert(stream.early)
        return world

    return create
