/* Networks as sorted ranges that do not meet, so that one address is found in a few comparisons
 * however many networks there are. Built by src/config from a file, asked by src/gateways. */
#include "receiptd/base/network_set.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/text.h"

struct range {
    struct rcpt_address first, last;
};

struct rcpt_network_set {
    struct range *ranges;
    size_t count, capacity;
};

static int compare(const struct rcpt_address *left, const struct rcpt_address *right)
{
    return memcmp(left->bytes, right->bytes, sizeof(left->bytes));
}

static int compare_ranges(const void *left, const void *right)
{
    return compare(&((const struct range *)left)->first, &((const struct range *)right)->first);
}

static void add(struct rcpt_network_set *set, const struct rcpt_network *network)
{
    if (set->count == set->capacity) {
        RCPT_GROW(set->ranges, set->capacity, 64);
    }
    struct range *range = &set->ranges[set->count++];
    range->first = range->last = network->address;
    for (unsigned bit = network->bits; bit < 8 * sizeof(range->last.bytes); bit++) {
        range->first.bytes[bit / 8] &= (uint8_t) ~(0x80u >> bit % 8);
        range->last.bytes[bit / 8] |= (uint8_t)(0x80u >> bit % 8);
    }
}

/* Ranges that overlap become one. */
static void merge(struct rcpt_network_set *set)
{
    size_t kept = 0;
    if (set->count == 0)
        return;
    qsort(set->ranges, set->count, sizeof(*set->ranges), compare_ranges);
    for (size_t index = 1; index < set->count; index++) {
        struct range *before = &set->ranges[kept], *range = &set->ranges[index];
        if (compare(&range->first, &before->last) > 0)
            set->ranges[++kept] = *range;
        else if (compare(&range->last, &before->last) > 0)
            before->last = range->last;
    }
    set->count = kept + 1;
}

/* One line without its comment and the blanks around it. False: it is something else. */
static bool take_line(struct rcpt_network_set *set, const char *line, size_t size,
                      struct rcpt_network_fault *fault)
{
    const char *comment = memchr(line, '#', size);
    struct rcpt_network network;
    if (comment != NULL)
        size = (size_t)(comment - line);
    for (; size > 0 && isspace((unsigned char)*line); size--)
        line++;
    while (size > 0 && isspace((unsigned char)line[size - 1]))
        size--;
    if (size == 0)
        return true;
    snprintf(fault->value, sizeof(fault->value), "%.*s", (int)size, line);
    if (size >= sizeof(fault->value) || !rcpt_network_parse(fault->value, &network))
        return false;
    add(set, &network);
    return true;
}

struct rcpt_network_set *rcpt_network_set_parse(const char *text, struct rcpt_network_fault *fault)
{
    struct rcpt_network_set *set = rcpt_calloc(1, sizeof(*set));
    for (fault->line = 1; *text != '\0'; fault->line++) {
        size_t size = strcspn(text, "\n");
        if (!take_line(set, text, size, fault)) {
            rcpt_network_set_free(set);
            return NULL;
        }
        text += size + (text[size] == '\n');
    }
    merge(set);
    return set;
}

void rcpt_network_set_free(struct rcpt_network_set *set)
{
    if (set == NULL)
        return;
    free(set->ranges);
    free(set);
}

size_t rcpt_network_set_count(const struct rcpt_network_set *set)
{
    return set->count;
}

/* The last range that begins at the address or before it is the only one that can have it. */
bool rcpt_network_set_has(const struct rcpt_network_set *set, const struct rcpt_address *address)
{
    size_t low = 0, high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare(&set->ranges[middle].first, address) <= 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && compare(address, &set->ranges[low - 1].last) <= 0;
}
