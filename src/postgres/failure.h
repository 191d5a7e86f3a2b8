/* From libpq's results and messages to an error that carries the decision. Private to src/postgres.
 *
 * The DETAIL of a server error is left out on purpose: it quotes rows, that is message ids.
 */
#ifndef SRC_POSTGRES_FAILURE_H
#define SRC_POSTGRES_FAILURE_H

#include <libpq-fe.h>

#include "receiptd/base/error.h"

/* A failed result: SQLSTATE, primary message, decision and hint. */
void rcpt_failure_of_result(const PGresult *result, struct rcpt_error *error);

/* A failed connection: libpq's message on one line; the SQLSTATE is found in it when its verbosity
 * was "verbose". */
void rcpt_failure_of_connection(const PGconn *conn, struct rcpt_error *error);

/* The same from the message (pure). */
void rcpt_failure_of_message(const char *message, struct rcpt_error *error);

/* True, with the error: the server is older than our statements need. */
RCPT_MUST_CHECK bool rcpt_failure_of_version(const PGconn *conn, struct rcpt_error *error);

#endif
