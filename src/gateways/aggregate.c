#include "aggregate.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

struct partition {
    struct rcpt_aggregate_batch *sealed, *last_sealed; /* full, in order */
    struct rcpt_aggregate_batch *open;                 /* takes the next event */
    uint32_t flying;
    uint32_t last_requests; /* in the record that left last, at last_sent_ms */
    int64_t last_sent_ms;
    bool listed; /* in `waiting` */
};

struct rcpt_aggregate {
    struct rcpt_aggregate_settings settings;
    struct partition *partitions;
    uint32_t partition_count, partition_capacity;
    uint32_t *waiting; /* partitions that have something to send */
    uint32_t waiting_count;
    struct rcpt_aggregate_batch *flights, *last_flight; /* in the order of their departure */
    size_t bytes;
};

/* ---- tickets ---- */

void rcpt_ticket_begin(struct rcpt_ticket *ticket, void (*on_settled)(struct rcpt_ticket *ticket))
{
    *ticket = (struct rcpt_ticket){.open = 1, .on_settled = on_settled};
}

void rcpt_ticket_hold(struct rcpt_ticket *ticket)
{
    RCPT_ASSERT(ticket->open > 0);
    ticket->open++;
}

void rcpt_ticket_release(struct rcpt_ticket *ticket, bool good)
{
    RCPT_ASSERT(ticket->open > 0);
    ticket->failed = ticket->failed || !good;
    if (--ticket->open == 0)
        ticket->on_settled(ticket);
}

/* ---- the whole ---- */

struct rcpt_aggregate *rcpt_aggregate_new(const struct rcpt_aggregate_settings *settings)
{
    struct rcpt_aggregate *aggregate = rcpt_calloc(1, sizeof(*aggregate));
    aggregate->settings = *settings;
    return aggregate;
}

void rcpt_aggregate_free(struct rcpt_aggregate *aggregate)
{
    if (aggregate == NULL)
        return;
    RCPT_ASSERT(rcpt_aggregate_is_empty(aggregate));
    free(aggregate->partitions);
    free(aggregate->waiting);
    free(aggregate);
}

void rcpt_aggregate_set_partitions(struct rcpt_aggregate *aggregate, uint32_t count)
{
    aggregate->partition_count = count;
    if (count <= aggregate->partition_capacity)
        return;
    aggregate->partitions =
        rcpt_realloc(aggregate->partitions, count * sizeof(*aggregate->partitions));
    memset(&aggregate->partitions[aggregate->partition_capacity], 0,
           (count - aggregate->partition_capacity) * sizeof(*aggregate->partitions));
    aggregate->waiting = rcpt_realloc(aggregate->waiting, count * sizeof(*aggregate->waiting));
    aggregate->partition_capacity = count;
}

uint32_t rcpt_aggregate_partitions(const struct rcpt_aggregate *aggregate)
{
    return aggregate->partition_count;
}

size_t rcpt_aggregate_bytes(const struct rcpt_aggregate *aggregate)
{
    return aggregate->bytes;
}

int64_t rcpt_aggregate_oldest_ms(const struct rcpt_aggregate *aggregate, int64_t now_ms)
{
    return aggregate->flights != NULL ? now_ms - aggregate->flights->sent_ms : 0;
}

bool rcpt_aggregate_is_empty(const struct rcpt_aggregate *aggregate)
{
    return aggregate->waiting_count == 0 && aggregate->flights == NULL;
}

bool rcpt_aggregate_lingers(const struct rcpt_aggregate *aggregate)
{
    return aggregate->waiting_count > 0;
}

/* ---- filling ---- */

static struct rcpt_aggregate_batch *open_batch(uint32_t partition, int64_t received_us,
                                               int64_t now_ms)
{
    struct rcpt_aggregate_batch *batch = rcpt_calloc(1, sizeof(*batch));
    batch->partition = partition;
    batch->received_us = received_us;
    batch->opened_ms = now_ms;
    return batch;
}

static void append(struct rcpt_aggregate *aggregate, struct rcpt_aggregate_batch *batch,
                   const char *bytes, size_t size)
{
    rcpt_buffer_append(&batch->json, bytes, size);
    aggregate->bytes += size;
}

/* Events of one request come one after the other: looking at the last ticket finds most. */
static void note_ticket(struct rcpt_aggregate_batch *batch, struct rcpt_ticket *ticket)
{
    if (batch->ticket_count > 0 && batch->tickets[batch->ticket_count - 1] == ticket)
        return;
    if (batch->ticket_count == batch->ticket_capacity) {
        batch->ticket_capacity = batch->ticket_capacity > 0 ? batch->ticket_capacity * 2 : 8;
        batch->tickets =
            rcpt_realloc(batch->tickets, batch->ticket_capacity * sizeof(struct rcpt_ticket *));
    }
    rcpt_ticket_hold(ticket);
    batch->tickets[batch->ticket_count++] = ticket;
}

/* The last digit of the flags. */
static bool is_sampled(const char *traceparent)
{
    return traceparent[0] != '\0' && strchr("13579bdf", traceparent[54]) != NULL;
}

/* A record can carry one trace: one that is kept, where there is one. */
static void note_trace(struct rcpt_aggregate_batch *batch,
                       const struct rcpt_aggregate_origin *origin)
{
    if (origin->traceparent[0] == '\0' || is_sampled(batch->traceparent) ||
        (batch->traceparent[0] != '\0' && !is_sampled(origin->traceparent)))
        return;
    memcpy(batch->traceparent, origin->traceparent, sizeof(batch->traceparent) - 1);
    free(batch->tracestate);
    batch->tracestate = origin->tracestate != NULL ? rcpt_strdup(origin->tracestate) : NULL;
}

static void note_origin(struct rcpt_aggregate_batch *batch,
                        const struct rcpt_aggregate_origin *origin)
{
    uint32_t known = 0;
    while (known < batch->name_count && batch->names[known] != origin->name)
        known++;
    if (known == batch->name_count && known < RCPT_AGGREGATE_MAX_NAMES)
        batch->names[batch->name_count++] = origin->name;
    note_trace(batch, origin);
}

static void seal(struct rcpt_aggregate *aggregate, struct partition *partition)
{
    struct rcpt_aggregate_batch *batch = partition->open;
    append(aggregate, batch, "]", 1);
    partition->open = NULL;
    if (partition->sealed == NULL)
        partition->sealed = batch;
    else
        partition->last_sealed->next = batch;
    partition->last_sealed = batch;
}

static bool fits(const struct rcpt_aggregate *aggregate, const struct rcpt_aggregate_batch *batch,
                 size_t size)
{
    return batch->events < aggregate->settings.max_events &&
           batch->json.size + size + 2 <= aggregate->settings.max_bytes;
}

void rcpt_aggregate_add(struct rcpt_aggregate *aggregate, uint64_t hash, const char *json,
                        size_t size, struct rcpt_ticket *ticket,
                        const struct rcpt_aggregate_origin *origin, int64_t now_ms)
{
    RCPT_ASSERT(aggregate->partition_count > 0);
    uint32_t number = (uint32_t)(hash % aggregate->partition_count);
    struct partition *partition = &aggregate->partitions[number];
    if (partition->open != NULL && !fits(aggregate, partition->open, size))
        seal(aggregate, partition);
    if (partition->open == NULL)
        partition->open = open_batch(number, origin->received_us, now_ms);
    struct rcpt_aggregate_batch *batch = partition->open;
    append(aggregate, batch, batch->events == 0 ? "[" : ",", 1);
    append(aggregate, batch, json, size);
    batch->events++;
    note_ticket(batch, ticket);
    note_origin(batch, origin);
    if (!partition->listed) {
        partition->listed = true;
        aggregate->waiting[aggregate->waiting_count++] = number;
    }
}

/* ---- sending ---- */

static bool is_due(const struct rcpt_aggregate *aggregate, const struct partition *partition,
                   int64_t now_ms)
{
    const struct rcpt_aggregate_batch *batch =
        partition->sealed != NULL ? partition->sealed : partition->open;
    if (partition->flying >= aggregate->settings.max_flights)
        return false;
    if (partition->sealed != NULL || now_ms - batch->opened_ms >= aggregate->settings.linger_ms)
        return true;
    /* Where the last record took along what several requests brought, there is a crowd: waiting a
     * little makes fewer and larger records. One client that asks again and again never waits. */
    return partition->flying == 0 &&
           (partition->last_requests < 2 ||
            now_ms - partition->last_sent_ms >= aggregate->settings.linger_ms);
}

static struct rcpt_aggregate_batch *take(struct rcpt_aggregate *aggregate,
                                         struct partition *partition)
{
    if (partition->sealed == NULL)
        seal(aggregate, partition);
    struct rcpt_aggregate_batch *batch = partition->sealed;
    partition->sealed = batch->next;
    partition->flying++;
    return batch;
}

static void take_off(struct rcpt_aggregate *aggregate, struct rcpt_aggregate_batch *batch,
                     int64_t now_ms)
{
    batch->sent_ms = now_ms;
    batch->next = NULL;
    batch->previous = aggregate->last_flight;
    if (aggregate->last_flight != NULL)
        aggregate->last_flight->next = batch;
    else
        aggregate->flights = batch;
    aggregate->last_flight = batch;
}

struct rcpt_aggregate_batch *rcpt_aggregate_next(struct rcpt_aggregate *aggregate, int64_t now_ms)
{
    for (uint32_t i = 0; i < aggregate->waiting_count; i++) {
        struct partition *partition = &aggregate->partitions[aggregate->waiting[i]];
        if (!is_due(aggregate, partition, now_ms))
            continue;
        struct rcpt_aggregate_batch *batch = take(aggregate, partition);
        partition->last_requests = batch->ticket_count;
        partition->last_sent_ms = now_ms;
        if (partition->sealed == NULL && partition->open == NULL) {
            partition->listed = false;
            aggregate->waiting[i] = aggregate->waiting[--aggregate->waiting_count];
        }
        take_off(aggregate, batch, now_ms);
        return batch;
    }
    return NULL;
}

static void unlink_flight(struct rcpt_aggregate *aggregate, struct rcpt_aggregate_batch *batch)
{
    if (batch->previous != NULL)
        batch->previous->next = batch->next;
    else
        aggregate->flights = batch->next;
    if (batch->next != NULL)
        batch->next->previous = batch->previous;
    else
        aggregate->last_flight = batch->previous;
}

void rcpt_aggregate_settle(struct rcpt_aggregate *aggregate, struct rcpt_aggregate_batch *batch,
                           bool good)
{
    struct partition *partition = &aggregate->partitions[batch->partition];
    RCPT_ASSERT(partition->flying > 0);
    partition->flying--;
    aggregate->bytes -= batch->json.size;
    unlink_flight(aggregate, batch);
    for (uint32_t i = 0; i < batch->ticket_count; i++)
        rcpt_ticket_release(batch->tickets[i], good);
    free(batch->tickets);
    rcpt_buffer_free(&batch->json);
    free(batch->tracestate);
    free(batch);
}
