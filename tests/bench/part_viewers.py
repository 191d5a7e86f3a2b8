"""viewers: the rate with 1 000 clients of /stream, inside `run`, beside the rate without any; in turns, as shares of the run without."""

import subprocess
import sys
from contextlib import contextmanager, nullcontext
from pathlib import Path

from lab import say
from meter import summary
from runs import run_receiptd
from stream import Stream
from support.ports import free_ports
from support.wait import wait_for

EVENTS = 300_000
VIEWERS = 1000
# Each viewer of a campaign looks at one of a hundred.
CASES = {"nobody": None, "each at a campaign": ("/stream?campaign=campaign-{n}", "read"), "all at the list": ("/stream", "read"),
         "all at the list, none reads": ("/stream", "ignore")}
FIGURES = ("events_per_second", "daemon_us_per_event", "server_us_per_event", "peak_rss_mib")


@contextmanager
def viewers(port, path, way, found):
    """A thousand of them while the receipts are counted."""
    client = subprocess.Popen([sys.executable, Path(__file__).with_name("viewers.py"), str(port), str(VIEWERS), path, way],
                              stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert client.stdout.readline() == "ready\n", "the viewers failed, see above"
        yield
        answer, _ = client.communicate("end\n", timeout=60)
        found.append([int(word) for word in answer.split()])
    finally:
        client.kill()
        client.wait()


def part_viewers(lab, options):
    stream = Stream("mix", min(EVENTS, options.events))
    topic = lab.topic(stream)
    runs, got = {case: [] for case in CASES}, {case: [] for case in CASES}
    for number in range(options.repeat):
        for case in CASES if number % 2 == 0 else reversed(CASES):
            port = free_ports(1)[0]
            settings = {"serve": {"enabled": True, "open": True, "listen": f"127.0.0.1:{port}"}}

            def around(process, case=case, port=port):
                if CASES[case] is None:
                    return nullcontext()
                wait_for(lambda: "serve-0 is connected" in process.log(), 30, "serve answers")
                return viewers(port, *CASES[case], got[case])

            runs[case].append(run_receiptd(lab, stream, topic, settings=settings, around=around))
    results = []
    for case, made in runs.items():
        found = {name: summary([run[name] for run in made]) for name in FIGURES}
        share = summary([run["events_per_second"] / first["events_per_second"] for run, first in zip(made, runs["nobody"])])
        grown = summary([run["peak_rss_mib"] - first["peak_rss_mib"] for run, first in zip(made, runs["nobody"])])
        told = summary([one[1] / VIEWERS for one in got[case]]) if got[case] else None
        results.append({"case": case, "figures": found, "share": share, "grown_mib": grown, "events_each": told})
        say(f"  {case}: {found['events_per_second']['median']:,.0f} events/s, {share['median']:.2f}, {grown['median']:+.1f} MiB, told {told and told['median']}")
    return {"events": stream.event_count, "viewers": VIEWERS, "cases": results}
