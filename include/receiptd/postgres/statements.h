/* The statements of a lane: from a batch of the engine to prepared statements with parameters, and
 * the answer back.
 *
 * One batch is one submit of two or three statements: fence, apply (or wake, discard, expire), dead
 * letters if there are any. No parameter depends on a result of the same transaction.
 */
#ifndef RECEIPTD_POSTGRES_STATEMENTS_H
#define RECEIPTD_POSTGRES_STATEMENTS_H

#include "receiptd/core/engine.h"
#include "receiptd/postgres/connection.h"

/* Statements to prepare on a lane's connection / on the control connection / on the intake's.
 * Static. */
const struct rcpt_pg_statement *rcpt_lane_statements(size_t *count);
const struct rcpt_pg_statement *rcpt_control_statements(size_t *count);
const struct rcpt_pg_statement *rcpt_intake_statements(size_t *count);

struct rcpt_lane_sender; /* encoders that are reused; one per connection */

struct rcpt_lane_sender *rcpt_lane_sender_new(
    const char *unknown_policy /* park | insert | dead-letter */, int64_t parked_max_age_ms);
void rcpt_lane_sender_free(struct rcpt_lane_sender *sender);

/* Called exactly once per send, never from inside it. `error` is set unless the outcome is
 * COMMITTED or PROBED; where its decision is RECONNECT the caller has to reconnect (outcome
 * UNKNOWN: rcpt_pg has done so). */
typedef void (*rcpt_lane_on_result)(void *context, uint32_t lane,
                                    const struct rcpt_engine_result *result,
                                    const struct rcpt_error *error);

/* Encodes and submits. The batch is borrowed for the call only. */
void rcpt_lane_send(struct rcpt_lane_sender *sender, struct rcpt_pg *pg,
                    const struct rcpt_batch *batch, rcpt_lane_on_result on_result, void *context);

#endif
