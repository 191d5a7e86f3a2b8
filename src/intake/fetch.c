/* Fetches the URLs that a gateway's protocol demands: the certificate that signed a message, and
 * the URL that confirms a subscription. The adapter decides which hosts may be asked.
 *
 * A fetch has a slot from its first request until it is settled; requests wait in the slot. Slots,
 * fetches in flight and waiting requests are limited per account and in sum, because any client can
 * send a request that names a new URL. */
#include <stdlib.h>
#include <string.h>

#include "internal.h"
#include "receiptd/http/client.h"

#define MAX_BYTES         65536u
#define TIMEOUT_MS        5000
#define TRY_AGAIN_MS      5000
#define MAX_IN_FLIGHT     2u /* certificates, of all accounts */
#define MAX_CONFIRMATIONS 1u
#define MAX_OF_ACCOUNT    2u  /* certificates that requests of one account wait for */
#define MAX_WAITING       32u /* requests that wait for one of them */

/* ---- known certificates ---- */

/* Certificates and failures are two tables of the same form. */
static struct intake_certificate *find(struct intake_certificate *places, const char *url)
{
    for (size_t i = 0; i < INTAKE_CERTIFICATES; i++)
        if (places[i].url != NULL && strcmp(places[i].url, url) == 0)
            return &places[i];
    return NULL;
}

/* Called by the verifier while it reads a request; the use decides who is displaced. */
const char *intake_find_certificate(void *context, const char *url)
{
    struct rcpt_intake *intake = context;
    struct intake_certificate *certificate = find(intake->certificates, url);
    if (certificate == NULL)
        return NULL;
    certificate->used_ms = intake_now(intake);
    return certificate->pem;
}

/* Stores into its own place, a free one, or that of the least recently used. Failures have a table
 * of their own, so that only a fetched certificate displaces another. */
static void keep(struct rcpt_intake *intake, struct intake_certificate *places, const char *url,
                 const char *pem)
{
    struct intake_certificate *place = find(places, url);
    for (size_t i = 0; place == NULL && i < INTAKE_CERTIFICATES; i++)
        if (places[i].url == NULL)
            place = &places[i];
    if (place == NULL) {
        place = &places[0];
        for (size_t i = 1; i < INTAKE_CERTIFICATES; i++)
            if (places[i].used_ms < place->used_ms)
                place = &places[i];
    }
    char *copy = rcpt_strdup(url);
    free(place->url);
    free(place->pem);
    *place = (struct intake_certificate){copy, pem != NULL ? rcpt_strdup(pem) : NULL,
                                         intake_now(intake)};
}

void intake_free_certificates(struct rcpt_intake *intake)
{
    for (size_t i = 0; i < INTAKE_CERTIFICATES; i++) {
        free(intake->certificates[i].url);
        free(intake->certificates[i].pem);
        free(intake->failures[i].url);
    }
}

/* A failure counts for five seconds: within them, requests that need the certificate are refused at
 * once instead of asking again. */
static bool has_failed(struct rcpt_intake *intake, const char *url)
{
    const struct intake_certificate *failure = find(intake->failures, url);
    return failure != NULL && intake_now(intake) - failure->used_ms < TRY_AGAIN_MS;
}

/* ---- waiting for fetches ---- */

/* Whether a drain has to wait. */
bool intake_is_fetching(const struct rcpt_intake *intake)
{
    for (size_t i = 0; i < INTAKE_FETCHES; i++)
        if (intake->fetches[i].account != NULL)
            return true;
    return intake->confirmations_in_flight > 0;
}

/* The account's slot for this URL, or a free one. NULL: the account has as many as it may, or no
 * slot is free. */
static struct intake_fetch *find_fetch(struct rcpt_intake *intake,
                                       const struct intake_account *account, const char *url)
{
    struct intake_fetch *place = NULL;
    unsigned of_account = 0;
    for (size_t i = 0; i < INTAKE_FETCHES; i++) {
        struct intake_fetch *each = &intake->fetches[i];
        if (each->account == account && strcmp(each->url, url) == 0)
            return each;
        of_account += each->account == account;
        if (each->account == NULL)
            place = each;
    }
    return of_account < MAX_OF_ACCOUNT ? place : NULL;
}

/* At most one per account, so that no account delays the others by more than one time-out. */
static bool has_fetch_in_flight(const struct rcpt_intake *intake,
                                const struct intake_account *account)
{
    for (size_t i = 0; i < INTAKE_FETCHES; i++)
        if (intake->fetches[i].account == account && intake->fetches[i].in_flight)
            return true;
    return false;
}

/* The oldest slot of an account that has no fetch in flight. */
static struct intake_fetch *next_fetch(struct rcpt_intake *intake)
{
    struct intake_fetch *next = NULL;
    for (size_t i = 0; i < INTAKE_FETCHES; i++) {
        struct intake_fetch *each = &intake->fetches[i];
        if (each->account != NULL && !has_fetch_in_flight(intake, each->account) &&
            (next == NULL || each->number < next->number))
            next = each;
    }
    return next;
}

/* The slot is freed first: a request that is read again may need it for another certificate. */
static void settle(struct intake_fetch *fetch, bool good)
{
    struct delivery *delivery = fetch->waiting;
    free(fetch->url);
    *fetch = (struct intake_fetch){0};
    while (delivery != NULL) {
        struct delivery *next = delivery->next;
        if (good)
            intake_adapt_again(delivery);
        else
            intake_refuse(delivery);
        delivery = next;
    }
}

static void on_certificate(void *context, const struct rcpt_client_answer *answer);

/* Over https, to the host that the adapter has checked; redirects are not followed, so no other
 * host can be named by an answer. */
static void get(struct rcpt_intake *intake, const char *url, rcpt_client_on_answer on_answer,
                void *context)
{
    const struct rcpt_client_request request = {
        .url = url, .schemes = "https", .timeout_ms = TIMEOUT_MS, .max_answer_bytes = MAX_BYTES};
    rcpt_client_send(intake->client, &request, on_answer, context);
}

static void start_fetches(struct rcpt_intake *intake)
{
    struct intake_fetch *fetch;
    while (intake->fetches_in_flight < MAX_IN_FLIGHT && (fetch = next_fetch(intake)) != NULL) {
        /* Another account may have fetched it, or failed to, while this slot waited. */
        bool is_here = find(intake->certificates, fetch->url) != NULL; /* for another account */
        if (is_here || has_failed(intake, fetch->url)) {
            settle(fetch, is_here);
            continue;
        }
        fetch->in_flight = true;
        intake->fetches_in_flight++;
        get(intake, fetch->url, on_certificate, fetch);
    }
}

/* Anything but a complete 200 is a failure: a part of a certificate would be refused at every
 * request. */
static void on_certificate(void *context, const struct rcpt_client_answer *answer)
{
    struct intake_fetch *fetch = context;
    struct rcpt_intake *intake = fetch->intake;
    bool good = answer->status == 200 && answer->size > 0 && !answer->cut;
    intake->fetches_in_flight--;
    if (good) {
        keep(intake, intake->certificates, fetch->url, answer->body);
    } else {
        keep(intake, intake->failures, fetch->url, NULL);
        rcpt_log_warn("intake", "the certificate %s cannot be had: status %d %s", fetch->url,
                      answer->status, answer->cut ? "longer than 64 KiB" : answer->error);
    }
    settle(fetch, good);
    start_fetches(intake);
    intake_flush(intake);
}

/* Refuses the request if waiting is useless or exceeds a limit. It waits without its arena; the
 * request is read once more afterwards. */
void intake_await_certificate(struct delivery *delivery)
{
    struct rcpt_intake *intake = delivery->intake;
    const char *url = delivery->result.certificate_url;
    /* A certificate that is here and did not verify will not improve by fetching it again. */
    bool vain = find(intake->certificates, url) != NULL || has_failed(intake, url);
    struct intake_fetch *fetch = vain ? NULL : find_fetch(intake, delivery->account, url);
    if (fetch == NULL || fetch->waiting_count >= MAX_WAITING) {
        intake_refuse(delivery);
        return;
    }
    if (fetch->account == NULL)
        *fetch = (struct intake_fetch){.intake = intake,
                                       .account = delivery->account,
                                       .url = rcpt_strdup(url),
                                       .number = intake->fetch_number++};
    delivery->next = fetch->waiting;
    fetch->waiting = delivery;
    fetch->waiting_count++;
    intake_drop_arena(delivery);
    start_fetches(intake);
}

/* ---- confirmations ---- */

/* The gateway gets its answer from the ticket: after a failure it repeats the confirmation. */
static void on_confirmed(void *context, const struct rcpt_client_answer *answer)
{
    struct delivery *delivery = context;
    struct rcpt_intake *intake = delivery->intake;
    bool good = answer->status >= 200 && answer->status < 300 && !answer->cut;
    intake->confirmations_in_flight--;
    if (good)
        rcpt_log_info("intake", "account %s: subscription confirmed", delivery->account->name);
    else
        rcpt_log_warn("intake", "account %s: the subscription could not be confirmed: status %d %s",
                      delivery->account->name, answer->status,
                      answer->cut ? "longer than 64 KiB" : answer->error);
    rcpt_ticket_release(&delivery->ticket, good);
}

/* One at a time in sum: confirmations are rare, and with an unsigned gateway any client can ask for
 * them. */
void intake_confirm(struct delivery *delivery)
{
    struct rcpt_intake *intake = delivery->intake;
    rcpt_ticket_hold(&delivery->ticket);
    if (intake->confirmations_in_flight >= MAX_CONFIRMATIONS) { /* the gateway asks again */
        rcpt_ticket_release(&delivery->ticket, false);
        return;
    }
    intake->confirmations_in_flight++;
    get(intake, delivery->result.confirm_url, on_confirmed, delivery);
}
