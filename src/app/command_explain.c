#include <stdio.h>
#include <sysexits.h>

#include "command.h"

int command_explain(const struct command_call *call)
{
    return command_usage(call, "which message?");
}
