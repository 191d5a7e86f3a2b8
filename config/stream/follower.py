#!/usr/bin/python3
"""Keeps a table in another PostgreSQL like receiptd's inbox. Needs `stream.mode: state`; docs/stream.md has the table.

follower.py BROKERS TOPIC DSN"""
import json
import sys

import psycopg
from confluent_kafka import Consumer

UPSERT = """INSERT INTO message_status (message_id, status, flags, status_at, campaign_id, org_id)
            VALUES (%(message_id)s, %(status)s, %(flags)s, %(status_at)s, %(campaign_id)s, %(org_id)s)
            ON CONFLICT (message_id) DO UPDATE SET status = EXCLUDED.status, flags = EXCLUDED.flags, status_at = EXCLUDED.status_at,
                campaign_id = EXCLUDED.campaign_id, org_id = EXCLUDED.org_id"""
EMPTY = dict.fromkeys(("status_at", "campaign_id", "org_id"))

brokers, topic, dsn = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": brokers, "group.id": "message-status-follower", "group.instance.id": "1", "auto.offset.reset": "earliest",
                     "isolation.level": "read_committed", "enable.auto.commit": False})
consumer.subscribe([topic])
with psycopg.connect(dsn, autocommit=True) as database:
    while True:
        newest = {}  # of each message in this turn: its records are in order
        for message in consumer.consume(5000, timeout=1):
            if message.error() is not None:
                sys.exit(str(message.error()))
            newest[message.key().decode()] = message.value()
        with database.transaction(), database.cursor() as cursor:
            cursor.executemany(UPSERT, [EMPTY | json.loads(value) for value in newest.values() if value is not None])
            cursor.execute("DELETE FROM message_status WHERE message_id = ANY (%s)", [[id for id, value in newest.items() if value is None]])
        if newest:  # a crash before this repeats records, which leads to the same rows
            consumer.commit(asynchronous=False)
