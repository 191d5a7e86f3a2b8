/* Loading a configuration: file → nodes (yaml.c) → check and normal form (check.c) → struct
 * (schema.c, libcyaml) → checks over several keys → ladder, accounts, fold rules, pipelines. The
 * nodes live until the last check, so that every error has its line and column. Called by commands,
 * and by a reload in a worker thread: no state outlives the call. The result belongs to the caller.
 * Only rcpt_config_take_over() and pipelines_take() change it later. */
#include "receiptd/config/config.h"
#include "receiptd/base/error.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "check.h"
#include "folds.h"
#include "pipelines_internal.h"
#include "receiptd/config/rule_columns.h"
#include "receiptd/config/value.h"
#include "schema.h"

/* A configuration that is being made from a file. */
struct loading {
    struct rcpt_config_file file;
    struct rcpt_config *config;
};

/* Where a key stands, or else the other one that it does not go with. */
static struct rcpt_config_place place_of(struct loading *loading, const char *path,
                                         const char *other)
{
    struct rcpt_config_place place = rcpt_config_place_of_key(&loading->file, path);
    return place.line != 0 ? place : rcpt_config_place_of_key(&loading->file, other);
}

/* A lane is a hash under a mask, so their number is a power of two; a connection without a lane
 * would have nothing to do. */
static bool check_lanes(struct loading *loading)
{
    const struct rcpt_config *config = loading->config;
    if ((config->lanes & (config->lanes - 1)) != 0) {
        rcpt_config_error(loading->file.error, loading->file.name,
                          place_of(loading, "lanes", "lanes"),
                          "lanes: must be a power of two, is %u", config->lanes);
        rcpt_error_hint(loading->file.error, "1, 2, 4, 8, 16, 32, 64, 128 or 256");
        return false;
    }
    if (config->postgres.connections <= config->lanes)
        return true;
    rcpt_config_error(loading->file.error, loading->file.name,
                      place_of(loading, "postgres.connections", "lanes"),
                      "postgres.connections: %u are more than the %u lanes they serve",
                      config->postgres.connections, config->lanes);
    rcpt_error_hint(loading->file.error, "set postgres.connections to %u or less, or raise lanes",
                    config->lanes);
    return false;
}

/* Two durations of which the first must not be the larger. */
static bool check_order(struct loading *loading, const char *less_path, int64_t less,
                        const char *more_path, int64_t more)
{
    char less_text[RCPT_CONFIG_NUMBER_BYTES], more_text[RCPT_CONFIG_NUMBER_BYTES];
    if (less <= more)
        return true;
    rcpt_config_format_number(RCPT_CONFIG_DURATION, less, less_text);
    rcpt_config_format_number(RCPT_CONFIG_DURATION, more, more_text);
    return rcpt_config_error(loading->file.error, loading->file.name,
                             place_of(loading, less_path, more_path), "%s: %s is more than %s, %s",
                             less_path, less_text, more_path, more_text);
}

/* A column that the file names may be one that the platform has filled; one that it does not is
 * receiptd's. */
static void note_named_columns(struct loading *loading)
{
    static const char *const paths[] = {
#define COLUMN(column, ...) "inbox.columns." #column,
        RCPT_INBOX_COLUMNS(COLUMN)
#undef COLUMN
    };
    for (size_t index = 0; index < RCPT_COUNT_OF(paths); index++)
        if (loading->file.nodes[rcpt_config_find(rcpt_config_table(), paths[index])] != NULL)
            loading->config->inbox.named |= 1u << index;
}

/* Two meanings of one column would overwrite each other. */
static bool check_columns(struct loading *loading)
{
    static const char section[] = "inbox.columns.";
    const struct rcpt_config_table *table = rcpt_config_table();
    const char *names[RCPT_CONFIG_MAX_ROWS];
    for (size_t index = 0; index < rcpt_config_count(table); index++) {
        const struct rcpt_config_row *row = rcpt_config_row(table, index);
        names[index] = NULL;
        if (strncmp(row->path, section, sizeof(section) - 1) != 0)
            continue;
        memcpy(&names[index], (const char *)loading->config + row->offset, sizeof(names[index]));
        for (size_t other = 0; names[index] != NULL && other < index; other++)
            if (names[other] != NULL && strcmp(names[other], names[index]) == 0)
                return rcpt_config_error(
                    loading->file.error, loading->file.name,
                    place_of(loading, row->path, rcpt_config_row(table, other)->path),
                    "%s: \"%s\" is the column of %s too", row->path, names[index],
                    rcpt_config_row(table, other)->path);
    }
    return true;
}

/* The map takes any name, so the names are checked here. */
static bool check_log_levels(struct loading *loading)
{
    for (unsigned index = 0; index < loading->config->log.levels_count; index++) {
        const struct rcpt_config_pair *pair = &loading->config->log.levels[index];
        struct rcpt_config_place place = {pair->line, pair->column};
        if (!rcpt_config_is_component(pair->name)) {
            rcpt_config_error(loading->file.error, loading->file.name, place,
                              "log.levels: there is no component \"%.40s\"", pair->name);
            rcpt_error_hint(loading->file.error, "components are " RCPT_CONFIG_COMPONENTS);
            return false;
        }
        if (rcpt_log_find_level(pair->value) == RCPT_LOG_LEVEL__COUNT)
            return rcpt_config_error(loading->file.error, loading->file.name, place,
                                     "log.levels.%s: \"%.40s\" is not one of error, warn, info, "
                                     "debug",
                                     pair->name, pair->value);
    }
    return true;
}

/* Neither is of use without the other; one alone is probably a forgotten line. */
static bool check_tls(struct loading *loading)
{
    const struct rcpt_config *config = loading->config;
    if ((config->http.tls_certificate == NULL) == (config->http.tls_key == NULL))
        return true;
    return rcpt_config_error(loading->file.error, loading->file.name,
                             place_of(loading, "http.tls_certificate", "http.tls_key"),
                             "http.tls_certificate and http.tls_key go together: one is not set");
}

/* Retention needs something of the inbox that may not be there. */
static bool check_retention(struct loading *loading)
{
    const char *problem = rcpt_config_retention_problem(loading->config);
    return problem == NULL ||
           rcpt_config_error(loading->file.error, loading->file.name,
                             place_of(loading, "inbox.retention", "inbox.retention_overrides"),
                             "%s", problem);
}

/* A partition's bounds are made from the time in ids. */
static bool check_partitions(struct loading *loading)
{
    const char *problem = rcpt_config_partitions_problem(loading->config);
    return problem == NULL ||
           rcpt_config_error(loading->file.error, loading->file.name,
                             place_of(loading, "inbox.partitions", "inbox.partition_span"), "%s",
                             problem);
}

/* Dimensions, groups and ranges are columns of the inbox. */
static bool check_rule_columns(struct loading *loading)
{
    const char *key;
    struct rcpt_error error;
    rcpt_error_clear(&error);
    return rcpt_config_check_rule_columns(loading->config, &key, &error) ||
           rcpt_config_error(loading->file.error, loading->file.name,
                             place_of(loading, key, "inbox.table"), "%s", error.text);
}

/* Accounts are checked one by one, later: each must know whether ranges can be resolved. */
static void tell_accounts(struct rcpt_config *config)
{
    for (size_t index = 0; index < config->intake.accounts_count; index++)
        config->intake.accounts[index].ranges = config->inbox.recipient != NULL;
    rcpt_config_name_topics(config);
}

/* Checks that need the values of several rows. They run on the loaded struct, where defaults are
 * filled in. */
static bool check_together(struct loading *loading)
{
    struct rcpt_config *config = loading->config;
    note_named_columns(loading);
    rcpt_config_follow(config);
    tell_accounts(config);
    return check_lanes(loading) &&
           check_order(loading, "postgres.retry_min", config->postgres.retry_min_ms,
                       "postgres.retry_max", config->postgres.retry_max_ms) &&
           check_columns(loading) && check_log_levels(loading) && check_tls(loading) &&
           check_retention(loading) && check_partitions(loading) && check_rule_columns(loading);
}

/* The ladder checks itself (core/ladder.c); its errors get the place of `ladder`. */
static bool make_ladder(struct loading *loading)
{
    struct rcpt_error error;
    rcpt_error_clear(&error);
    loading->config->ladder = rcpt_ladder_new(&loading->config->ladder_definition, &error);
    if (loading->config->ladder != NULL)
        return true;
    rcpt_config_error(loading->file.error, loading->file.name,
                      place_of(loading, "ladder.statuses", "ladder.flags"), "ladder: %s",
                      error.text);
    rcpt_error_hint(loading->file.error, "%s", error.hint);
    return false;
}

/* An expiry names statuses, so make_ladder() runs first. */
static bool check_expiry(struct loading *loading)
{
    struct rcpt_error error;
    rcpt_error_clear(&error);
    if (rcpt_config_check_expiry(loading->config, &error))
        return true;
    rcpt_config_error(loading->file.error, loading->file.name,
                      place_of(loading, "inbox.expiry", "inbox.expiry"), "%s", error.text);
    rcpt_error_hint(loading->file.error, "%s", error.hint);
    return false;
}

/* The list is noted before it is read: a change in between is seen as one. */
static bool check_machine(struct loading *loading)
{
    const char *key = "machine.rules";
    struct rcpt_error error;
    rcpt_error_clear(&error);
    if (rcpt_config_check_machine(loading->config, &error)) {
        key = "machine.networks";
        if (loading->config->machine_networks != NULL)
            rcpt_config_note_source(&loading->file.sources, key, loading->config->machine_networks,
                                    loading->file.name);
        if (rcpt_config_read_networks(loading->config, loading->file.name, &error))
            return true;
    }
    rcpt_config_error(loading->file.error, loading->file.name, place_of(loading, key, key), "%s",
                      error.text);
    rcpt_error_hint(loading->file.error, "%s", error.hint);
    return false;
}

/* The account is made and freed again, because its constructor is the check: it compiles templates
 * and parses statuses and secrets. The intake makes its own when it starts. */
static bool check_account(struct loading *loading, size_t index)
{
    const struct rcpt_gateway_account_config *accounts = loading->config->intake.accounts;
    struct rcpt_config_place place = place_of(loading, "intake.accounts", "intake.accounts");
    struct rcpt_error error;
    rcpt_error_clear(&error);
    for (size_t other = 0; other < index; other++)
        if (strcmp(accounts[index].name, accounts[other].name) == 0)
            return rcpt_config_error(loading->file.error, loading->file.name, place,
                                     "intake.accounts: \"%.63s\" is named twice",
                                     accounts[index].name);
    struct rcpt_gateway_account *account =
        rcpt_gateway_account_new(&accounts[index], loading->config->ladder, &error);
    if (account == NULL) {
        rcpt_config_error(loading->file.error, loading->file.name, place, "%s", error.text);
        rcpt_error_hint(loading->file.error, "%s", error.hint);
    }
    rcpt_gateway_account_free(account);
    return account != NULL;
}

/* Topics of another form are accounts, too. */
static bool check_topics(struct loading *loading)
{
    struct rcpt_error error;
    rcpt_error_clear(&error);
    bool good = rcpt_config_check_topics(loading->config, &error);
    if (good && rcpt_config_check_message_topics(loading->config, &error))
        return true;
    rcpt_config_error(loading->file.error, loading->file.name,
                      place_of(loading, good ? "kafka.message_topics" : "kafka.topics",
                               good ? "inbox.targeted" : "intake.topic"),
                      "%s", error.text);
    rcpt_error_hint(loading->file.error, "%s", error.hint);
    return false;
}

/* All accounts use the ladder of this configuration, so make_ladder() runs first. */
static bool check_accounts(struct loading *loading)
{
    for (size_t index = 0; index < loading->config->intake.accounts_count; index++)
        if (!check_account(loading, index))
            return false;
    return check_topics(loading);
}

/* Rules are checked one by one, each also against those before it. */
static bool check_folds(struct loading *loading)
{
    const struct rcpt_config *config = loading->config;
    for (size_t index = 0; index < config->folds_count; index++) {
        struct rcpt_error error;
        rcpt_error_clear(&error);
        if (rcpt_config_check_fold(config->folds, index, config->ladder, &error))
            continue;
        rcpt_config_error(loading->file.error, loading->file.name,
                          place_of(loading, "folds", "folds"), "%s", error.text);
        rcpt_error_hint(loading->file.error, "%s", error.hint);
        return false;
    }
    return true;
}

static bool check_stream(struct loading *loading)
{
    const char *key;
    struct rcpt_error error;
    rcpt_error_clear(&error);
    if (rcpt_config_check_stream(loading->config, &key, &error) &&
        rcpt_config_check_suppression(loading->config, &key, &error))
        return true;
    rcpt_config_error(loading->file.error, loading->file.name, place_of(loading, key, key), "%s",
                      error.text);
    rcpt_error_hint(loading->file.error, "%s", error.hint);
    return false;
}

/* ---- actions ---- */

/* Errors of an endpoint have its name and the place of the list: the places of its fields are not
 * kept. */
static bool check_endpoint(struct loading *loading, size_t index)
{
    const struct rcpt_config_endpoint *endpoints = loading->config->actions.endpoints;
    const struct rcpt_config_endpoint *endpoint = &endpoints[index];
    struct rcpt_config_place place = place_of(loading, "actions.endpoints", "actions.endpoints");
    struct rcpt_webhook_secret secret;
    for (size_t other = 0; other < index; other++)
        if (strcmp(endpoint->name, endpoints[other].name) == 0)
            return rcpt_config_error(loading->file.error, loading->file.name, place,
                                     "actions.endpoints: \"%.63s\" is named twice", endpoint->name);
    if (!rcpt_webhook_url_is_valid(endpoint->url))
        return rcpt_config_error(loading->file.error, loading->file.name, place,
                                 "actions.endpoints: the URL of %.63s is not of http or https, or "
                                 "holds a user name",
                                 endpoint->name);
    for (unsigned at = 0; at < endpoint->secrets_count; at++)
        if (!rcpt_webhook_secret_parse(&secret, endpoint->secrets[at]))
            return rcpt_config_error(loading->file.error, loading->file.name, place,
                                     "actions.endpoints: secret %u of %.63s is not whsec_ and the "
                                     "base64 of 24 to 64 bytes",
                                     at + 1, endpoint->name);
    /* A header of the operator must not replace one that receiptd signs or sets itself. */
    for (unsigned at = 0; at < endpoint->headers_count; at++) {
        const char *header = endpoint->headers[at];
        if (!rcpt_webhook_header_is_valid(header))
            return rcpt_config_error(loading->file.error, loading->file.name, place,
                                     "actions.endpoints: header %u of %.63s is not Name: value",
                                     at + 1, endpoint->name);
        if (rcpt_webhook_header_is_ours(header))
            return rcpt_config_error(loading->file.error, loading->file.name, place,
                                     "actions.endpoints: header %u of %.63s: every call has a "
                                     "%.*s from receiptd; remove it",
                                     at + 1, endpoint->name, (int)strcspn(header, ":"), header);
    }
    /* A call must end, and its result be stored, before another worker may claim the action. Half
     * of the lease is left for storing the result. */
    if (endpoint->timeout_ms * 2 <= loading->config->actions.lease_ms)
        return true;
    return rcpt_config_error(loading->file.error, loading->file.name, place,
                             "actions.endpoints: the time-out of %.63s is more than half of "
                             "actions.lease",
                             endpoint->name);
}

/* Pipelines are compiled once, here. The actions take the result over when they start
 * (pipelines_take), so it is NULL afterwards. */
static bool check_actions(struct loading *loading)
{
    struct rcpt_config *config = loading->config;
    yaml_node_t *node = loading->file.nodes[rcpt_config_find(rcpt_config_table(), "pipelines")];
    if (!check_order(loading, "actions.retry_min", config->actions.retry_min_ms,
                     "actions.retry_max", config->actions.retry_max_ms))
        return false;
    for (size_t index = 0; index < config->actions.endpoints_count; index++)
        if (!check_endpoint(loading, index))
            return false;
    if (node == NULL)
        return true;
    config->compiled = pipelines_compile(loading->file.name, &loading->file.document, node, config,
                                         loading->file.error);
    return config->compiled != NULL;
}

/* The normal form lives in memory only, and is wiped: it holds every secret. */
static bool load_document(struct loading *loading)
{
    char *normal = NULL;
    size_t normal_size = 0;
    FILE *out = rcpt_open_memory(&normal, &normal_size);
    bool good = rcpt_config_check(&loading->file, out);
    RCPT_ASSERT(fclose(out) == 0);
    if (good)
        loading->config =
            rcpt_config_load_normal(loading->file.name, normal, normal_size, loading->file.error);
    explicit_bzero(normal, normal_size); /* it holds the secrets of all files */
    free(normal);
    return loading->config != NULL;
}

/* Each check may rely on those before it: pipelines need the ladder and the endpoints. */
static struct rcpt_config *parse(const char *name, const char *text, size_t size, bool partial,
                                 struct rcpt_error *error)
{
    struct loading loading = {.file = {.name = name, .partial = partial, .error = error}};
    if (!rcpt_config_read_yaml(name, text, size, &loading.file.document, error))
        return NULL;
    bool good = load_document(&loading) && check_together(&loading) && make_ladder(&loading) &&
                check_expiry(&loading) && check_machine(&loading) && check_accounts(&loading) &&
                check_folds(&loading) && check_stream(&loading) && check_actions(&loading);
    yaml_document_delete(&loading.file.document);
    if (good) {
        loading.config->secret_notes = loading.file.secret_notes;
        loading.config->sources = loading.file.sources;
        return loading.config;
    }
    rcpt_config_free_sources(&loading.file.sources);
    rcpt_config_free(loading.config);
    return NULL;
}

struct rcpt_config *rcpt_config_parse(const char *name, const char *text, size_t size,
                                      struct rcpt_error *error)
{
    return parse(name, text, size, false, error);
}

static bool set_unreadable(struct rcpt_error *error, const char *path, int code)
{
    rcpt_error_fatal(error, EX_NOINPUT, "%.300s: cannot be read: %s", path, strerror(code));
    if (code == ENOENT)
        rcpt_error_hint(error, "name the file with --config, or begin with a copy of the example, "
                               "config/receiptd.yaml");
    else if (code == EACCES)
        rcpt_error_hint(error, "the user that runs receiptd must be allowed to read it");
    return false;
}

/* The buffer has one byte more than the limit: rcpt_config_read_yaml() then sees that the file is
 * too large. */
static char *read_file(const char *path, size_t *size, struct rcpt_error *error)
{
    FILE *file = fopen(path, "re");
    if (file == NULL) {
        set_unreadable(error, path, errno);
        return NULL;
    }
    char *text = rcpt_malloc(RCPT_CONFIG_MAX_BYTES + 1);
    *size = fread(text, 1, RCPT_CONFIG_MAX_BYTES + 1, file);
    if (ferror(file)) {
        set_unreadable(error, path, errno);
        free(text);
        text = NULL;
    }
    fclose(file);
    return text;
}

/* The text may hold literal secrets, so it is wiped before it is freed. */
static struct rcpt_config *load(const char *path, bool partial, struct rcpt_error *error)
{
    size_t size;
    char *text = read_file(path, &size, error);
    if (text == NULL)
        return NULL;
    struct rcpt_config *config = parse(path, text, size, partial, error);
    explicit_bzero(text, size);
    free(text);
    return config;
}

struct rcpt_config *rcpt_config_load(const char *path, struct rcpt_error *error)
{
    return load(path, false, error);
}

/* Only `intake --try` loads partially: it needs no brokers and no database. */
struct rcpt_config *rcpt_config_load_for_try(const char *path, struct rcpt_error *error)
{
    return load(path, true, error);
}

/* The compiled parts go first: they are not members of the table, so libcyaml does not know
 * them. */
void rcpt_config_free(struct rcpt_config *config)
{
    if (config == NULL)
        return;
    pipelines_free(config->compiled);
    rcpt_config_free_topics(config);
    rcpt_ladder_free(config->ladder);
    rcpt_network_set_free(config->scanners);
    rcpt_config_free_sources(&config->sources);
    rcpt_config_free_loaded(config);
}
