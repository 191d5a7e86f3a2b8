/* `receiptd run`: loads the configuration and hands over to app/run.c. */
#include "receiptd/app/run.h"
#include "try.h"

int command_run(const struct command_call *call)
{
    struct rcpt_error error = {0};
    if (command_option(call, "try") != NULL)
        return command_run_try(call);
    struct rcpt_config *config = rcpt_config_load(call->config_path, &error);
    if (config == NULL)
        return command_fail(&error);
    int exit_code = rcpt_app_run(config, call->config_path);
    rcpt_config_free(config);
    return exit_code;
}
