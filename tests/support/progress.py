"""How far receiptd has come, read from its own position table."""

from support.wait import wait_for


def positions(database, topic, schema="receiptd"):
    """{partition: lowest next_offset of its lanes}"""
    rows = database.query(
        f"SELECT partition, min(next_offset) FROM {schema}.consumer_progress WHERE topic = %s GROUP BY partition",
        str(topic))
    return dict(rows)


def missing(database, topic, schema="receiptd"):
    """{partition: (position, end)} of the partitions that are not consumed to their end."""
    there = positions(database, topic, schema)
    return {partition: (there.get(partition), high) for partition, (low, high) in topic.watermarks().items()
            if high > low and there.get(partition, low) < high}


def wait_until_consumed(database, topic, process=None, timeout=60.0, schema="receiptd"):
    """Until every lane of every partition stands at the topic's end as it is now (the topic must not grow meanwhile)."""
    ends = {partition: high for partition, (low, high) in topic.watermarks().items() if high > low}

    def consumed():
        there = positions(database, topic, schema)
        return all(there.get(partition, -1) >= end for partition, end in ends.items())

    what = f"everything of {topic} consumed"
    if process is not None:
        process.wait_for(consumed, timeout, what)
    else:
        wait_for(consumed, timeout, what, interval=0.05, details=lambda: f"missing: {missing(database, topic, schema)}")
