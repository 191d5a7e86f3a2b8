/* The statements that connections of lanes and of an expiry prepare: files of sql/lane, as they
 * stand. Variables hold the parts that differ by configuration: names of columns, the boundary of
 * the recent set, in decide the columns that rules read, and in wake the payload. Called by
 * receipts/rules.c and by the command that prints statements. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"
#include "receiptd/postgres/array_text.h"
#include "receiptd/postgres/bind.h"
#include "receiptd/postgres/sql.h"
#include "receiptd/postgres/statements.h"

#define INBOX "message_inbox"

enum {
    IN_LANES,
    IN_EXPIRY,
    IN_BOTH,
    WITH_INSERT, /* the policy that makes rows, which not every inbox allows */
    WITH_RANGES,
};

static const struct source {
    struct rcpt_pg_statement statement; /* without its text, if that is a file's */
    const char *file; /* NULL: the one of sql/lane that is called like the statement */
    int where;
} sources[] = {
    {{.name = "begin", .sql = "BEGIN"}, NULL, IN_BOTH},
    {{.name = "fence"}, NULL, IN_LANES},
    {{.name = "candidates"}, NULL, IN_EXPIRY},
    {{.name = "decide", .must_use_index_on = INBOX}, NULL, IN_BOTH},
    {{.name = "keys"}, NULL, IN_LANES},
    {{.name = "keys_undo"}, NULL, IN_LANES},
    {{.name = "counters"}, NULL, IN_BOTH},
    {{.name = "groups"}, NULL, IN_BOTH},
    {{.name = "folds"}, NULL, IN_BOTH},
    {{.name = "stream"}, NULL, IN_BOTH},
    {{.name = "suppression"}, NULL, IN_BOTH},
    {{.name = "intents"}, NULL, IN_BOTH},
    {{.name = "parked"}, NULL, IN_LANES},
    {{.name = "letters"}, NULL, IN_LANES},
    {{.name = "timeline"}, NULL, IN_BOTH},
    {{.name = "commit", .sql = "COMMIT"}, NULL, IN_BOTH},
    {{.name = "rollback", .sql = "ROLLBACK"}, NULL, IN_BOTH},
    {{.name = "wake", .must_use_index_on = INBOX}, NULL, IN_LANES},
    {{.name = "discard"}, NULL, IN_LANES},
    {{.name = "expire"}, NULL, IN_LANES},
    {{.name = "address"}, NULL, IN_LANES},
    {{.name = "positions"}, NULL, IN_LANES},
    /* If the control connection waits itself, a lane's connection asks for it. */
    {{.name = "blockers"}, "control/blockers", IN_LANES},
    {{.name = "insert", .must_use_index_on = INBOX}, NULL, WITH_INSERT},
    {{.name = "insert_parked", .must_use_index_on = INBOX}, NULL, WITH_INSERT},
    {{.name = "range_store"}, NULL, WITH_RANGES},
    {{.name = "range_lock"}, NULL, WITH_RANGES},
    {{.name = "range_resolve",
      .must_use_index_on = INBOX,
      .index_over =
          "what inbox.columns.recipient, gateway and sent_at (or created_at) name, in this order"},
     NULL,
     WITH_RANGES},
};

#define MOST_STATEMENTS RCPT_COUNT_OF(sources)
#define MOST_BINDINGS   16
#define OWN_BINDINGS    9 /* of decide and wake */

struct rcpt_lane_statements {
    struct rcpt_pg_statement list[MOST_STATEMENTS];
    char *texts[MOST_STATEMENTS];
    size_t count;
};

/* ---- variables ---- */

/* decide finds changed rows alone. With first times it also finds rows whose times alone change;
 * they keep the time of their last change. */
static const char changes_now[] = "now()";
static const char changes_or_stays[] =
    "CASE WHEN ($2::int2[])[e.n] > m.status OR (($3::int4[])[e.n] & ~m.flags) <> 0\n"
    "                          THEN now() ELSE m.updated_at END";

/* A row's first times are the least event times of receipts that name a status, at most an hour
 * ahead of this server's clock. `prev_times` is the place of the message in the histograms before.
 */
static const char set_times[] =
    ",\n"
    "        first_sent_at = LEAST(m.first_sent_at, "
    "bounded_time(($6::timestamptz[])[e.n * 4 - 3])),\n"
    "        first_delivered_at = LEAST(m.first_delivered_at, "
    "bounded_time(($6::timestamptz[])[e.n * 4 - 2])),\n"
    "        first_opened_at = LEAST(m.first_opened_at, "
    "bounded_time(($6::timestamptz[])[e.n * 4 - 1])),\n"
    "        first_clicked_at = LEAST(m.first_clicked_at, "
    "bounded_time(($6::timestamptz[])[e.n * 4])),\n"
    "        first_gateway = LEAST(m.first_gateway COLLATE \"C\", "
    "($8::text[])[($7::int4[])[e.n]]),\n"
    "        prev_times = time_place(m.first_gateway, m.first_sent_at, m.first_delivered_at, "
    "m.first_opened_at)";

/* A first time is new or earlier, or the gateway is. */
static const char or_earlier[] =
    "\n           OR ($6::timestamptz[])[e.n * 4 - 3] < COALESCE(m.first_sent_at, 'infinity')"
    " OR ($6::timestamptz[])[e.n * 4 - 2] < COALESCE(m.first_delivered_at, 'infinity')\n"
    "           OR ($6::timestamptz[])[e.n * 4 - 1] < COALESCE(m.first_opened_at, 'infinity')"
    " OR ($6::timestamptz[])[e.n * 4] < COALESCE(m.first_clicked_at, 'infinity')\n"
    "           OR COALESCE(($8::text[])[($7::int4[])[e.n]] < m.first_gateway COLLATE \"C\","
    " m.first_gateway IS NULL AND ($8::text[])[($7::int4[])[e.n]] IS NOT NULL)";

/* The JSON text of a parked receipt, as long as rules read it. */
#define DIGITS_OF(number) #number
#define PAYLOAD_TEXT(most)                                                                         \
    "CASE WHEN octet_length(g.payload) <= " DIGITS_OF(most) " THEN convert_from(g.payload, "       \
                                                            "'UTF8') END"
static const char payload_text[] = PAYLOAD_TEXT(RCPT_RULES_MOST_TEXT);

/* The columns that rules add to the answer, in three forms: for a changed row, for a row that stays
 * the same, and their names in the latter. */
struct extra {
    char *changed, *same, *seen;
};

static void add_extra(FILE *out[3], const char *name, const char *changed, const char *same)
{
    fprintf(out[0], ",\n              %s AS %s", changed, name);
    fprintf(out[1], ",\n           %s AS %s", same, name);
    fprintf(out[2], ", s.%s", name);
}

static struct extra write_extra(const struct rcpt_lane_variant *variant)
{
    struct extra extra;
    size_t sizes[3];
    FILE *out[3] = {rcpt_open_memory(&extra.changed, &sizes[0]),
                    rcpt_open_memory(&extra.same, &sizes[1]),
                    rcpt_open_memory(&extra.seen, &sizes[2])};
    add_extra(out, "organisation", variant->orgs ? "COALESCE(m.org_id, '')" : "NULL", "NULL");
    for (size_t index = 0; index < variant->column_count; index++) {
        char name[24];
        snprintf(name, sizeof(name), "x%zu", index + 1);
        add_extra(out, name, variant->columns[index].changed, variant->columns[index].same);
    }
    for (size_t index = 0; index < 3; index++)
        RCPT_ASSERT(fclose(out[index]) == 0);
    return extra;
}

static void free_extra(struct extra *extra)
{
    free(extra->changed);
    free(extra->same);
    free(extra->seen);
}

/* The boundary is an array of one element, for the operator that no plan takes for a range of an
 * index (sql/lane/decide_recent.sql). */
static size_t take_bindings(const struct rcpt_lane_variant *variant, const struct extra *extra,
                            struct rcpt_array_text *since,
                            struct rcpt_pg_binding bindings[static MOST_BINDINGS])
{
    size_t count = variant->binding_count;
    RCPT_ASSERT(count + OWN_BINDINGS <= MOST_BINDINGS);
    for (size_t index = 0; index < count; index++)
        bindings[index] = variant->bindings[index];
    const char *times = variant->times ? set_times : "",
               *earlier = variant->times ? or_earlier : "";
    bindings[count++] = (struct rcpt_pg_binding){"=changed", extra->changed};
    bindings[count++] = (struct rcpt_pg_binding){"=same", extra->same};
    bindings[count++] = (struct rcpt_pg_binding){"=seen", extra->seen};
    bindings[count++] =
        (struct rcpt_pg_binding){"=updated_at", variant->times ? changes_or_stays : changes_now};
    bindings[count++] = (struct rcpt_pg_binding){"=set_times", times};
    bindings[count++] = (struct rcpt_pg_binding){"=or_earlier", earlier};
    bindings[count++] =
        (struct rcpt_pg_binding){"=payload", variant->payloads ? payload_text : "NULL"};
    if (variant->recent_since == NULL)
        return count;
    const char *column = variant->recent_column;
    rcpt_array_text_add(since, variant->recent_since, strlen(variant->recent_since));
    bindings[count++] = (struct rcpt_pg_binding){"since", rcpt_array_text_finish(since)};
    bindings[count++] = (struct rcpt_pg_binding){"column", column != NULL ? column : "created_at"};
    return count;
}

/* ---- texts ---- */

static const char *file_of(const struct source *source, const struct rcpt_lane_variant *variant,
                           char file[static 64])
{
    bool recent = variant->recent_since != NULL && strcmp(source->statement.name, "decide") == 0;
    if (source->file != NULL)
        return source->file;
    snprintf(file, 64, "lane/%s%s", source->statement.name, recent ? "_recent" : "");
    return file;
}

/* Names stay while a connection is up; where the recent set changes, the text does. */
static void add_statement(struct rcpt_lane_statements *statements, const struct source *source,
                          const struct rcpt_lane_variant *variant,
                          const struct rcpt_pg_binding *bindings, size_t count)
{
    char file[64];
    struct rcpt_error error;
    size_t index = statements->count++;
    const char *sql = source->statement.sql;
    if (sql == NULL && source->where != IN_EXPIRY)
        sql = rcpt_sql(file_of(source, variant, file));
    char *text =
        sql != NULL ? rcpt_pg_bind(sql, bindings, count, &error) : rcpt_strdup(variant->candidates);
    RCPT_ASSERT(text != NULL);
    statements->texts[index] = text;
    statements->list[index] = source->statement;
    statements->list[index].sql = text;
}

static bool is_wanted(int where, const struct rcpt_lane_variant *variant)
{
    const bool wanted[] = {[IN_LANES] = variant->candidates == NULL,
                           [IN_EXPIRY] = variant->candidates != NULL,
                           [IN_BOTH] = true,
                           [WITH_INSERT] = variant->inserts_unknown,
                           [WITH_RANGES] = variant->resolves_ranges};
    return wanted[where];
}

/* The texts live as long as the list, since connections prepare them again after each reconnect. */
struct rcpt_lane_statements *rcpt_lane_statements_new(const struct rcpt_lane_variant *variant)
{
    struct rcpt_lane_statements *statements = rcpt_calloc(1, sizeof(*statements));
    struct rcpt_pg_binding bindings[MOST_BINDINGS];
    struct rcpt_array_text since;
    struct extra extra = write_extra(variant);
    rcpt_array_text_init(&since);
    size_t count = take_bindings(variant, &extra, &since, bindings);
    for (size_t index = 0; index < MOST_STATEMENTS; index++)
        if (is_wanted(sources[index].where, variant))
            add_statement(statements, &sources[index], variant, bindings, count);
    rcpt_array_text_fini(&since);
    free_extra(&extra);
    return statements;
}

void rcpt_lane_statements_free(struct rcpt_lane_statements *statements)
{
    if (statements == NULL)
        return;
    for (size_t index = 0; index < statements->count; index++)
        free(statements->texts[index]);
    free(statements);
}

/* Statements of other connections may have the same names. */
bool rcpt_lane_statement_is_utility(const struct rcpt_pg_statement *statement)
{
    return strcmp(statement->sql, "BEGIN") == 0 || strcmp(statement->sql, "COMMIT") == 0 ||
           strcmp(statement->sql, "ROLLBACK") == 0;
}

const struct rcpt_pg_statement *rcpt_lane_statements_list(
    const struct rcpt_lane_statements *statements, size_t *count)
{
    *count = statements->count;
    return statements->list;
}
