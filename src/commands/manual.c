/* `receiptd generate man`: receiptd(1) as roff from the table of commands, in the
 * form of base/roff.h. */
#include "manual.h"

#include <string.h>

#include "command.h"
#include "receiptd/base/roff.h"

/* A text set in columns stays unfilled. */
static void write_paragraph(const char *text, size_t size, FILE *out)
{
    char paragraph[1024];
    snprintf(paragraph, sizeof(paragraph), "%.*s", (int)size, text);
    bool columns = strstr(paragraph, "  ") != NULL;
    fputs(columns ? ".PP\n.nf\n" : ".PP\n", out);
    rcpt_roff_text(paragraph, out);
    fputs(columns ? "\n.fi\n" : "\n", out);
}

/* An empty line in a text of the table begins a new paragraph. */
static void write_paragraphs(const char *text, FILE *out)
{
    for (;;) {
        const char *end = strstr(text, "\n\n");
        write_paragraph(text, end != NULL ? (size_t)(end - text) : strlen(text), out);
        if (end == NULL)
            return;
        text = end + 2;
    }
}

/* Names are bold, arguments italic, as manual pages have it. */
static void write_option(const char *name, const char *argument, const char *doc, FILE *out)
{
    fputs(".TP\n\\fB\\-\\-", out);
    rcpt_roff_text(name, out);
    fputs("\\fR", out);
    if (argument != NULL) {
        fputs(" \\fI", out);
        rcpt_roff_text(argument, out);
        fputs("\\fR", out);
    }
    fputc('\n', out);
    rcpt_roff_text(doc, out);
    fputc('\n', out);
}

/* A subsection for each command, with its options below. */
static void write_command(const struct command *command, FILE *out)
{
    fputs(".SS \"receiptd ", out);
    rcpt_roff_text(command->name, out);
    if (command->argument != NULL) {
        fputs(" [", out);
        rcpt_roff_text(command->argument, out);
        fputc(']', out);
    }
    fputs("\"\n", out);
    rcpt_roff_text(command->summary, out);
    fputs(".\n", out);
    write_paragraphs(command->doc, out);
    for (size_t index = 0; index < COMMAND_MAX_OPTIONS && command->options[index].name != NULL;
         index++)
        write_option(command->options[index].name, command->options[index].argument,
                     command->options[index].doc, out);
}

/* The two options that no row has. */
static void write_common(FILE *out)
{
    fputs(".SH OPTIONS\nEvery command takes:\n", out);
    write_option("config", "FILE", "the configuration (default " RCPT_CONFIG_DEFAULT_PATH ")", out);
    write_option("help", NULL, "print the help of the command", out);
}

/* roff, not plain text: it goes out unescaped. */
static const char ending[] =
    ".SH EXIT STATUS\n"
    "0 done; 1 the answer is no, such as drift found by an audit; otherwise those of sysexits.h:\n"
    "64 usage, 65 data, 66 no such file or campaign, 69 PostgreSQL or the daemon not reachable,\n"
    "70 internal, 75 try again, 77 not permitted, 78 configuration.\n"
    ".SH SIGNALS\n"
    ".TP\n.BR SIGTERM \", \" SIGINT\n"
    "end run and intake in order, within shutdown.deadline; a second one ends them at once.\n"
    ".TP\n.B SIGHUP\n"
    "run, intake and serve read their configuration and TLS certificates again.\n"
    ".SH ENVIRONMENT\n"
    "Variables that the configuration names as ${NAME}, those of libpq, and:\n"
    ".TP\n.BR NOTIFY_SOCKET \", \" WATCHDOG_USEC\n"
    "of\n.BR systemd.service (5)\n"
    "with Type=notify: start, status, reload, drain and signs of life are sent there.\n"
    ".TP\n.B RECEIPTD_SECRETS\n"
    "set by the units to where the files of /etc/receiptd/secrets, intake-secrets or\n"
    "serve-secrets are for them; a secret is written\n"
    "as file:${RECEIPTD_SECRETS:\\-/etc/receiptd/secrets/}NAME.\n"
    ".SH FILES\n"
    ".TP\n.I " RCPT_CONFIG_DEFAULT_PATH "\nthe configuration\n"
    ".TP\n.I /etc/receiptd/secrets/\n"
    "secrets, for root alone; receiptd.service gets them as credentials\n"
    ".TP\n.I /etc/receiptd/intake-secrets/\n"
    "the same for receiptd\\-intake.service, which sees no others\n"
    ".TP\n.I /etc/receiptd/serve-secrets/\n"
    "the same for receiptd\\-serve.service\n"
    ".TP\n.I /run/receiptd/control.sock\nwhere receiptd ctl finds the daemon\n"
    ".SH SEE ALSO\n.BR receiptd.yaml (5)\n";

void manual_write_commands(FILE *out)
{
    size_t count;
    const struct command *commands = command_table(&count);
    rcpt_roff_title("RECEIPTD", 1, out);
    fputs(".SH NAME\nreceiptd \\- delivery receipts from Kafka to statuses and funnels in "
          "PostgreSQL\n"
          ".SH SYNOPSIS\n.B receiptd\n.I COMMAND\n[\\fIOPTIONS\\fR]\n"
          ".SH DESCRIPTION\n"
          "receiptd reads delivery receipts in batches from Kafka and applies each as a\n"
          "priority\\-versioned conditional UPDATE in PostgreSQL, together with the counters of\n"
          "the campaign's funnel and its own position, exactly once and without a lock.\n"
          ".SH COMMANDS\n",
          out);
    for (size_t index = 0; index < count; index++)
        write_command(&commands[index], out);
    write_common(out);
    fputs(ending, out);
}
