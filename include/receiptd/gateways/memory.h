/* The intake's memories between requests, each bounded: aliases that were looked up, and keys of
 * signed requests that were seen.
 *
 * Pure: no I/O and no clock. `scope` is the number of an account: equal gateway ids and keys of
 * different accounts have nothing to do with each other.
 */
#ifndef RECEIPTD_GATEWAYS_MEMORY_H
#define RECEIPTD_GATEWAYS_MEMORY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- aliases: gateway id → message id; the least recently used is forgotten ---- */

struct rcpt_alias_cache;

struct rcpt_alias {
    const char *message_id;
    size_t message_id_size;
    uint8_t part, parts; /* of the message: which the id is of, and how many; 0: it is no part */
};

struct rcpt_alias_cache *rcpt_alias_cache_new(size_t max_entries);
void rcpt_alias_cache_free(struct rcpt_alias_cache *cache);
/* False: the alias is not known here. A result is valid until the next put. */
bool rcpt_alias_cache_get(struct rcpt_alias_cache *cache, uint32_t scope, const char *gateway_id,
                          size_t size, struct rcpt_alias *found);
void rcpt_alias_cache_put(struct rcpt_alias_cache *cache, uint32_t scope, const char *gateway_id,
                          size_t size, const struct rcpt_alias *target);

/* ---- keys of requests, each for its time; the oldest is forgotten at the limit ---- */

struct rcpt_replay_memory;

struct rcpt_replay_key { /* 128 bits of a seeded hash: no client can aim at a collision */
    uint64_t high, low;
};

struct rcpt_replay_memory *rcpt_replay_memory_new(size_t max_keys, uint64_t seed);
void rcpt_replay_memory_free(struct rcpt_replay_memory *memory);
struct rcpt_replay_key rcpt_replay_key(const struct rcpt_replay_memory *memory, uint32_t scope,
                                       const char *key, size_t size);
bool rcpt_replay_is_known(const struct rcpt_replay_memory *memory, struct rcpt_replay_key key,
                          int64_t now_ms);
void rcpt_replay_remember(struct rcpt_replay_memory *memory, struct rcpt_replay_key key,
                          int64_t until_ms);

/* ---- a rate: so many a second, and a burst of two seconds' worth ---- */

struct rcpt_rate {
    double tokens;
    int64_t seen_ms;
};

/* False: the request is above the rate; `wait_s` tells when to come again. `per_second` 0: always
 * true. */
bool rcpt_rate_admit(struct rcpt_rate *rate, unsigned per_second, int64_t now_ms, unsigned *wait_s);

#endif
