"""receiptd parked: which receipts wait, and which form of their ids would have a message."""
import json

import pytest

from test_commands import USAGE, command_server, empty, installed, migrated  # noqa: F401

FORMS = (("ABC-x", "abc-x", "in lower case", "lower"), ("def", "DEF", "in upper case", "upper"), ("0012", "12", "without leading zeros", "strip_zeros"),
         ("FFF1", "65521", "as decimal", "hex_to_decimal"), ("48879", "beef", "as hex", "decimal_to_hex"), ("{q}", "q", "what stands around it", "trim"),
         ("a1-b2-z", "a1b2z", "without hyphens", "strip_hyphens"), ("part.12", "part", "without its suffix", "strip_suffix"))


def park(installation, id, n, account=None, gateway=None):
    installation.do("""INSERT INTO receiptd.parked_event (topic, partition, "offset", index, lane, message_id, status, at, payload, account, gateway)
        VALUES ('t', 0, %s, 0, 0, %s, 300, now(), '{"to": "+49301234567"}', %s, %s)""", n, id, account, gateway)


def add(installation, *ids):
    installation.connection.cursor().executemany("INSERT INTO receiptd.message_inbox (message_id) VALUES (%s)", [(id,) for id in ids])


@pytest.mark.parametrize("parked, stored, why, form", FORMS)
def test_the_form_that_would_match_is_named(installed, parked, stored, why, form):
    add(installed, stored)
    for n in range(3):
        park(installed, parked if n else "nobody", n, account="acme")
    out = installed.run("parked", "--why").out
    assert f"account acme: 2 of 3: matches {why}".replace("matches what", "matches without what") in out
    assert f"message_id_form: [{form}]" in out and "account acme: 1 of 3: no form of it is known" in out
    assert "+49" not in out


def test_aliases_deleted_messages_and_other_sources_are_told_apart(installed):
    installed.do("INSERT INTO receiptd.message_alias (channel_account, gateway_id, message_id) VALUES ('acme', 'g7', 'm7'), ('acme', 'lost', 'nobody')")
    add(installed, "gone")
    installed.do("DELETE FROM receiptd.message_inbox")
    park(installed, "G7", 1, account="acme")
    park(installed, "G7", 2, gateway="other")  # no account: another's alias is not its own
    park(installed, "lost", 3, account="acme")
    park(installed, "gone", 4)
    add(installed, "there")
    park(installed, "there", 5)
    rows = json.loads(installed.run("parked", "--why", "--format", "json").out)
    assert [(row["source"], row["why"]) for row in rows] == [
        ("acme", "matches in lower case"), ("other", "no form of it is known"), ("acme", "its alias leads to an id without a message"),
        ("t", "its message was deleted"), ("t", "its message is there: it is woken soon")]
    assert "message_id_form" not in installed.run("parked", "--why", "--source", "other").out
    assert len(json.loads(installed.run("parked", "--topic", "t", "--limit", "2", "--format", "json").out)) == 2
    assert "why" not in json.loads(installed.run("parked", "--format", "json").out)[0]
    assert "no receipt waits" in installed.run("parked", "--topic", "x").out
    assert installed.run("parked", "--limit", "0", code=USAGE).err
