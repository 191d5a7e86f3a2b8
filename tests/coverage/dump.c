/* Linked into every program of a build that counts (scripts/coverage). What ends by _exit or abort
 * writes its counts too (-Wl,--wrap), as the daemon does whenever librdkafka has threads left. A
 * fuzz target without libFuzzer gets a main() that replays inputs. While counts are written,
 * tests/faultshim lets all calls through: they are not the daemon's. */
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* NOLINTBEGIN(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-non-const-parameter):
 * gcc, GNU ld and libFuzzer give these names */
void __gcov_dump(void);
void __gcov_reset(void);
_Noreturn void __real__exit(int status);
_Noreturn void __real_abort(void);
_Noreturn void __wrap__exit(int status);
_Noreturn void __wrap_abort(void);
size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) __attribute__((weak));
int main(int argc, char **argv) __attribute__((weak));

static void write_counts(void)
{
    void (*let_through)(void) = NULL;
    *(void **)&let_through = dlsym(RTLD_DEFAULT, "receiptd_shim_rest");
    if (let_through != NULL)
        let_through();
    __gcov_dump();
    __gcov_reset();
}

__attribute__((constructor)) static void set_up(void)
{
    atexit(write_counts);
}

void __wrap__exit(int status)
{
    write_counts();
    __real__exit(status);
}

void __wrap_abort(void)
{
    write_counts();
    __real_abort();
}

__attribute__((weak)) size_t LLVMFuzzerMutate(uint8_t *data, size_t size, size_t max_size)
{
    (void)data;
    (void)max_size;
    return size;
}
/* NOLINTEND(bugprone-reserved-identifier,cert-dcl37-c,cert-dcl51-cpp,readability-non-const-parameter)
 */

static uint8_t input[1 << 20];

int main(int argc, char **argv)
{
    for (int index = 1; index < argc && LLVMFuzzerTestOneInput != NULL; index++) {
        FILE *file = fopen(argv[index], "rb");
        if (file == NULL)
            return 1;
        size_t size = fread(input, 1, sizeof(input), file);
        fclose(file);
        LLVMFuzzerTestOneInput(input, size);
    }
    return 0;
}
