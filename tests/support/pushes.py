"""Pushes for tests: the published scenario as pipelines, and what the calls at a receiver and the database say about it.

Used by tests/integration/test_push.py; scripts/campaign may play the same scenario larger.
"""
import collections
import json

PUSH = "spring"


def split(variants, after="1h", otherwise="nobody", gather="1s", **decide):
    """The action `split`. variants: {stage: size}, or {stage: 'N%'} for shares."""
    shares = any(isinstance(part, str) for part in variants.values())
    parts = [{"stage": stage, "share": int(part.rstrip("%"))} if shares else {"stage": stage, "size": part} for stage, part in variants.items()]
    action = {"variants": parts, "decide": {"after": after, "otherwise": otherwise} | decide}
    return {"split": action if shares else action | {"gather": gather}}


def pipeline(name, action, push=PUSH, endpoint="crm", **fields):
    """A pipeline whose first stage splits the push; each variant is a stage with one call."""
    stages = [variant["stage"] for variant in action["split"]["variants"]]
    return {"name": name, "on": "api", "once_per": {"push": push, "by": ["subject"]},
            "stages": [{"name": "deal", "actions": [action]}]
            + [{"name": stage, "actions": [{"webhook": endpoint}]} for stage in stages]} | fields


def write_list(path, subjects, org="acme"):
    """A CSV file for `receiptd actions import`."""
    path.write_text("subject,org_id\n" + "".join(f"{subject},{org}\n" for subject in subjects))
    return path


def import_list(installation, path, pipeline):
    return installation.command("actions", "import", str(path), "--pipeline", pipeline)


def row(database, push=PUSH):
    """The push as a dict; None: no instance has stored it."""
    rows = database.query("SELECT to_jsonb(p.*)::text FROM receiptd.push p WHERE name = %s", push)
    return json.loads(rows[0][0]) if rows else None


def members(database, push=PUSH):
    """stage: its subjects, as they were dealt."""
    dealt = collections.defaultdict(set)
    for stage, subject in database.query("SELECT m.stage, r.subject FROM receiptd.push_member m JOIN receiptd.run r ON r.id = m.run_id"
                                         " WHERE m.push = %s", push):
        dealt[stage].add(subject)
    return dict(dealt)


def waiting(database, push=PUSH):
    """How many of the remainder wait for the decision."""
    return database.query("SELECT count(*)::int FROM receiptd.action WHERE status = 'held' AND held_by = %s", f"push:{push}")[0][0]


def reached(calls):
    """subject: the stages of its calls, each action once: an attempt that is repeated keeps its id."""
    stages = collections.defaultdict(dict)
    for call in calls:
        stages[call.body["subject"]][call.id] = call.body["stage"]
    return {subject: sorted(by_id.values()) for subject, by_id in stages.items()}


def assert_nobody_twice_nobody_forgotten(calls, subjects, dealt, winner):
    """Every subject has exactly one action: that of its variant, or of the winner."""
    of_variant = {subject: stage for stage, group in dealt.items() for subject in group}
    assert sum(len(group) for group in dealt.values()) == len(of_variant), "a subject was dealt twice"
    assert reached(calls) == {subject: [of_variant.get(subject, winner)] for subject in subjects if of_variant.get(subject, winner)}
