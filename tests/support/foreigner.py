"""A consumer that is no receiptd, in the group of receiptd."""

import threading

from confluent_kafka import Consumer


class Foreigner:
    """A program that joins receiptd's group by mistake, and reads."""

    def __init__(self, world, group):
        self.consumer = Consumer({"bootstrap.servers": world.brokers, "group.id": group, "client.id": "console-consumer",
                                  "partition.assignment.strategy": "range,roundrobin", "enable.auto.commit": False})
        self.consumer.subscribe([str(world.topic)])
        self.ended = threading.Event()
        self.thread = threading.Thread(target=self.poll, daemon=True)
        self.thread.start()

    def poll(self):
        while not self.ended.is_set():
            self.consumer.poll(0.2)

    def partitions(self):
        return {one.partition for one in self.consumer.assignment()}

    def close(self):
        self.ended.set()
        self.thread.join()
        self.consumer.close()
