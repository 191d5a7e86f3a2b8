/* The parameters that libpq gets to connect: the dsn's values, our defaults where it is silent,
 * candidates for the host, and the session's settings as options. Also reads a dsn without
 * connecting: its hosts, and whether it is weak. Called by connect.c, setup.c and check-config.
 */
#include "conninfo.h"

#include <libpq-fe.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"

/* Used where the dsn is silent. The client's keep-alives find a dead peer in 25 s, unsent data in
 * 15 s. */
static const struct {
    const char *keyword;
    const char *value;
} defaults[] = {
    {"gssencmode", "disable"}, /* saves a round trip; the dsn can enable it */
    {"keepalives_idle", "10"}, {"keepalives_interval", "5"},
    {"keepalives_count", "3"}, {"tcp_user_timeout", "15000"},
};

/* Set in every session. The server's own tcp_* settings end a session whose client is gone. */
static const struct {
    const char *name;
    const char *value;
} session_settings[] = {
    {"idle_in_transaction_session_timeout", "30000"},
    {"plan_cache_mode", "force_generic_plan"},
    {"jit", "off"},
    {"default_transaction_isolation", "read committed"},
    {"tcp_user_timeout", "15000"},
    {"tcp_keepalives_idle", "10"},
    {"tcp_keepalives_interval", "5"},
    {"tcp_keepalives_count", "3"},
    {"datestyle", "ISO"},
    {"timezone", "UTC"},
    {"row_security", "off"}, /* an error, where a policy would hide rows of the inbox */
};
#define SESSION_SETTINGS RCPT_COUNT_OF(session_settings)

/* The message that PQconninfoParse writes may quote a piece of the password, so it is dropped. */
static PQconninfoOption *parse(const char *dsn, struct rcpt_error *error)
{
    char *message = NULL;
    PQconninfoOption *options = PQconninfoParse(dsn, &message);
    PQfreemem(message);
    if (options == NULL) {
        rcpt_error_set(error, RCPT_DECISION_RECONNECT, "RDDSN",
                       "postgres.dsn is neither a list of keyword=value nor a postgresql:// URI");
        rcpt_error_hint(error,
                        "quote values with spaces; percent-encode special characters in a URI");
    }
    return options;
}

/* NULL where the dsn does not set it. */
static const char *option_value(const PQconninfoOption *options, const char *keyword)
{
    for (; options->keyword != NULL; options++)
        if (strcmp(options->keyword, keyword) == 0)
            return options->val != NULL && options->val[0] != '\0' ? options->val : NULL;
    return NULL;
}

/* The dsn's value, else libpq's default (environment). A service file would come between them, so
 * it ends the search. */
static char *effective(const PQconninfoOption *options, const char *keyword)
{
    const char *value = option_value(options, keyword);
    if (value != NULL)
        return rcpt_strdup(value);
    if (option_value(options, "service") != NULL)
        return NULL;
    PQconninfoOption *environment = PQconndefaults();
    if (environment == NULL)
        return NULL;
    value = option_value(environment, keyword);
    char *copy = value != NULL ? rcpt_strdup(value) : NULL;
    PQconninfoFree(environment);
    return copy;
}

/* Neither connects nor resolves names. */
bool rcpt_conninfo_hosts(const char *dsn, struct rcpt_hosts *hosts, struct rcpt_error *error)
{
    PQconninfoOption *options = parse(dsn, error);
    if (options == NULL)
        return false;
    char *names = effective(options, "host");
    char *addresses = effective(options, "hostaddr");
    char *ports = effective(options, "port");
    bool parsed = rcpt_hosts_parse(names, addresses, ports, hosts, error);
    free(names);
    free(addresses);
    free(ports);
    PQconninfoFree(options);
    return parsed;
}

/* A socket, or this machine. */
static bool is_local(const struct rcpt_host *host)
{
    const char *name = host->address[0] != '\0' ? host->address : host->name;
    return name[0] == '\0' || name[0] == '/' || name[0] == '@' || strcmp(name, "localhost") == 0 ||
           strncmp(name, "127.", 4) == 0 || strcmp(name, "::1") == 0;
}

/* Whether no byte of the session leaves the machine. */
static bool are_local(const char *dsn)
{
    struct rcpt_hosts hosts = {0};
    struct rcpt_error error;
    bool local = true;
    if (!rcpt_conninfo_hosts(dsn, &hosts, &error))
        return true; /* connecting reports it */
    for (size_t index = 0; index < hosts.count; index++)
        local = local && is_local(&hosts.items[index]);
    rcpt_hosts_fini(&hosts);
    return local;
}

/* Finds a weakness that an attacker could use, as a text for the start's warning; NULL: none was
 * found. */
const char *rcpt_pg_weakness(const char *dsn, const char **hint)
{
    struct rcpt_error error;
    PQconninfoOption *options = parse(dsn, &error);
    const char *what = NULL;
    if (options == NULL)
        return NULL;
    char *mode = effective(options, "sslmode");
    const char *password = option_value(options, "password");
    /* A service file, which is not read here, may say more. */
    bool known = mode != NULL || option_value(options, "service") == NULL;
    bool checked =
        mode != NULL && (strcmp(mode, "verify-full") == 0 || strcmp(mode, "verify-ca") == 0);
    if (known && !checked && !are_local(dsn)) {
        what = "anybody on the way may answer as the database, for sslmode does not check it";
        *hint = "add sslmode=verify-full and sslrootcert";
    } else if (password != NULL && strlen(password) < 16) {
        what = "the password has fewer than 16 bytes";
        *hint = "use 16 or more, made at random, or a client certificate";
    }
    free(mode);
    PQconninfoFree(options);
    return what;
}

static size_t find(const struct rcpt_conninfo *info, const char *keyword)
{
    size_t index = 0;
    while (index < info->count && strcmp(info->keywords[index], keyword) != 0)
        index++;
    return index;
}

/* Borrowed until fini(). NULL: not set. */
const char *rcpt_conninfo_value(const struct rcpt_conninfo *info, const char *keyword)
{
    size_t index = find(info, keyword);
    return index < info->count ? info->values[index] : NULL;
}

/* Sets a keyword, or replaces its value. Takes the value over. */
static void set_take(struct rcpt_conninfo *info, const char *keyword, const char *value)
{
    size_t index = find(info, keyword);
    if (index == info->count) {
        RCPT_ASSERT(info->count < RCPT_CONNINFO_CAPACITY);
        info->keywords[info->count++] = rcpt_strdup(keyword);
    } else {
        free((void *)(uintptr_t)info->values[index]);
    }
    info->values[index] = value;
}

/* An empty value of the dsn was left out before, so it counts as not set. */
static void set_default(struct rcpt_conninfo *info, const char *keyword, const char *value)
{
    if (rcpt_conninfo_value(info, keyword) == NULL)
        set_take(info, keyword, rcpt_strdup(value));
}

enum host_field { HOST_NAME, HOST_ADDRESS, HOST_PORT };

/* Empty where the dsn does not say it. */
static const char *field_of(const struct rcpt_host *host, enum host_field field)
{
    const char *const fields[] = {host->name, host->address, host->port};
    return fields[field];
}

/* libpq requires lists of equal length. A list of nothing but empty entries is left out. */
static void set_list(struct rcpt_conninfo *info, const char *keyword,
                     const struct rcpt_hosts *hosts, enum host_field field)
{
    size_t bytes = 1, used = 0;
    bool said = false;
    for (size_t index = 0; index < hosts->count; index++) {
        size_t length = strlen(field_of(&hosts->items[index], field));
        bytes += length + 1;
        said = said || length > 0;
    }
    if (!said)
        return;
    char *list = rcpt_malloc(bytes);
    for (size_t index = 0; index < hosts->count; index++)
        used += (size_t)snprintf(list + used, bytes - used, "%s%s", index > 0 ? "," : "",
                                 field_of(&hosts->items[index], field));
    set_take(info, keyword, list);
}

static void put_setting(struct rcpt_session_setting *settings, size_t *count, const char *name,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));

static void put_setting(struct rcpt_session_setting *settings, size_t *count, const char *name,
                        const char *format, ...)
{
    RCPT_ASSERT(*count < RCPT_SESSION_SETTINGS);
    struct rcpt_session_setting *setting = &settings[(*count)++];
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(setting->value, sizeof(setting->value), format, arguments);
    va_end(arguments);
    RCPT_ASSERT(length >= 0 && length < (int)sizeof(setting->value));
    setting->name = name;
}

/* Without sequential scans the plan of a keyed table is the nested loop over its index from some 50
 * rows on. With them it would be a hash join over the whole table up to thousands of rows. Hash
 * joins stay on, since joins between the arrays of one batch need them. */
size_t rcpt_conninfo_session(const struct rcpt_pg_settings *settings, bool stable_plans,
                             struct rcpt_session_setting *found)
{
    size_t count = 0;
    put_setting(found, &count, "search_path", "\"%s\",pg_temp", settings->schema);
    put_setting(found, &count, "synchronous_commit", "%s",
                settings->synchronous_commit ? "on" : "off");
    put_setting(found, &count, "lock_timeout", "%d", settings->lock_timeout_ms);
    put_setting(found, &count, "statement_timeout", "%d", settings->statement_timeout_ms);
    for (size_t index = 0; index < SESSION_SETTINGS; index++)
        put_setting(found, &count, session_settings[index].name, "%s",
                    session_settings[index].value);
    if (settings->read_only)
        put_setting(found, &count, "default_transaction_read_only", "on");
    if (stable_plans)
        put_setting(found, &count, "enable_seqscan", "off");
    return count;
}

/* The user's options come first: where both set the same, ours count. */
static void set_options(struct rcpt_conninfo *info, const struct rcpt_pg_settings *settings,
                        const char *from_user, bool stable_plans)
{
    struct rcpt_session_setting session[RCPT_SESSION_SETTINGS];
    size_t count = rcpt_conninfo_session(settings, stable_plans, session), size;
    char *text = NULL;
    FILE *out = rcpt_open_memory(&text, &size);
    fputs(from_user != NULL ? from_user : "", out);
    for (size_t index = 0; index < count; index++) {
        fprintf(out, " -c %s=", session[index].name);
        for (const char *byte = session[index].value; *byte != '\0'; byte++)
            fprintf(out, *byte == ' ' || *byte == '\\' ? "\\%c" : "%c", *byte);
    }
    RCPT_ASSERT(fclose(out) == 0);
    set_take(info, "options", text);
}

/* pg_stat_activity shows it: the instance, and the name of the connection. The dsn cannot change
 * it, because only this name identifies a session that blocks a lane as receiptd's. */
static void set_application_name(struct rcpt_conninfo *info,
                                 const struct rcpt_pg_settings *settings)
{
    char name[256];
    snprintf(name, sizeof(name), "receiptd/%s/%s", settings->instance, settings->name);
    set_take(info, "application_name", rcpt_strdup(name));
}

/* Sets the dsn's values first, then our defaults where it is silent, then the values that must be
 * ours. */
bool rcpt_conninfo_init(struct rcpt_conninfo *info, const struct rcpt_pg_settings *settings,
                        const struct rcpt_hosts *candidates, bool stable_plans,
                        struct rcpt_error *error)
{
    *info = (struct rcpt_conninfo){0};
    PQconninfoOption *options = parse(settings->dsn, error);
    if (options == NULL)
        return false;
    for (const PQconninfoOption *option = options; option->keyword != NULL; option++)
        if (option->val != NULL && option->val[0] != '\0')
            set_take(info, option->keyword, rcpt_strdup(option->val));
    for (size_t index = 0; index < RCPT_COUNT_OF(defaults); index++)
        set_default(info, defaults[index].keyword, defaults[index].value);
    set_take(info, "client_encoding", rcpt_strdup("UTF8"));
    set_application_name(info, settings);
    set_list(info, "host", candidates, HOST_NAME);
    set_list(info, "hostaddr", candidates, HOST_ADDRESS);
    set_list(info, "port", candidates, HOST_PORT);
    if (candidates->count > 1)
        set_default(info, "target_session_attrs", settings->read_only ? "any" : "read-write");
    char *from_user = effective(options, "options");
    set_options(info, settings, from_user, stable_plans);
    free(from_user);
    PQconninfoFree(options);
    return true;
}

void rcpt_conninfo_fini(struct rcpt_conninfo *info)
{
    for (size_t index = 0; index < info->count; index++) {
        free((void *)(uintptr_t)info->keywords[index]);
        free((void *)(uintptr_t)info->values[index]);
    }
    *info = (struct rcpt_conninfo){0};
}
