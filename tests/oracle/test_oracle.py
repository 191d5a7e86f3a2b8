"""The oracle judged by cases computed by hand: corrections, skipped stages, contradictions, forms of a record."""

import json
import random
from collections import Counter

import pytest

from oracle import ladder, ledger, traffic
from oracle.ledger import WHOLE_RECORD, Ledger, Record, Reject, Row, ledger_of

T, G, S, D, O, C = 0, 200, 300, 600, 700, 800  # TARGETED, IN_GTW, SENT, DELIVERED, OPENED, CLICKED


def counters(*receipts, channel=None):
    """messages > 0 by code after these receipts of one message."""
    events = [{"message_id": "m", "status": status, **({"channel": channel} if channel else {})} for status in receipts]
    result = ledger_of([Record("t", 0, 0, json.dumps(events).encode(), 0)], {"m": Row("o", "c")})
    assert not result.letters and not result.parked
    return {code: cell[0] for code, cell in result.funnel()["c"].items() if cell[0]}


def path_to(*codes):
    return dict.fromkeys(codes, 1)


@pytest.mark.parametrize(
    "named, flag, count, ignore",
    [
        (("OPENED", "MACHINE_OPEN"), ("MACHINE_OPEN",), ("OPENED", "MACHINE_OPEN"), ()),
        (("MACHINE_OPEN",), ("MACHINE_OPEN",), ("OPENED", "MACHINE_OPEN"), ()),
        (("DELIVERED", "MACHINE_OPEN"), ("DELIVERED", "MACHINE_OPEN"), ("DELIVERED", "OPENED", "MACHINE_OPEN"), ("DELIVERED",)),
        (("CLICKED", "BOT_CLICK", "REPLIED"), ("REPLIED", "BOT_CLICK"), ("CLICKED", "REPLIED", "BOT_CLICK"), ("REPLIED",)),
        (("CLICKED", "MACHINE_OPEN"), ("CLICKED", "MACHINE_OPEN"), ("CLICKED", "OPENED", "MACHINE_OPEN"), ("CLICKED",)),
        (("OPENED", "MACHINE_OPEN", "COMPLAINED"), ("COMPLAINED", "MACHINE_OPEN"), ("OPENED", "COMPLAINED", "MACHINE_OPEN"), ("COMPLAINED",)),
        (("CLICKED", "REPLIED"),) * 4,
    ],
)
def test_a_machine_s_receipt_counts_as_its_policy_says(named, flag, count, ignore):
    for policy, expected in (("flag", flag), ("count", count), ("ignore", ignore)):
        found = ladder.machines([ladder.CODE[name] for name in named], opens=policy, clicks=policy)
        assert found == [ladder.CODE[name] for name in expected], policy


@pytest.mark.parametrize(
    "receipts, channel, expected",
    [
        ((), None, path_to(T)),
        (("OPENED",), None, path_to(T, G, S, D, O)),  # 6.1a read without delivered
        (("CLICKED",), None, path_to(T, G, S, D, O, C)),  # 6.1b clicked without opened
        (("DELIVERED",), None, path_to(T, G, S, D)),  # 6.1c delivered without sent
        (("BOUNCED_HARD",), "email", path_to(T, G, S, 650)),  # 6.1d bounce implies sent
        (("COMPLAINED",), None, path_to(T, G, S, D, 9001)),  # 6.1e complaint implies delivered only
        (("DELIVERED", "SENT"), None, path_to(T, G, S, D)),  # 6.2 lower after higher
        (("FAILED", "DELIVERED"), None, path_to(T, G, S, D)),  # 6.3a correction
        (("EXPIRED", "DELIVERED"), None, path_to(T, G, S, D)),
        (("UNKNOWN", "DELIVERED"), None, path_to(T, G, S, D)),
        (("DELIVERED", "FAILED"), None, path_to(T, G, S, D)),  # 6.3b contradiction
        (("DELIVERED", "BOUNCED_HARD"), "email", path_to(T, G, S, 650)),  # 6.3c late hard bounce of an email
        (("DELIVERED", "BOUNCED_HARD"), "sms", path_to(T, G, S, D)),
        (("DELIVERED", "BOUNCED_HARD"), "Email", path_to(T, G, S, 650)),  # a channel is the same in any case
        (("DELIVERED", 470), "email", path_to(T, G, S, 650)),
        (("OPENED", "BOUNCED_HARD"), "email", path_to(T, G, S, D, O)),  # 6.3d bounce after opened
        (("DELIVERED", "BOUNCED_SOFT"), "email", path_to(T, G, S, D)),  # 6.3e soft bounce after delivered
        (("SENT", "REJECTED"), None, path_to(T, G, 460)),  # sent is counted back
        (("SUBMIT_FAILED", "IN_GTW"), None, path_to(T, G)),
        (("SKIPPED",), None, path_to(T, 100)),
        (("RESUBSCRIBED",), None, path_to(T, 9003)),  # the one flag that implies nothing
        (("OPENED", "UNSUBSCRIBED", "UNSUBSCRIBED"), None, path_to(T, G, S, D, O, 9002)),
        (("BOUNCED_HARD", "COMPLAINED"), "sms", path_to(T, G, S, D, 9001)),
        (("BOUNCED_HARD", "COMPLAINED"), "email", path_to(T, G, S, 650, 9001)),
        ((440, 600, 800), None, path_to(T, G, S, D, O, C)),
        ((300, 460), None, path_to(T, G, 460)),
    ],
)
def test_case_table(receipts, channel, expected):
    assert counters(*receipts, channel=channel) == expected
    assert counters(*reversed(receipts), channel=channel) == expected


def test_events_count_every_receipt_and_current_is_messages_less_the_children():
    platform = {f"m{number}": Row("o", "c") for number in range(4)}
    stories = {"m0": ["OPENED"] * 3, "m1": ["SENT", "DELIVERED"], "m2": ["FAILED", "DELIVERED", "FAILED"], "m3": []}
    events = [{"message_id": id, "status": status} for id, story in stories.items() for status in story]
    cells = ledger_of([Record("t", 0, 0, json.dumps({"events": events}).encode(), 0)], platform).funnel()["c"]
    assert {code: cell for code, cell in cells.items() if any(cell[:2])} == {
        T: (4, 0, 1),
        G: (3, 0, 0),
        S: (3, 1, 0),
        440: (0, 2, 0),
        D: (3, 2, 2),
        O: (1, 3, 1),
    }
    children = {code: [child for child, parent in ladder.PARENT.items() if parent == code] for code in ladder.PARENT}
    for code in ladder.PARENT:
        assert cells[code][2] == cells[code][0] - sum(cells[child][0] for child in children[code])
    assert sum(cells[code][2] for code in ladder.PARENT) == cells[T][0]


def good(**extra):
    return {"message_id": "m", "status": "SENT", **extra}


@pytest.mark.parametrize(
    "element, reason",
    [
        (good(), None),
        (good(message_id="x" * 255), None),
        (good(message_id="é" * 127), None),
        (good(status=300), None),
        (good(status="COMPLAINED"), None),
        (good(status=9007), None),
        (good(campaign_id=5, channel=[], unknown={"status": "CLICKED"}), None),
        (17, "not_an_event"),
        (None, "not_an_event"),
        ([good()], "not_an_event"),
        ({"status": "SENT"}, "missing_id"),
        (good(message_id=None), "missing_id"),
        (good(message_id=""), "missing_id"),
        (good(message_id=5), "invalid_id"),
        (good(message_id=True), "invalid_id"),
        (good(message_id={}), "invalid_id"),
        (good(message_id="a\0b"), "invalid_id"),
        (good(message_id="\ud800"), "invalid_id"),
        (good(message_id="x" * 256), "id_too_long"),
        (good(message_id="é" * 128), "id_too_long"),
        ({"message_id": "m"}, "missing_status"),
        (good(status="sent"), "unknown_status"),
        (good(status=301), "unknown_status"),
        (good(status=9008), "unknown_status"),
        (good(status=300.5), "unknown_status"),
        (good(status=True), "unknown_status"),
        (good(status=2**64 + 300), "unknown_status"),
        (good(at="2026-11-21T02:30:00Z"), None),
        (good(at="2026-11-21 02:30:00.123456789+0530"), None),
        (good(at="2026-11-21t02:30:60z"), None),
        (good(at="1970-01-01T00:00:00Z"), None),
        (good(at=0), None),
        (good(at=1795228200), None),
        (good(at=1795228200.25), None),
        (good(at=1795228200123), None),
        (good(at="2026-11-21"), "invalid_time"),
        (good(at="2026-11-21T02:30:00"), "invalid_time"),
        (good(at="2026-11-21T24:00:00Z"), "invalid_time"),
        (good(at="2026-02-29T00:00:00Z"), "invalid_time"),
        (good(at="1970-01-01T00:00:00+00:01"), "invalid_time"),
        (good(at=-1), "invalid_time"),
        (good(at=253402300800000), "invalid_time"),
        (good(at=[]), "invalid_time"),
        (good(flags="COMPLAINED"), "invalid_flags"),
        (good(flags={}), "invalid_flags"),
        (good(flags=["REPLIED", 7]), "invalid_flags"),
        (good(flags=["REPLIED", ["BOT_CLICK"]]), "invalid_flags"),
        (good(flags=["REPLIED", "SENT"]), "invalid_flags"),
        (good(flags=["no such flag"], at="x"), "invalid_time"),
    ],
    ids=lambda value: repr(value)[:60],
)
def test_an_element_is_judged_alone_and_its_neighbours_land(element, reason):
    value = json.dumps([good(message_id="before"), element, good(message_id="after")]).encode()
    platform = dict.fromkeys(("before", "after", "m", "x" * 255, "é" * 127), Row("o", "c"))
    result = ledger_of([Record("t", 3, 9, value, 0)], platform)
    expected = {("t", 3, 9, 1): reason} if reason else {}
    assert {key: letter.reason for key, letter in result.letters.items()} == expected
    assert result.receipts == (2 if reason else 3)


@pytest.mark.parametrize(
    "value, reason",
    [
        (None, "empty_record"),
        (b"", "empty_record"),
        (b" ", "invalid_json"),
        (b"{", "invalid_json"),
        (b"[NaN]", "invalid_json"),
        (b"\xef\xbb\xbf[]", None),
        (b"\xef\xbb\xbf" * 2 + b"[]", "invalid_json"),
        (b"\xef\xbb\xbf", "invalid_json"),
        (b"[] []", "invalid_json"),
        (b'["\x01"]', "invalid_json"),
        (b'[{"x":"\xff"}]', None),
        (b'[{"x":"\xed\xa0\x80"}]', None),
        (b'{"events":[],"x":"\xff"}', "invalid_json"),
        (b'[\xff]', "invalid_json"),
        (b'[{"x":"\\ud800"}]', None),
        (b'{"message_id":"m","events":5}', "not_an_event"),
        (b"[" * 32 + b"]" * 32, None),
        (b"[" * 33 + b"]" * 33, "invalid_json"),
        (b"[" * 100_000, "invalid_json"),
        (b"5", "not_an_event"),
        (b"null", "not_an_event"),
        (b"[" + b"{}," * 9_999 + b"{}]", None),
        (b"[" + b"{}," * 10_000 + b"{}]", "too_many_events"),
        (b"[" + b" " * (ledger.MAX_BYTES - 2) + b"]", None),
        (b"[" + b" " * (ledger.MAX_BYTES - 1) + b"]", "record_too_large"),
        (b"[]", None),
        (b'{"events":[]}', None),
        (b'{"a":[1],"events":[{}],"b":{}}', None),
    ],
    ids=lambda value: repr(value)[:20],
)
def test_a_record_is_refused_as_a_whole_or_not_at_all(value, reason):
    if reason is None:
        ledger.decode(value)
    else:
        with pytest.raises(Reject, match=reason):
            ledger.decode(value)


@pytest.mark.parametrize(
    "unknown, reason", [("park", None), ("aged_out", "aged_out"), ("dead-letter", "unknown_message"), ("insert", None)]
)
def test_a_receipt_of_an_unknown_message_follows_the_policy(unknown, reason):
    event = {"message_id": "ghost", "status": "DELIVERED", "campaign_id": "c", "org_id": "o"}
    result = ledger_of([Record("t", 1, 2, json.dumps(event).encode(), 0)], {}, unknown=unknown)
    key = ("t", 1, 2, 0)
    assert result.parked == ({key: "ghost"} if unknown == "park" else {})
    assert {key: letter.reason for key, letter in result.letters.items()} == ({key: reason} if reason else {})
    assert result.platform == ({"ghost": Row("o", "c")} if unknown == "insert" else {})
    assert result.positions == {("t", 1): 3}


def small_stream(seed, count=6_000):
    stream = traffic.Traffic(seed, count, 8)
    offsets = Counter()
    records = []
    for outgoing in stream.records():
        partition = outgoing.partition
        records.append(Record("t", partition, offsets[partition], outgoing.value, outgoing.timestamp_ms))
        offsets[partition] += 1
    return stream, records


def test_the_ledger_does_not_depend_on_the_order_of_the_records():
    stream, records = small_stream(7)
    one = ledger_of(records, stream.platform)
    random.Random(1).shuffle(records)
    two = ledger_of(records, stream.platform)
    assert one.funnel() == two.funnel() and one.status == two.status and one.flags == two.flags
    assert one.parked == two.parked and one.letters.keys() == two.letters.keys() and one.positions == two.positions


def test_the_funnel_does_not_notice_repeated_receipts_but_events_do():
    stream, records = small_stream(8)
    once = ledger_of(records, stream.platform)
    again = [record._replace(offset=record.offset + 1_000_000) for record in records]
    twice = ledger_of(records + again, stream.platform)
    assert twice.status == once.status and twice.flags == once.flags
    assert twice.events == {key: 2 * count for key, count in once.events.items()}


def test_a_seed_gives_the_same_bytes_and_another_seed_others():
    assert small_stream(3)[1] == small_stream(3)[1]
    assert small_stream(3)[1] != small_stream(4)[1]


def test_the_traffic_holds_everything_that_it_promises():
    stream, records = small_stream(5, 120_000)
    result = ledger_of(records, stream.platform)
    reasons = Counter((letter.reason, key[3] == WHOLE_RECORD) for key, letter in result.letters.items())
    assert {reason for reason, _ in reasons} >= {
        "empty_record", "invalid_json", "not_an_event", "too_many_events", "missing_id", "invalid_id", "id_too_long",
        "missing_status", "unknown_status", "invalid_time", "invalid_flags",
    }
    assert sum(reasons.values()) >= 0.008 * 120_000
    assert result.parked and stream.late and stream.ghosts
    assert {code for _, code in result.events} == set(ladder.NAME) and len(result.funnel()) == 12
    standing = {code for cells in result.funnel().values() for code, cell in cells.items() if cell[2]}
    assert standing == set(ladder.PARENT) - {310} or standing == set(ladder.PARENT)
    places = {}
    for record in records:
        try:
            for element in ledger.decode(record.value):
                reason, id, _ = ledger.examine(element)
                if reason is None:
                    places.setdefault(id, set()).add(record.partition)
        except Reject:
            pass
    assert max(len(partitions) for partitions in places.values()) >= 6
    assert any(not id.isascii() for id in places) and any(len(id) == 255 for id in places)


def test_flags_beside_a_status_count_for_themselves():
    event = b'{"message_id":"m","status":"REPLIED","flags":["REPLIED","COMPLAINED","COMPLAINED"]}'
    result = ledger_of([Record("t", 0, 0, event, 0), Record("t", 0, 1, b'{"message_id":"m","status":"SENT","flags":[]}', 0)],
                       {"m": Row("o", "c")})
    assert result.status == {"m": 600} and result.flags == {"m": 0b1001}
    assert result.events == {("c", 9004): 1, ("c", 9001): 1, ("c", 300): 1}


def test_a_ledger_without_records_is_the_platforms_rows():
    cells = Ledger({"m": Row("o", "c"), "n": Row("o", None)}).funnel()
    assert cells["c"][0] == (1, 0, 1) and cells[None][0] == (1, 0, 1)


def test_bytes_that_are_not_utf8_cost_their_event_and_no_other():
    elements = ledger.decode(b'[{"message_id":"a\xff","status":300},{"message_id":"b","status":300}]')
    assert [ledger.examine(element)[0] for element in elements] == ["invalid_utf8", None]
