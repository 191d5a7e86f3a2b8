/* Settings that work and are weak: each is told with its key and what to do, what is strong is not,
 * and no text holds a secret. */
#include <sys/stat.h>
#include <unistd.h>

#include "config_helpers.h"

#define LONG_SECRET   "0123456789abcdef"
#define FAR           "kafka: {brokers: 'b1.example:9093,b2.example', topics: [t], properties: "
#define LOCAL_DSN     "postgres: {dsn: 'host=/run/postgresql'}\n"
#define SAFE          FAR "{security.protocol: SASL_SSL}}\n"
#define NEAR          "kafka: {brokers: 'localhost:9092, [::1]:9092,127.0.0.2', topics: [t]}\n"
#define ACCOUNT       NEAR LOCAL_DSN "intake: {alias: 'off', accounts: [{name: acme, "
#define OPEN_INTAKE   NEAR LOCAL_DSN "intake: {alias: 'off', listen: ':8080', metrics_listen: '', "
#define ENDPOINT(url) NEAR LOCAL_DSN "actions: {endpoints: [{name: crm, url: '" url "'}]}\n"

struct weak_case {
    const char *text;
    const char *told[3]; /* "key: part of the text", all that is to be told; NULL ends */
};

/* The secrets of these are noted as literal ones too; that is a case of its own. */
static const struct weak_case cases[] = {
    {NEAR LOCAL_DSN, {NULL}},
    /* PostgreSQL */
    {NEAR "postgres: {dsn: 'host=db.example'}\n", {"postgres.dsn: sslmode does not check it"}},
    {NEAR "postgres: {dsn: 'host=db.example sslmode=disable'}\n", {"postgres.dsn: sslmode"}},
    {NEAR "postgres: {dsn: 'host=db.example sslmode=allow'}\n", {"postgres.dsn: sslmode"}},
    {NEAR "postgres: {dsn: 'host=db.example sslmode=prefer'}\n", {"postgres.dsn: sslmode"}},
    {NEAR "postgres: {dsn: 'host=db.example sslmode=require'}\n", {"postgres.dsn: sslmode"}},
    {NEAR "postgres: {dsn: 'postgresql://db.example/x?sslmode=require'}\n",
     {"postgres.dsn: sslmode"}},
    {NEAR "postgres: {dsn: 'host=localhost,db.example'}\n", {"postgres.dsn: sslmode"}},
    {NEAR "postgres: {dsn: 'host=localhost hostaddr=192.0.2.1'}\n", {"postgres.dsn: sslmode"}},
    {NEAR "postgres: {dsn: 'host=db.example sslmode=verify-full'}\n", {NULL}},
    {NEAR "postgres: {dsn: 'host=db.example sslmode=verify-ca'}\n", {NULL}},
    {NEAR "postgres: {dsn: 'host=127.0.0.1,::1,localhost,/run/x'}\n", {NULL}},
    {NEAR "postgres: {dsn: 'dbname=x'}\n", {NULL}},
    {NEAR "postgres: {dsn: 'service=x'}\n", {NULL}},
    {NEAR "postgres: {dsn: 'host=/run/x password=hunter2'}\n",
     {"postgres.dsn: fewer than 16 bytes"}},
    {NEAR "postgres: {dsn: 'host=/run/x password=" LONG_SECRET "'}\n", {NULL}},
    /* Kafka */
    {FAR "{}}\n" LOCAL_DSN, {"kafka.properties.security.protocol: clear text"}},
    {FAR "{security.protocol: SASL_PLAINTEXT}}\n" LOCAL_DSN,
     {"kafka.properties.security.protocol: clear text"}},
    {FAR "{security.protocol: plaintext}}\n" LOCAL_DSN,
     {"kafka.properties.security.protocol: clear text"}},
    {"kafka: {brokers: 'localhost:9092,b.example:9092', topics: [t]}\n" LOCAL_DSN,
     {"kafka.properties.security.protocol: clear text"}},
    {SAFE LOCAL_DSN, {NULL}},
    {FAR "{security.protocol: ssl}}\n" LOCAL_DSN, {NULL}},
    {FAR "{security.protocol: ssl, enable.ssl.certificate.verification: 'FALSE'}}\n" LOCAL_DSN,
     {"kafka.properties.enable.ssl.certificate.verification: anybody may answer"}},
    {FAR "{security.protocol: ssl, ssl.endpoint.identification.algorithm: none}}\n" LOCAL_DSN,
     {"kafka.properties.ssl.endpoint.identification.algorithm: any certificate"}},
    /* pages */
    {NEAR LOCAL_DSN "http: {listen: '0.0.0.0:9464'}\n",
     {"http.listen: reads /metrics", "http.listen: clear text"}},
    {NEAR LOCAL_DSN "http: {listen: ':9464', token: " LONG_SECRET "}\n",
     {"http.listen: clear text"}},
    {NEAR LOCAL_DSN "http: {listen: '[::]:9464', token: " LONG_SECRET
                    ", tls_certificate: /c, tls_key: /k}\n",
     {NULL}},
    {NEAR LOCAL_DSN "http: {listen: '[::1]:9464'}\n", {NULL}},
    {NEAR LOCAL_DSN "http: {listen: 'localhost:9464'}\n", {NULL}},
    {NEAR LOCAL_DSN "http: {listen: ''}\n", {NULL}},
    /* accounts */
    {ACCOUNT "gateway: kannel, verify: 'off'}]}\n", {"intake.accounts.acme.verify: off: anybody"}},
    {ACCOUNT "gateway: kannel, verify: optional, secrets: [" LONG_SECRET "]}]}\n",
     {"intake.accounts.acme.verify: leaving credentials out"}},
    {ACCOUNT "gateway: kannel, verify: 'off', allow: [192.0.2.1]}]}\n", {NULL}},
    {ACCOUNT "gateway: kannel, secrets: [" LONG_SECRET "]}]}\n", {NULL}},
    {ACCOUNT "gateway: kannel, auth: query, auth_name: t, secrets: [" LONG_SECRET "]}]}\n", {NULL}},
    {OPEN_INTAKE "accounts: [{name: acme, gateway: kannel, auth: query, auth_name: t, secrets: "
                 "[" LONG_SECRET "]}]}\n",
     {"intake.listen: clear text", "intake.accounts.acme.auth: secret is in the request"}},
    {OPEN_INTAKE "accounts: [{name: acme, gateway: kannel, auth: hmac-hex, auth_name: t, secrets: "
                 "[" LONG_SECRET "]}]}\n",
     {"intake.listen: clear text"}},
    {OPEN_INTAKE "trusted_proxies: '10.0.0.0/8', accounts: [{name: acme, gateway: kannel, auth: "
                 "query, auth_name: t, secrets: [" LONG_SECRET "]}]}\n",
     {NULL}},
    {OPEN_INTAKE "tls: {certificate: /c}, accounts: [{name: acme, gateway: kannel, auth: query, "
                 "auth_name: t, secrets: [" LONG_SECRET "]}]}\n",
     {NULL}},
    {NEAR LOCAL_DSN
     "intake: {alias: 'off', metrics_listen: '0.0.0.0:9465', accounts: [{name: acme, gateway: "
     "kannel, secrets: [" LONG_SECRET "]}]}\n",
     {"intake.metrics_listen: reads /metrics", "intake.metrics_listen: clear text"}},
    {NEAR LOCAL_DSN "intake: {accounts: [{name: acme, gateway: kannel, secrets: [" LONG_SECRET
                    "]}]}\n",
     {"intake.dsn: not set"}},
    {NEAR LOCAL_DSN "intake: {dsn: 'host=db.example', accounts: [{name: acme, gateway: kannel, "
                    "secrets: [" LONG_SECRET "]}]}\n",
     {"intake.dsn: sslmode"}},
    {ACCOUNT "gateway: line, unsigned_ids: true, secrets: [" LONG_SECRET "]}]}\n",
     {"intake.accounts.acme.unsigned_ids: no signature covers"}},
    /* secrets */
    {ACCOUNT "gateway: kannel, secrets: [" LONG_SECRET ", hunter2]}]}\n",
     {"intake.accounts.acme.secrets: a secret has 7 bytes"}},
    {NEAR LOCAL_DSN "tracing: {endpoint: 'http://127.0.0.1:4318/', token: hunter2}\n",
     {"tracing.token: a secret has 7 bytes"}},
    {"kafka: {brokers: localhost, topics: [t], properties: {sasl.password: hunter2}}\n" LOCAL_DSN,
     {"kafka.properties.sasl.password: a secret has 7 bytes"}},
    {ACCOUNT "gateway: kannel, secrets: [" LONG_SECRET "]}, {name: bird, gateway: kannel, "
             "secrets: [" LONG_SECRET "]}]}\n",
     {"intake.accounts.bird.secrets: that of intake.accounts.acme.secrets"}},
    {ACCOUNT "gateway: kannel, secrets: [" LONG_SECRET "]}]}\nhttp: {token: " LONG_SECRET "}\n",
     {"intake.accounts.acme.secrets: that of http.token"}},
    {NEAR LOCAL_DSN "http: {token: " LONG_SECRET ", runs_token: " LONG_SECRET "}\n",
     {"http.token: that of http.runs_token"}},
    /* endpoints */
    {ENDPOINT("http://crm.example/hook"), {"actions.endpoints.crm.url: clear text"}},
    {ENDPOINT("http://8.8.8.8:80/hook"), {"actions.endpoints.crm.url: clear text"}},
    {ENDPOINT("http://[2606:4700::1111]/hook"), {"actions.endpoints.crm.url: clear text"}},
    {ENDPOINT("https://crm.example/hook"), {NULL}},
    {ENDPOINT("http://10.1.2.3:8080/hook"), {NULL}},
    {ENDPOINT("http://[::1]:8080/hook"), {NULL}},
    {ENDPOINT("http://localhost/hook"), {NULL}},
    {NEAR LOCAL_DSN "actions: {allow_private: true}\n",
     {"actions.allow_private: machines of your own"}},
    {NEAR LOCAL_DSN "tracing: {endpoint: 'http://traces.example/', token: " LONG_SECRET "}\n",
     {"tracing.endpoint: clear text"}},
};

struct heard {
    char texts[8][512];
    unsigned count;
};

/* What came from the literals of a case is left out. */
static void hear(void *context, const char *key, const char *what, const char *hint)
{
    struct heard *heard = context;
    assert_true(key[0] != '\0' && what[0] != '\0' && hint[0] != '\0');
    assert_null(strstr(what, "hunter2"));
    assert_null(strstr(what, LONG_SECRET));
    if (strstr(what, "stands in the configuration itself") != NULL)
        return;
    assert_true(heard->count < COUNT_OF(heard->texts));
    snprintf(heard->texts[heard->count++], sizeof(heard->texts[0]), "%s: %s", key, what);
}

static bool is_told(const struct heard *heard, const char *wanted)
{
    const char *part = strstr(wanted, ": ") + 2;
    size_t key = (size_t)(part - wanted);
    for (unsigned index = 0; index < heard->count; index++)
        if (strncmp(heard->texts[index], wanted, key) == 0 &&
            strstr(heard->texts[index] + key, part) != NULL)
            return true;
    return false;
}

static void each_weak_setting_is_told_and_no_other(void **state)
{
    (void)state;
    for (size_t index = 0; index < COUNT_OF(cases); index++) {
        struct heard heard = {.count = 0};
        unsigned wanted = 0;
        struct rcpt_config *config = parse_good(cases[index].text);
        rcpt_config_find_weak(config, hear, &heard);
        for (; wanted < COUNT_OF(cases[index].told) && cases[index].told[wanted] != NULL; wanted++)
            if (!is_told(&heard, cases[index].told[wanted]))
                fail_msg("not told: %s\n%s%s", cases[index].told[wanted], cases[index].text,
                         heard.count > 0 ? heard.texts[0] : "");
        if (heard.count != wanted)
            fail_msg("%u told, not %u:\n%s%s", heard.count, wanted, cases[index].text,
                     heard.texts[heard.count - 1]);
        rcpt_config_free(config);
    }
}

/* ---- where a secret comes from ---- */

static void hear_all(void *context, const char *key, const char *what, const char *hint)
{
    char *text = context;
    (void)hint;
    if (strcmp(key, "tracing.token") == 0)
        strcat(text, what);
}

static void expect_source(const char *value, const char *part)
{
    char text[512] = "", file[1024];
    snprintf(file, sizeof(file), NEAR LOCAL_DSN "tracing: {token: \"%s\"}\n", value);
    struct rcpt_config *config = parse_good(file);
    assert_string_equal(config->tracing.token, LONG_SECRET);
    rcpt_config_find_weak(config, hear_all, text);
    if (part == NULL ? text[0] != '\0' : strstr(text, part) == NULL)
        fail_msg("%s: \"%s\"", value, text);
    rcpt_config_free(config);
}

static void a_default_in_the_file_is_a_secret_in_the_file(void **state)
{
    (void)state;
    unsetenv("TEST_WEAK_UNSET");
    setenv("TEST_WEAK_EMPTY", "", 1);
    setenv("TEST_WEAK_SET", LONG_SECRET, 1);
    expect_source(LONG_SECRET, "stands in the configuration itself");
    expect_source("${TEST_WEAK_UNSET:-" LONG_SECRET "}", "stands in the configuration itself");
    expect_source("${TEST_WEAK_EMPTY:-" LONG_SECRET "}", "stands in the configuration itself");
    expect_source("${TEST_WEAK_SET:-other}", "is in the environment");
    expect_source("${TEST_WEAK_SET}", "is in the environment");
    expect_source("${TEST_WEAK_EMPTY:-}${TEST_WEAK_SET}", "is in the environment");
}

static void a_file_that_everybody_may_read_is_told(void **state)
{
    (void)state;
    static const struct {
        mode_t mode;
        bool told;
    } modes[] = {{0400, false}, {0600, false}, {0440, false}, {0640, false},
                 {0644, true},  {0604, true},  {0602, true}};
    char path[] = "/tmp/receiptd-weak-XXXXXX", value[64];
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, LONG_SECRET "\n", 17), 17);
    close(fd);
    snprintf(value, sizeof(value), "file:%s", path);
    for (size_t index = 0; index < COUNT_OF(modes); index++) {
        assert_int_equal(chmod(path, modes[index].mode), 0);
        expect_source(value, modes[index].told ? "every user of this machine may read" : NULL);
    }
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_weak_setting_is_told_and_no_other),
        cmocka_unit_test(a_default_in_the_file_is_a_secret_in_the_file),
        cmocka_unit_test(a_file_that_everybody_may_read_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
