/* Answers of costly questions, kept for a while; a time-out is kept like an answer. So the same
 * question, however often it is asked, costs the database at most a tenth of its time. There are a
 * few places; the answer that ends first gives its place away. Called by serve.c. */
#include <stdlib.h>

#include "internal.h"

#define PLACES       32u
#define MOST_BYTES   (256u * 1024) /* a longer answer is not kept */
#define LEAST_MS     100           /* nor is one that took less */
#define TIMES        10
#define MOST_KEPT_MS 60000

struct serve_kept {
    struct place {
        char *key, *answer; /* NULL: free */
        int64_t until_ms;
    } places[PLACES];
};

struct serve_kept *serve_kept_new(void)
{
    return rcpt_calloc(1, sizeof(struct serve_kept));
}

/* Free again. */
static void empty(struct place *place)
{
    free(place->key);
    free(place->answer);
    *place = (struct place){0};
}

void serve_kept_free(struct serve_kept *kept)
{
    for (size_t index = 0; index < PLACES; index++)
        empty(&kept->places[index]);
    free(kept);
}

/* Statement and values, each behind its length, so that no two questions have the same. */
static char *key_of(const struct serve_question *question)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&text, &size);
    fputs(question->statement, out);
    for (int index = 0; index < question->count; index++) {
        const char *value = question->values[index];
        fprintf(out, " %zd:%s", value != NULL ? (ssize_t)strlen(value) : -1,
                value != NULL ? value : "");
    }
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}

/* Few places, so all are looked at. */
const char *serve_kept_find(const struct serve_kept *kept, const struct serve_question *question,
                            int64_t now_ms)
{
    const char *answer = NULL;
    char *key = key_of(question);
    for (size_t index = 0; index < PLACES && answer == NULL; index++) {
        const struct place *place = &kept->places[index];
        if (place->key != NULL && place->until_ms > now_ms && strcmp(place->key, key) == 0)
            answer = place->answer;
    }
    free(key);
    return answer;
}

/* Replaces the answer of the same question, or the one that ends first. */
void serve_kept_put(struct serve_kept *kept, const struct serve_question *question,
                    const char *answer, int64_t took_ms, int64_t now_ms)
{
    int64_t kept_ms = took_ms * TIMES < MOST_KEPT_MS ? took_ms * TIMES : MOST_KEPT_MS;
    struct place *chosen = &kept->places[0];
    if (took_ms < LEAST_MS || strlen(answer) > MOST_BYTES)
        return;
    char *key = key_of(question);
    for (size_t index = 0; index < PLACES; index++) {
        struct place *place = &kept->places[index];
        bool same = place->key != NULL && strcmp(place->key, key) == 0;
        if (same || place->until_ms < chosen->until_ms)
            chosen = place;
        if (same)
            break;
    }
    empty(chosen);
    *chosen = (struct place){key, rcpt_strdup(answer), now_ms + kept_ms};
}
