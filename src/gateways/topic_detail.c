/* The detail of a dead letter says what a record of a topic lacks, in the words of its account. It
 * shows words, names of keys and templates, never an id; digits that may be a telephone's are
 * hidden. Called by topics.c. */
#include "topics.h"

#include <stdio.h>
#include <stdlib.h>

#define DETAIL_BYTES  400u
#define SHOWN_BYTES   40u
#define HIDDEN_DIGITS 7u /* from so many on a number may be a telephone's */
#define MOST_KEYS     64u

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

/* Rows of one word differ in their codes and follow one another. */
static void add_words(FILE *out, const struct rcpt_mapping *statuses, size_t count)
{
    for (size_t index = 0; index < count; index++)
        if (index == 0 || strcmp(statuses[index].raw, statuses[index - 1].raw) != 0)
            fprintf(out, "%s%s", index > 0 ? ", " : "", statuses[index].raw);
}

static void add_unknown_word(FILE *out, const struct rcpt_gateway *gateway, struct rcpt_text word)
{
    char shown[SHOWN_BYTES + 1];
    const char *near = NULL;
    show(word, shown);
    for (size_t index = 0; index < gateway->status_count; index++)
        near = rcpt_text_nearer(shown, near, gateway->statuses[index].raw);
    fprintf(out, "the word \"%s\" has no meaning", shown);
    if (near != NULL)
        fprintf(out, "; did you mean \"%s\"?", near);
    fputs("; known: ", out);
    add_words(out, gateway->statuses, gateway->status_count);
    if (gateway->smpp_words) {
        fputs(", ", out);
        add_words(out, rcpt_smpp_statuses, rcpt_smpp_status_count);
    }
}

/* The names of what is there instead. */
static void add_keys(FILE *out, struct rcpt_text raw, struct rcpt_arena *arena)
{
    struct rcpt_node members[MOST_KEYS];
    size_t count = MOST_KEYS;
    const char *reason;
    char shown[SHOWN_BYTES + 1];
    if (!rcpt_document_looks_like(raw) ||
        !rcpt_document_members(raw, arena, NULL, members, &count, &reason))
        return;
    for (size_t index = 0; index < count; index++)
        fprintf(out, "%s%s", index == 0 ? "; its keys: " : ", ", show(members[index].key, shown));
}

/* Cut where the space ends: the table of an adapter may be long. */
const char *rcpt_topic_detail(const struct rcpt_gateway_account *account, const char *topic,
                              const struct rcpt_gateway_drop *drop, struct rcpt_arena *arena)
{
    const struct rcpt_fields *fields = &account->gateway->fields;
    const char *id = fields->id != NULL ? fields->id : fields->message_id;
    bool named = strcmp(account->name, topic) != 0;
    bool is_other = drop->kind == RCPT_GATEWAY_UNKNOWN_FORM, has_id = drop->id.size > 0;
    char *text = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&text, &size);
    fprintf(out, "topic %.60s%s%s as %s: ", topic, named ? ", account " : "",
            named ? account->name : "", account->gateway->name);
    if (drop->kind == RCPT_GATEWAY_UNMAPPED)
        add_unknown_word(out, account->gateway, drop->status);
    else if (is_other && !has_id)
        fprintf(out, "no receipt: it has neither an id at %s nor a status at %s", id,
                fields->status);
    else if (strcmp(drop->reason, "missing_id") == 0)
        fprintf(out, "no id at %s", id);
    else if (is_other || strcmp(drop->reason, "missing_status") == 0)
        fprintf(out, "no status at %s", fields->status);
    else
        fputs(drop->reason, out);
    if (is_other && account->gateway->items != NULL)
        fprintf(out, "; its receipts are at %s", account->gateway->items);
    if (drop->kind != RCPT_GATEWAY_UNMAPPED)
        add_keys(out, drop->raw, arena);
    RCPT_ASSERT(fclose(out) == 0);
    if (size > DETAIL_BYTES) /* between two characters */
        for (size = DETAIL_BYTES; size > 0 && (text[size] & 0xc0) == 0x80;)
            size--;
    const char *detail = rcpt_text_terminated(arena, (struct rcpt_text){text, size});
    free(text);
    return detail;
}
