"""Kafka Connect standalone with the Debezium JDBC sink: the rival that needs no code.

It takes one event per record, so it gets a topic of its own with the same events, one each. The measurement starts at its first
commit, since a JVM needs ten seconds before it: class loading and compiling are not in the figures.
"""

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from lab import OUT, ROOT, say
from meter import Meter, cpu_ticks, peak_rss_mib

CODES = {"IN_GTW": 200, "SENT": 300, "FAILED": 440, "DELIVERED": 600, "OPENED": 700, "CLICKED": 800}
PLUGIN = "io.debezium:debezium-connector-jdbc:3.6.0.Final:tar.gz:plugin"
DEPENDENCY = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1"
PARTITIONS = 8
TASKS = 2
BATCH = 5000

SCHEMA = {"type": "struct", "optional": False, "fields": [
    {"field": "message_id", "type": "string", "optional": False},
    {"field": "status", "type": "int16", "optional": False}]}


def fetch():
    """Jars of Connect and of the sink, once."""
    home = OUT / "connect"
    if (home / "complete").exists():
        return home
    shutil.rmtree(home, ignore_errors=True)
    (home / "plugins").mkdir(parents=True)
    say("  fetching Kafka Connect and the JDBC sink with Maven")
    for arguments in (
        ["-f", ROOT / "tests/bench/rivals/pom.xml", f"{DEPENDENCY}:copy-dependencies",
         f"-DoutputDirectory={home / 'libs'}", "-DincludeScope=runtime"],
        [f"{DEPENDENCY}:copy", f"-Dartifact={PLUGIN}", f"-DoutputDirectory={home}"],
    ):
        subprocess.run(["mvn", "-q", "-B", *arguments], check=True, capture_output=True, timeout=300)
    archive = next(home.glob("debezium-connector-jdbc-*.tar.gz"))
    subprocess.run(["tar", "xzf", archive, "-C", home / "plugins"], check=True)
    archive.unlink()
    (home / "complete").touch()
    return home


def properties(path, values):
    path.write_text("".join(f"{key}={value}\n" for key, value in values.items()))
    return path


class Connect:
    def __init__(self, lab, stream):
        self.lab, self.stream = lab, stream
        self.home = fetch()
        self.topic = lab.services.create_topic(PARTITIONS)
        self.first = {}
        self._fill()

    def _fill(self):
        producer = self.topic.producer(linger_ms=50, queue_buffering_max_kbytes=262144)
        number = 0
        for record in self.stream.records():
            for event in json.loads(record):
                message, status = event["message_id"], CODES[event["status"]]
                # One message stays on one partition, or its rows would go back and forth between the tasks.
                partition = hash(message) % PARTITIONS
                self.first.setdefault(partition, message)
                value = f'{{"message_id":"{message}","status":{status}}}'
                while True:
                    try:
                        producer.produce(self.topic.name, value, partition=partition)
                        break
                    except BufferError:
                        producer.poll(0.05)
                number += 1
        # Connect inserts unknown messages. So the last record of each partition is a row of its own, which shows that all is done.
        self.last = [f"last-{partition}" for partition in range(PARTITIONS)]
        producer.flush(120)
        for partition, message in enumerate(self.last):
            producer.produce(self.topic.name, f'{{"message_id":"{message}","status":600}}', partition=partition)
        assert producer.flush(120) == 0
        say(f"  connect: {number:,} events, one per record")

    def _configure(self, directory, database):
        parameters = dict(part.split("=", 1) for part in database.tcp_dsn.split())
        worker = properties(directory / "worker.properties", {
            "bootstrap.servers": self.lab.services.brokers, "plugin.path": self.home / "plugins", "listeners": "http://127.0.0.1:0",
            "offset.storage.file.filename": directory / "offsets", "offset.flush.interval.ms": 2000,
            "key.converter": "org.apache.kafka.connect.storage.StringConverter",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter", "value.converter.schemas.enable": "true",
            "value.converter.schema.content": json.dumps(SCHEMA).replace("\\", "\\\\"),
            "consumer.auto.offset.reset": "earliest", "consumer.max.poll.records": BATCH,
            "consumer.max.partition.fetch.bytes": 4194304, "consumer.fetch.min.bytes": 65536, "consumer.fetch.max.wait.ms": 50,
        })
        sink = properties(directory / "sink.properties", {
            "name": f"sink-{time.time_ns()}", "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
            "tasks.max": TASKS, "topics": self.topic.name,
            "connection.url": f"jdbc:postgresql://{parameters['host']}:{parameters['port']}/{parameters['dbname']}"
                              "?currentSchema=receiptd&reWriteBatchedInserts=true&ApplicationName=bench-rival"
                              "&options=-c%20synchronous_commit=off",
            "connection.username": parameters["user"], "connection.password": parameters.get("password", ""),
            "insert.mode": "upsert", "primary.key.mode": "record_value", "primary.key.fields": "message_id",
            "collection.name.format": "receiptd.message_inbox", "schema.evolution": "none", "batch.size": BATCH,
            "use.reduction.buffer": "true", "dialect.postgres.unnest.insert.enabled": "true",
        })
        return worker, sink

    def _done(self, database, ids):
        return database.value("SELECT count(*) FROM receiptd.message_inbox WHERE status > 0 AND message_id = ANY(%s)",
                              list(ids))

    def _await(self, process, log, condition, timeout, what):
        deadline = time.monotonic() + timeout
        while not condition():
            ended = process.poll() is not None
            if ended or time.monotonic() > deadline:
                raise AssertionError(f"connect: {what} not within {timeout} s\n{log.read_text()[-3000:]}")
            time.sleep(0.02)

    def run(self):
        directory = Path(tempfile.mkdtemp(dir=self.lab.workdir))
        log = directory / "connect.log"
        with self.lab.database(self.stream) as database:
            worker, sink = self._configure(directory, database)
            with open(log, "wb") as output:
                process = subprocess.Popen(
                    ["java", "-Xmx1g", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp",
                     f"{self.home / 'libs'}/*", "org.apache.kafka.connect.cli.ConnectStandalone", worker, sink],
                    stdout=output, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=directory,
                    env={**os.environ, "LC_ALL": "C.UTF-8"})
            try:
                self._await(process, log, lambda: self._done(database, self.first.values()), 120, "first commit")
                begun, own = time.monotonic(), cpu_ticks(process.pid)
                meter = Meter(self.lab, database)
                before = database.value("SELECT count(*) FROM receiptd.message_inbox WHERE status > 0")
                meter.start("bench-rival")
                self._await(process, log, lambda: self._done(database, self.last) == len(self.last), 300, "everything")
                seconds, used = time.monotonic() - begun, meter.stop()
                rss, own = peak_rss_mib(process.pid), cpu_ticks(process.pid) - own
            finally:
                process.send_signal(signal.SIGTERM)
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
                    process.wait()
        rest = self.stream.event_count * (1 - before / self.stream.message_count)
        return {"seconds": seconds, "events": rest, "events_per_second": rest / seconds, "cpu_us_per_event": own / rest * 1e6,
                "server_us_per_event": used["server"] / rest * 1e6, "peak_rss_mib": rss}

    def close(self):
        self.topic.drop()
