"""viewers: what 1 000 clients of /stream cost the core: its rate with them beside that without, in turns, and CPU of each part.

The clients share the cores with everything else, so a rate alone blames the server for them, too. The shares of CPU do not: they are of
processes, and what the clients use is a figure of its own. Once `run` answers the viewers itself, once `serve` does, a process whose CPU and
memory can be told from the core's.
"""

import os
import subprocess
import sys
import time
from contextlib import contextmanager, nullcontext
from pathlib import Path

from lab import say
from meter import cpu, rss_mib, summary
from runs import run_receiptd
from stream import Stream
from support.ports import free_ports
from support.wait import wait_for

TIMES = 3  # as many events as other parts have: a run takes 15 s and more
VIEWERS = 1000
# Each viewer of a campaign looks at one of a hundred.
LOOKS = {"each at a campaign": ("/stream?campaign=campaign-{n}", "read"), "each at a campaign, as the page does": ("/stream?campaign=campaign-{n}", "fetch"),
         "all at the list": ("/stream", "read"),
         "all at the list, none reads": ("/stream", "ignore")}
CASES = [None, *((look, place) for place in ("run", "serve") for look in LOOKS)]


class Viewers:
    """A thousand of them, and what they and a `serve` of its own use."""

    def __init__(self, port, look, serve=None, backends=()):
        self.port, self.look, self.serve, self.backends = port, look, serve, backends
        self.before = self._cpu()
        self.rss = rss_mib(serve.pid) if serve else None
        path, way = LOOKS[look]
        self.client = subprocess.Popen([sys.executable, Path(__file__).with_name("viewers.py"), str(port), str(VIEWERS), path, way],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.client.stdout.readline() == "ready\n", "the viewers failed, see above"
        self.begun = time.time()

    def _cpu(self):
        return (cpu(self.serve.pid) if self.serve else 0, sum(cpu(pid) for pid in self.backends))

    def end(self):
        now, grown = self._cpu(), rss_mib(self.serve.pid) - self.rss if self.serve else None
        answer, _ = self.client.communicate("end\n", timeout=60)
        got, events, lost, fetched, refused, used = answer.split()
        assert lost == "0" or LOOKS[self.look][1] == "ignore", f"{lost} viewers were lost"
        return {"bytes_each": int(got) / VIEWERS, "events_each": int(events) / VIEWERS, "fetched_each": int(fetched) / VIEWERS, "refused": int(refused), "clients_cpu": float(used),
                "serve_cpu": now[0] - self.before[0], "questions_cpu": now[1] - self.before[1], "serve_grown_mib": grown}

    def kill(self):
        self.client.kill()
        self.client.wait()


@contextmanager
def watching(lab, process, port, look, place, found):
    serve, backends = None, ()
    if place == "serve":
        serve = process.receiptd.start("serve", command="serve")
    wait_for(lambda: "serve-0 is connected" in (serve or process).log(), 30, "serve answers")
    if serve:
        with lab.connect() as connection:
            backends = [pid for (pid,) in connection.execute("SELECT pid FROM pg_stat_activity WHERE application_name LIKE '%/serve-%'")]
        assert backends, "the sessions of serve"
    viewers = Viewers(port, look, serve, backends)
    try:
        yield
        found.append(viewers.end())
    finally:
        viewers.kill()


def one(lab, stream, topic, case):
    port, found = free_ports(1)[0], []
    look, place = case or (None, None)
    settings = {"serve": {"enabled": place != "serve", "open": True, "listen": f"127.0.0.1:{port}"}}
    around = (lambda process: watching(lab, process, port, look, place, found)) if case else (lambda _: nullcontext())
    run = run_receiptd(lab, stream, topic, settings=settings, around=around)
    run |= found[0] if found else {"clients_cpu": 0, "serve_cpu": 0, "questions_cpu": 0}
    seconds = run["seconds"]
    # What the core and the viewers' questions need together; of the core alone where serve is a process of its own.
    run["us_per_event"] = run["daemon_us_per_event"] + run["server_us_per_event"] + run["serve_cpu"] / run["events"] * 1e6
    run["serve_ms_per_second"], run["questions_ms_per_second"] = (run[part] / seconds * 1000 for part in ("serve_cpu", "questions_cpu"))
    run["clients_share"] = run["clients_cpu"] / seconds / os.cpu_count()
    return run


def part_viewers(lab, options):
    stream = Stream("mix", options.events * TIMES)
    topic = lab.topic(stream)
    runs = {case: [] for case in CASES}
    for number in range(options.repeat):
        for case in CASES if number % 2 == 0 else reversed(CASES):
            runs[case].append(one(lab, stream, topic, case))
    nobody = runs[None]
    base = summary([run["us_per_event"] for run in nobody])["median"]
    results = []
    for case, made in runs.items():
        result = {"who": case[0] if case else "nobody", "where": case[1] if case else "", "seconds": summary([run["seconds"] for run in made]),
                  "rate": summary([run["events_per_second"] for run in made]), "us_per_event": summary([run["us_per_event"] for run in made]),
                  "rate_share": summary([run["events_per_second"] / first["events_per_second"] for run, first in zip(made, nobody)]),
                  "cpu_more": summary([run["us_per_event"] / base - 1 for run in made]),
                  # Measured apart from everything that scatters: CPU of serve and of its sessions, of what the core needs for the same events.
                  "serve_share": summary([(run["serve_cpu"] + run["questions_cpu"]) / (run["events"] * base / 1e6) for run in made]) if case and case[1] == "serve" else None,
                  **{part: summary([run[part] for run in made]) if case and case[1] == "serve" else None for part in ("serve_ms_per_second", "questions_ms_per_second")},
                  "clients_share": summary([run["clients_share"] for run in made]),
                  "grown_mib": summary([run["serve_grown_mib"] for run in made]) if case and case[1] == "serve"
                  else summary([run["peak_rss_mib"] - first["peak_rss_mib"] for run, first in zip(made, nobody)]),
                  **{part: summary([run[part] for run in made]) if case else None for part in ("events_each", "fetched_each", "refused")}}
        results.append(result)
        own = f", serve {result['serve_share']['median']:.1%} of the core's CPU ({result['serve_ms_per_second']['median']:.0f} ms a second, its sessions {result['questions_ms_per_second']['median']:.0f})" if result["serve_share"] else ""
        say(f"  {result['who']} {result['where']}: {result['rate']['median']:,.0f} events/s for {result['seconds']['median']:.0f} s, {result['rate_share']['median']:.3f}; "
            f"CPU {result['cpu_more']['median']:+.1%}{own}, {result['grown_mib']['median']:+.1f} MiB; clients {result['clients_share']['median']:.1%} of the machine")
    return {"events": stream.event_count, "viewers": VIEWERS, "cores": os.cpu_count(), "cases": results}
