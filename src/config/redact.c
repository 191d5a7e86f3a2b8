/* Passwords in libpq connection strings: keywords or a URI, both with several ways to quote. And
 * credentials in other URLs. A text that libpq would not take is hidden as a whole: a part that
 * looks harmless may be the second half of a password without quotes. Called by print.c and weak.c.
 */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "print.h"

#include "receiptd/base/error.h"

/* libpq's two keywords that hold a secret. */
static bool is_secret_keyword(const char *name, size_t size)
{
    static const char *const keywords[] = {"password", "sslpassword"};
    /* A name in percent-encoding could be any. */
    if (memchr(name, '%', size) != NULL)
        return true;
    for (size_t index = 0; index < RCPT_COUNT_OF(keywords); index++)
        if (size == strlen(keywords[index]) && strncasecmp(name, keywords[index], size) == 0)
            return true;
    return false;
}

static const char *skip_blanks(const char *at)
{
    while (isspace((unsigned char)*at))
        at++;
    return at;
}

/* End of a value, quoted or not, behind its closing quote; NULL: it does not end. */
static const char *value_end(const char *at)
{
    bool quoted = *at == '\'';
    at += quoted;
    while (*at != '\0' && (quoted ? *at != '\'' : !isspace((unsigned char)*at))) {
        if (*at == '\\' && at[1] != '\0')
            at++;
        at++;
    }
    if (quoted)
        return *at == '\'' ? at + 1 : NULL;
    return at;
}

/* `keyword = value` with blanks between them. Returns false when the text is not of that form. */
static bool redact_keywords(const char *at, FILE *out)
{
    const char *from = at;
    while (*(at = skip_blanks(at)) != '\0') {
        const char *name = at;
        while (*at != '\0' && *at != '=' && !isspace((unsigned char)*at))
            at++;
        size_t size = (size_t)(at - name);
        at = skip_blanks(at);
        if (size == 0 || *at != '=')
            return false;
        const char *value = skip_blanks(at + 1);
        at = value_end(value);
        if (at == NULL)
            return false;
        bool secret = is_secret_keyword(name, size);
        fprintf(out, "%.*s%s", (int)((secret ? value : at) - from), from,
                secret ? RCPT_CONFIG_REDACTED : "");
        from = at;
    }
    fputs(from, out);
    return true;
}

/* name=value&name=value */
static void redact_parameters(const char *at, FILE *out)
{
    while (*at != '\0') {
        const char *end = at + strcspn(at, "&");
        const char *equals = memchr(at, '=', (size_t)(end - at));
        bool secret = equals != NULL && is_secret_keyword(at, (size_t)(equals - at));
        fprintf(out, "%.*s%s", (int)((secret ? equals + 1 : end) - at), at,
                secret ? RCPT_CONFIG_REDACTED : "");
        if (*end == '&')
            fputc(*end++, out);
        at = end;
    }
}

/* Without an @ the part behind a colon is a port. If it is not a number, the host is missing and it
 * may be a password. */
static bool is_host_list(const char *at)
{
    while (*at != '\0' && *at != '/' && *at != '?') {
        char byte = *at++;
        if (byte == '[')
            at += strcspn(at, "]/?");
        else if (byte == ':')
            at += strspn(at, "0123456789");
        if (byte == ':' && *at != '\0' && strchr(",/?", *at) == NULL)
            return false;
    }
    return true;
}

/* scheme://user:password@host/database?parameters; `at` stands behind the slashes. An @ in any
 * other place means that something is not encoded as it should be. */
static bool redact_uri(const char *uri, const char *at, FILE *out)
{
    const char *sign = strchr(at, '@'), *query = strchr(at, '?');
    if (sign != NULL && (strpbrk(at, "/?@") != sign || strchr(sign + 1, '@') != NULL))
        return false;
    if (sign == NULL && !is_host_list(at))
        return false;
    const char *colon = sign != NULL ? memchr(at, ':', (size_t)(sign - at)) : NULL;
    if (colon != NULL) {
        fprintf(out, "%.*s%s", (int)(colon + 1 - uri), uri, RCPT_CONFIG_REDACTED);
        uri = sign;
    }
    if (query == NULL) {
        fputs(uri, out);
        return true;
    }
    fprintf(out, "%.*s", (int)(query + 1 - uri), uri);
    redact_parameters(query + 1, out);
    return true;
}

/* These two are shown without their password; every other secret is hidden as a whole. */
bool rcpt_config_is_dsn(const char *path)
{
    return strcmp(path, "postgres.dsn") == 0 || strcmp(path, "intake.dsn") == 0;
}

char *rcpt_config_redact_dsn(const char *dsn)
{
    static const char *const schemes[] = {"postgresql://", "postgres://"};
    const char *authority = NULL;
    char *text = NULL;
    size_t size = 0;
    for (size_t index = 0; index < RCPT_COUNT_OF(schemes); index++)
        if (strncmp(dsn, schemes[index], strlen(schemes[index])) == 0)
            authority = dsn + strlen(schemes[index]);
    FILE *out = rcpt_open_memory(&text, &size);
    bool understood =
        authority != NULL ? redact_uri(dsn, authority, out) : redact_keywords(dsn, out);
    fclose(out);
    if (understood)
        return text;
    free(text);
    return rcpt_strdup(RCPT_CONFIG_REDACTED);
}

/* Behind "scheme://"; NULL: the text is no URL. */
static const char *url_authority(const char *text)
{
    size_t scheme =
        strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-._");
    return scheme > 0 && strncmp(text + scheme, "://", 3) == 0 ? text + scheme + 3 : NULL;
}

const char *rcpt_config_url_user(const char *text, const char **end)
{
    const char *authority = url_authority(text);
    for (const char *at = authority; at != NULL && at < authority + strcspn(authority, "/?#"); at++)
        if (*at == '@')
            *end = at;
    return authority != NULL && memchr(authority, '@', strcspn(authority, "/?#")) != NULL
               ? authority
               : NULL;
}

char *rcpt_config_redact_url(const char *text)
{
    const char *authority = url_authority(text), *at = NULL;
    if (authority == NULL)
        return rcpt_strdup(text);
    char *shown = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&shown, &size);
    const char *rest = rcpt_config_url_user(text, &at) != NULL && at != NULL ? at : authority;
    size_t open = strcspn(rest, "?#");
    fprintf(out, "%.*s%s%.*s", (int)(authority - text), text,
            rest != authority ? RCPT_CONFIG_REDACTED : "", (int)open, rest);
    if (rest[open] != '\0')
        fprintf(out, "%c" RCPT_CONFIG_REDACTED, rest[open]);
    fclose(out);
    return shown;
}
