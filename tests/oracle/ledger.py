"""The exact ledger: computes what the database must hold from every record of the log and every row of the platform.

Pure and independent of order. Decoding here is Python's json with strict rules, not the daemon's decoder.
"""

import functools
import json
import re
from collections import defaultdict, namedtuple
from datetime import datetime, timezone

from oracle import ladder

MAX_EVENTS = 10_000
MAX_BYTES = 8 * 1024 * 1024
MAX_ID_BYTES = 255
MAX_DEPTH = 32
MAX_EPOCH_MS = 253_402_300_800_000  # the year 10000
WHOLE_RECORD = -1

Record = namedtuple("Record", "topic partition offset value timestamp_ms")
Broken = namedtuple("Broken", "element")  # an element that holds bytes which are not UTF-8
Letter = namedtuple("Letter", "reason payload record")  # payload: the record's bytes, or the element as parsed
Row = namedtuple("Row", "org_id campaign_id")

TIME = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)[Tt ](\d\d):(\d\d):(\d\d)(?:\.\d+)?(?:[Zz]|([+-])(\d\d):?(\d\d))", re.ASCII
)


class Reject(Exception):
    """The record as a whole is refused; the text is the reason."""


def refuse_constant(name):
    raise ValueError(name)


MARK = b"\xef\xbb\xbf"
PARSER = json.JSONDecoder(parse_constant=refuse_constant)


def depth_of(container):
    """How many containers are inside one another."""
    children = container.values() if type(container) is dict else container
    return 1 + max([depth_of(child) for child in children if type(child) in (dict, list)], default=0)


# Stands for a byte that is not UTF-8. It is no character of Unicode, so no sender's text has it by chance.
BROKEN = "\U0010fffe"
BROKEN_BYTES = dict.fromkeys(range(0xDC80, 0xDD00), BROKEN)


def text_of(value):
    """The record's text. Bytes that are not UTF-8 make their event invalid, so they are kept as marks."""
    try:
        return str(value, "utf-8")
    except UnicodeDecodeError:
        return str(value, "utf-8", "surrogateescape").translate(BROKEN_BYTES)


def is_broken(element):
    """Does any text in it hold a byte that is not UTF-8?"""
    if type(element) is str:
        return BROKEN in element
    if type(element) is dict:
        return any(is_broken(key) or is_broken(item) for key, item in element.items())
    return type(element) is list and any(map(is_broken, element))


def parse(value):
    """The JSON value of a record's bytes; a byte order mark in front of it says nothing."""
    value = value.removeprefix(MARK)
    try:
        parsed = PARSER.decode(text_of(value))
        nested = value.count(b"[") + value.count(b"{") > MAX_DEPTH and depth_of([parsed]) > MAX_DEPTH + 1
    except (ValueError, RecursionError):
        raise Reject("invalid_json") from None
    if nested:
        raise Reject("invalid_json")
    return parsed


def elements_of(parsed):
    """The events of a record: one object, an array, or {"events": […]}."""
    if type(parsed) is dict:
        parsed = parsed.get("events", [parsed])
    if type(parsed) is not list:
        raise Reject("not_an_event")
    return parsed


def decode(value):
    """The elements of a record, or Reject."""
    if not value:
        raise Reject("empty_record")
    if len(value) > MAX_BYTES:
        raise Reject("record_too_large")
    elements = elements_of(parse(value))
    if len(elements) > MAX_EVENTS:
        raise Reject("too_many_events")
    if value.isascii() or BROKEN not in text_of(value):
        return elements
    if not any(map(is_broken, elements)):
        raise Reject("invalid_json")
    return [Broken(element) if is_broken(element) else element for element in elements]


def check_id(id):
    """Reason why this is no message id, or None."""
    if id is None or id == "":
        return "missing_id"
    if type(id) is not str or "\0" in id:
        return "invalid_id"
    try:
        size = len(id) if id.isascii() else len(id.encode())
    except UnicodeEncodeError:
        return "invalid_id"
    return "id_too_long" if size > MAX_ID_BYTES else None


def is_time(at):
    """RFC 3339 text, or an epoch in seconds or milliseconds."""
    if type(at) in (int, float):
        return 0 <= at < MAX_EPOCH_MS
    return type(at) is str and is_rfc3339(at)


@functools.lru_cache(65_536)
def is_rfc3339(text):
    """Also with a blank for the T, lower case, and an offset without colon; from 1970 to 9999."""
    match = TIME.fullmatch(text)
    if match is None:
        return False
    year, month, day, hour, minute, second = (int(field) for field in match.groups()[:6])
    if hour > 23 or minute > 59 or second > 60 or int(match[8] or 0) > 23 or int(match[9] or 0) > 59:
        return False
    try:
        moment = datetime(year, month, day, hour, minute, min(second, 59), tzinfo=timezone.utc).timestamp()
    except ValueError:
        return False
    offset = int(match[8] or 0) * 3600 + int(match[9] or 0) * 60
    moment += offset if match[7] == "-" else -offset
    return 0 <= moment < MAX_EPOCH_MS / 1000


def examine(element):
    """(reason, id, code) of one element: reason None for a receipt."""
    if type(element) is not dict:
        is_object = type(element) is Broken and type(element.element) is dict
        return ("invalid_utf8" if is_object else "not_an_event"), None, None
    id = element.get("message_id")
    reason = check_id(id)
    if reason is not None:
        return reason, None, None
    status = element.get("status")
    if status is None:
        return "missing_status", None, None
    channel = element.get("channel")
    code = ladder.find(status, channel if type(channel) is str else None)
    if code is None:
        return "unknown_status", None, None
    at = element.get("at")
    if at is not None and not is_time(at):
        return "invalid_time", None, None
    if not are_flags(element.get("flags")):
        return "invalid_flags", None, None
    return None, id, code


def are_flags(named):
    """Nothing, or a list of names of flags and nothing else."""
    if named is None:
        return True
    return type(named) is list and all(
        type(name) is str and ladder.CODE.get(name, ladder.ROOT) >= ladder.FIRST_FLAG for name in named
    )


def marks_of(element, code):
    """Codes of the flags that the receipt names beside its status, each once."""
    return sorted({ladder.CODE[name] for name in element.get("flags") or ()} - {code})


def crosses(element, row):
    """Whether the receipt names another organisation than the message has."""
    org = element.get("org_id")
    return type(org) in (str, int) and org != "" and str(org) != (row.org_id or None)


class Ledger:
    """What the database must hold once everything is consumed.

    platform: {message_id: Row} of every row that was ever inserted. `unknown`: the fate of receipts whose message
    never appears: "park", "aged_out" (parked longer than allowed), "dead-letter" or "insert". `refused`: ids that the
    database does not accept. `late`: keys of receipts that came after their message was deleted, as oracle/retired.py finds them.
    `machines`: the policies for `opens` and `clicks`, where they are not "flag".
    """

    def __init__(self, platform, unknown="park", refused=(), late=(), machines=None):
        self.platform = dict(platform)
        self.unknown = unknown
        self.machines = machines or {}
        self.refused, self.late = frozenset(refused), frozenset(late)
        self.status = dict.fromkeys(self.platform, ladder.ROOT)
        self.flags = {}
        self.events = defaultdict(int)  # (campaign, code) → receipts of known messages
        self.letters = {}  # (topic, partition, offset, index) → Letter
        self.parked = {}  # the same key → message id
        self.positions = {}  # (topic, partition) → end of the log
        self.receipts = 0

    def add(self, record):
        place = (record.topic, record.partition)
        self.positions[place] = max(self.positions.get(place, 0), record.offset + 1)
        try:
            elements = decode(record.value)
        except Reject as reject:
            self.letters[(*place, record.offset, WHOLE_RECORD)] = Letter(str(reject), record.value, record.value)
            return
        for index, element in enumerate(elements):
            reason, id, code = examine(element)
            if reason is None and not self.named(code, element):
                continue
            if reason is None and id in self.platform and crosses(element, self.platform[id]):
                reason = "other_organisation"
            if reason is None and id in self.refused:
                reason = "database"
            if reason is None and id in self.platform and (*place, record.offset, index) in self.late:
                reason = "retired_message"
            if reason is not None:
                payload = element.element if type(element) is Broken else element
                self.letters[(*place, record.offset, index)] = Letter(reason, payload, record.value)
            elif id in self.platform:
                self.count(id, code, element)
            else:
                self.set_aside(id, code, (*place, record.offset, index), element, record)

    def named(self, code, element):
        """What it counts as."""
        return ladder.machines((code, *marks_of(element, code)), **self.machines)

    def count(self, id, code, element):
        self.receipts += 1
        for named in self.named(code, element):
            self.events[self.platform[id].campaign_id, named] += 1
            top, mask = ladder.CARRIED[named]
            if top > self.status[id]:
                self.status[id] = top
            if mask:
                self.flags[id] = self.flags.get(id, 0) | mask

    def set_aside(self, id, code, key, element, record):
        if self.unknown == "park":
            self.parked[key] = id
        elif self.unknown == "insert":
            self.platform[id] = Row(element.get("org_id"), element.get("campaign_id"))
            self.status[id] = ladder.ROOT
            self.count(id, code, element)
        else:
            reason = "aged_out" if self.unknown == "aged_out" else "unknown_message"
            self.letters[key] = Letter(reason, element, record.value)

    def funnel(self):
        """{campaign: {code: (messages, events, current)}}; current None for flags."""
        states = defaultdict(list)
        for id, row in self.platform.items():
            states[row.campaign_id].append((self.status[id], self.flags.get(id, 0)))
        result = {}
        for campaign, those in states.items():
            messages, current = ladder.funnel(those)
            result[campaign] = {
                code: (
                    messages.get(code, 0),
                    self.events.get((campaign, code), 0),
                    None if code >= ladder.FIRST_FLAG else current.get(code, 0),
                )
                for code in ladder.NAME
            }
        return result


def ledger_of(records, platform, ends=None, **options):
    """ends: {(topic, partition): end of its log}, for partitions without a record."""
    ledger = Ledger(platform, **options)
    ledger.positions.update(ends or {})
    for record in records:
        ledger.add(record)
    return ledger
