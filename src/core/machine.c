/* The policies for receipts of machines. An event is a set of names, its status and its flags:
 * OPENED with MACHINE_OPEN gives the same result as MACHINE_OPEN alone. Called by record_event.c
 * for the few events that have such a flag, and by the funnel. */
#include "receiptd/core/machine.h"

#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *flag, *status;
} kinds[RCPT_MACHINE_KIND__COUNT] = {
    [RCPT_MACHINE_OPEN] = {"open", "MACHINE_OPEN", "OPENED"},
    [RCPT_MACHINE_CLICK] = {"click", "BOT_CLICK", "CLICKED"},
};

const char *rcpt_machine_kind_name(enum rcpt_machine_kind kind)
{
    return kinds[kind].name;
}

const char *rcpt_machine_policy_name(enum rcpt_machine_policy policy)
{
    static const char *const names[RCPT_MACHINE_POLICY__COUNT] = {
        [RCPT_MACHINE_FLAG] = "flag",
        [RCPT_MACHINE_COUNT] = "count",
        [RCPT_MACHINE_IGNORE] = "ignore",
    };
    return names[policy];
}

static char *copy_name(const char *name)
{
    return name != NULL ? rcpt_strdup(name) : NULL;
}

/* Allocates one more than there are, so that a count of 0 is no special case. */
void rcpt_machine_rules_copy(const struct rcpt_machine_rules *rules,
                             struct rcpt_machine_rules *copy)
{
    *copy = *rules;
    copy->rules = rcpt_calloc(rules->rule_count + 1, sizeof(*copy->rules));
    for (size_t index = 0; index < rules->rule_count; index++) {
        const struct rcpt_machine_rule *rule = &rules->rules[index];
        copy->rules[index] = *rule;
        copy->rules[index].account = copy_name(rule->account);
        copy->rules[index].org_id = copy_name(rule->org_id);
        copy->rules[index].campaign = copy_name(rule->campaign);
    }
}

void rcpt_machine_rules_free(struct rcpt_machine_rules *copy)
{
    for (size_t index = 0; index < copy->rule_count; index++) {
        free(copy->rules[index].account);
        free(copy->rules[index].org_id);
        free(copy->rules[index].campaign);
    }
    free(copy->rules);
}

static int find(const struct rcpt_ladder *ladder, const char *name)
{
    return rcpt_ladder_find_name(ladder, name, strlen(name), NULL, 0);
}

/* A ladder of the platform's own may use these names for something else: then there is no such
 * kind. */
void rcpt_machine_find_marks(const struct rcpt_ladder *ladder, struct rcpt_machine_marks *marks)
{
    for (int kind = 0; kind < RCPT_MACHINE_KIND__COUNT; kind++) {
        int flag = find(ladder, kinds[kind].flag), status = find(ladder, kinds[kind].status);
        marks->masks[kind] = 0;
        if (flag < 0 || status < 0 || rcpt_ladder_entry(ladder, (size_t)status)->is_flag)
            continue;
        const struct rcpt_ladder_entry *entry = rcpt_ladder_entry(ladder, (size_t)flag);
        marks->flags[kind] = flag;
        marks->statuses[kind] = status;
        marks->masks[kind] = entry->mask; /* of a status: 0 */
    }
}

static bool fits(const char *wanted, struct rcpt_text text)
{
    return wanted == NULL || rcpt_text_is(text, wanted);
}

enum rcpt_machine_policy rcpt_machine_policy_of(const struct rcpt_machine_rules *rules,
                                                enum rcpt_machine_kind kind,
                                                const struct rcpt_machine_origin *origin)
{
    if (rules == NULL)
        return RCPT_MACHINE_FLAG;
    for (size_t index = 0; index < rules->rule_count; index++) {
        const struct rcpt_machine_rule *rule = &rules->rules[index];
        if (rule->kind == kind && fits(rule->account, origin->account) &&
            fits(rule->org_id, origin->org_id) && fits(rule->campaign, origin->campaign))
            return rule->policy;
    }
    return kind == RCPT_MACHINE_OPEN ? rules->opens : rules->clicks;
}

bool rcpt_machine_is_always(const struct rcpt_machine_rules *rules, enum rcpt_machine_kind kind,
                            unsigned policies)
{
    enum rcpt_machine_policy rest = kind == RCPT_MACHINE_OPEN ? rules->opens : rules->clicks;
    bool always = (policies >> rest & 1) != 0;
    for (size_t index = 0; index < rules->rule_count; index++)
        if (rules->rules[index].kind == kind)
            always = always && (policies >> rules->rules[index].policy & 1) != 0;
    return always;
}

/* The status that a machine's event counts as, if it has no other; a click comes before an open.
 * Its kind is taken off; -1: there is none. */
static int take_status(const struct rcpt_machine_marks *marks, struct rcpt_machine_event *event)
{
    for (int kind = RCPT_MACHINE_KIND__COUNT - 1; kind >= 0; kind--)
        if ((event->kinds >> kind & 1) != 0) {
            event->kinds &= ~(1u << kind);
            return marks->statuses[kind];
        }
    return -1;
}

static int first_flag(const struct rcpt_ladder *ladder, uint32_t flags)
{
    return flags == 0 ? -1
                      : rcpt_ladder_find_code(
                            ladder, RCPT_LADDER_FIRST_FLAG_CODE + __builtin_ctz(flags), NULL, 0);
}

/* OPENED beside MACHINE_OPEN is the machine's, so it is removed first. The policy "count" adds it
 * again, also for an event with the flag alone. */
void rcpt_machine_apply(const struct rcpt_ladder *ladder, const struct rcpt_machine_marks *marks,
                        const enum rcpt_machine_policy policies[static RCPT_MACHINE_KIND__COUNT],
                        struct rcpt_machine_event *event)
{
    uint32_t named = event->flags;
    int status = rcpt_ladder_entry(ladder, (size_t)event->entry)->is_flag ? -1 : event->entry;
    event->kinds = 0;
    for (int kind = 0; kind < RCPT_MACHINE_KIND__COUNT; kind++) {
        if ((named & marks->masks[kind]) == 0)
            continue;
        if (status == marks->statuses[kind])
            status = -1;
        if (policies[kind] == RCPT_MACHINE_COUNT)
            event->kinds |= 1u << kind;
        if (policies[kind] == RCPT_MACHINE_IGNORE)
            event->flags &= ~marks->masks[kind];
    }
    status = status >= 0 ? status : take_status(marks, event);
    event->entry = status >= 0 ? status : first_flag(ladder, event->flags);
}
