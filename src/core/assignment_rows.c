/* Judges PostgreSQL's answer to an assignment: whether its pins agree with this instance, which
 * rows are missing, and where each partition goes on. Called by assignment.c.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "assignment_internal.h"
#include "engine_internal.h"

/* ---- the cluster ---- */

void rcpt_assignment_set_cluster(struct rcpt_assignment *assignment, const char *cluster_id)
{
    free(assignment->cluster_id);
    assignment->cluster_id = rcpt_strdup(cluster_id);
}

const char *rcpt_assignment_cluster(const struct rcpt_assignment *assignment)
{
    return assignment->cluster_id;
}

static struct topic *find_topic(const struct rcpt_assignment *assignment, const char *name)
{
    for (size_t index = 0; index < assignment->topic_count; index++) {
        if (strcmp(assignment->topics[index].name, name) == 0)
            return &assignment->topics[index];
    }
    return NULL;
}

/* Called after each metadata answer: partitions may be added to a topic. */
void rcpt_assignment_set_topic(struct rcpt_assignment *assignment, const char *name,
                               int32_t partitions)
{
    struct topic *topic = find_topic(assignment, name);
    if (topic == NULL) {
        size_t bytes = (assignment->topic_count + 1) * sizeof(*assignment->topics);
        assignment->topics = rcpt_realloc(assignment->topics, bytes);
        topic = &assignment->topics[assignment->topic_count++];
        topic->name = rcpt_strdup(name);
    }
    topic->partitions = partitions;
}

int32_t rcpt_assignment_topic_partitions(const struct rcpt_assignment *assignment, const char *name)
{
    const struct topic *topic = find_topic(assignment, name);
    return topic != NULL ? topic->partitions : 0;
}

/* ---- pins: what must be the same on every instance ---- */

static bool refuse(struct rcpt_error *error, const char *topic, const char *what,
                   const char *pinned, const char *ours)
{
    rcpt_error_fatal(error, EX_CONFIG,
                     "topic %s is pinned to %s %s in consumer_topic, the configuration says %s",
                     topic, what, pinned, ours);
    rcpt_error_hint(
        error,
        "give every instance the same configuration; changing it needs all instances stopped and a "
        "migration");
    return false;
}

static bool check_number(struct rcpt_error *error, const char *topic, const char *what,
                         int64_t pinned, int64_t ours)
{
    char left[24], right[24];
    snprintf(left, sizeof(left), "%lld", (long long)pinned);
    snprintf(right, sizeof(right), "%lld", (long long)ours);
    return pinned == ours || refuse(error, topic, what, left, right);
}

/* Instances that differ in one of these would put a message into different lanes, or count it by
 * different ladders. */
static bool check_pin(const struct rcpt_assignment *assignment, const char *ladder,
                      const struct rcpt_assignment_pin *pin, struct rcpt_error *error)
{
    if (strcmp(pin->cluster_id, assignment->cluster_id) != 0) {
        rcpt_error_fatal(
            error, EX_CONFIG,
            "topic %s was consumed from Kafka cluster %s, and kafka.brokers lead to %s", pin->topic,
            pin->cluster_id, assignment->cluster_id);
        rcpt_error_hint(error,
                        "correct kafka.brokers; if it is the right cluster and its topics have the "
                        "same records: receiptd positions accept-cluster --dry-run");
        return false;
    }
    if (strcmp(pin->ladder, ladder) != 0)
        return refuse(error, pin->topic, "ladder", pin->ladder, ladder);
    return check_number(error, pin->topic, "lanes", pin->lanes,
                        assignment->engine->settings.lanes) &&
           check_number(error, pin->topic, "hash version", pin->hash_version,
                        assignment->settings.hash_version);
}

static const struct rcpt_assignment_pin *find_pin(const struct rcpt_assignment_answer *answer,
                                                  const char *topic)
{
    for (size_t index = 0; index < answer->pin_count; index++) {
        if (strcmp(answer->pins[index].topic, topic) == 0)
            return &answer->pins[index];
    }
    return NULL;
}

/* The number of partitions for which the topic must have rows: all that the cluster knows, and all
 * that were assigned. */
static int32_t needed_partitions(const struct rcpt_assignment *assignment, const char *name)
{
    int32_t needed = rcpt_assignment_topic_partitions(assignment, name);
    for (size_t index = 0; index < assignment->count; index++) {
        const struct slot *part = &assignment->engine->slots[assignment->slots[index]];
        if (strcmp(part->topic, name) == 0 && part->partition >= needed)
            needed = part->partition + 1;
    }
    return needed;
}

/* One topic at a time: rows are made for the first one that lacks some, and the answer is read
 * again after that. */
enum pins_verdict assignment_judge_pins(struct rcpt_assignment *assignment,
                                        const struct rcpt_assignment_answer *answer,
                                        struct rcpt_error *error)
{
    for (size_t index = 0; index < assignment->count; index++) {
        const char *topic = rcpt_engine_slot_topic(assignment->engine, assignment->slots[index]);
        const struct rcpt_assignment_pin *pin = find_pin(answer, topic);
        if (pin != NULL && !check_pin(assignment, answer->ladder, pin, error))
            return PINS_OTHER;
        int32_t have = pin != NULL ? pin->partitions : 0;
        int32_t needed = needed_partitions(assignment, topic);
        if (have >= needed)
            continue;
        free(assignment->new_topic);
        assignment->new_topic = rcpt_strdup(topic);
        assignment->new_from = have;
        assignment->new_to = needed;
        return PINS_LACKING;
    }
    return PINS_GOOD;
}

/* ---- rows ---- */

/* The anchor is that of the lane that is furthest behind, because the partition starts there. */
void assignment_collect_rows(struct rcpt_assignment *assignment,
                             const struct rcpt_assignment_answer *answer, uint32_t slot)
{
    struct found_rows *found = &assignment->found;
    int64_t lowest = INT64_MAX;
    memset(found, 0, sizeof(*found));
    found->anchor.offset = -1;
    for (size_t index = 0; index < answer->row_count; index++) {
        const struct rcpt_assignment_row *row = &answer->rows[index];
        if (row->slot != slot)
            continue;
        RCPT_ASSERT(row->lane < RCPT_ENGINE_MAX_LANES);
        found->next[row->lane] = row->next_offset;
        found->generation = row->generation;
        found->count++;
        if (row->next_offset >= lowest)
            continue;
        lowest = row->next_offset;
        found->anchor = row->anchor;
    }
}

/* All lanes or none: a partition without the row of one lane would skip that lane's receipts. */
uint32_t assignment_find_lacking(struct rcpt_assignment *assignment,
                                 const struct rcpt_assignment_answer *answer,
                                 struct rcpt_error *error)
{
    uint32_t lanes = assignment->engine->settings.lanes;
    for (size_t index = 0; index < assignment->count; index++) {
        const struct slot *part = &assignment->engine->slots[assignment->slots[index]];
        assignment_collect_rows(assignment, answer, assignment->slots[index]);
        if (assignment->found.count == lanes)
            continue;
        rcpt_error_fatal(error, EX_DATAERR,
                         "consumer_progress has %u of %u rows for topic %s partition %d: the "
                         "others were deleted",
                         assignment->found.count, lanes, part->topic, part->partition);
        rcpt_error_hint(error,
                        "restore the rows, or receiptd positions set %.100s %d OFFSET makes those "
                        "that are missing at the offset that was applied last; then restart",
                        part->topic, part->partition);
        return assignment->slots[index];
    }
    return UINT32_MAX;
}
