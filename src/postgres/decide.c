/* The meaning of an SQLSTATE for the sender of a statement, and the remedy for an operator: tables,
 * searched by prefix. Pure. Called wherever an answer of PostgreSQL becomes an error.
 */
#include <string.h>

#include "receiptd/base/error.h"
#include "receiptd/postgres/connection.h"

#include "receiptd/postgres/sqlstate.h"

/* The longest matching row wins by order: full codes first, classes (two characters) after them. */
static const struct {
    const char *prefix;
    enum rcpt_decision decision;
} decisions[] = {
    {"40001", RCPT_DECISION_RETRY}, /* serialization failure */
    {"40P01", RCPT_DECISION_RETRY}, /* deadlock */
    {"55P03", RCPT_DECISION_RETRY}, /* lock timeout */
    {"57014", RCPT_DECISION_RETRY}, /* statement timeout, cancelled */
    {RCPT_SQLSTATE_FENCED, RCPT_DECISION_RETRY},
    {RCPT_SQLSTATE_SUBSCRIBED, RCPT_DECISION_RETRY},
    {"P0001", RCPT_DECISION_REJECT}, /* raised by the platform's own trigger */
    {"22", RCPT_DECISION_REJECT},    /* data exception */
    {"23", RCPT_DECISION_REJECT},    /* constraint violation */
    {"54", RCPT_DECISION_REJECT},    /* program limit, e.g. an index row too long */
};

static const struct {
    const char *prefix;
    const char *hint;
} hints[] = {
    {"28P01", "check user and password in postgres.dsn"},
    {"28",
     "the role must be there (receiptd migrate --role makes it, as the owner of the schema), and "
     "a line of pg_hba.conf must fit user, database and address in postgres.dsn"},
    {"3D000", "the database in postgres.dsn does not exist: create it or correct the name"},
    {"3F000", "the schema is missing: run receiptd migrate"},
    {"42P01", "a table is missing: put it back if it was dropped, else run receiptd migrate"},
    {"42703",
     "a column is missing: run receiptd migrate, or check the mapping of the inbox's columns"},
    {"42883", "a function is missing: run receiptd migrate"},
    {"42704", "an object or a setting is unknown to this server: run receiptd migrate; check the "
              "server's version"},
    {"42501",
     "the role lacks a grant: run receiptd migrate with its name (--role, --intake-role or "
     "--serve-role), as the owner of the schema"},
    {"25006",
     "the server is read-only or a standby: point postgres.dsn at the primary, or list all hosts"},
    {"53300",
     "the server has no free connection: raise max_connections or lower postgres.connections"},
    {"53100", "the server's disk is full: free space there"},
    {"53200", "the server is out of memory: lower work_mem or batch.max_events"},
    {"57P01", "the connection was ended by an administrator or a restart; nothing to do"},
    {"57P02", "the server crashed and restarts: see its log"},
    {"57P03", "the server starts up or shuts down: wait, or see its log"},
    {"26000",
     "the connection lost its prepared statements: use a direct connection or session pooling"},
    {"42P05", "another client's session was handed over with its prepared statements: use a direct "
              "connection or session pooling"},
    {"0A000", "a table was altered: the next connection prepares the statements again"},
    {"55P03", "another session holds the row: see pg_blocking_pids()"},
    {"57014", "the statement took too long: see postgres.statement_timeout and the server's load"},
};

/* Texts of libpq and the server for codes that do not tell causes apart; the first that is part of
 * the message counts. */
static const struct {
    const char *part;
    const char *hint;
} message_hints[] = {
    {"by row-level security policy",
     "a policy would hide rows: give the owner of the view message_inbox (of an own inbox: this "
     "role) BYPASSRLS, or take back ENABLE or FORCE ROW LEVEL SECURITY"},
    {"certificate verify failed",
     "the server's certificate is not signed by what sslrootcert in postgres.dsn names: check that "
     "file, and who answers at this address"},
    {"does not match host name",
     "the certificate is another host's: write the name it was issued for as host in postgres.dsn "
     "(and the address as hostaddr), or check who answers"},
    {"unsupported startup parameter: options",
     "a pooler does not hand options on: set ignore_startup_parameters = options there (receiptd "
     "sets its own "
     "again in the session) and pool_mode = session"},
    {"root certificate file", "sslrootcert in postgres.dsn: no such file can be read"},
    {"server does not support SSL", "this server speaks no TLS, and sslmode in postgres.dsn asks "
                                    "for it: switch it on there (ssl = "
                                    "on), or check who answers"},
    {"no encryption", "the server may require TLS (hostssl in pg_hba.conf): set "
                      "sslmode=verify-full in postgres.dsn"},
    {"valid client certificate",
     "the server requires a client certificate: set sslcert and sslkey in postgres.dsn"},
    {"certificate authentication failed",
     "the certificate of sslcert is for another user than postgres.dsn names"},
    {"unknown ca", "the server does not trust the certificate of sslcert in postgres.dsn"},
    {"certificate file", "sslcert in postgres.dsn: no certificate can be read there"},
    {"private key file",
     "sslkey in postgres.dsn: the file must be there, for its owner only (chmod 600), and fit "
     "sslcert"},
    {"eer authentication failed",
     "the server compares the user of the operating system with the role, and a unit's user is "
     "called "
     "as the unit: give the role a password, in the file that holds postgres.dsn"},
    {"no password supplied", "put the password into the file that holds postgres.dsn"},
};

static bool starts_with(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* The first prefix that fits; a code that is not listed ends the connection, which is always safe.
 */
enum rcpt_decision rcpt_pg_decide(const char *sqlstate)
{
    for (size_t index = 0; index < RCPT_COUNT_OF(decisions); index++)
        if (starts_with(sqlstate, decisions[index].prefix))
            return decisions[index].decision;
    return RCPT_DECISION_RECONNECT;
}

/* Empty if there is no advice. */
const char *rcpt_pg_hint(const char *sqlstate)
{
    for (size_t index = 0; index < RCPT_COUNT_OF(hints); index++)
        if (starts_with(sqlstate, hints[index].prefix))
            return hints[index].hint;
    return "";
}

/* libpq's own failures have no SQLSTATE, so parts of their texts are searched first. */
const char *rcpt_pg_hint_of_message(const char *sqlstate, const char *message)
{
    for (size_t index = 0; index < RCPT_COUNT_OF(message_hints); index++)
        if (strstr(message, message_hints[index].part) != NULL)
            return message_hints[index].hint;
    return rcpt_pg_hint(sqlstate);
}
