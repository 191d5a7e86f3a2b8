/* A rule: the fields of a receipt and of a message's row that it reads, and the counts that it
 * adds. Private to this folder.
 *
 * A rule is one file with one struct rcpt_rule, which rules.c lists. It knows no other rule.
 * rules.c prepares the values that several rules ask of a row or of a receipt; rule.c has the
 * functions that they share.
 */
#ifndef RECEIPTD_CORE_RULES_RULE_H
#define RECEIPTD_CORE_RULES_RULE_H

#include "../paths.h"
#include "receiptd/base/table.h"
#include "receiptd/core/origin.h"
#include "receiptd/core/rules/rules.h"

#define RCPT_RULE_MOST_COLUMNS 13u

/* A growing array in the arena of a batch. */
struct rcpt_rule_list {
    void *items;
    uint32_t count, capacity;
};

/* The state that rules work on. The last members belong to one rule each. */
struct rcpt_rule_state {
    struct rcpt_rules_settings settings;
    struct rcpt_paths paths;
    struct rcpt_words *words;
    struct rcpt_tally *tally;
    struct rcpt_arena arena; /* of a batch, as all that follows */
    const struct rcpt_batch *batch;
    int64_t now_us;
    uint32_t last_minute, hour; /* an hour ahead of now; begin of now's hour; as cells have them */
    const struct rcpt_word *none; /* '' */
    const struct rcpt_lane_names *names;
    const struct rcpt_word *words_of[RCPT_FACET__COUNT][UINT8_MAX + 1]; /* NULL: not asked for */
    int16_t sent, delivered;      /* codes of SENT and DELIVERED */
    int16_t clicked, bot_clicked; /* of CLICKED and BOT_CLICK; RCPT_LADDER_NO_STATUS: none */

    const struct rcpt_word *dimension_keys[RCPT_RULES_DIMENSIONS]; /* of the row */
    /* Each rule's own rows, and its results. */
    struct rcpt_rule_list group_rows[RCPT_RULES_GROUPS], members[RCPT_RULES_GROUPS];
    struct rcpt_rule_list fold_rows, folds, change_rows, changes, suppressions;
    struct rcpt_table fold_table;
};

/* A row, with the values that several rules ask of it. */
struct rcpt_rule_row {
    const struct rcpt_rules_row *given;
    const struct rcpt_batch_message *message;
    const struct rcpt_text *columns; /* the rule's own */
    const struct rcpt_step *steps;   /* what the change does to counters */
    uint32_t step_count;
    const struct rcpt_word *campaign;
    bool is_transition; /* another status, or a flag is gained */
};

/* A receipt, with the values that several rules ask of it. */
struct rcpt_rule_receipt {
    const struct rcpt_batch_event *raw;
    const struct rcpt_word *gateway; /* '' where it names none */
};

struct rcpt_rule_columns {
    struct rcpt_rules_column list[RCPT_RULE_MOST_COLUMNS];
    size_t count;
};

/* A callback that is NULL has nothing to do. */
struct rcpt_rule {
    bool (*is_on)(const struct rcpt_rules_settings *settings);
    void (*want)(const struct rcpt_rules_settings *settings, struct rcpt_rule_columns *columns);
    void (*row)(struct rcpt_rule_state *state, const struct rcpt_rule_row *row);
    /* Called after a row for each of its receipts: `receipt` for one that counts, `echo` for one
     * that came before. */
    void (*receipt)(struct rcpt_rule_state *state, const struct rcpt_rule_row *row,
                    const struct rcpt_rule_receipt *receipt);
    void (*echo)(struct rcpt_rule_state *state, const struct rcpt_rule_row *row,
                 const struct rcpt_rule_receipt *receipt);
    void (*missed)(struct rcpt_rule_state *state, const struct rcpt_rule_receipt *receipt);
    void (*finish)(struct rcpt_rule_state *state); /* words have ranks */
};

extern const struct rcpt_rule rcpt_rule_dedup, rcpt_rule_dimensions, rcpt_rule_folds,
    rcpt_rule_funnel, rcpt_rule_gateways, rcpt_rule_groups, rcpt_rule_reasons, rcpt_rule_series,
    rcpt_rule_stream, rcpt_rule_times, rcpt_rule_links, rcpt_rule_costs, rcpt_rule_suppression;

/* ---- rule.c ---- */

/* Asks for an extra column, written as `before`, the inbox's column as m."name", `behind`. `same`:
 * also for rows that did not change. */
void rcpt_rule_want(struct rcpt_rule_columns *columns, const char *before, const char *column,
                    const char *behind, bool same);
/* The same for an expression of any form over the alias m, of changed rows; takes it. */
void rcpt_rule_want_text(struct rcpt_rule_columns *columns, char *text_taken);
/* The name of a gateway or reason by its number in events. */
const struct rcpt_word *rcpt_rule_name(struct rcpt_rule_state *state, enum rcpt_facet facet,
                                       uint8_t number);
/* The fields of the receipt's JSON text; it is read only if it may hold `key` (in quotes). */
struct rcpt_origin rcpt_rule_origin(struct rcpt_rule_state *state,
                                    const struct rcpt_batch_event *raw, const char *key);
/* The minute in which something of this time counts: an hour ahead of now at most. */
uint32_t rcpt_rule_minute(const struct rcpt_rule_state *state, int64_t at_us);
/* Adds to a cell for each step of the row's change, as messages. `place` names everything but the
 * status. */
void rcpt_rule_add_steps(struct rcpt_rule_state *state, struct rcpt_tally_place place,
                         const struct rcpt_rule_row *row);
/* Adds to a cell for each code that the receipt names: its status, and its flags and opens or
 * clicks of machines. */
void rcpt_rule_add_codes(struct rcpt_rule_state *state, struct rcpt_tally_place place,
                         const struct rcpt_batch_event *raw, int64_t events);
/* Room for one more item, zeroed. */
void *rcpt_rule_append(struct rcpt_rule_state *state, struct rcpt_rule_list *list, size_t size);
/* As qsort(). Rows mostly come in the order of messages, so sorting a sorted list costs little. */
void rcpt_rule_sort(struct rcpt_rule_list *list, size_t size,
                    int (*compare)(const void *left, const void *right));
/* -1, 0, 1: for sorting. */
static inline int rcpt_rule_order(int64_t left, int64_t right)
{
    return (left > right) - (left < right);
}

#endif
