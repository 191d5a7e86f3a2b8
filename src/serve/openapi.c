/* openapi.json with what only the build and the configuration know: made once at the start. Called
 * by serve.c. A unit test compares it with the table of routes.
 *
 * A text "@NAME@" stands for a value of `marks`. A path stands twice if one of its parameters may
 * be off: as "PATH (with PARAMETER)" and as "PATH (without PARAMETER)". */
#include <stdio.h>

#include "internal.h"
#include "receiptd/base/error.h"
#include "receiptd/base/json.h"
#include "receiptd/base/version.h"
#include "receiptd/core/record.h"

#define PATH "    \"" SERVE_BASE /* how the line of a path begins */

static void put_version(struct rcpt_json *json, const struct rcpt_config *config)
{
    (void)config;
    rcpt_json_text(json, RCPT_VERSION);
}

static void put_statuses(struct rcpt_json *json, const struct rcpt_config *config)
{
    rcpt_json_begin_array(json);
    for (size_t index = 0; index < rcpt_ladder_entry_count(config->ladder); index++)
        rcpt_json_text(json, rcpt_ladder_entry(config->ladder, index)->name);
    rcpt_json_end_array(json);
}

/* The reasons of dead letters. */
static void put_reasons(struct rcpt_json *json, const struct rcpt_config *config)
{
    (void)config;
    rcpt_json_begin_array(json);
    for (int reason = 0; reason < RCPT_REJECT_REASON__COUNT; reason++)
        rcpt_json_text(json, rcpt_reject_name((enum rcpt_reject_reason)reason));
    rcpt_json_end_array(json);
}

static const struct {
    const char *text;
    void (*put)(struct rcpt_json *json, const struct rcpt_config *config);
} marks[] = {
    {"\"@VERSION@\"", put_version},
    {"\"@STATUSES@\"", put_statuses},
    {"\"@REASONS@\"", put_reasons},
};

/* Adds the line feed. A line has one mark at most. */
static void put_line(FILE *out, struct rcpt_text line, const struct rcpt_config *config)
{
    for (size_t index = 0; index < RCPT_COUNT_OF(marks); index++) {
        size_t at = rcpt_text_find(line, marks[index].text);
        if (at == line.size)
            continue;
        struct rcpt_json json;
        rcpt_json_init(&json, out);
        fwrite(line.at, 1, at, out);
        marks[index].put(&json, config);
        line = rcpt_text_part(line, at + strlen(marks[index].text), line.size);
    }
    fprintf(out, "%.*s\n", (int)line.size, line.at);
}

static bool is_on(struct rcpt_text path, struct rcpt_text name, const struct rcpt_config *config)
{
    size_t count, row = 0, index = 0;
    const struct serve_route *routes = serve_routes(&count);
    while (row < count && !rcpt_text_is(path, routes[row].path))
        row++;
    RCPT_ASSERT(row < count);
    while (index < SERVE_MOST_VALUES && !rcpt_text_is(name, routes[row].parameters[index].name))
        index++;
    RCPT_ASSERT(index < SERVE_MOST_VALUES);
    return serve_parameter_is_on(&routes[row].parameters[index], config);
}

/* Writes the key of a path without its suffix. False: the path is for another configuration. */
static bool put_path(FILE *out, struct rcpt_text line, const struct rcpt_config *config)
{
    static const char with[] = " (with ", without[] = " (without ";
    size_t end = rcpt_text_find(line, " (");
    if (end == line.size) {
        put_line(out, line, config);
        return true;
    }
    struct rcpt_text path = rcpt_text_part(line, sizeof(PATH) - 1, end - (sizeof(PATH) - 1));
    struct rcpt_text rest = rcpt_text_part(line, end, line.size);
    bool wanted = rcpt_text_begins(rest, with);
    rest = rcpt_text_part(rest, wanted ? sizeof(with) - 1 : sizeof(without) - 1, rest.size);
    struct rcpt_text parameter = rcpt_text_part(rest, 0, rcpt_text_find(rest, ")"));
    if (is_on(path, parameter, config) != wanted)
        return false;
    fprintf(out, "%.*s\": {\n", (int)end, line.at);
    return true;
}

static struct rcpt_text find_document(void)
{
    const struct serve_file *file = serve_files;
    while (strcmp(file->name, "openapi.json") != 0)
        file++;
    return (struct rcpt_text){file->text, file->size};
}

char *serve_openapi(const struct rcpt_config *config, size_t *size)
{
    char *text = NULL;
    FILE *out = rcpt_open_memory(&text, size);
    struct rcpt_text rest = find_document();
    bool takes = true;
    while (rest.size > 0) {
        struct rcpt_text line = rcpt_text_part(rest, 0, rcpt_text_find(rest, "\n"));
        rest = rcpt_text_part(rest, line.size + 1, rest.size);
        if (rcpt_text_begins(line, PATH))
            takes = put_path(out, line, config);
        else if (takes)
            put_line(out, line, config);
    }
    RCPT_ASSERT(fclose(out) == 0);
    return text;
}
