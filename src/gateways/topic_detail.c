/* What a record of a topic lacks, in the words of its account: the detail of its dead letter. Shows
 * words, names of keys and templates, never an id; digits that may be a telephone's are hidden.
 * Called by topics.c. */
#include "topics.h"

#include <stdio.h>

#define DETAIL_BYTES  400u
#define SHOWN_BYTES   40u
#define HIDDEN_DIGITS 7u /* from so many on a number may be a telephone's */
#define MOST_KEYS     64u

struct detail {
    char *text; /* of DETAIL_BYTES */
    size_t used;
};

/* The reject's reason of an adapter's; those without one of the core's are no events. */
enum rcpt_reject_reason rcpt_topic_reason(const char *reason)
{
    static const struct {
        const char *name;
        enum rcpt_reject_reason reason;
    } others[] = {
        {"status_not_in_ladder", RCPT_REJECT_UNKNOWN_STATUS},
        {"recipient_unknown", RCPT_REJECT_MISSING_ID},
        {"too_deep", RCPT_REJECT_INVALID_JSON},
        {"too_many_values", RCPT_REJECT_INVALID_JSON},
    };
    for (int index = 0; index < RCPT_REJECT_REASON__COUNT; index++)
        if (strcmp(rcpt_reject_name((enum rcpt_reject_reason)index), reason) == 0)
            return (enum rcpt_reject_reason)index;
    for (size_t index = 0; index < RCPT_COUNT_OF(others); index++)
        if (strcmp(others[index].name, reason) == 0)
            return others[index].reason;
    return RCPT_REJECT_NOT_AN_EVENT;
}

/* False: there is no space for the whole text, and nothing is added. */
static bool add(struct detail *detail, const char *text)
{
    size_t size = strlen(text);
    if (detail->used + size >= DETAIL_BYTES)
        return false;
    memcpy(detail->text + detail->used, text, size + 1);
    detail->used += size;
    return true;
}

/* A word of the record in the form that an operator may see. */
static const char *show(struct rcpt_text text, char shown[SHOWN_BYTES + 1])
{
    size_t size = text.size < SHOWN_BYTES ? text.size : SHOWN_BYTES, run = 0;
    for (size_t index = 0; index < size; index++)
        shown[index] = text.at[index] >= ' ' && text.at[index] <= '~' ? text.at[index] : '?';
    shown[size] = '\0';
    for (size_t index = 0; index <= size; index++) {
        bool is_digit = shown[index] >= '0' && shown[index] <= '9';
        if (!is_digit && run >= HIDDEN_DIGITS)
            memset(shown + index - run, '#', run);
        run = is_digit ? run + 1 : 0;
    }
    return shown;
}

/* The words of a table until the space ends; rows of one word differ in their codes and follow one
 * another. */
static void add_words(struct detail *detail, const struct rcpt_mapping *statuses, size_t count)
{
    const char *last = "";
    for (size_t index = 0; index < count; index++) {
        if (strcmp(statuses[index].raw, last) == 0)
            continue;
        size_t before = detail->used;
        last = statuses[index].raw;
        if (!add(detail, index > 0 ? ", " : "") || !add(detail, last)) {
            detail->text[detail->used = before] = '\0';
            add(detail, "…");
            return;
        }
    }
}

static void add_unknown_word(struct detail *detail, const struct rcpt_gateway_account *account,
                             const struct rcpt_gateway_drop *drop)
{
    const struct rcpt_gateway *gateway = account->gateway;
    char shown[SHOWN_BYTES + 1];
    const char *near = NULL;
    show(drop->status, shown);
    for (size_t index = 0; index < gateway->status_count; index++)
        near = rcpt_text_nearer(shown, near, gateway->statuses[index].raw);
    add(detail, "the word \"");
    add(detail, shown);
    add(detail, "\" has no meaning");
    if (near != NULL && add(detail, "; did you mean \"") && add(detail, near))
        add(detail, "\"?");
    add(detail, "; known: ");
    add_words(detail, gateway->statuses, gateway->status_count);
    if (gateway->smpp_words && add(detail, ", "))
        add_words(detail, rcpt_smpp_statuses, rcpt_smpp_status_count);
}

static void add_missing(struct detail *detail, const char *what, const char *template)
{
    add(detail, what);
    if (template != NULL && add(detail, " at "))
        add(detail, template);
}

/* The names of what is there instead. */
static void add_keys(struct detail *detail, const struct rcpt_gateway_drop *drop,
                     struct rcpt_arena *arena)
{
    struct rcpt_node members[MOST_KEYS];
    size_t count = MOST_KEYS;
    const char *reason;
    char shown[SHOWN_BYTES + 1];
    if (!rcpt_document_looks_like(drop->raw) ||
        !rcpt_document_members(drop->raw, arena, NULL, members, &count, &reason) || count == 0)
        return;
    add(detail, "; its keys: ");
    for (size_t index = 0; index < count; index++)
        if ((index > 0 && !add(detail, ", ")) || !add(detail, show(members[index].key, shown)))
            return;
}

const char *rcpt_topic_detail(const struct rcpt_gateway_account *account, const char *topic,
                              const struct rcpt_gateway_drop *drop, struct rcpt_arena *arena)
{
    const struct rcpt_fields *fields = &account->gateway->fields;
    const char *id = fields->id != NULL ? fields->id : fields->message_id;
    struct detail detail = {rcpt_arena_alloc(arena, DETAIL_BYTES), 0};
    bool no_id = strcmp(drop->reason, "missing_id") == 0;
    bool named = strcmp(account->name, topic) != 0;
    detail.used = (size_t)snprintf(detail.text, DETAIL_BYTES, "topic %.60s%s%.60s as %s: ", topic,
                                   named ? ", account " : "", named ? account->name : "",
                                   account->gateway->name);
    if (drop->kind == RCPT_GATEWAY_UNMAPPED)
        add_unknown_word(&detail, account, drop);
    else if (drop->kind == RCPT_GATEWAY_UNKNOWN_FORM || no_id)
        add_missing(&detail, no_id ? "no id" : "no receipt: it has no id", id);
    else if (strcmp(drop->reason, "missing_status") == 0)
        add_missing(&detail, "no status", fields->status);
    else
        add(&detail, drop->reason);
    if (drop->kind != RCPT_GATEWAY_UNMAPPED)
        add_keys(&detail, drop, arena);
    return detail.text;
}
