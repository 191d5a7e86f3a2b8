#!/usr/bin/python3
"""Writes receiptd's stream into files of JSON lines, for a warehouse to load: each record once. Needs `stream.mode: changes`.

warehouse.py BROKERS TOPIC DIRECTORY"""
import collections
import json
import os
import pathlib
import sys

from confluent_kafka import Consumer

brokers, topic, directory = sys.argv[1:]
consumer = Consumer({"bootstrap.servers": brokers, "group.id": "message-warehouse", "group.instance.id": "1", "auto.offset.reset": "earliest",
                     "isolation.level": "read_committed", "enable.auto.commit": False})
consumer.subscribe([topic])
while True:
    parts = collections.defaultdict(list)
    for message in consumer.consume(5000, timeout=1):
        if message.error() is not None:
            sys.exit(str(message.error()))
        if message.value() is not None:
            id = dict(message.headers())["ce_id"].decode()
            parts[message.partition()].append((message.offset(), {"id": id} | json.loads(message.value())))
    for partition, lines in parts.items():
        # A crash before the commit reads from the same offset on and writes the same name: the later file replaces the earlier one.
        path = pathlib.Path(directory, f"{partition:04}-{lines[0][0]:015}.ndjson")
        with open(f"{path}.part", "w") as out:
            out.writelines(json.dumps(line) + "\n" for _, line in lines)
            out.flush()
            os.fsync(out.fileno())
        os.rename(f"{path}.part", path)
    if parts:
        consumer.commit(asynchronous=False)
