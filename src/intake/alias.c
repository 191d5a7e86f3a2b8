/* Looks up our message ids for gateways' ids (`intake.alias`). Requests wait in a queue; one query
 * at a time asks for the ids of all that wait, so a slow database makes fewer and larger queries.
 *
 * request.c resolves from the cache first and comes here for ids that the cache lacks. Results go
 * through the cache back to intake_emit(). */
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "receiptd/base/utf8.h"
#include "receiptd/postgres/statements.h"

/* In one query; a single request may bring more. */
#define MAX_LOOKUP_IDS 10000u

static void on_ready(void *context, struct rcpt_pg *pg)
{
    struct rcpt_intake *intake = context;
    (void)pg;
    intake->database = INTAKE_DATABASE_UP;
    intake_update_readiness(intake);
}

/* Requests do not wait for a database that is away: they go on without aliases, or are refused
 * where aliases are required. */
static void on_down(void *context, struct rcpt_pg *pg, const struct rcpt_error *error)
{
    struct rcpt_intake *intake = context;
    (void)pg;
    (void)error; /* logged by the connection */
    intake->database = INTAKE_DATABASE_DOWN;
    struct delivery *delivery = intake->waiting;
    intake->waiting = intake->last_waiting = NULL;
    while (delivery != NULL) {
        struct delivery *next = delivery->next;
        if (intake->config->intake.alias == RCPT_ALIAS_REQUIRED)
            intake_refuse(delivery);
        else
            intake_emit(delivery);
        delivery = next;
    }
    intake_update_readiness(intake);
}

/* The intake may have a role of its own with fewer rights. */
static const char *dsn_of(const struct rcpt_config *config)
{
    return config->intake.dsn != NULL ? config->intake.dsn : config->postgres.dsn;
}

/* A new password takes effect with the next connection. */
void intake_apply_dsn(struct rcpt_intake *intake)
{
    if (intake->pg != NULL)
        rcpt_pg_set_dsn(intake->pg, dsn_of(intake->config));
}

/* Both time-outs are short: requests are held open meanwhile, and a gateway repeats a request that
 * takes long. */
void intake_start_aliases(struct rcpt_intake *intake)
{
    const struct rcpt_config *config = intake->config;
    if (config->intake.alias == RCPT_ALIAS_OFF) {
        intake->database = INTAKE_DATABASE_UNUSED;
        return;
    }
    struct rcpt_pg_settings settings = {
        .loop = intake->loop,
        .name = "intake",
        .instance = intake->settings.instance,
        .dsn = dsn_of(config),
        .schema = config->postgres.schema,
        .lock_timeout_ms = (int)config->intake.alias_timeout_ms,
        .statement_timeout_ms = (int)config->intake.alias_timeout_ms,
        .connect_timeout_ms = (int)config->postgres.connect_timeout_ms,
        .retry_min_ms = (int)config->postgres.retry_min_ms,
        .retry_max_ms = (int)config->postgres.retry_max_ms,
        .context = intake,
        .on_ready = on_ready,
        .on_down = on_down,
    };
    settings.statements = rcpt_intake_statements(&settings.statement_count);
    intake->aliases = rcpt_alias_cache_new(config->intake.alias_cache);
    intake->encoder = rcpt_pg_encoder_new();
    intake->pg = rcpt_pg_new(&settings);
    rcpt_pg_start(intake->pg);
}

/* Only the cache answers here; false means unknown, or not asked yet. */
bool intake_resolve(struct rcpt_intake *intake, const struct intake_account *account,
                    const struct rcpt_gateway_event *event, struct rcpt_alias *found)
{
    return intake->aliases != NULL &&
           rcpt_alias_cache_get(intake->aliases, account->number, event->gateway_message_id.at,
                                event->gateway_message_id.size, found);
}

bool intake_can_look_up(const struct rcpt_intake *intake)
{
    return intake->database == INTAKE_DATABASE_UP && rcpt_pg_is_ready(intake->pg);
}

/* ---- asking ---- */

/* One text that PostgreSQL refuses would fail the query for all: such an id has no alias. */
static bool is_asked(const struct rcpt_gateway_event *event)
{
    return event->message_id.size == 0 && event->gateway_message_id.size > 0 &&
           rcpt_utf8_is_text(event->gateway_message_id.at, event->gateway_message_id.size);
}

static size_t count_asked(const struct delivery *delivery)
{
    size_t count = 0;
    for (size_t i = 0; i < delivery->result.event_count; i++)
        count += is_asked(&delivery->result.events[i]);
    return count;
}

/* Takes the first deliveries in line, with at most MAX_LOOKUP_IDS ids, but one delivery at least.
 * Returns the number of ids. */
static size_t take_deliveries(struct rcpt_intake *intake)
{
    struct delivery **end = &intake->waiting;
    size_t asked = 0;
    while (*end != NULL) {
        size_t more = count_asked(*end);
        if (asked > 0 && asked + more > MAX_LOOKUP_IDS)
            break;
        asked += more;
        end = &(*end)->next;
    }
    intake->lookup.deliveries = intake->waiting;
    intake->waiting = *end;
    *end = NULL;
    if (intake->waiting == NULL)
        intake->last_waiting = NULL;
    return asked;
}

/* Called twice, for two arrays of the same length: accounts, then ids. Duplicates are harmless. */
static void put_asked(struct rcpt_intake *intake, bool accounts)
{
    for (const struct delivery *each = intake->lookup.deliveries; each != NULL; each = each->next)
        for (size_t i = 0; i < each->result.event_count; i++) {
            const struct rcpt_gateway_event *event = &each->result.events[i];
            if (!is_asked(event))
                continue;
            if (accounts)
                rcpt_pg_put_bytes(intake->encoder, each->account->name, each->account->name_size);
            else
                rcpt_pg_put_bytes(intake->encoder, event->gateway_message_id.at,
                                  event->gateway_message_id.size);
        }
}

/* UINT32_MAX, for an account that the configuration no longer has, is the scope of no account. */
static uint32_t number_of(const struct rcpt_intake *intake, const char *name)
{
    for (size_t i = 0; i < intake->account_count; i++)
        if (strcmp(intake->accounts[i]->name, name) == 0)
            return intake->accounts[i]->number;
    return UINT32_MAX;
}

/* Columns of sql/intake/aliases. */
enum { ALIAS_CHANNEL_ACCOUNT, ALIAS_GATEWAY_ID, ALIAS_MESSAGE_ID, ALIAS_PART, ALIAS_PARTS };

/* Ids without a row are not cached, since their row may appear at any moment. */
static void remember(struct rcpt_intake *intake, const struct rcpt_pg_rows *rows)
{
    size_t count = rcpt_pg_rows_count(rows);
    intake->totals.alias_found += count;
    for (size_t i = 0; i < count; i++) {
        const char *gateway_id = rcpt_pg_rows_text(rows, i, ALIAS_GATEWAY_ID);
        const char *message_id = rcpt_pg_rows_text(rows, i, ALIAS_MESSAGE_ID);
        const struct rcpt_alias target = {message_id, strlen(message_id),
                                          (uint8_t)rcpt_pg_rows_int(rows, i, ALIAS_PART),
                                          (uint8_t)rcpt_pg_rows_int(rows, i, ALIAS_PARTS)};
        rcpt_alias_cache_put(intake->aliases,
                             number_of(intake, rcpt_pg_rows_text(rows, i, ALIAS_CHANNEL_ACCOUNT)),
                             gateway_id, strlen(gateway_id), &target);
    }
}

static void ask(struct rcpt_intake *intake);

/* One line for each cause, not one for each query: those come as often as requests. */
static void log_outcome(struct rcpt_intake *intake, const struct rcpt_error *error)
{
    int64_t now_ms = (int64_t)uv_now(intake->loop);
    if (error == NULL)
        rcpt_outage_end(&intake->lookups, &intake->lookups_fail, now_ms, "intake",
                        "looking up aliases works again");
    else if (rcpt_outage_note(&intake->lookups, &intake->lookups_fail, now_ms, error))
        rcpt_log_failure(RCPT_LOG_WARN, "intake", error, "looking up aliases failed");
}

/* Whatever the outcome, the deliveries of this query go on now; the cache holds the aliases that
 * were found. */
static void on_result(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                      const struct rcpt_error *error)
{
    struct rcpt_intake *intake = context;
    struct delivery *delivery = intake->lookup.deliveries;
    bool refuse = error != NULL && intake->config->intake.alias == RCPT_ALIAS_REQUIRED;
    intake->lookup = (struct intake_lookup){0};
    if (error == NULL && row_count == 1)
        remember(intake, rows[0]);
    else
        intake->totals.alias_failed++;
    log_outcome(intake, error);
    while (delivery != NULL) {
        struct delivery *next = delivery->next;
        if (refuse)
            intake_refuse(delivery);
        else
            intake_emit(delivery);
        delivery = next;
    }
    /* An answer with a SQLSTATE means: the connection still stands but is of no use. */
    if (error != NULL && error->decision == RCPT_DECISION_RECONNECT && error->code[0] != '\0')
        rcpt_pg_reconnect(intake->pg, error);
    ask(intake);
    intake_flush(intake);
}

/* Does nothing while a query is in flight: its result calls here again. */
static void ask(struct rcpt_intake *intake)
{
    if (intake->lookup.in_flight || intake->waiting == NULL || !intake_can_look_up(intake))
        return;
    size_t asked = take_deliveries(intake);
    struct rcpt_pg_query query = {.statement = "aliases"};
    rcpt_pg_encoder_reset(intake->encoder);
    rcpt_pg_begin_text_array(intake->encoder, asked);
    put_asked(intake, true);
    rcpt_pg_begin_text_array(intake->encoder, asked);
    put_asked(intake, false);
    rcpt_pg_encoder_params(intake->encoder, &query.params);
    intake->lookup.in_flight = true;
    intake->totals.alias_asked += asked;
    rcpt_pg_submit(intake->pg, &query, 1, on_result, intake);
}

/* Appends the delivery to the queue; requests are answered in the order of their arrival. */
void intake_look_up(struct delivery *delivery)
{
    struct rcpt_intake *intake = delivery->intake;
    delivery->next = NULL;
    if (intake->last_waiting != NULL)
        intake->last_waiting->next = delivery;
    else
        intake->waiting = delivery;
    intake->last_waiting = delivery;
    ask(intake);
}
