/* The queue of questions. Callers take turns (round robin), so the questions of one delay another
 * by at most one question. A caller whose question already waits gets the same answer, because a
 * change makes a thousand viewers ask the same at once. A question that was sent is not joined,
 * since it may not see that change.
 */
#include "queue.h"

#include <stdlib.h>

#define CALLERS_OWN (SERVE_QUEUE / 32) /* places that each caller has, however many wait */

struct asker {
    struct asker *next;            /* of the question */
    struct asker *after, **before; /* in the queue of its caller; before NULL: it is in none */
    struct caller *caller;         /* while it is in one */
    struct question *question;
    serve_on_answer on_answer;
    void *context;
};

struct caller {
    struct caller *next;
    uint64_t key;
    struct asker *first, **last; /* one for each of its questions that wait */
    unsigned waiting, in_flight;
};

void queue_init(struct queue *queue)
{
    *queue = (struct queue){0};
    queue->last = &queue->first;
}

/* ---- callers ---- */

/* Made with its first question. The list is searched from its front: callers with questions are
 * few, and each step is a comparison. */
static struct caller *caller_of(struct queue *queue, uint64_t key)
{
    struct caller **link = &queue->callers;
    for (; *link != NULL; link = &(*link)->next)
        if ((*link)->key == key)
            return *link;
    struct caller *made = rcpt_calloc(1, sizeof(*made));
    made->key = key;
    made->last = &made->first;
    return *link = made;
}

/* Its place among the turns is given up. */
static void unlink_caller(struct queue *queue, const struct caller *caller)
{
    struct caller **link = &queue->callers;
    while (*link != caller)
        link = &(*link)->next;
    *link = caller->next;
}

/* Callers are as many as have questions, and no more. */
static void forget_idle(struct queue *queue, struct caller *caller)
{
    if (caller->waiting > 0 || caller->in_flight > 0)
        return;
    unlink_caller(queue, caller);
    free(caller);
}

/* Moves the caller behind the others. */
static void end_turn(struct queue *queue, struct caller *caller)
{
    unlink_caller(queue, caller);
    struct caller **link = &queue->callers;
    while (*link != NULL)
        link = &(*link)->next;
    caller->next = NULL;
    *link = caller;
}

/* At the end: a caller's own questions are asked in the order in which they came. */
static void join(struct caller *caller, struct asker *asker)
{
    asker->before = caller->last;
    *caller->last = asker;
    caller->last = &asker->after;
    caller->waiting++;
}

/* From any place: another caller may have had the question sent. */
static void leave(struct asker *asker)
{
    struct caller *caller = asker->caller;
    *asker->before = asker->after;
    if (asker->after != NULL)
        asker->after->before = asker->before;
    else
        caller->last = asker->before;
    asker->before = NULL;
    caller->waiting--;
}

/* ---- in ---- */

/* NULL is a value, too: an organisation that is not given sees all. */
static bool same(const char *one, const char *other)
{
    return one == other || (one != NULL && other != NULL && strcmp(one, other) == 0);
}

/* The hash only saves comparisons: an asker must not get the answer of another question. */
static uint64_t hash_of(const struct serve_question *asked)
{
    uint64_t hash = rcpt_text_hash(rcpt_text_of(asked->statement));
    for (int index = 0; index < asked->count; index++) {
        const char *value = asked->values[index];
        hash = hash * 31 + (value != NULL ? rcpt_text_hash(rcpt_text_of(value)) : 0);
    }
    return hash;
}

/* The question that waits and is the same, its organisation, too; NULL: there is none. */
static struct question *find_waiting(const struct queue *queue, const struct serve_question *asked,
                                     uint64_t hash)
{
    for (struct question *each = queue->first; each != NULL; each = each->next) {
        bool equal = each->hash == hash && each->count == asked->count &&
                     same(each->statement, asked->statement);
        for (int index = 0; equal && index < asked->count; index++)
            equal = same(each->values[index], asked->values[index]);
        if (equal)
            return each;
    }
    return NULL;
}

/* The values are copies, since the request may end before its question is sent. */
static struct question *append(struct queue *queue, const struct serve_question *asked,
                               uint64_t hash, int64_t now_ms)
{
    struct question *question = rcpt_calloc(1, sizeof(*question));
    *question = (struct question){.link = queue->last,
                                  .statement = asked->statement,
                                  .count = asked->count,
                                  .costly = asked->costly,
                                  .hash = hash,
                                  .came_ms = now_ms,
                                  .came_ns = uv_hrtime()};
    for (int index = 0; index < asked->count; index++) {
        const char *value = asked->values[index];
        question->values[index] = value != NULL ? rcpt_strdup(value) : NULL;
    }
    *queue->last = question;
    queue->last = &question->next;
    queue->waiting++;
    return question;
}

/* Half of the places are for callers that have few. */
static bool is_full(const struct queue *queue, const struct caller *caller)
{
    return queue->waiting >= SERVE_QUEUE ||
           (queue->waiting >= SERVE_QUEUE / 2 && caller->waiting >= CALLERS_OWN);
}

/* Once in the queue of each caller. */
static void add_asker(struct question *question, struct caller *caller, serve_on_answer on_answer,
                      void *context)
{
    bool queued = false;
    for (const struct asker *each = question->askers; each != NULL && !queued; each = each->next)
        queued = each->caller == caller;
    struct asker *asker = rcpt_calloc(1, sizeof(*asker));
    *asker = (struct asker){.next = question->askers,
                            .caller = caller,
                            .question = question,
                            .on_answer = on_answer,
                            .context = context};
    question->askers = asker;
    if (!queued)
        join(caller, asker);
}

/* Looks up the caller first, and forgets it again if there is no place. */
bool queue_add(struct queue *queue, const struct serve_question *asked, int64_t now_ms,
               serve_on_answer on_answer, void *context)
{
    uint64_t hash = hash_of(asked);
    struct question *question = find_waiting(queue, asked, hash);
    struct caller *caller = caller_of(queue, asked->caller);
    if (question == NULL && is_full(queue, caller)) {
        forget_idle(queue, caller);
        return false;
    }
    if (question == NULL)
        question = append(queue, asked, hash, now_ms);
    add_asker(question, caller, on_answer, context);
    return true;
}

/* ---- out ---- */

/* Out of the list, and of the queues of all who asked it. `keep` goes on. */
static void take(struct queue *queue, struct question *question, const struct caller *keep)
{
    *question->link = question->next;
    if (question->next != NULL)
        question->next->link = question->link;
    else
        queue->last = question->link;
    queue->waiting--;
    for (struct asker *each = question->askers; each != NULL; each = each->next) {
        if (each->before == NULL)
            continue;
        leave(each);
        if (each->caller != keep)
            forget_idle(queue, each->caller);
    }
}

/* The first question of the caller that may be sent now; NULL: none may. */
static struct question *next_of(const struct queue *queue, const struct caller *caller,
                                unsigned share)
{
    if (caller->in_flight >= share)
        return NULL;
    for (const struct asker *each = caller->first; each != NULL; each = each->after)
        if (!each->question->costly || queue->costly_in_flight < share)
            return each->question;
    return NULL;
}

/* The first caller in line that has something which may be sent. */
struct question *queue_take(struct queue *queue, unsigned share)
{
    struct question *question = NULL;
    struct caller *caller = queue->callers;
    while (caller != NULL && (question = next_of(queue, caller, share)) == NULL)
        caller = caller->next;
    if (question == NULL)
        return NULL;
    take(queue, question, caller);
    end_turn(queue, caller);
    caller->in_flight++;
    queue->costly_in_flight += question->costly;
    question->caller = caller;
    return question;
}

/* From the front: those have waited longest, but a costly one may wait longer. */
struct question *queue_take_late(struct queue *queue, int64_t now_ms, int64_t most_ms,
                                 int64_t most_costly_ms)
{
    struct question *each = queue->first;
    while (each != NULL && now_ms - each->came_ms <= (each->costly ? most_costly_ms : most_ms))
        each = each->next;
    if (each != NULL)
        take(queue, each, NULL);
    return each;
}

/* A caller is forgotten with its last question. */
void queue_landed(struct queue *queue, struct question *question)
{
    queue->costly_in_flight -= question->costly;
    question->caller->in_flight--;
    forget_idle(queue, question->caller);
}

/* An asker is freed before it is called, since it may ask again. */
void question_answer(struct question *question, const struct rcpt_pg_rows *rows,
                     const struct rcpt_error *error)
{
    while (question->askers != NULL) {
        struct asker asker = *question->askers;
        free(question->askers);
        question->askers = asker.next;
        asker.on_answer(asker.context, rows, error);
    }
}

void question_free(struct question *question)
{
    for (int index = 0; index < question->count; index++)
        free(question->values[index]);
    free(question);
}
