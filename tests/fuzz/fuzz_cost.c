/* What requests of strangers cost, through every adapter and every kind of credentials. The first
 * byte chooses the account, the second one the kind of request; then path, query, credentials and
 * body, each ended by a NUL byte but the last. Before a verdict that refuses, memory, digests and
 * time stay within so much for each byte of the request.
 *
 *   make fuzz-fast && build/fuzz-fast/tests/fuzz/fuzz_cost CORPUS
 */
#include "cost.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct cost_bench bench;

static struct rcpt_text next_part(struct rcpt_text *rest)
{
    const char *end = rest->size > 0 ? memchr(rest->at, '\0', rest->size) : NULL;
    size_t size = end != NULL ? (size_t)(end - rest->at) : 0;
    struct rcpt_text part = {rest->at, size};
    if (end != NULL)
        *rest = (struct rcpt_text){end + 1, rest->size - size - 1};
    return part;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const types[] = {"application/json", "application/x-www-form-urlencoded",
                                        "multipart/form-data; boundary=b", "text/plain"};
    if (size < 2)
        return 0;
    if (bench.count == 0)
        cost_init(&bench);
    char *bytes = rcpt_malloc(size - 1); /* of its own, so that reading past its end is seen */
    memcpy(bytes, data + 2, size - 2);
    struct rcpt_text rest = {bytes, size - 2};
    struct cost_input input = {.get = (data[1] & 4) != 0, .type = rcpt_text_of(types[data[1] & 3])};
    input.tail = next_part(&rest);
    if (input.tail.size > 0 && input.tail.at[0] != '/')
        input.tail.size = 0;
    input.query = next_part(&rest);
    input.credentials = next_part(&rest);
    input.body = rest;
    struct cost cost;
    const struct cost_account *account = &bench.accounts[data[0] % bench.count];
    const char *fault = cost_fault_of(account, &input, &cost);
    if (fault != NULL) {
        fprintf(stderr,
                "%s: %s: %zu bytes took %zu of memory, %zu hashed in %zu digests, %zu keys, "
                "%llu ns\n",
                account->kind.gateway, fault, cost.bytes, cost.arena, cost.hashed, cost.digests,
                cost.keys, (unsigned long long)cost.ns);
        abort();
    }
    free(bytes);
    return 0;
}
