/* A new configuration while running: read and checked in a worker, compared, taken over. Whatever
 * is wrong with it, the old one stays as a whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "app.h"

struct app_reload {
    uv_work_t work;
    struct app *app;
    char *path;
    struct rcpt_config *fresh; /* NULL: `error` says why */
    struct rcpt_error error;
    reload_on_done on_done;
    void *context;
};

static void list(FILE *out, const char *what, const char *const *paths, unsigned count)
{
    if (count == 0)
        return;
    fprintf(out, "%s:", what);
    for (unsigned index = 0; index < count; index++)
        fprintf(out, " %s", paths[index]);
    fputc('\n', out);
}

static void apply_limits(struct app *app)
{
    struct rcpt_engine_settings settings;
    app_engine_settings(app, &settings);
    rcpt_engine_set_limits(app->engine, &settings);
    lanes_apply_config(app);
    if (app->control != NULL)
        rcpt_pg_set_dsn(app->control, app->config->postgres.dsn);
    if (app->intake != NULL)
        rcpt_intake_apply_config(app->intake);
    janitor_restart(app);
    rcpt_config_apply_log(app->config);
    consume_continue(app);
    rcpt_engine_tick(app->engine, app_now(app));
}

static bool concerns_actions(const struct rcpt_config_changes *changes)
{
    for (unsigned index = 0; index < changes->applied_count; index++)
        if (strcmp(changes->applied[index], "pipelines") == 0 ||
            strncmp(changes->applied[index], "actions.", 8) == 0)
            return true;
    return false;
}

static bool has_changed(const struct rcpt_config_changes *changes, const char *path)
{
    for (unsigned index = 0; index < changes->applied_count; index++)
        if (strcmp(changes->applied[index], path) == 0)
            return true;
    return false;
}

/* True unless something is refused; then nothing was changed. */
static bool take_over(struct app_reload *reload, FILE *out)
{
    struct app *app = reload->app;
    struct rcpt_config_changes changes;
    struct rcpt_error error;
    bool good = true;
    if (reload->fresh == NULL) {
        fprintf(out, "refused: %s\n", reload->error.text);
        if (reload->error.hint[0] != '\0')
            fprintf(out, "HINT: %s\n", reload->error.hint);
        return false;
    }
    if (!endpoints_reload(app, &error)) {
        fprintf(out, "refused: http.tls_certificate: %s\n", error.text);
        return false;
    }
    unsigned connections = app->config->postgres.connections;
    if (reload->fresh->postgres.connections > app->config->lanes) {
        fputs("needs a restart: postgres.connections, which is above the lanes in effect\n", out);
        reload->fresh->postgres.connections = connections;
    }
    rcpt_ladder_grow(app->config->ladder, reload->fresh->ladder);
    rcpt_config_take_over(app->config, reload->fresh, &changes);
    unsigned wanted = app->config->postgres.connections;
    app->config->postgres.connections = connections; /* until they are there */
    apply_limits(app);
    lanes_resize(app, wanted);
    folds_apply_config(app, has_changed(&changes, "folds"));
    lanes_apply_blocks(app);
    if (!concerns_actions(&changes)) {
        actions_enable(app);
    } else if (!actions_reload(app, &error)) {
        fprintf(out, "actions cannot be carried out: %s\n", error.text);
        good = false;
    }
    app->figures.loaded_ms = measure_wall_ms();
    rcpt_config_hash(app->config, app->figures.config_hash);
    list(out, "applied", changes.applied, changes.applied_count);
    list(out, "needs a restart", changes.needs_restart, changes.needs_restart_count);
    if (changes.applied_count + changes.needs_restart_count == 0)
        fputs("nothing has changed\n", out);
    return good;
}

/* What is wrong after it was taken over, such as actions, does not bring the old one back. */
static void log_result(bool good, const char *text)
{
    bool refused = strncmp(text, "refused: ", 9) == 0;
    while (*text != '\0') {
        int size = (int)strcspn(text, "\n");
        rcpt_log(good ? RCPT_LOG_INFO : RCPT_LOG_ERROR, "app", "reload: %.*s%s", size, text,
                 refused ? "; the configuration stays as it was" : "");
        text += size + (text[size] == '\n');
    }
}

static void finish(struct app_reload *reload)
{
    struct app *app = reload->app;
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    RCPT_ASSERT(out != NULL);
    bool good = take_over(reload, out);
    RCPT_ASSERT(fclose(out) == 0);
    rcpt_metrics_add(app->figures.metrics, RCPT_METRIC_RELOADS,
                     RCPT_LABELS(good ? "applied" : "refused"), 1);
    log_result(good, text);
    if (reload->on_done != NULL)
        reload->on_done(reload->context, good, text);
    free(text);
}

static void on_work(uv_work_t *work)
{
    struct app_reload *reload = work->data;
    reload->fresh = rcpt_config_load(reload->path, &reload->error);
}

static void conclude(struct app_reload *reload, bool try)
{
    struct app *app = reload->app;
    app->reload = NULL;
    app->open--;
    supervisor_reload_ends(&app->supervisor);
    if (try && !app->closing)
        finish(reload);
    else if (reload->on_done != NULL)
        reload->on_done(reload->context, false, "refused: the process is about to end\n");
    rcpt_config_free(reload->fresh);
    free(reload->path);
    free(reload);
    app_check_drain(app);
    if (app->reload_again && !app->stopping)
        (void)reload_begin(app, NULL, NULL);
}

static void on_ladder(void *context, const struct rcpt_error *error)
{
    struct app_reload *reload = context;
    if (error != NULL) {
        reload->error = *error;
        rcpt_config_free(reload->fresh);
        reload->fresh = NULL;
    }
    conclude(reload, true);
}

/* Another ladder is the one thing that cannot be judged by the file alone. */
static void on_worked(uv_work_t *work, int status)
{
    struct app_reload *reload = work->data;
    struct app *app = reload->app;
    struct rcpt_error error;
    bool same = reload->fresh == NULL || strcmp(rcpt_ladder_hash(reload->fresh->ladder),
                                                rcpt_ladder_hash(app->config->ladder)) == 0;
    if (status != 0 || app->closing || same)
        conclude(reload, status == 0);
    else if (!ladders_ask(app, reload->fresh, on_ladder, reload, &error))
        on_ladder(reload, &error);
}

void reload_after_this(struct app *app)
{
    app->reload_again = true;
}

bool reload_begin(struct app *app, reload_on_done on_done, void *context)
{
    if (app->reload != NULL || app->closing)
        return false;
    struct app_reload *reload = rcpt_calloc(1, sizeof(*reload));
    *reload = (struct app_reload){
        .app = app, .path = rcpt_strdup(app->config_path), .on_done = on_done, .context = context};
    reload->work.data = reload;
    app->reload = reload;
    app->reload_again = false;
    app->open++;
    supervisor_reload_begins(&app->supervisor);
    RCPT_ASSERT(uv_queue_work(&app->loop, &reload->work, on_work, on_worked) == 0);
    return true;
}
