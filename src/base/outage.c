/* The causes of an outage, each logged once and counted. Called by connections of PostgreSQL, the
 * lanes and statements that are asked again and again.
 */
#include "receiptd/base/outage.h"

#include <stdio.h>
#include <string.h>

#include "receiptd/base/log.h"
#include "receiptd/base/text.h"

/* The cause's own entry, or the one that has to give way. */
static struct rcpt_outage_cause *find_cause(struct rcpt_outage *outage, uint64_t hash)
{
    struct rcpt_outage_cause *rarest = &outage->causes[0];
    for (size_t index = 0; index < RCPT_OUTAGE_CAUSES; index++) {
        struct rcpt_outage_cause *cause = &outage->causes[index];
        if (cause->count > 0 && cause->hash == hash)
            return cause;
        if (cause->count < rarest->count)
            rarest = cause;
    }
    return rarest;
}

bool rcpt_outage_note(struct rcpt_outage *outage, bool *is_down, int64_t now_ms,
                      const struct rcpt_error *error)
{
    uint64_t hash = rcpt_text_hash((struct rcpt_text){error->text, strlen(error->text)});
    struct rcpt_outage_cause *cause = find_cause(outage, hash);
    if (outage->failures++ == 0)
        outage->begun_ms = now_ms;
    outage->down += !*is_down;
    *is_down = true;
    bool is_known = cause->count > 0 && cause->hash == hash;
    bool is_news = !is_known || now_ms - cause->last_ms > RCPT_OUTAGE_AGAIN_MS;
    if (!is_known) {
        *cause = (struct rcpt_outage_cause){.hash = hash};
        snprintf(cause->text, sizeof(cause->text), "%.*s", (int)sizeof(cause->text) - 1,
                 error->text);
    }
    cause->count++;
    cause->last_ms = now_ms;
    return is_news;
}

void rcpt_outage_leave(struct rcpt_outage *outage, bool *is_down)
{
    outage->down -= *is_down;
    *is_down = false;
    if (outage->down == 0)
        *outage = (struct rcpt_outage){0};
}

void rcpt_outage_end(struct rcpt_outage *outage, bool *is_down, int64_t now_ms,
                     const char *component, const char *what)
{
    char causes[RCPT_OUTAGE_CAUSES * (sizeof(outage->causes[0].text) + 32)] = "";
    size_t used = 0;
    if (*is_down && outage->down == 1) {
        for (size_t index = 0; index < RCPT_OUTAGE_CAUSES; index++) {
            const struct rcpt_outage_cause *cause = &outage->causes[index];
            if (cause->count > 0)
                used += (size_t)snprintf(causes + used, sizeof(causes) - used, "%s%llu times %s",
                                         used > 0 ? "; " : "", (unsigned long long)cause->count,
                                         cause->text);
        }
        rcpt_log_info(component, "%s after %.1f s and %llu failures: %s", what,
                      (double)(now_ms - outage->begun_ms) / 1000,
                      (unsigned long long)outage->failures, causes);
    }
    rcpt_outage_leave(outage, is_down);
}
