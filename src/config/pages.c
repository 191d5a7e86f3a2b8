/* Pages made from the table: docs/configuration.md (the reference) and config/receiptd.yaml (an
 * example that holds every key). A test fails when a page differs from the table;
 * scripts/update-docs writes them. Also read by receiptd.yaml(5) in commands. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "print.h"
#include "receiptd/config/value.h"

#define PATH_BYTES 128

/* ---- docs/configuration.md ---- */

/* A text that changes here also changes docs/configuration.md: run scripts/update-docs. */
static const char introduction[] =
    "# Configuration\n"
    "\n"
    "<!-- Made by scripts/update-docs from src/config/table.c. Change it there. -->\n"
    "\n"
    "`receiptd` reads one YAML file: `/etc/receiptd/receiptd.yaml`, or the one that `--config` "
    "names.\n"
    "Only the brokers, the topics and the connection string are required:\n"
    "\n"
    "```yaml\n"
    "kafka:\n"
    "  brokers: \"127.0.0.1:9092\"\n"
    "  topics: [dlr-events]\n"
    "postgres:\n"
    "  dsn: \"file:${RECEIPTD_SECRETS:-/etc/receiptd/secrets/}dsn\"\n"
    "```\n"
    "\n"
    "`receiptd check-config` checks a file; with `--print` it shows the value in effect of every "
    "key.\n"
    "`config/receiptd.yaml` is an example that holds every key.\n"
    "`receiptd check-config --schema` prints the file's JSON Schema: an editor with a YAML "
    "language server then knows every key.\n"
    "\n"
    "## How values are written\n"
    "\n"
    "* **Sizes** take `KiB`, `MiB`, `GiB` (powers of 1024) or `kB`, `MB`, `GB` (powers of 1000).\n"
    "  A plain number is bytes.\n"
    "* **Durations** take `ms`, `s`, `m`, `h` or `d`.\n"
    "  Only 0 needs no unit.\n"
    "* **SQL names** have 1 to 63 letters, digits and underscores, and no digit first.\n"
    "* **`${NAME}`** in any value stands for the environment variable, which must be set.\n"
    "  `${NAME:-text}` stands for the text where the variable is not set or empty.\n"
    "  `$${` stands for a literal `${`.\n"
    "  Between brackets such a value needs quotes: `[\"${TOPIC}\"]`.\n"
    "* **`file:PATH`** as a secret stands for the contents of the file, without one trailing "
    "newline.\n"
    "  A relative path starts in the folder of the configuration file.\n"
    "  Secrets are never printed or logged.\n"
    "  They are marked *secret*; in `kafka.properties`, a name with `password`, `secret`, `key`, "
    "`token`, `jaas` or `oauth` marks one.\n"
    "\n"
    "An error names the place and, where it can, the likely meaning:\n"
    "\n"
    "```\n"
    "receiptd.yaml:2:3: kafka.brokerz: unknown key\n"
    "HINT: did you mean \"brokers\"?\n"
    "```\n"
    "\n"
    "The file is YAML without aliases and tags, of at most 1 MiB.\n"
    "The exit code is 78 for a mistake in the file, and 66 for a file that cannot be read.\n"
    "\n"
    "A reload (SIGHUP or `receiptd ctl reload`) takes the keys marked *reload*.\n"
    "The others need a restart, and the reload names them.\n"
    "After a mistake in the file, the running configuration stays.\n";

const char *rcpt_config_type_name(enum rcpt_config_type type)
{
    static const char *const names[RCPT_CONFIG_TYPE__COUNT] = {
        [RCPT_CONFIG_TEXT] = "text",          [RCPT_CONFIG_IDENTIFIER] = "SQL name",
        [RCPT_CONFIG_TABLE] = "SQL table",    [RCPT_CONFIG_TOPIC] = "topic",
        [RCPT_CONFIG_LIST] = "list of texts", [RCPT_CONFIG_INTEGER] = "integer",
        [RCPT_CONFIG_SIZE] = "size",          [RCPT_CONFIG_DURATION] = "duration",
        [RCPT_CONFIG_CHOICE] = "choice",      [RCPT_CONFIG_MAP] = "map",
        [RCPT_CONFIG_RECORDS] = "list",       [RCPT_CONFIG_RATIO] = "ratio",
        [RCPT_CONFIG_TREE] = "list",
    };
    return names[type];
}

/* The default ladder is too large for a cell; docs/semantics.md shows it. */
static void write_default_cell(const struct rcpt_config_row *row, FILE *out)
{
    if (row->flags & RCPT_CONFIG_REQUIRED)
        fputs("**required**", out);
    else if (row->flags & RCPT_CONFIG_NULLABLE)
        fputs("not set", out);
    else if (rcpt_config_is_ladder(row))
        fputs("default ladder", out);
    else
        fprintf(out, "`%s`", row->initial);
}

/* The limit of a value depends on its type: a range, a length, a count. */
static void write_range(const struct rcpt_config_row *row, FILE *out)
{
    char min[RCPT_CONFIG_NUMBER_BYTES], max[RCPT_CONFIG_NUMBER_BYTES];
    rcpt_config_format_number(row->type, row->min, min);
    rcpt_config_format_number(row->type, row->max, max);
    bool is_list = row->type >= RCPT_CONFIG_MAP || row->type == RCPT_CONFIG_LIST ||
                   row->type == RCPT_CONFIG_TREE;
    if (row->type >= RCPT_CONFIG_INTEGER && row->type <= RCPT_CONFIG_RATIO)
        fprintf(out, ", %s–%s", min, max);
    else if (row->min > (is_list ? 0 : 1))
        fprintf(out, ", %s–%s %s", min, max, is_list ? "entries" : "bytes");
    else
        fprintf(out, ", ≤ %s %s", max, is_list ? "entries" : "bytes");
}

/* The values that a key takes. SQL names have the same length everywhere (introduction). */
static void write_value_cell(const struct rcpt_config_row *row, FILE *out)
{
    for (unsigned index = 0; index < row->choice_count; index++)
        fprintf(out, "%s`%s`", index > 0 ? ", " : "", row->choices[index].str);
    if (row->type != RCPT_CONFIG_CHOICE)
        fputs(rcpt_config_type_name(row->type), out);
    if (row->type != RCPT_CONFIG_CHOICE && row->type != RCPT_CONFIG_IDENTIFIER)
        write_range(row, out);
    if (row->flags & RCPT_CONFIG_SECRET)
        fputs(", secret", out);
    if (row->flags & RCPT_CONFIG_RELOADABLE)
        fputs(", reload", out);
}

/* Four cells, as the head of the table has them. */
static void write_reference_row(const struct rcpt_config_row *row, FILE *out)
{
    fprintf(out, "| `%s` | ", row->path);
    write_value_cell(row, out);
    fputs(" | ", out);
    write_default_cell(row, out);
    fprintf(out, " | %s |\n", row->doc);
}

static void write_field_default(const struct rcpt_config_row *field, FILE *out)
{
    if (field->flags & RCPT_CONFIG_REQUIRED)
        fputs("required", out);
    else if (field->initial == NULL)
        fputs("optional", out);
    else
        fprintf(out, "`%s`", field->initial);
}

/* The fields of a list's entries follow below the table that names the list. */
static void write_record_fields(const struct rcpt_config_row *row, FILE *out)
{
    const struct rcpt_config_table *fields = row->record;
    fprintf(out,
            "\nAn entry of `%s`:\n\n| Field | Value | Default | Meaning "
            "|\n|---|---|---|---|\n",
            row->path);
    for (size_t index = 0; index < rcpt_config_count(fields); index++) {
        const struct rcpt_config_row *field = rcpt_config_row(fields, index);
        fprintf(out, "| `%s` | ", field->path);
        write_value_cell(field, out);
        fputs(" | ", out);
        write_field_default(field, out);
        fprintf(out, " | %s |\n", field->doc);
    }
}

/* The keys without a section get a heading of their own. */
static void write_reference_section(const struct rcpt_config_section *section, FILE *out)
{
    if (section->path[0] != '\0')
        fprintf(out, "\n## %s\n\n%s\n\n", section->path, section->doc);
    else
        fprintf(out, "\n## lanes and unknown\n\n%s\n\n", section->doc);
    fputs("| Key | Value | Default | Meaning |\n|---|---|---|---|\n", out);
    for (size_t index = 0; index < section->count; index++)
        write_reference_row(&section->rows[index], out);
    for (size_t index = 0; index < section->count; index++)
        if (section->rows[index].type == RCPT_CONFIG_RECORDS)
            write_record_fields(&section->rows[index], out);
}

/* By whom and for what each column of the inbox is there. */
static void write_inbox_columns(FILE *out)
{
    static const char *const fillers[] = {
        [RCPT_INBOX_PLATFORM] = "the platform",
        [RCPT_INBOX_RECEIPTD] = "receiptd",
        [RCPT_INBOX_POSTGRES] = "PostgreSQL, by its default",
    };
    size_t count;
    const struct rcpt_inbox_column *columns = rcpt_inbox_columns(&count);
    fputs("\nThe columns of `message_inbox`:\n\n"
          "| Column | Type | Written by | For | What it is |\n|---|---|---|---|---|\n",
          out);
    for (size_t index = 0; index < count; index++) {
        const struct rcpt_inbox_column *column = &columns[index];
        const char *mark = *column->feature != '\0' ? "`" : "";
        fprintf(out, "| `%s` | %s%s%s | %s | %s%s%s | %s |\n", column->name, column->type,
                *column->constraint != '\0' ? " " : "", column->constraint, fillers[column->filler],
                mark, *column->feature != '\0' ? column->feature : "every inbox", mark,
                column->doc);
    }
}

void rcpt_config_write_reference(FILE *out)
{
    const struct rcpt_config_table *table = rcpt_config_table();
    fputs(introduction, out);
    for (size_t index = 0; index < table->section_count; index++) {
        write_reference_section(&table->sections[index], out);
        if (strcmp(table->sections[index].path, "inbox") == 0)
            write_inbox_columns(out);
    }
}

/* ---- config/receiptd.yaml ----
 *
 * A comment is "# text". A setting that is commented out has no blank behind the #, or more than
 * one, so that taking the # away gives a line that is indented as it should be. */

/* A section is commented out as a whole unless one of its keys is ACTIVE. */
static bool is_active(const struct rcpt_config_section *section)
{
    for (size_t index = 0; index < section->count; index++)
        if (section->rows[index].flags & RCPT_CONFIG_ACTIVE)
            return true;
    return false;
}

/* How lines of one row begin. */
struct margin {
    const char *outer; /* "#" in a section that is commented out as a whole */
    int indent;
    const char *inner; /* "#" for a setting that is commented out in an active section */
};

/* Prints the default ladder as a file would hold it, then puts the margin before each line. */
static void write_default_ladder(const struct rcpt_config_row *row, const struct margin *margin,
                                 FILE *out)
{
    struct rcpt_config defaults = {.ladder_definition = *rcpt_ladder_default_definition()};
    struct rcpt_config_writer writer;
    char *text = NULL, *rest = NULL;
    size_t size = 0;
    FILE *lines = rcpt_open_memory(&text, &size);
    rcpt_config_writer_init(&writer, lines);
    rcpt_config_write_records(&writer, row, &defaults);
    rcpt_config_writer_fini(&writer);
    fclose(lines);
    for (char *line = strtok_r(text, "\n", &rest); line != NULL; line = strtok_r(NULL, "\n", &rest))
        fprintf(out, "%s%*s%s  %s\n", margin->outer, margin->indent, "", margin->inner, line);
    free(text);
}

/* Quotes are needed where YAML would read a mapping, or a comment, in the value. */
static void write_example_value(const struct rcpt_config_row *row, const struct margin *margin,
                                FILE *out)
{
    const char *value = row->example != NULL ? row->example : row->initial;
    if (rcpt_config_is_ladder(row)) {
        fputc('\n', out);
        write_default_ladder(row, margin, out);
    } else if (strpbrk(value, ": ") != NULL) {
        fprintf(out, " \"%s\"\n", value);
    } else {
        fprintf(out, " %s\n", value);
    }
}

/* Comments wrap at about 100 columns, at blanks. */
static void write_comment(const char *text, const struct margin *margin, FILE *out)
{
    int width = 96 - (int)strlen(margin->outer) - margin->indent;
    while (*text != '\0') {
        int size = (int)strlen(text);
        if (size > width)
            for (size = width; size > 0 && text[size] != ' ';)
                size--;
        RCPT_ASSERT(size > 0);
        fprintf(out, "%s%*s# %.*s\n", margin->outer, margin->indent, "", size, text);
        text += size + (text[size] == ' ');
    }
}

/* Depth of the row's name below its section: inbox.columns.status has one group between. */
static void write_group(const struct rcpt_config_row *row, const struct margin *margin,
                        char group[PATH_BYTES], FILE *out)
{
    const char *dot = strchr(row->path, '.'), *last = strrchr(row->path, '.');
    if (dot == last) {
        group[0] = '\0';
        return;
    }
    char name[PATH_BYTES];
    snprintf(name, sizeof(name), "%.*s", (int)(last - dot - 1), dot + 1);
    if (strcmp(name, group) == 0)
        return;
    memcpy(group, name, sizeof(name));
    fprintf(out, "%s%*s%s%s:\n", margin->outer, margin->indent, "", margin->inner, name);
}

/* A comment with the row's doc, then the key with its example or default. */
static void write_example_row(const struct rcpt_config_row *row, bool active,
                              char group[PATH_BYTES], FILE *out)
{
    bool commented = !(row->flags & RCPT_CONFIG_ACTIVE);
    const char *dot = strrchr(row->path, '.');
    struct margin margin = {active ? "" : "#", dot != NULL ? 2 : 0, active && commented ? "#" : ""};
    write_group(row, &margin, group, out);
    margin.indent += group[0] != '\0' ? 2 : 0;
    write_comment(row->doc, &margin, out);
    fprintf(out, "%s%*s%s%s:", margin.outer, margin.indent, "", margin.inner,
            dot != NULL ? dot + 1 : row->path);
    write_example_value(row, &margin, out);
}

/* Every row of the section, active or commented out, in the table's order. */
static void write_example_section(const struct rcpt_config_section *section, FILE *out)
{
    bool active = is_active(section);
    char group[PATH_BYTES] = "";
    fputc('\n', out);
    write_comment(section->doc, &(struct margin){"", 0, ""}, out);
    if (section->path[0] != '\0')
        fprintf(out, "%s%s:\n", active ? "" : "#", section->path);
    for (size_t index = 0; index < section->count; index++)
        write_example_row(&section->rows[index], active, group, out);
}

void rcpt_config_write_example(FILE *out)
{
    const struct rcpt_config_table *table = rcpt_config_table();
    fputs("# receiptd.yaml: the smallest configuration, and every other key with its default.\n"
          "# Take away a # to change a setting. docs/configuration.md says more.\n"
          "# Made by scripts/update-docs from src/config/table.c.\n",
          out);
    for (size_t index = 0; index < table->section_count; index++)
        write_example_section(&table->sections[index], out);
}
