/* Finds the client's address (its own, or the one that a trusted proxy names), and limits how often
 * each source may ask.
 *
 * The table of sources has a fixed number of sets and places: a flood from many addresses cannot
 * grow it; the least recently seen source gives its place away. The hash is seeded, so that no
 * client can aim at a set. Called by connection.c and request.c. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"

#include "receiptd/base/error.h"

#define SETS    4096u /* a power of two */
#define WAYS    8u
#define BURST_S 2

#define MAPPED_BITS 96u /* of ::ffff:0:0/96, where IPv4 is */

/* Both limits of one address: connections now, and a token bucket of requests. */
struct source {
    struct rcpt_address address;
    int64_t seen_ms; /* 0: free */
    uint32_t connections;
    double tokens;
};

struct source_table {
    uint64_t seed;
    struct source sources[SETS][WAYS];
};

static bool is_trusted(const struct rcpt_http_server *server, const struct rcpt_address *address)
{
    return rcpt_networks_have(server->trusted, server->trusted_count, address);
}

/* The last entry of a list, cut off from it. After the first entry the list is absent. */
static struct rcpt_http_text cut_last(struct rcpt_http_text *list)
{
    const char *comma = memrchr(list->bytes, ',', list->size);
    size_t before = comma != NULL ? (size_t)(comma - list->bytes) : 0;
    const char *last = comma != NULL ? comma + 1 : list->bytes;
    size_t size = list->size - (size_t)(last - list->bytes);
    *list = (struct rcpt_http_text){comma != NULL ? list->bytes : NULL, before};
    for (; size > 0 && (*last == ' ' || *last == '\t'); size--)
        last++;
    while (size > 0 && (last[size - 1] == ' ' || last[size - 1] == '\t'))
        size--;
    return (struct rcpt_http_text){last, size};
}

/* Size without ":port": behind brackets, or behind the only colon. */
static size_t without_port(const char *text, size_t size)
{
    const char *colon = memrchr(text, ':', size);
    size_t host = colon != NULL ? (size_t)(colon - text) : size;
    size_t digits = host < size ? size - host - 1 : 0;
    if (digits == 0 || digits > 5)
        return size;
    for (size_t i = host + 1; i < size; i++)
        if (text[i] < '0' || text[i] > '9')
            return size;
    bool bracketed = host >= 2 && text[0] == '[' && text[host - 1] == ']';
    return bracketed || memchr(text, ':', host) == NULL ? host : size;
}

/* An address, perhaps in quotes, in brackets and with a port, as proxies write it. */
static bool parse_forwarded(struct rcpt_http_text entry, struct rcpt_address *address)
{
    if (entry.size >= 2 && entry.bytes[0] == '"' && entry.bytes[entry.size - 1] == '"') {
        entry.bytes++;
        entry.size -= 2;
    }
    size_t size = without_port(entry.bytes, entry.size);
    bool bracketed = size >= 2 && entry.bytes[0] == '[' && entry.bytes[size - 1] == ']';
    return rcpt_address_parse(entry.bytes + bracketed, bracketed ? size - 2 : size, address);
}

/* Each proxy appends the address that it saw: from the right, the first that is no trusted proxy is
 * the client. False: that one was found, or an entry cannot be read; entries before it may be the
 * client's own invention. */
static bool step_back(const struct rcpt_http_server *server, struct rcpt_address *address,
                      struct rcpt_http_text forwarded)
{
    while (forwarded.bytes != NULL) {
        struct rcpt_address named;
        if (!parse_forwarded(cut_last(&forwarded), &named))
            return false;
        *address = named;
        if (!is_trusted(server, address))
            return false;
    }
    return true;
}

bool rcpt_http_is_proxied(const struct rcpt_http_request *request)
{
    return request->server->trusted_count > 0 && is_trusted(request->server, &request->peer);
}

/* X-Forwarded-For counts only from a trusted peer. */
struct rcpt_address http_source_of(const struct rcpt_http_request *request)
{
    struct rcpt_address address = request->peer;
    if (request->server->trusted_count == 0 || !is_trusted(request->server, &address))
        return address;
    /* Several header lines are one list: the last line is the nearest proxy's. */
    for (uint32_t i = request->field_count; i > 0; i--) {
        struct rcpt_http_text name, value;
        rcpt_http_header_at(request, i - 1, &name, &value);
        if (http_request_text_is(name, "x-forwarded-for") &&
            !step_back(request->server, &address, value))
            break;
    }
    return address;
}

/* Loopback and private networks. Unless it is a trusted proxy, such an address is a neighbour or a
 * proxy that the configuration does not name: limiting it would limit every client behind it. */
bool http_source_is_near(const struct rcpt_http_server *server, const struct rcpt_address *address)
{
#define FOUR [10] = 0xff, [11] = 0xff
    static const struct rcpt_network near[] = {
        {{{FOUR, [12] = 127}}, MAPPED_BITS + 8},
        {{{FOUR, [12] = 10}}, MAPPED_BITS + 8},
        {{{FOUR, [12] = 172, [13] = 16}}, MAPPED_BITS + 12},
        {{{FOUR, [12] = 192, [13] = 168}}, MAPPED_BITS + 16},
        {{{FOUR, [12] = 169, [13] = 254}}, MAPPED_BITS + 16},
        {{{FOUR, [12] = 100, [13] = 64}}, MAPPED_BITS + 10}, /* RFC 6598 */
        {{{[15] = 1}}, 128},
        {{{[0] = 0xfc}}, 7},
        {{{[0] = 0xfe, [1] = 0x80}}, 10},
    };
#undef FOUR
    if (is_trusted(server, address))
        return false;
    return rcpt_networks_have(near, RCPT_COUNT_OF(near), address);
}

/* ---- the table ---- */

struct source_table *http_source_table_new(void)
{
    struct source_table *table = rcpt_calloc(1, sizeof(*table));
    table->seed = uv_hrtime() ^ (uint64_t)(uintptr_t)table;
    return table;
}

void http_source_table_free(struct source_table *table)
{
    free(table);
}

/* The finaliser of MurmurHash3. */
static uint64_t mix(uint64_t value)
{
    value ^= value >> 33;
    value *= 0xff51afd7ed558ccdull;
    value ^= value >> 33;
    value *= 0xc4ceb9fe1a85ec53ull;
    return value ^ (value >> 33);
}

/* One customer has a /64 of IPv6: all of it is one source. */
static struct rcpt_address key_of(const struct rcpt_address *address)
{
    struct rcpt_address key = *address;
    if (!rcpt_address_is_v4(address))
        memset(key.bytes + 8, 0, 8);
    return key;
}

/* The place of this source; a new one takes the place of the least recently seen. NULL: all places
 * of the set have connections. */
static struct source *find_source(struct rcpt_http_server *server,
                                  const struct rcpt_address *address)
{
    struct source_table *table = server->sources;
    struct rcpt_address key = key_of(address);
    uint64_t halves[2];
    memcpy(halves, key.bytes, sizeof(halves));
    struct source *set = table->sources[mix(halves[0] ^ mix(halves[1] ^ table->seed)) & (SETS - 1)];
    struct source *oldest = NULL;
    for (unsigned way = 0; way < WAYS; way++) {
        if (set[way].seen_ms != 0 && memcmp(&set[way].address, &key, sizeof(key)) == 0)
            return &set[way];
        if (set[way].connections == 0 && (oldest == NULL || set[way].seen_ms < oldest->seen_ms))
            oldest = &set[way];
    }
    if (oldest == NULL) /* all are connected */
        return NULL;
    *oldest = (struct source){.address = key,
                              .seen_ms = http_now(server) + 1,
                              .tokens = BURST_S * (double)server->settings.rate_per_source};
    return oldest;
}

/* Where the table has no place left, the connection is allowed: the server's own limits remain. */
bool http_source_connect(struct rcpt_http_server *server, const struct rcpt_address *address)
{
    struct source *source = find_source(server, address);
    if (source == NULL)
        return true;
    source->connections++;
    return server->settings.max_per_source == 0 ||
           source->connections <= server->settings.max_per_source;
}

void http_source_disconnect(struct rcpt_http_server *server, const struct rcpt_address *address)
{
    struct source *source = find_source(server, address);
    if (source != NULL && source->connections > 0)
        source->connections--;
}

uint32_t http_source_connections(struct rcpt_http_server *server,
                                 const struct rcpt_address *address)
{
    const struct source *source = find_source(server, address);
    return source != NULL ? source->connections : 0;
}

/* Refills by the time that has passed. A first request has the whole burst. */
bool http_source_admit(struct rcpt_http_server *server, const struct rcpt_address *address,
                       unsigned *wait_s)
{
    double rate = (double)server->settings.rate_per_source;
    struct source *source = find_source(server, address);
    if (source == NULL)
        return true;
    int64_t now = http_now(server) + 1;
    source->tokens += rate * (double)(now - source->seen_ms) / 1000;
    if (source->tokens > BURST_S * rate)
        source->tokens = BURST_S * rate;
    source->seen_ms = now;
    if (source->tokens < 1) {
        *wait_s = (unsigned)((1 - source->tokens) / rate) + 1;
        return false;
    }
    return true;
}

/* Many requests may be admitted before the first is charged: the debt is bounded by a burst. */
void http_source_charge(struct rcpt_http_server *server, const struct rcpt_address *address,
                        int tokens)
{
    double most = BURST_S * (double)server->settings.rate_per_source;
    struct source *source = find_source(server, address);
    if (source == NULL)
        return;
    source->tokens -= tokens;
    if (source->tokens > most)
        source->tokens = most;
    if (source->tokens < -most) /* many that were admitted at the same time */
        source->tokens = -most;
}
