/* Hashes that have to agree with others: the lane hash with PostgreSQL's, the anchor's with those
 * of earlier versions. Pure. */
#ifndef RECEIPTD_CORE_HASH_H
#define RECEIPTD_CORE_HASH_H

#include <stddef.h>
#include <stdint.h>

/* PostgreSQL's hashtextextended(text, seed) for a deterministic collation (Bob Jenkins' lookup3, 64
 * bits of it; the algorithm is in PostgreSQL's src/common/hashfn.c, hash_bytes_extended). lane =
 * hash & (lanes - 1). */
uint64_t rcpt_hash_text_extended(const void *bytes, size_t size, uint64_t seed);

/* Lane of a record or reject without a message id: a function of the position alone, the same on
 * every instance. */
uint64_t rcpt_hash_position(const char *topic, int32_t partition, int64_t offset, uint32_t index);

/* CRC-32 (IEEE 802.3, as in zlib) over key, the first 4 KiB of the value, and both sizes: tells one
 * record from another at the same offset of a topic that was made again. */
uint32_t rcpt_hash_record(const void *key, size_t key_size, const void *value, size_t value_size);

#endif
