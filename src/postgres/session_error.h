/* Errors of a blocking session (session.c). Private to src/postgres. */
#ifndef SRC_POSTGRES_SESSION_ERROR_H
#define SRC_POSTGRES_SESSION_ERROR_H

#include <libpq-fe.h>

#include "receiptd/base/error.h"

/* False: libpq cannot read the connection string. */
RCPT_MUST_CHECK bool session_check_dsn(const char *dsn, struct rcpt_error *error);
/* A statement was refused. */
void session_result_error(struct rcpt_error *error, const PGresult *result);
/* The connection broke while a statement ran. */
void session_lost_error(struct rcpt_error *error, PGconn *connection);
/* There is no session. `reason` NULL: libpq's text. */
void session_connect_error(struct rcpt_error *error, PGconn *connection, const char *reason);

#endif
