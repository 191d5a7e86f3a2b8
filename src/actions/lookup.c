/* Look-ups of pipelines: SQL of the platform's, whose row goes along with a call or prevents it.
 * Claimed actions of a pipeline with a look-up wait here, and one statement answers for all of
 * them. The statements go over a connection of their own, which only reads: a slow one holds up
 * neither receipts nor claims. A wrong one holds up its pipeline alone. Actions come from claim.c,
 * and go on to call.c or have a result. */
#include "internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_AGAIN_MS 1000         /* after a failure */
#define LEASE_SHARE   4            /* a look-up takes at most this part of the lease */
#define NO_SCHEMA     "pg_catalog" /* names without a schema are PostgreSQL's own */
#define FAILED        "lookup_failed"

/* Of one wording of a pipeline. One statement of it is in flight at a time. */
struct actions_lookup {
    struct actions_lookup *next;
    struct app_actions *actions;
    int64_t id; /* of the wording */
    char statement[32];
    char *pipeline, *sql, *as;           /* NULL: not read yet */
    bool is_tried, is_prepared, is_sent; /* on this connection; is_sent: not answered */
    struct actions_item *waiting, **waiting_end;
    struct actions_item *asked; /* of the statement in flight */
    size_t alone;               /* so many at the head are asked for one by one */
    struct rcpt_outage outage;
    bool is_down;
};

static int64_t timeout_of(const struct app_actions *actions)
{
    const struct rcpt_config *config = actions->context->config;
    int64_t share = config->actions.lease_ms / LEASE_SHARE;
    return config->actions.lookup_timeout_ms < share ? config->actions.lookup_timeout_ms : share;
}

static const char *dsn_of(const struct rcpt_config *config)
{
    return config->actions.lookup_dsn != NULL ? config->actions.lookup_dsn : config->postgres.dsn;
}

static struct actions_lookup *find(struct app_actions *actions, int64_t id)
{
    struct actions_lookup *lookup = actions->lookups.first;
    while (lookup != NULL && lookup->id != id)
        lookup = lookup->next;
    if (lookup != NULL)
        return lookup;
    lookup = rcpt_calloc(1, sizeof(*lookup));
    *lookup = (struct actions_lookup){.next = actions->lookups.first, .actions = actions, .id = id};
    lookup->waiting_end = &lookup->waiting;
    snprintf(lookup->statement, sizeof(lookup->statement), "lookup_%" PRId64, id);
    actions->lookups.first = lookup;
    return lookup;
}

/* ---- actions ---- */

static void count(const struct app_actions *actions, const char *result)
{
    rcpt_metrics_add(actions->context->metrics, RCPT_METRIC_ACTION_LOOKUPS, RCPT_LABELS(result), 1);
}

static struct actions_item *pop(struct actions_lookup *lookup, struct actions_item **list)
{
    struct actions_item *item = *list;
    *list = item->next;
    if (lookup->waiting == NULL)
        lookup->waiting_end = &lookup->waiting;
    return item;
}

void actions_lookup_add(struct actions_item *item)
{
    struct actions_lookup *lookup = find(item->actions, item->lookup);
    actions_call_promise(item, true);
    item->next = NULL;
    *lookup->waiting_end = item;
    lookup->waiting_end = &item->next;
}

/* Actions of the list are put off, or given back where the set is about to close. */
static void fail(struct actions_lookup *lookup, struct actions_item **list, const char *why)
{
    while (*list != NULL) {
        struct actions_item *item = pop(lookup, list);
        actions_call_promise(item, false);
        if (lookup->actions->lookups.closed) {
            actions_settle(item, ACTIONS_BACK, "closed");
            continue;
        }
        count(lookup->actions, "failed");
        actions_call_put_off(item, FAILED, why);
    }
}

/* Bodies are objects with members. */
static void put_row(struct actions_item *item, const char *as, const char *row)
{
    size_t size = strlen(item->body) + strlen(as) + strlen(row) + 8;
    char *body = rcpt_malloc(size);
    snprintf(body, size, "%.*s, \"%s\": %s}", (int)strlen(item->body) - 1, item->body, as, row);
    free(item->body);
    item->body = body;
}

/* Columns of a look-up's statement (src/config/pipelines_lookup.c). */
enum { ROW, ROW_BYTES, PASSED };

static void go_on(const struct actions_lookup *lookup, struct actions_item *item,
                  const struct rcpt_pg_rows *rows, size_t number)
{
    struct app_actions *actions = lookup->actions;
    const char *row = rcpt_pg_rows_text(rows, number, ROW);
    actions_call_promise(item, false);
    /* A row that is too large stays on the server. */
    if (row == NULL && rcpt_pg_rows_int(rows, number, ROW_BYTES) > 0) {
        count(actions, "failed");
        actions_call_put_off(item, FAILED, "the row has more than 65536 bytes of JSON");
    } else if (rcpt_pg_rows_bool(rows, number, PASSED)) {
        count(actions, "passed_over");
        actions_settle(item, ACTIONS_PASSED, "passed_over");
    } else if (actions->lookups.closed || actions_is_stale(actions, item->claimed_ms)) {
        actions_settle(item, ACTIONS_BACK, "stale");
    } else {
        count(actions, row != NULL ? "found" : "none");
        if (row != NULL)
            put_row(item, lookup->as, row);
        actions_call(item);
    }
}

/* ---- statements ---- */

/* Logs each cause once. A text that code of the platform raised may quote the run's values. */
static void note(struct actions_lookup *lookup, const struct rcpt_error *error)
{
    struct rcpt_error said = *error;
    if (said.code[0] >= 'A')
        snprintf(said.text, sizeof(said.text), "SQLSTATE %.31s", error->code);
    rcpt_error_hint(&said, "receiptd check-config --connect finds mistakes of the text and its "
                           "rights; receiptd actions list names what waits");
    if (rcpt_outage_note(&lookup->outage, &lookup->is_down, host_now(lookup->actions->context),
                         &said))
        rcpt_log_failure(RCPT_LOG_WARN, "actions", &said,
                         "the look-up of pipeline %s failed, and its calls wait", lookup->pipeline);
}

/* The actions of the failed statement, back at the head. One of them has values that make it fail:
 * asked for one by one, only that one fails. */
static void put_back(struct actions_lookup *lookup)
{
    struct actions_item **end = &lookup->asked;
    for (lookup->alone = 0; *end != NULL; end = &(*end)->next)
        lookup->alone++;
    *end = lookup->waiting;
    if (lookup->waiting == NULL)
        lookup->waiting_end = end;
    lookup->waiting = lookup->asked;
    lookup->asked = NULL;
}

/* The first answer is that of the preparation, where it was asked for. */
static void on_rows(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                    const struct rcpt_error *error)
{
    struct actions_lookup *lookup = context;
    struct app_actions *actions = lookup->actions;
    lookup->is_sent = false;
    lookup->is_prepared = lookup->is_prepared || row_count > 0;
    if (error == NULL) {
        const struct rcpt_pg_rows *answer = rows[row_count - 1];
        rcpt_outage_end(&lookup->outage, &lookup->is_down, host_now(actions->context), "actions",
                        "a look-up is answered again");
        for (size_t row = 0; row < rcpt_pg_rows_count(answer) && lookup->asked != NULL; row++)
            go_on(lookup, pop(lookup, &lookup->asked), answer, row);
    } else if (error->decision == RCPT_DECISION_REJECT && lookup->asked != NULL &&
               lookup->asked->next != NULL) {
        put_back(lookup);
    } else if (error->code[0] != '\0') {
        note(lookup, error);
        if (strcmp(error->code, "26000") == 0) /* a pooler has exchanged the session */
            rcpt_pg_reconnect(actions->lookups.pg, error);
    }
    fail(lookup, &lookup->asked, error != NULL ? error->text : "the answer has too few rows");
    actions_lookup_step(actions);
}

/* Moves the head of the queue to `asked`, and returns how many. */
static size_t take_waiting(struct actions_lookup *lookup)
{
    size_t most = lookup->alone > 0 ? 1 : ACTIONS_PER_CLAIM, taken = 0;
    struct actions_item **end = &lookup->asked;
    for (; lookup->waiting != NULL && taken < most; taken++) {
        *end = pop(lookup, &lookup->waiting);
        end = &(*end)->next;
    }
    *end = NULL;
    lookup->alone -= lookup->alone > 0;
    return taken;
}

static void put_parameters(const struct actions_lookup *lookup, struct rcpt_pg_encoder *encoder,
                           size_t taken)
{
    for (size_t index = 0; index < ACTIONS_LOOKUP_PARAMETERS; index++) {
        rcpt_pg_begin_text_array(encoder, taken);
        for (const struct actions_item *item = lookup->asked; item != NULL; item = item->next) {
            const char *value = item->parameters[index];
            if (value != NULL)
                rcpt_pg_put_bytes(encoder, value, strlen(value));
            else
                rcpt_pg_put_null(encoder);
        }
    }
    rcpt_pg_begin_int4_array(encoder, taken);
    for (const struct actions_item *item = lookup->asked; item != NULL; item = item->next)
        rcpt_pg_put_int4(encoder, (int32_t)item->step);
}

/* Prepares the statement first where that has not been done on this connection. */
static void ask(struct actions_lookup *lookup)
{
    struct actions_lookups *lookups = &lookup->actions->lookups;
    struct rcpt_pg_query queries[2] = {{.statement = lookup->statement, .prepare = lookup->sql},
                                       {.statement = lookup->statement}};
    size_t from = lookup->is_prepared ? 1 : 0;
    rcpt_pg_encoder_reset(lookups->encoder);
    put_parameters(lookup, lookups->encoder, take_waiting(lookup));
    rcpt_pg_encoder_params(lookups->encoder, &queries[1].params);
    lookup->is_tried = lookup->is_sent = true;
    rcpt_pg_submit(lookups->pg, queries + from, 2 - from, on_rows, lookup);
}

/* An action waits for an answer, however long the server takes, but not for a connection. Without
 * actions the statement is tried once, so that a mistake shows at the start. */
static void advance(struct actions_lookup *lookup)
{
    const struct actions_lookups *lookups = &lookup->actions->lookups;
    int64_t now = host_now(lookup->actions->context);
    if (lookup->is_sent || (lookup->waiting == NULL && lookup->is_tried))
        return;
    if (lookup->sql != NULL && lookups->pg != NULL && rcpt_pg_is_ready(lookups->pg))
        ask(lookup);
    else if (lookup->waiting != NULL &&
             now - lookup->waiting->claimed_ms > timeout_of(lookup->actions))
        fail(lookup, &lookup->waiting,
             "no connection by actions.lookup_dsn within actions.lookup_timeout");
}

/* ---- the connection ---- */

/* A new session has none of the statements. */
static void on_ready(void *context, struct rcpt_pg *pg)
{
    struct app_actions *actions = context;
    (void)pg;
    actions->lookups.up = true;
    for (struct actions_lookup *each = actions->lookups.first; each != NULL; each = each->next)
        each->is_tried = each->is_prepared = false;
    actions_lookup_step(actions);
}

static void on_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
{
    struct app_actions *actions = context;
    (void)pg;
    (void)error; /* logged by the connection */
    host_count_lost(actions->context, "lookup", actions->lookups.up);
    actions->lookups.up = false;
}

/* The server may be another one than receiptd's own. */
static void connect_database(struct app_actions *actions)
{
    struct rcpt_pg_settings settings = host_pg_settings(actions->context, "lookup");
    settings.dsn = dsn_of(actions->context->config);
    settings.schema = NO_SCHEMA;
    settings.read_only = true;
    settings.statement_timeout_ms = settings.lock_timeout_ms = (int)timeout_of(actions);
    settings.lineage = NULL;
    settings.outage = NULL;
    settings.peers = NULL;
    settings.context = actions;
    settings.on_ready = on_ready;
    settings.on_down = on_down;
    actions->lookups.pg = rcpt_pg_new(&settings);
    actions->open++;
    rcpt_pg_start(actions->lookups.pg);
}

/* ---- their texts ---- */

/* Columns of sql/actions/lookups. */
enum { LOOKUP_ID, LOOKUP_NAME, LOOKUP_AS, LOOKUP_SQL };

/* The text of a wording never changes. */
static void on_read(void *context, const struct rcpt_pg_rows *rows)
{
    struct app_actions *actions = context;
    for (size_t row = 0; row < rcpt_pg_rows_count(rows); row++) {
        struct actions_lookup *lookup = find(actions, rcpt_pg_rows_int(rows, row, LOOKUP_ID));
        if (lookup->sql != NULL)
            continue;
        lookup->pipeline = rcpt_strdup(rcpt_pg_rows_text(rows, row, LOOKUP_NAME));
        lookup->as = rcpt_strdup(rcpt_pg_rows_text(rows, row, LOOKUP_AS));
        lookup->sql = rcpt_strdup(rcpt_pg_rows_text(rows, row, LOOKUP_SQL));
    }
    actions->lookups.is_read = true;
    if (actions->lookups.first != NULL && actions->lookups.pg == NULL && !actions->lookups.closed)
        connect_database(actions);
}

/* Those of the configuration when its pipelines are stored, others when a claim names them. */
static void read_texts(struct app_actions *actions, int64_t unknown)
{
    if ((actions->lookups.is_read && unknown == 0) || !actions->known)
        return;
    struct rcpt_pg_encoder *encoder = rcpt_ask_begin(&actions->lookups.read);
    if (encoder == NULL)
        return;
    rcpt_pg_add_int4(encoder, (int32_t)unknown);
    rcpt_ask_send(&actions->lookups.read);
}

void actions_lookup_step(struct app_actions *actions)
{
    int64_t unknown = 0;
    if (actions->lookups.closed)
        return;
    for (struct actions_lookup *each = actions->lookups.first; each != NULL; each = each->next) {
        advance(each);
        if (each->sql == NULL)
            unknown = each->id;
    }
    read_texts(actions, unknown);
}

/* ---- start and end ---- */

void actions_lookup_init(struct app_actions *actions)
{
    actions->lookups.encoder = rcpt_pg_encoder_new();
    actions->lookups.is_read = true; /* nothing is stored yet */
    actions->lookups.read = actions_ask(actions, "lookups", "reading the look-ups", on_read);
    actions->lookups.read.retry_ms = READ_AGAIN_MS;
}

void actions_lookup_apply_config(struct app_actions *actions)
{
    if (actions->lookups.pg != NULL)
        rcpt_pg_set_dsn(actions->lookups.pg, dsn_of(actions->context->config));
}

/* The actions of a statement in flight are given back when the connection answers it as lost. */
void actions_lookup_close(struct app_actions *actions, void (*on_closed)(void *context))
{
    actions->lookups.closed = true;
    for (struct actions_lookup *each = actions->lookups.first; each != NULL; each = each->next)
        fail(each, &each->waiting, "");
    if (actions->lookups.pg != NULL)
        rcpt_pg_close(actions->lookups.pg, on_closed, actions);
}

void actions_lookup_fini(struct app_actions *actions)
{
    while (actions->lookups.first != NULL) {
        struct actions_lookup *lookup = actions->lookups.first;
        actions->lookups.first = lookup->next;
        free(lookup->pipeline);
        free(lookup->as);
        free(lookup->sql);
        free(lookup);
    }
    rcpt_pg_encoder_free(actions->lookups.encoder);
}
