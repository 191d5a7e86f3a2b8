"""Windows in SQL: openings and closings against zoneinfo, and what a claim does with them."""

import collections
import datetime
import itertools
import json
import random
import zoneinfo

import pytest

from sql_fixture import SqlError, database, sql_server  # noqa: F401
from test_sql_actions import claim_all, finish, pipeline, step, store  # noqa: F401

UTC = datetime.timezone.utc
DAY_S, HOUR_S = 86_400, 3600
SUNDAY, WEEKDAYS = [7], [1, 2, 3, 4, 5]
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")

# ---- the oracle: what a person reads on a clock and a calendar ----


def hours(text):
    """A window as text: "22:00-06:00", the days behind it. Seconds of the day, and ISO numbers of the days or None."""
    times, *days = text.split()
    began, ended = (sum(int(part) * unit for part, unit in zip(time.split(":"), (3600, 60, 1))) for time in times.split("-"))
    return began, ended, [DAYS.index(day) + 1 for day in days] or None


def is_open(at, zone, began, ended, days):
    wall = at.astimezone(zone)
    second = wall.hour * 3600 + wall.minute * 60 + wall.second + wall.microsecond / 1e6
    day = wall.date().isoweekday()
    if began < ended:
        return began <= second < ended and (days is None or day in days)
    yesterday = (wall.date() - datetime.timedelta(days=1)).isoweekday()
    return (second >= began and (days is None or day in days)) or (second < ended and (days is None or yesterday in days))


class Minutes:
    """Whether a window is open, minute by minute: nothing turns within a minute."""

    def __init__(self, first, count, zone, window):
        self.first, zone = first, zoneinfo.ZoneInfo(zone)
        self.open = [is_open(first + datetime.timedelta(minutes=n), zone, *window) for n in range(count)]
        self.next = {True: [None] * count, False: [None] * count}
        for wanted, place in self.next.items():
            found = None
            for n in reversed(range(count)):
                found = n if self.open[n] == wanted else found
                place[n] = found

    def turns(self, at, wanted):
        """The first time from `at` on at which it is open, or not; None: beyond what is known."""
        minute, rest = divmod(at - self.first, datetime.timedelta(minutes=1))
        if self.open[minute] == wanted:
            return at
        found = self.next[wanted][minute]
        return found if found is None else self.first + datetime.timedelta(minutes=found)


def turns(session, times, zone, window, opens):
    return [at for at, in session.query("SELECT action_turns(t, %s, %s, %s, %s, %s) FROM unnest(%s::timestamptz[]) WITH ORDINALITY AS u (t, n) ORDER BY n",
                                        (zone, *window, opens, times))]


def check(session, times, zone, window, minutes):
    for opens in (True, False):
        for at, got in zip(times, turns(session, times, zone, window, opens)):
            due = minutes.turns(at, opens)
            if opens or (due is not None and due - at <= datetime.timedelta(days=1)):
                assert got == due, (zone, window, at, opens, got, due)
            else:  # an end is looked for over a day
                assert got >= at + datetime.timedelta(days=1) and (due is None or got <= due), (zone, window, at, got, due)


# ---- nights in which clocks change ----

NIGHTS = [("Europe/Berlin", "2026-03-29 01:00"), ("Europe/Berlin", "2026-10-25 01:00"), ("America/New_York", "2026-03-08 07:00"),
          ("America/New_York", "2026-11-01 06:00"), ("Australia/Lord_Howe", "2026-04-04 15:00"), ("Australia/Lord_Howe", "2026-10-03 15:30"),
          ("Africa/Cairo", "2026-04-23 22:00"), ("America/Havana", "2026-11-01 05:00")]  # these two at midnight
WINDOWS = ["09:00-20:00", "22:00-06:00", "02:00-02:30", "02:15-03:15", "01:30-02:10", "02:10-01:50", "00:00-24:00 sun", "23:30-00:15",
           "02:30-04:00 sat sun", "22:00-02:20 sat", "00:00-24:00 mon tue wed thu fri", "00:00-00:30"]


@pytest.mark.parametrize("zone, change", NIGHTS)
def test_openings_and_closings_are_exact_in_every_minute_of_a_night_in_which_the_clock_changes(database, zone, change):
    session = database.session()
    changes = datetime.datetime.fromisoformat(change).replace(tzinfo=UTC)
    local = zoneinfo.ZoneInfo(zone)
    assert changes.astimezone(local).utcoffset() != (changes - datetime.timedelta(seconds=1)).astimezone(local).utcoffset()
    first = changes - datetime.timedelta(hours=5)
    times = [first + datetime.timedelta(minutes=n) for n in range(10 * 60)] + [changes + datetime.timedelta(microseconds=n) for n in (-1, 1)]
    for window in map(hours, WINDOWS):
        check(session, times, zone, window, Minutes(first, 17 * 24 * 60, zone, window))


def test_openings_and_closings_are_exact_at_random_times_in_random_zones(database):
    session, draw = database.session(), random.Random(40)
    zones = ["Europe/Berlin", "Asia/Kolkata", "America/St_Johns", "Pacific/Auckland", "Pacific/Chatham", "America/Santiago", "Asia/Beirut",
             "Africa/Casablanca", "UTC", "America/Los_Angeles", "Pacific/Kiritimati"]
    for _ in range(60):
        zone, began = draw.choice(zones), draw.randrange(0, 1440) * 60
        ended = draw.choice([minute for minute in (draw.randrange(1, 1441) * 60 for _ in range(9)) if minute != began])
        days = draw.choice([None, None, sorted(draw.sample(range(1, 8), draw.randint(1, 6)))])
        first = datetime.datetime(draw.randint(2020, 2032), draw.randint(1, 12), 1, tzinfo=UTC)
        times = [first + datetime.timedelta(microseconds=draw.randrange(27 * DAY_S * 1_000_000)) for _ in range(40)]
        check(session, times, zone, (began, ended, days), Minutes(first, 45 * 24 * 60, zone, (began, ended, days)))


@pytest.mark.parametrize("zone, window, at, opens", [
    ("Europe/Berlin", "02:30-05:00", "2026-03-29 00:30", "2026-03-29 01:00"),  # there is no 02:30: when the clock has jumped to 03:00
    ("Europe/Berlin", "02:10-02:50", "2026-03-29 00:30", "2026-03-30 00:10"),  # lies in the hour that is left out: the next night
    ("Europe/Berlin", "02:30-02:40", "2026-10-25 00:45", "2026-10-25 01:30"),  # comes twice: it opens again
    ("Europe/Berlin", "22:00-06:00 fri", "2026-11-28 04:59", "2026-11-28 04:59"),  # Saturday morning belongs to Friday's window
    ("Europe/Berlin", "22:00-06:00 fri", "2026-11-28 05:00", "2026-12-04 21:00"),
    ("Asia/Tokyo", "09:00-20:00 mon tue wed thu fri", "2026-11-27 11:00", "2026-11-30 00:00"),  # over a weekend
    ("Australia/Lord_Howe", "02:15-02:45", "2026-10-03 15:00", "2026-10-03 15:30"),  # half an hour is left out, 02:00 to 02:30
])
def test_a_window_opens_when_its_wall_clock_says_so(database, zone, window, at, opens):
    at, opens = (datetime.datetime.fromisoformat(text).replace(tzinfo=UTC) for text in (at, opens))
    assert turns(database.session(), [at], zone, hours(window), True) == [opens]


# ---- whose clock ----


def test_the_zone_is_the_runs_own_then_its_messages_then_the_default(database):
    session = database.session()
    session.do("INSERT INTO message_inbox (message_id, org_id, campaign_id, status) VALUES ('m', 'Asia/Tokyo', 'c', 0)")

    def zone(data, message=None, field="org_id", fallback="Europe/Berlin"):
        return session.query("SELECT action_zone(%s::jsonb, %s, %s, %s)", (json.dumps(data) if data is not None else None, message, field, fallback))[0][0]

    assert zone(None) == zone({}) == zone({"org_id": None}) == zone({"org_id": "America/Lima"}, field=None) == "Europe/Berlin"
    assert zone({"org_id": "America/Lima"}, "m") == "America/Lima"
    assert zone({"org_id": ""}, "m") == zone(None, "m") == "Asia/Tokyo" and zone(None, "nobody") == "Europe/Berlin"
    # An offset is no name: POSIX counts it the other way round.
    for other in ("Mars/Base", "+02:00", "-5", "UTC+2", "Europe/Berlin2", "<x>3", "a b", "\t", "7", {"a": 1}, [], True):
        assert zone({"org_id": other}) == "Europe/Berlin", other
    for known in ("UTC", "America/Argentina/ComodRivadavia", "America/Port-au-Prince", "Etc/GMT+5", "GB-Eire"):
        assert zone({"org_id": known}) == known
    names = {name for name, in session.query("SELECT name FROM pg_timezone_names WHERE name LIKE '%/%' AND name !~ '[0-9]'")}
    assert names and all(zone({"org_id": name}) == name for name in names)


@pytest.mark.parametrize("window, hour, expected", [
    ("09:00-20:00", "18", "18:00-20:00"), ("09:00-20:00", "9", "09:00-20:00"), ("09:00-20:00", "20", "09:00-20:00"),
    ("09:30-20:00", "9", "09:30-20:00"), ("09:00-20:00", None, "09:00-20:00"), ("09:00-20:00", "noon", "09:00-20:00"),
    ("09:00-20:00", "-3", "09:00-20:00"), ("09:00-20:00", "24", "09:00-20:00"), ("00:00-24:00", "0", "00:00-24:00"),
    ("22:00-06:00 fri", "23", "23:00-06:00 fri"), ("22:00-06:00 fri sun", "2", "02:00-06:00 sat mon"), ("22:00-06:00", "2", "02:00-06:00"),
    ("22:00-06:00 fri", "12", "22:00-06:00 fri"),
])
def test_a_window_begins_at_the_best_hour_if_that_lies_within(database, window, hour, expected):
    began, ended, days = hours(window)
    (got,) = database.session().query("SELECT * FROM action_best_hour(%s, %s, %s, %s)", (began, ended, days, hour))
    best, best_days = got
    assert (best, ended, best_days) == hours(expected)


# ---- a claim ----


def around_now(before, after, **fields):
    """Members of a step whose window has been open for so many seconds, and will be for so many. In UTC."""
    now = datetime.datetime.now(UTC)
    second = now.hour * 3600 + now.minute * 60 + now.second
    return {"from_second": (second - before) % DAY_S, "till_second": (second + after) % DAY_S or DAY_S} | fields


def people(session, count, name="p", stage=None, **fields):
    return int(session.one("actions/import", name, json.dumps([{"org_id": "o", "subject": f"s{n}"} | fields for n in range(count)]), stage, None)["rows"])


def due(session):
    return [id for id, in session.query("SELECT id FROM action WHERE status = 'pending' ORDER BY id")]


def windows(session, ids, at, zone="UTC", field=None):
    (row,) = session.query("SELECT * FROM actions_windows(%s::int8[], %s, %s, %s)", (ids, at, zone, field))
    return row


def test_what_waits_for_an_opening_is_spread_over_a_time_and_what_comes_later_is_not(store):
    count, smooth = 2000, 1800
    session = store(pipeline("p", step(0, "webhook", target="x", from_second=9 * HOUR_S, till_second=20 * HOUR_S, smooth_ms=smooth * 1000)))
    people(session, count, data={"zone": "Europe/Berlin"})
    night = datetime.datetime(2031, 11, 28, 3, tzinfo=UTC)
    opening = datetime.datetime(2031, 11, 28, 8, tzinfo=UTC)
    assert windows(session, due(session), night, "UTC", "zone") == ([], [], [])
    waiting = dict(session.query("SELECT id, perform_at FROM action WHERE status = 'pending' AND held_by = 'window' AND created_at = %s", (opening,)))
    offsets = sorted((at - opening).total_seconds() for at in waiting.values())
    assert len(offsets) == count and 0 <= offsets[0] and offsets[-1] < smooth
    sizes = collections.Counter(int(offset * 10 // smooth) for offset in offsets)
    assert all(0.6 * count / 10 < sizes[tenth] < 1.4 * count / 10 for tenth in range(10)), sizes
    assert [why for why, in session.query("SELECT DISTINCT because FROM action_deferred")] == ["waits for its window to open"]
    # The next night gives each the same place, and by day nobody is moved.
    ids = list(waiting)
    windows(session, ids, night + datetime.timedelta(days=1), "UTC", "zone")
    moved = dict(session.query("SELECT id, perform_at FROM action"))
    assert moved == {id: at + datetime.timedelta(days=1) for id, at in waiting.items()}
    noon = datetime.datetime(2031, 11, 30, 12, tzinfo=UTC)
    allowed, windowed, closes = windows(session, ids, noon, "UTC", "zone")
    assert allowed == ids and sorted(windowed) == sorted(ids) and set(closes) == {datetime.datetime(2031, 11, 30, 18, 59, 59, tzinfo=UTC)}
    assert dict(session.query("SELECT id, perform_at FROM action")) == moved


def test_a_window_that_is_shorter_than_its_smooth_in_one_night_forgets_nobody(store):
    """02:00 to 04:00, of which one hour is left out when clocks go forward."""
    session = store(pipeline("p", step(0, "webhook", target="x", from_second=2 * HOUR_S, till_second=4 * HOUR_S, smooth_ms=2 * HOUR_S * 1000)))
    people(session, 500)
    windows(session, due(session), datetime.datetime(2026, 3, 28, 20, tzinfo=UTC), "Europe/Berlin")
    first, last = session.query("SELECT min(perform_at), max(perform_at) FROM action")[0]
    assert datetime.datetime(2026, 3, 29, 1, tzinfo=UTC) <= first < last < datetime.datetime(2026, 3, 29, 2, tzinfo=UTC)


def test_everybody_has_an_hour_and_a_zone_of_their_own(store):
    session = store(pipeline("p", step(0, "webhook", target="x", from_second=9 * HOUR_S, till_second=20 * HOUR_S, hour_field="best")))
    for zone, best in itertools.product(("Asia/Tokyo", "America/New_York"), ("8", "10", "19")):
        people(session, 1, data={"zone": zone, "best": best})
    windows(session, due(session), datetime.datetime(2026, 11, 28, 21, tzinfo=UTC), "UTC", "zone")
    at = dict(((zone, best), at) for zone, best, at in session.query(
        "SELECT r.data ->> 'zone', r.data ->> 'best', a.perform_at FROM action a JOIN run r ON r.id = a.run_id WHERE a.held_by = 'window'"))
    for (zone, best), got in at.items():
        assert got.astimezone(zoneinfo.ZoneInfo(zone)).hour == {"8": 9, "10": 10, "19": 19}[best], (zone, best, got)
        assert datetime.timedelta(0) < got - datetime.datetime(2026, 11, 28, 21, tzinfo=UTC) <= datetime.timedelta(days=1)
    # 21:00 UTC is 16:00 in New York: who has 8 or 10 there is open now.
    assert sorted(at) == [("America/New_York", "19"), ("Asia/Tokyo", "10"), ("Asia/Tokyo", "19"), ("Asia/Tokyo", "8")]


def test_a_claim_takes_what_is_open_says_for_how_long_and_postpones_the_rest(store):
    session = store(pipeline("open", step(0, "webhook", target="x", **around_now(3600, 600))),
                    pipeline("shut", step(0, "webhook", target="x", **around_now(7200, -3600))),
                    pipeline("free", step(0, "webhook", target="x")))
    for name in ("open", "shut", "free"):
        people(session, 20, name, org_id=name)
    rows = session.run("actions/claim", list(range(16)), "me", 1000, 1000, 60_000, [], [], [], 0, 1, 0, 0, 1, 0, "UTC", None)
    taken = collections.defaultdict(list)
    for row in rows:
        taken[json.loads(row["body"])["pipeline"]].append(row["open_ms"])
    assert {name: len(them) for name, them in taken.items()} == {"open": 20, "free": 20} and set(taken["free"]) == {None}
    assert all(500_000 < int(open_ms) <= 599_000 for open_ms in taken["open"])  # a second is left to what is on its way
    assert {row["went_on"] for row in rows} == {"20"}
    assert session.query("SELECT p.name, a.status, a.held_by FROM action a JOIN pipeline p ON p.id = a.pipeline_id WHERE a.held_by IS NOT NULL"
                         " GROUP BY 1, 2, 3") == [("shut", "pending", "window")]
    assert claim_all(session) == []


@pytest.mark.parametrize("how", ["retry", "lease", "pause"])
def test_another_attempt_waits_for_the_window_too_and_is_not_brought_forward(store, how):
    session = store(pipeline("p", step(0, "webhook", target="x", **around_now(3600, 3600))))
    people(session, 1)
    claimed = claim_all(session, lease_ms=0 if how == "lease" else 60_000)
    assert len(claimed) == 1
    if how != "lease":
        assert finish(session, claimed, "retry") == (1, 0)
    if how == "pause":
        session.do("INSERT INTO org_limit (org_id, paused) VALUES ('o', true)")
        assert claim_all(session) == [] and session.query("SELECT status FROM action") == [("held",)]
        session.do("DELETE FROM org_limit")
    session.do("UPDATE pipeline_step SET from_second = %(from_second)s, till_second = %(till_second)s WHERE op = 'webhook'", around_now(7200, -3600))
    created = session.query("SELECT created_at FROM action")
    assert claim_all(session) == []
    assert session.query("SELECT status, held_by, attempt, perform_at > now() + interval '20 hours' FROM action") == [("pending", "window", 1, True)]
    assert session.query("SELECT created_at FROM action") == created  # its age goes on
    session.run("actions/tidy", HOUR_S * 1000, 100, 0, 1000)
    assert session.query("SELECT perform_at > now() + interval '20 hours' FROM action") == [(True,)]
    session.do("UPDATE pipeline_step SET from_second = NULL")
    session.do("UPDATE action SET perform_at = now()")
    assert len(claim_all(session)) == 1
    assert session.query("SELECT status, held_by, attempt FROM action") == [("running", None, 2)]


# ---- enter at a stage ----


def test_a_pipeline_without_stages_has_none_to_enter_at(store):
    session = store(pipeline("p", step(0, "webhook", target="x")))
    with pytest.raises(SqlError) as refused:
        people(session, 1, stage="first")
    assert refused.value.sqlstate == "22023" and refused.value.text == "pipeline p has no stage first: it has none"
    assert people(session, 1, stage=None) == 1
