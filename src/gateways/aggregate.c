/* Gathers the events of all requests into one record per partition. Pure; called by src/intake,
 * which gives the time and sends what rcpt_aggregate_next() returns.
 *
 * A batch is open (takes events), sealed (full, waits in order), in flight (returned by next, not
 * settled yet), or freed. Each event's request holds its ticket once per batch, so that it is
 * answered when the last of its batches has settled. */
#include "receiptd/gateways/aggregate.h"

#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"

struct partition {
    struct rcpt_aggregate_batch *sealed, *last_sealed; /* full, in order */
    struct rcpt_aggregate_batch *open;                 /* takes the next event */
    uint32_t in_flight;
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
    struct rcpt_aggregate_batch *first_in_flight,
        *last_in_flight; /* in the order of their departure */
    size_t bytes;
};

/* ---- tickets ---- */

/* Held once from the start, so that it cannot settle while events are still being added. */
void rcpt_ticket_begin(struct rcpt_ticket *ticket, void (*on_settled)(struct rcpt_ticket *ticket))
{
    *ticket = (struct rcpt_ticket){.open = 1, .on_settled = on_settled};
}

void rcpt_ticket_hold(struct rcpt_ticket *ticket)
{
    RCPT_ASSERT(ticket->open > 0);
    ticket->open++;
}

/* One failure makes the whole ticket fail; on_settled is called last and may free it. */
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

/* Tickets point into memory of the caller: all batches must have settled. */
void rcpt_aggregate_free(struct rcpt_aggregate *aggregate)
{
    if (aggregate == NULL)
        return;
    RCPT_ASSERT(rcpt_aggregate_is_empty(aggregate));
    free(aggregate->partitions);
    free(aggregate->waiting);
    free(aggregate);
}

/* The number may shrink or grow while batches are open; memory never shrinks, so open ones keep
 * their place. */
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

/* The list is in the order of sending: its head is the oldest. */
int64_t rcpt_aggregate_oldest_ms(const struct rcpt_aggregate *aggregate, int64_t now_ms)
{
    return aggregate->first_in_flight != NULL ? now_ms - aggregate->first_in_flight->sent_ms : 0;
}

bool rcpt_aggregate_is_empty(const struct rcpt_aggregate *aggregate)
{
    return aggregate->waiting_count == 0 && aggregate->first_in_flight == NULL;
}

bool rcpt_aggregate_lingers(const struct rcpt_aggregate *aggregate)
{
    return aggregate->waiting_count > 0;
}

/* ---- filling ---- */

/* The record's time of receipt is that of its first event. */
static struct rcpt_aggregate_batch *open_batch(uint32_t partition, int64_t received_us,
                                               int64_t now_ms)
{
    struct rcpt_aggregate_batch *batch = rcpt_calloc(1, sizeof(*batch));
    batch->partition = partition;
    batch->received_us = received_us;
    batch->opened_ms = now_ms;
    return batch;
}

/* `bytes` counts open, sealed and sent ones alike: it is what the intake's memory pays for. */
static void append(struct rcpt_aggregate *aggregate, struct rcpt_aggregate_batch *batch,
                   const char *bytes, size_t size)
{
    rcpt_buffer_append(&batch->json, bytes, size);
    aggregate->bytes += size;
}

/* Events of one request come one after the other: comparing with the last ticket finds most
 * repetitions. */
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

/* The last digit of the flags is odd (W3C Trace Context). */
static bool is_sampled(const char *traceparent)
{
    return traceparent[0] != '\0' && strchr("13579bdf", traceparent[54]) != NULL;
}

/* A record carries one trace: a sampled one, where there is one. */
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

/* Names are compared by address: they are the accounts' own. */
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

/* The closing bracket makes it a JSON array; fits() has kept its byte free. */
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

/* Needs two more bytes: the comma and the closing bracket. */
static bool fits(const struct rcpt_aggregate *aggregate, const struct rcpt_aggregate_batch *batch,
                 size_t size)
{
    return batch->events < aggregate->settings.max_events &&
           batch->json.size + size + 2 <= aggregate->settings.max_bytes;
}

/* An event that is larger than max_bytes gets a batch of its own. */
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

/* A full batch leaves at once, within the limit of batches in flight. An open one leaves when its
 * partition is idle, or after linger_ms. */
static bool is_due(const struct rcpt_aggregate *aggregate, const struct partition *partition,
                   int64_t now_ms)
{
    const struct rcpt_aggregate_batch *batch =
        partition->sealed != NULL ? partition->sealed : partition->open;
    if (partition->in_flight >= aggregate->settings.max_in_flight)
        return false;
    if (partition->sealed != NULL || now_ms - batch->opened_ms >= aggregate->settings.linger_ms)
        return true;
    /* If the last record held events of several requests, many clients are active: a short wait
     * makes fewer and larger records. A single client that sends one request after another never
     * waits. */
    return partition->in_flight == 0 &&
           (partition->last_requests < 2 ||
            now_ms - partition->last_sent_ms >= aggregate->settings.linger_ms);
}

/* The oldest sealed batch, or the open one, sealed now. */
static struct rcpt_aggregate_batch *take(struct rcpt_aggregate *aggregate,
                                         struct partition *partition)
{
    if (partition->sealed == NULL)
        seal(aggregate, partition);
    struct rcpt_aggregate_batch *batch = partition->sealed;
    partition->sealed = batch->next;
    partition->in_flight++;
    return batch;
}

/* Appends to the list of batches in flight. */
static void note_sent(struct rcpt_aggregate *aggregate, struct rcpt_aggregate_batch *batch,
                      int64_t now_ms)
{
    batch->sent_ms = now_ms;
    batch->next = NULL;
    batch->previous = aggregate->last_in_flight;
    if (aggregate->last_in_flight != NULL)
        aggregate->last_in_flight->next = batch;
    else
        aggregate->first_in_flight = batch;
    aggregate->last_in_flight = batch;
}

/* A partition without open and sealed batches leaves the list of those that wait; the last one
 * takes its place, so the order of the list has no meaning. */
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
        note_sent(aggregate, batch, now_ms);
        return batch;
    }
    return NULL;
}

/* Acknowledgements come in any order. */
static void unlink_in_flight(struct rcpt_aggregate *aggregate, struct rcpt_aggregate_batch *batch)
{
    if (batch->previous != NULL)
        batch->previous->next = batch->next;
    else
        aggregate->first_in_flight = batch->next;
    if (batch->next != NULL)
        batch->next->previous = batch->previous;
    else
        aggregate->last_in_flight = batch->previous;
}

/* Settling tickets may call into the intake, which may add events: the batch is out of all lists by
 * then. */
void rcpt_aggregate_settle(struct rcpt_aggregate *aggregate, struct rcpt_aggregate_batch *batch,
                           bool good)
{
    struct partition *partition = &aggregate->partitions[batch->partition];
    RCPT_ASSERT(partition->in_flight > 0);
    partition->in_flight--;
    aggregate->bytes -= batch->json.size;
    unlink_in_flight(aggregate, batch);
    for (uint32_t i = 0; i < batch->ticket_count; i++)
        rcpt_ticket_release(batch->tickets[i], good);
    free(batch->tickets);
    rcpt_buffer_free(&batch->json);
    free(batch->tracestate);
    free(batch);
}
