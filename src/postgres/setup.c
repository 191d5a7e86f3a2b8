/* Sets up a fresh session before it may be used, state SETTING_UP of the machine. The parts are
 * settings, the server's identity, the prepared statements, and their plans. Another system or an
 * older timeline is refused (lineage.h), and so is a scan of the inbox. All parts are sent in one
 * go, each with its own Sync. Called by connect.c and, for plans made on an empty table, by
 * connection.c's tick.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "conninfo.h"
#include "failure.h"
#include "machine.h"
#include "plan.h"
#include "receiptd/base/log.h"

/* The control functions may be forbidden: then this fails alone and the identity stays unknown. The
 * timeline of the last checkpoint lags behind a promotion, so the name of the current WAL file
 * tells it if there is one. */
static const char identity_sql[] =
    "SELECT (SELECT system_identifier FROM pg_control_system()),"
    " CASE WHEN pg_is_in_recovery() THEN (SELECT timeline_id FROM pg_control_checkpoint())"
    " ELSE ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int END";

static const char accepted_sql[] = "SELECT system_identifier, timeline FROM database_accepted";

static bool send_sql(struct rcpt_pg *pg, const char *sql, const char *argument)
{
    return PQsendQueryParams(pg->conn, sql, argument != NULL ? 1 : 0, NULL, &argument, NULL, NULL,
                             0) == 1;
}

/* Ends a part: its answers come to on_result together. */
static bool send_sync(struct rcpt_pg *pg, size_t commands, rcpt_pg_on_result on_result)
{
    if (PQpipelineSync(pg->conn) != 1)
        return false;
    rcpt_submissions_push(&pg->submissions, commands, on_result, pg);
    return true;
}

/* An answer of a connection that has been given up in the meantime does not matter. */
static bool is_over(const struct rcpt_pg *pg)
{
    return pg->state != RCPT_PG_SETTING_UP && pg->state != RCPT_PG_READY;
}

/* ---- the identity of the server ---- */

struct rcpt_pg_identity rcpt_pg_identity(const struct rcpt_pg *pg)
{
    return pg->identity;
}

static struct rcpt_pg_server server_of(const struct rcpt_pg_identity *identity)
{
    return (struct rcpt_pg_server){identity->system_identifier, identity->timeline};
}

/* The next attempt begins with another host of the dsn. */
static void refuse_server(struct rcpt_pg *pg, struct rcpt_pg_server now,
                          const struct rcpt_pg_server *before)
{
    struct rcpt_error error;
    bool same = now.system_identifier == before->system_identifier;
    if (same)
        rcpt_error_set(&error, RCPT_DECISION_RECONNECT, "RDIDENT",
                       "server is on timeline %" PRId32 ", but was on %" PRId32, now.timeline,
                       before->timeline);
    else
        rcpt_error_set(&error, RCPT_DECISION_RECONNECT, "RDIDENT",
                       "server has system identifier %" PRIu64 ", but was %" PRIu64,
                       now.system_identifier, before->system_identifier);
    rcpt_error_hint(&error,
                    "%s (host %.60s, port %.10s): check postgres.dsn and the fail-over. If it is "
                    "the right one: receiptd positions accept-database",
                    same ? "this is an old primary" : "this is another database", PQhost(pg->conn),
                    PQport(pg->conn));
    rcpt_pg_fail(pg, &error);
}

/* A server that hides its identity is accepted. */
static bool judge(struct rcpt_pg *pg, const struct rcpt_pg_identity *identity)
{
    const struct rcpt_pg_server *before = NULL;
    if (identity->system_identifier != 0)
        before =
            rcpt_pg_lineage_contradiction(pg->settings.lineage, server_of(identity), &pg->accepted);
    if (before != NULL)
        refuse_server(pg, server_of(identity), before);
    else
        pg->judged = pg->settings.lineage->changes;
    return before == NULL;
}

bool rcpt_setup_is_accepted(struct rcpt_pg *pg)
{
    return pg->judged == pg->settings.lineage->changes || judge(pg, &pg->identity);
}

/* The identity is compared later, when the servers that the database has accepted are known. */
static void on_identity(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                        const struct rcpt_error *error)
{
    struct rcpt_pg *pg = context;
    if (is_over(pg))
        return;
    pg->found = (struct rcpt_pg_identity){.server_version = PQserverVersion(pg->conn)};
    if (error == NULL && row_count == 1) {
        const char *identifier = rcpt_pg_rows_text(rows[0], 0, 0);
        pg->found.system_identifier = identifier != NULL ? strtoull(identifier, NULL, 10) : 0;
        pg->found.timeline = (int32_t)rcpt_pg_rows_int(rows[0], 0, 1);
        return;
    }
    rcpt_log_debug("postgres", "connection %s: identity of the server is not readable: %s",
                   pg->settings.name, error != NULL ? error->text : "");
}

/* If the table is missing, no server was accepted. Standbys have been refused by now, so only a
 * writable server is remembered. */
static void on_accepted(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                        const struct rcpt_error *error)
{
    struct rcpt_pg *pg = context;
    size_t count = error == NULL && row_count == 1 ? rcpt_pg_rows_count(rows[0]) : 0;
    if (is_over(pg))
        return;
    pg->accepted = (struct rcpt_pg_lineage){0};
    for (size_t row = 0; row < count; row++)
        rcpt_pg_lineage_add(
            &pg->accepted,
            (struct rcpt_pg_server){strtoull(rcpt_pg_rows_text(rows[0], row, 0), NULL, 10),
                                    (int32_t)rcpt_pg_rows_int(rows[0], row, 1)});
    if (!judge(pg, &pg->found))
        return;
    pg->identity = pg->found;
    pg->settings.lineage->current = server_of(&pg->identity);
    rcpt_pg_lineage_add(pg->settings.lineage, pg->settings.lineage->current);
    pg->judged = pg->settings.lineage->changes;
}

/* ---- the session ---- */

/* The value is a literal, so a quote in it is doubled. */
static void add_setting(FILE *out, const char *name, const char *value)
{
    fprintf(out, ", set_config('%s', '", name);
    for (; *value != '\0'; value++)
        fprintf(out, *value == '\'' ? "'%c" : "%c", *value);
    fputs("', false)", out);
}

/* The same settings as in the start-up options, which a pooler may drop. */
static void add_settings(FILE *out, const struct rcpt_pg *pg)
{
    struct rcpt_session_setting session[RCPT_SESSION_SETTINGS];
    size_t count = rcpt_conninfo_session(&pg->settings, pg->check_count > 0, session);
    int version = PQserverVersion(pg->conn);
    for (size_t index = 0; index < count; index++)
        add_setting(out, session[index].name, session[index].value);
    if (version >= 140000)
        add_setting(out, "client_connection_check_interval", "5000");
    /* The one limit that also ends the transaction of a client that stalls in the middle of a
     * batch. */
    if (version >= 170000 && pg->settings.statement_timeout_ms > 0) {
        char text[16];
        snprintf(text, sizeof(text), "%d",
                 pg->settings.statement_timeout_ms + pg->settings.lock_timeout_ms);
        add_setting(out, "transaction_timeout", text);
    }
}

static bool send_session(struct rcpt_pg *pg)
{
    char *sql = NULL;
    size_t size;
    FILE *out = rcpt_open_memory(&sql, &size);
    fputs(
        "SELECT pg_is_in_recovery(), EXISTS (SELECT FROM pg_namespace n WHERE n.nspname = $1::text"
        " AND NOT has_schema_privilege(n.oid, 'USAGE'))",
        out);
    add_settings(out, pg);
    RCPT_ASSERT(fclose(out) == 0);
    bool sent = send_sql(pg, sql, pg->settings.schema);
    free(sql);
    return sent;
}

/* Without USAGE, PostgreSQL reports that the tables do not exist, and an operator would migrate in
 * vain. */
static void refuse_schema(struct rcpt_pg *pg)
{
    struct rcpt_error error;
    rcpt_error_set(&error, RCPT_DECISION_RECONNECT, "42501", "permission denied for schema %s",
                   pg->settings.schema);
    rcpt_error_hint(&error, "%s", rcpt_pg_hint("42501"));
    rcpt_pg_fail(pg, &error);
}

/* A standby cannot be written to: libpq checks that only for several hosts. */
static void on_session(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                       const struct rcpt_error *error)
{
    struct rcpt_pg *pg = context;
    struct rcpt_error standby;
    if (is_over(pg))
        return;
    if (error != NULL) {
        rcpt_pg_fail(pg, error);
        return;
    }
    RCPT_ASSERT(row_count == 1);
    if (rcpt_pg_rows_bool(rows[0], 0, 1)) {
        refuse_schema(pg);
        return;
    }
    if (!rcpt_pg_rows_bool(rows[0], 0, 0) || pg->settings.read_only)
        return;
    rcpt_error_set(&standby, RCPT_DECISION_RECONNECT, "25006", "server is a standby (read-only)");
    rcpt_error_hint(&standby, "%s", rcpt_pg_hint("25006"));
    rcpt_pg_fail(pg, &standby);
}

/* ---- the statements and their plans ---- */

/* The number-th statement whose plan is checked. */
static const struct rcpt_pg_statement *checked_statement(const struct rcpt_pg *pg, size_t number)
{
    const struct rcpt_pg_statement *statement = pg->settings.statements;
    for (;; statement++)
        if (statement->must_use_index_on != NULL && number-- == 0)
            return statement;
}

/* Refusing to start is safer than a scan for each batch. */
static void refuse_plan(struct rcpt_pg *pg, const struct rcpt_pg_statement *statement,
                        enum rcpt_plan plan)
{
    struct rcpt_error error;
    rcpt_plan_refuse(&error, statement, plan);
    rcpt_pg_fail(pg, &error);
}

/* The caller frees the array; the texts belong to the rows. */
static const char **column_of(const struct rcpt_pg_rows *rows)
{
    size_t count = rcpt_pg_rows_count(rows);
    const char **texts = rcpt_calloc(count + 1, sizeof(*texts));
    for (size_t row = 0; row < count; row++)
        texts[row] = rcpt_pg_rows_text(rows, row, 0);
    return texts;
}

static enum rcpt_plan check_plan(const struct rcpt_pg_rows *relations,
                                 const struct rcpt_pg_rows *lines)
{
    const char **names = column_of(relations), **texts = column_of(lines);
    enum rcpt_plan plan =
        rcpt_plan_check(texts, rcpt_pg_rows_count(lines), names, rcpt_pg_rows_count(relations));
    free(names);
    free(texts);
    return plan;
}

/* Behind DISCARD PLANS stand two answers per check: the names of the tables, and the plan. */
static void on_plans(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                     const struct rcpt_error *error)
{
    struct rcpt_pg *pg = context;
    if (is_over(pg))
        return;
    if (error != NULL) {
        rcpt_pg_fail(pg, error);
        return;
    }
    bool small = false;
    for (size_t index = 0; 2 * index + 2 < row_count; index++) {
        enum rcpt_plan plan = check_plan(rows[2 * index + 1], rows[2 * index + 2]);
        if (plan == RCPT_PLAN_SCAN || plan == RCPT_PLAN_ABSENT) {
            refuse_plan(pg, checked_statement(pg, index), plan);
            return;
        }
        small = small || plan == RCPT_PLAN_SMALL;
    }
    pg->plans_are_small = small;
    if (pg->state == RCPT_PG_SETTING_UP)
        rcpt_pg_raise(pg, RCPT_PG_EVENT_SET_UP, NULL);
}

static bool send_explain(struct rcpt_pg *pg, const char *name, int parameter_count)
{
    char *sql = rcpt_plan_explain(name, parameter_count);
    bool sent = send_sql(pg, sql, NULL);
    free(sql);
    return sent;
}

/* DISCARD PLANS makes the server plan again: otherwise a plan made for an empty table would stay
 * until the next ANALYZE. */
static bool send_plan_checks(struct rcpt_pg *pg)
{
    bool sent = send_sql(pg, "DISCARD PLANS", NULL);
    for (size_t index = 0, number = 0; sent && index < pg->settings.statement_count; index++) {
        const struct rcpt_pg_statement *statement = &pg->settings.statements[index];
        if (statement->must_use_index_on == NULL)
            continue;
        sent = send_sql(pg, rcpt_plan_relations_sql, statement->must_use_index_on) &&
               send_explain(pg, statement->name, pg->parameter_counts[number++]);
    }
    return sent && send_sync(pg, 1 + 2 * pg->check_count, on_plans);
}

static void refuse_statement(struct rcpt_pg *pg, size_t index, const struct rcpt_error *cause)
{
    struct rcpt_error error = *cause;
    rcpt_plan_unprepared(&error, index < pg->settings.statement_count
                                     ? pg->settings.statements[index].name
                                     : "(description)");
    rcpt_pg_fail(pg, &error);
}

/* Behind the prepared statements stand the descriptions of those to check. */
static void on_prepared(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                        const struct rcpt_error *error)
{
    struct rcpt_pg *pg = context;
    if (is_over(pg))
        return;
    if (error != NULL) {
        refuse_statement(pg, row_count, error);
        return;
    }
    if (pg->check_count == 0) {
        rcpt_pg_raise(pg, RCPT_PG_EVENT_SET_UP, NULL);
        return;
    }
    for (size_t index = pg->settings.statement_count; index < row_count; index++)
        pg->parameter_counts[index - pg->settings.statement_count] = PQnparams(rows[index]->result);
    if (!send_plan_checks(pg))
        rcpt_pg_fail_by_libpq(pg);
}

static bool send_statements(struct rcpt_pg *pg)
{
    const struct rcpt_pg_settings *settings = &pg->settings;
    bool sent = true;
    for (size_t index = 0; sent && index < settings->statement_count; index++)
        sent = PQsendPrepare(pg->conn, settings->statements[index].name,
                             settings->statements[index].sql, 0, NULL) == 1;
    for (size_t number = 0; sent && number < pg->check_count; number++)
        sent = PQsendDescribePrepared(pg->conn, checked_statement(pg, number)->name) == 1;
    return sent && send_sync(pg, settings->statement_count + pg->check_count, on_prepared);
}

/* A name that was given up and not taken again would be missing: then only a new session helps. */
static void on_prepared_again(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                              const struct rcpt_error *error)
{
    struct rcpt_pg *pg = context;
    (void)rows;
    (void)row_count;
    if (is_over(pg))
        return;
    if (error != NULL)
        rcpt_pg_fail(pg, error);
    else if (!send_plan_checks(pg))
        rcpt_pg_fail_by_libpq(pg);
}

/* A name can be prepared again only after DEALLOCATE. The server executes both behind the batches
 * that it has been sent, and before the next. */
static bool prepare_again(struct rcpt_pg *pg, const struct rcpt_pg_statement *statement)
{
    char sql[80];
    int size = snprintf(sql, sizeof(sql), "DEALLOCATE \"%s\"", statement->name);
    RCPT_ASSERT(size > 0 && (size_t)size < sizeof(sql));
    return send_sql(pg, sql, NULL) &&
           PQsendPrepare(pg->conn, statement->name, statement->sql, 0, NULL) == 1;
}

static void send_changed(struct rcpt_pg *pg, const struct rcpt_pg_statement *statements)
{
    size_t changed = 0;
    bool sent = true;
    for (size_t index = 0; sent && index < pg->settings.statement_count; index++) {
        RCPT_ASSERT(strcmp(statements[index].name, pg->settings.statements[index].name) == 0);
        if (strcmp(statements[index].sql, pg->settings.statements[index].sql) == 0)
            continue;
        sent = prepare_again(pg, &statements[index]);
        changed++;
    }
    if (sent && (changed == 0 || send_sync(pg, 2 * changed, on_prepared_again)))
        rcpt_pg_settle(pg);
    else
        rcpt_pg_fail_by_libpq(pg);
}

/* A session that is being set up prepares them in their turn; a later one begins with them. */
void rcpt_pg_set_statements(struct rcpt_pg *pg, const struct rcpt_pg_statement *statements)
{
    if (!is_over(pg))
        send_changed(pg, statements);
    pg->settings.statements = statements;
}

/* Each part has its own Sync, since the first may fail. All of them are on their way at once. */
void rcpt_setup_begin(struct rcpt_pg *pg)
{
    bool sent = send_sql(pg, identity_sql, NULL) && send_sync(pg, 1, on_identity) &&
                send_session(pg) && send_sync(pg, 1, on_session) &&
                send_sql(pg, accepted_sql, NULL) && send_sync(pg, 1, on_accepted) &&
                send_statements(pg);
    if (sent)
        rcpt_pg_settle(pg);
    else
        rcpt_pg_fail_by_libpq(pg);
}

void rcpt_setup_recheck_plans(struct rcpt_pg *pg)
{
    if (send_plan_checks(pg))
        rcpt_pg_settle(pg);
    else
        rcpt_pg_fail_by_libpq(pg);
}
