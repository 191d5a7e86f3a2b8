"""A careful consumer in Python: confluent-kafka and psycopg 3, two processes, sorted arrays, offsets committed afterwards.

    consumer.py BROKERS TOPIC DSN EVENTS counters|plain

At least once. The partitions are dealt out by hand, so that no rebalance is in the figures. With `counters` it keeps a summary by +1/-1, aggregated per batch and sorted, so that the two processes
do not deadlock. Writes "ready" when both are connected, begins at a line on stdin, writes one line of JSON at the end.
"""

import json
import multiprocessing
import sys
import time
from datetime import datetime

import psycopg
from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

try:
    from orjson import loads
except ImportError:
    from json import loads

PROCESSES = 2
BATCH_RECORDS = 4  # of 1 000 events
CODES = {"IN_GTW": 200, "SENT": 300, "FAILED": 440, "DELIVERED": 600, "OPENED": 700, "CLICKED": 800}

UPDATE = """
UPDATE receiptd.message_inbox m
SET prev_status = m.status, status = e.top, status_at = e.at, updated_at = now()
FROM unnest(%b::text[], %b::int2[], %b::timestamptz[]) AS e (id, top, at)
WHERE m.message_id = e.id AND e.top > m.status
"""

COUNTED = "WITH u AS (" + UPDATE + """
 RETURNING m.campaign_id, m.prev_status AS old, m.status AS new
), c AS (
 SELECT campaign_id, status, sum(n) AS n FROM (
  SELECT campaign_id, old AS status, -1 AS n FROM u UNION ALL SELECT campaign_id, new, 1 FROM u) x
 GROUP BY campaign_id, status ORDER BY campaign_id, status
)
INSERT INTO receiptd.campaign_summary AS s (campaign_id, status, n) SELECT campaign_id, status, n FROM c
ON CONFLICT (campaign_id, status) DO UPDATE SET n = s.n + excluded.n
"""


def fold(values):
    """{id: (highest status, its time)} and the number of events."""
    messages, events = {}, 0
    for value in values:
        batch = loads(value)
        events += len(batch)
        for event in batch:
            top = CODES[event["status"]]
            known = messages.get(event["message_id"])
            if known is None or known[0] < top:
                messages[event["message_id"]] = (top, event["at"])
    return messages, events


def work(number, brokers, topic, dsn, goal, sql, group, ready, go, done):
    consumer = Consumer({"bootstrap.servers": brokers, "group.id": group, "enable.auto.commit": False, "fetch.wait.max.ms": 20, "queued.max.messages.kbytes": 32768})
    partitions = len(consumer.list_topics(topic, timeout=10).topics[topic].partitions)
    with psycopg.connect(dsn, application_name="bench-rival", options="-c synchronous_commit=off -c enable_seqscan=off"
                                                                      " -c plan_cache_mode=force_generic_plan") as connection:
        ready.release()
        go.wait()
        consumer.assign([TopicPartition(topic, partition, OFFSET_BEGINNING)
                         for partition in range(number, partitions, PROCESSES)])
        while done.value < goal:
            taken = [message for message in consumer.consume(BATCH_RECORDS, 0.05) if not message.error()]
            if not taken:
                continue
            messages, events = fold(message.value() for message in taken)
            ids = sorted(messages)
            connection.execute(sql, (ids, [messages[i][0] for i in ids],
                                     [datetime.fromisoformat(messages[i][1].replace("Z", "+00:00")) for i in ids]),
                               prepare=True)
            connection.commit()
            consumer.commit(asynchronous=True)
            with done.get_lock():
                done.value += events
    consumer.close()


def main():
    brokers, topic, dsn, goal, mode = sys.argv[1:]
    context = multiprocessing.get_context("fork")
    ready, go, done = context.Semaphore(0), context.Event(), context.Value("q", 0)
    arguments = (brokers, topic, dsn, int(goal), COUNTED if mode == "counters" else UPDATE,
                 f"python-{time.time_ns()}", ready, go, done)
    workers = [context.Process(target=work, args=(number, *arguments)) for number in range(PROCESSES)]
    for worker in workers:
        worker.start()
    for _ in workers:
        ready.acquire()
    print("ready", flush=True)
    sys.stdin.readline()
    begun = time.monotonic()
    go.set()
    while done.value < int(goal) and all(worker.exitcode in (None, 0) for worker in workers):
        time.sleep(0.01)
    print(json.dumps({"seconds": time.monotonic() - begun, "events": done.value}), flush=True)
    sys.stdin.readline()
    for worker in workers:
        worker.join(10)
        worker.kill()


if __name__ == "__main__":
    main()
