/* Events of all requests, gathered into one Kafka record per target partition.
 *
 * Pure: no I/O and no clock. While its partition is idle, an event leaves at once. Events that
 * arrive while the last record is on its way, or within linger_ms of a record that several requests
 * shared, form the next record. It holds at most max_events and max_bytes, and waits at most
 * linger_ms. A request holds a ticket, which settles when the last record with one of its events
 * has settled. The value of a record is a JSON array as the core reads it.
 */
#ifndef RECEIPTD_GATEWAYS_AGGREGATE_H
#define RECEIPTD_GATEWAYS_AGGREGATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "receiptd/base/buffer.h"

#define RCPT_AGGREGATE_MAX_NAMES 8u

/* Embedded in the object that waits. It begins held once, by the caller that fills it. */
struct rcpt_ticket {
    uint32_t open;
    bool failed; /* something of it was not acknowledged */
    void (*on_settled)(struct rcpt_ticket *ticket);
};

void rcpt_ticket_begin(struct rcpt_ticket *ticket, void (*on_settled)(struct rcpt_ticket *ticket));
void rcpt_ticket_hold(struct rcpt_ticket *ticket);
/* The last release calls on_settled. */
void rcpt_ticket_release(struct rcpt_ticket *ticket, bool good);

struct rcpt_aggregate_settings {
    uint32_t max_events;
    size_t max_bytes;
    int64_t linger_ms; /* a record that waits longer goes although others are on their way … */
    uint32_t max_in_flight; /* … but not more than so many of one partition */
};

/* The origin of events, for the record's headers. */
struct rcpt_aggregate_origin {
    const char *name; /* of the account; must outlive the record; compared by address */
    int64_t received_us;
    const char *traceparent; /* "" or 55 bytes and a NUL; copied */
    const char *tracestate;  /* of it; NULL: none; copied */
};

struct rcpt_aggregate_batch {
    uint32_t partition;
    uint32_t events;
    struct rcpt_buffer json; /* a caller that takes its bytes sets them to NULL */
    int64_t received_us;     /* of its first event */
    int64_t opened_ms, sent_ms;
    const char *names[RCPT_AGGREGATE_MAX_NAMES]; /* distinct, in order of appearance */
    uint32_t name_count;                         /* further names are left out */
    char traceparent[56]; /* of the first event in a sampled trace, or in any; "": of none */
    char *tracestate;     /* of it; NULL: none */
    /* private */
    struct rcpt_aggregate_batch *next, *previous;
    struct rcpt_ticket **tickets;
    uint32_t ticket_count, ticket_capacity;
};

struct rcpt_aggregate;

struct rcpt_aggregate *rcpt_aggregate_new(const struct rcpt_aggregate_settings *settings);
/* All batches must have settled. */
void rcpt_aggregate_free(struct rcpt_aggregate *aggregate);

/* Open batches keep their partition. */
void rcpt_aggregate_set_partitions(struct rcpt_aggregate *aggregate, uint32_t count);
uint32_t rcpt_aggregate_partitions(const struct rcpt_aggregate *aggregate);

/* One event as JSON text, copied. The partition is hash modulo their number, which must not be 0.
 * The ticket is held once for each record. */
void rcpt_aggregate_add(struct rcpt_aggregate *aggregate, uint64_t hash, const char *json,
                        size_t size, struct rcpt_ticket *ticket,
                        const struct rcpt_aggregate_origin *origin, int64_t now_ms);

/* The next batch to send now, complete and counted as on its way; NULL: none. */
struct rcpt_aggregate_batch *rcpt_aggregate_next(struct rcpt_aggregate *aggregate, int64_t now_ms);
/* Call when the batch has arrived or failed: releases its tickets, and frees it. */
void rcpt_aggregate_settle(struct rcpt_aggregate *aggregate, struct rcpt_aggregate_batch *batch,
                           bool good);

size_t rcpt_aggregate_bytes(const struct rcpt_aggregate *aggregate); /* open and on their way */
/* Age of the oldest batch that is on its way, in ms; 0: none is. */
int64_t rcpt_aggregate_oldest_ms(const struct rcpt_aggregate *aggregate, int64_t now_ms);
bool rcpt_aggregate_is_empty(const struct rcpt_aggregate *aggregate);
/* Whether an event waits that only time will release. */
bool rcpt_aggregate_lingers(const struct rcpt_aggregate *aggregate);

#endif
