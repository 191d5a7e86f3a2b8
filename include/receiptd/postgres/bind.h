/* Puts values into embedded SQL where parameters cannot stand: names of tables and columns,
 * literals in DDL.
 *
 * The notation is psql's, so the files of sql/ run there with `psql -v name=value -f`. A variable
 * :"name" becomes a quoted identifier, :'name' a quoted literal, :name a number, or a piece of SQL.
 * A parameter $1 becomes a quoted literal where a binding has its number as name: for statements
 * that are shown, or run together with others. Casts (::), assignments (:=), strings, quoted
 * identifiers, dollar quotes and comments are left alone. Pure.
 */
#ifndef RECEIPTD_POSTGRES_BIND_H
#define RECEIPTD_POSTGRES_BIND_H

#include <stddef.h>

#include "receiptd/base/error.h"

struct rcpt_pg_binding {
    const char *name;  /* [A-Za-z_][A-Za-z0-9_]*, or digits; "=name": :name is a piece of SQL */
    const char *value; /* NULL: the literal NULL; not allowed for identifiers and numbers */
};

/* The text with all variables replaced; the caller frees it. NULL with FATAL EX_SOFTWARE where
 * :"name" or :'name' has no binding, a number is none, or an identifier is empty. A bare :name
 * without a binding is left alone (array slices). */
RCPT_MUST_CHECK char *rcpt_pg_bind(const char *sql, const struct rcpt_pg_binding *bindings,
                                   size_t count, struct rcpt_error *error);
/* The same for the SQL of an operator: NULL with FATAL EX_CONFIG where any :name or $1 has no
 * binding, or a name of a parameter is quoted. */
RCPT_MUST_CHECK char *rcpt_pg_bind_strictly(const char *sql, const struct rcpt_pg_binding *bindings,
                                            size_t count, struct rcpt_error *error);

#endif
