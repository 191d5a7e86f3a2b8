"""docs/tutorial.md, played: its blocks run as they stand, in one shell, on the servers of the session."""

import os
import re
import subprocess

import psycopg
import pytest
from psycopg import sql

from support.daemon import binary
from support.services import ROOT, Topic, definers

PAGE = (ROOT / "docs/tutorial.md").read_text()
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROLES = ("shop_owner", "shop_daemon")


@pytest.fixture
def place(services):
    """The name of the database: other tests use these servers, so each name of the page gets it at its end."""
    name = f"shop_{os.getpid()}"
    yield name
    Topic(services, f"shop-receipts-{name}", 2).drop()
    with psycopg.connect(services.dsn, autocommit=True) as connection:
        connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        for role in (*(f"{role}_{name}" for role in ROLES), *definers(name)):
            if connection.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (role,)).fetchone():
                connection.execute(sql.SQL("DROP OWNED BY {0}; DROP ROLE {0}").format(sql.Identifier(role)))


def script(place, directory):
    """The page's commands without its servers and its build, in a directory of the test."""
    text = "\n".join(block for language, block in BLOCK.findall(PAGE) if language == "sh")
    text = re.sub(r"^(?:scripts/services.*|eval .*|make)\n", "", text, flags=re.MULTILINE)
    for word, joint in (*((role, "_") for role in ROLES), ("shop-receipts", "-")):
        text = text.replace(word, f"{word}{joint}{place}")
    text = re.sub(r"(DATABASE |dbname=)shop\b", rf"\1{place}", text)
    text = text.replace("build/tutorial", str(directory)).replace("build/receiptd", str(binary()))
    return "trap 'kill ${daemon:-} 2> /dev/null || true' EXIT\n" + text.replace("kafka:\n", f"http:\n  listen: 127.0.0.1:0\nkafka:\n  group: {place}\n")


def test_the_page_leads_from_nothing_to_a_funnel(services, place, tmp_path):
    environment = os.environ | {"RECEIPTD_TEST_DSN": services.dsn, "RECEIPTD_TEST_BROKERS": services.brokers}
    result = subprocess.run(["bash", "-euo", "pipefail"], input=script(place, tmp_path), env=environment, capture_output=True, text=True,
                            timeout=250, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    said = "".join(f"{line.rstrip()}\n" for line in result.stdout.splitlines())
    shown = [block for language, block in BLOCK.findall(PAGE) if not language]
    assert len(shown) == 2 and all(block in said for block in shown), said
    assert ", 0 cells drift\n" in said
