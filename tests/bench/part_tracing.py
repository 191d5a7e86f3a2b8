"""tracing: the cost of tracing and scraping. They are switched on and off within one run, so that each stretch with them is compared
with its neighbours without.

Each record carries a traceparent. Tracing: of every other block of records one in a hundred belongs to a sampled trace, so that
its batches are spans with links; the collector takes and forgets, in a process of its own. Scraping: every other second,
SCRAPES_PER_SECOND times as often as a Prometheus that asks each second, because what one page a second costs is too little to
be seen.
"""

import http.client
import itertools
import random
import re
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

from lab import fill, say
from meter import percentile, summary
from runs import run_receiptd
from stream import Stream

SAMPLED = 0.01
SCRAPES_PER_SECOND = 20
BLOCKS = 24  # of records, in a run
STRETCH_SECONDS = 1.0
EDGES = 0.08  # of a run at its beginning and at its end, where not all partitions flow
RESAMPLES = 2000
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


def is_on(number):
    """off on on off, off on on off …: so a trend over time falls on both sides."""
    return number % 4 in (1, 2)


def _headers(stream):
    rng = random.Random(f"traces {stream.name}")
    for number in itertools.count():
        flags = "01" if is_on(number * BLOCKS // stream.record_count) and rng.random() < SAMPLED else "00"
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
    """Scrapes in every other stretch: the time of each, and the milliseconds that the page took in the daemon's loop and that the answer took."""

    def __init__(self, port, begun):
        super().__init__(daemon=True)
        self.connection, self.stopped = http.client.HTTPConnection("127.0.0.1", port, timeout=30), threading.Event()
        self.page_ms, self.answer_ms, self.bytes, self.begun = [], [], 0, begun
        self.start()

    def run(self):
        while not self.stopped.wait(1 / SCRAPES_PER_SECOND):
            if is_on(int((time.time() - self.begun) / STRETCH_SECONDS)):
                self._scrape()

    def _scrape(self):
        begun = time.monotonic()
        self.connection.request("GET", "/metrics")
        text = self.connection.getresponse().read()
        self.answer_ms.append((time.monotonic() - begun) * 1000)
        self.bytes = len(text)
        if len(self.answer_ms) > 1:  # each page reports the time of the one before
            self.page_ms.append(float(PAGE.search(text)[1]) * 1000)


def _scraping(found):
    @contextmanager
    def around(process):
        scraper = Scraper(int(re.search(r"metrics and status at .*, port (\d+)", process.log())[1]), time.time())
        yield
        scraper.stopped.set()
        scraper.join()
        found.append(scraper)

    return around


def _at(timeline, goal, key, value):
    """The value at key `goal` on the line through (key, value) points; None outside."""
    for before, after in itertools.pairwise(timeline):
        if before[key] <= goal <= after[key] and after[key] > before[key]:
            share = (goal - before[key]) / (after[key] - before[key])
            return before[value] + share * (after[value] - before[value])
    return None


def _blocks(run):
    """[(on, seconds, work)] of the blocks of records, by when the sum of all positions passed their ends."""
    edges = [_at(run["timeline"], number / BLOCKS, 1, 0) for number in range(BLOCKS + 1)]
    return [(is_on(number), edges[number + 1] - edges[number], 1.0) for number in range(BLOCKS)
            if number / BLOCKS >= EDGES and (number + 1) / BLOCKS <= 1 - EDGES and edges[number] is not None and edges[number + 1] is not None]


def _stretches(run, offset):
    """[(on, seconds, work)] of the stretches of time; the first began `offset` seconds after the run did."""
    found, end = [], run["timeline"][-1][0]
    for number in range(int((end - offset) / STRETCH_SECONDS)):
        first, last = offset + number * STRETCH_SECONDS, offset + (number + 1) * STRETCH_SECONDS
        if first >= EDGES * end and last <= (1 - EDGES) * end:
            done = [_at(run["timeline"], when, 0, 1) for when in (first, last)]
            if None not in done:
                found.append((is_on(number), STRETCH_SECONDS, done[1] - done[0]))
    return found


def _pairs(stretches):
    """Neighbours of which one is with and the other without, each stretch once: [((seconds, work) with, … without)]"""
    found, left = [], None
    for on, seconds, work in stretches:
        if left is not None and left[0] != on:
            pair = [left, (on, seconds, work)]
            pair.sort(key=lambda stretch: not stretch[0])
            found.append((pair[0][1:], pair[1][1:]))
            left = None
        else:
            left = (on, seconds, work)
    return found


def _ratio(pairs):
    (on_time, on_work), (off_time, off_work) = (tuple(map(sum, zip(*side))) for side in zip(*pairs))
    return on_work / on_time / (off_work / off_time)


def _compare(pairs):
    """The rate with over the rate without, and its 95 % interval (bootstrap over pairs)."""
    if not pairs:
        return None  # too short a run
    rng = random.Random(1)
    again = sorted(_ratio(rng.choices(pairs, k=len(pairs))) for _ in range(RESAMPLES))
    return {"ratio": _ratio(pairs), "low": again[int(RESAMPLES * 0.025)], "high": again[int(RESAMPLES * 0.975)], "pairs": len(pairs)}


def _scrape_result(scrapers, pairs):
    pages = [milliseconds for scraper in scrapers for milliseconds in scraper.page_ms]
    answers = [milliseconds for scraper in scrapers for milliseconds in scraper.answer_ms]
    return {**(_compare(pairs) or {}), "per_second": SCRAPES_PER_SECOND, "scrapes": len(answers), "bytes": max(scraper.bytes for scraper in scrapers),
            "page_ms": {**summary(pages), "p99": percentile(pages, 0.99)}, "answer_ms": {**summary(answers), "p99": percentile(answers, 0.99)}}


def part_tracing(lab, options):
    stream = Stream("single", 3 * options.events)
    topic = lab.services.create_topic(8)
    fill(topic, stream, headers=_headers(stream))
    traced, scraped, scrapers, costs = [], [], [], {"traced": [], "scraped": []}
    with _collector() as port:
        settings = {"tracing": {"endpoint": f"http://127.0.0.1:{port}/v1/traces", "sample": "0"}}
        for _ in range(options.repeat):
            run = run_receiptd(lab, stream, topic, settings=settings)
            traced += _pairs(_blocks(run))
            costs["traced"].append(run["daemon_us_per_event"])
            say(f"    tracing {run['events_per_second']:>9,.0f} events/s, so far {_compare(traced)}")
            run = run_receiptd(lab, stream, topic, around=_scraping(scrapers))
            scraped += _pairs(_stretches(run, scrapers[-1].begun - run["begun"]))
            costs["scraped"].append(run["daemon_us_per_event"])
            say(f"    scraped {run['events_per_second']:>9,.0f} events/s, so far {_compare(scraped)}")
    topic.drop()
    return {"scrape": _scrape_result(scrapers, scraped), "tracing": _compare(traced), "events": stream.event_count, "sampled": SAMPLED,
            "block_events": stream.event_count // BLOCKS,
            "daemon_us_per_event": {name: summary(found) for name, found in costs.items()}}
