/* From codes of gateways to classes of reasons. The tables stand in the adapters; here is what holds for all of them. Called by
 * draft.c for each event. */
#include "reason.h"

#include <string.h>

#include "gateway.h"

static const char *const names[RCPT_REASON_CLASS__COUNT] = {
#define RCPT_REASON_NAME(name, text) [RCPT_REASON_##name] = (text),
    RCPT_REASON_CLASSES(RCPT_REASON_NAME)
#undef RCPT_REASON_NAME
};

/* DEFERRED is no failure yet, and SKIPPED was meant. */
static const struct {
    const char *status;
    enum rcpt_reason_class class;
} failures[] = {
    {"SUBMIT_FAILED", RCPT_REASON_UNKNOWN}, {"UNKNOWN", RCPT_REASON_UNKNOWN},
    {"EXPIRED", RCPT_REASON_EXPIRED},       {"BOUNCED_SOFT", RCPT_REASON_UNKNOWN},
    {"FAILED", RCPT_REASON_UNKNOWN},        {"BLOCKED", RCPT_REASON_BLOCKED},
    {"REJECTED", RCPT_REASON_UNKNOWN},      {"BOUNCED_HARD", RCPT_REASON_INVALID},
};

/* Subject and detail of "5.1.1": the first row that fits. */
static const struct rcpt_reason enhanced[] = {
    {"1.8", RCPT_REASON_SENDER},  {"1.7", RCPT_REASON_SENDER},  {"1.*", RCPT_REASON_INVALID},
    {"2.1", RCPT_REASON_INVALID}, {"2.3", RCPT_REASON_CONTENT}, {"2.*", RCPT_REASON_ABSENT},
    {"3.4", RCPT_REASON_CONTENT}, {"3.*", RCPT_REASON_NETWORK}, {"4.7", RCPT_REASON_EXPIRED},
    {"4.*", RCPT_REASON_NETWORK}, {"5.*", RCPT_REASON_NETWORK}, {"6.*", RCPT_REASON_CONTENT},
    {"7.*", RCPT_REASON_BLOCKED},
};

/* NULL: none fits. */
static const struct rcpt_reason *find(const struct rcpt_reason *reasons, size_t count,
                                      struct rcpt_text code)
{
    for (size_t index = 0; index < count && code.size > 0; index++)
        if (rcpt_pattern_fits(code, reasons[index].code))
            return &reasons[index];
    return NULL;
}

/* "4.2.2" or "5.7.26"; nothing else has a point behind a 4 or 5. */
static struct rcpt_text subject_of(struct rcpt_text code)
{
    bool is_enhanced =
        code.size >= 5 && (code.at[0] == '4' || code.at[0] == '5') && code.at[1] == '.';
    return is_enhanced ? rcpt_text_part(code, 2, code.size) : rcpt_text_part(code, 0, 0);
}

const char *rcpt_reason_class_of(const struct rcpt_reason *reasons, size_t count,
                                 struct rcpt_text reason, struct rcpt_text word, const char *status)
{
    size_t failure = 0;
    while (failure < RCPT_COUNT_OF(failures) && strcmp(failures[failure].status, status) != 0)
        failure++;
    if (failure == RCPT_COUNT_OF(failures))
        return NULL;
    const struct rcpt_reason *found = find(reasons, count, reason);
    if (found == NULL)
        found = find(enhanced, RCPT_COUNT_OF(enhanced), subject_of(reason));
    if (found == NULL)
        found = find(reasons, count, word);
    return names[found != NULL ? found->class : failures[failure].class];
}
