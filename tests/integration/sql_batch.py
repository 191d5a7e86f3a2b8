"""Receipts, their fold into the parameters of sql/lane/apply, and what must come out: written from the definition."""
import collections
import dataclasses
import datetime
import itertools
import json
import math

from sql_fixture import FLAGS, STATUSES, reads_receipts

TOPIC = "dlr-events"
NAMES = {c: s[0] for c, s in STATUSES.items()} | {9001 + b: f[0] for b, f in FLAGS.items()}


@dataclasses.dataclass(frozen=True)
class Event:
    message_id: str
    code: int
    offset: int
    index: int = 0
    partition: int = 0
    topic: str = TOPIC
    at: str = "2026-01-01 00:00:00+00"
    campaign_id: str = None
    traceparent: str = None
    gateway: str = None
    marks: tuple = ()  # bits of the flags that it names beside its status
    org: str = None
    own: bool = False  # it came under the gateway's id
    reason: str = None
    key: int = None  # copies of one event share it
    part: int = None  # of a message in several parts
    parts: int = None

    @property
    def payload(self):
        fields = {"message_id": self.message_id, "status": NAMES.get(self.code, self.code)}
        if self.campaign_id is not None:
            fields |= {"campaign_id": self.campaign_id, "org_id": "o"}
        if self.org is not None:
            fields["org_id"] = self.org
        if self.gateway is not None:
            fields["gateway"] = self.gateway
        if self.own:
            fields["gateway_message_id"] = self.message_id
        return json.dumps(fields).encode()

    @property
    def kept(self):
        """What a parked row keeps beside the payload: organisation, account, campaign, the gateway's id, class of the reason, key."""
        fields = json.loads(self.payload)
        own = self.message_id if self.own else None
        return [(text or "").encode() for text in (fields.get("org_id"), self.gateway, self.campaign_id, own, self.reason,
                                                 None if self.key is None else str(self.key))]

    @property
    def top(self):
        own = self.code if self.code < 9001 else FLAGS[self.code - 9001][1] or 0
        return max([own, *(FLAGS[bit][1] or 0 for bit in self.marks)])

    @property
    def mask(self):
        return self.marked | (0 if self.code < 9001 else 1 << (self.code - 9001))

    @property
    def marked(self):
        return sum(1 << bit for bit in self.marks)

    @property
    def codes(self):
        return [self.code, *(9001 + bit for bit in self.marks)]

    @property
    def record(self):
        return (self.topic, self.partition, self.offset, self.traceparent)


def path(code):
    while code is not None:
        yield code
        code = STATUSES[code][1]


def fold(events, lane=0, unknown="park"):
    """The parameters of lane/apply for a batch of events."""
    messages = collections.defaultdict(list)
    for event in events:
        messages[event.message_id].append(event)
    ids = sorted(messages, key=lambda i: i.encode())
    signatures, kinds, records = {}, {}, {}
    columns = {name: [] for name in ("top", "mask", "at", "signature", "kind", "first", "org")}
    raw = []
    for message_id in ids:
        mine = messages[message_id]
        top = max(e.top for e in mine)
        mask = 0
        for event in mine:
            mask |= event.mask
        gateways = {e.gateway for e in mine}
        signature = tuple(sorted(collections.Counter(code for e in mine for code in e.codes).items()))
        kind = signature, gateways.pop() if len(gateways) == 1 else "other"
        columns["top"].append(top)
        columns["mask"].append(mask)
        columns["at"].append(min(e.at for e in mine if e.top == top))
        columns["signature"].append(signatures.setdefault(signature, len(signatures)) + 1)
        columns["kind"].append(kinds.setdefault(kind, len(kinds)) + 1)
        orgs = {e.org for e in mine} - {None}
        held = any(e.part and e.code == 600 for e in mine)
        columns["org"].append("" if held else None if not orgs else orgs.pop() if len(orgs) == 1 else "")
        columns["first"].append(len(raw) + 1)
        raw += mine
    columns["first"].append(len(raw) + 1)
    sizes = [len(s) for s in signatures]
    payload_ends = list(itertools.accumulate((len(e.payload) for e in raw), initial=1))
    kept = []
    for event in raw:
        gateways = {e.gateway for e in messages[event.message_id]}
        kept += [*event.kept, ((gateways.pop() if len(gateways) == 1 else "other") or "").encode(),
                 "/".join(str(n or "") for n in (event.part, event.parts)).encode() if event.part else b""]
    for event in raw:
        records.setdefault(event.record, len(records) + 1)
    topics, partitions, offsets, traceparents = zip(*records) if records else ((), (), (), ())
    links = b"".join((link or "").ljust(55).encode() for link in traceparents) if any(traceparents) else b""
    return [
        ids, columns["top"], columns["mask"], columns["at"], columns["signature"],
        list(itertools.accumulate(sizes, initial=1)), [c for s in signatures for c, _ in s],
        [n for s in signatures for _, n in s],
        columns["first"], [e.code for e in raw], [e.at for e in raw], [records[e.record] for e in raw],
        [e.index for e in raw], payload_ends, b"".join([*(e.payload for e in raw), *kept]),
        topics, partitions, offsets, links, lane, unknown,
        [e.marked for e in raw] if any(e.marks for e in raw) else [],
        columns["org"] if any(org is not None for org in columns["org"]) else [],
        list(itertools.accumulate((len(text) for text in kept), initial=payload_ends[-1])), columns["kind"],
    ]


ARRAYS = ("was", "is", "gained", "kind", "messages", "unknown", "unknown_events", "refused", "refused_events", "retired", "retired_events")


def minute_of(at):
    return int(datetime.datetime.fromisoformat(at).timestamp() // 60)


TIMED = (300, 600, 700, 800)  # SENT, DELIVERED, OPENED, CLICKED


def for_times(messages, facets):
    """Least times of each message's receipts of these statuses, and the facet with the least of their gateways."""
    times, gateways = [], []
    for _, mine in sorted(messages.items(), key=lambda item: item[0].encode()):
        for code in TIMED:
            times.append(min((e.at for e in mine if e.code == code), key=datetime.datetime.fromisoformat, default="infinity"))
        named = [e for e in mine if e.code in TIMED and e.gateway]
        least = min(named, key=lambda e: e.gateway.encode(), default=None)
        gateways.append(facets[least.gateway, least.reason] if least else 0)
    return [times, gateways]


def delay_bucket(at, now):
    milliseconds = (now - datetime.datetime.fromisoformat(at)).total_seconds() * 1000
    return min(79, math.ceil(math.log2(milliseconds) * 2)) if milliseconds > 1 else 0


def for_series(parameters, messages):
    """What a signature ($5 to $8) is where the series is counted, and the minutes ($32 and $33)."""
    numbers, first, entries, signatures, changes = {}, [1], [], [], []
    for n, mine in enumerate(messages):
        receipts = tuple((*e.codes, minute_of(e.at)) for e in mine)
        if receipts not in numbers:
            numbers[receipts] = len(numbers) + 1
            entries += [(code, minute) for *codes, minute in receipts for code in codes]
            first.append(len(entries) + 1)
            changes.append(minute_of(parameters[3][n]))
        signatures.append(numbers[receipts])
    parameters[4:8] = [signatures, first, [code for code, _ in entries], [1] * len(entries)]
    return [changes, [minute for _, minute in entries]]


def for_facets(parameters, messages):
    """What a kind ($25) is where reasons or gateways are counted, and what stands for it ($34 and $35)."""
    numbers, figures, examples, kinds = {}, [], [], []
    for n, mine in enumerate(messages):
        receipts = tuple((e.code, e.marked, e.gateway, e.reason) for e in mine)
        if receipts not in numbers:
            numbers[receipts] = len(numbers) + 1
            figures.append(parameters[24][n])
            examples.append(-(n + 1) if any(e.reason for e in mine) else n + 1)
        kinds.append(numbers[receipts])
    parameters[24] = kinds
    return [figures, examples]


def for_rules(parameters, events, rules):
    """The parameters of `fold` for a statement with rules, and what that needs beside: $26 and $27 are read by no rule."""
    by_id = collections.defaultdict(list)
    for event in events:
        by_id[event.message_id].append(event)
    messages = [by_id[message_id] for message_id in sorted(by_id, key=str.encode)]
    raw = [event for mine in messages for event in mine]
    facets = {}
    numbers = [facets.setdefault((e.gateway, e.reason), len(facets) + 1) for e in raw]
    now = datetime.datetime.now(datetime.timezone.utc)
    buckets = [delay_bucket(e.at, now) for e in raw] if "gateways" in rules else []
    delays = collections.Counter(zip(numbers, buckets))
    minutes = for_series(parameters, messages) if "series" in rules else [[], []]
    kinds = for_facets(parameters, messages) if {"reasons", "gateways"} & set(rules) else [[], []]
    return [*parameters, [], 0, [e.key for e in raw], numbers, *([facet[part] for facet in facets] for part in range(2)), *minutes, *kinds,
            buckets, [number for (facet, bucket), n in delays.items() for number in (facet, bucket, n)],
            *(for_times(by_id, facets) if "times" in rules else [[], []])]


def effects(row):
    """What apply says became of the messages: {(status before, after, flags gained, kind): messages}."""
    columns = [[int(v) for v in (row[name] or "{}").strip("{}").split(",") if v] for name in ARRAYS[:5]]
    return {tuple(values[:4]): values[4] for values in zip(*columns)}


def without_raw_events(parameters):
    """The same batch as it is sent while all messages are known: $9 and $12 say which records it is from. Rules keep codes, times and flags."""
    bare = list(parameters)
    for number in (13, 14, 24) if len(parameters) > 26 else (10, 11, 13, 14, 22, 24):
        bare[number - 1] = []
    bare[15 - 1] = b""
    return bare


def apply(session, events, lane=0, unknown="park", raw=True):
    """apply, and insert where the policy asks for it, as the daemon sends them. Numbers of the answer."""
    with session.transaction():
        parameters = fold(events, lane, "dead-letter" if unknown == "dead-letter" else "park")
        if reads_receipts(session.rules):
            parameters = for_rules(parameters, events, session.rules)
        row = session.one("lane/apply", *(parameters if raw else without_raw_events(parameters)))
        if unknown == "insert":
            campaigns = {}
            for event in events:
                campaigns.setdefault(event.message_id, event.campaign_id)
                campaigns[event.message_id] = campaigns[event.message_id] or event.campaign_id
            ids = sorted(campaigns, key=str.encode)
            session.one("lane/insert", ids, [campaigns[i] and "o" for i in ids],
                        [campaigns[i] for i in ids])
    return {k: int(v) for k, v in row.items() if k not in ARRAYS}


def expected_rows(inbox, events):
    """message id -> (status, flags) for an inbox {id: campaign} and the receipts that must have been applied."""
    rows = {i: (0, 0) for i in inbox}
    for event in events:
        if event.message_id in rows:
            status, flags = rows[event.message_id]
            rows[event.message_id] = (max(status, event.top), flags | event.mask)
    return rows


def expected_funnel(inbox, events):
    """(campaign, code) -> [messages, events]."""
    cells = collections.defaultdict(lambda: [0, 0])
    for message_id, (status, flags) in expected_rows(inbox, events).items():
        codes = list(path(status)) + [9001 + b for b in range(31) if flags >> b & 1]
        for code in codes:
            cells[inbox[message_id], code][0] += 1
    for event in events:
        if event.message_id in inbox:
            for code in event.codes:
                cells[inbox[event.message_id], code][1] += 1
    return {k: tuple(v) for k, v in cells.items() if v != [0, 0]}


def stored_rows(session):
    return {i: (s, f) for i, s, f in session.query("SELECT message_id, status, flags FROM message_inbox")}


def stored_funnel(session):
    return {(c, s): (m, e) for c, s, m, e in
            session.query("SELECT campaign_id, status, messages, events FROM campaign_funnel")}


def add_messages(session, inbox):
    with session.connection.cursor() as cursor:
        cursor.executemany("INSERT INTO message_inbox (message_id, org_id, campaign_id) VALUES (%s, 'o', %s)",
                           list(inbox.items()))


def drift(session, targeted=True):
    """Statuses whose recount differs, over all campaigns that the audit looks at."""
    off = []
    for row in session.run("command/audit_campaigns"):
        for cell in session.run("command/audit_campaign", row["campaign_id"], targeted):
            if cell["drift"] != "0":
                off.append((row["campaign_id"], cell))
    return off
