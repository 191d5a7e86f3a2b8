/* Rebalances, and moving a partition to another offset.
 *
 * An assignment is held until the owner answers with offsets (rcpt_kafka_assign), which may take
 * seconds; while it is held, moves wait. Called by consumer.c and by the owner.
 */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

bool rcpt_kafka_is_cooperative(const struct rcpt_kafka *kafka)
{
    return strcmp(rd_kafka_rebalance_protocol(kafka->handle), "COOPERATIVE") == 0;
}

/* ---- answers to librdkafka ---- */

/* Failures of these calls are logged; the group's next rebalance sets things right. */
static void answer_failed(struct rcpt_kafka *kafka, const char *call, rd_kafka_resp_err_t code,
                          const char *text)
{
    if (code != RD_KAFKA_RESP_ERR_NO_ERROR)
        rcpt_log_error("kafka", "group %s: %s failed: %s [%s]", kafka->settings.group, call, text,
                       rd_kafka_err2name(code));
}

/* Logs and frees the error, if there is one. */
static void check(struct rcpt_kafka *kafka, const char *call, rd_kafka_error_t *error)
{
    if (error == NULL)
        return;
    answer_failed(kafka, call, rd_kafka_error_code(error), rd_kafka_error_string(error));
    rd_kafka_error_destroy(error);
}

static void assign_all(struct rcpt_kafka *kafka, const rd_kafka_topic_partition_list_t *list)
{
    rd_kafka_resp_err_t code = rd_kafka_assign(kafka->handle, list);
    answer_failed(kafka, "assign", code, rd_kafka_err2str(code));
}

/* In an eager group a list replaces the assignment, in a cooperative one it adds to it. */
static void answer_assign(struct rcpt_kafka *kafka, const rd_kafka_topic_partition_list_t *list)
{
    if (rcpt_kafka_is_cooperative(kafka))
        check(kafka, "incremental assign", rd_kafka_incremental_assign(kafka->handle, list));
    else
        assign_all(kafka, list);
}

static void answer_unassign(struct rcpt_kafka *kafka, const rd_kafka_topic_partition_list_t *list)
{
    if (rcpt_kafka_is_cooperative(kafka))
        check(kafka, "incremental unassign", rd_kafka_incremental_unassign(kafka->handle, list));
    else
        assign_all(kafka, NULL);
}

/* ---- rebalances ---- */

/* The caller frees them; topics are borrowed from the list. */
static struct rcpt_kafka_partition *as_partitions(const rd_kafka_topic_partition_list_t *list)
{
    struct rcpt_kafka_partition *partitions =
        rcpt_calloc((size_t)list->cnt + 1, sizeof(*partitions));
    for (int i = 0; i < list->cnt; i++) {
        partitions[i].topic = list->elems[i].topic;
        partitions[i].partition = list->elems[i].partition;
        partitions[i].offset = -1;
    }
    return partitions;
}

static void release_held(struct rcpt_kafka *kafka)
{
    rd_kafka_topic_partition_list_destroy(kafka->held);
    kafka->held = NULL;
}

/* Takes the listed partitions out of the held assignment; an assignment that becomes empty is
 * answered. */
static void withdraw(struct rcpt_kafka *kafka, const rd_kafka_topic_partition_list_t *list)
{
    if (kafka->held == NULL)
        return;
    for (int i = 0; i < list->cnt; i++)
        rd_kafka_topic_partition_list_del(kafka->held, list->elems[i].topic,
                                          list->elems[i].partition);
    if (kafka->held->cnt > 0)
        return;
    answer_assign(kafka, kafka->held);
    release_held(kafka);
}

/* The partitions of the list that the owner was given: librdkafka also revokes refused ones. */
static rd_kafka_topic_partition_list_t *ours_of(const struct rcpt_kafka *kafka,
                                                const rd_kafka_topic_partition_list_t *list,
                                                bool also_held)
{
    rd_kafka_topic_partition_list_t *ours = rd_kafka_topic_partition_list_new(list->cnt);
    for (int i = 0; i < list->cnt; i++) {
        const rd_kafka_topic_partition_t *entry = &list->elems[i];
        bool held =
            also_held && kafka->held != NULL &&
            rd_kafka_topic_partition_list_find(kafka->held, entry->topic, entry->partition) != NULL;
        if (held || rcpt_kafka_find(kafka, entry->topic, entry->partition) != NULL)
            rd_kafka_topic_partition_list_add(ours, entry->topic, entry->partition);
    }
    return ours;
}

/* Before anything is removed, so that the owner can still name its partitions. */
static void report_revoked(struct rcpt_kafka *kafka, const rd_kafka_topic_partition_list_t *list,
                           bool lost)
{
    rd_kafka_topic_partition_list_t *ours = ours_of(kafka, list, true);
    struct rcpt_kafka_partition *partitions = as_partitions(ours);
    if (ours->cnt > 0)
        kafka->callbacks.on_revoked(kafka->callbacks.context, partitions, (size_t)ours->cnt, lost);
    free(partitions);
    rd_kafka_topic_partition_list_destroy(ours);
}

/* From the end, since removing moves the last one. */
static void remove_listed(struct rcpt_kafka *kafka, const rd_kafka_topic_partition_list_t *list)
{
    for (size_t i = kafka->partition_count; i-- > 0;)
        if (rd_kafka_topic_partition_list_find(list, kafka->partitions[i]->topic,
                                               kafka->partitions[i]->partition) != NULL)
            rcpt_kafka_partition_remove(kafka, i);
}

static rd_kafka_topic_partition_list_t *all_of(const struct rcpt_kafka *kafka)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new((int)kafka->partition_count);
    for (size_t i = 0; i < kafka->partition_count; i++)
        rd_kafka_topic_partition_list_add(list, kafka->partitions[i]->topic,
                                          kafka->partitions[i]->partition);
    return list;
}

/* Partitions that were never revoked; others may own them already. */
static void give_up(struct rcpt_kafka *kafka, const rd_kafka_topic_partition_list_t *list)
{
    if (list->cnt == 0)
        return;
    rcpt_log_info("kafka", "group %s: %d partitions are given up without a revoke",
                  kafka->settings.group, list->cnt);
    report_revoked(kafka, list, true);
    remove_listed(kafka, list);
    answer_unassign(kafka, list);
}

static void give_up_all(struct rcpt_kafka *kafka)
{
    if (kafka->held != NULL) {
        report_revoked(kafka, kafka->held, true);
        release_held(kafka);
    }
    rd_kafka_topic_partition_list_t *list = all_of(kafka);
    give_up(kafka, list);
    rd_kafka_topic_partition_list_destroy(list);
}

/* While an assignment is held, a topic that gets partitions makes librdkafka 2.0 join again without
 * revoking (rd_kafka_cgrp_revoke_all_rejoin): the next assignment comes on top. It replaces the
 * former one in an eager group and adds to it in a cooperative one. */
static void make_room(struct rcpt_kafka *kafka, const rd_kafka_topic_partition_list_t *list)
{
    if (!rcpt_kafka_is_cooperative(kafka)) {
        give_up_all(kafka);
        return;
    }
    rd_kafka_topic_partition_list_t *ours = ours_of(kafka, list, false);
    give_up(kafka, ours);
    rd_kafka_topic_partition_list_destroy(ours);
}

static void announce_held(struct rcpt_kafka *kafka)
{
    /* Partitions may have been added to a topic: that is why the group rebalances. */
    rcpt_kafka_look_up_soon(kafka);
    struct rcpt_kafka_partition *partitions = as_partitions(kafka->held);
    kafka->callbacks.on_assigned(kafka->callbacks.context, partitions, (size_t)kafka->held->cnt);
    free(partitions);
}

/* A held assignment was announced already: the owner forgets it and gets the whole. */
static void hold(struct rcpt_kafka *kafka, const rd_kafka_topic_partition_list_t *list)
{
    if (kafka->held == NULL) {
        kafka->held = rd_kafka_topic_partition_list_copy(list);
        return;
    }
    report_revoked(kafka, kafka->held, false);
    for (int i = 0; i < list->cnt; i++)
        if (rd_kafka_topic_partition_list_find(kafka->held, list->elems[i].topic,
                                               list->elems[i].partition) == NULL)
            rd_kafka_topic_partition_list_add(kafka->held, list->elems[i].topic,
                                              list->elems[i].partition);
}

/* The owner gets no callback for the assignment but on_spare. */
static void answer_spare(struct rcpt_kafka *kafka)
{
    rd_kafka_topic_partition_list_t *none = rd_kafka_topic_partition_list_new(0);
    answer_assign(kafka, none);
    rd_kafka_topic_partition_list_destroy(none);
    if (kafka->callbacks.on_spare != NULL && kafka->life == LIFE_OPEN && !kafka->health.fatal)
        kafka->callbacks.on_spare(kafka->callbacks.context);
}

/* An empty assignment is answered at once. */
static void on_assign(struct rcpt_kafka *kafka, const rd_kafka_topic_partition_list_t *list)
{
    rcpt_log_info("kafka", "group %s: %d partitions assigned", kafka->settings.group, list->cnt);
    rcpt_kafka_group_fine(kafka);
    make_room(kafka, list);
    if (list->cnt == 0 && kafka->held != NULL) /* its answer is the answer to both */
        return;
    if (list->cnt == 0 || kafka->life != LIFE_OPEN || kafka->health.fatal) {
        answer_spare(kafka);
        return;
    }
    hold(kafka, list);
    announce_held(kafka);
}

/* Owner first, then the queues, then librdkafka's answer: no record may arrive in between. */
static void on_revoke(struct rcpt_kafka *kafka, const rd_kafka_topic_partition_list_t *list)
{
    bool lost = rd_kafka_assignment_lost(kafka->handle) != 0;
    rcpt_log_info("kafka", "group %s: %d partitions revoked%s", kafka->settings.group, list->cnt,
                  lost ? ", lost: others may own them already" : "");
    report_revoked(kafka, list, lost);
    rd_kafka_topic_partition_list_t *assigned = ours_of(kafka, list, false);
    withdraw(kafka, list);
    remove_listed(kafka, assigned);
    answer_unassign(kafka, assigned);
    rd_kafka_topic_partition_list_destroy(assigned);
    if (kafka->held == NULL)
        return;
    report_revoked(kafka, kafka->held, false); /* owners forget all that is held with a revoke */
    announce_held(kafka);
}

void rcpt_kafka_on_rebalance(struct rcpt_kafka *kafka, rd_kafka_event_t *event)
{
    const rd_kafka_topic_partition_list_t *list = rd_kafka_event_topic_partition_list(event);
    rd_kafka_resp_err_t code = rd_kafka_event_error(event);
    if (code == RD_KAFKA_RESP_ERR__ASSIGN_PARTITIONS) {
        on_assign(kafka, list);
    } else if (code == RD_KAFKA_RESP_ERR__REVOKE_PARTITIONS) {
        on_revoke(kafka, list);
    } else {
        rcpt_log_error("kafka", "group %s: rebalance failed: %s", kafka->settings.group,
                       rd_kafka_err2str(code));
        give_up_all(kafka);
        assign_all(kafka, NULL);
    }
}

/* For closing: a held assignment that is never answered would block leaving the group. */
void rcpt_kafka_withdraw_held(struct rcpt_kafka *kafka)
{
    if (kafka->held == NULL)
        return;
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_copy(kafka->held);
    report_revoked(kafka, list, false);
    withdraw(kafka, list);
    rd_kafka_topic_partition_list_destroy(list);
}

/* A forgotten offset would silently become Kafka's committed one. */
static void check_answer(const struct rcpt_kafka *kafka,
                         const struct rcpt_kafka_partition *partitions, size_t count)
{
    RCPT_ASSERT(kafka->held != NULL);
    RCPT_ASSERT((size_t)kafka->held->cnt == count);
    for (size_t i = 0; i < count; i++) {
        RCPT_ASSERT(partitions[i].offset >= 0);
        RCPT_ASSERT(rd_kafka_topic_partition_list_find(kafka->held, partitions[i].topic,
                                                       partitions[i].partition) != NULL);
        RCPT_ASSERT(rcpt_kafka_find(kafka, partitions[i].topic, partitions[i].partition) == NULL);
    }
}

/* Partitions are bound before the answer, so that their first record lands in their own queue. */
void rcpt_kafka_assign(struct rcpt_kafka *kafka, const struct rcpt_kafka_partition *partitions,
                       void *const *tags, size_t count)
{
    check_answer(kafka, partitions, count);
    for (size_t i = 0; i < count; i++) {
        rd_kafka_topic_partition_list_set_offset(kafka->held, partitions[i].topic,
                                                 partitions[i].partition, partitions[i].offset);
        rcpt_kafka_partition_add(kafka, &partitions[i], tags[i]);
    }
    answer_assign(kafka, kafka->held);
    release_held(kafka);
    rcpt_kafka_again(kafka);
}

/* ---- moving ---- */

/* Asked for inside the owner's callbacks, done by the next turn: after the control events, so that
 * no answer crosses a rebalance that is on its way. */
static void move(struct rcpt_kafka *kafka, struct partition *partition, int64_t offset)
{
    rcpt_kafka_set_partition(partition, PARTITION_MOVING);
    partition->next = offset;
    partition->end = 0;
    partition->oversized.searching = false;
    partition->epoch = ++kafka->epochs;
    kafka->moves_pending = true;
    rcpt_kafka_partition_fine(kafka, partition);
    rcpt_kafka_again(kafka);
}

void rcpt_kafka_seek_now(struct rcpt_kafka *kafka, struct partition *partition, int64_t offset)
{
    rd_kafka_topic_partition_list_t *list = rd_kafka_topic_partition_list_new(1);
    rd_kafka_topic_partition_list_add(list, partition->topic, partition->partition)->offset =
        offset;
    /* Time-out 0: records fetched before are void at once, and the loop does not wait. */
    check(kafka, "seek", rd_kafka_seek_partitions(kafka->handle, list, 0));
    rd_kafka_topic_partition_list_destroy(list);
    rcpt_kafka_set_partition(partition, PARTITION_ACTIVE);
    partition->next = offset;
    partition->end = 0;
    partition->oversized.searching = false;
    rcpt_kafka_again(kafka);
}

void rcpt_kafka_seek(struct rcpt_kafka *kafka, const char *topic, int32_t number, int64_t offset)
{
    RCPT_ASSERT(offset >= 0);
    struct partition *partition = rcpt_kafka_find(kafka, topic, number);
    if (partition == NULL)
        return;
    /* A partition that ran out of its log does not listen to seek. */
    if (partition->state == PARTITION_OUT_OF_RANGE || partition->state == PARTITION_MOVING)
        move(kafka, partition, offset);
    else
        rcpt_kafka_seek_now(kafka, partition, offset);
}

/* Slower than a seek, and certain: librdkafka forgets everything about the partition. */
void rcpt_kafka_reassign(struct rcpt_kafka *kafka, const char *topic, int32_t number,
                         int64_t offset)
{
    RCPT_ASSERT(offset >= 0);
    struct partition *partition = rcpt_kafka_find(kafka, topic, number);
    if (partition != NULL)
        move(kafka, partition, offset);
}

/* Waiting events in the queue belong to the old position. Later an error among them would not be
 * recognised as such. */
static void drain(struct partition *partition)
{
    rd_kafka_event_t *event;
    while ((event = rd_kafka_queue_poll(partition->queue, 0)) != NULL)
        rd_kafka_event_destroy(event);
}

/* The caller destroys the list. */
static rd_kafka_topic_partition_list_t *positions(struct rcpt_kafka *kafka, bool moving_only)
{
    rd_kafka_topic_partition_list_t *list =
        rd_kafka_topic_partition_list_new((int)kafka->partition_count);
    for (size_t i = 0; i < kafka->partition_count; i++) {
        struct partition *partition = kafka->partitions[i];
        if (moving_only && partition->state != PARTITION_MOVING)
            continue;
        rd_kafka_topic_partition_list_add(list, partition->topic, partition->partition)->offset =
            partition->next;
    }
    return list;
}

/* An eager assignment makes all partitions again, so all queues are bound again. */
static void prepare_moves(struct rcpt_kafka *kafka, bool all)
{
    for (size_t i = 0; i < kafka->partition_count; i++) {
        struct partition *partition = kafka->partitions[i];
        if (partition->state == PARTITION_MOVING)
            drain(partition);
        if (all || partition->state == PARTITION_MOVING)
            rcpt_kafka_bind_queue(kafka, partition);
        if (partition->state == PARTITION_MOVING)
            rcpt_kafka_set_partition(partition, PARTITION_ACTIVE);
    }
}

/* Eager groups know only whole assignments, so the other partitions go on behind the last record
 * handed out. */
void rcpt_kafka_apply_moves(struct rcpt_kafka *kafka)
{
    if (!kafka->moves_pending || kafka->held != NULL)
        return;
    kafka->moves_pending = false;
    if (kafka->health.fatal)
        return;
    bool cooperative = rcpt_kafka_is_cooperative(kafka);
    rd_kafka_topic_partition_list_t *list = positions(kafka, cooperative);
    if (list->cnt > 0) {
        if (cooperative)
            check(kafka, "incremental unassign",
                  rd_kafka_incremental_unassign(kafka->handle, list));
        prepare_moves(kafka, !cooperative);
        answer_assign(kafka, list);
    }
    rd_kafka_topic_partition_list_destroy(list);
}
