"""Debian's Prometheus with one target."""

import json
import socket
import subprocess
import urllib.parse
import urllib.request

CONFIG = """
global: {{scrape_interval: {interval}, evaluation_interval: {interval}}}
rule_files: [{rules}]
scrape_configs:
  - job_name: receiptd
    static_configs: [{{targets: ["127.0.0.1:{target}"]}}]
"""


class Prometheus:
    def __init__(self, directory, target, rules, interval="1s"):
        with socket.create_server(("127.0.0.1", 0)) as probe:
            self.port = probe.getsockname()[1]
        config = directory / "prometheus.yml"
        config.write_text(CONFIG.format(rules=rules, target=target, interval=interval))
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
