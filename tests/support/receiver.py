"""An endpoint for webhooks that writes down every call, and the promises that calls must keep."""

import collections
import dataclasses
import http.server
import json
import socket
import ssl
import threading
import time


def tls(certificate, *protocols):
    """A server's context; `protocols` as ALPN names them."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    context.set_alpn_protocols(list(protocols))
    return context


@dataclasses.dataclass
class Call:
    id: str
    token: int
    attempt: int
    subject: str
    body: dict
    headers: dict
    raw: bytes
    began: float
    ended: float = None
    status: int = None


def read_call(headers, raw):
    body = json.loads(raw)
    return Call(headers["webhook-id"], int(headers["receiptd-fencing-token"]), int(headers["receiptd-attempt"]),
                f"{body['org_id']}/{body['subject']}", body, headers, raw, time.monotonic())


class Receiver:
    """`answer` gives (status, headers, seconds to wait) for a call, `body` the bytes of a status; calls are kept in the order of
    their arrival. With a `certificate` (PEM file with its key) it speaks TLS."""

    def __init__(self, answer=None, certificate=None):
        self.calls, self.lock, self.scheme = [], threading.Lock(), "https" if certificate else "http"
        self.answer = answer or (lambda call: (200, {}, 0))
        self.body = lambda status: f"answer {status}".encode()
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                call = read_call(dict(self.headers), self.rfile.read(int(self.headers["Content-Length"])))
                with receiver.lock:
                    receiver.calls.append(call)
                status, headers, seconds = receiver.answer(call)
                if seconds:
                    time.sleep(seconds)
                text = receiver.body(status)
                # The caller sees the next write. So a call that has ended was answered.
                call.ended, call.status = time.monotonic(), status
                try:
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Length", str(len(text)))
                    self.end_headers()
                    self.wfile.write(text)
                except OSError:
                    self.close_connection = True

            def log_message(self, *_):
                pass

        class Server(http.server.ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 1024

            def handle_error(self, *_):
                pass  # a caller that is killed leaves its connection

        self.server = Server(("127.0.0.1", 0), Handler)
        if certificate:
            self.server.socket = tls(certificate, "http/1.1").wrap_socket(self.server.socket, server_side=True)
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f"{self.scheme}://127.0.0.1:{self.server.server_port}/hook"

    def seen(self):
        with self.lock:
            return list(self.calls)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)

    # ---- promises

    def assert_tokens_grow(self):
        """Per subject in the order of arrival: a call with an older token comes from a zombie."""
        last = collections.defaultdict(int)
        for call in self.seen():
            assert call.token > last[call.subject], f"{call.subject}: token {call.token} after {last[call.subject]}"
            last[call.subject] = call.token

    def assert_no_overlap(self):
        running = collections.defaultdict(list)
        for call in self.seen():
            running[call.subject].append(call)
        for subject, calls in running.items():
            for before, after in zip(calls, calls[1:]):
                assert before.ended is not None and before.ended <= after.began, f"{subject}: {before} {after}"


class Http2Receiver:
    """HTTP/2 over TLS, by the library h2: counts connections, keeps calls, answers 200."""

    def __init__(self, certificate):
        self.calls, self.lock, self.connections = [], threading.Lock(), 0
        self.context = tls(certificate, "h2")
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self.listener.getsockname()[1]}/hook"
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection = self.listener.accept()[0]
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, plain):
        from h2.connection import H2Connection, H2Configuration
        from h2.events import DataReceived, RequestReceived, StreamEnded

        try:
            connection = self.context.wrap_socket(plain, server_side=True)
            assert connection.selected_alpn_protocol() == "h2"
            with self.lock:
                self.connections += 1
            http2 = H2Connection(H2Configuration(client_side=False, header_encoding="utf-8"))
            http2.initiate_connection()
            connection.sendall(http2.data_to_send())
            heads, bodies = {}, {}
            while data := connection.recv(65536):
                for event in http2.receive_data(data):
                    if isinstance(event, RequestReceived):
                        heads[event.stream_id], bodies[event.stream_id] = dict(event.headers), b""
                    elif isinstance(event, DataReceived):
                        bodies[event.stream_id] += event.data
                        http2.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
                    elif isinstance(event, StreamEnded):
                        with self.lock:
                            self.calls.append(read_call(heads.pop(event.stream_id), bodies.pop(event.stream_id)))
                        http2.send_headers(event.stream_id, [(":status", "200")], end_stream=True)
                connection.sendall(http2.data_to_send())
        except OSError:
            pass  # the caller is gone
        finally:
            plain.close()

    def seen(self):
        with self.lock:
            return list(self.calls)

    def close(self):
        self.listener.close()
