/* From argv to a call of a command: looks the command up, parses its options by its row in the
 * table, prints help. Called by main.c; the accessors are called by commands. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "command.h"
#include "receiptd/base/text.h"
#include "receiptd/commands/commands.h"

#define OPTION_HELP   'h'
#define OPTION_CONFIG 'c'
#define OPTION_FIRST  256 /* getopt's value of a command's first option */

/* ---- suggestions ---- */

/* NULL: no command is near enough to be a likely mistake. */
static const char *nearest_command(const char *word)
{
    const char *nearest = NULL;
    size_t count;
    const struct command *commands = command_table(&count);
    for (size_t index = 0; index < count; index++)
        nearest = rcpt_text_nearer(word, nearest, commands[index].name);
    return nearest;
}

static const char *nearest_option(const struct command *command, const char *word)
{
    const char *nearest = rcpt_text_nearer(word, rcpt_text_nearer(word, NULL, "config"), "help");
    for (size_t index = 0; index < COMMAND_MAX_OPTIONS && command->options[index].name != NULL;
         index++)
        nearest = rcpt_text_nearer(word, nearest, command->options[index].name);
    return nearest;
}

/* ---- help ---- */

/* The width of 14 fits the longest name. */
static void print_help(FILE *out)
{
    size_t count;
    const struct command *commands = command_table(&count);
    fputs("receiptd: delivery receipts from Kafka become message statuses and funnels in "
          "PostgreSQL\n\n"
          "Usage: receiptd COMMAND [OPTIONS]\n\nCommands:\n",
          out);
    for (size_t index = 0; index < count; index++)
        fprintf(out, "  %-14s%s\n", commands[index].name, commands[index].summary);
    fputs("\nEvery command takes --config FILE (default " RCPT_CONFIG_DEFAULT_PATH ") and --help.\n"
          "Exit codes: 0 done, 1 drift found, otherwise those of sysexits.h (64 usage, 66 no such "
          "file or\n"
          "campaign, 69 PostgreSQL not reachable, 70 internal, 77 not permitted, 78 "
          "configuration).\n",
          out);
}

/* A name longer than 26 columns would push its text to the right. No option has one. */
static void print_option(FILE *out, const char *name, const char *argument, const char *doc)
{
    char left[64];
    snprintf(left, sizeof(left), "--%s%s%s", name, argument != NULL ? " " : "",
             argument != NULL ? argument : "");
    fprintf(out, "  %-26s%s\n", left, doc);
}

/* --config and --help belong to every command, so no row of the table has them. */
static void print_command_help(const struct command *command, FILE *out)
{
    fprintf(out, "receiptd %s: %s\n\nUsage: receiptd %s [OPTIONS]", command->name, command->summary,
            command->name);
    if (command->argument != NULL)
        fprintf(out, " [%s]", command->argument);
    fprintf(out, "\n\n%s\n\nOptions:\n", command->doc);
    for (size_t index = 0; index < COMMAND_MAX_OPTIONS && command->options[index].name != NULL;
         index++) {
        const struct command_option *option = &command->options[index];
        print_option(out, option->name, option->argument, option->doc);
    }
    print_option(out, "config", "FILE", "configuration (default " RCPT_CONFIG_DEFAULT_PATH ")");
    print_option(out, "help", NULL, "print this");
}

/* ---- parsing ---- */

/* getopt's table has the command's options and the two that every command takes. */
static void fill_getopt_table(const struct command *command,
                              struct option table[COMMAND_MAX_OPTIONS + 3])
{
    size_t used = 0;
    for (; used < COMMAND_MAX_OPTIONS && command->options[used].name != NULL; used++) {
        table[used] = (struct option){.name = command->options[used].name,
                                      .has_arg = command->options[used].argument != NULL,
                                      .val = OPTION_FIRST + (int)used};
    }
    table[used++] =
        (struct option){.name = "config", .has_arg = required_argument, .val = OPTION_CONFIG};
    table[used++] = (struct option){.name = "help", .has_arg = no_argument, .val = OPTION_HELP};
    table[used] = (struct option){0};
}

/* getopt_long accepts abbreviations and refuses values silently; both become sentences here. */
static int refuse_option(const struct command_call *call, const char *word)
{
    char name[64];
    snprintf(name, sizeof(name), "%.*s", (int)strcspn(word, "="), word);
    if (strncmp(name, "--", 2) != 0)
        return command_usage(call, "unknown option %s", name);
    const char *meant = nearest_option(call->command, name + 2);
    if (meant != NULL && strcmp(meant, name + 2) == 0)
        return command_usage(call, "option %s takes no value", name);
    if (meant != NULL)
        return command_usage(call, "unknown option %s, did you mean --%s?", name, meant);
    return command_usage(call, "unknown option %s", name);
}

/* Options and arguments may come in any order. */
static int parse(int argc, char **argv, struct command_call *call, bool *help)
{
    struct option table[COMMAND_MAX_OPTIONS + 3];
    fill_getopt_table(call->command, table);
    /* getopt's own messages are turned off; refuse_option() words them. */
    opterr = 0;
    for (;;) {
        /* optind moves on only after a whole word, so `at` keeps the word that a refusal names. */
        int at = optind > 0 ? optind : 1;
        int option = getopt_long(argc, argv, ":hc:", table, NULL);
        if (option == -1)
            break;
        if (option == OPTION_HELP)
            *help = true;
        else if (option == OPTION_CONFIG)
            call->config_path = optarg;
        else if (option == ':')
            return command_usage(call, "option %s needs a value", argv[optind - 1]);
        else if (option == '?')
            return refuse_option(call, argv[optind > at ? optind - 1 : at]);
        else
            call->values[option - OPTION_FIRST] = optarg != NULL ? optarg : "";
    }
    if (optind < argc && call->command->argument != NULL)
        call->argument = argv[optind++];
    for (unsigned index = 0; index < call->command->more && optind < argc; index++)
        call->more[index] = argv[optind++];
    if (optind < argc)
        return command_usage(call, "unexpected argument \"%s\"", argv[optind]);
    return EX_OK;
}

/* Names match in full; abbreviations would break when a command is added. */
static const struct command *find_command(const char *name)
{
    size_t count;
    const struct command *commands = command_table(&count);
    for (size_t index = 0; index < count; index++) {
        if (strcmp(commands[index].name, name) == 0)
            return &commands[index];
    }
    return NULL;
}

/* The word may be anything, so it is quoted; the hint leads to the list. */
static int refuse_command(const char *word)
{
    const char *meant = nearest_command(word);
    fprintf(stderr, "receiptd: unknown command \"%s\"", word);
    if (meant != NULL)
        fprintf(stderr, ", did you mean \"%s\"?", meant);
    fputs("\nHINT: receiptd --help lists the commands\n", stderr);
    return EX_USAGE;
}

/* Memory is protected before the command reads its configuration, which holds secrets. */
int command_main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return EX_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0) {
        print_help(stdout);
        return command_printed(EX_OK);
    }
    const char *name = strcmp(argv[1], "--version") == 0 ? "version" : argv[1];
    struct command_call call = {.command = find_command(name),
                                .config_path = RCPT_CONFIG_DEFAULT_PATH};
    if (call.command == NULL)
        return refuse_command(name);
    bool help = false;
    int exit_code = parse(argc - 1, argv + 1, &call, &help);
    if (exit_code != EX_OK)
        return exit_code;
    if (help) {
        print_command_help(call.command, stdout);
        return command_printed(EX_OK);
    }
    command_protect(&call);
    return call.command->run(&call);
}

/* ---- options and formats ---- */

/* Asking for an option that the row does not have is a bug of the command. */
const char *command_option(const struct command_call *call, const char *name)
{
    for (size_t index = 0; index < COMMAND_MAX_OPTIONS; index++) {
        const char *known = call->command->options[index].name;
        RCPT_ASSERT(known != NULL);
        if (strcmp(known, name) == 0)
            return call->values[index];
    }
    return NULL;
}

/* A command that has no CSV refuses it by itself. */
bool command_format(const struct command_call *call, enum command_format *format)
{
    static const char *const names[] = {[COMMAND_FORMAT_TABLE] = "table",
                                        [COMMAND_FORMAT_JSON] = "json",
                                        [COMMAND_FORMAT_CSV] = "csv"};
    const char *given = command_option(call, "format");
    *format = COMMAND_FORMAT_TABLE;
    for (size_t index = 0; given != NULL && index < RCPT_COUNT_OF(names); index++) {
        if (strcmp(given, names[index]) == 0) {
            *format = (enum command_format)index;
            given = NULL;
        }
    }
    if (given != NULL)
        command_usage(call, "unknown format \"%s\": table, json or csv", given);
    return given == NULL;
}

/* strtoll alone would take `12x` for 12. */
bool command_number(const struct command_call *call, const char *name, int64_t low, int64_t high,
                    int64_t fallback, int64_t *value)
{
    const char *given = command_option(call, name);
    *value = fallback;
    if (given == NULL)
        return true;
    char *end = NULL;
    errno = 0;
    long long number = strtoll(given, &end, 10);
    if (errno != 0 || end == given || *end != '\0' || number < low || number > high) {
        command_usage(call, "--%s \"%s\" is not a number from %" PRId64 " to %" PRId64, name, given,
                      low, high);
        return false;
    }
    *value = number;
    return true;
}
