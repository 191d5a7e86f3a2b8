/* From codes of gateways to classes of reasons. Each adapter has its tables; this file has the
 * rules for all of them. Called by draft.c for each event. */
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

/* NULL: none fits. The order is the table's, in which the most precise rows come first. */
static const struct rcpt_reason *find(const struct rcpt_reason *reasons, size_t count,
                                      const struct rcpt_text *said, size_t said_count)
{
    for (size_t index = 0; index < count; index++)
        for (size_t text = 0; text < said_count; text++)
            if (said[text].size > 0 && rcpt_pattern_fits(said[text], reasons[index].code))
                return &reasons[index];
    return NULL;
}

/* One to three digits; 0: there are none. */
static size_t number_at(struct rcpt_text text, size_t at)
{
    size_t size = 0;
    while (size < 4 && at + size < text.size && text.at[at + size] >= '0' &&
           text.at[at + size] <= '9')
        size++;
    return size <= 3 ? size : 0;
}

/* Bytes of "5.7.26" at `at`; 0: there is no such code. */
static size_t enhanced_at(struct rcpt_text text, size_t at)
{
    size_t size = 1;
    if (text.at[at] != '4' && text.at[at] != '5')
        return 0;
    for (unsigned part = 0; part < 2; part++) {
        size_t digits = 0;
        if (at + size < text.size && text.at[at + size] == '.')
            digits = number_at(text, at + size + 1);
        if (digits == 0)
            return 0;
        size += 1 + digits;
    }
    return size;
}

static bool is_part_of_number(char byte)
{
    return byte == '.' || (byte >= '0' && byte <= '9');
}

/* An address such as 5.7.1.9 is no code. A sentence may end behind one. Answers of servers begin
 * with theirs. */
struct rcpt_text rcpt_reason_enhanced(struct rcpt_text text)
{
    enum { MOST_SEARCHED = 512 };
    text = rcpt_text_part(text, 0, MOST_SEARCHED);
    for (size_t at = 0; at < text.size; at++) {
        if (at > 0 && is_part_of_number(text.at[at - 1]))
            continue;
        size_t size = enhanced_at(text, at), end = at + size;
        bool goes_on =
            end + 1 < text.size && text.at[end] == '.' && is_part_of_number(text.at[end + 1]);
        if (size > 0 && !goes_on)
            return rcpt_text_part(text, at, size);
    }
    return rcpt_text_part(text, 0, 0);
}

/* By subject and detail of the first code that tells anything. */
static const struct rcpt_reason *find_enhanced(const struct rcpt_text *said, size_t said_count)
{
    const struct rcpt_reason *found = NULL;
    for (size_t index = 0; index < said_count && found == NULL; index++) {
        struct rcpt_text code = rcpt_reason_enhanced(said[index]);
        struct rcpt_text subject = rcpt_text_part(code, 2, code.size);
        if (code.size > 0)
            found = find(enhanced, RCPT_COUNT_OF(enhanced), &subject, 1);
    }
    return found;
}

const char *rcpt_reason_class_of(const struct rcpt_reason *reasons, size_t count,
                                 const struct rcpt_text *said, size_t said_count,
                                 struct rcpt_text word, const char *status)
{
    size_t failure = 0;
    while (failure < RCPT_COUNT_OF(failures) && strcmp(failures[failure].status, status) != 0)
        failure++;
    if (failure == RCPT_COUNT_OF(failures))
        return NULL;
    const struct rcpt_reason *found = find(reasons, count, said, said_count);
    if (found == NULL)
        found = find_enhanced(said, said_count);
    if (found == NULL)
        found = find(reasons, count, &word, 1);
    return names[found != NULL ? found->class : failures[failure].class];
}
