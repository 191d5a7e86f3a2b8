"""The campaign's own PostgreSQL (two places, for fail-over) and Kafka (one broker or three), as processes for faults to hit."""

import os
import signal
import subprocess
import tempfile
from pathlib import Path

import psycopg
from confluent_kafka.admin import AdminClient

from support.ports import free_ports
from support.servers import is_gone
from support.services import ROOT
from support.wait import wait_for

PASSWORD = "loopback only"
ROLE = "daemon"  # what receiptd connects as: no superuser


def library(command):
    """Runs functions of scripts/lib, one test at a time, for they may fetch something; returns what they print."""
    script = f'ROOT={ROOT}; . "$ROOT/scripts/lib/packages.sh"; . "$ROOT/scripts/lib/servers.sh"; mkdir -p "$BUILD/log"; exec 9> "$BUILD/log/library.lock"; flock 9; {command}'
    return subprocess.run(["sh", "-euc", script], check=True, text=True, stdout=subprocess.PIPE).stdout.strip()


def as_service(*arguments):
    """The servers' user, if we are root; and no server outlives the campaign."""
    user = ["--reuid=postgres", "--regid=postgres", "--init-groups"] if os.getuid() == 0 else []
    return ["setpriv", "--pdeathsig", "KILL", *user, "--", *map(str, arguments)]


def send(number, pids):
    """Signals all processes that still live; returns them."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            pass
    return pids


class Server:
    """One process with a log, and perhaps children."""

    def __init__(self, directory, name):
        self.directory, self.name, self.process = Path(directory), name, None
        self.log = self.directory / f"{name}.log"

    @property
    def running(self):
        return self.process is not None and self.process.poll() is None

    def spawn(self, *arguments):
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(as_service(*arguments), cwd=self.directory, stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=log, start_new_session=True)

    def signal(self, number):
        self.process.send_signal(number)

    def end(self, number, timeout=60):
        if self.running:
            self.signal(number)
            self.signal(signal.SIGCONT)
            try:
                self.process.wait(timeout)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()

    def processes(self):
        """Its own id, and those of its children."""
        listing = subprocess.run(["ps", "-o", "pid=", "--ppid", str(self.process.pid)], text=True, capture_output=True)
        return [self.process.pid, *map(int, listing.stdout.split())]

    def freeze(self):
        """All its processes stand still; thaw() takes what this returns."""
        return send(signal.SIGSTOP, self.processes())

    def thaw(self, pids=()):
        send(signal.SIGCONT, pids or (self.processes() if self.running else ()))

    def tail(self, lines=15):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])


class Postgres(Server):
    """One place for a data directory; the campaign has two, so that a standby can take over."""

    CONF = """
        shared_buffers = 128MB
        max_connections = 60
        max_wal_size = 512MB
        wal_writer_delay = 10s        # a crash takes much with it
        wal_writer_flush_after = 1GB
        autovacuum_naptime = 5s
        deadlock_timeout = 200ms
        wal_keep_size = 128MB
        log_line_prefix = '%m [%p] %a '
    """

    def __init__(self, directory, name, port):
        super().__init__(directory, name)
        self.port, self.socket = port, (self.directory / "socket").resolve()
        self.data = self.directory / name / "data"
        self.bin = Path(library("postgres_bin"))

    def dsn(self, database="postgres"):
        return f"host={self.socket} port={self.port} user=receiptd dbname={database} connect_timeout=5"

    def run(self, program, *arguments):
        subprocess.run(as_service(self.bin / program, *arguments), check=True, cwd=self.directory,
                       stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def create(self):
        password = self.directory / "password"
        password.write_text(PASSWORD + "\n")
        self.run("initdb", "-D", self.data, "-U", "receiptd", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync",
                 "--auth-local=trust", "--auth-host=scram-sha-256", f"--pwfile={password}", "--wal-segsize=4")
        with open(self.data / "postgresql.conf", "a") as conf:
            conf.write("\n".join(line.strip() for line in self.CONF.splitlines()) + "\n")
        self.start()
        with self.connect() as connection:
            connection.execute(f"CREATE ROLE {ROLE} LOGIN CREATEROLE PASSWORD '{PASSWORD}'")

    def start(self, wait=True):
        self.spawn(self.bin / "postgres", "-D", self.data, "-p", self.port, "-k", self.socket)
        if wait:
            wait_for(self.answers, 60, f"{self.name} answers", details=self.tail)

    def connect(self, database="postgres", **arguments):
        return psycopg.connect(self.dsn(database), autocommit=True, **arguments)

    def answers(self):
        try:
            self.connect().close()
            return True
        except psycopg.OperationalError:
            return False

    def crash(self):
        """Immediate stop: WAL that is only in buffers is lost."""
        self.end(signal.SIGQUIT)

    def kill(self):
        """Kills the postmaster alone; the backends notice, some only at the end of a statement. Until then no other one could start."""
        backends = self.processes()[1:]
        self.end(signal.SIGKILL)
        wait_for(lambda: all(map(is_gone, backends)), 60, f"the backends of {self.name} have ended")

    def restart_fast(self):
        self.end(signal.SIGINT)
        self.start()

    def value(self, sql, *parameters, database="postgres"):
        with self.connect(database) as connection:
            row = connection.execute(sql, parameters or None).fetchone()
            return row[0] if row else None

    def remove(self):
        subprocess.run(["rm", "-rf", "--one-file-system", str(self.data)], check=True)

    def follow(self, primary):
        """Becomes a streaming replica of the primary."""
        self.end(signal.SIGQUIT)
        self.remove()
        self.run("pg_basebackup", "-h", primary.socket, "-p", primary.port, "-U", "receiptd", "-D", self.data, "-R",
                 "-X", "stream", "--checkpoint=fast", "--no-sync")
        self.start()


class Broker(Server):
    """One of the brokers. `listeners` is {name: (own port, port that clients get)}; of `controllers`, {node: port}, it may be one."""

    def __init__(self, directory, node, listeners, controllers, cluster_id, class_path):
        super().__init__(directory, f"broker-{node}")
        self.node, self.port, self.class_path, self.cluster_id = node, listeners["PLAINTEXT"][0], class_path, cluster_id
        self.properties = self.directory / f"{self.name}.properties"
        names = ",".join(f"{name}://127.0.0.1:{port}" for name, (port, _) in listeners.items())
        told = ",".join(f"{name}://127.0.0.1:{port}" for name, (_, port) in listeners.items())
        kinds = ",".join(f"{name}:PLAINTEXT" for name in [*listeners, "CONTROLLER"])
        voters = ",".join(f"{number}@127.0.0.1:{port}" for number, port in controllers.items())
        copies = min(3, len(controllers))
        role, control = (",controller", f",CONTROLLER://127.0.0.1:{controllers[node]}") if node in controllers else ("", "")
        self.properties.write_text(f"""
process.roles=broker{role}
node.id={node}
controller.quorum.voters={voters}
listeners={names}{control}
advertised.listeners={told}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map={kinds}
log.dirs={self.directory}/{self.name}
auto.create.topics.enable=false
default.replication.factor={copies}
min.insync.replicas={max(1, copies - 1)}
offsets.topic.replication.factor={copies}
offsets.topic.num.partitions=1
transaction.state.log.replication.factor={copies}
transaction.state.log.min.isr={max(1, copies - 1)}
transaction.state.log.num.partitions=1
share.coordinator.state.topic.replication.factor={copies}
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
broker.session.timeout.ms=3000
broker.heartbeat.interval.ms=500
controller.quorum.election.timeout.ms=500
controller.quorum.fetch.timeout.ms=1000
controlled.shutdown.enable=true
message.max.bytes=16777216
replica.fetch.max.bytes=16777216
log.cleaner.dedupe.buffer.size=8388608
""")

    def start(self, wait=True):
        script = """[ -f "$1/meta.properties" ] || java -XX:TieredStopAtLevel=1 -cp "$4" kafka.tools.StorageTool format \
            -t "$3" -c "$2" || exit 1
            exec java -Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
            -Dorg.slf4j.simpleLogger.showDateTime=true -cp "$4" kafka.Kafka "$2" """
        self.spawn("sh", "-c", script, "sh", self.directory / self.name, self.properties, self.cluster_id,
                   self.class_path)
        if wait:
            self.await_answer()

    def await_answer(self):
        wait_for(self.answers, 90, f"{self.name} answers", interval=0.1, details=self.tail)

    def answers(self):
        assert self.running, f"{self.name} has ended\n{self.tail()}"
        try:
            admin = AdminClient({"bootstrap.servers": f"127.0.0.1:{self.port}", "log_level": 0})
            return self.node in admin.list_topics(timeout=2).brokers
        except Exception:
            return False

    def kill(self):
        self.end(signal.SIGKILL)

    def terminate(self):
        self.end(signal.SIGTERM)


def make_directory():
    """Below the services' directory, where their user can reach it, with a short way to the sockets."""
    base = Path(library("services_base"))
    directory = Path(tempfile.mkdtemp(prefix="faults-", dir=base))
    directory.chmod(0o755)
    sockets = Path(tempfile.mkdtemp(prefix="receiptd-faults-"))
    (directory / "socket").symlink_to(sockets)
    if os.getuid() == 0:
        for path in (directory, sockets):
            subprocess.run(["chown", "postgres:postgres", str(path)], check=True)
    return directory
