/* The fields of entries of ladder.statuses, ladder.flags and ladder.overrides. rcpt_ladder_new()
 * checks what they mean together (unique codes, one root, parents with smaller codes). Each list is
 * a record of its own, since flags get their codes by their place. */
#include "rows.h"

#include "receiptd/base/error.h"

#define FIELD(member) MEMBER(struct rcpt_status_definition, member)
static const struct rcpt_config_row status_rows[] = {
    {"name", RCPT_CONFIG_TEXT, REQUIRED, FIELD(name), .min = 1, .max = RCPT_LADDER_MAX_NAME,
     .doc = "name of the status: capitals, digits and `_`"},
    {"code", RCPT_CONFIG_INTEGER, REQUIRED, FIELD(code), .max = RCPT_LADDER_FIRST_FLAG_CODE - 1,
     .doc = "stored number and priority at once: of two statuses the larger code wins"},
    {"parent", RCPT_CONFIG_TEXT, NULLABLE, FIELD(parent), .min = 1, .max = RCPT_LADDER_MAX_NAME,
     .doc = "the stage that a message in this status has certainly passed; only the root has none"},
    /* No rule depends on it: it is for those who read the ladder's table. */
    {"terminal", RCPT_CONFIG_CHOICE, NULLABLE, FIELD(terminal), CHOICES(booleans),
     .doc = "for readers: nothing more is expected"},
};
#undef FIELD
const struct rcpt_config_table rcpt_config_status_record = {status_rows, RCPT_COUNT_OF(status_rows),
                                                            sizeof(struct rcpt_status_definition)};

#define FIELD(member) MEMBER(struct rcpt_flag_definition, member)
static const struct rcpt_config_row flag_rows[] = {
    {"name", RCPT_CONFIG_TEXT, REQUIRED, FIELD(name), .min = 1, .max = RCPT_LADDER_MAX_NAME,
     .doc = "name of the flag; the first in the list has code 9001, the next 9002 and so on"},
    {"implies", RCPT_CONFIG_TEXT, NULLABLE, FIELD(implies), .min = 1, .max = RCPT_LADDER_MAX_NAME,
     .doc = "status that a receipt of this flag brings with it"},
};
#undef FIELD
const struct rcpt_config_table rcpt_config_flag_record = {flag_rows, RCPT_COUNT_OF(flag_rows),
                                                          sizeof(struct rcpt_flag_definition)};

#define FIELD(member) MEMBER(struct rcpt_override_definition, member)
static const struct rcpt_config_row override_rows[] = {
    {"channel", RCPT_CONFIG_TEXT, REQUIRED, FIELD(channel), .min = 1, .max = 255,
     .doc = "value of the receipt's `channel`"},
    {"status", RCPT_CONFIG_TEXT, REQUIRED, FIELD(status), .min = 1, .max = RCPT_LADDER_MAX_NAME,
     .doc = "status that the receipt names"},
    {"becomes", RCPT_CONFIG_TEXT, REQUIRED, FIELD(becomes), .min = 1, .max = RCPT_LADDER_MAX_NAME,
     .doc = "status that it means on this channel"},
};
#undef FIELD
const struct rcpt_config_table rcpt_config_override_record = {
    override_rows, RCPT_COUNT_OF(override_rows), sizeof(struct rcpt_override_definition)};
