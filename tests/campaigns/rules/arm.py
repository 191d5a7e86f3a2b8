"""Histories on one database and topic, three instances at most, and faults among them; then the judgement by the oracle."""

import os
import random
import time
from collections import Counter
from datetime import datetime, timezone

from faults.crew import Crew
from faults.kinds import Cycle
from oracle import broker
from oracle.compare import Report
from rules import kinds
from rules.histories import DIMENSIONS, EXPIRES, MACHINE_RULES, PARTITIONS, is_exact
from support.wait import wait_for
from support.world import Feeder

INSTANCES, SHARE_SECONDS = 2, 5
ON = {
    "dedup": {"window": "24h"},
    "counters": {"series": "30d", "reasons": "true", "gateways": "30d", "times": True, "links": True, "cost": True, "by": list(DIMENSIONS), "groups": ["customer", "logical"]},
    "machine": {"rules": [{"kind": kind, name: value, "policy": policy} for kind, name, value, policy in MACHINE_RULES]},
    "inbox": {"columns": {"recipient": "recipient"}, "expiry": [{"column": EXPIRES[0], "value": EXPIRES[1], "after": "1s"}]},
}
COLUMNS = ("message_id", "org_id", "campaign_id", *DIMENSIONS, "customer_id", "logical_id", "recipient", "created_at")
# Ranges wait for late rows until end_waiting(), however slow the machine is: their minute does not pass by itself.
SLOW_CLOCK = "ALTER TABLE receiptd.range_receipt ALTER stored_at SET DEFAULT now() + interval '1 day'"
# The hour of a change and the link of a first click depend on the order of receipts: only their sums are compared.
COUNTS = """
SELECT 'funnel messages', campaign_id, NULL::int8, NULL::text, status, messages FROM receiptd.campaign_funnel
UNION ALL SELECT 'funnel events', campaign_id, NULL, NULL, status, events FROM receiptd.campaign_funnel
UNION ALL SELECT kind || ' messages', campaign_id, NULL, CASE WHEN kind <> 'by_link' THEN key END, status, messages FROM receiptd.campaign_tally
    WHERE kind LIKE 'by_%'
UNION ALL SELECT kind || ' events', campaign_id, NULL, key, status, events FROM receiptd.campaign_tally WHERE kind LIKE 'by_%'
UNION ALL SELECT 'hour', campaign_id, (extract(epoch FROM at) / 3600)::int8, NULL, status, events FROM receiptd.campaign_tally WHERE kind = 'hour'
UNION ALL SELECT kind || ' messages', campaign_id, NULL, NULL, status, messages FROM receiptd.campaign_tally WHERE kind IN ('hour', 'minute')
UNION ALL SELECT kind, campaign_id, NULL, NULL, status, events FROM receiptd.campaign_tally WHERE kind = 'minute'
UNION ALL SELECT kind, campaign_id, NULL, key, status, events FROM receiptd.campaign_tally WHERE kind IN ('duplicate', 'reason')
UNION ALL SELECT kind, NULL, NULL, key, status, events FROM receiptd.campaign_tally WHERE kind IN ('gateway', 'gateway_duplicate', 'gateway_reason')
UNION ALL SELECT kind, NULL, NULL, key, NULL, events FROM receiptd.campaign_tally WHERE kind = 'gateway_delay'
UNION ALL SELECT kind, campaign_id, NULL, key, status, messages FROM receiptd.campaign_tally WHERE kind IN ('time_to_deliver', 'time_to_open')
UNION ALL SELECT kind, NULL, NULL, key, status, messages FROM receiptd.campaign_tally WHERE kind IN ('gateway_time_to_deliver', 'gateway_time_to_open')
UNION ALL SELECT 'cost', campaign_id, NULL, currency, status, receipts FROM receiptd.campaign_cost
UNION ALL SELECT 'cost amount', campaign_id, NULL, currency, status, amount * 1000000000 FROM receiptd.campaign_cost
UNION ALL SELECT kind, campaign_id, NULL, NULL, status, groups FROM receiptd.group_funnel
"""


class Arm(Crew):
    """One way in which the histories may come. Without `late` all messages are there before their receipts. With it some come among them, and some after
    all of them."""

    more_drifts = kinds.DRIFTS

    def __init__(self, lab, histories, seed, directory, late):
        source = random.Random(seed)
        super().__init__(lab, f"rules_{time.monotonic_ns():x}", directory, source, PARTITIONS, lanes=source.choice((4, 8, 16)))
        self.histories, self.late, self.opened = histories, late, 0
        self.equip({**ON, "memory": {"budget": source.choice(("1MiB", "16MiB"))}, "parked": {"wake_limit": source.choice((300, 3000))}})
        self.database.execute(SLOW_CLOCK)
        self.copies, records = histories.arm(seed)
        self.records = list(records)
        self.notes, self.played = Counter(), Counter()

    def run(self, faults):
        """Plays these kinds of faults. Returns what is not exact, or "". An assertion says what else went wrong."""
        early, late, later = self.rows()
        self.insert(early)
        self.feeder = Feeder(lambda: self.send(len(faults) + 1))
        self.occupy(INSTANCES)
        self.play_all(faults[: len(faults) // 2])
        self.insert(late)
        self.play_all(faults[len(faults) // 2 :])
        self.opened = len(faults) + 2
        self.feeder.join(timeout=1200)
        self.wait_until_consumed(timeout=300)
        self.read_back()
        self.insert(later)
        self.end_waiting()
        self.command("audit")
        differences = difference(self.counts(), self.histories.expected(self.copies), is_exact)
        return "\n".join(filter(None, (self.wrong_states(), differences, self.missed(), self.forgotten(), self.too_much())))

    def play_all(self, faults):
        for kind in faults:
            self.opened += 1
            self.play(kind)

    def play(self, kind):
        """An assertion says what went wrong."""
        cycle, wrong = Cycle(self, self.random.random()), []
        cycle.wait_for_receipts()
        try:
            kind.run(cycle)
        except AssertionError as error:
            wrong.append(str(error))
        self.lab.heal()
        wrong += self.settle()
        assert not wrong, "\n".join([f"while {kind.name} was played", *wrong])
        self.played[kind.name] += 1
        self.notes.update(cycle.notes)
        self.occupy(INSTANCES)
        self.expire()

    def expire(self):
        """A server that has just come back from a fault may refuse the command's connection."""
        def ended():
            result = self.command("expire", check=False)
            assert result.returncode in (0, os.EX_UNAVAILABLE), result.stderr
            return result.returncode == 0
        wait_for(ended, 60, "receiptd expire reaches the server", interval=0.5)

    # ---- what flows

    def send(self, shares):
        """Sends a share of the records before each fault and after the last: half of it at once, so that the fault meets batches, the rest slowly until the
        next one may begin."""
        sender = broker.Sender(self.brokers, str(self.topic), log_level=0, **{"reconnect.backoff.max.ms": 500})
        for place, record in enumerate(self.records):
            share, part = divmod(place * shares / len(self.records), 1)
            wait_for(lambda: self.opened >= share, 600, "the share before is over")
            sender.send(record)
            if self.opened == share and part > 0.5:
                sender.poll()
                time.sleep(2 * SHARE_SECONDS * shares / len(self.records))
        sender.flush()

    def read_back(self):
        """What a producer sent again when a broker died stands in the log twice, and counts as it stands there."""
        sent, self.copies = self.copies, self.histories.copies(record.value for record in broker.read_log(self.brokers, str(self.topic))[0])
        assert all(there >= times for there, times in zip(self.copies, sent)), "the campaign itself: the log does not have all that was sent"

    def finish_rows(self):
        """Nobody inserts rows while a fault is played."""

    def rows(self):
        """Messages that are there before their receipts, that come among them, and that come after all of them."""
        early, late, later = [], [], []
        for message in self.histories.messages:
            draw = self.random.random() if self.late else 1
            (later if draw < 0.02 else late if draw < 0.05 else early).append(message)
        return early, late, later

    def insert(self, messages):
        if not messages:
            return
        lines = ("\t".join("\\N" if field is None else field for field in (*message[:-1], datetime.fromtimestamp(message.sent / 1000, timezone.utc).isoformat()))
                 for message in messages)
        with self.database.connect() as connection, connection.cursor() as cursor:
            with cursor.copy(f"COPY receiptd.message_inbox ({', '.join(COLUMNS)}) FROM STDIN") as target:
                target.write(("\n".join(lines) + "\n").encode())

    # ---- the clock: the minute of waiting ends when the campaign says so

    def end_waiting(self):
        """What has all that it waits for is applied. Then nothing more comes: ranges look again."""
        self.until_none("receiptd.parked_event")
        self.until_none("receiptd.range_receipt WHERE looks = 0 OR due_at <= now()")
        self.database.execute("UPDATE receiptd.range_receipt SET due_at = now()")
        self.until_none("receiptd.range_receipt")
        self.until_none("receiptd.parked_event")
        time.sleep(1.1)
        self.expire()
        self.until_none("receiptd.group_delta")

    def until_none(self, rows):
        """Asks seldom: tables that were full for a while are slow to read."""
        wait_for(lambda: self.occupied() and not self.database.value(f"SELECT EXISTS (SELECT FROM {rows})"), 300, f"none is left: {rows}", interval=0.5, details=self.group_log)

    # ---- the judgement

    def counts(self):
        found = Counter()
        for *key, number in self.database.query(COUNTS):
            found[tuple(part for part in key if part is not None)] += int(number)
        return +found

    def wrong_states(self):
        """Messages that stand where they must not."""
        rows = self.database.query("SELECT message_id, status, flags FROM receiptd.message_inbox")
        wrong = [f"{id} stands in {tuple(state)} and not in {self.histories.states[id]}: {self.histories.story(id)}"
                 for id, *state in rows if tuple(state) not in self.histories.states[id]]
        return "\n".join([f"{len(wrong)} messages", *wrong[:5]]) if wrong else ""

    def missed(self):
        """Where no message is late, no receipt is one of an unknown message, whatever it waits for."""
        count = 0 if self.late else self.database.value("SELECT COALESCE(sum(events), 0)::int8 FROM receiptd.campaign_tally WHERE kind = 'gateway_unknown'")
        return f"{count} receipts of known messages count as unknown" if count else ""

    def forgotten(self):
        """Messages that do not have one key for each of their receipts of which the policies leave something."""
        keys = dict(self.database.query(
            "SELECT m.message_id, COALESCE(s.n, 0) FROM receiptd.message_inbox m LEFT JOIN"
            " (SELECT c.message, count(*) AS n FROM receiptd.receipt_counted c GROUP BY 1) s ON s.message = hashtextextended(m.message_id, 0)"))
        came = Counter(message.id for message, _, codes in self.histories.events if codes)
        wrong = [f"{id} has {keys[id]} keys of {count} receipts: {self.histories.story(id)}" for id, count in came.items() if keys[id] != count]
        return "\n".join([f"{len(wrong)} messages with other keys than receipts", *wrong[:5]]) if wrong else ""

    def too_much(self):
        report = Report()
        self.measure(report)
        return str(report) if report else ""

    # ---- the end

    def close(self):
        """Returns what went wrong with that."""
        self.opened = 1 << 30
        self.lab.heal()
        trouble = "\n".join(super().close())
        self.topic.drop()
        return trouble


def difference(found, expected, is_exact):
    """Some counters that differ, as text; "" if none does."""
    wrong = sorted((key for key in found.keys() | expected.keys() if found[key] != expected[key] and is_exact(key)), key=str)
    shown = "; ".join(f"{' '.join(map(str, key))}: {found[key]} instead of {expected[key]}" for key in wrong[:5])
    return f"{len(wrong)} counters differ: {shown}" if wrong else ""
