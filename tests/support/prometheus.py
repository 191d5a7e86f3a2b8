"""Debian's Prometheus, and the alerts with windows as short as a test."""

import json
import re
import socket
import subprocess
import urllib.parse
import urllib.request

WINDOW = "15s"
MEMORY, ENOUGH = "384 * 1024 * 1024", 96 * 1024 * 1024  # bytes


def shortened(text):
    """The rules with the windows of a test. They differ from production's in windows, ages and the limit of memory."""
    text = re.sub(r"for: \d+m", "for: 1s", re.sub(r"\[\d+m\]", f"[{WINDOW}]", text))
    for long, short in (("xmin_age_seconds) > 3600", "xmin_age_seconds) > 1"), ("delta_age_seconds) > 600", "delta_age_seconds) > 15"),
                        ("stream_lag_seconds) > 60", "stream_lag_seconds) > 3"), ("fold_lag_seconds) > 60", "fold_lag_seconds) > 3"),
                        ("due_seconds) > 120", "due_seconds) > 3"), ("ack_seconds_bucket[15s]))) > 2\n", "ack_seconds_bucket[15s]))) > 0.2\n"),
                        ("}[15s]))) > 2.5", "}[15s]))) > 0.2"), (f"> 0.8 * {MEMORY}", f"> {ENOUGH}")):
        assert long in text
        text = text.replace(long, short)
    return text


def one_target(port, job="receiptd"):
    return {"job_name": job, "static_configs": [{"targets": [f"127.0.0.1:{port}"]}]}


class Prometheus:
    def __init__(self, directory, scrape, rules):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        config = directory / "prometheus.yml"
        config.write_text(json.dumps({"global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [str(rules)],
                                      "scrape_configs": [scrape]}))  # JSON is YAML
        self.log = open(directory / "prometheus.log", "wb")
        self.process = subprocess.Popen(
            ["prometheus", f"--config.file={config}", f"--storage.tsdb.path={directory / 'data'}",
             f"--web.listen-address=127.0.0.1:{self.port}"], stdout=self.log, stderr=self.log, cwd=directory)

    def api(self, path, **parameters):
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=10) as response:
                return json.load(response)["data"]
        except OSError:
            return {}

    def query(self, expression):
        return self.api("query", query=expression).get("result", [])

    def firing(self):
        """Names of the alerts that fire; None: it does not answer."""
        found = self.api("alerts")
        return {alert["labels"]["alertname"] for alert in found["alerts"] if alert["state"] == "firing"} if found else None

    def close(self):
        self.process.terminate()
        self.process.wait(20)
        self.log.close()
