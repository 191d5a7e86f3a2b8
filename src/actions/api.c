/* POST /runs/PIPELINE begins runs: a JSON object, or a list of them, as `receiptd actions import`
 * makes of lines. Everything is checked before anything is sent; the answer comes after the commit.
 * Called by the pages of endpoints.c. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "receiptd/base/document.h"
#include "receiptd/base/error.h"

#define MOST_RUNS     1000u /* of one request, so that a transaction stays short */
#define MOST_WAITING  16u   /* requests in flight */
#define RETRY_AFTER_S 1
#define NAME_BYTES    128
#define MOST_BYTES    1000u /* of a text, which is a key of an index */

/* A request that waits for its commit. The HTTP server keeps the request until it is answered. */
struct api_call {
    struct app_actions *actions;
    struct rcpt_http_request *request;
    unsigned taken;
};

/* 503 asks the client to come back; any other status is the client's fault. */
static void refuse(struct rcpt_http_request *request, int status, const char *text)
{
    char line[400];
    int size = snprintf(line, sizeof(line), "%s\n", text);
    struct rcpt_http_answer answer = {
        .status = status,
        .content_type = "text/plain; charset=utf-8",
        .retry_after_s = status == 503 ? RETRY_AFTER_S : 0,
        .body = line,
        .body_size = (size_t)size < sizeof(line) ? (size_t)size : sizeof(line) - 1,
    };
    rcpt_http_answer(request, &answer);
}

/* ---- the request ---- */

/* Numbers and null are taken where a text is expected. */
static const char *fault_of_text(const struct rcpt_node *node)
{
    if (node->type != RCPT_NODE_STRING && node->type != RCPT_NODE_NUMBER &&
        node->type != RCPT_NODE_NULL)
        return "is no text";
    if (memchr(node->text.at != NULL ? node->text.at : "", '\0', node->text.size) != NULL)
        return "has a NUL in it";
    if (node->text.size > MOST_BYTES)
        return "is longer than 1000 bytes";
    return NULL;
}

static const char *const members[] = {"subject",    "org_id", "campaign_id",
                                      "message_id", "stage",  "data"};
#define MEMBERS RCPT_COUNT_OF(members)

/* Refuses an unknown member: it may be a misspelt one. */
static const char *fault_of_member(struct rcpt_text key, char *text, size_t size)
{
    char shown[41];
    const char *best = NULL;
    for (size_t index = 0; index < MEMBERS; index++)
        if (rcpt_text_is(key, members[index]))
            return NULL;
    snprintf(shown, sizeof(shown), "%.*s", (int)(key.size < 40 ? key.size : 40), key.at);
    for (size_t index = 0; index < MEMBERS; index++)
        best = rcpt_text_nearer(shown, best, members[index]);
    if (best != NULL)
        snprintf(text, size, "has no member \"%s\": did you mean \"%s\"?", shown, best);
    else
        snprintf(text, size, "has no member \"%s\": put your own into \"data\"", shown);
    return text;
}

/* The fault of the run, and the name of its field; NULL: none. A subject is needed: runs of one
 * subject follow each other. `text` is memory for a fault that names the member. */
static const char *fault_of(const struct rcpt_node *run, const char **name, char *text, size_t size)
{
    *name = "";
    if (run->type != RCPT_NODE_OBJECT)
        return "is no object";
    for (const struct rcpt_node *member = run->first; member != NULL; member = member->next) {
        const char *fault = fault_of_member(rcpt_text_trim(member->key), text, size);
        if (fault != NULL)
            return fault;
    }
    for (size_t index = 0; strcmp(members[index], "data") != 0; index++) {
        const struct rcpt_node *node = rcpt_node_get(run, members[index]);
        const char *fault = node != NULL ? fault_of_text(node) : NULL;
        *name = members[index];
        if (fault != NULL)
            return fault;
    }
    *name = "subject";
    if (rcpt_node_text_of(run, "subject").size == 0)
        return "is missing";
    *name = "data";
    const struct rcpt_node *data = rcpt_node_get(run, "data");
    bool fine = data == NULL || data->type == RCPT_NODE_OBJECT || data->type == RCPT_NODE_NULL;
    return fine ? NULL : "is no object";
}

/* The number of the run helps to find it in a long list. */
static void refuse_run(struct rcpt_http_request *request, unsigned number, const char *name,
                       const char *fault)
{
    char text[200];
    snprintf(text, sizeof(text), "run %u: %s%s%s", number, name, name[0] != '\0' ? " " : "", fault);
    refuse(request, 400, text);
}

/* Returns the number of runs; 0: the request has been refused. All runs are checked before the
 * first is sent: a request begins all of them or none. */
static unsigned check_all(struct rcpt_http_request *request, const struct rcpt_node *root)
{
    const struct rcpt_node *run = root->type == RCPT_NODE_ARRAY ? root->first : root;
    unsigned count = 0;
    for (; run != NULL; run = run->next) {
        char text[140];
        const char *name, *fault = fault_of(run, &name, text, sizeof(text));
        if (++count > MOST_RUNS) {
            refuse(request, 413, "more than 1000 runs: send the rest by itself");
            return 0;
        }
        if (fault != NULL) {
            refuse_run(request, count, name, fault);
            return 0;
        }
    }
    if (count == 0)
        refuse(request, 400, "an empty list: which subject?");
    return count;
}

/* The database parses the body again: here it is only checked, so that faults get a 400. */
static unsigned read_body(struct rcpt_http_request *request)
{
    struct rcpt_http_text body = rcpt_http_body(request);
    struct rcpt_text text = {body.bytes, body.size};
    struct rcpt_arena arena;
    const char *reason = body.size > 0 ? "no text in UTF-8" : "it is empty";
    unsigned count = 0;
    rcpt_arena_init(&arena, 64 * 1024);
    const struct rcpt_node *root = NULL;
    if (text.size > 0 && rcpt_utf8_is_text(text.at, text.size))
        root = rcpt_document_parse(text, &arena, &reason);
    if (root == NULL) {
        char line[80];
        snprintf(line, sizeof(line), "the body cannot be read: %s", reason);
        refuse(request, 400, line);
    } else {
        count = check_all(request, root);
    }
    rcpt_arena_fini(&arena);
    return count;
}

/* Takes NAME out of "/NAME"; false: there is none, or a slash follows. */
static bool read_name(const struct rcpt_http_request *request, char *name, size_t size)
{
    struct rcpt_http_text rest = rcpt_http_rest(request);
    if (rest.size < 2 || rest.size > size || memchr(rest.bytes + 1, '/', rest.size - 1) != NULL)
        return false;
    memcpy(name, rest.bytes + 1, rest.size - 1);
    name[rest.size - 1] = '\0';
    return true;
}

/* Takes STAGE out of the query "stage=STAGE"; NULL: there is no query. False: it is another query,
 * perhaps a misspelt one. */
static bool read_stage(const struct rcpt_http_request *request, struct rcpt_arena *arena,
                       const char **stage)
{
    static const char key[] = "stage=";
    const struct rcpt_http_text query = rcpt_http_query(request);
    struct rcpt_text text = {query.bytes, query.size};
    *stage = NULL;
    if (query.size == 0)
        return true;
    if (!rcpt_text_begins(text, key) || memchr(query.bytes, '&', query.size) != NULL)
        return false;
    text = (struct rcpt_text){text.at + strlen(key), text.size - strlen(key)};
    *stage = rcpt_text_unescape(arena, text, true);
    return *stage != NULL && **stage != '\0';
}

/* ---- the answer ---- */

/* Fewer runs may begin than were taken: once_per may have seen their values. */
static void answer_count(struct api_call *call, int64_t began)
{
    char text[80];
    int size =
        snprintf(text, sizeof(text), "{\"taken\":%u,\"began\":%" PRId64 "}\n", call->taken, began);
    struct rcpt_http_answer answer = {
        .status = 200, .content_type = "application/json", .body = text, .body_size = (size_t)size};
    rcpt_http_answer(call->request, &answer);
}

/* A missing pipeline is 404, refused data is 400; everything else may pass and is 503. */
static void on_imported(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                        const struct rcpt_error *error)
{
    struct api_call *call = context;
    struct app_actions *actions = call->actions;
    actions->api_in_flight--;
    if (error == NULL) {
        RCPT_ASSERT(row_count == 1);
        answer_count(call, rcpt_pg_rows_int(rows[0], 0, 0));
        actions_claim_soon(actions);
    } else if (strcmp(error->code, "P0002") == 0) {
        refuse(call->request, 404, error->text);
    } else if (error->decision == RCPT_DECISION_REJECT) {
        refuse(call->request, 400, error->text);
    } else {
        rcpt_asker_failed(&actions->asker, NULL, "beginning runs by HTTP", error);
        refuse(call->request, 503, "the database cannot be reached now: send it again");
    }
    free(call);
    actions_step(actions);
}

/* Sends no rcpt_ask, since several requests may be in flight, up to MOST_WAITING. */
static void begin_runs(struct app_actions *actions, struct rcpt_http_request *request,
                       const char *name, const char *stage)
{
    struct rcpt_pg_query query = {.statement = "import"};
    unsigned count = read_body(request);
    if (count == 0)
        return;
    struct api_call *call = rcpt_calloc(1, sizeof(*call));
    *call = (struct api_call){actions, request, count};
    actions->api_in_flight++;
    rcpt_pg_encoder_reset(actions->asker.encoder);
    rcpt_pg_add_text(actions->asker.encoder, name);
    rcpt_pg_add_text(actions->asker.encoder, rcpt_http_body(request).bytes);
    rcpt_pg_add_text(actions->asker.encoder, stage);
    rcpt_pg_encoder_params(actions->asker.encoder, &query.params);
    rcpt_pg_submit(actions->asker.pg, &query, 1, on_imported, call);
}

/* The route has checked the token; a name in the path chooses the pipeline. */
void actions_on_request(void *context, struct rcpt_http_request *request)
{
    const struct actions *module = context;
    struct app_actions *actions = module->running;
    char name[NAME_BYTES];
    const char *stage;
    struct rcpt_arena arena;
    rcpt_arena_init(&arena, 256);
    if (actions == NULL) {
        refuse(request, 404, "no pipelines are configured");
    } else if (!read_name(request, name, sizeof(name))) {
        refuse(request, 404, "which pipeline? /runs/NAME");
    } else if (!read_stage(request, &arena, &stage)) {
        refuse(request, 400, "a query names the stage: /runs/NAME?stage=STAGE");
    } else if (actions->api_in_flight == MOST_WAITING) {
        refuse(request, 503, "too many requests wait for the database: send it again");
    } else if (actions->state != ACTIONS_RUNNING || !rcpt_asker_is_ready(&actions->asker)) {
        refuse(request, 503, "the database cannot be reached now: send it again");
    } else {
        begin_runs(actions, request, name, stage);
    }
    rcpt_arena_fini(&arena);
}
