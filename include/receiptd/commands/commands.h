/* The command line of receiptd. */
#ifndef RECEIPTD_COMMANDS_COMMANDS_H
#define RECEIPTD_COMMANDS_COMMANDS_H

/* Finds the command that the arguments name, and runs it. Returns the exit code of the process. */
int command_main(int argc, char **argv);

#endif
