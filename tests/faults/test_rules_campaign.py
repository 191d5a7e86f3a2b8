"""A small part of scripts/campaign rules: histories with all rules on, among faults."""

from rules import kinds
from rules.__main__ import Rounds

SEED = 20261126
QUICK = ("crashed", "postgres-cut-down", "store-dropped")


def test_each_kind_comes_once_before_any_comes_again():
    names = kinds.load(disk=True).keys()
    turns = [kinds.draw(SEED, names, turn) for turn in range(2 * len(names))]
    assert set(turns[: len(names)]) == set(turns[len(names) :]) == set(names)


def test_rules_count_exactly_among_faults(tmp_path):
    rounds = Rounds(SEED, len(QUICK), tmp_path, QUICK)
    try:
        rounds.run(0, 1_500, "b")  # some messages come after their receipts
    finally:
        rounds.close()
    assert (rounds.totals["anomalies"], set(rounds.played)) == (0, set(QUICK))
