/* A program that stands before pthread_create, as tools that name or count threads do, and marks each thread by NVTX before
 * it is made: also those that a profiler makes while it starts.
 *
 * It launches 3 kernels, and says how many threads were made in it by then.
 */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <unistd.h>

#include "driver.h"
#include "nvtx_client.h"

static int made;

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*body)(void *), void *argument) {
    int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
    *(void **)&real = dlsym(RTLD_NEXT, "pthread_create");
    __atomic_add_fetch(&made, 1, __ATOMIC_RELAXED);
    nvtx_mark("a thread");
    return real(thread, attributes, body, argument);
}

int main(void) {
    /* Who waits for itself does so for ever. */
    alarm(20);
    start_device();
    CUfunction noop = kernel("noop");
    for (int i = 0; i < 3; i++)
        launch(noop, 1, 32, NULL, NULL);
    CHECK(cuCtxSynchronize());
    printf("launched 3 threads %d\n", __atomic_load_n(&made, __ATOMIC_RELAXED));
    return 0;
}
