/* The process begins here; command.c finds the command that the arguments name. */
#include <openssl/crypto.h>

#include "receiptd/commands/commands.h"

int main(int argc, char **argv)
{
    /* A thread of librdkafka may still be on its way out when everything else is done. Calling
     * exit() would free OpenSSL while that thread still uses it. */
    (void)OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, NULL);
    return command_main(argc, argv);
}
