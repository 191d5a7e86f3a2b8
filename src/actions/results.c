/* Results of actions on their way to the database. They queue, and are written some hundred at a
 * time, one statement in flight. If that fails, they return to the head of the queue. Called by
 * actions.c on every step; call.c and claim.c settle actions. */
#include "internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define AGAIN_MS 200 /* after a failure, which may come at once */

static void free_item(struct actions_item *item)
{
    free(item->target);
    free(item->key);
    free(item->body);
    for (size_t index = 0; index < ACTIONS_LOOKUP_PARAMETERS; index++)
        free(item->parameters[index]);
    free(item->answer);
    free(item->trace);
    free(item);
}

/* The result of one action: exactly one per claim, whatever happens to the call. */
void actions_settle(struct actions_item *item, enum actions_result result, const char *class)
{
    struct app_actions *actions = item->actions;
    item->result = result;
    snprintf(item->class, sizeof(item->class), "%s", class);
    actions_trace_end(item);
    item->next = NULL;
    *actions->results_end = item;
    actions->results_end = &item->next;
    actions->in_flight--;
}

/* Results whose write was not confirmed return to the head of the queue; actions_finish() is
 * idempotent. */
static void requeue(struct app_actions *actions, bool without_answers)
{
    struct actions_item **end = &actions->in_finish;
    for (; *end != NULL; end = &(*end)->next) {
        if (without_answers) {
            free((*end)->answer);
            (*end)->answer = NULL;
        }
    }
    *end = actions->results;
    if (actions->results == NULL)
        actions->results_end = end;
    if (actions->in_finish != NULL)
        actions->results = actions->in_finish;
    if (actions->results_end == &actions->in_finish)
        actions->results_end = &actions->results;
    actions->in_finish = NULL;
}

/* Columns of sql/actions/finish. */
enum { FINISH_FINISHED, FINISH_OVERLAPPED };

/* Overlaps are results of actions whose lease had run out: another worker has called as well. */
static void on_finished(void *context, const struct rcpt_pg_rows *rows)
{
    struct app_actions *actions = context;
    int64_t overlapped = rcpt_pg_rows_int(rows, 0, FINISH_OVERLAPPED);
    if (overlapped > 0)
        rcpt_log_warn("actions",
                      "%" PRId64 " results came too late: their actions had been claimed again",
                      overlapped);
    while (actions->in_finish != NULL) {
        struct actions_item *item = actions->in_finish;
        actions->in_finish = item->next;
        free_item(item);
    }
    actions_claim_soon(actions); /* the next step may be due at once */
}

/* PostgreSQL may refuse a text of an answer: the next write goes without answers. */
static void on_finish_failed(void *context, const struct rcpt_error *error)
{
    requeue(context, error->decision == RCPT_DECISION_REJECT);
}

/* Empty is not the same as missing: an answer may have no text. */
static void put_text(struct rcpt_pg_encoder *encoder, const char *text)
{
    if (text == NULL)
        rcpt_pg_put_null(encoder);
    else
        rcpt_pg_put_bytes(encoder, text, strlen(text));
}

/* Moves the head of the queue, up to ACTIONS_PER_FINISH results, to in_finish. */
static size_t take_results(struct app_actions *actions)
{
    size_t count = 0;
    struct actions_item **last = &actions->results;
    while (*last != NULL && count < ACTIONS_PER_FINISH) {
        last = &(*last)->next;
        count++;
    }
    struct actions_item *rest = *last;
    actions->in_finish = actions->results;
    *last = NULL;
    actions->results = rest;
    if (rest == NULL)
        actions->results_end = &actions->results;
    return count;
}

/* Columns of the results as arrays, in the order of the parameters of finish. */
void actions_results_write(struct app_actions *actions)
{
    static const char *const names[] = {"done", "retry", "dead", "back", "wait", "passed"};
    struct rcpt_pg_encoder *encoder =
        actions->results != NULL ? rcpt_ask_begin(&actions->finish) : NULL;
    if (encoder == NULL)
        return;
    size_t count = take_results(actions);
    rcpt_pg_add_text(encoder, actions->me);
    rcpt_pg_begin_int8_array(encoder, count);
    for (const struct actions_item *item = actions->in_finish; item != NULL; item = item->next)
        rcpt_pg_put_int8(encoder, item->id);
    rcpt_pg_begin_int8_array(encoder, count);
    for (const struct actions_item *item = actions->in_finish; item != NULL; item = item->next)
        rcpt_pg_put_int8(encoder, item->token);
    rcpt_pg_begin_text_array(encoder, count);
    for (const struct actions_item *item = actions->in_finish; item != NULL; item = item->next)
        put_text(encoder, names[item->result]);
    rcpt_pg_begin_int8_array(encoder, count);
    for (const struct actions_item *item = actions->in_finish; item != NULL; item = item->next)
        rcpt_pg_put_int8(encoder, item->retry_ms);
    rcpt_pg_begin_text_array(encoder, count);
    for (const struct actions_item *item = actions->in_finish; item != NULL; item = item->next)
        put_text(encoder, item->class);
    rcpt_pg_begin_int4_array(encoder, count);
    for (const struct actions_item *item = actions->in_finish; item != NULL; item = item->next)
        rcpt_pg_put_int4(encoder, item->status);
    rcpt_pg_begin_text_array(encoder, count);
    for (const struct actions_item *item = actions->in_finish; item != NULL; item = item->next)
        put_text(encoder, item->answer);
    rcpt_ask_send(&actions->finish);
}

void actions_results_init(struct app_actions *actions)
{
    actions->results_end = &actions->results;
    actions->finish = actions_ask(actions, "finish", "writing results of actions", on_finished);
    actions->finish.on_failed = on_finish_failed;
    actions->finish.retry_ms = AGAIN_MS;
}

/* Results that could not be written are dropped: the leases end, and the actions are claimed again.
 * */
void actions_results_fini(struct app_actions *actions)
{
    requeue(actions, false);
    while (actions->results != NULL) {
        struct actions_item *item = actions->results;
        actions->results = item->next;
        free_item(item);
    }
}

/* Closing the set waits for this, so that no call is made twice without need. */
bool actions_results_are_written(const struct app_actions *actions)
{
    return actions->results == NULL && actions->in_finish == NULL;
}
