/* The columns of message_inbox: the one list of them. It makes the members of struct rcpt_config,
 * the keys inbox.columns.*, the own table and the table in docs/configuration.md. Fold rules may
 * not name these columns; `receiptd migrate` checks, maps and grants them. SQL takes the list as
 * JSON (commands/inbox/place.h).
 *
 * X(column, type, constraint, filler, feature, doc). filler says who writes it: PLATFORM by INSERT,
 * RECEIPTD, or POSTGRES by its default. feature: the key that needs it; "": any inbox may have it.
 */
#ifndef RECEIPTD_CONFIG_INBOX_COLUMNS_H
#define RECEIPTD_CONFIG_INBOX_COLUMNS_H

#include <stddef.h>

/* Each has a key inbox.columns.NAME. */
#define RCPT_INBOX_COLUMNS(X)                                                                      \
    X(message_id, "text", "COLLATE \"C\" PRIMARY KEY", PLATFORM, "", "the message's id, the key")  \
    X(org_id, "text", "COLLATE \"C\"", PLATFORM, "", "the organisation")                           \
    X(campaign_id, "text", "COLLATE \"C\"", PLATFORM, "", "the campaign")                          \
    X(status, "smallint", "NOT NULL DEFAULT 0", RECEIPTD, "", "the status code")                   \
    X(prev_status, "smallint", "", RECEIPTD, "", "the status before")                              \
    X(flags, "integer", "NOT NULL DEFAULT 0", RECEIPTD, "", "the flags, a bit set")                \
    X(prev_flags, "integer", "", RECEIPTD, "", "the flags before")                                 \
    X(status_at, "timestamptz", "", RECEIPTD, "", "the time of the receipt that won")              \
    X(updated_at, "timestamptz", "", RECEIPTD, "", "the time of the last change")

/* created_at has a key with a meaning of its own (table.c). The others have these names in every
 * table. */
#define RCPT_INBOX_MORE_COLUMNS(X)                                                                 \
    X(created_at, "timestamptz", "NOT NULL DEFAULT now()", POSTGRES, "",                           \
      "the time when the message was inserted, for retention and for the recent rows")             \
    X(first_sent_at, "timestamptz", "", RECEIPTD, "counters.times",                                \
      "the least event time of its receipts that name SENT")                                       \
    X(first_delivered_at, "timestamptz", "", RECEIPTD, "counters.times", "likewise, DELIVERED")    \
    X(first_opened_at, "timestamptz", "", RECEIPTD, "counters.times", "likewise, OPENED")          \
    X(first_clicked_at, "timestamptz", "", RECEIPTD, "counters.times", "likewise, CLICKED")        \
    X(first_gateway, "text", "COLLATE \"C\"", RECEIPTD, "counters.times",                          \
      "the first by name of the gateways that these receipts name")                                \
    X(prev_times, "text", "COLLATE \"C\"", RECEIPTD, "counters.times",                             \
      "what the row counted as in the histograms before its last change")

enum rcpt_inbox_filler { RCPT_INBOX_PLATFORM, RCPT_INBOX_RECEIPTD, RCPT_INBOX_POSTGRES };

struct rcpt_inbox_column {
    const char *name, *type, *constraint;
    enum rcpt_inbox_filler filler;
    const char *feature, *doc;
};

/* All of them, in the order of the own table. */
const struct rcpt_inbox_column *rcpt_inbox_columns(size_t *count);

/* "platform": as SQL and the docs say it. */
const char *rcpt_inbox_filler_name(enum rcpt_inbox_filler filler);

#endif
