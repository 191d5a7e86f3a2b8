"""The build that updates start from: a commit of this repository (tests/fixtures/baseline), made once."""

import contextlib
import fcntl
import os
import shutil
import subprocess

import pytest

from support.services import ROOT

COMMIT = ROOT / "tests/fixtures/baseline"


def build():
    """The path of its receiptd."""
    commit = COMMIT.read_text().strip()
    if subprocess.run(["git", "cat-file", "-e", f"{commit}^{{commit}}"], cwd=ROOT, stderr=subprocess.DEVNULL).returncode != 0:
        pytest.skip(f"commit {commit} (tests/fixtures/baseline) is not here: a shallow clone? git fetch --unshallow")
    folder = ROOT / "build" / "baseline"
    with open(folder.with_suffix(".lock"), "w") as lock:  # tests of two workers, or of two builds, may want it at once
        fcntl.flock(lock, fcntl.LOCK_EX)
        _build(commit, folder, folder / "stamp")
    return folder / "build/receiptd"


def _build(commit, folder, stamp):
    if not stamp.exists() or stamp.read_text() != commit:
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        archive = subprocess.run(["git", "archive", "--format=tar", commit], cwd=ROOT, stdout=subprocess.PIPE, check=True)
        subprocess.run(["tar", "-x", "-C", folder], input=archive.stdout, check=True)
        made = subprocess.run(["make", "-j2", "CFLAGS=-O1 -g", "all"], cwd=folder, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, env={**os.environ, "MAKEFLAGS": "", "MAKELEVEL": "0"})
        assert made.returncode == 0, f"{commit} does not build\n{made.stdout[-3000:]}"
        stamp.write_text(commit)


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
