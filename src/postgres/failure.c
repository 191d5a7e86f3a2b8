/* Errors of libpq as errors of ours: from a result, with all its fields, or from a connection, for
 * which libpq gives only a text of several lines. Values that the server quotes are taken out,
 * since they may be personal data. Called by connection.c, connect.c, setup.c and submissions.c.
 */
#include "failure.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "receiptd/postgres/connection.h"

#define SQLSTATE_LENGTH 5u
#define OLDEST_SERVER   14

static const char unreachable_hint[] =
    "check that the server runs, and host, port and user in postgres.dsn";

/* Messages of class 22 quote the offending value, so quoted texts are masked. */
static void mask_quoted(char *text)
{
    char *open = strchr(text, '"');
    char *close = open != NULL ? strchr(open + 1, '"') : NULL;
    while (close != NULL) {
        memmove(open + 1, close, strlen(close) + 1);
        open = strchr(open + 2, '"');
        close = open != NULL ? strchr(open + 1, '"') : NULL;
    }
    if (open != NULL)
        open[1] = '\0';
}

/* Decision and hint come from the SQLSTATE; a result without one is the connection's failure. */
void rcpt_failure_of_result(const PGresult *result, struct rcpt_error *error)
{
    const char *code = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    if (code == NULL || code[0] == '\0') {
        rcpt_failure_of_message(PQresultErrorMessage(result), error);
        return;
    }
    rcpt_error_set(error, rcpt_pg_decide(code), code, "%s", primary != NULL ? primary : "");
    rcpt_error_hint(error, "%s", rcpt_pg_hint_of_message(code, error->text));
    if (strncmp(code, "22", 2) == 0)
        mask_quoted(error->text);
}

void rcpt_failure_of_connection(const PGconn *conn, struct rcpt_error *error)
{
    rcpt_failure_of_message(PQerrorMessage(conn), error);
}

/* In a verbose message an SQLSTATE stands behind the severity: `FATAL:  28P01: password …`. */
static bool is_code_at(const char *text)
{
    for (size_t index = 0; index < SQLSTATE_LENGTH; index++)
        if (!isdigit((unsigned char)text[index]) && !isupper((unsigned char)text[index]))
            return false;
    return text[SQLSTATE_LENGTH] == ':' && text[SQLSTATE_LENGTH + 1] == ' ';
}

/* Whether the line is of no use to an operator. */
static bool is_noise(const char *line)
{
    return strncmp(line, "LOCATION:", 9) == 0 || strncmp(line, "DETAIL:", 7) == 0;
}

/* One line of the message, without its SQLSTATE; the code goes to `code`. */
static size_t copy_line(const char *line, size_t length, char *out, size_t capacity, char *code)
{
    size_t used = 0;
    for (size_t index = 0; index < length && used + 1 < capacity; index++) {
        if (index >= 3 && strncmp(line + index - 3, ":  ", 3) == 0 && is_code_at(line + index)) {
            memcpy(code, line + index, SQLSTATE_LENGTH);
            index += SQLSTATE_LENGTH + 1;
            continue;
        }
        out[used++] = line[index];
    }
    out[used] = '\0';
    return used;
}

/* The lines of the message as one, without their SQLSTATE, which goes to the error's code. */
void rcpt_failure_of_message(const char *message, struct rcpt_error *error)
{
    char text[sizeof(error->text)] = "";
    char code[SQLSTATE_LENGTH + 1] = "";
    size_t used = 0;
    for (const char *line = message; *line != '\0';) {
        line += strspn(line, " \t");
        size_t length = strcspn(line, "\n");
        if (length > 0 && !is_noise(line) && used + 3 < sizeof(text)) {
            if (used > 0)
                used += (size_t)snprintf(text + used, sizeof(text) - used, "; ");
            used += copy_line(line, length, text + used, sizeof(text) - used, code);
        }
        line += length + (line[length] == '\n' ? 1 : 0);
    }
    rcpt_error_set(error, RCPT_DECISION_RECONNECT, code, "%s",
                   used > 0 ? text : "connection to the server is gone");
    const char *hint = rcpt_pg_hint_of_message(code, text);
    rcpt_error_hint(error, "%s", code[0] != '\0' || hint[0] != '\0' ? hint : unreachable_hint);
}

/* Statements would fail anyway, but with syntax errors, which do not help an operator. */
bool rcpt_failure_of_version(const PGconn *conn, struct rcpt_error *error)
{
    int version = PQserverVersion(conn) / 10000;
    if (version == 0 || version >= OLDEST_SERVER)
        return false;
    rcpt_error_set(error, RCPT_DECISION_RECONNECT, "RDVERSION",
                   "PostgreSQL %d is too old: %d or newer", version, OLDEST_SERVER);
    rcpt_error_hint(error, "upgrade the server, or name another one in postgres.dsn");
    return true;
}
