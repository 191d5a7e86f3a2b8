/* Fold rules in the configuration: the fields of an entry of `folds`, and what they mean
 * together: fields that transitions or topics have, statuses of the ladder, the target of
 * publications. A rule's mistake would otherwise show only when its first group is published.
 * Called by config.c. */
#include "folds.h"

#include <string.h>
#include <sysexits.h>

#include "receiptd/config/value.h"
#include "receiptd/http/webhook.h"
#include "rows.h"

static const cyaml_strval_t sources[] = {
    {"transitions", RCPT_FOLD_TRANSITIONS},
    {"topic", RCPT_FOLD_TOPIC},
};
/* How a group keeps a field's values; core/fold_kind.h explains each kind. */
static const cyaml_strval_t kinds[] = {
    {"set", RCPT_FOLD_SET},   {"sum", RCPT_FOLD_SUM},     {"min", RCPT_FOLD_MIN},
    {"max", RCPT_FOLD_MAX},   {"count", RCPT_FOLD_COUNT}, {"first", RCPT_FOLD_FIRST},
    {"last", RCPT_FOLD_LAST},
};

/* An entry of collect. */
#define RECORD struct rcpt_fold_collect_config
static const struct rcpt_config_row collect_rows[] = {
    TEXT("name", name, REQUIRED, NULL, 1, 63, "name in the publication"),
    TEXT("field", field, NULLABLE, NULL, 1, 255,
         "field of the event, `a.b` inside an object; not set: as the name"),
    CHOICE("kind", kind, REQUIRED, NULL, kinds, "what is kept of its values"),
};
static const struct rcpt_config_table collect_record = RECORD_OF(collect_rows);
#undef RECORD

#define RECORD struct rcpt_fold_config
static const struct rcpt_config_row rows[] = {
    TEXT("name", name, REQUIRED, NULL, 1, 63,
         "name of the rule; it never changes, since groups belong to it"),
    CHOICE("source", source, 0, "transitions", sources,
           "changes of the core, or events of a topic"),
    TEXT("topic", topic, NULLABLE, NULL, 1, 249, "topic of JSON objects, for `source: topic`"),
    MAP("match", match, match_count, 0, 16, pair_record,
        "fields with their allowed values, separated by vertical bars"),
    KEY(LIST, "group_key", LIST_AT(group_key, group_key_count), REQUIRED, NULL, 1, 8,
        "fields that make a group, `[campaign_id]`; transitions also have `org_id`, `status`, "
        "`prev_status`, `flags`, `inbox.COLUMN`"),
    DURATION("window", window_ms, 0, "5s", 100, DAY,
             "a group is published after so long without an event"),
    DURATION("max_hold", max_hold_ms, 0, "1m", 100, 30 * DAY,
             "longest time from a group's first event to its publication"),
    INTEGER("max_events", max_events, 0, "1000000", 1, 1000000000,
            "events after which a group is published"),
    INTEGER("max_values", max_values, 0, "1000", 1, 10000,
            "size of a collected set; further values are only counted"),
    RECORDS("collect", collect, collect_count, NAMED, "[]", 0, 16, collect_record,
            "contents of the publication, `NAME: {field, kind}`; kinds: set, sum, min, max, count, "
            "first, last"),
    BOOLEAN("funnel", funnel, 0, "false", "adds the campaign's funnel as of the claim"),
    TEXT("publish.kafka.topic", publish.kafka.topic, NULLABLE, NULL, 1, 249,
         "topic of the publications, instead of a webhook"),
    TEXT("publish.kafka.key", publish.kafka.key, 0, "group", 1, 255,
         "key of the records: `group`, `id`, or a field of the group key"),
    TEXT("publish.webhook.url", publish.webhook.url, NULLABLE | SECRET, NULL, 8, 2000,
         "receiver of the publications"),
    LIST("publish.webhook.secrets", publish.webhook.secrets, publish.webhook.secrets_count, SECRET,
         8, "keys `whsec_…`; each signs, for rotation"),
    DURATION("publish.webhook.timeout", publish.webhook.timeout_ms, 0, "10s", 100, 60 * SECOND,
             "limit of one attempt"),
    INTEGER("publish.webhook.concurrency", publish.webhook.concurrency, 0, "8", 1, 256,
            "concurrent attempts of one instance"),
    DURATION("publish.webhook.retry_min", publish.webhook.retry_min_ms, 0, "1s", 10, DAY,
             "shortest wait before another attempt"),
    DURATION("publish.webhook.retry_max", publish.webhook.retry_max_ms, 0, "10m", 10, DAY,
             "longest wait"),
    DURATION("publish.webhook.max_age", publish.webhook.max_age_ms, 0, "1d", SECOND, 30 * DAY,
             "age at which a publication is given up"),
    BOOLEAN("publish.webhook.allow_private", publish.webhook.allow_private, 0, "false",
            "allows an address that is not public"),
};

const struct rcpt_config_table rcpt_config_fold_record = RECORD_OF(rows);

/* ---- what they mean together ---- */

/* All errors name the rule. The places of its fields are gone by now, so config.c adds the place of
 * `folds`. */
static bool fail(struct rcpt_error *error, const struct rcpt_fold_config *fold, const char *what,
                 const char *value)
{
    return rcpt_error_fatal(error, EX_CONFIG, "folds: rule \"%.63s\": %s%s%.63s%s", fold->name,
                            what, value != NULL ? " \"" : "", value != NULL ? value : "",
                            value != NULL ? "\"" : "");
}

enum field { /* of a transition */
             FIELD_KNOWN,
             FIELD_UNKNOWN,
             FIELD_OF_RECEIPT, /* the core reads it and does not keep it */
             FIELD_MOVING,     /* a column that the transition itself changes */
};

/* Linear: the lists are short, and only loading searches them. */
static bool is_one_of(const char *name, const char *const *names, size_t count)
{
    for (size_t index = 0; index < count; index++)
        if (strcmp(names[index], name) == 0)
            return true;
    return false;
}

/* The fields of a transition are few and known; `inbox.COLUMN` reads any other column of the
 * platform's table. */
static enum field transition_field(const char *name)
{
    static const char *const known[] = {"campaign_id", "org_id", "status", "prev_status", "flags"};
    static const char *const receipt[] = {"channel", "gateway", "at", "message_id", "provider"};
    /* Every column but the id: a transition has it by itself. */
    static const char *const columns[] = {
#define COLUMN(column, ...) #column,
        RCPT_INBOX_COLUMNS(COLUMN)
#undef COLUMN
    };
    size_t prefix = strlen(RCPT_FOLD_COLUMN_PREFIX);
    if (is_one_of(name, known, RCPT_COUNT_OF(known)))
        return FIELD_KNOWN;
    if (is_one_of(name, receipt, RCPT_COUNT_OF(receipt)))
        return FIELD_OF_RECEIPT;
    if (strncmp(name, RCPT_FOLD_COLUMN_PREFIX, prefix) != 0 || name[prefix] == '\0')
        return FIELD_UNKNOWN;
    return is_one_of(name + prefix, columns + 1, RCPT_COUNT_OF(columns) - 1) ? FIELD_MOVING
                                                                             : FIELD_KNOWN;
}

/* Three similar mistakes need different answers. */
static bool check_field(const struct rcpt_fold_config *fold, const char *where, const char *name,
                        struct rcpt_error *error)
{
    static const char *const said[] = {
        [FIELD_UNKNOWN] = "transitions have no field",
        [FIELD_OF_RECEIPT] = "transitions are of messages and have no field of the receipt",
        [FIELD_MOVING] = "the transition has this as a field of its own, without inbox.:",
    };
    char what[120];
    enum field kind = transition_field(name);
    if (kind == FIELD_KNOWN)
        return true;
    snprintf(what, sizeof(what), "%s: %s", where, said[kind]);
    fail(error, fold, what, name);
    rcpt_error_hint(error, "transitions have campaign_id, org_id, status, prev_status, flags, and "
                           "inbox.COLUMN for what your table says of the message");
    return false;
}

/* A publication has only the fields of its group key, besides what it collects. */
static bool is_key_field(const struct rcpt_fold_config *fold, const char *name)
{
    for (size_t index = 0; index < fold->group_key_count; index++)
        if (strcmp(fold->group_key[index], name) == 0)
            return true;
    return false;
}

/* Values of match are separated by `|`; each must be in the ladder. */
static bool check_statuses(const struct rcpt_fold_config *fold,
                           const struct rcpt_config_pair *match, const struct rcpt_ladder *ladder,
                           struct rcpt_error *error)
{
    const char *values = match->value;
    /* A match of `status` takes both kinds: a flag's receipt is a transition too. */
    bool needs_flag = strcmp(match->name, "flags") == 0;
    bool needs_status = strcmp(match->name, "prev_status") == 0;
    for (;;) {
        size_t size = strcspn(values, "|");
        char name[64];
        snprintf(name, sizeof(name), "%.*s", (int)size, values);
        int entry = rcpt_ladder_find_name(ladder, name, strlen(name), NULL, 0);
        bool is_flag = entry >= 0 && rcpt_ladder_entry(ladder, (size_t)entry)->is_flag;
        if (entry < 0)
            return fail(error, fold, "match: the ladder has no status", name);
        if ((needs_flag && !is_flag) || (needs_status && is_flag))
            return fail(error, fold,
                        needs_flag ? "match: flags: a status, not a flag:"
                                   : "match: prev_status: a flag, not a status:",
                        name);
        if (values[size] == '\0')
            return true;
        values += size + 1;
    }
}

/* These three fields have values that the ladder names; others take any text. */
static bool is_of_ladder(const char *name)
{
    return strcmp(name, "status") == 0 || strcmp(name, "prev_status") == 0 ||
           strcmp(name, "flags") == 0;
}

/* A value outside of the ladder would never match, and the rule would never publish. */
static bool check_matches(const struct rcpt_fold_config *fold, const struct rcpt_ladder *ladder,
                          struct rcpt_error *error)
{
    for (size_t index = 0; index < fold->match_count; index++) {
        const struct rcpt_config_pair *match = &fold->match[index];
        if (!check_field(fold, "match", match->name, error) ||
            (is_of_ladder(match->name) && !check_statuses(fold, match, ladder, error)))
            return false;
    }
    return true;
}

/* A transition has no numbers: what adds or compares them is refused. */
static bool check_transitions(const struct rcpt_fold_config *fold, const struct rcpt_ladder *ladder,
                              struct rcpt_error *error)
{
    if (fold->topic != NULL)
        return fail(error, fold, "topic goes with source: topic only", NULL);
    for (size_t index = 0; index < fold->group_key_count; index++)
        if (!check_field(fold, "group_key", fold->group_key[index], error))
            return false;
    for (size_t index = 0; index < fold->collect_count; index++) {
        const struct rcpt_fold_collect_config *collect = &fold->collect[index];
        const char *field = collect->field != NULL ? collect->field : collect->name;
        if (collect->kind == RCPT_FOLD_SUM || collect->kind == RCPT_FOLD_MIN ||
            collect->kind == RCPT_FOLD_MAX)
            return fail(error, fold, "collect: transitions have set, count, first and last, not",
                        collect->name);
        if (collect->kind != RCPT_FOLD_COUNT && !check_field(fold, "collect", field, error))
            return false;
    }
    return check_matches(fold, ladder, error);
}

/* A rule that reads its own publications would never come to an end. */
static bool check_topic(const struct rcpt_fold_config *fold, struct rcpt_error *error)
{
    if (fold->topic == NULL || !rcpt_config_is_topic(fold->topic)) {
        fail(error, fold, "source: topic needs the name of a topic", fold->topic);
        rcpt_error_hint(error, "for example topic: account-events");
        return false;
    }
    if (fold->publish.kafka.topic != NULL && strcmp(fold->topic, fold->publish.kafka.topic) == 0)
        return fail(error, fold, "publishes to the topic that it reads:", fold->topic);
    if (fold->funnel)
        return fail(error, fold, "funnel goes with source: transitions only", NULL);
    return true;
}

/* Two collected values under one name would overwrite each other in the publication. */
static bool check_collect(const struct rcpt_fold_config *fold, struct rcpt_error *error)
{
    for (size_t index = 0; index < fold->collect_count; index++) {
        if (strcmp(fold->collect[index].name, "traces") == 0)
            return fail(error, fold, "collect: the name is taken:", "traces");
        for (size_t other = 0; other < index; other++)
            if (strcmp(fold->collect[index].name, fold->collect[other].name) == 0)
                return fail(error, fold, "collect: is named twice:", fold->collect[index].name);
    }
    return true;
}

/* A mistake here would show only at the first call, hours later perhaps, so URL and keys are parsed
 * now. */
static bool check_webhook(const struct rcpt_fold_config *fold, struct rcpt_error *error)
{
    struct rcpt_webhook_secret secret;
    if (!rcpt_webhook_url_is_valid(fold->publish.webhook.url))
        return fail(error, fold, "publish.webhook.url is no http or https URL", NULL);
    for (size_t index = 0; index < fold->publish.webhook.secrets_count; index++)
        if (!rcpt_webhook_secret_parse(&secret, fold->publish.webhook.secrets[index])) {
            fail(error, fold, "publish.webhook.secrets: one of them is no secret", NULL);
            rcpt_error_hint(error, "whsec_ and the base64 of 24 to 64 bytes");
            return false;
        }
    return fold->publish.webhook.retry_min_ms <= fold->publish.webhook.retry_max_ms ||
           fail(error, fold, "publish.webhook: retry_min is more than retry_max", NULL);
}

/* Exactly one way out: a topic or a webhook. */
static bool check_publish(const struct rcpt_fold_config *fold, struct rcpt_error *error)
{
    /* The key decides the partition, so publications of one group stay in order by default. */
    const char *key = fold->publish.kafka.key;
    if ((fold->publish.kafka.topic == NULL) == (fold->publish.webhook.url == NULL))
        return fail(error, fold, "publish is either kafka with a topic or webhook with a url",
                    NULL);
    if (fold->publish.webhook.url != NULL && !check_webhook(fold, error))
        return false;
    if (fold->publish.kafka.topic != NULL && !rcpt_config_is_topic(fold->publish.kafka.topic))
        return fail(error, fold,
                    "publish.kafka.topic: no name of a topic:", fold->publish.kafka.topic);
    if (strcmp(key, "group") != 0 && strcmp(key, "id") != 0 && !is_key_field(fold, key)) {
        fail(error, fold, "publish.kafka.key: no field of the group key:", key);
        rcpt_error_hint(error, "group, id, or one of group_key");
        return false;
    }
    if (fold->funnel && !is_key_field(fold, "campaign_id"))
        return fail(error, fold, "funnel needs campaign_id in group_key", NULL);
    /* The window could never end by itself: max_hold would close every group first. */
    if (fold->max_hold_ms < fold->window_ms)
        return fail(error, fold, "max_hold is less than window", NULL);
    return true;
}

/* The name is the key of the rule's groups in the database, so two rules must not share it. */
bool rcpt_config_check_fold(const struct rcpt_fold_config *folds, size_t index,
                            const struct rcpt_ladder *ladder, struct rcpt_error *error)
{
    const struct rcpt_fold_config *fold = &folds[index];
    for (size_t other = 0; other < index; other++)
        if (strcmp(folds[other].name, fold->name) == 0)
            return fail(error, fold, "is named twice", NULL);
    return (fold->source == RCPT_FOLD_TOPIC ? check_topic(fold, error)
                                            : check_transitions(fold, ladder, error)) &&
           check_collect(fold, error) && check_publish(fold, error);
}
