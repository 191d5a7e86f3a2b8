#!/usr/bin/python3
"""Turns publications of a fold by `inbox.message_id` into bulk requests of a search index (Elasticsearch, OpenSearch), on stdout.

index.py BROKERS TOPIC"""
import json
import sys

from confluent_kafka import Consumer

brokers, topic = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": brokers, "group.id": "message-index", "group.instance.id": "1", "auto.offset.reset": "earliest",
                     "isolation.level": "read_committed", "enable.auto.commit": False})
consumer.subscribe([topic])
while True:
    messages = consumer.consume(1000, timeout=1)
    for message in messages:
        if message.error() is not None:
            sys.exit(str(message.error()))
        publication = json.loads(message.value())
        # The numbers of a group rise, so the index refuses an older document by itself.
        where = {"_id": publication["group"]["inbox.message_id"], "version": publication["number"], "version_type": "external"}
        print(json.dumps({"index": where}), json.dumps(publication["collected"]), sep="\n")
    if messages:
        sys.stdout.flush()  # and send: what is repeated after a crash has the same version
        consumer.commit(asynchronous=False)
