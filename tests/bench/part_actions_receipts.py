"""What pipelines cost receipts: none, configured but idle, one run for each transition; alternated in one run.

"Committed" is the commit of the last receipt. Intents become runs beside the receipts and afterwards; the report says how many
were left then, and how long all of them took.
"""

import time

from lab import say
from meter import Meter, summary
from runs import _follow, _wait_for_start, check_result
from stream import Stream
from support.wait import wait_for

LANES = 8
ENDPOINT = {"name": "none", "url": "http://127.0.0.1:9/"}
WAITS = [{"name": "later", "actions": [{"wait": "1d"}, {"webhook": "none"}]}]

# Every receipt of the stream is a transition over SENT; nothing in it is SKIPPED.
KINDS = {"none": [], "idle": [{"name": "p", "on": "SKIPPED", "stages": WAITS}], "each": [{"name": "p", "on": "SENT", "stages": WAITS}]}
ORDER = ("none", "idle", "each", "each", "idle", "none")


def run(lab, stream, topic, kind):
    with lab.database(stream) as database:
        receiptd = lab.receiptd(database, topic, lanes=LANES, postgres={"connections": 2}, log={"stats_interval": "0s"},
                                actions={"allow_private": True, "endpoints": [ENDPOINT]}, pipelines=KINDS[kind])
        goal = LANES * sum(high for _, high in topic.watermarks().values())
        process = receiptd.start()
        try:
            meter = Meter(lab, database, process.pid)
            begun = _wait_for_start(process)
            meter.start("receiptd/%/lanes-%")
            _, committed = _follow(database, process, topic, goal, 300)
            used = meter.stop()
            check_result(database, stream)
            result = {"seconds": committed - begun, "server_us_per_event": used["server"] / stream.event_count * 1e6,
                      "wal_bytes_per_event": used["wal_bytes"] / stream.event_count,
                      "lanes_us_per_event": used["backends"] / stream.event_count * 1e6}
            if kind == "each":
                result |= follow_runs(database, stream, begun, committed)
            process.stop()
        finally:
            receiptd.close()
    say(f"    {kind:4} {stream.event_count / result['seconds']:>9,.0f} events/s {result}")
    return result


def follow_runs(database, stream, begun, committed):
    """All of them begin: how many when the last receipt was committed, when the last, and how far behind the transitions."""
    made = database.value("SELECT count(*) FROM receiptd.run")
    wait_for(lambda: database.value("SELECT count(*) FROM receiptd.run_intent") == 0, 300, "all runs are made", interval=0.05)
    seconds = time.time() - begun
    runs = database.value("SELECT count(*) FROM receiptd.run")
    assert runs == stream.message_count, f"{runs} runs of {stream.message_count} messages"
    return {"runs": runs, "made": made / runs, "all_seconds": seconds, "all_per_second": runs / seconds}


def cost(lab, options):
    stream = Stream("single", options.events)
    topic = lab.topic(stream)
    found = {kind: [] for kind in KINDS}
    for number in range(max(2, options.repeat)):
        for kind in ORDER[:3] if number % 2 == 0 else ORDER[3:]:
            found[kind].append(run(lab, stream, topic, kind))
    rates = {kind: summary([stream.event_count / one["seconds"] for one in each]) for kind, each in found.items()}
    shares = {kind: summary([none["seconds"] / one["seconds"] for none, one in zip(found["none"], found[kind])])
              for kind in ("idle", "each")}
    say(f"    shares of the rate without pipelines: {shares}")
    return {"rates": rates, "shares": shares, "each": {key: summary([one[key] for one in found["each"]])
                                                       for key in ("made", "all_seconds", "all_per_second")}, "runs": found}
