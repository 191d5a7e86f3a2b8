"""Counters: the root by trigger, views, roll-up, audit and repair, rates."""
import random
import threading

import psycopg
import pytest

from sql_batch import Event, add_messages, apply, drift, expected_funnel, stored_funnel
from sql_fixture import (FLAGS, SCHEMA, SQL, STATUSES, Database, SqlError, database, fill_in, sql_server,  # noqa: F401
                         wait_for_lock)
from support import inbox
from test_sql_apply import make_events


def test_one_insert_statement_appends_one_row_of_counters(database):
    session = database.session()
    session.do("INSERT INTO message_inbox (message_id, campaign_id) SELECT 'm' || n, 'c' || n % 3"
               " FROM generate_series(1, 90) n")
    with session.connection.cursor() as cursor, \
            cursor.copy("COPY message_inbox (message_id, org_id, campaign_id) FROM STDIN") as copy:
        for n in range(10):
            copy.write_row((f"copied{n}", "o", "c0"))
    session.do("INSERT INTO message_inbox (message_id) SELECT 'm1' ON CONFLICT DO NOTHING")
    assert session.query("SELECT count(*) FROM counter_delta") == [(2,)]
    assert stored_funnel(session) == {("c0", 0): (40, 0), ("c1", 0): (30, 0), ("c2", 0): (30, 0)}


def test_an_insert_of_rows_that_are_not_fresh_stays_exact(database):
    session = database.session()
    session.do("INSERT INTO message_inbox (message_id, campaign_id, status, flags)"
               " VALUES ('a', 'c', 700, 5), ('b', 'c', 0, 0), ('d', 'c', 460, 1)")
    assert {s: m for (_, s), (m, _) in stored_funnel(session).items()} == {
        0: 3, 200: 2, 300: 1, 460: 1, 600: 1, 700: 1, 9001: 2, 9003: 1}
    assert drift(session) == []


def test_the_trigger_can_be_taken_away_and_put_back(database):
    session = database.session()
    session.do('DROP TRIGGER IF EXISTS receiptd_count_inserted ON "receiptd"."message_inbox"')
    add_messages(session, {"m": "c"})
    assert stored_funnel(session) == {}
    off = session.run("command/audit_campaign", "c", False)
    assert off == []  # the root is not ours to count then
    session.do("SELECT install_inbox_trigger('receiptd', 'message_inbox', 'message_id', 'org_id', 'campaign_id', 'status', 'flags', '{}', '{}', '{}', '{}')")
    add_messages(session, {"n": "c"})
    assert stored_funnel(session) == {("c", 0): (1, 0)}


def test_readers_see_exact_counters_while_rows_are_rolled_up(database):
    session = database.session()
    inbox = {f"m{n}": f"c{n % 4}" for n in range(40)}
    add_messages(session, inbox)
    events = make_events(random.Random(5), list(inbox), 1200)
    done = threading.Event()
    failures = []

    def roll():
        roller = database.session("roller")
        try:
            while not done.is_set():
                roller.one("control/rollup", 3, 0, "funnel")
        except SqlError as error:
            failures.append(error)

    rollers = [threading.Thread(target=roll) for _ in range(2)]
    for roller in rollers:
        roller.start()
    applied = []
    for start in range(0, len(events), 60):
        apply(session, events[start:start + 60])
        applied += events[start:start + 60]
        assert stored_funnel(session) == expected_funnel(inbox, applied)
    done.set()
    for roller in rollers:
        roller.join()
    assert failures == []
    while session.one("control/rollup", 100, 0, "funnel")["rows"] != "0":
        pass
    assert stored_funnel(session) == expected_funnel(inbox, events)
    assert session.query("SELECT count(*) FROM counter_delta") == [(0,)]


def test_a_roll_up_takes_the_oldest_rows_and_says_how_many(database):
    session = database.session()
    for n in range(5):
        add_messages(session, {f"m{n}": "c"})
    assert session.one("control/rollup", 2, 0, "funnel") == {"rows": "2", "last": "2"}
    assert session.query("SELECT messages FROM campaign_funnel_total") == [(2,)]
    assert session.one("control/rollup", 10, 2, "funnel") == {"rows": "3", "last": "5"}


def test_a_roll_up_above_an_id_leaves_what_lies_below_to_a_whole_one(database):
    session = database.session()
    for n in range(3):
        add_messages(session, {f"m{n}": "c"})
    assert session.one("control/rollup", 10, 1, "funnel") == {"rows": "2", "last": "3"}
    assert session.one("control/rollup", 10, 3, "funnel") == {"rows": "0", "last": "0"}
    assert session.query("SELECT id FROM counter_delta") == [(1,)]
    assert session.one("control/rollup", 10, 0, "funnel") == {"rows": "1", "last": "1"}


def repair(session, campaign):
    with session.transaction():
        session.run("command/audit_lock")
        return int(session.one("command/audit_repair", campaign, True)["repaired"])


def test_drift_is_found_named_and_repaired(database):
    session = database.session()
    add_messages(session, {"m": "c", "n": "other"})
    apply(session, [Event("m", 600, 0), Event("m", 9001, 1)])
    session.do("UPDATE message_inbox SET status = 440, flags = 2 WHERE message_id = 'm'")
    off = {int(cell["status"]): (cell["status_name"], cell["rows"], cell["counter"], cell["drift"])
           for _, cell in drift(session)}
    assert off == {440: ("FAILED", "1", "0", "-1"), 600: ("DELIVERED", "0", "1", "1"),
                   9001: ("COMPLAINED", "0", "1", "1"), 9002: ("UNSUBSCRIBED", "1", "0", "-1")}
    assert repair(session, "c") == 4
    assert drift(session) == []
    assert repair(session, "c") == 0


def test_a_campaign_whose_rows_are_gone_is_audited_too(database):
    session = database.session()
    add_messages(session, {"m": "c"})
    session.do("DELETE FROM message_inbox")
    assert drift(session) == []  # booked by the trigger
    session.do("DELETE FROM campaign_retired")
    assert [c for c, _ in drift(session)] == ["c"]
    assert repair(session, "c") == 1 and drift(session) == []


def test_two_repairs_at_once_repair_once(database):
    """R6: the lock is taken in an earlier statement, so the second one's snapshot has the first one's row."""
    one, two = database.session("one"), database.session("two")
    add_messages(one, {"m": "c"})
    one.do("UPDATE counter_delta SET messages = '{11}'")
    one.do("BEGIN")
    one.run("command/audit_lock")
    assert one.one("command/audit_repair", "c", True) == {"repaired": "1", "booked": "10"}
    answers = []
    other = threading.Thread(target=lambda: answers.append(repair(two, "c")))
    other.start()
    wait_for_lock(one, two)
    apply(database.session("lane"), [Event("m", 600, 0)])  # a lane does not wait for it
    one.do("COMMIT")
    other.join()
    assert answers == [0]
    assert drift(one) == [] and stored_funnel(one)["c", 0] == (11, 0)


def test_repairs_under_load_stay_exact(database):
    session = database.session()
    inbox = {f"m{n}": "c" for n in range(50)}
    add_messages(session, inbox)
    events = make_events(random.Random(9), list(inbox), 1500)

    def write():
        writer = database.session("writer")
        for start in range(0, len(events), 50):
            apply(writer, events[start:start + 50])

    writer = threading.Thread(target=write)
    writer.start()
    while writer.is_alive():
        session.do("INSERT INTO counter_delta (kind, campaign_id, status, messages, events)"
                   " VALUES ('funnel', '{c,c}', '{300,600}', '{5,-3}', '{0,0}')")
        assert repair(session, "c") == 2
    writer.join()
    assert stored_funnel(session) == expected_funnel(inbox, events)


def test_the_platform_cannot_write_what_is_not_its_own(database):
    """R7: with column grants the upsert of a status is refused, the insert of own columns works and is counted."""
    session = database.session()
    role = f"platform_{database.name}"
    session.do(f"CREATE ROLE {role}")
    try:
        session.do(f"GRANT USAGE ON SCHEMA receiptd TO {role};"
                   f"GRANT INSERT (message_id, org_id, campaign_id) ON message_inbox TO {role}")
        session.do(f"SET ROLE {role}")
        session.do("INSERT INTO message_inbox (message_id, org_id, campaign_id) VALUES ('m', 'o', 'c')")
        with pytest.raises(Exception, match="permission denied"):
            session.do("INSERT INTO message_inbox (message_id, status) VALUES ('n', 600)")
        session.do("RESET ROLE")
        assert stored_funnel(session) == {("c", 0): (1, 0)}
    finally:
        session.do(f"RESET ROLE; DROP OWNED BY {role}; DROP ROLE {role}")


def kpis(session, campaign="c"):
    return {kpi: (value, numerator, denominator) for kpi, value, numerator, denominator in session.query(
        "SELECT kpi, value, numerator, denominator FROM campaign_kpi WHERE campaign_id = %s", [campaign])}


def test_a_platform_that_would_reset_a_status_is_refused_and_nothing_counts_twice(database):
    """R7 as it was seen: an upsert of its own took DELIVERED back to 0, and the next receipt counted it again."""
    session, platform = database.session(), database.session("platform")
    roles = [f"{name}_{database.name}" for name in ("platform", "receiptd")]
    for role in roles:
        session.do(f"CREATE ROLE {role}")
    try:
        variables = {"schema": SCHEMA, "platform_role": roles[0], "receiptd_role": roles[1], **inbox.variables({})}
        for file in ("role", "platform_role"):
            session.do(fill_in((SQL / f"migrate/{file}.sql").read_text(), variables))
        session.do(f"SET ROLE {roles[1]}")
        session.role = roles[1]
        platform.do(f"SET ROLE {roles[0]}")
        platform.do("INSERT INTO message_inbox (message_id, org_id, campaign_id) VALUES ('m', 'o', 'c')")
        apply(session, [Event("m", 600, 0)])
        reset = " ON CONFLICT (message_id) DO UPDATE SET status = 0"
        own = "INSERT INTO message_inbox (message_id, org_id, campaign_id) VALUES ('m', 'o', 'c'), ('n', 'o', 'c')"
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            platform.do(own + reset)
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            platform.do("UPDATE message_inbox SET campaign_id = 'other'")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            platform.do("DELETE FROM message_inbox")
        platform.do(own + " ON CONFLICT (message_id) DO NOTHING")
        apply(session, [Event("m", 600, 1)])
        session.do("RESET ROLE")
        assert stored_funnel(session) == expected_funnel({"m": "c", "n": "c"}, [Event("m", 600, 0), Event("m", 600, 1)])
        assert drift(session) == []
    finally:
        platform.do("RESET ROLE")
        session.close_lane()
        session.do("RESET ROLE; " + "".join(f"DROP OWNED BY {role}; DROP ROLE {role};" for role in roles))


def test_rates_are_named_after_their_denominator_and_right(database):
    session = database.session()
    last = [600] * 30 + [700] * 20 + [800] * 10 + [470] * 4 + [650] * 3 + [430] * 5 + [450] * 2 + [460] * 6 + [440] * 7 \
        + [420] * 1 + [400] * 2 + [300] * 8 + [310] * 2 + [100] * 9 + [0] * 11
    add_messages(session, {f"m{n}": "c" for n in range(len(last))} | {"x": "empty"})
    events = [Event(f"m{n}", code, n) for n, code in enumerate(last) if code]
    events += [Event("m30", 700, 1000 + n) for n in range(5)] + [Event("m50", 800, 2000)]
    events += [Event("m0", 9001, 3000), Event("m1", 9002, 3001), Event("m2", 9002, 3002), Event("m3", 9004, 3003)]
    apply(session, events)
    sent, delivered, targeted = 94, 60, 120
    found = kpis(session)
    expected = {
        "sent_per_targeted": (sent, targeted), "skipped_per_targeted": (9, targeted),
        "rejected_per_targeted": (6, targeted), "delivered_per_sent": (delivered, sent),
        "hard_bounced_per_sent": (7, sent), "soft_bounced_per_sent": (5, sent), "blocked_per_sent": (2, sent),
        "failed_per_sent": (7, sent), "expired_per_sent": (1, sent), "pending_per_sent": (10, sent),
        "receipts_per_sent": (delivered + 4 + 3 + 5 + 2 + 7 + 1 + 2, sent),
        "opened_per_delivered": (30, delivered), "clicked_per_delivered": (10, delivered), "clicked_per_opened": (10, 30),
        "complained_per_delivered": (1, delivered), "unsubscribed_per_delivered": (2, delivered),
        "machine_opened_per_delivered": (0, delivered), "bot_clicked_per_delivered": (0, delivered),
        "replied_per_delivered": (1, delivered), "total_opens_per_delivered": (30, delivered),
        "total_clicks_per_delivered": (11, delivered),
    }
    assert {k: v[1:] for k, v in found.items()} == expected
    assert all(v[0] == pytest.approx(v[1] / v[2]) for v in found.values())
    nothing = kpis(session, "empty")
    assert set(nothing) == set(expected) and nothing["delivered_per_sent"] == (None, 0, 0)


def test_rates_without_their_statuses_in_the_ladder_are_left_out(database):
    session = database.session()
    statuses = {0: ("TARGETED", None, False), 5: ("SENT", 0, False), 9: ("DELIVERED", 5, True)}
    database.fill_ladder(session, statuses, {0: ("COMPLAINED", 9)})
    add_messages(session, {"m": "c"})
    assert set(kpis(session)) == {"sent_per_targeted", "delivered_per_sent", "pending_per_sent", "receipts_per_sent",
                                  "complained_per_delivered"}


def test_a_rate_follows_the_tree_and_never_exceeds_its_whole(database):
    """OPENED beside DELIVERED is no share of it; of two bounces on one path the outer one counts both."""
    session = database.session()
    statuses = {0: ("TARGETED", None, False), 5: ("SENT", 0, False), 9: ("DELIVERED", 5, True), 10: ("OPENED", 5, False),
                11: ("CLICKED", 10, False), 12: ("BOUNCED_HARD", 5, True), 13: ("BOUNCED_HARD_EMAIL", 12, True), 14: ("SKIPPED", 0, True)}
    session.ladder = statuses, {0: ("COMPLAINED", None), 1: ("REPLIED", 10), 2: ("UNSUBSCRIBED", 9)}
    database.fill_ladder(session, *session.ladder)
    add_messages(session, {f"m{n}": "c" for n in range(8)})
    apply(session, [Event(f"m{n}", code, n) for n, code in enumerate([9, 10, 11, 11, 13, 12, 9, 14])])
    assert {kpi: found[1:] for kpi, found in kpis(session).items()} == {
        "sent_per_targeted": (7, 8), "skipped_per_targeted": (1, 8), "delivered_per_sent": (2, 7), "hard_bounced_per_sent": (2, 7),
        "pending_per_sent": (0, 7), "receipts_per_sent": (4, 7), "clicked_per_opened": (2, 3), "unsubscribed_per_delivered": (0, 2)}
    undefined = {row["kpi"]: row["because"] for row in session.run("command/kpis_undefined")}
    assert undefined == {
        "opened_per_delivered": "OPENED is not below DELIVERED", "clicked_per_delivered": "CLICKED is not below DELIVERED",
        "total_opens_per_delivered": "OPENED is not below DELIVERED", "total_clicks_per_delivered": "CLICKED is not below DELIVERED",
        "complained_per_delivered": "COMPLAINED does not imply DELIVERED", "replied_per_delivered": "REPLIED does not imply DELIVERED"}


def test_the_funnel_has_what_was_counted_of_one_campaign_or_all_and_the_ladder(database):
    session = database.session()
    add_messages(session, {"m": "b", "n": "a"})
    apply(session, [Event("m", 9003, 0), Event("m", 200, 1)])
    rows = session.run("command/funnel", None, None)
    assert [(r["campaign_id"], r["status"], r["messages"], r["events"]) for r in rows] == [
        ("a", "0", "1", "0"), ("b", "0", "1", "0"), ("b", "200", "1", "1"), ("b", "9003", "1", "1")]
    assert {r["campaign_id"] for r in session.run("command/funnel", "a", None)} == {"a"}
    ladder = session.run("command/funnel_ladder")
    assert len(ladder) == len(STATUSES) + len(FLAGS)
    assert [r["code"] for r in ladder] == sorted((r["code"] for r in ladder), key=int)
    assert {r["is_flag"] for r in ladder if r["parent"] is not None} == {"f"}


def contradictions(session, statuses, flags=None):
    rows = Database.ladder_rows(statuses, flags)
    codes, names, parents, _, bits, _ = map(list, zip(*rows))
    used = session.one("migrate/ladder_retired")
    retired = [used[name] and used[name].strip("{}").split(",") for name in ("status", "flags", "messages")]
    return [(int(r["code"]), r["name"], int(r["rows"]), r["problem"])
            for r in session.run("migrate/ladder_check", codes, names, parents, bits, *retired)]


def test_a_ladder_that_contradicts_rows_in_use_is_refused_with_their_number(database):
    session = database.session()
    add_messages(session, {f"m{n}": "c" for n in range(3)})
    apply(session, [Event("m0", 700, 0), Event("m1", 300, 1), Event("m1", 9002, 2), Event("nobody", 440, 3)])
    assert contradictions(session, STATUSES) == []
    assert contradictions(session, STATUSES | {500: ("HELD", 300, False)}) == []
    without = {c: s for c, s in STATUSES.items() if c not in (440, 800)}
    assert contradictions(session, without) == [
        (440, "FAILED", 1, "is named by parked receipts, but not in the new ladder")]
    moved = STATUSES | {700: ("OPENED", 300, False)}
    assert contradictions(session, moved) == [(700, "OPENED", 1, "is in use, but its parent changes from 600 to 300")]
    swapped = {0: ("UNSUBSCRIBED", 600), 1: ("COMPLAINED", 600)}
    assert contradictions(session, STATUSES, swapped) == [
        (9002, "UNSUBSCRIBED", 1, "is in use, but its bit means COMPLAINED in the new ladder")]
    gone = {c: s for c, s in STATUSES.items() if c != 700} | {800: ("CLICKED", 600, False)}
    assert contradictions(session, gone) == [(700, "OPENED", 1, "is in use, but not in the new ladder")]
