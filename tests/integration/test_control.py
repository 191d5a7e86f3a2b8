"""What an operator does to a running receiptd: over the socket, by SIGHUP, and what the log makes of it."""

import fcntl
import json
import os
import re
import signal
import socket
import stat
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.operations import ControlSocket, Operations
from support.secure import Authority

EX_USAGE, EX_UNAVAILABLE, EX_TEMPFAIL, EX_CONFIG = 64, 69, 75, 78


@pytest.fixture
def control(receiptd):
    made = ControlSocket(receiptd)
    yield made
    made.close()


LANES_WAIT = ("SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND application_name LIKE 'receiptd/%/lanes-%'"
              " AND datname = current_database()")


def start(world):
    process = world.installation.start()
    pages = Operations(process)
    pages.wait_until_ready()
    return process, pages


def sent(*ids):
    return [{"message_id": id, "status": "SENT"} for id in ids]


def test_the_socket_is_for_its_user_alone_and_tells_what_goes_on(create_world, control):
    world = create_world(partitions=2, lanes=4)
    assert control.ctl("status", check=False).returncode == EX_UNAVAILABLE
    process, pages = start(world)
    assert stat.S_IMODE(os.stat(control.path).st_mode) == 0o600
    assert re.search(r"^ready +yes$", control.ctl("status").stdout, re.MULTILINE)
    assert control.json("status")["config"]["hash"] == pages.get("/statusz").json["config"]["hash"]
    assert [lane["lane"] for lane in control.json("lanes")] == [0, 1, 2, 3]
    assert "ready" in control.ctl("lanes").stdout
    wrong = control.ctl("dance", check=False)
    assert wrong.returncode == EX_USAGE and "unknown verb" in wrong.stderr
    assert control.ctl("resync", "9", check=False).returncode == EX_USAGE
    process.stop()
    assert not control.path.exists()


def outcomes(world):
    """What the receipts have become so far. Positions say less: those of idle lanes follow later, without any receipt."""
    return world.database.value(
        "SELECT (SELECT COALESCE(sum(events), 0) FROM receiptd.campaign_funnel)"
        " + (SELECT count(*) FROM receiptd.parked_event) + (SELECT count(*) FROM receiptd.dead_letter)"
    )


def test_pause_resume_and_drain_lose_nothing(create_world, control):
    world = create_world(25_000, seed=71, batch={"max_events": 500})
    world.insert(world.stream.late)
    process, pages = start(world)
    feeder = world.feed(per_second=10_000)
    world.wait_for_progress(process)
    control.ctl("pause")
    assert pages.get("/readyz").json["reasons"] and pages.get("/livez").status == 200
    assert "drained" in control.ctl("drain").stdout
    at_rest = outcomes(world)
    assert pages.figures().get_one("receiptd_queue_bytes") == 0
    assert pages.figures().get_one("receiptd_paused") == 1
    control.ctl("resync")
    time.sleep(0.5)
    assert outcomes(world) == at_rest
    control.ctl("resume")
    feeder.join()
    world.finish(process)
    process.stop()


def test_it_answers_while_the_process_is_ending(create_world, control):
    patient = {"lock_timeout": "30s", "zombie_timeout": "30s"}
    world = create_world(partitions=1, lanes=2, shutdown={"deadline": "60s"}, postgres=patient)
    world.insert_ids("m")
    process, _ = start(world)
    process.wait_for_log("consuming 1 partitions")
    with world.database.connect() as operator, operator.transaction():
        operator.execute("LOCK TABLE receiptd.message_inbox IN ACCESS EXCLUSIVE MODE")
        world.topic.send(sent("m"))
        world.wait(lambda: world.database.value(LANES_WAIT) > 0, process)
        process.signal(signal.SIGTERM)
        process.wait_for_log("stopping: SIGTERM")
        assert control.json("status")["stopping"]
        assert re.search(r"^ready +no\n +stopping$", control.ctl("status").stdout, re.MULTILINE)
        assert control.ctl("resume", check=False).returncode == EX_TEMPFAIL
    process.expected_status = process.wait()
    assert process.expected_status == 0


def test_a_client_that_says_nothing_or_nonsense_harms_nobody(create_world, control):
    world = create_world(partitions=1, lanes=2)
    process, _ = start(world)
    silent = [socket.socket(socket.AF_UNIX) for _ in range(10)]
    for client in silent:
        client.connect(str(control.path))
    for nonsense in (b"\n", b"x" * 10_000, b"text \x00\xff\n", b"json\n", b"json status extra words here too many\n"):
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(control.path))
            try:
                client.sendall(nonsense)
                client.settimeout(10)
                client.recv(100)
            except ConnectionError:
                pass
    assert control.json("status")["readiness"]["ready"]
    for client in silent:
        client.close()
    process.stop()


def test_clients_that_say_nothing_are_let_go_and_make_room(create_world, control):
    world = create_world(partitions=1, lanes=2)
    process, _ = start(world)
    silent = [socket.socket(socket.AF_UNIX) for _ in range(17)]
    for client in silent:
        client.connect(str(control.path))
        client.settimeout(30)
    assert silent[16].recv(100) == b""  # sixteen at once
    assert control.ctl("status", check=False).returncode == EX_UNAVAILABLE
    assert [client.recv(100) for client in silent[:16]] == [b""] * 16
    assert control.json("status")["readiness"]["ready"]
    for client in silent:
        client.close()
    process.stop()


def test_a_drain_that_does_not_come_to_its_end_is_said(create_world, control):
    patient = {"lock_timeout": "30s", "zombie_timeout": "30s"}
    world = create_world(partitions=1, lanes=2, shutdown={"deadline": "1s"}, postgres=patient)
    world.insert_ids("m")
    process, pages = start(world)
    process.wait_for_log("consuming 1 partitions")
    with world.database.connect() as operator, operator.transaction(), ThreadPoolExecutor(1) as pool:
        operator.execute("LOCK TABLE receiptd.message_inbox IN ACCESS EXCLUSIVE MODE")
        world.topic.send(sent("m"))
        world.wait(lambda: world.database.value(LANES_WAIT) > 0, process)
        late = control.ctl("drain", check=False)
        assert late.returncode == EX_TEMPFAIL and "not drained within shutdown.deadline; nothing more is taken in" in late.stderr
        world.installation.configure(shutdown={"deadline": "1m"})
        control.ctl("reload")
        drain = pool.submit(control.ctl, "drain", check=False)
        process.wait_for(lambda: control.json("status")["hold"] == "draining", what="it drains")
        time.sleep(0.2)
        control.ctl("resume")
        ended = drain.result(30)
        assert ended.returncode == EX_TEMPFAIL and "the drain was ended by another request" in ended.stderr
    world.wait_until_consumed(process)
    assert world.database.value("SELECT status FROM receiptd.message_inbox WHERE message_id = 'm'") == 300
    process.stop()


def test_a_socket_that_cannot_be_is_said_and_stops_nothing(create_world, control):
    world = create_world(partitions=1, lanes=2)
    control.path.mkdir()
    process, _ = start(world)
    process.wait_for_log(f"level=warn .*no control socket at {control.path}: ")
    process.stop()
    assert [path.name for path in control.folder.iterdir()] == [control.path.name]  # nothing of it is left
    control.path.rmdir()
    world.installation.configure(control={"socket": str(control.folder / "none" / "s")})
    process = world.installation.start("b")
    process.wait_for_log(f"level=info .*no control socket: the folder of {control.folder}/none/s cannot be written")
    process.wait_for_log('msg="ready"')
    process.stop()


def test_a_second_instance_leaves_the_socket_of_the_first_alone(create_world, control):
    world = create_world(partitions=1, lanes=2)
    first, _ = start(world)
    second = world.installation.start("b")
    second.wait_for_log("another instance answers")
    second.stop()
    assert control.json("status")["pid"] == first.pid
    first.kill()
    third = world.installation.start("c")
    third.wait_for_log("metrics and status at")
    assert control.json("status")["pid"] == third.pid
    third.stop()


# ---- reload


def test_a_reload_says_what_is_applied_and_what_needs_a_restart(create_world, control):
    world = create_world(partitions=1, lanes=4)
    process, pages = start(world)
    status = pages.get("/statusz").json
    before, group = status["config"]["hash"], status["kafka"]["group"]
    assert "nothing has changed" in control.ctl("reload").stdout
    world.installation.configure(batch={"max_events": 77}, log={"level": "debug", "levels": {"kafka": "warn"}},
                                 kafka={"group": "another"}, memory={"budget": "1MiB"})
    told = control.ctl("reload").stdout
    assert re.search(r"^applied: batch.max_events memory.budget log.level log.levels$", told, re.MULTILINE), told
    assert re.search(r"^needs a restart: kafka.group$", told, re.MULTILINE), told
    status = pages.get("/statusz").json
    assert status["config"]["hash"] != before and status["kafka"]["group"] == group
    assert pages.figures().get_one("receiptd_queue_budget_bytes") == 1 << 20
    assert pages.figures().get_one("receiptd_reloads_total", result="applied") == 2
    process.stop()


def test_a_wrong_configuration_is_refused_as_a_whole(create_world, control):
    world = create_world(partitions=1, lanes=4)
    process, pages = start(world)
    before = pages.get("/statusz").json["config"]["hash"]
    good = world.installation.config_path.read_text()
    world.installation.write_config(good + "batch: {max_events: 5, linger: never}\n")
    assert "--socket" in control.ctl("reload", check=False).stderr
    refused = world.installation.command("ctl", "--socket", str(control.path), "reload", check=False)
    assert refused.returncode == EX_CONFIG and "batch.linger" in refused.stderr
    process.signal(signal.SIGHUP)
    pages.wait_for_figure("receiptd_reloads_total", lambda value: value == 2, result="refused")
    world.installation.config_path.unlink()
    process.signal(signal.SIGHUP)
    pages.wait_for_figure("receiptd_reloads_total", lambda value: value == 3, result="refused")
    world.installation.write_config(good)
    assert pages.get("/statusz").json["config"]["hash"] == before
    assert control.ctl("reload").returncode == 0
    process.stop()


def test_one_reload_at_a_time_and_none_at_the_end(create_world, control):
    """The file is a pipe here: whoever reads it waits until something is written."""
    world = create_world(partitions=1, lanes=4)
    process, pages = start(world)
    path = world.installation.config_path
    good = path.read_bytes()
    path.unlink()
    os.mkfifo(path)

    def ask(*words):
        return world.installation.command("ctl", "--socket", str(control.path), *words, check=False)

    def writing():
        try:
            return os.open(path, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return None  # nobody reads yet

    def is_read():
        return process.wait_for(writing, what="the file is being read")

    def finish(pipe):
        os.write(pipe, good)
        os.close(pipe)

    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(ask, "reload")
        pipe = is_read()
        second = ask("reload")
        assert second.returncode == EX_TEMPFAIL and "a reload is under way already" in second.stderr
        finish(pipe)
        assert "nothing has changed" in first.result(30).stdout

        with socket.socket(socket.AF_UNIX) as gone:  # asks, and does not wait for the answer
            gone.connect(str(control.path))
            gone.sendall(b"text reload\n")
            pipe = is_read()
        assert ask("status").returncode == 0
        finish(pipe)
        pages.wait_for_figure("receiptd_reloads_total", lambda value: value == 2, result="applied")

        at_the_end = pool.submit(ask, "reload")
        pipe = is_read()
        process.signal(signal.SIGTERM)
        process.wait_for_log("stopping: SIGTERM")
        assert ask("pause").returncode == EX_TEMPFAIL
        finish(pipe)
        told = at_the_end.result(30)
        assert "refused: the process is about to end" in told.stderr or "nothing has changed" in told.stdout
    process.expected_status = process.wait()
    assert process.expected_status == 0


def test_a_reload_says_which_certificate_it_does_not_take_and_what_it_cannot_change(create_world, control, tmp_path):
    authority = Authority(tmp_path, "ours")
    pem = authority.issue("pages", "pages", "IP:127.0.0.1")
    world = create_world(partitions=1, lanes=2, http={"tls_certificate": str(pem), "tls_key": str(tmp_path / "pages.key")})
    process = world.installation.start()
    process.wait_for_log('msg="ready"')
    good = pem.read_text()
    pem.write_text("no certificate")
    world.installation.configure(batch={"max_events": 77})
    refused = control.ctl("reload", check=False)
    assert refused.returncode == EX_CONFIG and f"refused: http.tls_certificate: certificate {pem} cannot be used" in refused.stderr
    pem.write_text(good)
    world.installation.configure(postgres={"connections": 4}, lanes=4)
    told = control.ctl("reload").stdout
    assert "needs a restart: postgres.connections, which is above the lanes in effect" in told
    assert re.search("^applied: batch.max_events$", told, re.MULTILINE) and re.search("^needs a restart: lanes$", told, re.MULTILINE), told
    process.stop()


@pytest.mark.slow
def test_the_number_of_connections_changes_under_load(create_world, control):
    world = create_world(80_000, seed=72, batch={"max_events": 300})
    world.insert(world.stream.late)
    process, pages = start(world)
    feeder = world.feed(per_second=12_000)
    for count in (1, 8, 3, 2):
        world.wait_for_progress(process)
        world.installation.configure(postgres={"connections": count})
        assert "postgres.connections" in control.ctl("reload").stdout
        pages.wait_for_figure("receiptd_postgres_connection_up", lambda value, count=count: value == count + 1)
        pages.wait_until_ready()
    feeder.join()
    world.finish(process)
    process.stop()


def test_a_new_password_is_taken_for_the_next_connection(create_world, create_topic, control, services):
    world = create_world(partitions=1, lanes=2)
    world.insert_ids("m", "n")
    role = f"rotating_{os.getpid()}"
    with world.database.connect() as owner:
        owner.execute(f"CREATE ROLE {role} LOGIN SUPERUSER PASSWORD 'first'")
    secret = world.installation.directory / "dsn"
    try:
        tcp = dict(part.split("=", 1) for part in services.tcp_dsn.split() if not part.startswith(("user", "password")))
        place = f"host={tcp['host']} port={tcp['port']} dbname={world.database.name} user={role} password="
        secret.write_text(place + "first")
        world.installation.configure(
            postgres={"dsn": f"file:{secret}"}, actions={"endpoints": [{"name": "e", "url": "https://example.org/"}]},
            pipelines=[{"name": "p", "on": {"topic": str(create_topic(1))}, "webhook": "e"}])
        process, pages = start(world)
        with world.database.connect() as owner:
            owner.execute(f"ALTER ROLE {role} PASSWORD 'second'")
        secret.write_text(place + "second")
        assert "postgres.dsn" in control.ctl("reload").stdout
        with world.database.connect() as owner:
            owner.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (role,))
        process.wait_for_log("is not connected")
        process.wait_for(lambda: world.database.value("SELECT count(*) FROM pg_stat_activity WHERE usename = %s"
                                                      " AND application_name LIKE '%%/action%%'", role) >= 2,
                         60, "actions and their reader of topics are connected again")
        world.topic.send(sent("m"))
        world.wait_until_consumed(process)
        pages.wait_until_ready()
        for text in (process.log(), pages.get("/statusz").text, control.ctl("reload").stdout):
            assert "second" not in text and "password=first" not in text
        process.stop()
    finally:
        with world.database.connect() as owner:
            owner.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = %s", (role,))
            owner.execute(f"DROP ROLE {role}")


# ---- log


def test_levels_are_per_component_and_change_while_running(create_world, control):
    world = create_world(partitions=1, lanes=2, log={"levels": {"postgres": "debug"}})
    world.insert_ids("m", "n")
    process, _ = start(world)
    world.topic.send(sent("m"))
    world.wait_until_consumed(process)
    process.wait_for_log("level=debug component=postgres")
    assert "level=debug component=receipts" not in process.log()
    control.ctl("log-level", "postgres", "warn")
    control.ctl("log-level", "error")
    quiet = len(process.log())
    world.topic.send(sent("n"))
    world.wait_until_consumed(process)
    assert "level=debug" not in process.log()[quiet:] and "level=info component=postgres" not in process.log()[quiet:]
    assert control.ctl("log-level", "loud", check=False).returncode == EX_USAGE
    assert control.ctl("log-level", "attic", "info", check=False).returncode == EX_USAGE
    process.stop()


def test_lines_of_one_kind_are_limited_and_the_rest_is_counted(create_world):
    world = create_world(partitions=1, lanes=2, log={"burst": 5})
    process, pages = start(world)
    world.topic.send(*[[{"message_id": "+491701234567", "status": "NONSENSE"}] for _ in range(100)])
    process.wait_for_log("95 more lines like this were suppressed: dead letter")
    assert process.log().count('msg="dead letter: topic') == 5
    assert "+491701234567" not in process.log()
    process.stop()


def test_a_stuck_reader_of_the_log_stops_nothing(create_world):
    world = create_world(3_000, seed=74, log={"level": "debug", "burst": 0})
    world.insert(world.stream.late)
    reader, writer = os.pipe()
    fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    process = subprocess.Popen([world.installation.command_binary(), "run", "--config", world.installation.config_path],
                               stdout=subprocess.DEVNULL, stderr=writer, stdin=subprocess.DEVNULL)
    try:
        os.close(writer)
        world.produce()
        world.finish()
        os.set_blocking(reader, False)
        seen = os.read(reader, 1 << 20)
        assert all(line.startswith(b"time=") for line in seen.splitlines()[1:-1])
        deadline = time.monotonic() + 60
        while b"lines were lost: the error output was not read" not in seen and time.monotonic() < deadline:
            time.sleep(0.05)
            try:
                seen += os.read(reader, 1 << 20)
            except BlockingIOError:
                pass
        assert b"lines were lost: the error output was not read" in seen
    finally:
        process.terminate()
        status = process.wait(30)
        os.close(reader)
    assert status == 0


def test_the_journal_gets_priorities_and_json_stays_json(create_world):
    world = create_world(partitions=1, lanes=2, log={"format": "json"})
    ours, theirs = socket.socketpair()
    place = os.fstat(theirs.fileno())
    environment = {**os.environ, "JOURNAL_STREAM": f"{place.st_dev}:{place.st_ino}"}
    process = subprocess.Popen([world.installation.command_binary(), "run", "--config", world.installation.config_path],
                               stdout=subprocess.DEVNULL, stderr=theirs.fileno(), stdin=subprocess.DEVNULL,
                               env=environment)
    theirs.close()
    ours.settimeout(30)
    lines = b""
    while b'"ready"' not in lines:
        lines += ours.recv(65536)
    process.terminate()
    while data := ours.recv(65536):
        lines += data
    assert process.wait(30) == 0
    for line in lines.splitlines():
        priority, text = re.fullmatch(rb"<(\d)>(.*)", line).groups()
        assert {3: "error", 4: "warn", 6: "info", 7: "debug"}[int(priority)] == json.loads(text)["level"]
