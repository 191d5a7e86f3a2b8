"""PostgreSQL and Kafka of a test session: from the environment, or a pair of our own from scripts/services."""

import contextlib
import hashlib
import json
import os
import re
import secrets
import shlex
import subprocess
import time
from pathlib import Path

import psycopg
from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

ROOT = Path(__file__).resolve().parents[2]
VARIABLES = ("RECEIPTD_TEST_DSN", "RECEIPTD_TEST_TCP_DSN", "RECEIPTD_TEST_BROKERS", "RECEIPTD_TEST_SERVICES")


NOT_YET = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError._UNKNOWN_PARTITION)


def watermarks(consumer, place, timeout=30.0):
    """(low, high) of a partition; a busy broker may not show it yet, one that has just come back not lead it."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            return consumer.get_watermark_offsets(place, timeout=10)
        except KafkaException as error:
            transient = error.args[0].retriable() or error.args[0].code() in NOT_YET
            if not transient or time.monotonic() > deadline:
                raise
            time.sleep(0.1)


class Services:
    """Where the two servers are. `directory` is None when the environment has given them."""

    def __init__(self, dsn, tcp_dsn, brokers, directory=None):
        self.dsn = dsn
        self.tcp_dsn = tcp_dsn
        self.brokers = brokers
        self.directory = Path(directory) if directory else None
        self.admin = AdminClient({"bootstrap.servers": brokers, "log_level": 2})

    def postgres(self, action):
        """start, or fast, immediate, kill: stops it that way. Only for servers of this test alone (own_services)."""
        self._control("postgres", action)

    def kafka(self, action):
        """start, or term, kill. Only for servers of this test alone (own_services)."""
        self._control("kafka", action)

    def _control(self, server, action):
        assert self.directory, "only servers from scripts/services can be started and stopped"
        subprocess.run([ROOT / "scripts/services", "--name", self.directory.name, server, action], check=True)

    def create_database(self, name=None, template=None):
        """`template`: a database without sessions, copied as it is now; its own lasting connection is closed."""
        database = Database(self, name or f"t_{secrets.token_hex(6)}")
        if template is not None:
            template.close()
            database.template = template.name
            database.make()
        return database

    def create_topic(self, partitions=8, name=None, **properties):
        """Creates a topic; properties like max_message_bytes=… become max.message.bytes."""
        name = name or f"t-{secrets.token_hex(6)}"
        config = {"max.message.bytes": "16777216"}
        config.update({key.replace("_", "."): str(value) for key, value in properties.items()})
        self.admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(30)
        return Topic(self, name, partitions)


def copy_database(connection, name, template="template1"):
    """CREATE DATABASE by copying files: from PostgreSQL 15 on, the default writes all pages to the log, for twice the CPU."""
    strategy = " STRATEGY file_copy" if connection.info.server_version >= 150000 else ""
    connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}"{strategy}')


class Database:
    """Made when a test first asks for its name or a way to it, or runs receiptd there: a copy of `template` if it is set by then."""

    def __init__(self, services, name, made=False):
        self.services = services
        self.address = with_database(services.dsn, name)  # for a configuration: makes nothing
        self.template = "template1"
        self.made = made
        self._name = name
        self._connection = None

    def make(self):
        if not self.made:
            self.made = True
            with psycopg.connect(self.services.dsn, autocommit=True) as connection:
                copy_database(connection, self._name, self.template)

    @property
    def name(self):
        self.make()
        return self._name

    @property
    def dsn(self):
        self.make()
        return self.address

    @property
    def tcp_dsn(self):
        self.make()
        return with_database(self.services.tcp_dsn, self._name) if self.services.tcp_dsn else None

    def connect(self, **arguments):
        """Without PostgreSQL's JIT, which takes seconds for what a test asks once. Sessions of receiptd decide for themselves."""
        return psycopg.connect(self.dsn, autocommit=True, **{"options": "-c jit=off", **arguments})

    @property
    def connection(self):
        """One lasting connection, opened again after a restart of the server."""
        if self._connection is None or self._connection.closed or self._connection.broken:
            self._connection = self.connect()
        return self._connection

    def execute(self, sql, *parameters):
        return self.connection.execute(sql, parameters or None)

    def query(self, sql, *parameters):
        """All rows, as tuples."""
        return self.execute(sql, *parameters).fetchall()

    def value(self, sql, *parameters):
        """The first column of the first row; None without a row."""
        row = self.execute(sql, *parameters).fetchone()
        return row[0] if row else None

    def add_messages(self, rows, table="receiptd.message_inbox"):
        """Inserts (message_id, org_id, campaign_id) as the platform does."""
        copy = f"COPY {table} (message_id, org_id, campaign_id) FROM STDIN"
        with self.connection.cursor() as cursor, cursor.copy(copy) as target:
            for row in rows:
                target.write_row(row)

    def close(self):
        if self._connection is not None:
            self._connection.close()

    def go_back_to(self, copy):
        """The copy takes this database's place: as if a standby without the last commits had been promoted."""
        self.close()
        with psycopg.connect(self.services.dsn, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE "{self.name}" WITH (FORCE)')
            connection.execute(f'ALTER DATABASE "{copy.name}" RENAME TO "{self.name}"')

    def drop(self):
        self.close()
        if not self.made:
            return
        with psycopg.connect(self.services.dsn, autocommit=True) as connection:
            connection.execute(f'DROP DATABASE IF EXISTS "{self._name}" WITH (FORCE)')
            for role in definers(self._name):
                with contextlib.suppress(psycopg.errors.DependentObjectsStillExist):  # of a database made from this one
                    connection.execute(f'DROP ROLE IF EXISTS "{role}"')


def definers(database, schema="receiptd"):
    """The roles that `receiptd migrate` makes for the functions with rights of their own: roles belong to no database."""
    digest = hashlib.sha256(f"{database}.{schema}".encode()).hexdigest()[:12]
    return [f"receiptd_{kind}_{digest}" for kind in ("counter", "watcher")]


class Topic:
    """A topic and the ways to write to it. str() gives the name."""

    def __init__(self, services, name, partitions):
        self.services = services
        self.name = name
        self.partitions = partitions
        self._producer = None

    def __str__(self):
        return self.name

    def producer(self, **properties):
        config = {"bootstrap.servers": self.services.brokers, "enable.idempotence": True, "linger.ms": 5, "log_level": 2,
                  "message.max.bytes": 16777216, "queue.buffering.max.messages": 1000000}
        config.update({key.replace("_", "."): value for key, value in properties.items()})
        producer = Producer(config)
        # Else the first record may wait a second, until librdkafka's timer asks where the topic is.
        with contextlib.suppress(KafkaException):
            producer.list_topics(self.name, timeout=10)
        return producer

    def send(self, *values, partition=None, key=None, headers=None, timestamp_ms=None):
        """One record per value: bytes and str as they are, anything else as JSON. Returns [(partition, offset)…]."""
        records = [{"value": value, "partition": partition, "key": key, "headers": headers,
                    "timestamp_ms": timestamp_ms} for value in values]
        return self.send_records(records)

    def send_records(self, records):
        """Dicts with value and optional partition, key, headers, timestamp_ms; returns positions in that order."""
        if self._producer is None:
            self._producer = self.producer()
        positions = {}
        for index, record in enumerate(records):
            value = record["value"]
            if value is not None and not isinstance(value, (bytes, str)):
                value = json.dumps(value, ensure_ascii=False)
            arguments = {"key": record.get("key"), "headers": record.get("headers")}
            if record.get("partition") is not None:
                arguments["partition"] = record["partition"]
            if record.get("timestamp_ms") is not None:
                arguments["timestamp"] = record["timestamp_ms"]

            def on_delivery(error, message, index=index):
                positions[index] = error or (message.partition(), message.offset())

            self._producer.produce(self.name, value, on_delivery=on_delivery, **arguments)
            self._producer.poll(0)
        self._producer.flush(60)
        failed = [error for error in positions.values() if not isinstance(error, tuple)]
        assert len(positions) == len(records) and not failed, f"not all records were acknowledged: {failed[:3]}"
        return [positions[index] for index in range(len(records))]

    def watermarks(self):
        """{partition: (low, high)}"""
        consumer = Consumer({"bootstrap.servers": self.services.brokers, "group.id": "watermarks",
                             "log_level": 2})
        try:
            return {partition: watermarks(consumer, TopicPartition(self.name, partition))
                    for partition in range(self.partitions)}
        finally:
            consumer.close()

    def drop(self):
        self.services.admin.delete_topics([self.name])[self.name].result(30)


def from_environment():
    """The servers the environment names, or None."""
    if not os.environ.get("RECEIPTD_TEST_DSN") or not os.environ.get("RECEIPTD_TEST_BROKERS"):
        return None
    return Services(*(os.environ.get(variable) for variable in VARIABLES))


def start(name):
    """Starts a pair with scripts/services; stop(name) ends it."""
    output = subprocess.run([ROOT / "scripts/services", "--name", name, "start"], check=True, text=True,
                            stdout=subprocess.PIPE).stdout
    found = dict(re.findall(r"^(\w+)=(.*)$", output, re.MULTILINE))
    return Services(*(shlex.split(found[variable])[0] for variable in VARIABLES))


def stop(name):
    subprocess.run([ROOT / "scripts/services", "--name", name, "stop"], check=True)


def with_database(dsn, name):
    return psycopg.conninfo.make_conninfo(dsn, dbname=name)
