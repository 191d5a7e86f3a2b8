"""tracing: the rate with one record in a hundred in a sampled trace, beside the rate without tracing.

The same topic both times: each record carries a traceparent. The collector takes and forgets, in a process of its own.
"""

import random
import subprocess
import sys
from contextlib import contextmanager

from lab import fill, say
from meter import summary
from runs import run_receiptd
from stream import Stream

SAMPLED = 0.01
SINK = """
import http.server
class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
"""


def _headers(salt):
    rng = random.Random(f"traces {salt}")
    while True:
        flags = "01" if rng.random() < SAMPLED else "00"
        yield [("traceparent", f"00-{rng.getrandbits(128) | 1:032x}-{rng.getrandbits(64) | 1:016x}-{flags}")]


@contextmanager
def _collector():
    process = subprocess.Popen([sys.executable, "-c", SINK], stdout=subprocess.PIPE, text=True)
    try:
        yield int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()


def part_tracing(lab, options):
    stream = Stream("single", options.events)
    topic = lab.services.create_topic(8)
    fill(topic, stream, headers=_headers(stream.name))
    rates, costs = {"off": [], "on": []}, {"off": [], "on": []}
    with _collector() as port:
        tracing = {"off": {}, "on": {"tracing": {"endpoint": f"http://127.0.0.1:{port}/v1/traces", "sample": str(SAMPLED)}}}
        for number in range(options.repeat):
            for name in list(rates) if number % 2 == 0 else list(reversed(rates)):
                run = run_receiptd(lab, stream, topic, settings=tracing[name])
                rates[name].append(run["events_per_second"])
                costs[name].append(run["daemon_us_per_event"])
                say(f"    tracing {name:3} {rates[name][-1]:>9,.0f} events/s, {costs[name][-1]:.2f} µs daemon")
    topic.drop()
    ratios = [on / off for on, off in zip(rates["on"], rates["off"])]
    say(f"  with tracing: {summary(ratios)['median']:.3f} of the rate without")
    return {"events": stream.event_count, "sampled": SAMPLED, "rates": {name: summary(found) for name, found in rates.items()},
            "daemon_us_per_event": {name: summary(found) for name, found in costs.items()}, "ratio": summary(ratios)}
