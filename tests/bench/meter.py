"""CPU, memory and statistics of measurements. CPU comes from /proc, so it does not depend on other processes."""

import os
import statistics
from pathlib import Path

TICKS = os.sysconf("SC_CLK_TCK")


def _stat(pid):
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def cpu(pid):
    """Seconds of a process with all its threads, to the nanosecond; threads must not end in between."""
    total = 0
    try:
        for task in os.listdir(f"/proc/{pid}/task"):
            try:
                total += int(Path(f"/proc/{pid}/task/{task}/schedstat").read_text().split()[0])
            except (FileNotFoundError, ProcessLookupError):
                pass
    except FileNotFoundError:
        return 0.0
    return total / 1e9


def cpu_ticks(pid):
    """Seconds of a process and of its children that have ended, to 10 ms; threads may come and go."""
    fields = _stat(pid)
    return sum(int(field) for field in fields[11:15]) / TICKS


def children(pid):
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                if int(_stat(entry)[1]) == pid:
                    found.append(int(entry))
            except (FileNotFoundError, ProcessLookupError):
                pass
    return found


def _status_mib(pid, field):
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{field}:"):
            return int(line.split()[1]) / 1024
    return 0.0


def peak_rss_mib(pid):
    return _status_mib(pid, "VmHWM")


def rss_mib(pid):
    return _status_mib(pid, "VmRSS")


class Meter:
    """Server, some of its backends, broker and one other process between start() and stop()."""

    def __init__(self, lab, database, process=None):
        directory = lab.services.directory
        self.postmaster = int((directory / "postgres/postmaster.pid").read_text().split()[0])
        self.broker = int((directory / "kafka.pid").read_text())
        self.process = process
        self.database = database
        self.own = database.connection.info.backend_pid

    def _backends(self, pattern):
        rows = self.database.query("SELECT pid FROM pg_stat_activity WHERE application_name LIKE %s", pattern)
        return [pid for (pid,) in rows]

    def _server(self):
        alive = sum(cpu(pid) for pid in children(self.postmaster) if pid != self.own)
        fields = _stat(self.postmaster)
        return alive + cpu(self.postmaster) + (int(fields[13]) + int(fields[14])) / TICKS

    def _read(self):
        return {
            "server": self._server(),
            "backends": {pid: cpu(pid) for pid in self.backends},
            "broker": cpu_ticks(self.broker),
            "process": cpu(self.process) if self.process else 0.0,
            "wal": self.database.value("SELECT pg_current_wal_insert_lsn() - '0/0'::pg_lsn"),
        }

    def start(self, pattern):
        self.backends = self._backends(pattern)
        self.before = self._read()

    def stop(self):
        after, before = self._read(), self.before
        result = {key: after[key] - before[key] for key in ("server", "broker", "process")}
        result["backends"] = sum(after["backends"].values()) - sum(before["backends"].values())
        result["wal_bytes"] = int(after["wal"] - before["wal"])
        if self.process:
            result["peak_rss_mib"] = peak_rss_mib(self.process)
        return result


def summary(values):
    """Median and extremes."""
    values = [value for value in values if value is not None]
    if not values:
        return None
    return {"median": statistics.median(values), "min": min(values), "max": max(values), "runs": len(values)}


def percentile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]
