"""Random and hostile requests to `receiptd serve`: no crash, no row of another organisation, every answer as OpenAPI describes it."""

import argparse
import http.client
import random
import re
import secrets
import shutil
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from serve.requests import RAW, Maker
from support import reader, records
from support import services as service_pairs
from support.daemon import Receiptd
from support.openapi import Description
from support.site import SECRET, Site, bury, operator

WORKERS = 4
MOST_GROWTH_KIB = 65536
# Names of rows, as the site makes them; what may be seen by whom.
MARK = re.compile(rb"\b(alpha|beta)-(?:m\d|org|campaign|pipeline|account)")
SEEN = {"all": {b"alpha", b"beta"}, "alpha": {b"alpha"}, "alpha-reader": {b"alpha"}, "beta": {b"beta"}, "nobody": set(), "revoked": set(), "none": set(),
        "garbage": set(), "link": {b"alpha"}}
STATUSES = {200, 204, 304, 400, 401, 403, 404, 405, 411, 414, 421, 429, 431, 501, 503}


class Anomaly(AssertionError):
    pass


def resident_kib(process):
    return int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{process.pid}/status").read_text())[1])


def make_tokens(receiptd):
    tokens = {"all": reader.make_token(receiptd, "all-2")}
    for name, scope, org in (("alpha", "read,support,operate", "alpha-org"), ("alpha-reader", "read", "alpha-org"), ("beta", "read,support,operate", "beta-org"),
                             ("nobody", "read,support,operate", "nobody"), ("revoked", "read,support,operate", "alpha-org")):
        tokens[name] = reader.make_token(receiptd, name, scope, "--org", org)
    receiptd.command("serve", "token", "revoke", "--name", "revoked")
    return tokens


class Client:
    """One that keeps its connection, as long as the server does."""

    def __init__(self, port, tokens, description):
        self.port, self.tokens, self.description, self.connection, self.counts = port, tokens, description, None, Counter()

    def send(self, request):
        if self.connection is None:
            self.connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        self.connection.putrequest(request.method, request.target, skip_accept_encoding=True)
        for line in request.headers:
            self.connection.putheader(*line.format(**self.tokens).split(": ", 1))
        if request.who == "garbage" or request.who in self.tokens:
            self.connection.putheader("Authorization", "Bearer " + self.tokens.get(request.who, "rcpt_" + "0" * 64))
        if request.body is not None:
            self.connection.putheader("Content-Length", str(len(request.body)))
        self.connection.endheaders(request.body)
        response = self.connection.getresponse()
        answer = reader.Answer(response)
        if response.will_close:
            self.close()
        return answer

    def close(self):
        if self.connection is not None:
            self.connection.close()
        self.connection = None

    def ask(self, request):
        try:
            answer = self.send(request)
        except (ConnectionError, http.client.HTTPException):
            self.close()  # it had closed an idle connection: once more, on a new one
            answer = self.send(request)
        self.judge(request, answer)
        self.counts[answer.status] += 1
        self.counts["requests"] += 1

    def judge(self, request, answer):
        strange = set(MARK.findall(answer.plain)) - SEEN[request.who]
        if strange or answer.status not in STATUSES:
            raise Anomaly(f"{request} got {answer}, which shows {strange}")
        if answer.status in (204, 304) or request.method == "HEAD" or not answer.body:
            return
        if answer.status >= 400 and answer.headers.get("Content-Type") == "application/problem+json":
            self.description.problem(answer)
        elif request.route is not None and answer.status < 400:
            self.description.check(*request.route, answer)


def work(number, count, site, tokens, link, description, failures):
    client, maker = Client(site.process.port, tokens, description), Maker(f"{site.seed}.{number}", description, tokens, link)
    for _ in range(count):
        request = maker.make()
        try:
            client.ask(request)
        except Exception as error:  # an anomaly is reported, the next request goes on
            failures.append(f"{request}: {type(error).__name__}: {error}")
            client.close()
            if not site.process.running or len(failures) > 20:
                break
    client.close()
    return client.counts


def hostile(site, tokens, count):
    """Each in bytes of its own, on a connection of its own. No row may come back."""
    rng, failures, counts = random.Random(site.seed), [], Counter()
    for number in range(count):
        data = RAW[number % len(RAW)] if number < len(RAW) else bytearray(rng.choice(RAW))
        for name, token in tokens.items():
            data = data.replace(b"{%s}" % name.encode(), token.encode())
        if number >= len(RAW):
            for _ in range(rng.randrange(4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
        try:
            answer = reader.raw(site.process, bytes(data).replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n", 1), 60)
        except (ConnectionError, TimeoutError) as error:
            answer = b"" if isinstance(error, ConnectionError) else b"HTTP/1.1 599 silence"
        status = int(answer.split()[1]) if answer.startswith(b"HTTP/") else 0
        counts[status] += 1
        # A changed byte may leave a good request with the token of one who sees all.
        shows = set(MARK.findall(answer)) if number < len(RAW) or tokens["all"].encode() not in bytes(data) else set()
        if shows or status >= 500 and status not in (501, 503, 505):
            failures.append(f"{bytes(data)[:200]!r} got {answer[:200]!r}")
    return counts, failures


def run(site, options):
    description = Description(site.json("/openapi.json"))
    tokens = make_tokens(site.receiptd)
    link = site.receiptd.command("serve", "link", "alpha-campaign").stdout.strip().partition("?link=")[2]
    bury(site, 3000, payload='{"message_id":"nobodys-%s","status":"CLICKED"}')
    failures = []
    work(99, 500, site, tokens, link, description, failures)
    before, begun = resident_kib(site.process), time.monotonic()
    with ThreadPoolExecutor(WORKERS) as pool:
        futures = [pool.submit(work, number, options.requests // WORKERS, site, tokens, link, description, failures) for number in range(WORKERS)]
        total = sum((future.result() for future in futures), Counter())
    lasted = time.monotonic() - begun
    bad, more = hostile(site, tokens, options.hostile)
    failures += more
    grown = resident_kib(site.process) - before
    log = site.process.log()
    if any(token in log for token in tokens.values()):
        failures.append("a token stands in the log")
    if grown > MOST_GROWTH_KIB:
        failures.append(f"resident memory grew by {grown} KiB")
    if not site.process.running or site.get("/campaigns").status != 200:
        failures.append("it does not answer any more")
    letters, parked = site.database.query("SELECT (SELECT count(*) FROM receiptd.dead_letter), (SELECT count(*) FROM receiptd.parked_event)")[0]
    if letters + parked != 3000:
        failures.append(f"{letters} dead letters and {parked} parked receipts are not 3000")
    site.process.stop()
    return total, bad, failures, lasted, grown, parked


def arguments():
    parser = argparse.ArgumentParser(prog="scripts/campaign serve", description=__doc__)
    parser.add_argument("--requests", type=int, default=100_000, metavar="N", help="random ones (default: %(default)s)")
    parser.add_argument("--hostile", type=int, default=500, metavar="N", help="in raw bytes (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=1, metavar="S")
    parser.add_argument("--record", action="store_true", help="add the result to tests/records, and to the pages that show it")
    return parser.parse_args()


def main():
    options, commit = arguments(), records.commit()
    name, directory = f"serve-{secrets.token_hex(3)}", Path(tempfile.mkdtemp(prefix="receiptd-serve-"))
    pair = service_pairs.start(name)
    site = None
    try:
        database, topic = pair.create_database(), pair.create_topic(1)
        receiptd = Receiptd(directory, database.dsn, pair.brokers, [topic])
        receiptd.configure(counters={"series": "90d", "gateways": "90d"})
        site = Site(receiptd, database)
        site.seed = options.seed
        operator(site, link_secret=SECRET)
        total, bad, failures, lasted, grown, parked = run(site, options)
        receiptd.close()
        site.drop()
    finally:
        service_pairs.stop(name)
    for failure in failures[:20]:
        print(f"ANOMALY, seed {options.seed}, logs in {directory}: {failure}"[:2000])
    if not failures:
        shutil.rmtree(directory, ignore_errors=True)
    statuses = {status: count for status, count in sorted((key, count) for key, count in total.items() if key != "requests")}
    sentence = (f"{total['requests']} random requests of {WORKERS} clients with the tokens of all, of two organisations, of nobody, a link and none"
                f" ({total['requests'] / lasted:.0f} a second; by status {', '.join(f'{status}: {count}' for status, count in statuses.items())}), and {sum(bad.values())} hostile ones in raw bytes")
    if options.record and not failures:
        figures = {"random requests": total["requests"], "hostile requests": sum(bad.values())}
        records.add_campaign("serve", f"--requests {options.requests} --seed {options.seed}", commit, lasted, figures=figures, clients=WORKERS,
                             requests_per_second=round(total["requests"] / lasted), statuses=statuses, redriven=parked, grown_kib=grown)
    print(f"{sentence}; resident memory {grown:+d} KiB; {len(failures)} anomalies")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
