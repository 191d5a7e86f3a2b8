"""The N-th allocation or system call fails, for N = 1, 2, ... until a run comes through without meeting it.

The calls are those of receiptd's own code, of libpq and of libuv (tests/faultshim/shim.c says which). A process that meets the
failure must come to an end that says why, or recover: no crash, no hang, and the next run heals. Where memory is refused it
aborts by design, with "out of memory" in its log; libuv aborts too where the loop's own descriptors fail, and so do the
assertions for what can only be missing at the start.

A sweep takes every N up to a number of attempts, evenly spread (RECEIPTD_NTH_ATTEMPTS; 0: all of them, scripts/campaign nth-failure).
"""

import os
import re
import signal
import subprocess
from pathlib import Path

import pytest

from support.daemon import binary
from support.services import ROOT, definers
from support.wait import wait_for

ATTEMPTS = os.environ.get("RECEIPTD_NTH_ATTEMPTS")
OURS, ALL = "receiptd", "receiptd,libpq,libuv"
KINDS = [("memory", OURS), ("system", ALL)]
# sysexits that a command may end with: unreachable, software, no input, no permission, configuration, system, i/o, come again
CLEAN_STATUS = {0, 1, 65, 66, 69, 70, 71, 74, 75, 77, 78}


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    if subprocess.run(["grep", "-q", "__asan_init\\|__tsan_init", binary()]).returncode == 0:
        pytest.skip(f"{binary()} is a sanitizer build: it has an allocator of its own")
    library = tmp_path_factory.mktemp("shim") / "shim.so"
    subprocess.run(["cc", "-std=c11", "-D_GNU_SOURCE", "-O1", "-g", "-fPIC", "-shared", "-o", library,
                    ROOT / "tests/faultshim/shim.c", "-ldl"], check=True)
    return library


def ended(process):
    """Its status after SIGTERM. Where the failure was libuv's own writing to itself that there is a signal, the signal is lost,
    and whoever sent it sends it again."""
    for _ in range(6):
        if process.running:
            process.signal(signal.SIGTERM)
        try:
            return process.wait(20)
        except AssertionError:
            continue
    return process.wait(1)


class Sweep:
    def __init__(self, shim, directory, calls, modules):
        self.report = Path(directory) / "shim-report"
        self.environment = {"LD_PRELOAD": str(shim), "RECEIPTD_SHIM_CALLS": calls, "RECEIPTD_SHIM_MODULES": modules,
                            "RECEIPTD_SHIM_REPORT": str(self.report)}

    def at(self, number):
        self.report.unlink(missing_ok=True)
        return {**self.environment, "RECEIPTD_SHIM_AT": str(number)}

    def met(self):
        """The call that failed; None if the run came through before."""
        text = self.report.read_text() if self.report.exists() else ""
        return None if text.isdigit() or not text else text

    def count(self):
        return int(self.report.read_text())

    def numbers(self, total, attempts):
        """1 … total + 1, thinned out: the first ones are always there, as starting up has the most ways to fail."""
        attempts = int(ATTEMPTS) if ATTEMPTS is not None else attempts
        everything = range(1, total + 2)
        if attempts == 0 or total < attempts:
            return list(everything)
        stride = -(-total // attempts)
        return sorted({*range(1, min(total, attempts // 4) + 1), *everything[::stride], total + 1})


def assert_clean_end(status, text, number, call):
    """Ended by itself with a status that says something, or aborted with a word about it."""
    where = f"call {number} ({call}) failed; status {status}\n{text[-3000:]}"
    if status == -signal.SIGABRT:
        assert "libuv" in call or re.search(r"out of memory|assertion failed", text), where
    else:
        assert status in CLEAN_STATUS, where
    if status not in (0, -signal.SIGABRT):
        assert text.strip(), where


def sweep_command(sweep, receiptd, attempts, *arguments, after=None):
    """Runs a command until no call of it fails any more; `after` looks at what a run has left."""
    sound = receiptd.command(*arguments, environment=sweep.at(0))
    total = sweep.count()
    assert total > 0
    if after:
        after()

    def attempt(number):
        result = receiptd.command(*arguments, environment=sweep.at(number), check=False, timeout=60)
        assert_clean_end(result.returncode, result.stderr + result.stdout, number, sweep.met())
        if after:
            after()
        if sweep.met() is None or result.returncode == 0:
            assert result.stdout == sound.stdout, f"call {number} ({sweep.met()}) changed the output\n{result.stdout}"
        return result

    for number in sweep.numbers(total, attempts):
        result = attempt(number)
    # A run may make more calls than the first one: its messages come in other pieces.
    while sweep.met() is not None:
        number += 1
        assert number <= 2 * total + 100, f"{sweep.met()}: there is no end of calls, the first run made {total}"
        result = attempt(number)
    assert result.returncode == 0, result.stderr


@pytest.mark.parametrize("calls, modules", KINDS)
def test_check_config_ends_cleanly(shim, tmp_path, receiptd, calls, modules):
    sweep_command(Sweep(shim, tmp_path, calls, modules), receiptd, 40, "check-config")


@pytest.mark.parametrize("calls, modules", KINDS)
def test_funnel_ends_cleanly(shim, tmp_path, receiptd, database, calls, modules):
    receiptd.migrate()
    database.execute("INSERT INTO receiptd.message_inbox (message_id, campaign_id) VALUES ('m', 'c')")
    sweep_command(Sweep(shim, tmp_path, calls, modules), receiptd, 40, "funnel", "c")


@pytest.mark.parametrize("calls, modules", KINDS)
def test_migrate_ends_whole_or_not_at_all_and_the_next_one_completes_it(shim, tmp_path, receiptd, database, calls, modules):
    query = ("SELECT string_agg(relkind::text || ' ' || relname, ',' ORDER BY relname) FROM pg_class"
             " WHERE relnamespace = to_regnamespace('receiptd')")
    whole = None

    def complete_and_remove():
        nonlocal whole
        found = database.value(query)
        assert whole is None or found in (None, whole), "half of a schema was left"
        receiptd.migrate()
        whole = whole or database.value(query)
        assert database.value(query) == whole
        assert database.value("SELECT count(*) FROM receiptd.status_path") > 0
        database.execute("DROP SCHEMA receiptd CASCADE")
        for role in definers(database.name):
            database.execute(f"DROP ROLE {role}")

    sweep_command(Sweep(shim, tmp_path, calls, modules), receiptd, 25, "migrate", after=complete_and_remove)


@pytest.mark.parametrize("calls, modules", KINDS)
def test_run_recovers_or_ends_and_the_next_one_heals(shim, tmp_path, create_world, calls, modules):
    """Each attempt brings its own receipts; what an attempt leaves undone the ones after it do, and the ledger is exact."""
    world = create_world(partitions=2, lanes=4, kafka={"properties": {"session.timeout.ms": "1000"}})
    installation, sweep = world.installation, Sweep(shim, tmp_path, calls, modules)
    turns = 0

    def turn(number):
        """How the process ended that met the failure; None if it did not meet any."""
        nonlocal turns
        turns += 1
        world.insert_ids(*(f"m{turns}-{index}" for index in range(20)))
        world.topic.send(*({"value": {"message_id": f"m{turns}-{index}", "status": status}}
                           for index in range(25) for status in ("SENT", "DELIVERED")))
        process = installation.start(f"{calls}-{turns}", environment=sweep.at(number))
        ends = world.ends()

        def done():
            lowest = dict(world.lowest_positions())
            return not process.running or all(lowest.get(partition, -1) >= end for partition, end in ends.items())

        wait_for(done, 30, f"call {number}: everything consumed, or an end", details=process.log_tail)
        status = ended(process)
        process.expected_status = status
        assert_clean_end(status, process.log(), number, sweep.met())

    turn(0)
    total = sweep.count()
    for number in sweep.numbers(total, 30):
        turn(number)
    last = installation.start("last")
    world.finish(last)
    last.stop()
