/* The intake's counts per account: plain numbers for metrics and status page. */
#ifndef RECEIPTD_GATEWAYS_STATS_H
#define RECEIPTD_GATEWAYS_STATS_H

#include "receiptd/gateways/adapter.h"

#define RCPT_GATEWAY_BUCKETS     14u
#define RCPT_GATEWAY_CODES       12u
#define RCPT_GATEWAY_SAMPLE_SIZE 33u

struct rcpt_gateway_histogram {                 /* of seconds */
    uint64_t buckets[RCPT_GATEWAY_BUCKETS + 1]; /* the last one has no upper bound */
    double sum;
    uint64_t count;
};

struct rcpt_gateway_code {
    unsigned code; /* 0: free */
    uint64_t count;
};

struct rcpt_gateway_stats {
    const char *account, *gateway;
    uint64_t requests;
    uint64_t events, aliased, unrouted; /* unrouted: went out under the gateway's id */
    uint64_t verdicts[RCPT_GATEWAY_VERDICT__COUNT];
    uint64_t drops[RCPT_GATEWAY_DROP__COUNT];
    uint64_t failed;      /* requests that Kafka did not acknowledge */
    uint64_t throttled;   /* requests above the account's rate */
    uint64_t turned_away; /* requests while Kafka was away or memory full */
    struct rcpt_gateway_code codes[RCPT_GATEWAY_CODES];
    char unmapped_sample[RCPT_GATEWAY_SAMPLE_SIZE]; /* the last status that no table knew */
    struct rcpt_gateway_histogram ack_seconds;      /* request complete to answer */
};

struct rcpt_intake_totals {
    uint64_t records; /* that the producer took */
    uint64_t alias_asked, alias_found, alias_failed;
    size_t waiting_bytes, waiting_requests; /* gauges */
};

void rcpt_gateway_observe(struct rcpt_gateway_histogram *histogram, double seconds);
void rcpt_gateway_count_code(struct rcpt_gateway_stats *stats, unsigned code);
/* Keeps the gateway's word, or "other" where it could be more than a word: anything but letters,
 * digits, '_', '.' and '-', more than 32 bytes, more than six digits. */
void rcpt_gateway_note_unmapped(struct rcpt_gateway_stats *stats, struct rcpt_text status);

#endif
