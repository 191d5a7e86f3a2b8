/* Looks up tokens. One question at a time asks for all that wait, so unknown tokens cost the
 * database little, and delay no reader. A source that brings many unknown ones waits for the next
 * tick, unless its token was known recently. One connection has one token that is looked up; hashes
 * that were refused are remembered for some seconds. Called by access.c and serve.c. */
#include <stdlib.h>

#include "internal.h"

#define MOST_WAITING 4096u /* connections are fewer, but some are gone when their answer comes */
#define MOST_AT_ONCE 512u
#define REFUSED_MS   5000
#define KNOWN_MS     300000
#define PLACES       4096u /* a power of two; a newer hash takes the place of an older one */

struct waiter {
    struct waiter *next;
    struct serve_request *request;
};

struct look_up { /* of one token */
    struct look_up *next;
    char hash[RCPT_SERVE_HASH_TEXT];
    uint64_t key;           /* the hash's beginning */
    const void *connection; /* that asked first; only compared */
    bool may_wait;          /* for the tick */
    struct waiter *waiters;
};

struct memory {
    uint64_t key; /* 0: none */
    int64_t until_ms;
};

struct serve_tokens {
    struct rcpt_serve *serve;
    struct look_up *waiting, **last, *asked;
    unsigned count; /* that wait */
    struct memory refused[PLACES], known[PLACES];
};

static int64_t now_of(const struct serve_tokens *tokens)
{
    return (int64_t)uv_now(tokens->serve->settings.loop);
}

/* ---- memory ---- */

/* One place for each hash: nothing is searched, and nothing grows. */
static void remember(struct memory places[PLACES], uint64_t key, int64_t until_ms)
{
    places[key & (PLACES - 1)] = (struct memory){key, until_ms};
}

/* False also where a newer hash has taken the place. */
static bool remembers(const struct memory places[PLACES], uint64_t key, int64_t now_ms)
{
    const struct memory *place = &places[key & (PLACES - 1)];
    return place->key == key && place->until_ms > now_ms;
}

/* ---- the answer ---- */

/* As the table has them: words that commas separate. */
static unsigned scopes_of(const char *text)
{
    unsigned scopes = SERVE_ANY;
    if (strstr(text, "read") != NULL)
        scopes |= SERVE_READ;
    if (strstr(text, "support") != NULL)
        scopes |= SERVE_SUPPORT;
    if (strstr(text, "operate") != NULL)
        scopes |= SERVE_OPERATE;
    if (strstr(text, "suppressions") != NULL)
        scopes |= SERVE_SUPPRESSIONS;
    return scopes;
}

/* It counts in the rate of its source, which brings unknown tokens. */
static void refuse(struct serve_request *request)
{
    rcpt_http_charge(request->http);
    serve_answer_problem(request, 401, "token_unknown",
                         "the token is not known, or no longer: receiptd serve token list");
    serve_request_free(request);
}

/* Columns of sql/serve/token. */
enum { TOKEN_HASH, TOKEN_SCOPES, TOKEN_ORG_ID, TOKEN_NAME };

/* The token is the caller from now on, on any connection. */
static void admit(struct serve_request *request, uint64_t key, const struct rcpt_pg_rows *rows,
                  size_t row)
{
    const char *organisation = rcpt_pg_rows_text(rows, row, TOKEN_ORG_ID);
    request->scopes = scopes_of(rcpt_pg_rows_text(rows, row, TOKEN_SCOPES));
    request->caller = key;
    if (organisation != NULL)
        request->organisation = rcpt_text_terminated(&request->arena, rcpt_text_of(organisation));
    request->token = rcpt_text_terminated(&request->arena,
                                          rcpt_text_of(rcpt_pg_rows_text(rows, row, TOKEN_NAME)));
    request->serve->when_admitted(request);
}

/* The index of the row with this hash; the count of rows if there is none. */
static size_t row_of(const struct rcpt_pg_rows *rows, const char *hash)
{
    size_t row = 0, count = rcpt_pg_rows_count(rows);
    while (row < count && strcmp(rcpt_pg_rows_text(rows, row, TOKEN_HASH), hash) != 0)
        row++;
    return row;
}

/* Frees the look-up. `rows` NULL: there is no answer. */
static void answer(struct serve_tokens *tokens, struct look_up *look_up,
                   const struct rcpt_pg_rows *rows, const struct rcpt_error *error)
{
    size_t row = rows != NULL ? row_of(rows, look_up->hash) : 0;
    bool known = rows != NULL && row < rcpt_pg_rows_count(rows);
    if (rows != NULL)
        remember(known ? tokens->known : tokens->refused, look_up->key,
                 now_of(tokens) + (known ? KNOWN_MS : REFUSED_MS));
    while (look_up->waiters != NULL) {
        struct waiter *waiter = look_up->waiters;
        struct serve_request *request = waiter->request;
        look_up->waiters = waiter->next;
        free(waiter);
        if (known) {
            admit(request, look_up->key, rows, row);
        } else if (rows != NULL) {
            refuse(request);
        } else {
            serve_answer_failure(request, error);
            serve_request_free(request);
        }
    }
    free(look_up);
}

/* ---- the question ---- */

static void send_now(struct serve_tokens *tokens);

/* In the order in which they came. */
static void answer_all(struct serve_tokens *tokens, const struct rcpt_pg_rows *rows,
                       const struct rcpt_error *error)
{
    while (tokens->asked != NULL) {
        struct look_up *look_up = tokens->asked;
        tokens->asked = look_up->next;
        answer(tokens, look_up, rows, error);
    }
}

/* `asked` is not NULL until the last is answered, so that nothing is asked from inside. */
static void on_tokens(void *context, const struct rcpt_pg_rows *rows,
                      const struct rcpt_error *error)
{
    struct serve_tokens *tokens = context;
    answer_all(tokens, rows, error);
    send_now(tokens);
}

/* Moves those that do not wait for the tick, in their order. Returns how many. */
static unsigned choose(struct serve_tokens *tokens)
{
    struct look_up **link = &tokens->waiting, **end = &tokens->asked;
    unsigned count = 0;
    while (*link != NULL && count < MOST_AT_ONCE) {
        struct look_up *look_up = *link;
        if (look_up->may_wait) {
            link = &look_up->next;
            continue;
        }
        *link = look_up->next;
        look_up->next = NULL;
        *end = look_up;
        end = &look_up->next;
        count++;
    }
    while (*link != NULL)
        link = &(*link)->next;
    tokens->last = link;
    tokens->count -= count;
    return count;
}

/* One question for all that do not wait for the tick, unless one is under way. */
static void send_now(struct serve_tokens *tokens)
{
    char *list = NULL;
    size_t size = 0;
    if (tokens->asked != NULL || choose(tokens) == 0)
        return;
    FILE *out = rcpt_open_memory(&list, &size);
    for (const struct look_up *each = tokens->asked; each != NULL; each = each->next)
        fprintf(out, "%c%s", each == tokens->asked ? '{' : ',', each->hash);
    fputc('}', out);
    RCPT_ASSERT(fclose(out) == 0);
    const char *const values[] = {list};
    const struct serve_question question = {
        .statement = "token", .values = values, .count = 1, .caller = SERVE_CALLER_TOKENS};
    if (!serve_ask(tokens->serve, &question, on_tokens, tokens))
        answer_all(tokens, NULL, NULL);
    free(list);
}

unsigned serve_tokens_waiting(const struct serve_tokens *tokens)
{
    return tokens->count;
}

bool serve_tokens_are_idle(const struct serve_tokens *tokens)
{
    return tokens->waiting == NULL && tokens->asked == NULL;
}

/* Also asks for look-ups of the tick before that did not fit. */
void serve_tokens_tick(struct serve_tokens *tokens)
{
    for (struct look_up *each = tokens->waiting; each != NULL; each = each->next)
        each->may_wait = false;
    send_now(tokens);
}

/* ---- who waits ---- */

/* The first bytes of SHA-256, so two tokens with the same key cannot be found. */
static uint64_t key_of(const char *hash)
{
    char start[17] = "";
    memcpy(start, hash, sizeof(start) - 1);
    return strtoull(start, NULL, 16);
}

/* The one that waits for this token. `connection` becomes NULL where it has another one. */
static struct look_up *find(const struct serve_tokens *tokens, const char *hash, uint64_t key,
                            const void **connection)
{
    for (struct look_up *each = tokens->waiting; each != NULL; each = each->next) {
        if (each->key == key && strcmp(each->hash, hash) == 0)
            return each;
        if (each->connection == *connection)
            *connection = NULL;
    }
    return NULL;
}

/* At the end of the line. */
static struct look_up *append(struct serve_tokens *tokens, const char *hash, uint64_t key,
                              const void *connection)
{
    struct look_up *look_up = rcpt_calloc(1, sizeof(*look_up));
    *look_up = (struct look_up){.key = key, .connection = connection};
    snprintf(look_up->hash, sizeof(look_up->hash), "%s", hash);
    *tokens->last = look_up;
    tokens->last = &look_up->next;
    tokens->count++;
    return look_up;
}

static void add_waiter(struct look_up *look_up, struct serve_request *request)
{
    struct waiter *waiter = rcpt_calloc(1, sizeof(*waiter));
    *waiter = (struct waiter){look_up->waiters, request};
    look_up->waiters = waiter;
}

/* Clients use one token on a connection; a second one while the first is looked up is a guess. */
static void refuse_for_now(struct serve_request *request)
{
    serve_answer_problem(request, 429, "too_many",
                         "this connection has asked with another token, which is looked up");
    serve_request_free(request);
}

/* From the cheapest reason to refuse to the look-up. */
void serve_tokens_ask(struct serve_request *request, struct rcpt_text token)
{
    struct serve_tokens *tokens = request->serve->tokens;
    char hash[RCPT_SERVE_HASH_TEXT];
    rcpt_serve_hash(token.at, token.size, hash);
    uint64_t key = key_of(hash);
    const void *connection = rcpt_http_connection(request->http);
    if (remembers(tokens->refused, key, now_of(tokens))) {
        refuse(request);
        return;
    }
    struct look_up *look_up = find(tokens, hash, key, &connection);
    if (look_up == NULL && (connection == NULL || tokens->count >= MOST_WAITING)) {
        refuse_for_now(request);
        return;
    }
    bool may_wait =
        !remembers(tokens->known, key, now_of(tokens)) && !rcpt_http_is_within_rate(request->http);
    if (look_up == NULL) {
        look_up = append(tokens, hash, key, connection);
        look_up->may_wait = may_wait;
    }
    look_up->may_wait &= may_wait;
    add_waiter(look_up, request);
    send_now(tokens);
}

/* ---- life ---- */

struct serve_tokens *serve_tokens_new(struct rcpt_serve *serve)
{
    struct serve_tokens *tokens = rcpt_calloc(1, sizeof(*tokens));
    tokens->serve = serve;
    tokens->last = &tokens->waiting;
    return tokens;
}

void serve_tokens_free(struct serve_tokens *tokens)
{
    free(tokens);
}
