/* Counts and keys as parameters of the statements in sql/lane, whose comments say what each is.
 * Called by flights.c.
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

/* What both statements of cells end with. */
static void add_cells(struct rcpt_pg_encoder *encoder, const struct rcpt_tally_cell *cells,
                      uint32_t count)
{
    ARRAY(rcpt_pg_begin_int2_array, count, cells, rcpt_pg_put_int2(encoder, item->place.status));
    ARRAY(rcpt_pg_begin_int8_array, count, cells, rcpt_pg_put_int8(encoder, item->messages));
    ARRAY(rcpt_pg_begin_int8_array, count, cells, rcpt_pg_put_int8(encoder, item->events));
}

/* The kinds that have cells, in the order of their cells. */
static uint32_t list_kinds(const struct rcpt_rules *rules,
                           enum rcpt_count_of kinds[static RCPT_COUNT__COUNT])
{
    uint32_t count = 0;
    for (enum rcpt_count_of kind = RCPT_COUNT_FUNNEL + 1; kind < RCPT_COUNT__COUNT; kind++)
        if (rcpt_rules_range(rules, kind).end > 0)
            kinds[count++] = kind;
    return count;
}

/* The funnel's cells come first, and go elsewhere. */
static void add_kinds(struct rcpt_pg_encoder *encoder, const struct rcpt_rules *rules)
{
    enum rcpt_count_of kinds[RCPT_COUNT__COUNT];
    uint32_t count = list_kinds(rules, kinds);
    int32_t before = (int32_t)rcpt_rules_range(rules, RCPT_COUNT_FUNNEL).end;
    ARRAY(rcpt_pg_begin_text_array, count, kinds,
          put_text(encoder, rcpt_text_of(rcpt_rules_kind(rules, *item))));
    ARRAY(rcpt_pg_begin_int4_array, count, kinds,
          rcpt_pg_put_int4(encoder, (int32_t)rcpt_rules_range(rules, *item).first - before + 1));
    ARRAY(rcpt_pg_begin_int4_array, count, kinds,
          rcpt_pg_put_int4(encoder, (int32_t)rcpt_rules_range(rules, *item).end - before));
}

static void add_moments(struct rcpt_pg_encoder *encoder, const struct rcpt_tally_cell *cells,
                        uint32_t count)
{
    uint8_t *place = rcpt_pg_add_timestamp_array(encoder, count);
    for (uint32_t index = 0; index < count; index++) {
        uint32_t minute = cells[index].place.minute;
        place = minute == RCPT_TALLY_NO_TIME
                    ? rcpt_pg_write_minus_infinity(place)
                    : rcpt_pg_write_timestamp(place, rcpt_tally_since_1970(minute) * MINUTE_US);
    }
    rcpt_pg_end_array(encoder, place);
}

bool rcpt_encode_tally(struct rcpt_pg_encoder *encoder, const struct rcpt_rules *rules)
{
    uint32_t count;
    const struct rcpt_tally_cell *cells = rcpt_rules_cells(rules, &count);
    uint32_t before = rcpt_rules_range(rules, RCPT_COUNT_FUNNEL).end;
    rcpt_pg_encoder_reset(encoder);
    if (count == before)
        return false;
    cells += before;
    count -= before;
    add_kinds(encoder, rules);
    ARRAY(rcpt_pg_begin_text_array, count, cells, put_text(encoder, item->place.campaign->text));
    add_moments(encoder, cells, count);
    ARRAY(rcpt_pg_begin_text_array, count, cells, put_text(encoder, item->place.key->text));
    add_cells(encoder, cells, count);
    return true;
}

bool rcpt_encode_funnel(struct rcpt_pg_encoder *encoder, const struct rcpt_rules *rules)
{
    uint32_t all;
    const struct rcpt_tally_cell *cells = rcpt_rules_cells(rules, &all);
    uint32_t count = rcpt_rules_range(rules, RCPT_COUNT_FUNNEL).end;
    uint32_t timed = rcpt_rules_count_funnel(rules) ? count : 0;
    rcpt_pg_encoder_reset(encoder);
    if (count == 0)
        return false;
    ARRAY(rcpt_pg_begin_text_array, count, cells, put_text(encoder, item->place.campaign->text));
    ARRAY(rcpt_pg_begin_int8_array, timed, cells,
          rcpt_pg_put_int8(encoder, rcpt_tally_since_1970(item->place.minute)));
    add_cells(encoder, cells, count);
    return true;
}

/* ---- times ---- */

/* A message without one of the two times is in no bucket of that kind. */
static void put_bucket(struct rcpt_pg_encoder *encoder, int16_t bucket)
{
    if (bucket == RCPT_NO_BUCKET)
        rcpt_pg_put_null(encoder);
    else
        rcpt_pg_put_int2(encoder, bucket);
}

/* Of those that had a place before. */
static void add_left(struct rcpt_pg_encoder *encoder, const struct rcpt_rules_time *times,
                     uint32_t count)
{
    size_t left = 0;
    for (uint32_t index = 0; index < count; index++)
        left += times[index].left.at != NULL;
    rcpt_pg_begin_text_array(encoder, left);
    for (uint32_t index = 0; index < count; index++)
        if (times[index].left.at != NULL)
            put_text(encoder, times[index].campaign);
    rcpt_pg_begin_text_array(encoder, left);
    for (uint32_t index = 0; index < count; index++)
        if (times[index].left.at != NULL)
            put_text(encoder, times[index].left);
}

bool rcpt_encode_times(struct rcpt_pg_encoder *encoder, const struct rcpt_rules *rules)
{
    uint32_t count;
    const struct rcpt_rules_time *times = rcpt_rules_times(rules, &count);
    rcpt_pg_encoder_reset(encoder);
    if (count == 0)
        return false;
    ARRAY(rcpt_pg_begin_text_array, count, times, put_text(encoder, item->campaign));
    ARRAY(rcpt_pg_begin_text_array, count, times, put_text(encoder, item->gateway));
    ARRAY(rcpt_pg_begin_int2_array, count, times, put_bucket(encoder, item->deliver));
    ARRAY(rcpt_pg_begin_int2_array, count, times, put_bucket(encoder, item->open));
    add_left(encoder, times, count);
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

/* Empty where none of them has any. */
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
