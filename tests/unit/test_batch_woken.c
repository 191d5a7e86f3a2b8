/* Parked receipts, folded into a batch as fresh ones are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/core/batch_build.h"
#include "receiptd/core/batch_woken.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* A receipt of message `id`, which is of organisation `org`. */
static struct rcpt_woken receipt(const char *id, int16_t code, int64_t at_us, const char *org,
                                 bool named)
{
    return (struct rcpt_woken){.id = rcpt_text_of(id),
                               .org = rcpt_text_of(org),
                               .named = named,
                               .code = code,
                               .at_us = at_us,
                               .traceparent = "",
                               .whole_us = INT64_MIN};
}

/* id top/mask@time [organisation] code×count …; one for each message. */
static void describe(const struct rcpt_batch *batch, char *text, size_t capacity)
{
    size_t used = 0;
    text[0] = '\0';
    for (uint32_t index = 0; index < batch->message_count; index++) {
        const struct rcpt_batch_message *message = &batch->messages[index];
        const struct rcpt_batch_signature *signature = &batch->signatures[message->signature];
        used += (size_t)snprintf(text + used, capacity - used, "%s%.*s %d/%u@%lld [%.*s]",
                                 index > 0 ? "; " : "", (int)message->id_size, message->id,
                                 message->top, message->mask, (long long)message->at_us,
                                 (int)message->org.size,
                                 message->org.at != NULL ? message->org.at : "");
        for (uint32_t at = signature->first; at < signature->first + signature->size; at++)
            used += (size_t)snprintf(text + used, capacity - used, " %dx%d",
                                     batch->signature_codes[at], batch->signature_counts[at]);
    }
}

static void assert_folded(const struct rcpt_woken *woken, uint32_t count, const char *expected)
{
    char text[1024];
    struct rcpt_batch batch;
    struct rcpt_error error;
    struct rcpt_ladder *ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    assert_non_null(ladder);
    rcpt_batch_init(&batch, 0);
    rcpt_batch_reset(&batch, RCPT_BATCH_WAKE);
    rcpt_batch_fold_woken(&batch, ladder, woken, count);
    describe(&batch, text, sizeof(text));
    assert_string_equal(text, expected);
    assert_int_equal(batch.event_count, count);
    assert_int_equal(batch.signature_count, batch.message_count);
    rcpt_batch_fini(&batch);
    rcpt_ladder_free(ladder);
}

/* Codes of the default ladder: 300 SENT, 600 DELIVERED, 700 OPENED; 9001 the flag COMPLAINED. */
static void receipts_of_one_message_are_folded(void **state)
{
    (void)state;
    struct rcpt_woken woken[] = {
        receipt("a", 600, 9, NULL, false), receipt("a", 300, 1, NULL, false),
        receipt("a", 600, 7, NULL, false), receipt("b", 300, 5, NULL, false)};
    woken[1].flags = 1;
    assert_folded(woken, LENGTH(woken), "a 600/1@1 [] 300x1 600x2 9001x1; b 300/0@5 [] 300x1");
}

static void a_flag_raises_what_it_implies(void **state)
{
    (void)state;
    const struct rcpt_woken woken[] = {receipt("a", 9001, 3, NULL, false)};
    assert_folded(woken, LENGTH(woken), "a 600/1@3 [] 9001x1");
}

static void a_part_proves_less_than_the_whole(void **state)
{
    (void)state;
    struct rcpt_woken woken[] = {receipt("a", 600, 4, NULL, false),
                                 receipt("a", 600, 8, NULL, false)};
    woken[0].delivers_part = woken[1].delivers_part = true;
    assert_folded(woken, LENGTH(woken), "a 300/0@4 [] 600x2");
    woken[0].whole_us = woken[1].whole_us = 8;
    assert_folded(woken, LENGTH(woken), "a 600/0@8 [] 600x2");
}

/* Where no receipt names an organisation, every row of the id takes them. One that names none
 * belongs to the last. */
static void organisations_of_one_id_are_apart(void **state)
{
    (void)state;
    const struct rcpt_woken unnamed[] = {receipt("a", 300, 1, "o", false)};
    const struct rcpt_woken named[] = {receipt("a", 300, 1, "o", true),
                                       receipt("a", 600, 2, "o", false)};
    const struct rcpt_woken apart[] = {receipt("a", 300, 1, "o", false),
                                       receipt("a", 600, 2, "p", false),
                                       receipt("a", 300, 3, NULL, false)};
    assert_folded(unnamed, LENGTH(unnamed), "a 300/0@1 [] 300x1");
    assert_folded(named, LENGTH(named), "a 600/0@2 [o] 300x1 600x1");
    assert_folded(apart, LENGTH(apart), "a 300/0@1 [o] 300x1; a 600/0@2 [p] 300x1 600x1");
}

static void nothing_is_an_empty_batch(void **state)
{
    (void)state;
    assert_folded(NULL, 0, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(receipts_of_one_message_are_folded),
        cmocka_unit_test(a_flag_raises_what_it_implies),
        cmocka_unit_test(a_part_proves_less_than_the_whole),
        cmocka_unit_test(organisations_of_one_id_are_apart),
        cmocka_unit_test(nothing_is_an_empty_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
