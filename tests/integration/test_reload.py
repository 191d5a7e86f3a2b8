"""Another configuration while running: under load, one after the other, and with a ladder that has grown."""

import os
import re
import signal

import pytest

from oracle import ladder
from support.operations import ControlSocket, Operations
from support.reloading import Reloading
from support.servers import Postgres

EX_CONFIG = 78
STATUSES = [{"name": name, "code": code, **({} if parent is None else {"parent": ladder.NAME[parent]})}
            for code, name, parent in ladder.STATUSES]
FLAGS = [{"name": name, **({} if implied is None else {"implies": ladder.NAME[implied]})} for name, implied in ladder.FLAGS]
OVERRIDES = [{"channel": "email", "status": "BOUNCED_HARD", "becomes": "BOUNCED_HARD_EMAIL"}]
ADDED = [{"name": "RELAYED", "code": 350, "parent": "SENT"}, {"name": "CONVERTED", "code": 900, "parent": "CLICKED"}]


@pytest.fixture
def control(receiptd):
    made = ControlSocket(receiptd)
    yield made
    made.close()


def test_reloads_under_load_lose_nothing_and_leave_nothing_behind(create_world, control):
    """The short form of scripts/campaign reloads, which does a thousand."""
    world = create_world(30_000, seed=73)
    reloading = Reloading(world, control, per_second=6_000)
    reloading.begin()
    for turn in range(30):
        reloading.reload(turn)
    reloading.finish()
    assert reloading.refused == 10 and reloading.applied == 21
    assert max(reloading.resident) < 300e6 or "RECEIPTD_BINARY" in os.environ


# ---- the ladder


def ladder_of(statuses, overrides=OVERRIDES):
    return {"ladder": {"statuses": statuses, "flags": FLAGS, "overrides": overrides}}


@pytest.fixture
def oracle_knows(monkeypatch):
    """The oracle's ladder with more statuses."""

    def add(*statuses):
        for status in statuses:
            code, parent = status["code"], ladder.CODE[status["parent"]]
            for table, key, value in ((ladder.PARENT, code, parent), (ladder.NAME, code, status["name"]), (ladder.CODE, status["name"], code)):
                monkeypatch.setitem(table, key, value)
            monkeypatch.setitem(ladder.PATH, code, ladder.path(code))
            monkeypatch.setitem(ladder.CARRIED, code, ladder.carried(code))

    return add


def generations(world):
    return world.database.query("SELECT DISTINCT generation FROM receiptd.consumer_progress")


def test_a_ladder_grows_under_load_by_migrate_and_reload(create_world, control, oracle_knows):
    world = create_world(15_000, seed=74, batch={"max_events": 300})
    world.insert(world.stream.late)
    world.insert_ids("old", "new")
    process = world.installation.start()
    pages = Operations(process)
    pages.wait_until_ready()
    before = pages.get("/statusz").json["config"]["hash"]
    other = world.installation.directory / "other.yaml"  # an instance whose configuration comes later
    other.write_text(world.installation.config_path.read_text().replace(str(control.path), ""))
    world.feed(per_second=3_000)
    world.wait_for_progress(process)

    world.installation.configure(**ladder_of(STATUSES + ADDED))
    early = world.installation.command("ctl", "--socket", str(control.path), "reload", check=False)
    assert early.returncode == EX_CONFIG and "receiptd migrate" in early.stderr + early.stdout, early
    assert pages.get("/statusz").json["config"]["hash"] == before

    generation = generations(world)
    assert "go on" in world.installation.command("migrate").stdout
    assert generations(world) == generation and pages.get("/readyz").status == 200
    second = world.installation.start("b", config=other)
    second.wait_for_log("which has more than that of the configuration")
    Operations(second).wait_until_ready(60)
    world.wait_for_progress(second)
    assert process.running

    assert "applied: ladder.statuses" in control.ctl("reload").stdout
    second.stop()
    oracle_knows(*ADDED)
    world.feeder.join()
    world.topic.send([{"message_id": "old", "status": "CLICKED"}, {"message_id": "new", "status": "RELAYED"}],
                     [{"message_id": "old", "status": 900}])
    world.finish(process)
    assert world.database.query("SELECT message_id, status FROM receiptd.message_inbox WHERE campaign_id = 'c' ORDER BY 1") == \
        [("new", 350), ("old", 900)]
    assert pages.figures().get_one("receiptd_transitions_total", status="CONVERTED") == 1
    process.stop()


MORE_THAN_GROWTH = (
    (STATUSES[:-1], OVERRIDES, "status CLICKED (800) is gone"),
    ([s for s in STATUSES if s["name"] != "OPENED"] + [{"name": "SEEN", "code": 700, "parent": "DELIVERED"},
                                                       {"name": "OPENED", "code": 750, "parent": "DELIVERED"}], OVERRIDES,
     "status OPENED (700) is called SEEN now"),
    ([s | {"parent": "IN_GTW"} if s["name"] == "FAILED" else s for s in STATUSES], OVERRIDES,
     "status FAILED (440) has the parent 200 instead of 300"),
    (STATUSES, [], "the override of BOUNCED_HARD on channel email is gone"),
    (STATUSES, [*OVERRIDES, {"channel": "sms", "status": "EXPIRED", "becomes": "FAILED"}],
     "EXPIRED gets another meaning on channel sms"),
)


def test_a_ladder_that_does_more_than_grow_is_refused_with_the_reason(create_world, control):
    world = create_world(partitions=1, lanes=2)
    process = world.installation.start()
    Operations(process).wait_until_ready()
    for statuses, overrides, words in MORE_THAN_GROWTH:
        world.installation.configure(**ladder_of(statuses, overrides))
        refused = world.installation.command("ctl", "--socket", str(control.path), "reload", check=False)
        assert refused.returncode == EX_CONFIG and words in refused.stderr + refused.stdout, refused
    # One line of the log: what is refused, what follows, what to do.
    process.wait_for_log('msg="reload: refused: ladder: .*; the configuration stays as it was; HINT: while instances run a ladder can only grow')
    process.stop()


@pytest.mark.alone
def test_a_ladder_that_the_database_cannot_be_asked_for_is_to_be_reloaded_again(create_world, control, services):
    world = create_world(partitions=1, lanes=2)
    process = world.installation.start()
    pages = Operations(process)
    pages.wait_until_ready()
    world.installation.configure(**ladder_of(STATUSES + ADDED))
    world.installation.command("migrate")
    with world.database.connect() as operator, operator.transaction():
        operator.execute("LOCK TABLE receiptd.status_ladder, receiptd.status_path, receiptd.message_status_priority")
        refused = world.installation.command("ctl", "--socket", str(control.path), "reload", check=False)
    assert refused.returncode == EX_CONFIG and "HINT: reload again" in refused.stderr
    assert "refused: ladder: the database cannot be asked for it: " in refused.stderr
    server = Postgres(services)
    world.database.connection.close()
    server.stop_immediately()
    try:
        process.wait_for_log("is not connected", 30)
        refused = world.installation.command("ctl", "--socket", str(control.path), "reload", check=False)
    finally:
        server.start()
    assert refused.returncode == EX_CONFIG and "HINT: reload again when it is there" in refused.stderr
    assert "refused: ladder: PostgreSQL cannot be asked for it now" in refused.stderr
    assert len(re.findall("refused: ladder: .*; the configuration stays as it was", process.log())) == 2
    pages.wait_until_ready(60)
    assert "applied: ladder.statuses" in control.ctl("reload").stdout
    process.stop()


def test_a_reload_that_comes_while_another_is_under_way_is_done_after_it(create_world, control):
    world = create_world(partitions=1, lanes=2)
    process = world.installation.start()
    pages = Operations(process)
    pages.wait_until_ready()
    path = world.installation.config_path
    world.installation.configure(batch={"max_events": 77})
    first = path.read_bytes()
    world.installation.configure(batch={"max_events": 78})
    second = path.read_bytes()
    path.unlink()
    os.mkfifo(path)  # whoever reads it waits until something is written

    def writing():
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return None

    process.signal(signal.SIGHUP)
    pipe = process.wait_for(writing, what="the file is being read")
    process.signal(signal.SIGHUP)
    status = world.installation.command("ctl", "--socket", str(control.path), "status")
    assert status.returncode == 0  # the loop has seen the signal, too
    path.unlink()
    path.write_bytes(second)
    os.write(pipe, first)
    os.close(pipe)
    pages.wait_for_figure("receiptd_reloads_total", lambda value: value == 2, result="applied")
    assert "nothing has changed" in control.ctl("reload").stdout
    process.stop()
