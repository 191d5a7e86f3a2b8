"""Random histories of messages, what all rules must count of them, and ways in which their receipts may come.

The oracle knows the definitions of the docs alone (semantics.md, rules.md, groups.md, ranges.md): it counts distinct events, and reads nothing of
the daemon or its SQL.
"""

import itertools
import json
import math
import random
from collections import Counter, namedtuple

from oracle import ladder
from oracle.traffic import JOURNEYS, Outgoing

Message = namedtuple("Message", "id org campaign variant channel gateway customer logical recipient sent")
DIMENSIONS = ("variant", "channel", "gateway")
PARTITIONS, HOUR_MS = 8, 3_600_000
RECORD_SIZES = (1, 5, 50, 500, 1000)
COPIES = (1,) * 7 + (2, 2, 4)  # of a receipt: gateways deliver an event again
REACH = 3000  # how far a receipt moves among all others; one in a hundred moves anywhere
REASONS, FAILURES = ("absent", "blocked", "invalid"), {420, 430, 440, 450, 460, 470, 650}
WEIGHTS = [weight for weight, _ in JOURNEYS]
PLANS = [[json.loads(token) for token in text.split()] for _, text in JOURNEYS]
SENT, UNKNOWN, DELIVERED, OPENED, CLICKED = 300, 400, 600, 700, 800
BOT_CLICK = 9007
LINKS = ("https://d.example/a?to={}", "https://d.example/b", "https://d.example/b#{}", None)
COSTS = (("0.0075", "USD", 7_500_000), ("-0.0075", "usd", 7_500_000), (0.25, "EUR", 250_000_000), ("3", None, 3_000_000_000))  # with their 10^-9
DELIVERIES = (DELIVERED, OPENED, CLICKED)  # a message that stands here is delivered

# The configuration's part of rules that look at a receipt: campaign and account are as the receipt names them.
MACHINE_RULES = (("open", "campaign", "c1", "count"), ("click", "account", "sinch", "ignore"), ("open", "account", "kannel", "ignore"))
EXPIRES = ("channel", "sms")  # of these messages the receipts that never come are UNKNOWN

# Messages that ranges mean. Whose own receipts stay below the range's status count exactly. Where they do not, `events` and first times depend on which
# came first ("x"); where the message fails, so does its status, which is one of two ("y"): docs/ranges.md.
QUIET = ([], ["IN_GTW"], ["SENT"], ["IN_GTW", "SENT"], ["SENT", "DEFERRED"], ["SENT", "UNKNOWN"])
BUSY = (["SENT", "DELIVERED"], ["SENT", "DELIVERED", "OPENED"], ["OPENED", "CLICKED"], ["DELIVERED"], ["SENT", "MACHINE_OPEN"], ["SENT"])
FAILING = (["SENT", "FAILED"], ["SENT", "EXPIRED"], ["SKIPPED"], ["SENT", "BOUNCED_HARD_EMAIL"], ["IN_GTW", "REJECTED"])
LOOSE_EVENTS, LOOSE_STATUS = "x", "y"  # how campaigns and accounts of these begin
EXACT_WITH_X = ("funnel messages", "by_variant messages", "by_channel messages", "by_gateway messages", "by_link messages", "hour messages", "minute messages", "customer", "logical")


class Histories:
    """`count` messages, each with the events of one journey. Times lie in the twenty hours before now_ms, any copy inside of the window."""

    def __init__(self, seed, count, now_ms):
        self.random, self.seed, self.now_ms = random.Random(f"histories {seed}"), seed, now_ms
        self.messages, self.events = [], []  # events: of messages and ranges; None in place of the message for a range
        self.counted = []  # (message, event, codes), of a range one for each message that it moves
        self.states = {}  # id → (status, flags) in which it may end: two for some of LOOSE_STATUS
        self.reached, self.first_attempts = {}, {}
        while len(self.messages) < count:
            draw = self.random.random()
            if draw < 0.03:
                self._make_person()
            else:
                self._make(self._plan_of_parts() if draw < 0.10 else self._plan())
        self.base = self._base()

    # ---- one message

    def _new_message(self, prefix="c", gateway=None, recipient=None, sent=None):
        draw, number = self.random, len(self.messages)
        campaign = draw.randrange(40) if prefix == "c" else draw.randrange(3)
        name, id = f"{prefix}{campaign}", f"h{self.seed}-{number}"
        first = self.first_attempts.get(name) if draw.random() < 0.2 else None
        if first is None and draw.random() < 0.3:
            self.first_attempts[name] = id
        message = Message(id, f"o{campaign % 5}", name, draw.choice("ab"), draw.choice(("sms", "email")), gateway or f"g{draw.randrange(4)}",
                          None if draw.random() < 0.1 else f"p{draw.randrange(1 + number // 80)}", first or (id if draw.random() < 0.3 else None), recipient,
                          sent or self.now_ms - draw.randrange(HOUR_MS, 20 * HOUR_MS))
        self.messages.append(message)
        self.reached[message] = []
        return message

    def _plan(self):
        return [{"status": status} for status in self.random.choices(PLANS, WEIGHTS)[0]]

    def _plan_of_parts(self):
        """Receipts of each part; some are never delivered. One in ten says that there is a part more."""
        draw, parts = self.random, self.random.randrange(1, 5)
        plan = []
        for part in range(1, parts + 1):
            of_part = {"part": part, "parts": parts}
            plan.append({"status": "SENT", **of_part})
            plan.append({"status": "DELIVERED" if draw.random() < 0.9 else draw.choice(("FAILED", "EXPIRED", "SENT")), **of_part})
            if draw.random() < 0.1:
                plan[-1]["parts"] += 1
            if draw.random() < 0.2:
                plan.append({"status": draw.choice(("DELIVERED", "OPENED")), **of_part})
        if draw.random() < 0.3:
            plan.append({"status": "OPENED"})
        return plan

    def _make(self, plan, message=None, gateways=("twilio", "kannel", "sinch"), flags=0.05):
        draw = self.random
        message = message or self._new_message()
        at, events = message.sent, []
        for place, event in enumerate(plan):
            at += draw.randrange(1, 60_000)  # so two events of a message that name the same differ in their time
            event |= {"message_id": message.id, "at": at, "gateway": draw.choice(gateways)}
            if draw.random() < 0.5:
                event["event_id"] = f"{message.id}/{place}"
            if draw.random() < 0.5:
                event["campaign_id"] = message.campaign
            code = ladder.find(event["status"], None)
            if draw.random() < flags and code < ladder.FIRST_FLAG:
                event["flags"] = draw.choice((["REPLIED"], ["MACHINE_OPEN"], ["BOT_CLICK", "REPLIED"], ["UNSUBSCRIBED", "COMPLAINED"]))
            if code in (OPENED, CLICKED):
                event |= {"link": link.format(message.id)} if (link := draw.choice(LINKS)) else {}
            if draw.random() < 0.3:
                cost, currency, _ = draw.choice(COSTS)
                event |= {"cost": cost} | ({"currency": currency} if currency else {})
            if code in FAILURES:
                event["reason_class"] = draw.choice(REASONS)
            events.append(event)
        for event in events:
            codes = codes_of(event)
            if codes:
                self._count(message, event, codes)
            self.events.append((message, event, codes))

    def _count(self, message, event, codes):
        self.counted.append((message, event, codes))
        self.reached[message].append((event, codes))

    # ---- ranges

    def _make_person(self):
        """A person with some messages by one account, and receipts of all up to a time."""
        draw, kind = self.random, self.random.choice(("quiet", "quiet", "busy", "failing"))
        prefix, plans = {"quiet": ("c", QUIET), "busy": (LOOSE_EVENTS, BUSY + QUIET), "failing": (LOOSE_STATUS, FAILING + QUIET)}[kind]
        account, person = f"g{draw.randrange(4)}" if prefix == "c" else f"{prefix}{draw.randrange(2)}", f"person {self.seed} {len(self.messages)}"
        begin = self.now_ms - draw.randrange(4 * HOUR_MS, 20 * HOUR_MS)
        mine = [self._new_message(prefix, account, person, begin + draw.randrange(HOUR_MS)) for _ in range(draw.randrange(1, 6))]
        at = begin + 2 * HOUR_MS  # the receipts of one person have one time: which of them moves a message depends on the order
        statuses = ("DELIVERED", "OPENED", "CLICKED")
        only = draw.choice(statuses)
        ranges = [{"recipient": person, "gateway": account, "status": only if kind == "quiet" else draw.choice(statuses), "at": at,
                   "until": draw.choice(mine).sent + draw.choice((-1, 0, 0, 1, HOUR_MS))} for _ in range(draw.randrange(1, 4))]
        self.events += [(None, event, ()) for event in ranges]
        for message in mine:
            self._make([{"status": status} for status in draw.choice(plans)], message, (account,), flags=0.05 if kind != "quiet" else 0)  # a flag implies DELIVERED
            meant = [ladder.CODE[event["status"]] for event in ranges if event["until"] >= message.sent]
            if kind == "failing":
                own, flags = state_of(message, self.reached[message])
                self.states[message.id] = {(own, flags), (max([own, *meant]), flags)}
            elif meant:
                self._count(message, {"at": at, "gateway": account}, (max(meant),))

    # ---- what must be counted

    def _base(self):
        """All but what depends on how often each receipt comes."""
        counts = Counter()
        for message, event, codes in self.counted:
            named, hour, campaign = status_of(codes), event["at"] // HOUR_MS, message.campaign
            for code in codes:
                counts["funnel events", campaign, code] += 1
                counts["hour", campaign, hour, code] += 1
                counts["minute", campaign, code] += 1
                for name in DIMENSIONS:
                    counts[f"by_{name} events", campaign, getattr(message, name), code] += 1
                if code in (CLICKED, BOT_CLICK):
                    counts["by_link events", campaign, event.get("link", "").partition("?")[0].partition("#")[0], code] += 1
            if "cost" in event:
                currency, amount = next((name, units) for cost, name, units in COSTS if (cost, name) == (event["cost"], event.get("currency")))
                counts["cost", campaign, (currency or "?").upper(), named] += 1
                counts["cost amount", campaign, (currency or "?").upper(), named] += amount
            counts["gateway", event["gateway"], named] += 1
            counts["gateway_delay", event["gateway"]] += 1
            if "reason_class" in event:
                counts["reason", campaign, event["reason_class"], named] += 1
                counts["gateway_reason", f"{event['gateway']}/{event['reason_class']}", named] += 1
        groups = {}
        for message, receipts in self.reached.items():
            status, flags = state_of(message, receipts)
            self.states.setdefault(message.id, {(status, flags)})
            self._count_message(counts, message, status, flags)
            for kind, key in (("customer", message.customer), ("logical", message.logical or message.id)):
                if key is not None:
                    best, had = groups.get((kind, message.campaign, key), (status, 0))
                    groups[kind, message.campaign, key] = max(best, status, key=ladder.BEST.get), had | flags
            count_times(counts, message, receipts, status)
        for (kind, campaign, _), state in groups.items():
            for code in ladder.funnel([state])[0]:
                counts[kind, campaign, code] += 1
        return counts

    @staticmethod
    def _count_message(counts, message, status, flags):
        for code in ladder.funnel([(status, flags)])[0]:
            counts["funnel messages", message.campaign, code] += 1
            counts["hour messages", message.campaign, code] += code != ladder.ROOT
            counts["minute messages", message.campaign, code] += code != ladder.ROOT
            if code in (CLICKED, BOT_CLICK):
                counts["by_link messages", message.campaign, code] += 1
            for name in DIMENSIONS:
                counts[f"by_{name} messages", message.campaign, getattr(message, name), code] += 1

    def story(self, id):
        """What came for it, for whoever has to find out why it stands elsewhere."""
        message = next(message for message in self.messages if message.id == id)
        ranges = [event for _, event, _ in self.events if message.recipient and event.get("recipient") == message.recipient]
        return f"{message} {ranges} {[(*receipt,) for receipt in self.reached[message]]}"

    def expected(self, copies):
        """Counters by their keys, as read_counts has them. `copies`: of each event, how often it came."""
        counts = Counter(self.base)
        for (message, event, codes), times in zip(self.events, copies):
            if codes and times > 1:
                counts["duplicate", message.campaign, event["gateway"], status_of(codes)] += times - 1
                counts["gateway_duplicate", event["gateway"], status_of(codes)] += times - 1
        return +counts

    # ---- how they come

    def arm(self, seed):
        """One way in which they may come: (how often each event comes, records). Two arms differ in order, copies and records."""
        draw = random.Random(f"arm {seed}")
        copies = draw.choices(COPIES, k=len(self.events))
        texts, keys = [], []
        for place, times in enumerate(copies):
            texts += [json.dumps(self.events[place][1])] * times
            keys += [place + draw.random() * (REACH if draw.random() < 0.99 else len(self.events)) for _ in range(times)]
        order = sorted(range(len(texts)), key=keys.__getitem__)
        return copies, self._records(draw, map(texts.__getitem__, order))

    def copies(self, values):
        """How often each event stands in the log, by the values of its records."""
        found = Counter(text for value in values for text in value[2:-2].split(b"},{"))
        return [found[json.dumps(event)[1:-1].encode()] for _, event, _ in self.events]

    @staticmethod
    def _records(draw, texts):
        for number in itertools.count():
            some = list(itertools.islice(texts, draw.choice(RECORD_SIZES)))
            if not some:
                return
            yield Outgoing(number % PARTITIONS, None, f"[{','.join(some)}]".encode(), [], 0)


def is_exact(key):
    """Whether this counter follows from the distinct receipts alone."""
    return key[1][0] not in (LOOSE_STATUS, LOOSE_EVENTS) or key[1][0] == LOOSE_EVENTS and key[0] in EXACT_WITH_X


# ---- definitions


def policy_of(event, code):
    """What the policies make of a machine's open or click (code: OPENED or CLICKED)."""
    kind, named = ("open" if code == OPENED else "click"), {"campaign": event.get("campaign_id"), "account": event["gateway"]}
    return next((policy for of, what, value, policy in MACHINE_RULES if of == kind and named[what] == value), "flag")


def codes_of(event):
    """What a receipt counts as: its status and its flags, after the policy for machines that its gateway has named."""
    codes = [ladder.find(event["status"], None), *(ladder.CODE[name] for name in event.get("flags", ()))]
    return ladder.machines(codes, policy_of(event, OPENED), policy_of(event, CLICKED)) if len(codes) > 1 or codes[0] >= ladder.FIRST_FLAG else codes


def status_of(codes):
    """The one code under which a receipt and its copies are counted by gateway and reason: its status, or the first flag where there is none."""
    return codes[0]


def final(message, status):
    """After the last expiry."""
    return UNKNOWN if getattr(message, EXPIRES[0]) == EXPIRES[1] and SENT <= status < UNKNOWN else status


def state_of(message, receipts):
    """(status, flags) after these: of a message in parts, DELIVERED of a part is SENT until all parts are."""
    reached = [SENT if code == DELIVERED and is_part(event) else code for event, codes in receipts for code in codes]
    if whole_at(receipts) is not None:
        reached.append(DELIVERED)
    status, flags = ladder.state(reached)
    return final(message, status), flags


def is_part(event):
    return event.get("parts", 1) > 1


def whole_at(receipts):
    """When the last part was delivered, each at the earliest time of its receipts; None: not all are."""
    delivered = [event for event, codes in receipts if DELIVERED in codes and is_part(event)]
    total = min((event["parts"] for event in delivered), default=0)
    times = [min((event["at"] for event in delivered if event["part"] == part), default=None) for part in range(1, total + 1)]
    return max(times) if times and None not in times else None


def bucket(earlier, later):
    """Where the bucket of this time ends, in ms, as the key has it."""
    if later < earlier:
        return "negative"
    return str(round(2 ** (math.ceil(2 * math.log2(max(1, later - earlier)) - 1e-9) / 2)))


def count_times(counts, message, receipts, status):
    """How long it took from SENT to DELIVERED, where it is delivered, and from there to OPENED, by the least event times of receipts that name these; of a
    message in parts until its last part."""
    first, gateways, whole = {}, [], whole_at(receipts)
    for event, codes in receipts:
        named = [code for code in codes if code in (SENT, DELIVERED, OPENED, CLICKED)]
        gateways += [event["gateway"]] * bool(named)
        for code in named:
            if code != DELIVERED or not is_part(event):
                first[code] = min(event["at"], first.get(code, event["at"]))
    if whole is not None:
        first[DELIVERED] = min(whole, first.get(DELIVERED, whole))
    for kind, earlier, later, counted in (("time_to_deliver", SENT, DELIVERED, status in DELIVERIES), ("time_to_open", DELIVERED, OPENED, True)):
        if counted and earlier in first and later in first:
            key = bucket(first[earlier], first[later])
            counts[kind, message.campaign, key, later] += 1
            counts[f"gateway_{kind}", f"{min(gateways)}/{key}", later] += 1
