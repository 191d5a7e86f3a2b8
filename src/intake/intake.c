/* The intake as a whole: accounts, HTTP server, drain and end. `receiptd intake` and
 * `receiptd run` start it on their loop.
 *
 * Its life: started; draining (no new connections, open requests are answered); closing. When it
 * closes, every part reports its end to on_part_closed, and the last one frees the intake.
 * request.c has the way of a request. */
#include "internal.h"
#include "receiptd/base/error.h"
#include "receiptd/http/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sysexits.h>

#define TICK_MS              50
#define CERTIFICATE_CHECK_MS 10000
#define CLOSE_MS             3000
#define JSON_CHUNK_BYTES     4096u

/* ---- HTTP ---- */

/* The configuration has the list as one text, separated by commas. */
static void split_proxies(struct rcpt_intake *intake)
{
    const char *at = intake->config->intake.trusted_proxies;
    while (at != NULL && *(at += strspn(at, ", \t")) != '\0') {
        size_t size = strcspn(at, ", \t");
        intake->proxies =
            rcpt_realloc(intake->proxies, (intake->proxy_count + 1) * sizeof(*intake->proxies));
        intake->proxies[intake->proxy_count++] = rcpt_strndup(at, size);
        at += size;
    }
}

static bool make_http(struct rcpt_intake *intake, struct rcpt_error *error)
{
    const struct rcpt_config *config = intake->config;
    split_proxies(intake);
    struct rcpt_http_settings settings = {
        .loop = intake->loop,
        .name = "intake",
        .listen = config->intake.listen,
        .reuse_port = config->intake.reuse_port,
        .tls_certificate = config->intake.tls_certificate,
        .tls_key = config->intake.tls_key,
        .trusted_proxies = (const char *const *)intake->proxies,
        .trusted_proxy_count = intake->proxy_count,
        .max_connections = config->intake.limits.connections,
        .max_per_source = config->intake.limits.connections_per_source,
        .max_header_bytes = config->intake.limits.header_bytes,
        .max_body_bytes = config->intake.limits.body_bytes,
        /* Bodies get one half of intake.memory; has_capacity() in request.c guards the other
         * half. */
        .max_memory_bytes = config->intake.memory_bytes / 2,
        .max_pipelined = (unsigned)config->intake.limits.pipelined,
        .rate_per_source = config->intake.limits.rate_per_source,
        .spare_neighbours = true,
        .header_timeout_ms = config->intake.limits.header_ms,
        .body_timeout_ms = config->intake.limits.body_ms,
        .idle_timeout_ms = config->intake.limits.idle_ms,
        .write_timeout_ms = config->intake.limits.write_ms,
    };
    struct rcpt_http_route route = {.prefix = "/dlr",
                                    .methods = RCPT_HTTP_GET | RCPT_HTTP_POST,
                                    .handler = intake_on_request,
                                    .context = intake};
    intake->http = rcpt_http_new(&settings, error);
    if (intake->http == NULL)
        return false;
    rcpt_http_route(intake->http, &route);
    return rcpt_http_start(intake->http, error);
}

/* Changes whenever one of the files does: a renewal on disk needs no signal. */
static uint64_t certificate_mark(const struct rcpt_intake *intake)
{
    const char *files[] = {intake->config->intake.tls_certificate, intake->config->intake.tls_key};
    uint64_t mark = 0;
    for (size_t i = 0; i < 2; i++) {
        struct stat status;
        if (files[i] != NULL && stat(files[i], &status) == 0)
            mark = mark * 31 + (uint64_t)status.st_mtim.tv_sec * 1000000007u +
                   (uint64_t)status.st_mtim.tv_nsec + (uint64_t)status.st_ino;
    }
    return mark;
}

void rcpt_intake_reload(struct rcpt_intake *intake)
{
    struct rcpt_error error;
    intake->certificate_mark = certificate_mark(intake);
    if (intake->config->intake.tls_certificate == NULL || intake->closing)
        return;
    /* A renewal that is half written fails here; the next check finds the rest of it. */
    if (rcpt_http_reload_tls(intake->http, &error))
        rcpt_log_info("intake", "certificate read again: %s",
                      intake->config->intake.tls_certificate);
    else
        rcpt_log_error("intake", "the old certificate stays: %s; HINT: %s", error.text, error.hint);
}

/* Compares the files every ten seconds, not at every tick: stat() may block on a network file
 * system. */
static void check_files(struct rcpt_intake *intake)
{
    int64_t now = intake_now(intake);
    if (now < intake->certificate_at_ms)
        return;
    intake->certificate_at_ms = now + CERTIFICATE_CHECK_MS;
    rcpt_config_warn_of_changed(intake->config);
    if (intake->config->intake.tls_certificate != NULL &&
        certificate_mark(intake) != intake->certificate_mark)
        rcpt_intake_reload(intake);
}

/* ---- the end ---- */

/* Runs when every part has reported its end, so nothing refers to the intake. */
static void free_intake(struct rcpt_intake *intake)
{
    intake_free_accounts(intake);
    for (size_t i = 0; i < intake->proxy_count; i++)
        free(intake->proxies[i]);
    intake_free_spares(intake);
    intake_free_certificates(intake);
    intake_free_targets(intake);
    rcpt_replay_memory_free(intake->replay);
    rcpt_alias_cache_free(intake->aliases);
    rcpt_pg_encoder_free(intake->encoder);
    free(intake->proxies);
    free(intake);
}

/* Ends what close_all began. After a failed start on_closed is not called: the caller got NULL. */
static void on_part_closed(void *context)
{
    struct rcpt_intake *intake = context;
    if (--intake->open > 0)
        return;
    void (*on_closed)(void *context) = intake->settings.on_closed;
    void *closed_context = intake->settings.context;
    bool reports = intake->started;
    free_intake(intake);
    if (reports)
        on_closed(closed_context);
}

static void on_handle_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

/* Closes whatever was made, so that a failed start can use it too. Requests that wait for an alias
 * are answered by the end of their connection. */
static void close_all(struct rcpt_intake *intake)
{
    uv_handle_t *handles[] = {(uv_handle_t *)&intake->flush, (uv_handle_t *)&intake->linger,
                              (uv_handle_t *)&intake->tick};
    intake->closing = true;
    /* Held by this function itself: no part that closes at once may free the intake below it. */
    intake->open = 1;
    for (size_t i = 0; i < RCPT_COUNT_OF(handles); i++) {
        intake->open++;
        uv_close(handles[i], on_handle_closed);
    }
    intake->open++;
    rcpt_client_close(intake->client, on_part_closed, intake);
    if (intake->http != NULL) {
        intake->open++;
        rcpt_http_close(intake->http, on_part_closed, intake);
    }
    if (intake->producer != NULL) {
        intake->open++;
        rcpt_producer_close(intake->producer, CLOSE_MS);
    }
    if (intake->pg != NULL) {
        intake->open++;
        rcpt_pg_close(intake->pg, on_part_closed, intake);
    }
    on_part_closed(intake);
}

/* A new password takes effect with the next connection, accounts with the next request. If a new
 * account is refused, the old accounts stay in use. */
void rcpt_intake_apply_config(struct rcpt_intake *intake)
{
    struct rcpt_error error;
    if (intake->closing)
        return;
    struct rcpt_kafka_credentials credentials;
    intake_apply_dsn(intake);
    host_kafka_credentials(intake->config, &credentials);
    rcpt_producer_set_credentials(intake->producer, &credentials);
    if (!intake_make_accounts(intake, &error))
        rcpt_log_failure(RCPT_LOG_ERROR, "intake", &error, "the accounts stay as they were");
}

/* No request is left, also none whose client has gone. */
static bool is_settled(const struct rcpt_intake *intake)
{
    return rcpt_http_stats(intake->http)->waiting_requests == 0 && !intake_is_fetching(intake) &&
           !intake_has_records(intake) && intake->waiting == NULL && !intake->lookup.in_flight &&
           rcpt_producer_records(intake->producer) == 0;
}

/* A drain is over when every request has its answer, and every answer its client. */
static void check_drain(struct rcpt_intake *intake)
{
    if (!intake->draining || intake->closing || !rcpt_http_is_idle(intake->http) ||
        !is_settled(intake))
        return;
    rcpt_log_info("intake", "every request is answered");
    close_all(intake);
}

/* The ticks do the rest: check_drain(). */
void rcpt_intake_drain(struct rcpt_intake *intake)
{
    if (intake->draining)
        return;
    intake->draining = true;
    rcpt_http_drain(intake->http);
    intake_update_readiness(intake);
}

/* ---- the loop ---- */

/* Runs once per turn of the loop, after its input: the records of all requests of a turn leave
 * together. */
static void on_flush(uv_check_t *handle)
{
    intake_flush(handle->data);
}

/* Every 50 ms: what depends on time and not on an event. */
static void on_tick(uv_timer_t *timer)
{
    struct rcpt_intake *intake = timer->data;
    check_files(intake);
    if (intake->retired != NULL && !intake->closing && is_settled(intake))
        intake_free_retired(intake);
    intake_trim(intake, intake_now(intake));
    intake_update_readiness(intake);
    check_drain(intake);
}

static void start_handles(struct rcpt_intake *intake)
{
    uv_check_init(intake->loop, &intake->flush);
    uv_timer_init(intake->loop, &intake->linger);
    uv_timer_init(intake->loop, &intake->tick);
    intake->flush.data = intake->linger.data = intake->tick.data = intake;
    uv_check_start(&intake->flush, on_flush);
    uv_timer_start(&intake->tick, on_tick, TICK_MS, TICK_MS);
}

/* Aliases come last: a database that is away must not keep the server from listening. */
struct rcpt_intake *rcpt_intake_start(const struct rcpt_intake_settings *settings,
                                      struct rcpt_error *error)
{
    struct rcpt_intake *intake = rcpt_calloc(1, sizeof(*intake));
    intake->settings = *settings;
    intake->config = settings->config;
    intake->loop = settings->loop;
    intake->certificate_mark = certificate_mark(intake);
    rcpt_arena_init(&intake->json, JSON_CHUNK_BYTES);
    intake->client = rcpt_client_new(intake->loop, NULL);
    intake->replay = rcpt_replay_memory_new(intake->config->intake.replay_keys, uv_hrtime());
    start_handles(intake);
    if (!intake_make_targets(intake, error) || !intake_make_accounts(intake, error) ||
        !intake_start_producer(intake, on_part_closed, error) || !make_http(intake, error)) {
        close_all(intake);
        return NULL;
    }
    intake_start_aliases(intake);
    intake->started = true;
    return intake;
}

/* ---- figures ---- */

size_t rcpt_intake_account_count(const struct rcpt_intake *intake)
{
    return intake->account_count;
}

const struct rcpt_gateway_stats *rcpt_intake_account_stats(const struct rcpt_intake *intake,
                                                           size_t index)
{
    RCPT_ASSERT(index < intake->account_count);
    return &intake->accounts[index]->stats;
}

void rcpt_intake_totals(const struct rcpt_intake *intake, struct rcpt_intake_totals *totals)
{
    *totals = intake->totals;
    totals->waiting_bytes = intake_record_bytes(intake);
    totals->waiting_requests = rcpt_http_stats(intake->http)->waiting_requests;
}

const struct rcpt_http_stats *rcpt_intake_http_stats(const struct rcpt_intake *intake)
{
    return rcpt_http_stats(intake->http);
}
