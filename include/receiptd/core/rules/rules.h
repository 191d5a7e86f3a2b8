/* Counts of a batch's receipts besides the plain funnel. The rules that the configuration switches
 * on read the folded receipts and the fate of each message.
 *
 * Pure. The same rows in any order give the same results in the same order. Used between the two
 * flights of a lane's transaction; not for two batches at once. Calls, for each batch: begin; echo
 * for each receipt that came before; add for each row and missed for each unknown message, in any
 * order; finish; results until the next begin.
 *
 * A rule is a file of this folder (rule.h).
 */
#ifndef RECEIPTD_CORE_RULES_RULES_H
#define RECEIPTD_CORE_RULES_RULES_H

#include "receiptd/core/batch.h"
#include "receiptd/core/names.h"
#include "receiptd/core/tally.h"

#define RCPT_RULES_DIMENSIONS     3u
#define RCPT_RULES_GROUPS         2u
#define RCPT_RULES_STREAM_COLUMNS 16u
#define RCPT_RULES_SUPPRESSING    64u

/* Kinds of cells; the order is that of results. BY: of the first dimension, GROUP … of groups. */
enum rcpt_count_of {
    RCPT_COUNT_FUNNEL,
    RCPT_COUNT_BY, /* by_…, of each dimension one */
    RCPT_COUNT_DUPLICATE = RCPT_COUNT_BY + RCPT_RULES_DIMENSIONS,
    RCPT_COUNT_REASON,
    RCPT_COUNT_GATEWAY,
    RCPT_COUNT_GATEWAY_DELAY,
    RCPT_COUNT_GATEWAY_DISORDER,
    RCPT_COUNT_GATEWAY_DUPLICATE,
    RCPT_COUNT_GATEWAY_FINAL,
    RCPT_COUNT_GATEWAY_LOST,
    RCPT_COUNT_GATEWAY_REASON,
    RCPT_COUNT_GATEWAY_SENT,
    RCPT_COUNT_GATEWAY_UNKNOWN,
    RCPT_COUNT_GATEWAY_WON,
    RCPT_COUNT_TIME_PLACE, /* places in the histograms of times; the roll-up makes cells of them */
    RCPT_COUNT_LINK,
    RCPT_COUNT_COST,        /* receipts that name a cost */
    RCPT_COUNT_COST_AMOUNT, /* their sum: messages are whole units, events their 10^-9 */
    RCPT_COUNT__COUNT,
};

/* A column of the inbox by which messages are counted, and the kind of its counts. */
struct rcpt_rules_column_of {
    const char *kind;   /* "by_channel"; of groups "customer" or "logical" */
    const char *column; /* of the inbox */
};

/* A status or flag that suppresses the person of its message. */
struct rcpt_rules_suppressing {
    int16_t code;
    bool is_soft; /* only with others of its kind */
};

/* Which rules are on. */
struct rcpt_rules_settings {
    const struct rcpt_ladder *ladder; /* outlives the rules; it may grow between batches */
    struct rcpt_rules_column_of dimensions[RCPT_RULES_DIMENSIONS];
    size_t dimension_count;
    struct rcpt_rules_column_of groups[RCPT_RULES_GROUPS];
    size_t group_count;
    bool dedup, series, reasons, gateways, times, links, costs;
    bool folds;        /* some subscribe to transitions … */
    bool fold_columns; /* … and name columns of the inbox */
    bool stream;       /* every transition … */
    bool stream_state; /* … with the time of the status that the message has then … */
    const char *stream_columns[RCPT_RULES_STREAM_COLUMNS]; /* … and these columns of the inbox */
    size_t stream_column_count;
    const char *person; /* column of the inbox; NULL: nobody is suppressed */
    struct rcpt_rules_suppressing suppressing[RCPT_RULES_SUPPRESSING];
    size_t suppressing_count;
    int16_t soft_count;     /* soft ones suppress if there are so many … */
    int64_t soft_within_ms; /* … in this time */
};

/* The extra columns that rules ask of the deciding statement, as text; NULL where there is none. */
struct rcpt_rules_column {
    char *changed;    /* SQL over the alias m: of a row that was changed … */
    const char *same; /* … and of one that was not; "NULL" where no rule asks */
};

/* The fate of a known message. An id may stand in two rows. */
struct rcpt_rules_row {
    uint32_t message;                /* of the batch */
    int16_t was, now;                /* statuses; the same where nothing changed */
    uint32_t gained;                 /* flags */
    uint32_t flags;                  /* all that it has now */
    bool changed;                    /* by the statement; with times that may be a time alone */
    struct rcpt_text campaign, org;  /* size 0: none */
    const struct rcpt_text *columns; /* as rcpt_rules_columns() lists them */
};

/* Members of groups that changed (group_delta). */
struct rcpt_rules_member {
    struct rcpt_text campaign, value; /* value: what the group's key is made of; never empty */
    int16_t old, new;
    uint32_t gained;
};

/* Messages that changed alike, for folds (fold_event). */
struct rcpt_rules_fold {
    struct rcpt_text org, campaign, columns; /* columns: size 0: no rule names any */
    int16_t old, new;
    uint32_t gained;
    uint32_t messages;
    const char *link; /* the least traceparent; NULL: there is none */
};

/* A transition of a message, for the stream (stream_event). Texts of size 0: none. */
struct rcpt_rules_change {
    struct rcpt_text id, org, campaign;
    struct rcpt_text gateway, reason; /* of the receipt that made the transition … */
    struct rcpt_text trace;           /* … and the traceparent of its record */
    struct rcpt_text columns;         /* JSON */
    int64_t at_us;
    int32_t old, new, flags, gained;
};

/* A person whom a transition suppresses (suppression). */
struct rcpt_rules_suppression {
    struct rcpt_text id, org, person;
    const char *class; /* name of the status or flag */
    int64_t at_us, within_ms;
    uint32_t message;   /* of the batch */
    int16_t soft_count; /* 0: it suppresses alone */
};

struct rcpt_rules;

/* Settings are copied, not the texts that they point to. */
struct rcpt_rules *rcpt_rules_new(const struct rcpt_rules_settings *settings);
void rcpt_rules_free(struct rcpt_rules *rules);
/* Whether a rule that is on reads the JSON text of receipts. A longer one counts as empty, since a
 * wake holds the texts of all its receipts. */
#define RCPT_RULES_MOST_TEXT 16384
bool rcpt_rules_read_payloads(const struct rcpt_rules_settings *settings);
/* False: no rule is on, and only the plain funnel is counted. */
bool rcpt_rules_are_on(const struct rcpt_rules *rules);
/* The extra columns of the deciding statement. */
const struct rcpt_rules_column *rcpt_rules_columns(const struct rcpt_rules *rules, size_t *count);
/* True: the results hold all of the funnel's cells, with minutes, and replace those of
 * core/count.h. False: the results are added to those. */
bool rcpt_rules_count_funnel(const struct rcpt_rules *rules);

/* names: of the gateways and reasons that the batch's events number; a wake has its own. now_us:
 * time of the transaction, of PostgreSQL. Batch and names are borrowed until finish. */
void rcpt_rules_begin(struct rcpt_rules *rules, const struct rcpt_batch *batch, int64_t now_us,
                      const struct rcpt_lane_names *names);
/* This receipt of the batch came before (core/keys.h). */
void rcpt_rules_echo(struct rcpt_rules *rules, uint32_t event);
/* The row is borrowed for the call. */
void rcpt_rules_add(struct rcpt_rules *rules, const struct rcpt_rules_row *given);
/* A message that no row has: its receipts are parked or dead letters. */
void rcpt_rules_missed(struct rcpt_rules *rules, uint32_t message);
void rcpt_rules_finish(struct rcpt_rules *rules);

/* Name of a kind in counter_delta, of a group in group_delta. */
const char *rcpt_rules_kind(const struct rcpt_rules *rules, enum rcpt_count_of kind);
const char *rcpt_rules_group(const struct rcpt_rules *rules, size_t group);
const struct rcpt_tally_cell *rcpt_rules_cells(const struct rcpt_rules *rules, uint32_t *count);
struct rcpt_tally_range rcpt_rules_range(const struct rcpt_rules *rules, enum rcpt_count_of kind);
/* All are sorted; members by group. */
const struct rcpt_rules_member *rcpt_rules_members(const struct rcpt_rules *rules, size_t group,
                                                   uint32_t *count);
const struct rcpt_rules_fold *rcpt_rules_folds(const struct rcpt_rules *rules, uint32_t *count);
/* In the order of the batch's messages. */
const struct rcpt_rules_change *rcpt_rules_changes(const struct rcpt_rules *rules, uint32_t *count);
const struct rcpt_rules_suppression *rcpt_rules_suppressions(const struct rcpt_rules *rules,
                                                             uint32_t *count);

#endif
