/* Forms of a message id. Called by gateways/draft.c for each receipt of an account that asks for
 * some, and by `receiptd parked --why`, which tries all. */
#include "receiptd/base/id_form.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const names[RCPT_ID_FORM__COUNT] = {
    [RCPT_ID_FORM_TRIM] = "trim",
    [RCPT_ID_FORM_LOWER] = "lower",
    [RCPT_ID_FORM_UPPER] = "upper",
    [RCPT_ID_FORM_STRIP_HYPHENS] = "strip_hyphens",
    [RCPT_ID_FORM_STRIP_ZEROS] = "strip_zeros",
    [RCPT_ID_FORM_STRIP_SUFFIX] = "strip_suffix",
    [RCPT_ID_FORM_HEX_TO_DECIMAL] = "hex_to_decimal",
    [RCPT_ID_FORM_DECIMAL_TO_HEX] = "decimal_to_hex",
};

const char *rcpt_id_form_name(enum rcpt_id_form form)
{
    return names[form];
}

enum rcpt_id_form rcpt_id_form_find(const char *name)
{
    int form = 0;
    while (form < RCPT_ID_FORM__COUNT && strcmp(names[form], name) != 0)
        form++;
    return (enum rcpt_id_form)form;
}

static bool is_digit(char byte)
{
    return byte >= '0' && byte <= '9';
}

/* Brackets need not match: gateways cut, too. */
static struct rcpt_text trim(struct rcpt_text id)
{
    static const char around[] = " \t\r\n{}<>()[]\"'";
    while (id.size > 0 && strchr(around, id.at[0]) != NULL)
        id = rcpt_text_part(id, 1, id.size);
    while (id.size > 0 && strchr(around, id.at[id.size - 1]) != NULL)
        id.size--;
    return id;
}

static struct rcpt_text strip_suffix(struct rcpt_text id)
{
    size_t size = id.size;
    while (size > 0 && id.size - size < 3 && is_digit(id.at[size - 1]))
        size--;
    bool found = size > 1 && size < id.size && strchr("-.:_", id.at[size - 1]) != NULL;
    return found ? rcpt_text_part(id, 0, size - 1) : id;
}

/* The last zero of zeros stays. */
static struct rcpt_text strip_zeros(struct rcpt_text id)
{
    while (id.size > 1 && id.at[0] == '0')
        id = rcpt_text_part(id, 1, id.size);
    return id;
}

/* Each byte by its own. */
static size_t make_bytes(enum rcpt_id_form form, struct rcpt_text id, char *made)
{
    size_t size = 0;
    for (size_t index = 0; index < id.size; index++) {
        char byte = id.at[index];
        if (form == RCPT_ID_FORM_STRIP_HYPHENS && byte == '-')
            continue;
        if (form == RCPT_ID_FORM_LOWER && byte >= 'A' && byte <= 'Z')
            byte = (char)(byte - 'A' + 'a');
        if (form == RCPT_ID_FORM_UPPER && byte >= 'a' && byte <= 'z')
            byte = (char)(byte - 'a' + 'A');
        made[size++] = byte;
    }
    return size;
}

/* 0: it is no such number. */
static size_t make_number(struct rcpt_text id, bool from_hex, char *made)
{
    char digits[24], *end;
    if (from_hex && rcpt_text_begins_nocase(id, "0x"))
        id = rcpt_text_part(id, 2, id.size);
    if (id.size == 0 || id.size > (from_hex ? 16u : 20u))
        return 0;
    for (size_t index = 0; index < id.size; index++)
        if (from_hex ? rcpt_text_hex_digit(id.at[index]) < 0 : !is_digit(id.at[index]))
            return 0;
    snprintf(digits, sizeof(digits), "%.*s", (int)id.size, id.at);
    errno = 0;
    uintmax_t number = strtoumax(digits, &end, from_hex ? 16 : 10);
    if (errno != 0 || number > UINT64_MAX)
        return 0;
    return (size_t)(from_hex ? snprintf(made, RCPT_ID_FORM_BYTES, "%" PRIuMAX, number)
                             : snprintf(made, RCPT_ID_FORM_BYTES, "%" PRIxMAX, number));
}

bool rcpt_id_form_make(enum rcpt_id_form form, struct rcpt_text id, char made[RCPT_ID_FORM_BYTES])
{
    struct rcpt_text part = id;
    size_t size = 0;
    if (id.size == 0 || id.size >= RCPT_ID_FORM_BYTES)
        return false;
    if (form == RCPT_ID_FORM_TRIM)
        part = trim(id);
    else if (form == RCPT_ID_FORM_STRIP_SUFFIX)
        part = strip_suffix(id);
    else if (form == RCPT_ID_FORM_STRIP_ZEROS)
        part = strip_zeros(id);
    if (form == RCPT_ID_FORM_HEX_TO_DECIMAL || form == RCPT_ID_FORM_DECIMAL_TO_HEX)
        size = make_number(id, form == RCPT_ID_FORM_HEX_TO_DECIMAL, made);
    else
        size = make_bytes(form, part, made);
    made[size] = '\0';
    return size > 0 && !rcpt_text_equal((struct rcpt_text){made, size}, id);
}
