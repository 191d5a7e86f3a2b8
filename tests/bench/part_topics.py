"""topics: receipts in a form of the platform's, beside the same records as native ones; and how fast messages are announced."""

import json
import time

from lab import say
from meter import summary
from runs import run_between, run_receiptd
from stream import Stream
from support.wait import wait_for

WORDS = {status: status for status in ("SENT", "DELIVERED", "OPENED", "CLICKED", "FAILED")}
FIELDS = {"message_id": "/message_id", "status": "/status", "at": "/at", "statuses": WORDS}


def announced(lab, options):
    """Messages a second that announcements insert, from the first to the last."""
    topic = lab.services.create_topic(4)
    empty = Stream("single", 1000)
    with lab.database(empty) as database:
        producer = topic.producer(linger_ms=5)
        for number in range(options.events // 4):
            id = f"announced-{number}"
            producer.produce(topic.name, json.dumps({"message_id": id, "org_id": "org-1", "campaign_id": f"campaign-{number % 100}"}), key=id)
            producer.poll(0)
        assert producer.flush(60) == 0
        receiptd = lab.receiptd(database, lab.topic(empty), kafka={"message_topics": [str(topic)]})
        process = receiptd.start()
        count = "SELECT count(*) FROM receiptd.message_inbox WHERE starts_with(message_id, 'announced-')"
        try:
            wait_for(lambda: database.value(count) > 0, 60, "the first announcement", interval=0.01)
            begun, first = time.monotonic(), database.value(count)
            wait_for(lambda: database.value(count) == options.events // 4, 300, "all announcements", interval=0.05)
            seconds = time.monotonic() - begun
            process.stop()
        finally:
            receiptd.close()
            topic.drop()
    say(f"    {(options.events // 4 - first) / seconds:,.0f} announcements/s")
    return (options.events // 4 - first) / seconds


def part_topics(lab, options):
    cases = []
    for name, alone in (("arrays", False), ("one receipt a record", True)):
        traffic = Stream("single", options.events, alone=alone)
        topic = lab.topic(traffic)

        def run(case, traffic=traffic, topic=topic, name=name):
            entry = str(topic) if case == "native" else {"name": str(topic), "gateway": "custom", "custom": FIELDS}
            result = run_receiptd(lab, traffic, topic, settings={"kafka": {"topics": [entry]}})
            say(f"    {name}, {case}: {result['events_per_second']:,.0f} events/s, daemon {result['daemon_us_per_event']:.1f} us an event")
            return result

        runs, shares = run_between(run, ["custom"], "native", options.repeat)
        figures = ("events_per_second", "daemon_us_per_event")
        cases += [{"form": name, "case": case, "share": summary(shares[case]) if case in shares else None,
                   "figures": {figure: summary([one[figure] for one in made]) for figure in figures}} for case, made in runs.items()]
        say(f"  {name}: {cases[-1]['share']['median']:.2f} of the rate of native records")
    return {"events": options.events, "cases": cases, "announced_per_second": summary([announced(lab, options) for _ in range(options.repeat)])}
