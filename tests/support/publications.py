"""The publications of folds: the topic read back as consumers see it, and compared with the counters."""

import collections
import json
import time

from confluent_kafka import Consumer, TopicPartition

from support.services import watermarks


def read_records(brokers, topic, partitions):
    """All committed records, in the order of each partition, as messages of the consumer.

    Kafka marks a transaction as committed in the log after it has answered who commits it. So this waits for the marks, but not
    longer than a producer that was killed may leave a transaction open."""
    settings = {"bootstrap.servers": brokers, "group.id": "nobody", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
    consumer = Consumer({**settings, "isolation.level": "read_committed", "enable.partition.eof": True})
    places = [TopicPartition(str(topic), partition, 0) for partition in range(partitions)]
    try:
        ends = ends_of(settings, places)
        consumer.assign(places)
        found, open_partitions, at_end = [], {partition for partition, end in ends.items() if end > 0}, set()
        patience, deadline = time.monotonic() + 10, time.monotonic() + 30
        while open_partitions and not (at_end >= open_partitions and time.monotonic() > patience):
            message = consumer.poll(1)
            if message is None:
                assert time.monotonic() < deadline, f"{topic} cannot be read to its end"
                continue
            deadline = time.monotonic() + 30
            if message.error() is not None:  # the end of what is committed in a partition
                at_end.add(message.partition())
                if message.offset() >= ends[message.partition()]:
                    open_partitions.discard(message.partition())
                continue
            found.append(message)
        return found
    finally:
        consumer.close()


def read(brokers, topic, partitions, with_times=False):
    """The records as dicts; with the time of their record on request."""
    found = []
    for message in read_records(brokers, topic, partitions):
        publication = json.loads(message.value())
        headers = dict(message.headers() or [])
        assert headers["id"].decode() == publication["id"]
        publication["_key"] = message.key().decode()
        if with_times:
            publication["_at_ms"] = message.timestamp()[1]
        found.append(publication)
    return found


def ends_of(settings, places):
    """Where each partition's log ends, behind open transactions, too."""
    consumer = Consumer({**settings, "isolation.level": "read_uncommitted"})
    try:
        return {place.partition: watermarks(consumer, place)[1] for place in places}
    finally:
        consumer.close()


def assert_once(publications):
    """No id twice, and the numbers of each group are 1, 2, 3 …: none lost, none doubled."""
    counts = collections.Counter(p["id"] for p in publications)
    assert not [id for id, n in counts.items() if n > 1], "published more than once"
    numbers = collections.defaultdict(list)
    for publication in publications:
        numbers[publication["rule"], json.dumps(publication["group"], sort_keys=True)].append(publication["number"])
    for group, found in numbers.items():
        assert sorted(found) == list(range(1, len(found) + 1)), f"numbers of {group}: {sorted(found)}"


def newest(publications):
    """What counts after a failover that lost publications: each one stands for all of its group from its number on that came before it."""
    groups = collections.defaultdict(dict)
    for publication in publications:  # those of a group are in one partition
        group = groups[publication["rule"], json.dumps(publication["group"], sort_keys=True)]
        for number in [number for number in group if number >= publication["number"]]:
            del group[number]
        group[publication["number"]] = publication
    return [publication for group in groups.values() for publication in group.values()]


def statuses(publications, *fields):
    """(values of the group's fields, status) -> messages, summed over the publications."""
    sums = collections.Counter()
    for publication in publications:
        for status, n in publication["statuses"].items():
            sums[(*(publication["group"][f] for f in fields), status)] += n
    return {key: n for key, n in sums.items() if n != 0}


def funnel(database):
    """The same from the counters: (campaign, status) -> messages, without the root."""
    rows = database.query("SELECT campaign_id, status_name, messages FROM receiptd.campaign_funnel"
                          " WHERE status <> 0 AND messages <> 0")
    return {(campaign, status): n for campaign, status, n in rows}


def is_quiet(database):
    """Waits until everything appended is gathered, every group published, and Kafka's answer stored."""
    return database.query(
        "SELECT NOT EXISTS (SELECT FROM receiptd.fold_event)"
        " AND NOT EXISTS (SELECT FROM receiptd.fold_group WHERE due_at IS NOT NULL)"
        " AND NOT EXISTS (SELECT FROM receiptd.fold_outbox)"
    ) == [(True,)]


def totals(database):
    """rule -> counts of fold_total."""
    names = ("events", "groups", "quiet", "hold", "full", "removed", "avoidable")
    rows = database.query(f"SELECT rule, {', '.join(f'sum({n})::int8' for n in (*names[:4], chr(34) + 'full' + chr(34), *names[5:]))}"
                          " FROM receiptd.fold_total GROUP BY rule")
    return {rule: dict(zip(names, counts)) for rule, *counts in rows}
