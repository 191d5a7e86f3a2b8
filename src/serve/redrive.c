/* POST /dead-letters/redrive: the only request that writes. Its work runs in a thread of the pool
 * with a session of its own by serve.operate_dsn, so the loop never waits. Read (the body) →
 * working (a worker thread; it sees copies only) → answered. Only a token in the Authorization
 * header admits: a browser sends none by itself, so no foreign page can make it ask. Called by
 * serve.c. */
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sysexits.h>
#include <time.h>

#include "internal.h"
#include "receiptd/base/json.h"
#include "receiptd/base/json_read.h"
#include "receiptd/core/record.h"
#include "receiptd/receipts/redrive.h"

#define MOST_CHOSEN  500u
#define MOST_TOLD    500 /* letters that stay, one by one */
#define MOST_SECONDS 10
#define STATEMENT_MS 30000

enum member { MEMBER_NONE, MEMBER_REASON, MEMBER_IDS, MEMBER_AFTER };

struct redrive {
    uv_work_t work;
    struct serve_request *request; /* the loop's */
    atomic_bool *ending;
    time_t ends;
    char *dsn, *schema, *reason; /* reason NULL: letters are chosen */
    int64_t connect_timeout_ms;
    unsigned lanes;
    struct rcpt_ladder *ladder;
    struct rcpt_machine_rules machines;
    struct rcpt_gateway_topics *topics; /* NULL: `error` says why */
    struct redrive_key after, *chosen;
    size_t chosen_count;
    bool has_after, has_ids;
    /* Reading the body. */
    enum member member;
    const char *fault; /* NULL: none */
    /* What the worker found. */
    bool good;
    struct redrive_counts counts;
    struct rcpt_error error;
    FILE *out; /* of `left` */
    struct rcpt_json json;
    char *left;
    size_t left_size;
    int told;
};

/* Frees the redrive and its request, which is answered by then. */
static void free_redrive(struct redrive *redrive)
{
    free(redrive->dsn);
    free(redrive->schema);
    free(redrive->reason);
    free(redrive->chosen);
    free(redrive->left);
    rcpt_gateway_topics_free(redrive->topics);
    rcpt_ladder_free(redrive->ladder);
    rcpt_machine_rules_free(&redrive->machines);
    serve_request_free(redrive->request);
    free(redrive);
}

/* ---- the body ---- */

/* False, for the caller to hand on. */
static bool fail(struct redrive *redrive, const char *fault)
{
    redrive->fault = fault;
    return false;
}

/* The name of a member: what the next texts are. */
static bool take_key(struct redrive *redrive, struct rcpt_text name)
{
    redrive->member = rcpt_text_is(name, "reason")  ? MEMBER_REASON
                      : rcpt_text_is(name, "ids")   ? MEMBER_IDS
                      : rcpt_text_is(name, "after") ? MEMBER_AFTER
                                                    : MEMBER_NONE;
    return redrive->member != MEMBER_NONE ||
           fail(redrive, "the body has members reason or ids, and after, and no others");
}

/* Only the form is checked here; the database knows whether the letter exists. */
static bool take_id(struct redrive *redrive, const char *id)
{
    if (redrive->chosen_count >= MOST_CHOSEN)
        return fail(redrive, "ids has more than 500 letters: send them in several requests");
    return redrive_key_read(id, &redrive->chosen[redrive->chosen_count++]) ||
           fail(redrive, "an id is not TOPIC/PARTITION/OFFSET/INDEX, as /dead-letters lists it");
}

/* A text stands alone, or in the list of ids. */
static bool take_text(struct redrive *redrive, const char *text, unsigned depth)
{
    if (redrive->member == MEMBER_IDS)
        return depth == 2 ? take_id(redrive, text) : fail(redrive, "ids is a list of texts");
    if (depth != 1)
        return fail(redrive, "only ids is a list");
    if (redrive->member == MEMBER_AFTER) {
        redrive->has_after = true;
        return redrive_key_read(text, &redrive->after) ||
               fail(redrive, "after is no `next` of an answer before");
    }
    if (!rcpt_reject_is_name(text) || redrive->reason != NULL)
        return fail(redrive, "reason is not a reason of dead letters: see docs/operations.md");
    redrive->reason = rcpt_strdup(text);
    return true;
}

/* Numbers, booleans and nulls mean nothing here, nor do objects within. */
static bool on_token(void *context, const struct rcpt_json_token *token)
{
    struct redrive *redrive = context;
    bool opens_list = token->kind == RCPT_JSON_ARRAY && token->depth == 1;
    switch (token->kind) {
    case RCPT_JSON_KEY:
        return take_key(redrive, token->text);
    case RCPT_JSON_STRING:
        return redrive->member == MEMBER_NONE
                   ? fail(redrive, "the body is a JSON object")
                   : take_text(redrive, rcpt_text_terminated(&redrive->request->arena, token->text),
                               token->depth);
    case RCPT_JSON_OBJECT:
        return token->depth == 0 || fail(redrive, "a member of the body is an object");
    case RCPT_JSON_ARRAY:
        if (opens_list && redrive->member == MEMBER_IDS && !redrive->has_ids)
            return redrive->has_ids = true;
        return fail(redrive, "the body has one list: ids");
    case RCPT_JSON_END:
        return true;
    default:
        return fail(redrive, "the body's values are texts and one list of texts");
    }
}

/* Reads the body. False: `fault` is set. */
static bool read_body(struct redrive *redrive)
{
    struct rcpt_http_text body = rcpt_http_body(redrive->request->http);
    struct rcpt_json_fault fault;
    redrive->chosen = rcpt_calloc(MOST_CHOSEN, sizeof(*redrive->chosen));
    if (body.size == 0)
        return fail(redrive, "the body is empty: {\"reason\": …} or {\"ids\": […]}");
    if (!rcpt_utf8_is_text(body.bytes, body.size))
        return fail(redrive, "the body is no UTF-8 text");
    if (rcpt_json_read((struct rcpt_text){body.bytes, body.size}, on_token, redrive, &fault) !=
        RCPT_JSON_OK)
        return redrive->fault != NULL ? false : fail(redrive, "the body is no JSON");
    if ((redrive->reason != NULL) == redrive->has_ids)
        return fail(redrive, "the body names either a reason or ids");
    return !redrive->has_ids || redrive->chosen_count > 0 || fail(redrive, "ids is empty");
}

/* ---- in the worker ---- */

/* A request that takes long ends in between: clients and the end of the process do not wait. */
static bool goes_on(void *context)
{
    const struct redrive *redrive = context;
    return !atomic_load(redrive->ending) && time(NULL) < redrive->ends;
}

/* Also notes letters of a page that is rolled back: they stay, too. */
static void on_left(void *context, const struct redrive_key *key, const char *why,
                    const char *detail)
{
    struct redrive *redrive = context;
    char id[REDRIVE_KEY_TEXT];
    if (redrive->told++ >= MOST_TOLD)
        return;
    redrive_key_write(key, id);
    rcpt_json_begin_object(&redrive->json);
    rcpt_json_put_text(&redrive->json, "id", id);
    rcpt_json_put_text(&redrive->json, "why", why);
    rcpt_json_put_text(&redrive->json, "detail", detail);
    rcpt_json_end_object(&redrive->json);
}

/* Borrows what the request copied. */
static void run(struct redrive *redrive, struct rcpt_session *session)
{
    const struct redrive_settings settings = {
        .session = session,
        .ladder = redrive->ladder,
        .machines = &redrive->machines,
        .topics = redrive->topics,
        .lanes = redrive->lanes,
        .reason = redrive->reason,
        .chosen = redrive->has_ids ? redrive->chosen : NULL,
        .chosen_count = redrive->chosen_count,
        .after = redrive->has_after ? &redrive->after : NULL,
        .limit = INT64_MAX,
        .context = redrive,
        .goes_on = goes_on,
        .on_left = on_left,
    };
    redrive->good = redrive_letters(&settings, &redrive->counts, &redrive->error);
}

/* Runs in a worker thread: it uses neither the loop's state nor the request. */
static void on_work(uv_work_t *work)
{
    struct redrive *redrive = work->data;
    const struct rcpt_session_settings settings = {
        .dsn = redrive->dsn,
        .schema = redrive->schema,
        .command = "serve-operate",
        .connect_timeout_ms = redrive->connect_timeout_ms,
        .worker_timeout_ms = STATEMENT_MS,
    };
    redrive->out = rcpt_open_memory(&redrive->left, &redrive->left_size);
    rcpt_json_init(&redrive->json, redrive->out);
    rcpt_json_begin_array(&redrive->json);
    struct rcpt_session *session =
        redrive->topics != NULL ? rcpt_session_open(&settings, &redrive->error) : NULL;
    if (session != NULL)
        run(redrive, session);
    rcpt_session_close(session);
    rcpt_json_end_array(&redrive->json);
    RCPT_ASSERT(fclose(redrive->out) == 0);
}

/* ---- the answer ---- */

/* The list is JSON already. */
static void answer_counts(const struct redrive *redrive)
{
    const struct redrive_counts *counts = &redrive->counts;
    char next[REDRIVE_KEY_TEXT], *text = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&text, &size);
    redrive_key_write(&counts->last, next);
    fprintf(out,
            "{\"redriven\":%" PRId64 ",\"receipts\":%" PRId64 ",\"left\":%" PRId64
            ",\"letters_left\":%s,\"next\":",
            counts->moved, counts->receipts, counts->left, redrive->left);
    struct rcpt_json json;
    rcpt_json_init(&json, out);
    rcpt_json_text(&json, counts->whole ? NULL : next);
    fputc('}', out);
    RCPT_ASSERT(fclose(out) == 0);
    serve_answer_body(redrive->request, "application/json", "no-store", text, size);
    free(text);
}

/* Pages before the failure are durable. The last page is uncertain if its commit was under way. */
static void answer_error(const struct redrive *redrive)
{
    const struct rcpt_error *error = &redrive->error;
    rcpt_log_failure(RCPT_LOG_WARN, "serve", error,
                     "the redrive of dead letters by serve.operate_dsn failed");
    if (error->exit_code == EX_NOPERM)
        serve_answer_problem(
            redrive->request, 503, "database_refused",
            "the role of serve.operate_dsn is refused by PostgreSQL (%s): it needs "
            "the rights of migrate --role",
            error->code);
    else
        serve_answer_problem(redrive->request, 503, "database_failed",
                             "PostgreSQL failed (%s) after %" PRId64
                             " letters were moved; nothing is lost or moved twice: ask again",
                             error->code, redrive->counts.moved);
}

/* The caller's place among the running redrives; caller 0: a free place. NULL: there is none. */
static uint64_t *place_of(struct rcpt_serve *serve, uint64_t caller)
{
    for (size_t index = 0; index < SERVE_MOST_REDRIVES; index++)
        if (serve->redrivers[index] == caller)
            return &serve->redrivers[index];
    return NULL;
}

/* Back on the loop; the client may have gone meanwhile, which the server of HTTP knows. */
static void on_worked(uv_work_t *work, int status)
{
    struct redrive *redrive = work->data;
    struct rcpt_serve *serve = redrive->request->serve;
    (void)status;
    serve->redrives--;
    uint64_t *place = place_of(serve, redrive->request->caller);
    RCPT_ASSERT(place != NULL);
    *place = 0;
    if (redrive->counts.moved > 0)
        rcpt_log_info("serve",
                      "the token %s moved %" PRId64 " dead letters (%" PRId64
                      " receipts are parked for the daemon)",
                      redrive->request->token, redrive->counts.moved, redrive->counts.receipts);
    if (redrive->good)
        answer_counts(redrive);
    else
        answer_error(redrive);
    free_redrive(redrive);
}

/* ---- the beginning ---- */

/* Whether /me lists the redrive: the page shows its button only then. */
bool serve_redrive_admits(const struct serve_request *request)
{
    return request->token != NULL && request->organisation == NULL &&
           (request->scopes & SERVE_OPERATE) &&
           serve_redrive_is_on(request->serve->settings.config);
}

/* The role of serve.dsn can only read. */
bool serve_redrive_is_on(const struct rcpt_config *config)
{
    return config->serve.operate_dsn != NULL;
}

/* Copies of what a reload may exchange while the worker runs. */
static void begin(struct redrive *redrive)
{
    struct rcpt_serve *serve = redrive->request->serve;
    const struct rcpt_config *config = serve->settings.config;
    redrive->ending = &serve->ending;
    redrive->ends = time(NULL) + MOST_SECONDS;
    redrive->dsn = rcpt_strdup(config->serve.operate_dsn);
    redrive->schema = rcpt_strdup(config->postgres.schema);
    redrive->connect_timeout_ms = config->postgres.connect_timeout_ms;
    redrive->lanes = config->lanes;
    redrive->ladder = rcpt_ladder_copy(config->ladder);
    rcpt_machine_rules_copy(&config->machine, &redrive->machines);
    redrive->topics = rcpt_gateway_topics_new(config->kafka.accounts, config->kafka.accounts_count,
                                              redrive->ladder, &redrive->error);
    redrive->work.data = redrive;
    serve->redrives++;
    uint64_t *place = place_of(serve, 0);
    RCPT_ASSERT(place != NULL);
    *place = redrive->request->caller;
    RCPT_ASSERT(uv_queue_work(serve->settings.loop, &redrive->work, on_work, on_worked) == 0);
}

/* Faults of the caller are answered before faults of the body. */
void serve_redrive_begin(struct serve_request *request)
{
    struct redrive *redrive = rcpt_calloc(1, sizeof(*redrive));
    redrive->request = request;
    if (request->token == NULL)
        serve_answer_problem(request, 403, "token_missing",
                             "letters are moved for a token in the Authorization header only");
    else if (request->organisation != NULL)
        serve_answer_problem(request, 403, "organisation_bound",
                             "dead letters belong to no organisation, and the token is one's");
    else if (!read_body(redrive))
        serve_answer_problem(request, 400, "invalid_body", "%s", redrive->fault);
    else if (place_of(request->serve, request->caller) != NULL ||
             place_of(request->serve, 0) == NULL)
        serve_answer_problem(request, 503, "too_many", "as many redrives as may be are under way");
    else {
        begin(redrive);
        return;
    }
    free_redrive(redrive);
}
