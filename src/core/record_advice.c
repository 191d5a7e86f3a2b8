/* Suggests the right value for a wrong one: the second half of a dead letter's detail. It covers a
 * status, a flag, a part or a time that the decoder refuses, and a channel that is taken although
 * it may be misspelt. Shows words and times, never an id. Called by record_event.c.
 */
#include <stdio.h>
#include <string.h>

#include "receiptd/base/json_read.h"
#include "receiptd/base/text.h"
#include "receiptd/core/timestamp.h"
#include "record_internal.h"

#define SHOWN_BYTES    40
#define DATE_BYTES     10 /* 2026-11-21 */
#define LOCAL_BYTES    32 /* a time without zone, with a fraction */
#define MAX_CODE_BYTES 4

/* The word in the form that an operator may see. */
static const char *show(const struct rcpt_token *token, char shown[SHOWN_BYTES + 1])
{
    size_t size = token->size < SHOWN_BYTES ? token->size : SHOWN_BYTES;
    for (size_t i = 0; i < size; i++) {
        char byte = token->text[i];
        shown[i] = byte >= ' ' && byte <= '~' ? byte : '?';
    }
    shown[size] = '\0';
    return shown;
}

/* In the spelling of a ladder's names: "bounced-hard" becomes BOUNCED_HARD. */
static void spell(char *word)
{
    for (; *word != '\0'; word++) {
        if (*word >= 'a' && *word <= 'z')
            *word = (char)(*word - 'a' + 'A');
        else if (*word == '-' || *word == ' ')
            *word = '_';
    }
}

/* NULL: nothing in the ladder is near. Only flags where a flag is expected. */
static const char *find_nearest(const struct rcpt_ladder *ladder, const char *shown, bool flags)
{
    char word[SHOWN_BYTES + 1];
    const char *best = NULL;
    memcpy(word, shown, strlen(shown) + 1);
    spell(word);
    for (size_t i = 0; i < rcpt_ladder_entry_count(ladder); i++) {
        const struct rcpt_ladder_entry *entry = rcpt_ladder_entry(ladder, i);
        if (entry->is_flag || !flags)
            best = rcpt_text_nearer(word, best, entry->name);
    }
    return best;
}

/* `part` or `parts` of a message. */
void rcpt_record_advise_count(const char *name, const struct rcpt_token *count, char *detail,
                              size_t size)
{
    char shown[SHOWN_BYTES + 1] = "";
    if (count->kind != RCPT_TOKEN_OTHER)
        show(count, shown);
    snprintf(detail, size, "%s %s%sis no whole number from 1 to %d", name, shown,
             shown[0] != '\0' ? " " : "", RCPT_RECORD_MAX_PARTS);
}

/* Name of the entry whose code these digits are; NULL: there is none. */
static const char *name_of_code(const struct rcpt_ladder *ladder, const struct rcpt_token *token)
{
    unsigned code;
    if (token->size > MAX_CODE_BYTES ||
        !rcpt_text_number((struct rcpt_text){token->text, token->size}, &code))
        return NULL;
    int entry = rcpt_ladder_find_code(ladder, code, NULL, 0);
    return entry >= 0 ? rcpt_ladder_entry(ladder, (size_t)entry)->name : NULL;
}

/* A name or a number that the ladder lacks. */
void rcpt_record_advise_status(const struct rcpt_ladder *ladder, const struct rcpt_token *status,
                               char *detail, size_t size)
{
    char shown[SHOWN_BYTES + 1];
    const char *name;
    show(status, shown);
    if (status->kind == RCPT_TOKEN_NUMBER)
        snprintf(detail, size, "status %s is not in the ladder", shown);
    else if ((name = name_of_code(ladder, status)) != NULL)
        snprintf(detail, size, "status \"%s\" is a code in quotes: write %s or \"%s\"", shown,
                 shown, name);
    else if ((name = find_nearest(ladder, shown, false)) != NULL)
        snprintf(detail, size, "status \"%s\" is not in the ladder: did you mean \"%s\"?", shown,
                 name);
    else
        snprintf(detail, size, "status \"%s\" is not in the ladder", shown);
}

/* An element of the list: a text, a number, or neither. */
static void advise_element(const struct rcpt_ladder *ladder, const struct rcpt_token *flag,
                           char *detail, size_t size)
{
    char shown[SHOWN_BYTES + 1];
    const char *name = NULL;
    show(flag, shown);
    if (flag->kind == RCPT_TOKEN_NUMBER && (name = name_of_code(ladder, flag)) != NULL)
        snprintf(detail, size, "flags holds %s: write the name, \"%s\"", shown, name);
    else if (flag->kind != RCPT_TOKEN_STRING)
        snprintf(detail, size, "flags holds more than text: write names of the ladder's flags");
    else if (rcpt_ladder_find_name(ladder, flag->text, flag->size, NULL, 0) >= 0)
        snprintf(detail, size, "flags holds \"%s\", which is a status: name it in status", shown);
    else if ((name = find_nearest(ladder, shown, true)) != NULL)
        snprintf(detail, size, "flags holds \"%s\", not in the ladder: did you mean \"%s\"?", shown,
                 name);
    else
        snprintf(detail, size, "flags holds \"%s\", which is no flag of the ladder", shown);
}

void rcpt_record_advise_flags(const struct rcpt_ladder *ladder,
                              const struct rcpt_record_fields *fields, char *detail, size_t size)
{
    const struct rcpt_token *token = &fields->tokens[RCPT_FIELD_FLAGS];
    char shown[SHOWN_BYTES + 1];
    if (token->kind == RCPT_TOKEN_ABSENT)
        advise_element(ladder, &fields->wrong_flag, detail, size);
    else if (token->kind == RCPT_TOKEN_STRING)
        snprintf(detail, size, "flags is a text: write a list, [\"%s\"]", show(token, shown));
    else
        snprintf(detail, size, "flags is not a list of names");
}

/* ---- a key that is misspelt ---- */

struct search {
    const char *name;
    char found[SHOWN_BYTES + 1]; /* "": none */
};

/* "Message-Id" and "messageID" differ from message_id only in signs and capitals. */
static bool is_nearly(struct rcpt_text key, const char *name)
{
    size_t at = 0;
    for (size_t index = 0; index < key.size; index++) {
        char byte = key.at[index];
        if (byte == '_' || byte == '-' || byte == ' ' || byte == '.')
            continue;
        at += name[at] == '_';
        if (byte >= 'A' && byte <= 'Z')
            byte = (char)(byte - 'A' + 'a');
        if (byte != name[at])
            return false;
        at++;
    }
    return name[at] == '\0';
}

static bool on_key(void *context, const struct rcpt_json_token *token)
{
    struct search *search = context;
    if (token->kind != RCPT_JSON_KEY || token->depth != 1 || !is_nearly(token->text, search->name))
        return true;
    const struct rcpt_token key = {.text = token->text.at, .size = token->text.size};
    show(&key, search->found);
    return true;
}

void rcpt_record_advise_name(struct rcpt_text object, const char *name, char *detail, size_t size)
{
    struct search search = {.name = name};
    size_t used = strlen(detail);
    if (rcpt_json_read(object, on_key, &search, NULL) == RCPT_JSON_OK && search.found[0] != '\0')
        snprintf(detail + used, size - used, ": \"%s\" is another key, write %s", search.found,
                 name);
}

/* Whether the text would be a time with this suffix. */
static bool becomes_time(const struct rcpt_token *at, const char *suffix,
                         char text[LOCAL_BYTES + 16])
{
    int64_t at_us;
    if (at->size > LOCAL_BYTES)
        return false;
    int size = snprintf(text, LOCAL_BYTES + 16, "%.*s%s", (int)at->size, at->text, suffix);
    return rcpt_timestamp_parse(text, (size_t)size, &at_us);
}

void rcpt_record_advise_time(const struct rcpt_token *at, char *detail, size_t size)
{
    char right[LOCAL_BYTES + 16];
    if (at->kind == RCPT_TOKEN_STRING && becomes_time(at, "Z", right))
        snprintf(detail, size,
                 "at is not a time without a zone: write %s, or an offset like +01:00", right);
    else if (at->kind == RCPT_TOKEN_STRING && at->size == DATE_BYTES &&
             becomes_time(at, "T00:00:00Z", right))
        snprintf(detail, size, "at is not a time but a date: write %s", right);
    else
        snprintf(detail, size,
                 "at is not a time: write it like 2026-11-21T02:30:00Z, or as epoch in s or ms");
}

/* ---- a channel that may be misspelt ---- */

/* Writes the channel in small letters, since EMAIL is email. */
static void show_channel(const struct rcpt_token *channel, char shown[SHOWN_BYTES + 1])
{
    show(channel, shown);
    for (char *at = shown; *at != '\0'; at++)
        if (*at >= 'A' && *at <= 'Z')
            *at = (char)(*at - 'A' + 'a');
}

/* Any name may be a channel, so the event is taken. An entry that came from an override has no
 * overrides itself. */
void rcpt_record_note_channel(struct rcpt_decoder *decoder, int entry,
                              const struct rcpt_token *channel)
{
    char shown[SHOWN_BYTES + 1];
    if (channel->kind != RCPT_TOKEN_STRING || channel->size > SHOWN_BYTES ||
        decoder->odd_channel_count == RCPT_RECORD_MAX_ODD_CHANNELS)
        return;
    show_channel(channel, shown);
    for (uint32_t number = 0; number < decoder->odd_channel_count; number++)
        if (strcmp(decoder->odd_channels[number].name, shown) == 0)
            return;
    const char *near = rcpt_ladder_near_channel(decoder->ladder, entry, shown);
    if (near == NULL || strcmp(near, shown) == 0)
        return;
    struct rcpt_record_channel *odd = &decoder->odd_channels[decoder->odd_channel_count++];
    snprintf(odd->name, sizeof(odd->name), "%s", shown);
    odd->near = near;
}

const char *rcpt_decoder_odd_channel(const struct rcpt_decoder *decoder, uint32_t number,
                                     const char **near)
{
    if (number >= decoder->odd_channel_count)
        return NULL;
    *near = decoder->odd_channels[number].near;
    return decoder->odd_channels[number].name;
}
