"""tracing: the rate with one record in a hundred in a sampled trace, and the rate while somebody scrapes, beside the rate without either.

The same topic each time: each record carries a traceparent. The collector takes and forgets, in a process of its own. Who scrapes does
so every second, as no Prometheus would.
"""

import http.client
import random
import re
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

from lab import fill, say
from meter import summary
from runs import run_receiptd
from stream import Stream

SAMPLED = 0.01
SCRAPE_SECONDS = 1
PAGE = re.compile(rb"^receiptd_scrape_seconds (\S+)$", re.MULTILINE)
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


class Scraper(threading.Thread):
    """Milliseconds that the daemon says a page took its loop, and that the answer took to come."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.connection, self.stopped = http.client.HTTPConnection("127.0.0.1", port, timeout=30), threading.Event()
        self.page_ms, self.answer_ms, self.bytes = [], [], 0
        self.start()

    def run(self):
        while not self.stopped.wait(SCRAPE_SECONDS):
            begun = time.monotonic()
            self.connection.request("GET", "/metrics")
            text = self.connection.getresponse().read()
            self.answer_ms.append((time.monotonic() - begun) * 1000)
            self.bytes = len(text)
            if len(self.answer_ms) > 1:  # each page tells of the one before
                self.page_ms.append(float(PAGE.search(text)[1]) * 1000)


def _scraping(found):
    @contextmanager
    def around(process):
        scraper = Scraper(int(re.search(r"metrics and status at .*, port (\d+)", process.log())[1]))
        yield
        scraper.stopped.set()
        scraper.join()
        found.append(scraper)

    return around


def _scrape_result(scrapers, ratios):
    pages = [milliseconds for scraper in scrapers for milliseconds in scraper.page_ms]
    answers = [milliseconds for scraper in scrapers for milliseconds in scraper.answer_ms]
    return {"interval": SCRAPE_SECONDS, "scrapes": len(answers), "bytes": max(scraper.bytes for scraper in scrapers),
            "page_ms": summary(pages) if pages else None, "answer_ms": summary(answers) if answers else None, "ratio": summary(ratios)}


def part_tracing(lab, options):
    stream = Stream("single", options.events)
    topic = lab.services.create_topic(8)
    fill(topic, stream, headers=_headers(stream.name))
    rates, costs, scrapers = {"off": [], "on": [], "scraped": []}, {"off": [], "on": [], "scraped": []}, []
    with _collector() as port:
        tracing = {"off": {}, "on": {"tracing": {"endpoint": f"http://127.0.0.1:{port}/v1/traces", "sample": str(SAMPLED)}}, "scraped": {}}
        for number in range(options.repeat):
            for name in list(rates) if number % 2 == 0 else list(reversed(rates)):
                run = run_receiptd(lab, stream, topic, settings=tracing[name], around=_scraping(scrapers) if name == "scraped" else None)
                rates[name].append(run["events_per_second"])
                costs[name].append(run["daemon_us_per_event"])
                say(f"    tracing {name:7} {rates[name][-1]:>9,.0f} events/s, {costs[name][-1]:.2f} µs daemon")
    topic.drop()
    ratios = [on / off for on, off in zip(rates["on"], rates["off"])]
    say(f"  with tracing: {summary(ratios)['median']:.3f} of the rate without")
    scrape = _scrape_result(scrapers, [scraped / off for scraped, off in zip(rates["scraped"], rates["off"])])
    say(f"  scraped: {scrape['ratio']['median']:.3f} of the rate without, pages {scrape['page_ms']} ms, answers {scrape['answer_ms']} ms")
    return {"scrape": scrape, "events": stream.event_count, "sampled": SAMPLED, "rates": {name: summary(found) for name, found in rates.items()},
            "daemon_us_per_event": {name: summary(found) for name, found in costs.items()}, "ratio": summary(ratios)}
