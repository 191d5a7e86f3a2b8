/* Which server may follow which, and the note that remembers one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "receiptd/postgres/lineage.h"

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))

/* Two systems; a timeline of 0 is left out. */
static struct rcpt_pg_lineage lineage_of(int one, int other)
{
    struct rcpt_pg_lineage lineage = {0};
    if (one > 0)
        rcpt_pg_lineage_add(&lineage, (struct rcpt_pg_server){1, one});
    if (other > 0)
        rcpt_pg_lineage_add(&lineage, (struct rcpt_pg_server){2, other});
    return lineage;
}

static void a_server_follows_its_own_past_and_what_was_accepted(void **state)
{
    static const struct {
        int known_one, known_other;       /* timelines that were seen of systems 1 and 2 */
        struct rcpt_pg_server now;        /* where the connection leads */
        int accepted_one, accepted_other; /* in its database */
        uint64_t contradicts;             /* system, 0: none */
    } cases[] = {
        {0, 0, {1, 1}, 0, 0, 0}, {1, 0, {1, 1}, 0, 0, 0}, {1, 0, {1, 2}, 0, 0, 0},
        {2, 0, {1, 1}, 0, 0, 1}, {2, 0, {1, 1}, 2, 0, 0}, {3, 0, {1, 1}, 2, 0, 1},
        {1, 0, {2, 1}, 0, 0, 1}, {1, 0, {2, 1}, 1, 0, 0}, {1, 1, {2, 1}, 1, 0, 0},
        {1, 1, {1, 1}, 0, 0, 2}, {1, 1, {1, 1}, 0, 1, 0}, {2, 0, {2, 1}, 1, 0, 1},
    };
    (void)state;
    for (size_t index = 0; index < LENGTH(cases); index++) {
        struct rcpt_pg_lineage known = lineage_of(cases[index].known_one, cases[index].known_other);
        struct rcpt_pg_lineage accepted =
            lineage_of(cases[index].accepted_one, cases[index].accepted_other);
        const struct rcpt_pg_server *before =
            rcpt_pg_lineage_contradiction(&known, cases[index].now, &accepted);
        assert_int_equal(before != NULL ? before->system_identifier : 0, cases[index].contradicts);
    }
}

static void the_newest_timeline_of_each_system_stays(void **state)
{
    (void)state;
    struct rcpt_pg_lineage lineage = lineage_of(3, 1);
    unsigned changes = lineage.changes;
    rcpt_pg_lineage_add(&lineage, (struct rcpt_pg_server){1, 2});
    rcpt_pg_lineage_add(&lineage, (struct rcpt_pg_server){0, 9});
    assert_int_equal(lineage.changes, changes);
    rcpt_pg_lineage_add(&lineage, (struct rcpt_pg_server){1, 4});
    assert_int_equal(lineage.changes, changes + 1);
    assert_int_equal(lineage.count, 2);
    assert_int_equal(lineage.servers[0].timeline, 4);
    for (uint64_t system = 10; system < 40; system++)
        rcpt_pg_lineage_add(&lineage, (struct rcpt_pg_server){system, 1});
    assert_int_equal(lineage.count, RCPT_PG_MOST_SERVERS);
    assert_int_equal(lineage.servers[lineage.count - 1].system_identifier, 39);
}

static void a_note_is_read_as_it_was_written(void **state)
{
    static const char *const others[] = {"",
                                         "note",
                                         "receiptd postgres 7",
                                         "receiptd postgres 7/",
                                         "receiptd postgres 7/1 ",
                                         "receiptd postgres x/1",
                                         "receiptd postgres 99999999999999999999999/1"};
    (void)state;
    struct rcpt_pg_server server = {UINT64_MAX, 2147483647}, read = {0};
    char note[RCPT_PG_NOTE_BYTES];
    rcpt_pg_server_write(server, note);
    assert_true(rcpt_pg_server_read(note, &read));
    assert_true(read.system_identifier == server.system_identifier);
    assert_int_equal(read.timeline, server.timeline);
    for (size_t index = 0; index < LENGTH(others); index++)
        assert_false(rcpt_pg_server_read(others[index], &read));
}

static void a_note_holds_for_the_server_that_wrote_it(void **state)
{
    (void)state;
    struct rcpt_pg_server server = {7, 2};
    assert_true(rcpt_pg_server_wrote(server, NULL));
    assert_true(rcpt_pg_server_wrote(server, "receiptd postgres 7/2"));
    assert_false(rcpt_pg_server_wrote(server, "receiptd postgres 7/1"));
    assert_false(rcpt_pg_server_wrote(server, "receiptd postgres 8/2"));
    assert_false(rcpt_pg_server_wrote(server, "somebody else's"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_follows_its_own_past_and_what_was_accepted),
        cmocka_unit_test(the_newest_timeline_of_each_system_stays),
        cmocka_unit_test(a_note_is_read_as_it_was_written),
        cmocka_unit_test(a_note_holds_for_the_server_that_wrote_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
