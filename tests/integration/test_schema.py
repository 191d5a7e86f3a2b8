"""The JSON Schema of the file (check-config --schema): it takes whatever receiptd takes, and refuses what an editor can see."""
import json
import re
import subprocess

import pytest
import yaml

from support.daemon import binary
from support.openapi import validators
from support.services import ROOT

SAMPLES = (5, 0, -1, 0.5, "5 s", "1MiB", True, "word", "two words", "${HOME}", None, [], ["word"], [{}], {"word": 1}, "")


class Yaml12(yaml.SafeLoader):
    """As editors read YAML: `on` is a word."""


Yaml12.yaml_implicit_resolvers = {first: [(tag, words) for tag, words in found if first not in "yYnNoO" or not tag.endswith(":bool")]
                                  for first, found in yaml.SafeLoader.yaml_implicit_resolvers.items()}


@pytest.fixture(scope="module")
def schema():
    return json.loads(subprocess.run([binary(), "check-config", "--schema"], capture_output=True, check=True, timeout=60).stdout)


@pytest.fixture(scope="module")
def judge(schema):
    validator = validators().Draft7Validator(schema)
    validator.check_schema(schema)
    return lambda value: [f"{'.'.join(map(str, error.absolute_path))}: {error.message}" for error in validator.iter_errors(value)]


def paths(schema, before=()):
    for name, one in schema["properties"].items():
        if "properties" in one:
            yield from paths(one, (*before, name))
        else:
            yield (*before, name)


def placed(path, value):
    config = {"kafka": {"brokers": "b:1", "topics": ["t"]}, "postgres": {"dsn": "dbname=d"}}
    inner = config
    for name in path[:-1]:
        inner = inner.setdefault(name, {})
    inner[path[-1]] = value
    return config


def test_every_key_of_the_reference_is_in_the_schema_and_no_other(schema):
    reference = (ROOT / "docs/configuration.md").read_text()
    tables = re.split(r"\nAn entry of `[^`]+`:\n", reference)
    keys = set(re.findall(r"^\| `([a-z_.]+)` \|", tables[0], re.M))
    for part in tables[1:]:  # the entry's own table ends with the next heading
        keys |= set(re.findall(r"^\| `([a-z_.]+)` \|", part.partition("\n## ")[2], re.M))
    columns = set(re.findall(r"^\| `([a-z_]+)` \|", reference.partition("The columns of `message_inbox`")[2].partition("\n## ")[0], re.M))
    assert {".".join(path) for path in paths(schema)} - columns == {key for key in keys if key not in columns or key == "lanes"}


def test_the_example_with_every_key_fits(judge):
    """A line with one blank behind its # is a comment, the others are settings."""
    example = yaml.load(re.sub(r"^( *)#(?! \S)", r"\1", (ROOT / "config/receiptd.yaml").read_text(), flags=re.M), Yaml12)
    assert judge(example) == []
    assert len(example) > 20


def test_what_the_schema_refuses_receiptd_refuses(schema, judge, tmp_path):
    """Of each key, over values of every kind; receiptd refuses some more, such as a topic that is named twice."""
    path, refused = tmp_path / "receiptd.yaml", 0
    for key in paths(schema):
        for sample in SAMPLES:
            config = placed(key, sample)
            found = judge(config)
            if not found:
                continue
            path.write_text(yaml.safe_dump(config))
            done = subprocess.run([binary(), "check-config", "--config", path], capture_output=True, text=True, timeout=60)
            assert done.returncode == 78, f"{key} = {sample!r}: receiptd takes it, the schema says {found}"
            refused += 1
    assert refused > 500


@pytest.mark.parametrize("config, word", (
    ({"kafka": {"brokerz": "b"}}, "brokerz"), ({"lanes": "many"}, "many"), ({"postgres": {"connections": 65}}, "65"), ({"batch": {"linger": "5 minutes"}}, "5 minutes"),
    ({"kafka": {"topics": [{"gateway": "custom"}]}}, "topics.0"), ({"intake": {"accounts": [{"name": "a", "gateway": "twilio", "secret": "x"}]}}, "accounts"),
    ({"unknown": "parc"}, "parc")))
def test_mistakes_are_named(judge, config, word):
    assert any(word in said for said in judge(config))
