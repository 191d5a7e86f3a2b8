/* Counts and keys as parameters of the statements in sql/lane, whose comments explain each. Called
 * by flights.c.
 */
#include "encode_counts.h"

#define MINUTE_US INT64_C(60000000)

/* An array with an element for each of `count` items; `put` writes that of `item`. */
#define ARRAY(begin, count, list, put)                                                             \
    do {                                                                                           \
        begin(encoder, (count));                                                                   \
        for (uint32_t index = 0; index < (count); index++) {                                       \
            __typeof__(&(list)[0]) item = &(list)[index];                                          \
            put;                                                                                   \
        }                                                                                          \
    } while (0)

static void put_text(struct rcpt_pg_encoder *encoder, struct rcpt_text text)
{
    rcpt_pg_put_bytes(encoder, text.at, text.size);
}

/* ---- cells ---- */

/* The cells of the rules come first, by kind. Cells of the plain funnel follow: they have neither
 * time nor key. */
struct cells {
    const struct rcpt_tally_cell *of_rules;
    const struct rcpt_cell *plain;
    uint32_t rules_count, plain_count;
};

#define CELLS(begin, put_cell, put_plain)                                                          \
    do {                                                                                           \
        begin(encoder, cells->rules_count + cells->plain_count);                                   \
        for (uint32_t index = 0; index < cells->rules_count; index++) {                            \
            const struct rcpt_tally_cell *item = &cells->of_rules[index];                          \
            put_cell;                                                                              \
        }                                                                                          \
        for (uint32_t index = 0; index < cells->plain_count; index++) {                            \
            const struct rcpt_cell *item = &cells->plain[index];                                   \
            put_plain;                                                                             \
        }                                                                                          \
    } while (0)

/* Adds the kinds, each with the range of its cells. */
static void add_kinds(struct rcpt_pg_encoder *encoder, const struct rcpt_rules *rules,
                      const struct cells *cells)
{
    enum rcpt_count_of kinds[RCPT_COUNT__COUNT + 1];
    int32_t firsts[RCPT_COUNT__COUNT + 1], lasts[RCPT_COUNT__COUNT + 1];
    uint32_t count = 0;
    for (enum rcpt_count_of kind = RCPT_COUNT_FUNNEL; kind < RCPT_COUNT__COUNT; kind++) {
        struct rcpt_tally_range range = rcpt_rules_range(rules, kind);
        if (range.end == 0)
            continue;
        kinds[count] = kind;
        firsts[count] = (int32_t)range.first + 1;
        lasts[count++] = (int32_t)range.end;
    }
    if (cells->plain_count > 0) {
        kinds[count] = RCPT_COUNT_FUNNEL;
        firsts[count] = (int32_t)cells->rules_count + 1;
        lasts[count++] = (int32_t)(cells->rules_count + cells->plain_count);
    }
    ARRAY(rcpt_pg_begin_text_array, count, kinds,
          put_text(encoder, rcpt_text_of(rcpt_rules_kind(rules, *item))));
    rcpt_pg_add_int4s(encoder, firsts, count);
    rcpt_pg_add_int4s(encoder, lasts, count);
}

static void add_moments(struct rcpt_pg_encoder *encoder, const struct cells *cells)
{
    uint8_t *place = rcpt_pg_add_timestamp_array(encoder, cells->rules_count);
    for (uint32_t index = 0; index < cells->rules_count; index++) {
        uint32_t minute = cells->of_rules[index].place.minute;
        place = minute == RCPT_TALLY_NO_TIME
                    ? rcpt_pg_write_minus_infinity(place)
                    : rcpt_pg_write_timestamp(place, rcpt_tally_since_1970(minute) * MINUTE_US);
    }
    rcpt_pg_end_array(encoder, place);
}

static void add_cells(struct rcpt_pg_encoder *encoder, const struct rcpt_count *counted,
                      const struct cells *cells)
{
    CELLS(rcpt_pg_begin_text_array, put_text(encoder, item->place.campaign->text),
          put_text(encoder, rcpt_count_campaign(counted, item->campaign)));
    add_moments(encoder, cells);
    ARRAY(rcpt_pg_begin_text_array, cells->rules_count, cells->of_rules,
          put_text(encoder, item->place.key->text));
    CELLS(rcpt_pg_begin_int2_array, rcpt_pg_put_int2(encoder, item->place.status),
          rcpt_pg_put_int2(encoder, item->code));
    CELLS(rcpt_pg_begin_int8_array, rcpt_pg_put_int8(encoder, item->messages),
          rcpt_pg_put_int8(encoder, item->messages));
    CELLS(rcpt_pg_begin_int8_array, rcpt_pg_put_int8(encoder, item->events),
          rcpt_pg_put_int8(encoder, item->events));
}

/* With the series, all of the funnel's cells come from the rules. Without it, the rules only
 * subtract the statuses and flags of copies. */
bool rcpt_encode_counters(struct rcpt_pg_encoder *encoder, const struct rcpt_count *counted,
                          const struct rcpt_rules *rules)
{
    struct cells cells;
    cells.of_rules = rcpt_rules_cells(rules, &cells.rules_count);
    cells.plain = rcpt_count_cells(counted, &cells.plain_count);
    if (rcpt_rules_count_funnel(rules))
        cells.plain_count = 0;
    rcpt_pg_encoder_reset(encoder);
    if (cells.rules_count + cells.plain_count == 0)
        return false;
    add_kinds(encoder, rules, &cells);
    add_cells(encoder, counted, &cells);
    return true;
}

/* ---- groups ---- */

/* The lists of all groups, one behind the other. */
struct members {
    const struct rcpt_rules_member *lists[RCPT_RULES_GROUPS];
    uint32_t counts[RCPT_RULES_GROUPS];
    uint32_t count;
};

#define MEMBERS(begin, put)                                                                        \
    do {                                                                                           \
        begin(encoder, members->count);                                                            \
        for (size_t group = 0; group < RCPT_RULES_GROUPS; group++)                                 \
            for (uint32_t index = 0; index < members->counts[group]; index++) {                    \
                const struct rcpt_rules_member *item = &members->lists[group][index];              \
                put;                                                                               \
            }                                                                                      \
    } while (0)

static void add_groups(struct rcpt_pg_encoder *encoder, const struct rcpt_rules *rules,
                       const struct members *members)
{
    size_t used = 0;
    int32_t firsts[RCPT_RULES_GROUPS], lasts[RCPT_RULES_GROUPS], before = 0;
    const char *kinds[RCPT_RULES_GROUPS];
    for (size_t group = 0; group < RCPT_RULES_GROUPS; group++) {
        if (members->counts[group] == 0)
            continue;
        kinds[used] = rcpt_rules_group(rules, group);
        firsts[used] = before + 1;
        lasts[used++] = before += (int32_t)members->counts[group];
    }
    ARRAY(rcpt_pg_begin_text_array, used, kinds, put_text(encoder, rcpt_text_of(*item)));
    rcpt_pg_add_int4s(encoder, firsts, used);
    rcpt_pg_add_int4s(encoder, lasts, used);
}

static void add_members(struct rcpt_pg_encoder *encoder, const struct members *members)
{
    MEMBERS(rcpt_pg_begin_text_array, put_text(encoder, item->campaign));
    MEMBERS(rcpt_pg_begin_text_array, put_text(encoder, item->value));
    MEMBERS(rcpt_pg_begin_int2_array, rcpt_pg_put_int2(encoder, item->old));
    MEMBERS(rcpt_pg_begin_int2_array, rcpt_pg_put_int2(encoder, item->new));
    MEMBERS(rcpt_pg_begin_int4_array, rcpt_pg_put_int4(encoder, (int32_t)item->gained));
}

bool rcpt_encode_members(struct rcpt_pg_encoder *encoder, const struct rcpt_rules *rules)
{
    struct members members = {.count = 0};
    rcpt_pg_encoder_reset(encoder);
    for (size_t group = 0; group < RCPT_RULES_GROUPS; group++) {
        members.lists[group] = rcpt_rules_members(rules, group, &members.counts[group]);
        members.count += members.counts[group];
    }
    if (members.count == 0)
        return false;
    add_groups(encoder, rules, &members);
    add_members(encoder, &members);
    return true;
}

/* ---- folds ---- */

static void put_columns(struct rcpt_pg_encoder *encoder, struct rcpt_text columns)
{
    if (columns.size == 0)
        rcpt_pg_put_null(encoder);
    else
        put_text(encoder, columns);
}

static void put_link(struct rcpt_pg_encoder *encoder, const char *link)
{
    if (link == NULL)
        rcpt_pg_put_null(encoder);
    else
        put_text(encoder, rcpt_text_of(link));
}

static void add_transitions(struct rcpt_pg_encoder *encoder, const struct rcpt_rules_fold *folds,
                            uint32_t count)
{
    ARRAY(rcpt_pg_begin_int2_array, count, folds, rcpt_pg_put_int2(encoder, item->old));
    ARRAY(rcpt_pg_begin_int2_array, count, folds, rcpt_pg_put_int2(encoder, item->new));
    ARRAY(rcpt_pg_begin_int4_array, count, folds, rcpt_pg_put_int4(encoder, (int32_t)item->gained));
    ARRAY(rcpt_pg_begin_int8_array, count, folds, rcpt_pg_put_int8(encoder, item->messages));
}

/* Adds an empty array if none of them has a text. */
static void add_optional(struct rcpt_pg_encoder *encoder, const struct rcpt_rules_fold *folds,
                         uint32_t count)
{
    uint32_t described = 0, linked = 0;
    for (uint32_t index = 0; index < count; index++) {
        described = folds[index].columns.size > 0 ? count : described;
        linked = folds[index].link != NULL ? count : linked;
    }
    ARRAY(rcpt_pg_begin_text_array, described, folds, put_columns(encoder, item->columns));
    ARRAY(rcpt_pg_begin_text_array, linked, folds, put_link(encoder, item->link));
}

bool rcpt_encode_folds(struct rcpt_pg_encoder *encoder, const struct rcpt_rules *rules)
{
    uint32_t count;
    const struct rcpt_rules_fold *folds = rcpt_rules_folds(rules, &count);
    rcpt_pg_encoder_reset(encoder);
    if (count == 0)
        return false;
    ARRAY(rcpt_pg_begin_text_array, count, folds, put_text(encoder, item->org));
    ARRAY(rcpt_pg_begin_text_array, count, folds, put_text(encoder, item->campaign));
    add_transitions(encoder, folds, count);
    add_optional(encoder, folds, count);
    return true;
}

/* ---- keys ---- */

/* The order is that in which all transactions insert keys, so none waits for another in a circle.
 * */
static void add_keys(struct rcpt_pg_encoder *encoder, const struct rcpt_key *keys, uint32_t count)
{
    ARRAY(rcpt_pg_begin_int8_array, count, keys, rcpt_pg_put_int8(encoder, item->message));
    ARRAY(rcpt_pg_begin_int8_array, count, keys, rcpt_pg_put_int8(encoder, item->event));
    ARRAY(rcpt_pg_begin_timestamp_array, count, keys, rcpt_pg_put_timestamp(encoder, item->at_us));
}

bool rcpt_encode_new_keys(struct rcpt_pg_encoder *encoder, const struct rcpt_keys *keys,
                          const char *window)
{
    uint32_t count;
    const struct rcpt_key *list = rcpt_keys_list(keys, &count);
    rcpt_pg_encoder_reset(encoder);
    if (count == 0)
        return false;
    add_keys(encoder, list, count);
    rcpt_pg_add_text(encoder, window);
    return true;
}

bool rcpt_encode_undone_keys(struct rcpt_pg_encoder *encoder, struct rcpt_keys *keys)
{
    uint32_t count;
    const struct rcpt_key *undone = rcpt_keys_undone(keys, &count);
    rcpt_pg_encoder_reset(encoder);
    if (count == 0)
        return false;
    add_keys(encoder, undone, count);
    return true;
}

/* ---- suppression ---- */

bool rcpt_encode_suppressions(struct rcpt_pg_encoder *encoder, const struct rcpt_rules *rules)
{
    uint32_t count;
    const struct rcpt_rules_suppression *list = rcpt_rules_suppressions(rules, &count);
    rcpt_pg_encoder_reset(encoder);
    if (count == 0)
        return false;
    ARRAY(rcpt_pg_begin_text_array, count, list, put_text(encoder, item->id));
    ARRAY(rcpt_pg_begin_text_array, count, list, put_text(encoder, item->org));
    ARRAY(rcpt_pg_begin_text_array, count, list, put_text(encoder, item->person));
    ARRAY(rcpt_pg_begin_text_array, count, list, put_text(encoder, rcpt_text_of(item->class)));
    ARRAY(rcpt_pg_begin_timestamp_array, count, list, rcpt_pg_put_timestamp(encoder, item->at_us));
    ARRAY(rcpt_pg_begin_int2_array, count, list, rcpt_pg_put_int2(encoder, item->soft_count));
    ARRAY(rcpt_pg_begin_int8_array, count, list, rcpt_pg_put_int8(encoder, item->within_ms));
    return true;
}
