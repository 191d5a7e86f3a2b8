/* From a dsn to the parameters that libpq gets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "postgres/conninfo.h"

static uv_loop_t loop;

static void never(void *context)
{
    (void)context;
    fail();
}

static struct rcpt_pg_settings settings_of(const char *dsn)
{
    return (struct rcpt_pg_settings){
        .name = "lane-0",
        .instance = "host-1",
        .dsn = dsn,
        .schema = "receiptd",
        .lock_timeout_ms = 5000,
        .statement_timeout_ms = 30000,
    };
}

static void build(const char *dsn, size_t rotation, bool stable, struct rcpt_conninfo *info)
{
    struct rcpt_pg_settings settings = settings_of(dsn);
    struct rcpt_hosts hosts, candidates;
    struct rcpt_error error;
    assert_true(rcpt_conninfo_hosts(dsn, &hosts, &error));
    struct rcpt_resolver *resolver = rcpt_resolver_start(&loop, &hosts, never, NULL);
    assert_true(rcpt_resolver_is_done(resolver));
    assert_true(rcpt_resolver_candidates(resolver, rotation, &candidates, &error));
    assert_true(rcpt_conninfo_init(info, &settings, &candidates, stable, &error));
    rcpt_hosts_fini(&candidates);
    rcpt_resolver_free(resolver);
}

#define assert_value(info, keyword, expected)                                                      \
    assert_string_equal(rcpt_conninfo_value(&(info), keyword), expected)

static void what_the_dsn_does_not_say_is_added(void **state)
{
    (void)state;
    struct rcpt_conninfo info;
    build("host=/run/x dbname=d", 0, true, &info);
    assert_value(info, "host", "/run/x");
    assert_null(rcpt_conninfo_value(&info, "hostaddr"));
    assert_null(rcpt_conninfo_value(&info, "target_session_attrs"));
    assert_value(info, "dbname", "d");
    assert_value(info, "application_name", "receiptd/host-1/lane-0");
    assert_value(info, "client_encoding", "UTF8");
    assert_value(info, "gssencmode", "disable");
    assert_value(info, "keepalives_idle", "10");
    assert_value(info, "tcp_user_timeout", "15000");
    const char *options = rcpt_conninfo_value(&info, "options");
    assert_non_null(strstr(options, "-c search_path=\"receiptd\",pg_temp"));
    assert_non_null(strstr(options, "-c synchronous_commit=off -c lock_timeout=5000"));
    assert_non_null(strstr(options, "-c enable_seqscan=off"));
    rcpt_conninfo_fini(&info);
}

static void what_the_dsn_says_is_kept(void **state)
{
    (void)state;
    struct rcpt_conninfo info;
    build("postgresql://u:p%20w@127.0.0.1:7777/d?application_name=mine&keepalives_idle=3"
          "&options=-c%20work_mem%3D8MB",
          0, false, &info);
    assert_value(info, "user", "u");
    assert_value(info, "password", "p w");
    assert_value(info, "host", "127.0.0.1");
    assert_value(info, "hostaddr", "127.0.0.1");
    assert_value(info, "port", "7777");
    assert_value(info, "application_name", "receiptd/host-1/lane-0"); /* but this is ours */
    assert_value(info, "keepalives_idle", "3");
    const char *options = rcpt_conninfo_value(&info, "options");
    assert_ptr_equal(strstr(options, "-c work_mem=8MB -c search_path"), options);
    assert_null(strstr(options, "enable_seqscan"));
    rcpt_conninfo_fini(&info);
}

static void several_hosts_mean_the_one_that_can_write(void **state)
{
    (void)state;
    struct rcpt_conninfo info;
    build("host=10.0.0.1,/sock,::1 port=1,2,3", 0, false, &info);
    assert_value(info, "host", "10.0.0.1,/sock,::1");
    assert_value(info, "hostaddr", "10.0.0.1,,::1");
    assert_value(info, "port", "1,2,3");
    assert_value(info, "target_session_attrs", "read-write");
    rcpt_conninfo_fini(&info);
    build("host=10.0.0.1,10.0.0.2 port=1 target_session_attrs=any", 1, false, &info);
    assert_value(info, "host", "10.0.0.2,10.0.0.1");
    assert_value(info, "port", "1,1");
    assert_value(info, "target_session_attrs", "any");
    rcpt_conninfo_fini(&info);
    build("host=db.example hostaddr=10.0.0.1", 0, false,
          &info); /* the name stays for certificates */
    assert_value(info, "host", "db.example");
    assert_value(info, "hostaddr", "10.0.0.1");
    rcpt_conninfo_fini(&info);
}

static void a_bad_dsn_is_refused_without_quoting_it(void **state)
{
    (void)state;
    static const char *const rows[] = {"host=a password", "postgresql://u:sec%ret@h/d",
                                       "host=a,b port=1,2,3", "host=a hostaddr=1.1.1.1,1.1.1.2",
                                       "sekret=1"};
    for (size_t index = 0; index < sizeof(rows) / sizeof(rows[0]); index++) {
        struct rcpt_hosts hosts;
        struct rcpt_error error;
        assert_false(rcpt_conninfo_hosts(rows[index], &hosts, &error));
        assert_string_equal(error.code, "RDDSN");
        assert_null(strstr(error.text, "sec"));
    }
}

static int clean_environment(void **state)
{
    (void)state;
    unsetenv("PGHOST");
    unsetenv("PGHOSTADDR");
    unsetenv("PGPORT");
    unsetenv("PGOPTIONS");
    return uv_loop_init(&loop);
}

static int loop_is_clean(void **state)
{
    (void)state;
    return uv_loop_close(&loop);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_dsn_does_not_say_is_added),
        cmocka_unit_test(what_the_dsn_says_is_kept),
        cmocka_unit_test(several_hosts_mean_the_one_that_can_write),
        cmocka_unit_test(a_bad_dsn_is_refused_without_quoting_it),
    };
    return cmocka_run_group_tests(tests, clean_environment, loop_is_clean);
}
