"""A collector: an HTTP server that takes OTLP/JSON and reads it with OpenTelemetry's own messages."""

import base64
import gzip
import json
import sys
import threading
from collections import namedtuple
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from faults.servers import library
from support.services import ROOT

PACKAGES = ROOT / "build/otlp"

Link = namedtuple("Link", "trace span state")


def _messages():
    """opentelemetry-proto is not in Debian: fetched once, below build/."""
    if not (PACKAGES / "complete").exists():
        library("fetch_otlp")
    if str(PACKAGES) not in sys.path:
        sys.path.insert(0, str(PACKAGES))
    from google.protobuf import json_format
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
    return json_format, ExportTraceServiceRequest


def _to_base64(value):
    """Ids are hexadecimal in OTLP/JSON, and base64 in protobuf's own JSON."""
    if isinstance(value, list):
        return [_to_base64(item) for item in value]
    if not isinstance(value, dict):
        return value
    ids = ("traceId", "spanId", "parentSpanId")
    return {key: base64.b64encode(bytes.fromhex(item)).decode() if key in ids else _to_base64(item)
            for key, item in value.items()}


class Span:
    """One span as it was received."""

    def __init__(self, message, resource):
        self.message, self.resource = message, resource
        self.name, self.kind = message.name, message.kind
        self.trace, self.id, self.parent = message.trace_id.hex(), message.span_id.hex(), message.parent_span_id.hex()
        self.begin, self.end = message.start_time_unix_nano, message.end_time_unix_nano
        self.attributes = attributes(message)
        self.links = [Link(link.trace_id.hex(), link.span_id.hex(), link.trace_state) for link in message.links]
        self.failed = message.status.code == 2

    def __repr__(self):
        return f"<{self.name} {self.trace}/{self.id} below {self.parent} {self.attributes} {len(self.links)} links>"


def attributes(message):
    found = {}
    for item in message.attributes:
        kind = item.value.WhichOneof("value")
        assert item.key not in found and kind in ("string_value", "int_value"), item
        found[item.key] = getattr(item.value, kind)
    return found


class Collector:
    """`status` is what it answers; while `held` is set it does not answer at all."""

    def __init__(self, port=0):
        self.json_format, self.request = _messages()
        self.status, self.held, self.requests, self.errors, self.tokens = 200, threading.Event(), 0, [], set()
        self._spans, self._lock = [], threading.Lock()
        self._released = threading.Event()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                collector.handle(self)

            def log_message(self, *_):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/v1/traces"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def handle(self, handler):
        body = handler.rfile.read(int(handler.headers["Content-Length"]))
        with self._lock:
            self.requests += 1
            self.tokens.add(handler.headers.get("Authorization"))
        if self.held.is_set():
            self._released.wait(300)
            return
        if self.status == 200:
            try:
                self.take(handler, body)
            except Exception as error:
                self.errors.append(f"{error!r}: {body[:2000]!r}")
        handler.send_response(self.status)
        handler.send_header("Content-Type", "application/json")
        handler.send_header("Content-Length", "2")
        handler.end_headers()
        handler.wfile.write(b"{}")

    def take(self, handler, body):
        assert handler.path.partition("?")[0] == "/v1/traces" and handler.headers["Content-Type"] == "application/json"
        if handler.headers.get("Content-Encoding") == "gzip":
            body = gzip.decompress(body)
        message = self.request()
        # Unknown fields and values of a wrong kind raise.
        self.json_format.ParseDict(_to_base64(json.loads(body)), message)
        found = [Span(span, attributes(resource.resource)) for resource in message.resource_spans
                 for scope in resource.scope_spans for span in scope.spans]
        with self._lock:
            self._spans += found

    def spans(self, name=None):
        assert not self.errors, self.errors
        with self._lock:
            return [span for span in self._spans if name is None or span.name == name]

    def clear(self):
        with self._lock:
            self._spans.clear()

    def close(self):
        self._released.set()
        self.server.shutdown()
        self.server.server_close()
