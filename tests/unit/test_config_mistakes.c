/* Mistakes in a file: each is answered with its place, its name and what to do. */
#include "config_helpers.h"
#include "repeated.h"

struct mistake {
    const char *text, *message, *hint;
};

static const struct mistake key_mistakes[] = {
    {"", "t.yaml:1:1: missing required keys kafka.brokers, kafka.topics, postgres.dsn",
     "for example kafka.brokers: 127.0.0.1:9092"},
    {"# nothing\n", "t.yaml:1:1: missing required keys kafka.brokers, kafka.topics, postgres.dsn",
     NULL},
    {"kafka: {brokers: b, topics: [t, u], message_topics: [m, u]}\npostgres: {dsn: d}\n",
     "t.yaml:1:53: kafka.message_topics: \"u\" carries receipts: announce messages on a topic of "
     "their own",
     NULL},
    {"kafka: {brokers: b, topics: [t]}\n", "t.yaml:1:1: missing required key postgres.dsn", NULL},
    {SMALLEST "kafka2: 1\n", "t.yaml:3:1: kafka2: unknown key", "did you mean \"kafka\"?"},
    {"kafka:\n  brokerz: x\n", "t.yaml:2:3: kafka.brokerz: unknown key",
     "did you mean \"brokers\"?"},
    {SMALLEST "max_events: 5\n", "t.yaml:3:1: max_events: unknown key",
     "did you mean batch.max_events? keys stand indented below their section"},
    {SMALLEST "batch.linger: 5s\n", "t.yaml:3:1: batch.linger: unknown key",
     "keys stand indented below their section: not a.b: c, but a: {b: c}"},
    {SMALLEST "inbox:\n  columns:\n    mesage_id: id\n",
     "t.yaml:5:5: inbox.columns.mesage_id: unknown key", "did you mean \"message_id\"?"},
    {SMALLEST "inbox:\n  fillfactory: 3\n", "t.yaml:4:3: inbox.fillfactory: unknown key",
     "did you mean \"fillfactor\"?"},
    {SMALLEST "zzzzzzzz: 5\n", "t.yaml:3:1: zzzzzzzz: unknown key",
     "docs/configuration.md lists all keys"},
    {SMALLEST "\"\": 5\n", "t.yaml:3:1: : unknown key", NULL},
    {SMALLEST "lanes: 8\nlanes: 8\n", "t.yaml:4:1: lanes: is given twice",
     "it stands at line 3 too"},
    {SMALLEST "kafka: {}\n", "t.yaml:3:1: kafka: is given twice", "it stands at line 1 too"},
    {SMALLEST "batch: 5\n", "t.yaml:3:8: batch: expected keys with values, found a single value",
     NULL},
    {SMALLEST "batch: [5]\n", "t.yaml:3:8: batch: expected keys with values, found a list", NULL},
    {"just text\n", "t.yaml:1:1: configuration: expected keys with values, found a single value",
     NULL},
    {SMALLEST "? [a]\n: b\n", "t.yaml:3:3: configuration: a key must be plain text", NULL},
    {SMALLEST "max_events_of_one_transaction_before_it_is_committed_to_postgresql: 5\n",
     "t.yaml:3:1: max_events_of_one_transaction_before_it_is_committed_to_...: unknown key",
     "docs/configuration.md lists all keys"},
};

/* Lists, maps and what stands in them. */
static const struct mistake list_mistakes[] = {
    {"kafka: {brokers: b, topics: [\"${TEST_CONFIG_UNSET}\"]}\npostgres: {dsn: x}\n",
     "t.yaml:1:30: kafka.topics[0].name: environment variable TEST_CONFIG_UNSET is not set", NULL},
    {"kafka: {brokers: b, topics: [..]}\npostgres: {dsn: x}\n",
     "t.yaml:1:30: kafka.topics[0].name: \"..\" is not a topic name: 1 to 249 letters, digits, "
     "dots, "
     "dashes "
     "and underscores",
     NULL},
    {"kafka: {brokers: b, topics: [t], properties: {[a]: b}}\npostgres: {dsn: x}\n",
     "t.yaml:1:47: kafka.properties: a name must be plain text", NULL},
    {"kafka: {brokers: b, topics: [t], properties: {\"\": b}}\npostgres: {dsn: x}\n",
     "t.yaml:1:47: kafka.properties: a name must be 1 to 255 bytes long", NULL},
    {SMALLEST "actions: {endpoints: [{name: e, url: 'http://h/', secrets: [a, ~]}]}\n",
     "t.yaml:3:64: actions.endpoints[0].secrets: every entry must be a text", NULL},
    {SMALLEST
     "lanes: \"a\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9"
     "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9"
     "\u00e9\u00e9\u00e9\"\n",
     "t.yaml:3:8: lanes: "
     "\"a\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9"
     "\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9\u00e9...\" is not a whole "
     "number",
     NULL},
    {SMALLEST "actions: {endpoints: [https://example.com]}\n",
     "t.yaml:3:23: actions.endpoints[0]: must be a mapping with name, url", NULL},
    {SMALLEST "intake: {accounts: [twilio]}\n",
     "t.yaml:3:21: intake.accounts[0]: must be a mapping with name, gateway", NULL},
    {SMALLEST "machine: {opens: counted}\n",
     "t.yaml:3:18: machine.opens: \"counted\" is not one of flag, count, ignore",
     "did you mean \"count\"?"},
    {SMALLEST "machine: {rules: [{kind: click, policy: count}]}\n"
              "ladder: {statuses: [{name: A, code: 0}]}\n",
     "t.yaml:3:18: machine.rules: entry 1 is about `click`, but the ladder does not have CLICKED "
     "and the flag BOT_CLICK",
     "add them to the ladder, or take the entry away"},
    {SMALLEST "actions: {retry_min: 2m, retry_max: 1m}\n",
     "t.yaml:3:22: actions.retry_min: 2m is more than actions.retry_max, 1m", NULL},
    {SMALLEST "actions: {subject_caps: [{max: 3, per: month}]}\n",
     "t.yaml:3:40: actions.subject_caps[0].per: \"month\" is not one of day, week", NULL},
    {SMALLEST "actions: {subject_caps: [{max: 0, per: day}]}\n",
     "t.yaml:3:32: actions.subject_caps[0].max: must be 1 to 1000000, is \"0\"", NULL},
    {SMALLEST "actions: {subject_caps: [{max: 3}]}\n",
     "t.yaml:3:26: missing required key actions.subject_caps[0].per", NULL},
    {SMALLEST "actions: {beyond_open_runs: wait}\n",
     "t.yaml:3:29: actions.beyond_open_runs: \"wait\" is not one of refuse, defer, drop", NULL},
    {SMALLEST "intake: {topic: i, dead_letter_topic: d, accounts: [{name: a, gateway: kannel, "
              "org_id: o, verify: \"off\", time_zone: Nowhere/CET}]}\n",
     "t.yaml:3:52: intake account a: time_zone: must be an offset such as +05:30 or Z, or a zone "
     "such "
     "as Europe/Berlin",
     "\"Nowhere/CET\" is no zone of the system's data: see the list of names, or install tzdata"},
};

static const struct mistake value_mistakes[] = {
    {SMALLEST "lanes: eight\n", "t.yaml:3:8: lanes: \"eight\" is not a whole number", NULL},
    {SMALLEST "lanes: 8x\n", "t.yaml:3:8: lanes: \"8x\" is not a whole number", NULL},
    {SMALLEST "lanes: [8]\n", "t.yaml:3:8: lanes: expected a whole number, found a list", NULL},
    {SMALLEST "lanes: {a: 8}\n", "t.yaml:3:8: lanes: expected a whole number, found a mapping",
     NULL},
    {SMALLEST "lanes:\n", "t.yaml:3:7: lanes: has no value",
     "give one, or remove the line to get the default"},
    {SMALLEST "lanes: 512\n", "t.yaml:3:8: lanes: must be 1 to 256, is \"512\"", NULL},
    {SMALLEST "lanes: 12\n", "t.yaml:3:8: lanes: must be a power of two, is 12",
     "1, 2, 4, 8, 16, 32, 64, 128 or 256"},
    {SMALLEST "lanes: 1\n",
     "t.yaml:3:8: postgres.connections: 2 are more than the 1 lanes they serve",
     "set postgres.connections to 1 or less, or raise lanes"},
    {SMALLEST "batch:\n  linger: 5\n",
     "t.yaml:4:11: batch.linger: \"5\" is not a duration such as 500ms, 5s, 10m or 24h", NULL},
    {SMALLEST "batch:\n  linger: 1h\n", "t.yaml:4:11: batch.linger: must be 0s to 10s, is \"1h\"",
     NULL},
    {SMALLEST "memory: {budget: 24mb}\n",
     "t.yaml:3:18: memory.budget: \"24mb\" is not a size such as 65536, 64KiB, 24MiB or 1GB", NULL},
    {SMALLEST "unknown: prak\n",
     "t.yaml:3:10: unknown: \"prak\" is not one of park, insert, dead-letter",
     "did you mean \"park\"?"},
    {SMALLEST "log: {level: loud}\n",
     "t.yaml:3:14: log.level: \"loud\" is not one of error, warn, info, debug", NULL},
    {SMALLEST "inbox: {table: outbound}\n",
     "t.yaml:3:16: inbox.table: \"outbound\" is not schema.table, both SQL names of letters, "
     "digits "
     "and underscores",
     NULL},
    {SMALLEST "inbox: {columns: {status: \"a b\"}}\n",
     "t.yaml:3:27: inbox.columns.status: \"a b\" is not an SQL name: 1 to 63 letters, digits and "
     "underscores, no digit first",
     NULL},
    {SMALLEST "inbox: {columns: {status: org_id}}\n",
     "t.yaml:3:27: inbox.columns.status: \"org_id\" is the column of inbox.columns.org_id too",
     NULL},
    {"kafka:\n  brokers:\n  topics: [t]\npostgres: {dsn: x}\n",
     "t.yaml:2:11: kafka.brokers: has no value", "for example 127.0.0.1:9092"},
    {"kafka:\n  brokers: \"\"\n  topics: [t]\npostgres: {dsn: x}\n",
     "t.yaml:2:12: kafka.brokers: is empty", NULL},
    {"kafka:\n  brokers: b\n  topics: dlr\npostgres: {dsn: x}\n",
     "t.yaml:3:11: kafka.topics: expected a list of mappings or names, found a single value", NULL},
    {"kafka:\n  brokers: b\n  topics: []\npostgres: {dsn: x}\n",
     "t.yaml:3:11: kafka.topics: must have 1 to 100 entries, has 0", NULL},
    {"kafka:\n  brokers: b\n  topics: [a, b, a]\npostgres: {dsn: x}\n",
     "t.yaml:3:11: kafka.topics: \"a\" is named twice", "a topic has one form"},
    {"kafka:\n  brokers: b\n  topics: [{name: a, secrets: [s]}]\npostgres: {dsn: x}\n",
     "t.yaml:3:22: kafka.topics[0].secrets: unknown key",
     "that is a key of intake.accounts, about requests; who may write to a topic is decided by "
     "Kafka (ACLs)"},
    {"kafka:\n  brokers: b\n  topics: [{name: a, org_id: o}]\npostgres: {dsn: x}\n",
     "t.yaml:3:11: kafka.topics: \"a\" has keys that a native topic does not read",
     "name the form of its records: gateway: custom, or an adapter of docs/gateways.md"},
    {"kafka:\n  brokers: b\n  topics: [{name: a, gateway: twillio}]\npostgres: {dsn: x}\n",
     "t.yaml:3:11: topic a: gateway: there is no adapter \"twillio\"",
     "did you mean \"twilio\"? docs/gateways.md lists them; others: custom"},
    {"kafka:\n  brokers: b\n  topics: [{name: a, gateway: custom}]\npostgres: {dsn: x}\n",
     "t.yaml:3:11: topic a: custom: needs id (or message_id) and status", NULL},
    {"kafka:\n  brokers: b\n  topics: [{name: a, gateway: custom, custom: {id: i, status: s, "
     "statuses: {x: DELIVERD}}}]\npostgres: {dsn: x}\n",
     "t.yaml:3:11: topic a: custom.statuses.x: \"DELIVERD\" is not in the ladder",
     "a status such as DELIVERED, a status and a flag such as DELIVERED+COMPLAINED, or ignore"},
    {"kafka:\n  brokers: b\n  topics: [{name: a, gateway: twilio}]\nintake: {topic: a}\n"
     "postgres: {dsn: x}\n",
     "t.yaml:3:11: kafka.topics: \"a\" has another form, and the intake writes native receipts to "
     "it",
     "give the intake a native topic: intake.topic, or topic of its account"},
    {"kafka:\n  brokers: b\n  topics: [^a.*]\npostgres: {dsn: x}\n",
     "t.yaml:3:12: kafka.topics[0].name: \"^a.*\" is not a topic name: 1 to 249 letters, digits, "
     "dots, "
     "dashes and underscores",
     NULL},
    {"kafka:\n  brokers: b\n  topics: [[a]]\npostgres: {dsn: x}\n",
     "t.yaml:3:12: kafka.topics[0]: must be a mapping with name", NULL},
    {"kafka:\n  brokers: b\n  topics: [t]\n  properties:\n    a.b: 1\n    a.b: 2\npostgres: {dsn: "
     "x}\n",
     "t.yaml:6:5: kafka.properties: \"a.b\" is given twice", "it stands at line 5 too"},
    {"kafka:\n  brokers: b\n  topics: [t]\n  properties:\n    a.b:\npostgres: {dsn: x}\n",
     "t.yaml:5:9: kafka.properties.a.b: has no value", "write \"\" for an empty one"},
    {"kafka:\n  brokers: b\n  topics: [t]\n  properties:\n    a.b: [1]\npostgres: {dsn: x}\n",
     "t.yaml:5:10: kafka.properties.a.b: expected text, found a list", NULL},
    {"kafka: {brokers: b, topics: [t]}\npostgres:\n  dsn: x\n  retry_min: 20s\n",
     "t.yaml:4:14: postgres.retry_min: 20s is more than postgres.retry_max, 10s", NULL},
    {"kafka: {brokers: b, topics: [t]}\npostgres:\n  dsn: x\n  retry_max: 50ms\n",
     "t.yaml:4:14: postgres.retry_min: 100ms is more than postgres.retry_max, 50ms", NULL},
    {"kafka: {brokers: b, topics: [t]}\npostgres:\n  dsn: x\n  connections: 9\n",
     "t.yaml:4:16: postgres.connections: 9 are more than the 8 lanes they serve", NULL},
    {"kafka: {brokers: b, topics: [t]}\npostgres: {dsn: x, schema: 1st}\n",
     "t.yaml:2:28: postgres.schema: \"1st\" is not an SQL name: 1 to 63 letters, digits and "
     "underscores, no digit first",
     NULL},
};

#define FOLD(fields) SMALLEST "folds: [{name: r, publish: {kafka: {topic: o}}, " fields "}]\n"
#define OF_TRANSITIONS                                                                             \
    "transitions have campaign_id, org_id, status, prev_status, flags, and inbox.COLUMN for what " \
    "your table says of the message"

static const struct mistake fold_mistakes[] = {
    {FOLD("group_key: [campaign_id], match: {gateway: twilio}"),
     "t.yaml:3:8: folds: rule \"r\": match: transitions are of messages and have no field of the "
     "receipt \"gateway\"",
     OF_TRANSITIONS},
    {FOLD("group_key: [campain_id]"),
     "t.yaml:3:8: folds: rule \"r\": group_key: transitions have no field \"campain_id\"",
     OF_TRANSITIONS},
    {FOLD("group_key: [inbox.status]"),
     "t.yaml:3:8: folds: rule \"r\": group_key: the transition has this as a field of its own, "
     "without inbox.: \"inbox.status\"",
     OF_TRANSITIONS},
    {FOLD("group_key: [org_id], match: {flags: SENT}"),
     "t.yaml:3:8: folds: rule \"r\": match: flags: a status, not a flag: \"SENT\"", NULL},
    {FOLD("group_key: [org_id], match: {prev_status: COMPLAINED}"),
     "t.yaml:3:8: folds: rule \"r\": match: prev_status: a flag, not a status: \"COMPLAINED\"",
     NULL},
    {FOLD("group_key: [org_id], match: {status: GONE}"),
     "t.yaml:3:8: folds: rule \"r\": match: the ladder has no status \"GONE\"", NULL},
    {FOLD("group_key: [org_id], collect: {x: {field: inbox., kind: set}}"),
     "t.yaml:3:8: folds: rule \"r\": collect: transitions have no field \"inbox.\"",
     OF_TRANSITIONS},
    {FOLD("group_key: [org_id], collect: {x: {kind: sum}}"),
     "t.yaml:3:8: folds: rule \"r\": collect: transitions have set, count, first and last, not "
     "\"x\"",
     NULL},
    {FOLD("group_key: [id], source: topic"),
     "t.yaml:3:8: folds: rule \"r\": source: topic needs the name of a topic",
     "for example topic: account-events"},
    {FOLD("group_key: [id], source: topic, topic: o"),
     "t.yaml:3:8: folds: rule \"r\": publishes to the topic that it reads: \"o\"", NULL},
    {FOLD("group_key: [org_id], funnel: true"),
     "t.yaml:3:8: folds: rule \"r\": funnel needs campaign_id in group_key", NULL},
    {FOLD("group_key: [org_id], window: 2m"),
     "t.yaml:3:8: folds: rule \"r\": max_hold is less than window", NULL},
    {FOLD("group_key: [org_id], match: {status: \"SENT|\"}"),
     "t.yaml:3:8: folds: rule \"r\": match: the ladder has no status \"\"", NULL},
    {FOLD("group_key: [org_id], match: {flags: \"\"}"),
     "t.yaml:3:8: folds: rule \"r\": match: the ladder has no status \"\"", NULL},
    {FOLD("group_key: [org_id], match: {status: \"SENT|OPENED|GONE\"}"),
     "t.yaml:3:8: folds: rule \"r\": match: the ladder has no status \"GONE\"", NULL},
    {FOLD("group_key: [org_id], collect: [{name: x, kind: set, field: status}, {name: x, kind: "
          "count}]"),
     "t.yaml:3:8: folds: rule \"r\": collect: is named twice: \"x\"", NULL},
    {FOLD("group_key: []"), "t.yaml:3:60: folds[0].group_key: must have 1 to 8 entries, has 0",
     NULL},
    {FOLD("group_key: [org_id, \"\"]"), "t.yaml:3:69: folds[0].group_key: is empty", NULL},
    {FOLD("group_key: [org_id], collect: {x: set}"),
     "t.yaml:3:83: folds[0].collect.x: must be a mapping with kind", NULL},
    {FOLD("group_key: [org_id], collect: {\"\": {kind: set}}"),
     "t.yaml:3:80: folds[0].collect: a name must be 1 to 255 bytes long", NULL},
    {FOLD("group_key: [org_id], collect: {x: {kind: set, of: y}}"),
     "t.yaml:3:95: folds[0].collect.x.of: unknown key", NULL},
    {SMALLEST "folds: [opens]\n", "t.yaml:3:9: folds[0]: must be a mapping with name, group_key",
     NULL},
};

#define RULE(fields) SMALLEST "folds: [{name: r, " fields "}]\n"
#define TO_TOPIC     "publish: {kafka: {topic: o}}, "
#define HOOK(fields) RULE("group_key: [campaign_id], publish: {webhook: {" fields "}}")
#define SECRET       "whsec_MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIz"

/* What the fields of a rule mean together. */
static const struct mistake rule_mistakes[] = {
    {RULE(TO_TOPIC "topic: t2, group_key: [campaign_id]"),
     "t.yaml:3:8: folds: rule \"r\": topic goes with source: topic only", NULL},
    {RULE(TO_TOPIC "source: topic, topic: t2, funnel: true, group_key: [campaign_id]"),
     "t.yaml:3:8: folds: rule \"r\": funnel goes with source: transitions only", NULL},
    {RULE(TO_TOPIC "source: topic, topic: t2, group_key: [a], collect: {traces: {kind: set}}"),
     "t.yaml:3:8: folds: rule \"r\": collect: the name is taken: \"traces\"", NULL},
    {RULE("group_key: [campaign_id], publish: {kafka: {topic: o}, webhook: {url: 'http://h/'}}"),
     "t.yaml:3:8: folds: rule \"r\": publish is either kafka with a topic or webhook with a url",
     NULL},
    {RULE("group_key: [campaign_id], publish: {kafka: {topic: 'o o'}}"),
     "t.yaml:3:8: folds: rule \"r\": publish.kafka.topic: no name of a topic: \"o o\"", NULL},
    {RULE("group_key: [campaign_id], publish: {kafka: {topic: o, key: org_id}}"),
     "t.yaml:3:8: folds: rule \"r\": publish.kafka.key: no field of the group key: \"org_id\"",
     "group, id, or one of group_key"},
    {HOOK("url: 'ftp://h/'"),
     "t.yaml:3:8: folds: rule \"r\": publish.webhook.url is no http or https URL", NULL},
    {HOOK("url: 'http://h/', secrets: [whsec_short]"),
     "t.yaml:3:8: folds: rule \"r\": publish.webhook.secrets: one of them is no secret",
     "whsec_ and the base64 of 24 to 64 bytes"},
    {HOOK("url: 'http://h/', retry_min: 2m, retry_max: 1m"),
     "t.yaml:3:8: folds: rule \"r\": publish.webhook: retry_min is more than retry_max", NULL},
    {SMALLEST "folds: [{name: r, publish: {kafka: {topic: o}}, group_key: [org_id]}, {name: r, "
              "publish: {kafka: {topic: o}}, group_key: [org_id]}]\n",
     "t.yaml:3:8: folds: rule \"r\": is named twice", NULL},
};

#define ENDPOINTS(list) SMALLEST "actions: {endpoints: [" list "]}\n"

static const struct mistake endpoint_mistakes[] = {
    {ENDPOINTS("{name: e, url: 'http://h/'}, {name: e, url: 'http://h/'}"),
     "t.yaml:3:22: actions.endpoints: \"e\" is named twice", NULL},
    {ENDPOINTS("{name: e, url: 'http://user@h/'}"),
     "t.yaml:3:22: actions.endpoints: the URL of e is not of http or https, or holds a user name",
     NULL},
    {ENDPOINTS("{name: e, url: 'http://h/', secrets: [" SECRET ", whsec_MDEy]}"),
     "t.yaml:3:22: actions.endpoints: secret 2 of e is not whsec_ and the base64 of 24 to 64 bytes",
     NULL},
    {ENDPOINTS("{name: e, url: 'http://h/', headers: ['no colon']}"),
     "t.yaml:3:22: actions.endpoints: header 1 of e is not Name: value", NULL},
    {ENDPOINTS("{name: e, url: 'http://h/', headers: ['X: y', 'Webhook-Id: 7']}"),
     "t.yaml:3:22: actions.endpoints: header 2 of e: every call has a Webhook-Id from receiptd; "
     "remove it",
     NULL},
    {SMALLEST "actions: {lease: 30s, endpoints: [{name: e, url: 'http://h/', timeout: 20s}]}\n",
     "t.yaml:3:34: actions.endpoints: the time-out of e is more than half of actions.lease", NULL},
    {SMALLEST "intake: {topic: i, dead_letter_topic: d, accounts: [{name: a, gateway: kannel, "
              "org_id: o, verify: \"off\"}, {name: a, gateway: kannel, org_id: o, verify: "
              "\"off\"}]}\n",
     "t.yaml:3:52: intake.accounts: \"a\" is named twice", NULL},
};

static const struct mistake ladder_mistakes[] = {
    {SMALLEST "ladder:\n  flags: [{name: SEEN}]\n  statuses: []\n",
     "t.yaml:5:13: ladder.statuses: must have 1 to 100 entries, has 0", NULL},
    {SMALLEST "ladder: {statuses: {name: A}}\n",
     "t.yaml:3:20: ladder.statuses: expected a list of mappings, found a mapping", NULL},
    {SMALLEST "ladder:\n  statuses:\n  - SENT\n",
     "t.yaml:5:5: ladder.statuses[0]: must be a mapping with name, code", NULL},
    {SMALLEST "ladder:\n  statuses:\n  - {name: ROOT, code: 0}\n  - {name: SENT, cod: 300}\n",
     "t.yaml:6:18: ladder.statuses[1].cod: unknown key", "did you mean \"code\"?"},
    {SMALLEST "ladder:\n  statuses:\n  - {name: ROOT}\n",
     "t.yaml:5:5: missing required key ladder.statuses[0].code",
     "code: stored number and priority at once: of two statuses the larger code wins"},
    {SMALLEST "ladder:\n  statuses:\n  - {name: ROOT, code: 0, code: 1}\n",
     "t.yaml:5:27: ladder.statuses[0].code: is given twice", "it stands at line 5 too"},
    {SMALLEST "ladder:\n  statuses:\n  - {name: ROOT, code: 9001}\n",
     "t.yaml:5:24: ladder.statuses[0].code: must be 0 to 9000, is \"9001\"", NULL},
    {SMALLEST "ladder:\n  statuses:\n  - name: ROOT\n    code:\n",
     "t.yaml:6:10: ladder.statuses[0].code: has no value", "it must be a whole number"},
    {SMALLEST "ladder:\n  statuses:\n  - {name: ROOT, code: 0, terminal: yes}\n",
     "t.yaml:5:37: ladder.statuses[0].terminal: \"yes\" is not one of true, false", NULL},
};

static const struct mistake yaml_mistakes[] = {
    {SMALLEST "lanes: &a 8\nunknown: *a\n",
     "t.yaml:4:10: aliases are not supported, write the value out", NULL},
    {SMALLEST "lanes: !!int 8\n", "t.yaml:3:8: tags are not supported", NULL},
    {SMALLEST "---\nlanes: 8\n", "t.yaml:3:1: a second document begins here", NULL},
    {SMALLEST "log: {level: \"a\\0b\"}\n",
     "t.yaml:3:14: a value must not contain the NUL character", NULL},
    {"kafka: b: c\n", "t.yaml:1:9: mapping values are not allowed in this context",
     "indent with blanks, not tabs; put a value in quotes when it contains \": \" or \" #\", or "
     "\"${\" between brackets"},
    {"[[[[[[[[[[[[[[[[[[[[", "t.yaml:1:17: nested deeper than 16 levels", NULL},
    {SMALLEST "batch:\n\tlinger: 5s\n",
     "t.yaml:4:1: found character that cannot start any token, while scanning for the next token "
     "that begins at line 4",
     "indent with blanks, not tabs; put a value in quotes when it contains \": \" or \" #\", or "
     "\"${\" between brackets"},
    {"kafka:\n  brokers: \xff\n", "t.yaml:2:12: invalid leading UTF-8 octet",
     "the file must be UTF-8 text without control characters"},
};

static void expect_errors(const struct mistake *mistakes, size_t count)
{
    for (size_t index = 0; index < count; index++)
        expect_error(mistakes[index].text, mistakes[index].message, mistakes[index].hint);
}

static void a_wrong_key_is_named_with_its_place(void **state)
{
    (void)state;
    expect_errors(key_mistakes, COUNT_OF(key_mistakes));
}

static void a_wrong_value_is_named_with_its_place(void **state)
{
    (void)state;
    expect_errors(value_mistakes, COUNT_OF(value_mistakes));
}

static void a_wrong_entry_is_named_with_its_place(void **state)
{
    (void)state;
    unsetenv("TEST_CONFIG_UNSET");
    expect_errors(list_mistakes, COUNT_OF(list_mistakes));
}

static void too_many_entries_are_refused_with_their_number(void **state)
{
    (void)state;
    static const struct {
        const char *before, *each, *behind, *message;
        unsigned count;
    } cases[] = {
        {SMALLEST "folds: [{name: r, publish: {kafka: {topic: o}}, group_key: [org_id], match: {",
         "inbox.c#: a, ", "}}]\n", "t.yaml:3:77: folds[0].match: must have 0 to 16 entries, has 17",
         17},
        {SMALLEST "folds: [{name: r, publish: {kafka: {topic: o}}, group_key: [org_id], collect: {",
         "c#: {kind: count}, ", "}}]\n",
         "t.yaml:3:79: folds[0].collect: must have 0 to 16 entries, has 17", 17},
        {"kafka: {brokers: b, topics: [", "t#, ", "]}\npostgres: {dsn: x}\n",
         "t.yaml:1:29: kafka.topics: must have 1 to 100 entries, has 101", 101},
    };
    for (size_t index = 0; index < COUNT_OF(cases); index++) {
        char *text = repeated(cases[index].before, cases[index].each, cases[index].count,
                              cases[index].behind);
        expect_error(text, cases[index].message, NULL);
        free(text);
    }
}

static void a_wrong_ladder_is_named_with_its_place(void **state)
{
    (void)state;
    expect_errors(ladder_mistakes, COUNT_OF(ladder_mistakes));
}

static void a_wrong_fold_says_what_its_source_has(void **state)
{
    (void)state;
    expect_errors(fold_mistakes, COUNT_OF(fold_mistakes));
    expect_errors(rule_mistakes, COUNT_OF(rule_mistakes));
    expect_errors(endpoint_mistakes, COUNT_OF(endpoint_mistakes));
}

static void what_is_not_plain_yaml_is_refused_with_its_place(void **state)
{
    (void)state;
    expect_errors(yaml_mistakes, COUNT_OF(yaml_mistakes));
}

static void a_file_over_one_mebibyte_is_refused(void **state)
{
    (void)state;
    size_t size = (1 << 20) + 1;
    char *text = malloc(size);
    struct rcpt_error error;
    memset(text, '#', size);
    assert_null(rcpt_config_parse("t.yaml", text, size, &error));
    assert_string_equal(error.text, "t.yaml: is larger than 1 MiB");
    free(text);
}

static void an_alias_bomb_is_refused_at_its_first_alias(void **state)
{
    (void)state;
    expect_error("a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n",
                 "t.yaml:2:8: aliases are not supported, write the value out", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wrong_key_is_named_with_its_place),
        cmocka_unit_test(a_wrong_value_is_named_with_its_place),
        cmocka_unit_test(a_wrong_entry_is_named_with_its_place),
        cmocka_unit_test(too_many_entries_are_refused_with_their_number),
        cmocka_unit_test(a_wrong_ladder_is_named_with_its_place),
        cmocka_unit_test(a_wrong_fold_says_what_its_source_has),
        cmocka_unit_test(what_is_not_plain_yaml_is_refused_with_its_place),
        cmocka_unit_test(a_file_over_one_mebibyte_is_refused),
        cmocka_unit_test(an_alias_bomb_is_refused_at_its_first_alias),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
