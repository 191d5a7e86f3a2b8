"""Schemas of tests, made once and then copied: a copy of a database takes a tenth of `receiptd migrate`."""

import json

ELSEWHERE = ("kafka", "http", "control", "batch")  # settings that make no difference to the schema


def migrate(receiptd, database):
    """`receiptd migrate`, or a copy of what it made before with the same settings. The third database of a kind is the first copy."""
    if not _is_new(receiptd, database):
        receiptd.migrate()
        return
    kind, templates = _kind(receiptd.settings), database.services.templates
    if kind not in templates:
        receiptd.migrate()
        templates[kind] = None
        return
    if templates[kind] is None:
        templates[kind] = database.services.create_database()
        receiptd.configure(postgres={"dsn": templates[kind].dsn})
        receiptd.migrate()
        receiptd.configure(postgres={"dsn": database.dsn})
    database.copy(templates[kind])


def _is_new(receiptd, database):
    """Empty, and used by nobody else. 16384: the first id of what PostgreSQL did not bring along."""
    return receiptd.settings["postgres"]["dsn"] == database.dsn and not database.value("""
        SELECT EXISTS (SELECT FROM pg_class WHERE oid >= 16384) OR EXISTS (SELECT FROM pg_namespace WHERE oid >= 16384)
            OR EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid())
            OR EXISTS (SELECT FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase WHERE d.datname = current_database())""")


def _kind(settings):
    chosen = {name: value for name, value in settings.items() if name not in ELSEWHERE}
    chosen["postgres"] = {name: value for name, value in settings["postgres"].items() if name != "dsn"}
    return json.dumps(chosen, sort_keys=True, default=str)
