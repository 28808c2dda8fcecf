/* A client of CUPTI's usual interface, such as a framework's own profiler is. Its functions are found at run time. */
#ifndef TRACESMITH_CUPTI_CLIENT_H
#define TRACESMITH_CUPTI_CLIENT_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum { CLIENT_KERNEL_KIND = 10, CLIENT_RUNTIME_KIND = 5, CLIENT_DRIVER_KIND = 4, CLIENT_BUFFER = 1 << 20 };

static long client_kernels, client_records, client_dropped;

static int (*client_register)(void (*)(uint8_t **, size_t *, size_t *),
                              void (*)(void *, uint32_t, uint8_t *, size_t, size_t));
static int (*client_enable)(uint32_t), (*client_disable)(uint32_t), (*client_flush)(uint32_t);
static int (*client_next)(uint8_t *, size_t, void **);
static int (*client_count_dropped)(void *, uint32_t, size_t *);

static void client_request(uint8_t **buffer, size_t *size, size_t *records) {
    *size = CLIENT_BUFFER;
    *buffer = aligned_alloc(8, CLIENT_BUFFER);
    *records = 0;
}

static void client_complete(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    void *record = NULL;
    size_t dropped = 0;
    (void)size;
    while (client_next(buffer, valid, &record) == 0) {
        client_records++;
        client_kernels += *(uint32_t *)record == CLIENT_KERNEL_KIND;
    }
    client_count_dropped(context, stream, &dropped);
    client_dropped += (long)dropped;
    free(buffer);
}

static void client_open(void) {
    const char *names[] = {"libcupti.so.13", "libcupti.so.12"};
    void *library = NULL;
    for (int i = 0; i < 2 && !library; i++)
        library = dlopen(names[i], RTLD_NOW);
    if (!library) {
        fprintf(stderr, "failed dlopen %s\n", dlerror());
        exit(2);
    }
    *(void **)&client_register = dlsym(library, "cuptiActivityRegisterCallbacks");
    *(void **)&client_enable = dlsym(library, "cuptiActivityEnable");
    *(void **)&client_disable = dlsym(library, "cuptiActivityDisable");
    *(void **)&client_flush = dlsym(library, "cuptiActivityFlushAll");
    *(void **)&client_next = dlsym(library, "cuptiActivityGetNextRecord");
    *(void **)&client_count_dropped = dlsym(library, "cuptiActivityGetNumDroppedRecords");
}

static void client_start(void) {
    int registered = client_register(client_request, client_complete);
    int kernels = client_enable(CLIENT_KERNEL_KIND), driver = client_enable(CLIENT_DRIVER_KIND);
    if (registered || kernels || driver)
        fprintf(stderr, "failed client %d %d %d\n", registered, kernels, driver);
}

static void client_stop(void) {
    client_flush(1);
    client_disable(CLIENT_KERNEL_KIND);
    client_disable(CLIENT_DRIVER_KIND);
}

#endif
