/* The fields of entries of ladder.statuses, ladder.flags and ladder.overrides. rcpt_ladder_new()
 * checks what they mean together (unique codes, one root, parents with smaller codes). Each list is
 * a record of its own, since flags get their codes by their place. */
#include "rows.h"

#define RECORD struct rcpt_status_definition
static const struct rcpt_config_row status_rows[] = {
    TEXT("name", name, REQUIRED, NULL, 1, RCPT_LADDER_MAX_NAME,
         "name of the status: capitals, digits and `_`"),
    INTEGER("code", code, REQUIRED, NULL, 0, RCPT_LADDER_FIRST_FLAG_CODE - 1,
            "stored number and priority at once: of two statuses the larger code wins"),
    TEXT("parent", parent, NULLABLE, NULL, 1, RCPT_LADDER_MAX_NAME,
         "the stage that a message in this status has certainly passed; only the root has none"),
    /* No rule depends on it: it is for those who read the ladder's table. */
    BOOLEAN("terminal", terminal, NULLABLE, NULL, "for readers: nothing more is expected"),
};
const struct rcpt_config_table rcpt_config_status_record = RECORD_OF(status_rows);
#undef RECORD

#define RECORD struct rcpt_flag_definition
static const struct rcpt_config_row flag_rows[] = {
    TEXT("name", name, REQUIRED, NULL, 1, RCPT_LADDER_MAX_NAME,
         "name of the flag; the first in the list has code 9001, the next 9002 and so on"),
    TEXT("implies", implies, NULLABLE, NULL, 1, RCPT_LADDER_MAX_NAME,
         "status that a receipt of this flag brings with it"),
};
const struct rcpt_config_table rcpt_config_flag_record = RECORD_OF(flag_rows);
#undef RECORD

#define RECORD struct rcpt_override_definition
static const struct rcpt_config_row override_rows[] = {
    TEXT("channel", channel, REQUIRED, NULL, 1, 255, "value of the receipt's `channel`"),
    TEXT("status", status, REQUIRED, NULL, 1, RCPT_LADDER_MAX_NAME,
         "status that the receipt names"),
    TEXT("becomes", becomes, REQUIRED, NULL, 1, RCPT_LADDER_MAX_NAME,
         "status that it means on this channel"),
};
const struct rcpt_config_table rcpt_config_override_record = RECORD_OF(override_rows);
