/* The fields of an entry of machine.rules, its check against the ladder, and the file of
 * machine.networks. core/machine.c applies the rules; gateways/draft.c looks networks up. */
#include "receiptd/config/config.h"

#include <stdlib.h>
#include <sysexits.h>

#include "expand.h"
#include "rows.h"

static const cyaml_strval_t kinds[] = {
    {"open", RCPT_MACHINE_OPEN},
    {"click", RCPT_MACHINE_CLICK},
};
static const cyaml_strval_t policies[] = {
    {"flag", RCPT_MACHINE_FLAG},
    {"count", RCPT_MACHINE_COUNT},
    {"ignore", RCPT_MACHINE_IGNORE},
};

#define RECORD struct rcpt_machine_rule
static const struct rcpt_config_row rows[] = {
    CHOICE("kind", kind, REQUIRED, NULL, kinds, "kind of receipt"),
    TEXT("account", account, NULLABLE, NULL, 1, 255, "receipts with this `gateway`; not set: all"),
    TEXT("org_id", org_id, NULLABLE, NULL, 1, 255, "receipts of this organisation; not set: all"),
    TEXT("campaign", campaign, NULLABLE, NULL, 1, 255,
         "receipts of this `campaign_id`; not set: all"),
    CHOICE("policy", policy, REQUIRED, NULL, policies, "what they count as"),
};

const struct rcpt_config_table rcpt_config_machine_record = RECORD_OF(rows);

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

/* The line is named by its number, so the hint says what belongs there. */
bool rcpt_config_read_networks(struct rcpt_config *config, const char *config_name,
                               struct rcpt_error *error)
{
    const char *path = config->machine_networks;
    char problem[160];
    struct rcpt_network_fault fault;
    if (path == NULL)
        return true;
    char *text = rcpt_config_read_list(path, config_name, problem);
    if (text == NULL)
        return rcpt_error_fatal(error, EX_CONFIG, "machine.networks: %s", problem);
    config->scanners = rcpt_network_set_parse(text, &fault);
    free(text);
    if (config->scanners != NULL)
        return true;
    rcpt_error_fatal(
        error, EX_CONFIG,
        "machine.networks: %.200s: line %u: \"%s\" is neither an address nor a network", path,
        fault.line, fault.value);
    rcpt_error_hint(error, "one a line, such as 192.0.2.0/24 or 2001:db8::/32; # begins a comment");
    return false;
}
