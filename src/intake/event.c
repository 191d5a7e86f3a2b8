/* An event as JSON. Written by hand into memory of the right size: this is done for every receipt,
 * and a stream costs more than the adapter. */
#include <stdio.h>

#include "account.h"
#include "receiptd/core/timestamp.h"

struct member {
    const char *name;
    struct rcpt_text text;
};

static size_t escaped_size(unsigned char byte)
{
    if (byte == '"' || byte == '\\')
        return 2;
    return byte < 0x20 || byte == 0x7f ? 6 : 1;
}

static size_t size_of(struct rcpt_text text)
{
    size_t size = 0;
    for (size_t index = 0; index < text.size; index++)
        size += escaped_size((unsigned char)text.at[index]);
    return size;
}

static char *write_plain(char *out, struct rcpt_text text)
{
    if (text.size > 0)
        memcpy(out, text.at, text.size);
    return out + text.size;
}

/* The texts are UTF-8: the adapter has seen to that. */
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

/* As few digits of the second as say it exactly: none, three or six. */
static struct rcpt_text format_at(int64_t at_us, char text[28])
{
    rcpt_timestamp_format(at_us, text);
    size_t kept = at_us % 1000000 == 0 ? 19 : at_us % 1000 == 0 ? 23 : 26;
    text[kept] = 'Z';
    return (struct rcpt_text){text, kept + 1};
}

static size_t flags_size(const struct rcpt_intake_event *event)
{
    size_t size = 2;
    for (unsigned index = 0; index < event->flag_count; index++)
        size += size_of(event->flags[index]) + 3;
    return size;
}

static char *write_key(char *out, const char *name)
{
    *out++ = ',';
    out = write_escaped(out, rcpt_text_of(name));
    *out++ = ':';
    return out;
}

static char *write_flags(char *out, const struct rcpt_intake_event *event)
{
    if (event->flag_count == 0)
        return out;
    out = write_key(out, "flags");
    for (unsigned index = 0; index < event->flag_count; index++) {
        *out++ = index == 0 ? '[' : ',';
        out = write_escaped(out, event->flags[index]);
    }
    *out++ = ']';
    return out;
}

struct rcpt_text rcpt_intake_event_json(const struct rcpt_intake_account *account,
                                        const struct rcpt_intake_event *event,
                                        struct rcpt_text message_id, struct rcpt_arena *arena)
{
    char at[28], part[16];
    const struct member members[] = {
        {"message_id", message_id},
        {"gateway_message_id", event->gateway_message_id},
        {"gateway", rcpt_text_of(account->name)},
        {"gateway_status", event->gateway_status},
        {"status", event->status},
        {"at", event->has_at ? format_at(event->at_us, at) : (struct rcpt_text){NULL, 0}},
        {"gateway_at", event->gateway_at},
        {"org_id", rcpt_text_of(account->org_id)},
        {"campaign_id", event->campaign_id},
        {"channel", event->channel},
        {"reason", event->reason},
        {"event_id", event->event_id},
        {"client_ref", event->client_ref},
        {"link", event->link},
        {"cost", event->cost},
    };
    int part_size = snprintf(part, sizeof(part), "%u", event->part);
    size_t size = flags_size(event) + 64;
    for (size_t index = 0; index < RCPT_COUNT_OF(members); index++)
        size += strlen(members[index].name) + size_of(members[index].text) + 6;
    char *json = rcpt_arena_alloc(arena, size), *out = json;
    for (size_t index = 0; index < RCPT_COUNT_OF(members); index++) {
        if (members[index].text.size == 0)
            continue;
        out = write_key(out, members[index].name);
        out = write_escaped(out, members[index].text);
    }
    out = write_flags(out, event);
    if (event->part > 0) {
        out = write_key(out, "part");
        out = write_plain(out, (struct rcpt_text){part, (size_t)part_size});
    }
    if (out == json)
        *out++ = '{';
    *out++ = '}';
    *json = '{'; /* instead of the first comma */
    return (struct rcpt_text){json, (size_t)(out - json)};
}
