"""receiptd.lane_of(): the platform's senders share work by it. It is the lane of the daemon, over random texts."""

import random
from collections import Counter

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from support.wait import wait_for

LANES = 8


def texts(count):
    """Random ids of all kinds: ASCII, other scripts, signs outside of the first plane, long ones."""
    choice = random.Random(40)
    alphabets = ("abcdefghijklmnopqrstuvwxyz0123456789-", "äöüßéñ", "пример", "日本語", "😀🚀", " .:/+=")
    return sorted({"".join(choice.choice(choice.choice(alphabets)) for _ in range(choice.randrange(1, 60))) for _ in range(count)})


def test_it_is_the_lane_of_the_daemon(receiptd, database, topic):
    ids = texts(2000)
    receiptd.configure(lanes=LANES)
    receiptd.migrate()
    receiptd.start()
    topic.send(*([{"message_id": each, "status": "DELIVERED", "at": "2026-11-28T10:00:00Z"} for each in ids[i:i + 100]]
                 for i in range(0, len(ids), 100)))
    wait_for(lambda: database.value("SELECT count(*) FROM receiptd.parked_event") == len(ids), 60, "a parked receipt for each id")
    assert database.value("SELECT bool_and(receiptd.lane_of(message_id, %s) = lane) FROM receiptd.parked_event", LANES)
    assert database.value("SELECT count(DISTINCT lane) FROM receiptd.parked_event") == LANES


@pytest.mark.parametrize("workers", [1, 3, 7])
def test_workers_take_each_id_once(receiptd, database, workers):
    ids = texts(3000)
    receiptd.migrate()
    taken = [database.query("SELECT id FROM unnest(%s::text[]) AS id WHERE receiptd.lane_of(id, %s) = %s", ids, workers, lane)
             for lane in range(workers)]
    assert Counter(id for lane in taken for (id,) in lane) == Counter(ids)
    assert min(map(len, taken)) > len(ids) / workers * 0.8


def test_the_platform_may_call_it_and_a_wrong_number_is_named(receiptd, database):
    role = f"platform-{database.name}"
    receiptd.command("migrate", "--platform-role", role)
    try:
        with psycopg.connect(make_conninfo(database.dsn, user=role), autocommit=True) as platform:
            assert platform.execute("SELECT receiptd.lane_of('a', 4) BETWEEN 0 AND 3, receiptd.lane_of(NULL, 4)").fetchone() == (True, None)
            with pytest.raises(psycopg.errors.InvalidParameterValue, match="lane_of: 0 lanes cannot share work"):
                platform.execute("SELECT receiptd.lane_of('a', 0)")
    finally:
        database.execute(f'DROP OWNED BY "{role}"')
        database.execute(f'DROP ROLE "{role}"')
