"""The container image, made as config/container/Dockerfile says: from its COPY list alone, by its own commands."""

import os
import re
import shutil
import subprocess

import pytest

from support.services import ROOT

DOCKERFILE = ROOT / "config/container/Dockerfile"


class Dockerfile:
    def __init__(self, text):
        lines = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", text, flags=re.MULTILINE)).splitlines()
        self.instructions = [line.split(maxsplit=1) for line in lines if line.strip()]

    def of(self, name):
        return [rest for word, rest in self.instructions if word == name]

    @property
    def copied(self):
        """(sources, target) of each COPY from the checkout."""
        words = [rest.split() for rest in self.of("COPY") if not rest.startswith("--")]
        return [(those[:-1], those[-1]) for those in words]

    @property
    def packages(self):
        """Each name that apt-get gets; alternatives count as one name, in their order."""
        install = self.of("RUN")[0]
        names = re.search(r"--no-install-recommends ([^&]*)", install).group(1).split()
        first, second = re.search(r"\{ [^;]*--no-install-recommends (\S+) \|\| [^;]*--no-install-recommends (\S+); \}", install).groups()
        return {*names, f"{first}|{second}"}


def copy(sources, target, directory):
    for source in sources:
        path = ROOT / source
        place = directory / target.lstrip("/")
        if path.is_dir():
            shutil.copytree(path, place)
        elif target.endswith("/"):
            place.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)
        else:
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, place)


def test_its_copy_list_holds_all_that_its_build_needs_and_the_image_runs(tmp_path):
    if os.geteuid() != 0:
        pytest.skip("needs root: the image has files of another user, and runs in a root of its own")
    file = Dockerfile(DOCKERFILE.read_text())
    workdir, = file.of("WORKDIR")
    image = tmp_path / "image"
    for sources, target in file.copied:
        copy(sources, target, tmp_path / "build" / ("" if target.startswith("/") else workdir.lstrip("/")))
    (_, command) = file.of("RUN")
    assert "collect build/receiptd /image" in command
    done = subprocess.run(["sh", "-euc", command.replace("/image", str(image))], cwd=tmp_path / "build" / workdir.lstrip("/"), capture_output=True, text=True,
                          env={"PATH": f"{tmp_path}/build/usr/local/bin:{os.environ['PATH']}", "CFLAGS": "-O0", "BUILD": "build", "MAKEFLAGS": "-j4"})
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    entry, = re.findall(r'"([^"]*)"', *file.of("ENTRYPOINT"))
    told = subprocess.run(["chroot", "--userspec", *file.of("USER"), image, entry, "version"], capture_output=True, text=True)
    assert told.returncode == 0 and told.stdout.startswith("receiptd "), told.stdout + told.stderr


def test_its_packages_are_those_that_the_build_needs_everywhere():
    names = subprocess.run(["sh", "-c", f"ROOT={ROOT}; . {ROOT}/scripts/lib/packages.sh; echo $PACKAGES_BUILD ca-certificates tzdata"],
                           capture_output=True, text=True, check=True).stdout.split()
    assert Dockerfile(DOCKERFILE.read_text()).packages == set(names)
