/* Requests from any bytes through every adapter. The first byte chooses the gateway, the second one
 * the kind of request and whether it is verified; up to the first NUL byte it is the query, the
 * rest is the body. Everything of the result is touched, and what goes to the topic must be a
 * record that the core takes. The body is read once more as a record of a topic with that form.
 *
 *   make fuzz && build/fuzz/tests/fuzz/fuzz_intake CORPUS
 */
#include <stdlib.h>
#include <string.h>

#include "gateways/gateway.h"
#include "receiptd/base/document.h"
#include "receiptd/core/record.h"
#include "receiptd/gateways/adapter.h"
#include "receiptd/gateways/topics.h"

#define MAX_GATEWAYS 64u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rcpt_ladder *ladder;
static struct rcpt_decoder *decoder;
static struct rcpt_gateway_account *accounts[MAX_GATEWAYS + 1][2];
static struct rcpt_gateway_topics *topics[MAX_GATEWAYS + 1];
static size_t account_count;

static struct rcpt_gateway_account *make_account(const char *gateway, bool verified)
{
    static char secret[] = "secret", url[] = "https://h.example/dlr/a", name[] = "a";
    static char id[] = "{/a/id,id}|{../to,?to}", status[] = "/s", items[] = "/list/*", at[] = "at";
    static char topic[] = "arn:aws:sns:eu-west-1:1:t", word[] = "ok*",
                means[] = "DELIVERED+COMPLAINED";
    static struct rcpt_gateway_pair pair = {word, means, 1, 1};
    static char *secrets[] = {secret};
    char *copy = rcpt_strdup(gateway);
    struct rcpt_gateway_account_config config = {
        .name = name,
        .gateway = copy,
        .verify = verified ? RCPT_GATEWAY_VERIFY_REQUIRED : RCPT_GATEWAY_VERIFY_OFF,
        .secrets = secrets,
        .secrets_count = 1,
        .public_url = url,
        .topic_arn = topic,
        .max_age_ms = 1000,
        .custom = {.id = id,
                   .status = status,
                   .items = items,
                   .at = at,
                   .statuses = &pair,
                   .statuses_count = 1,
                   .time_format = RCPT_GATEWAY_TIME_SHORT},
    };
    struct rcpt_error error;
    struct rcpt_gateway_account *account = rcpt_gateway_account_new(&config, ladder, &error);
    RCPT_ASSERT(account != NULL);
    config.is_topic = true;
    if (!verified)
        topics[account_count] = rcpt_gateway_topics_new(&config, 1, ladder, &error);
    RCPT_ASSERT(topics[account_count] != NULL || verified);
    free(copy);
    return account;
}

static void make_accounts(void)
{
    struct rcpt_error error;
    size_t count;
    const char *const *names = rcpt_gateway_list(&count);
    RCPT_ASSERT(count <= MAX_GATEWAYS);
    ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    RCPT_ASSERT(ladder != NULL);
    decoder = rcpt_decoder_new(ladder, 1);
    for (; account_count <= count; account_count++)
        for (int verified = 0; verified < 2; verified++)
            accounts[account_count][verified] =
                make_account(account_count < count ? names[account_count] : "custom", verified);
}

static const char *no_certificate(void *context, const char *url)
{
    (void)context;
    RCPT_ASSERT(strncmp(url, "https://sns.", 12) == 0);
    return "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
}

static void check_event(const struct rcpt_gateway_account *account,
                        const struct rcpt_gateway_event *event, struct rcpt_arena *arena)
{
    struct rcpt_text id =
        event->message_id.size > 0 ? event->message_id : event->gateway_message_id;
    struct rcpt_text json = rcpt_gateway_event_json(account, event, id, arena);
    struct rcpt_record_input input = {
        .topic = "fuzz", .timestamp_ms = 1, .value = json.at, .value_size = json.size};
    struct rcpt_record *record = rcpt_record_decode(decoder, &input);
    RCPT_ASSERT(record->event_count == 1 && record->reject_count == 0);
    RCPT_ASSERT(record->events[0].id_size == id.size);
    RCPT_ASSERT(memcmp(record->events[0].id, id.at, id.size) == 0);
    rcpt_record_free(record);
}

static void check_result(const struct rcpt_gateway_account *account,
                         const struct rcpt_gateway_request *request,
                         const struct rcpt_gateway_result *result, struct rcpt_arena *arena)
{
    RCPT_ASSERT(rcpt_gateway_verdict_name(result->verdict)[0] != '\0');
    RCPT_ASSERT(result->verdict_reason != NULL && result->answer.code >= 200);
    RCPT_ASSERT(result->confirm_url == NULL ||
                strncmp(result->confirm_url, "https://sns.", 12) == 0);
    for (size_t index = 0; index < result->event_count && index < 200; index++)
        check_event(account, &result->events[index], arena);
    for (size_t index = 0; index < result->drop_count; index++) {
        RCPT_ASSERT(result->drops[index].reason[0] != '\0');
        RCPT_ASSERT(result->drops[index].raw.size <= request->body.size + request->query.size);
    }
}

static void check_smpp(struct rcpt_text text)
{
    struct rcpt_smpp_receipt receipt;
    if (rcpt_smpp_parse(text, &receipt))
        RCPT_ASSERT(receipt.stat.size > 0 && receipt.stat.size < text.size);
}

static void run(const struct rcpt_gateway_account *account, unsigned kind, const char *bytes,
                size_t size)
{
    static const char *const types[] = {"application/json", "application/x-www-form-urlencoded",
                                        "multipart/form-data; boundary=b", "text/plain"};
    const char *end = memchr(bytes, '\0', size);
    size_t query = end != NULL ? (size_t)(end - bytes) : 0;
    size_t begin = end != NULL ? query + 1 : 0;
    struct rcpt_text type = {types[kind % 4], strlen(types[kind % 4])};
    struct rcpt_text body = {bytes + begin, size - begin};
    const struct rcpt_gateway_header headers[] = {
        {{"Content-Type", 12}, type},
        {{"X-Twilio-Signature", 18}, {"AAAA", 4}},
        {{"Authorization", 13}, {bytes, query}},
        {{"MessageBird-Signature-JWT", 25}, {bytes, query}},
    };
    struct rcpt_gateway_request request = {.method = {kind & 8 ? "GET" : "POST", kind & 8 ? 3 : 4},
                                           .tail = {bytes, query < 5 ? query : 0},
                                           .query = {bytes, query},
                                           .headers = headers,
                                           .header_count = sizeof(headers) / sizeof(headers[0]),
                                           .body = body,
                                           .source = {"192.0.2.1", 9},
                                           .received_us = INT64_C(1760789445000000),
                                           .find_certificate = no_certificate};
    struct rcpt_arena arena;
    struct rcpt_gateway_result result;
    rcpt_arena_init(&arena, 65536);
    rcpt_gateway_adapt(account, &request, &arena, &result);
    check_result(account, &request, &result, &arena);
    check_smpp(body);
    rcpt_arena_fini(&arena);
}

/* Events and letters of a record lie inside of it, each at a place of its own. */
static void run_record(struct rcpt_gateway_topics *own, unsigned kind, const char *bytes,
                       size_t size)
{
    const struct rcpt_gateway_header header = {{"ce_specversion", 14}, {"1.0", 3}};
    const struct rcpt_gateway_beside beside = {&header, (kind & 1) != 0, NULL, (kind & 2) != 0};
    struct rcpt_record_input input = {
        .topic = "a", .timestamp_ms = 1, .value = bytes, .value_size = size};
    input.form = rcpt_gateway_topics_form(own, &input, &beside);
    struct rcpt_record *record = rcpt_record_decode(decoder, &input);
    for (uint32_t at = 0; at < record->event_count; at++) {
        const struct rcpt_event *event = &record->events[at];
        RCPT_ASSERT(event->payload + event->payload_size <= record->value_size);
        RCPT_ASSERT(at == 0 || event->index > record->events[at - 1].index);
    }
    for (uint32_t at = 0; at < record->reject_count; at++) {
        const struct rcpt_reject *reject = &record->rejects[at];
        RCPT_ASSERT(rcpt_record_detail(record, reject)[0] != '\0');
        RCPT_ASSERT(reject->index >= 0 || record->reject_count == 1);
        RCPT_ASSERT(reject->receipts > 1 ||
                    reject->payload + reject->payload_size <= record->value_size);
    }
    rcpt_record_free(record);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    if (account_count == 0)
        make_accounts();
    char *bytes = rcpt_malloc(size - 1); /* of its own, so that reading past its end is seen */
    memcpy(bytes, data + 2, size - 2);
    run(accounts[data[0] % account_count][data[1] >> 7], data[1], bytes, size - 2);
    const char *end = memchr(bytes, '\0', size - 2);
    size_t begin = end != NULL ? (size_t)(end - bytes) + 1 : 0;
    run_record(topics[data[0] % account_count], data[1], bytes + begin, size - 2 - begin);
    free(bytes);
    return 0;
}
