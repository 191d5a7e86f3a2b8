"""Random histories of messages, what all rules must count of them, and ways in which their receipts may come.

The oracle knows the definitions of docs/semantics.md alone: it counts distinct events, and reads nothing of the daemon or its SQL.
"""

import itertools
import json
import random
from collections import Counter, namedtuple

from oracle import ladder
from oracle.traffic import JOURNEYS, Outgoing

Message = namedtuple("Message", "id org campaign variant channel gateway")
DIMENSIONS = ("variant", "channel", "gateway")
PARTITIONS, HOUR_MS = 8, 3_600_000
RECORD_SIZES = (1, 5, 50, 500, 1000)
COPIES = (1,) * 5 + (2, 2, 2, 3, 5)  # of a receipt: gateways deliver an event again
REASONS, FAILURES = ("absent", "blocked", "invalid"), {420, 430, 440, 450, 460, 470, 650}
WEIGHTS = [weight for weight, _ in JOURNEYS]
PLANS = [[json.loads(token) for token in text.split()] for _, text in JOURNEYS]


class Histories:
    """`count` messages, each with the events of one journey. Times lie in the twenty hours before now_ms, any copy inside of the window."""

    def __init__(self, seed, count, now_ms):
        self.random, self.messages, self.events = random.Random(f"histories {seed}"), [], []
        for number in range(count):
            self._make(seed, number, now_ms)

    def _make(self, seed, number, now_ms):
        draw = self.random
        campaign = draw.randrange(40)
        message = Message(f"h{seed}-{number}", f"o{campaign % 5}", f"c{campaign}", draw.choice("ab"), draw.choice(("sms", "email")), f"g{draw.randrange(4)}")
        self.messages.append(message)
        at = now_ms - draw.randrange(HOUR_MS, 20 * HOUR_MS)
        for place, status in enumerate(draw.choices(PLANS, WEIGHTS)[0]):
            at += draw.randrange(1, 60_000)  # so two events of a message that name the same differ in their time
            event = {"message_id": message.id, "status": status, "at": at, "gateway": draw.choice(("twilio", "kannel", "sinch"))}
            if draw.random() < 0.5:
                event["event_id"] = f"{message.id}/{place}"
            code = ladder.find(status, None)
            if draw.random() < 0.05 and code < ladder.FIRST_FLAG:
                event["flags"] = draw.choice((["REPLIED"], ["MACHINE_OPEN"], ["UNSUBSCRIBED", "COMPLAINED"]))
            if code in FAILURES:
                event["reason_class"] = draw.choice(REASONS)
            self.events.append((message, event))

    def expected(self, copies):
        """Counters by their keys, as read_counts has them. `copies`: of each event, how often it came."""
        counts, reached = Counter(), {message: [] for message in self.messages}
        for (message, event), times in zip(self.events, copies):
            codes = codes_of(event)
            reached[message] += codes
            named = status_of(codes)
            hour = event["at"] // HOUR_MS
            for code in codes:
                counts["duplicate", message.campaign, event["gateway"], code] += times - 1
                counts["gateway_duplicate", event["gateway"], code] += times - 1
                counts["funnel events", message.campaign, code] += 1
                counts["hour", message.campaign, hour, code] += 1
                for name in DIMENSIONS:
                    counts[f"by_{name} events", message.campaign, getattr(message, name), code] += 1
            counts["gateway", event["gateway"], named] += 1
            counts["gateway_delay", event["gateway"]] += 1
            if "reason_class" in event:
                counts["reason", message.campaign, event["reason_class"], named] += 1
                counts["gateway_reason", f"{event['gateway']}/{event['reason_class']}", named] += 1
        for message, codes in reached.items():
            for code in ladder.funnel([ladder.state(codes)])[0]:
                counts["funnel messages", message.campaign, code] += 1
                counts["hour messages", message.campaign, code] += code != ladder.ROOT
                for name in DIMENSIONS:
                    counts[f"by_{name} messages", message.campaign, getattr(message, name), code] += 1
        return +counts

    def arm(self, seed):
        """One way in which they may come: (how often each event comes, records). Two arms differ in order, copies and records."""
        draw = random.Random(f"arm {seed}")
        copies = [draw.choice(COPIES) for _ in self.events]
        texts = [json.dumps(event) for (_, event), times in zip(self.events, copies) for _ in range(times)]
        draw.shuffle(texts)
        return copies, self._records(draw, iter(texts))

    @staticmethod
    def _records(draw, texts):
        for number in itertools.count():
            some = list(itertools.islice(texts, draw.choice(RECORD_SIZES)))
            if not some:
                return
            yield Outgoing(number % PARTITIONS, None, f"[{','.join(some)}]".encode(), [], 0)


def codes_of(event):
    """What a receipt counts as: its status and its flags, after the policy for machines."""
    return ladder.machines([ladder.find(event["status"], None), *(ladder.CODE[name] for name in event.get("flags", ()))])


def status_of(codes):
    """The one code under which a receipt is counted by gateway and reason: its status, or the first flag where there is none."""
    return min(codes)
