"""recent: receipts as they come, for messages of the last hours (recency.py), into an inbox of a million rows and into larger ones.

Families are measured one after the other, the cases of each in turns, and each case once from Kafka and once with the bare statement:
  random      ids in no order, flat, and with the recent set that `receiptd maintain` makes
  mapped      the same in a table of the platform's
  ordered     ids that begin with the time, flat
  partitions  these in a partition a day, and the largest number also in 30 and 90 days of them, the latter with the recent set, too
  default     the same in the partitions that receiptd makes for a retention of 90 days, of 3 days each
  weeks       the same in a partition a week
  days        random ids in a table of the platform's with 30 partitions by created_at, with their recent set, beside the first of
              `mapped`
An inbox too large to be copied is measured with its recent set alone, and those beside it are not copied either. Shares are of the first case of the family, pair by pair.
"""

import itertools
import json
import os
import time

import recency
from lab import OUT, say
from meter import summary
from recency import Inbox
from runs import run_limit, run_receiptd
from support.services import Database

EVENTS = 200_000
ROWS = "1000000 10000000"
RECENT_ROWS = 1_000_000
FAMILIES = {"random": {}, "mapped": {"mapped": True}, "ordered": {"ordered": True}, "partitions": {"partitions": True},
            "default": {"partitions": True, "span_days": 3},
            "weeks": {"partitions": True, "span_days": 7},
            "days": {"mapped": True}}
SPREAD_DAYS = (30, 90)
MOST_WITHOUT_SET = 60  # ranges of ids, of which `receiptd maintain` makes no recent set
FIGURES = ("events_per_second", "server_us_per_event", "wal_bytes_per_event")


class Case:
    """An inbox and its runs. Each has a copy, unless one of them is too large for that: then each run has the next status for the same messages, and the
    first only warms the inbox up."""

    def __init__(self, lab, inbox, recent_set, copied=True):
        self.lab, self.inbox, self.recent_set, self.copied, self.runs, self.bare = lab, inbox, recent_set, copied, [], []
        self.streams = itertools.cycle(inbox.streams[1:]) if self.copied else iter(inbox.streams)
        if not self.copied:
            inbox.warm(inbox.database)
            self._on(inbox.database, False)

    def run(self, bare):
        made = self._on_copy(bare) if self.copied else self._on(self.inbox.database, bare)
        (self.bare if bare else self.runs).append(made)
        say(f"  {self}{', bare statement' if bare else ''}: {made['events_per_second']:,.0f} events/s, {made['server_us_per_event']:.1f} µs server")

    def _on_copy(self, bare):
        name = f"b_{os.getpid()}_{time.monotonic_ns()}"
        with self.lab.connect() as connection:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE "{self.inbox.database.name}" STRATEGY file_copy')
        database = Database(self.lab.services, name, made=True)
        try:
            self.inbox.warm(database)
            return self._on(database, bare)
        finally:
            database.drop()

    def _on(self, database, bare):
        stream = next(self.streams)
        database.execute("CHECKPOINT")
        if not bare:
            return run_receiptd(self.lab, stream, self.lab.topic(stream), settings=self.inbox.settings, large=database)
        recent = database.query('''SELECT COALESCE(since::text, first_id), CASE WHEN since IS NULL THEN 'message_id' ELSE 'created_at' END FROM receiptd.inbox_recent''')
        return run_limit(self.lab, stream, large=database, recent=recent[0] if recent else None)

    def __str__(self):
        return f"{self.inbox}{', recent set' if self.recent_set else ''}"


def make_days(lab, events, rows):
    """The flat table of the first number, then the last number in days."""
    copied = rows[-1] <= recency.COPIED_ROWS
    cases = [Case(lab, Inbox(lab, rows[0], events, mapped=True).make(), False, copied)]
    inbox = Inbox(lab, rows[-1], events, by_days=True, mapped=True, days=SPREAD_DAYS[0]).make()
    with_set = inbox.with_set(min(RECENT_ROWS, rows[-1] // 15))
    if copied:
        return [*cases, Case(lab, inbox, False), Case(lab, with_set, True)]
    return [*cases, Case(lab, with_set, True, False)]


def make_cases(lab, events, rows, arguments):
    """The first is what the others are compared with."""
    cases, copied = [], rows[-1] <= recency.COPIED_ROWS
    for number in rows:
        inbox = Inbox(lab, number, events, **arguments).make()
        few = arguments.get("partitions") and (copied or inbox.days / inbox.span_days <= MOST_WITHOUT_SET)
        with_set = number > rows[0] and not arguments.get("ordered") and not few
        if copied or not with_set:
            cases.append(Case(lab, inbox, False, copied))
        if with_set:
            cases.append(Case(lab, inbox.with_set(min(RECENT_ROWS, number // 3)), True, copied))
    if "partitions" in arguments and copied:
        for days in SPREAD_DAYS:
            cases.append(Case(lab, Inbox(lab, rows[-1], events, days=days, **arguments).make(), False))
            if days / cases[-1].inbox.span_days > MOST_WITHOUT_SET:
                cases.append(Case(lab, cases[-1].inbox.with_set(min(RECENT_ROWS, rows[-1] // 8)), True))
    return cases


def measure(cases, repeat):
    for number in range(repeat):
        for case in cases if number % 2 == 0 else reversed(cases):
            for bare in (False, True) if number % 2 == 0 else (True, False):
                case.run(bare)


def result(case, first, family):
    def share(figure, ones, others):
        return summary([one[figure] / other[figure] for one, other in zip(ones, others)])

    rate, cpu = "events_per_second", "server_us_per_event"
    found = {"family": family, "rows": case.inbox.rows, "days": case.inbox.days, "by_days": case.inbox.by_days, "recent_set": case.recent_set,
             **{name: summary([one[name] for one in case.runs]) for name in FIGURES},
             "share": share(rate, case.runs, first.runs), "server_share": share(cpu, first.runs, case.runs),
             "of_bare": share(rate, case.runs, case.bare), "bare_share": share(rate, case.bare, first.bare)}
    say(f"  {case}: of the first {found['share']['median']:.2f} ({found['share']['min']:.2f} … {found['share']['max']:.2f}), by the server's CPU "
        f"{found['server_share']['median']:.2f}, of the bare statement {found['of_bare']['median']:.2f}, which has {found['bare_share']['median']:.2f}")
    return found


def measured_before(options, names):
    """Cases of families that this run leaves out: a long one need not be one run."""
    path = OUT / ("quick-recent.json" if options.quick else "recent.json")
    cases = json.loads(path.read_text())["cases"] if path.exists() else []
    return [case for case in cases if case.get("family") not in (None, *names)]


def part_recent(lab, options):
    rows = [int(text) for text in os.environ.get("RECEIPTD_BENCH_RECENT", ROWS).split()]
    names = os.environ.get("RECEIPTD_BENCH_RECENT_FAMILIES", " ".join(FAMILIES)).split()
    events, found = min(EVENTS, options.events), []
    recency.check_disk(rows)
    most = (len(recency.STATUSES) - 1) // 2
    if rows[-1] > recency.COPIED_ROWS and options.repeat > most:
        raise ValueError(f"--repeat {options.repeat}: an inbox too large to be copied has statuses for {most} runs: use --repeat {most}, or fewer messages (RECEIPTD_BENCH_RECENT)")
    with lab.buffers() as buffers_mib, lab.setting(full_page_writes="off"):  # as between two checkpoints, long after the first
        for name in names:
            cases = make_days(lab, events, rows) if name == "days" else make_cases(lab, events, rows, FAMILIES[name])
            measure(cases, options.repeat)
            found += [result(case, cases[0], name) for case in cases]
            for database in {case.inbox.database for case in cases}:
                database.drop()
    found += measured_before(options, names)
    found.sort(key=lambda case: list(FAMILIES).index(case["family"]))
    return {"events": events, "recent_rows": RECENT_ROWS, "half_life_hours": recency.HALF_LIFE_HOURS, "per_day": recency.PER_DAY,
            "old": recency.OLD, "buffers_mib": buffers_mib, "cases": found}
