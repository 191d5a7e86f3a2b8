"""Alerts and dashboard against Debian's Prometheus: the rules by themselves, and with a running receiptd behind them."""

import json
import re
import shutil
import signal
import subprocess
import time

import pytest

from support.operations import Operations
from support.prometheus import Prometheus, one_target
from support.services import ROOT
from support.wait import wait_for

RULES = ROOT / "config/prometheus/rules.yaml"
DASHBOARD = ROOT / "config/grafana/receiptd.json"


def filled(expression):
    """As Grafana fills an expression in; what it compares with is seconds ago."""
    return expression.replace("$__rate_interval", "1m").replace("$instance", ".*").replace("offset 2m", "offset 3s")


def alerts():
    return re.findall(r"alert: (\w+)", RULES.read_text())


def test_each_rule_is_tested_and_has_its_page():
    tested = subprocess.run(["promtool", "test", "rules", ROOT / "tests/prometheus/rules_test.yaml"],
                            capture_output=True, text=True)
    assert tested.returncode == 0, tested.stdout + tested.stderr
    cases = (ROOT / "tests/prometheus/rules_test.yaml").read_text()
    pages = (ROOT / "docs/operations.md").read_text()
    for name in alerts():
        assert re.search(rf"alertname: {name}\n +exp_alerts:", cases), f"no case in which {name} fires"
        assert re.search(rf"^### {name}$", pages, re.MULTILINE), f"docs/operations.md says nothing about {name}"
        assert f"docs/operations.md#{name.lower()}" in RULES.read_text()


def test_rules_and_dashboard_name_metrics_that_exist():
    listed = set(re.findall(r"^\| `(\w+)`", (ROOT / "docs/metrics.md").read_text(), re.MULTILINE))
    for path in (RULES, DASHBOARD):
        named = set(re.findall(r"\b((?:receiptd|process)_\w+?)(?:_bucket|_sum|_count)?\b(?=[{\[ )])", path.read_text()))
        assert named and named <= listed, named - listed


def test_each_panel_of_the_dashboard_has_its_own_place_and_name():
    shown = json.loads(DASHBOARD.read_text())["panels"]
    inner = [panel for row in shown for panel in row.get("panels", [])]
    for panels in (shown, *(row["panels"] for row in shown if row["type"] == "row")):
        places = [(p["gridPos"]["x"] + x, p["gridPos"]["y"] + y) for p in panels for x in range(p["gridPos"]["w"]) for y in range(p["gridPos"]["h"])]
        assert len(places) == len(set(places)) and all(p["gridPos"]["x"] + p["gridPos"]["w"] <= 24 for p in panels)
    for key in ("id", "title"):
        assert len({panel[key] for panel in shown + inner}) == len(shown + inner)
    assert all(target["legendFormat"] for panel in inner for target in panel["targets"])


@pytest.fixture
def prometheus(tmp_path):
    made = []

    def start(target):
        made.append(Prometheus(tmp_path, one_target(target), RULES))
        return made[-1]

    yield start
    for one in made:
        one.close()


@pytest.mark.skipif(shutil.which("prometheus") is None, reason="Debian's prometheus is not installed")
def test_a_real_prometheus_scrapes_evaluates_and_fills_the_dashboard(create_world, prometheus):
    world = create_world(30_000, seed=65, batch={"max_events": 200})
    world.insert(world.stream.late)
    process = world.installation.start()
    pages = Operations(process)
    pages.wait_until_ready()
    server = prometheus(pages.port)
    feeder = world.feed(per_second=4_000)
    wait_for(lambda: [r["value"][1] for r in server.query('up{job="receiptd"}')] == ["1"], 30, "up")
    feeder.join()
    world.finish(process)
    wait_for(lambda: server.query("receiptd_batch_events_count > 0") and server.query("rate(receiptd_batch_events_count[20s])"),
             30, "two scrapes")
    groups = wait_for(lambda: server.api("rules").get("groups"), 30, "rules")
    wait_for(lambda: all(rule["health"] == "ok" for group in server.api("rules")["groups"] for rule in group["rules"]),
             30, "every rule is evaluated without an error", details=lambda: server.api("rules"))
    assert sorted(rule["name"] for group in groups for rule in group["rules"]) == sorted(alerts())
    dashboard = json.loads(DASHBOARD.read_text())
    for panel in dashboard["panels"]:
        rarely = panel["type"] == "row"  # parts that this process does not run: Prometheus takes the expressions
        for target in (target for shown in panel.get("panels", [panel]) for target in shown["targets"]):
            expression = filled(target["expr"])
            assert server.query(expression) or rarely and server.api("query", query=expression), f"{panel['title']}: nothing for {expression}"
    start, configuration, version = (filled(annotation["expr"]) for annotation in dashboard["annotations"]["list"])
    (began,) = server.query(start)
    assert abs(float(began["value"][1]) / 1000 - time.time()) < 300
    assert server.query(configuration) == server.query(version) == [] and server.query("receiptd_build_info offset 3s")
    world.installation.configure(parked={"max_age": "25h"})
    process.signal(signal.SIGHUP)
    (changed,) = wait_for(lambda: server.query(configuration), 30, "the annotation of a changed configuration")
    process.wait_for_log("reload: applied: parked.max_age")
    assert {changed["metric"]["config_hash"]} == pages.figures().label_values("receiptd_build_info", "config_hash")
    wait_for(lambda: server.query(configuration) == [], 30, "its end")
    assert server.query(version) == []
    process.stop()
