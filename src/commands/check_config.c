/* `receiptd check-config`: loads the file as the daemon would, asks librdkafka about its
 * properties, prints notes about weak settings. Connects to nothing, unless it is to check the
 * database too. The pages of the reference and the example come from here too. */
#include <stdio.h>
#include <stdlib.h>
#include <sysexits.h>

#include "command.h"
#include "inbox/check.h"
#include "inbox/partitions.h"
#include "inbox/recent.h"
#include "migrate/migrate.h"
#include "migrate/powers.h"
#include "receiptd/base/document.h"
#include "receiptd/config/pipelines.h"
#include "receiptd/kafka/consumer.h"
#include "receiptd/postgres/connection.h"
#include "receiptd/postgres/sql.h"

/* librdkafka knows its properties, the table of keys does not. A mistyped name is refused also
 * because --print decides by the name alone whether to hide the value. */
static bool check_properties(const struct rcpt_config *config, const char *path,
                             struct rcpt_error *error)
{
    for (unsigned index = 0; index < config->kafka.properties_count; index++) {
        const struct rcpt_config_pair *pair = &config->kafka.properties[index];
        struct rcpt_error refusal = {0};
        if (rcpt_kafka_check_property(pair->name, pair->value, &refusal))
            continue;
        rcpt_error_fatal(error, EX_CONFIG, "%s:%u:%u: kafka.properties: %s", path, pair->line,
                         pair->column, refusal.text);
        rcpt_error_hint(error, "%s", refusal.hint);
        return false;
    }
    return true;
}

/* Notes go to stderr: --print writes a file to stdout that can be used as it is. */
static void print_note(void *context, const char *key, const char *what, const char *hint)
{
    (void)context;
    fprintf(stderr, "note: %s: %s; %s\n", key, what, hint);
}

/* `subject` stands for the field that it is taken from. */
static struct rcpt_text field_of(const struct rcpt_node *pipeline, const struct rcpt_node *item)
{
    struct rcpt_text subject = rcpt_node_text_of(pipeline, "subject");
    bool is_subject = rcpt_text_equal(item->text, rcpt_text_of("subject")) && subject.size > 0;
    return is_subject ? subject : item->text;
}

/* Every field of the part's once_per is one of the whole's. */
static bool is_part(const struct rcpt_node *part, const struct rcpt_node *whole)
{
    const struct rcpt_node *mine = rcpt_node_get(part, "once_per");
    const struct rcpt_node *theirs = rcpt_node_get(whole, "once_per");
    for (const struct rcpt_node *item = mine->first; item != NULL; item = item->next) {
        const struct rcpt_node *same = theirs->first;
        while (same != NULL && !rcpt_text_equal(field_of(part, item), field_of(whole, same)))
            same = same->next;
        if (same == NULL)
            return false;
    }
    return theirs->type == RCPT_NODE_ARRAY;
}

/* Says what once_per means, and names the first earlier pipeline that counts by the same fields.
 * Both numbers are small: a file has at most 200 pipelines. */
static void note_once(const struct rcpt_node *pipeline, const struct rcpt_node *first,
                      bool for_ever)
{
    const struct rcpt_node *mine = rcpt_node_get(pipeline, "once_per"), *other = first;
    struct rcpt_text name = rcpt_node_text_of(pipeline, "name");
    struct rcpt_text push = rcpt_node_text_of(pipeline, "push");
    if (mine->type != RCPT_NODE_ARRAY)
        return;
    fprintf(stderr, "note: pipelines.%.*s.once_per: one run for each", (int)name.size, name.at);
    for (const struct rcpt_node *item = mine->first; item != NULL; item = item->next) {
        struct rcpt_text field = field_of(pipeline, item);
        fprintf(stderr, "%s %.*s", item != mine->first ? " and" : "", (int)field.size, field.at);
    }
    fprintf(stderr, ", %s, ", for_ever ? "for ever" : "for actions.once_retention");
    if (push.size > 0) {
        fprintf(stderr, "over all of push %.*s: pipelines and claim_push()\n", (int)push.size,
                push.at);
        return;
    }
    fputs("of this pipeline alone", stderr);
    while (other != pipeline && !(is_part(pipeline, other) && is_part(other, pipeline)))
        other = other->next;
    name = rcpt_node_text_of(other, "name");
    if (other != pipeline)
        fprintf(stderr, "; whoever has passed %.*s may begin it, too", (int)name.size, name.at);
    fputc('\n', stderr);
}

static bool asks_for_suppressed(const struct rcpt_node *pipeline)
{
    for (const struct rcpt_node *step = rcpt_node_get(pipeline, "steps")->first; step != NULL;
         step = step->next)
        for (const struct rcpt_node *code = rcpt_node_get(step, "unless")->first; code != NULL;
             code = code->next)
            if (strtol(code->text.at, NULL, 10) == PIPELINES_SUPPRESSED)
                return true;
    return false;
}

/* The look-up goes by the run's organisation and subject. */
static void note_suppressed(const struct rcpt_node *pipeline, const char *person)
{
    struct rcpt_text name = rcpt_node_text_of(pipeline, "name");
    if (asks_for_suppressed(pipeline) &&
        (!rcpt_text_is(rcpt_node_text_of(pipeline, "subject"), person) ||
         !rcpt_text_is(rcpt_node_text_of(pipeline, "org"), "org_id")))
        fprintf(stderr,
                "note: pipelines.%.*s: suppressed looks for its org and subject, which are not "
                "org_id and %s (suppression.subject): it may find nobody\n",
                (int)name.size, name.at, person);
}

/* A number of a definition, which pipelines_write() has written; 0: it is not there. */
static int number_of(const struct rcpt_node *node, const char *name)
{
    struct rcpt_text text = rcpt_node_text_of(node, name);
    return text.at != NULL ? (int)strtol(text.at, NULL, 10) : 0;
}

/* Says when the calls of a step may begin, and by whose clock. */
static void note_window(const struct rcpt_node *pipeline, const struct rcpt_node *step,
                        const struct rcpt_config *config)
{
    static const char days[] = "mon\0tue\0wed\0thu\0fri\0sat\0sun";
    const struct rcpt_node *list = rcpt_node_get(step, "days");
    const char *field = config->actions.zone_field;
    struct rcpt_text name = rcpt_node_text_of(pipeline, "name");
    struct rcpt_text target = rcpt_node_text_of(step, "target");
    struct rcpt_text hour = rcpt_node_text_of(step, "hour_field");
    int from_s = number_of(step, "from_second"), till_s = number_of(step, "till_second");
    if (till_s == from_s)
        return;
    fprintf(stderr,
            "note: pipelines.%.*s.between: calls of %.*s begin %02d:%02d:%02d-%02d:%02d:%02d",
            (int)name.size, name.at, (int)target.size, target.at, from_s / 3600, from_s / 60 % 60,
            from_s % 60, till_s / 3600, till_s / 60 % 60, till_s % 60);
    for (const struct rcpt_node *day = list != NULL ? list->first : NULL; day != NULL;
         day = day->next)
        fprintf(stderr, " %s", days + (ptrdiff_t)4 * (day->text.at[0] - '1'));
    fprintf(stderr, " in the zone %s%s%s", field != NULL ? field : "", field != NULL ? " or " : "",
            config->actions.zone);
    if (hour.size > 0)
        fprintf(stderr, ", not before the hour in %.*s", (int)hour.size, hour.at);
    fprintf(stderr, ", spread over %d s\n", number_of(step, "smooth_ms") / 1000);
}

/* The first of the compiled pipelines; NULL: there is none. */
static const struct rcpt_node *read_pipelines(const struct rcpt_config *config,
                                              struct rcpt_arena *arena)
{
    const char *reason;
    if (config->compiled == NULL)
        return NULL;
    const struct rcpt_node *root =
        rcpt_document_parse(rcpt_text_of(config->compiled->definitions), arena, &reason);
    RCPT_ASSERT(root != NULL && root->type == RCPT_NODE_ARRAY);
    return root->first;
}

/* The note is needed because once_per reads as if two pipelines together reached each subject once.
 */
static void note_pipelines(const struct rcpt_config *config)
{
    struct rcpt_arena arena;
    bool asks = false;
    rcpt_arena_init(&arena, 64 * 1024);
    const struct rcpt_node *first = read_pipelines(config, &arena);
    for (const struct rcpt_node *pipeline = first; pipeline != NULL; pipeline = pipeline->next) {
        note_once(pipeline, first, config->actions.once_retention_ms == 0);
        asks = asks || rcpt_node_get(pipeline, "lookup") != NULL;
        if (config->suppression.subject != NULL)
            note_suppressed(pipeline, config->suppression.subject);
        const struct rcpt_node *steps = rcpt_node_get(pipeline, "steps");
        for (const struct rcpt_node *step = steps->first; step != NULL; step = step->next)
            note_window(pipeline, step, config);
    }
    rcpt_arena_fini(&arena);
    if (asks && config->actions.lookup_dsn == NULL)
        print_note(NULL, "actions.lookup_dsn", "not set: look-ups read as the daemon's role",
                   "give them a role that may only SELECT what they name");
}

/* Another group of instances may read it: only this file cannot tell. */
static void note_topics(const struct rcpt_config *config)
{
    for (size_t index = 0; index < config->intake.accounts_count; index++) {
        const struct rcpt_gateway_account_config *account = &config->intake.accounts[index];
        char key[128], what[320];
        unsigned at = 0;
        while (account->topic != NULL && at < config->kafka.topics_count &&
               strcmp(config->kafka.topics[at], account->topic) != 0)
            at++;
        if (account->topic == NULL || at < config->kafka.topics_count)
            continue;
        snprintf(key, sizeof(key), "intake.accounts.%.63s.topic", account->name);
        snprintf(what, sizeof(what), "no entry of kafka.topics reads \"%.249s\"", account->topic);
        print_note(NULL, key, what, "other instances have to, or its receipts count nowhere");
    }
}

/* ---- the database ---- */

/* Notes what `receiptd migrate` would still do to the inbox. Then prepares the statements, if there
 * is an inbox. */
static bool check_inbox(struct command_context *context)
{
    struct rcpt_session_rows *state = inbox_read_state(context);
    if (state == NULL)
        return false;
    const char *unseen = rcpt_session_rows_text(state, 0, "unseen");
    const char *uncounted = rcpt_session_rows_text(state, 0, "uncounted");
    bool there = rcpt_session_rows_text(state, 0, "inbox_kind") != NULL;
    if (!there)
        print_note(NULL, "postgres.schema", "there is no inbox yet", "run receiptd migrate");
    if (unseen != NULL) {
        fprintf(stderr,
                "note: inbox.table: columns that message_inbox does not show yet: %s; run "
                "receiptd migrate\n",
                unseen);
    }
    if (uncounted != NULL) {
        fprintf(stderr,
                "note: inbox.table: partitions whose rows are not counted when they are inserted "
                "there directly: %s; run receiptd migrate\n",
                uncounted);
    }
    rcpt_session_rows_free(state);
    return !there || (inbox_check_statements(context, NULL) && inbox_check_fields(context));
}

/* Before the first migration there is nothing to describe. */
static bool describe_inbox(struct command_context *context)
{
    struct rcpt_session_rows *rows = rcpt_session_query(
        context->session, "SELECT to_regclass('inbox_recent') AS there", 0, NULL, &context->error);
    bool there = rows != NULL && rcpt_session_rows_text(rows, 0, "there") != NULL;
    bool good = rows != NULL;
    rcpt_session_rows_free(rows);
    return good && (!there || (recent_describe(context, false) && partitions_note(context)));
}

/* The transaction is read-only: planning a statement runs nothing. */
static bool check_reading(struct command_context *context, struct migrate_plan *plan)
{
    bool good = rcpt_session_begin(context->session, "READ ONLY", &context->error) &&
                inbox_check_table(context) && migrate_plan_make(plan) && check_inbox(context) &&
                describe_inbox(context) && powers_describe(context, NULL, 0);
    rcpt_session_rollback(context->session);
    return good;
}

/* Checks the rows of a table that becomes the inbox, as migrate would. It writes nothing. The lock
 * keeps the table's owner from adding code that these reads would run. */
static bool check_rows(struct command_context *context, struct migrate_plan *plan)
{
    if (!plan->maps_inbox)
        return true;
    bool good = rcpt_session_begin(context->session, "READ WRITE", &context->error) &&
                migrate_ladder_try(plan);
    rcpt_session_rollback(context->session);
    return good;
}

/* Whatever migrate would refuse is refused here, since the plan is migrate's own. */
static bool check_database(struct rcpt_config *config, const struct command_call *call,
                           struct rcpt_error *error)
{
    struct command_context context = {.config = config};
    struct migrate_plan plan;
    migrate_plan_init(&plan, &context, NULL, true);
    bool good = command_connect(&context, call, true) && check_reading(&context, &plan) &&
                check_rows(&context, &plan);
    if (good && plan.note[0] != '\0')
        fprintf(stderr, "note: receiptd migrate: %s\n", plan.note);
    migrate_plan_fini(&plan);
    rcpt_session_close(context.session);
    free(context.dsn);
    *error = context.error;
    return good;
}

/* Planning a look-up checks the rights of the role that will ask. */
static bool check_lookup(struct rcpt_session *session, const char *path,
                         const struct rcpt_node *pipeline, struct rcpt_error *error)
{
    struct rcpt_text text = rcpt_node_text_of(rcpt_node_get(pipeline, "lookup"), "sql");
    struct rcpt_text line = rcpt_node_text_of(pipeline, "lookup_line");
    struct rcpt_text column = rcpt_node_text_of(pipeline, "lookup_column");
    struct rcpt_text name = rcpt_node_text_of(pipeline, "name");
    char *sql = rcpt_strndup(text.at, text.size);
    struct rcpt_error cause;
    bool good = rcpt_session_check_statements(
        session, &(struct rcpt_pg_statement){.name = "lookup", .sql = sql}, 1, &cause);
    free(sql);
    if (good)
        return true;
    rcpt_error_fatal(error, EX_CONFIG, "%s:%.*s:%.*s: pipelines.%.*s: lookup.sql: %.350s", path,
                     (int)line.size, line.at, (int)column.size, column.at, (int)name.size, name.at,
                     cause.text);
    rcpt_error_hint(error, "names have their schema (crm.customers), parameters are texts "
                           "(:subject::bigint), and the role of actions.lookup_dsn only reads");
    return false;
}

static bool check_lookups(const struct rcpt_config *config, const char *path,
                          struct rcpt_error *error)
{
    struct rcpt_arena arena;
    struct rcpt_session *session = NULL;
    const struct rcpt_session_settings settings = {
        .dsn =
            config->actions.lookup_dsn != NULL ? config->actions.lookup_dsn : config->postgres.dsn,
        .schema = "pg_catalog",
        .command = "check-config",
        .connect_timeout_ms = config->postgres.connect_timeout_ms,
        .read_only = true};
    bool good = true;
    rcpt_arena_init(&arena, 64 * 1024);
    for (const struct rcpt_node *pipeline = read_pipelines(config, &arena);
         good && pipeline != NULL; pipeline = pipeline->next) {
        if (rcpt_node_get(pipeline, "lookup") == NULL)
            continue;
        if (session == NULL) {
            session = rcpt_session_open(&settings, error);
            good = session != NULL && rcpt_session_begin(session, "READ ONLY", error);
        }
        good = good && check_lookup(session, path, pipeline, error);
    }
    rcpt_session_close(session);
    rcpt_arena_fini(&arena);
    return good;
}

int command_check_config(const struct command_call *call)
{
    static const struct {
        const char *option;
        void (*write)(FILE *out);
    } pages[] = {{"reference", rcpt_config_write_reference},
                 {"example", rcpt_config_write_example},
                 {"schema", rcpt_config_write_schema}};
    bool print = command_option(call, "print") != NULL;
    void (*write)(FILE * out) = NULL;
    int wanted = print;
    for (size_t index = 0; index < RCPT_COUNT_OF(pages); index++) {
        if (command_option(call, pages[index].option) == NULL)
            continue;
        write = pages[index].write;
        wanted++;
    }
    if (wanted > 1)
        return command_usage(call,
                             "--print, --reference, --example and --schema exclude each other");
    if (write != NULL) {
        write(stdout);
        return command_printed(EX_OK);
    }
    struct rcpt_error error = {0};
    struct rcpt_config *config = rcpt_config_load(call->config_path, &error);
    if (config == NULL)
        return command_fail(&error);
    if (!check_properties(config, call->config_path, &error) ||
        (command_option(call, "connect") != NULL &&
         !(check_database(config, call, &error) &&
           check_lookups(config, call->config_path, &error)))) {
        rcpt_config_free(config);
        return command_fail_in(call, &error);
    }
    if (print)
        rcpt_config_print(config, stdout);
    else
        printf("%s is valid\n", call->config_path);
    rcpt_config_find_weak(config, print_note, NULL);
    note_pipelines(config);
    note_topics(config);
    rcpt_config_free(config);
    return command_printed(EX_OK);
}
