/* Partitions of the inbox are made ahead (partitions.h). The default partition takes the messages
 * that no other takes: normally none. It has some if no partition was made in time, or if ids have
 * an older time. The transaction that makes their partition moves them: each message is in the
 * inbox at every moment, with its status, and nothing is counted or booked. If there are few, their
 * rows are moved. If there are many, the default partition itself becomes their partition, and a
 * new one takes its place. Called by maintain.c, migrate/, check.c and check_config.c. */
#include "partitions.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "partitions_internal.h"
#include "receiptd/postgres/sql.h"
#include "receiptd/receipts/layout.h"

/* The most rows that are moved while batches wait. */
#define FEW_ROWS 2000

#define MOST_RANGES 400u

/* A default partition that has become a partition leaves a range above it for the next turn. A
 * message that arrives during a turn can make it change nothing. */
#define MOST_TURNS 3

#define CHECK_VIOLATION "23514"

/* The content of the default partition (partitions/other.sql). */
struct other {
    int64_t rows, below, above;
    int64_t least_ms;
    char example[96];
};

/* The partitions that are to be made. */
struct ranges {
    size_t count;
    struct {
        int64_t from_ms, to_ms;
    } items[MOST_RANGES];
};

/* ---- what there is ---- */

static void bound_of(const struct layout *layout, int64_t ms, char bound[RCPT_ID_BOUND_SIZE])
{
    rcpt_id_bound(layout->ids, ms > RCPT_ID_MOST_MS ? RCPT_ID_MOST_MS : ms, bound);
}

/* The first partition begins with the span before this one, since clocks differ. */
static int64_t last_of(const struct layout *layout)
{
    return layout->last_ms > 0 ? layout->last_ms
                               : layout_span_end(layout, layout->now_ms) - 2 * layout->span_ms;
}

static int64_t first_of(const struct layout *layout)
{
    return layout->last_ms > 0 ? layout->first_ms : last_of(layout);
}

static void take_other(const struct layout *layout, const struct rcpt_session_rows *rows,
                       struct other *other)
{
    const char *least = rcpt_session_rows_text(rows, 0, "least");
    const char *example = rcpt_session_rows_text(rows, 0, "example");
    other->rows = rcpt_session_rows_int(rows, 0, "rows");
    other->below = rcpt_session_rows_int(rows, 0, "below");
    other->above = rcpt_session_rows_int(rows, 0, "above");
    if (least == NULL || !rcpt_id_time(layout->ids, least, &other->least_ms))
        other->least_ms = 0;
    snprintf(other->example, sizeof(other->example), "%s", example != NULL ? example : "");
}

static bool read_other(const struct layout *layout, struct other *other)
{
    struct command_context *context = layout->context;
    char first[RCPT_ID_BOUND_SIZE], last[RCPT_ID_BOUND_SIZE], horizon[RCPT_ID_BOUND_SIZE];
    *other = (struct other){0};
    if (layout->other == NULL)
        return true;
    bound_of(layout, first_of(layout), first);
    bound_of(layout, last_of(layout), last);
    bound_of(layout, layout_horizon(layout), horizon);
    const struct rcpt_pg_binding bindings[] = {{"schema", layout->place.schema},
                                               {"other", layout->other}};
    const char *const values[] = {rcpt_id_pattern(layout->ids), first, last, horizon};
    char *sql = rcpt_pg_bind(rcpt_sql("partitions/other"), bindings, 2, &context->error);
    struct rcpt_session_rows *rows =
        sql != NULL ? rcpt_session_query(context->session, sql, 4, values, &context->error) : NULL;
    free(sql);
    if (rows != NULL)
        take_other(layout, rows, other);
    rcpt_session_rows_free(rows);
    return rows != NULL;
}

/* ---- what is to be made ---- */

static void add_range(struct ranges *ranges, int64_t from_ms, int64_t to_ms)
{
    RCPT_ASSERT(ranges->count < MOST_RANGES);
    ranges->items[ranges->count].from_ms = from_ms;
    ranges->items[ranges->count].to_ms = to_ms;
    ranges->count++;
}

/* Older messages get one partition up to the first, and so does the time for which none was made.
 * Then each span gets its own. */
static void plan_ranges(const struct layout *layout, const struct other *other,
                        struct ranges *ranges)
{
    int64_t last_ms = last_of(layout), horizon_ms = layout_horizon(layout);
    int64_t current_ms = layout_span_end(layout, layout->now_ms) - layout->span_ms;
    ranges->count = 0;
    if (other->below > 0)
        add_range(ranges, layout_span_end(layout, other->least_ms) - layout->span_ms,
                  first_of(layout));
    if (last_ms < current_ms) {
        add_range(ranges, last_ms, current_ms);
        last_ms = current_ms;
    }
    while (last_ms < horizon_ms) {
        int64_t end_ms = layout_span_end(layout, last_ms);
        add_range(ranges, last_ms, end_ms);
        last_ms = end_ms;
    }
}

/* ---- scripts ---- */

static void add_table(struct script *script, const struct layout *layout, const char *name)
{
    char fillfactor[16];
    snprintf(fillfactor, sizeof(fillfactor), "%u", layout->context->config->inbox.fillfactor);
    const struct rcpt_pg_binding bindings[] = {
        {"part_schema", layout->context->config->postgres.schema},
        {"part", name},
        {"owner", layout->owner},
        {"fillfactor", fillfactor}};
    script_add(script, "partitions/make", bindings, 4);
    if (layout->context->config->inbox.count_targeted)
        script_add(script, "partitions/triggers", bindings, 2);
}

static void add_to_range(struct script *script, const char *file, const struct layout *layout,
                         const char *name, int64_t from_ms, int64_t to_ms)
{
    char lower[RCPT_ID_BOUND_SIZE], upper[RCPT_ID_BOUND_SIZE];
    bound_of(layout, from_ms, lower);
    bound_of(layout, to_ms, upper);
    const struct rcpt_pg_binding bindings[] = {
        {"part", name},
        {"lower", lower},
        {"upper", upper},
        {"other", layout->other != NULL ? layout->other : ""}};
    script_add(script, file, bindings, 4);
}

static void add_other(struct script *script, const char *file, const char *other)
{
    const struct rcpt_pg_binding binding = {"other", other};
    script_add(script, file, &binding, 1);
}

/* One transaction makes all. It makes the tables before it locks the inbox. */
static bool make_ranges(const struct layout *layout, const struct ranges *ranges, bool moves)
{
    struct script script;
    char name[64];
    script_begin(&script, layout->context);
    for (size_t index = 0; index < ranges->count; index++) {
        layout_name(layout, ranges->items[index].from_ms, name);
        add_table(&script, layout, name);
    }
    if (layout->other == NULL)
        add_table(&script, layout, "message_inbox_other");
    script_add(&script, "partitions/close", NULL, 0);
    if (layout->other != NULL)
        add_other(&script, "partitions/other_off", layout->other);
    for (size_t index = 0; index < ranges->count; index++) {
        int64_t from_ms = ranges->items[index].from_ms, to_ms = ranges->items[index].to_ms;
        layout_name(layout, from_ms, name);
        if (moves)
            add_to_range(&script, "partitions/move", layout, name, from_ms, to_ms);
        add_to_range(&script, "partitions/attach", layout, name, from_ms, to_ms);
    }
    add_other(&script, "partitions/other_on",
              layout->other != NULL ? layout->other : "message_inbox_other");
    return script_run(&script, "make partitions of message_inbox");
}

static void print_ranges(const struct layout *layout, const struct ranges *ranges)
{
    char first[64], last[64];
    layout_name(layout, ranges->items[0].from_ms, first);
    layout_name(layout, ranges->items[ranges->count - 1].from_ms, last);
    if (ranges->count == 1)
        printf("partitions: made %s\n", first);
    else
        printf("partitions: made %zu, from %s to %s\n", ranges->count, first, last);
}

/* ---- the default partition becomes one of a range ---- */

/* A check that is validated beforehand spares the scan under the lock. */
static bool prove_bounds(const struct layout *layout, int64_t from_ms, int64_t to_ms)
{
    struct script script;
    script_begin(&script, layout->context);
    add_to_range(&script, "partitions/bounds", layout, layout->other, from_ms, to_ms);
    if (!script_run(&script, "add a check to the default partition"))
        return false;
    script_begin(&script, layout->context);
    add_other(&script, "partitions/bounds_validate", layout->other);
    return script_run_at_length(&script);
}

static bool drop_bounds(const struct layout *layout)
{
    struct script script;
    script_begin(&script, layout->context);
    add_other(&script, "partitions/bounds_drop", layout->other);
    return script_run(&script, "drop a check of the default partition");
}

static bool swap_other(const struct layout *layout, int64_t from_ms, int64_t to_ms)
{
    struct script script;
    char name[64];
    layout_name(layout, from_ms, name);
    const struct rcpt_pg_binding names[] = {{"other", layout->other}, {"part", name}};
    script_begin(&script, layout->context);
    script_add(&script, "partitions/close", NULL, 0);
    add_other(&script, "partitions/other_off", layout->other);
    script_add(&script, "partitions/other_rename", names, 2);
    add_to_range(&script, "partitions/attach", layout, name, from_ms, to_ms);
    add_other(&script, "partitions/bounds_drop", name);
    add_table(&script, layout, layout->other);
    add_other(&script, "partitions/other_on", layout->other);
    return script_run(&script, "make the default partition one of a time");
}

/* For these seconds the check refuses messages that do not fit. A message that came just before
 * makes the check fail (CHECK_VIOLATION), and nothing changes. */
static bool turn_other(const struct layout *layout, const struct other *other)
{
    int64_t from_ms = last_of(layout), to_ms = layout_horizon(layout);
    char name[64];
    if (other->below > 0) {
        from_ms = layout_span_end(layout, other->least_ms) - layout->span_ms;
        to_ms = first_of(layout);
    }
    layout_name(layout, from_ms, name);
    printf("partitions: %" PRId64 " messages of %s become partition %s\n", other->rows,
           layout->other, name);
    fflush(stdout);
    if (!prove_bounds(layout, from_ms, to_ms)) {
        struct rcpt_error cause = layout->context->error;
        if (!drop_bounds(layout))
            return false;
        layout->context->error = cause;
        return false;
    }
    return swap_other(layout, from_ms, to_ms);
}

/* ---- what is said ---- */

static void warn_other(const struct layout *layout, const struct other *other)
{
    int64_t strange = other->rows - other->below - other->above;
    if (other->rows > 0)
        fflush(stdout);
    if (other->below + other->above > 0)
        fprintf(stderr,
                "warning: %" PRId64 " messages are in the default partition %s because no "
                "partition had their time; receiptd maintain moves them\n",
                other->below + other->above, layout->other);
    if (strange > 0)
        fprintf(
            stderr,
            "warning: %" PRId64
            " messages in the default partition %s have ids that are no %s of a partitioned time, "
            "for example %s: receipts reach them, and receiptd retire deletes them one by one\n",
            strange, layout->other, rcpt_id_name(layout->ids), other->example);
}

static void warn_late(const struct layout *layout)
{
    fflush(stdout);
    if (layout->last_ms <= layout->now_ms)
        fprintf(stderr, "warning: message_inbox has no partition for the present, so messages go "
                        "to the default one; run receiptd maintain, and check its timer\n");
    else if (layout->last_ms < layout->now_ms + layout->span_ms)
        fprintf(stderr, "warning: the partitions of message_inbox end within one span; run "
                        "receiptd maintain, and check its timer\n");
}

/* ---- commands ---- */

/* Few messages of the default partition are moved or stay. Many keep their table if all belong to
 * one range. */
static bool make(struct layout *layout)
{
    struct other other;
    struct ranges ranges;
    if (layout_is(layout, "pending") && layout->other != NULL && !drop_bounds(layout))
        return false;
    if (!read_other(layout, &other))
        return false;
    warn_other(layout, &other);
    plan_ranges(layout, &other, &ranges);
    if (ranges.count == 0)
        return true;
    if (other.rows > FEW_ROWS && (other.below == other.rows || other.above == other.rows))
        return turn_other(layout, &other);
    if (other.rows > FEW_ROWS) {
        rcpt_error_fatal(&layout->context->error, EX_DATAERR,
                         "the default partition %s has %" PRId64 " messages of more than one kind: "
                         "batches would wait while they are moved, so no partition is made",
                         layout->other, other.rows);
        rcpt_error_hint(&layout->context->error,
                        "ids must be %ss of the present; delete messages with other ids (above) "
                        "until at most %d are left",
                        rcpt_id_name(layout->ids), FEW_ROWS);
        return false;
    }
    if (!make_ranges(layout, &ranges, other.below + other.above > 0))
        return false;
    print_ranges(layout, &ranges);
    if (other.below + other.above > 0)
        printf("partitions: moved %" PRId64 " messages from %s\n", other.below + other.above,
               layout->other);
    return true;
}

static bool refuse_flat(struct command_context *context)
{
    rcpt_error_fatal(&context->error, EX_CONFIG,
                     "inbox.partitions is own, but message_inbox is not partitioned by message_id");
    rcpt_error_hint(&context->error, "run receiptd adopt, or leave inbox.partitions out");
    return false;
}

/* The check that a killed adopt has left would refuse messages when its time comes. */
static bool forget_adoption(const struct layout *layout)
{
    struct script script;
    if (!layout_is(layout, "pending"))
        return true;
    script_begin(&script, layout->context);
    add_other(&script, "partitions/bounds_drop", "message_inbox");
    puts("partitions: removed the check of an interrupted receiptd adopt; run adopt again");
    return script_run(&script, "drop a check of message_inbox");
}

/* Whether the next turn may go on after an error of this one. */
static bool is_outdated(struct command_context *context, int turn)
{
    if (strcmp(context->error.code, CHECK_VIOLATION) != 0)
        return false;
    if (turn + 1 < MOST_TURNS) {
        puts("partitions: nothing was changed, since a message of another time came; the default "
             "partition is read again");
        rcpt_error_clear(&context->error);
        return true;
    }
    rcpt_error_fatal(&context->error, EX_TEMPFAIL,
                     "no partition was made: each time, messages of other times came into the "
                     "default partition before it could become one");
    rcpt_error_hint(&context->error, "find the program that inserts messages with ids of an older "
                                     "time; the next run tries again");
    return false;
}

static bool make_all(struct command_context *context)
{
    bool good = true;
    for (int turn = 0; good && turn < MOST_TURNS; turn++) {
        struct layout layout;
        good = layout_read(&layout, context);
        if (good && !layout_is(&layout, "by_id"))
            good = forget_adoption(&layout) && refuse_flat(context);
        good = good && (make(&layout) || is_outdated(context, turn));
        layout_forget(&layout);
    }
    return good;
}

bool partitions_make(struct command_context *context)
{
    if (context->config->inbox.partitions == RCPT_PARTITIONS_EXTERNAL)
        return external_note(context);
    if (context->config->inbox.partitions != RCPT_PARTITIONS_OWN)
        return true;
    return partitions_lock(context) ? make_all(context) : context->error.text[0] == '\0';
}

bool partitions_maintain(struct command_context *context)
{
    if (context->config->inbox.partitions == RCPT_PARTITIONS_EXTERNAL)
        return partitions_note(context);
    return partitions_make(context);
}

/* A table that is not partitioned has no row. */
static bool check_probes(struct command_context *context)
{
    struct inbox_place place;
    inbox_place_of(context->config, &place);
    const char *const values[] = {place.schema, place.table, place.columns[INBOX_message_id],
                                  place.created_at};
    struct rcpt_session_rows *rows = rcpt_session_query(
        context->session, rcpt_sql("control/layout"), 4, values, &context->error);
    bool good = rows != NULL;
    if (good && rcpt_session_rows_count(rows) > 0) {
        const struct inbox_layout found = {.key = rcpt_session_rows_text(rows, 0, "key"),
                                           .leads = rcpt_session_rows_bool(rows, 0, "leads"),
                                           .probes = rcpt_session_rows_int(rows, 0, "probes"),
                                           .by_time = rcpt_session_rows_bool(rows, 0, "by_time"),
                                           .by_id = rcpt_session_rows_bool(rows, 0, "by_id"),
                                           .by_range = rcpt_session_rows_bool(rows, 0, "by_range"),
                                           .below = rcpt_session_rows_text(rows, 0, "below")};
        good = inbox_layout_check(context->config, &found, &context->error);
    }
    rcpt_session_rows_free(rows);
    return good;
}

bool partitions_check(struct command_context *context)
{
    const struct rcpt_config *config = context->config;
    struct layout layout;
    bool found = layout_read(&layout, context), good = true;
    if (found && config->inbox.partitions == RCPT_PARTITIONS_EXTERNAL &&
        !layout_is(&layout, "partitioned")) {
        good = rcpt_error_fatal(&context->error, EX_CONFIG,
                                "inbox.partitions is external, but %s.%s is not partitioned",
                                layout.place.schema, layout.place.table);
        rcpt_error_hint(&context->error, "partition it, or leave inbox.partitions out");
    } else if (found && config->inbox.partitions == RCPT_PARTITIONS_OWN &&
               !layout_is(&layout, "by_id")) {
        good = refuse_flat(context);
    }
    layout_forget(&layout);
    return good && (found ? check_probes(context) : context->error.text[0] == '\0');
}

static bool note_other(const struct layout *layout)
{
    struct other other;
    if (!read_other(layout, &other))
        return false;
    warn_other(layout, &other);
    return true;
}

/* The facts from the catalogs come first, so a role without rights on the default partition sees
 * them too. */
bool partitions_note(struct command_context *context)
{
    struct layout layout;
    if (context->config->inbox.partitions == RCPT_PARTITIONS_EXTERNAL && !external_warn(context))
        return false;
    if (context->config->inbox.partitions == RCPT_PARTITIONS_NONE ||
        !rcpt_id_has_bounds(context->config->inbox.ids))
        return true;
    bool found = layout_read(&layout, context);
    bool good = found || context->error.text[0] == '\0';
    if (found && layout_is(&layout, "by_id")) {
        warn_late(&layout);
        good = !layout_is(&layout, "readable") || note_other(&layout);
    }
    layout_forget(&layout);
    return good;
}
