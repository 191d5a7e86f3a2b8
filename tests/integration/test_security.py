"""TLS and passwords to both sides, against servers that insist on them; and no secret in anything that receiptd says."""

import os
import re
import shutil

import pytest

from faults.servers import free_ports, library, make_directory
from support.intake import LISTENS, Client, twilio
from support.operations import ControlSocket, Operations
from support.secure import (ROLE, ROLE_PASSWORD, USERS, WRONG_PASSWORD, Authority, SecureBroker, SecurePair,
                            SecurePostgres, Watch)
from support.wait import wait_for

pytestmark = pytest.mark.xdist_group("security")  # its servers start once
SECRETS = (*USERS.values(), ROLE_PASSWORD, WRONG_PASSWORD, "token-of-who-begins-runs-51c", "token-of-the-scraper-77d")
TRANSPORT_QUICK = {"reconnect.backoff.max.ms": "500"}


class Place:
    """The servers, the authority that both trust, and one that nobody does."""

    def __init__(self, directory):
        self.directory = directory
        self.authority, self.stranger = Authority(directory, "authority"), Authority(directory, "stranger")
        self.client = self.authority.issue("client", "certified")
        self.foreign = self.stranger.issue("foreign", "certified")
        self.broker = SecureBroker(directory, "kafka", self.authority)
        self.postgres = SecurePostgres(directory, "postgres-1", free_ports(1)[0])
        self.servers = [self.broker, self.postgres]

    def start(self):
        self.broker.start()
        (self.directory / "postgres-1").mkdir()
        self.postgres.own(self.directory / "postgres-1")
        self.postgres.create(self.authority)
        self.broker.await_answer()

    def close(self):
        for server in self.servers:
            server.end(9)
        shutil.rmtree((self.directory / "socket").resolve(), ignore_errors=True)
        shutil.rmtree(self.directory, ignore_errors=True)


def start_place(attempts=3):
    """Between asking for a free port and using it somebody else may have taken it."""
    place = Place(make_directory())
    try:
        place.start()
        return place
    except AssertionError:
        place.close()
        if attempts == 1:
            raise
        return start_place(attempts - 1)
    except BaseException:
        place.close()
        raise


@pytest.fixture(scope="module")
def place():
    place = start_place()
    yield place
    place.close()


@pytest.fixture(scope="module")
def services(place):
    """Instead of the session's: databases and topics of these tests are on the servers that ask for passwords."""
    return SecurePair(place.postgres, place.broker)


@pytest.fixture
def watch():
    watch = Watch(*SECRETS)
    yield watch
    watch.assert_silent()


def secret_file(directory, name, text):
    path = directory / name
    path.write_text(text + "\n")
    path.chmod(0o600)
    return f"file:{path}"


def secure(receiptd, place, listener="SASL_SSL", kafka=None, dsn="", password=ROLE_PASSWORD, database="postgres"):
    """The configuration for both servers, secrets in files. `kafka` changes properties; `dsn` is added to the rest of it."""
    properties = {
        "security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": "receiptd",
        "sasl.password": secret_file(receiptd.directory, "kafka-password", USERS["receiptd"]),
        "ssl.ca.location": str(place.authority.path), **TRANSPORT_QUICK,
    }
    properties.update(kafka or {})
    text = (f"host=localhost port={place.postgres.port} user={ROLE} password={password} dbname={database}"
            f" sslmode=verify-full sslrootcert={place.authority.path} {dsn}")
    receiptd.configure(
        kafka={"brokers": place.broker.address[listener],
               "properties": {name: value for name, value in properties.items() if value is not None}},
        postgres={"dsn": secret_file(receiptd.directory, "dsn", text)}, log={"level": "debug"})
    return receiptd


def listen_to_everything(watch, process, receiptd, operations, control):
    """All that the person on call, a scraper or somebody with the terminal gets to see."""
    for path in ("/livez", "/readyz", "/startupz", "/statusz", "/metrics"):
        watch.hear(path, operations.get(path).text)
    for words in (("status",), ("lanes",), ("status", "--format", "json"), ("reload",), ("log-level", "debug")):
        watch.hear(f"ctl {words}", control.ctl(*words, check=False).stdout)
    for words in (("check-config", "--print"), ("check-config",), ("version",), ("funnel",), ("migrate", "--dry-run"),
                  ("dead-letters",), ("explain", "nobody")):
        result = receiptd.command(*words, check=False)
        watch.hear(words, result.stdout + result.stderr)
    watch.hear("log", process.log())
    arguments = open(f"/proc/{process.pid}/cmdline").read()
    environment = open(f"/proc/{process.pid}/environ").read()
    watch.hear("command line", arguments + environment)


def test_the_stream_is_exact_over_tls_with_passwords_and_tells_none(create_world, place, watch):
    world = create_world(20_000, seed=311, migrate=False)
    installation, database = world.installation, world.database
    installation.configure(postgres={"dsn": database.dsn})
    installation.command("migrate", "--role", ROLE)
    world.insert(world.stream.platform)
    place.broker.allow("receiptd", str(world.topic), world.installation.settings["kafka"]["group"])
    secure(installation, place, database=database.name)
    installation.configure(http={"token": secret_file(installation.directory, "token", SECRETS[-1]),
                                 "runs_token": secret_file(installation.directory, "runs-token", SECRETS[-2])})
    control = ControlSocket(installation)
    try:
        process = installation.start()
        operations = Operations(process, token=SECRETS[-1])
        feeder = world.feed()
        operations.wait_until_ready(60)
        feeder.join()
        world.wait_until_consumed(process)
        listen_to_everything(watch, process, installation, operations, control)
        over_tls = database.query("SELECT DISTINCT s.ssl FROM pg_stat_ssl s JOIN pg_stat_activity USING (pid)"
                                  " WHERE usename = %s", ROLE)
        assert over_tls == [(True,)]
        change_password(world, place, control)
        world.produce(list(world.stream.records())[:500])  # some receipts a second time
        world.finish(process)
        process.stop()
        watch.hear("log", process.log())
    finally:
        control.close()
        database.execute(f"ALTER ROLE {ROLE} PASSWORD '{ROLE_PASSWORD}'")


def change_password(world, place, control):
    """The server changes, then the file: a reload is enough, nothing is started again."""
    fresh = "another-" + ROLE_PASSWORD
    world.database.execute(f"ALTER ROLE {ROLE} PASSWORD '{fresh}'")
    secure(world.installation, place, password=fresh, database=world.database.name)
    assert "postgres.dsn" in control.ctl("reload").stdout
    world.database.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", ROLE)


def everything_that_uses_kafka(world, create_topic):
    """The consumer, a reader and producers of folds, a reader and a producer of actions, the intake."""
    topics = {name: create_topic(1) for name in ("events", "folded", "begins", "produced", "letters")}
    publish = {"publish": {"kafka": {"topic": str(topics["folded"])}}, "window": "300ms"}
    world.installation.configure(
        folds=[{"name": "r", "source": "topic", "topic": str(topics["events"]), "group_key": ["a"], **publish}],
        pipelines=[{"name": "p", "on": {"topic": str(topics["begins"])}, "produce": {"topic": str(topics["produced"]), "key": "subject"}}],
        intake={"enabled": True, "listen": "127.0.0.1:0", "topic": str(world.topic), "dead_letter_topic": str(topics["letters"]),
                "accounts": [{"name": "acme", "gateway": "twilio", "org_id": "o", "verify": "off", "message_id": "?mid"}]})
    return topics


def use_everything(world, topics, process, port, turn):
    """Each way through Kafka once."""
    topics["events"].send({"a": f"group {turn}"})
    topics["begins"].send({"subject": f"subject {turn}", "org_id": "o"})
    with Client(port) as client:
        client.send(twilio(f"callback-{turn}"))
        assert client.answer().status // 100 == 2
    for out in ("folded", "produced"):
        process.wait_for(lambda out=out: topics[out].watermarks()[0][1] >= turn, 120, f"something new in {out}")
    query = "SELECT count(*) FROM receiptd.parked_event WHERE message_id = %s"
    process.wait_for(lambda: world.database.value(query, f"callback-{turn}") == 1, 60, "the callback is parked")


@pytest.mark.timeout(900)
@pytest.mark.slow
def test_a_password_of_kafka_and_a_certificate_are_changed_while_it_runs(create_world, create_topic, place, watch):
    """All clients take the password; a restart is needed for the certificate, and the reload says so. Both are tried first."""
    world = create_world(3_000, partitions=2, seed=313, migrate=False)
    installation, before, fresh = world.installation, USERS["admin"], "fresh-kafka-pass-8d1e-never-shown"
    watch.secrets += (fresh,)
    installation.configure(postgres={"dsn": world.database.dsn})
    installation.command("migrate", "--role", ROLE)
    world.insert(world.stream.platform)
    authority = installation.directory / "authority.crt"
    shutil.copy(place.authority.path, authority)
    topics = everything_that_uses_kafka(world, create_topic)

    def write_password(password):
        secure(installation, place, database=world.database.name, kafka={
            "sasl.username": "admin", "ssl.ca.location": str(authority), "sasl.password": secret_file(installation.directory, "admin", password)})

    write_password(before)
    control = ControlSocket(installation)

    def reload(code=0):
        result = control.ctl("reload", check=False)
        assert result.returncode == code, result.stdout + result.stderr
        return watch.hear("reload", result.stdout + result.stderr)

    try:
        process = installation.start()
        pages = Operations(process)
        pages.wait_until_ready(90)
        port = int(process.wait_for_log(LISTENS).group(1))
        use_everything(world, topics, process, port, 1)
        write_password(WRONG_PASSWORD)
        assert "refused: kafka.properties: no connection with them: " in reload(78) and pages.get("/readyz").status == 200
        place.broker.change_password("admin", before, fresh)
        process.wait_for(lambda: pages.get("/readyz").status == 503, 60, "the broker does not know the former password")
        write_password(fresh)
        assert reload() == "applied: kafka.properties.sasl.password\n"
        pages.wait_until_ready(90)
        use_everything(world, topics, process, port, 2)
        world.produce()
        world.wait_until_consumed(process)

        shutil.copy(place.stranger.path, authority)
        assert "refused: kafka.properties: no connection with them: " in reload(78)
        authority.write_text(place.authority.path.read_text() + "\n")
        for _ in range(2):  # until it is restarted
            assert reload() == "needs a restart: kafka.properties.ssl.ca.location (its file has changed)\n"
        write_password(before)
        place.broker.change_password("admin", fresh, before)
        assert "applied: kafka.properties.sasl.password\nneeds a restart: kafka.properties.ssl.ca.location" in reload()
        pages.wait_until_ready(90)
        process.stop()
        watch.hear("log", process.log())
    finally:
        control.close()
        if fresh in place.broker.properties.read_text():
            place.broker.change_password("admin", fresh, before)


def test_certificates_are_enough_where_the_servers_want_them(create_world, place, watch):
    world = create_world(4_000, seed=312, migrate=False)
    world.installation.configure(postgres={"dsn": world.database.dsn})
    world.installation.command("migrate", "--role", "certified")
    world.insert(world.stream.platform)
    place.broker.allow("CN=certified", str(world.topic), world.installation.settings["kafka"]["group"])
    certificate, key = place.directory / "client.crt", place.directory / "client.key"
    secure(world.installation, place, "SSL", database=world.database.name, dsn=f"user=certified sslcert={certificate} sslkey={key}",
           kafka={"security.protocol": "SSL", "sasl.mechanism": None, "sasl.username": None, "sasl.password": None,
                  "ssl.certificate.location": str(certificate), "ssl.key.location": str(key)})
    process = world.installation.start()
    world.produce()
    world.finish(process)
    process.stop()
    watch.hear("log", process.log())


# name: (listener, what is different in kafka.properties, what /readyz and the log must say of the trouble and of the way out)
WRONG_KAFKA = {
    "password": ("SASL_SSL", lambda place: {"sasl.password": WRONG_PASSWORD},
                 r"Invalid username or password.*HINT: check in kafka.properties: sasl.mechanism is PLAIN, sasl.username is .?\"receiptd"),
    "user": ("SASL_SSL", lambda place: {"sasl.username": "nobody"}, r"HINT: check in kafka.properties: .*sasl.username is .?\"nobody"),
    "mechanism": ("SASL_SSL", lambda place: {"sasl.mechanism": "SCRAM-SHA-256"},
                  r"supported mechanisms: PLAIN,SCRAM-SHA-512.*HINT: sasl.mechanism in kafka.properties is SCRAM-SHA-256"),
    "authority": ("SASL_SSL", lambda place: {"ssl.ca.location": str(place.stranger.path)},
                  r"certificate verify failed.*HINT: the broker's certificate is not signed by ssl.ca.location \(.*stranger.crt"),
    "host": ("ELSEWHERE", lambda place: {},
             r"certificate verify failed.*HINT: .* or is for another name than the address in kafka.brokers"),
    "plaintext": ("SASL_SSL", lambda place: {"security.protocol": None, "sasl.mechanism": None, "sasl.username": None,
                                             "sasl.password": None},
                  r"HINT: security.protocol in kafka.properties is not set \(plaintext\)"),
    "tls to plaintext": ("PLAINTEXT", lambda place: {}, r"HINT: security.protocol in kafka.properties is SASL_SSL: does this listener speak TLS"),
    "no certificate": ("SSL", lambda place: {"security.protocol": "SSL"},
                       r"HINT: the broker refuses our certificate: ssl.certificate.location in kafka.properties is not set"),
    "foreign certificate": ("SSL", lambda place: {
        "security.protocol": "SSL", "ssl.certificate.location": str(place.directory / "foreign.crt"),
        "ssl.key.location": str(place.directory / "foreign.key")},
        r"HINT: the broker refuses our certificate: ssl.certificate.location in kafka.properties is .*foreign.crt"),
    "no right on the topic": ("SASL_SSL", lambda place: {}, r"Topic authorization failed; HINT: grant READ and DESCRIBE on the topic"),
}


@pytest.fixture
def many(create_receiptd, database, create_topic):
    """Installations side by side, so that their time-outs pass at once; migrated."""
    topic = create_topic(1)
    create_receiptd(database, topic).command("migrate", "--role", ROLE)
    return lambda: create_receiptd(database, topic)


def complaint_of(installation, watch):
    """Starts it; the reasons why it is not ready, and its log."""
    process = installation.start()
    return process, Operations(process)


def assert_complaints(cases, watch):
    """cases: {name: (process, operations, pattern)}"""
    for name, (process, operations, pattern) in cases.items():
        def complains(operations=operations, pattern=pattern):
            return any(re.search(pattern, reason) for reason in operations.get("/readyz").json["reasons"])

        wait_for(complains, 90, f"{name}: /readyz says /{pattern}/",
                 details=lambda: operations.get("/readyz").text + process.log_tail())
        assert operations.get("/livez").status == 200
        watch.hear(f"{name} /readyz", operations.get("/readyz").text)
        watch.hear(f"{name} /statusz", operations.get("/statusz").text)
        process.stop(60)
        watch.hear(f"{name} log", process.log())


def test_each_way_to_be_refused_by_kafka_is_named_with_what_to_do(many, place, watch):
    cases = {}
    for name, (listener, properties, pattern) in WRONG_KAFKA.items():
        installation = secure(many(), place, listener, properties(place))
        cases[name] = (*complaint_of(installation, watch), pattern)
    assert_complaints(cases, watch)


# name: (added to the connection string, password, what is said)
WRONG_POSTGRES = {
    "password": (lambda place: "", WRONG_PASSWORD, r"password authentication failed for user .?\"worker.*HINT: check user and password in postgres.dsn"),
    "authority": (lambda place: f"sslrootcert={place.stranger.path}", ROLE_PASSWORD,
                  r"certificate verify failed.*HINT: the server's certificate is not signed by what sslrootcert"),
    "host": (lambda place: "host=db.example hostaddr=127.0.0.1", ROLE_PASSWORD,
             r"does not match host name .?\"db.example.*HINT: the certificate is another host's"),
    "no such authority": (lambda place: "sslrootcert=/nowhere/ca.pem", ROLE_PASSWORD,
                          r"/nowhere/ca.pem.*HINT: sslrootcert in postgres.dsn"),
    "plaintext": (lambda place: "sslmode=disable", ROLE_PASSWORD, r"no encryption.*HINT: the server may require TLS.*sslmode=verify-full"),
    "no certificate": (lambda place: "user=certified", ROLE_PASSWORD, r"client certificate.*HINT: .*set sslcert and sslkey"),
    "another's certificate": (
        lambda place: f"user=certified sslcert={place.directory}/foreign.crt sslkey={place.directory}/foreign.key", ROLE_PASSWORD,
        r"HINT: the server does not trust the certificate of sslcert"),
}


def test_each_way_to_be_refused_by_postgresql_is_named_with_what_to_do(many, place, watch):
    cases = {}
    for name, (dsn, password, pattern) in WRONG_POSTGRES.items():
        installation = secure(many(), place, dsn=dsn(place), password=password)
        cases[name] = (*complaint_of(installation, watch), pattern)
        refused = installation.command("funnel", check=False)
        watch.hear(f"{name} funnel", refused.stderr + refused.stdout)
        assert refused.returncode in (69, 77), name
        assert re.search(pattern.split("HINT: ")[1], refused.stderr), f"{name}: {refused.stderr}"
    assert_complaints(cases, watch)


def test_a_configuration_that_is_wrong_is_refused_without_its_secrets(many, place, watch):
    for wrong in ({"postgres": {"dsn": f"password={ROLE_PASSWORD} host"}},
                  {"postgres": {"dsn": f"postgres://u:{ROLE_PASSWORD}@h:port/x"}},
                  {"kafka": {"properties": {"sasl.password": [USERS["receiptd"]]}}},
                  {"kafka": {"properties": {"sasl.passwort": USERS["receiptd"]}}},
                  {"http": {"token": {"a": SECRETS[-1]}}},
                  {"http": {"runs_token": {"a": SECRETS[-2]}}}):
        installation = many()
        installation.configure(**wrong)
        for words in (("check-config",), ("check-config", "--print"), ("funnel",)):
            result = installation.command(*words, check=False)
            watch.hear((wrong.keys(), words), result.stdout + result.stderr)
            assert result.returncode == 78 or words == ("funnel",) or "postgres" in wrong  # looked at when it connects


def test_a_secret_in_the_configuration_itself_is_warned_of(many, place, watch):
    installation = secure(many(), place)
    process = installation.start()
    process.wait_for_log("starting: group")
    process.stop(60)
    assert "stands in the configuration itself" not in process.log()
    installation.configure(kafka={"properties": {"sasl.password": USERS["receiptd"]}})
    told = installation.command("check-config").stderr
    assert "note: kafka.properties.sasl.password: the secret stands in the configuration itself" in watch.hear("check-config", told)
    process = installation.start("b")
    process.wait_for_log("kafka.properties.sasl.password: the secret stands in the configuration itself; HINT: ")
    process.stop(60)
    watch.hear("log", process.log())


def test_a_weak_setting_is_logged_at_the_start(many, place):
    installation = secure(many(), place, kafka={"enable.ssl.certificate.verification": "false"})
    process = installation.start()
    process.wait_for_log("level=warn component=config msg=\"kafka.properties.enable.ssl.certificate.verification: anybody may answer as a broker; HINT: ")
    process.stop(60)


def test_it_ends_in_order_while_a_look_at_kafka_still_waits_for_tls(many, place):
    """Threads of the library that nobody waits for were running into OpenSSL's own end."""
    for _ in range(5):
        installation = secure(many(), place, kafka={"sasl.password": WRONG_PASSWORD})
        process = installation.start()
        operations = Operations(process)
        process.wait_for(lambda: "connecting to Kafka" in operations.get("/readyz").json["reasons"], 30, "a look at Kafka")
        process.stop(60)


# ---- SCRAM, by library and by release of Kafka ---------------------------------------------------------------------

def library_version(installation, environment=None):
    text = installation.command("version", environment=environment).stdout
    return tuple(int(part) for part in re.search(r"librdkafka (\d+)\.(\d+)\.(\d+)", text).groups())


def scram(installation, place, **changes):
    return secure(installation, place, kafka={"sasl.mechanism": "SCRAM-SHA-512", **changes})


def test_a_library_that_cannot_do_scram_says_so_at_start_instead_of_blaming_the_password(many, place, watch):
    installation = scram(many(), place)
    if library_version(installation) >= (2, 6, 1):
        pytest.skip("this librdkafka can")
    process, operations = complaint_of(installation, watch)
    process.wait_for_log(r"librdkafka 2\.\d+\.\d+ cannot authenticate with SCRAM-SHA-512 on Kafka 4 and later")
    assert_complaints({"scram": (process, operations, r"invalid credentials.*HINT: the password of .?\"receiptd.*may be right: librdkafka")}, watch)


def run_short_stream(world, place, watch, environment=None):
    world.installation.configure(postgres={"dsn": world.database.dsn})
    world.installation.command("migrate", "--role", ROLE)
    world.insert(world.stream.platform)
    secure(world.installation, place, database=world.database.name, kafka={
        "sasl.mechanism": "SCRAM-SHA-512", "sasl.username": "admin",
        "sasl.password": secret_file(world.installation.directory, "admin", USERS["admin"])})
    process = world.installation.start(environment=environment)
    world.produce()
    world.finish(process)
    process.stop()
    watch.hear("log", process.log())


def test_a_newer_library_does_scram_with_this_kafka(create_world, watch, place):
    if "asan" in os.environ.get("RECEIPTD_BINARY", ""):
        pytest.skip("a library that was built without the sanitizer")
    environment = {"LD_LIBRARY_PATH": library("fetch_newer_librdkafka")}
    world = create_world(4_000, seed=313, migrate=False)
    assert library_version(world.installation, environment) >= (2, 6, 1)
    run_short_stream(world, place, watch, environment)


class TestOlderKafka:
    """Kafka 3.9 takes what Debian's librdkafka sends."""

    @pytest.fixture(scope="class")
    def older(self, place):
        broker = SecureBroker(place.directory, "kafka-3", place.authority, older=True)
        try:
            broker.start()
            broker.await_answer()
            yield broker
        finally:
            broker.end(9)

    @pytest.fixture(scope="class")
    def services(self, place, older):
        return SecurePair(place.postgres, older)

    def test_scram_works_with_the_library_at_hand(self, create_world, place, older, watch, monkeypatch):
        monkeypatch.setattr(place, "broker", older)
        run_short_stream(create_world(4_000, seed=314, migrate=False), place, watch)
