"""A selection of the campaign: cycles of real processes under real faults, each exact; and the matrix is complete.

The whole campaign is scripts/campaign faults.
"""

import pytest

from faults import matrix
from faults.campaign import Campaign, repeat_command, select

SEED = 20261121


def test_every_cell_of_the_matrix_is_run_or_explained():
    matrix.check(select(()))


def play(directory, cycles, **options):
    """Runs the cycles of these numbers; returns the lines of those that this machine allows."""
    lines, errors = [], []
    campaign = Campaign(SEED, directory=directory, **options)
    try:
        for number in cycles:
            lines.append(campaign.run(number))
            if lines[-1].get("anomalies"):
                errors.append(f"{repeat_command(lines[-1])}\n{lines[-1]['anomalies']}")
    finally:
        errors += campaign.close()
    assert not errors, "\n".join(errors)
    assert campaign.pages_seen > 0, "no page was ever judged: the lights see nothing"
    return [line for line in lines if "skipped" not in line]


@pytest.mark.slow
@pytest.mark.parametrize("first", (0, 21))
def test_forty_cycles_of_as_many_kinds_are_exact(tmp_path, first):
    lines = play(tmp_path, range(first, first + 21), shapes=[1])
    assert len(lines) >= 20 and len({line["kind"] for line in lines}) >= 15


@pytest.mark.slow
def test_leaders_and_coordinators_of_three_brokers_may_die(tmp_path):
    assert len(play(tmp_path, range(4), only=("F31", "F35"))) == 4
