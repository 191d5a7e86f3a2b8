"""Receipts, what sends them as batches of a lane, and what must come out: written from the definition."""
import collections
import dataclasses
import datetime
import json

from sql_fixture import FLAGS, STATUSES, SqlError
from sql_lane import lane_of

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
    link: str = None
    cost: object = None  # as JSON
    currency: str = None

    @property
    def payload(self):
        at = datetime.datetime.fromisoformat(self.at).astimezone(datetime.timezone.utc).isoformat()
        fields = {"message_id": self.message_id, "status": NAMES.get(self.code, self.code), "at": at, "flags": [NAMES[9001 + bit] for bit in self.marks],
                  "org_id": "o" if self.campaign_id is not None and self.org is None else self.org, "campaign_id": self.campaign_id,
                  "gateway": self.gateway, "gateway_message_id": self.message_id if self.own else None, "reason_class": self.reason,
                  "part": self.part, "parts": self.parts, "link": self.link, "cost": self.cost, "currency": self.currency}
        return json.dumps({name: value for name, value in fields.items() if value not in (None, [])}).encode()

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
        return list(dict.fromkeys([self.code, *(9001 + bit for bit in self.marks)]))

    @property
    def record(self):
        return (self.topic, self.partition, self.offset, self.traceparent)


def path(code):
    while code is not None:
        yield code
        code = STATUSES[code][1]


def records_of(events):
    """As heart_driver.c reads them. A record has its receipts in the order of the batch."""
    records = collections.defaultdict(list)
    for event in events:
        records[event.record].append(event)
    return [{"topic": topic, "partition": partition, "offset": offset, "traceparent": traceparent, "indexes": [e.index for e in mine],
             "keys": [e.key or 0 for e in mine], "value": value_of([e.payload.decode() for e in mine])}
            for (topic, partition, offset, traceparent), mine in records.items()]


def value_of(payloads):
    return payloads[0] if len(payloads) == 1 else f"[{', '.join(payloads)}]"


def numbers_of(answer):
    """What apply has told, or wake; of one that waits between its flights nothing."""
    if answer["outcome"] == "held":
        return None
    told = answer["effects"] or collections.defaultdict(int, gateways={}, refused_gateways={}, kinds=[])
    return {"messages_known": answer["known"], "messages_changed": answer["changed"], "rows": answer["rows"],
            **{f"events_{name}": told[name] for name in ("counted", "parked", "dead", "refused", "retired")},
            "kinds": {tuple(kind[:4]): kind[4] for kind in told["kinds"]}, "gateways": told["gateways"], "refused_gateways": told["refused_gateways"]}


class Held:
    """A batch between its flights: its session is idle in the transaction, until it ends."""

    def __init__(self, lane):
        self.lane = lane

    def end(self, how="COMMIT"):
        """Its numbers, if it commits."""
        try:
            return numbers_of(self.lane.ask({"go": how == "COMMIT"}))
        except SqlError as error:
            if how == "COMMIT" or error.sqlstate != "25P02":
                raise


def send(session, kind, request, insert=False):
    lane = lane_of(session, insert)
    answer = lane.ask({kind: request})
    return Held(lane) if answer["outcome"] == "held" else numbers_of(answer)


def moves_of(moves, generation=1):
    return [[TOPIC, partition, generation, expected, following, following - 1] for partition, expected, following in moves]


def apply(session, events, lane=0, unknown="park", moves=(), generation=1, hold=False):
    """A batch as the daemon sends it. moves: (partition, expected, next). Its numbers."""
    return send(session, "apply", {"records": records_of(events), "lane": lane, "unknown": unknown, "moves": moves_of(moves, generation), "hold": hold},
                insert=unknown == "insert")


def probe_batch(session, events, lane=0):
    """What finds a row that PostgreSQL refuses: it goes through, or fails; nothing stays."""
    return send(session, "probe", {"records": records_of(events), "lane": lane})


def stands_at(session, lane, partitions):
    """Moves that move nothing."""
    return session.query("SELECT topic, partition, generation, next_offset, next_offset, -1 FROM consumer_progress WHERE topic = %s AND lane = %s"
                         " AND partition = ANY (%s::int4[]) ORDER BY partition", [TOPIC, lane, list(partitions)])


def wake(session, lane=0, limit=1000, partitions=(0, 1, 2), hold=False):
    """A batch of parked receipts. Its fence moves nothing, but the rows of the lane's positions must be there."""
    session.do("INSERT INTO consumer_progress (topic, partition, lane, next_offset, generation) SELECT %s, p, %s, 0, 1 FROM unnest(%s::int4[]) p"
               " WHERE NOT EXISTS (SELECT FROM consumer_progress c WHERE (c.topic, c.partition, c.lane) = (%s, p, %s))",
               [TOPIC, lane, list(partitions), TOPIC, lane])
    return send(session, "wake", {"moves": stands_at(session, lane, partitions), "lane": lane, "limit": limit, "hold": hold})


def wake_all(session, lane=0, limit=1000):
    while wake(session, lane, limit)["rows"] > 0:
        pass


def path(code):
    while code is not None:
        yield code
        code = STATUSES[code][1]


# What sql/lane/decide gets of receipts that name no organisation: for its plan.
def decided(events):
    ids = sorted({e.message_id for e in events}, key=str.encode)
    mine = {i: [e for e in events if e.message_id == i] for i in ids}
    tops = [max(e.top for e in mine[i]) for i in ids]
    return [ids, tops, [0] * len(ids), [mine[i][0].at for i in ids], []]


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
    for row in session.run("command/audit_campaigns", 0):
        for cell in session.run("command/audit_campaign", row["campaign_id"], targeted):
            if cell["drift"] != "0":
                off.append((row["campaign_id"], cell))
    return off
