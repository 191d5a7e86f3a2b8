"""An endpoint for webhooks that writes down every call, and the promises that calls have to keep."""

import collections
import dataclasses
import http.server
import json
import threading
import time


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


class Receiver:
    """`answer` gives (status, headers, seconds to wait) for a call; calls are kept in the order of their arrival."""

    def __init__(self, answer=None):
        self.calls, self.lock = [], threading.Lock()
        self.answer = answer or (lambda call: (200, {}, 0))
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                body = json.loads(raw)
                call = Call(self.headers["webhook-id"], int(self.headers["receiptd-fencing-token"]),
                            int(self.headers["receiptd-attempt"]), f"{body['org_id']}/{body['subject']}", body,
                            dict(self.headers), raw, time.monotonic())
                with receiver.lock:
                    receiver.calls.append(call)
                status, headers, seconds = receiver.answer(call)
                if seconds:
                    time.sleep(seconds)
                text = f"answer {status}".encode()
                # What is written next is what the caller hears: an end is an answer that was given.
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
        self.thread = threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True)
        self.thread.start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server.server_port}/hook"

    def seen(self):
        with self.lock:
            return list(self.calls)

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join(10)

    # ---- promises

    def assert_tokens_grow(self):
        """Per subject in the order of arrival: whoever comes with an older token is a zombie."""
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
