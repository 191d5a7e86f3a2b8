/* SQLSTATEs that functions of ours raise (sql/functions): the one list of them in C. Each rolls the
 * transaction back and is RETRY; the code tells the next step. tests/unit/test_pg_decide.c compares
 * this list with the SQL. */
#ifndef RECEIPTD_POSTGRES_SQLSTATE_H
#define RECEIPTD_POSTGRES_SQLSTATE_H

#define RCPT_SQLSTATE_FENCED     "RD001" /* a position or a shard has moved on: read it again */
#define RCPT_SQLSTATE_SUBSCRIBED "RD003" /* a pipeline subscribes to what none was known to */

#endif
