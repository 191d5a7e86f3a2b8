/* The intake's memories between requests, of fixed size. Aliases are a hash table with a list by
 * use: the least recently used is displaced. Keys of signed requests are a hash table over a ring:
 * the oldest is displaced. Rates are token buckets. Pure; called by src/intake. */
#include "receiptd/gateways/memory.h"

#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"
#include "receiptd/core/hash.h"

#define NONE       UINT32_MAX
#define BURST_S    2
#define SCOPE_SEED 0x9e3779b97f4a7c15ull

/* ---- aliases ---- */

struct alias {
    uint64_t hash;
    uint32_t scope;
    uint32_t next;         /* of the same bucket */
    uint32_t newer, older; /* by the last use */
    uint16_t id_size, message_size;
    uint8_t part, parts;
    char *text; /* gateway id, then message id and a NUL */
};

struct rcpt_alias_cache {
    struct alias *aliases;
    uint32_t *buckets;
    uint32_t bucket_mask, capacity, count;
    uint32_t newest, oldest;
};

/* All entries are allocated at the start: indices of 32 bits serve as pointers. */
struct rcpt_alias_cache *rcpt_alias_cache_new(size_t max_entries)
{
    struct rcpt_alias_cache *cache = rcpt_calloc(1, sizeof(*cache));
    uint32_t buckets = 64;
    RCPT_ASSERT(max_entries > 0 && max_entries < NONE / 4);
    while (buckets < max_entries)
        buckets *= 2;
    cache->capacity = (uint32_t)max_entries;
    cache->aliases = rcpt_calloc(max_entries, sizeof(*cache->aliases));
    cache->buckets = rcpt_malloc(buckets * sizeof(*cache->buckets));
    memset(cache->buckets, 0xff, buckets * sizeof(*cache->buckets));
    cache->bucket_mask = buckets - 1;
    cache->newest = cache->oldest = NONE;
    return cache;
}

void rcpt_alias_cache_free(struct rcpt_alias_cache *cache)
{
    if (cache == NULL)
        return;
    for (uint32_t i = 0; i < cache->count; i++)
        free(cache->aliases[i].text);
    free(cache->aliases);
    free(cache->buckets);
    free(cache);
}

/* The scope is part of the seed: equal ids of two accounts fall into different buckets. */
static uint64_t hash_alias(uint32_t scope, const char *id, size_t size)
{
    return rcpt_hash_text_extended(id, size, SCOPE_SEED + scope);
}

/* The link that points to the entry, or the end of its bucket: so it can be unlinked. */
static uint32_t *find(struct rcpt_alias_cache *cache, uint64_t hash, uint32_t scope, const char *id,
                      size_t size)
{
    uint32_t *link = &cache->buckets[hash & cache->bucket_mask];
    for (; *link != NONE; link = &cache->aliases[*link].next) {
        const struct alias *alias = &cache->aliases[*link];
        if (alias->hash == hash && alias->scope == scope && alias->id_size == size &&
            memcmp(alias->text, id, size) == 0)
            break;
    }
    return link;
}

/* Takes it out of the list by use. */
static void unlink_use(struct rcpt_alias_cache *cache, const struct alias *alias)
{
    if (alias->newer != NONE)
        cache->aliases[alias->newer].older = alias->older;
    else
        cache->newest = alias->older;
    if (alias->older != NONE)
        cache->aliases[alias->older].newer = alias->newer;
    else
        cache->oldest = alias->newer;
}

/* To the head of the list by use. */
static void use_now(struct rcpt_alias_cache *cache, uint32_t index)
{
    struct alias *alias = &cache->aliases[index];
    alias->newer = NONE;
    alias->older = cache->newest;
    if (cache->newest != NONE)
        cache->aliases[cache->newest].newer = index;
    else
        cache->oldest = index;
    cache->newest = index;
}

bool rcpt_alias_cache_get(struct rcpt_alias_cache *cache, uint32_t scope, const char *gateway_id,
                          size_t size, struct rcpt_alias *found)
{
    uint32_t index = *find(cache, hash_alias(scope, gateway_id, size), scope, gateway_id, size);
    if (index == NONE)
        return false;
    struct alias *alias = &cache->aliases[index];
    unlink_use(cache, alias);
    use_now(cache, index);
    *found = (struct rcpt_alias){alias->text + alias->id_size, alias->message_size, alias->part,
                                 alias->parts};
    return true;
}

/* A fresh entry, or that of the least recently used one. */
static uint32_t take_place(struct rcpt_alias_cache *cache)
{
    if (cache->count < cache->capacity)
        return cache->count++;
    uint32_t index = cache->oldest;
    struct alias *alias = &cache->aliases[index];
    uint32_t *link = find(cache, alias->hash, alias->scope, alias->text, alias->id_size);
    RCPT_ASSERT(*link == index);
    *link = alias->next;
    unlink_use(cache, alias);
    free(alias->text);
    return index;
}

/* A known id gets the new text. Ids that are too long for 16 bits are not remembered. */
void rcpt_alias_cache_put(struct rcpt_alias_cache *cache, uint32_t scope, const char *gateway_id,
                          size_t size, const struct rcpt_alias *target)
{
    size_t message_id_size = target->message_id_size;
    if (size > UINT16_MAX || message_id_size > UINT16_MAX)
        return;
    uint64_t hash = hash_alias(scope, gateway_id, size);
    char *text = rcpt_malloc(size + message_id_size + 1);
    memcpy(text, gateway_id, size);
    memcpy(text + size, target->message_id, message_id_size);
    text[size + message_id_size] = '\0';
    uint32_t index = *find(cache, hash, scope, gateway_id, size);
    if (index != NONE) {
        unlink_use(cache, &cache->aliases[index]);
        free(cache->aliases[index].text);
    } else {
        index = take_place(cache);
        uint32_t *bucket = &cache->buckets[hash & cache->bucket_mask];
        cache->aliases[index].next = *bucket;
        *bucket = index;
    }
    struct alias *alias = &cache->aliases[index];
    alias->hash = hash;
    alias->scope = scope;
    alias->id_size = (uint16_t)size;
    alias->message_size = (uint16_t)message_id_size;
    alias->part = target->part;
    alias->parts = target->parts;
    alias->text = text;
    use_now(cache, index);
}

/* ---- keys ---- */

struct seen {
    struct rcpt_replay_key key;
    int64_t until_ms;
    uint32_t next;
};

struct rcpt_replay_memory {
    uint64_t seed;
    struct seen *seen; /* a ring, in the order of remembering */
    uint32_t *buckets;
    uint32_t bucket_mask, capacity, count, place;
};

/* The seed is random: colliding keys cannot be made from outside. */
struct rcpt_replay_memory *rcpt_replay_memory_new(size_t max_keys, uint64_t seed)
{
    struct rcpt_replay_memory *memory = rcpt_calloc(1, sizeof(*memory));
    uint32_t buckets = 64;
    RCPT_ASSERT(max_keys > 0 && max_keys < NONE / 4);
    while (buckets < max_keys)
        buckets *= 2;
    memory->seed = seed;
    memory->capacity = (uint32_t)max_keys;
    memory->seen = rcpt_calloc(max_keys, sizeof(*memory->seen));
    memory->buckets = rcpt_malloc(buckets * sizeof(*memory->buckets));
    memset(memory->buckets, 0xff, buckets * sizeof(*memory->buckets));
    memory->bucket_mask = buckets - 1;
    return memory;
}

void rcpt_replay_memory_free(struct rcpt_replay_memory *memory)
{
    if (memory == NULL)
        return;
    free(memory->seen);
    free(memory->buckets);
    free(memory);
}

/* 128 bits, so that two requests are never taken for each other by chance. */
struct rcpt_replay_key rcpt_replay_key(const struct rcpt_replay_memory *memory, uint32_t scope,
                                       const char *key, size_t size)
{
    uint64_t seed = memory->seed + scope * SCOPE_SEED;
    return (struct rcpt_replay_key){.high = rcpt_hash_text_extended(key, size, seed),
                                    .low = rcpt_hash_text_extended(key, size, ~seed)};
}

/* As find() above. */
static uint32_t *find_seen(const struct rcpt_replay_memory *memory, struct rcpt_replay_key key)
{
    uint32_t *link = &memory->buckets[key.low & memory->bucket_mask];
    while (*link != NONE &&
           (memory->seen[*link].key.low != key.low || memory->seen[*link].key.high != key.high))
        link = &memory->seen[*link].next;
    return link;
}

/* An expired key stays in its place and is ignored. */
bool rcpt_replay_is_known(const struct rcpt_replay_memory *memory, struct rcpt_replay_key key,
                          int64_t now_ms)
{
    uint32_t index = *find_seen(memory, key);
    return index != NONE && memory->seen[index].until_ms > now_ms;
}

/* The ring's next place; the key that was there, the oldest, leaves its bucket first. */
void rcpt_replay_remember(struct rcpt_replay_memory *memory, struct rcpt_replay_key key,
                          int64_t until_ms)
{
    uint32_t index = *find_seen(memory, key);
    if (index != NONE) {
        memory->seen[index].until_ms = until_ms;
        return;
    }
    index = memory->place;
    memory->place = (memory->place + 1) % memory->capacity;
    if (memory->count < memory->capacity) {
        memory->count++;
    } else {
        uint32_t *link = find_seen(memory, memory->seen[index].key);
        RCPT_ASSERT(*link == index);
        *link = memory->seen[index].next;
    }
    uint32_t *bucket = &memory->buckets[key.low & memory->bucket_mask];
    memory->seen[index] = (struct seen){.key = key, .until_ms = until_ms, .next = *bucket};
    *bucket = index;
}

/* ---- rates ---- */

/* seen_ms 0 marks a rate that was never used, hence the 1. */
bool rcpt_rate_admit(struct rcpt_rate *rate, unsigned per_second, int64_t now_ms, unsigned *wait_s)
{
    double most = (double)per_second * BURST_S;
    if (per_second == 0)
        return true;
    if (rate->seen_ms == 0)
        rate->tokens = most;
    else
        rate->tokens += (double)per_second * (double)(now_ms - rate->seen_ms) / 1000;
    if (rate->tokens > most)
        rate->tokens = most;
    rate->seen_ms = now_ms > 0 ? now_ms : 1;
    if (rate->tokens < 1) {
        *wait_s = (unsigned)((1 - rate->tokens) / per_second) + 1;
        return false;
    }
    rate->tokens -= 1;
    return true;
}
