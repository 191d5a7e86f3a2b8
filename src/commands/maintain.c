/* `receiptd maintain`: what the owner of the inbox does for it now and then, by a timer. */
#include <sysexits.h>

#include "command.h"
#include "recent.h"

int command_maintain(const struct command_call *call)
{
    struct command_context context;
    int exit_code;
    if (!command_open_as(&context, call, command_option(call, "dsn"), false, &exit_code))
        return exit_code;
    exit_code =
        recent_maintain(&context) ? command_printed(EX_OK) : command_fail_in(call, &context.error);
    command_close(&context);
    return exit_code;
}
