/* What a gateway's protocol makes us ask for: the certificate that signed a message, and the URL
 * that confirms a subscription. Which hosts may be asked is decided by the adapter. */
#include <stdlib.h>
#include <string.h>

#include "http/client.h"
#include "internal.h"

#define MAX_BYTES         65536u
#define TIMEOUT_MS        5000
#define TRY_AGAIN_MS      5000
#define MAX_IN_FLIGHT     2u /* certificates, of all accounts */
#define MAX_CONFIRMATIONS 1u
#define MAX_OF_ACCOUNT    2u  /* certificates that requests of one account wait for */
#define MAX_WAITING       32u /* requests that wait for one of them */

/* ---- what is known ---- */

static struct intake_certificate *find(struct intake_certificate *places, const char *url)
{
    for (size_t i = 0; i < INTAKE_CERTIFICATES; i++)
        if (places[i].url != NULL && strcmp(places[i].url, url) == 0)
            return &places[i];
    return NULL;
}

const char *intake_find_certificate(void *context, const char *url)
{
    struct rcpt_intake *intake = context;
    struct intake_certificate *certificate = find(intake->certificates, url);
    if (certificate == NULL)
        return NULL;
    certificate->used_ms = intake_now(intake);
    return certificate->pem;
}

/* In its own place, a free one, or that of the one that was needed longest ago: only what has come
 * displaces a certificate, failures have places of their own. */
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

static bool has_failed(struct rcpt_intake *intake, const char *url)
{
    const struct intake_certificate *failure = find(intake->failures, url);
    return failure != NULL && intake_now(intake) - failure->used_ms < TRY_AGAIN_MS;
}

/* ---- what is waited for ---- */

bool intake_is_fetching(const struct rcpt_intake *intake)
{
    for (size_t i = 0; i < INTAKE_FETCHES; i++)
        if (intake->fetches[i].account != NULL)
            return true;
    return intake->confirmations_flying > 0;
}

/* The account's fetch of this URL, or a free place for it. NULL: the account has as many as it may,
 * or there is no place. */
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

static bool is_flying(const struct rcpt_intake *intake, const struct intake_account *account)
{
    for (size_t i = 0; i < INTAKE_FETCHES; i++)
        if (intake->fetches[i].account == account && intake->fetches[i].flying)
            return true;
    return false;
}

/* The first in line of an account that has none under way: no account keeps the others waiting with
 * more than one. */
static struct intake_fetch *next_fetch(struct rcpt_intake *intake)
{
    struct intake_fetch *next = NULL;
    for (size_t i = 0; i < INTAKE_FETCHES; i++) {
        struct intake_fetch *each = &intake->fetches[i];
        if (each->account != NULL && !is_flying(intake, each->account) &&
            (next == NULL || each->number < next->number))
            next = each;
    }
    return next;
}

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
    while (intake->fetches_flying < MAX_IN_FLIGHT && (fetch = next_fetch(intake)) != NULL) {
        bool is_here = find(intake->certificates, fetch->url) != NULL; /* for another account */
        if (is_here || has_failed(intake, fetch->url)) {
            settle(fetch, is_here);
            continue;
        }
        fetch->flying = true;
        intake->fetches_flying++;
        get(intake, fetch->url, on_certificate, fetch);
    }
}

static void on_certificate(void *context, const struct rcpt_client_answer *answer)
{
    struct intake_fetch *fetch = context;
    struct rcpt_intake *intake = fetch->intake;
    bool good = answer->status == 200 && answer->size > 0 && !answer->cut;
    intake->fetches_flying--;
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

void intake_await_certificate(struct delivery *delivery)
{
    struct rcpt_intake *intake = delivery->intake;
    const char *url = delivery->result.certificate_url;
    /* One that is here and was not enough will not become better by asking again. */
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

static void on_confirmed(void *context, const struct rcpt_client_answer *answer)
{
    struct delivery *delivery = context;
    struct rcpt_intake *intake = delivery->intake;
    bool good = answer->status >= 200 && answer->status < 300 && !answer->cut;
    intake->confirmations_flying--;
    if (good)
        rcpt_log_info("intake", "account %s: subscription confirmed", delivery->account->name);
    else
        rcpt_log_warn("intake", "account %s: the subscription could not be confirmed: status %d %s",
                      delivery->account->name, answer->status,
                      answer->cut ? "longer than 64 KiB" : answer->error);
    rcpt_ticket_release(&delivery->ticket, good);
}

void intake_confirm(struct delivery *delivery)
{
    struct rcpt_intake *intake = delivery->intake;
    rcpt_ticket_hold(&delivery->ticket);
    if (intake->confirmations_flying >= MAX_CONFIRMATIONS) { /* the gateway asks again */
        rcpt_ticket_release(&delivery->ticket, false);
        return;
    }
    intake->confirmations_flying++;
    get(intake, delivery->result.confirm_url, on_confirmed, delivery);
}
