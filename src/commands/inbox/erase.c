/* `receiptd erase`: deletes a person's messages and all that the schema stores of them. Each step
 * is one transaction for some hundred messages: erase_messages() deletes, and the record of the
 * erasure counts. A step deletes the rows of the inbox with everything else, so a second run after
 * an interruption finds what is left. A dry run rolls each step back. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "../command.h"
#include "../turns.h"
#include "erase_letters.h"
#include "place.h"
#include "receiptd/config/rule_columns.h"
#include "receiptd/core/record.h"
#include "receiptd/postgres/array_text.h"
#include "receiptd/postgres/bind.h"
#include "receiptd/postgres/sql.h"
#include "walk.h"

#define STEP_ROWS 500

enum { KIND_PARKED = 1, KIND_LETTERS = 2, KIND_COUNT = 7 };
/* Columns of erase/step, and what people call them. Dead letters are not among them:
 * erase_letters() counts those. */
static const struct {
    const char *column, *name;
} kinds[KIND_COUNT] = {
    {"messages", "messages"},      {"parked", "parked receipts"},
    {NULL, "dead letters"},        {"timeline", "rows of the timeline"},
    {"aliases", "aliases"},        {"runs", "runs"},
    {"folds", "entries of folds"},
};

struct erasure {
    struct command_context *context;
    struct inbox_place place;
    const char *customer; /* NULL: messages are named */
    bool gone_before;     /* the customer's messages of this step were deleted before */
    bool dry_run;
    char id[24]; /* of the record */
    int64_t rows[KIND_COUNT];
};

/* The ids of one step. */
struct ids {
    char *at[STEP_ROWS];
    size_t count;
};

static void drop_ids(struct ids *ids)
{
    while (ids->count > 0)
        free(ids->at[--ids->count]);
}

/* ---- one step ---- */

/* One statement erases all that is stored of some messages except their dead letters, and counts
 * the rows by kind. The gateways' ids of the messages are added to `names`. */
static bool run_step(struct erasure *erasure, const char *literal, struct erase_names *names)
{
    struct command_context *context = erasure->context;
    const char *customer = erasure->gone_before ? NULL : erasure->customer;
    const char *const values[] = {literal, customer,
                                  customer != NULL ? context->config->inbox.customer_id : NULL,
                                  erasure->id};
    struct rcpt_session_rows *rows =
        rcpt_session_query(context->session, rcpt_sql("erase/step"), 4, values, &context->error);
    for (size_t kind = 0; rows != NULL && kind < KIND_COUNT; kind++)
        if (kinds[kind].column != NULL)
            erasure->rows[kind] += rcpt_session_rows_int(rows, 0, kinds[kind].column);
    for (size_t row = 0; rows != NULL && row < rcpt_session_rows_count(rows); row++)
        erase_names_add(names, rcpt_text_of(rcpt_session_rows_text(rows, row, "account")),
                        rcpt_text_of(rcpt_session_rows_text(rows, row, "gateway_id")));
    bool good = rows != NULL;
    rcpt_session_rows_free(rows);
    return good;
}

/* Letters are read only if there is a name to look for. */
static bool run_letters(struct erasure *erasure, struct erase_names *names)
{
    if (names->count == 0)
        return true;
    int64_t gone = erase_letters(erasure->context, names, erasure->id);
    erasure->rows[KIND_LETTERS] += gone > 0 ? gone : 0;
    return gone >= 0;
}

/* Ranges are deleted before the rows: only the inbox's columns tell whose ranges they are. */
static bool erase_ranges(struct erasure *erasure, const char *literal)
{
    struct command_context *context = erasure->context;
    const char *const values[] = {literal, erasure->id};
    struct rcpt_ranges ranges;
    rcpt_ranges_read(context->config, &ranges);
    if (!ranges.on)
        return true;
    char *sql = rcpt_pg_bind(rcpt_sql("erase/ranges"), ranges.bindings, ranges.binding_count,
                             &context->error);
    struct rcpt_session_rows *rows =
        sql != NULL ? rcpt_session_query(context->session, sql, 2, values, &context->error) : NULL;
    if (rows != NULL)
        erasure->rows[KIND_PARKED] += rcpt_session_rows_int(rows, 0, "rows");
    free(sql);
    rcpt_session_rows_free(rows);
    return rows != NULL;
}

/* A step is one transaction. A dry run rolls it back, so it counts exactly what a real run would.
 */
static bool step(struct erasure *erasure, const struct ids *ids)
{
    struct command_context *context = erasure->context;
    struct rcpt_array_text array;
    struct erase_names names;
    rcpt_array_text_init(&array);
    erase_names_init(&names);
    for (size_t index = 0; index < ids->count; index++) {
        rcpt_array_text_add(&array, ids->at[index], strlen(ids->at[index]));
        erase_names_add(&names, rcpt_text_of(NULL), rcpt_text_of(ids->at[index]));
    }
    const char *literal = rcpt_array_text_finish(&array);
    bool good =
        rcpt_session_begin(context->session, "ISOLATION LEVEL READ COMMITTED", &context->error) &&
        erase_ranges(erasure, literal) && run_step(erasure, literal, &names) &&
        run_letters(erasure, &names) &&
        (erasure->dry_run || rcpt_session_commit(context->session, &context->error));
    if (!good || erasure->dry_run)
        rcpt_session_rollback(context->session);
    erase_names_fini(&names);
    rcpt_array_text_fini(&array);
    return good;
}

/* ---- whose messages ---- */

/* The statement that reads the next ids of the person, in the order of the key. The caller frees
 * it. */
static char *bind_page(const struct erasure *erasure)
{
    const struct inbox_place *place = &erasure->place;
    const struct rcpt_config *config = erasure->context->config;
    const struct rcpt_pg_binding bindings[] = {{"inbox_schema", place->schema},
                                               {"inbox_table", place->table},
                                               {"message_id", place->columns[INBOX_message_id]},
                                               {"customer_id", config->inbox.customer_id}};
    return rcpt_pg_bind(rcpt_sql("erase/messages_of"), bindings, 4, &erasure->context->error);
}

static bool check_column(struct erasure *erasure)
{
    struct command_context *context = erasure->context;
    const char *const values[] = {erasure->place.schema, erasure->place.table,
                                  context->config->inbox.customer_id};
    struct rcpt_session_rows *rows =
        rcpt_session_query(context->session, rcpt_sql("erase/column"), 3, values, &context->error);
    bool good = rows != NULL;
    rcpt_session_rows_free(rows);
    return good;
}

/* The next page after the last id; a page is a step. */
static bool read_page(struct erasure *erasure, const char *sql, const char *after, struct ids *ids)
{
    struct command_context *context = erasure->context;
    char most[24];
    snprintf(most, sizeof(most), "%d", STEP_ROWS);
    const char *const values[] = {erasure->customer, after, most,
                                  context->config->inbox.customer_id};
    struct rcpt_session_rows *rows = rcpt_session_query(
        context->session, sql, erasure->gone_before ? 4 : 3, values, &context->error);
    for (size_t row = 0; rows != NULL && row < rcpt_session_rows_count(rows); row++)
        ids->at[ids->count++] = rcpt_strdup(rcpt_session_rows_text(rows, row, "id"));
    bool good = rows != NULL;
    rcpt_session_rows_free(rows);
    return good;
}

/* All pages of a statement. */
static bool erase_pages(struct erasure *erasure, const char *sql)
{
    struct ids ids = {.count = 0};
    char *after = rcpt_strdup("");
    bool good = true, more = true;
    while (good && more) {
        good = read_page(erasure, sql, after, &ids);
        more = ids.count == STEP_ROWS;
        if (good && ids.count > 0) {
            free(after);
            after = rcpt_strdup(ids.at[ids.count - 1]);
        }
        /* A step without messages deletes rows that name only the customer. */
        good = good && ((erasure->gone_before && ids.count == 0) || step(erasure, &ids));
        drop_ids(&ids);
    }
    free(after);
    return good;
}

/* ---- groups ---- */

/* Earlier changes are rolled up first: a later roll-up would bring the group back. */
static bool run_groups(struct erasure *erasure, const char *sql)
{
    struct command_context *context = erasure->context;
    const char *const all[] = {"2147483647", "0"}, *const values[] = {erasure->customer};
    struct rcpt_session *session = context->session;
    if (!turns_wait(context, "command/groups_lock"))
        return false;
    struct rcpt_session_rows *rows =
        rcpt_session_query(session, rcpt_sql("control/rollup_groups"), 2, all, &context->error);
    bool folded = rows != NULL;
    rcpt_session_rows_free(rows);
    rows = folded ? rcpt_session_query(session, sql, 1, values, &context->error) : NULL;
    rcpt_session_rows_free(rows);
    return rows != NULL;
}

/* Runs after the last message. Appended changes of the person's groups are rolled up first, or they
 * would bring the groups back. */
static bool erase_groups(struct erasure *erasure)
{
    struct command_context *context = erasure->context;
    const struct rcpt_pg_binding bindings[] = {{"inbox_schema", erasure->place.schema},
                                               {"inbox_table", erasure->place.table},
                                               {"customer_id", context->config->inbox.customer_id}};
    if (erasure->dry_run)
        return true;
    char *sql = rcpt_pg_bind(rcpt_sql("erase/groups"), bindings, 3, &context->error);
    bool good =
        sql != NULL &&
        rcpt_session_begin(context->session, "ISOLATION LEVEL READ COMMITTED", &context->error) &&
        run_groups(erasure, sql) && rcpt_session_commit(context->session, &context->error);
    if (!good)
        rcpt_session_rollback(context->session);
    free(sql);
    return good;
}

/* Runs name messages of the customer that were deleted earlier. These come first, because the next
 * step deletes the runs. */
static bool erase_customer(struct erasure *erasure)
{
    char *sql = check_column(erasure) ? bind_page(erasure) : NULL;
    erasure->gone_before = true;
    bool good = sql != NULL && erase_pages(erasure, rcpt_sql("erase/messages_before"));
    erasure->gone_before = false;
    good = good && erase_pages(erasure, sql) && erase_groups(erasure);
    free(sql);
    return good;
}

/* ---- messages that are named ---- */

static bool check_id(struct erasure *erasure, const char *id, size_t line)
{
    size_t size = strlen(id);
    if (size > 0 && size <= RCPT_RECORD_MAX_ID_BYTES && rcpt_utf8_is_text(id, size))
        return true;
    return rcpt_error_fatal(&erasure->context->error, EX_DATAERR,
                            "line %zu is no message id: one has 1 to %d bytes of UTF-8", line,
                            RCPT_RECORD_MAX_ID_BYTES);
}

static bool erase_lines(struct erasure *erasure, FILE *in)
{
    struct ids ids = {.count = 0};
    char *line = NULL;
    size_t capacity = 0, number = 0;
    bool good = true;
    for (ssize_t size; good && (size = getline(&line, &capacity, in)) >= 0;) {
        while (size > 0 && (line[size - 1] == '\n' || line[size - 1] == '\r'))
            line[--size] = '\0';
        number++;
        if (size == 0)
            continue;
        good = check_id(erasure, line, number);
        if (good)
            ids.at[ids.count++] = rcpt_strdup(line);
        if (good && ids.count == STEP_ROWS) {
            good = step(erasure, &ids);
            drop_ids(&ids);
        }
    }
    if (good && ids.count > 0)
        good = step(erasure, &ids);
    drop_ids(&ids);
    free(line);
    if (good && ferror(in))
        return rcpt_error_fatal(&erasure->context->error, EX_IOERR,
                                "--messages-from: reading failed: %s", strerror(errno));
    return good;
}

static bool erase_file(struct erasure *erasure, const char *path)
{
    if (strcmp(path, "-") == 0)
        return erase_lines(erasure, stdin);
    FILE *in = fopen(path, "re");
    if (in == NULL)
        return rcpt_error_fatal(&erasure->context->error, EX_NOINPUT, "--messages-from %s: %s",
                                path, strerror(errno));
    bool good = erase_lines(erasure, in);
    fclose(in);
    return good;
}

/* The message may be gone: everything else that is stored of the id is deleted. */
static bool erase_one(struct erasure *erasure, const char *id)
{
    struct ids ids = {.count = 1};
    ids.at[0] = rcpt_strdup(id);
    bool good = check_id(erasure, id, 1) && step(erasure, &ids);
    drop_ids(&ids);
    return good;
}

/* ---- the whole ---- */

/* If the trigger is missing, the counters would be ahead of the messages that are left. */
static bool check_trigger(const struct erasure *erasure)
{
    struct command_context *context = erasure->context;
    const struct inbox_place *place = &erasure->place;
    const char *const values[] = {place->schema, place->table};
    struct rcpt_session_rows *parts =
        rcpt_session_query(context->session, rcpt_sql("retire/parts"), 2, values, &context->error);
    bool good = parts != NULL && command_check_booked(context, place->schema, place->table, parts);
    rcpt_session_rows_free(parts);
    return good;
}

/* A dry run has no record. */
static bool begin(struct erasure *erasure, const struct command_call *call)
{
    struct command_context *context = erasure->context;
    const char *named = command_option(call, "message");
    const char *subject = erasure->customer != NULL ? erasure->customer : named;
    const char *const values[] = {erasure->customer != NULL ? "customer" : "messages",
                                  command_option(call, "reference"), subject};
    snprintf(erasure->id, sizeof(erasure->id), "0");
    if (erasure->dry_run)
        return true;
    struct rcpt_session_rows *rows =
        rcpt_session_query(context->session, rcpt_sql("erase/begin"), 3, values, &context->error);
    if (rows != NULL)
        snprintf(erasure->id, sizeof(erasure->id), "%s", rcpt_session_rows_text(rows, 0, "id"));
    bool good = rows != NULL;
    rcpt_session_rows_free(rows);
    return good;
}

/* A record without this time says that the run did not end. */
static bool finish(struct erasure *erasure)
{
    struct command_context *context = erasure->context;
    const char *const values[] = {erasure->id};
    if (erasure->dry_run)
        return true;
    struct rcpt_session_rows *rows =
        rcpt_session_query(context->session, rcpt_sql("erase/finish"), 1, values, &context->error);
    bool good = rows != NULL;
    rcpt_session_rows_free(rows);
    return good;
}

static bool erase(struct erasure *erasure, const struct command_call *call)
{
    const char *message = command_option(call, "message");
    if (!check_trigger(erasure) || !begin(erasure, call))
        return false;
    bool good = erasure->customer != NULL ? erase_customer(erasure)
                : message != NULL         ? erase_one(erasure, message)
                                  : erase_file(erasure, command_option(call, "messages-from"));
    return good && finish(erasure);
}

static void print(const struct erasure *erasure)
{
    for (size_t kind = 0; kind < KIND_COUNT; kind++)
        printf("%s: %" PRId64 "%s\n", kinds[kind].name, erasure->rows[kind],
               erasure->dry_run ? " would go" : " erased");
    if (erasure->dry_run)
        puts("nothing was erased");
    else
        printf("recorded as erasure %s\n", erasure->id);
}

static bool run(const struct command_call *call, struct erasure *erasure)
{
    struct rcpt_error *error = &erasure->context->error;
    if (erasure->customer != NULL && erasure->context->config->inbox.customer_id == NULL) {
        rcpt_error_fatal(
            error, EX_CONFIG,
            "inbox.columns.customer_id is not set: the customer of a message is unknown");
        rcpt_error_hint(error, "name the column of the inbox that holds the customer's id, or the "
                               "messages with --messages-from");
        return false;
    }
    inbox_place_of(erasure->context->config, &erasure->place);
    if (!rcpt_session_execute(erasure->context->session, "SET lock_timeout = '30s'", error) ||
        !erase(erasure, call))
        return false;
    print(erasure);
    return true;
}

int command_erase(const struct command_call *call)
{
    struct command_context context;
    struct erasure erasure = {.context = &context,
                              .customer = command_option(call, "customer"),
                              .dry_run = command_option(call, "dry-run") != NULL};
    int exit_code = EX_USAGE;
    int given = (erasure.customer != NULL) + (command_option(call, "message") != NULL) +
                (command_option(call, "messages-from") != NULL);
    if (given != 1)
        return command_usage(
            call, "whose messages? Give one of --customer, --message and --messages-from");
    if (erasure.customer != NULL && *erasure.customer == '\0')
        return command_usage(call, "--customer is empty");
    if (!command_open_as(&context, call, command_option(call, "dsn"), false, &exit_code))
        return exit_code;
    return command_end_as_owner(call, &context, run(call, &erasure), "SELECT, UPDATE and DELETE");
}
