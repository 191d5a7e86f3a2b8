#include <stdio.h>
#include <sysexits.h>

#include "command.h"

int command_check_config(const struct command_call *call)
{
    bool print = command_option(call, "print") != NULL;
    bool reference = command_option(call, "reference") != NULL;
    bool example = command_option(call, "example") != NULL;
    if (print + reference + example > 1)
        return command_usage(call, "--print, --reference and --example exclude each other");
    if (reference || example) {
        (reference ? rcpt_config_write_reference : rcpt_config_write_example)(stdout);
        return command_printed(EX_OK);
    }
    struct rcpt_error error = {0};
    struct rcpt_config *config = rcpt_config_load(call->config_path, &error);
    if (config == NULL)
        return command_fail(&error);
    if (print)
        rcpt_config_print(config, stdout);
    else
        printf("%s is valid\n", call->config_path);
    rcpt_config_free(config);
    return command_printed(EX_OK);
}
