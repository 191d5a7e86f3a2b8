"""Who unsubscribes, complains or bounces gets nothing more, over all campaigns: from the receipt to the call that does not come."""

import csv
import io
import random

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from support import reader
from support.site import Site
from test_actions import LONG, create_actions, receipt, receiver, wait_for_runs  # noqa: F401

SUPPRESSION = {"subject": "customer_id"}
REMIND = {"name": "remind", "on": {"status": "SENT", "match": {"campaign": "second"}}, "subject": "customer_id",
          "webhook": "crm", "unless": ["suppressed"]}


@pytest.fixture
def create_people(create_actions):  # noqa: F811
    """A world of persons. world.add(id=(org, campaign, person), …) inserts their messages."""

    def create(*pipelines, suppression=SUPPRESSION, **settings):
        world = create_actions(list(pipelines), suppression=suppression, inbox={"columns": {"customer_id": "customer_id"}}, **settings)
        def add(**messages):
            with world.database.connect() as connection, connection.cursor() as cursor:
                cursor.executemany("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id, customer_id) VALUES (%s, %s, %s, %s)",
                                   [(id, *whose) for id, whose in messages.items()])
                connection.commit()

        world.add = add
        return world

    return create


def suppressed(world):
    return {(person, kind): made_by for person, kind, made_by in world.database.query(
        "SELECT person, class, made_by FROM receiptd.suppression ORDER BY id")}


def called(receiver):  # noqa: F811
    return sorted(call.body["message_id"] for call in receiver.seen())


def test_who_unsubscribes_in_one_campaign_is_passed_over_in_the_next(create_people, receiver):  # noqa: F811
    world = create_people(REMIND)
    world.add(a1=("o", "first", "ann"), a2=("o", "second", "ann"), a3=("another", "second", "ann"), b1=("o", "first", "bob"),
              b2=("o", "second", "bob"), c1=("o", "first", None), c2=("o", "second", None), d1=("o", "first", "dan"), d2=("o", "second", "dan"))
    process = world.installation.start()
    world.topic.send(receipt("a1", "UNSUBSCRIBED", at="2026-11-01T10:00:00Z"), receipt("b1", "CLICKED"), receipt("c1", "UNSUBSCRIBED"),
                     receipt("d1", "BOUNCED_HARD", channel="email"))
    world.wait_until_consumed(process)
    world.topic.send(*[receipt(id, "SENT") for id in ("a2", "a3", "b2", "c2", "d2")])
    wait_for_runs(world, process, {"done": 5})
    assert called(receiver) == ["a3", "b2", "c2"]
    assert suppressed(world) == {("ann", "UNSUBSCRIBED"): "receipt", ("dan", "BOUNCED_HARD_EMAIL"): "receipt"}
    assert world.database.query("SELECT org_id, message_id, since = '2026-11-01T10:00:00Z' FROM receiptd.suppression WHERE person = 'ann'") == [("o", "a1", True)]
    assert world.database.value("SELECT count(*) FROM receiptd.action WHERE class = 'passed_over'") == 2
    world.topic.send(receipt("d1", "DELIVERED"), receipt("d1", "OPENED"))  # a correction takes nothing back
    world.wait_until_consumed(process)
    assert world.database.value("SELECT receiptd.is_suppressed('o', 'dan')")
    process.stop()


def test_a_receipt_that_waited_for_its_row_suppresses_when_the_row_comes(create_people, receiver):  # noqa: F811
    world = create_people(REMIND)
    process = world.installation.start()
    world.topic.send(receipt("a1", "COMPLAINED", at="2026-11-01T10:00:00Z"))
    world.wait_until_consumed(process)
    assert suppressed(world) == {}
    world.add(a1=("o", "first", "ann"))
    world.wait_until_woken(process, LONG)
    world.wait(lambda: suppressed(world) == {("ann", "COMPLAINED"): "receipt"}, process, LONG, "she is suppressed")
    assert world.database.value("SELECT since = '2026-11-01T10:00:00Z' FROM receiptd.suppression")
    process.stop()


def test_a_status_that_an_expiry_gives_suppresses_as_well(create_people):
    world = create_people(suppression=SUPPRESSION | {"on": ["UNKNOWN"]})
    world.installation.configure(inbox={"expiry": [{"after": "1h"}]})
    world.add(a1=("o", "first", "ann"))
    process = world.installation.start()
    world.topic.send(receipt("a1", "SENT", at="2026-11-01T10:00:00Z"))
    world.wait_until_consumed(process)
    process.stop()
    world.database.execute("UPDATE receiptd.message_inbox SET created_at = now() - interval '1 day', updated_at = now() - interval '1 day'")
    world.installation.command("expire")
    assert suppressed(world) == {("ann", "UNKNOWN"): "receipt"}


def test_soft_bounces_of_lanes_that_know_nothing_of_each_other_add_up(create_people, receiver):  # noqa: F811
    world = create_people(REMIND, suppression=SUPPRESSION | {"soft_count": 4, "soft_within": "1d"})
    persons = [f"p{n}" for n in range(40)]
    world.add(**{f"{person}-{n}": ("o", "first", person) for person in persons for n in range(4)},
              **{f"{person}-next": ("o", "second", person) for person in persons})
    processes = [world.installation.start(name) for name in "ab"]
    few = set(persons[:20])
    bounces = [receipt(f"{person}-{n}", "BOUNCED_SOFT", at=f"2026-11-01T1{n}:00:00Z") for person in persons for n in range(4 - (person in few))]
    random.Random(40).shuffle(bounces)
    world.topic.send(*bounces)
    world.wait_until_consumed(processes[0])
    assert {p for p, in world.database.query("SELECT p FROM unnest(%s::text[]) p WHERE receiptd.is_suppressed('o', p)", persons)} == set(persons) - few
    world.topic.send(*[receipt(f"{person}-next", "SENT") for person in persons])
    wait_for_runs(world, processes[0], {"done": 40})
    assert called(receiver) == sorted(f"{person}-next" for person in few)
    for process in processes:
        process.stop()


def test_over_kills_every_person_is_suppressed_once_and_nobody_is_called_after(create_people, receiver):  # noqa: F811
    world = create_people(REMIND)
    world.add(**{f"m{n}": ("o", "first", f"p{n}") for n in range(3000)}, **{f"n{n}": ("o", "second", f"p{n}") for n in range(3000)})
    out = [n for n in range(3000) if n % 3 == 0]
    for part in range(3):
        process = world.installation.start()
        world.topic.send(*[receipt(f"m{n}", "UNSUBSCRIBED" if n % 3 == 0 else "CLICKED") for n in range(part * 1000, part * 1000 + 1000)])
        world.wait_for_progress(process)
        process.kill()
    process = world.installation.start()
    world.wait_until_consumed(process)
    assert world.database.value("SELECT count(*) FROM receiptd.suppression") == len(out)
    world.topic.send(*[receipt(f"n{n}", "SENT") for n in range(3000)])
    world.wait_until_consumed(process)
    wait_for_runs(world, process, {"done": 3000}, 2 * LONG)
    assert called(receiver) == sorted(f"n{n}" for n in range(3000) if n % 3)
    world.audit()
    process.stop()


# ---- by hand ---------------------------------------------------------------------------------------------------------

def run(world, *arguments, status=0):
    result = world.installation.command("suppressions", *arguments, check=False)
    assert result.returncode == status, result
    return result


def test_persons_are_added_listed_and_removed_by_hand(create_people):
    world = create_people()
    assert "nobody is suppressed" in run(world, "list").stdout
    assert run(world, "add", "o", "ann", "--class", "MANUAL", "--by", "eve").stdout == "1 added\n"
    assert run(world, "add", "o", "ann", "--class", "MANUAL", "--by", "eve", status=1).stdout == "0 added\n"
    (row,) = world.installation.json("suppressions", "list", "--format", "json")
    assert row | {"since": None} == {"org_id": "o", "person": "ann", "class": "MANUAL", "since": None, "suppressed": "true", "made_by": "eve",
                                     "message_id": None, "removed_at": None, "removed_by": None, "removed_because": None}
    assert run(world, "remove", "o", "ann", "--reason", "she asked", "--by", "eve").stdout == "1 removed\n"
    assert run(world, "remove", "o", "ann", "--reason", "she asked", "--by", "eve", status=1).stdout == "0 removed\n"
    (row,) = world.installation.json("suppressions", "list", "--person", "ann", "--format", "json")
    assert (row["suppressed"], row["removed_by"], row["removed_because"]) == ("false", "eve", "she asked")
    assert world.installation.json("suppressions", "list", "--org", "another", "--format", "json") == []
    for wrong, text in ((("add", "o", "ann", "--class", "MANUAL"), "--by"), (("add", "o", "ann", "--by", "eve"), "--class"),
                        (("remove", "o", "ann", "--by", "eve"), "--reason"), (("remove", "o", "--by", "eve", "--reason", "x"), "which person"),
                        (("import", "--by", "eve"), "which file"), (("list", "o"), "takes no argument")):
        assert text in run(world, *wrong, status=64).stderr
    assert 'the class "why not" is none' in run(world, "add", "o", "ann", "--class", "why not", "--by", "eve", status=65).stderr


def test_an_export_imported_elsewhere_suppresses_the_same_persons(create_people, tmp_path):
    world = create_people()
    world.database.execute("""INSERT INTO receiptd.suppression (key, org_id, person, class, soft_count, soft_within, since, message_id, removed_at)
        SELECT receiptd.suppression_key(o, p), o, CASE WHEN p <> 'gone' THEN p END, c, n, w::interval, t::timestamptz, m, r::timestamptz
        FROM (VALUES ('o', '+4366012', 'UNSUBSCRIBED', NULL, NULL, '2026-01-01T00:00:00.123456Z', 'm1', NULL),
                     ('', 'a "b", c', 'COMPLAINED', NULL, NULL, '2026-01-01T00:00:00Z', NULL, NULL),
                     ('o', 'gone', 'UNSUBSCRIBED', NULL, NULL, '2026-01-02T00:00:00Z', NULL, NULL),
                     ('o', 'back', 'UNSUBSCRIBED', NULL, NULL, '2026-01-02T00:00:00Z', NULL, '2026-01-03T00:00:00Z'),
                     ('o', 's', 'BOUNCED_SOFT', 2, '90 days', '2026-01-02T00:00:00Z', 'm2', NULL),
                     ('o', 's', 'BOUNCED_SOFT', 2, '90 days', '2026-01-03T00:00:00Z', 'm3', NULL)) v (o, p, c, n, w, t, m, r)""")
    stored = "SELECT key, org_id, person, class, soft_count, soft_within, since, message_id, made_by FROM receiptd.suppression WHERE removed_at IS NULL ORDER BY id"
    before, exported = world.database.query(stored), run(world, "export").stdout
    assert len(list(csv.DictReader(io.StringIO(exported)))) == 5 and "'+4366012" in exported
    (tmp_path / "all.csv").write_text(exported)
    assert run(world, "import", str(tmp_path / "all.csv"), "--by", "me").stdout == "5 lines read, 0 added\n"
    world.database.execute("DELETE FROM receiptd.suppression")
    assert run(world, "import", str(tmp_path / "all.csv"), "--by", "me").stdout == "5 lines read, 5 added\n"
    assert world.database.query(stored) == before
    assert world.database.value("SELECT bool_and(receiptd.is_suppressed(o, p)) FROM (VALUES ('o', '+4366012'), ('o', 'gone'), ('o', 's')) v (o, p)")


@pytest.mark.parametrize("text, error, added", [
    ("", "the file has no line of titles", 0), ("person,klass\nann,MANUAL\n", "line 1: there is no column klass", 0),
    ("person,class\nann,MANUAL\nbob\n", "line 3: has not as many fields", 0), ('person,class\n"ann,MANUAL\n', "line 2: a quote is not closed", 0),
    ("person,class,since\nann,MANUAL,soon\n", "line 2: invalid input syntax", 0), ("person\nann\n", 'line 2: the class "" is none', 0),
    (None, 'line 1002: the class "manual" is none', 1000)])
def test_a_line_that_is_wrong_is_named_and_its_thousand_is_not_written(create_people, tmp_path, text, error, added):
    world = create_people()
    many = "person,class\n" + "".join(f"p{n},MANUAL\n" for n in range(1000)) + "bob,manual\n"
    (tmp_path / "wrong.csv").write_text(many if text is None else text)
    result = run(world, "import", str(tmp_path / "wrong.csv"), "--org", "o", "--by", "me", status=65)
    assert error in result.stderr
    assert world.database.value("SELECT count(*) FROM receiptd.suppression") == added


def test_a_title_and_an_option_say_the_same_for_all_lines(create_people, tmp_path):
    world = create_people()
    (tmp_path / "some.csv").write_text("person,class\nann,\nbob,COMPLAINED\n")
    run(world, "import", str(tmp_path / "some.csv"), "--org", "o", "--class", "MANUAL", "--by", "me")
    assert suppressed(world) == {("ann", "MANUAL"): "me", ("bob", "COMPLAINED"): "me"}
    run(world, "import", str(tmp_path / "none.csv"), "--by", "me", status=66)


def test_an_erased_person_stays_suppressed_without_a_name(create_people):
    world = create_people(REMIND)
    world.add(a1=("o", "first", "ann"), b1=("o", "first", "bob"))
    process = world.installation.start()
    world.topic.send(receipt("a1", "UNSUBSCRIBED"), receipt("b1", "UNSUBSCRIBED"))
    world.wait_until_consumed(process)
    process.stop()
    world.installation.command("erase", "--customer", "ann")
    assert suppressed(world) == {(None, "UNSUBSCRIBED"): "receipt", ("bob", "UNSUBSCRIBED"): "receipt"}
    assert world.database.value("SELECT receiptd.is_suppressed('o', 'ann')")
    assert "ann" not in str(world.database.query("SELECT s::text FROM receiptd.suppression s"))


# ---- what is refused, and who may ask --------------------------------------------------------------------------------

def test_what_cannot_work_is_refused_or_noted(create_people):
    world = create_people(REMIND)

    def check(*options, **settings):
        world.installation.configure(**settings)
        result = world.installation.command("check-config", *options, check=False)
        return result.returncode, result.stderr

    status, notes = check()
    assert status == 0 and "suppressed" not in notes
    assert "suppressed looks for its org and subject, which are not org_id and customer_id" in \
        check(pipelines=[REMIND | {"subject": "message_id"}])[1]
    status, error = check(pipelines=[{key: value for key, value in REMIND.items() if key != "unless"} | {"if": "suppressed"}])
    assert status == 78 and "suppressed stands in unless alone" in error
    status, error = check(pipelines=[{"name": "p", "on": "SENT", "subject": "customer_id", "stages": [
        {"name": "s", "actions": [{"wait": "1h", "unless": "suppressed"}, {"move": "s"}]}]}])
    assert status == 78 and "moves in a cycle without a wait once suppressed is reached" in error
    status, error = check(pipelines=[REMIND | {"unless": ["CLICKED", "suppressed"]}], suppression={"subject": None})
    assert status == 78 and "set suppression.subject" in error
    status, error = check(pipelines=[], suppression={"subject": "customer_id", "on": ["BOUNCED"]})
    assert status == 78 and 'suppression.on: the ladder has no status or flag "BOUNCED"' in error
    status, error = check("--connect", suppression={"subject": "nobody_has_it", "on": ["BOUNCED_HARD"]})
    assert status != 0 and "nobody_has_it" in error


def test_only_a_token_of_that_scope_sees_who_is_suppressed(receiptd, database):
    site = Site(receiptd, database)
    try:
        for org in ("alpha-org", "beta-org"):
            for person in range(3):
                receiptd.command("suppressions", "add", org, f"{org[0]}{person}", "--class", "MANUAL", "--by", "me")
        assert site.get("/suppressions", reader.make_token(receiptd, "others", "read,support,operate")).status == 403
        tokens = {org: reader.make_token(receiptd, org or "all of them", "suppressions", *(["--org", org] if org else [])) for org in ("", "alpha-org")}
        listed = lambda query="", org="": [row["person"] for row in site.json(f"/suppressions{query}", tokens[org])["suppressions"]]  # noqa: E731
        assert listed() == ["of alpha", "of beta", "a0", "a1", "a2", "b0", "b1", "b2"] and listed(org="alpha-org") == ["of alpha", "a0", "a1", "a2"]
        assert listed("?org=beta-org") == ["of beta", "b0", "b1", "b2"] and listed("?org=beta-org", "alpha-org") == []
        first = site.json("/suppressions?limit=6", tokens[""])
        assert listed(f"?after={first['next']}") == ["b1", "b2"] and site.json("/suppressions", tokens[""])["next"] is None
        receiptd.command("suppressions", "remove", "alpha-org", "a1", "--reason", "asked", "--by", "me")
        (row,) = site.json("/suppressions?person=a1", tokens["alpha-org"])["suppressions"]
        assert (row["suppressed"], row["removed_because"], row["class"], row["made_by"]) == (False, "asked", "MANUAL", "me")
        assert site.json("/me", tokens[""])["scopes"] == ["suppressions"] and site.get("/campaigns", tokens[""]).status == 403
    finally:
        site.process.stop()
        site.drop()


def test_the_platform_may_ask_and_sees_no_more(receiptd, database):
    role = f"platform-{database.name}"
    receiptd.command("migrate", "--platform-role", role)
    receiptd.command("suppressions", "add", "o", "ann", "--class", "MANUAL", "--by", "me")
    try:
        with psycopg.connect(make_conninfo(database.dsn, user=role), autocommit=True) as platform:
            assert platform.execute("SELECT receiptd.is_suppressed('o', 'ann'), receiptd.is_suppressed('o', 'bob')").fetchone() == (True, False)
            for text in ("SELECT 1 FROM receiptd.suppression", "UPDATE receiptd.suppression_state SET removed_at = now()"):
                with pytest.raises(psycopg.Error):
                    platform.execute(text)
    finally:
        database.execute(f'DROP OWNED BY "{role}"')
        database.execute(f'DROP ROLE "{role}"')
