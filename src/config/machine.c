/* The fields of an entry of machine.rules, and what a rule needs of the ladder. src/core/machine.c applies the rules. */
#include "config.h"

#include <sysexits.h>

#include "rows.h"

#define FIELD(member) MEMBER(struct rcpt_machine_rule, member)

static const cyaml_strval_t kinds[] = {
    {"open", RCPT_MACHINE_OPEN},
    {"click", RCPT_MACHINE_CLICK},
};
static const cyaml_strval_t policies[] = {
    {"flag", RCPT_MACHINE_FLAG},
    {"count", RCPT_MACHINE_COUNT},
    {"ignore", RCPT_MACHINE_IGNORE},
};

static const struct rcpt_config_row rows[] = {
    {"kind", RCPT_CONFIG_CHOICE, REQUIRED, FIELD(kind), CHOICES(kinds),
     .doc = "which receipts: `open` or `click`"},
    {"account", RCPT_CONFIG_TEXT, NULLABLE, FIELD(account), .min = 1, .max = 255,
     .doc = "of receipts whose `gateway` is this; not set: of all"},
    {"org_id", RCPT_CONFIG_TEXT, NULLABLE, FIELD(org_id), .min = 1, .max = 255,
     .doc = "of receipts that name this organisation; not set: of all"},
    {"campaign", RCPT_CONFIG_TEXT, NULLABLE, FIELD(campaign), .min = 1, .max = 255,
     .doc = "of receipts that name this `campaign_id`; not set: of all"},
    {"policy", RCPT_CONFIG_CHOICE, REQUIRED, FIELD(policy), CHOICES(policies),
     .doc = "what they count as: `flag`, `count` or `ignore`"},
};
_Static_assert(COUNT_OF(rows) <= RCPT_CONFIG_MAX_ROWS, "arrays with one entry per row");

const struct rcpt_config_table rcpt_config_machine_record = {rows, COUNT_OF(rows),
                                                             sizeof(struct rcpt_machine_rule)};

/* A rule that can never apply is a mistake; the defaults are harmless in any ladder. */
bool rcpt_config_check_machine(const struct rcpt_config *config, struct rcpt_error *error)
{
    static const char *const parts[] = {"OPENED and the flag MACHINE_OPEN",
                                        "CLICKED and the flag BOT_CLICK"};
    struct rcpt_machine_marks marks;
    rcpt_machine_find_marks(config->ladder, &marks);
    for (size_t index = 0; index < config->machine.rule_count; index++) {
        enum rcpt_machine_kind kind = config->machine.rules[index].kind;
        if (marks.masks[kind] != 0)
            continue;
        rcpt_error_fatal(error, EX_CONFIG,
                         "machine.rules: entry %zu is about `%s`, but the ladder "
                         "does not have %s",
                         index + 1, rcpt_machine_kind_name(kind), parts[kind]);
        rcpt_error_hint(error, "add them to the ladder, or take the entry away");
        return false;
    }
    return true;
}
