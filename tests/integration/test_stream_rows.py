"""What commands put into the status stream: tombstones of messages that go, and the images of `receiptd stream --backfill`.

The daemon publishes these rows; here they are read from the table.
"""
import signal
import threading

import psycopg

from support.wait import wait_for
from test_commands import CONFIG, USAGE, command_server, empty, installed, migrated  # noqa: F401
from test_partitions import DAY, OWN, insert, name_of, own, parts, start_of, v7  # noqa: F401

STREAM = {"topic": "message-status", "columns": ["customer", "missing"]}


def put(installation, *ids, org="o", campaign="c", status=300, age="1 hour"):
    installation.do("INSERT INTO receiptd.message_inbox (message_id, org_id, campaign_id, status, flags, created_at)"
                    " SELECT i, %s, %s, %s, 1, now() - %s::interval FROM unnest(%s::text[]) i", org, campaign, status, age, list(ids))


def rows(installation, kind):
    return installation.query("SELECT ids FROM receiptd.stream_event WHERE kind = %s ORDER BY id", kind)


def gone(installation):
    """The ids of all tombstones, in any order; none stands there twice."""
    ids = [id for ids, in rows(installation, "gone") for id in ids]
    assert len(ids) == len(set(ids))
    return sorted(ids)


def wait_in_stream(installation, id, **arrays):
    columns = "".join(f", {name}" for name in arrays)
    values = "".join(", %s" for _ in arrays)
    installation.do(f"INSERT INTO receiptd.stream_event (ids, old, new, flags, gained{columns}) VALUES (%s, '{{0}}', '{{300}}', '{{0}}', '{{0}}'{values})",
                    id, *arrays.values())


# ---- tombstones ------------------------------------------------------------------------------------------------------------

def test_whoever_is_erased_gets_a_tombstone_and_leaves_the_rows_that_wait(installed):
    installed.write(stream=STREAM)
    put(installed, "anna-1", "anna-2", "bert-1")
    wait_in_stream(installed, ["anna-1", "bert-1"], campaigns=["c1", "c2"], columns=['{"who": "anna"}', '{"who": "bert"}'])
    wait_in_stream(installed, ["anna-2"], campaigns=["c"], columns=['{"who": "anna"}'])
    wait_in_stream(installed, ["bert-1"], campaigns=["c"])
    before = installed.query("SELECT * FROM receiptd.stream_event ORDER BY id")
    listed = installed.directory / "ids"
    listed.write_text("anna-1\nanna-2\nnever-there\n")
    installed.run("erase", "--messages-from", str(listed), "--dry-run")
    assert installed.query("SELECT * FROM receiptd.stream_event ORDER BY id") == before
    installed.run("erase", "--messages-from", str(listed))
    assert gone(installed) == ["anna-1", "anna-2", "never-there"]
    assert installed.query("SELECT ids, campaigns, columns FROM receiptd.stream_event WHERE kind <> 'gone' ORDER BY id") == [
        (["bert-1"], ["c2"], ['{"who": "bert"}']), ([], [], []), (["bert-1"], ["c"], None)]
    # Gone for long: the stream may have been filled since.
    installed.run("erase", "--message", "anna-1")
    assert rows(installed, "gone")[-1] == (["anna-1"],)


def test_without_a_stream_nothing_is_written_for_it(installed):
    put(installed, "m1", "m2", age="90 days")
    installed.write(inbox={"retention": "30d"})
    installed.run("erase", "--message", "m1")
    installed.run("retire")
    assert installed.query("SELECT count(*)::int FROM receiptd.message_inbox") == [(0,)]
    assert installed.query("SELECT count(*)::int FROM receiptd.stream_event") == [(0,)]


def test_retire_writes_tombstones_for_the_messages_that_it_deletes_and_no_others(installed):
    installed.write(stream=STREAM, inbox={"retention": "30d"})
    put(installed, *(f"old-{n}" for n in range(2500)), age="31 days")
    put(installed, *(f"young-{n}" for n in range(100)), age="29 days")
    installed.run("retire", "--dry-run")
    assert gone(installed) == []
    assert "messages: 2500 deleted" in installed.run("retire").out
    assert gone(installed) == sorted(f"old-{n}" for n in range(2500))
    assert max(len(ids) for ids, in rows(installed, "gone")) <= 1000


def test_a_platform_that_sets_the_session_streams_what_it_deletes_itself(installed):
    put(installed, "m1", "m2", "m3", "m4")
    installed.do("DELETE FROM receiptd.message_inbox WHERE message_id = 'm1'")
    assert gone(installed) == []
    installed.do("SET receiptd.stream = 'on'")
    installed.do("DELETE FROM receiptd.message_inbox WHERE message_id = 'm2'")
    installed.do("TRUNCATE receiptd.message_inbox")
    assert gone(installed) == ["m2", "m3", "m4"]


def test_a_dropped_partition_leaves_a_tombstone_for_each_of_its_messages(own):
    low = start_of(-40)
    own.write(stream=STREAM, inbox=OWN | {"retention": "30d"})
    own.do(f"CREATE TABLE receiptd.{name_of(low)} PARTITION OF receiptd.message_inbox FOR VALUES FROM ('{v7(low)[:13]}') TO ('{v7(low + DAY)[:13]}')")
    own.migrate()
    ids = [v7(low + n, n) for n in range(1500)]
    insert(own, ids, days_old=40)
    insert(own, [v7(start_of(0) + n, n) for n in range(5)])
    assert len(parts(own)) == 2
    assert "booked 1500 messages and dropped" in own.run("retire").out
    assert gone(own) == sorted(ids) and len(parts(own)) == 1


def test_a_tombstone_lies_behind_the_transition_that_the_deletion_has_waited_for(installed):
    installed.write(stream=STREAM)
    put(installed, "m1")
    with psycopg.connect(installed.dsn) as lane:
        lane.execute("UPDATE receiptd.message_inbox SET prev_status = status, prev_flags = flags, status = 440 WHERE message_id = 'm1'")
        erasing = threading.Thread(target=lambda: installed.run("erase", "--message", "m1"))
        erasing.start()
        wait_for(lambda: installed.query("SELECT count(*)::int FROM pg_locks WHERE NOT granted") == [(1,)], 30, "the erasure to wait for the lane")
        lane.execute("INSERT INTO receiptd.stream_event (ids, old, new, flags, gained, kind) VALUES ('{m1}', '{300}', '{440}', '{0}', '{0}', 'row')")
    erasing.join()
    assert installed.query("SELECT kind, ids FROM receiptd.stream_event ORDER BY id") == [("row", []), ("gone", ["m1"])]


# ---- backfill --------------------------------------------------------------------------------------------------------------

IMAGES = """SELECT i.id, e.orgs[i.n], e.campaigns[i.n], e.new[i.n], e.flags[i.n], e.columns[i.n]::jsonb FROM receiptd.stream_event e,
            unnest(e.ids) WITH ORDINALITY AS i (id, n) WHERE e.kind = 'row' ORDER BY e.id, i.n"""


def publish(installation):
    """Takes the rows away as a daemon would; returns the images in their order."""
    images = installation.query(IMAGES)
    installation.do("DELETE FROM receiptd.stream_event")
    return images


def test_the_backfill_writes_each_message_once_in_the_order_of_the_ids(installed):
    installed.write(stream=STREAM)
    installed.do("ALTER TABLE receiptd.message_inbox ADD COLUMN customer text")
    put(installed, *(f"m{n:05}" for n in range(2500)), status=440)
    installed.do("INSERT INTO receiptd.message_inbox (message_id, customer) VALUES ('x, \"y\"', repeat('é', 2000))")
    assert "stream: 2501 messages written; all are in the stream" in installed.run("stream", "--backfill").out
    assert [len(ids) for ids, in rows(installed, "row")] == [1000, 1000, 501]
    images = publish(installed)
    assert [image[0] for image in images] == [f"m{n:05}" for n in range(2500)] + ['x, "y"']
    assert images[0][1:] == ("o", "c", 440, 1, {"customer": None, "missing": None})
    assert images[-1][1:] == (None, None, 0, 0, {"customer": "é" * 1000, "missing": None})
    assert "stream: 501 messages written" in installed.run("stream", "--backfill", "--from", "m01999").out
    assert publish(installed)[0][0] == "m02000"


def test_an_interrupted_backfill_waits_for_the_publisher_and_says_how_to_go_on(installed):
    installed.write(stream=STREAM | {"columns": []})
    put(installed, *(f"m{n:05}" for n in range(3000)))
    for n in range(52):
        wait_in_stream(installed, [f"x{n}"])
    process = installed.start("stream", "--backfill")
    wait_for(lambda: installed.query("SELECT count(*)::int FROM pg_stat_activity WHERE application_name = 'receiptd/stream' AND datname = current_database()"
                                     " AND query LIKE '%LIMIT $1::int4) e%'") == [(1,)], 30, "the backfill to wait")
    installed.do("DELETE FROM receiptd.stream_event WHERE ids = '{x0}'")
    assert rows(installed, "row") == []
    installed.do("DELETE FROM receiptd.stream_event WHERE ids = '{x1}'")
    wait_for(lambda: len(rows(installed, "row")) == 1, 30, "one page, which fills the queue again")
    process.send_signal(signal.SIGTERM)  # a shell in the background has SIGINT ignored
    process.communicate(timeout=30)
    installed.do("DELETE FROM receiptd.stream_event WHERE kind = 'change'")
    assert "stream: 2000 messages written; all are in the stream" in installed.run("stream", "--backfill", "--from", publish(installed)[-1][0]).out
    assert [image[0] for image in publish(installed)] == [f"m{n:05}" for n in range(1000, 3000)]


def test_an_image_comes_after_the_transition_that_it_holds(installed):
    """The page waits for a lane that holds a message, and its id in the stream is larger than the lane's."""
    installed.write(stream=STREAM)
    put(installed, "m1", "m2", "m3")
    with psycopg.connect(installed.dsn) as lane:
        lane.execute("UPDATE receiptd.message_inbox SET prev_status = status, prev_flags = flags, status = 440 WHERE message_id = 'm2'")
        filling = threading.Thread(target=lambda: installed.run("stream", "--backfill"))
        filling.start()
        wait_for(lambda: installed.query("SELECT count(*)::int FROM pg_locks WHERE NOT granted") == [(1,)], 30, "the page to wait for the lane")
        lane.execute("INSERT INTO receiptd.stream_event (ids, old, new, flags, gained) VALUES ('{m2}', '{300}', '{440}', '{0}', '{0}')")
    filling.join()
    assert installed.query("SELECT kind, ids, new FROM receiptd.stream_event ORDER BY id") == [
        ("change", ["m2"], [440]), ("row", ["m1", "m2", "m3"], [300, 440, 300])]


def test_the_backfill_reads_a_table_of_the_platform_under_its_own_names(empty):
    empty.do("CREATE TABLE public.messages (uid uuid PRIMARY KEY, tenant int, blast varchar(20), customer text)")
    empty.do("CREATE INDEX ON public.messages ((uid::text))")
    empty.do("INSERT INTO public.messages SELECT gen_random_uuid(), 7, 'spring', 'c' || n FROM generate_series(1, 1100) n")
    empty.write(stream=STREAM, inbox={"table": "public.messages", "columns": {"message_id": "uid", "org_id": "tenant", "campaign_id": "blast"}})
    empty.migrate()
    assert "1100 messages written" in empty.run("stream", "--backfill").out
    images = publish(empty)
    assert [image[0] for image in images] == [id for id, in empty.query("SELECT uid::text FROM public.messages ORDER BY uid::text")]
    assert {image[1:5] for image in images} == {("7", "spring", 0, 0)}
    assert sorted(image[5]["customer"] for image in images) == sorted(f"c{n}" for n in range(1, 1101))


def test_a_backfill_without_a_stream_says_what_to_do(installed):
    assert "nothing to do: give --backfill" in installed.run("stream", code=USAGE).err
    error = installed.run("stream", "--backfill", code=CONFIG).err
    assert "stream.topic is not set" in error and "HINT: set stream.topic here" in error
