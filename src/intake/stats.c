#include "receiptd/intake/stats.h"

#include <string.h>

const double rcpt_intake_second_bounds[RCPT_INTAKE_BUCKETS] = {
    0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10};
const double rcpt_intake_event_bounds[RCPT_INTAKE_BUCKETS] = {
    1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 20000};

void rcpt_intake_observe(struct rcpt_intake_histogram *histogram, const double *bounds,
                         double value)
{
    unsigned bucket = 0;
    while (bucket < RCPT_INTAKE_BUCKETS && value > bounds[bucket])
        bucket++;
    histogram->buckets[bucket]++;
    histogram->sum += value;
    histogram->count++;
}

void rcpt_intake_count_code(struct rcpt_intake_stats *stats, unsigned code)
{
    unsigned place = 0;
    while (place < RCPT_INTAKE_CODES - 1 && stats->codes[place].code != code &&
           stats->codes[place].code != 0)
        place++;
    stats->codes[place].code = code;
    stats->codes[place].count++;
}

void rcpt_intake_note_unmapped(struct rcpt_intake_stats *stats, struct rcpt_text status)
{
    size_t size =
        status.size < RCPT_INTAKE_SAMPLE_SIZE - 1 ? status.size : RCPT_INTAKE_SAMPLE_SIZE - 1;
    for (size_t i = 0; i < size; i++) {
        char byte = status.at[i];
        stats->unmapped_sample[i] = byte >= ' ' && byte <= '~' ? byte : '?';
    }
    stats->unmapped_sample[size] = '\0';
}
