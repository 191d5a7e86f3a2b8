"""N clients of /stream in a process of their own: viewers.py PORT N PATH read|fetch|ignore. `fetch`: each does as the page does when the stream
names its campaign. It takes the funnel from the event, or asks for it, and asks for timeline, parts and pending when their pauses are over, on a
second connection (src/serve/page/campaign.js). Says "ready" when all are connected; ends with its input, and says then how many bytes and
events they got, how many were lost, how many answers they fetched and how many
fetches were refused, and how many seconds of CPU all this took since all were connected."""

import re
import resource
import selectors
import socket
import sys
import time

SERIES_S, PARTS_S, PENDING_S = 5, 15, 60  # the pauses of the page, at least
PARTS = ("variant", "channel", "gateway", "reason", "time_to_deliver", "time_to_open")


class Viewer:
    def __init__(self, port, path, way, number):
        self.port, self.campaign = port, f"campaign-{number % 100}"
        self.stream = self.connect()
        self.ask(self.stream, path.replace("{n}", str(number % 100)))
        assert self.stream.recv(16).startswith(b"HTTP/1.1 200"), "the stream is refused"
        self.stream.setblocking(False)
        self.fetches, self.fetcher, self.ready = way == "fetch", None, None
        self.busy, self.wanted, self.answer = False, [], b""
        self.due, self.phase = {}, number % 97 / 97

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), 60)

    def ask(self, client, path):
        client.sendall(f"GET /api/v1{path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAccept-Encoding: gzip\r\n\r\n".encode())

    def on_event(self, block):
        path, now = f"/campaigns/{self.campaign}", time.monotonic()
        pause = int(found[1]) if (found := re.search(rb'"pause_s":(\d+)', block)) else 0
        self.want(*[path] if b'"funnel":' not in block else [])
        for name, least, paths in (("series", max(SERIES_S, pause), [f"{path}/timeline"]), ("parts", max(PARTS_S, 3 * pause), [f"{path}?by={by}" for by in PARTS]),
                                   ("pending", max(PENDING_S, 3 * pause), [f"{path}?pending=true"])):
            # Viewers open the page at any time, long before: so their first requests are spread over a pause.
            if now >= self.due.setdefault(name, now + least * self.phase):
                self.due[name] = now + least
                self.want(*paths)

    def want(self, *paths):
        self.wanted += [path for path in paths if path not in self.wanted]
        if self.wanted and not self.busy:
            self.busy, self.answer = True, b""
            if self.fetcher is None:  # the server closes connections that are idle
                self.fetcher = self.connect()
                self.ready.register(self.fetcher, selectors.EVENT_READ, self)
            self.ask(self.fetcher, self.wanted.pop(0))

    def on_answer(self, block):
        """Its status; 0: it is not whole yet."""
        self.answer += block
        head, end, body = self.answer.partition(b"\r\n\r\n")
        if not end or len(body) < int(re.search(rb"Content-Length: (\d+)", head)[1]):
            return 0
        self.busy = False
        self.want()
        return int(head.split()[1])


def used():
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


def main(port, number, path, way):
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    viewers = [Viewer(int(port), path, way, index) for index in range(int(number))]
    ready = selectors.DefaultSelector()
    ready.register(sys.stdin, selectors.EVENT_READ)
    for viewer in viewers if way != "ignore" else []:
        ready.register(viewer.stream, selectors.EVENT_READ, viewer)
        viewer.ready = ready
    begun = used()
    print("ready", flush=True)
    got = events = lost = fetched = refused = 0
    while True:
        for key, _ in ready.select():
            viewer = key.data
            if viewer is None:
                print(got, events, lost, fetched, refused, used() - begun, flush=True)
                return
            block = key.fileobj.recv(65536)
            if not block:
                ready.unregister(key.fileobj)
                if key.fileobj is viewer.fetcher and not viewer.busy:
                    viewer.fetcher = None
                else:
                    lost += 1
            elif key.fileobj is viewer.fetcher:
                status = viewer.on_answer(block)
                fetched, refused = fetched + (status == 200), refused + (status not in (0, 200, 501))  # 501: what is not counted
            else:
                found = block.count(b"event: campaign")
                got, events = got + len(block), events + found
                if found and viewer.fetches:
                    viewer.on_event(block)


main(*sys.argv[1:])
