"""A simulated SMSC and Kannel in front of it: how receipts of SMPP reach webhooks."""

import socket
import subprocess
import urllib.request
from pathlib import Path
from urllib.parse import urlencode

from faults.servers import library
from support.ports import free_ports
from support.services import ROOT
from support.wait import wait_for

BEARERBOX, SMSBOX = ROOT / "build/kannel/usr/sbin/bearerbox", ROOT / "build/kannel/usr/sbin/smsbox"

CONFIGURATION = """\
group = core
admin-port = {admin}
admin-interface = 127.0.0.1
admin-password = a
smsbox-port = {boxes}
smsbox-interface = 127.0.0.1
box-allow-ip = 127.0.0.1
dlr-storage = internal

group = smsc
smsc = smpp
smsc-id = SIM
host = 127.0.0.1
port = {smsc}
smsc-username = j
smsc-password = jpwd
system-type = x
transceiver-mode = true
reconnect-delay = 1
# the simulator writes both ids as decimal numbers
msg-id-type = 0x00

group = smsbox
bearerbox-host = 127.0.0.1
bearerbox-port = {boxes}
sendsms-port = {send}
sendsms-interface = 127.0.0.1
http-request-retry = 10
http-queue-delay = 1

group = sendsms-user
username = u
password = p
"""


def fetch():
    library("fetch_kannel; fetch_jsmpp")


def get(port, path, **query):
    """The answer's text; None without an answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}?{urlencode(query)}", timeout=10) as answer:
            return answer.read().decode()
    except OSError:
        return None


class Smsc:
    """`with Smsc(directory) as smsc: smsc.send(…)`. Its clock is in a zone of its own, as clocks of customers are."""

    def __init__(self, directory):
        self.directory, self.processes = Path(directory), []
        self.ports = dict(zip(("smsc", "admin", "boxes", "send"), free_ports(4)))

    def __enter__(self):
        try:
            self._start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_):
        self.close()

    def _run(self, name, *arguments):
        with open(self.directory / f"{name}.log", "wb") as log:
            self.processes.append(subprocess.Popen(arguments, cwd=self.directory, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                                   env={"TZ": "Asia/Kolkata", "PATH": "/usr/bin:/bin"}))

    def _start(self):
        configuration = self.directory / "kannel.conf"
        configuration.write_text(CONFIGURATION.format(**self.ports))
        self._run("simulator", "java", "-Xmx64m", "-XX:TieredStopAtLevel=1", f"-Djsmpp.simulator.port={self.ports['smsc']}",
                  "-cp", f"{ROOT}/build/jsmpp/*", "org.jsmpp.examples.SMPPServerSimulator")
        self._run("bearerbox", BEARERBOX, "-v", "1", configuration)
        self._wait(lambda: get(self.ports["admin"], "/status.txt", password="a"), "Kannel's bearerbox answers")
        self._run("smsbox", SMSBOX, "-v", "1", configuration)
        self._wait(lambda: "(online" in (get(self.ports["admin"], "/status.txt", password="a") or ""), "Kannel is bound to the SMSC")
        self._wait(lambda: get(self.ports["send"], "/") is not None or self._listens("send"), "Kannel's smsbox answers")

    def _listens(self, name):
        try:
            socket.create_connection(("127.0.0.1", self.ports[name]), 5).close()
            return True
        except OSError:
            return False

    def _wait(self, condition, what):
        wait_for(condition, 60, what, details=self.logs)

    def logs(self):
        return "\n".join(f"{path.name}:\n{path.read_text(errors='replace')[-1500:]}" for path in sorted(self.directory.glob("*.log")))

    def send(self, text, callback):
        """Submits a message; Kannel calls `callback`, with its % letters filled in, when it gets the receipt."""
        answer = get(self.ports["send"], "/cgi-bin/sendsms", username="u", password="p", **{"from": "S"}, to="491701234567", text=text,
                     **{"dlr-mask": "31", "dlr-url": callback})
        assert answer is not None and "Accepted" in answer, f"{answer}\n{self.logs()}"

    def close(self):
        for process in reversed(self.processes):
            process.kill()
            process.wait()
