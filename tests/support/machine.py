"""A machine with a real systemd as PID 1: systemd-nspawn over an overlay of this machine's own files, or of another Debian's.

Its writes go to a tmpfs of its own mount namespace, which disappears with the machine. It shares the network: it can reach servers on
loopback. Needs root.
"""

import os
import re
import shutil
import subprocess
import time
from pathlib import Path

from faults.servers import library
from support.services import ROOT
from support.wait import wait_for

HIERARCHIES = ("systemd", "unified")  # where the machine's processes make cgroups of their own
HERE = re.search(r"^VERSION_CODENAME=(\w+)", Path("/etc/os-release").read_text(), re.MULTILINE).group(1)
RELEASES = (HERE, *({"bookworm", "trixie"} - {HERE}))  # of systemd 252 and 257

# $1 where to put it, $2 its cgroup, $3 this checkout, $4 the Debian below, $5… the hierarchies. Services that this machine has enabled do not start: only
# a target of our own is reached, with its dependencies.
BOOT = r"""
where=$1 group=$2
bind= # it has a /tmp of its own
case $3 in
/tmp/*) bind=--bind-ro=$3:$3:norbind ;;
esac
base=$4
shift 4
for hierarchy; do
    mkdir -p "$hierarchy/$group"
    echo $$ > "$hierarchy/$group/cgroup.procs"
done
mount -t tmpfs -o size=1g,mode=755 tmpfs "$where"
mkdir "$where/upper" "$where/work" "$where/root"
mount -t overlay overlay -o "lowerdir=$base,upperdir=$where/upper,workdir=$where/work" "$where/root"
cat > "$where/root/etc/systemd/system/tests.target" << 'UNIT'
[Unit]
Requires=sysinit.target dbus.socket systemd-journald.service
After=sysinit.target dbus.socket
AllowIsolate=yes
UNIT
rm -rf "$where/root/etc/receiptd" "$where/root/etc/systemd/system/receiptd"*
rm -f "$where/root/usr/sbin/policy-rc.d" "$where/root/var/lib/man-db/auto-update" # "start nothing"; slow
exec systemd-nspawn --quiet --register=no --keep-unit --link-journal=no --console=pipe --boot --directory="$where/root" \
    ${bind:+"$bind"} systemd.unit=tests.target systemd.journald.forward_to_console=no
"""


def obstacle():
    """The reason why no machine can be made here, or None."""
    if os.geteuid() != 0:
        return "needs root"
    if shutil.which("systemd-nspawn") is None:
        return "systemd-nspawn is not installed"
    tried = subprocess.run(["unshare", "--mount", "--propagation", "private", "mount", "-t", "tmpfs", "tmpfs", "/mnt"],
                           capture_output=True, text=True)
    return f"nothing can be mounted: {tried.stderr.strip()}" if tried.returncode else None


class Machine:
    def __init__(self, directory, release=HERE):
        self.directory, self.release, self._packages = Path(directory), release, {}
        self.directory.mkdir(parents=True, exist_ok=True)
        self.group = f"receiptd-{os.getpid()}"
        self.hierarchies = [path for path in (Path("/sys/fs/cgroup") / name for name in HIERARCHIES)
                            if (path / "cgroup.procs").exists()]
        self._console = open(self.directory.with_suffix(".console"), "wb")
        base = "/" if release == HERE else library(f"debian_to_build {release}")
        self._process = subprocess.Popen(
            ["unshare", "--mount", "--propagation", "private", "sh", "-euc", BOOT, "sh", self.directory, self.group,
             ROOT, base, *self.hierarchies],
            # From systemd 256 on it refuses to boot with version 1 of cgroups.
            env=os.environ if release == HERE else {**os.environ, "SYSTEMD_NSPAWN_UNIFIED_HIERARCHY": "1"},
            stdin=subprocess.DEVNULL, stdout=self._console, stderr=subprocess.STDOUT)
        try:
            self.leader = wait_for(self._find_leader, 60, "the machine's first process", details=self.console)
            wait_for(lambda: self.run("systemctl", "is-system-running", check=False).stdout.strip()
                     in ("running", "degraded"), 120, "a running system", details=self.console)
        except BaseException:
            self.close()
            raise

    def console(self):
        return self.directory.with_suffix(".console").read_text(errors="replace")[-4000:]

    def _find_leader(self):
        assert self._process.poll() is None, f"systemd-nspawn ended with {self._process.returncode}\n{self.console()}"
        pid = self._process.pid
        if Path(f"/proc/{pid}/comm").read_text().strip() != "systemd-nspawn":
            return None
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for child in children:
            if Path(f"/proc/{child}/comm").read_text().strip() == "systemd":
                return int(child)
        return None

    # ---- inside

    def run(self, *command, check=True, timeout=120, input=None):
        """Runs a command in the machine; output in the result."""
        entered = ["nsenter", "--target", str(self.leader), "--mount", "--pid", "--ipc", "--uts", "--net", "--cgroup",
                   "--", "env", "-i", "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", *map(str, command)]
        result = subprocess.run(entered, capture_output=True, text=True, errors="replace", timeout=timeout, input=input,
                                stdin=subprocess.DEVNULL if input is None else None)
        if check:
            assert result.returncode == 0, f"{' '.join(map(str, command))}: status {result.returncode}\n" \
                                           f"{result.stdout}{result.stderr}"
        return result

    def path(self, path):
        """A path of the machine, to be read and written from outside."""
        return Path(f"/proc/{self.leader}/root{path}")

    def write(self, path, text, mode=0o644):
        place = self.path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
        place.chmod(mode)

    def build_package(self, version=None):
        """scripts/package for this machine's release; the path of the .deb in the machine. For another release without the optimizer, which takes most
        of the time and matters to no unit."""
        if version not in self._packages:
            built = build_package(version, self.release)
            self._packages[version] = f"/root/{built.name}"
            shutil.copy(built, self.path(self._packages[version]))
        return self._packages[version]

    def close(self):
        """Kills the machine: it needs no orderly shutdown."""
        for hierarchy in self.hierarchies:
            _kill_all(hierarchy / self.group)
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()
        for hierarchy in self.hierarchies:
            _remove(hierarchy / self.group)
        self._console.close()


def _kill_all(group):
    for processes in group.rglob("cgroup.procs"):
        for pid in _pids(processes):
            try:
                os.kill(pid, 9)
            except ProcessLookupError:
                pass


def _pids(processes):
    try:
        return [int(pid) for pid in processes.read_text().split() if pid != "0"]
    except OSError:
        return []


def _remove(group):
    """A cgroup can be removed when its last process has been reaped."""
    deadline = time.monotonic() + 30
    while group.exists():
        for directory in sorted((path for path in [group, *group.rglob("*")] if path.is_dir()), reverse=True):
            try:
                directory.rmdir()
            except OSError:
                pass
        if time.monotonic() > deadline:
            break
        time.sleep(0.05)


class Unit:
    """One service of the machine."""

    def __init__(self, machine, name):
        self.machine, self.name = machine, name

    def systemctl(self, verb, *arguments, check=True):
        return self.machine.run("systemctl", verb, *arguments, self.name, check=check)

    def show(self, *properties):
        """{property: text}; one property gives its text alone."""
        lines = self.systemctl("show", "--property=" + ",".join(properties)).stdout.splitlines()
        found = dict(line.split("=", 1) for line in lines)
        return found[properties[0]] if len(properties) == 1 else found

    def journal(self):
        return self.machine.run("journalctl", "--unit", self.name, "--output=cat", "--no-pager").stdout

    def details(self):
        return self.systemctl("status", "--no-pager", "--full", "--lines=40", check=False).stdout

    def wait_for(self, condition, what, timeout=90):
        return wait_for(condition, timeout, what, interval=0.1, details=self.details)

    def wait_for_state(self, state, timeout=90):
        self.wait_for(lambda: self.show("ActiveState") == state, f"{self.name} {state}", timeout)

    def wait_for_status(self, pattern, timeout=90):
        return self.wait_for(lambda: re.search(pattern, self.show("StatusText")), f"status /{pattern}/", timeout)

    def wait_for_journal(self, pattern, timeout=90):
        return self.wait_for(lambda: re.search(pattern, self.journal(), re.MULTILINE), f"journal /{pattern}/", timeout)

    @property
    def pid(self):
        """Of the main process, as the machine counts."""
        return int(self.show("MainPID"))

    def signal(self, number):
        self.systemctl("kill", f"--signal={number}", "--kill-whom=main")

    def set(self, **settings):
        """A drop-in with these settings of [Service]."""
        text = "".join(f"{key}={value}\n" for key, value in settings.items())
        self.machine.write(f"/run/systemd/system/{self.name}.service.d/test.conf", f"[Service]\n{text}")
        self.machine.run("systemctl", "daemon-reload")

    def reset(self):
        """Stopped, and as the package has it."""
        self.machine.run("systemctl", "kill", "--signal=KILL", self.name, check=False)
        self.machine.run("systemctl", "stop", self.name, check=False)
        self.machine.run("systemctl", "reset-failed", self.name, check=False)
        shutil.rmtree(self.machine.path(f"/run/systemd/system/{self.name}.service.d"), ignore_errors=True)
        self.machine.run("systemctl", "daemon-reload")


def build_package(version=None, release=HERE):
    """scripts/package; the path of the .deb."""
    arguments = [*(["--version", version] if version else []), *(["--release", release] if release != HERE else [])]
    fast = {} if release == HERE else {"DEB_CFLAGS_SET": "-O0"}
    built = subprocess.run([ROOT / "scripts/package", *arguments], capture_output=True, text=True, env={**os.environ, **fast})
    assert built.returncode == 0, built.stdout + built.stderr
    return Path(built.stdout.strip().splitlines()[-1])
