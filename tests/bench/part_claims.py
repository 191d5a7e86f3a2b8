"""claims: a claim with a window, caps, suppression and a look-up, beside one with none of them, in turns. With RECEIPTD_BENCH_BESIDE
(another build's program) also beside that build's, with none."""

import os
import statistics
import time
from contextlib import ExitStack, contextmanager

from lab import say
from meter import summary
from part_actions import ADD, BACK, LANES

DUE = 64
TURNS = 200
ENDPOINT = {"name": "nobody", "url": "http://127.0.0.1:9/"}
NONE = {"pipelines": [{"name": "call", "on": "api", "webhook": "nobody"}]}
ALL = {"inbox": {"columns": {"customer_id": "customer_id"}}, "suppression": {"subject": "customer_id"},
       "actions": {"open_runs": 1_000_000, "subject_caps": [{"max": 100, "per": "day"}], "zone": "Europe/Berlin", "zone_field": "time_zone"},
       "pipelines": [{"name": "call", "on": "api", "subject": "customer_id", "webhook": "nobody", "unless": "suppressed", "between": "00:00-23:59",
                      "once_per": {"push": "spring", "by": ["subject"]}, "lookup": {"as": "row", "sql": "SELECT 1 AS one"}}]}
PEOPLE = "INSERT INTO receiptd.suppression (key, org_id, person, class, since) SELECT receiptd.suppression_key('o', 'p' || g), 'o', 'p' || g, 'X', now() FROM generate_series(1, 100000) g"
CALL = "SELECT count(*)::int FROM receiptd.actions_claim(%s, 'bench', 128, 64, 60000, '{}', '{}', '{}', 0, 1, 0, 0, 1, 0"


@contextmanager
def furnished(lab, settings, program):
    """A database whose pipelines a daemon has stored, with as many due actions as a claim takes."""
    before = os.environ.get("RECEIPTD_BINARY")
    if program:
        os.environ["RECEIPTD_BINARY"] = program
    topic, database = lab.services.create_topic(1), lab.services.create_database()
    try:
        more = {"allow_private": True, "endpoints": [ENDPOINT]} | settings.get("actions", {})
        receiptd = lab.receiptd(database, topic, log={"stats_interval": "0s"}, **settings | {"actions": more})
        receiptd.migrate()
        process = receiptd.start()
        process.wait_for_log("pipelines are in effect", 60)
        process.stop()
        database.execute("SET search_path = receiptd")
        if "suppression" in settings:
            database.execute(PEOPLE)
        database.execute(ADD, "call", "due-", "due-", DUE, 0.0, 0.0)
        database.execute("UPDATE receiptd.action_lane SET owner = 'bench', lease_until = now() + interval '1 day'")
        database.execute("VACUUM ANALYZE")
        yield database
    finally:
        os.environ.pop("RECEIPTD_BINARY", None)
        if before:
            os.environ["RECEIPTD_BINARY"] = before
        database.drop()
        topic.drop()


def in_turns(cases):
    """The median time of a claim in ms, by case."""
    calls = {name: CALL + (", 'UTC', 'time_zone')" if database.value("SELECT pronargs FROM pg_proc WHERE proname = 'actions_claim'") > 14 else ")")
             for name, database in cases.items()}
    times = {name: [] for name in cases}
    for turn in range(TURNS):
        for name in cases if turn % 2 == 0 else reversed(cases):
            begun = time.perf_counter()
            rows = cases[name].query(calls[name], LANES)
            times[name].append((time.perf_counter() - begun) * 1000)
            assert rows == [(DUE,)]
            cases[name].execute(BACK)
    return {name: statistics.median(times[name][TURNS // 4:]) for name in cases}


def part_claims(lab, options):
    beside = os.environ.get("RECEIPTD_BENCH_BESIDE")
    with ExitStack() as stack:
        cases = {"none of them": stack.enter_context(furnished(lab, NONE, None)), "all of them": stack.enter_context(furnished(lab, ALL, None))}
        if beside:
            cases = {"none, the other build": stack.enter_context(furnished(lab, NONE, beside)), **cases}
        runs = [in_turns(cases) for _ in range(options.repeat)]
    first = next(iter(cases))
    found = [{"case": name, "figures": {"ms": summary([run[name] for run in runs])}, "share": summary([run[name] / run[first] for run in runs])} for name in cases]
    for one in found:
        say(f"  {one['case']}: {one['figures']['ms']['median']:.2f} ms for {DUE} actions, {one['share']['median']:.2f} of the first")
    return {"due": DUE, "cases": found}
