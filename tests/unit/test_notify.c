#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "receiptd/base/notify.h"

/* A manager that listens in the abstract namespace, or at a path. */
struct manager {
    int fd;
    char name[64];
};

static void manager_open(struct manager *manager, char mark)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(manager->name, sizeof(manager->name),
             mark == '@' ? "@receiptd-notify-%d" : "/tmp/receiptd-notify-%d", (int)getpid());
    memcpy(address.sun_path, manager->name, strlen(manager->name));
    if (mark == '@')
        address.sun_path[0] = '\0';
    else
        unlink(manager->name);
    manager->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    socklen_t size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + strlen(manager->name));
    assert_int_equal(bind(manager->fd, (struct sockaddr *)&address, size), 0);
    setenv("NOTIFY_SOCKET", manager->name, 1);
}

static void manager_close(struct manager *manager)
{
    close(manager->fd);
    if (manager->name[0] == '/')
        unlink(manager->name);
    unsetenv("NOTIFY_SOCKET");
}

static void what_is_sent_arrives_in_one_piece_by_path_and_by_abstract_name(void **state)
{
    static const char marks[] = {'@', '/'};
    (void)state;
    for (size_t index = 0; index < sizeof(marks); index++) {
        struct manager manager;
        struct rcpt_notify notify;
        char got[64] = "";
        manager_open(&manager, marks[index]);
        assert_true(rcpt_notify_open(&notify));
        assert_true(rcpt_notify_send(&notify, "READY=1\nSTATUS=well"));
        assert_int_equal(recv(manager.fd, got, sizeof(got) - 1, 0), 19);
        assert_string_equal(got, "READY=1\nSTATUS=well");
        rcpt_notify_close(&notify);
        manager_close(&manager);
    }
}

static void without_an_address_nothing_is_sent(void **state)
{
    static const char *const names[] = {NULL, "", "/", "relative/path", "vsock:2:1234"};
    char endless[200] = "/";
    (void)state;
    memset(endless + 1, 'x', sizeof(endless) - 2);
    for (size_t index = 0; index <= sizeof(names) / sizeof(names[0]); index++) {
        const char *name = index < sizeof(names) / sizeof(names[0]) ? names[index] : endless;
        struct rcpt_notify notify;
        if (name == NULL)
            unsetenv("NOTIFY_SOCKET");
        else
            setenv("NOTIFY_SOCKET", name, 1);
        assert_false(rcpt_notify_open(&notify));
        assert_false(rcpt_notify_send(&notify, "READY=1"));
        rcpt_notify_close(&notify);
    }
    unsetenv("NOTIFY_SOCKET");
}

/* A manager that does not read must not hold the loop up, and the sender learns of it. */
static void a_manager_that_does_not_read_is_not_waited_for(void **state)
{
    struct manager manager;
    struct rcpt_notify notify;
    unsigned sent = 0;
    (void)state;
    manager_open(&manager, '@');
    assert_true(rcpt_notify_open(&notify));
    while (rcpt_notify_send(&notify, "WATCHDOG=1") && sent < 100000)
        sent++;
    assert_in_range(sent, 1, 99999);
    close(manager.fd);
    assert_false(rcpt_notify_send(&notify, "WATCHDOG=1"));
    rcpt_notify_close(&notify);
    unsetenv("NOTIFY_SOCKET");
}

static void the_watchdog_is_for_the_process_it_names(void **state)
{
    static const struct {
        const char *usec, *pid;
        int64_t expected;
    } cases[] = {
        {NULL, NULL, 0},      {"30000000", NULL, 30000}, {"30000000", "self", 30000},
        {"30000000", "1", 0}, {"30000000", "x", 0},      {"", NULL, 0},
        {"0", NULL, 0},       {"-5", NULL, 0},           {"12x", NULL, 0},
        {"500", NULL, 1},     {"1000", "self", 1},       {"99999999999999999999", NULL, 0},
    };
    char self[16];
    (void)state;
    snprintf(self, sizeof(self), "%d", (int)getpid());
    for (size_t index = 0; index < sizeof(cases) / sizeof(cases[0]); index++) {
        unsetenv("WATCHDOG_USEC");
        unsetenv("WATCHDOG_PID");
        if (cases[index].usec != NULL)
            setenv("WATCHDOG_USEC", cases[index].usec, 1);
        if (cases[index].pid != NULL)
            setenv("WATCHDOG_PID", strcmp(cases[index].pid, "self") == 0 ? self : cases[index].pid,
                   1);
        assert_int_equal(rcpt_notify_watchdog_ms(), cases[index].expected);
    }
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_sent_arrives_in_one_piece_by_path_and_by_abstract_name),
        cmocka_unit_test(without_an_address_nothing_is_sent),
        cmocka_unit_test(a_manager_that_does_not_read_is_not_waited_for),
        cmocka_unit_test(the_watchdog_is_for_the_process_it_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
