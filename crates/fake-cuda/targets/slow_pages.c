/* A program whose other thread makes a graph ready and destroys that, again and again, on a system whose pages come
 * slowly: who asks for one to four of them, cleared, waits a tenth of a second. It says "ready", waits for a line of input,
 * and says how many such pieces of memory were made and not freed.
 */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <string.h>
#include <unistd.h>

#include "driver.h"

enum { PAGE = 4096, PIECES = 64, KERNELS = 10 };

static volatile int is_slow;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static void *pieces[PIECES];
static int made, freed;

extern void *__libc_calloc(size_t, size_t);
extern void __libc_free(void *);

void *calloc(size_t count, size_t size) {
    void *memory = __libc_calloc(count, size);
    if (is_slow && count * size > PAGE && count * size <= 4 * PAGE) {
        usleep(100000);
        pthread_mutex_lock(&lock);
        if (made < PIECES)
            pieces[made++] = memory;
        pthread_mutex_unlock(&lock);
    }
    return memory;
}

void free(void *memory) {
    pthread_mutex_lock(&lock);
    for (int i = 0; memory && i < made; i++) {
        if (pieces[i] == memory) {
            pieces[i] = NULL;
            freed++;
        }
    }
    pthread_mutex_unlock(&lock);
    __libc_free(memory);
}

static CUgraph graph;

static void build_graph(void) {
    CUfunction noop = kernel("noop");
    CUstream stream;
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuStreamBeginCapture_v2(stream, 0));
    for (int i = 0; i < KERNELS; i++)
        launch(noop, 1, 32, stream, NULL);
    CHECK(cuStreamEndCapture(stream, &graph));
}

static void *make_ready(void *unused) {
    (void)unused;
    CHECK(cuCtxSetCurrent(context));
    for (;;) {
        CUgraphExec executable;
        CHECK(cuGraphInstantiateWithFlags(&executable, graph, 0));
        CHECK(cuGraphExecDestroy(executable));
    }
    return NULL;
}

int main(void) {
    pthread_t thread;
    char line[64];
    start_device();
    build_graph();
    is_slow = 1;
    CHECK(pthread_create(&thread, NULL, make_ready, NULL));
    puts("ready");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin))
        return 3;
    is_slow = 0;
    printf("kept %d of %d\n", made - freed, made);
    fflush(stdout);
    _exit(0);
}
