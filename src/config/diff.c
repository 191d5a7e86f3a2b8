/* Compares configurations, row by row of the table: a reload takes over the values that differ and
 * may change (operate/reload.c); the hash shows whether instances have the same settings. Both
 * configurations stay owned by the caller. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/text.h"
#include "table.h"

/* Rows are compared by their type, read through the offsets of the table. */
static const void *member(const struct rcpt_config_row *row, const void *base)
{
    return (const char *)base + row->offset;
}

static const char *text_of(const struct rcpt_config_row *row, const void *base)
{
    const char *text;
    memcpy(&text, member(row, base), sizeof(text));
    return text;
}

static bool same_text(const char *left, const char *right)
{
    return left == right || (left != NULL && right != NULL && strcmp(left, right) == 0);
}

/* Counts are unsigned or size_t, as libcyaml fills either. */
static size_t count_of(const struct rcpt_config_row *row, const void *base)
{
    unsigned count;
    size_t large;
    if (row->count_size == sizeof(large)) {
        memcpy(&large, (const char *)base + row->count_offset, sizeof(large));
        return large;
    }
    RCPT_ASSERT(row->count_size == sizeof(count));
    memcpy(&count, (const char *)base + row->count_offset, sizeof(count));
    return count;
}

/* Types up to TABLE are texts behind a pointer; all others stand in the member itself. The order of
 * the enum in table.h makes this one comparison. */
static bool same_single(const struct rcpt_config_row *row, const void *left, const void *right)
{
    if (row->type <= RCPT_CONFIG_TABLE)
        return same_text(text_of(row, left), text_of(row, right));
    return memcmp(member(row, left), member(row, right), row->size) == 0;
}

static bool same_texts(char *const *left, char *const *right, size_t count)
{
    for (size_t index = 0; index < count; index++) {
        if (strcmp(left[index], right[index]) != 0)
            return false;
    }
    return true;
}

/* Line and column may differ: a comment above does not make a setting another one. */
static bool same_pairs(const struct rcpt_config_pair *left, const struct rcpt_config_pair *right,
                       size_t count)
{
    for (size_t index = 0; index < count; index++) {
        if (strcmp(left[index].name, right[index].name) != 0 ||
            strcmp(left[index].value, right[index].value) != 0)
            return false;
    }
    return true;
}

/* Lists of different length differ; otherwise entry by entry. */
static bool same_value(const struct rcpt_config_row *row, const void *left, const void *right);

/* Records are compared in order: order may mean something, as in the ladder. */
static bool same_records(const struct rcpt_config_table *fields, const char *left,
                         const char *right, size_t count)
{
    for (size_t index = 0; index < count; index++) {
        const char *one = left + index * fields->record_size;
        const char *other = right + index * fields->record_size;
        for (size_t field = 0; field < rcpt_config_count(fields); field++) {
            if (!same_value(rcpt_config_row(fields, field), one, other))
                return false;
        }
    }
    return true;
}

static bool same_value(const struct rcpt_config_row *row, const void *left, const void *right)
{
    bool is_list = row->type == RCPT_CONFIG_LIST;
    if (row->type < RCPT_CONFIG_MAP && !is_list)
        return same_single(row, left, right);
    size_t count = count_of(row, left);
    const void *ours = text_of(row, left), *theirs = text_of(row, right);
    if (count != count_of(row, right))
        return false;
    if (is_list)
        return same_texts(ours, theirs, count);
    if (row->type == RCPT_CONFIG_MAP)
        return same_pairs(ours, theirs, count);
    return same_records(row->record, ours, theirs, count);
}

/* Exchanging instead of copying keeps ownership simple: freeing `fresh` later frees the old values.
 * Members are at most two pointers wide. */
static void exchange(void *left, void *right, size_t size)
{
    char kept[16];
    RCPT_ASSERT(size <= sizeof(kept));
    memcpy(kept, left, size);
    memcpy(left, right, size);
    memcpy(right, kept, size);
}

static void exchange_value(const struct rcpt_config_row *row, struct rcpt_config *left,
                           struct rcpt_config *right)
{
    exchange((char *)left + row->offset, (char *)right + row->offset, row->size);
    if (row->count_size > 0)
        exchange((char *)left + row->count_offset, (char *)right + row->count_offset,
                 row->count_size);
}

/* ---- properties of Kafka, one by one ---- */

/* Further properties than there are places are not named. */
static void note_property(struct rcpt_config_changes *changes, bool applied, const char *key,
                          const char *what)
{
    if (changes->named_count == RCPT_CONFIG_MAX_NAMED)
        return;
    char *name = changes->named[changes->named_count++];
    snprintf(name, sizeof(changes->named[0]), "%.128s%s", key, what);
    if (applied)
        changes->applied[changes->applied_count++] = name;
    else
        changes->needs_restart[changes->needs_restart_count++] = name;
}

static void note_pair(struct rcpt_config_changes *changes, bool applied, const char *name)
{
    char key[128];
    snprintf(key, sizeof(key), "kafka.properties.%.100s", name);
    note_property(changes, applied, key, "");
}

static struct rcpt_config_pair *find_pair(const struct rcpt_config *config, const char *name)
{
    for (unsigned index = config->kafka.properties_count; index-- > 0;)
        if (strcmp(config->kafka.properties[index].name, name) == 0)
            return &config->kafka.properties[index];
    return NULL;
}

const char *rcpt_config_kafka_property(const struct rcpt_config *config, const char *name)
{
    const struct rcpt_config_pair *pair = find_pair(config, name);
    return pair != NULL ? pair->value : NULL;
}

static bool same_property(const struct rcpt_config *left, const struct rcpt_config *right,
                          const char *name)
{
    return same_text(rcpt_config_kafka_property(left, name),
                     rcpt_config_kafka_property(right, name));
}

static bool is_credential(const char *name)
{
    return strcmp(name, "sasl.username") == 0 || strcmp(name, "sasl.password") == 0;
}

/* Compares the properties by which a broker lets a client in, except user and password. */
static bool same_way_in(const struct rcpt_config *left, const struct rcpt_config *right)
{
    for (unsigned index = 0; index < left->kafka.properties_count; index++) {
        const char *name = left->kafka.properties[index].name;
        bool counts = strncmp(name, "sasl.", 5) == 0 || strncmp(name, "ssl.", 4) == 0 ||
                      strncmp(name, "security.", 9) == 0;
        if (counts && !is_credential(name) && !same_property(left, right, name))
            return false;
    }
    return true;
}

/* librdkafka's clients take them for PLAIN and SCRAM. They were tried together with the other
 * properties of `fresh`, so those have to be in effect. */
static bool takes_credentials(const struct rcpt_config *config, const struct rcpt_config *fresh)
{
    const char *mechanism = rcpt_config_kafka_property(config, "sasl.mechanism");
    if (mechanism == NULL)
        mechanism = rcpt_config_kafka_property(config, "sasl.mechanisms");
    return mechanism != NULL &&
           (strcmp(mechanism, "PLAIN") == 0 || strncmp(mechanism, "SCRAM-", 6) == 0) &&
           same_text(config->kafka.brokers, fresh->kafka.brokers) && same_way_in(config, fresh) &&
           same_way_in(fresh, config);
}

static void take_properties(struct rcpt_config *config, struct rcpt_config *fresh,
                            struct rcpt_config_changes *changes)
{
    bool takes = takes_credentials(config, fresh);
    for (unsigned index = 0; index < fresh->kafka.properties_count; index++) {
        struct rcpt_config_pair *pair = &fresh->kafka.properties[index];
        struct rcpt_config_pair *ours = find_pair(config, pair->name);
        if (same_property(config, fresh, pair->name))
            continue;
        bool applied = takes && ours != NULL && is_credential(pair->name);
        if (applied)
            exchange(&ours->value, &pair->value, sizeof(pair->value));
        note_pair(changes, applied, pair->name);
    }
    for (unsigned index = 0; index < config->kafka.properties_count; index++)
        if (find_pair(fresh, config->kafka.properties[index].name) == NULL)
            note_pair(changes, false, config->kafka.properties[index].name);
}

/* A file that only a restart reads stays as it was read, until then. */
static void keep_marks(const struct rcpt_config *config, struct rcpt_config *fresh,
                       struct rcpt_config_changes *changes)
{
    for (size_t index = 0; index < fresh->sources.count; index++) {
        struct rcpt_config_source *source = &fresh->sources.at[index];
        for (size_t other = 0; source->needs_restart && other < config->sources.count; other++) {
            const struct rcpt_config_source *ours = &config->sources.at[other];
            if (strcmp(ours->key, source->key) != 0 || strcmp(ours->path, source->path) != 0 ||
                ours->mark == source->mark || source->mark == 0)
                continue;
            source->mark = ours->mark;
            note_property(changes, false, source->key, " (its file has changed)");
        }
    }
}

/* A list with other contents is a change, although its path is the same. */
static void take_networks(struct rcpt_config *config, struct rcpt_config *fresh,
                          struct rcpt_config_changes *changes)
{
    exchange(&config->scanners, &fresh->scanners, sizeof(fresh->scanners));
    for (size_t index = 0; index < fresh->sources.count; index++) {
        const struct rcpt_config_source *source = &fresh->sources.at[index];
        for (size_t other = 0; other < config->sources.count; other++) {
            const struct rcpt_config_source *ours = &config->sources.at[other];
            if (strcmp(source->key, "machine.networks") == 0 &&
                strcmp(ours->key, source->key) == 0 && strcmp(ours->path, source->path) == 0 &&
                ours->mark != source->mark)
                note_property(changes, true, source->key, " (its file has changed)");
        }
    }
}

/* Whether both read the same topics: positions belong to them, so others need a restart. */
static bool same_topics(const struct rcpt_config *left, const struct rcpt_config *right)
{
    return left->kafka.topics_count == right->kafka.topics_count &&
           same_texts(left->kafka.topics, right->kafka.topics, left->kafka.topics_count);
}

/* ---- a reload ---- */

/* Compiled pipelines are always exchanged: they belong to the text in effect, and the actions may
 * have taken the earlier ones already. */
void rcpt_config_take_over(struct rcpt_config *config, struct rcpt_config *fresh,
                           struct rcpt_config_changes *changes)
{
    const struct rcpt_config_table *table = rcpt_config_table();
    memset(changes, 0, sizeof(*changes));
    exchange(&config->compiled, &fresh->compiled, sizeof(fresh->compiled));
    keep_marks(config, fresh, changes);
    take_networks(config, fresh, changes);
    exchange(&config->sources, &fresh->sources, sizeof(fresh->sources));
    for (size_t index = 0; index < rcpt_config_count(table); index++) {
        const struct rcpt_config_row *row = rcpt_config_row(table, index);
        if (strcmp(row->path, "kafka.properties") == 0)
            take_properties(config, fresh, changes);
        else if (same_value(row, config, fresh))
            continue;
        else if (row->flags & RCPT_CONFIG_RELOADABLE &&
                 (strcmp(row->path, "kafka.topics") != 0 || same_topics(config, fresh))) {
            exchange_value(row, config, fresh);
            changes->applied[changes->applied_count++] = row->path;
        } else {
            changes->needs_restart[changes->needs_restart_count++] = row->path;
        }
    }
}

/* FNV-1a over the printed form, in which secrets are redacted: equal hashes say nothing about
 * secrets. */
void rcpt_config_hash(const struct rcpt_config *config, char text[17])
{
    char *printed = NULL;
    size_t size = 0;
    FILE *out = rcpt_open_memory(&printed, &size);
    rcpt_config_print(config, out);
    RCPT_ASSERT(fclose(out) == 0);
    uint64_t hash = rcpt_text_hash((struct rcpt_text){printed, size});
    free(printed);
    snprintf(text, 17, "%016" PRIx64, hash);
}
