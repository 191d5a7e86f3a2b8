"""`receiptd serve` as a process, and clients that read from it."""

import fcntl
import gzip
import http.client
import json
import re
import resource
import socket
import urllib.request
from urllib.parse import quote

import pytest

LISTENS = r"serve listens on \S+ \(port (\d+)"
BASE = "/api/v1"
# psycopg waits by select(), which takes descriptors below 1024 only, and a test may have a thousand viewers. So they stand above.
LOWEST_OF_VIEWERS = 1500
MOST_DESCRIPTORS = 4096

def start(installation, command="serve"):
    """Starts it and waits until the database answers; the port is in `.port`."""
    process = installation.start(f"{command}-{len(installation.processes)}", command=command)
    process.port = int(process.wait_for_log(LISTENS).group(1))
    process.wait_for_log("serve-0 is connected")
    return process

def pages(process):
    """The port of /metrics and the like."""
    return int(process.wait_for_log(r"status listens on \S+ \(port (\d+)").group(1))

def text(process):
    """What /metrics says."""
    with urllib.request.urlopen(f"http://127.0.0.1:{pages(process)}/metrics", timeout=10) as answer:
        return answer.read().decode()

def make_token(installation, name, scope="read,support,operate,suppressions", *more):
    out = installation.command("serve", "token", "add", "--name", name, "--scope", scope, *more).stdout
    return out.splitlines()[-1]

class Answer:
    def __init__(self, response):
        self.status, self.headers, self.body = response.status, dict(response.getheaders()), response.read()

    @property
    def plain(self):
        """The body, unpacked."""
        return gzip.decompress(self.body) if self.headers.get("Content-Encoding") == "gzip" and self.body else self.body

    @property
    def json(self):
        return json.loads(self.plain)

    def __repr__(self):
        return f"<{self.status} {self.body[:300]!r}>"

def get(process, path, token=None, method="GET", headers=None, body=None):
    """One request on a connection of its own; a path without a leading /api is below the base."""
    connection = http.client.HTTPConnection("127.0.0.1", process.port, timeout=60)
    headers = dict(headers or {})
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    try:
        connection.request(method, path if path.startswith(("/api", "/assets")) or path == "/" else BASE + path, body=body, headers=headers)
        return Answer(connection.getresponse())
    finally:
        connection.close()

def raw(process, data, timeout=10):
    """What comes back for these bytes until the server ends the connection or says nothing more."""
    with socket.create_connection(("127.0.0.1", process.port), timeout) as client:
        client.sendall(data)
        client.shutdown(socket.SHUT_WR)
        answer = b""
        while piece := client.recv(65536):
            answer += piece
    return answer

def fill(path, values):
    """{name} in a path of openapi.json, put in and quoted."""
    return re.sub(r"\{(\w+)\}", lambda match: quote(values[match[1]], safe=""), path)

def allow_high_descriptors():
    """Raises the soft limit of descriptors to what the tests with the most viewers take; skips where the hard one is below."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY != hard < MOST_DESCRIPTORS:
        pytest.skip(f"the hard limit of descriptors is {hard}, and viewers take up to {MOST_DESCRIPTORS}")
    if resource.RLIM_INFINITY != soft < MOST_DESCRIPTORS:
        resource.setrlimit(resource.RLIMIT_NOFILE, (MOST_DESCRIPTORS, hard))

class Stream:
    """A viewer: events as they come."""

    def __init__(self, process, path="/stream", token=None):
        allow_high_descriptors()
        made = socket.create_connection(("127.0.0.1", process.port), 60)
        self.socket = socket.socket(fileno=fcntl.fcntl(made.fileno(), fcntl.F_DUPFD_CLOEXEC, LOWEST_OF_VIEWERS))
        made.close()
        lines = [f"GET {BASE}{path} HTTP/1.1", f"Host: 127.0.0.1:{process.port}"]
        if token:
            lines.append(f"Authorization: Bearer {token}")
        self.socket.sendall("\r\n".join([*lines, "", ""]).encode())
        self.text, self.buffer = "", b""

    def read(self, seconds=0.1):
        """Takes in what is there; the events so far, as (name, data)."""
        self.socket.settimeout(seconds)
        try:
            while piece := self.socket.recv(65536):
                self.buffer += piece
                self.socket.settimeout(0.01)
        except (TimeoutError, socket.timeout):
            pass
        body = self.buffer.partition(b"\r\n\r\n")[2]
        text = b"".join(part for part in re.split(rb"(?:^|\r\n)[0-9a-f]+\r\n", body)).decode()
        return [(name, json.loads(data)) for name, data in re.findall(r"^event: (\w+)\ndata: (.*)$", text, re.MULTILINE)]

    def close(self):
        self.socket.close()
