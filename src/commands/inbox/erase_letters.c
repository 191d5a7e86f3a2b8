/* Dead letters hold what other programs wrote, in their escapes, so they are compared here and not
 * in SQL. A cursor reads all of them, and those that name an erased message are deleted page by
 * page. Called by erase.c in its transaction, after the rows of the message are deleted: later
 * letters of the message keep nothing of it. */
#include "erase_letters.h"

#include <stdlib.h>
#include <string.h>

#include "receiptd/base/buffer.h"
#include "receiptd/postgres/array_text.h"
#include "receiptd/postgres/sql.h"

/* Payload and detail are one text: a webhook in a topic has the gateway's id, and only the detail
 * names the account that the id is of. */
static bool names_one(struct erase_names *names, const struct rcpt_session_rows *page, size_t row)
{
    const char *detail = rcpt_session_rows_text(page, row, "detail");
    struct rcpt_buffer text = {NULL, 0, 0};
    size_t size = 0;
    char *payload = rcpt_session_rows_bytes(page, row, "payload", &size);
    if (payload != NULL)
        rcpt_buffer_append(&text, payload, size);
    rcpt_buffer_append_text(&text, "\n");
    rcpt_buffer_append_text(&text, detail != NULL ? detail : "");
    bool named = erase_names_any(names, (struct rcpt_text){text.bytes, text.size});
    rcpt_buffer_free(&text);
    free(payload);
    return named;
}

static int64_t delete_named(struct command_context *context, struct erase_names *names,
                            const char *erasure, const struct rcpt_session_rows *page)
{
    struct rcpt_array_text places;
    rcpt_array_text_init(&places);
    for (size_t row = 0; row < rcpt_session_rows_count(page); row++) {
        const char *place = rcpt_session_rows_text(page, row, "place");
        if (names_one(names, page, row))
            rcpt_array_text_add(&places, place, strlen(place));
    }
    int64_t gone = 0;
    if (places.count > 0) {
        const char *const values[] = {rcpt_array_text_finish(&places), erasure};
        struct rcpt_session_rows *rows = rcpt_session_query(
            context->session, rcpt_sql("erase/letters_delete"), 2, values, &context->error);
        gone = rows != NULL ? rcpt_session_rows_int(rows, 0, "rows") : -1;
        rcpt_session_rows_free(rows);
    }
    rcpt_array_text_fini(&places);
    return gone;
}

int64_t erase_letters(struct command_context *context, struct erase_names *names,
                      const char *erasure)
{
    struct rcpt_session *session = context->session;
    int64_t sum = 0, gone = 0;
    bool good = rcpt_session_execute(session, rcpt_sql("erase/letters_open"), &context->error),
         more = good;
    while (good && more) {
        struct rcpt_session_rows *page =
            rcpt_session_query(session, rcpt_sql("erase/letters_fetch"), 0, NULL, &context->error);
        more = page != NULL && rcpt_session_rows_count(page) > 0;
        gone = more ? delete_named(context, names, erasure, page) : 0;
        good = page != NULL && gone >= 0;
        sum += gone;
        rcpt_session_rows_free(page);
    }
    good = good && rcpt_session_execute(session, rcpt_sql("erase/letters_close"), &context->error);
    return good ? sum : -1;
}
