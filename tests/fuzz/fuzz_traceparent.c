/* libFuzzer target: the header traceparent, as Kafka hands it over: any bytes, not terminated. It
 * is taken unchanged where it has the form of W3C Trace Context, version 00, and else not at all.
 */
#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"
#include "receiptd/core/record.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rcpt_ladder *ladder;
static struct rcpt_decoder *decoder;
static regex_t form;

static void set_up(void)
{
    struct rcpt_error error;
    ladder = rcpt_ladder_new(rcpt_ladder_default_definition(), &error);
    RCPT_ASSERT(ladder != NULL);
    decoder = rcpt_decoder_new(ladder, 4);
    RCPT_ASSERT(regcomp(&form, "^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$",
                        REG_EXTENDED | REG_NOSUB) == 0);
}

static bool is_valid(const char *header, size_t size)
{
    char text[RCPT_RECORD_TRACEPARENT_BYTES + 1];
    if (size != RCPT_RECORD_TRACEPARENT_BYTES || memchr(header, '\0', size) != NULL)
        return false;
    memcpy(text, header, size);
    text[size] = '\0';
    return regexec(&form, text, 0, NULL, 0) == 0 &&
           strncmp(text + 3, "00000000000000000000000000000000", 32) != 0 &&
           strncmp(text + 36, "0000000000000000", 16) != 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char value[] = "{\"message_id\":\"m\",\"status\":\"SENT\"}";
    if (ladder == NULL)
        set_up();
    char *header = rcpt_malloc(size + 1); /* of its own, so that reading past its end is seen */
    memcpy(header, data, size);
    struct rcpt_record_input input = {.topic = "fuzz",
                                      .value = value,
                                      .value_size = sizeof(value) - 1,
                                      .traceparent = header,
                                      .traceparent_size = size};
    struct rcpt_record *record = rcpt_record_decode(decoder, &input);
    if (is_valid(header, size))
        RCPT_ASSERT(memcmp(record->traceparent, header, size) == 0 &&
                    record->traceparent[size] == '\0');
    else
        RCPT_ASSERT(record->traceparent[0] == '\0');
    rcpt_record_free(record);
    free(header);
    return 0;
}
