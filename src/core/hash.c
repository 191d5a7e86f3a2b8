/* Three hashes: of a message id, for its lane (the same as PostgreSQL's hashtextextended); of a
 * position, for records without a message id; and the CRC that recognises a record. Pure. Called by
 * the decoder, the ladder, the intake and the folds.
 */
#include "receiptd/core/hash.h"

#include <string.h>
#include <zlib.h>

/* PostgreSQL reads words in the order of its machine; ours and the server's are taken to be
 * little-endian. */
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "the lane hash needs little-endian words");

#define BLOCK_BYTES       12u
#define CRC_VALUE_BYTES   4096u
#define LOOKUP3_START     0x9e3779b9u /* the golden ratio, as PostgreSQL starts it … */
#define POSTGRESQL_ADDEND 3923095u    /* … with a constant of its own */

struct lookup3 {
    uint32_t a, b, c;
};

static inline uint32_t rotate(uint32_t word, unsigned bits)
{
    return (word << bits) | (word >> (32 - bits));
}

/* One step of either round of lookup3: subtracts one word from another and folds a rotation in. */
static inline void mix_step(uint32_t *x, uint32_t *y, uint32_t z, unsigned bits)
{
    *x = (*x - *y) ^ rotate(*y, bits);
    *y += z;
}

static inline void finish_step(uint32_t *x, uint32_t y, unsigned bits)
{
    *x = (*x ^ y) - rotate(y, bits);
}

static inline void mix(struct lookup3 *state)
{
    mix_step(&state->a, &state->c, state->b, 4);
    mix_step(&state->b, &state->a, state->c, 6);
    mix_step(&state->c, &state->b, state->a, 8);
    mix_step(&state->a, &state->c, state->b, 16);
    mix_step(&state->b, &state->a, state->c, 19);
    mix_step(&state->c, &state->b, state->a, 4);
}

static inline void finish(struct lookup3 *state)
{
    finish_step(&state->c, state->b, 14);
    finish_step(&state->a, state->c, 11);
    finish_step(&state->b, state->a, 25);
    finish_step(&state->c, state->b, 16);
    finish_step(&state->a, state->c, 4);
    finish_step(&state->b, state->a, 14);
    finish_step(&state->c, state->b, 24);
}

/* hash_bytes_extended() of PostgreSQL's src/common/hashfn.c, for little-endian words. The seed 0
 * skips a round there as well. */
uint64_t rcpt_hash_text_extended(const void *bytes, size_t size, uint64_t seed)
{
    const unsigned char *next = bytes;
    uint32_t start = LOOKUP3_START + (uint32_t)size + POSTGRESQL_ADDEND;
    struct lookup3 state = {start, start, start};
    uint32_t words[3];

    if (seed != 0) {
        state.a += (uint32_t)(seed >> 32);
        state.b += (uint32_t)seed;
        mix(&state);
    }
    for (; size >= BLOCK_BYTES; size -= BLOCK_BYTES, next += BLOCK_BYTES) {
        memcpy(words, next, BLOCK_BYTES);
        state.a += words[0];
        state.b += words[1];
        state.c += words[2];
        mix(&state);
    }
    memset(words, 0, sizeof(words));
    if (size > 0)
        memcpy(words, next, size);
    state.a += words[0];
    state.b += words[1];
    state.c += words[2] << 8; /* the lowest byte of c stands for the length */
    finish(&state);
    return (uint64_t)state.b << 32 | state.c;
}

/* For records and rejects without a message id: spreads them over the lanes, the same way at every
 * delivery. */
uint64_t rcpt_hash_position(const char *topic, int32_t partition, int64_t offset, uint32_t index)
{
    unsigned char position[sizeof(offset) + sizeof(partition) + sizeof(index)];
    memcpy(position, &offset, sizeof(offset));
    memcpy(position + sizeof(offset), &partition, sizeof(partition));
    memcpy(position + sizeof(offset) + sizeof(partition), &index, sizeof(index));
    uint64_t seed = rcpt_hash_text_extended(topic, strlen(topic), 0);
    return rcpt_hash_text_extended(position, sizeof(position), seed);
}

/* Reads at most 4 KiB of the value: the anchor has to tell topics apart, not to prove integrity. */
uint32_t rcpt_hash_record(const void *key, size_t key_size, const void *value, size_t value_size)
{
    uint64_t sizes[2] = {key_size, value_size};
    size_t hashed = value_size < CRC_VALUE_BYTES ? value_size : CRC_VALUE_BYTES;
    uLong crc = crc32(0, NULL, 0);
    if (key_size > 0)
        crc = crc32(crc, key, (uInt)key_size);
    if (hashed > 0)
        crc = crc32(crc, value, (uInt)hashed);
    return (uint32_t)crc32(crc, (const Bytef *)sizes, sizeof(sizes));
}
