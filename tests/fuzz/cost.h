/* What a request may cost before its verdict, for the unit test and for the fuzz target: an account
 * of every gateway and of every kind of credentials, and bounds on memory, digests and time. */
#ifndef RECEIPTD_TESTS_FUZZ_COST_H
#define RECEIPTD_TESTS_FUZZ_COST_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "gateways/crypto.h"
#include "gateways/gateway.h"
#include "receiptd/gateways/adapter.h"

#define COST_ARENA_BYTES     65536u
#define COST_ARENA_PER_BYTE  4u
#define COST_HASHED_BYTES    8192u
#define COST_HASHED_PER_BYTE 8u /* two secrets, two forms of the URL, two kinds of digest */
#define COST_DIGESTS         20u
#define COST_KEYS            2u       /* public-key operations: one per secret */
#define COST_NS              3000000u /* two of those and a certificate, on a slow machine */
#define COST_NS_PER_BYTE     2000u
#define COST_ACCOUNTS        64u

/* Credentials go into the first header; the others are as they should be. */
struct cost_case {
    const char *gateway;
    enum rcpt_gateway_auth auth;
    const char *header;
    const char *others[2][2];
};

static const struct cost_case cost_cases[] = {
    {"twilio", RCPT_GATEWAY_AUTH_GATEWAY, "X-Twilio-Signature", {{NULL}}},
    {"plivo",
     RCPT_GATEWAY_AUTH_GATEWAY,
     "X-Plivo-Signature-V3",
     {{"X-Plivo-Signature-V3-Nonce", "12345"}}},
    {"plivo",
     RCPT_GATEWAY_AUTH_GATEWAY,
     "X-Plivo-Signature-V2",
     {{"X-Plivo-Signature-V2-Nonce", "12345"}}},
    {"messagebird", RCPT_GATEWAY_AUTH_GATEWAY, "MessageBird-Signature-JWT", {{NULL}}},
    {"vonage_messages", RCPT_GATEWAY_AUTH_GATEWAY, "Authorization", {{NULL}}},
    {"sendgrid",
     RCPT_GATEWAY_AUTH_GATEWAY,
     "X-Twilio-Email-Event-Webhook-Signature",
     {{"X-Twilio-Email-Event-Webhook-Timestamp", "1760789441"}}},
    {"whatsapp_cloud", RCPT_GATEWAY_AUTH_GATEWAY, "X-Hub-Signature-256", {{NULL}}},
    {"viber", RCPT_GATEWAY_AUTH_GATEWAY, "X-Viber-Content-Signature", {{NULL}}},
    {"line", RCPT_GATEWAY_AUTH_GATEWAY, "x-line-signature", {{NULL}}},
    {"custom", RCPT_GATEWAY_AUTH_HMAC_HEX, "X-Signature", {{NULL}}},
    {"custom", RCPT_GATEWAY_AUTH_HMAC_BASE64, "X-Signature", {{NULL}}},
    {"custom", RCPT_GATEWAY_AUTH_HEADER, "X-Signature", {{NULL}}},
    {"custom", RCPT_GATEWAY_AUTH_QUERY, "X-Other", {{NULL}}},
    {"custom", RCPT_GATEWAY_AUTH_BASIC, "Authorization", {{NULL}}},
    {"custom", RCPT_GATEWAY_AUTH_BEARER, "Authorization", {{NULL}}},
    {"custom", RCPT_GATEWAY_AUTH_URL_HMAC, "X-Other", {{NULL}}},
    {"custom",
     RCPT_GATEWAY_AUTH_TELNYX,
     "telnyx-signature-ed25519",
     {{"telnyx-timestamp", "1760789441"}}},
    {"custom",
     RCPT_GATEWAY_AUTH_STANDARD,
     "webhook-signature",
     {{"webhook-id", "m"}, {"webhook-timestamp", "1760789441"}}},
};
#define COST_CASES (sizeof(cost_cases) / sizeof(cost_cases[0]))

struct cost_account {
    struct rcpt_gateway_account *account;
    struct cost_case kind;
};

struct cost_bench {
    struct rcpt_ladder *ladder;
    struct cost_account accounts[COST_ACCOUNTS];
    size_t count;
};

static inline void cost_add(struct cost_bench *bench, const struct cost_case *kind)
{
    static char one[] = "c2VjcmV0LW9mLTMyLWJ5dGVzLXRoYXQtaXMtb25lIQA=",
                key[] = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEQDxFEBpPZI1UylH6jnrBI3HLLuBq4H+Vxca"
                        "XBXlhDPheuBzPD2pqYtN80rsUM2DrcFfUi7NY/Rqy4v1ISApASg==",
                url[] = "https://h.example/dlr/a", name[] = "a", header[] = "X-Signature",
                token[] = "tok", topic[] = "arn:aws:sns:eu-west-1:1:t", id[] = "id",
                status[] = "status", word[] = "ok", value[] = "DELIVERED";
    static struct rcpt_gateway_pair pair = {word, value, 1, 1};
    static char *secrets[] = {one, key};
    char *gateway = rcpt_strdup(kind->gateway);
    struct rcpt_gateway_account_config config = {
        .name = name,
        .gateway = gateway,
        .auth = kind->auth,
        .auth_name = header,
        .secrets = secrets,
        .secrets_count = 2,
        .public_url = url,
        .verify_token = token,
        .topic_arn = topic,
        .plivo_v2 = true,
        .max_age_ms = 1000,
        .custom = {.id = id, .status = status, .statuses = &pair, .statuses_count = 1}};
    struct rcpt_error error;
    RCPT_ASSERT(bench->count < COST_ACCOUNTS);
    struct cost_account *account = &bench->accounts[bench->count++];
    account->kind = *kind;
    account->account = rcpt_gateway_account_new(&config, bench->ladder, &error);
    RCPT_ASSERT(account->account != NULL);
    free(gateway);
}

/* The cases above, and every other gateway with what it does by itself. */
static inline void cost_init(struct cost_bench *bench)
{
    struct rcpt_error error;
    size_t count;
    const char *const *names = rcpt_gateway_list(&count);
    memset(bench, 0, sizeof(*bench));
    bench->ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    RCPT_ASSERT(bench->ladder != NULL);
    for (size_t index = 0; index < COST_CASES; index++)
        cost_add(bench, &cost_cases[index]);
    for (size_t index = 0; index < count; index++)
        cost_add(bench, &(struct cost_case){
                            names[index], RCPT_GATEWAY_AUTH_GATEWAY, "Authorization", {{NULL}}});
}

static inline void cost_fini(struct cost_bench *bench)
{
    for (size_t index = 0; index < bench->count; index++)
        rcpt_gateway_account_free(bench->accounts[index].account);
    rcpt_ladder_free(bench->ladder);
}

/* ---- one request ---- */

struct cost_input {
    bool get;
    struct rcpt_text type, tail, query, credentials, body;
};

struct cost {
    enum rcpt_gateway_verdict verdict;
    size_t bytes, arena, hashed, digests, keys;
    uint64_t ns;
};

static inline uint64_t cost_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static inline const char *cost_certificate(void *context, const char *url)
{
    (void)url;
    return *(const bool *)context ? NULL : "-----BEGIN CERTIFICATE-----\nAAAA\n";
}

static inline struct cost cost_of(const struct cost_account *account,
                                  const struct cost_input *input)
{
    struct rcpt_gateway_header headers[4] = {
        {RCPT_TEXT("Content-Type"), input->type},
        {rcpt_text_of(account->kind.header), input->credentials}};
    struct rcpt_gateway_request request = {.method =
                                               input->get ? RCPT_TEXT("GET") : RCPT_TEXT("POST"),
                                           .tail = input->tail,
                                           .query = input->query,
                                           .headers = headers,
                                           .header_count = 2,
                                           .body = input->body,
                                           .source = RCPT_TEXT("192.0.2.1"),
                                           .received_us = INT64_C(1760789445000000),
                                           .find_certificate = cost_certificate};
    bool get = input->get;
    request.context = &get;
    for (size_t index = 0; index < 2 && account->kind.others[index][0] != NULL; index++)
        headers[request.header_count++] =
            (struct rcpt_gateway_header){rcpt_text_of(account->kind.others[index][0]),
                                         rcpt_text_of(account->kind.others[index][1])};
    struct cost cost = {.bytes = input->type.size + input->tail.size + input->query.size +
                                 input->credentials.size + input->body.size};
    struct rcpt_arena arena;
    struct rcpt_gateway_result result;
    rcpt_arena_init(&arena, 1024);
    struct rcpt_crypto_work before = rcpt_crypto_work();
    uint64_t begun = cost_clock();
    rcpt_gateway_adapt(account->account, &request, &arena, &result);
    cost.ns = cost_clock() - begun;
    struct rcpt_crypto_work after = rcpt_crypto_work();
    cost.verdict = result.verdict;
    cost.arena = rcpt_arena_bytes(&arena);
    cost.hashed = after.bytes - before.bytes;
    cost.digests = after.digests - before.digests;
    cost.keys = after.keys - before.keys;
    rcpt_arena_fini(&arena);
    return cost;
}

/* What is out of bounds; NULL: nothing. What was verified may cost what it holds. */
static inline const char *cost_fault(const struct cost *cost)
{
    if (cost->verdict == RCPT_GATEWAY_VERIFIED || cost->verdict == RCPT_GATEWAY_UNVERIFIED)
        return NULL;
    if (cost->arena > COST_ARENA_BYTES + COST_ARENA_PER_BYTE * cost->bytes)
        return "memory";
    if (cost->hashed > COST_HASHED_BYTES + COST_HASHED_PER_BYTE * cost->bytes)
        return "bytes hashed";
    if (cost->digests > COST_DIGESTS)
        return "digests";
    if (cost->keys > COST_KEYS)
        return "public keys";
#ifdef __SANITIZE_THREAD__
    return NULL; /* its memmem() looks at the whole text, however early it finds something */
#else
    return cost->ns > COST_NS + (uint64_t)COST_NS_PER_BYTE * cost->bytes ? "time" : NULL;
#endif
}

/* Time is measured again before it counts: the machine may have been busy. */
static inline const char *cost_fault_of(const struct cost_account *account,
                                        const struct cost_input *input, struct cost *cost)
{
    const char *fault = NULL;
    for (int round = 0; round < 5; round++) {
        *cost = cost_of(account, input);
        fault = cost_fault(cost);
        if (fault == NULL || strcmp(fault, "time") != 0)
            break;
    }
    return fault;
}

#endif
