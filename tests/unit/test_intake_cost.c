/* Before its verdict a request costs so much for each of its bytes and no more, whoever sends it
 * and whatever it holds: requests that once cost a second of processor or a hundred times their
 * size in memory, through every adapter and every kind of credentials. */
#include "../fuzz/cost.h"
#include "gateways/account.h"
#include "intake_fixture.h"

#define LARGE ((size_t)1 << 18) /* of a megabyte that a body may have */
#define SMALL ((size_t)1 << 13)

/* `unit` over and over between `begin` and `end`. */
static struct rcpt_text fill(const char *begin, const char *unit, const char *end, size_t size)
{
    char *out = rcpt_malloc(size + strlen(begin) + strlen(end) + 1), *at = out;
    at = stpcpy(at, begin);
    while (unit[0] != '\0' && (size_t)(at - out) + strlen(unit) + strlen(end) <= size)
        at = stpcpy(at, unit);
    at = stpcpy(at, end);
    return (struct rcpt_text){out, (size_t)(at - out)};
}

static void let_go(struct rcpt_text text)
{
    char *bytes;
    memcpy(&bytes, &text.at, sizeof(bytes));
    free(bytes);
}

#define MAC "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="
#define SNS                                                                                        \
    "{\"Type\":\"Notification\",\"TopicArn\":\"arn:aws:sns:eu-west-1:1:t\",\"MessageId\":\"1\","
#define SNS_END                                                                                    \
    "\"Timestamp\":\"2025-10-18T12:10:35.000Z\",\"SignatureVersion\":\"2\",\"Signature\":"         \
    "\"AAAA\","                                                                                    \
    "\"SigningCertURL\":\"https://sns.eu-west-1.amazonaws.com/SimpleNotificationService-"          \
    "0123456789abcdef0123456789abcdef.pem\"}"

/* begin, unit, end */
static const char *const bodies[][3] = {
    {"", "", ""},
    {"[", "0,", "0]"},
    {"{\"x\":[", "0,", "0]}"},
    {"{\"signature\":{\"timestamp\":\"1760789441\",\"token\":\"t\",\"signature\":\"" MAC
     "\"},\"x\":[",
     "0,", "0]}"},
    {"{\"sig\":\"0123456789abcdef0123456789abcdef\",\"x\":[", "0,", "0]}"},
    {"{\"sig\":\"0123456789abcdef0123456789abcdef\"", ",\"\\u0061\":\"\\u0026\"", "}"},
    {SNS "\"Message\":\"\",\"x\":[", "0,", "0]," SNS_END},
    {SNS "\"Message\":\"", "\\n", "\"," SNS_END},
    {SNS, "\"Message\":\"\\n\",", SNS_END},
    {SNS "\"Message\":\"\",\"Subject\":\"", "x", "\"," SNS_END},
    {"", "[", ""},
    {"", "{\"a\":", ""},
    {"sig=0123456789abcdef0123456789abcdef", "&a", ""},
    {"sig=0123456789abcdef0123456789abcdef&x=", "%26", ""},
    {"timestamp=1760789441&token=t&signature=" MAC, "&%41=%41", ""},
    {"", "&", ""},
    {"", "%", ""},
    {"--b\r\n", "Content-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--b\r\n", "--"},
    {"--b\r\n", "\r\n--b", "--"},
};
static const char *const credentials[][3] = {
    {"", "", ""},
    {"", ",", ""},
    {MAC, "," MAC, ""},
    {"v1," MAC, " v1," MAC, ""},
    {"Bearer ", ".", "." MAC},
    {"Bearer e30.", "e30", ".AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"},
    {"Basic ", "AAAA", ""},
    {"AAAAAAAAAAAAAAAAAAAAAAAAAAA=", "", ""},
    {MAC, "", ""},
    {"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "", ""},
    {"sha256=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef", "", ""},
    {"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", "",
     ""},
    {"", "AAAA", ""},
};

struct worst {
    double arena, hashed, ns; /* for each byte beyond the constant */
};

static void judge(const struct cost_account *account, const struct cost_input *input,
                  struct worst *worst)
{
    struct cost cost;
    const char *fault = cost_fault_of(account, input, &cost);
    if (fault != NULL)
        fail_msg("%s, auth %d: %s: %zu bytes (\"%.20s\", \"%.20s\") took %zu of memory, %zu hashed "
                 "in %zu digests, %zu keys, %llu ns",
                 account->kind.gateway, (int)account->kind.auth, fault, cost.bytes, input->body.at,
                 input->credentials.at, cost.arena, cost.hashed, cost.digests, cost.keys,
                 (unsigned long long)cost.ns);
    if (cost.verdict == RCPT_GATEWAY_VERIFIED || cost.verdict == RCPT_GATEWAY_UNVERIFIED ||
        cost.bytes < LARGE / 2)
        return;
    double bytes = (double)cost.bytes;
    if ((double)cost.arena / bytes > worst->arena)
        worst->arena = (double)cost.arena / bytes;
    if ((double)cost.hashed / bytes > worst->hashed)
        worst->hashed = (double)cost.hashed / bytes;
    if ((double)cost.ns / bytes > worst->ns)
        worst->ns = (double)cost.ns / bytes;
}

static void judge_inputs(const struct cost_bench *bench, struct cost_input *input)
{
    for (size_t index = 0; index < bench->count; index++) {
        struct worst worst = {0, 0, 0};
        judge(&bench->accounts[index], input, &worst);
        if (bench->accounts[index].account->scheme->verify != rcpt_verify_sns)
            continue;
        input->get = true; /* without the certificate */
        judge(&bench->accounts[index], input, &worst);
        input->get = false;
    }
}

/* A header has 16 KiB at most, a body 1 MiB. */
static void a_stranger_cannot_make_a_request_dear(void **state)
{
    static const char *const types[] = {"application/json", "multipart/form-data; boundary=b"};
    struct cost_bench bench;
    (void)state;
    cost_init(&bench);
    for (size_t body = 0; body < COUNT(bodies); body++) {
        for (size_t each = 0; each < COUNT(credentials); each++) {
            struct cost_input input = {
                .type = rcpt_text_of(types[bodies[body][0][0] == '-']),
                .credentials = fill(credentials[each][0], credentials[each][1],
                                    credentials[each][2], credentials[each][1][0] ? 16384 : 0),
                .body = fill(bodies[body][0], bodies[body][1], bodies[body][2],
                             bodies[body][1][0] == '\0' ? 0
                             : each == 0                ? LARGE
                                                        : SMALL)};
            judge_inputs(&bench, &input);
            let_go(input.credentials);
            let_go(input.body);
        }
    }
    cost_fini(&bench);
}

static void a_long_query_and_a_long_path_are_not_dear(void **state)
{
    static const char *const queries[][3] = {
        {"sig=0123456789abcdef0123456789abcdef", "&a", ""},
        {"sig=" MAC "&X-Signature=", "%41", ""},
        {"", "&a=%26", "&sig=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},
        {"X-Signature=1&campaign_id=", "x",
         "&sig=0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"},
        {"hub.mode=subscribe&hub.challenge=1&hub.verify_token=", "x", ""},
        {"bodySHA256=", "0", ""},
    };
    struct cost_bench bench;
    (void)state;
    cost_init(&bench);
    for (size_t index = 0; index < COUNT(queries); index++) {
        for (size_t each = 0; each < COUNT(credentials); each++) {
            struct cost_input input = {
                .type = RCPT_TEXT("application/x-www-form-urlencoded"),
                .credentials = fill(credentials[each][0], credentials[each][1],
                                    credentials[each][2], credentials[each][1][0] ? 16384 : 0),
                .query = fill(queries[index][0], queries[index][1], queries[index][2], 65536),
                .tail = fill("/", "%41/", "x", 16384)};
            judge_inputs(&bench, &input);
            let_go(input.credentials);
            let_go(input.query);
            let_go(input.tail);
        }
    }
    cost_fini(&bench);
}

/* How much each costs; the figures are for people, the bounds above are the test. */
static void what_each_adapter_costs_is_told(void **state)
{
    struct cost_bench bench;
    (void)state;
    cost_init(&bench);
    for (size_t index = 0; index < bench.count; index++) {
        struct worst worst = {0, 0, 0};
        for (size_t body = 1; body < COUNT(bodies); body++) {
            struct cost_input input = {
                .type = RCPT_TEXT("application/json"),
                .credentials = RCPT_TEXT(MAC),
                .body = fill(bodies[body][0], bodies[body][1], bodies[body][2], LARGE / 2 + 1000)};
            judge(&bench.accounts[index], &input, &worst);
            let_go(input.body);
        }
        print_message("%-18s auth %2d: per byte %5.2f of memory, %5.2f hashed, %6.1f ns\n",
                      bench.accounts[index].kind.gateway, (int)bench.accounts[index].kind.auth,
                      worst.arena, worst.hashed, worst.ns);
    }
    cost_fini(&bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stranger_cannot_make_a_request_dear),
        cmocka_unit_test(a_long_query_and_a_long_path_are_not_dear),
        cmocka_unit_test(what_each_adapter_costs_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
