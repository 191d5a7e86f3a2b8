/* Puts values into the text of a statement, the way psql replaces its variables. It replaces :name
 * by a number, :'name' by a literal, :"name" by an identifier, and $1 by the value of a binding
 * with that number as name. Quotes, comments and dollar quotes are copied unchanged. For statements
 * that take no parameters, such as DDL: migrate and the commands call it.
 */
#include "receiptd/postgres/bind.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

struct binder {
    const struct rcpt_pg_binding *bindings;
    size_t count;
    FILE *out;
    struct rcpt_error *error;
    bool is_strict; /* each name and number needs a binding */
};

static bool is_name_start(char byte)
{
    return isalpha((unsigned char)byte) || byte == '_';
}

static bool is_name_byte(char byte)
{
    return isalnum((unsigned char)byte) || byte == '_';
}

/* 0 where no name begins. */
static size_t name_size(const char *text)
{
    size_t size = 0;
    if (is_name_start(text[0])) {
        while (is_name_byte(text[size]))
            size++;
    }
    return size;
}

/* Size of a quoted piece from its opening quote; the quote doubled stands for itself. To the end if
 * it is open. */
static size_t quoted_size(const char *text, bool backslash_escapes)
{
    size_t size = 1;
    while (text[size] != '\0') {
        bool escaped = backslash_escapes && text[size] == '\\' && text[size + 1] != '\0';
        bool doubled = text[size] == text[0] && text[size + 1] == text[0];
        if (escaped || doubled)
            size += 2;
        else if (text[size] != text[0])
            size++;
        else
            return size + 1;
    }
    return size;
}

/* Without its newline, which is copied like any other byte. */
static size_t line_comment_size(const char *text)
{
    return strcspn(text, "\n");
}

/* Comments nest in SQL. */
static size_t block_comment_size(const char *text)
{
    size_t size = 0;
    unsigned depth = 0;
    do {
        if (strncmp(text + size, "/*", 2) == 0) {
            depth++;
            size += 2;
        } else if (strncmp(text + size, "*/", 2) == 0) {
            depth--;
            size += 2;
        } else {
            size++;
        }
    } while (depth > 0 && text[size] != '\0');
    return size;
}

/* Size of $tag$ … $tag$, 0 if this $ begins none (a parameter $1, or part of a name). */
static size_t dollar_quote_size(const char *text)
{
    size_t tag = 1 + name_size(text + 1);
    if (text[tag] != '$')
        return 0;
    tag++;
    const char *body = text + tag;
    while (*body != '\0' && strncmp(body, text, tag) != 0)
        body++;
    return (size_t)(body - text) + (*body != '\0' ? tag : 0);
}

/* Size of the piece at `text` that is to be copied as it is. `previous` is the byte before it. */
static size_t opaque_size(const char *text, const char *start)
{
    char previous = text > start ? text[-1] : ' ';
    if (text[0] == '\'') {
        bool escapes =
            (previous == 'E' || previous == 'e') && (text - start < 2 || !is_name_byte(text[-2]));
        return quoted_size(text, escapes);
    }
    if (text[0] == '"')
        return quoted_size(text, false);
    if (strncmp(text, "--", 2) == 0)
        return line_comment_size(text);
    if (strncmp(text, "/*", 2) == 0)
        return block_comment_size(text);
    if (text[0] == '$')
        return is_name_byte(previous) ? 1 : dollar_quote_size(text);
    if (strncmp(text, "::", 2) == 0 || strncmp(text, ":=", 2) == 0)
        return 2;
    return 0;
}

/* NULL: no binding has that name. */
static const struct rcpt_pg_binding *find(const struct binder *binder, const char *name,
                                          size_t size)
{
    for (size_t index = 0; index < binder->count; index++) {
        const char *candidate = binder->bindings[index].name;
        candidate += candidate[0] == '=';
        if (strlen(candidate) == size && memcmp(candidate, name, size) == 0)
            return &binder->bindings[index];
    }
    return NULL;
}

/* The quote itself is doubled. */
static void write_quoted(FILE *out, const char *value, char quote)
{
    /* E'' reads backslashes the same under both values of standard_conforming_strings. */
    bool escaped = quote == '\'' && strchr(value, '\\') != NULL;
    if (escaped)
        fputs(" E", out);
    fputc(quote, out);
    for (; *value != '\0'; value++) {
        if (*value == quote || (escaped && *value == '\\'))
            fputc(*value, out);
        fputc(*value, out);
    }
    fputc(quote, out);
}

/* An integer: a decimal point or an exponent is not needed anywhere. */
static bool is_number(const char *value)
{
    value += *value == '-';
    return *value != '\0' && value[strspn(value, "0123456789")] == '\0';
}

/* An identifier must not be empty, and a value without quotes must be a number; otherwise the
 * statement would change its meaning. */
static bool write_value(const struct binder *binder, const struct rcpt_pg_binding *binding,
                        char quote)
{
    const char *value = binding->value;
    if (quote == '\'' && value == NULL) {
        fputs("NULL", binder->out);
    } else if (quote == '\'') {
        write_quoted(binder->out, value, quote);
    } else if (quote == '"') {
        if (value == NULL || value[0] == '\0')
            return rcpt_error_fatal(binder->error, EX_SOFTWARE, "identifier \"%s\" in SQL is empty",
                                    binding->name);
        write_quoted(binder->out, value, quote);
    } else {
        if (value == NULL || (binding->name[0] != '=' && !is_number(value)))
            return rcpt_error_fatal(binder->error, EX_SOFTWARE,
                                    "variable \"%s\" in SQL is not a number: %s", binding->name,
                                    value != NULL ? value : "NULL");
        fputs(value, binder->out);
    }
    return true;
}

/* Replaces the variable at `text` (a colon), if there is one. `size` is what it took: 0 if none. */
static bool replace(const struct binder *binder, const char *text, size_t *size)
{
    char quote = text[1] == '"' || text[1] == '\'' ? text[1] : '\0';
    const char *name = text + 1 + (quote != '\0');
    size_t length = name_size(name);
    *size = 0;
    if (length == 0 || (quote != '\0' && name[length] != quote))
        return true;
    const struct rcpt_pg_binding *binding = find(binder, name, length);
    if (binder->is_strict && (binding == NULL || quote != '\0'))
        return rcpt_error_fatal(binder->error, EX_CONFIG, "there is no parameter %.*s",
                                (int)(length < 63 ? length : 63) + 1 + 2 * (quote != '\0'), text);
    if (binding == NULL)
        return quote == '\0' ||
               rcpt_error_fatal(binder->error, EX_SOFTWARE, "variable \"%.*s\" in SQL has no value",
                                (int)length, name);
    *size = length + 1 + (quote != '\0' ? 2 : 0);
    return write_value(binder, binding, quote);
}

/* Replaces the parameter at `text` (a dollar sign) where there is a binding with its number as
 * name. */
static bool replace_parameter(const struct binder *binder, const char *text, size_t *size)
{
    size_t digits = strspn(text + 1, "0123456789");
    const struct rcpt_pg_binding *binding = digits > 0 ? find(binder, text + 1, digits) : NULL;
    if (binder->is_strict && digits > 0 && binding == NULL)
        return rcpt_error_fatal(binder->error, EX_CONFIG, "there is no parameter $%.*s",
                                (int)(digits < 63 ? digits : 63), text + 1);
    *size = binding != NULL ? digits + 1 : 0;
    return binding == NULL || write_value(binder, binding, '\'');
}

/* Byte by byte; each piece is copied, or replaced by a value. */
static bool bind_all(const struct binder *binder, const char *sql)
{
    const char *text = sql;
    while (*text != '\0') {
        size_t size = opaque_size(text, sql);
        if (size == 0 && (*text == ':' || *text == '$')) {
            if (!(*text == ':' ? replace : replace_parameter)(binder, text, &size))
                return false;
            if (size > 0) {
                text += size;
                continue;
            }
        }
        size = size > 0 ? size : 1;
        fwrite(text, 1, size, binder->out);
        text += size;
    }
    return true;
}

static char *bind(struct binder *binder, const char *sql)
{
    char *text = NULL;
    size_t size = 0;
    binder->out = rcpt_open_memory(&text, &size);
    bool good = bind_all(binder, sql);
    RCPT_ASSERT(fclose(binder->out) == 0);
    if (!good) {
        free(text);
        return NULL;
    }
    return text;
}

char *rcpt_pg_bind(const char *sql, const struct rcpt_pg_binding *bindings, size_t count,
                   struct rcpt_error *error)
{
    struct binder binder = {.bindings = bindings, .count = count, .error = error};
    return bind(&binder, sql);
}

char *rcpt_pg_bind_strictly(const char *sql, const struct rcpt_pg_binding *bindings, size_t count,
                            struct rcpt_error *error)
{
    struct binder binder = {
        .bindings = bindings, .count = count, .error = error, .is_strict = true};
    return bind(&binder, sql);
}
