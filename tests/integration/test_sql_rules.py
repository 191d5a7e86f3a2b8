"""Rules that count beside the funnel (src/core/rules): echoes, the series, reasons, gateways. What they must say is written from the definition."""
import collections
import dataclasses
import datetime
import itertools
import json
import random
import threading

import pytest

from sql_batch import Event, add_messages, apply, drift, expected_funnel, path, stored_funnel, stored_rows, expected_rows, wake, wake_all
from sql_fixture import STATUSES, SqlError, database, fill_in, literal, sql_server, text_of  # noqa: F401

ALL = ("dedup", "series", "reasons", "gateways")
NOW = datetime.datetime.now(datetime.timezone.utc).replace(microsecond=0)


def at(hours=0.0, now=NOW):
    return (now - datetime.timedelta(hours=hours)).isoformat()


def ruled(database, *rules):
    session = database.session()
    session.rules = rules or ALL
    return session


def tally(session, kind, *columns):
    """{columns…: (messages, events)}"""
    rows = session.query(f"SELECT {', '.join(columns)}, sum(messages)::int, sum(events)::int FROM campaign_tally WHERE kind = %s"
                         f" GROUP BY {', '.join(str(n + 1) for n in range(len(columns)))}", [kind])
    return {row[:-2] if len(columns) > 1 else row[0]: row[-2:] for row in rows}


def without_echoes(events):
    """The first of each message and key."""
    seen = {}
    for event in events:
        seen.setdefault((event.message_id, event.key) if event.key is not None else id(event), event)
    return list(seen.values())


def histories(seed, n_messages=40, n_events=300):
    """Receipts with copies; copies share everything but their position."""
    rng = random.Random(seed)
    inbox = {f"m{i}": f"c{i % 3}" for i in range(n_messages)}
    codes = [c for c in STATUSES if c] + [9001, 9006]
    distinct = [Event(f"m{rng.randrange(n_messages)}", rng.choice(codes), 0, at=at(rng.uniform(0, 40)), gateway=rng.choice((None, "twilio", "kannel")),
                      reason=rng.choice((None, "blocked", "invalid")), key=1000 + n) for n in range(n_events)]
    distinct = [dataclasses.replace(event, marks=(3,)) if event.code < 9001 and rng.random() < 0.1 else event for event in distinct]
    events = distinct + [rng.choice(distinct) for _ in range(n_events)]
    rng.shuffle(events)
    return rng, inbox, [dataclasses.replace(event, offset=n) for n, event in enumerate(events)]


def out_of_order(inbox, batches, once):
    """Receipts of a stage that the message had passed before their batch, and of another branch than the one it stood on then."""
    found, standing, counts = collections.Counter(), dict.fromkeys(inbox, 0), {id(event) for event in once}
    for batch in batches:
        for event in batch:
            old = standing[event.message_id]
            if event.code < 9001 and id(event) in counts and old not in path(event.code):
                passed = event.code in path(old)
                found["gateway_disorder" if passed else "gateway_won" if event.code > old else "gateway_lost", event.gateway or "", event.code] += 1
        for event in batch:
            standing[event.message_id] = max(standing[event.message_id], event.top)
    return found


def batches_of(rng, events):
    while events:
        size = rng.randrange(1, 90)
        yield events[:size]
        events = events[size:]


@pytest.mark.parametrize("recent", (None, "-infinity", "infinity"))
def test_every_rule_says_what_its_definition_says(database, recent):
    for seed in range(4):
        rng, inbox, events = histories(seed)
        session = ruled(database, *ALL)
        session.recent_since = recent
        session.do("TRUNCATE campaign_tally_total, campaign_funnel_total, receipt_counted; DELETE FROM message_inbox;"
                   " TRUNCATE campaign_retired, retired_message, counter_delta")
        add_messages(session, inbox)
        once, batches = without_echoes(events), list(batches_of(rng, events))
        for batch in batches:
            apply(session, batch)
        assert stored_rows(session) == expected_rows(inbox, events)
        assert stored_funnel(session) == expected_funnel(inbox, once) and drift(session) == []
        echoes = collections.Counter((inbox[e.message_id], e.code) for e in events)
        echoes.subtract((inbox[e.message_id], e.code) for e in once)
        assert tally(session, "duplicate", "campaign_id", "status") == {k: (0, n) for k, n in echoes.items() if n}
        assert {(c, s): n for c, s, n in session.query("SELECT campaign_id, status, duplicates::int FROM campaign_funnel WHERE duplicates <> 0")} \
            == {k: n for k, n in echoes.items() if n}, "a column of the funnel, too"
        hours = collections.Counter((inbox[e.message_id], e.at[:13], code) for e in once for code in e.codes)
        stored = session.query("SELECT campaign_id, to_char(at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24'), status, events::int FROM campaign_tally"
                               " WHERE kind = 'hour' AND events <> 0")
        assert {row[:3]: row[3] for row in stored} == hours
        moved = {k: m for k, (m, _) in tally(session, "hour", "campaign_id", "status").items() if m}
        funnel = expected_funnel(inbox, once)
        assert moved == {k: m for k, (m, _) in funnel.items() if m and k[1] != 0}, "the hours sum up to the funnel"
        reasons = collections.Counter((inbox[e.message_id], e.reason, e.code) for e in once if e.reason)
        assert {k: n for k, (_, n) in tally(session, "reason", "campaign_id", "key", "status").items()} == reasons
        gateways = collections.Counter((e.gateway or "", e.code) for e in once)
        assert {k: n for k, (_, n) in tally(session, "gateway", "key", "status").items()} == gateways
        assert sum(n for _, n in tally(session, "gateway_delay", "key").values()) == len(once)
        stored = session.query("SELECT kind, key, status, sum(events)::int FROM campaign_tally WHERE kind IN ('gateway_disorder', 'gateway_won', 'gateway_lost') GROUP BY 1, 2, 3")
        assert {row[:3]: row[3] for row in stored} == out_of_order(inbox, batches, once)


def test_order_and_repetition_change_no_count_of_an_event(database):
    rng, inbox, events = histories(7)
    found = []
    for again in (1, 1, 3):
        session = ruled(database)
        session.do("TRUNCATE campaign_tally_total, receipt_counted; DELETE FROM message_inbox; TRUNCATE campaign_retired, retired_message,"
                   " counter_delta, campaign_funnel_total")
        add_messages(session, inbox)
        mine = events * again
        rng.shuffle(mine)
        for batch in batches_of(rng, [dataclasses.replace(e, offset=n) for n, e in enumerate(mine)]):
            apply(session, batch)
        found.append((stored_rows(session), stored_funnel(session), tally(session, "reason", "campaign_id", "key", "status"),
                      {k: n for k, (_, n) in tally(session, "hour", "campaign_id", "at", "status").items() if n}))
    assert found[0] == found[1] == found[2]


def test_a_parked_receipt_meets_the_rules_when_it_is_woken(database):
    session = ruled(database)
    late = Event("late", 440, 0, at=at(1), gateway="twilio", reason="blocked", key=5)
    apply(session, [late, dataclasses.replace(late, offset=1), Event("late", 300, 2, at=at(2), key=6)], lane=0)
    assert tally(session, "reason", "key") == {} and tally(session, "gateway_unknown", "key") == {"twilio": (0, 2), "": (0, 1)}
    add_messages(session, {"late": "c"})
    wake(session)
    apply(session, [dataclasses.replace(late, offset=3)])
    assert stored_funnel(session)["c", 440] == (1, 1)
    assert tally(session, "duplicate", "key", "status") == {("twilio", 440): (0, 2)}
    assert tally(session, "reason", "campaign_id", "key") == {("c", "blocked"): (0, 1)}
    assert tally(session, "hour", "status")[440] == (1, 1)


def test_the_window_is_seven_days_and_keys_without_one_count_each_time(database):
    session = ruled(database, "dedup")
    add_messages(session, {"m": "c"})
    for n, (when, key) in enumerate(((0, None), (24 * 8, 1), (-30, 2), (24 * 6, 3), (-20, 4))):
        for copy in range(3):
            apply(session, [Event("m", 600, 10 * n + copy, at=at(when), key=key)])
    assert stored_funnel(session)["c", 600] == (1, 3 + 3 + 3 + 1 + 1)


def days_of(session, partition="receipt_counted"):
    """How many days before today the remembered receipts are of."""
    return [n for n, in session.query(f"SELECT (now() AT TIME ZONE 'UTC')::date - day FROM {partition} ORDER BY 1")]


def partitions(session):
    return {name for name, in session.query("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = 'receipt_counted'::regclass")}


def make_partitions(session, window_days, ahead):
    return session.query(f"SELECT made, dropped FROM dedup_partitions({window_days * 86_400_000}, {ahead})")[0]


@pytest.fixture
def undivided(database):
    """No partition but the default one, before and after."""
    session = ruled(database, "dedup")

    def clear():
        for name in partitions(session) - {"receipt_counted_other"}:
            session.do(f"DROP TABLE {name}")
        session.do("TRUNCATE receipt_counted")
    clear()
    yield session
    clear()


def test_days_out_of_the_window_are_forgotten_and_no_others(undivided):
    session = undivided
    add_messages(session, {"m": "c"})
    for days in range(7):
        apply(session, [Event("m", 600, days, at=at(24 * days), key=days + 1)])
    assert days_of(session) == days_of(session, "receipt_counted_other") == [0, 1, 2, 3, 4, 5, 6]
    assert session.run("control/dedup_trim", 2 * 86_400_000, 3)[0]["rows"] == "3", "no more than it may"
    assert session.run("control/dedup_trim", 2 * 86_400_000, 100)[0]["rows"] == "1"
    assert days_of(session) == [0, 1, 2]
    apply(session, [Event("m", 600, 100 + days, at=at(24 * days), key=days + 1) for days in range(3)])
    assert stored_funnel(session)["c", 600] == (1, 7)


def test_partitions_are_made_ahead_and_dropped_behind_the_window(undivided):
    session = undivided
    add_messages(session, {"m": "c"})
    assert make_partitions(session, 7, 3) == (3, 0) and make_partitions(session, 7, 3) == (0, 0), "the second time all are there"
    today = session.query("SELECT to_char(now() AT TIME ZONE 'UTC', 'YYYYMMDD')")[0][0]
    apply(session, [Event("m", 600, 0, at=at(0), key=1), Event("m", 600, 1, at=at(48), key=2)])
    assert days_of(session, f"receipt_counted_{today}") == [0] and days_of(session, "receipt_counted_other") == [2]
    for days in (7, 8, 30):
        name, day = session.query(f"SELECT 'receipt_counted_' || to_char(d, 'YYYYMMDD'), d::text FROM (SELECT (now() AT TIME ZONE 'UTC')::date - {days} AS d) t")[0]
        session.do(f"CREATE TABLE {name} PARTITION OF receipt_counted FOR VALUES FROM ('{day}') TO (date '{day}' + 1)")
    before = partitions(session)
    assert make_partitions(session, 7, 0) == (0, 2) and len(before - partitions(session)) == 2
    assert make_partitions(session, 6, 0) == (0, 1)
    apply(session, [Event("m", 600, 2, at=at(0), key=1), Event("m", 600, 3, at=at(48), key=2)])
    assert stored_funnel(session)["c", 600] == (1, 2), "both are copies, in their partition and in the default one"


def test_a_day_that_the_default_partition_has_begun_stays_there(undivided):
    session = undivided
    add_messages(session, {"m": "c"})
    apply(session, [Event("m", 600, 0, at=at(0), key=1)])
    assert make_partitions(session, 7, 8) == (7, 0)
    apply(session, [Event("m", 600, 1, at=at(0), key=1), Event("m", 600, 2, at=at(0), key=2)])
    assert stored_funnel(session)["c", 600] == (1, 2) and days_of(session, "receipt_counted_other") == [0, 0]


def test_a_partition_that_a_batch_holds_is_left_for_the_next_run(undivided, database):
    session, other = undivided, ruled(database, "dedup")
    add_messages(session, {"m": "c"})
    day = session.query("SELECT ((now() AT TIME ZONE 'UTC')::date - 9)::text")[0][0]
    session.do(f"CREATE TABLE receipt_counted_{day.replace('-', '')} PARTITION OF receipt_counted FOR VALUES FROM ('{day}') TO (date '{day}' + 1)")
    other.do("BEGIN")
    apply_in = [Event("m", 600, 0, at=at(0), key=1)]
    other.do("INSERT INTO receipt_counted (day, message, event) VALUES ((now() AT TIME ZONE 'UTC')::date, 1, 1)")
    assert make_partitions(session, 7, 0) == (0, 0)
    other.do("COMMIT")
    assert make_partitions(session, 7, 0) == (0, 1)
    apply(session, apply_in)
    assert stored_funnel(session)["c", 600] == (1, 1)


def test_roll_up_and_trimming_keep_what_they_must(database):
    session = ruled(database)
    add_messages(session, {f"m{n}": "c" for n in range(50)})
    now = datetime.datetime.now(datetime.timezone.utc)  # NOW may be of the hour before
    apply(session, [Event(f"m{n}", 600, n, at=at(n, now), gateway="g", key=n) for n in range(50)])
    before = tally(session, "hour", "at", "status")
    minutes = tally(session, "minute", "at", "status")
    for deltas, kinds in (("funnel", "kind = 'funnel'"), ("rules", "true")):
        assert session.run("control/rollup", 10_000, 0, deltas)[0]["rows"] != "0"
        assert session.query(f"SELECT count(*) FROM counter_delta WHERE {kinds}") == [(0,)]
        assert tally(session, "hour", "at", "status") == before and tally(session, "minute", "at", "status") == minutes
    assert 23 <= len({m for m in tally(session, "minute", "at")}) <= 25, "minutes of the last day alone"
    session.run("control/tally_trim", 12 * 3_600_000, 3_600_000, 100_000)
    assert 12 <= len(tally(session, "hour", "at")) <= 13
    assert tally(session, "gateway", "key") == {"g": (0, 50)}, "applied within the hour"
    session.run("control/tally_trim", 0, 0, 100_000)
    assert 12 <= len(tally(session, "hour", "at")) <= 13 and tally(session, "gateway", "key") == {"g": (0, 50)}, "off: what was counted stays"


FUTURE = ("2030-01-01 00:00:00+00", "9999-12-31 23:59:59+00", at(-3), at(-2 * 24))


@pytest.mark.parametrize("woken", (False, True))
@pytest.mark.parametrize("rules", (("dedup", "series", "reasons", "gateways", "times"), ("series", "times")))
def test_receipts_from_the_future_count_an_hour_ahead_at_most(database, rules, woken):
    session = ruled(database, *rules)
    inbox = {f"m{n}": "c" for n in range(len(FUTURE))}
    if not woken:
        add_messages(session, inbox)
    events = [Event(f"m{n}", code, 2 * n + code, at=when, gateway="g", key=10 * n + code % 7 + 1) for n, when in enumerate(FUTURE) for code in (300, 600, 700)]
    events += [dataclasses.replace(event, offset=10_000 + event.offset) for event in events]
    apply(session, events)
    if woken:
        add_messages(session, inbox)
        wake_all(session)
    limit = session.query("SELECT now() + interval '1 hour'")[0][0]
    for kind in ("hour", "minute", "gateway"):
        assert all(time <= limit for time in tally(session, kind, "at")), kind
    for deltas in ("funnel", "rules"):
        session.run("control/rollup", 10_000, 0, deltas)
    assert session.query("SELECT count(*) FROM campaign_tally_total WHERE at > now() + interval '1 hour'") == [(0,)]
    hours = tally(session, "hour", "status")
    assert {code: n for code, (n, _) in hours.items() if n} == {c: n for (_, c), (n, _) in stored_funnel(session).items() if n and c}, "the sum over all hours is the funnel"
    times = session.query("SELECT first_sent_at <= now() + interval '1 hour', first_delivered_at <= now() + interval '1 hour', first_opened_at <= now() + interval '1 hour',"
                          " first_clicked_at FROM message_inbox")
    assert times == [(True, True, True, None)] * len(FUTURE)
    assert drift(session) == [] and audit_times(session, ["c"]) == []


def test_cells_that_lie_ahead_are_hidden_and_trimmed(database):
    """Of an older version."""
    session = ruled(database)
    session.do("INSERT INTO campaign_tally_total (campaign_id, kind, at, key, status, messages, events) SELECT 'c', k, now() + s * interval '1 hour', '', 600, 1, 1"
               " FROM unnest('{hour,minute,gateway,gateway_delay}'::text[]) k, unnest('{-1,0,2,30000}'::int[]) s")
    assert session.query("SELECT kind, count(*) FROM campaign_tally GROUP BY 1 ORDER BY 1") == [("gateway", 2), ("gateway_delay", 2), ("hour", 2), ("minute", 2)]
    assert session.run("control/tally_trim", 0, 0, 3)[0]["rows"] == "3"
    assert session.run("control/tally_trim", 0, 0, 100)[0]["rows"] == "5"
    assert session.query("SELECT count(*), max(at) <= now() FROM campaign_tally_total") == [(8, True)]


def test_a_store_that_was_dropped_by_hand_rolls_the_batch_back(database):
    session = ruled(database)
    add_messages(session, {"m": "c"})
    apply(session, [Event("m", 300, 0, at=at(), key=1)])
    session.do("ALTER TABLE receipt_counted RENAME TO lost")
    with pytest.raises(Exception, match="receipt_counted"):
        other = ruled(database)
        apply(other, [Event("m", 600, 1, at=at(), key=2)])
    assert stored_rows(session) == {"m": (300, 0)}


TIMES = {300: "sent", 600: "delivered", 700: "opened", 800: "clicked"}


def times_history(seed, n_messages=30, n_events=250):
    """Receipts within minutes, some with clocks that run backwards, several of a status; several gateways of one message."""
    rng = random.Random(seed)
    inbox = {f"m{i}": rng.choice(("a", "b", None)) for i in range(n_messages)}
    distinct = [Event(f"m{rng.randrange(n_messages + 3)}", rng.choice((300, 300, 440, 600, 600, 700, 800, 9006)), 0, at=at(rng.expovariate(20)),
                      gateway=rng.choice((None, "twilio", "kannel")), key=n) for n in range(n_events)]
    return rng, inbox, distinct


def expected_times(inbox, events):
    """({kind: {(campaign, key): messages}}, the rows) from the definition."""
    firsts, gateways = collections.defaultdict(dict), {}
    for e in events:
        if e.message_id in inbox and e.code in TIMES:
            known = firsts[e.message_id]
            known[TIMES[e.code]] = min(known.get(TIMES[e.code], "9"), e.at)
            if e.gateway is not None:
                gateways[e.message_id] = min(gateways.get(e.message_id, e.gateway), e.gateway)
    found = collections.defaultdict(collections.Counter)
    standing = expected_rows(inbox, events)
    for message, known in firsts.items():
        if 600 not in path(standing[message][0]):
            continue  # it was not delivered, whatever its receipts said before
        for kind, first, second in (("time_to_deliver", "sent", "delivered"), ("time_to_open", "delivered", "opened")):
            if first in known and second in known:
                ms = (datetime.datetime.fromisoformat(known[second]) - datetime.datetime.fromisoformat(known[first])) / datetime.timedelta(milliseconds=1)
                bucket = next(b for b in range(80) if ms <= 2 ** (b / 2) * (1 + 1e-9))
                key = "negative" if ms < 0 else str(round(2 ** (bucket / 2)))
                found[kind][inbox[message] or "", key] += 1
                found[f"gateway_{kind}"]["", f"{gateways.get(message, '')}/{key}"] += 1
    return {kind: dict(cells) for kind, cells in found.items()}, firsts


def stored_times(session):
    found = collections.defaultdict(dict)
    for kind, campaign, key, n in session.query("SELECT kind, campaign_id, key, sum(messages)::int FROM campaign_tally"
                                                " WHERE kind ~ '^(gateway_)?time_to_' GROUP BY 1, 2, 3 HAVING sum(messages) <> 0"):
        found[kind][campaign, key] = n
    return dict(found)


def expected_percentiles(expected):
    """Of each gateway: messages, and the ends of the buckets with the median and the 99th percentile of the time to deliver."""
    ends = collections.defaultdict(list)
    for (_, key), n in expected["gateway_time_to_deliver"].items():
        gateway, _, end = key.rpartition("/")
        ends[gateway] += [-1 if end == "negative" else int(end)] * n
    rank = {gateway: [sorted(found)[-(-len(found) * percent // 100) - 1] for percent in (50, 99)] for gateway, found in ends.items()}
    return {gateway: (len(ends[gateway]), *(None if end < 0 else end for end in found)) for gateway, found in rank.items()}


KINDS_OF_TIMES = ("time_to_deliver", "time_to_open", "gateway_time_to_deliver", "gateway_time_to_open")


def audit_times(session, campaigns, end="audit_dimension/90_list", booked=False):
    """As src/commands/figures/audit_dimensions.c composes it: the cells that drift, or how many were repaired. booked: the run has booked messages that were missing."""
    found = []
    for kind in KINDS_OF_TIMES:
        text = text_of("command/audit_times") + text_of(f"command/{end}")
        result = session.check(session.connection.pgconn.exec_params(fill_in(text, {"kind": kind}).encode(), [literal(campaigns), b"t" if booked else b"f"]))
        if end == "audit_times_repair":
            found.append(int(result.get_value(0, 0)))
            continue
        column = {result.fname(i).decode(): i for i in range(result.nfields)}
        found += [(kind, result.get_value(r, column["campaign_id"]).decode(), result.get_value(r, column["key"]).decode(),
                   int(result.get_value(r, column["drift"]))) for r in range(result.ntuples)]
    return sum(found) if end == "audit_times_repair" else found


def fresh_times(database, *rules):
    session = ruled(database, *rules)
    session.do("DELETE FROM message_inbox;"
               " TRUNCATE campaign_tally_total, receipt_counted, parked_event, campaign_retired, retired_message,"
               " counter_delta, campaign_funnel_total")
    return session


@pytest.mark.parametrize("recent", (None, "-infinity", "infinity"))
@pytest.mark.parametrize("rules", (("times",), ("dedup", "series", "reasons", "gateways", "times")))
def test_times_to_deliver_and_open_are_those_of_the_first_receipts_in_any_order_and_with_any_copies(database, recent, rules):
    for seed in range(2):
        rng, inbox, distinct = times_history(seed)
        known = dict(list(inbox.items())[:20])
        expected, firsts = expected_times(inbox, distinct)
        for again in (1, 3):
            session = fresh_times(database, *rules)
            session.recent_since = recent
            add_messages(session, known)
            events = distinct * again
            rng.shuffle(events)
            for batch in batches_of(rng, [dataclasses.replace(e, offset=n) for n, e in enumerate(events)]):
                apply(session, batch)
            add_messages(session, {k: v for k, v in inbox.items() if k not in known})
            wake_all(session)
            assert stored_times(session) == expected
            assert audit_times(session, ["a", "b", ""]) == []
            assert {gateway: tuple(rest) for gateway, *rest in session.query("SELECT * FROM gateway_time")} == expected_percentiles(expected)
            assert session.query("SELECT count(*) FROM message_inbox WHERE COALESCE(first_sent_at, first_delivered_at, first_opened_at, first_clicked_at) IS NOT NULL") == [(len(firsts),)]
            while session.run("control/rollup", 2, 0, "rules")[0]["rows"] == "2":
                assert stored_times(session) == expected, "some are rolled up, some wait"
            assert session.query("SELECT count(*) FROM counter_delta WHERE kind <> 'funnel'") == [(0,)] and stored_times(session) == expected
            session.do("UPDATE campaign_tally_total SET messages = messages + 1 + length(key) % 3 WHERE kind ~ '^(gateway_)?time_to_' AND ascii(right(key, 1)) % 2 = 0")
            off = audit_times(session, ["a", "b", ""])
            assert off != [] and audit_times(session, ["a", "b", ""], "audit_times_repair") == len(off)
            assert stored_times(session) == expected and audit_times(session, ["a", "b", ""]) == []
            assert drift(session) == []


def test_readers_see_exact_histograms_while_two_sessions_roll_them_up(database):
    rng, inbox, events = times_history(3, n_events=600)
    session = fresh_times(database, "times")
    add_messages(session, inbox)
    done, failures, taken = threading.Event(), [], collections.Counter()

    def roll(name):
        roller = database.session(name)
        try:
            while not done.is_set():
                taken[name] += int(roller.one("control/rollup", 2, 0, "rules")["rows"])
        except SqlError as error:
            failures.append(error)

    rollers = [threading.Thread(target=roll, args=(f"roller {n}",)) for n in range(2)]
    for roller in rollers:
        roller.start()
    applied = []
    try:
        for batch in batches_of(rng, [dataclasses.replace(e, offset=n) for n, e in enumerate(events)]):
            apply(session, batch)
            applied += batch
            assert stored_times(session) == expected_times(inbox, applied)[0]
    finally:
        done.set()
        for roller in rollers:
            roller.join()
    assert failures == [] and sum(taken.values()) > 0
    while session.one("control/rollup", 100, 0, "rules")["rows"] != "0":
        pass
    assert stored_times(session) == expected_times(inbox, events)[0] and audit_times(session, ["a", "b", ""]) == []
    assert session.query("SELECT count(*) FROM counter_delta WHERE kind <> 'funnel'") == [(0,)]


def test_a_time_that_gets_earlier_moves_one_count(database):
    session = fresh_times(database, "times")
    add_messages(session, {"m": "c"})
    apply(session, [Event("m", 600, 0, at="2026-01-01 00:00:10+00", gateway="g")])
    assert stored_times(session) == {}, "half a pair"
    apply(session, [Event("m", 300, 1, at="2026-01-01 00:00:09+00")])
    assert stored_times(session)["time_to_deliver"] == {("c", "1024"): 1}
    apply(session, [Event("m", 300, 2, at="2026-01-01 00:00:06+00")])
    assert stored_times(session) == {"time_to_deliver": {("c", "4096"): 1}, "gateway_time_to_deliver": {("", "g/4096"): 1}}
    before = session.query("SELECT xmin::text FROM message_inbox")
    apply(session, [Event("m", 300, 3, at="2026-01-01 00:00:08+00")])
    assert session.query("SELECT xmin::text FROM message_inbox") == before, "nothing new is not written"
    apply(session, [Event("m", 600, 4, at="2026-01-01 00:00:01+00")])
    assert stored_times(session)["time_to_deliver"] == {("c", "negative"): 1}


def test_forgotten_times_stay_in_the_histograms(database):
    session = fresh_times(database, "times")
    add_messages(session, {"m": "c", "n": "c"})
    apply(session, [Event(m, code, n, at=at(1)) for n, (m, code) in enumerate((("m", 300), ("m", 600), ("n", 300)))])
    before = stored_times(session)
    session.do("DELETE FROM message_inbox")
    assert stored_times(session) == before
    assert audit_times(session, ["c"]) == []
    assert session.run("control/rollup", 10_000, 0, "rules")[0]["rows"] == "3" and stored_times(session) == before, "a place, and what is forgotten of two kinds"
    session.do("UPDATE campaign_tally_total SET messages = 2 WHERE kind IN ('time_to_deliver', 'gateway_time_to_deliver')")
    assert audit_times(session, ["c"]) == [("time_to_deliver", "c", "1", 1), ("gateway_time_to_deliver", "", "/1", 1)]
    assert audit_times(session, ["d"]) == [("gateway_time_to_deliver", "", "/1", 1)], "gateways are of all campaigns"
    surplus = stored_times(session)
    with session.connection.transaction(force_rollback=True):
        assert audit_times(session, ["c"], "audit_times_repair", booked=True) == 2
        assert stored_times(session) == surplus and audit_times(session, ["c"]) == [], "what no row has is that of the booked messages"
    assert audit_times(session, ["c"], "audit_times_repair") == 2
    assert stored_times(session) == before
    assert tally(session, "forgotten_time_to_deliver", "campaign_id", "key") == {("c", "1"): (1, 0)}


def shown_coverage(session):
    assert session.query("SELECT count(*)::int FROM gateway_hour WHERE coverage NOT BETWEEN 0 AND 1") == [(0,)]
    return {row["gateway"]: float(row["coverage"]) for row in session.run("command/gateways", 24, "f")}


@pytest.mark.parametrize("recent", (None, "-infinity", "infinity"))
@pytest.mark.parametrize("rules", (("gateways",), ("dedup", "gateways"), ("dedup", "series", "reasons", "gateways")))
def test_coverage_is_the_share_of_messages_that_were_sent_and_have_a_final_status(database, recent, rules):
    session = ruled(database, *rules)
    session.recent_since = recent
    add_messages(session, {f"m{n}": "c" for n in range(9)})
    numbers = itertools.count()

    def told(message, *codes):
        apply(session, [Event(message, code, next(numbers), at=at(n), gateway="g", key=next(numbers)) for n, code in enumerate(codes)])

    told("m0", 300)
    assert shown_coverage(session) == {"g": 0}
    for code in (600, 600, 440):  # further receipts of one message
        told("m0", code)
    assert shown_coverage(session) == {"g": 1}
    told("m1", 300, 300, 310)
    assert shown_coverage(session) == {"g": 0.5}
    told("m2", 600)  # it was sent, though no receipt said so
    told("m3", 300, 600, 700, 800)
    assert shown_coverage(session) == {"g": 0.75}
    told("m4", 460)  # rejected before it was sent
    told("m5", 200)
    assert shown_coverage(session) == {"g": 0.75}
    told("m1", 440)
    told("m1", 600)  # another final status
    assert shown_coverage(session) == {"g": 1}
    told("m6", 440)
    told("m6", 460)  # it counts as not sent from now on
    assert shown_coverage(session) == {"g": 1}
    apply(session, [Event("late", code, next(numbers), at=at(1), gateway="h", key=code) for code in (300, 600)])
    add_messages(session, {"late": "c"})
    wake_all(session)
    apply(session, [Event("m7", 300, next(numbers), at=at(1), gateway="h", key=1)])
    assert shown_coverage(session) == {"g": 1, "h": 0.5}
    session.do("UPDATE counter_delta SET at = array_fill(now() - interval '100 days', ARRAY[cardinality(at)]) WHERE kind LIKE 'gateway%'")
    while session.run("control/rollup", 1000, 0, "rules")[0]["rows"] != "0":
        pass
    session.run("control/tally_trim", 1, 90 * 86_400_000, 1000)
    assert session.query("SELECT kind FROM campaign_tally WHERE kind LIKE 'gateway%' AND at IS NOT NULL") == []


def test_readers_see_the_times_of_gateways_whose_names_have_a_slash(database):
    session = fresh_times(database, "times", "gateways")
    add_messages(session, {"m": "c", "n": "c"})
    times = (("m", 300, "00:00:00"), ("m", 600, "00:00:03"), ("n", 300, "00:00:05"), ("n", 600, "00:00:01"))
    apply(session, [Event(m, code, n, at=f"2026-01-01 {time}+00", gateway="a/b") for n, (m, code, time) in enumerate(times)])
    body = json.loads(session.one("serve/gateways", None, 24)["body"])
    assert body["times"] == [{"gateway": "a/b", "messages": 2, "deliver_p50_ms": None, "deliver_p99_ms": 4096}]
    (row,) = session.run("command/gateways", 24, "f")
    assert (row["gateway"], row["deliver_p50_ms"], row["deliver_p99_ms"]) == ("a/b", None, "4096")
    assert json.loads(session.one("serve/gateways", "o1", 24)["body"])["times"] == [], "figures of gateways belong to no organisation"


def test_deltas_are_compressed_with_lz4_where_the_server_has_it(database):
    session = database.session()
    known = session.query("SELECT enumvals FROM pg_settings WHERE name = 'default_toast_compression'")
    used = session.query("SELECT DISTINCT attcompression::text FROM pg_attribute WHERE attndims > 0 AND attnum > 0 AND attrelid IN"
                         " ('counter_delta'::regclass, 'group_delta'::regclass)")
    assert used == [("l" if known and "lz4" in known[0][0] else "",)]


def test_beside_an_unknown_message_delays_are_those_of_known_ones(database):
    """Where all messages are known, delays are read from the arrays of the batch; else receipt by receipt."""
    session = ruled(database, "series", "reasons", "gateways")
    add_messages(session, {"m": "c", "n": "c"})
    apply(session, [Event("m", 600, 0, at=at(1), gateway="g", reason="blocked"), Event("n", 300, 1, at=at(1), gateway="g")])
    apply(session, [Event("m", 600, 2, at=at(1), gateway="g"), Event("n", 600, 3, at=at(1), gateway="h"), Event("late", 600, 4, at=at(1), gateway="g")])
    assert tally(session, "gateway", "key", "status") == {("g", 600): (0, 2), ("g", 300): (0, 1), ("h", 600): (0, 1)}
    assert {k: n for k, (_, n) in tally(session, "gateway_delay", "key").items()} == {"g": 3, "h": 1}, "not of the unknown message"
    assert tally(session, "gateway_unknown", "key") == {"g": (0, 1)}
    assert {k: v for k, v in tally(session, "hour", "status").items()} == {600: (2, 3), 300: (2, 1), 200: (2, 0)}
