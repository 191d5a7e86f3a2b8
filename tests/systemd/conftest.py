"""A machine with systemd for the session, the package installed in it, and its units: once on this Debian, once on another release."""

import pytest

from support.machine import RELEASES, Machine, Unit, build_package, obstacle
from support.services import ROOT


@pytest.fixture(scope="session")
def package():
    """The one for this Debian."""
    return build_package()


@pytest.fixture(scope="session", params=RELEASES)
def machine(request):
    reason = obstacle()
    if reason:
        pytest.skip(f"no systemd-nspawn: {reason}")
    made = Machine(ROOT / f"build/systemd/machine-{request.param}", request.param)
    yield made
    made.close()


@pytest.fixture(scope="session")
def installed(machine):
    """The machine with the package."""
    machine.run("dpkg", "--install", machine.build_package())
    return machine


@pytest.fixture
def daemon(installed):
    unit = Unit(installed, "receiptd")
    yield unit
    unit.reset()


@pytest.fixture
def intake(installed):
    unit = Unit(installed, "receiptd-intake")
    yield unit
    unit.reset()


@pytest.fixture
def serve(installed):
    unit = Unit(installed, "receiptd-serve")
    yield unit
    unit.reset()


@pytest.fixture
def maintain(installed):
    unit = Unit(installed, "receiptd-maintain")
    yield unit
    unit.reset()
