/* The intake's counts per account: plain numbers, read by the metrics and the status page. Pure;
 * called by src/intake. */
#include "receiptd/gateways/stats.h"

#include <string.h>

#define MAX_DIGITS 6u /* more may be a telephone's */

static const double second_bounds[RCPT_GATEWAY_BUCKETS] = {
    0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10};

void rcpt_gateway_observe(struct rcpt_gateway_histogram *histogram, double seconds)
{
    unsigned bucket = 0;
    while (bucket < RCPT_GATEWAY_BUCKETS && seconds > second_bounds[bucket])
        bucket++;
    histogram->buckets[bucket]++;
    histogram->sum += seconds;
    histogram->count++;
}

void rcpt_gateway_count_code(struct rcpt_gateway_stats *stats, unsigned code)
{
    unsigned place = 0;
    while (place < RCPT_GATEWAY_CODES - 1 && stats->codes[place].code != code &&
           stats->codes[place].code != 0)
        place++;
    stats->codes[place].code = code;
    stats->codes[place].count++;
}

/* Labels of figures hold words only: no telephone number, address or name. */
static bool is_word(struct rcpt_text status)
{
    size_t digits = 0;
    if (status.size == 0 || status.size >= RCPT_GATEWAY_SAMPLE_SIZE)
        return false;
    for (size_t i = 0; i < status.size; i++) {
        unsigned char byte = (unsigned char)status.at[i];
        bool is_digit = byte >= '0' && byte <= '9';
        bool is_letter = (byte | 0x20) >= 'a' && (byte | 0x20) <= 'z';
        digits += is_digit;
        if (!is_digit && !is_letter && byte != '_' && byte != '.' && byte != '-')
            return false;
    }
    return digits <= MAX_DIGITS;
}

void rcpt_gateway_note_unmapped(struct rcpt_gateway_stats *stats, struct rcpt_text status)
{
    struct rcpt_text word = is_word(status) ? status : RCPT_TEXT("other");
    memcpy(stats->unmapped_sample, word.at, word.size);
    stats->unmapped_sample[word.size] = '\0';
}
