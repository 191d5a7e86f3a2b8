"""One database, one topic and up to three instances, for many cycles; and the judgement over all records so far."""

import json
import random
import threading
import time

import psycopg

from faults.crew import Crew
from oracle import broker, rules
from oracle.compare import Report, compare
from oracle.ledger import Ledger
from oracle.traffic import Traffic
from support.world import Feeder

RECORD_SIZES = (1, 1, 1, 2, 5, 20, 50)
EVENTS = 6_000  # the most in a cycle: the feeder stops when the faults have ended
RATE = 1_500  # events a second

# The database refuses rows of these ids, as a platform's own constraint would.
REFUSAL = """
    CREATE TABLE public.unwanted (id text PRIMARY KEY);
    GRANT SELECT ON public.unwanted TO PUBLIC;
    CREATE FUNCTION public.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF EXISTS (SELECT FROM public.unwanted WHERE id = NEW.message_id) THEN
            RAISE EXCEPTION 'not wanted' USING ERRCODE = 'P0001';
        END IF;
        RETURN NEW;
    END $$;
    CREATE TRIGGER refuse BEFORE UPDATE ON receiptd.message_inbox FOR EACH ROW EXECUTE FUNCTION public.refuse();
"""


class Era(Crew):
    def __init__(self, lab, seed, directory):
        source = random.Random(seed)
        name = f"era_{seed & 0xFFFFFFFF:x}_{time.monotonic_ns() & 0xFFFFFF:x}"
        super().__init__(lab, name, directory, source, partitions=source.choice((3, 8, 8)), lanes=source.choice((1, 8, 8, 32)))
        self.equip(rules.SETTINGS)
        self.database.execute(REFUSAL)
        self.ledger, self.read_to, self.first_message = Ledger({}), {}, 0
        self.sender, self.inserter, self.stop_feeding = None, None, threading.Event()

    # ---- traffic

    def begin(self, seed, poisoned=0):
        """Receipts flow from now on, and rows of late messages are inserted. poisoned: messages that the database refuses."""
        self.stream = Traffic(seed, EVENTS, self.topic.partitions, late=0.05, first=self.first_message,
                              sizes=RECORD_SIZES)
        self.first_message += len(self.stream.messages)
        self.stop_feeding.clear()
        self.insert_always(self.stream.early)
        self.ledger_rows(self.stream.platform)
        if poisoned:
            self.poison(poisoned)
        if self.sender is None:
            self.sender = broker.Sender(self.lab.brokers, str(self.topic), log_level=0, **{"reconnect.backoff.max.ms": 500})
        self.feeder = Feeder(self.send_stream)
        self.inserter = Feeder(self.insert_late)

    def some_records(self, source):
        """Makes a few more receipts of messages of this cycle, and some of messages without a row."""
        first = self.first_message - len(self.stream.messages)
        return Traffic(source.random(), 400, self.topic.partitions, first=first, sizes=RECORD_SIZES).records()

    def send_stream(self):
        interval, began = self.stream.events_per_record / RATE, time.monotonic()
        for count, outgoing in enumerate(self.stream.records()):
            if self.stop_feeding.is_set():
                break
            self.sender.send(outgoing)
            ahead = count * interval - (time.monotonic() - began)
            if ahead > 0.005:
                self.sender.poll()
                time.sleep(ahead)

    def insert_late(self):
        late = list(self.stream.late.items())
        while late:
            some, late = late[:50], late[50:]
            self.insert_always(dict(some))
            if late and not self.stop_feeding.is_set():
                time.sleep(0.1)

    def insert_always(self, rows, timeout=60):
        """The platform retries through every fault of the database, also after a lost answer."""
        deadline = time.monotonic() + timeout
        columns = [list(values) for values in zip(*((id, row.org_id, row.campaign_id, *rules.facets_of(id)) for id, row in rows.items()))]
        while True:
            try:
                with self.database.connect() as connection:
                    connection.execute(
                        f"INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id, {', '.join(rules.COLUMNS)})"
                        f" SELECT * FROM unnest({', '.join(['%s::text[]'] * len(columns))}) ON CONFLICT DO NOTHING", columns)
                return
            except psycopg.Error:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def poison(self, count):
        """The database will refuse every receipt of so many messages. Receipts that change no row are never refused:
        messages that have one do not serve."""
        harmless = {message for message, status in self.stream.happenings if status in ('"TARGETED"', "0")}
        chosen = [message for message in self.random.sample(self.stream.messages, count) if message not in harmless]
        ids = {json.loads(message.spellings[0]) for message in chosen} & self.stream.platform.keys()
        self.database.execute("INSERT INTO public.unwanted SELECT unnest(%s::text[])", list(ids))
        self.ledger.refused |= ids

    def ledger_rows(self, rows):
        self.ledger.platform.update(rows)
        for id in rows:
            self.ledger.status.setdefault(id, 0)

    def finish_rows(self):
        """Waits until all rows of the cycle are there: for faults that would also lose rows of the platform."""
        if self.inserter is not None:
            self.inserter.join()

    def end_feeding(self):
        self.stop_feeding.set()
        self.feeder.join()
        self.inserter.join()
        self.sender.flush()

    # ---- judgement

    def differences(self):
        records, ends = broker.read_log(self.lab.brokers, str(self.topic), since=self.read_to)
        self.ledger.positions.update(ends)
        for record in records:
            self.ledger.add(record)
        self.read_to = ends
        with self.database.connect() as connection:
            report = compare(connection, self.ledger, self.lanes)
            rules.compare_rules(report, connection, self.ledger)
            return report

    def judge(self):
        """{anomaly: (how many, examples)}; nothing is in flight any more."""
        report, self.caught_up_at = Report(), time.monotonic()
        try:
            self.wait_until_consumed(timeout=60)
            self.caught_up_at = time.monotonic()
            self.wait_until_woken(timeout=30)
        except AssertionError as error:
            report.add("stuck", f"{error}\n{self.group_log()}")
            return report
        audit = self.command("audit", check=False)
        if audit.returncode != 0:
            report.add("audit", f"status {audit.returncode}\n{audit.stdout}{audit.stderr}")
        found = self.differences()
        for name, count in found.counts.items():
            report.counts[name] += count
            report.examples[name] += found.examples[name]
        self.measure(report)
        return report
