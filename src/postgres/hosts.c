/* The hosts of a dsn: parsing the lists of names, addresses and ports, and resolving names in
 * libuv's pool, all at once. PQconnectStart would resolve them itself and block the loop. Called by
 * connect.c and conninfo.c.
 */
#include "hosts.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>

struct lookup {
    uv_getaddrinfo_t request;
    struct rcpt_resolver *owner; /* NULL: abandoned */
    size_t index;
};

struct rcpt_resolver {
    struct rcpt_hosts hosts;
    struct rcpt_hosts *found; /* per host: its candidates */
    struct lookup **lookups;  /* per host: the one that runs, or NULL */
    size_t running;
    size_t failed_index; /* the last host that could not be resolved, and why */
    int failed_status;
    void (*on_done)(void *context);
    void *context;
};

/* An empty text is a list of one empty entry, as for libpq. */
static size_t list_length(const char *list)
{
    size_t length = 1;
    for (const char *byte = list; *byte != '\0'; byte++)
        length += *byte == ',';
    return length;
}

/* The caller frees the copy. */
static char *list_item(const char *list, size_t index)
{
    for (; index > 0; index--)
        list += strcspn(list, ",") + 1;
    return rcpt_strndup(list, strcspn(list, ","));
}

static void hosts_add_take(struct rcpt_hosts *hosts, struct rcpt_host host)
{
    hosts->items = rcpt_realloc(hosts->items, (hosts->count + 1) * sizeof(*hosts->items));
    hosts->items[hosts->count++] = host;
}

/* The rules of libpq: lists of equal length, or one port for all hosts. */
bool rcpt_hosts_parse(const char *names, const char *addresses, const char *ports,
                      struct rcpt_hosts *hosts, struct rcpt_error *error)
{
    names = names != NULL ? names : "";
    addresses = addresses != NULL ? addresses : "";
    ports = ports != NULL ? ports : "";
    size_t count = list_length(addresses[0] != '\0' ? addresses : names);
    size_t port_count = list_length(ports);
    *hosts = (struct rcpt_hosts){0};
    if (names[0] != '\0' && list_length(names) != count)
        return rcpt_error_set(error, RCPT_DECISION_RECONNECT, "RDDSN",
                              "postgres.dsn lists %zu hosts and %zu addresses", list_length(names),
                              count);
    if (port_count != 1 && port_count != count)
        return rcpt_error_set(error, RCPT_DECISION_RECONNECT, "RDDSN",
                              "postgres.dsn lists %zu hosts and %zu ports", count, port_count);
    for (size_t index = 0; index < count; index++)
        hosts_add_take(
            hosts,
            (struct rcpt_host){.name = names[0] != '\0' ? list_item(names, index) : rcpt_strdup(""),
                               .address = addresses[0] != '\0' ? list_item(addresses, index)
                                                               : rcpt_strdup(""),
                               .port = list_item(ports, port_count == 1 ? 0 : index)});
    return true;
}

/* Also for hosts that are empty. */
void rcpt_hosts_fini(struct rcpt_hosts *hosts)
{
    for (size_t index = 0; index < hosts->count; index++) {
        free(hosts->items[index].name);
        free(hosts->items[index].address);
        free(hosts->items[index].port);
    }
    free(hosts->items);
    *hosts = (struct rcpt_hosts){0};
}

/* Adds a candidate. It keeps the name, since TLS checks the certificate by the name. */
static void found_add(struct rcpt_resolver *resolver, size_t index, const char *address)
{
    const struct rcpt_host *host = &resolver->hosts.items[index];
    hosts_add_take(&resolver->found[index], (struct rcpt_host){.name = rcpt_strdup(host->name),
                                                               .address = rcpt_strdup(address),
                                                               .port = rcpt_strdup(host->port)});
}

/* In the order of the resolver, which the rotation turns later. */
static void found_all(struct rcpt_resolver *resolver, size_t index, const struct addrinfo *result)
{
    for (; result != NULL; result = result->ai_next) {
        char text[NI_MAXHOST];
        if (getnameinfo(result->ai_addr, result->ai_addrlen, text, sizeof(text), NULL, 0,
                        NI_NUMERICHOST) == 0)
            found_add(resolver, index, text);
    }
}

/* The resolver may be gone: then only the lookup itself is freed. */
static void on_looked_up(uv_getaddrinfo_t *request, int status, struct addrinfo *result)
{
    struct lookup *lookup = request->data;
    struct rcpt_resolver *resolver = lookup->owner;
    size_t index = lookup->index;
    free(lookup);
    if (resolver != NULL) {
        found_all(resolver, index, result);
        resolver->lookups[index] = NULL;
        if (status < 0) {
            resolver->failed_index = index;
            resolver->failed_status = status;
        }
    }
    uv_freeaddrinfo(result);
    if (resolver != NULL && --resolver->running == 0)
        resolver->on_done(resolver->context);
}

/* A numeric name needs no resolver, and libpq takes it as an address. */
static bool is_numeric(const char *name)
{
    unsigned char address[sizeof(struct in6_addr)];
    return inet_pton(AF_INET, name, address) == 1 || inet_pton(AF_INET6, name, address) == 1;
}

/* A path, or an abstract socket; an empty name is libpq's default directory. */
static bool is_socket_directory(const char *name)
{
    return name[0] == '\0' || name[0] == '/' || name[0] == '@';
}

/* A lookup that cannot even start counts as failed; the other hosts go on. */
static void look_up(struct rcpt_resolver *resolver, uv_loop_t *loop, size_t index)
{
    static const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct lookup *lookup = rcpt_calloc(1, sizeof(*lookup));
    lookup->owner = resolver;
    lookup->index = index;
    lookup->request.data = lookup;
    int status = uv_getaddrinfo(loop, &lookup->request, on_looked_up,
                                resolver->hosts.items[index].name, NULL, &hints);
    if (status < 0) {
        resolver->failed_index = index;
        resolver->failed_status = status;
        free(lookup);
        return;
    }
    resolver->lookups[index] = lookup;
    resolver->running++;
}

/* Addresses, directories and numeric names are candidates at once. */
struct rcpt_resolver *rcpt_resolver_start(uv_loop_t *loop, struct rcpt_hosts *hosts_take,
                                          void (*on_done)(void *context), void *context)
{
    struct rcpt_resolver *resolver = rcpt_calloc(1, sizeof(*resolver));
    resolver->hosts = *hosts_take;
    *hosts_take = (struct rcpt_hosts){0};
    resolver->found = rcpt_calloc(resolver->hosts.count, sizeof(*resolver->found));
    resolver->lookups = rcpt_calloc(resolver->hosts.count, sizeof(struct lookup *));
    resolver->on_done = on_done;
    resolver->context = context;
    for (size_t index = 0; index < resolver->hosts.count; index++) {
        const struct rcpt_host *host = &resolver->hosts.items[index];
        if (host->address[0] != '\0' || is_socket_directory(host->name))
            found_add(resolver, index, host->address);
        else if (is_numeric(host->name))
            found_add(resolver, index, host->name);
        else
            look_up(resolver, loop, index);
    }
    return resolver;
}

bool rcpt_resolver_is_done(const struct rcpt_resolver *resolver)
{
    return resolver->running == 0;
}

/* Each failed attempt begins with another host, so that a bad one does not stay the first. */
static void rotate(struct rcpt_hosts *hosts, size_t places)
{
    for (size_t turn = places % hosts->count; turn > 0; turn--) {
        struct rcpt_host first = hosts->items[0];
        memmove(hosts->items, hosts->items + 1, (hosts->count - 1) * sizeof(*hosts->items));
        hosts->items[hosts->count - 1] = first;
    }
}

/* Reports the last failure for all. Always false, for the caller's return. */
static bool nothing_found(const struct rcpt_resolver *resolver, struct rcpt_error *error)
{
    const char *name = resolver->hosts.items[resolver->failed_index].name;
    rcpt_error_set(
        error, RCPT_DECISION_RECONNECT, "RDHOST", "host \"%s\" cannot be resolved: %s", name,
        resolver->failed_status < 0 ? uv_strerror(resolver->failed_status) : "no answer in time");
    rcpt_error_hint(error, "check the host in postgres.dsn and the name server");
    return false;
}

/* Names that are not resolved yet are left out: a host that answers is better than a complete list.
 */
bool rcpt_resolver_candidates(const struct rcpt_resolver *resolver, size_t rotation,
                              struct rcpt_hosts *candidates, struct rcpt_error *error)
{
    *candidates = (struct rcpt_hosts){0};
    for (size_t index = 0; index < resolver->hosts.count; index++) {
        const struct rcpt_hosts *found = &resolver->found[index];
        for (size_t item = 0; item < found->count; item++)
            hosts_add_take(candidates,
                           (struct rcpt_host){.name = rcpt_strdup(found->items[item].name),
                                              .address = rcpt_strdup(found->items[item].address),
                                              .port = rcpt_strdup(found->items[item].port)});
    }
    if (candidates->count == 0)
        return nothing_found(resolver, error);
    rotate(candidates, rotation);
    return true;
}

void rcpt_resolver_free(struct rcpt_resolver *resolver)
{
    if (resolver == NULL)
        return;
    for (size_t index = 0; index < resolver->hosts.count; index++) {
        struct lookup *lookup = resolver->lookups[index];
        if (lookup != NULL) {
            lookup->owner = NULL;
            /* A running lookup cannot be cancelled; it ends by itself. */
            (void)uv_cancel((uv_req_t *)&lookup->request);
        }
        rcpt_hosts_fini(&resolver->found[index]);
    }
    rcpt_hosts_fini(&resolver->hosts);
    free(resolver->found);
    free(resolver->lookups);
    free(resolver);
}
