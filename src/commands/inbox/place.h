/* Where the inbox is, and its columns (config/inbox_columns.h) as SQL takes them. Private to this
 * folder. */
#ifndef RECEIPTD_COMMANDS_INBOX_PLACE_H
#define RECEIPTD_COMMANDS_INBOX_PLACE_H

#include <stdbool.h>

#include "receiptd/config/config.h"

enum { /* INBOX_message_id … */
#define COLUMN(column, ...) INBOX_##column,
       RCPT_INBOX_COLUMNS(COLUMN)
#undef COLUMN
           INBOX_COLUMNS
};

/* The table of the configuration, with its names for our columns; or, for an inbox of our own,
 * message_inbox in our schema, with our names. */
struct inbox_place {
    bool mapped;
    char schema[128];
    const char *table;
    const char *columns[INBOX_COLUMNS];
    const char *created_at; /* "": a mapped table without */
};

void inbox_place_of(const struct rcpt_config *config, struct inbox_place *place);

/* A JSON array for the files of sql/migrate, an object for each column. Its names are ours and
 * theirs; theirs is null if the table has none. Its number n counts from 1. Its filler is platform,
 * receiptd or postgres. Its feature is the key that wants the column, or empty. This configuration
 * wants the column (wanted), or names it (named). The others are type and definition. The caller
 * frees the text. */
char *inbox_columns_json(const struct rcpt_config *config);
/* For CREATE TABLE: "message_id text PRIMARY KEY, org_id …". The caller frees it. */
char *inbox_columns_definitions(void);
/* For GRANT: the names of the columns that the filler writes and this configuration wants: "status,
 * flags". The caller frees it. */
char *inbox_columns_filled_by(const struct rcpt_config *config, enum rcpt_inbox_filler filler);

#endif
