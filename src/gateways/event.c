/* An event as JSON, as the core reads it. Written by hand into memory of the right size: this is
 * done for every receipt, and a stream of callbacks would cost more than the adapter. Two passes:
 * sizes (most texts need no escape, which eight bytes at a time show), then writing. Called by
 * src/intake. */
#include <stdio.h>

#include "account.h"
#include "receiptd/core/timestamp.h"

struct member {
    struct rcpt_text key; /* with comma, quotes and colon */
    struct rcpt_text text;
    size_t size; /* of the text, escaped */
};

/* Control characters and DEL as \u00XX: six bytes. */
static size_t escaped_size(unsigned char byte)
{
    if (byte == '"' || byte == '\\')
        return 2;
    return byte < 0x20 || byte == 0x7f ? 6 : 1;
}

#define EACH(byte) (0x0101010101010101ull * (byte))

/* Whether one of eight bytes is no plain character of a string. A byte of zero shows in the top bit
 * of (word - 1) where it is not set in the word. */
static bool needs_escape(uint64_t word)
{
    uint64_t quote = word ^ EACH('"'), slash = word ^ EACH('\\'), del = word ^ EACH(0x7f);
    uint64_t found = ((word - EACH(0x20)) & ~word) | ((quote - EACH(1)) & ~quote) |
                     ((slash - EACH(1)) & ~slash) | ((del - EACH(1)) & ~del);
    return (found & EACH(0x80)) != 0;
}

/* The size within quotes; equal to the text's own when nothing needs an escape. */
static size_t size_of(struct rcpt_text text)
{
    size_t size = 0, index = 0;
    uint64_t word;
    while (index + sizeof(word) <= text.size) {
        memcpy(&word, text.at + index, sizeof(word));
        if (needs_escape(word))
            break;
        index += sizeof(word);
    }
    for (size = index; index < text.size; index++)
        size += escaped_size((unsigned char)text.at[index]);
    return size;
}

static char *write_plain(char *out, struct rcpt_text text)
{
    if (text.size > 0)
        memcpy(out, text.at, text.size);
    return out + text.size;
}

/* The texts are UTF-8: draft.c has checked them. */
static char *write_escaped(char *out, struct rcpt_text text)
{
    static const char digits[] = "0123456789abcdef";
    *out++ = '"';
    for (size_t index = 0; index < text.size; index++) {
        unsigned char byte = (unsigned char)text.at[index];
        if (escaped_size(byte) == 6) {
            out = write_plain(out, RCPT_TEXT("\\u00"));
            *out++ = digits[byte >> 4];
            *out++ = digits[byte & 15];
            continue;
        }
        if (escaped_size(byte) == 2)
            *out++ = '\\';
        *out++ = (char)byte;
    }
    *out++ = '"';
    return out;
}

/* Writes the fraction of the second exactly, with as few digits as possible: none, three or six. */
static struct rcpt_text format_at(int64_t at_us, char text[28])
{
    rcpt_timestamp_format(at_us, text);
    size_t kept = at_us % 1000000 == 0 ? 19 : at_us % 1000 == 0 ? 23 : 26;
    text[kept] = 'Z';
    return (struct rcpt_text){text, kept + 1};
}

/* `size` comes from size_of(): equality means that the text can be copied. */
static char *write_string(char *out, struct rcpt_text text, size_t size)
{
    if (size != text.size)
        return write_escaped(out, text);
    *out++ = '"';
    out = write_plain(out, text);
    *out++ = '"';
    return out;
}

/* An upper bound. */
static size_t flags_size(const struct rcpt_gateway_event *event)
{
    size_t size = sizeof(",\"flags\":[]");
    for (unsigned index = 0; index < event->flag_count; index++)
        size += size_of(event->flags[index]) + 3;
    return size;
}

static char *write_flags(char *out, const struct rcpt_gateway_event *event)
{
    if (event->flag_count == 0)
        return out;
    out = write_plain(out, RCPT_TEXT(",\"flags\":"));
    for (unsigned index = 0; index < event->flag_count; index++) {
        *out++ = index == 0 ? '[' : ',';
        out = write_escaped(out, event->flags[index]);
    }
    *out++ = ']';
    return out;
}

#define KEY(name) RCPT_TEXT(",\"" name "\":")

/* `message_id` is given, since the caller may have found it in the aliases. Empty members are left
 * out. */
struct rcpt_text rcpt_gateway_event_json(const struct rcpt_gateway_account *account,
                                         const struct rcpt_gateway_event *event,
                                         struct rcpt_text message_id, struct rcpt_arena *arena)
{
    char at[28], until[28], part[32] = "", parts[32] = "";
    bool is_range = event->recipient.size > 0;
    struct member members[] = {
        {KEY("message_id"), message_id, 0},
        {KEY("gateway_message_id"), event->gateway_message_id, 0},
        {KEY("recipient"), event->recipient, 0},
        {KEY("gateway"), rcpt_text_of(account->name), 0},
        {KEY("gateway_status"), event->gateway_status, 0},
        {KEY("status"), event->status, 0},
        {KEY("at"), event->has_at ? format_at(event->at_us, at) : (struct rcpt_text){NULL, 0}, 0},
        {KEY("until"), is_range ? format_at(event->until_us, until) : (struct rcpt_text){NULL, 0},
         0},
        {KEY("gateway_at"), event->gateway_at, 0},
        {KEY("org_id"), event->org_id.size > 0 ? event->org_id : rcpt_text_of(account->org_id), 0},
        {KEY("campaign_id"), event->campaign_id, 0},
        {KEY("channel"), event->channel, 0},
        {KEY("reason"), event->reason, 0},
        {KEY("reason_class"), rcpt_text_of(event->reason_class), 0},
        {KEY("event_id"), event->event_id, 0},
        {KEY("client_ref"), event->client_ref, 0},
        {KEY("link"), event->link, 0},
        {KEY("cost"), event->cost, 0},
        {KEY("currency"), event->currency, 0},
    };
    if (event->part > 0)
        snprintf(part, sizeof(part), ",\"part\":%u", event->part);
    if (event->parts > 0)
        snprintf(parts, sizeof(parts), ",\"parts\":%u", event->parts);
    size_t size = flags_size(event) + sizeof(part) + sizeof(parts) + 2;
    for (size_t index = 0; index < RCPT_COUNT_OF(members); index++) {
        members[index].size = size_of(members[index].text);
        size += members[index].key.size + members[index].size + 2;
    }
    char *json = rcpt_arena_alloc(arena, size), *out = json;
    for (size_t index = 0; index < RCPT_COUNT_OF(members); index++) {
        if (members[index].text.size == 0)
            continue;
        out = write_plain(out, members[index].key);
        out = write_string(out, members[index].text, members[index].size);
    }
    out = write_flags(out, event);
    out = write_plain(out, rcpt_text_of(part));
    out = write_plain(out, rcpt_text_of(parts));
    *out++ = '}';
    *json = '{'; /* instead of the first comma: an account has a name */
    return (struct rcpt_text){json, (size_t)(out - json)};
}
