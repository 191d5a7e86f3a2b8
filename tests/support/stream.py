"""The status stream read back as consumers see it, and judged by the rows of the messages."""

import collections
import json
from dataclasses import dataclass

from support import publications


@dataclass(frozen=True)
class Record:
    key: str
    headers: dict
    body: dict | None
    place: tuple  # partition, offset


def read(brokers, topic, partitions):
    """All committed records, in the order of each partition."""
    found = []
    for message in publications.read_records(brokers, topic, partitions):
        value = None if message.value() is None else json.loads(message.value())
        headers = {name: text.decode() for name, text in message.headers() or []}
        found.append(Record(message.key().decode(), headers, value, (message.partition(), message.offset())))
    return found


def is_quiet(database):
    """Whether every transition is published, and Kafka's answer stored."""
    return database.query("SELECT NOT EXISTS (SELECT FROM receiptd.stream_event)"
                          " AND NOT EXISTS (SELECT FROM receiptd.fold_outbox)") == [(True,)]


def by_message(records):
    chains = collections.defaultdict(list)
    for record in records:
        chains[record.key].append(record)
    return chains


def rows(database, table="receiptd.message_inbox"):
    """message id -> (status, flags, campaign, organisation), by names."""
    names = dict(database.query("SELECT code, name FROM receiptd.message_status_priority"))
    found = {}
    for id, status, flags, campaign, org in database.query(
            f"SELECT message_id, status::int, flags::int, campaign_id, org_id FROM {table} WHERE status <> 0 OR flags <> 0"):
        bits = [names[9001 + bit] for bit in range(31) if flags >> bit & 1]
        found[id] = (names[status], bits, campaign, org)
    return found


def assert_is_event(record):
    """A CloudEvent in binary mode."""
    wanted = {"ce_specversion": "1.0", "ce_subject": record.key, "content-type": "application/json"}
    assert wanted.items() <= record.headers.items(), record
    assert record.headers["ce_source"].startswith("/") and record.headers["ce_id"].startswith(record.key + "/"), record
    assert record.body["message_id"] == record.key


def assert_changes(records, database, table="receiptd.message_inbox", repeated=False):
    """Every transition once, in order for each message, up to what its row says: each record goes on where the one before ended.

    repeated: after a failover a transition may come again, under its id."""
    root = database.value("SELECT name FROM receiptd.message_status_priority WHERE code = 0")
    expected, chains = rows(database, table), by_message(records)
    if not repeated:
        twice = [id for id, n in collections.Counter(record.headers["ce_id"] for record in records).items() if n > 1]
        assert not twice, f"published more than once: {twice[:5]}"
    assert set(chains) == set(expected), (sorted(set(chains) ^ set(expected))[:5], len(chains), len(expected))
    for id, chain in chains.items():
        status, flags = root, []
        assert len({record.place[0] for record in chain}) == 1, f"{id} is in several partitions"
        for record in chain:
            assert_is_event(record)
            body = record.body
            assert (body["old"], set(body["flags"]) - set(body["gained"])) == (status, set(flags)), (id, status, flags, body)
            assert body["new"] != status or body["gained"], body
            status, flags = body["new"], body["flags"]
            assert record.headers["ce_id"] == "+".join([f"{id}/{status}", *flags])
            assert record.headers["ce_type"] == "receiptd.message.changed"
            assert (body.get("campaign_id"), body.get("org_id")) == expected[id][2:]
        assert (status, flags) == expected[id][:2], (id, chain)
