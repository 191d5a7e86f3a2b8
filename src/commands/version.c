/* `receiptd version`: the versions that a report of a bug needs: ours, the libraries' and the
 * compiler's. */
#include <cyaml/cyaml.h>
#include <stdio.h>
#include <sysexits.h>
#include <uv.h>
#include <zlib.h>

#include "command.h"
#include "receiptd/base/version.h"
#include "receiptd/kafka/consumer.h"

/* Clang also defines __VERSION__ and __GNUC__, so it is asked first. */
#ifdef __clang__
#define COMPILER "clang"
#else
#define COMPILER "gcc"
#endif

int command_version(const struct command_call *call)
{
    (void)call;
    char libpq[16];
    printf("receiptd %s\n", RCPT_VERSION);
    printf("librdkafka %s\n", rcpt_kafka_version());
    printf("libpq %s\n", rcpt_session_libpq_version(libpq));
    printf("libuv %s\n", uv_version_string());
    printf("libcyaml %s\n", cyaml_version_str);
    printf("zlib %s\n", zlibVersion());
    printf("compiler " COMPILER " %s\n", __VERSION__);
    return command_printed(EX_OK);
}
