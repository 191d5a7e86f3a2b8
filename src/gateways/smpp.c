/* Receipts in the text of a short message: SMPP 3.4, appendix B. The format is only recommended, so
 * keys may be missing, and the text behind `text:` may hold anything, key words too. */
#include "gateway.h"

const struct rcpt_mapping rcpt_smpp_statuses[] = {
    {"DELIVRD", NULL, "DELIVERED", NULL}, {"DELIVERED", NULL, "DELIVERED", NULL},
    {"ACCEPTD", NULL, "SENT", NULL},      {"ACCEPTED", NULL, "SENT", NULL},
    {"ENROUTE", NULL, "SENT", NULL},      {"EXPIRED", NULL, "EXPIRED", NULL},
    {"UNDELIV*", NULL, "FAILED", NULL},   {"REJECTD", NULL, "REJECTED", NULL},
    {"REJECTED", NULL, "REJECTED", NULL}, {"DELETED", NULL, "FAILED", NULL},
    {"UNKNOWN", NULL, "UNKNOWN", NULL},
};
const size_t rcpt_smpp_status_count = RCPT_COUNT_OF(rcpt_smpp_statuses);

/* The value behind `key`, up to the next blank; letters' case does not count. */
static struct rcpt_text value_of(struct rcpt_text text, const char *key)
{
    size_t size = strlen(key);
    for (size_t at = 0; at + size <= text.size; at++) {
        if ((at > 0 && text.at[at - 1] != ' ') ||
            !rcpt_text_is_nocase(rcpt_text_part(text, at, size), key))
            continue;
        struct rcpt_text value = rcpt_text_part(text, at + size, text.size);
        while (value.size > 0 && value.at[0] == ' ')
            value = rcpt_text_part(value, 1, value.size);
        value.size = rcpt_text_find(value, " ");
        /* `err: text:` has no value, and the next key is none. */
        return rcpt_text_find(value, ":") < value.size ? rcpt_text_part(value, 0, 0) : value;
    }
    return (struct rcpt_text){NULL, 0};
}

/* Keys count only in front of `text:`. */
static struct rcpt_text before_text(struct rcpt_text receipt)
{
    for (size_t at = 0; at + 5 <= receipt.size; at++)
        if ((at == 0 || receipt.at[at - 1] == ' ') &&
            rcpt_text_is_nocase(rcpt_text_part(receipt, at, 5), "text:"))
            return rcpt_text_part(receipt, 0, at);
    return receipt;
}

/* False: there is no `stat:`, so it is no receipt. */
bool rcpt_smpp_parse(struct rcpt_text text, struct rcpt_smpp_receipt *receipt)
{
    struct rcpt_text keys = before_text(text);
    struct rcpt_text stat = value_of(keys, "stat:");
    if (stat.size == 0)
        return false;
    *receipt = (struct rcpt_smpp_receipt){
        .id = value_of(keys, "id:"),
        .stat = stat,
        .err = value_of(keys, "err:"),
        .submit_date = value_of(keys, "submit date:"),
        .done_date = value_of(keys, "done date:"),
    };
    if (!rcpt_text_number(value_of(keys, "sub:"), &receipt->sub))
        receipt->sub = 0;
    if (!rcpt_text_number(value_of(keys, "dlvrd:"), &receipt->dlvrd))
        receipt->dlvrd = 0;
    return true;
}
