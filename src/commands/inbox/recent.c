/* The recent set of the inbox (recent.h). The next index is built while batches go on, then the
 * boundary moves, then the old index goes. Each step is complete in itself: indexes that no
 * boundary names are dropped by the next run. Partitions by created_at or by the id need no index,
 * only a boundary. Called by maintain.c, migrate.c and check_config.c. */
#include "recent.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>
#include <unistd.h>

#include "../turns.h"
#include "../waits.h"
#include "place.h"
#include "receiptd/config/value.h"
#include "receiptd/core/id_time.h"
#include "receiptd/postgres/bind.h"
#include "receiptd/postgres/sql.h"

/* Instances ask for the boundary every 5 s (receipts/recent.c); until then they use the old index.
 */
#define FOLLOW_SECONDS 10

/* Above this correlation with the time of their messages, ids are in its order. */
#define ORDERED 0.9

/* With at most this many ranges of ids, finding the partition costs nothing measurable. */
#define FEW_RANGES 30

/* Above this number of ranges, a batch costs less with the newest ones as a recent set, even if one
 * receipt in a hundred is for an older message (docs/performance.md). */
#define MANY_RANGES 60

enum way {
    BY_KEY_SMALL,
    BY_KEY_ORDERED,
    BY_PARTITION,
    BY_ALL_PARTITIONS,
    BY_NEWEST_PARTITIONS,
    BY_RECENT,
    BY_KEY_LARGE
};

/* The inbox as it was found. The texts belong to the rows. */
struct inbox {
    struct command_context *context;
    struct inbox_place place;
    struct rcpt_session_rows *state, *sample; /* sample NULL: none was taken */
    struct rcpt_session_rows *newest;         /* of ranges of created_at or of the id; else NULL */
    const char *since;                        /* a time or an id; NULL: no recent set */
    int64_t rows, recent, most;
    enum way way;
};

static const char *text_of(const struct inbox *inbox, const char *column)
{
    return rcpt_session_rows_text(inbox->state, 0, column);
}

static bool is(const struct inbox *inbox, const char *column)
{
    return rcpt_session_rows_bool(inbox->state, 0, column);
}

/* A share of the pages, so that a table of any size is read in about the same time. */
static bool take_sample(struct inbox *inbox)
{
    struct rcpt_error *error = &inbox->context->error;
    char most[24];
    snprintf(most, sizeof(most), "%" PRId64, inbox->most);
    const struct rcpt_pg_binding bindings[] = {
        {"inbox_schema", inbox->place.schema},
        {"inbox_table", inbox->place.table},
        {"message_id", inbox->place.columns[INBOX_message_id]},
        {"created_at", inbox->place.created_at},
        {"percent", text_of(inbox, "percent")},
        {"most", most},
        {"since", is(inbox, "by_range") ? NULL : inbox->since}};
    char *sql = rcpt_pg_bind(
        rcpt_sql(is(inbox, "has_time") ? "command/recent_sample" : "command/layout_sample"),
        bindings, RCPT_COUNT_OF(bindings), error);
    if (sql != NULL)
        inbox->sample = rcpt_session_query(inbox->context->session, sql, 0, NULL, error);
    free(sql);
    if (inbox->sample == NULL)
        return false;
    inbox->rows = rcpt_session_rows_int(inbox->sample, 0, "rows");
    inbox->recent = rcpt_session_rows_int(inbox->sample, 0, "recent");
    return true;
}

/* Finds the partitions that would be the recent set, from catalogs alone. */
static bool take_newest(struct inbox *inbox)
{
    char most[24];
    snprintf(most, sizeof(most), "%" PRId64, inbox->most);
    struct rcpt_error *error = &inbox->context->error;
    const struct rcpt_pg_binding bindings[] = {{"inbox_schema", inbox->place.schema},
                                               {"inbox_table", inbox->place.table},
                                               {"column", text_of(inbox, "key_column")},
                                               {"type", text_of(inbox, "key_type")},
                                               {"most", most},
                                               {"since", inbox->since}};
    char *sql = rcpt_pg_bind(rcpt_sql("command/recent_partitions"), bindings,
                             RCPT_COUNT_OF(bindings), error);
    if (sql != NULL)
        inbox->newest = rcpt_session_query(inbox->context->session, sql, 0, NULL, error);
    free(sql);
    return inbox->newest != NULL;
}

/* The form of the ids: that of the sample, or else inbox.ids; NULL: no known form. */
static const char *kind_of(const struct inbox *inbox)
{
    enum rcpt_id_kind ids = inbox->context->config->inbox.ids;
    const char *kind =
        inbox->sample != NULL ? rcpt_session_rows_text(inbox->sample, 0, "kind") : NULL;
    bool compared = inbox->sample != NULL && is(inbox, "has_time");
    return kind != NULL || compared || ids == RCPT_ID_ANY ? kind : rcpt_id_name(ids);
}

/* UUIDv7 and ULID begin with the time by definition. Other ids are judged by the sample if it has
 * times, else by inbox.ids. */
static bool is_ordered(const struct inbox *inbox)
{
    const char *kind = kind_of(inbox);
    if (inbox->sample == NULL || !is(inbox, "has_time"))
        return kind != NULL;
    return (kind != NULL && (strcmp(kind, "UUIDv7") == 0 || strcmp(kind, "ULID") == 0)) ||
           strtod(rcpt_session_rows_text(inbox->sample, 0, "in_order"), NULL) > ORDERED;
}

/* Ranges of unordered ids have no newest ones. If the id leads to its range and there are few
 * ranges, finding it costs less than a second stage. */
static bool can_have_newest(const struct inbox *inbox)
{
    if (inbox->newest == NULL || is(inbox, "by_time"))
        return inbox->newest != NULL;
    return is_ordered(inbox) &&
           (!is(inbox, "by_key") ||
            rcpt_session_rows_int(inbox->state, 0, "partitions") > MANY_RANGES);
}

/* If the id leads to the partition anyway, the newest partitions count only after they were made a
 * set. */
static bool is_by_newest(const struct inbox *inbox)
{
    return can_have_newest(inbox) &&
           (is(inbox, "by_time") || inbox->since != NULL || !is(inbox, "by_key"));
}

/* Partitions decide first, then the order of the ids, then the size. A set costs an index. It pays
 * only if batches touch the key of a large table all over. */
static enum way way_of(const struct inbox *inbox)
{
    if (is_by_newest(inbox))
        return BY_NEWEST_PARTITIONS;
    if (is(inbox, "partitioned"))
        return is(inbox, "by_key") ? BY_PARTITION : BY_ALL_PARTITIONS;
    if (inbox->sample == NULL && inbox->since != NULL)
        return BY_RECENT;
    if (is_ordered(inbox))
        return BY_KEY_ORDERED;
    if (inbox->since != NULL)
        return BY_RECENT;
    bool small = inbox->sample != NULL && inbox->rows < 2 * inbox->most;
    return small || inbox->most == 0 ? BY_KEY_SMALL : BY_KEY_LARGE;
}

/* False with an empty error: there is no such table. */
static bool look(struct inbox *inbox, struct command_context *context)
{
    *inbox =
        (struct inbox){.context = context, .most = (int64_t)context->config->inbox.recent_rows};
    inbox_place_of(context->config, &inbox->place);
    const char *const values[] = {inbox->place.schema, inbox->place.table,
                                  inbox->place.columns[INBOX_message_id], inbox->place.created_at};
    context->error = (struct rcpt_error){0};
    /* A policy of the table would run as this role, so it must fail instead. */
    if (!rcpt_session_execute(context->session, "SET row_security = off", &context->error))
        return false;
    inbox->state = rcpt_session_query(context->session, rcpt_sql("command/recent_state"), 4, values,
                                      &context->error);
    if (inbox->state == NULL || rcpt_session_rows_count(inbox->state) == 0)
        return false;
    inbox->since = text_of(inbox, "since");
    bool by_id = is(inbox, "by_range");
    bool samples = is(inbox, "readable") && (by_id || !is(inbox, "partitioned"));
    if ((samples && !take_sample(inbox)) ||
        ((by_id || is(inbox, "by_time")) && !take_newest(inbox)))
        return false;
    inbox->way = way_of(inbox);
    return true;
}

static void forget(struct inbox *inbox)
{
    rcpt_session_rows_free(inbox->state);
    rcpt_session_rows_free(inbox->sample);
    rcpt_session_rows_free(inbox->newest);
}

/* ---- what is said ---- */

/* The figures are those of docs/performance.md, "An inbox that grows for years". */
static void describe_large(const struct inbox *inbox)
{
    if (inbox->sample == NULL) {
        puts("this role cannot read it, so its size is not known here");
        return;
    }
    printf("about %" PRId64 " messages, ids in no order of time, no recent set: batches slow down "
           "as it grows, at 100 million to 0.55 of their rate; %s\n",
           inbox->rows,
           is(inbox, "has_time") ? "run receiptd maintain regularly"
                                 : "set inbox.columns.created_at, so that it can have one, or, if "
                                   "ids begin with the time, inbox.ids");
}

static void describe_partitions(const struct inbox *inbox)
{
    int64_t count = rcpt_session_rows_int(inbox->state, 0, "partitions");
    printf("partitioned by %s: a message's id leads to its partition, ",
           text_of(inbox, "partition_key"));
    if (strncmp(text_of(inbox, "partition_key"), "HASH", 4) == 0)
        puts("and together they cost as much as one table of their size");
    else if (count <= FEW_RANGES)
        puts("at about the rate of a small table");
    else
        printf("%" PRId64
               " of them: above %d looking for it costs more and more, at 90 batches have "
               "0.78 of their rate; %s\n",
               count, FEW_RANGES,
               inbox->most > 0 && can_have_newest(inbox)
                   ? "run receiptd maintain, which makes a recent set"
                   : "longer spans make fewer");
}

static void describe_newest(const struct inbox *inbox)
{
    const struct rcpt_config *config = inbox->context->config;
    char span[RCPT_CONFIG_NUMBER_BYTES];
    rcpt_config_format_number(RCPT_CONFIG_DURATION, config->inbox.partition_span_ms, span);
    printf("partitioned by %s", text_of(inbox, "partition_key"));
    if (inbox->since != NULL && config->inbox.partitions == RCPT_PARTITIONS_OWN)
        printf(", batches look in the partitions of messages since %s first; new ones are of %s, a "
               "longer inbox.partition_span makes fewer, which costs batches less\n",
               inbox->since, span);
    else if (inbox->since != NULL)
        printf(", batches look in the partitions of messages since %s first\n", inbox->since);
    else if (inbox->most == 0)
        printf(", no recent set, inbox.recent_rows is 0: each receipt is looked up in all %s "
               "partitions\n",
               text_of(inbox, "partitions"));
    else
        printf(", no recent set: each receipt is looked up in all %s partitions; run receiptd "
               "maintain regularly\n",
               text_of(inbox, "partitions"));
}

/* Each way has a line: what batches do, and its cost or what would be better. */
static void describe(const struct inbox *inbox)
{
    const char *kind = kind_of(inbox);
    printf("inbox %s: ", text_of(inbox, "name"));
    switch (inbox->way) {
    case BY_KEY_SMALL:
        printf("about %" PRId64 " messages, found by their key: %s\n", inbox->rows,
               inbox->most == 0 ? "inbox.recent_rows is 0" : "too few for a recent set");
        break;
    case BY_KEY_ORDERED:
        printf("ids in the order of time%s%s%s: recent messages are near each other in the key, no "
               "recent set is needed, at the rate of a small table\n",
               kind != NULL ? " (" : "", kind != NULL ? kind : "", kind != NULL ? ")" : "");
        break;
    case BY_PARTITION:
        describe_partitions(inbox);
        break;
    case BY_ALL_PARTITIONS:
        printf("partitioned by %s, %s: each receipt is looked up in all %s partitions, and at 30 "
               "batches have 0.15 of their rate; partition it by ranges of time-ordered ids, by "
               "created_at with a recent set, or not at all\n",
               text_of(inbox, "partition_key"),
               is(inbox, "by_id")
                   ? "but receipts bring the id as a text, and its column has another type"
                   : "which does not follow from a message's id",
               text_of(inbox, "partitions"));
        break;
    case BY_NEWEST_PARTITIONS:
        describe_newest(inbox);
        break;
    case BY_RECENT:
        printf("batches look among the messages since %s first", inbox->since);
        if (inbox->sample != NULL)
            printf(", about %" PRId64 " of %" PRId64, inbox->recent, inbox->rows);
        puts(", at about 0.9 of the rate of a small table");
        break;
    case BY_KEY_LARGE:
        describe_large(inbox);
        break;
    }
    fflush(stdout);
}

/* Large, or slow at any size. Ordered ids cost nothing. */
static bool matters(const struct inbox *inbox)
{
    bool large = inbox->sample != NULL && inbox->rows >= 2 * inbox->most;
    large = large || (inbox->way == BY_PARTITION &&
                      rcpt_session_rows_int(inbox->state, 0, "partitions") > FEW_RANGES);
    bool spread = inbox->way == BY_ALL_PARTITIONS || inbox->way == BY_NEWEST_PARTITIONS;
    return spread || inbox->way == BY_RECENT || large;
}

bool recent_describe(struct command_context *context, bool if_it_matters)
{
    struct inbox inbox;
    bool found = look(&inbox, context);
    if (found && (!if_it_matters || matters(&inbox)))
        describe(&inbox);
    forget(&inbox);
    return found || context->error.text[0] == '\0';
}

/* ---- what is done ---- */

/* Drops indexes of earlier boundaries, and what an interrupted run has left. */
static bool drop_unused(struct inbox *inbox)
{
    struct command_context *context = inbox->context;
    const char *const values[] = {inbox->place.schema, inbox->place.table};
    struct rcpt_session_rows *unused = rcpt_session_query(
        context->session, rcpt_sql("command/recent_unused"), 2, values, &context->error);
    bool good = unused != NULL;
    for (size_t row = 0; good && row < rcpt_session_rows_count(unused); row++) {
        good = waits_execute(context, rcpt_session_rows_text(unused, row, "sql"));
        if (good)
            printf("dropped index %s\n", rcpt_session_rows_text(unused, row, "name"));
    }
    rcpt_session_rows_free(unused);
    return good;
}

/* The caller frees the statement. The expression is SQL that PostgreSQL has quoted. */
static char *creation_of(const struct inbox *inbox, const char *name, const char *boundary)
{
    char *sql = NULL;
    size_t size;
    FILE *out = rcpt_open_memory(&sql, &size);
    fprintf(out, "CREATE UNIQUE INDEX CONCURRENTLY %s ON %s (%s) WHERE :\"created_at\" >= :'since'",
            name, text_of(inbox, "name"), text_of(inbox, "expression"));
    RCPT_ASSERT(fclose(out) == 0);
    const struct rcpt_pg_binding bindings[] = {{"created_at", inbox->place.created_at},
                                               {"since", boundary}};
    char *bound = rcpt_pg_bind(sql, bindings, 2, &inbox->context->error);
    free(sql);
    return bound;
}

/* Instances use the boundary from the moment the row is there. */
static bool store(const struct inbox *inbox, const char *boundary, const char *name)
{
    bool by_id = is(inbox, "by_range");
    const char *const values[] = {by_id ? NULL : boundary, inbox->place.schema, name,
                                  by_id ? boundary : NULL};
    struct rcpt_session_rows *stored =
        rcpt_session_query(inbox->context->session, rcpt_sql("command/recent_store"), 4, values,
                           &inbox->context->error);
    rcpt_session_rows_free(stored);
    if (stored != NULL)
        printf("batches look among the messages since %s first\n", boundary);
    return stored != NULL;
}

/* The boundary is noted after its index is built, so daemons that read it find the index. */
static bool make(const struct inbox *inbox, const char *boundary)
{
    struct command_context *context = inbox->context;
    const char *name = text_of(inbox, "next");
    printf("making index %s over the messages since %s\n", name, boundary);
    fflush(stdout);
    char *sql = creation_of(inbox, name, boundary);
    bool good = sql != NULL && waits_execute(context, sql);
    free(sql);
    return good && store(inbox, boundary, name);
}

/* A set that has grown by a quarter is made again. */
static bool move(struct inbox *inbox)
{
    const char *boundary = rcpt_session_rows_text(inbox->sample, 0, "boundary");
    if (inbox->since != NULL && inbox->recent <= inbox->most + inbox->most / 4) {
        puts("the recent set is small enough");
        return true;
    }
    if (boundary == NULL) {
        printf("more than %" PRId64
               " of the newest messages have the same created_at: no boundary separates them yet\n",
               inbox->most);
        return true;
    }
    if (!make(inbox, boundary))
        return false;
    if (inbox->since != NULL) {
        fflush(stdout);
        sleep(FOLLOW_SECONDS);
    }
    return drop_unused(inbox);
}

/* Daemons with the old boundary find the same messages by the key. */
static bool remove_set(struct inbox *inbox)
{
    if (inbox->since != NULL)
        puts("the recent set is needed no longer");
    return rcpt_session_execute(inbox->context->session, "DELETE FROM inbox_recent",
                                &inbox->context->error) &&
           drop_unused(inbox);
}

/* Partitions need no index of their own, so moving their boundary is one row. The name of the table
 * stands where that of an index would. */
static bool keep_newest(struct inbox *inbox)
{
    const char *boundary = rcpt_session_rows_text(inbox->newest, 0, "boundary");
    if (inbox->most == 0 || !can_have_newest(inbox) || boundary == NULL)
        return remove_set(inbox);
    if (!rcpt_session_rows_bool(inbox->newest, 0, "moved"))
        return true;
    printf("of %s messages in partitions, the newest are in %s, the others in %s\n",
           rcpt_session_rows_text(inbox->newest, 0, "rows"),
           rcpt_session_rows_text(inbox->newest, 0, "newest"),
           rcpt_session_rows_text(inbox->newest, 0, "before"));
    return store(inbox, boundary, inbox->place.table);
}

/* Unneeded indexes are dropped. A set stays until the table is small. */
static bool maintain(struct inbox *inbox)
{
    describe(inbox);
    if (inbox->newest != NULL)
        return keep_newest(inbox);
    if (inbox->sample == NULL || !is(inbox, "has_time"))
        return true;
    bool wanted =
        inbox->most > 0 && !is_ordered(inbox) &&
        (inbox->rows >= 2 * inbox->most || (inbox->since != NULL && inbox->rows >= inbox->most));
    return wanted ? drop_unused(inbox) && move(inbox) : remove_set(inbox);
}

/* Two runs at once would each make an index, and drop that of the other. */
static bool lock(struct command_context *context)
{
    struct inbox_place place;
    inbox_place_of(context->config, &place);
    const char *const values[] = {place.schema, place.table};
    bool taken = false;
    if (!turns_take(context, "inbox_recent", &taken))
        return false;
    struct rcpt_session_rows *rows = rcpt_session_query(
        context->session, rcpt_sql("command/recent_lock"), 2, values, &context->error);
    taken = taken && rows != NULL && rcpt_session_rows_bool(rows, 0, "free");
    if (rows != NULL && !taken)
        puts("another run works on the recent set: this one leaves it alone");
    rcpt_session_rows_free(rows);
    return taken;
}

bool recent_maintain(struct command_context *context)
{
    struct inbox inbox;
    context->error = (struct rcpt_error){0};
    if (!lock(context))
        return context->error.text[0] == '\0';
    bool good = look(&inbox, context) ? maintain(&inbox) : context->error.text[0] == '\0';
    forget(&inbox);
    return good;
}
