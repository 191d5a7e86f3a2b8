"""Beside every cycle: a green light says that somebody works on every partition, and a lag of 0 that everything is applied.

Nobody works on a partition if no instance that answers has it. What Kafka and PostgreSQL do not answer is not judged.
"""

import json
import re
import threading
import time
import urllib.error
import urllib.request

import psycopg
from confluent_kafka import Consumer, KafkaException, TopicPartition

GRACE = 15  # seconds
EVERY = 1
POSITIONS = "SELECT partition, min(next_offset) FROM receiptd.consumer_progress GROUP BY partition"


class Lights(threading.Thread):
    def __init__(self, era):
        super().__init__(daemon=True)
        self.era, self.ended, self.anomalies = era, threading.Event(), {}
        self.idle_since, self.ends = {}, []  # by partition; [(when, {partition: end})]
        self.seen = 0  # pages that were judged
        self.consumer = Consumer({"bootstrap.servers": era.lab.brokers, "group.id": "lights", "log_level": 0})

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.ended.set()
        self.join()
        self.consumer.close()

    def run(self):
        try:
            while not self.ended.wait(EVERY):
                self.note_ends()
                self.judge()
        except Exception as error:  # else the thread would end, and nothing would be judged any more
            self.add("the lights themselves", f"{type(error).__name__}: {error}")

    def note_ends(self):
        now, topic, ends = time.monotonic(), str(self.era.topic), {}
        for number in range(self.era.topic.partitions):
            if self.ended.is_set():  # a broker that is away may take a second for each
                return
            try:
                ends[number] = self.consumer.get_watermark_offsets(TopicPartition(topic, number), timeout=1)[1]
            except KafkaException:
                return
        self.ends.append((now, ends))

    def pages(self):
        """{seat: (green, {partition: lag})} of those that answer."""
        found = {}
        for seat in self.era.occupied():
            process = seat.process
            port = process and re.search(r"metrics and status at .*, port (\d+)", process.log())
            if not port:
                continue
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port.group(1)}/statusz", timeout=1) as answer:
                    status = json.loads(answer.read())
            except (OSError, urllib.error.URLError, ValueError):
                continue
            found[seat.name] = (status["readiness"]["ready"],
                                {one["partition"]: one["lag_records"] for one in status["assignment"]["partitions"]})
        return found

    def judge(self):
        pages, now = self.pages(), time.monotonic()
        self.seen += len(pages)
        green = [seat for seat, (ready, _) in pages.items() if ready]
        worked_on = {partition for _, partitions in pages.values() for partition in partitions}
        for partition in range(self.era.topic.partitions):
            if partition in worked_on or not green:
                self.idle_since.pop(partition, None)
            elif now - self.idle_since.setdefault(partition, now) > GRACE:
                self.add("green light", f"{green}: nobody has worked on partition {partition} for {GRACE} s")
        self.judge_lags(pages, now)

    def judge_lags(self, pages, now):
        """Records that were there long ago are not applied even after the page said that all are."""
        old = [ends for when, ends in self.ends if when < now - GRACE]
        claimed = [(seat, partition) for seat, (_, lags) in pages.items() for partition, lag in lags.items() if lag == 0]
        if not old or not claimed:
            return
        try:
            with psycopg.connect(self.era.database.dsn, autocommit=True, connect_timeout=2) as connection:
                positions = dict(connection.execute(POSITIONS).fetchall())
        except psycopg.Error:
            return
        for seat, partition in claimed:
            if positions.get(partition, 0) < old[-1][partition]:
                self.add("lag of 0", f"instance {seat}: partition {partition} stands at {positions.get(partition)}, and its log"
                                     f" has ended at {old[-1][partition]} or later for {GRACE} s")

    def add(self, name, text):
        self.anomalies.setdefault(name, [])
        if len(self.anomalies[name]) < 5:
            self.anomalies[name].append(f"{text}\n{self.era.group_log()}")
