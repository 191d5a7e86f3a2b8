"""N clients of /stream in a process of their own: viewers.py PORT N PATH read|fetch|ignore. `fetch`: each asks for its campaign when the stream
names it, as the page does, on a second connection. Says "ready" when all are connected; ends with its input, and says then how many bytes and
events they got, how many were lost, how many answers they fetched and how many
fetches were refused (503: too many questions), and how many seconds of CPU all this took since all were connected."""

import re
import resource
import selectors
import socket
import sys


class Viewer:
    def __init__(self, port, path, way, number):
        self.port, self.campaign = port, f"campaign-{number % 100}"
        self.stream = self.connect()
        self.ask(self.stream, path.replace("{n}", str(number % 100)))
        assert self.stream.recv(16).startswith(b"HTTP/1.1 200"), "the stream is refused"
        self.stream.setblocking(False)
        self.fetcher = self.connect() if way == "fetch" else None
        self.busy = self.wanted = False
        self.answer = b""

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), 60)

    def ask(self, client, path):
        client.sendall(f"GET /api/v1{path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nAccept-Encoding: gzip\r\n\r\n".encode())

    def on_event(self):
        self.wanted = True
        if not self.busy:
            self.busy, self.wanted, self.answer = True, False, b""
            self.ask(self.fetcher, f"/campaigns/{self.campaign}")

    def on_answer(self, block):
        """Its status; 0: it is not whole yet."""
        self.answer += block
        head, end, body = self.answer.partition(b"\r\n\r\n")
        if not end or len(body) < int(re.search(rb"Content-Length: (\d+)", head)[1]):
            return 0
        self.busy = False
        if self.wanted:
            self.on_event()
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
        if viewer.fetcher:
            ready.register(viewer.fetcher, selectors.EVENT_READ, viewer)
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
                lost += 1
                ready.unregister(key.fileobj)
            elif key.fileobj is viewer.fetcher:
                status = viewer.on_answer(block)
                fetched, refused = fetched + (status == 200), refused + (status not in (0, 200))
            else:
                found = block.count(b"event: campaign")
                got, events = got + len(block), events + found
                if found and viewer.fetcher:
                    viewer.on_event()


main(*sys.argv[1:])
