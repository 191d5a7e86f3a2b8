"""Earlier releases, kept as sources in tests/fixtures/release-N: their binaries, built once."""

import contextlib
import fcntl
import hashlib
import os
import shutil
import subprocess

from support.services import ROOT

FIXTURES = ROOT / "tests/fixtures"


def newest():
    """The folder of the previous release, which the present code must be able to follow."""
    return max(FIXTURES.glob("release-*"), key=lambda path: int(path.name.removeprefix("release-")))


def build(release):
    """The path of its receiptd."""
    archive, folder = release / "source.tar.xz", ROOT / "build" / release.name
    stamp, wanted = folder / "stamp", hashlib.sha256(archive.read_bytes()).hexdigest()
    with open(folder.with_suffix(".lock"), "w") as lock:  # tests of two workers, or of two builds, may want it at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        _build(archive, folder, stamp, wanted)
    return folder / "build/receiptd"


def _build(archive, folder, stamp, wanted):
    if not stamp.exists() or stamp.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        subprocess.run(["tar", "-xJf", archive, "-C", folder], check=True)
        made = subprocess.run(["make", "-j2", "CFLAGS=-O1 -g", "all"], cwd=folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env={**os.environ, "MAKEFLAGS": "", "MAKELEVEL": "0"})
        assert made.returncode == 0, f"{folder.name} does not build\n{made.stdout[-3000:]}"
        stamp.write_text(wanted)


@contextlib.contextmanager
def running(program):
    """Commands and processes that start meanwhile use this binary."""
    before = os.environ.get("RECEIPTD_BINARY")
    os.environ["RECEIPTD_BINARY"] = str(program)
    try:
        yield
    finally:
        if before is None:
            del os.environ["RECEIPTD_BINARY"]
        else:
            os.environ["RECEIPTD_BINARY"] = before
