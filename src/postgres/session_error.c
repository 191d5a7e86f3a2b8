/* The failure of a blocking session, as an error for a command: a text, the hint for its SQLSTATE,
 * and the exit code of sysexits.h. Called by session.c. */
#include "session_error.h"

#include <stdio.h>
#include <string.h>
#include <sysexits.h>

#include "receiptd/base/error.h"
#include "receiptd/postgres/connection.h"
#include "receiptd/postgres/session.h"

/* The first prefix that fits. */
int rcpt_session_exit_code(const char *sqlstate)
{
    static const struct {
        const char *prefix;
        int exit_code;
    } rows[] = {
        {"08", EX_UNAVAILABLE},    {"28", EX_NOPERM},      {"3D000", EX_CONFIG},
        {"3F000", EX_CONFIG},      {"42501", EX_NOPERM},   {"42P01", EX_CONFIG},
        {"42703", EX_CONFIG},      {"42804", EX_CONFIG},   {"23502", EX_CONFIG},
        {"P0002", EX_NOINPUT},     {"53", EX_UNAVAILABLE}, {"57P", EX_UNAVAILABLE},
        {"25006", EX_UNAVAILABLE}, {"40001", EX_TEMPFAIL}, {"40P01", EX_TEMPFAIL},
        {"55P03", EX_TEMPFAIL},    {"57014", EX_TEMPFAIL}, {"22023", EX_DATAERR},
    };
    if (sqlstate[0] == '\0')
        return EX_UNAVAILABLE;
    for (size_t index = 0; index < RCPT_COUNT_OF(rows); index++) {
        if (strncmp(sqlstate, rows[index].prefix, strlen(rows[index].prefix)) == 0)
            return rows[index].exit_code;
    }
    return EX_SOFTWARE;
}

/* The first line of libpq's text, without the prefix that every text has. */
static void first_line(const char *message, char *line, size_t capacity)
{
    static const char *const beginnings[] = {"ERROR:  ", "FATAL:  "};
    for (size_t index = 0; index < RCPT_COUNT_OF(beginnings); index++) {
        const char *found = strstr(message, beginnings[index]);
        if (found != NULL)
            message = found + strlen(beginnings[index]);
    }
    snprintf(line, capacity, "%.*s", (int)strcspn(message, "\n"), message);
}

/* A more precise hint may replace this one afterwards. */
static void set_error(struct rcpt_error *error, const char *sqlstate, int exit_code,
                      const char *text)
{
    rcpt_error_set(error, RCPT_DECISION_FATAL, sqlstate, "%s", text);
    error->exit_code = exit_code;
    rcpt_error_hint(error, "%s", rcpt_pg_hint_of_message(sqlstate, text));
}

/* 08006, connection failure: libpq gives no code when the connection ends. */
void session_lost_error(struct rcpt_error *error, PGconn *connection)
{
    char line[400], text[512];
    first_line(PQerrorMessage(connection), line, sizeof(line));
    snprintf(text, sizeof(text), "lost the connection to postgresql: %s", line);
    set_error(error, "08006", EX_UNAVAILABLE, text);
}

/* The server's own hint is used where we have none. */
void session_result_error(struct rcpt_error *error, const PGresult *result)
{
    const char *sqlstate = PQresultErrorField(result, PG_DIAG_SQLSTATE);
    const char *primary = PQresultErrorField(result, PG_DIAG_MESSAGE_PRIMARY);
    const char *hint = PQresultErrorField(result, PG_DIAG_MESSAGE_HINT);
    if (sqlstate == NULL || primary == NULL) {
        char line[400];
        first_line(PQresultErrorMessage(result), line, sizeof(line));
        set_error(error, "08006", EX_UNAVAILABLE, line);
        return;
    }
    set_error(error, sqlstate, rcpt_session_exit_code(sqlstate), primary);
    if (error->hint[0] == '\0' && hint != NULL)
        rcpt_error_hint(error, "%s", hint);
}

/* Server errors during connect have no field for the SQLSTATE, but the verbose text holds it:
 * "FATAL:  28P01: …". */
static void find_sqlstate(const char *message, char sqlstate[6])
{
    sqlstate[0] = '\0';
    for (const char *at = strchr(message, ':'); at != NULL; at = strchr(at + 1, ':')) {
        size_t blanks = strspn(at + 1, " ");
        const char *code = at + 1 + blanks;
        if (blanks > 0 && strspn(code, "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ") == 5 &&
            code[5] == ':') {
            memcpy(sqlstate, code, 5);
            sqlstate[5] = '\0';
        }
    }
}

void session_connect_error(struct rcpt_error *error, PGconn *connection, const char *reason)
{
    const char *message = PQerrorMessage(connection);
    char sqlstate[6], line[400], text[512];
    find_sqlstate(message, sqlstate);
    first_line(message, line, sizeof(line));
    const char *plain = line;
    if (sqlstate[0] != '\0' && strncmp(line, sqlstate, 5) == 0)
        plain = line + strlen("28P01: ");
    snprintf(text, sizeof(text), "cannot connect to postgresql: %s",
             reason != NULL ? reason : plain);
    set_error(error, sqlstate[0] != '\0' ? sqlstate : "08001", rcpt_session_exit_code(sqlstate),
              text);
    rcpt_error_hint(error, "%s", rcpt_pg_hint_of_message(sqlstate, plain));
    if (error->hint[0] == '\0')
        rcpt_error_hint(error,
                        "check postgres.dsn and that the server runs and accepts connections");
}

/* libpq's own text could quote a piece of the DSN, and that piece may be a password. */
bool session_check_dsn(const char *dsn, struct rcpt_error *error)
{
    bool is_conninfo = strchr(dsn, '=') != NULL || strstr(dsn, "://") != NULL;
    PQconninfoOption *options = is_conninfo ? PQconninfoParse(dsn, NULL) : NULL;
    bool good = !is_conninfo || options != NULL;
    PQconninfoFree(options);
    if (!good) {
        rcpt_error_fatal(error, EX_CONFIG, "postgres.dsn is not a valid connection string");
        rcpt_error_hint(error, "write it as \"host=… dbname=… user=…\" or as a postgresql:// URI");
    }
    return good;
}
