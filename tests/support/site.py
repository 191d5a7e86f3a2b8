"""`receiptd serve` over a database in which two organisations have the same of everything."""

import json

from psycopg.conninfo import make_conninfo

from support import reader

SECRET = "a secret of the tests, forty bytes long."


def fill(database):
    """Two organisations with a campaign each, named so that any trace of one can be found in an answer; messages of all kinds."""
    with database.connect() as connection:
        connection.execute("SET search_path = receiptd")
        for org in ("alpha", "beta"):
            rows = [(f"{org}-m{n}", f"{org}-org", f"{org}-campaign") for n in range(30)]
            with connection.cursor() as cursor:
                cursor.executemany("INSERT INTO message_inbox (message_id, org_id, campaign_id) VALUES (%s, %s, %s)", rows)
            connection.execute("UPDATE message_inbox SET status = CASE WHEN right(message_id, 1) < '3' THEN 440 ELSE 600 END, status_at = now(),"
                               " updated_at = now(), flags = CASE WHEN message_id = %s THEN 1 ELSE 0 END WHERE org_id = %s",
                               (f"{org}-m5", f"{org}-org"))
            counts = [(0, 0, 0), (200, 30, 0), (300, 30, 30), (440, 9, 9), (600, 21, 25), (9001, 1, 1)]
            connection.execute("INSERT INTO counter_delta (kind, campaign_id, status, messages, events) VALUES ('funnel', %s, %s, %s, %s)",
                               ([f"{org}-campaign"] * 6, *([row[i] for row in counts] for i in range(3))))
            connection.execute("INSERT INTO message_alias (channel_account, gateway_id, message_id) VALUES (%s, 'gateway-id', %s)",
                               (f"{org}-account", f"{org}-m5"))
            connection.execute("INSERT INTO message_timeline (message_id, topic, partition, \"offset\", index, status, at, old, new, gained)"
                               " VALUES (%s, 't', 0, %s, 0, 300, now(), 0, 300, 0), (%s, 't', 0, %s, 0, 600, now(), 300, 600, 1)",
                               (f"{org}-m5", len(org), f"{org}-m5", 10 + len(org)))
            connection.execute("INSERT INTO parked_event (topic, partition, \"offset\", index, lane, message_id, status, at, payload, org_id)"
                               " VALUES ('t', 0, %s, 0, 0, %s, 600, now(), '+4366012345', %s)", (20 + len(org), f"{org}-m5", f"{org}-org"))
            connection.execute("INSERT INTO dead_letter (topic, partition, \"offset\", index, lane, reason, detail, payload)"
                               " VALUES ('t', 0, %s, 0, 0, 'unknown_message', %s, '+4366012345')", (len(org), f"of {org}"))
            connection.execute("INSERT INTO suppression (key, org_id, person, class, since, message_id) VALUES (suppression_key(%s, %s), %s, %s,"
                               " 'UNSUBSCRIBED', now(), %s)", (f"{org}-org", f"of {org}", f"{org}-org", f"of {org}", f"{org}-m5"))
            pipeline = connection.execute("INSERT INTO pipeline (name, hash, active, org_field, subject_field, first_step, first_delay_ms)"
                                          " VALUES (%s, 'h', true, 'o', 's', 1, 0) RETURNING id", (f"{org}-pipeline",)).fetchone()[0]
            connection.execute("INSERT INTO pipeline_step (pipeline_id, step, stage, op, if_codes, unless_codes, within_ms, next_step,"
                               " next_delay_ms, else_step, else_delay_ms) VALUES (%s, 1, 'call', 'webhook', '{}', '{}', 0, 2, 0, 2, 0)", (pipeline,))
            connection.execute("INSERT INTO action (run_id, pipeline_id, step, lane, subject_hash, org_id, message_id, perform_at)"
                               " VALUES (1, %s, 1, 0, %s, %s, %s, now())", (pipeline, len(org), f"{org}-org", f"{org}-m5"))
        connection.execute("INSERT INTO consumer_progress (topic, partition, lane, next_offset, generation, anchor_timestamp)"
                           " VALUES ('t', 0, 0, 100, 1, 1764000000123)")
        connection.commit()


class Site:
    def __init__(self, receiptd, database, **settings):
        self.receiptd, self.database = receiptd, database
        receiptd.configure(serve={"listen": "127.0.0.1:0", "metrics_listen": "127.0.0.1:0", "link_secret": SECRET} | settings)
        self.role, self.writer, self.topic = f"serve-{database.name}", f"writer-{database.name}", None
        receiptd.command("migrate", "--serve-role", self.role)
        fill(database)
        receiptd.configure(serve={"dsn": make_conninfo(database.dsn, user=self.role)})
        self.process = reader.start(receiptd)
        self.token = reader.make_token(receiptd, "all")

    def get(self, path, token="", **options):
        return reader.get(self.process, path, self.token if token == "" else token, **options)

    def json(self, path, token=""):
        answer = self.get(path, token)
        assert answer.status == 200, (path, answer)
        return answer.json

    def drop(self):
        for role, in self.database.query("SELECT rolname FROM pg_roles WHERE rolname = ANY (%s)", [self.role, self.writer]):
            self.database.execute(f'DROP OWNED BY "{role}"')
            self.database.execute(f'DROP ROLE "{role}"')


# ---- dead letters

REDRIVE = "/dead-letters/redrive"


def operator(site, **settings):
    """The site with a role that may move letters: the daemon's."""
    site.process.stop()
    site.receiptd.command("migrate", "--role", site.writer)
    site.receiptd.configure(serve={"operate_dsn": make_conninfo(site.database.dsn, user=site.writer)} | settings)
    site.process = reader.start(site.receiptd)
    site.database.execute("TRUNCATE receiptd.dead_letter, receiptd.parked_event")


def bury(site, count, first=0, reason="unknown_message", payload='{"message_id":"alpha-m%s","status":"CLICKED"}', index=0):
    site.database.execute('INSERT INTO receiptd.dead_letter (topic, partition, "offset", index, lane, reason, payload) SELECT %s::text, 0, i, %s, 0, %s,'
                          " convert_to(replace(%s::text, '%%s', i::text), 'UTF8') FROM generate_series(%s::int8, %s) i",
                          str(site.topic or "t"), index, reason, payload, first, first + count - 1)


def redrive(site, body, token=""):
    return site.get(REDRIVE, token, method="POST", body=body if isinstance(body, bytes) else json.dumps(body).encode())


def letters(site):
    return site.database.query("SELECT (SELECT count(*) FROM receiptd.dead_letter), count(*), count(DISTINCT message_id) FROM receiptd.parked_event")[0]
