/* A program that ends at a bad moment: `sudden_ends MODE`.
 *
 *   heap      launches, then the heap breaks: who allocates from then on does not come back; then abort
 *   handler   launches until a signal comes, whose handler calls _exit(7), whatever it has interrupted
 */
#define _GNU_SOURCE 1
#include <signal.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "driver.h"

extern void *__libc_malloc(size_t);
extern void *__libc_calloc(size_t, size_t);
extern void *__libc_realloc(void *, size_t);
extern void *__libc_memalign(size_t, size_t);
static volatile int heap_is_broken;

static void wait_if_broken(void) {
    while (heap_is_broken)
        pause();
}

/* In place of the C library's: everyone in the process calls these. */
void *malloc(size_t size) {
    wait_if_broken();
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size) {
    wait_if_broken();
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size) {
    wait_if_broken();
    return __libc_realloc(memory, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size) {
    wait_if_broken();
    *memory = __libc_memalign(alignment, size);
    return *memory ? 0 : 12;
}

static void leave(int signal) {
    (void)signal;
    _exit(7);
}

int main(int count, char **arguments) {
    const char *mode = count > 1 ? arguments[1] : "";
    CUfunction noop;
    start_device();
    noop = kernel("noop");
    if (strcmp(mode, "heap") == 0) {
        for (int i = 0; i < 100; i++)
            launch(noop, 1, 32, NULL, NULL);
        CHECK(cuCtxSynchronize());
        printf("aborting\n");
        fflush(stdout);
        heap_is_broken = 1;
        abort();
    }
    if (strcmp(mode, "handler") == 0) {
        struct itimerval soon = {{0, 0}, {0, 60000}};
        signal(SIGALRM, leave);
        setitimer(ITIMER_REAL, &soon, NULL);
        for (;;)
            launch(noop, 1, 32, NULL, NULL);
    }
    fprintf(stderr, "usage: sudden_ends MODE\n");
    return 64;
}
