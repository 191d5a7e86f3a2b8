/* libFuzzer target: times from any bytes. What is accepted lies in 1970…9999, is written and read
 * back the same, and refusals leave the result alone. */
#include <string.h>

#include "receiptd/base/error.h"
#include "receiptd/core/timestamp.h"

#define LATEST_US INT64_C(253402300799999999)
#define UNTOUCHED INT64_C(-7)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool accepted, int64_t at_us)
{
    if (!accepted) {
        RCPT_ASSERT(at_us == UNTOUCHED);
        return;
    }
    char text[28];
    int64_t back = UNTOUCHED;
    RCPT_ASSERT(at_us >= 0 && at_us <= LATEST_US);
    rcpt_timestamp_format(at_us, text);
    RCPT_ASSERT(strlen(text) == 27);
    RCPT_ASSERT(rcpt_timestamp_parse(text, 27, &back) && back == at_us);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t text_us = UNTOUCHED, epoch_us = UNTOUCHED;
    bool is_text = rcpt_timestamp_parse((const char *)data, size, &text_us);
    bool is_epoch = rcpt_timestamp_parse_epoch((const char *)data, size, &epoch_us);
    check(is_text, text_us);
    check(is_epoch, epoch_us);
    RCPT_ASSERT(!is_text || !is_epoch);
    return 0;
}
