"""A real Chromium for tests of the page: what a reader sees, as text."""

import functools
import json
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from faults.servers import library
from support.wait import wait_for

# Answers by which a page can be shown what the server does not say now. "merge": into what it says.
PLANNED = """
const planned = %s, real = window.fetch;
// The stream brings funnels as they are: those that are asked for are planned.
const hide = { transform: (text, to) => to.enqueue(text.replaceAll('"funnel":', '"hidden":')) };
window.fetch = async (url, options) => {
    if (/[/]stream/.test(url)) {
        const { ok, body, status, headers } = await real(url, options);
        return new Response(ok ? body.pipeThrough(new TextDecoderStream()).pipeThrough(new TransformStream(hide)).pipeThrough(new TextEncoderStream()) : body, { status, headers });
    }
    const [, status, body, merge] = planned.find(([pattern]) => new RegExp(pattern).test(url)) ?? [];
    if (status === undefined)
        return real(url, options);
    const said = merge ? await (await real(url, options)).json() : {};
    return new Response(JSON.stringify({ ...said, ...body }), { status, headers: { "Content-Type": "application/json" } });
};"""

CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
OPTIONS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
           "--disable-component-update", "--disable-sync", "--lang=en-GB")
AXE = "axe-playwright-python 0.1.8"  # the wheel holds axe-core 4.12.1 as it is in npm, and needs no Node
AXE_TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


@functools.lru_cache
def axe_source():
    """The text of axe-core; None where it cannot be fetched."""
    try:
        return (Path(library(f"fetch_wheel {AXE}").strip()) / "axe_playwright_python/axe.min.js").read_text()
    except (subprocess.SubprocessError, OSError):
        return None


class Browser:
    """One window. Times out with the page's text and the console's messages."""

    def __init__(self):
        webdriver = pytest.importorskip("selenium.webdriver", reason="python3-selenium is not installed")
        if not CHROMIUM.exists() or not DRIVER.exists():
            pytest.skip("chromium and chromium-driver are not installed")
        from selenium.webdriver.chrome.service import Service
        self.profile = tempfile.TemporaryDirectory(prefix="receiptd-chromium-", ignore_cleanup_errors=True)
        options = webdriver.ChromeOptions()
        options.binary_location = str(CHROMIUM)
        for option in (*OPTIONS, f"--user-data-dir={self.profile.name}"):
            options.add_argument(option)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
        self.driver = webdriver.Chrome(service=Service(str(DRIVER)), options=options)
        self.driver.set_script_timeout(120)  # axe-core on a busy machine
        self.size(1280, 900)

    def close(self):
        self.driver.quit()
        self.profile.cleanup()

    def size(self, width, height):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})

    def media(self, medium="", **features):
        """prefers_color_scheme="dark" and the like, as the system of a reader would say it; medium: print."""
        named = [{"name": name.replace("_", "-"), "value": value} for name, value in features.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": medium, "features": named})

    @contextmanager
    def locale(self, name):
        """Within it the reader's language is this one."""
        self.driver.execute_cdp_cmd("Emulation.setLocaleOverride", {"locale": name})
        yield
        self.driver.execute_cdp_cmd("Emulation.setLocaleOverride", {})

    def printed(self):
        """What the page consists of while it is printed: its text at that moment."""
        self.script("addEventListener('beforeprint', () => { window.printed = document.body.innerText; })")
        self.driver.print_page()
        return self.script("return window.printed")

    def open(self, url):
        self.driver.get(url)

    @contextmanager
    def answering(self, *answers):
        """Within it pages get these answers: (pattern of the address, status, body, whether it is merged into the server's own)."""
        script = self.driver.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": PLANNED % json.dumps(answers)})
        yield
        self.driver.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", script)

    def script(self, text, *arguments):
        return self.driver.execute_script(text, *arguments)

    def text(self, selector="body"):
        return self.script("return document.querySelector(arguments[0])?.innerText ?? ''", selector)

    def count(self, selector):
        return self.script("return document.querySelectorAll(arguments[0]).length", selector)

    def keys(self, *keys):
        from selenium.webdriver.common.action_chains import ActionChains
        ActionChains(self.driver).send_keys(*keys).perform()

    def type(self, selector, text):
        element = self.driver.find_element("css selector", selector)
        element.clear()
        element.send_keys(text)

    def click(self, selector):
        self.driver.find_element("css selector", selector).click()

    def focused(self):
        """What has the focus, as a person would name it: tag and text."""
        return self.script("""const at = document.activeElement;
            return [at.localName, (at.getAttribute('aria-label') ?? at.innerText ?? '').trim().slice(0, 60)]""")

    def wait(self, condition, what, timeout=20.0):
        return wait_for(condition, timeout, what, interval=0.05, details=lambda: f"{self.text()}\n{self.console()}")

    def wait_for_text(self, text, selector="body", timeout=20.0):
        self.wait(lambda: text in self.text(selector), f"“{text}” in {selector}", timeout)

    def console(self):
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def complaints(self):
        """What axe-core finds wrong with the page as it is now: one line for each element."""
        source = axe_source()
        if source is None:
            pytest.skip("axe-core could not be fetched from the Python registry")
        # Not through a script element, which the page's security policy forbids.
        self.driver.execute_cdp_cmd("Runtime.evaluate", {"expression": source})
        result = self.driver.execute_async_script(
            "axe.run(document, { runOnly: arguments[0] }).then(arguments[1], (error) => arguments[1](String(error)))", AXE_TAGS)
        assert isinstance(result, dict), result
        assert result["passes"], "axe-core has checked nothing"
        return [f"{rule['id']}: {node['html'][:200]}: {node['failureSummary']}" for rule in result["violations"] for node in rule["nodes"]]
