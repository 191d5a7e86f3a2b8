"""rivals: the alternatives to receiptd, from the same topics into the same server, beside it."""

import json
import shutil
import subprocess
import sys

from lab import OUT, ROOT, say
from meter import Meter, children, cpu_ticks, peak_rss_mib, summary
from runs import run_receiptd
from stream import Stream

HERE = ROOT / "tests/bench/rivals"

# What each rival lacks, for the table beside the figures.
LACKS = {
    "python": "counters, exactly once, parking, dead letters, late time of a status, flags",
    "python with counters": "exactly once (a redelivery is counted twice), skipped stages, parking, dead letters, flags",
    "go": "counters, exactly once, parking, dead letters, flags",
    "connect": "the condition (an older status overwrites a newer one), counters, exactly once across a crash, parking "
               "(it inserts rows that nobody knows), folding over batches, flags; takes one event per record only",
}


def _tree(pid):
    return [pid] + [below for child in children(pid) for below in _tree(child)]


def run_consumer(lab, stream, topic, name, command):
    """A consumer that says ready, waits for a line, and reports: see rivals/consumer.py."""
    with lab.database(stream) as database:
        if "counters" in command:
            database.execute("CREATE TABLE receiptd.campaign_summary (campaign_id text, status smallint, n bigint NOT NULL,"
                             " PRIMARY KEY (campaign_id, status)) WITH (fillfactor = 50)")
        command = [argument.replace("DSN", database.dsn) for argument in command]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        try:
            assert process.stdout.readline() == "ready\n", f"{name} did not get ready, see above"
            meter = Meter(lab, database)
            meter.start("bench-rival")
            pids = _tree(process.pid)
            before = {pid: cpu_ticks(pid) for pid in pids}
            process.stdin.write("\n")
            process.stdin.flush()
            line = process.stdout.readline()
            assert line, f"{name} failed, see above"
            used = meter.stop()
            own = sum(cpu_ticks(pid) - before[pid] for pid in pids)
            rss = sum(peak_rss_mib(pid) for pid in pids)
            process.stdin.close()
            process.wait(30)
        finally:
            for pid in reversed(_tree(process.pid)) if process.poll() is None else ():
                subprocess.run(["kill", "-9", str(pid)], check=False)
            process.wait()
        changed = database.value("SELECT count(*) FROM receiptd.message_inbox WHERE status > 0")
        assert changed == stream.message_count, f"{name} changed {changed} of {stream.message_count} rows"
    result = json.loads(line)
    return {"seconds": result["seconds"], "events": stream.event_count,
            "events_per_second": stream.event_count / result["seconds"], "cpu_us_per_event": own / stream.event_count * 1e6,
            "server_us_per_event": used["server"] / stream.event_count * 1e6, "peak_rss_mib": rss}


def _receiptd(lab, stream, topic):
    run = run_receiptd(lab, stream, topic)
    return {"seconds": run["seconds"], "events": run["events"], "events_per_second": run["events_per_second"],
            "cpu_us_per_event": run["daemon_us_per_event"], "server_us_per_event": run["server_us_per_event"],
            "peak_rss_mib": run["peak_rss_mib"]}


def _build_go():
    if not shutil.which("go"):
        say("  go: skipped, no Go toolchain")
        return None
    program = OUT / "go-consumer"
    built = subprocess.run(["go", "build", "-o", program, "."], cwd=HERE / "go", capture_output=True, text=True)
    if built.returncode:
        say(f"  go: skipped, it does not build: {built.stderr.strip()[-300:]}")
        return None
    return program


def go_consumer(lab, topic, stream):
    """A function that makes one run; None where it cannot be built."""
    program = _build_go()
    command = [str(program), lab.services.brokers, topic.name, "DSN", str(stream.event_count), "8", str(stream.polled_records)]
    return (lambda: run_consumer(lab, stream, topic, "go", command)) if program else None


def contestants(lab, topic, stream):
    """{name: function that makes one run}"""
    brokers, events = lab.services.brokers, str(stream.event_count)
    python = [sys.executable, str(HERE / "consumer.py"), brokers, topic.name, "DSN", events]
    found = {"receiptd": lambda: _receiptd(lab, stream, topic),
             "python": lambda: run_consumer(lab, stream, topic, "python", [*python, "plain"]),
             "python with counters": lambda: run_consumer(lab, stream, topic, "python", [*python, "counters"])}
    go = go_consumer(lab, topic, stream)
    return {**found, "go": go} if go else found


def part_rivals(lab, options):
    from connect import Connect

    result = {"lacks": LACKS, "streams": {}}
    for kind in ("single", "real"):
        stream = Stream(kind, options.events)
        topic = lab.topic(stream)
        runners = contestants(lab, topic, stream)
        try:
            connect = Connect(lab, stream)
            runners["connect"] = connect.run
        except Exception as error:  # noqa: BLE001 - the other rivals still run
            connect = None
            say(f"  connect: skipped, {error}")
        runs = {name: [] for name in runners}
        for repeat in range(options.repeat):
            names = list(runners)
            for name in names if repeat % 2 == 0 else reversed(names):
                if name == "connect" and repeat > 1:
                    continue  # the slowest by far; two runs are enough to see it
                runs[name].append(runners[name]())
                run = runs[name][-1]
                say(f"  {kind}, {name}: {run['events_per_second']:,.0f} events/s, {run['cpu_us_per_event']:.2f} µs of its own, "
                    f"{run['server_us_per_event']:.1f} µs server, {run['peak_rss_mib']:.0f} MiB")
        if connect:
            connect.close()
        ours = runs["receiptd"]
        result["streams"][kind] = {
            "events": stream.event_count, "messages": stream.message_count, "runs": runs,
            "figures": {name: {key: summary([run[key] for run in found]) for key in
                               ("events_per_second", "cpu_us_per_event", "server_us_per_event", "peak_rss_mib")}
                        for name, found in runs.items() if found},
            "factors": {name: summary([o["events_per_second"] / t["events_per_second"] for o, t in zip(ours, found)])
                        for name, found in runs.items() if name != "receiptd"}}
    return result
