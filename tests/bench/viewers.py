"""N clients of /stream in a process of their own: viewers.py PORT N PATH read|ignore. Says "ready" when all are connected; ends with its
input, and says then how many bytes and
events they got, how many were lost, and how many seconds of CPU all this took since all were connected."""

import resource
import selectors
import socket
import sys


def connect(port, path):
    client = socket.create_connection(("127.0.0.1", port), 60)
    client.sendall(f"GET /api/v1{path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n".encode())
    assert client.recv(16).startswith(b"HTTP/1.1 200"), "the stream is refused"
    client.setblocking(False)
    return client


def used():
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


def main(port, number, path, way):
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    clients = [connect(int(port), path.replace("{n}", str(index % 100))) for index in range(int(number))]
    ready = selectors.DefaultSelector()
    ready.register(sys.stdin, selectors.EVENT_READ)
    for client in clients if way == "read" else []:
        ready.register(client, selectors.EVENT_READ)
    begun = used()
    print("ready", flush=True)
    got = events = lost = 0
    while True:
        for key, _ in ready.select():
            if key.fileobj is sys.stdin:
                print(got, events, lost, used() - begun, flush=True)
                return
            block = key.fileobj.recv(65536)
            if not block:
                lost += 1
                ready.unregister(key.fileobj)
            got += len(block)
            events += block.count(b"event: campaign")


main(*sys.argv[1:])
