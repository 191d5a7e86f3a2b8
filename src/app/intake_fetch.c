/* What a gateway's protocol makes us ask for: the certificate that signed a message, and the URL
 * that confirms a subscription. Which hosts may be asked is decided by the adapter. */
#include <stdlib.h>
#include <string.h>

#include "intake.h"
#include "receiptd/http_fetch.h"

#define MAX_BYTES    65536u
#define TIMEOUT_MS   5000
#define TRY_AGAIN_MS 5000
#define MAX_FETCHES  2u /* of the four threads of libuv's pool */

static struct intake_certificate *find(struct rcpt_intake *intake, const char *url)
{
    for (size_t i = 0; i < INTAKE_CERTIFICATES; i++)
        if (intake->certificates[i].url != NULL && strcmp(intake->certificates[i].url, url) == 0)
            return &intake->certificates[i];
    return NULL;
}

const char *intake_find_certificate(void *context, const char *url)
{
    struct intake_certificate *certificate = find(context, url);
    if (certificate == NULL || certificate->pem == NULL)
        return NULL; /* used_ms is that of the failure */
    certificate->used_ms = intake_now(context);
    return certificate->pem;
}

static void forget(struct intake_certificate *certificate)
{
    free(certificate->url);
    free(certificate->pem);
    *certificate = (struct intake_certificate){0};
}

void intake_free_certificates(struct rcpt_intake *intake)
{
    for (size_t i = 0; i < INTAKE_CERTIFICATES; i++)
        forget(&intake->certificates[i]);
}

/* A free place, or that of the one that was needed longest ago. NULL: all are being fetched. */
static struct intake_certificate *take_place(struct rcpt_intake *intake, const char *url)
{
    struct intake_certificate *place = NULL;
    for (size_t i = 0; i < INTAKE_CERTIFICATES; i++) {
        struct intake_certificate *each = &intake->certificates[i];
        if (!each->fetching && (place == NULL || each->used_ms < place->used_ms))
            place = each;
    }
    if (place == NULL)
        return NULL;
    forget(place);
    place->url = rcpt_strdup(url);
    place->intake = intake;
    return place;
}

static void on_certificate(void *context, const struct rcpt_http_fetched *fetched)
{
    struct intake_certificate *certificate = context;
    struct rcpt_intake *intake = certificate->intake;
    struct delivery *delivery = certificate->waiting;
    bool good = fetched->status == 200 && fetched->size > 0;
    intake->fetches--;
    certificate->fetching = false;
    certificate->waiting = NULL;
    certificate->used_ms = intake_now(intake);
    if (good)
        certificate->pem = rcpt_strndup(fetched->bytes, fetched->size);
    else
        rcpt_log_warn("intake", "the certificate %s cannot be had: status %d %s", certificate->url,
                      fetched->status, fetched->error);
    while (delivery != NULL) {
        struct delivery *next = delivery->next;
        if (good)
            intake_adapt_again(delivery);
        else
            intake_refuse(delivery);
        delivery = next;
    }
    intake_flush(intake);
}

void intake_await_certificate(struct delivery *delivery)
{
    struct rcpt_intake *intake = delivery->intake;
    const char *url = delivery->result.certificate_url;
    struct intake_certificate *certificate = find(intake, url);
    bool failed = certificate != NULL && !certificate->fetching && certificate->pem == NULL &&
                  intake_now(intake) - certificate->used_ms < TRY_AGAIN_MS;
    if (certificate == NULL && intake->fetches < MAX_FETCHES)
        certificate = take_place(intake, url);
    /* One that is here and was not enough will not become better by asking again. */
    if (certificate == NULL || failed || certificate->pem != NULL ||
        (!certificate->fetching && intake->fetches >= MAX_FETCHES)) {
        intake_refuse(delivery);
        return;
    }
    delivery->next = certificate->waiting;
    certificate->waiting = delivery;
    if (certificate->fetching)
        return;
    certificate->fetching = true;
    intake->fetches++;
    rcpt_http_fetch(intake->loop, url, MAX_BYTES, TIMEOUT_MS, on_certificate, certificate);
}

/* ---- confirmations ---- */

static void on_confirmed(void *context, const struct rcpt_http_fetched *fetched)
{
    struct delivery *delivery = context;
    struct rcpt_intake *intake = delivery->intake;
    bool good = fetched->status >= 200 && fetched->status < 300;
    intake->fetches--;
    if (good)
        rcpt_log_info("intake", "account %s: subscription confirmed", delivery->account->name);
    else
        rcpt_log_warn("intake", "account %s: the subscription could not be confirmed: status %d %s",
                      delivery->account->name, fetched->status, fetched->error);
    rcpt_ticket_release(&delivery->ticket, good);
}

void intake_confirm(struct delivery *delivery)
{
    struct rcpt_intake *intake = delivery->intake;
    rcpt_ticket_hold(&delivery->ticket);
    if (intake->fetches >= MAX_FETCHES) { /* the gateway asks again */
        rcpt_ticket_release(&delivery->ticket, false);
        return;
    }
    intake->fetches++;
    rcpt_http_fetch(intake->loop, delivery->result.confirm_url, MAX_BYTES, TIMEOUT_MS, on_confirmed,
                    delivery);
}
