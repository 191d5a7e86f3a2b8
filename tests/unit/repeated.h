/* Lists that are longer than they may be. */
#ifndef RECEIPTD_TESTS_UNIT_REPEATED_H
#define RECEIPTD_TESTS_UNIT_REPEATED_H

#include <stdio.h>

/* `each` that many times, with the number of the repetition for every '#'. The caller frees it. */
static inline char *repeated(const char *before, const char *each, unsigned count,
                             const char *behind)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);
    fputs(before, out);
    for (unsigned index = 0; index < count; index++) {
        for (const char *at = each; *at != '\0'; at++) {
            if (*at == '#')
                fprintf(out, "%u", index);
            else
                fputc(*at, out);
        }
    }
    fputs(behind, out);
    fclose(out);
    return text;
}

#endif
