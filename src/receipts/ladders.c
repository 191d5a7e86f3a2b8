/* The ladder of statuses of the configuration against the one in the database: both must have the
 * same paths, or counters would follow another tree than statuses. Called by positions.c at each
 * assignment, and by reload.c for a ladder that grows.
 */
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "internal.h"

/* A ladder as the parameters of ladder_read.sql, $1 … $7. */
static void put_entries(struct rcpt_pg_encoder *encoder, const struct rcpt_ladder *ladder)
{
    size_t count = rcpt_ladder_entry_count(ladder);
    rcpt_pg_begin_int2_array(encoder, count);
    for (size_t index = 0; index < count; index++)
        rcpt_pg_put_int2(encoder, rcpt_ladder_entry(ladder, index)->code);
    rcpt_pg_begin_text_array(encoder, count);
    for (size_t index = 0; index < count; index++) {
        const char *name = rcpt_ladder_entry(ladder, index)->name;
        rcpt_pg_put_bytes(encoder, name, strlen(name));
    }
    rcpt_pg_begin_int2_array(encoder, count);
    for (size_t index = 0; index < count; index++)
        rcpt_pg_put_int2(encoder, rcpt_ladder_entry(ladder, index)->parent);
    rcpt_pg_begin_int2_array(encoder, count);
    for (size_t index = 0; index < count; index++) {
        const struct rcpt_ladder_entry *entry = rcpt_ladder_entry(ladder, index);
        rcpt_pg_put_int2(encoder, entry->is_flag && entry->top != 0 ? entry->top : -1);
    }
}

enum part { CHANNEL, STATUS, BECOMES };

/* One array for each part of an override. */
static void put_overrides(struct rcpt_pg_encoder *encoder,
                          const struct rcpt_ladder_definition *definition, enum part part)
{
    rcpt_pg_begin_text_array(encoder, definition->override_count);
    for (size_t index = 0; index < definition->override_count; index++) {
        const struct rcpt_override_definition *override = &definition->overrides[index];
        const char *text = part == CHANNEL  ? override->channel
                           : part == STATUS ? override->status
                                            : override->becomes;
        rcpt_pg_put_bytes(encoder, text, strlen(text));
    }
}

/* Seven parameters, in the order of ladder_read.sql. */
void ladders_put(struct rcpt_pg_encoder *encoder, const struct rcpt_config *config)
{
    put_entries(encoder, config->ladder);
    for (enum part part = CHANNEL; part <= BECOMES; part++)
        put_overrides(encoder, &config->ladder_definition, part);
}

/* Columns of sql/control/ladder_read. */
enum { READ_HASH, READ_EXTENDS };

/* The database says itself whether its ladder extends ours: it has both. */
enum ladders_fit ladders_compare(const struct rcpt_pg_rows *rows, const struct rcpt_config *config)
{
    const char *stored = rcpt_pg_rows_text(rows, 0, READ_HASH);
    if (stored == NULL)
        return LADDERS_DIFFER;
    if (strcmp(stored, rcpt_ladder_hash(config->ladder)) == 0)
        return LADDERS_SAME;
    return rcpt_pg_rows_bool(rows, 0, READ_EXTENDS) ? LADDERS_STORED_HAS_MORE : LADDERS_DIFFER;
}

/* Statuses that only the database has do no harm: an event that names one is a dead letter here. */
bool ladders_check(struct receipts *receipts, const struct rcpt_pg_rows *rows)
{
    const char *stored = rcpt_pg_rows_text(rows, 0, READ_HASH),
               *ours = rcpt_ladder_hash(receipts->context->config->ladder);
    switch (ladders_compare(rows, receipts->context->config)) {
    case LADDERS_SAME:
        break;
    case LADDERS_STORED_HAS_MORE:
        if (strcmp(receipts->positions.stored_ladder, stored) != 0)
            rcpt_log_warn("receipts",
                          "the database holds ladder %s, which has more than that of the "
                          "configuration, %s; HINT: give this instance the same ladder and reload",
                          stored, ours);
        break;
    default: {
        struct rcpt_error error;
        rcpt_error_fatal(&error, EX_CONFIG,
                         "the database holds ladder %s, the configuration has %s",
                         stored != NULL ? stored : "none", ours);
        rcpt_error_hint(&error, "run receiptd migrate with this configuration, or give the ladder "
                                "that the others have");
        host_fail(receipts->context, &error);
        return false;
    }
    }
    snprintf(receipts->positions.stored_ladder, sizeof(receipts->positions.stored_ladder), "%s",
             stored);
    return true;
}

/* ---- a reload ---- */

/* `fresh` is borrowed: reload.c keeps the new configuration until the answer. */
struct question {
    struct receipts *receipts;
    const struct rcpt_config *fresh;
    ladders_on_answer on_answer;
    void *context;
};

/* The stored hash is taken over at once: the next assignment compares with it. */
static void on_read(void *context, struct rcpt_pg_rows *const *rows, size_t row_count,
                    const struct rcpt_error *failure)
{
    struct question question = *(struct question *)context;
    struct rcpt_error error;
    free(context);
    bool good = failure == NULL && row_count == 1 &&
                ladders_compare(rows[0], question.fresh) != LADDERS_DIFFER;
    if (failure != NULL) {
        rcpt_error_fatal(&error, EX_TEMPFAIL, "ladder: the database cannot be asked for it: %s",
                         failure->text);
        rcpt_error_hint(&error, "reload again");
    } else if (!good) {
        rcpt_error_fatal(&error, EX_CONFIG, "ladder: %s is not in the database",
                         rcpt_ladder_hash(question.fresh->ladder));
        rcpt_error_hint(&error, "run receiptd migrate with this configuration, then reload again; "
                                "the added entries do not stop other instances");
    } else {
        snprintf(question.receipts->positions.stored_ladder,
                 sizeof(question.receipts->positions.stored_ladder), "%s",
                 rcpt_pg_rows_text(rows[0], 0, READ_HASH));
    }
    question.on_answer(question.context, good ? NULL : &error);
}

/* In memory first, then in the database: most mistakes need no round trip. */
bool ladders_ask(struct receipts *receipts, const struct rcpt_config *fresh,
                 ladders_on_answer on_answer, void *context, struct rcpt_error *error)
{
    struct rcpt_pg_query query = {.statement = "ladder_read"};
    if (!rcpt_ladder_can_grow(receipts->context->config->ladder, fresh->ladder, error))
        return false;
    if (!receipts->control.up || !rcpt_pg_is_ready(receipts->control.pg)) {
        rcpt_error_fatal(error, EX_TEMPFAIL, "ladder: PostgreSQL cannot be asked for it now");
        rcpt_error_hint(error, "reload again when it is there");
        return false;
    }
    struct question *question = rcpt_malloc(sizeof(*question));
    *question = (struct question){receipts, fresh, on_answer, context};
    struct rcpt_pg_encoder *encoder = rcpt_pg_encoder_new();
    ladders_put(encoder, fresh);
    rcpt_pg_encoder_params(encoder, &query.params);
    rcpt_pg_submit(receipts->control.pg, &query, 1, on_read, question);
    rcpt_pg_encoder_free(encoder);
    return true;
}
