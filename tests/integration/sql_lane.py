"""A lane of the daemon without the daemon: heart_driver.c sends batches by the same code, one at a time, as it is told."""
import json
import subprocess

from sql_fixture import SCHEMA, FLAGS, STATUSES, SqlError
from support.daemon import binary

PROGRAM = binary().parent / "tests/integration/heart_driver"
RULES = ("dedup", "series", "reasons", "gateways", "times", "folds", "links", "costs")
DONE = ("ready", "committed", "probed", "held")


class Lane:
    """One connection with what a lane prepares. Settings as heart_driver.c reads them."""

    def __init__(self, dsn, settings):
        self.settings = settings
        self.process = subprocess.Popen([PROGRAM, dsn, SCHEMA], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.pid = self.ask({"open": settings})["pid"]

    def ask(self, request):
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"heart_driver has ended: {self.process.wait(10)}")
        answer = json.loads(answer)
        if answer["outcome"] not in DONE:
            raise SqlError(answer["code"], answer["text"], answer)
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        assert self.process.wait(30) == 0


def ladder_of(statuses, flags):
    names = {code: name for code, (name, _, _) in statuses.items()}
    return {"statuses": [[name, code, names.get(parent), terminal] for code, (name, parent, terminal) in statuses.items()],
            "flags": [[name, names.get(implied)] for name, implied in flags.values()]}


def settings_of(session):
    pairs = [name if isinstance(name, tuple) else (name, name) for name in session.dimensions]
    unknown = set(session.rules) - set(RULES)
    assert not unknown, unknown
    return {**{rule: rule in session.rules for rule in RULES}, "window": "168 hours", "actions": session.actions, "timeline": session.timeline,
            "dimensions": {f"by_{name}": column for name, column in pairs}, "groups": session.groups, "recent_since": session.recent_since,
            "recent_column": session.recent_column, "lock_timeout_ms": session.lock_timeout_ms, "ladder": ladder_of(*(session.ladder or (STATUSES, FLAGS)))}


def lane_of(session, insert=False):
    """The session's lane, with what the session has of settings now. insert: the policy that makes rows; not every inbox can."""
    settings = settings_of(session) | {"insert": insert or session.lane is not None and session.lane.settings["insert"]}
    if session.lane is not None and session.lane.settings != settings:
        session.close_lane()
    if session.lane is None:
        role = f" options='-c role={session.role}'" if session.role else ""
        session.lane = Lane(session.dsn + role, settings)
    return session.lane
