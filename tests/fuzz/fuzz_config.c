/* libFuzzer target: any bytes are either refused with a place, or give a configuration whose
 * printed form loads again and is printed alike. Words of the language: config.dict. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "receiptd/config/config.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct rcpt_config *parse(const char *text, size_t size)
{
    struct rcpt_error error;
    rcpt_error_clear(&error);
    struct rcpt_config *config = rcpt_config_parse("fuzz.yaml", text, size, &error);
    if (config == NULL) {
        /* What the check lets through is what libcyaml takes. */
        RCPT_ASSERT(strncmp(error.text, "fuzz.yaml: libcyaml", 19) != 0);
        RCPT_ASSERT(strncmp(error.text, "fuzz.yaml:", 10) == 0);
        RCPT_ASSERT(error.exit_code == 78);
    }
    return config;
}

static char *print(const struct rcpt_config *config)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    RCPT_ASSERT(out != NULL);
    rcpt_config_print(config, out);
    fclose(out);
    return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct rcpt_config *config = parse((const char *)data, size);
    if (config == NULL)
        return 0;
    char *once = print(config);
    struct rcpt_config *again = parse(once, strlen(once));
    RCPT_ASSERT(again != NULL);
    char *twice = print(again);
    RCPT_ASSERT(strcmp(once, twice) == 0);
    rcpt_config_free(config);
    rcpt_config_free(again);
    free(once);
    free(twice);
    return 0;
}
