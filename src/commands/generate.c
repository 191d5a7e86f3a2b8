/* `receiptd generate`: pages and scripts from the program's own tables. Reads no file and connects
 * to nothing, so that packages can run it while they are built. */
#include <string.h>
#include <sysexits.h>

#include "command.h"
#include "manual.h"
#include "receiptd/config/config.h"

int command_generate(const struct command_call *call)
{
    static const struct {
        const char *name;
        void (*write)(FILE *out);
    } pages[] = {{"man", manual_write_commands},
                 {"config-man", rcpt_config_write_manual},
                 {"bash", completion_write_bash},
                 {"zsh", completion_write_zsh},
                 {"sql", generate_sql}};
    const char *name = call->argument != NULL ? call->argument : "";
    for (size_t index = 0; index < RCPT_COUNT_OF(pages); index++) {
        if (strcmp(pages[index].name, name) != 0)
            continue;
        pages[index].write(stdout);
        return command_printed(EX_OK);
    }
    return command_usage(call, "\"%s\" cannot be made: man, config-man, bash, zsh or sql", name);
}
