"""Spans into OpenTelemetry's own collector, which is stricter than anything of ours. Called by scripts/test --otel."""

import os
import re
import secrets
import shutil
import socket
import subprocess

import pytest

from support.operations import Operations
from support.services import ROOT
from support.wait import wait_for
from support.world import QUICK

HERE = ROOT / "tests/otel"
BUILD = ROOT / "build/otelcol"


@pytest.fixture(scope="session")
def binary():
    """Built once; the recipe is copied beside it, so that another one builds anew."""
    if shutil.which("go") is None:
        pytest.skip("needs Go, to build the collector")
    recipe = (HERE / "builder.yaml").read_text()
    made = BUILD / "builder.yaml"
    if not (BUILD / "out/otelcol").exists() or made.read_text() != recipe:
        shutil.rmtree(BUILD, ignore_errors=True)
        BUILD.mkdir(parents=True)
        made.write_text(recipe)
        subprocess.run(["go", "run", "go.opentelemetry.io/collector/cmd/builder@v0.150.0", "--config", "builder.yaml"],
                       cwd=BUILD, check=True)
    return BUILD / "out/otelcol"


@pytest.fixture
def collector(binary, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    log_path = tmp_path / "collector.log"
    with open(log_path, "wb") as log:
        process = subprocess.Popen([binary, "--config", f"file:{HERE / 'collector.yaml'}"], stdout=log, stderr=log,
                                   env=dict(os.environ, COLLECTOR_PORT=str(port)))
    try:
        wait_for(lambda: "Everything is ready" in log_path.read_text(), 60, "the collector", details=log_path.read_text)
        yield port, log_path.read_text
    finally:
        process.kill()
        process.wait()


def test_a_real_collector_takes_every_span(collector, receiptd, database, topic):
    port, log = collector
    receiptd.configure(**QUICK)
    receiptd.configure(tracing={"endpoint": f"http://127.0.0.1:{port}/v1/traces", "sample": "0"})
    receiptd.migrate()
    process = receiptd.start()
    pages = Operations(process)
    pages.wait_until_ready()
    database.add_messages([("m", "o", "c")])
    trace, span = secrets.token_hex(16), secrets.token_hex(8)
    topic.send_records([{"value": {"message_id": "m", "status": "SENT"},
                         "headers": [("traceparent", f"00-{trace}-{span}-01"), ("tracestate", "vendor=x")]}])
    pages.wait_for_figure("receiptd_spans_exported_total", lambda value: value >= 5, timeout=60)
    text = process.wait_for(lambda: log() if "Name           : batch apply" in log() else None, 60, "the batch")
    for name in ("fetch", "decode", "apply", "commit"):
        assert re.search(rf"Name +: {name}\n", text), text
    assert f"Trace ID: {trace}" in text and f"ID: {span}" in text and "TraceState: vendor=x" in text
    assert "service.name: Str(receiptd)" in text and "messaging.system: Str(kafka)" in text
    assert pages.figures().get_one("receiptd_spans_dropped_total") == 0
    assert "error" not in text.lower()
    process.stop()
