/* Sessions of others that stand in the way. Whoever holds what a lane waits for is named in the log.
 * A receiptd that stalls with a transaction open is ended after postgres.zombie_timeout. And a snapshot that stays open for long keeps dead rows from being removed: its age is measured,
 * and logged. Started by receipts.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#define CHECK_MS         1000 /* between two checks for blockers */
#define CHECK_MIN_MS     50
#define BLOCKER_BYTES    800u
#define BLOCKED_AFTER_MS 1500 /* a transaction in flight for this long may wait for a lock */
#define CHECKS_OF_A_WAIT 3    /* at least, before lock_timeout ends it */
#define MOST_PIDS        64
#define SNAPSHOT_WARN_MS (10 * 60 * 1000)
#define SNAPSHOT_EVERY   10000

struct blockers {
    struct receipts *receipts;
    struct rcpt_ask check, snapshot;
    struct app_ticker ticker;
    int64_t check_every_ms, check_at_ms;
    uint64_t evictions;
    char blocker[BLOCKER_BYTES];  /* the oldest of the last check; "": none */
    struct rcpt_outage blockings; /* each blocker is one line */
    bool is_blocked;
    int64_t snapshot_age_ms, backends, backends_most, hidden_backends;
};

/* ---- blockers of lanes ---- */

/* Columns of sql/control/blockers. */
enum {
    BLOCKER_PID,
    BLOCKER_USENAME,
    BLOCKER_APPLICATION_NAME,
    BLOCKER_STATE,
    BLOCKER_AGE_MS,
    BLOCKER_QUERY,
    BLOCKER_ENDED
};

/* What is not shown to our role has no state either. */
static void describe(const struct rcpt_pg_rows *rows, size_t row, char text[BLOCKER_BYTES])
{
    long long pid = rcpt_pg_rows_int(rows, row, BLOCKER_PID);
    const char *user = rcpt_pg_rows_text(rows, row, BLOCKER_USENAME);
    const char *name = rcpt_pg_rows_text(rows, row, BLOCKER_APPLICATION_NAME);
    const char *query = rcpt_pg_rows_text(rows, row, BLOCKER_QUERY);
    int used = snprintf(text, BLOCKER_BYTES, "backend %lld (user %s, application %s)", pid,
                        user != NULL ? user : "unknown", name != NULL ? name : "unknown");
    if (query != NULL)
        snprintf(text + used, BLOCKER_BYTES - (size_t)used,
                 ", %s, transaction open for %.1f s, last query: %s",
                 rcpt_pg_rows_text(rows, row, BLOCKER_STATE),
                 (double)rcpt_pg_rows_int(rows, row, BLOCKER_AGE_MS) / 1000, query);
    else
        snprintf(text + used, BLOCKER_BYTES - (size_t)used,
                 ", whose age and query our role sees only as a member of pg_read_all_stats");
}

/* One line for each blocker, however long it blocks: told apart by backend and query. */
static void note_blocker(struct blockers *blockers, const struct rcpt_pg_rows *rows, size_t row,
                         const char *text)
{
    struct rcpt_error key;
    const char *query = rcpt_pg_rows_text(rows, row, BLOCKER_QUERY);
    rcpt_error_set(&key, RCPT_DECISION_RETRY, NULL, "%s %s",
                   rcpt_pg_rows_text(rows, row, BLOCKER_PID), query != NULL ? query : "");
    if (rcpt_outage_note(&blockers->blockings, &blockers->is_blocked,
                         app_now(blockers->receipts->context), &key))
        rcpt_log_warn("receipts", "a lane waits for %s", text);
}

static void on_checked(void *context, const struct rcpt_pg_rows *rows)
{
    struct blockers *blockers = context;
    char text[BLOCKER_BYTES];
    blockers->blocker[0] = '\0';
    for (size_t row = 0; row < rcpt_pg_rows_count(rows); row++) {
        describe(rows, row, text);
        if (row == 0)
            memcpy(blockers->blocker, text, sizeof(text));
        if (rcpt_pg_rows_bool(rows, row, BLOCKER_ENDED)) {
            blockers->evictions++;
            rcpt_log_warn("receipts", "ended %s: it blocked a lane", text);
        } else {
            note_blocker(blockers, rows, row, text);
        }
    }
}

const char *blockers_name(const struct blockers *blockers)
{
    return blockers->blocker;
}

/* A blocker shows only while a lane waits for it, and no lane waits longer than lock_timeout: where
 * that is short, checks come sooner and more often. */
static int64_t part_of_wait_ms(const struct blockers *blockers, int64_t most)
{
    int64_t part = blockers->receipts->context->config->postgres.lock_timeout_ms / CHECKS_OF_A_WAIT;
    return part >= most ? most : part < CHECK_MIN_MS ? CHECK_MIN_MS : part;
}

/* Backends of the lanes' connections that may wait for a lock. */
static size_t find_blocked(const struct blockers *blockers, int64_t pids[MOST_PIDS])
{
    const struct receipts *receipts = blockers->receipts;
    struct receipts_connection_view view;
    int64_t after_ms = part_of_wait_ms(blockers, BLOCKED_AFTER_MS),
            now = app_now(receipts->context);
    size_t count = 0;
    for (unsigned index = 0; count < MOST_PIDS && lanes_view(receipts->lanes, index, &view);
         index++) {
        if (view.up && rcpt_engine_oldest_in_flight_ms(receipts->engine, index, now) > after_ms)
            pids[count++] = rcpt_pg_backend_pid(view.pg);
    }
    return count;
}

/* Sessions of receiptd alone are ended, by sql/control/blockers.sql: others are the operator's. */
static void check(struct blockers *blockers)
{
    int64_t pids[MOST_PIDS];
    size_t count = find_blocked(blockers, pids);
    struct rcpt_pg_encoder *encoder = count > 0 ? rcpt_ask_begin(&blockers->check) : NULL;
    if (encoder == NULL)
        return;
    rcpt_pg_begin_int4_array(encoder, count);
    for (size_t index = 0; index < count; index++)
        rcpt_pg_put_int4(encoder, (int32_t)pids[index]);
    rcpt_pg_add_int8(encoder, blockers->receipts->context->config->postgres.zombie_timeout_ms);
    rcpt_ask_send(&blockers->check);
}

/* ---- old snapshots ---- */

/* Columns of sql/control/snapshot_age. */
enum {
    SNAPSHOT_AGE_MS,
    SNAPSHOT_PID,
    SNAPSHOT_APPLICATION_NAME,
    SNAPSHOT_BACKENDS,
    SNAPSHOT_MAX_CONNECTIONS,
    SNAPSHOT_HIDDEN
};

/* The age is then that of the sessions that can be seen. Logged once, since no figure would show
 * it. */
static void note_hidden(struct blockers *blockers, int64_t hidden)
{
    if (hidden > 0 && blockers->hidden_backends == 0)
        rcpt_log_warn("receipts",
                      "the owner of %s.watch_server() may not see %lld sessions of other roles: "
                      "the age of their snapshots is not known; HINT: run receiptd migrate, it "
                      "says what to grant",
                      blockers->receipts->context->config->postgres.schema, (long long)hidden);
    blockers->hidden_backends = hidden;
}

/* Figures for the metrics, and a warning each time while the snapshot is too old. */
static void on_snapshot_age(void *context, const struct rcpt_pg_rows *rows)
{
    struct blockers *blockers = context;
    blockers->snapshot_age_ms = rcpt_pg_rows_int(rows, 0, SNAPSHOT_AGE_MS);
    blockers->backends = rcpt_pg_rows_int(rows, 0, SNAPSHOT_BACKENDS);
    blockers->backends_most = rcpt_pg_rows_int(rows, 0, SNAPSHOT_MAX_CONNECTIONS);
    note_hidden(blockers, rcpt_pg_rows_int(rows, 0, SNAPSHOT_HIDDEN));
    if (blockers->snapshot_age_ms > SNAPSHOT_WARN_MS)
        rcpt_log_warn("receipts",
                      "backend %s (%s) keeps a snapshot open for %lld s: dead rows pile up",
                      rcpt_pg_rows_text(rows, 0, SNAPSHOT_PID),
                      rcpt_pg_rows_text(rows, 0, SNAPSHOT_APPLICATION_NAME),
                      (long long)blockers->snapshot_age_ms / 1000);
}

/* ---- life ---- */

static void on_tick(void *context)
{
    struct blockers *blockers = context;
    int64_t now = app_now(blockers->receipts->context);
    if (now >= blockers->check_at_ms) {
        blockers->check_at_ms = now + blockers->check_every_ms;
        check(blockers);
    }
    if (rcpt_ask_begin(&blockers->snapshot) != NULL)
        rcpt_ask_send(&blockers->snapshot);
}

struct blockers *blockers_new(struct receipts *receipts)
{
    struct blockers *blockers = rcpt_calloc(1, sizeof(*blockers));
    blockers->receipts = receipts;
    blockers->check = (struct rcpt_ask){.asker = &receipts->control,
                                        .statement = "blockers",
                                        .what = "check for blockers",
                                        .context = blockers,
                                        .on_answer = on_checked};
    blockers->snapshot = (struct rcpt_ask){.asker = &receipts->control,
                                           .statement = "snapshot_age",
                                           .what = "check for old snapshots",
                                           .context = blockers,
                                           .on_answer = on_snapshot_age,
                                           .every_ms = SNAPSHOT_EVERY};
    blockers->ticker = (struct app_ticker){.tick = on_tick, .context = blockers};
    return blockers;
}

void blockers_start(struct blockers *blockers)
{
    int64_t now = app_now(blockers->receipts->context);
    blockers->check_every_ms = part_of_wait_ms(blockers, CHECK_MS);
    blockers->check_at_ms = now + blockers->check_every_ms;
    blockers->snapshot.at_ms = now + SNAPSHOT_EVERY;
    app_add_ticker(blockers->receipts->context, &blockers->ticker);
}

void blockers_free(struct blockers *blockers)
{
    free(blockers);
}

void blockers_view(const struct blockers *blockers, struct receipts_view *view)
{
    view->evictions = blockers->evictions;
    view->snapshot_age_ms = blockers->snapshot_age_ms;
    view->backends = blockers->backends;
    view->backends_most = blockers->backends_most;
}
