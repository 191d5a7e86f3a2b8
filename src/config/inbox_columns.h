/* The columns of message_inbox: the one list of them in C. The members of struct rcpt_config, the
 * keys inbox.columns.*, what `receiptd migrate` binds and what fold rules may not name come from
 * it.
 *
 * X(column, written, doc), in the order of map_inbox(). `written`: GIVEN, the platform inserts it;
 * MOVED, batches update it. SQL names the same columns again (sql/migrate, sql/functions/map_inbox,
 * the updates in sql/lane); tests/unit/test_inbox_columns.c compares.
 */
#ifndef RECEIPTD_CONFIG_INBOX_COLUMNS_H
#define RECEIPTD_CONFIG_INBOX_COLUMNS_H

#define RCPT_INBOX_COLUMNS(X)                                                                      \
    X(message_id, GIVEN, "column of the message's id, the key")                                    \
    X(org_id, GIVEN, "column of the organisation")                                                 \
    X(campaign_id, GIVEN, "column of the campaign")                                                \
    X(status, MOVED, "column of the status code")                                                  \
    X(prev_status, MOVED, "column of the status before")                                           \
    X(flags, MOVED, "column of the flags, a bit set")                                              \
    X(prev_flags, MOVED, "column of the flags before")                                             \
    X(status_at, MOVED, "column of the time of the receipt that won")                              \
    X(updated_at, MOVED, "column of the time of the last change")

#endif
