"""A machine with systemd for the session, the package installed in it, and the two units."""

import pytest

from support.machine import Machine, Unit, build_package, obstacle
from support.services import ROOT


@pytest.fixture(scope="session")
def package():
    return build_package()


@pytest.fixture(scope="session")
def machine():
    reason = obstacle()
    if reason:
        pytest.skip(f"no systemd-nspawn: {reason}")
    made = Machine(ROOT / "build/systemd/machine")
    yield made
    made.close()


@pytest.fixture(scope="session")
def installed(machine, package):
    """The machine with the package, whose files lie below this checkout and so in the machine as well."""
    machine.run("dpkg", "--install", package)
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
