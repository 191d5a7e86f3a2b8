"""A seeded stream of receipts with everything that gateways, producers and accidents cause.

Records are bytes made by formatting. Only the ledger, which reads the topic back, decides what they mean; so the
generator keeps no expectation of its own.
"""

import itertools
import json
import random
import string
from collections import namedtuple
from datetime import datetime, timedelta, timezone

from oracle.ledger import Row

Message = namedtuple("Message", "spellings channel campaign org")
Outgoing = namedtuple("Outgoing", "partition key value headers timestamp_ms")

START = datetime(2026, 11, 1, tzinfo=timezone.utc)
# status tokens as they stand in JSON, with weights: what may happen to one message, in the order of its life
JOURNEYS = (
    (30, '"IN_GTW" "SENT" "DELIVERED"'),
    (16, '"IN_GTW" "SENT" "DELIVERED" "OPENED"'),
    (8, '200 300 600 700 800'),
    (6, '"SENT" "DELIVERED" "OPENED" "OPENED" "OPENED" "CLICKED" "CLICKED"'),
    (5, '"CLICKED"'),
    (4, '"OPENED"'),
    (4, '"IN_GTW"'),
    (4, '"DELIVERED" "DELIVERED" "DELIVERED"'),
    (3, '"SENT" "FAILED" "DELIVERED"'),
    (3, '"SENT" "EXPIRED" "DELIVERED" "OPENED"'),
    (3, '300 400 600'),
    (3, '"IN_GTW" "REJECTED" "SENT"'),
    (3, '"SENT" "DELIVERED" "BOUNCED_HARD"'),
    (2, '300 600 470'),
    (2, '"BOUNCED_HARD" "OPENED"'),
    (2, '"SENT" "BOUNCED_HARD_EMAIL"'),
    (2, '"DELIVERED" "BOUNCED_SOFT" "AUTORESPONDED"'),
    (2, '"SENT" "DEFERRED" "DEFERRED" "DELIVERED"'),
    (2, '"SUBMIT_FAILED" "IN_GTW" "SENT"'),
    (2, '"SKIPPED"'),
    (2, '"FAILED" "BLOCKED" "UNKNOWN"'),
    (2, '"OPENED" "COMPLAINED" "UNSUBSCRIBED"'),
    (2, '"UNSUBSCRIBED" "RESUBSCRIBED" "UNSUBSCRIBED"'),
    (2, '"SENT" "EXPIRED"'),
    (2, '"SENT" "BOUNCED_HARD"'),
    (2, '"SENT" "BOUNCED_SOFT"'),
    (1, '"SUBMIT_FAILED"'),
    (1, '"SENT" "UNKNOWN"'),
    (1, '"RESUBSCRIBED"'),
    (1, '9001 9004 9007 "MACHINE_OPEN"'),
    (1, '"SENT" "REPLIED" "BOT_CLICK" "CLICKED"'),
    (1, '"TARGETED" 0 "SENT"'),
    (1, '"SENT" "COMPLAINED" "BOUNCED_HARD"'),
)
CHANNELS = ("sms", "email", "email", "whatsapp", "push", "Email", None)
COPIES = (1,) * 94 + (2, 2, 2, 3, 4, 9)  # a whole journey again: the gateway repeats itself
RECORD_SIZES = (1, 1, 1, 2, 5, 20, 100, 250, 500, 1000)

# A bad element among good ones. {id} is the JSON text of a known message's id.
BAD_ELEMENTS = (
    '{"status":"SENT"}',
    '{"message_id":null,"status":"SENT"}',
    '{"message_id":"","status":"DELIVERED"}',
    '{"message_id":"a\\u0000b","status":"SENT"}',
    '{"message_id":"' + "x" * 256 + '","status":"SENT"}',
    '{"message_id":"' + "\\u00e9" * 128 + '","status":"SENT"}',
    '{"message_id":12345,"status":"SENT"}',
    '{"message_id":true,"status":"SENT"}',
    '{"message_id":{"message_id":{id}},"status":"SENT"}',
    '{"message_id":[{id}],"status":"SENT"}',
    '{"message_id":{id}}',
    '{"message_id":{id},"status":null}',
    '{"message_id":{id},"status":"NO_SUCH_STATUS"}',
    '{"message_id":{id},"status":"delivered"}',
    '{"message_id":{id},"status":"SENT "}',
    '{"message_id":{id},"status":301}',
    '{"message_id":{id},"status":-300}',
    '{"message_id":{id},"status":9008}',
    '{"message_id":{id},"status":4294967596}',
    '{"message_id":{id},"status":18446744073709551916}',
    '{"message_id":{id},"status":300.5}',
    '{"message_id":{id},"status":true}',
    '{"message_id":{id},"status":{"status":"SENT"}}',
    '{"message_id":{id},"status":["SENT"]}',
    '{"message_id":{id},"status":"SENT","at":"yesterday"}',
    '{"message_id":{id},"status":"SENT","at":"2026-02-30T10:00:00Z"}',
    '{"message_id":{id},"status":"SENT","at":"2026-11-21T24:00:00Z"}',
    '{"message_id":{id},"status":"SENT","at":"2026-11-21T10:00:00"}',
    '{"message_id":{id},"status":"SENT","at":"1969-12-31T23:59:59Z"}',
    '{"message_id":{id},"status":"SENT","at":-5}',
    '{"message_id":{id},"status":"SENT","at":253402300800000}',
    '{"message_id":{id},"status":"SENT","at":true}',
    '{"message_id":{id},"status":"SENT","at":{"at":"2026-11-21T10:00:00Z"}}',
    '"SENT"',
    '42',
    'null',
    'true',
    '[]',
    '[{"message_id":{id},"status":"SENT"}]',
    '{}',
)
# Values of an event's "flags"; what is no list of names of flags is refused, with the event.
FLAG_LISTS = (
    '["MACHINE_OPEN"]',
    '["BOT_CLICK","MACHINE_OPEN"]',
    '[ "COMPLAINED" , "no such flag" ]',
    '["UNSUBSCRIBED","UNSUBSCRIBED","SENT"]',
    '[]',
    'null',
    '"COMPLAINED"',
    '["RESUBSCRIBED",17,["REPLIED"],{"a":"REPLIED"},null]',
    '{"a":["REPLIED"]}',
    '["REPLIED"],"flags":["AUTORESPONDED"]',
    '["REPL\\u0049ED"]',
)
# A good event in an unusual form.
ODD_ELEMENTS = (
    '{"message_id":{id},"status":"SENT","events":{"a":1},"extra":[1,2,{"message_id":"no","status":"CLICKED"}]}',
    ' {\n\t"status" : "DELIVERED" ,\r\n "message_id" : {id} } ',
    '{"message_id":"first of two","message_id":{id},"status":"NO_SUCH","status":"OPENED"}',
    '{"message_id":{id},"status":"SENT","reason":"\\ud83d\\ude00 caf\u00e9","gateway":null}',
    '{"message_id":{id},"status":"SENT","campaign_id":17,"org_id":[],"event_id":{},"channel":5}',
    '{"Message_Id":"other","message_id":{id},"STATUS":"CLICKED","status":"IN_GTW"}',
    '{"message_id":{id},"\\u0073tatus":"DELIVERED","x":1e308,"y":-0.0,"z":123456789012345678901234567890}',
    '{"message_id":{id},"status":"SENT","deep":' + "[" * 25 + "]" * 25 + "}",
)
# Byte order marks before a good record: one is read over, two are not.
MARKS = (b"\xef\xbb\xbf", b"\xef\xbb\xbf" * 2)
BAD_RECORDS = (
    None,
    b"",
    b" ",
    b"null",
    b"17",
    b'"SENT"',
    b"{",
    b"[",
    b"]",
    b"[1,]",
    b"not json at all",
    b"\x00\x01\x02\xff\xfe",
    b"\xef\xbb\xbf" * 2 + b'{"message_id":"bom","status":"SENT"}',
    b'{"message_id":"nan","status":"SENT","x":NaN}',
    b'{"message_id":"single\',"status":"SENT"}',
    b'{"message_id":"comma","status":"SENT",}',
    b'{"message_id":"comment","status":"SENT"} // no',
    b'{"message_id":"twice","status":"SENT"}{"message_id":"twice","status":"SENT"}',
    b'{"message_id":"utf8","status":"SENT","reason":"\xc3("}',
    b'{"message_id":"overlong","status":"SENT","reason":"\xc0\xaf"}',
    b'{"message_id":"surrogate","status":"SENT","reason":"\xed\xa0\x80"}',
    b'[{"message_id":"latin1 \xe9","status":"SENT"},{"message_id":"m-0000001","status":"SENT"}]',
    b'{"message_id":"control\x01","status":"SENT"}',
    b'{"message_id":"escape\\x","status":"SENT"}',
    b'{"message_id":"short\\u12","status":"SENT"}',
    b'{"message_id":"zero","status":0300}',
    b'{"message_id":"plus","status":+300}',
    b"[" * 100 + b"]" * 100,
    b"[" * 20000,
    b'{"a":' * 5000 + b"1" + b"}" * 5000,
    b'{"message_id":"utf16","status":"SENT"}'.decode().encode("utf-16"),
)
EMPTY_RECORDS = (b"[]", b'{"events":[]}', b' [ ] ', b'{"v":1,"events":[ ],"sent":{"by":"x"}}')


def spellings_of(number, letters):
    """The JSON texts of one id: usually one, sometimes several for the same characters."""
    plain = f"m-{number:07d}"
    if number % 50 == 7:
        return (f'"{plain}é/\u20ac"', f'"{plain}\\u00e9\\/\\u20AC"', f'"\\u006d-{number:07d}é/€"')
    if number % 50 == 17:
        return (f'"{plain}\\ud83d\\ude00"', f'"{plain}\U0001f600"')
    if number % 50 == 27:
        return (f'"{plain}\\t\\"\\\\\\n, {{}}"', f'"{plain}\\u0009\\u0022\\u005c\\u000a, {{}}"')
    if number % 50 == 37:
        return (f'"{plain}{"y" * (255 - len(plain))}"',)
    if number % 50 == 47:
        return (f'"{"".join(letters.choices(string.hexdigits, k=28))}-{number:x}"',)
    return (f'"{plain}"',)


def time_tokens(random_source, count):
    """A pool of `at` values as JSON text, in every form that is allowed; "" for none."""
    tokens = []
    for index in range(count):
        moment = START + timedelta(microseconds=random_source.randrange(20 * 86_400 * 1_000_000))
        seconds = moment.timestamp()
        tokens.append(
            (
                f'"{moment:%Y-%m-%dT%H:%M:%S}Z"',
                f'"{moment:%Y-%m-%dT%H:%M:%S.%f}Z"',
                f'"{moment:%Y-%m-%dt%H:%M:%S}.1z"',
                f'"{moment:%Y-%m-%d %H:%M:%S}.123456789+00:00"',
                f'"{moment:%Y-%m-%dT%H:%M:%S}+05:30"',
                f'"{moment:%Y-%m-%dT%H:%M}:60.5-0330"',
                f"{int(seconds)}",
                f"{seconds:.3f}",
                f"{int(seconds * 1000)}",
                "",
            )[index % 10]
        )
    return tokens


def format_event(id, status, at, channel, campaign, org, form):
    """One event as JSON text in one of several layouts."""
    at = f',"at":{at}' if at else ""
    if form == 0:
        return f'{{"message_id":{id},"status":{status}{at},"channel":"{channel}"}}' if channel else (
            f'{{"message_id":{id},"status":{status}{at}}}')
    channel = f',"channel":"{channel}"' if channel else ""
    if form == 1:
        return f'{{"status":{status},"message_id":{id}{channel}{at},"campaign_id":"{campaign}","org_id":"{org}"}}'
    if form == 2:
        return f'{{"event_id":"e","gateway":"gw-1","reason":"000"{at}{channel},"status":{status},"message_id":{id}}}'
    return f'{{ "message_id" : {id} , "x" : {{"status":"CLICKED"}} , "status" : {status} {channel} {at} }}'


class Traffic:
    """events: about how many. late and ghost: shares of messages whose row comes later, and never. flags: share of events that
    name flags beside their status. crossing: share of those with an organisation that name a wrong one. first: number of
    the first message, for streams that are sent one after the other. sizes: of records, in events."""

    def __init__(self, seed, events, partitions, *, late=0.02, ghost=0.01, poison=0.012, campaigns=12, disorder=2000,
                 first=0, sizes=RECORD_SIZES, flags=0.01, crossing=0.002):
        self.random = random.Random(seed)
        self.flags, self.crossing = flags, crossing
        self.events, self.partitions, self.poison, self.disorder = events, partitions, poison, disorder
        self.sizes = sizes
        names = [f"c-{number:02d}" for number in range(campaigns)]
        self.messages, self.early, self.late, self.ghosts = [], {}, {}, 0
        journeys = [story.split() for _, story in JOURNEYS]
        weights = [weight for weight, _ in JOURNEYS]
        self.happenings = []  # (message, status token) in the order of sending
        choose, chance = self.random.choices, self.random.random
        while len(self.happenings) < events:
            for journey in choose(journeys, weights, k=1000):
                number = first + len(self.messages)
                campaign = names[int(chance() ** 2 * campaigns)]
                message = Message(spellings_of(number, self.random), CHANNELS[number % 7], campaign, f"o-{number % 3}")
                self.messages.append(message)
                for _ in range(COPIES[int(chance() * 100)]):
                    self.happenings.extend((message, status) for status in journey)
                self.give_row(message, chance(), late, ghost)
        self.shuffle()

    def give_row(self, message, draw, late, ghost):
        id = json.loads(message.spellings[0])
        if draw < ghost:
            self.ghosts += 1
        elif draw < ghost + late:
            self.late[id] = Row(message.org, message.campaign)
        else:
            self.early[id] = Row(message.org, message.campaign)

    @property
    def events_per_record(self):
        return 0.75 * sum(self.sizes) / len(self.sizes)

    @property
    def platform(self):
        return {**self.early, **self.late}

    def shuffle(self):
        """Moves every receipt a little, a tenth of them far, one in a hundred anywhere."""
        chance, total, window = self.random.random, len(self.happenings), self.disorder
        keys = []
        for index in range(total):
            draw = chance()
            reach = 20 if draw < 0.89 else window if draw < 0.99 else total
            keys.append(index + chance() * reach)
        order = sorted(range(total), key=keys.__getitem__)
        self.happenings = [self.happenings[index] for index in order]

    def element(self, times, happening):
        message, status = happening
        draw = int(self.random.random() * 1_000_000)
        spelling = message.spellings[draw % len(message.spellings)]
        if draw < 1_000_000 * self.poison:
            bad = ODD_ELEMENTS[draw % len(ODD_ELEMENTS)] if draw % 4 == 0 else BAD_ELEMENTS[draw % len(BAD_ELEMENTS)]
            return bad.replace("{id}", spelling)
        at = times[draw % len(times)]
        text = format_event(spelling, status, at, message.channel, message.campaign,
                            "o-other" if draw % 997 < self.crossing * 997 else message.org, (draw >> 4) & 3)
        if draw // 7 % 1000 < self.flags * 1000:
            text = f'{text[:-1]},"flags":{FLAG_LISTS[draw // 7000 % len(FLAG_LISTS)]}}}'
        return text

    def records(self):
        """Outgoing records, bad ones among them, in the order of sending."""
        times = time_tokens(self.random, 4999)
        accidents, ways = self.accidents()
        expected = len(self.happenings) / self.events_per_record
        share = min(0.5, max(0.03, 1.5 * ways / expected))
        position, chance = 0, self.random.random
        while position < len(self.happenings):
            limit = self.sizes[int(chance() * len(self.sizes))]
            size = limit if limit < 5 else self.random.randint(limit // 2, limit)
            elements = [self.element(times, happening) for happening in self.happenings[position : position + size]]
            position += size
            value = self.wrap(elements).encode()
            yield self.outgoing(value)
            if chance() < share:
                yield self.outgoing(next(accidents)(value))

    def wrap(self, elements):
        draw = self.random.random()
        if len(elements) == 1 and draw < 0.8:
            return elements[0]
        if draw < 0.5:
            return "[" + ",".join(elements) + "]"
        if draw < 0.9:
            return '{"events":[' + ",".join(elements) + "]}"
        return ' {"source":{"events":[1,2]},"v":2, "events" : [\n' + " ,\n".join(elements) + ' ] , "n":null}\n'

    def accidents(self):
        """Every way to spoil a record, in a seeded order, repeatedly."""
        ways = [lambda good, value=value: value for value in BAD_RECORDS + EMPTY_RECORDS]
        ways += [lambda good, end=end: good + end for end in (b"x", b"]", b"}", b"{}", b"\x00", b"\xff")]
        ways += [lambda good: good[: self.random.randrange(1, len(good.rstrip()))] if len(good) > 1 else good] * 4
        ways += [lambda good, marks=marks: marks + good for marks in MARKS]
        ways += [lambda good: b"[" + b",".join([b'{"message_id":"m-0000001","status":300}'] * 10_001) + b"]"]
        ways += [lambda good: b'{"events":[' + b",".join([b'{"message_id":"m-0000002","status":300}'] * 10_000) + b"]}"]
        self.random.shuffle(ways)
        return itertools.cycle(ways), len(ways)

    def outgoing(self, value):
        draw = int(self.random.random() * 1_000_000)
        headers = None
        if draw % 5 == 0:
            good = f"00-{draw:032x}-{draw:016x}-01"
            headers = [("traceparent", (good.encode(), b"00-bad", b"\xff" * 55, None)[draw % 4]), ("x", b"y")]
        key = (None, b"key", b"", str(draw).encode())[(draw >> 3) & 3]
        stamp = START + timedelta(seconds=draw % 864_000)
        return Outgoing(draw % self.partitions, key, value, headers, int(stamp.timestamp() * 1000))
