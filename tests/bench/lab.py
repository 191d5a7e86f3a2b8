"""The bench's own servers, databases that all start alike, topics that are filled once."""

import os
import platform
import shutil
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

import psycopg
from support import services
from support.daemon import Receiptd, binary
from support.records import processor
from support.services import ROOT, Database, Topic

OUT = ROOT / "build/bench"

# What a careful operator of a small machine would set; everything else is PostgreSQL's default, fsync included.
POSTGRES = {
    "shared_buffers": "512MB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "wal_buffers": "16MB",
    "track_commit_timestamp": "on",  # latency is read from it; 10 bytes a transaction
}


INBOX_COLUMNS = "message_id, org_id, campaign_id"
SLICE_ROWS = 50_000
MOST_BUFFERS_MIB = 8192


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


class Lab:
    def __init__(self, name="bench"):
        self.services = services.start(name)
        self.name = name
        self.templates = {}
        self.topics = {}
        self._settle()
        self.workdir = Path(tempfile.mkdtemp(prefix="receiptd-bench."))

    def close(self, keep):
        shutil.rmtree(self.workdir, ignore_errors=True)
        if not keep:
            services.stop(self.name)

    def _settle(self):
        """Settings that need a restart, unless an earlier bench left them."""
        with self.connect() as connection:
            for key, value in POSTGRES.items():
                connection.execute(f"ALTER SYSTEM SET {key} = '{value}'")
        self.services.postgres("fast")
        self.services.postgres("start")
        with self.connect() as connection:
            for (name,) in connection.execute("SELECT datname FROM pg_database WHERE datname LIKE 'b\\_%'").fetchall():
                connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')

    def connect(self):
        return psycopg.connect(self.services.dsn, autocommit=True)

    def template(self, stream, fillfactor=None, rows=None):
        """A database with the schema and the stream's messages, vacuumed. Made once. `rows`: this many in all, the stream's at
        random places among the others."""
        key = stream.inbox_name + (f"-{fillfactor}" if fillfactor else "") + (f"-{rows}" if rows else "")
        if key in self.templates:
            return self.templates[key]
        say(f"  inbox {key}: {stream.message_count:,} messages")
        name = "b_" + key.replace("-", "_")
        database = self.services.create_database(name)
        receiptd = Receiptd(self.workdir, database.dsn, self.services.brokers, ["none"])
        if fillfactor:
            receiptd.configure(inbox={"fillfactor": fillfactor})
        receiptd.migrate()
        database.execute("CREATE EXTENSION pg_prewarm")
        into = "receiptd.message_inbox"
        if rows:
            into = "pg_temp.wanted"
            database.execute(f"CREATE TEMP TABLE wanted (n serial, {INBOX_COLUMNS.replace(',', ' text,')} text)")
        copy_messages(database, stream, into)
        if rows:
            spread(database, stream.message_count, rows)
        database.execute("VACUUM (FREEZE, ANALYZE) receiptd.message_inbox")
        database.execute("VACUUM (FREEZE, ANALYZE)")
        database.connection.close()
        self.templates[key] = name
        return name

    @contextmanager
    def database(self, stream, fillfactor=None, rows=None):
        """A copy of the stream's template, in memory as far as it fits; right after a checkpoint. Gone afterwards."""
        template = self.template(stream, fillfactor, rows)
        name = f"b_{os.getpid()}_{time.monotonic_ns()}"
        with self.connect() as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{template}" STRATEGY file_copy')
        database = Database(self.services, name, made=True)
        try:
            database.execute("SELECT pg_prewarm('receiptd.message_inbox'), pg_prewarm('receiptd.message_inbox_pkey')")
            database.execute("CHECKPOINT")
            yield database
        finally:
            database.drop()

    def large(self, streams, rows, fillfactor):
        """The only one of its size, too large to be copied: each of the streams can be applied to it once. Kept with the services, for
        it takes long to make; a table in it says which streams are left."""
        name = f"large_{rows}_{fillfactor}"
        with self.connect() as connection:
            there = connection.execute("SELECT oid FROM pg_database WHERE datname = %s", (name,)).fetchone()
            unfinished = f"{name}_unfinished"
            connection.execute(f'DROP DATABASE IF EXISTS "{unfinished}" WITH (FORCE)')
        if not there:
            say(f"  inbox of {rows:,} rows, fillfactor {fillfactor}")
            database = self.services.create_database(unfinished)
            receiptd = Receiptd(self.workdir, database.dsn, self.services.brokers, ["none"])
            receiptd.configure(inbox={"fillfactor": fillfactor})
            receiptd.migrate()
            database.execute("CREATE EXTENSION pg_prewarm")
            database.execute("CREATE TABLE public.unused AS SELECT unnest(%s::text[]) AS stream", [stream.name for stream in streams])
            database.execute(f"CREATE TEMP TABLE wanted (n serial, {INBOX_COLUMNS.replace(',', ' text,')} text)")
            for stream in streams:
                copy_messages(database, stream, "pg_temp.wanted")
            spread(database, sum(stream.message_count for stream in streams), rows, shuffled=True)
            database.execute("VACUUM (FREEZE, ANALYZE)")
            database.connection.close()
            with self.connect() as connection:
                connection.execute(f'ALTER DATABASE "{unfinished}" RENAME TO "{name}"')
        return Database(self.services, name, made=True)

    @contextmanager
    def setting(self, **settings):
        """Settings of the server for a while, in force and followed by a checkpoint."""
        with self.connect() as connection:
            for key, value in settings.items():
                connection.execute(f"ALTER SYSTEM SET {key} = '{value}'")
            connection.execute("SELECT pg_reload_conf()")
            time.sleep(1)  # the checkpointer reads full_page_writes when it wakes up
            connection.execute("CHECKPOINT")
            try:
                yield
            finally:
                for key in settings:
                    connection.execute(f"ALTER SYSTEM RESET {key}")
                connection.execute("SELECT pg_reload_conf()")

    @contextmanager
    def buffers(self):
        """shared_buffers as an operator sets them for a large database: a quarter of the memory, up to a bound. Restarts the server twice."""
        mib = min(MOST_BUFFERS_MIB, int(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") / 4 / 1048576))
        self._restart(f"{mib}MB")
        try:
            yield mib
        finally:
            self._restart(POSTGRES["shared_buffers"])

    def _restart(self, buffers):
        with self.connect() as connection:
            connection.execute(f"ALTER SYSTEM SET shared_buffers = '{buffers}'")
        self.services.postgres("fast")
        self.services.postgres("start")

    def drop_template(self, stream):
        name = self.templates.pop(stream.inbox_name, None)
        if name:
            Database(self.services, name, made=True).drop()

    def topic(self, stream, partitions=8):
        """The stream as a topic: record r goes to partition r modulo their number."""
        key = (stream.name, partitions)
        if key not in self.topics:
            topic = self.services.create_topic(partitions)
            fill(topic, stream)
            self.topics[key] = topic
        return self.topics[key]

    def drop_topic(self, stream, partitions=8):
        topic = self.topics.pop((stream.name, partitions), None)
        if topic:
            topic.drop()

    def receiptd(self, database, topic, **settings):
        """An installation that is ready to start against that database."""
        directory = Path(tempfile.mkdtemp(dir=self.workdir))
        receiptd = Receiptd(directory, database.dsn, self.services.brokers, [str(topic)])
        receiptd.configure(**settings)
        return receiptd


def copy_messages(database, stream, into="receiptd.message_inbox"):
    copy = f"COPY {into} ({INBOX_COLUMNS}) FROM STDIN"
    with database.connection.cursor() as cursor, cursor.copy(copy) as target, open(stream.messages_path, "rb") as file:
        while block := file.read(1 << 20):
            target.write(block)


def spread(database, wanted, rows, shuffled=False):
    """The messages of pg_temp.wanted into the inbox, shuffled, slice by slice, with so many others that there are `rows`; the
    indexes are made afterwards, as a restore does it. `shuffled`: of several streams, each at random places."""
    slices = max(1, rows // SLICE_ROWS)
    database.execute("ALTER TABLE receiptd.message_inbox DROP CONSTRAINT message_inbox_pkey")
    campaigns = database.value("SELECT pg_get_indexdef('receiptd.message_inbox_campaign'::regclass)")
    database.execute("DROP INDEX receiptd.message_inbox_campaign")
    if shuffled:
        database.execute(f"CREATE TEMP TABLE shuffled AS SELECT row_number() OVER (ORDER BY random()) AS n, {INBOX_COLUMNS} FROM pg_temp.wanted")
        database.execute("DROP TABLE pg_temp.wanted")
        database.execute("ALTER TABLE pg_temp.shuffled RENAME TO wanted")
    database.execute("CREATE INDEX ON pg_temp.wanted (n)")
    for part in range(slices):
        first, end = wanted * part // slices, wanted * (part + 1) // slices
        others = rows // slices - (end - first)
        database.execute(
            f"INSERT INTO receiptd.message_inbox ({INBOX_COLUMNS}) SELECT * FROM (SELECT {INBOX_COLUMNS} FROM pg_temp.wanted"
            " WHERE n > %s AND n <= %s UNION ALL SELECT gen_random_uuid()::text, 'org-1', 'campaign-' || i %% 100"
            " FROM generate_series(1, %s) i) a ORDER BY random()", first, end, others)
        if shuffled and part % 100 == 99:
            say(f"    {(part + 1) * (rows // slices):,}")
    database.execute("SET maintenance_work_mem = '2GB'")
    database.execute("ALTER TABLE receiptd.message_inbox ADD CONSTRAINT message_inbox_pkey PRIMARY KEY (message_id)")
    database.execute(campaigns)


def fill(topic, stream, partition=None, headers=None):
    """Produces all records of the stream and waits until they are acknowledged. `headers`: an iterator of those of each."""
    failed = []
    producer = topic.producer(linger_ms=20, queue_buffering_max_kbytes=65536, queue_buffering_max_messages=100000)

    def on_delivery(error, _):
        if error:
            failed.append(error)

    for number, value in enumerate(stream.records()):
        where = number % topic.partitions if partition is None else partition
        given = next(headers) if headers else None
        while True:
            try:
                producer.produce(topic.name, value, partition=where, headers=given, on_delivery=on_delivery)
                break
            except BufferError:
                producer.poll(0.05)
        producer.poll(0)
    left = producer.flush(120)
    assert not failed and left == 0, f"{left} records were not acknowledged: {failed[:2]}"


def machine():
    """The machine and the versions of a measurement."""
    memory_kib = int(Path("/proc/meminfo").read_text().split()[1])
    debian = Path("/etc/debian_version")
    return {
        "cpu": processor(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_gib": round(memory_kib / 1048576, 1),
        "kernel": platform.release(),
        "debian": debian.read_text().strip() if debian.exists() else "no",
        "load_average": list(os.getloadavg()),
        "date": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
    }


def versions(lab):
    import subprocess

    with lab.connect() as connection:
        postgres = connection.execute("SHOW server_version").fetchone()[0]
    own = subprocess.run([binary(), "version"], text=True, capture_output=True).stdout.split("\n")
    kafka = sorted((ROOT / "build/kafka/libs").glob("kafka_2.13-*.jar"))
    return {
        "postgresql": postgres.split()[0],
        "kafka": kafka[0].stem.split("-", 1)[1] if kafka else "unknown",
        "receiptd": [line for line in own if line],
        "postgresql_settings": POSTGRES,
    }


__all__ = ["Lab", "OUT", "ROOT", "Topic", "fill", "machine", "say", "versions"]
