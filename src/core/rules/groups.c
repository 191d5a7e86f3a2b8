/* Rule: messages that count as one (counters.groups): those of a customer in a campaign, and the
 * attempts at one logical message. Members of a group lie in several lanes, so this rule only lists
 * members that changed; groups_fold() does the rest. PostgreSQL makes the keys of groups, since
 * they are hashes with a salt that stays there.
 */
#include <string.h>

#include "rule.h"

struct member {
    struct rcpt_rules_member result;
    uint32_t message; /* of the batch, which is sorted by id */
};

static bool is_on(const struct rcpt_rules_settings *settings)
{
    return settings->group_count > 0;
}

static void want(const struct rcpt_rules_settings *settings, struct rcpt_rule_columns *columns)
{
    for (size_t index = 0; index < settings->group_count; index++)
        rcpt_rule_want(columns, "", settings->groups[index].column, "::text COLLATE \"C\"", false);
}

/* An attempt without a value is the first of its group, and the others name its id. A message
 * without a customer is in no group. */
static struct rcpt_text value_of(const struct rcpt_rule_state *state,
                                 const struct rcpt_rule_row *row, size_t group)
{
    bool is_logical = strcmp(state->settings.groups[group].kind, "logical") == 0;
    if (row->columns[group].size > 0 || !is_logical)
        return row->columns[group];
    return (struct rcpt_text){row->message->id, row->message->id_size};
}

static void on_row(struct rcpt_rule_state *state, const struct rcpt_rule_row *row)
{
    for (size_t group = 0; row->is_transition && group < state->settings.group_count; group++) {
        struct rcpt_text value = value_of(state, row, group);
        if (value.size == 0)
            continue;
        struct member *member = rcpt_rule_append(state, &state->group_rows[group], sizeof(*member));
        member->result = (struct rcpt_rules_member){.campaign = row->campaign->text,
                                                    .value = rcpt_text_copy(&state->arena, value),
                                                    .old = row->given->was,
                                                    .new = row->given->now,
                                                    .gained = row->given->gained};
        member->message = row->given->message;
    }
}

/* Two rows of one id differ in what follows, or are the same. */
static int by_member(const void *left, const void *right)
{
    const struct member *a = left, *b = right;
    int sign = rcpt_rule_order(a->message, b->message);
    sign = sign != 0 ? sign : rcpt_text_compare(a->result.campaign, b->result.campaign);
    sign = sign != 0 ? sign : rcpt_text_compare(a->result.value, b->result.value);
    sign = sign != 0 ? sign : rcpt_rule_order(a->result.old, b->result.old);
    sign = sign != 0 ? sign : rcpt_rule_order(a->result.new, b->result.new);
    return sign != 0 ? sign : rcpt_rule_order(a->result.gained, b->result.gained);
}

static void on_finish(struct rcpt_rule_state *state)
{
    for (size_t group = 0; group < state->settings.group_count; group++) {
        struct rcpt_rule_list *rows = &state->group_rows[group];
        struct member *members = rows->items;
        rcpt_rule_sort(rows, sizeof(*members), by_member);
        for (uint32_t index = 0; index < rows->count; index++)
            *(struct rcpt_rules_member *)rcpt_rule_append(state, &state->members[group],
                                                          sizeof(struct rcpt_rules_member)) =
                members[index].result;
    }
}

const struct rcpt_rule rcpt_rule_groups = {
    .is_on = is_on, .want = want, .row = on_row, .finish = on_finish};
