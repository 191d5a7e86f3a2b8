/* Settings that work and are weak: traffic in clear text, peers that are not checked, doors that
 * stand open. `receiptd check-config` prints them as notes, `run` and `intake` log them at the
 * start. None is refused: a socket needs no TLS, and a laboratory no secrets. No text holds a
 * secret. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "check.h"
#include "expand.h"
#include "print.h"
#include "receiptd/base/network.h"
#include "receiptd/postgres/connection.h"

#define SHORTEST_SECRET 16u /* bytes, as http.token has at least */

/* Where notes go to: the callback and its context, passed through all checks. */
struct search {
    const struct rcpt_config *config;
    rcpt_config_on_weak on_weak;
    void *context;
};

/* The texts are constants or name keys; none holds a value of the configuration. */
static void note(const struct search *search, const char *key, const char *what, const char *hint)
{
    search->on_weak(search->context, key, what, hint);
}

/* An entry of a list is called by its name: intake.accounts.acme.verify. */
static void note_entry(const struct search *search, const char *list, const char *name,
                       const char *field, const char *what, const char *hint)
{
    char key[160];
    snprintf(key, sizeof(key), "%s.%.63s.%s", list, name, field);
    note(search, key, what, hint);
}

/* ---- addresses ---- */

/* All of 127/8 is the machine itself. */
static bool is_loopback(const char *host, size_t size)
{
    return (size == 9 && strncasecmp(host, "localhost", 9) == 0) ||
           (size >= 4 && strncmp(host, "127.", 4) == 0) ||
           (size == 3 && strncmp(host, "::1", 3) == 0);
}

/* The host of `host:port` or `[address]:port`, up to a comma. */
static const char *host_of(const char *address, size_t *size)
{
    if (address[0] == '[') {
        *size = strcspn(address + 1, "],");
        return address + 1;
    }
    size_t whole = strcspn(address, ",/");
    const char *colon = memrchr(address, ':', whole);
    *size = colon != NULL ? (size_t)(colon - address) : whole;
    return address;
}

/* Loopback needs no TLS: no other machine sees its packets. */
static bool is_local_address(const char *address)
{
    size_t size;
    const char *host = host_of(address, &size);
    return is_loopback(host, size);
}

/* Clear text matters as soon as one broker is elsewhere. */
static bool are_local_brokers(const char *brokers)
{
    for (;;) {
        brokers += strspn(brokers, ", ");
        if (*brokers == '\0')
            return true;
        const char *scheme = strstr(brokers, "://"), *end = brokers + strcspn(brokers, ",");
        if (!is_local_address(scheme != NULL && scheme < end ? scheme + 3 : brokers))
            return false;
        brokers = end;
    }
}

/* http:// to a name, or to an address that is neither loopback nor private. */
static bool is_clear_text(const char *url)
{
    struct rcpt_address address;
    char host[256];
    size_t size;
    if (strncasecmp(url, "http://", 7) != 0)
        return false;
    snprintf(host, sizeof(host), "%.*s", (int)strcspn(url + 7, "/?#"), url + 7);
    const char *name = host_of(host, &size);
    if (is_loopback(name, size))
        return false;
    return !rcpt_address_parse(name, size, &address) || rcpt_address_is_public(&address);
}

/* ---- neighbours ---- */

/* postgres/connection.c knows how libpq reads sslmode; only it parses the string. */
static void check_postgres(const struct search *search, const char *key, const char *dsn)
{
    const char *hint = NULL, *what = rcpt_pg_weakness(dsn, &hint);
    if (what != NULL)
        note(search, key, what, hint);
}

/* librdkafka compares names of properties without case. */
static const char *property(const struct rcpt_config *config, const char *name)
{
    for (unsigned index = 0; index < config->kafka.properties_count; index++)
        if (strcasecmp(config->kafka.properties[index].name, name) == 0)
            return config->kafka.properties[index].value;
    return "";
}

static void check_kafka(const struct search *search)
{
    const struct rcpt_config *config = search->config;
    const char *protocol = property(config, "security.protocol");
    bool clear = strcasecmp(protocol, "ssl") != 0 && strcasecmp(protocol, "sasl_ssl") != 0;
    if (config->kafka.brokers == NULL) /* of `intake --try` */
        return;
    if (clear && !are_local_brokers(config->kafka.brokers))
        note(search, "kafka.properties.security.protocol",
             "records and passwords cross the network in clear text",
             "set ssl or sasl_ssl, and ssl.ca.location");
    if (strcasecmp(property(config, "enable.ssl.certificate.verification"), "false") == 0)
        note(search, "kafka.properties.enable.ssl.certificate.verification",
             "anybody may answer as a broker", "remove it, and set ssl.ca.location");
    if (strcasecmp(property(config, "ssl.endpoint.identification.algorithm"), "none") == 0)
        note(search, "kafka.properties.ssl.endpoint.identification.algorithm",
             "a holder of any certificate of the authority may answer as a broker",
             "set https, and have the brokers' names in their certificates");
}

/* Figures, status and the tokens that ask for them. */
static void check_pages(const struct search *search, const char *key, const char *listen)
{
    const struct rcpt_config *config = search->config;
    if (listen[0] == '\0' || is_local_address(listen))
        return;
    if (config->http.token == NULL)
        note(search, key, "anyone who reaches the address reads /metrics and /statusz",
             "set http.token, or listen on 127.0.0.1");
    if (config->http.tls_certificate == NULL)
        note(search, key, "the pages and their tokens cross the network in clear text",
             "set http.tls_certificate and http.tls_key, or let only who scrapes reach it");
}

static void check_endpoints(const struct search *search)
{
    const struct rcpt_config *config = search->config;
    static const char clear[] = "calls, with ids of people in them, go out in clear text",
                      https[] = "use https", may[] = "webhooks may call machines of your own",
                      only[] =
                          "set it only where receivers are inside, with a firewall around them";
    for (size_t index = 0; index < config->actions.endpoints_count; index++)
        if (is_clear_text(config->actions.endpoints[index].url))
            note_entry(search, "actions.endpoints", config->actions.endpoints[index].name, "url",
                       clear, https);
    /* Without this key, calls to private addresses are refused, so a webhook cannot reach a machine
     * behind the firewall. */
    if (config->actions.allow_private)
        note(search, "actions.allow_private", may, only);
    for (size_t index = 0; index < config->folds_count; index++) {
        const struct rcpt_fold_config *fold = &config->folds[index];
        if (fold->publish.webhook.url != NULL && is_clear_text(fold->publish.webhook.url))
            note_entry(search, "folds", fold->name, "publish.webhook.url", clear, https);
        if (fold->publish.webhook.allow_private)
            note_entry(search, "folds", fold->name, "publish.webhook.allow_private", may, only);
    }
    if (config->tracing.token != NULL && config->tracing.endpoint != NULL &&
        is_clear_text(config->tracing.endpoint))
        note(search, "tracing.endpoint", "tracing.token goes out in clear text", https);
}

/* ---- the intake ---- */

/* Methods that carry the secret itself, not a signature made with it. */
static bool sends_its_secret(const struct rcpt_gateway_account_config *account)
{
    return account->auth >= RCPT_GATEWAY_AUTH_SHARED && account->auth <= RCPT_GATEWAY_AUTH_QUERY;
}

static void check_account(const struct search *search,
                          const struct rcpt_gateway_account_config *account, bool clear)
{
    static const char list[] = "intake.accounts", give[] = "set verify: required and secrets";
    if (account->verify == RCPT_GATEWAY_VERIFY_OFF && account->allow_count == 0)
        note_entry(search, list, account->name, "verify", "off: anybody may send receipts", give);
    if (account->verify == RCPT_GATEWAY_VERIFY_OPTIONAL && account->allow_count == 0)
        note_entry(search, list, account->name, "verify",
                   "optional: anybody may send receipts, by leaving credentials out", give);
    if (account->unsigned_ids)
        note_entry(search, list, account->name, "unsigned_ids",
                   "ids count that no signature covers: who has one request may name any message",
                   "have the gateway carry the id in what it signs");
    if (clear && account->verify != RCPT_GATEWAY_VERIFY_OFF && sends_its_secret(account))
        note_entry(search, list, account->name, "auth",
                   "the secret is in the request, which crosses the network in clear text",
                   "set intake.tls, or intake.trusted_proxies where a proxy ends TLS");
}

/* Behind a proxy that ends TLS the listener itself is plain; trusted_proxies says that there is
 * one. */
static void check_intake(const struct search *search)
{
    const struct rcpt_config *config = search->config;
    bool clear = config->intake.tls_certificate == NULL && config->intake.trusted_proxies == NULL &&
                 !is_local_address(config->intake.listen);
    check_pages(search, "serve.metrics_listen", config->serve.metrics_listen);
    if (config->intake.accounts_count == 0)
        return;
    check_pages(search, "intake.metrics_listen", config->intake.metrics_listen);
    if (config->intake.dsn != NULL)
        check_postgres(search, "intake.dsn", config->intake.dsn);
    else if (config->intake.alias != RCPT_ALIAS_OFF)
        note(search, "intake.dsn",
             "not set: the process that reads the Internet's bytes connects as the core's role",
             "make a role by receiptd migrate --intake-role, and set its connection string");
    if (clear)
        note(search, "intake.listen", "webhooks cross the network in clear text",
             "set intake.tls, or intake.trusted_proxies where a proxy ends TLS");
    for (size_t index = 0; index < config->intake.accounts_count; index++)
        check_account(search, &config->intake.accounts[index], clear);
}

/* ---- secrets ---- */

struct held { /* a secret, and whose it is */
    const char *text;
    const char *list, *owner, *field; /* list NULL: `field` is the whole key */
};

struct secrets {
    struct held *items;
    size_t count;
};

static void key_of(const struct held *held, char key[160])
{
    if (held->list == NULL)
        snprintf(key, 160, "%s", held->field);
    else
        snprintf(key, 160, "%s.%.63s.%s", held->list, held->owner, held->field);
}

/* Secrets that are not set need no check. */
static void add(struct secrets *secrets, const char *text, const char *list, const char *owner,
                const char *field)
{
    if (text != NULL && text[0] != '\0')
        secrets->items[secrets->count++] = (struct held){text, list, owner, field};
}

/* The texts are borrowed from the configuration; only the array is freed. */
static void gather(const struct rcpt_config *config, struct secrets *secrets)
{
    size_t most = 3 + config->kafka.properties_count;
    for (size_t index = 0; index < config->intake.accounts_count; index++)
        most += config->intake.accounts[index].secrets_count + 1;
    secrets->items = rcpt_calloc(most, sizeof(*secrets->items));
    add(secrets, config->http.token, NULL, NULL, "http.token");
    add(secrets, config->http.runs_token, NULL, NULL, "http.runs_token");
    add(secrets, config->tracing.token, NULL, NULL, "tracing.token");
    for (unsigned index = 0; index < config->kafka.properties_count; index++) {
        const struct rcpt_config_pair *pair = &config->kafka.properties[index];
        if (strcasestr(pair->name, "password") != NULL || strcasestr(pair->name, "secret") != NULL)
            add(secrets, pair->value, "kafka", "properties", pair->name);
    }
    for (size_t index = 0; index < config->intake.accounts_count; index++) {
        const struct rcpt_gateway_account_config *account = &config->intake.accounts[index];
        for (unsigned at = 0; at < account->secrets_count; at++)
            add(secrets, account->secrets[at], "intake.accounts", account->name, "secrets");
        add(secrets, account->verify_token, "intake.accounts", account->name, "verify_token");
    }
}

/* Equal secrets become neighbours; the order of the rest makes the notes stable. */
static int compare_held(const void *left, const void *right)
{
    const struct held *one = left, *other = right;
    int order = strcmp(one->text, other->text);
    if (order == 0)
        order = (one->owner != NULL) - (other->owner != NULL);
    if (order == 0 && one->owner != NULL)
        order = strcmp(one->owner, other->owner);
    return order != 0 ? order : strcmp(one->field, other->field);
}

/* Within one account a secret may stand in two fields. */
static bool is_shared(const struct held *one, const struct held *other)
{
    return strcmp(one->text, other->text) == 0 &&
           (one->owner == NULL || other->owner == NULL || strcmp(one->owner, other->owner) != 0);
}

static void check_secrets(const struct search *search)
{
    struct secrets secrets = {0};
    char key[160], other[160], what[256];
    gather(search->config, &secrets);
    for (size_t index = 0; index < secrets.count; index++) {
        const struct held *held = &secrets.items[index];
        if (strlen(held->text) >= SHORTEST_SECRET)
            continue;
        key_of(held, key);
        snprintf(what, sizeof(what), "a secret has %zu bytes", strlen(held->text));
        note(search, key, what, "use 16 or more, made at random: openssl rand -hex 32");
    }
    qsort(secrets.items, secrets.count, sizeof(*secrets.items), compare_held);
    for (size_t index = 1; index < secrets.count; index++) {
        if (!is_shared(&secrets.items[index - 1], &secrets.items[index]))
            continue;
        key_of(&secrets.items[index], key);
        key_of(&secrets.items[index - 1], other);
        snprintf(what, sizeof(what), "a secret is that of %s as well", other);
        note(search, key, what, "give each its own: who knows one may act as the other");
    }
    free(secrets.items);
}

/* Rights of the owner's group are fine: packages install keys for a group. */
static void check_key_file(const struct search *search, const char *key, const char *path)
{
    struct stat status;
    if (path != NULL && stat(path, &status) == 0 && (status.st_mode & S_IRWXO) != 0)
        note(search, key, "every user of this machine may read the private key", "chmod o= it");
}

static void check_sources(const struct search *search)
{
    static const char own_file[] =
        "put it into a file of its own and write file:PATH (docs/security.md)";
    static const struct {
        const char *what, *hint;
    } texts[] = {
        [RCPT_SECRET_LITERAL] = {"the secret stands in the configuration itself", own_file},
        [RCPT_SECRET_ENVIRONMENT] = {"the secret is in the environment, which children inherit",
                                     own_file},
        [RCPT_SECRET_OPEN_FILE] = {"every user of this machine may read or change the file",
                                   "chmod o= it"},
    };
    /* How secrets came in was noted while the file was read (rcpt_config_note_secret). */
    const struct rcpt_secret_notes *notes = &search->config->secret_notes;
    for (unsigned index = 0; index < notes->count; index++)
        note(search, notes->at[index].key, texts[notes->at[index].source].what,
             texts[notes->at[index].source].hint);
    const struct rcpt_config *config = search->config;
    check_key_file(search, "http.tls_key", config->http.tls_key);
    check_key_file(search, "intake.tls.key", config->intake.tls_key);
    check_key_file(search, "kafka.properties.ssl.key.location",
                   property(config, "ssl.key.location"));
}

void rcpt_config_find_weak(const struct rcpt_config *config, rcpt_config_on_weak on_weak,
                           void *context)
{
    const struct search search = {config, on_weak, context};
    check_sources(&search);
    check_secrets(&search);
    if (config->postgres.dsn != NULL)
        check_postgres(&search, "postgres.dsn", config->postgres.dsn);
    if (config->actions.lookup_dsn != NULL)
        check_postgres(&search, "actions.lookup_dsn", config->actions.lookup_dsn);
    check_kafka(&search);
    check_pages(&search, "http.listen", config->http.listen);
    check_intake(&search);
    check_endpoints(&search);
}

/* ---- where secrets come from ---- */

/* A connection string is a secret as a whole, but often it holds none. */
static bool is_bare_dsn(const char *key, const char *text)
{
    if (!rcpt_config_is_dsn(key))
        return false;
    char *redacted = rcpt_config_redact_dsn(text);
    bool bare = strcmp(redacted, text) == 0;
    free(redacted);
    return bare;
}

/* Called while the file is read, in a worker thread perhaps, so it writes to `notes` alone. Above
 * RCPT_CONFIG_MOST_NOTES further secrets are left out: the operator knows by then. */
void rcpt_config_note_secret(struct rcpt_secret_notes *notes, const char *key,
                             enum rcpt_secret_source source, const char *text)
{
    if (notes->count == RCPT_CONFIG_MOST_NOTES || is_bare_dsn(key, text))
        return;
    for (unsigned index = 0; index < notes->count; index++)
        if (strcmp(notes->at[index].key, key) == 0 && notes->at[index].source == source)
            return;
    struct rcpt_secret_note *note = &notes->at[notes->count++];
    snprintf(note->key, sizeof(note->key), "%s", key);
    note->source = source;
}

static void warn(void *context, const char *key, const char *what, const char *hint)
{
    (void)context;
    rcpt_log_warn("config", "%s: %s; HINT: %s", key, what, hint);
}

/* Called once the log is open, at the start of `run` and `intake`. */
void rcpt_config_warn(const struct rcpt_config *config)
{
    rcpt_config_find_weak(config, warn, NULL);
}
