"""The program as it is built, and the image's content, without podman."""

import os
import platform
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.daemon import binary
from support.hardening import complaints, tool
from support.services import ROOT
from support.wait import wait_for

NOBODY = 65534


@pytest.mark.skipif("RECEIPTD_BINARY" in os.environ, reason="builds with sanitizers go without")
def test_the_program_is_hardened():
    assert complaints(binary()) == []


def test_a_program_without_hardening_is_found_out(tmp_path):
    """The check above would notice."""
    (tmp_path / "plain.c").write_text("int main(void) { return 0; }\n")
    tool("gcc", "-no-pie", "-fno-stack-protector", "-z", "norelro", "-z", "lazy", "-z", "execstack", "-o", tmp_path / "plain",
         tmp_path / "plain.c")
    found = complaints(tmp_path / "plain")
    assert len(found) == (7 if platform.machine() == "x86_64" else 6) and "no RPATH" not in found


@pytest.mark.skipif(os.geteuid() != 0, reason="the image's folders have owners: needs root")
def test_the_image_says_to_scanners_which_packages_are_in_it(tmp_path):
    root = tmp_path / "image"
    tool(ROOT / "config/container/collect", binary(), root)
    if "RECEIPTD_BINARY" not in os.environ:
        assert complaints(root / "usr/bin/receiptd") == []
    libraries = {Path(line.split(" => ")[1].split()[0]).resolve() for line in tool("ldd", binary()).splitlines() if " => /" in line}
    installed = {}
    for stanza in (root / "var/lib/dpkg/status.d").iterdir():
        fields = dict(line.split(": ", 1) for line in stanza.read_text().splitlines() if ": " in line and line[0] != " ")
        assert fields["Package"] == stanza.name and fields["Status"] == "install ok installed"
        assert fields["Version"] == tool("dpkg-query", "--show", "--showformat=${Version}", stanza.name)
        installed[stanza.name] = {Path(path) for path in tool("dpkg", "--listfiles", stanza.name).splitlines()}
    assert {"libc6", "libssl3", "librdkafka1", "libpq5", "ca-certificates"} <= set(installed)
    owned = {path.resolve() for paths in installed.values() for path in paths if ".so" in path.name}
    assert libraries <= owned
    assert "ID=debian" in (root / "etc/os-release").read_text()


@pytest.mark.skipif(os.geteuid() != 0, reason="another user's process is looked at: needs root")
@pytest.mark.skipif("RECEIPTD_BINARY" in os.environ, reason="builds with sanitizers, and valgrind, look at themselves as debuggers do")
@pytest.mark.parametrize("command", ["run", "intake"])
@pytest.mark.parametrize("option", [[], ["--core-dumps"]], ids=["by default", "where asked for"])
def test_a_crash_leaves_no_core_file_and_its_user_cannot_read_its_memory(tmp_path, command, option):
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == os.getuid() and folder.name.startswith(("pytest-", "popen-", "test_")):
            folder.chmod(0o755)  # pytest's own, for root alone
    program, config = tmp_path / "receiptd", tmp_path / "receiptd.yaml"
    shutil.copy(binary(), program)
    config.write_text('kafka: {brokers: "127.0.0.1:1", topics: [t]}\npostgres: {dsn: "host=127.0.0.1 port=1"}\n'
                      'http: {listen: ""}\ncontrol: {socket: ""}\nintake: {listen: "127.0.0.1:0", metrics_listen: "",\n'
                      '  accounts: [{name: a, gateway: twilio, verify: "off"}]}\n')
    for path in (program, config):
        path.chmod(0o755)
    log = open(tmp_path / "log", "w+")
    process = subprocess.Popen([program, command, "--config", config, *option], stdout=log, stderr=log, stdin=subprocess.DEVNULL,
                               user=NOBODY, group=NOBODY, extra_groups=[], cwd=tmp_path)
    try:
        wait_for(lambda: "level=" in (tmp_path / "log").read_text(), 30, "a line in the log")
        limit = re.search(r"Max core file size +(\w+)", Path(f"/proc/{process.pid}/limits").read_text()).group(1)
        assert process.poll() is None
        # The kernel gives what belongs to a process that cannot be dumped to root.
        owner = os.stat(f"/proc/{process.pid}/mem").st_uid
        assert (owner == NOBODY) if option else (owner, limit) == (0, "0"), (owner, limit)
    finally:
        process.kill()
        process.wait()
