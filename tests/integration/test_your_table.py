"""docs/your-table.md, played: its blocks run as they stand, in their order, on a database that has the table of the page."""

import re
import shlex

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from support.daemon import to_yaml
from support.services import ROOT
from support.world import QUICK

PAGE = (ROOT / "docs/your-table.md").read_text()
BLOCK = re.compile(r"^```(sql|yaml|sh)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
OWN_NAMES = ("OWNER", "MY_DATABASE", "receiptd_migrator", "receiptd_daemon")


class Reader:
    """Somebody with the page, an administrator's session and that of the table's owner."""

    def __init__(self, installation, database, create_topic):
        self.installation, self.database, self.create_topic = installation, database, create_topic
        self.names = {name: f"{name.lower()}_{database.name}" for name in OWN_NAMES} | {"MY_DATABASE": database.name}
        self.topics, self.process, self.statuses, self.settings = {}, None, [], ""
        database.execute(f'CREATE ROLE "{self.names["OWNER"]}" LOGIN; GRANT CREATE ON DATABASE "{database.name}" TO "{self.names["OWNER"]}"')
        self.owner = self.session("OWNER")

    def session(self, name):
        return psycopg.connect(make_conninfo(self.database.dsn, user=self.names[name]), autocommit=True)

    def fill_in(self, text):
        for name, value in {**self.names, **self.topics}.items():
            text = re.sub(rf"(?<![-\w]){name}(?![-\w])", value, text)
        return text

    def sql(self, text):
        """Blocks about the table run as its owner, the others as an administrator."""
        (self.owner if "app." in text else self.database.connection).execute(self.fill_in(text))

    def yaml(self, text):
        self.settings = text

    def sh(self, text):
        for line in text.splitlines():
            words = shlex.split(self.fill_in(line), comments=True)
            {"receiptd": self.receiptd, "kafka-topics.sh": self.make_topic}[words[0]](words[1:])

    def make_topic(self, words):
        name, partitions = words[words.index("--topic") + 1], int(words[words.index("--partitions") + 1])
        topic = self.create_topic(partitions)
        self.topics[name] = str(topic)
        setattr(self, "topic" if name == "dlr-events" else "letters", topic)

    def receiptd(self, words):
        role = "receiptd_daemon" if self.topics else "receiptd_migrator"
        rest = {"postgres": {"dsn": make_conninfo(self.database.dsn, user=self.names[role]), **QUICK["postgres"]},
                "http": {"listen": "127.0.0.1:0"}, "control": {"socket": ""}}
        brokers = f"kafka:\n  brokers: {self.installation.settings['kafka']['brokers']}\n  group: {self.database.name}"
        self.installation.write_config(self.fill_in(self.settings).replace("kafka:", brokers) + to_yaml(rest) + "\n")
        if words == ["run"]:
            self.process = self.installation.start()
            return
        words = [words[0], "--config", str(self.installation.config_path), *words[1:]]
        self.statuses.append((words[0], self.installation.command(*words, check=False)))


@pytest.fixture
def reader(receiptd, database, create_topic):
    reader = Reader(receiptd, database, create_topic)
    yield reader
    reader.owner.close()
    for name in ("OWNER", "receiptd_migrator", "receiptd_daemon"):
        role = reader.names[name]
        if database.value("SELECT 1 FROM pg_roles WHERE rolname = %s", role):
            database.execute(f'REASSIGN OWNED BY "{role}" TO CURRENT_USER; DROP OWNED BY "{role}"; DROP ROLE "{role}"')


def test_the_page_leads_from_a_table_to_exact_statuses(reader):
    for language, text in BLOCK.findall(PAGE):
        getattr(reader, language)(text)
    said = [(name, result.returncode) for name, result in reader.statuses]
    assert said == [("check-config", 78), ("migrate", 0), ("migrate", 0), ("audit", 0), ("audit", 0), ("check-config", 0)], \
        "\n".join(result.stdout + result.stderr for _, result in reader.statuses)
    # What the refusal advises is the block that follows it.
    advised = re.search(r": (CREATE INDEX .*)$", reader.statuses[0][1].stderr, re.MULTILINE)[1]
    assert advised + ";\n" in [text for language, text in BLOCK.findall(PAGE) if language == "sql"]
    reader.topic.send(*({"message_id": str(n), "status": "DELIVERED"} for n in range(1, 1002)))
    reader.process.wait_for(lambda: reader.database.value("SELECT count(*) FROM app.messages WHERE receipt_status = 600") == 1001,
                            60, "all are delivered")
    assert reader.database.value("SELECT sum(messages) FROM receiptd.campaign_funnel WHERE status = 0") == 1001
    reader.receiptd(["audit"])
    assert reader.statuses[-1][1].returncode == 0
    reader.process.stop()
