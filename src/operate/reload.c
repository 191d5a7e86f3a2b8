/* Reloads of the configuration: a worker reads and checks the file, the loop compares it and every
 * module takes over its part. A file with a fault changes nothing. One reload is under way at a
 * time. Begun by run.c (SIGHUP) and control.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "receiptd/base/text.h"
#include "receiptd/kafka/consumer.h"
#include "receiptd/operate/endpoints.h"
#include "receiptd/operate/operate.h"
#include "receiptd/postgres/session.h"

#define KAFKA_MS 10000
#define WATCH_MS 10000 /* between two looks at the files of secrets */

/* One reload from its beginning to its result. The worker owns `fresh` and `error` until
 * on_worked(). */
struct attempt {
    uv_work_t work;
    struct reload *reload;
    char *path;
    struct reload_dsns before; /* in effect */
    struct rcpt_config *fresh; /* NULL: `error` says why */
    struct rcpt_error error;
    reload_on_done on_done;
    void *context;
};

struct reload {
    struct reload_settings settings;
    struct attempt *attempt; /* NULL: none is under way */
    bool again;              /* a signal came while one was under way */
    struct host_ticker watch;
    int64_t watch_at_ms;
};

/* "applied: a b c"; nothing without paths. */
static void list(FILE *out, const char *what, const char *const *paths, unsigned count)
{
    if (count == 0)
        return;
    fprintf(out, "%s:", what);
    for (unsigned index = 0; index < count; index++)
        fprintf(out, " %s", paths[index]);
    fputc('\n', out);
}

void reload_print_changes(const struct rcpt_config_changes *changes, FILE *out)
{
    list(out, "applied", changes->applied, changes->applied_count);
    list(out, "needs a restart", changes->needs_restart, changes->needs_restart_count);
    if (changes->applied_count + changes->needs_restart_count == 0)
        fputs("nothing has changed\n", out);
}

/* Whether a key of a section has changed; `section` ends with a dot. */
static bool concerns(const struct rcpt_config_changes *changes, const char *section)
{
    for (unsigned index = 0; index < changes->applied_count; index++)
        if (strncmp(changes->applied[index], section, strlen(section)) == 0)
            return true;
    return false;
}

/* Some modules start again at a change of their keys, so they need to know it. */
static bool has_changed(const struct rcpt_config_changes *changes, const char *path)
{
    for (unsigned index = 0; index < changes->applied_count; index++)
        if (strcmp(changes->applied[index], path) == 0)
            return true;
    return false;
}

/* Puts `fresh` into effect; each module takes over its part. False: actions can no longer run, and
 * `error` says why. The order matters: the ladder grows before receipts can name its statuses. */
static bool apply(const struct reload_settings *parts, struct rcpt_config *fresh,
                  struct rcpt_config_changes *changes, struct rcpt_error *error)
{
    struct rcpt_config *config = parts->context->config;
    unsigned connections = config->postgres.connections;
    rcpt_ladder_grow(config->ladder, fresh->ladder);
    rcpt_config_take_over(config, fresh, changes);
    unsigned target = config->postgres.connections;
    config->postgres.connections = connections; /* the receipts set it when they are connected */
    rcpt_config_apply_log(config);
    status_apply_config(parts->status);
    receipts_apply_config(parts->receipts, target);
    folds_apply_config(parts->folds, has_changed(changes, "folds"), concerns(changes, "stream."));
    receipts_apply_subscriptions(parts->receipts);
    messages_apply_config(parts->messages);
    parts->apply_intake(parts->intake_context);
    /* A reload replaces the whole set of actions, so only if one of their keys has changed. */
    if (has_changed(changes, "pipelines") || concerns(changes, "actions."))
        return actions_reload(parts->actions, error);
    actions_apply_config(parts->actions);
    return true;
}

/* False: the file is refused and nothing has changed, or actions cannot run. The certificate is
 * read first: it is the only part that can still be refused. */
static bool take_over(struct attempt *attempt, FILE *out)
{
    const struct reload_settings *parts = &attempt->reload->settings;
    const struct rcpt_config *config = parts->context->config;
    struct rcpt_config_changes changes;
    struct rcpt_error error;
    if (attempt->fresh == NULL) {
        fprintf(out, "refused: %s\n", attempt->error.text);
        if (attempt->error.hint[0] != '\0')
            fprintf(out, "HINT: %s\n", attempt->error.hint);
        return false;
    }
    if (!endpoints_reload(parts->endpoints, &error)) {
        fprintf(out, "refused: http.tls_certificate: %s\n", error.text);
        if (error.hint[0] != '\0')
            fprintf(out, "HINT: %s\n", error.hint);
        return false;
    }
    if (attempt->fresh->postgres.connections > config->lanes) {
        fputs("needs a restart: postgres.connections, which is above the lanes in effect\n", out);
        attempt->fresh->postgres.connections = config->postgres.connections;
    }
    bool good = apply(parts, attempt->fresh, &changes, &error);
    if (!good)
        fprintf(out, "actions cannot be carried out: %s\n", error.text);
    parts->context->loaded_ms = host_wall_ms();
    reload_print_changes(&changes, out);
    return good;
}

/* A failure after taking over, such as that of actions, does not bring the old configuration back.
 * One line of the log for each line of the text; but a refusal and its hint are one. */
void reload_log_result(bool good, const char *text)
{
    if (strncmp(text, "refused: ", 9) == 0) {
        int size = (int)strcspn(text, "\n");
        const char *hint = text + size + (text[size] == '\n');
        rcpt_log_error("operate", "reload: %.*s; the configuration stays as it was%s%.*s", size,
                       text, hint[0] != '\0' ? "; " : "", (int)strcspn(hint, "\n"), hint);
        return;
    }
    while (*text != '\0') {
        int size = (int)strcspn(text, "\n");
        rcpt_log(good ? RCPT_LOG_INFO : RCPT_LOG_ERROR, "operate", "reload: %.*s", size, text);
        text += size + (text[size] == '\n');
    }
}

/* Text of the result: for the log, line by line, and for the client that asked. */
static void finish(struct attempt *attempt)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&text, &size);
    bool good = take_over(attempt, out);
    RCPT_ASSERT(fclose(out) == 0);
    rcpt_metrics_add(attempt->reload->settings.context->metrics, RCPT_METRIC_RELOADS,
                     RCPT_LABELS(good ? "applied" : "refused"), 1);
    reload_log_result(good, text);
    if (attempt->on_done != NULL)
        attempt->on_done(attempt->context, good, text);
    free(text);
}

/* A dsn counts as applied only if the server accepts it. An unchanged one is not tried: a reload of
 * other keys must be possible while the server is away. */
static bool try_dsn(const struct rcpt_config *fresh, const char *key, const char *dsn,
                    const char *before, struct rcpt_error *error)
{
    struct rcpt_error failure;
    const struct rcpt_session_settings settings = {.dsn = dsn,
                                                   .schema = fresh->postgres.schema,
                                                   .command = "reload",
                                                   .connect_timeout_ms =
                                                       fresh->postgres.connect_timeout_ms};
    if (dsn == NULL || (before != NULL && strcmp(dsn, before) == 0) ||
        rcpt_session_try(&settings, &failure))
        return true;
    rcpt_error_fatal(error, EX_CONFIG, "%s: no connection with it: %.400s", key, failure.text);
    rcpt_error_hint(error, "%s", failure.hint);
    return false;
}

static uint64_t add_hash(uint64_t hash, const char *text)
{
    return hash * 31 + rcpt_text_hash((struct rcpt_text){text, strlen(text)});
}

static uint64_t hash_kafka(const struct rcpt_config *config)
{
    uint64_t hash = add_hash(0, config->kafka.brokers != NULL ? config->kafka.brokers : "");
    for (unsigned index = 0; index < config->kafka.properties_count; index++)
        hash = add_hash(add_hash(hash, config->kafka.properties[index].name),
                        config->kafka.properties[index].value);
    for (size_t index = 0; index < config->sources.count; index++)
        if (config->sources.at[index].needs_restart)
            hash = hash * 31 + config->sources.at[index].mark;
    return hash;
}

/* Clients take a new user and password at once; other values take effect at a restart. Both are
 * tried here. */
static bool try_kafka(const struct rcpt_config *fresh, uint64_t before, struct rcpt_error *error)
{
    struct rcpt_error failure;
    if (hash_kafka(fresh) == before)
        return true;
    struct rcpt_kafka_property *properties = host_kafka_properties(fresh);
    const struct rcpt_kafka_settings settings = {.brokers = fresh->kafka.brokers,
                                                 .properties = properties,
                                                 .property_count = fresh->kafka.properties_count};
    bool good = rcpt_kafka_try(&settings, KAFKA_MS, &failure);
    free(properties);
    if (good)
        return true;
    rcpt_error_fatal(error, EX_CONFIG, "kafka.properties: no connection with them: %.400s",
                     failure.text);
    rcpt_error_hint(error, "%s", failure.hint);
    return false;
}

struct rcpt_config *reload_read(const char *path, const struct reload_dsns *before,
                                struct rcpt_error *error)
{
    struct rcpt_config *fresh = rcpt_config_load(path, error);
    if (fresh == NULL ||
        (try_dsn(fresh, "postgres.dsn", fresh->postgres.dsn, before->postgres, error) &&
         try_dsn(fresh, "intake.dsn", fresh->intake.dsn, before->intake, error) &&
         try_kafka(fresh, before->kafka, error)))
        return fresh;
    rcpt_config_free(fresh);
    return NULL;
}

void reload_note_dsns(struct reload_dsns *dsns, const struct rcpt_config *config)
{
    dsns->postgres = config->postgres.dsn != NULL ? rcpt_strdup(config->postgres.dsn) : NULL;
    dsns->kafka = hash_kafka(config);
    dsns->intake = config->intake.dsn != NULL ? rcpt_strdup(config->intake.dsn) : NULL;
}

void reload_free_dsns(struct reload_dsns *dsns)
{
    free(dsns->postgres);
    free(dsns->intake);
}

/* Runs in the worker, and uses only the attempt. */
static void on_work(uv_work_t *work)
{
    struct attempt *attempt = work->data;
    attempt->fresh = reload_read(attempt->path, &attempt->before, &attempt->error);
}

/* The end of every attempt, also when the process is about to end (`try` false). */
static void conclude(struct attempt *attempt, bool try)
{
    struct reload *reload = attempt->reload;
    struct host_context *context = reload->settings.context;
    reload->attempt = NULL;
    host_closed(context);
    supervisor_reload_ends(reload->settings.supervisor);
    if (try && context->phase < HOST_CLOSING)
        finish(attempt);
    else if (attempt->on_done != NULL)
        attempt->on_done(attempt->context, false, "refused: the process is about to end\n");
    rcpt_config_free(attempt->fresh);
    free(attempt->path);
    reload_free_dsns(&attempt->before);
    free(attempt);
    host_check_drain(context);
    if (reload->again && !host_is_stopping(context))
        (void)reload_begin(reload, NULL, NULL);
}

/* The database has refused the ladder, or could not be asked: the file is refused. */
static void on_ladder(void *context, const struct rcpt_error *error)
{
    struct attempt *attempt = context;
    if (error != NULL) {
        attempt->error = *error;
        rcpt_config_free(attempt->fresh);
        attempt->fresh = NULL;
    }
    conclude(attempt, true);
}

/* Only the database can judge another ladder, because messages may have its statuses. */
static void on_worked(uv_work_t *work, int status)
{
    struct attempt *attempt = work->data;
    const struct reload_settings *parts = &attempt->reload->settings;
    struct rcpt_error error;
    bool same =
        attempt->fresh == NULL || strcmp(rcpt_ladder_hash(attempt->fresh->ladder),
                                         rcpt_ladder_hash(parts->context->config->ladder)) == 0;
    if (status != 0 || parts->context->phase == HOST_CLOSING || same)
        conclude(attempt, status == 0);
    else if (!ladders_ask(parts->receipts, attempt->fresh, on_ladder, attempt, &error))
        on_ladder(attempt, &error);
}

/* ---- files that have changed ---- */

static void watch(void *context)
{
    struct reload *reload = context;
    struct host_context *app = reload->settings.context;
    if (host_now(app) < reload->watch_at_ms)
        return;
    reload->watch_at_ms = host_now(app) + WATCH_MS;
    if (reload->attempt == NULL)
        rcpt_config_warn_of_changed(app->config);
}

/* ---- beginning ---- */

struct reload *reload_new(const struct reload_settings *settings)
{
    struct reload *reload = rcpt_calloc(1, sizeof(*reload));
    reload->settings = *settings;
    reload->watch = (struct host_ticker){.tick = watch, .context = reload};
    host_add_ticker(settings->context, &reload->watch);
    return reload;
}

void reload_free(struct reload *reload)
{
    free(reload);
}

/* Several signals during one reload make one more. */
void reload_after_this(struct reload *reload)
{
    reload->again = true;
}

bool reload_is_under_way(const struct reload *reload)
{
    return reload->attempt != NULL;
}

/* The drain waits for the worker (host_open), which uses the path and the loop. */
bool reload_begin(struct reload *reload, reload_on_done on_done, void *context)
{
    struct host_context *app = reload->settings.context;
    if (reload->attempt != NULL || app->phase == HOST_CLOSING)
        return false;
    struct attempt *attempt = rcpt_calloc(1, sizeof(*attempt));
    *attempt = (struct attempt){.reload = reload,
                                .path = rcpt_strdup(app->config_path),
                                .on_done = on_done,
                                .context = context};
    reload_note_dsns(&attempt->before, app->config);
    attempt->work.data = attempt;
    reload->attempt = attempt;
    reload->again = false;
    host_open(app);
    supervisor_reload_begins(reload->settings.supervisor);
    RCPT_ASSERT(uv_queue_work(app->loop, &attempt->work, on_work, on_worked) == 0);
    return true;
}
