/* The configuration: what a file gives. */
#include <stdio.h>

#include "config_helpers.h"

#include "receiptd/config/value.h"

static void smallest_file_gives_the_documented_defaults(void **state)
{
    (void)state;
    struct rcpt_config *config = parse_good(SMALLEST);
    assert_string_equal(config->kafka.brokers, "127.0.0.1:9092");
    assert_int_equal(config->kafka.topics_count, 1);
    assert_string_equal(config->kafka.topics[0], "dlr-events");
    assert_string_equal(config->kafka.group, "receiptd");
    assert_null(config->kafka.instance_id);
    assert_int_equal(config->kafka.properties_count, 0);
    assert_int_equal(config->kafka.on_retention_gap, RCPT_GAP_HALT);
    assert_string_equal(config->postgres.dsn, "host=/run/postgresql dbname=receiptd");
    assert_string_equal(config->postgres.schema, "receiptd");
    assert_int_equal(config->unknown, RCPT_UNKNOWN_PARK);
    assert_null(config->inbox.table);
    assert_string_equal(config->inbox.message_id, "message_id");
    assert_string_equal(config->inbox.updated_at, "updated_at");
    assert_true(config->inbox.count_targeted);
    assert_int_equal(config->log.level, RCPT_LOG_INFO);
    assert_int_equal(config->log.format, RCPT_LOG_LOGFMT);
    assert_non_null(config->ladder);
    assert_true(rcpt_ladder_find_name(config->ladder, "CLICKED", 7, NULL, 0) >= 0);
    const struct {
        int64_t value, expected;
    } numbers[] = {
        {(int64_t)config->kafka.fetch_budget_bytes, 32 << 20},
        {config->kafka.commit_interval_ms, 5000},
        {config->postgres.connections, 2},
        {config->postgres.lock_timeout_ms, 5000},
        {config->postgres.statement_timeout_ms, 30000},
        {config->postgres.connect_timeout_ms, 10000},
        {config->postgres.zombie_timeout_ms, 10000},
        {config->postgres.retry_min_ms, 100},
        {config->postgres.retry_max_ms, 10000},
        {config->lanes, 8},
        {(int64_t)config->batch.max_events, 4000},
        {(int64_t)config->batch.max_bytes, 4 << 20},
        {config->batch.catch_up, 2},
        {config->batch.linger_ms, 0},
        {(int64_t)config->memory.budget_bytes, 16 << 20},
        {config->progress.verify_interval_ms, 5000},
        {config->progress.idle_interval_ms, 1000},
        {config->progress.rewind_timeout_ms, 10000},
        {config->parked.max_age_ms, 24 * 3600 * 1000},
        {(int64_t)config->parked.max_rows, 1000000},
        {config->parked.poll_interval_ms, 1000},
        {(int64_t)config->parked.wake_limit, 1000},
        {config->counters.rollup_interval_ms, 1000},
        {(int64_t)config->counters.rollup_rows, 10000},
        {config->inbox.fillfactor, 50},
        {config->shutdown.deadline_ms, 20000},
        {config->log.stats_interval_ms, 10000},
    };
    for (size_t index = 0; index < COUNT_OF(numbers); index++)
        assert_int_equal(numbers[index].value, numbers[index].expected);
    rcpt_config_free(config);
}

struct entry {
    const char *path, *value;
};

static bool same_section(const char *left, const char *right)
{
    size_t size = strcspn(left, ".");
    return left[size] == '.' && strcspn(right, ".") == size && strncmp(left, right, size) == 0;
}

static void write_entry(const struct entry *entry, FILE *out)
{
    const char *dot = strchr(entry->path, '.');
    const char *name = dot != NULL ? dot + 1 : entry->path, *inner = strchr(name, '.');
    if (inner != NULL)
        fprintf(out, "  %.*s: {%s: %s}\n", (int)(inner - name), name, inner + 1, entry->value);
    else
        fprintf(out, "%s%s: %s\n", dot != NULL ? "  " : "", name, entry->value);
}

/* A good file in which one key has this value, and no other key forbids it. */
static char *file_with(const char *path, const char *value)
{
    struct entry entries[] = {
        {"kafka.brokers", "b:1"},
        {"kafka.topics", "[t]"},
        {"postgres.dsn", "dbname=x"},
        {"postgres.connections", "1"},
        {"postgres.retry_min", "1ms"},
        {"postgres.retry_max", "1h"},
        {"lanes", "256"},
        {"counters.times", "true"},
        {path, value},
    };
    size_t count = COUNT_OF(entries);
    for (size_t index = 0; index + 1 < count; index++) {
        if (strcmp(entries[index].path, path) == 0) {
            entries[index].value = value;
            count--;
        }
    }
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    for (size_t index = 0; index < count; index++) {
        size_t first = 0;
        while (first < index && !same_section(entries[first].path, entries[index].path))
            first++;
        if (first < index)
            continue;
        if (strchr(entries[index].path, '.') != NULL)
            fprintf(out, "%.*s:\n", (int)strcspn(entries[index].path, "."), entries[index].path);
        write_entry(&entries[index], out);
        for (size_t other = index + 1; other < count; other++)
            if (same_section(entries[index].path, entries[other].path))
                write_entry(&entries[other], out);
    }
    fclose(out);
    return text;
}

static bool same_list(const struct rcpt_config_row *row, const struct rcpt_config *left,
                      const struct rcpt_config *right)
{
    size_t counts[2] = {0};
    char **lists[2];
    memcpy(&counts[0], (const char *)left + row->count_offset, row->count_size);
    memcpy(&counts[1], (const char *)right + row->count_offset, row->count_size);
    memcpy(&lists[0], (const char *)left + row->offset, sizeof(lists[0]));
    memcpy(&lists[1], (const char *)right + row->offset, sizeof(lists[1]));
    bool same = counts[0] == counts[1];
    for (size_t index = 0; same && index < counts[0]; index++)
        same = strcmp(lists[0][index], lists[1][index]) == 0;
    return same;
}

static bool same_member(const struct rcpt_config_row *row, const struct rcpt_config *left,
                        const struct rcpt_config *right)
{
    const char *a = (const char *)left + row->offset, *b = (const char *)right + row->offset;
    if (row->type == RCPT_CONFIG_LIST)
        return same_list(row, left, right);
    if (row->type > RCPT_CONFIG_TABLE)
        return memcmp(a, b, row->size) == 0;
    const char *texts[2];
    memcpy(&texts[0], a, sizeof(texts[0]));
    memcpy(&texts[1], b, sizeof(texts[1]));
    return strcmp(texts[0], texts[1]) == 0;
}

static void every_default_written_out_gives_the_same(void **state)
{
    (void)state;
    const struct rcpt_config_table *table = rcpt_config_table();
    for (size_t index = 0; index < rcpt_config_count(table); index++) {
        const struct rcpt_config_row *row = rcpt_config_row(table, index);
        if (row->initial == NULL)
            continue;
        char *text = file_with(row->path, row->initial);
        struct rcpt_config *given = parse_good(text), *absent = parse_good(SMALLEST);
        assert_int_equal(same_member(row, given, absent), true);
        rcpt_config_free(given);
        rcpt_config_free(absent);
        free(text);
    }
}

static bool takes(const char *path, enum rcpt_config_type type, int64_t number, char message[512])
{
    char value[RCPT_CONFIG_NUMBER_BYTES];
    struct rcpt_error error;
    rcpt_config_format_number(type, number, value);
    char *text = file_with(path, value);
    struct rcpt_config *config = parse(text, &error);
    snprintf(message, 512, "%s", error.text);
    free(text);
    rcpt_config_free(config);
    return config != NULL;
}

static void every_number_is_taken_within_its_range_and_not_outside(void **state)
{
    (void)state;
    const struct rcpt_config_table *table = rcpt_config_table();
    char message[512], expected[128];
    for (size_t index = 0; index < rcpt_config_count(table); index++) {
        const struct rcpt_config_row *row = rcpt_config_row(table, index);
        if (row->type < RCPT_CONFIG_INTEGER || row->type > RCPT_CONFIG_DURATION)
            continue;
        if (!takes(row->path, row->type, row->min, message) ||
            !takes(row->path, row->type, row->max, message))
            fail_msg("%s: %s", row->path, message);
        snprintf(expected, sizeof(expected), "%s: must be ", row->path);
        assert_false(takes(row->path, row->type, row->min - 1, message));
        assert_non_null(strstr(message, expected));
        assert_false(takes(row->path, row->type, row->max + 1, message));
        assert_non_null(strstr(message, expected));
    }
}

static void every_row_is_declared_whole(void **state)
{
    (void)state;
    const struct rcpt_config_table *table = rcpt_config_table();
    for (size_t index = 0; index < rcpt_config_count(table); index++) {
        const struct rcpt_config_row *row = rcpt_config_row(table, index);
        bool has_default = row->initial != NULL || (row->type == RCPT_CONFIG_RECORDS &&
                                                    !(row->flags & RCPT_CONFIG_REQUIRED));
        bool has_none = row->flags & (RCPT_CONFIG_REQUIRED | RCPT_CONFIG_NULLABLE);
        assert_true(has_default != has_none);
        assert_true(row->doc != NULL && row->doc[0] != '\0');
        assert_true(row->type == RCPT_CONFIG_CHOICE || row->max > 0);
        assert_true(row->example != NULL || !has_none);
        assert_int_equal(rcpt_config_find(table, row->path), (int)index);
    }
}

static void properties_are_kept_with_their_places(void **state)
{
    (void)state;
    struct rcpt_config *config =
        parse_good("kafka:\n  brokers: b\n  topics: [t, u]\n  properties:\n"
                   "    security.protocol: SASL_SSL\n    linger.ms: 5\n    empty: \"\"\n"
                   "postgres: {dsn: x}\n");
    assert_int_equal(config->kafka.topics_count, 2);
    assert_string_equal(config->kafka.topics[1], "u");
    assert_int_equal(config->kafka.properties_count, 3);
    const struct rcpt_config_pair *pair = &config->kafka.properties[1];
    assert_string_equal(pair->name, "linger.ms");
    assert_string_equal(pair->value, "5");
    assert_int_equal(pair->line, 6);
    assert_int_equal(pair->column, 16);
    assert_string_equal(config->kafka.properties[2].value, "");
    rcpt_config_free(config);
}

static void empty_sections_and_null_values_mean_the_default(void **state)
{
    (void)state;
    char *expected = printed_of(SMALLEST);
    char *actual = printed_of("kafka: {brokers: \"127.0.0.1:9092\", topics: [dlr-events],"
                              " properties: , instance_id: ~}\n"
                              "postgres: {dsn: \"host=/run/postgresql dbname=receiptd\"}\n"
                              "batch:\ninbox: {columns: , table: null}\nladder:\n");
    assert_string_equal(actual, expected);
    free(expected);
    free(actual);
}

static void the_span_of_own_partitions_follows_from_retention_unless_it_is_given(void **state)
{
    (void)state;
    static const struct {
        const char *inbox;
        int days;
    } cases[] = {
        {"partitions: own, ids: ulid", 1},
        {"partitions: own, ids: ulid, retention: 6h", 1},
        {"partitions: own, ids: ulid, retention: 30d", 1},
        {"partitions: own, ids: ulid, retention: 721h", 2},
        {"partitions: own, ids: ulid, retention: 90d", 3},
        {"partitions: own, ids: ulid, retention: 365d", 13},
        {"partitions: own, ids: ulid, retention: 3650d", 122},
        {"partitions: own, ids: ulid, retention: 90d, partition_span: ~", 3},
        {"partitions: own, ids: ulid, retention: 90d, partition_span: 1d", 1},
        {"partitions: own, ids: ulid, retention_overrides: [{org_id: o, keep: 90d}]", 1},
        {"partitions: external, ids: ulid, retention: 90d", 1},
        {"retention: 90d", 1},
    };
    for (size_t index = 0; index < COUNT_OF(cases); index++) {
        char text[512];
        snprintf(text, sizeof(text), SMALLEST "inbox: {%s}\n", cases[index].inbox);
        struct rcpt_config *config = parse_good(text);
        assert_int_equal(config->inbox.partition_span_ms, cases[index].days * INT64_C(86400000));
        rcpt_config_free(config);
    }
}

static void rows_with_first_times_get_more_space(void **state)
{
    (void)state;
    static const struct {
        const char *keys;
        unsigned fillfactor;
    } cases[] = {
        {"counters: {times: false}", 50},
        {"counters: {times: true}", 40},
        {"counters: {times: true}\ninbox: {fillfactor: ~}", 40},
        {"counters: {times: true}\ninbox: {fillfactor: 50}", 50},
    };
    for (size_t index = 0; index < COUNT_OF(cases); index++) {
        char text[512];
        snprintf(text, sizeof(text), SMALLEST "%s\n", cases[index].keys);
        struct rcpt_config *config = parse_good(text);
        assert_int_equal(config->inbox.fillfactor, cases[index].fillfactor);
        rcpt_config_free(config);
    }
}

static void a_ladder_in_the_file_replaces_the_default_as_a_whole(void **state)
{
    (void)state;
    struct rcpt_config *config = parse_good(SMALL_LADDER);
    assert_int_equal(rcpt_ladder_entry_count(config->ladder), 3);
    assert_int_equal(config->ladder_definition.flag_count, 0);
    assert_int_equal(rcpt_ladder_find_name(config->ladder, "CLICKED", 7, NULL, 0), -1);
    int plain = rcpt_ladder_find_name(config->ladder, "GONE", 4, NULL, 0);
    int sms = rcpt_ladder_find_name(config->ladder, "GONE", 4, "sms", 3);
    assert_int_equal(rcpt_ladder_entry(config->ladder, (size_t)plain)->code, 10);
    assert_true(rcpt_ladder_entry(config->ladder, (size_t)plain)->terminal);
    assert_int_equal(rcpt_ladder_entry(config->ladder, (size_t)sms)->code, 20);
    rcpt_config_free(config);
}

static void a_contradictory_ladder_is_refused_at_its_key(void **state)
{
    (void)state;
    static const char *const ladders[] = {
        "{statuses: [{name: A, code: 0}, {name: B, code: 0, parent: A}]}",
        "{statuses: [{name: A, code: 0}, {name: B, code: 5, parent: C}]}",
        "{statuses: [{name: A, code: 5}]}",
        "{statuses: [{name: A, code: 0}], flags: [{name: A}]}",
        "{flags: [{name: SEEN}]}",
    };
    for (size_t index = 0; index < COUNT_OF(ladders); index++) {
        char text[512];
        struct rcpt_error error;
        snprintf(text, sizeof(text), SMALLEST "\nladder: %s\n", ladders[index]);
        assert_null(parse(text, &error));
        assert_int_equal(error.exit_code, EX_CONFIG);
        assert_memory_equal(error.text, "t.yaml:4:1: ladder: ", 20);
        assert_true(strlen(error.text) > 20);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(smallest_file_gives_the_documented_defaults),
        cmocka_unit_test(every_default_written_out_gives_the_same),
        cmocka_unit_test(every_number_is_taken_within_its_range_and_not_outside),
        cmocka_unit_test(every_row_is_declared_whole),
        cmocka_unit_test(properties_are_kept_with_their_places),
        cmocka_unit_test(empty_sections_and_null_values_mean_the_default),
        cmocka_unit_test(the_span_of_own_partitions_follows_from_retention_unless_it_is_given),
        cmocka_unit_test(rows_with_first_times_get_more_space),
        cmocka_unit_test(rows_with_first_times_get_more_space),
        cmocka_unit_test(a_ladder_in_the_file_replaces_the_default_as_a_whole),
        cmocka_unit_test(a_contradictory_ladder_is_refused_at_its_key),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
