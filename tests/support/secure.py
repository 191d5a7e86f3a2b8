"""A PostgreSQL and a Kafka that require TLS and passwords, with certificates of an authority of the test's own."""

import os
import subprocess
from pathlib import Path

import psycopg
from confluent_kafka.admin import AdminClient

from faults.servers import Postgres, Server, library
from support.ports import free_ports
from support.services import Services
from support.wait import wait_for

# None of them may ever appear outside the files that hold them: see Watch.
USERS = {"admin": "the-admins-own-password", "receiptd": "kafka-pass-7f3b-never-shown"}
ROLE, ROLE_PASSWORD = "worker", "database-pass-91c2-never-shown"
WRONG_PASSWORD = "wrong-pass-55aa-never-shown"


class Authority:
    """Makes certificates: NAME.key, NAME.crt, and NAME.pem with both and the authority's."""

    def __init__(self, directory, name):
        self.directory, self.name = Path(directory), name
        self.path = self.directory / f"{name}.crt"
        self.run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                 "-subj", f"/CN={name}", "-keyout", self.directory / f"{name}.key", "-out", self.path)

    @staticmethod
    def run(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

    def issue(self, name, subject, names=""):
        key, request, certificate = (self.directory / f"{name}.{kind}" for kind in ("key", "csr", "crt"))
        self.run("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj",
                 f"/CN={subject}", "-keyout", key, "-out", request)
        extension = self.directory / f"{name}.ext"
        extension.write_text(f"subjectAltName={names}\n" if names else "basicConstraints=CA:FALSE\n")
        self.run("x509", "-req", "-in", request, "-CA", self.path, "-CAkey", self.directory / f"{self.name}.key",
                 "-CAcreateserial", "-days", "2", "-extfile", extension, "-out", certificate)
        pem = self.directory / f"{name}.pem"
        pem.write_text("".join(part.read_text() for part in (key, certificate, self.path)))
        key.chmod(0o600)
        return pem


class SecurePostgres(Postgres):
    """TLS and SCRAM for every client over the network; the test itself connects by the socket."""

    def create(self, authority, host="127.0.0.1"):
        authority.issue("postgres", "postgres", f"DNS:localhost,IP:127.0.0.1,IP:{host}")
        for kind in ("key", "crt"):
            self.own(self.directory / f"postgres.{kind}")
        super().create()
        self.end(2)
        with open(self.data / "postgresql.conf", "a") as conf:
            conf.write(f"listen_addresses = 'localhost,{host}'\nssl = on\nssl_cert_file = '{self.directory}/postgres.crt'\n"
                       f"ssl_key_file = '{self.directory}/postgres.key'\nssl_ca_file = '{authority.path}'\n")
        (self.data / "pg_hba.conf").write_text(
            "local all all trust\nhostssl all certified all cert\nhostssl all all all scram-sha-256\n")
        self.start()
        with self.connect() as connection:
            connection.execute(f"CREATE ROLE {ROLE} LOGIN PASSWORD '{ROLE_PASSWORD}'")
            connection.execute("CREATE ROLE certified LOGIN")

    @staticmethod
    def own(path):
        if os.getuid() == 0:
            subprocess.run(["chown", "postgres:postgres", str(path)], check=True)


class SecureBroker(Server):
    """PLAINTEXT for the test, to read the log; SASL_SSL with PLAIN and SCRAM, SSL with a certificate of the client, and
    ELSEWHERE, which presents the certificate of another host, for receiptd."""

    def __init__(self, directory, name, authority, older=False, host="127.0.0.1"):
        super().__init__(directory, name)
        prepare = "use_older_kafka; " if older else ""
        self.class_path = library(f"{prepare}fetch_kafka; kafka_class_path")
        plain, sasl, ssl, elsewhere, controller = free_ports(5)
        self.address = {"PLAINTEXT": f"{host}:{plain}", "SASL_SSL": f"{host}:{sasl}", "SSL": f"{host}:{ssl}",
                        "ELSEWHERE": f"{host}:{elsewhere}"}
        keys = {"here": authority.issue(f"{name}-here", "kafka", f"DNS:localhost,IP:{host}"),
                "elsewhere": authority.issue(f"{name}-elsewhere", "other", "DNS:other.example")}
        for path in keys.values():
            path.chmod(0o644)
        listeners = ",".join(f"{kind}://{address}" for kind, address in self.address.items())
        known = " ".join(f'user_{user}="{password}"' for user, password in USERS.items())
        jaas = "\n".join(
            f"listener.name.{listener}.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required {known};\n"
            f"listener.name.{listener}.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;"
            for listener in ("sasl_ssl", "elsewhere"))
        self.properties = self.directory / f"{name}.properties"
        self.properties.write_text(f"""
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners={listeners},CONTROLLER://127.0.0.1:{controller}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SASL_SSL:SASL_SSL,SSL:SSL,ELSEWHERE:SASL_SSL
sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
{jaas}
ssl.keystore.type=PEM
ssl.keystore.location={keys["here"]}
ssl.truststore.type=PEM
ssl.truststore.location={authority.path}
listener.name.elsewhere.ssl.keystore.type=PEM
listener.name.elsewhere.ssl.keystore.location={keys["elsewhere"]}
listener.name.ssl.ssl.client.auth=required
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:admin;User:ANONYMOUS
log.dirs={self.directory}/{name}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=1
group.initial.rebalance.delay.ms=0
group.min.session.timeout.ms=1000
message.max.bytes=16777216
log.cleaner.dedupe.buffer.size=8388608
""")

    def start(self):
        users = [argument for user, password in USERS.items()
                 for argument in ("--add-scram", f"SCRAM-SHA-512=[name={user},password={password}]")]
        # An id that begins with a dash is taken for an option.
        self.spawn("sh", "-c", """
            path=$1 properties=$2
            shift 2
            java -XX:TieredStopAtLevel=1 -cp "$path" kafka.tools.StorageTool format --ignore-formatted \
                -t AbcdefghijklmnopqrstuA -c "$properties" "$@" || exit 1
            exec java -Xmx384m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dorg.slf4j.simpleLogger.defaultLogLevel=warn \
                -cp "$path" kafka.Kafka "$properties" """, "sh", self.class_path, self.properties, *users)

    def change_password(self, user, before, after):
        """Of PLAIN, which the broker knows from its start: all clients have to show the new one."""
        text = self.properties.read_text()
        assert f'user_{user}="{before}"' in text
        self.properties.write_text(text.replace(f'user_{user}="{before}"', f'user_{user}="{after}"'))
        self.end(15)
        self.start()
        self.await_answer()

    def await_answer(self):
        wait_for(self.answers, 120, f"{self.name} answers", interval=0.2, details=self.tail)

    def answers(self):
        assert self.running, f"{self.name} has ended\n{self.tail()}"
        try:
            admin = AdminClient({"bootstrap.servers": self.address["PLAINTEXT"], "log_level": 0})
            return bool(admin.list_topics(timeout=2).brokers)
        except Exception:
            return False

    def allow(self, user, topic, group):
        """The rights that receiptd needs in Kafka: to read the topic and to be a member of the group."""
        subprocess.run(["java", "-XX:TieredStopAtLevel=1", "-cp", self.class_path, "org.apache.kafka.tools.AclCommand",
                        "--bootstrap-server", self.address["PLAINTEXT"], "--add", "--allow-principal", f"User:{user}",
                        "--consumer", "--topic", topic, "--group", group],
                       check=True, capture_output=True, timeout=120)


class SecurePair(Services):
    """Both, in the place of the session's ordinary services."""

    def __init__(self, postgres, broker):
        super().__init__(postgres.dsn(), None, broker.address["PLAINTEXT"])
        self.postgres_server, self.broker = postgres, broker

    def connect(self):
        return psycopg.connect(self.postgres_server.dsn(), autocommit=True)


class Watch:
    """All output of receiptd goes through here; the end of the test searches it for secrets."""

    def __init__(self, *secrets):
        self.secrets, self.heard = secrets, []

    def hear(self, where, text):
        self.heard.append((where, text))
        return text

    def assert_silent(self):
        told = [(where, secret) for where, text in self.heard for secret in self.secrets if secret in text]
        assert not told, f"secrets were told: {told}"
