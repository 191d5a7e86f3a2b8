"""docs/scale.md, played: two cells behind one intake, one view over the funnels of both, and an organisation that moves while its
gateway goes on sending. The page's statements run as they stand."""

import re
from collections import Counter

import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from support import intake, templates
from support.intake import Gateway
from support.services import ROOT
from support.wait import wait_for

PAGE = (ROOT / "docs/scale.md").read_text()
BLOCKS = dict(re.findall(r"^```sql\n-- (\w+):.*?\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL))
MESSAGES = 600
ORGANISATIONS = ("acme", "bird", "coda")


def run(database, block, **names):
    """A block of the page, with psql's variables filled in, in one transaction where it says so."""
    text = re.sub(r":'(\w+)'", lambda match: sql.quote(names[match.group(1)]), BLOCKS[block])
    text = re.sub(r':"(\w+)"', lambda match: f'"{names[match.group(1)]}"', text)
    with database.connect() as connection:
        connection.execute(text)


def link(cells):
    """Gives each cell the tables of the other one: {the cell as the other calls it: the cell}."""
    for block in ("link", "import"):
        for name, other in cells.items():
            place = conninfo_to_dict(other.database.dsn)
            (cell,) = (each for each in cells.values() if each is not other)
            run(cell.database, block, cell=name, host=place["host"], port=place["port"], dbname=other.database.name, user=place["user"])


class Cell:
    def __init__(self, receiptd, database, topics):
        self.receiptd, self.database, self.process = receiptd, database, None
        templates.migrate(receiptd, database)
        self.read(topics)

    def read(self, topics):
        """Stops the instance and starts it with these topics."""
        if self.process is not None:
            self.process.stop()
        self.receiptd.configure(kafka={"topics": [str(topic) for topic in topics]})
        self.process = self.receiptd.start()
        self.process.wait_for_log(r'msg="ready"')

    def add(self, organisation):
        rows = [(f"{organisation}-{number}", organisation, f"{organisation}-campaign") for number in range(MESSAGES)]
        self.database.add_messages(rows)

    def check(self):
        said = self.receiptd.command("audit").stdout
        assert " 0 cells drift" in said, said


@pytest.fixture
def cells(create_receiptd, create_database, create_topic):
    topics = {name: create_topic(2) for name in ORGANISATIONS}
    made = []
    for number, names in enumerate((("acme", "bird"), ("coda",))):
        database = create_database()
        receiptd = create_receiptd(database, *(topics[name] for name in names))
        receiptd.configure(kafka={"group": f"cell-{database.name}"})
        made.append(Cell(receiptd, database, [topics[name] for name in names]))
        for name in names:
            made[number].add(name)
    return topics, made


@pytest.fixture
def gateways(cells, create_receiptd, create_database, create_topic):
    """One intake for all organisations, an account and a topic each, and a gateway of each that sends until it is told to stop."""
    topics, _ = cells
    installation = create_receiptd(create_database(), *topics.values())
    installation.configure(intake={"listen": "127.0.0.1:0", "metrics_listen": "127.0.0.1:0", "alias": "off", "dead_letter_topic": str(create_topic(1)), "accounts": [
        {"name": name, "gateway": "twilio", "org_id": name, "verify": "off", "message_id": "?mid", "topic": str(topic)}
        for name, topic in topics.items()]})
    process = intake.start(installation)
    statuses = ("sent", "delivered")
    made = {name: Gateway(lambda: process.port, name, MESSAGES * len(statuses), account=name, statuses=statuses, pause=0.004) for name in topics}
    yield made
    for gateway in made.values():
        gateway.stop()


def progress(cell, organisation):
    return cell.database.value("SELECT count(*) FROM receiptd.message_inbox WHERE org_id = %s AND status > 0", organisation)


def test_an_organisation_moves_without_losing_or_doubling_a_receipt(cells, gateways):
    topics, (first, second) = cells
    link({"first": first, "second": second})
    wait_for(lambda: progress(first, "bird") >= 100, 60, "receipts of the organisation that is to move")

    first.read([topics["acme"]])
    moving = {"organisation": "bird", "topic": str(topics["bird"])}
    run(second.database, "copy", cell="first", **moving)
    run(first.database, "leave", cell="second", **moving)
    run(first.database, "leave", cell="second", **moving)  # a second time changes nothing
    assert first.database.value("SELECT count(*) FROM receiptd.message_inbox WHERE org_id = 'bird'") == 0
    assert gateways["bird"].is_alive(), "the gateway has sent all before the organisation moved"
    second.read([topics["coda"], topics["bird"]])

    for gateway in gateways.values():
        gateway.join(120)
        assert gateway.error is None, gateway.error
    for cell, names in ((first, ["acme"]), (second, ["bird", "coda"])):
        for name in names:
            wait_for(lambda cell=cell, name=name: cell.database.value(
                "SELECT count(*) FROM receiptd.message_inbox WHERE org_id = %s AND status = 600", name) == MESSAGES, 60, f"{name}'s receipts")
        cell.check()
    run(second.database, "view", cell="first")
    found = second.database.query("SELECT campaign_id, status_name, messages, events FROM all_campaign_funnel WHERE status_name IN ('SENT', 'DELIVERED')")
    sent = {name: Counter(status for _, status in gateway.acknowledged) for name, gateway in gateways.items()}
    assert sorted(found) == sorted(
        (f"{name}-campaign", status.upper(), MESSAGES, sent[name][status]) for name in ORGANISATIONS for status in ("sent", "delivered"))
