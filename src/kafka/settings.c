/* librdkafka's properties: values of receiptd, properties that the user may not set and why, and
 * checks of the user's own. The user's properties replace our defaults; those on which the protocol
 * relies are refused. Called by consumer.c, cluster.c, the clients that send, and check-config.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sysexits.h>

#include "internal.h"
#include "receiptd/base/error.h"

/* Charge for a small message: librdkafka allocates a structure for each, which its own bound in
 * bytes leaves out. */
#define MESSAGE_BYTES 1024u

/* Releases in librdkafka's form 0xMMmmrrpp: the first ones without the named defect. */
#define VERSION_OLDEST             0x020002ff
#define VERSION_SCRAM_MENDED       0x020601ff /* the client nonce was sent twice before */
#define VERSION_COOPERATIVE_MENDED 0x020601ff
#define VERSION_RACK_MENDED        0x020601ff
#define CLIENT_ID_MAX              64u /* longer ones crash some releases */
#define HEARTBEAT_MS               1000

struct refusal {
    const char *name;
    const char *reason;
    const char *hint;
};

static const char position_reason[] =
    "positions live in PostgreSQL, in the transaction of the rows they cover";
static const char position_hint[] =
    "remove it; Kafka's group offsets are written for lag tools only";
static const char internal_reason[] = "receiptd serves librdkafka's queues itself";
static const char internal_hint[] = "remove it";

static const char foreign_reason[] = "foreign code could break the protocol";

static const struct refusal refusals[] = {
    {"bootstrap.servers", "it has a key of its own", "set kafka.brokers"},
    {"metadata.broker.list", "it has a key of its own", "set kafka.brokers"},
    {"group.id", "it has a key of its own", "set kafka.group"},
    {"group.instance.id", "it has a key of its own", "set kafka.instance_id"},
    {"queued.max.messages.kbytes", "it is computed from the byte budget and the partitions",
     "set kafka.fetch_budget"},
    {"queued.min.messages", "it is computed from the byte budget and the partitions",
     "set kafka.fetch_budget"},
    {"enable.auto.commit", position_reason, position_hint},
    {"auto.commit.enable", position_reason, position_hint},
    {"auto.commit.interval.ms", position_reason, "set kafka.commit_interval"},
    {"enable.auto.offset.store", position_reason, position_hint},
    {"offset.store.method", position_reason, position_hint},
    {"offset.store.path", position_reason, position_hint},
    {"offset.store.sync.interval.ms", position_reason, position_hint},
    {"auto.offset.reset", "a reset would skip or repeat receipts without a trace",
     "new partitions begin at their first record; set kafka.on_retention_gap for lost ones"},
    {"allow.auto.create.topics", "a mistyped topic would be created and read as empty",
     "create the topic with the partitions it is to have"},
    {"enable.partition.eof", "lags are read from the end of a partition", "remove it"},
    {"log.queue", internal_reason, internal_hint},
    {"enabled_events", internal_reason, internal_hint},
    {"plugin.library.paths", foreign_reason, internal_hint},
    {"ssl.engine.location", foreign_reason, internal_hint},
    {"ssl.engine.id", foreign_reason, internal_hint},
    {"ssl.providers", foreign_reason, internal_hint},
    {"sasl.kerberos.kinit.cmd", "it is a command of the shell, which would run in the process",
     "remove it, and keep the ticket fresh from outside"},
    {"test.mock.num.brokers", "it replaces the brokers by imaginary ones", "remove it"},
};

/* The protocol's own properties: the user may set none of them. */
static const struct rcpt_kafka_property fixed[] = {
    {"enable.auto.commit", "false"},  {"enable.auto.offset.store", "false"},
    {"auto.offset.reset", "error"},   {"allow.auto.create.topics", "false"},
    {"enable.partition.eof", "true"}, {"log.queue", "true"},
};

/* The user's own replace these. */
static const struct rcpt_kafka_property defaults[] = {
    {"client.id", "receiptd"},
    {"partition.assignment.strategy", "range,roundrobin"},
    {"isolation.level", "read_committed"},
    /* Off in librdkafka: a flipped bit would become a receipt. On damage it may abort the process
     * (2.0.2 and later, a wrong skip). No receipt is lost, and an operator can still choose to read
     * on without the check. */
    {"check.crcs", "true"},
    /* The broker answers at once when there is anything; an idle fetch comes back after 100 ms. */
    {"fetch.min.bytes", "1"},
    {"fetch.wait.max.ms", "100"},
    /* The search for the end of a batch that is too large (oversized.c) meets an error at each
     * step; other errors of a partition have a back-off of ours. */
    {"fetch.error.backoff.ms", "20"},
    {"socket.nagle.disable", "true"},
    {"socket.keepalive.enable", "true"},
    {"topic.metadata.refresh.interval.ms", "10000"},
    /* How long the partitions of an instance that was killed stand still. */
    {"session.timeout.ms", "10000"},
    {"reconnect.backoff.max.ms", "5000"},
};

const char *rcpt_kafka_version(void)
{
    return rd_kafka_version_str();
}

bool rcpt_kafka_has_threads(void)
{
    return rd_kafka_thread_cnt() > 0;
}

/* Always false, for the caller's return. */
static bool refuse(struct rcpt_error *error, const char *name, const char *reason, const char *hint)
{
    rcpt_error_fatal(error, EX_CONFIG, "kafka property %s cannot be set: %s", name, reason);
    rcpt_error_hint(error, "%s", hint);
    return false;
}

static bool check_not_refused(const char *name, struct rcpt_error *error)
{
    for (size_t i = 0; i < RCPT_COUNT_OF(refusals); i++)
        if (strcasecmp(name, refusals[i].name) == 0)
            return refuse(error, name, refusals[i].reason, refusals[i].hint);
    return true;
}

/* One of a comma-separated list with blanks; moves *text behind it. */
static size_t next_word(const char **text, const char **word)
{
    *text += strspn(*text, ", \t");
    *word = *text;
    size_t size = strcspn(*text, ", \t");
    *text += size;
    return size;
}

static bool word_is(const char *word, size_t size, const char *expected)
{
    return strlen(expected) == size && strncmp(word, expected, size) == 0;
}

/* Strategies of one protocol only; those that lose assignments in this librdkafka are refused. */
static bool check_strategy(const char *name, const char *value, struct rcpt_error *error)
{
    const char *word;
    bool eager = false, cooperative = false;
    for (size_t size = next_word(&value, &word); size > 0; size = next_word(&value, &word)) {
        if (word_is(word, size, "cooperative-sticky")) {
            cooperative = true;
        } else if (word_is(word, size, "range") || word_is(word, size, "roundrobin")) {
            eager = true;
        } else {
            rcpt_error_fatal(error, EX_CONFIG, "kafka property %s: no strategy \"%.*s\"", name,
                             (int)size, word);
            rcpt_error_hint(error, "one of range, roundrobin, cooperative-sticky");
            return false;
        }
    }
    if (cooperative && eager)
        return refuse(error, name, "cooperative-sticky does not go together with others",
                      "choose cooperative-sticky alone, or range,roundrobin");
    if (cooperative && rd_kafka_version() < VERSION_COOPERATIVE_MENDED)
        return refuse(error, name,
                      "cooperative-sticky loses assignments and hangs before librdkafka 2.6.1",
                      "use range,roundrobin, or a later librdkafka");
    if (!cooperative && !eager)
        return refuse(error, name, "it names no strategy", "use range,roundrobin");
    return true;
}

/* Values that librdkafka accepts, but with which this release or the protocol fails. */
static bool check_particular(const char *name, const char *value, struct rcpt_error *error)
{
    if (strcasecmp(name, "partition.assignment.strategy") == 0)
        return check_strategy(name, value, error);
    if (strcasecmp(name, "client.rack") == 0 && rd_kafka_version() < VERSION_RACK_MENDED)
        return refuse(error, name, "fetching from followers can crash before librdkafka 2.6.1",
                      "remove it, or use a later librdkafka");
    if (strcasecmp(name, "client.id") == 0 && strlen(value) > CLIENT_ID_MAX)
        return refuse(error, name, "longer than 64 characters", "choose a shorter one");
    return true;
}

/* By its name: such a value never appears in a message. */
static bool is_secret(const char *name)
{
    static const char *const marks[] = {"password", "secret", "pem", "jaas",
                                        "sasl.oauthbearer.config"};
    for (size_t i = 0; i < RCPT_COUNT_OF(marks); i++)
        if (strcasestr(name, marks[i]) != NULL)
            return true;
    return false;
}

/* librdkafka's own words, except where they could repeat a secret. */
bool rcpt_kafka_set_property(rd_kafka_conf_t *conf, const char *name, const char *value,
                             struct rcpt_error *error)
{
    char text[256] = "";
    rd_kafka_conf_res_t result = rd_kafka_conf_set(conf, name, value, text, sizeof(text));
    if (result == RD_KAFKA_CONF_OK)
        return true;
    if (result == RD_KAFKA_CONF_UNKNOWN) {
        rcpt_error_fatal(error, EX_CONFIG, "librdkafka %s has no property \"%s\"",
                         rd_kafka_version_str(), name);
        rcpt_error_hint(error, "see CONFIGURATION.md of librdkafka for the names");
        return false;
    }
    rcpt_error_fatal(error, EX_CONFIG, "kafka property %s is refused: %s", name,
                     is_secret(name) ? "its value is not valid" : text);
    return false;
}

/* For check-config: one property, tried on a configuration of its own. */
bool rcpt_kafka_check_property(const char *name, const char *value, struct rcpt_error *error)
{
    if (!check_not_refused(name, error) || !check_particular(name, value, error))
        return false;
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    bool valid = rcpt_kafka_set_property(conf, name, value, error);
    rd_kafka_conf_destroy(conf);
    return valid;
}

static size_t clamp(size_t value, size_t low, size_t high)
{
    return value < low ? low : value > high ? high : value;
}

/* A share of the budget for each partition of the topics, as if all were assigned here: then a
 * rebalance that gives this instance more of them does not exceed the budget. A queue is full at
 * that many bytes or messages, whichever comes first: librdkafka counts bytes without its own. */
struct fetch_limits rcpt_kafka_fetch_limits(size_t budget_bytes, size_t partitions)
{
    size_t share = budget_bytes / (partitions > 0 ? partitions : 1);
    /* One fetch comes on top of what is queued already, and it may inflate tenfold: a thirty-second
     * keeps the excess small. */
    return (struct fetch_limits){
        .queued_kbytes = clamp(share / 1024, 1024, 65536),
        .queued_messages = clamp(share / MESSAGE_BYTES, 1024, 131072),
        .fetch_bytes = clamp(share / 32, 65536, 1048576),
    };
}

/* Stops at the first that is refused. */
bool rcpt_kafka_set_properties(rd_kafka_conf_t *conf, const struct rcpt_kafka_property *properties,
                               size_t count, struct rcpt_error *error)
{
    for (size_t i = 0; i < count; i++)
        if (!rcpt_kafka_set_property(conf, properties[i].name, properties[i].value, error))
            return false;
    return true;
}

/* In the order of the configuration, so the last of several entries with one name prevails. */
static bool set_users(rd_kafka_conf_t *conf, const struct rcpt_kafka_settings *settings,
                      struct rcpt_error *error)
{
    for (size_t i = 0; i < settings->property_count; i++) {
        const struct rcpt_kafka_property *property = &settings->properties[i];
        if (!check_not_refused(property->name, error) ||
            !check_particular(property->name, property->value, error) ||
            !rcpt_kafka_set_property(conf, property->name, property->value, error))
            return false;
    }
    return true;
}

static bool set_number(rd_kafka_conf_t *conf, const char *name, size_t value,
                       struct rcpt_error *error)
{
    char text[32];
    snprintf(text, sizeof(text), "%zu", value);
    return rcpt_kafka_set_property(conf, name, text, error);
}

/* Before 2.2 librdkafka polls a full queue once a second, or when a request wakes the broker's
 * thread: so this makes a cheap request. */
static bool set_queue_backoff(rd_kafka_conf_t *conf, struct rcpt_error *error)
{
    if (rd_kafka_conf_set(conf, "fetch.queue.backoff.ms", "10", NULL, 0) == RD_KAFKA_CONF_OK)
        return true;
    return rcpt_kafka_set_property(conf, "topic.metadata.refresh.interval.ms", "100", error);
}

/* A member learns by its heartbeat that the group changes: each second, and at least three times
 * within a session of the user's. */
static bool set_heartbeat(rd_kafka_conf_t *conf, const struct rcpt_kafka_settings *settings,
                          struct rcpt_error *error)
{
    const char *session = rcpt_kafka_property(settings, "session.timeout.ms");
    long long beat = session != NULL ? strtoll(session, NULL, 10) / 3 : HEARTBEAT_MS;
    return set_number(conf, "heartbeat.interval.ms", clamp((size_t)beat, 1, HEARTBEAT_MS), error);
}

/* Properties for members of the group only. */
static bool set_member(rd_kafka_conf_t *conf, const struct rcpt_kafka_settings *settings,
                       const struct fetch_limits *limits, struct rcpt_error *error)
{
    return rcpt_kafka_set_property(conf, "group.id", settings->group, error) &&
           (settings->instance_id == NULL ||
            rcpt_kafka_set_property(conf, "group.instance.id", settings->instance_id, error)) &&
           set_heartbeat(conf, settings, error) && set_queue_backoff(conf, error) &&
           set_number(conf, "queued.max.messages.kbytes", limits->queued_kbytes, error) &&
           set_number(conf, "queued.min.messages", limits->queued_messages, error) &&
           set_number(conf, "fetch.message.max.bytes", limits->fetch_bytes, error);
}

/* Checked when the process runs, since the library may differ from the one of the build. */
static bool check_library(struct rcpt_error *error)
{
    if (rd_kafka_version() >= VERSION_OLDEST)
        return true;
    rcpt_error_fatal(error, EX_CONFIG, "librdkafka %s is too old: 2.0.2 or newer",
                     rd_kafka_version_str());
    rcpt_error_hint(error, "upgrade the library, or look for an old one in LD_LIBRARY_PATH");
    return false;
}

/* The user's properties come last; those that would break the protocol were refused before. */
rd_kafka_conf_t *rcpt_kafka_conf_new(const struct rcpt_kafka_settings *settings,
                                     const struct fetch_limits *limits, struct rcpt_error *error)
{
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    if (!check_library(error) ||
        !rcpt_kafka_set_properties(conf, fixed, RCPT_COUNT_OF(fixed), error) ||
        !rcpt_kafka_set_properties(conf, defaults, RCPT_COUNT_OF(defaults), error) ||
        !rcpt_kafka_set_property(conf, "bootstrap.servers", settings->brokers, error) ||
        (limits != NULL && !set_member(conf, settings, limits, error)) ||
        !set_users(conf, settings, error)) {
        rd_kafka_conf_destroy(conf);
        return NULL;
    }
    rd_kafka_conf_set_events(conf, RD_KAFKA_EVENT_REBALANCE | RD_KAFKA_EVENT_ERROR |
                                       RD_KAFKA_EVENT_LOG | RD_KAFKA_EVENT_STATS |
                                       RD_KAFKA_EVENT_FETCH);
    return conf;
}

/* From the end: librdkafka too lets the last entry of a name prevail. */
const char *rcpt_kafka_property(const struct rcpt_kafka_settings *settings, const char *name)
{
    for (size_t i = settings->property_count; i-- > 0;)
        if (strcasecmp(settings->properties[i].name, name) == 0)
            return settings->properties[i].value;
    return NULL;
}

/* Both spellings are librdkafka's. */
const char *rcpt_kafka_mechanism(const struct rcpt_kafka_settings *settings)
{
    const char *mechanism = rcpt_kafka_property(settings, "sasl.mechanism");
    return mechanism != NULL ? mechanism : rcpt_kafka_property(settings, "sasl.mechanisms");
}

bool rcpt_kafka_is_scram_broken(const struct rcpt_kafka_settings *settings)
{
    const char *mechanism = rcpt_kafka_mechanism(settings);
    return mechanism != NULL && strncasecmp(mechanism, "SCRAM", 5) == 0 &&
           rd_kafka_version() < VERSION_SCRAM_MENDED;
}

/* Logs once for each client the defects of this release of librdkafka. */
void rcpt_kafka_warn_of_library(const struct rcpt_kafka_settings *settings)
{
    if (!rcpt_inflate_is_bounded())
        rcpt_log_warn("kafka",
                      "librdkafka %s does not use the shared liblz4 and libzstd: kafka.batch_limit "
                      "does not hold, HINT: docs/operations.md, \"Kafka\"",
                      rd_kafka_version_str());
    if (rcpt_kafka_is_scram_broken(settings))
        rcpt_log_warn("kafka",
                      "librdkafka %s cannot authenticate with %s on Kafka 4 and later, which says "
                      "\"invalid credentials\" (confluentinc/librdkafka#4895, fixed in 2.6.1): use "
                      "PLAIN over TLS, or a later librdkafka",
                      rd_kafka_version_str(), rcpt_kafka_mechanism(settings));
}
