/* Texts as roff: see roff.h. */
#include "receiptd/base/roff.h"

#include <stdbool.h>

#include "receiptd/base/version.h"

/* No date: builds of one version must be equal byte by byte. */
void rcpt_roff_title(const char *name, int section, FILE *out)
{
    fprintf(out,
            ".\\\" Made by receiptd generate from the tables of the program.\n"
            ".TH %s %d \"\" \"receiptd %s\" \"receiptd\"\n.nh\n.ad l\n",
            name, section, RCPT_VERSION);
}

/* Escapes what roff would read as a request or a font; backticks become bold. */
void rcpt_roff_text(const char *text, FILE *out)
{
    /* `fresh`: at the beginning of a line, where roff takes a dot for a request. */
    bool bold = false, fresh = true;
    for (; *text != '\0'; text++) {
        if (fresh && (*text == '.' || *text == '\''))
            fputs("\\&", out);
        fresh = *text == '\n';
        if (*text == '`') {
            bold = !bold;
            fputs(bold ? "\\fB" : "\\fR", out);
        } else if (*text == '\\') {
            fputs("\\e", out);
        } else if (*text == '-') {
            fputs("\\-", out);
        } else {
            fputc(*text, out);
        }
    }
    if (bold)
        fputs("\\fR", out);
}
