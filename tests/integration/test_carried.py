"""What a receipt carries survives everything that may happen to it before it counts: each way leads back to the row that the batch parked."""
import time

import pytest

from support.services import ROOT

ON = {"dedup": {"window": "7d"}, "counters": {"series": "30d", "reasons": True, "gateways": "30d", "times": True},
      "inbox": {"columns": {"recipient": "recipient"}}, "machine": {"opens": "count"}}
TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
# One receipt or more for each thing that one may carry. Some name no time: theirs is that of their record.
RECEIPTS = (
    {"message_id": "plain", "status": "SENT"},
    {"message_id": "flags", "status": "DELIVERED", "flags": ["COMPLAINED"], "at": "2026-11-20T10:00:00.123456Z"},
    {"message_id": "origin", "status": "SENT", "gateway": "kannel", "org_id": "o", "campaign_id": "c"},
    {"message_id": "gateways-own", "status": "SENT", "gateway": "kannel", "gateway_message_id": "gateways-own", "org_id": "o"},
    {"message_id": "reason", "status": "FAILED", "gateway": "kannel", "reason_class": "invalid_recipient", "reason": "452 4.2.2 mailbox full"},
    {"message_id": "event", "status": "DELIVERED", "event_id": "e-1", "at": 1763632800},
    {"message_id": "part", "status": "DELIVERED", "part": 2, "parts": 3, "event_id": "e-2"},
    {"message_id": "clicked", "status": "CLICKED", "flags": ["MACHINE_OPEN"], "org_id": "o"},
    {"message_id": "channel", "status": "BOUNCED_HARD", "channel": "email"},
)
IDS = [receipt["message_id"] for receipt in RECEIPTS]
REFUSE = """
CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''not today''; END';
CREATE TRIGGER refuse BEFORE UPDATE ON receiptd.message_inbox FOR EACH ROW EXECUTE FUNCTION public.refuse();
"""


class Way:
    def __init__(self, create_world):
        self.world = create_world(partitions=1, lanes=2, **ON)
        self.database, self.process = self.world.database, None
        self.reference = {}

    def stop(self):
        if self.process is not None:
            self.process.stop()
        self.process = None

    def run(self, **settings):
        """The daemon with these settings, until it has taken everything in."""
        self.stop()
        self.world.installation.configure(**settings)
        self.process = self.world.installation.start()
        self.world.wait_until_consumed(self.process)

    def send(self):
        self.world.topic.send_records([{"value": receipt, "headers": [("traceparent", TRACE)], "timestamp_ms": 1763600000000 + n}
                                       for n, receipt in enumerate(RECEIPTS)])

    def parked(self):
        """All columns but those of the position and the moment of parking."""
        rows = self.database.query("SELECT p.message_id, to_jsonb(p) - '{parked_at,offset}'::text[] FROM receiptd.parked_event p")
        return dict(rows)

    def park(self):
        """As a batch parks them: the reference. No daemon runs afterwards."""
        self.send()
        self.run()
        self.stop()
        self.reference = self.parked()
        assert set(self.reference) == set(IDS)
        used = {column for row in self.reference.values() for column, value in row.items() if value is not None}
        assert used == set(self.reference["plain"]), "each column has a receipt here that carries it"

    def letters(self, reason, count=len(RECEIPTS)):
        self.world.wait(lambda: self.database.value("SELECT count(*) FROM receiptd.dead_letter WHERE reason = %s", reason) == count,
                        self.process, 30, f"{count} letters {reason}", details=lambda: self.database.query("SELECT reason, detail FROM receiptd.dead_letter"))

    def redrive(self):
        """Without a daemon, so that the rows can be looked at."""
        self.stop()
        said = self.world.installation.json("dead-letters", "--redrive", "--format", "json")
        assert said[0]["letters_left"] == 0, said
        assert self.parked() == self.reference


@pytest.fixture
def way(create_world):
    made = Way(create_world)
    yield made
    made.stop()


def test_parked_too_long_and_redriven(way):
    way.park()
    for _ in range(2):  # the second time what the redrive has parked
        way.run(parked={"max_age": "1s"})
        way.letters("aged_out")
        way.redrive()


def test_refused_as_unknown_and_redriven_alone_and_as_whole_records(way):
    way.park()
    way.database.execute("DELETE FROM receiptd.parked_event")
    way.send()
    way.run(unknown="dead-letter")
    way.letters("unknown_message")
    way.redrive()
    way.database.execute("DELETE FROM receiptd.parked_event")
    way.send()
    way.run()
    way.letters("unknown_message")
    way.database.execute("UPDATE receiptd.dead_letter SET index = -1, payload = convert_to('[' || convert_from(payload, 'UTF8') || ']', 'UTF8')")
    way.redrive()


@pytest.mark.parametrize("known", (False, True))
def test_refused_by_postgresql_and_redriven(way, known):
    """In a batch, which is searched for the culprit, and when it wakes."""
    way.park()
    way.database.execute(REFUSE)
    if known:
        way.database.execute("DELETE FROM receiptd.parked_event")
        way.world.insert_ids(*IDS)
        way.send()
    else:
        way.world.insert_ids(*IDS)
    way.run()
    way.letters("database")
    way.database.execute("DROP TRIGGER refuse ON receiptd.message_inbox")
    way.redrive()


@pytest.mark.parametrize("known", (False, True))
def test_refused_as_of_another_organisation_and_redriven(way, known):
    way.park()
    of_org = [receipt["message_id"] for receipt in RECEIPTS if "org_id" in receipt]
    if known:
        way.database.execute("DELETE FROM receiptd.parked_event")
    way.database.execute("INSERT INTO receiptd.message_inbox (message_id, org_id) SELECT unnest(%s::text[]), 'other'", of_org)
    if known:
        way.send()
    way.run()
    way.letters("other_organisation", len(of_org))
    way.reference = {id: row for id, row in way.reference.items() if id in of_org}
    way.database.execute("DELETE FROM receiptd.parked_event")
    way.redrive()


def test_set_aside_for_a_topic_that_was_made_again(way):
    way.park()
    way.database.execute("SET search_path = receiptd")
    text = (ROOT / "sql/command/positions_set_aside.sql").read_text().replace("$1::text", "%s").replace("$2::int4", "%s")
    topic = str(way.world.topic)
    assert way.database.value(text, topic, topic, 0, topic, 0) == len(RECEIPTS)
    assert way.database.value("SELECT max(\"offset\") FROM receiptd.parked_event") < 0 and way.parked() == way.reference


def test_what_a_range_has_parked(way):
    """It is no copy of another receipt."""
    way.database.execute("INSERT INTO receiptd.message_inbox (message_id, status, recipient, gateway, created_at) VALUES ('m', 600, 'p', 'page', '2026-11-20')")
    way.database.execute(REFUSE)
    parked = way.database.execute
    parked("CREATE TABLE public.seen (one jsonb); CREATE FUNCTION public.see() RETURNS trigger LANGUAGE plpgsql AS"
           " 'BEGIN INSERT INTO public.seen SELECT to_jsonb(n) - ''{parked_at,offset}''::text[] FROM new n; RETURN NULL; END'")
    parked("CREATE TRIGGER see AFTER INSERT ON receiptd.parked_event REFERENCING NEW TABLE AS new FOR EACH STATEMENT EXECUTE FUNCTION public.see();"
           "GRANT INSERT ON public.seen TO PUBLIC")
    way.world.topic.send({"recipient": "p", "gateway": "page", "until": "2026-11-21T00:00:00Z", "status": "OPENED"}, headers=[("traceparent", TRACE)],
                         timestamp_ms=1763600000000)
    way.run()
    way.letters("database", 1)
    way.reference = {"m": way.database.value("SELECT one FROM public.seen")}
    assert way.reference["m"]["index"] >= 200000
    way.database.execute("DROP TRIGGER refuse ON receiptd.message_inbox")
    way.redrive()


def test_copies_that_aged_out_count_once_when_their_message_is_there(way):
    way.world.topic.send(*[{"message_id": "m", "status": "FAILED", "gateway": "kannel", "reason_class": "invalid_recipient"}] * 3, timestamp_ms=int(time.time() * 1000))
    way.run(parked={"max_age": "1s"})
    way.letters("aged_out", 3)
    way.world.insert_ids("m")
    way.world.installation.command("dead-letters", "--redrive")
    events = "SELECT events FROM receiptd.campaign_funnel WHERE status = 440"
    way.world.wait(lambda: way.database.value(events) == 1 and way.database.value("SELECT count(*) FROM receiptd.parked_event") == 0, way.process, 30, "counted")
    figures = dict(way.database.query("SELECT kind, sum(events)::int FROM receiptd.campaign_tally WHERE kind IN ('duplicate', 'reason') GROUP BY 1"))
    assert figures == {"duplicate": 2, "reason": 1}
    assert way.database.value("SELECT key FROM receiptd.campaign_tally WHERE kind = 'reason' AND events > 0") == "invalid_recipient"
