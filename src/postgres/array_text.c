#include "receiptd/postgres/array_text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/base/error.h"

void rcpt_array_text_init(struct rcpt_array_text *array)
{
    memset(array, 0, sizeof(*array));
    array->out = open_memstream(&array->text, &array->size);
    RCPT_ASSERT(array->out != NULL);
    fputc('{', array->out);
}

void rcpt_array_text_fini(struct rcpt_array_text *array)
{
    if (array->out != NULL)
        fclose(array->out);
    free(array->text);
}

static void separate(struct rcpt_array_text *array)
{
    RCPT_ASSERT(array->out != NULL);
    if (array->count++ > 0)
        fputc(',', array->out);
}

void rcpt_array_text_add_null(struct rcpt_array_text *array)
{
    separate(array);
    fputs("NULL", array->out);
}

void rcpt_array_text_add_int(struct rcpt_array_text *array, int64_t value)
{
    separate(array);
    fprintf(array->out, "%" PRId64, value);
}

void rcpt_array_text_add(struct rcpt_array_text *array, const char *bytes, size_t size)
{
    separate(array);
    fputc('"', array->out);
    for (size_t index = 0; index < size; index++) {
        if (bytes[index] == '"' || bytes[index] == '\\')
            fputc('\\', array->out);
        fputc(bytes[index], array->out);
    }
    fputc('"', array->out);
}

void rcpt_array_text_add_bytea(struct rcpt_array_text *array, const void *bytes, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    separate(array);
    fputs("\"\\\\x", array->out);
    for (size_t index = 0; index < size; index++) {
        unsigned char byte = ((const unsigned char *)bytes)[index];
        fputc(digits[byte >> 4], array->out);
        fputc(digits[byte & 15], array->out);
    }
    fputc('"', array->out);
}

const char *rcpt_array_text_finish(struct rcpt_array_text *array)
{
    fputc('}', array->out);
    RCPT_ASSERT(fclose(array->out) == 0);
    array->out = NULL;
    return array->text;
}
