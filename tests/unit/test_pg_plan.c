/* Plans as EXPLAIN prints them, and what is read out of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "postgres/plan.h"

#define MAX_LINES 10u

static size_t length(const char *const *lines)
{
    size_t count = 0;
    while (count < MAX_LINES && lines[count] != NULL)
        count++;
    return count;
}

static void only_index_conditions_are_good(void **state)
{
    (void)state;
    static const char *const relations[] = {"message_inbox", "message_inbox_p1"};
    static const struct {
        enum rcpt_plan plan;
        const char *lines[MAX_LINES];
    } rows[] = {
        {RCPT_PLAN_INDEXED,
         {"Update on message_inbox m  (cost=0.42..84.59 rows=3 width=66)",
          "  ->  Nested Loop  (cost=0.42..84.59 rows=3 width=66)",
          "        ->  Function Scan on e  (cost=0.01..0.11 rows=10 width=92)",
          "        ->  Index Scan using k on message_inbox m  (cost=0.42..8.44 rows=1 width=14)",
          "              Index Cond: (message_id = (e.m)::text)",
          "              Filter: (e.s > status)"}},
        {RCPT_PLAN_INDEXED,
         {"  ->  Bitmap Heap Scan on message_inbox m  (cost=0.53..4.55 rows=1 width=11)",
          "        Recheck Cond: (message_id = (e.m)::text)",
          "        ->  Bitmap Index Scan on k  (cost=0.00..0.53 rows=1 width=0)",
          "              Index Cond: (message_id = (e.m)::text)"}},
        {RCPT_PLAN_SMALL,
         {"  ->  Index Scan using k on message_inbox m  (cost=0.13..12.18 rows=3 width=11)",
          "  ->  Function Scan on e  (cost=0.01..0.11 rows=10 width=92)",
          "        Index Cond: (of = another)"}},
        {RCPT_PLAN_SCAN,
         {"  ->  Index Scan using k on message_inbox m  (cost=0.13..12.18 rows=300000 width=11)"}},
        {RCPT_PLAN_SCAN,
         {"Seq Scan on message_inbox  (cost=0.00..23.10 rows=1 width=40)", "  Filter: (x > 1)"}},
        {RCPT_PLAN_SCAN,
         {"  ->  Index Scan using k on message_inbox m_1  (cost=0.42..8.44 rows=1 width=14)",
          "        Index Cond: (message_id = (e.m)::text)",
          "  ->  Parallel Seq Scan on message_inbox_p1 m_2  (cost=0.42..8.44 rows=1 width=14)"}},
        {RCPT_PLAN_ABSENT,
         {"Update on message_inbox m  (cost=0.42..84.59 rows=3 width=66)",
          "  ->  Seq Scan on message_inbox_old m  (cost=0.42..84.59 rows=3 width=66)",
          "  ->  CTE Scan on f  (cost=0.42..84.59 rows=3 width=66)"}},
        {RCPT_PLAN_ABSENT,
         {"Subquery Scan on message_inbox  (cost=1..2 rows=1 width=4)",
          "  ->  CTE Scan on message_inbox  (cost=1..2 rows=1 width=4)"}},
        {RCPT_PLAN_ABSENT, {"Result  (cost=0.00..0.26 rows=1 width=4)"}},
    };
    for (size_t index = 0; index < sizeof(rows) / sizeof(rows[0]); index++)
        assert_int_equal(
            rcpt_plan_check(rows[index].lines, length(rows[index].lines), relations, 2),
            rows[index].plan);
}

static void without_a_relation_nothing_is_reached(void **state)
{
    (void)state;
    static const char *const lines[] = {"Seq Scan on message_inbox  (cost=0.00..23.10 rows=1)"};
    assert_int_equal(rcpt_plan_check(lines, 1, NULL, 0), RCPT_PLAN_ABSENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_index_conditions_are_good),
        cmocka_unit_test(without_a_relation_nothing_is_reached),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
