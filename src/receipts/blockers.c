/* Sessions of others that block this instance. The session that holds a lock for which a connection
 * waits is named in the log, and in the hint of a lock time-out. A receiptd that stalls with a
 * transaction open is ended after postgres.zombie_timeout. A snapshot that stays open for long
 * keeps dead rows from being removed, so its age is measured and logged. Started by receipts.c.
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
    struct rcpt_asker asker; /* of the check: by a connection that does not wait itself */
    struct host_ticker ticker;
    int64_t check_every_ms, check_at_ms;
    uint64_t evictions;
    struct rcpt_outage blockings; /* each blocker is one line */
    bool is_blocked;
    int64_t snapshot_age_ms, backends, backends_most, hidden_backends;
};

/* ---- blockers ---- */

/* Columns of sql/control/blockers. */
enum {
    BLOCKER_WAITING,
    BLOCKER_PID,
    BLOCKER_USENAME,
    BLOCKER_APPLICATION_NAME,
    BLOCKER_STATE,
    BLOCKER_AGE_MS,
    BLOCKER_QUERY,
    BLOCKER_ENDED
};

/* State, age and query are NULL if our role may not see the session. */
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
                         const struct rcpt_pg *pg, const char *text)
{
    struct rcpt_error key;
    const char *query = rcpt_pg_rows_text(rows, row, BLOCKER_QUERY);
    rcpt_error_set(&key, RCPT_DECISION_RETRY, NULL, "%s %s",
                   rcpt_pg_rows_text(rows, row, BLOCKER_PID), query != NULL ? query : "");
    if (rcpt_outage_note(&blockers->blockings, &blockers->is_blocked,
                         host_now(blockers->receipts->context), &key))
        rcpt_log_warn("receipts", "connection %s waits for %s",
                      pg != NULL ? rcpt_pg_name(pg) : "that is gone", text);
}

static struct rcpt_pg *find_waiting(const struct blockers *blockers, int64_t pid)
{
    const struct rcpt_pg_peers *peers = &blockers->receipts->context->peers;
    struct rcpt_pg *pg = rcpt_pg_next(peers, NULL);
    while (pg != NULL && rcpt_pg_backend_pid(pg) != pid)
        pg = rcpt_pg_next(peers, pg);
    return pg;
}

static void forget_holders(const struct blockers *blockers)
{
    const struct rcpt_pg_peers *peers = &blockers->receipts->context->peers;
    for (struct rcpt_pg *pg = rcpt_pg_next(peers, NULL); pg != NULL; pg = rcpt_pg_next(peers, pg))
        rcpt_pg_set_holder(pg, "");
}

/* The oldest blockers come first: from the last row to the first, each connection keeps its oldest.
 * Rows of one blocker are adjacent. */
static void on_checked(void *context, const struct rcpt_pg_rows *rows)
{
    struct blockers *blockers = context;
    char text[BLOCKER_BYTES];
    forget_holders(blockers);
    for (size_t row = rcpt_pg_rows_count(rows); row-- > 0;) {
        struct rcpt_pg *pg = find_waiting(blockers, rcpt_pg_rows_int(rows, row, BLOCKER_WAITING));
        describe(rows, row, text);
        if (pg != NULL)
            rcpt_pg_set_holder(pg, text);
        if (row > 0 && rcpt_pg_rows_int(rows, row, BLOCKER_PID) ==
                           rcpt_pg_rows_int(rows, row - 1, BLOCKER_PID))
            continue;
        if (rcpt_pg_rows_bool(rows, row, BLOCKER_ENDED)) {
            blockers->evictions++;
            rcpt_log_warn("receipts", "ended %s: it blocked receiptd", text);
        } else {
            note_blocker(blockers, rows, row, pg, text);
        }
    }
}

/* A blocker shows only while a connection waits for it, and no wait is longer than lock_timeout. If
 * that is short, checks come sooner and more often. */
static int64_t part_of_wait_ms(const struct blockers *blockers, int64_t most)
{
    int64_t part = blockers->receipts->context->config->postgres.lock_timeout_ms / CHECKS_OF_A_WAIT;
    return part >= most ? most : part < CHECK_MIN_MS ? CHECK_MIN_MS : part;
}

static bool may_wait(const struct blockers *blockers, const struct rcpt_pg *pg)
{
    return rcpt_pg_waiting_ms(pg) > part_of_wait_ms(blockers, BLOCKED_AFTER_MS);
}

/* Backends of connections that may wait for a lock. */
static size_t find_blocked(const struct blockers *blockers, int64_t pids[MOST_PIDS])
{
    const struct rcpt_pg_peers *peers = &blockers->receipts->context->peers;
    size_t count = 0;
    for (struct rcpt_pg *pg = rcpt_pg_next(peers, NULL); pg != NULL && count < MOST_PIDS;
         pg = rcpt_pg_next(peers, pg)) {
        if (may_wait(blockers, pg))
            pids[count++] = rcpt_pg_backend_pid(pg);
    }
    return count;
}

/* By the control connection, or a lane's while the former waits itself. Where all wait, the answer
 * comes between two waits. */
static void choose_connection(struct blockers *blockers)
{
    const struct receipts *receipts = blockers->receipts;
    struct receipts_connection_view view = {"control", receipts->control.up, receipts->control.pg};
    struct receipts_connection_view of_lanes;
    bool is_free = view.up && !may_wait(blockers, view.pg);
    for (unsigned index = 0; !is_free && lanes_view(receipts->lanes, index, &of_lanes); index++) {
        is_free = of_lanes.up && !may_wait(blockers, of_lanes.pg);
        if (is_free)
            view = of_lanes;
    }
    blockers->asker.pg = view.pg;
    blockers->asker.up = view.up;
    blockers->asker.closed = receipts->control.closed;
}

/* sql/control/blockers.sql ends only sessions of receiptd; an operator decides about others. */
static void check(struct blockers *blockers)
{
    int64_t pids[MOST_PIDS];
    size_t count = blockers->check.in_flight ? 0 : find_blocked(blockers, pids);
    if (count == 0)
        return;
    choose_connection(blockers);
    struct rcpt_pg_encoder *encoder = rcpt_ask_begin(&blockers->check);
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

/* If sessions are hidden, the age is that of the visible ones. Logged once, since no figure shows
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
    int64_t now = host_now(blockers->receipts->context);
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
    blockers->asker = receipts->control;
    blockers->check = (struct rcpt_ask){.asker = &blockers->asker,
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
    blockers->ticker = (struct host_ticker){.tick = on_tick, .context = blockers};
    return blockers;
}

void blockers_start(struct blockers *blockers)
{
    int64_t now = host_now(blockers->receipts->context);
    blockers->check_every_ms = part_of_wait_ms(blockers, CHECK_MS);
    blockers->check_at_ms = now + blockers->check_every_ms;
    blockers->snapshot.at_ms = now + SNAPSHOT_EVERY;
    host_add_ticker(blockers->receipts->context, &blockers->ticker);
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
