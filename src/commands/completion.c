/* `receiptd generate bash` and `zsh`: completion scripts from the table of commands. They complete
 * words of the table of commands, and ask nothing else. */
#include <string.h>

#include "command.h"
#include "manual.h"

/* "table|json|csv" are words to choose from, FILE and PATH are files. */
static void write_option_values(const struct command *command, FILE *out)
{
    for (size_t index = 0; index < COMMAND_MAX_OPTIONS && command->options[index].name != NULL;
         index++) {
        const struct command_option *option = &command->options[index];
        if (option->argument == NULL)
            continue;
        fprintf(out, "    '%s --%s') ", command->name, option->name);
        if (strcmp(option->argument, "FILE") == 0 || strcmp(option->argument, "PATH") == 0) {
            fputs("compopt -o default; return ;;\n", out);
        } else if (strchr(option->argument, '|') != NULL) {
            fputs("words='", out);
            for (const char *byte = option->argument; *byte != '\0'; byte++)
                fputc(*byte == '|' ? ' ' : *byte, out);
            fputs("' ;;\n", out);
        } else {
            fputs("return ;;\n", out);
        }
    }
}

/* The words behind the command's name: its verbs and options. */
static void write_words(const struct command *command, FILE *out)
{
    fprintf(out, "        %s) words='", command->name);
    if (command->choices != NULL)
        fprintf(out, "%s ", command->choices);
    for (size_t index = 0; index < COMMAND_MAX_OPTIONS && command->options[index].name != NULL;
         index++)
        fprintf(out, "--%s ", command->options[index].name);
    fputs("--config --help' ;;\n", out);
}

/* The script first completes the value of an option, then the command's name, then its words. One
 * `case` over "COMMAND OPTION" is enough for the values. */
void completion_write_bash(FILE *out)
{
    size_t count;
    const struct command *commands = command_table(&count);
    fputs(
        "# bash completion for receiptd; made by receiptd generate from its table of commands.\n"
        "_receiptd()\n{\n"
        "    local current=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=\n"
        "    COMPREPLY=()\n"
        "    case \"${COMP_WORDS[1]} $before\" in\n"
        "    *' --config') compopt -o default; return ;;\n",
        out);
    for (size_t index = 0; index < count; index++)
        write_option_values(&commands[index], out);
    fputs("    *)\n        if ((COMP_CWORD == 1)); then\n            words='", out);
    for (size_t index = 0; index < count; index++)
        fprintf(out, "%s ", commands[index].name);
    fputs("--help --version'\n        else\n        case ${COMP_WORDS[1]} in\n", out);
    for (size_t index = 0; index < count; index++)
        write_words(&commands[index], out);
    fputs("        esac\n        fi\n        ;;\n    esac\n"
          "    mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\")\n}\n"
          "complete -F _receiptd receiptd\n",
          out);
}

/* ---- zsh ---- */

/* In zsh's specifications quotes, brackets and colons mean something. */
static void write_quoted(const char *text, FILE *out)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            fputs("'\\''", out);
        else if (strchr("[]:\\", *text) != NULL)
            fprintf(out, "\\%c", *text);
        else
            fputc(*text, out);
    }
}

/* zsh takes choices as (a b c); the table separates them by | or by blanks. */
static void write_zsh_choices(const char *choices, char between, FILE *out)
{
    fputc('(', out);
    for (; *choices != '\0'; choices++)
        fputc(*choices == between ? ' ' : *choices, out);
    fputc(')', out);
}

/* zsh would complete options for a value that has neither choices nor files; a blank message
 * prevents that. */
static void write_zsh_option(const struct command_option *option, FILE *out)
{
    fprintf(out, "            '--%s[", option->name);
    write_quoted(option->doc, out);
    fputc(']', out);
    if (option->argument != NULL) {
        fputc(':', out);
        write_quoted(option->argument, out);
        fputc(':', out);
        if (strcmp(option->argument, "FILE") == 0 || strcmp(option->argument, "PATH") == 0)
            fputs("_files", out);
        else if (strchr(option->argument, '|') != NULL)
            write_zsh_choices(option->argument, '|', out);
        else
            fputc(' ', out);
    }
    fputs("' \\\n", out);
}

/* _arguments reads one specification for each option, and one for the first word. */
static void write_zsh_command(const struct command *command, FILE *out)
{
    fprintf(out, "        %s)\n            _arguments \\\n", command->name);
    for (size_t index = 0; index < COMMAND_MAX_OPTIONS && command->options[index].name != NULL;
         index++)
        write_zsh_option(&command->options[index], out);
    if (command->choices != NULL) {
        fputs("            '1:word:", out);
        write_zsh_choices(command->choices, ' ', out);
        fputs("' \\\n", out);
    }
    fputs("            '--config[configuration]:FILE:_files' \\\n"
          "            '--help[shows what the command does]' ;;\n",
          out);
}

/* The command's name is shifted away, so that _arguments counts words from it. */
void completion_write_zsh(FILE *out)
{
    size_t count;
    const struct command *commands = command_table(&count);
    fputs("#compdef receiptd\n"
          "# zsh completion for receiptd; made by receiptd generate from its table of commands.\n"
          "_receiptd()\n{\n"
          "    local -a commands=(\n",
          out);
    for (size_t index = 0; index < count; index++) {
        fprintf(out, "        '%s:", commands[index].name);
        write_quoted(commands[index].summary, out);
        fputs("'\n", out);
    }
    fputs("    )\n"
          "    if ((CURRENT == 2)); then\n"
          "        _describe -t commands command commands\n"
          "        _arguments '--help' '--version'\n"
          "        return\n"
          "    fi\n"
          "    local name=$words[2]\n"
          "    shift words\n"
          "    ((CURRENT--))\n"
          "    case $name in\n",
          out);
    for (size_t index = 0; index < count; index++)
        write_zsh_command(&commands[index], out);
    fputs("    esac\n}\n_receiptd \"$@\"\n", out);
}
