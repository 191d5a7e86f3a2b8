"""intake: acknowledged requests of one receipt, large batches, latency at half the rate; nginx for comparison.

Requests are counted by wrk, which waits for every answer, and an answer comes after Kafka's acknowledgement. Where
the load generator and the broker share the cores, the rate by the clock says how fast the generator is: the figure is
requests by second of CPU that the process used, all its threads and the kernel's work for it included; the same for nginx,
whose answer is an empty 200 from a return statement.

Latency is measured with the process on a core of its own, where there are two, and generator, broker and all others on the
rest: half of the rate that the core gave there, and once more under an attack with slow and oversized requests, whose senders
have the lowest priority.
"""

import os
import re
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

from lab import ROOT, say
from meter import cpu, peak_rss_mib, percentile, summary
from support import intake as site

SECONDS = 8
CONNECTIONS = 128
PARTITIONS = 6
EVENTS_OF_A_BATCH = 1000
ACCOUNTS = [
    {"name": "sms", "gateway": "twilio", "org_id": "o1", "verify": "off", "message_id": "?mid"},
    {"name": "mail", "gateway": "sendgrid", "org_id": "o1", "verify": "off"},
]
NGINX = """
worker_processes 1; daemon off; pid {directory}/nginx.pid; error_log {directory}/nginx.err;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 1000000000; client_body_temp_path {directory}/body; proxy_temp_path {directory}/proxy;
  fastcgi_temp_path {directory}/fastcgi; uwsgi_temp_path {directory}/uwsgi; scgi_temp_path {directory}/scgi;
  server {{ listen 127.0.0.1:{port}; location / {{ return 200; }} }} }}
"""
NGINX_PORT = 18977


def start_nginx(directory):
    path = directory / "nginx.conf"
    path.write_text(NGINX.format(directory=directory, port=NGINX_PORT))
    process = subprocess.Popen(["/usr/sbin/nginx", "-p", str(directory), "-c", str(path)])
    time.sleep(0.5)
    worker = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=True).stdout.split()[0]
    return process, int(worker)


def wrk(script, port, pid, connections, run):
    """Answers with 2xx in SECONDS, and the CPU that the process used meanwhile."""
    before = cpu(pid)
    output = subprocess.run(
        ["wrk", "-t1", f"-c{connections}", f"-d{SECONDS}s", "--latency", "-s", ROOT / f"tests/bench/intake/{script}.lua",
         f"http://127.0.0.1:{port}"], capture_output=True, text=True, check=True, env=dict(os.environ, RUN=str(run))).stdout
    used = cpu(pid) - before
    assert "Non-2xx" not in output, output
    requests = int(re.search(r"(\d+) requests in", output).group(1))
    seconds = float(re.search(r"requests in ([\d.]+)s", output).group(1))
    return {"requests": requests, "per_second": requests / seconds, "per_core": requests / used, "cpu_us": used / requests * 1e6}


class Apart:
    """While it lasts, the process has a core of its own: generators and broker share the others. `cores` is what it had;
    on a machine with one core nothing is changed."""

    def __init__(self, lab, pid):
        self.pids = {"process": pid, "broker": int((lab.services.directory / "kafka.pid").read_text()), "own": os.getpid()}
        self.cores = sorted(os.sched_getaffinity(0))

    def __enter__(self):
        if len(self.cores) > 1:
            self._set(self.pids["process"], self.cores[:1])
            for name in ("broker", "own"):  # generators inherit ours
                self._set(self.pids[name], self.cores[1:])
        return self

    def __exit__(self, *_):
        for pid in self.pids.values():
            self._set(pid, self.cores)

    @staticmethod
    def _set(pid, cores):
        for task in os.listdir(f"/proc/{pid}/task"):
            try:
                os.sched_setaffinity(int(task), cores)
            except ProcessLookupError:
                pass  # a thread that has just ended


def latency(lab, port, rate):
    """At a constant rate: milliseconds from sending a request to its answer. The number of connections makes each due every 40 ms:
    one that waits longer than the limit of 20 ms holds up no request but its own."""
    body, log = lab.workdir / "receipt", lab.workdir / "h2load.log"
    body.write_text("MessageSid=SM1&MessageStatus=delivered&AccountSid=AC1&From=%2B15017122661")
    log.unlink(missing_ok=True)
    connections = max(32, min(1000, int(rate * 0.04)))
    subprocess.run(
        ["h2load", "--h1", "-c", str(connections), "-t", "1", "-D", str(SECONDS), f"--rps={max(1, round(rate / connections))}", "-d", body,
         f"--log-file={log}", "-H", "Content-Type: application/x-www-form-urlencoded", f"http://127.0.0.1:{port}/dlr/sms?mid=m1"],
        capture_output=True, check=True)
    rows = [line.split() for line in log.read_text().splitlines()]
    times = [int(row[2]) / 1000 for row in rows]
    return {"asked": rate, "rate": len(times) / SECONDS, "connections": connections, "refused": sum(row[1] != "200" for row in rows),
            "p50": percentile(times, 0.5), "p99": percentile(times, 0.99), "max": max(times)}


def behind():
    """Runs in a new process with the lowest priority. An attacker's own work is done on an attacker's machine; the bench
    measures the work that it causes in the intake."""
    os.setsid()
    os.nice(19)
    try:
        Path("/proc/self/autogroup").write_text("19")  # where sessions share the cores, each by its own nice value
    except OSError:
        pass


@contextmanager
def attack(lab, port):
    """Heads and bodies that come a byte at a time over 2 000 connections, and bodies beyond the limit."""
    large = lab.workdir / "large"
    large.write_bytes(b"x" * (4 << 20))
    url = f"http://127.0.0.1:{port}/dlr/sms"
    slow = ["slowhttptest", "-c", "1000", "-i", "1", "-r", "500", "-l", "600", "-u", url]
    attackers = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=behind) for command in (
        [*slow, "-H"], [*slow, "-B", "-s", "100000"],
        ["h2load", "--h1", "-c", "4", "-t", "1", "-D", "600", "--rps=5", "-d", large, url])]
    try:
        time.sleep(4)  # they connect
        assert all(attacker.poll() is None for attacker in attackers), "an attacker has ended"
        yield
    finally:
        for attacker in attackers:
            attacker.terminate()
            attacker.wait()


def measure_latency(lab, process):
    """Half of the rate that a core of its own gives; the same under attack, in turns with runs without one."""
    with Apart(lab, process.pid) as apart:
        full = wrk("post", process.port, process.pid, CONNECTIONS, "full")["per_second"]
        quiet = [latency(lab, process.port, full / 2)]
        with attack(lab, process.port):
            attacked = latency(lab, process.port, full / 2)
        quiet.append(latency(lab, process.port, full / 2))
    say(f"  alone on a core {full:,.0f} requests/s; at {quiet[0]['rate']:,.0f} p99 {quiet[0]['p99']:.1f} and {quiet[1]['p99']:.1f} ms,"
        f" under attack {attacked['p99']:.1f} ms")
    half = max(quiet, key=lambda found: found["p99"])
    return {"full": full, "half": half, "attacked": attacked, "apart": len(apart.cores) > 1,
            "attack_ratio": attacked["p99"] / half["p99"]}


def part_intake(lab, options):
    topic, letters = lab.services.create_topic(PARTITIONS), lab.services.create_topic(1)
    database = lab.services.create_database()
    receiptd = lab.receiptd(database, topic, intake={"listen": "127.0.0.1:0", "topic": str(topic), "dead_letter_topic": str(letters),
                                                    "accounts": ACCOUNTS})
    receiptd.migrate()
    process = site.start(receiptd)
    nginx, worker = start_nginx(lab.workdir)
    single, batches, empty = [], [], []
    try:
        wrk("post", process.port, process.pid, CONNECTIONS, "warm")
        for run in range(options.repeat):
            for name, found, port, pid in (("nginx", empty, NGINX_PORT, worker), ("intake", single, process.port, process.pid)):
                found.append(wrk("post", port, pid, CONNECTIONS, run))
                say(f"  {name}: {found[-1]['per_second']:,.0f} requests/s, {found[-1]['per_core']:,.0f} by core")
        for run in range(options.repeat):
            batches.append(wrk("batch", process.port, process.pid, 8, run))
            say(f"  batches: {batches[-1]['per_second'] * EVENTS_OF_A_BATCH:,.0f} events/s")
        late = measure_latency(lab, process)
        rss = peak_rss_mib(process.pid)
        process.stop()
    finally:
        nginx.terminate()
        nginx.wait()
        receiptd.close()
        for made in (topic, letters, database):
            made.drop()

    def figures(found, factor=1):
        return {key: summary([each[key] * factor for each in found]) for key in ("per_second", "per_core", "cpu_us")}

    return {
        "figures": {"intake": figures(single), "nginx": figures(empty), "batches": figures(batches, EVENTS_OF_A_BATCH)},
        "share_by_core": summary([ours["per_core"] / theirs["per_core"] for ours, theirs in zip(single, empty)]),
        "share_by_clock": summary([ours["per_second"] / theirs["per_second"] for ours, theirs in zip(single, empty)]),
        **late, "peak_rss_mib": rss, "connections": CONNECTIONS, "partitions": PARTITIONS,
    }
