/* Names of campaigns, from a view of the platform's (serve.campaigns). The interface must not
 * depend on the view, which may be slow, broken or gone. So a connection of its own reads it every
 * few seconds, and all answers take names from memory. The names that were read last hold until the
 * view can be read again. Called by serve.c; routes, lists and streams look names up. */
#include <stdlib.h>

#include "internal.h"
#include "receiptd/base/log.h"
#include "receiptd/base/pace.h"
#include "receiptd/postgres/array_text.h"
#include "receiptd/postgres/ask.h"

#define MOST_NAMES 20000 /* docs/serve.md tells both */
#define EVERY_MS   10000
#define SHARE      20 /* reading the view takes at most so small a part of the time */

struct named {                     /* a campaign; in order of their ids */
    char *campaign, *organisation; /* organisation NULL: of several, or of none */
    struct serve_name name;
};

struct serve_names {
    struct rcpt_serve *serve;
    struct rcpt_asker asker;
    struct rcpt_ask ask;
    struct rcpt_outage outage;
    void (*on_closed)(struct rcpt_serve *serve);
    struct rcpt_pace pace;
    struct named *known;
    size_t count;
    bool is_told;             /* that the view is not as it has to be */
    char *ids, *names, *days; /* of all, as arrays of SQL; NULL: nothing was read yet */
};

/* Frees the names that were read before. */
static void forget(struct serve_names *names)
{
    for (size_t index = 0; index < names->count; index++) {
        free(names->known[index].campaign);
        free(names->known[index].organisation);
        free(names->known[index].name.name);
        free(names->known[index].name.day);
    }
    free(names->known);
    free(names->ids);
    free(names->names);
    free(names->days);
}

/* NULL stays NULL. */
static char *copy(const char *text)
{
    return text != NULL ? rcpt_strdup(text) : NULL;
}

/* Columns of sql/serve/names. */
enum { NAMES_CAMPAIGN_ID, NAMES_ORG_ID, NAMES_NAME, NAMES_DAY };

/* A literal that array_in reads, of all rows. */
static char *array_of(const struct rcpt_pg_rows *rows, int column)
{
    struct rcpt_array_text array;
    rcpt_array_text_init(&array);
    for (size_t row = 0; row < rcpt_pg_rows_count(rows); row++) {
        const char *text = rcpt_pg_rows_text(rows, row, column);
        if (text != NULL)
            rcpt_array_text_add(&array, text, strlen(text));
        else
            rcpt_array_text_add_null(&array);
    }
    char *literal = rcpt_strdup(rcpt_array_text_finish(&array));
    rcpt_array_text_fini(&array);
    return literal;
}

/* Takes the whole view at once, so campaigns that it no longer has are forgotten. */
static void on_answer(void *context, const struct rcpt_pg_rows *rows)
{
    struct serve_names *names = context;
    int64_t now = (int64_t)uv_now(names->asker.loop);
    int64_t wait_ms = rcpt_pace_wait_ms(&names->pace, now - names->ask.sent_ms, SHARE);
    names->is_told = false;
    forget(names);
    names->count = rcpt_pg_rows_count(rows);
    names->known = rcpt_calloc(names->count + 1, sizeof(*names->known));
    for (size_t row = 0; row < names->count; row++)
        names->known[row] =
            (struct named){.campaign = copy(rcpt_pg_rows_text(rows, row, NAMES_CAMPAIGN_ID)),
                           .organisation = copy(rcpt_pg_rows_text(rows, row, NAMES_ORG_ID)),
                           .name = {.name = copy(rcpt_pg_rows_text(rows, row, NAMES_NAME)),
                                    .day = copy(rcpt_pg_rows_text(rows, row, NAMES_DAY))}};
    names->ids = array_of(rows, NAMES_CAMPAIGN_ID);
    names->names = array_of(rows, NAMES_NAME);
    names->days = array_of(rows, NAMES_DAY);
    names->ask.at_ms = now + (wait_ms > EVERY_MS ? wait_ms : EVERY_MS);
}

/* As PostgreSQL orders texts COLLATE "C". */
static int compare(const void *campaign, const void *element)
{
    return strcmp(campaign, ((const struct named *)element)->campaign);
}

/* An organisation gets no name of a campaign that belongs to others as well, because the row may be
 * theirs. */
const struct serve_name *serve_names_find(const struct serve_names *names, const char *campaign,
                                          const char *organisation)
{
    static const struct serve_name none = {0};
    const struct named *found =
        names != NULL && names->count > 0
            ? bsearch(campaign, names->known, names->count, sizeof(*names->known), compare)
            : NULL;
    bool may = found != NULL &&
               (organisation == NULL ||
                (found->organisation != NULL && strcmp(found->organisation, organisation) == 0));
    return may ? &found->name : &none;
}

/* For statements that search by names or order by them. */
void serve_names_all(const struct serve_names *names, const char *values[SERVE_NAMES_VALUES])
{
    values[0] = names != NULL ? names->ids : NULL;
    values[1] = names != NULL ? names->names : NULL;
    values[2] = names != NULL ? names->days : NULL;
}

/* Asks when it is time and the last answer has come. */
void serve_names_tick(struct serve_names *names)
{
    struct rcpt_pg_encoder *encoder = names != NULL ? rcpt_ask_begin(&names->ask) : NULL;
    if (encoder == NULL)
        return;
    rcpt_pg_add_int4(encoder, MOST_NAMES);
    rcpt_ask_send(&names->ask);
}

/* ---- the connection ---- */

/* The next tick asks. */
static void on_ready(void *context, struct rcpt_pg *pg)
{
    struct serve_names *names = context;
    (void)pg;
    names->asker.up = true;
}

static void on_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
{
    struct serve_names *names = context;
    (void)pg;
    names->asker.up = false;
    /* The connection logs the error, and takes the view for a table of ours. */
    if (strncmp(error->code, "42", 2) != 0 || names->is_told)
        return;
    names->is_told = true;
    rcpt_log_warn(
        "serve",
        "names of campaigns stay as they were: serve.campaigns is %s; HINT: it has to be a "
        "view with the columns id and name, and the role of serve.dsn needs USAGE on its "
        "schema and SELECT on it",
        names->serve->settings.config->serve.campaigns);
}

/* The memory goes last: the connection needs its encoder until here. */
static void on_closed(void *context)
{
    struct serve_names *names = context;
    struct rcpt_serve *serve = names->serve;
    void (*closed)(struct rcpt_serve * serve) = names->on_closed;
    forget(names);
    rcpt_pg_encoder_free(names->asker.encoder);
    free(names);
    closed(serve);
}

/* A question in flight is answered as lost, without a line in the log. */
void serve_names_close(struct serve_names *names, void (*closed)(struct rcpt_serve *serve))
{
    names->on_closed = closed;
    names->asker.closed = true;
    names->serve->names = NULL;
    rcpt_pg_close(names->asker.pg, on_closed, names);
}

/* It has an outage of its own, because a missing view does not affect the interface. */
struct serve_names *serve_names_new(struct rcpt_serve *serve)
{
    const struct rcpt_config *config = serve->settings.config;
    if (config->serve.campaigns == NULL)
        return NULL;
    struct serve_names *names = rcpt_calloc(1, sizeof(*names));
    struct rcpt_pg_settings settings = serve_pg_settings(serve, "serve-names");
    names->serve = serve;
    settings.outage = &names->outage;
    settings.context = names;
    settings.on_ready = on_ready;
    settings.on_down = on_down;
    settings.statements =
        rcpt_serve_names_statements(config->serve.campaigns, &settings.statement_count);
    names->asker = (struct rcpt_asker){.loop = serve->settings.loop,
                                       .pg = rcpt_pg_new(&settings),
                                       .encoder = rcpt_pg_encoder_new(),
                                       .component = "serve",
                                       .prefix = ""};
    names->ask = (struct rcpt_ask){.asker = &names->asker,
                                   .statement = "names",
                                   .what = "reading of names from serve.campaigns",
                                   .context = names,
                                   .on_answer = on_answer,
                                   .retry_ms = EVERY_MS};
    rcpt_pg_start(names->asker.pg);
    return names;
}

/* A new password takes effect with the next connection. */
void serve_names_apply_config(struct serve_names *names)
{
    if (names != NULL)
        rcpt_pg_set_dsn(names->asker.pg, serve_dsn(names->serve->settings.config));
}
