/* The statements of a lane: from a batch of the engine to prepared statements with parameters, and
 * the answer back.
 *
 * A batch that changes messages goes in two flights of one transaction (flights.h). A batch that
 * only moves positions, parked rows or ranges is one submission.
 */
#ifndef RECEIPTD_POSTGRES_STATEMENTS_H
#define RECEIPTD_POSTGRES_STATEMENTS_H

#include "receiptd/core/engine.h"
#include "receiptd/core/names.h"
#include "receiptd/core/rules/rules.h"
#include "receiptd/postgres/bind.h"
#include "receiptd/postgres/connection.h"

/* The parts of the configuration on which the statements of a lane depend. */
struct rcpt_lane_variant {
    const struct rcpt_rules_column *columns; /* what rules want of a row: rcpt_rules_columns() */
    size_t column_count;
    bool orgs;     /* its organisation, too: for folds and pipelines */
    bool times;    /* the row keeps first times */
    bool payloads; /* rules read the JSON text of receipts: rcpt_rules_read_payloads() */
    /* Columns of the inbox by which ranges find messages; none where they are off. */
    const struct rcpt_pg_binding *bindings;
    size_t binding_count;
    bool resolves_ranges;
    bool inserts_unknown;     /* the policy that makes rows, which not every inbox allows */
    const char *recent_since; /* boundary of the inbox's recent set: decide finds its messages
                                  first, all others by a second lookup; NULL: none */
    /* column of the inbox in whose type the boundary is; NULL: created_at */
    const char *recent_column;
    /* for an expiry: the statement that finds its messages, bound to a part of the inbox; NULL: for
     * a lane */
    const char *candidates;
};

/* Statements to prepare on a lane's connections. The result must outlive the connections. */
struct rcpt_lane_statements *rcpt_lane_statements_new(const struct rcpt_lane_variant *variant);
void rcpt_lane_statements_free(struct rcpt_lane_statements *statements); /* NULL is fine */
const struct rcpt_pg_statement *rcpt_lane_statements_list(
    const struct rcpt_lane_statements *statements, size_t *count);

/* Whether the statement begins or ends a transaction: SQL's PREPARE refuses it. */
bool rcpt_lane_statement_is_utility(const struct rcpt_pg_statement *statement);

/* Statements of the control connection, and of the intake's. Static. */
const struct rcpt_pg_statement *rcpt_control_statements(size_t *count);
const struct rcpt_pg_statement *rcpt_intake_statements(size_t *count);
/* Statements of the connections of the interface for readers. Static. */
#define RCPT_SERVE_EXPIRY_COLUMNS 100u
struct rcpt_serve_columns { /* of the inbox */
    const char *customer;   /* NULL: none, and there is no statement for it */
    const char *logical;    /* NULL: none */
    const char *channel;    /* NULL: none */
    const char *newest;     /* orders the messages of a customer */
    const char *expiry[RCPT_SERVE_EXPIRY_COLUMNS]; /* by which rules of inbox.expiry choose */
    size_t expiry_count;
};
const struct rcpt_pg_statement *rcpt_serve_statements(const struct rcpt_serve_columns *columns,
                                                      size_t *count);
/* Statements of the connection that reads `view` (schema.view), which names campaigns. Static. */
const struct rcpt_pg_statement *rcpt_serve_names_statements(const char *view, size_t *count);
/* Statements of the connections of the publisher of folds, of their reader of topics, of actions,
 * and of announced messages. Static. */
const struct rcpt_pg_statement *rcpt_fold_statements(size_t *count);
const struct rcpt_pg_statement *rcpt_fold_topic_statements(size_t *count);
const struct rcpt_pg_statement *rcpt_action_statements(size_t *count);
const struct rcpt_pg_statement *rcpt_message_statements(size_t *count);

/* The subscription of pipelines: highest statuses of a message at which one of them may begin a
 * run, and flags. */
#define RCPT_LANE_STATUSES 9001

struct rcpt_lane_subscription {
    bool tops[RCPT_LANE_STATUSES];
    uint32_t flags;
};

struct rcpt_lane_sender; /* encoders that are reused; one per connection */

/* For figures: messages of a committed batch that had one fate. */
struct rcpt_lane_effect {
    int16_t old, new;  /* status before and after; the same: it stayed */
    uint32_t gained;   /* flags that are new */
    int32_t signature; /* of the batch, what the receipts named; -1: not known (woken) */
    uint32_t messages;
};

#define RCPT_LANE_MOST_EFFECTS 1000u

/* Receipts of unknown messages, by the signature of their message. */
struct rcpt_lane_unknown {
    int32_t signature;
    uint32_t events;
};

/* Parked receipts that name a gateway. */
struct rcpt_lane_gateway {
    const char *name;
    uint32_t events;
};

struct rcpt_lane_effects {
    const struct rcpt_lane_effect *rows; /* of so many kinds the largest ones */
    uint32_t count;
    const struct rcpt_rules_suppression *suppressions;
    uint32_t suppression_count;
    /* Effects of a batch that applies: */
    uint32_t events_counted;                 /* receipts of known messages, over all kinds */
    uint32_t events_parked, events_dead;     /* receipts of unknown ones */
    const struct rcpt_lane_unknown *unknown; /* the same ones */
    uint32_t unknown_count;
    const struct rcpt_lane_unknown *refused; /* of messages of another organisation */
    uint32_t refused_count, events_refused;
    const struct rcpt_lane_unknown *retired; /* of deleted messages */
    uint32_t retired_count, events_retired;
    /* Effects of a batch that wakes, expires or discards: */
    uint32_t events_handled;
    const struct rcpt_lane_gateway *gateways; /* the others of them name none */
    uint32_t gateway_count;
    /* gateways of the parked receipts that were refused, or whose message was deleted */
    const struct rcpt_lane_gateway *refused_gateways;
    uint32_t refused_gateway_count;
};

/* Called before on_result of a commit; the effects are borrowed. */
typedef void (*rcpt_lane_on_effects)(void *context, uint32_t lane,
                                     const struct rcpt_lane_effects *effects);

struct rcpt_lane_sender_settings {
    const char *unknown_policy; /* park | insert | dead-letter */
    struct rcpt_rules_settings rules;
    struct rcpt_lane_names names; /* of fresh receipts */
    const char *window;           /* in which copies are recognised, as an interval of SQL */
    bool actions;                 /* pipelines subscribe to transitions */
};

/* Texts of the settings are borrowed for life. */
struct rcpt_lane_sender *rcpt_lane_sender_new(const struct rcpt_lane_sender_settings *settings);
void rcpt_lane_sender_free(struct rcpt_lane_sender *sender);
void rcpt_lane_sender_observe(struct rcpt_lane_sender *sender, rcpt_lane_on_effects on_effects,
                              void *context);
/* Whether the effect of each receipt is written to the timeline, in the same transaction. */
void rcpt_lane_sender_set_timeline(struct rcpt_lane_sender *sender, bool on);
/* Sets the subscription of pipelines as the instance knows it. If it is out of date, PostgreSQL
 * rolls a batch back with RD003. NULL, as at first: everything. Copied. */
void rcpt_lane_sender_set_subscription(struct rcpt_lane_sender *sender,
                                       const struct rcpt_lane_subscription *subscription);
/* Whether the last batch may have begun runs. */
bool rcpt_lane_sender_is_subscribed(const struct rcpt_lane_sender *sender);
void rcpt_lane_sender_set_max_age(struct rcpt_lane_sender *sender, int64_t parked_max_age_ms);
/* With `insert`: how long a receipt that came under the gateway's id waits for an alias before its
 * row is made. Negative, as at first: not at all. */
void rcpt_lane_sender_set_alias_wait(struct rcpt_lane_sender *sender, int64_t alias_wait_ms);

/* How long after it was stored a range is looked at again, for messages whose row came late. */
void rcpt_lane_sender_set_range_wait(struct rcpt_lane_sender *sender, int64_t range_wait_ms);

/* Called exactly once per send, never from inside it. `error` is set unless the outcome is
 * COMMITTED or PROBED; where its decision is RECONNECT the caller has to reconnect (outcome
 * UNKNOWN: rcpt_pg has done so). */
typedef void (*rcpt_lane_on_result)(void *context, uint32_t lane,
                                    const struct rcpt_engine_result *result,
                                    const struct rcpt_error *error);

/* The batch is borrowed until the result. One batch at a time on a connection. `traced`: the end of
 * the work and that of the transaction are to be known, at the price of one more packet. */
void rcpt_lane_send(struct rcpt_lane_sender *sender, struct rcpt_pg *pg,
                    const struct rcpt_batch *batch, bool traced, rcpt_lane_on_result on_result,
                    void *context);

/* One step of an expiry: the messages that `candidates` finds in the range go the way of a batch,
 * without a fence. No receipt is counted. `range` are its parameters, borrowed for the call. */
void rcpt_lane_expire(struct rcpt_lane_sender *sender, struct rcpt_pg *pg,
                      const struct rcpt_pg_params *range, rcpt_lane_on_result on_result,
                      void *context);

#endif
