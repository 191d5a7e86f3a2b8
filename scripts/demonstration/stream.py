"""The stream of receipts and the ledger of its expected result.

Each worker process lives the lives of its share of the messages, keeps the account, sorts all receipts by their time of
arrival and packs them into records. Time is compressed: delays shape the order, not how long the demonstration takes.
"""

import gc
import random
from array import array
from collections import Counter
from dataclasses import dataclass, field

from demonstration import campaigns

PARTITIONS = 8
RECORD_SIZES = (1000, 1000, 1000, 500, 250, 100, 20, 1)  # gateways aggregate differently
MISSING = 0.05  # a receipt never comes (only where a later one says more)
DUPLICATED = 0.02  # it comes again, up to 15 minutes later
DISORDERED = 0.05  # it is held up for up to 20 s on its way
ELSEWHERE = 0.06  # it comes by another partition than its message's others
LATE_ROW = 0.005  # receipts come before the platform has inserted the row
NEVER_ROW = 0.002  # receipts of messages without a row

# Mistakes of producers: text of an event ({} stands for an id), reason of the dead letter.
POISON_EVENTS = (
    ('{{"status":"DELIVERED"}}', "missing_id"),
    ('{{"message_id":"{}"}}', "missing_status"),
    ('{{"message_id":"{}","status":"LOST_IN_SPACE"}}', "unknown_status"),
    ('{{"message_id":"{}\\u0000","status":"SENT"}}', "invalid_id"),
    ('{{"message_id":"' + "x" * 300 + '","status":"SENT"}}', "id_too_long"),
    ('{{"message_id":"{}","status":"SENT","at":"yesterday"}}', "invalid_time"),
)
POISON_RECORDS = (
    (b'[{"message_id":"cut off","sta', "invalid_json"),
    (b"<xml>a gateway's error page</xml>", "invalid_json"),
    (b'"DELIVERED"', "not_an_event"),
    (b"", "empty_record"),
    (b'{"message_id":"\xff\xfe","status":"SENT"}', "invalid_utf8"),
)


# Of failures, as the adapters of the intake would write it.
REASONS = {"BOUNCED_SOFT": "absent", "BOUNCED_HARD": "invalid", "FAILED": "network", "BLOCKED": "blocked", "SUBMIT_FAILED": "content", "EXPIRED": "expired", "UNKNOWN": "unknown"}


@dataclass
class Ledger:
    """What must be in the database when everything has arrived."""

    events: Counter = field(default_factory=Counter)  # (campaign, code): receipts of known messages
    dead_letters: Counter = field(default_factory=Counter)  # reason: number
    parked: int = 0  # receipts of messages without a row
    duplicates: int = 0
    numbers: array = field(default_factory=lambda: array("I"))  # known messages …
    statuses: array = field(default_factory=lambda: array("h"))  # … the status and flags of each
    flags: array = field(default_factory=lambda: array("I"))

    def add(self, other):
        self.events += other.events
        self.dead_letters += other.dead_letters
        self.parked += other.parked
        self.duplicates += other.duplicates
        self.numbers += other.numbers
        self.statuses += other.statuses
        self.flags += other.flags

    @property
    def total(self):
        """All receipts that must be settled: counted, parked or dead."""
        return sum(self.events.values()) + self.parked + sum(self.dead_letters.values())

    def funnel(self, total_messages):
        """{(campaign, code): (messages, events, current)}, without rows that are all 0."""
        messages, current = Counter(), Counter()
        by_state = Counter()
        for campaign, first, end in campaigns.messages_of(total_messages):
            known = Counter()
            for number, status, flags in zip(self.numbers, self.statuses, self.flags):
                if first <= number < end:
                    known[status, flags] += 1
            for (status, flags), count in known.items():
                by_state[campaign.name, status, flags] += count
            untouched = end - first - sum(known.values())
            by_state[campaign.name, 0, 0] += untouched
        for (name, status, flags), count in by_state.items():
            current[name, status] += count
            for code in campaigns.path(status):
                messages[name, code] += count
            for bit in campaigns.FLAGS.values():
                if flags >> bit & 1:
                    messages[name, campaigns.FIRST_FLAG_CODE + bit] += count
        keys = {key for counter in (messages, self.events) for key, count in counter.items() if count}
        return {key: (messages[key], self.events[key], current[key] if key[1] < campaigns.FIRST_FLAG_CODE else None)
                for key in keys}


def is_late(number):
    """Whether the platform inserts this message's row only while receipts already come."""
    return number * 2654435761 % 100000 < LATE_ROW * 100000


class Author:
    """Writes the receipts of some messages."""

    def __init__(self, seed, now_ms):
        self.random = random.Random(seed)
        # 24 hours and more must pass before the last receipt, for nothing comes from the future.
        self.base_ms = now_ms - 4 * 86400 * 1000
        self.limit_ms = now_ms - 60 * 1000
        self.ledger = Ledger()
        self.arrivals = []  # (time, partition, text)
        self.delays = {}

    def write_campaign(self, campaign, numbers, known=True):
        draw = self.random.random
        journeys = []
        for weight, statuses in campaign.journeys:
            steps = [self._step(campaign, status) for status in statuses.split()]
            journeys += [steps] * weight
        append, ledger = self.arrivals.append, self.ledger
        events = Counter()
        kinds = len(journeys)
        first = numbers[0] if len(numbers) else 0
        start = self.base_ms + int(campaign.begins_s * 1000)
        gap_ms = 1000 / campaign.sends_per_s
        limit = self.limit_ms
        for number in numbers:
            at = start + int((number - first) * gap_ms)
            id = campaigns.message_id(number)
            home = number * 2654435761 >> 7 & PARTITIONS - 1
            top = flags = 0
            steps = journeys[int(draw() * kinds)]
            last = len(steps) - 1
            for index, (head, tail, code, carries, bits, delays) in enumerate(steps):
                at += delays[int(draw() * 2048)]
                if at > limit:
                    at = limit
                luck = draw()
                if luck < MISSING and index < last:
                    continue
                text = f"{head}{id}{tail}{at}}}"
                turn = draw()  # one draw decides several rare things: they fall into parts of its range
                arrival = at + int(turn * 400)
                if luck > 1 - DISORDERED:
                    arrival += int(turn * 20000)
                partition = home
                if turn < ELSEWHERE:
                    partition = int(draw() * PARTITIONS)
                append((arrival, partition, text))
                copies = 1
                if turn > 1 - DUPLICATED:
                    again = arrival + 5000 + int(draw() * 895000)
                    append((again, partition, text))
                    ledger.duplicates += 1
                    copies = 2
                if known:
                    events[code] += copies
                    top = carries if carries > top else top
                    flags |= bits
                else:
                    ledger.parked += copies
            if known and (top or flags):
                ledger.numbers.append(number)
                ledger.statuses.append(top)
                ledger.flags.append(flags)
        for code, count in events.items():
            ledger.events[campaign.name, code] += count

    def _step(self, campaign, status):
        code, carries, bits = campaigns.meaning(status, campaign.channel)
        tail = (f'","status":"{status}","campaign_id":"{campaign.name}","channel":"{campaign.channel}",'
                f'"gateway":"{campaign.gateway}",' + (f'"reason_class":"{reason}",' if (reason := REASONS.get(status)) else "") + '"at":')
        key = campaign.name, status
        if key not in self.delays:
            self.delays[key] = campaigns.delay_table(campaign, status, self.random)
        return '{"message_id":"', tail, code, carries, bits, self.delays[key]

    def write_poison(self, count):
        """Bad events among good ones; their neighbours must not notice."""
        span = self.limit_ms - self.base_ms
        for index in range(count):
            text, reason = POISON_EVENTS[index % len(POISON_EVENTS)]
            arrival = self.base_ms + int(self.random.random() ** 8 * span)
            self.arrivals.append((arrival, index % PARTITIONS, text.format(campaigns.message_id(index))))
            self.ledger.dead_letters[reason] += 1

    def records(self):
        """[(partition, value, receipts)…] in the order of arrival. Empties the list of written receipts."""
        self.arrivals.sort()
        open_records = [[] for _ in range(PARTITIONS)]
        sizes = [self._record_size() for _ in range(PARTITIONS)]
        done = []
        for _, partition, text in self.arrivals:
            record = open_records[partition]
            record.append(text)
            if len(record) >= sizes[partition]:
                done.append(self._packed(partition, record))
                open_records[partition] = []
                sizes[partition] = self._record_size()
        done += [self._packed(partition, record) for partition, record in enumerate(open_records) if record]
        self.arrivals = []
        return done

    def add_poison_records(self, records):
        """Malformed whole records, spread over the stream."""
        for value, reason in POISON_RECORDS:
            position = self.random.randrange(len(records) + 1)
            records.insert(position, (position % PARTITIONS, value, 1))
            self.ledger.dead_letters[reason] += 1

    def _record_size(self):
        return self.random.choice(RECORD_SIZES)

    def _packed(self, partition, texts):
        """One event, an array, or an object around it: all three forms are seen in the wild."""
        if len(texts) == 1:
            value = texts[0]
        elif self.random.random() < 0.2:
            value = '{"events":[' + ",".join(texts) + "]}"
        else:
            value = "[" + ",".join(texts) + "]"
        return partition, value.encode(), len(texts)


def write_share(worker, workers, total_messages, seed, now_ms):
    """Everything that one of `workers` processes contributes: (records, ledger)."""
    gc.disable()  # a million small objects, none of them in a cycle
    author = Author(seed * 1000 + worker, now_ms)
    for campaign, first, end in campaigns.messages_of(total_messages):
        author.write_campaign(campaign, range(first + worker, end, workers))
        # Messages beyond the last one: the platform never inserts them.
        strangers = range(total_messages + int(first * NEVER_ROW), total_messages + int(end * NEVER_ROW))
        author.write_campaign(campaign, strangers[worker::workers], known=False)
    author.write_poison(60 // workers)
    records = author.records()
    if worker == 0:
        author.add_poison_records(records)
    return records, author.ledger
