/* What the daemon does between the flights of a transaction (flights.h), in place of
 * src/postgres/flights.c. Called by connections.c.
 */
#include "flights.h"

#include <stdlib.h>
#include <string.h>

#include "oracle.h"
#include "postgres/decided.h"
#include "receiptd/core/batch_build.h"
#include "receiptd/core/batch_woken.h"

struct sim_sender {
    struct rcpt_count *count;
    struct rcpt_rules *rules;
    struct rcpt_keys *keys; /* NULL: copies are not looked for */
    struct rcpt_lane_names names;
    struct rcpt_decided decided;
    bool decides; /* `decided` is in use */
    struct rcpt_batch woken;
    bool has_woken;
};

/* ---- settings ---- */

static struct rcpt_rules_settings settings_of(const struct sim *sim)
{
    return (struct rcpt_rules_settings){
        .ladder = sim->traffic.ladder,
        .dimensions = {{"by_channel", "channel"}, {"by_region", "region"}},
        .dimension_count = sim->plan.dimensions,
        .groups = {{"customer", "customer"}, {"logical", "attempt_of"}},
        .group_count = sim->plan.groups,
        .dedup = sim->plan.dedup,
        .series = sim->plan.series,
        .reasons = sim->plan.reasons,
        .gateways = sim->plan.gateways,
        .times = sim->plan.times,
        .links = sim->plan.links,
        .costs = sim->plan.costs,
        .folds = sim->plan.folds,
        .fold_columns = sim->plan.folds,
        .stream = sim->plan.folds,
        .stream_columns = {"fold"},
        .stream_column_count = 1,
    };
}

struct sim_sender *sim_sender_new(const struct sim *sim)
{
    struct sim_sender *sender = rcpt_calloc(1, sizeof(*sender));
    const struct rcpt_rules_settings settings = settings_of(sim);
    sender->count = rcpt_count_new();
    sender->rules = rcpt_rules_new(&settings);
    sender->keys = settings.dedup ? rcpt_keys_new() : NULL;
    return sender;
}

/* The transaction is over, or has begun anew. */
static void forget(struct sim_sender *sender)
{
    if (sender->decides)
        rcpt_decided_end(&sender->decided);
    if (sender->has_woken)
        rcpt_batch_fini(&sender->woken);
    sender->decides = sender->has_woken = false;
}

void sim_sender_free(struct sim_sender *sender)
{
    if (sender == NULL)
        return;
    forget(sender);
    rcpt_keys_free(sender->keys);
    rcpt_rules_free(sender->rules);
    rcpt_count_free(sender->count);
    free(sender);
}

/* ---- the answer of decide, for src/postgres/decided.c ---- */

struct rcpt_pg_rows {
    const struct sim *sim;
    const struct sim_request *request;
    const struct rcpt_rules *rules; /* whose columns come last */
};

/* Texts of a row: a number in each of them, so that cells can be told apart. */
static const char *text_of(const char *letter, uint32_t number)
{
    static const char *const texts[][7] = {{"", "c0", "c1", "c2", "c3", "c4", "c5"},
                                           {"", "d1", "d2", "d3", "d4", "d5", "d6"},
                                           {"", "k1", "k2", "k3", "k4", "k5", "k6"},
                                           {"", "f1", "f2", "f3", "f4", "f5", "f6"}};
    for (size_t at = 0; at < sizeof(texts) / sizeof(texts[0]); at++)
        if (texts[at][1][0] == letter[0])
            return texts[at][number];
    return NULL;
}

size_t rcpt_pg_rows_count(const struct rcpt_pg_rows *rows)
{
    return rows->request->line_count;
}

int64_t rcpt_pg_rows_int(const struct rcpt_pg_rows *rows, size_t row, int column)
{
    const struct sim_line *line = &rows->request->lines[row];
    return column == 1 ? (int64_t)line->n : column == 2 ? line->status : (int64_t)line->flags;
}

/* By what the rules have asked for (rcpt_rules_columns). */
static const char *extra_text(const struct rcpt_pg_rows *rows, const struct sim_line *line,
                              size_t number)
{
    size_t count;
    const struct rcpt_rules_column *column = &rcpt_rules_columns(rows->rules, &count)[number];
    const uint32_t message = rows->request->folds[line->fold].message;
    const char *sql = column->changed;
    if (line->fate[0] != 'c' && strcmp(column->same, "NULL") == 0)
        return NULL;
    if (strstr(sql, "\"channel\"") != NULL)
        return text_of("d", sim_channel(message));
    if (strstr(sql, "\"region\"") != NULL)
        return text_of("d", sim_region(message));
    if (strstr(sql, "\"customer\"") != NULL)
        return text_of("k", sim_customer(message));
    if (strstr(sql, "\"attempt_of\"") != NULL)
        return text_of("k", sim_attempt_of(message));
    if (strstr(sql, "fold_columns(") != NULL || strstr(sql, "\"fold\"") != NULL)
        return text_of("f", sim_fold_columns(message));
    if (strstr(sql, "\"first_sent_at") != NULL)
        return line->deliver[0] != '\0' ? line->deliver : NULL;
    if (strstr(sql, "\"first_delivered_at") != NULL)
        return line->open[0] != '\0' ? line->open : NULL;
    if (strstr(sql, "\"first_gateway\"") != NULL)
        return line->gateway[0] != '\0' ? line->gateway : NULL;
    RCPT_ASSERT(strstr(sql, "\"prev_times\"") != NULL);
    return line->before[0] != '\0' ? line->before : NULL;
}

const char *rcpt_pg_rows_text(const struct rcpt_pg_rows *rows, size_t row, int column)
{
    enum { FATE, CAMPAIGN = 4, OWNER, ORG, MORE };
    const struct sim_line *line = &rows->request->lines[row];
    uint32_t message = rows->request->folds[line->fold].message;
    bool found = strchr("cst", line->fate[0]) != NULL;
    if (column == FATE)
        return line->fate;
    if (column == OWNER || !found)
        return NULL;
    if (column == CAMPAIGN)
        return text_of("c", rows->sim->traffic.messages[message].campaign + 1);
    if (column == ORG)
        return line->fate[0] == 'c' && rows->sim->plan.folds ? text_of("k", sim_org(message))
                                                             : NULL;
    return extra_text(rows, line, (size_t)(column - MORE));
}

/* ---- what is written, as cells ---- */

static uint8_t number_in(struct rcpt_text text)
{
    return text.size > 0 ? (uint8_t)(text.at[text.size - 1] - '0' + (text.at[0] == 'c')) : 0;
}

/* "g2/r1" is 0x21; a name alone is its number. */
static uint8_t key_number(struct rcpt_text key)
{
    size_t slash = rcpt_text_find(key, "/");
    if (slash == key.size)
        return number_in(key);
    return (uint8_t)(number_in(rcpt_text_part(key, 0, slash)) << 4 |
                     number_in(rcpt_text_part(key, slash + 1, key.size - slash - 1)));
}

static int16_t bucket_in(struct rcpt_text text)
{
    return text.size > 0 ? (int16_t)strtol(text.at, NULL, 10) : SIM_NO_BUCKET;
}

/* deliver/open/gateway */
static void read_place(struct rcpt_text place, struct sim_cell_key *key)
{
    size_t first = rcpt_text_find(place, "/");
    struct rcpt_text rest = rcpt_text_part(place, first + 1, place.size - first - 1);
    size_t second = rcpt_text_find(rest, "/");
    key->status = bucket_in(rcpt_text_part(place, 0, first));
    key->other = bucket_in(rcpt_text_part(rest, 0, second));
    key->key = number_in(rcpt_text_part(rest, second + 1, rest.size - second - 1));
}

static void add_rules_cells(struct sim_cells *cells, const struct rcpt_rules *rules)
{
    uint32_t count;
    const struct rcpt_tally_cell *list = rcpt_rules_cells(rules, &count);
    for (uint32_t at = 0; at < count; at++) {
        const struct rcpt_tally_place *place = &list[at].place;
        struct sim_cell_key key = {.kind = place->kind,
                                   .campaign = number_in(place->campaign->text),
                                   .status = place->status,
                                   .minute = place->minute};
        if (place->kind == RCPT_COUNT_TIME_PLACE)
            read_place(place->key->text, &key);
        else
            key.key = key_number(place->key->text);
        sim_cells_add(cells, key, list[at].messages, list[at].events);
    }
}

static void add_funnel(struct sim_cells *cells, const struct rcpt_count *counted)
{
    uint32_t count;
    const struct rcpt_cell *list = rcpt_count_cells(counted, &count);
    for (uint32_t at = 0; at < count; at++) {
        struct rcpt_text campaign = rcpt_count_campaign(counted, list[at].campaign);
        sim_cells_add(cells,
                      (struct sim_cell_key){.kind = RCPT_COUNT_FUNNEL,
                                            .campaign = number_in(campaign),
                                            .status = list[at].code},
                      list[at].messages, list[at].events);
    }
}

/* Without a value an attempt goes by the message's id: m-00012. */
static uint32_t value_number(struct rcpt_text value)
{
    return value.at[0] == 'm' ? 100 + (uint32_t)strtoul(value.at + 2, NULL, 10) : number_in(value);
}

static void add_members(struct sim_cells *cells, const struct rcpt_rules *rules, size_t group)
{
    uint32_t count;
    const struct rcpt_rules_member *list = rcpt_rules_members(rules, group, &count);
    for (uint32_t at = 0; at < count; at++)
        sim_cells_add(cells,
                      (struct sim_cell_key){.kind = (uint8_t)(CELL_MEMBER + group),
                                            .campaign = number_in(list[at].campaign),
                                            .status = list[at].old,
                                            .other = list[at].new,
                                            .minute = value_number(list[at].value),
                                            .gained = list[at].gained},
                      1, 0);
}

static void add_folds(struct sim_cells *cells, const struct rcpt_rules *rules)
{
    uint32_t count;
    const struct rcpt_rules_fold *list = rcpt_rules_folds(rules, &count);
    for (uint32_t at = 0; at < count; at++)
        sim_cells_add(cells,
                      (struct sim_cell_key){.kind = CELL_FOLD,
                                            .campaign = number_in(list[at].campaign),
                                            .key = number_in(list[at].columns),
                                            .more = number_in(list[at].org),
                                            .status = list[at].old,
                                            .other = list[at].new,
                                            .gained = list[at].gained},
                      list[at].messages, 0);
}

/* m-00012 and a tail that may be of digits, too. */
static uint32_t message_number(struct rcpt_text id)
{
    uint32_t number = 0;
    for (size_t at = 2; at < 7; at++)
        number = number * 10 + (uint32_t)(id.at[at] - '0');
    return number;
}

/* One of each message, with the flags that it has then. */
static void add_changes(struct sim_cells *cells, const struct rcpt_rules *rules)
{
    uint32_t count;
    const struct rcpt_rules_change *list = rcpt_rules_changes(rules, &count);
    for (uint32_t at = 0; at < count; at++)
        sim_cells_add(
            cells,
            (struct sim_cell_key){.kind = CELL_CHANGE,
                                  .campaign = number_in(list[at].campaign),
                                  .key = number_in(list[at].columns),
                                  .more = number_in(list[at].org),
                                  .status = (int16_t)list[at].old,
                                  .other = (int16_t)list[at].new,
                                  .minute = message_number(list[at].id),
                                  .gained = (uint32_t)(list[at].gained | list[at].flags << 16)},
            1, 0);
}

/* As add_counters() of src/postgres/flights_write.c. */
static void write_cells(const struct sim_sender *sender, struct sim_request *request)
{
    struct sim_cells *cells = &request->cells;
    if (!rcpt_rules_count_funnel(sender->rules))
        add_funnel(cells, sender->count);
    if (!rcpt_rules_are_on(sender->rules))
        return;
    add_rules_cells(cells, sender->rules);
    for (size_t group = 0; group < request->groups; group++)
        add_members(cells, sender->rules, group);
    add_folds(cells, sender->rules);
    add_changes(cells, sender->rules);
}

static void write_keys(const struct sim_sender *sender, struct sim_request *request)
{
    uint32_t count, next = 0;
    if (sender->keys == NULL)
        return;
    for (uint32_t at = 0; at < request->item_count; at++)
        request->echoes[at] = rcpt_keys_is_echo(sender->keys, at);
    const struct rcpt_key *undone = rcpt_keys_undone(sender->keys, &count);
    uint32_t all;
    const struct rcpt_key *list = rcpt_keys_list(sender->keys, &all);
    for (uint32_t at = 0; at < all && next < count; at++) {
        const struct rcpt_key *key = &list[at], *other = &undone[next];
        if (key->day != other->day || key->message != other->message || key->event != other->event)
            continue;
        request->keys[at].undone = true;
        next++;
    }
    RCPT_ASSERT(next == count);
}

/* ---- the flights ---- */

static void begin_deciding(struct sim_sender *sender, const struct sim *sim,
                           struct sim_request *request)
{
    uint32_t count = 0;
    rcpt_decided_begin(&sender->decided, request->sent, sender->rules);
    sender->decides = true;
    request->echoes = rcpt_calloc(request->item_count + 1, 1);
    if (sender->keys == NULL)
        return;
    rcpt_keys_begin(sender->keys, request->sent);
    const struct rcpt_key *list = rcpt_keys_list(sender->keys, &count);
    request->keys = rcpt_calloc(count + 1, sizeof(*request->keys));
    request->key_count = count;
    for (uint32_t at = 0; at < count; at++)
        request->keys[at] =
            (struct sim_key){.twin = sim->traffic.items[request->items[list[at].first]].twin,
                             .at_us = list[at].at_us};
}

void sim_sender_begin(struct sim_sender *sender, const struct sim *sim, struct sim_request *request,
                      struct rcpt_lane_names names)
{
    forget(sender);
    sender->names = names;
    if (request->batch != RCPT_BATCH_WAKE)
        begin_deciding(sender, sim, request);
}

/* Names of parked receipts are texts again, and get numbers of their own. */
static const char *woken_name(const void *context, enum rcpt_facet facet, uint32_t number)
{
    static const char *const names[][SIM_GATEWAYS + 1] = {{"", "g1", "g2", "g3", "g4", "g5"},
                                                          {"", "r1", "r2", "r3"}};
    (void)context;
    return names[facet == RCPT_FACET_REASON][number];
}

static int by_message(const struct sim *sim, uint32_t left, uint32_t right)
{
    uint32_t a = sim->traffic.items[left].message, b = sim->traffic.items[right].message;
    return (a > b) - (a < b);
}

/* ORDER BY of sql/lane/wake.sql; ids are as their numbers. */
static void sort_items(const struct sim *sim, uint32_t *items, uint32_t count)
{
    for (uint32_t at = 1; at < count; at++) {
        uint32_t item = items[at], place = at;
        for (; place > 0 && by_message(sim, items[place - 1], item) > 0; place--)
            items[place] = items[place - 1];
        items[place] = item;
    }
}

static struct rcpt_woken woken_of(const struct sim *sim, uint32_t number)
{
    const struct sim_item *item = &sim->traffic.items[number];
    const struct sim_message *message = &sim->traffic.messages[item->message];
    bool reads = sim->plan.links || sim->plan.costs;
    return (struct rcpt_woken){.id = {message->id, message->id_size},
                               .code = rcpt_ladder_entry(sim->traffic.ladder, item->entry)->code,
                               .at_us = item->at_us,
                               .traceparent = "",
                               .gateway = item->gateway,
                               .reason = item->why,
                               .key = sim->plan.dedup ? item->key : 0,
                               .payload = {sim->traffic.records[item->record].value + item->text,
                                           reads ? item->text_size : 0},
                               .whole_us = INT64_MIN};
}

static bool take_woken(struct sim_sender *sender, struct sim *sim, struct sim_request *request)
{
    struct rcpt_batch *batch = &sender->woken;
    rcpt_batch_init(batch, request->lane);
    rcpt_batch_reset(batch, RCPT_BATCH_WAKE);
    sender->has_woken = true;
    sort_items(sim, request->items, request->item_count);
    struct rcpt_woken *woken =
        rcpt_arena_alloc(&batch->arena, (request->item_count + 1) * sizeof(*woken));
    for (uint32_t at = 0; at < request->item_count; at++)
        woken[at] = woken_of(sim, request->items[at]);
    rcpt_batch_fold_woken(batch, sim->traffic.ladder, woken, request->item_count);
    sender->names = (struct rcpt_lane_names){.name = woken_name};
    request->sent = batch;
    request->result.woken = request->item_count;
    return sim_oracle_take_woken(sim, batch, request);
}

static void tell_keys(struct sim_sender *sender, struct sim_request *request)
{
    for (uint32_t at = 0; at < request->key_count && !request->keys_told; at++)
        if (request->keys[at].fate != RCPT_KEY_STORED)
            rcpt_keys_tell(sender->keys, at, request->keys[at].fate);
    request->keys_told = true;
}

static void ask_again(struct sim_sender *sender, struct sim_request *request)
{
    const struct rcpt_decided *decided = &sender->decided;
    free(request->asked);
    request->asked = rcpt_malloc((decided->stale_count + 1) * sizeof(*request->asked));
    memcpy(request->asked, decided->stale, decided->stale_count * sizeof(*request->asked));
    request->asked_count = decided->stale_count;
    request->flight = FLIGHT_DECIDE;
}

/* The receipts of a wake go back where they were if one of its messages has gone meanwhile. */
static bool is_overtaken(const struct sim_request *request)
{
    bool overtaken = false;
    for (uint32_t at = 0; at < request->fold_count && request->batch == RCPT_BATCH_WAKE; at++)
        overtaken |= request->folds[at].fate != RCPT_FATE_KNOWN;
    return overtaken;
}

static void count(struct sim_sender *sender, struct sim *sim, struct sim_request *request)
{
    const struct rcpt_decided_counters counters = {sender->count, sender->rules, sender->keys};
    rcpt_decided_count(&sender->decided, &counters, sim->traffic.ladder, request->now_us,
                       &sender->names);
    for (uint32_t at = 0; at < request->fold_count; at++) {
        struct sim_fold *fold = &request->folds[at];
        fold->fate = (uint8_t)sender->decided.messages[at].fate;
        if (fold->fate == RCPT_FATE_ABSENT && sim->plan.unknown != UNKNOWN_DEAD_LETTER)
            request->result.events_parked += fold->count;
    }
    request->result.messages_known = rcpt_count_known(sender->count);
    request->result.messages_changed = rcpt_count_changed(sender->count);
    request->groups = sim->plan.groups;
    write_cells(sender, request);
    write_keys(sender, request);
}

bool sim_sender_go_on(struct sim_sender *sender, struct sim *sim, struct sim_request *request)
{
    const struct rcpt_pg_rows answer = {sim, request, sender->rules};
    if (!sender->decides) {
        if (!take_woken(sender, sim, request))
            return false;
        request->flight = request->fold_count > 0 ? FLIGHT_DECIDE : FLIGHT_WRITE;
        begin_deciding(sender, sim, request);
        return true;
    }
    tell_keys(sender, request);
    rcpt_decided_take(&sender->decided, &answer);
    if (sender->decided.stale_count > 0) {
        ask_again(sender, request);
        return true;
    }
    count(sender, sim, request);
    request->flight = is_overtaken(request) ? FLIGHT_ROLLBACK : FLIGHT_WRITE;
    return true;
}
