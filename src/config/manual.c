/* `receiptd generate config-man`: receiptd.yaml(5), made from the table of keys like the pages of
 * config/pages.c. Called by commands/generate.c. Texts of the table have backticks for code;
 * rcpt_roff_text() turns them into bold. */
#include <string.h>

#include "receiptd/base/roff.h"
#include "table.h"

/* An empty default (`control.socket: ""`) means "none" and is left out. */
static void write_initial(const struct rcpt_config_row *row, FILE *out)
{
    if (row->flags & RCPT_CONFIG_REQUIRED)
        fputs(", required", out);
    else if (row->initial != NULL && row->initial[0] != '\0') {
        fputs(", default ", out);
        rcpt_roff_text(row->initial, out);
    }
}

static void write_choices(const struct rcpt_config_row *row, FILE *out)
{
    for (unsigned index = 0; index < row->choice_count; index++) {
        fputs(index > 0 ? ", " : "; one of ", out);
        rcpt_roff_text(row->choices[index].str, out);
    }
}

/* Longest lengths of texts and counts of lists are in docs/configuration.md only: here they would
 * hide the meaning. */
static void write_range(const struct rcpt_config_row *row, FILE *out)
{
    char min[RCPT_CONFIG_NUMBER_BYTES], max[RCPT_CONFIG_NUMBER_BYTES];
    if (row->type == RCPT_CONFIG_TEXT && row->min > 1)
        fprintf(out, "; at least %d bytes", (int)row->min);
    if (row->type != RCPT_CONFIG_INTEGER && row->type != RCPT_CONFIG_SIZE &&
        row->type != RCPT_CONFIG_DURATION && row->type != RCPT_CONFIG_RATIO)
        return;
    rcpt_config_format_number(row->type, row->min, min);
    rcpt_config_format_number(row->type, row->max, max);
    fprintf(out, "; %s to %s", min, max);
}

/* One paragraph for each key: its meaning, then type, default, range and flags in parentheses. */
static void write_row(const struct rcpt_config_row *row, bool field, FILE *out)
{
    fputs(".TP\n.B ", out);
    rcpt_roff_text(row->path, out);
    fputc('\n', out);
    rcpt_roff_text(row->doc != NULL ? row->doc : "", out);
    fputs(".\n.br\n", out);
    fprintf(out, "(%s", rcpt_config_type_name(row->type));
    write_initial(row, out);
    write_choices(row, out);
    if (!field)
        write_range(row, out);
    if (row->flags & RCPT_CONFIG_SECRET)
        fputs("; secret", out);
    if (row->flags & RCPT_CONFIG_RELOADABLE)
        fputs("; reloadable", out);
    fputs(")\n", out);
}

/* Lists of records have their fields in a paragraph below the section. */
static void write_fields(const struct rcpt_config_row *row, FILE *out)
{
    fputs(".PP\nAn entry of ", out);
    rcpt_roff_text(row->path, out);
    fputs(" has:\n.RS\n", out);
    for (size_t index = 0; index < rcpt_config_count(row->record); index++)
        write_row(rcpt_config_row(row->record, index), true, out);
    fputs(".RE\n", out);
}

/* Sections stand in the table's order, and fields of records after the keys of their section. */
static void write_section(const struct rcpt_config_section *section, FILE *out)
{
    fprintf(out, ".SS %s\n", section->path[0] != '\0' ? section->path : "lanes and unknown");
    rcpt_roff_text(section->doc, out);
    fputc('\n', out);
    for (size_t index = 0; index < section->count; index++)
        write_row(&section->rows[index], false, out);
    for (size_t index = 0; index < section->count; index++)
        if (section->rows[index].type == RCPT_CONFIG_RECORDS)
            write_fields(&section->rows[index], out);
}

void rcpt_config_write_manual(FILE *out)
{
    const struct rcpt_config_table *table = rcpt_config_table();
    rcpt_roff_title("RECEIPTD.YAML", 5, out);
    fputs(
        ".SH NAME\nreceiptd.yaml \\- configuration of receiptd\n"
        ".SH DESCRIPTION\n"
        ".BR receiptd (1)\n"
        "reads one YAML file. Only the brokers, the topics and the connection string are\n"
        "required:\n.PP\n.nf\n"
        "kafka:\n  brokers: \"127.0.0.1:9092\"\n  topics: [dlr\\-events]\n"
        "postgres:\n  dsn: \"file:${RECEIPTD_SECRETS:\\-/etc/receiptd/secrets/}dsn\"\n.fi\n.PP\n"
        "Sizes take KiB, MiB, GiB or kB, MB, GB; durations take ms, s, m, h or d.\n"
        "${NAME} in any value is replaced by the environment variable, ${NAME:\\-text} gives the\n"
        "text where it is not set or empty, and $${ stands for a literal ${. A secret may be\n"
        "file:PATH: the contents of that file, without one trailing newline. Secrets are never\n"
        "printed or logged.\n.PP\n"
        "A reload takes keys marked \"reloadable\". The others need a restart, and the reload\n"
        "names them. After a mistake in the file, the running configuration stays.\n"
        ".SH KEYS\n",
        out);
    for (size_t index = 0; index < table->section_count; index++)
        write_section(&table->sections[index], out);
    fputs(".SH FILES\n.TP\n.I " RCPT_CONFIG_DEFAULT_PATH "\nunless \\-\\-config names another\n"
          ".SH SEE ALSO\n.BR receiptd (1)\n",
          out);
}
