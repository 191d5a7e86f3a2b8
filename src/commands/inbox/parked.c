/* `receiptd parked`: lists receipts that wait for a message. --why tries the forms that gateways
 * and platforms make of one id (base/id_form.h), and says which of them would match. The forms are
 * computed here, and one statement looks them up by key. Reads only. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "../list.h"
#include "receiptd/base/error.h"
#include "receiptd/base/id_form.h"
#include "receiptd/postgres/array_text.h"
#include "receiptd/postgres/sql.h"

#define LIST_DEFAULT 100
#define LIST_MOST    10000
/* The id itself, then its forms. */
#define LOOK_UPS (1 + RCPT_ID_FORM__COUNT)

enum why {
    WHY_HELD, /* after the forms: RCPT_ID_FORM__COUNT is the first of these */
    WHY_RETIRED,
    WHY_ALIAS_ELSEWHERE,
    WHY_NOTHING,
    WHY__COUNT,
};

/* The receipts of a source, by answer. */
struct sum {
    char *source;
    bool is_account;
    int64_t rows, by[RCPT_ID_FORM__COUNT + WHY__COUNT];
};

struct sums {
    struct sum *at;
    size_t count;
};

/* ---- one receipt ---- */

static const char *why_text(size_t why)
{
    static const char *const forms[RCPT_ID_FORM__COUNT] = {
        [RCPT_ID_FORM_TRIM] = "matches without what stands around it",
        [RCPT_ID_FORM_LOWER] = "matches in lower case",
        [RCPT_ID_FORM_UPPER] = "matches in upper case",
        [RCPT_ID_FORM_STRIP_HYPHENS] = "matches without hyphens",
        [RCPT_ID_FORM_STRIP_ZEROS] = "matches without leading zeros",
        [RCPT_ID_FORM_STRIP_SUFFIX] = "matches without its suffix",
        [RCPT_ID_FORM_HEX_TO_DECIMAL] = "matches as decimal",
        [RCPT_ID_FORM_DECIMAL_TO_HEX] = "matches as hex",
    };
    static const char *const others[WHY__COUNT] = {
        [WHY_HELD] = "its message is there: it is woken soon",
        [WHY_RETIRED] = "its message was deleted",
        [WHY_ALIAS_ELSEWHERE] = "its alias leads to an id without a message",
        [WHY_NOTHING] = "no form of it is known",
    };
    return why < RCPT_ID_FORM__COUNT ? forms[why] : others[why - RCPT_ID_FORM__COUNT];
}

static size_t why_of(const struct rcpt_session_rows *found, size_t row)
{
    size_t first = row * LOOK_UPS;
    if (rcpt_session_rows_bool(found, first, "known"))
        return RCPT_ID_FORM__COUNT + WHY_HELD;
    for (size_t form = 0; form < RCPT_ID_FORM__COUNT; form++) {
        size_t at = first + 1 + form;
        if (rcpt_session_rows_bool(found, at, "known") ||
            rcpt_session_rows_bool(found, at, "alias"))
            return form;
    }
    if (rcpt_session_rows_bool(found, first, "retired"))
        return RCPT_ID_FORM__COUNT + WHY_RETIRED;
    if (rcpt_session_rows_bool(found, first, "elsewhere"))
        return RCPT_ID_FORM__COUNT + WHY_ALIAS_ELSEWHERE;
    return RCPT_ID_FORM__COUNT + WHY_NOTHING;
}

/* A form that the id cannot have is NULL and finds nothing, so rows keep their places. */
static void add_forms(const struct rcpt_session_rows *rows, size_t row, struct rcpt_array_text *ids,
                      struct rcpt_array_text *accounts)
{
    char made[RCPT_ID_FORM_BYTES];
    const char *account = rcpt_session_rows_text(rows, row, "account");
    struct rcpt_text id = rcpt_text_of(rcpt_session_rows_text(rows, row, "message_id"));
    rcpt_array_text_add(ids, id.at, id.size);
    for (int form = 0; form < RCPT_ID_FORM__COUNT; form++)
        if (rcpt_id_form_make((enum rcpt_id_form)form, id, made))
            rcpt_array_text_add(ids, made, strlen(made));
        else
            rcpt_array_text_add_null(ids);
    for (int look_up = 0; look_up < LOOK_UPS; look_up++)
        if (account != NULL)
            rcpt_array_text_add(accounts, account, strlen(account));
        else
            rcpt_array_text_add_null(accounts);
}

static struct rcpt_session_rows *look_up(struct command_context *context,
                                         const struct rcpt_session_rows *rows)
{
    struct rcpt_array_text ids, accounts;
    rcpt_array_text_init(&ids);
    rcpt_array_text_init(&accounts);
    for (size_t row = 0; row < rcpt_session_rows_count(rows); row++)
        add_forms(rows, row, &ids, &accounts);
    const char *const values[] = {rcpt_array_text_finish(&ids), rcpt_array_text_finish(&accounts)};
    struct rcpt_session_rows *found = rcpt_session_query(
        context->session, rcpt_sql("command/parked_why"), 2, values, &context->error);
    rcpt_array_text_fini(&ids);
    rcpt_array_text_fini(&accounts);
    return found;
}

/* ---- the sum ---- */

static struct sum *sum_of(struct sums *sums, const char *source, bool is_account)
{
    for (size_t index = 0; index < sums->count; index++)
        if (strcmp(sums->at[index].source, source) == 0)
            return &sums->at[index];
    sums->at = rcpt_realloc(sums->at, (sums->count + 1) * sizeof(*sums->at));
    struct sum *sum = &sums->at[sums->count++];
    *sum = (struct sum){.source = rcpt_strdup(source), .is_account = is_account};
    return sum;
}

/* The line to configure; receipts that others have put into Kafka have no account. */
static void print_sum(const struct sum *sum)
{
    for (size_t why = 0; why < RCPT_ID_FORM__COUNT + WHY__COUNT; why++) {
        if (sum->by[why] == 0)
            continue;
        printf("%s ", sum->is_account ? "account" : "source");
        report_print_padded(stdout, sum->source, 0, false);
        printf(": %" PRId64 " of %" PRId64 ": %s\n", sum->by[why], sum->rows, why_text(why));
        if (why < RCPT_ID_FORM__COUNT && sum->is_account)
            printf("  intake.accounts, name %s: message_id_form: [%s]\n", sum->source,
                   rcpt_id_form_name((enum rcpt_id_form)why));
    }
}

static void print_sums(struct sums *sums, bool shown)
{
    if (shown && sums->count > 0)
        putchar('\n');
    for (size_t index = 0; index < sums->count; index++) {
        if (shown)
            print_sum(&sums->at[index]);
        free(sums->at[index].source);
    }
    free(sums->at);
}

/* ---- the whole ---- */

static const struct report_column columns[] = {
    {"parked_at", REPORT_TEXT}, {"age_s", REPORT_NUMBER}, {"message_id", REPORT_TEXT},
    {"source", REPORT_TEXT},    {"topic", REPORT_TEXT},   {"partition", REPORT_NUMBER},
    {"offset", REPORT_NUMBER},  {"index", REPORT_NUMBER}, {"why", REPORT_TEXT}};
#define COLUMN_COUNT  RCPT_COUNT_OF(columns)
#define NOTHING_WAITS "no receipt waits"

/* The person is no column: it may be a phone number. */
static const struct report_column range_columns[] = {
    {"parked_at", REPORT_TEXT},   {"age_s", REPORT_NUMBER},  {"status", REPORT_TEXT},
    {"until", REPORT_TEXT},       {"source", REPORT_TEXT},   {"topic", REPORT_TEXT},
    {"partition", REPORT_NUMBER}, {"offset", REPORT_NUMBER}, {"index", REPORT_NUMBER},
    {"messages", REPORT_NUMBER},  {"next_s", REPORT_NUMBER}};

/* The last column has the answer to each receipt. Sums by source follow. */
static void print_why(const struct rcpt_session_rows *rows, const struct rcpt_session_rows *found,
                      enum command_format format)
{
    struct sums sums = {NULL, 0};
    struct report report;
    report_init(&report, columns, COLUMN_COUNT);
    for (size_t row = 0; row < rcpt_session_rows_count(rows); row++) {
        for (size_t column = 0; column < COLUMN_COUNT - 1; column++)
            report_add(&report, rcpt_session_rows_text(rows, row, columns[column].name));
        size_t why = why_of(found, row);
        report_add(&report, why_text(why));
        struct sum *sum = sum_of(&sums, rcpt_session_rows_text(rows, row, "source"),
                                 rcpt_session_rows_text(rows, row, "account") != NULL);
        sum->rows++;
        sum->by[why]++;
    }
    report_print(&report, format, NOTHING_WAITS);
    report_fini(&report);
    print_sums(&sums, format == COMMAND_FORMAT_TABLE);
}

static bool show_why(struct command_context *context, enum command_format format,
                     const char *const *values, size_t *count)
{
    struct rcpt_session_rows *rows = rcpt_session_query(
        context->session, rcpt_sql("command/parked_list"), 3, values, &context->error);
    struct rcpt_session_rows *found = rows != NULL ? look_up(context, rows) : NULL;
    if (found != NULL) {
        *count = rcpt_session_rows_count(rows);
        print_why(rows, found, format);
    }
    rcpt_session_rows_free(rows);
    rcpt_session_rows_free(found);
    return found != NULL;
}

static bool show(const struct command_call *call, struct command_context *context,
                 enum command_format format, int64_t limit)
{
    static const struct list parked = {.file = "command/parked_list",
                                       .empty = NOTHING_WAITS,
                                       .columns = columns,
                                       .column_count = COLUMN_COUNT - 1};
    static const struct list ranges = {
        .file = "command/ranges_list", .empty = "no range waits", LIST_COLUMNS(range_columns)};
    char most[24];
    size_t count = 0;
    snprintf(most, sizeof(most), "%" PRId64, limit);
    const char *const values[] = {command_option(call, "source"), command_option(call, "topic"),
                                  most};
    if (command_option(call, "ranges") != NULL)
        return list_print(&ranges, context, format, 3, values, &count);
    bool good = command_option(call, "why") != NULL
                    ? show_why(context, format, values, &count)
                    : list_print(&parked, context, format, 3, values, &count);
    /* How many receipts one source or topic has is not known. */
    bool counts = format == COMMAND_FORMAT_TABLE && values[0] == NULL && values[1] == NULL;
    return good &&
           (!counts || (int64_t)count != limit || command_print_held(context, "parked", count));
}

int command_parked(const struct command_call *call)
{
    enum command_format format;
    struct command_context context;
    int64_t limit;
    int exit_code;
    if (!command_format(call, &format) ||
        !command_number(call, "limit", 1, LIST_MOST, LIST_DEFAULT, &limit))
        return EX_USAGE;
    if (command_option(call, "why") != NULL && command_option(call, "ranges") != NULL)
        return command_usage(call,
                             "--why is for receipts that name a message, so not with --ranges");
    if (!command_open(&context, call, true, &exit_code))
        return exit_code;
    exit_code =
        show(call, &context, format, limit) ? command_printed(EX_OK) : command_fail(&context.error);
    command_close(&context);
    return exit_code;
}
