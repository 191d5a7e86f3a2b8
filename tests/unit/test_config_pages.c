/* What is shown of the configuration: the printed file, without secrets, the reference page and the
 * example. */
#include <stdio.h>

#include "config_helpers.h"

#include "config/print.h"
#include "folds/internal.h"

static void what_is_printed_loads_as_the_same(void **state)
{
    (void)state;
    static const char *const texts[] = {
        SMALLEST,
        SMALL_LADDER,
        "kafka:\n  brokers: \"a:1,[::1]:2\"\n  topics: [t, \"1\", \"null\"]\n  group: \"yes\"\n"
        "  instance_id: \"~\"\n  properties: {a: \"\", b: \"null\", \"c: d\": \"$${x}$$${\", e: "
        "\"\\n\\te\\u263a\"}\n"
        "  fetch_budget: 1500000\n  commit_interval: 1500ms\n  on_retention_gap: skip\n"
        "postgres: {dsn: \"  host=h  dbname='a b' \", schema: s, retry_min: 1m, retry_max: 60m}\n"
        "lanes: 4\nunknown: dead-letter\nparked: {max_age: 36h}\n"
        "inbox: {table: a.b, columns: {status: state}, targeted: none}\nlog: {format: json}\n",
        SMALLEST "pipelines:\n"
                 "  - name: p\n"
                 "    on: {status: SENT, match: {org: [\"1\", a], campaign: ~}}\n"
                 "    stages: [{name: s, actions: [{wait: 2h}, {produce: t, if: [OPENED]}]}]\n"
                 "folds:\n"
                 "  - name: r\n"
                 "    match: {status: DELIVERED|OPENED}\n"
                 "    group_key: [campaign_id, inbox.city]\n"
                 "    collect: {orgs: {field: org_id, kind: set}}\n"
                 "    funnel: true\n"
                 "    publish: {kafka: {topic: o, key: campaign_id}}\n",
    };
    for (size_t index = 0; index < COUNT_OF(texts); index++) {
        char *once = printed_of(texts[index]), *twice = printed_of(once);
        assert_string_equal(twice, once);
        struct rcpt_config *first = parse_good(texts[index]), *second = parse_good(once);
        assert_string_equal(second->postgres.dsn, first->postgres.dsn);
        assert_string_equal(rcpt_ladder_hash(second->ladder), rcpt_ladder_hash(first->ladder));
        assert_string_equal(second->pipelines, first->pipelines);
        char *rules = folds_rules_text(first), *again = folds_rules_text(second);
        assert_string_equal(again, rules);
        free(rules);
        free(again);
        assert_int_equal(second->kafka.properties_count, first->kafka.properties_count);
        for (unsigned at = 0; at < first->kafka.properties_count; at++) {
            assert_string_equal(second->kafka.properties[at].name,
                                first->kafka.properties[at].name);
            assert_string_equal(second->kafka.properties[at].value,
                                first->kafka.properties[at].value);
        }
        rcpt_config_free(first);
        rcpt_config_free(second);
        free(once);
        free(twice);
    }
}

static void every_key_is_printed(void **state)
{
    (void)state;
    const struct rcpt_config_table *table = rcpt_config_table();
    char *text = printed_of(SMALLEST);
    for (size_t index = 0; index < rcpt_config_count(table); index++) {
        const char *dot = strrchr(rcpt_config_row(table, index)->path, '.');
        char line[128];
        snprintf(line, sizeof(line), "%s%s:", dot != NULL ? " " : "\n",
                 dot != NULL ? dot + 1 : rcpt_config_row(table, index)->path);
        assert_non_null(strstr(text, line));
    }
    assert_non_null(strstr(text, "\n  commit_interval: 5s\n"));
    assert_non_null(strstr(text, "\n  fetch_budget: 32MiB\n"));
    free(text);
}

static void secrets_are_printed_as_redacted(void **state)
{
    (void)state;
    char *text = printed_of(
        "kafka:\n  brokers: b\n  topics: [t]\n  properties:\n"
        "    sasl.username: visible\n    sasl.password: hunter2\n    ssl.key.pem: hunter2\n"
        "    sasl.oauthbearer.client.secret: hunter2\n    SASL.JAAS.CONFIG: hunter2\n"
        "postgres: {dsn: \"host=visible password=hunter2 dbname=d\"}\n"
        "intake: {dsn: \"host=seen password=hunter2\"}\n");
    assert_null(strstr(text, "hunter2"));
    assert_non_null(strstr(text, "sasl.username: visible"));
    assert_non_null(strstr(text, "sasl.password: \"<redacted>\""));
    assert_non_null(strstr(text, "dsn: \"host=visible password=<redacted> dbname=d\""));
    assert_non_null(strstr(text, "dsn: \"host=seen password=<redacted>\""));
    free(text);
}

/* A key that is added with such a name holds a secret: its row has to say so. */
static void assert_named_secrets_are_secrets(const struct rcpt_config_table *table)
{
    static const char *const words[] = {"token", "secret", "password", "dsn"};
    for (size_t index = 0; index < rcpt_config_count(table); index++) {
        const struct rcpt_config_row *row = rcpt_config_row(table, index);
        for (size_t word = 0; word < COUNT_OF(words); word++)
            if (strstr(row->path, words[word]) != NULL && (row->flags & RCPT_CONFIG_SECRET) == 0)
                fail_msg("%s is not marked as a secret", row->path);
        if (row->record != NULL)
            assert_named_secrets_are_secrets(row->record);
    }
}

static void each_key_that_holds_a_secret_is_printed_as_redacted(void **state)
{
    (void)state;
    const struct rcpt_config_table *table = rcpt_config_table();
    assert_named_secrets_are_secrets(table);
    for (size_t index = 0; index < rcpt_config_count(table); index++) {
        const struct rcpt_config_row *row = rcpt_config_row(table, index);
        const char *dot = strchr(row->path, '.');
        char file[512];
        if ((row->flags & RCPT_CONFIG_SECRET) == 0 || row->type != RCPT_CONFIG_TEXT ||
            strcmp(dot, ".dsn") == 0)
            continue;
        assert_null(strchr(dot + 1, '.'));
        snprintf(file, sizeof(file), SMALLEST "%.*s: {%s: hunter2-hunter2-hunter2}\n",
                 (int)(dot - row->path), row->path, dot + 1);
        char *text = printed_of(file);
        assert_null(strstr(text, "hunter2"));
        assert_non_null(strstr(text, "\"<redacted>\""));
        free(text);
    }
}

/* One value of the section's key: as `section: {key: value}`, or within the first record of a list. */
static void write_value(char file[512], const char *list, const char *path, const char *value)
{
    const char *dot = strchr(path, '.');
    if (list != NULL)
        snprintf(file, 512, SMALLEST "%.*s: {%s: [{%s: \"%s\"}]}\n", (int)strcspn(list, "."), list,
                 strchr(list, '.') != NULL ? strchr(list, '.') + 1 : list, path, value);
    else if (dot != NULL)
        snprintf(file, 512, SMALLEST "%.*s: {%s: \"%s\"}\n", (int)(dot - path), path, dot + 1,
                 value);
    else
        snprintf(file, 512, SMALLEST "%s: \"%s\"\n", path, value);
}

/* Neither what is printed nor an error has it. Returns whether the value was taken. */
static bool assert_hidden(const char *file, const char *marker)
{
    struct rcpt_error error = {0};
    char *shown = NULL;
    size_t size = 0;
    struct rcpt_config *config = rcpt_config_parse("f", file, strlen(file), &error);
    if (config != NULL) {
        FILE *out = open_memstream(&shown, &size);
        rcpt_config_print(config, out);
        fclose(out);
    }
    if ((shown != NULL && strstr(shown, marker) != NULL) || strstr(error.text, marker) != NULL ||
        strstr(error.hint, marker) != NULL)
        fail_msg("%s: %s", file, shown != NULL ? shown : error.text);
    bool taken = config != NULL;
    free(shown);
    rcpt_config_free(config);
    return taken;
}

static void assert_urls_are_hidden(const struct rcpt_config_table *table, const char *list,
                                   unsigned *printed, unsigned *refused)
{
    static const char *const forms[] = {"http://user:hunter2@host/path", "https://hunter2@host",
                                        "http://a@b:hunter2@host/",
                                        "other+scheme://user:hunter2@host:1,host2"};
    char file[512];
    for (size_t index = 0; index < rcpt_config_count(table); index++) {
        const struct rcpt_config_row *row = rcpt_config_row(table, index);
        if (row->record != NULL && list == NULL && row->type == RCPT_CONFIG_RECORDS)
            assert_urls_are_hidden(row->record, row->path, printed, refused);
        if (row->type != RCPT_CONFIG_TEXT)
            continue;
        for (size_t form = 0; form < COUNT_OF(forms); form++) {
            write_value(file, list, row->path, forms[form]);
            bool taken = assert_hidden(file, "hunter2");
            assert_false(taken && (row->flags & RCPT_CONFIG_SECRET) == 0);
            *refused += !taken;
        }
        write_value(file, list, row->path, "http://host/path?api_key=hunter2#hunter2");
        *printed += assert_hidden(file, "hunter2");
    }
}

static void no_key_shows_the_credentials_of_a_url(void **state)
{
    (void)state;
    unsigned printed = 0, refused = 0;
    assert_urls_are_hidden(rcpt_config_table(), NULL, &printed, &refused);
    assert_true(printed >= 5 && refused >= 50);
    char *text =
        printed_of(SMALLEST "tracing: {endpoint: \"http://c:4318/v1/traces?key=hunter2\"}\n");
    assert_non_null(strstr(text, "endpoint: \"http://c:4318/v1/traces?<redacted>\""));
    free(text);
    assert_true(assert_hidden(
        "kafka: {brokers: b, topics: [t], properties: {sasl.oauthbearer.token.endpoint.url: "
        "\"https://idp/token?client=hunter2\"}}\npostgres: {dsn: d}\n",
        "hunter2"));
    (void)assert_hidden(
        "kafka: {brokers: b, topics: [t], properties: {sasl.oauthbearer.token.endpoint.url: "
        "\"https://u:hunter2@idp/token\"}}\npostgres: {dsn: d}\n",
        "hunter2");
}

static void passwords_in_connection_strings_are_redacted(void **state)
{
    (void)state;
    static const struct {
        const char *dsn, *shown;
    } cases[] = {
        {"host=h dbname=d", "host=h dbname=d"},
        {" host = h ", " host = h "},
        {"", ""},
        {"password=s", "password=<redacted>"},
        {"host=h password=s user=u", "host=h password=<redacted> user=u"},
        {"host=h PassWord = s user=u", "host=h PassWord = <redacted> user=u"},
        {"password='a b\\' c' user=u", "password=<redacted> user=u"},
        {"password=a\\ b user=u", "password=<redacted> user=u"},
        {"password= user=u", "password= <redacted>"},
        {"sslpassword=s sslkey=/k", "sslpassword=<redacted> sslkey=/k"},
        {"application_name='password=x' password=s",
         "application_name='password=x' password=<redacted>"},
        {"password=my secret", "<redacted>"},
        {"password='s", "<redacted>"},
        {"=s", "<redacted>"},
        {"secret", "<redacted>"},
        {"postgresql://u:s@h:5432/d", "postgresql://u:<redacted>@h:5432/d"},
        {"postgres://u:s@h1:1,h2:2/d?sslmode=require",
         "postgres://u:<redacted>@h1:1,h2:2/d?sslmode=require"},
        {"postgresql://u@h/d", "postgresql://u@h/d"},
        {"postgresql://h:5432,[::1]:5433/d", "postgresql://h:5432,[::1]:5433/d"},
        {"postgresql://", "postgresql://"},
        {"postgresql:///d?host=/run&user=u&password=s&port=1",
         "postgresql:///d?host=/run&user=u&password=<redacted>&port=1"},
        {"postgresql:///d?p%61ssword=s", "postgresql:///d?p%61ssword=<redacted>"},
        {"postgresql:///d?x", "postgresql:///d?x"},
        {"postgresql://u:s/t@h/d", "<redacted>"},
        {"postgresql://u:s@t@h/d", "<redacted>"},
        {"postgresql://u:s?t@h/d", "<redacted>"},
        {"postgresql://u:s", "<redacted>"},
    };
    for (size_t index = 0; index < COUNT_OF(cases); index++) {
        char *shown = rcpt_config_redact_dsn(cases[index].dsn);
        assert_string_equal(shown, cases[index].shown);
        free(shown);
    }
}

/* Compares the file with what the table gives, or writes it for scripts/update-docs. */
static void check_page(const char *path, void (*write)(FILE *out))
{
    char *expected = text_of(write);
    if (getenv("RECEIPTD_UPDATE_DOCS") != NULL) {
        FILE *out = fopen(path, "w");
        assert_non_null(out);
        fputs(expected, out);
        assert_int_equal(fclose(out), 0);
    }
    FILE *in = fopen(path, "r");
    if (in == NULL)
        fail_msg("%s is missing: run scripts/update-docs", path);
    size_t size = strlen(expected);
    char *actual = calloc(1, size + 2);
    size_t got = fread(actual, 1, size + 1, in);
    fclose(in);
    if (got != size || memcmp(actual, expected, size) != 0)
        fail_msg("%s differs from src/config/table.c: run scripts/update-docs", path);
    free(actual);
    free(expected);
}

static void the_reference_page_is_what_the_table_gives(void **state)
{
    (void)state;
    check_page("docs/configuration.md", rcpt_config_write_reference);
}

static void the_example_file_is_what_the_table_gives(void **state)
{
    (void)state;
    check_page("config/receiptd.yaml", rcpt_config_write_example);
}

/* Takes away the # of settings; comments, "# text", stay. */
static void uncomment(char *text)
{
    char *out = text;
    bool fresh = true;
    for (char *at = text; *at != '\0'; at++) {
        bool comment = at[0] == '#' && at[1] == ' ' && at[2] != ' ';
        bool setting = fresh && at[0] == '#' && !comment;
        if (*at == '\n')
            fresh = true;
        else if (*at != ' ')
            fresh = false;
        if (!setting)
            *out++ = *at;
    }
    *out = '\0';
}

static void take_away(char **value, const char *expected)
{
    assert_string_equal(*value, expected);
    free(*value);
    *value = NULL;
}

static void write_file(const char *folder, const char *name, const char *text)
{
    char path[128];
    snprintf(path, sizeof(path), "%s%s", folder, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

/* A folder with a file for each secret that the example names, and for its list of networks. */
static void make_secrets(char folder[64])
{
    static const char *const names[] = {"http-token", "runs-token", "tracing-token", "link-secret",
                                        "intake-dsn", "serve-dsn",  "operate-dsn",   "lookup-dsn"};
    snprintf(folder, 64, "/tmp/receiptd-secrets-XXXXXX");
    assert_non_null(mkdtemp(folder));
    strcat(folder, "/");
    for (size_t index = 0; index < COUNT_OF(names); index++) {
        char text[64];
        snprintf(text, sizeof(text), "the %s of the test\n", names[index]);
        write_file(folder, names[index], text);
    }
    write_file(folder, "dsn", "host=/run/postgresql dbname=receiptd\n");
    write_file(folder, "scanners.txt", "192.0.2.0/24\n");
    setenv("RECEIPTD_SECRETS", folder, 1);
    setenv("RECEIPTD_LISTS", folder, 1);
}

static void remove_secrets(const char *folder)
{
    char command[128];
    unsetenv("RECEIPTD_SECRETS");
    unsetenv("RECEIPTD_LISTS");
    snprintf(command, sizeof(command), "rm -r '%s'", folder);
    assert_int_equal(system(command), 0);
}

static void the_example_gives_the_defaults_also_with_every_setting_taken_in(void **state)
{
    (void)state;
    char *example = text_of(rcpt_config_write_example);
    char folder[64];
    make_secrets(folder);
    char *expected = printed_of(SMALLEST), *active = printed_of(example);
    assert_string_equal(active, expected);
    uncomment(example);
    struct rcpt_config *config = parse_good(example);
    remove_secrets(folder);
    /* Those that have no default stand there with an example. */
    char networks[96];
    snprintf(networks, sizeof(networks), "%sscanners.txt", folder);
    take_away(&config->machine_networks, networks);
    take_away(&config->kafka.instance_id, "receiptd-0");
    take_away(&config->inbox.table, "messaging.outbound");
    take_away(&config->inbox.created_at, "created_at");
    take_away(&config->inbox.recipient, "recipient");
    take_away(&config->inbox.sent_at, "sent_at");
    take_away(&config->inbox.variant, "variant");
    take_away(&config->inbox.channel, "channel");
    take_away(&config->inbox.gateway, "gateway");
    take_away(&config->inbox.customer_id, "customer_id");
    take_away(&config->inbox.logical_id, "logical_id");
    take_away(&config->suppression.subject, "customer_id");
    take_away(&config->intake.topic, "dlr-events");
    take_away(&config->intake.dsn, "the intake-dsn of the test");
    take_away(&config->intake.trusted_proxies, "10.0.0.0/8, ::1");
    take_away(&config->intake.tls_certificate, "/etc/receiptd/tls/fullchain.pem");
    take_away(&config->intake.tls_key, "/etc/receiptd/tls/key.pem");
    take_away(&config->serve.dsn, "the serve-dsn of the test");
    take_away(&config->serve.operate_dsn, "the operate-dsn of the test");
    take_away(&config->serve.link_secret, "the link-secret of the test");
    take_away(&config->serve.hosts, "a.internal");
    take_away(&config->serve.campaigns, "marketing.campaigns");
    take_away(&config->serve.trusted_proxies, "::1");
    take_away(&config->serve.proxy_header, "X-Organisation");
    take_away(&config->http.tls_certificate, "/etc/receiptd/tls.crt");
    take_away(&config->http.tls_key, "/etc/receiptd/tls.key");
    take_away(&config->http.token, "the http-token of the test");
    take_away(&config->http.runs_token, "the runs-token of the test");
    take_away(&config->tracing.endpoint, "http://127.0.0.1:4318/v1/traces");
    take_away(&config->tracing.token, "the tracing-token of the test");
    take_away(&config->stream.topic, "message-status");
    take_away(&config->actions.lookup_dsn, "the lookup-dsn of the test");
    take_away(&config->actions.ca_file, "/etc/ssl/certs/ca-certificates.crt");
    take_away(&config->actions.zone_field, "time_zone");
    char *whole = printed(config);
    assert_string_equal(whole, expected);
    rcpt_config_free(config);
    free(example);
    free(expected);
    free(active);
    free(whole);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_printed_loads_as_the_same),
        cmocka_unit_test(every_key_is_printed),
        cmocka_unit_test(secrets_are_printed_as_redacted),
        cmocka_unit_test(each_key_that_holds_a_secret_is_printed_as_redacted),
        cmocka_unit_test(no_key_shows_the_credentials_of_a_url),
        cmocka_unit_test(passwords_in_connection_strings_are_redacted),
        cmocka_unit_test(the_reference_page_is_what_the_table_gives),
        cmocka_unit_test(the_example_file_is_what_the_table_gives),
        cmocka_unit_test(the_example_gives_the_defaults_also_with_every_setting_taken_in),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
