/* Look-ups in a table of keys: by path, by section, and what a name says about its value. All are
 * linear: a table has some 130 rows, and only loading looks keys up. */
#include <string.h>
#include <strings.h>

#include "receiptd/base/error.h"
#include "table.h"

size_t rcpt_config_count(const struct rcpt_config_table *table)
{
    size_t count = 0;
    for (size_t index = 0; index < table->section_count; index++)
        count += table->sections[index].count;
    RCPT_ASSERT(count <= RCPT_CONFIG_MAX_ROWS);
    return count;
}

const struct rcpt_config_row *rcpt_config_row(const struct rcpt_config_table *table, size_t index)
{
    const struct rcpt_config_section *section = table->sections;
    for (; index >= section->count; section++)
        index -= section->count;
    return &section->rows[index];
}

int rcpt_config_find(const struct rcpt_config_table *where, const char *path)
{
    for (size_t index = 0; index < rcpt_config_count(where); index++)
        if (strcmp(rcpt_config_row(where, index)->path, path) == 0)
            return (int)index;
    return -1;
}

/* Sections have no rows of their own: a path is one if some row continues it with a dot. */
bool rcpt_config_is_section(const struct rcpt_config_table *where, const char *path)
{
    size_t size = strlen(path);
    for (size_t index = 0; index < rcpt_config_count(where); index++)
        if (strncmp(rcpt_config_row(where, index)->path, path, size) == 0 &&
            rcpt_config_row(where, index)->path[size] == '.')
            return true;
    return false;
}

/* ladder.statuses, ladder.flags and ladder.overrides make one object. */
bool rcpt_config_is_ladder(const struct rcpt_config_row *row)
{
    return strncmp(row->path, "ladder.", 7) == 0;
}

/* librdkafka does not say which of its properties are secret, so the name decides. A word too many
 * hides a harmless value; a word too few would print a password. */
bool rcpt_config_is_secret_property(const char *name)
{
    static const char *const words[] = {"password", "secret", "key", "token", "jaas", "oauth"};
    for (size_t index = 0; index < RCPT_COUNT_OF(words); index++)
        if (strcasestr(name, words[index]) != NULL)
            return true;
    return false;
}
