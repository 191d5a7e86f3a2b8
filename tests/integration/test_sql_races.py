"""Two sessions meet, and one really waits for the other: what each then sees and does. R1 … R8 are the transcripts of a review
of the protocol; those that need no wait are in the other test_sql_ files. docs/model.md lists them all."""
import datetime
import threading

import pytest

from sql_batch import TOPIC, Event, add_messages, apply, drift, expected_funnel, stored_funnel, stored_rows, wake
from sql_fixture import SqlError, database, fill_in, sql_server, text_of, wait_for_lock  # noqa: F401
from test_sql_parking import parked, probe
from test_sql_positions import bootstrap, fence, positions
from test_sql_rules import audit_times, expected_times, stored_times


class Waiting(threading.Thread):
    """Work of one session that has to wait for another; done() gives what it returned, or its error."""

    def __init__(self, watcher, session, work, *arguments):
        super().__init__(daemon=True)
        self.work, self.arguments, self.result = work, arguments, None
        self.start()
        wait_for_lock(watcher, session)

    def run(self):
        try:
            self.result = self.work(*self.arguments)
        except SqlError as error:
            self.result = error

    def done(self):
        self.join(30)
        assert not self.is_alive()
        return self.result


def test_a_message_that_lands_while_its_batch_waits_is_parked_and_woken(database):
    """R2, R8: the batch's snapshot is as old as its wait, and all its parts share it; a trigger on the platform's INSERT
    would have found nothing to wake."""
    lane, other, platform = (database.session(name) for name in ("lane", "other", "platform"))
    add_messages(platform, {"a": "c"})
    other.do("BEGIN; UPDATE message_inbox SET prev_status = 0 WHERE message_id = 'a'")
    events = [Event("a", 600, 0), Event("m", 600, 1)]
    batch = Waiting(platform, lane, apply, lane, events)
    add_messages(platform, {"m": "c"})
    assert probe(platform) == {}
    other.do("COMMIT")
    answer = batch.done()
    assert (answer["events_counted"], answer["events_parked"]) == (1, 1)
    assert probe(platform) == {0: (True, False, 1)}
    assert wake(lane)["rows"] == 1
    assert stored_funnel(lane) == expected_funnel({"a": "c", "m": "c"}, events)


@pytest.mark.parametrize("since", (None, "-infinity", "infinity"), ids=("one stage", "in stage one", "in stage two"))
@pytest.mark.parametrize("end", ("deleted", "up to date"))
def test_a_batch_that_waits_for_a_deletion_finds_its_receipt_late(database, since, end):
    """The batch's snapshot still has the message: counted, its receipt would be missing in what the deletion has booked."""
    lane, other, platform = (database.session(name) for name in ("lane", "other", "platform"))
    lane.recent_since = since
    add_messages(platform, {"a": "c", "b": "c"})
    change = "DELETE FROM message_inbox" if end == "deleted" else "UPDATE message_inbox SET status = 600"
    other.do(f"BEGIN; {change} WHERE message_id = 'a'")
    events = [Event("a", 600, 0), Event("b", 300, 1)]
    batch = Waiting(platform, lane, apply, lane, events)
    other.do("COMMIT")
    answer = batch.done()
    if end == "deleted":
        assert (answer["events_counted"], answer["events_retired"]) == (1, 1) and drift(platform) == []
    else:
        assert (answer["events_counted"], answer["events_retired"]) == (2, 0)


@pytest.mark.parametrize("since", (None, "-infinity", "infinity"), ids=("one stage", "in stage one", "in stage two"))
def test_a_wake_that_waits_for_a_deletion_leaves_its_receipt_to_expire(database, since):
    lane, other, platform = (database.session(name) for name in ("lane", "other", "platform"))
    lane.recent_since = since
    apply(platform, [Event("a", 600, 0)])
    add_messages(platform, {"a": "c"})
    other.do("BEGIN; DELETE FROM message_inbox WHERE message_id = 'a'")
    woken = Waiting(platform, lane, wake, lane)
    other.do("COMMIT")
    assert woken.done().sqlstate == "40001"
    assert wake(lane)["rows"] == 0 and parked(lane) == 1 and drift(platform) == []
    assert lane.one("lane/expire", [Event("a", 600, 0).topic], [0], 0, 10, 3_600_000)["retired"] == "1"


RULES = ("series", "reasons", "gateways", "times")


def timed(code, second, offset, gateway=None):
    return Event("a", code, offset, at=f"2026-01-01 00:00:{second:02}+00", gateway=gateway)


# What a message has heard, and what a batch brings while it goes: only the first changes neither status nor flags.
MEETINGS = {
    "its first time of delivery": ([timed(300, 0, 0), timed(700, 9, 1)], [timed(600, 3, 2)]),
    "an earlier time": ([timed(300, 5, 0), timed(600, 9, 1)], [timed(300, 1, 2)]),
    "another gateway": ([timed(300, 5, 0, "b"), timed(600, 9, 1, "b")], [timed(600, 9, 2, "a")]),
    "a status": ([timed(300, 0, 0)], [timed(600, 3, 2)]),
    "a flag and a time": ([timed(300, 0, 0), timed(600, 9, 1)], [timed(9001, 9, 2), timed(600, 3, 3)]),
    "all of it": ([], [timed(300, 0, 1), timed(600, 3, 2), timed(700, 4, 3)]),
    "nothing new": ([timed(300, 0, 0), timed(600, 3, 1)], [timed(600, 5, 2)]),
}


def goes(how):
    """Work that deletes message a, as a person, a purge job, or a step of receiptd retire."""
    def work(session):
        if how == "retire":
            names = {name: name for name in ("message_id", "org_id", "campaign_id", "created_at")}
            text = fill_in(text_of("retire/messages"), {"part_schema": "receiptd", "part_table": "message_inbox", **names})
            session.check(session.connection.pgconn.exec_params(text.encode(), [b"(0,0)", b"(1,0)", b"{}", b"{}", b"{}", b"{}", b"1"]))
        else:
            session.do({"delete": "DELETE FROM message_inbox WHERE message_id = 'a'", "truncate": "TRUNCATE message_inbox"}[how])
    return work


def agree(session, events):
    """Funnel, times and audits are those of these receipts, whatever has gone since."""
    assert stored_funnel(session) == expected_funnel({"a": "c"}, events)
    assert stored_times(session) == expected_times({"a": "c"}, events)[0]
    assert drift(session) == [] and audit_times(session, ["c"]) == []


@pytest.mark.parametrize("since", (None, "-infinity", "infinity"), ids=("one stage", "in stage one", "in stage two"))
@pytest.mark.parametrize("how", ("delete", "truncate", "retire"))
@pytest.mark.parametrize("meeting", MEETINGS)
def test_a_receipt_that_meets_its_messages_end_is_counted_whole_or_late(database, meeting, how, since):
    lane, other, platform = (database.session(name) for name in ("lane", "other", "platform"))
    lane.rules, lane.recent_since = RULES, since
    before, events = MEETINGS[meeting]
    add_messages(platform, {"a": "c"})
    platform.do("UPDATE message_inbox SET created_at = now() - interval '1 hour'")
    apply(lane, before)
    other.do("BEGIN")
    goes(how)(other)
    batch = Waiting(platform, lane, apply, lane, events) if meeting != "nothing new" or how == "truncate" else None
    other.do("COMMIT")
    answer = batch.done() if batch is not None else apply(lane, events)
    assert (answer["events_counted"], answer["events_retired"]) == (0, len(events))
    agree(platform, before)


@pytest.mark.parametrize("since", (None, "-infinity", "infinity"), ids=("one stage", "in stage one", "in stage two"))
@pytest.mark.parametrize("how", ("delete", "truncate", "retire"))
@pytest.mark.parametrize("meeting", MEETINGS)
def test_an_end_that_meets_a_batch_books_what_that_has_counted(database, meeting, how, since):
    lane, other, platform = (database.session(name) for name in ("lane", "other", "platform"))
    lane.rules, lane.recent_since = RULES, since
    before, events = MEETINGS[meeting]
    add_messages(platform, {"a": "c"})
    platform.do("UPDATE message_inbox SET created_at = now() - interval '1 hour'")
    apply(lane, before)
    held = apply(lane, events, hold=True)
    if how == "retire" or (how == "delete" and meeting == "nothing new"):  # retire passes over what a batch holds
        goes(how)(other)
        answer = held.end()
    else:
        end = Waiting(platform, other, goes(how), other)
        answer = held.end()
        assert end.done() is None
    assert (answer["events_counted"], answer["events_retired"]) == (len(events), 0)
    agree(platform, before + events)
    assert platform.query("SELECT count(*)::int FROM message_inbox") == [(1 if how == "retire" and meeting != "nothing new" else 0,)]


NOW = datetime.datetime.now(datetime.timezone.utc).isoformat()
SENT, DELIVERED, OPENED = (Event("m", code, code, at=NOW, key=code) for code in (300, 600, 700))


@pytest.mark.parametrize("since", (None, "-infinity", "infinity"), ids=("one stage", "in stage one", "in stage two"))
@pytest.mark.parametrize("end", ("COMMIT", "ROLLBACK"))
@pytest.mark.parametrize("first, second", (
    ([SENT], [SENT]),  # of neither can the row know
    ([SENT, DELIVERED], [SENT]),  # the second waits in vain: the row has become more than it names
    ([SENT, DELIVERED], [SENT, OPENED]),  # it waits, and changes what the first has made of the row
    ([SENT, OPENED], [DELIVERED, SENT]),  # likewise in vain, with a receipt that the row does not know
    ([DELIVERED], [SENT, DELIVERED, OPENED]),
), ids=("same", "less", "more", "between", "all"))
def test_copies_that_two_instances_hold_at_once_count_once(database, since, end, first, second):
    one, two, watcher = (database.session(name) for name in ("one", "two", "watcher"))
    for session in (one, two):
        session.rules, session.recent_since = ("dedup",), since
    add_messages(watcher, {"m": "c"})
    held = apply(one, first, hold=True)
    late = Waiting(watcher, two, apply, two, second)
    held.end(end)
    late.done()
    counted = {event.key: event for event in (first if end == "COMMIT" else []) + second}
    for session in (one, two):
        apply(session, [SENT, DELIVERED, OPENED])
    counted |= {event.key: event for event in (SENT, DELIVERED, OPENED)}
    assert stored_rows(watcher) == {"m": (700, 0)} and drift(watcher) == []
    assert stored_funnel(watcher) == expected_funnel({"m": "c"}, counted.values())
    duplicates = watcher.query("SELECT sum(duplicates)::int FROM campaign_funnel")
    assert duplicates == [((len(first) if end == "COMMIT" else 0) + len(second) + 6 - 3,)]


@pytest.mark.parametrize("end", ("COMMIT", "ROLLBACK"))
def test_copies_of_less_than_the_row_has_wait_for_each_other_in_the_store(database, end):
    one, two, watcher = (database.session(name) for name in ("one", "two", "watcher"))
    one.rules = two.rules = ("dedup",)
    add_messages(watcher, {"m": "c"})
    apply(one, [OPENED])
    held = apply(one, [SENT, DELIVERED], hold=True)
    late = Waiting(watcher, two, apply, two, [DELIVERED, SENT])
    held.end(end)
    late.done()
    assert stored_funnel(watcher) == expected_funnel({"m": "c"}, [SENT, DELIVERED, OPENED]) and drift(watcher) == []


@pytest.mark.parametrize("end", ("COMMIT", "ROLLBACK"))
def test_a_wake_and_a_batch_that_hold_copies_count_them_once(database, end):
    lane, woken, watcher = (database.session(name) for name in ("lane", "woken", "watcher"))
    lane.rules = woken.rules = ("dedup",)
    apply(lane, [SENT, DELIVERED])
    add_messages(watcher, {"m": "c"})
    held = apply(lane, [SENT, DELIVERED], hold=True)
    late = Waiting(watcher, woken, wake, woken)
    held.end(end)
    assert late.done()["rows"] == 2
    assert stored_funnel(watcher) == expected_funnel({"m": "c"}, [SENT, DELIVERED]) and drift(watcher) == []


def test_a_message_that_lands_while_the_fence_waits_is_known(database):
    """The fence is a statement of its own: the snapshot of what follows is taken after the wait for its rows."""
    lane, rival, platform = (database.session(name) for name in ("lane", "rival", "platform"))
    bootstrap(platform)
    rival.do("BEGIN")
    fence(rival, 0, [(0, 0, 1)])
    batch = Waiting(platform, lane, apply, lane, [Event("m", 600, 0)], 0, "park", [(0, 0, 1)])
    add_messages(platform, {"m": "c"})
    rival.do("ROLLBACK")
    answer = batch.done()
    assert (answer["events_counted"], answer["events_parked"]) == (1, 0)


def test_of_two_owners_whose_fences_meet_one_is_counted(database):
    owner, zombie, watcher = (database.session(name) for name in ("owner", "zombie", "watcher"))
    bootstrap(watcher)
    add_messages(watcher, {"m": "c"})
    events = [Event("m", 600, 0), Event("m", 700, 1)]
    held = apply(owner, events, moves=[(0, 0, 2)], hold=True)
    late = Waiting(watcher, zombie, apply, zombie, events, 0, "park", [(0, 0, 2)])
    held.end()
    assert late.done().sqlstate == "RD001"
    assert stored_funnel(watcher) == expected_funnel({"m": "c"}, events)


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_a_waker_that_waited_for_another_applies_what_is_left(database, end):
    """R3: both have seen the parked row; the second applies what its own DELETE returns, and that is nothing."""
    one, two, watcher = (database.session(name) for name in ("one", "two", "watcher"))
    events = [Event("m", 600, 0), Event("m", 600, 1)]
    apply(one, events)
    add_messages(one, {"m": "c"})
    held = wake(one, hold=True)
    second = Waiting(watcher, two, wake, two)
    woken = held.end(end)
    assert (woken and woken["rows"]) == (2 if end == "COMMIT" else None)
    assert second.done()["rows"] == (0 if end == "COMMIT" else 2)
    assert stored_funnel(watcher) == expected_funnel({"m": "c"}, events)
    assert parked(watcher) == 0


def test_a_receipt_expires_or_is_woken_never_both(database):
    one, two, watcher = (database.session(name) for name in ("one", "two", "watcher"))
    apply(one, [Event("m", 600, 0)])
    one.do("UPDATE parked_event SET parked_at = now() - interval '1 hour'")
    one.do("BEGIN")
    assert one.one("lane/expire", [TOPIC], [0], 0, 10, 60_000)["rows"] == "1"
    add_messages(watcher, {"m": "c"})
    late = Waiting(watcher, two, wake, two)
    one.do("COMMIT")
    assert late.done()["rows"] == 0
    assert watcher.query("SELECT reason FROM dead_letter") == [("aged_out",)]
    assert stored_rows(watcher) == {"m": (0, 0)} and drift(watcher) == []


@pytest.mark.parametrize("end", ["COMMIT", "ROLLBACK"])
def test_two_that_move_a_receipt_to_its_alias_move_it_once(database, end):
    one, two, watcher = (database.session(name) for name in ("one", "two", "watcher"))
    bootstrap(watcher, lanes=2)
    events = [Event("g1", 600, 0, gateway="acme"), Event("g1", 700, 1, gateway="acme")]
    apply(one, events)
    watcher.do("INSERT INTO message_alias VALUES ('acme', 'g1', 'ours')")
    add_messages(watcher, {"ours": "c"})
    one.do("BEGIN")
    assert one.one("lane/address", [TOPIC], [0], 0, 10)["rows"] == "2"
    second = Waiting(watcher, two, two.one, "lane/address", [TOPIC], [0], 0, 10)
    one.do(end)
    # Of the same lane, the second may see them again, under the message id: it has nothing to do to them.
    assert second.done()["rows"] in (("0", "2") if end == "COMMIT" else ("2",))
    assert watcher.query("SELECT DISTINCT message_id, gateway_id FROM parked_event") == [("ours", "g1")]
    assert sum(wake(one, lane)["rows"] for lane in (0, 1)) == 2
    assert stored_funnel(watcher) == expected_funnel({"ours": "c"}, [Event("ours", 600, 0), Event("ours", 700, 1)])


def test_a_receipt_that_moves_while_its_new_lane_wakes_is_woken_by_the_next_wake(database):
    """The lanes share no lock: whoever comes late finds the receipt, and nobody finds it twice."""
    old, new, platform = (database.session(name) for name in ("old", "new", "platform"))
    bootstrap(platform, lanes=64)
    lane = platform.query("SELECT (hashtextextended('ours' COLLATE \"C\", 0) & 63)::int")[0][0]
    apply(old, [Event("g1", 600, 0, gateway="acme")], lane=(lane + 1) % 64)
    platform.do("INSERT INTO message_alias VALUES ('acme', 'g1', 'ours')")
    add_messages(platform, {"ours": "c"})
    old.do("BEGIN")
    assert old.one("lane/address", [TOPIC], [0], (lane + 1) % 64, 10)["rows"] == "1"
    assert wake(new, lane)["rows"] == 0
    old.do("COMMIT")
    assert wake(new, lane)["rows"] == 1 and wake(new, lane)["rows"] == 0 and wake(new, (lane + 1) % 64)["rows"] == 0
    assert stored_funnel(platform) == expected_funnel({"ours": "c"}, [Event("ours", 600, 0)])


def test_a_receipt_moves_or_expires_never_both(database):
    one, two, watcher = (database.session(name) for name in ("one", "two", "watcher"))
    bootstrap(watcher, lanes=2)
    apply(one, [Event("g1", 600, 0, gateway="acme")])
    one.do("UPDATE parked_event SET parked_at = now() - interval '1 hour'")
    one.do("BEGIN")
    assert one.one("lane/expire", [TOPIC], [0], 0, 10, 60_000)["rows"] == "1"
    watcher.do("INSERT INTO message_alias VALUES ('acme', 'g1', 'ours')")
    late = Waiting(watcher, two, two.one, "lane/address", [TOPIC], [0], 0, 10)
    one.do("COMMIT")
    assert late.done()["rows"] == "0"
    assert watcher.query("SELECT reason FROM dead_letter") == [("aged_out",)]


def test_a_batch_of_the_old_layout_that_waits_for_the_new_one_is_fenced(database):
    """R4: from one lane to two while a batch is on its way, the rows begin at the same offset again."""
    old, operator, new = (database.session(name) for name in ("old", "operator", "new"))
    bootstrap(operator, lanes=1, starts=[0])
    add_messages(operator, {"m0": "c", "m1": "c"})
    events = [Event("m0", 600, 0), Event("m1", 600, 1)]
    operator.do("BEGIN")
    operator.one("control/synchronous")
    operator.do("UPDATE consumer_topic SET lanes = 2, generation = generation + 1")
    operator.do("UPDATE consumer_progress SET generation = 2")
    operator.do("INSERT INTO consumer_progress (topic, partition, lane, next_offset, generation)"
                " SELECT topic, partition, 1, next_offset, 2 FROM consumer_progress")
    late = Waiting(new, old, apply, old, events, 0, "park", [(0, 0, 2)])
    operator.do("COMMIT")
    error = late.done()
    assert error.sqlstate == "RD001" and "found 0 of generation 2" in error.text
    for lane in (0, 1):
        apply(new, [events[lane]], lane, moves=[(0, 0, 2)], generation=2)
    assert stored_funnel(new) == expected_funnel({"m0": "c", "m1": "c"}, events)


def test_lanes_that_lock_the_same_positions_in_one_order_wait_and_do_not_deadlock(database):
    one, two, watcher = (database.session(name) for name in ("one", "two", "watcher"))
    bootstrap(watcher)
    one.do("BEGIN")
    fence(one, 0, [(0, 0, 5)])
    late = Waiting(watcher, two, fence, two, 0, [(0, 0, 7), (1, 100, 107)])
    fence(one, 0, [(1, 100, 105)])
    one.do("COMMIT")
    assert late.done().sqlstate == "RD001"
    assert positions(watcher, 0)[:2] == [("105", "1"), ("5", "1")]
