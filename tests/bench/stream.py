"""Streams of receipts: the same bytes for Kafka, for the limit and for the rivals. Made once, from a seed.

A stream is a file of records (partition and size as little-endian 32-bit numbers, then the JSON) and a file of the
messages that the platform has inserted before (tab-separated, for COPY).
"""

import json
import random
import struct

from lab import OUT

EVENTS_PER_RECORD = 1000
PARTITIONS = 8
CROCKFORD = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"


def uuid_text(rng, _):
    digits = f"{rng.getrandbits(128):032x}"
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def ulid_text(rng, number):
    """Ordered by time: 48 bits of milliseconds, a thousand messages each, 80 random bits."""
    value = (1795228200000 + number // 1000) << 80 | rng.getrandbits(80)
    return "".join(CROCKFORD[value >> shift & 31] for shift in range(125, -1, -5))


def smpp_hex(rng, number):
    """An id as an SMSC gives it: a counter in hexadecimal, here with gaps and a random node number in front."""
    return f"{rng.randrange(4):X}{0x1A000000 + number * 3 + rng.randrange(3):08X}"


IDS = {"uuid": uuid_text, "ulid": ulid_text, "smpp": smpp_hex}


# Each kind yields (message, status) in the order of arrival, for about `count` events.

def one_each(rng, count, status=None):
    """One receipt for each message, in no order at all: every row is somewhere else in the table."""
    order = list(range(count))
    rng.shuffle(order)
    statuses = [status] * 10 if status else ["DELIVERED"] * 7 + ["SENT"] * 2 + ["FAILED"]
    return [(message, statuses[message % 10]) for message in order]


def _by_time(timed):
    timed.sort()
    return [(message, status) for _, message, status in timed]


def mix(rng, count):
    """The published mix: of 100 messages 100 SENT, 70 DELIVERED, 20 OPENED, 10 CLICKED, spread over later records."""
    timed = []
    for message in range(count // 2):
        at = message / EVENTS_PER_RECORD * 2
        timed.append((at, message, "SENT"))
        share = rng.randrange(100)
        if share < 70:
            at += rng.uniform(1, 20)
            timed.append((at, message, "DELIVERED"))
        if share < 20:
            at += rng.uniform(5, 50)
            timed.append((at, message, "OPENED"))
        if share < 10:
            timed.append((at + rng.uniform(1, 20), message, "CLICKED"))
    return _by_time(timed)


def folded(rng, count):
    """Ten receipts of each message close together, in any order: most of them in one batch."""
    ten = ["IN_GTW", "SENT", "SENT", "DELIVERED", "DELIVERED", "OPENED", "OPENED", "OPENED", "CLICKED", "CLICKED"]
    events = []
    for first in range(0, count // 10, 100):
        block = [(message, status) for message in range(first, min(first + 100, count // 10)) for status in ten]
        rng.shuffle(block)
        events += block
    return events


def real(rng, count):
    """IN_GTW, SENT, DELIVERED within seconds, one in twenty twice, neighbours out of order."""
    timed = []
    for message in range(int(count / 3.15)):
        at = message / EVENTS_PER_RECORD * 3.15
        for status in ("IN_GTW", "SENT", "DELIVERED"):
            at += rng.expovariate(1 / 2.0)
            timed.append((at + rng.uniform(-0.5, 0.5), message, status))
            if rng.random() < 0.05:
                timed.append((at + rng.uniform(0, 5), message, status))
    return _by_time(timed)


KINDS = {"single": one_each, "mix": mix, "folded": folded, "real": real}


class Stream:
    """`campaigns`: how many; `ids`: uuid, ulid or smpp, or a name for those that `make_id` makes; `salt` gives other messages; `alone`: each
    event is a record of its own, with no more than an id, a status and a time."""

    def __init__(self, kind, events=1_000_000, campaigns=100, ids="uuid", salt=0, alone=False, make_id=None, day=None, status=None):
        """status: of all receipts, of the kind `single`, for the same messages as with another status. day: of the event times, with what rules read: every receipt has an event_id, one in ten a class of reason."""
        self.make_id = make_id or IDS[ids]
        self.kind, self.events_wanted, self.campaigns, self.ids, self.salt, self.alone = kind, events, campaigns, ids, salt, alone
        self.day, self.status = day, status
        self.seed = f"{kind}-{ids}-{campaigns}-{events}-{salt}" + (f"-{day}" if day else "")
        self.name = self.seed + ("-alone" if alone else "") + (f"-{status}" if status else "")
        directory = OUT / "data"
        directory.mkdir(parents=True, exist_ok=True)
        self.records_path = directory / f"{self.name}.records"
        self.messages_path = directory / f"{self.name}.messages"
        meta_path = directory / f"{self.name}.json"
        if not meta_path.exists():
            self._make(meta_path)
        meta = json.loads(meta_path.read_text())
        self.event_count, self.record_count = meta["events"], meta["records"]
        self.message_count = meta["messages"]
        self.polled_records = 4000 if alone else 64  # at most, by a consumer that polls lists
        self.inbox_name = f"{ids}-{campaigns}-{self.message_count}-{kind}-{salt}"

    def _make(self, meta_path):
        rng = random.Random(self.seed)  # the same events in either form
        events = KINDS[self.kind](rng, self.events_wanted, *([self.status] if self.status else []))
        messages = max(message for message, _ in events) + 1
        ids = [self.make_id(rng, number) for number in range(messages)]
        campaigns = self.campaigns
        with open(self.messages_path, "w") as file:
            for number in range(messages):
                file.write(f"{ids[number]}\torg-1\tcampaign-{number % campaigns}\n")
        millis = [f".{ms:03d}Z" for ms in range(1000)]
        records = 0
        with open(self.records_path, "wb") as file:
            for first in range(0, len(events), EVENTS_PER_RECORD):
                seconds = first // EVENTS_PER_RECORD
                second = f"{self.day or '2026-11-21'}T{2 + seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
                values = [
                    f'{{"message_id":"{ids[message]}","status":"{status}","at":"{second}{millis[index]}"'
                    + ("" if self.alone else f',"campaign_id":"campaign-{message % campaigns}","channel":"sms","gateway":"gateway-{message % 3}"')
                    + (f',"event_id":"{message}-{first + index}"' + (',"reason_class":"blocked"' if index % 10 == 0 else "") if self.day else "") + "}"
                    for index, (message, status) in enumerate(events[first:first + EVENTS_PER_RECORD])]
                for value in values if self.alone else ["[" + ",".join(values) + "]"]:
                    value = value.encode()
                    file.write(struct.pack("<II", records % PARTITIONS, len(value)) + value)
                    records += 1
        meta_path.write_text(json.dumps({"events": len(events), "records": records, "messages": messages}))

    def records(self):
        with open(self.records_path, "rb") as file:
            while header := file.read(8):
                yield file.read(struct.unpack("<II", header)[1])
