"""The judge of lights does what it says: a false light is an anomaly, a true one is none."""

from types import SimpleNamespace

import pytest

from faults import lights


class Database:
    """Answers the positions."""

    def __init__(self, positions):
        self.positions = positions

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass

    def execute(self, _):
        return SimpleNamespace(fetchall=self.positions.items)


@pytest.fixture
def create_lights(monkeypatch):
    """create_lights(pages, ends, positions): judged at 0 s and at 20 s, as if nothing had changed meanwhile."""
    made = []

    def create(pages, ends=None, positions=None):
        era = SimpleNamespace(lab=SimpleNamespace(brokers="127.0.0.1:1"), topic=SimpleNamespace(partitions=2),
                              database=SimpleNamespace(dsn=""), group_log=lambda: "")
        judge = lights.Lights(era)
        made.append(judge)
        judge.pages = lambda: pages
        monkeypatch.setattr(lights.psycopg, "connect", lambda *_, **__: Database(positions or {}))
        for now in (0.0, 20.0):
            monkeypatch.setattr(lights.time, "monotonic", lambda now=now: now)
            judge.ends.append((now, ends or {0: 0, 1: 0}))
            judge.judge()
        return judge

    yield create
    for judge in made:
        judge.consumer.close()


def test_a_partition_that_no_instance_has_behind_a_green_light_is_an_anomaly(create_lights):
    judge = create_lights({"a": (True, {0: 0})})
    assert list(judge.anomalies) == ["green light"] and "partition 1" in judge.anomalies["green light"][0]
    assert judge.seen == 2


def test_a_red_light_may_have_idle_partitions(create_lights):
    assert not create_lights({"a": (False, {0: 0})}).anomalies


def test_every_partition_with_an_instance_is_no_anomaly(create_lights):
    assert not create_lights({"a": (True, {0: 0}), "b": (True, {1: None})}, {0: 7, 1: 9}, {0: 7, 1: 3}).anomalies


def test_a_lag_of_0_before_records_that_are_not_applied_is_an_anomaly(create_lights):
    judge = create_lights({"a": (True, {0: 0, 1: 0})}, {0: 7, 1: 9}, {0: 7, 1: 3})
    assert list(judge.anomalies) == ["lag of 0"] and "partition 1 stands at 3" in judge.anomalies["lag of 0"][0]


def test_a_judge_that_breaks_is_an_anomaly_too(create_lights, monkeypatch):
    judge = create_lights({})
    monkeypatch.setattr(lights, "EVERY", 0)
    judge.note_ends = lambda: {}["no such key"]
    judge.run()
    assert list(judge.anomalies) == ["the lights themselves"]
