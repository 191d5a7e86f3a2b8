"""The operator's view of a running receiptd: its pages, its metrics, its control socket."""

import json
import re
import shutil
import tempfile
import urllib.error
import urllib.request
from pathlib import Path

from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def text(self):
        return self.body.decode()

    @property
    def json(self):
        return json.loads(self.body)


class Figures(dict):
    """{(name, frozenset of labels): value}"""

    def get_one(self, name, **labels):
        wanted = set(labels.items())
        return sum(value for (found, of), value in self.items() if found == name and wanted <= of)

    def label_values(self, name, label):
        return {dict(of).get(label) for found, of in self if found == name}


class Operations:
    """The pages of one process."""

    def __init__(self, process, token=None, scheme="http", context=None):
        self.process, self.token, self.scheme, self.context = process, token, scheme, context
        self.port = int(process.wait_for_log(r"metrics and status at .*, port (\d+)").group(1))

    def get(self, path, **headers):
        return self.ask(path, None, **headers)

    def ask(self, path, body, **headers):
        """GET, or POST where there is a body."""
        request = urllib.request.Request(f"{self.scheme}://127.0.0.1:{self.port}{path}", body, headers)
        if self.token and "Authorization" not in headers:
            request.add_header("Authorization", f"Bearer {self.token}")
        try:
            with urllib.request.urlopen(request, timeout=10, context=self.context) as response:
                return Answer(response.status, response.headers, response.read())
        except urllib.error.HTTPError as error:
            return Answer(error.code, error.headers, error.read())

    def figures(self):
        answer = self.get("/metrics", Accept=OPENMETRICS)
        assert answer.status == 200 and answer.headers["Content-Type"].startswith("application/openmetrics-text")
        return Figures({(sample.name, frozenset(sample.labels.items())): sample.value
                        for family in parse_openmetrics(answer.text) for sample in family.samples})

    def plain_families(self):
        answer = self.get("/metrics")
        assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        return list(parse_text(answer.text))

    def wait_for_figure(self, name, reached, timeout=30, **labels):
        return self.process.wait_for(lambda: reached(self.figures().get_one(name, **labels)), timeout,
                                     f"{name}{labels or ''}")

    def wait_until_ready(self, timeout=30):
        self.process.wait_for(lambda: self.get("/readyz").status == 200, timeout, "ready")


class ControlSocket:
    """A short path for a socket; tests' own directories are too deep for one."""

    def __init__(self, receiptd):
        self.receiptd = receiptd
        self.folder = Path(tempfile.mkdtemp(prefix="rctl-", dir="/tmp"))
        self.path = self.folder / "s"
        receiptd.configure(control={"socket": str(self.path)})

    def ctl(self, *words, check=True):
        return self.receiptd.command("ctl", *words, check=check)

    def json(self, *words):
        return self.receiptd.json("ctl", *words)

    def close(self):
        shutil.rmtree(self.folder)


def table_names(page):
    """The names that docs/metrics.md lists."""
    return re.findall(r"^\| `(\w+)`", page, re.MULTILINE)
