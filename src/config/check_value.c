/* Single values of the file against their rows: expansion, length, range, choice. Writes good
 * values to the normal form. Called by check.c. */
#include "check_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "expand.h"
#include "print.h"
#include "receiptd/base/text.h"
#include "receiptd/config/value.h"

/* Every error of a value begins with the place of its node and the path of its key. */
bool rcpt_config_fail_value(struct checker *checker, const struct value *value, const char *text)
{
    return rcpt_config_error(checker->file->error, checker->file->name,
                             rcpt_config_place_of(value->node), "%s: %s", value->label, text);
}

/* The raw text of the file is shown, never the expanded one: a variable may hold a password
 * although its key is no secret. */
const char *rcpt_config_value_shown(const struct value *value, char out[64])
{
    return value->secret ? "<redacted>" : rcpt_config_shown(rcpt_config_scalar(value->node), out);
}

/* A unit of systemd sees copies of its folder's files, made when it starts. */
static bool fail_secret(struct checker *checker, const struct value *value, const char *path,
                        const char *problem)
{
    const char *credentials = getenv("CREDENTIALS_DIRECTORY");
    rcpt_config_fail_value(checker, value, problem);
    if (credentials != NULL && strncmp(path, credentials, strlen(credentials)) == 0)
        rcpt_error_hint(checker->file->error,
                        "systemd hands over the files of the unit's folder of secrets when it "
                        "starts (receiptd.service: /etc/receiptd/secrets): put the file there, "
                        "without \"secret_\" in its name, then start the unit again");
    else
        rcpt_error_hint(checker->file->error,
                        "the file must be there, readable for root or the user of receiptd alone "
                        "(chmod 600); commands that need it are run as that user");
    return false;
}

/* Expansion comes before all checks of the value. Where a secret came from is noted for the
 * warnings about weak settings. */
bool rcpt_config_resolve(struct checker *checker, struct value *value)
{
    char problem[160];
    const char *raw = rcpt_config_scalar(value->node);
    enum rcpt_secret_source source =
        rcpt_config_uses_environment(raw) ? RCPT_SECRET_ENVIRONMENT : RCPT_SECRET_LITERAL;
    bool noted = true, is_open = false;
    value->text = rcpt_config_expand(raw, problem);
    if (value->text != NULL && value->secret && strncmp(value->text, "file:", 5) == 0) {
        rcpt_config_note_source(&checker->file->sources, value->label, value->text + 5,
                                checker->file->name);
        char *contents =
            rcpt_config_read_secret(value->text + 5, checker->file->name, &is_open, problem);
        if (contents == NULL)
            fail_secret(checker, value, value->text + 5, problem);
        free(value->text);
        value->text = contents;
        if (contents == NULL)
            return false;
        source = RCPT_SECRET_OPEN_FILE;
        noted = is_open;
    }
    if (value->text != NULL && rcpt_config_is_tls_file(value->label))
        rcpt_config_note_source(&checker->file->sources, value->label, value->text,
                                checker->file->name);
    if (value->text != NULL && value->secret && noted)
        rcpt_config_note_secret(&checker->file->secret_notes, value->label, source, value->text);
    return value->text != NULL || rcpt_config_fail_value(checker, value, problem);
}

/* The length counts bytes after expansion. */
static bool check_length(struct checker *checker, const struct value *value)
{
    const struct rcpt_config_row *row = value->row;
    int64_t size = (int64_t)strlen(value->text);
    if (size >= row->min && size <= row->max)
        return true;
    char text[128];
    if (size == 0)
        return rcpt_config_fail_value(checker, value, "is empty");
    snprintf(text, sizeof(text), "must be %" PRId64 " to %" PRId64 " bytes long, has %" PRId64,
             row->min, row->max, size);
    return rcpt_config_fail_value(checker, value, text);
}

/* The log, pages and check-config --print show every value that is no secret. */
static bool check_url(struct checker *checker, const struct value *value)
{
    const char *end;
    if (value->secret || rcpt_config_url_user(value->text, &end) == NULL)
        return true;
    rcpt_config_fail_value(checker, value, "the URL holds a user name, and this key is no secret");
    rcpt_error_hint(checker->file->error, "%s",
                    strcmp(value->label, "tracing.endpoint") == 0
                        ? "take it out; tracing.token is sent as a bearer token"
                        : "take it out");
    return false;
}

/* Identifiers and table names have their own grammar, which bounds their length too. */
static bool check_text(struct checker *checker, const struct value *value)
{
    char text[256], part[64];
    bool good = true;
    if (value->row->type == RCPT_CONFIG_IDENTIFIER)
        good = rcpt_config_is_identifier(value->text);
    else if (value->row->type == RCPT_CONFIG_TOPIC)
        good = rcpt_config_is_topic(value->text);
    else if (value->row->type == RCPT_CONFIG_TABLE)
        good = rcpt_config_is_table_name(value->text);
    else if (!check_length(checker, value) || !check_url(checker, value))
        return false;
    if (!good) {
        snprintf(text, sizeof(text), "\"%s\" is not %s", rcpt_config_value_shown(value, part),
                 rcpt_config_expected(value->row->type));
        return rcpt_config_fail_value(checker, value, text);
    }
    rcpt_config_write_text(&checker->writer, value->text);
    return true;
}

/* The normal form has plain integers in base units (bytes, milliseconds, millionths), since
 * libcyaml knows no units. */
void rcpt_config_write_number(struct checker *checker, int64_t number)
{
    char text[RCPT_CONFIG_NUMBER_BYTES];
    rcpt_config_format_number(RCPT_CONFIG_INTEGER, number, text);
    rcpt_config_write_plain(&checker->writer, text);
}

/* The range is printed in the unit in which people write it: 64KiB to 1GiB. */
static bool check_number(struct checker *checker, const struct value *value)
{
    const struct rcpt_config_row *row = value->row;
    char text[256], part[64], min[RCPT_CONFIG_NUMBER_BYTES], max[RCPT_CONFIG_NUMBER_BYTES];
    int64_t number;
    if (!rcpt_config_parse_number(row->type, value->text, &number)) {
        snprintf(text, sizeof(text), "\"%s\" is not %s", rcpt_config_value_shown(value, part),
                 rcpt_config_expected(row->type));
        return rcpt_config_fail_value(checker, value, text);
    }
    /* The range is checked after the unit is applied, so that 1d and 86400s are one value. */
    if (number < row->min || number > row->max) {
        rcpt_config_format_number(row->type, row->min, min);
        rcpt_config_format_number(row->type, row->max, max);
        snprintf(text, sizeof(text), "must be %s to %s, is \"%s\"", min, max,
                 rcpt_config_value_shown(value, part));
        return rcpt_config_fail_value(checker, value, text);
    }
    rcpt_config_write_number(checker, number);
    return true;
}

/* The error lists all choices, since there are few. */
static bool check_choice(struct checker *checker, const struct value *value)
{
    const struct rcpt_config_row *row = value->row;
    const char *nearest = NULL;
    char text[256], part[64];
    for (unsigned index = 0; index < row->choice_count; index++) {
        if (strcmp(row->choices[index].str, value->text) == 0) {
            rcpt_config_write_plain(&checker->writer, value->text);
            return true;
        }
        nearest = rcpt_text_nearer(value->text, nearest, row->choices[index].str);
    }
    int used =
        snprintf(text, sizeof(text), "\"%s\" is not one of", rcpt_config_value_shown(value, part));
    for (unsigned index = 0; index < row->choice_count; index++)
        used += snprintf(text + used, sizeof(text) - (size_t)used, "%s %s", index > 0 ? "," : "",
                         row->choices[index].str);
    rcpt_config_fail_value(checker, value, text);
    if (nearest != NULL)
        rcpt_error_hint(checker->file->error, "did you mean \"%s\"?", nearest);
    return false;
}

/* The text is freed here. */
bool rcpt_config_check_scalar(struct checker *checker, struct value *value)
{
    if (!rcpt_config_resolve(checker, value))
        return false;
    bool good;
    if (value->row->type == RCPT_CONFIG_CHOICE)
        good = check_choice(checker, value);
    else if (value->row->type <= RCPT_CONFIG_TABLE)
        good = check_text(checker, value);
    else
        good = check_number(checker, value);
    free(value->text);
    return good;
}
