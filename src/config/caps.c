/* The fields of an entry of actions.subject_caps. PostgreSQL applies them (actions_capped()). */
#include "rows.h"

#define RECORD struct rcpt_config_subject_cap
static const cyaml_strval_t units[] = {{"day", RCPT_CAP_DAY}, {"week", RCPT_CAP_WEEK}};
static const struct rcpt_config_row rows[] = {
    INTEGER("max", max, REQUIRED, NULL, 1, 1000000, "calls that reach the subject"),
    CHOICE("per", per, REQUIRED, NULL, units,
           "day or week of the subject's zone; a week begins on Monday"),
};

const struct rcpt_config_table rcpt_config_subject_cap_record = RECORD_OF(rows);
