"""cost: where the daemon's CPU goes, allocations, system calls, WAL. Each with a tool that slows the run: no rates here."""

import collections
import os
import re
import shutil
import signal
import struct
import subprocess
import time
from contextlib import contextmanager

from lab import OUT, ROOT, say
from runs import run_receiptd
from stream import Stream

# The first rule that matches a frame, from the innermost outwards, names the part. Libraries are built without frame
# pointers, so a chain may have holes; the library itself is always seen when it is the innermost.
RULES = [
    ("decode", re.compile(r"rcpt_json_read|rcpt_record_|rcpt_timestamp|rcpt_hash_text|rcpt_hash_record|rcpt_ladder_find|crc32_z|finish|"
                          r"copy_value|group_events|on_map_key|on_string|on_start_map|on_end_map|take_event")),
    ("fold", re.compile(r"rcpt_batch_|emit_message|sort_messages|chain_events|find_message|intern_signature|clear_buckets")),
    ("encode", re.compile(r"rcpt_encode_|rcpt_pg_put_|rcpt_pg_begin_|rcpt_pg_add_|rcpt_pg_encoder_|put_element|begin_array|"
                          r"\breserve\b")),
    ("send and answer", re.compile(r"libpq|rcpt_pg_|rcpt_submissions|on_io|unix_stream_|rcpt_lane_send|lanes_port_submit")),
    ("fetch", re.compile(r"librdkafka|rd_kafka_|rcpt_kafka_|tcp_recvmsg|rdk:")),
    ("engine", re.compile(r"rcpt_engine_|rcpt_lane_|rcpt_slot")),
    ("wait", re.compile(r"epoll_wait|ep_poll|futex|pthread_cond|libuv|uv_")),
]


def part_of(comm, frames):
    if comm.startswith("rdk:"):
        return "fetch"
    for frame in frames:
        for name, pattern in RULES:
            if pattern.search(frame):
                return name
    return "other"


@contextmanager
def _tool(command, ready_seconds=0.7):
    """A tool that is attached to the daemon and ends at SIGINT."""
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(ready_seconds)
    try:
        yield
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(60)


def _samples(data):
    """(thread name, [frame…]) of each sample of perf."""
    text = subprocess.run(["perf", "script", "-i", data, "-F", "comm,ip,sym,dso"], capture_output=True, text=True).stdout
    for block in text.strip().split("\n\n"):
        lines = block.split("\n")
        frames = [" ".join(line.split()[1:]) for line in lines[1:]]
        yield lines[0].strip(), frames


def _folded(counts):
    """Text of folded stacks, for any flame graph tool."""
    return "\n".join(f"{stack} {count}" for stack, count in sorted(counts.items())) + "\n"


def profile(lab, stream, topic):
    data = OUT / "cost.perf"

    def around(process):
        return _tool(["perf", "record", "-q", "-e", "cpu-clock", "-F", "1999", "-g", "-p", str(process.pid), "-o", data])

    result = run_receiptd(lab, stream, topic, around=around)
    parts, symbols, stacks = collections.Counter(), collections.Counter(), collections.Counter()
    for comm, frames in _samples(data):
        parts[part_of(comm, frames)] += 1
        symbols[frames[0] if frames else "?"] += 1
        names = [re.sub(r" \(.*", "", frame) for frame in reversed(frames)]
        stacks[";".join([comm, *names])] += 1
    (OUT / "cost.folded").write_text(_folded(stacks))
    data.unlink()
    total = sum(parts.values()) or 1
    per_event = result["daemon_us_per_event"]
    return {"daemon_us_per_event": per_event,
            "parts": {name: {"share": count / total, "us_per_event": count / total * per_event}
                      for name, count in parts.most_common()},
            "symbols": [(name, count / total) for name, count in symbols.most_common(40)],
            "stacks": stacks.most_common(400)}


def allocations(lab, stream, topic):
    """Counted between a quarter and the end of the work: what the start allocates is not steady state."""
    library, counters = OUT / "count_malloc.so", OUT / "count_malloc.bin"
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", library, ROOT / "tests/bench/preload/count_malloc.c"], check=True)
    counters.write_bytes(bytes(24))
    before = os.environ.get("LD_PRELOAD")
    seen = {}

    @contextmanager
    def around(process):
        seen["start"] = struct.unpack("<QQQ", counters.read_bytes())
        yield
        seen["end"] = struct.unpack("<QQQ", counters.read_bytes())

    os.environ.update(LD_PRELOAD=str(library), RECEIPTD_MALLOC_COUNTERS=str(counters))
    try:
        result = run_receiptd(lab, stream, topic, around=around)
    finally:
        os.environ.pop("RECEIPTD_MALLOC_COUNTERS")
        if before is None:
            os.environ.pop("LD_PRELOAD")
        else:
            os.environ["LD_PRELOAD"] = before
    own, libraries, own_bytes = (end - start for start, end in zip(seen["start"], seen["end"]))
    return {"own_per_event": own / result["events"], "own_per_batch": own / result["batches"],
            "own_per_record": own / stream.record_count, "own_bytes_per_event": own_bytes / result["events"],
            "libraries_per_event": libraries / result["events"]}


def system_calls(lab, stream, topic):
    log = OUT / "cost.strace"

    def around(process):
        return _tool(["strace", "-c", "-f", "-q", "-p", str(process.pid), "-o", log])

    result = run_receiptd(lab, stream, topic, around=around)
    calls = {}
    for line in log.read_text().splitlines():
        fields = line.split()
        if len(fields) >= 5 and fields[3].isdigit() and fields[-1] != "total":
            calls[fields[-1]] = int(fields[3])
    total = sum(calls.values())
    return {"calls": calls, "per_batch": total / result["batches"], "per_event": total / result["events"],
            "batches": result["batches"]}


def part_cost(lab, options):
    events = options.events  # the more the better: a tool is attached some 0.7 s after the start
    stream = Stream("single", events)
    topic = lab.topic(stream)
    result = {"events": events}
    if shutil.which("perf"):
        result["profile"] = profile(lab, stream, topic)
        for name, part in result["profile"]["parts"].items():
            say(f"  {name:16} {part['share'] * 100:5.1f} %  {part['us_per_event']:.2f} µs an event")
    result["allocations"] = allocations(lab, stream, topic)
    say(f"  allocations an event: {result['allocations']['own_per_event']:.4f} own, "
        f"{result['allocations']['libraries_per_event']:.4f} libraries")
    if shutil.which("strace"):
        result["system_calls"] = system_calls(lab, stream, topic)
        say(f"  system calls a batch: {result['system_calls']['per_batch']:.0f}")
    plain = run_receiptd(lab, stream, topic)
    result["wal_bytes_per_event"] = plain["wal_bytes_per_event"]
    say(f"  WAL an event: {plain['wal_bytes_per_event']:.0f} bytes")
    return result
