/* A program to be profiled: `launcher MODE [NUMBER...]`. Each mode does one thing that a profiler must get right and
 * says in one line what it did. It runs the same against the fake driver and a real one.
 *
 *   launch N              N empty kernels
 *   threads T N           T threads, each N kernels in a stream of its own
 *   streams S N           S streams, N kernels in each
 *   processes P N         P children (fork and exec), each `launch N`
 *   graph NODES LAUNCHES  a captured graph, launched
 *   diamond LAUNCHES      a graph in which two kernels wait for one and another for both, launched between kernels
 *   copies N              N copies each way, and sets
 *   compute N             kernels with results, checked
 *   memory                one allocation of each kind
 *   virtual               reserved addresses, mapped memory, the same address again after it was freed
 *   peer                  copies between two devices, where there are two, and waits of one of them for the other's stream
 *   runtime               the runtime library's calls
 *   runtime_copies        a window with three copies of the runtime, of memory that nothing in the window has used before
 *   runtime_launch N      N kernels, launched by the runtime
 *   runtime_graphs NODES  a captured graph, launched by the runtime again and again, until killed
 *   events                an event recorded in one stream, waited for in another and on the host
 *   modules               a module loaded, used, unloaded and loaded again
 *   profiler              10 kernels, cuProfilerStart, 20, cuProfilerStop, 30
 *   window N SUMS [1]     buffers of N numbers, then between cuProfilerStart and cuProfilerStop copies, sets, kernels in two
 *                         streams, memory taken and given back, and SUMS sums whose order the GPU may choose; with the
 *                         last, what was taken is read before anyone wrote it
 *   temporary N           the same window around memory that is freed within it: some is read before, some by nobody
 *   nvtx                  marks, ranges, a domain
 *   fork                  a fork without exec while work goes on
 *   segv                  100 kernels, then a crash
 *   exit_early            100 kernels, then _exit in the middle
 *   beside N              a kernel `fill` in one stream, N empty ones beside it in another, then _exit half a second behind these
 *   unfinished            3 kernels, then the end of the program without waiting for them
 *   forever               kernels until killed, with the count printed now and then
 *   relay                 two threads that take turns at 300 kernels, until killed
 *   crowd T               T threads at once, until killed
 *   sleep SECONDS         a context, then idle
 *   closefds              closes all descriptors from 3 on, then works for longer than records are kept back
 *   at_exit               10 kernels, and 5 more in an exit handler
 *   exit CODE             10 kernels, then that exit status
 *   client                a CUPTI client of its own besides whoever else is there
 */
#define _GNU_SOURCE 1
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cupti_client.h"
#include "driver.h"
#include "nvtx_client.h"

static int argument_count;
static char **arguments;

static long number(int index, long otherwise) {
    return index + 1 < argument_count ? atol(arguments[index + 1]) : otherwise;
}

static void launch_noops(long count, CUstream stream) {
    static CUfunction noop;
    if (!noop)
        noop = kernel("noop");
    for (long i = 0; i < count; i++)
        launch(noop, 1, 32, stream, NULL);
}

static void mode_launch(void) {
    long count = number(1, 1000);
    start_device();
    launch_noops(count, NULL);
    CHECK(cuCtxSynchronize());
    printf("launched %ld\n", count);
}

static void *thread_main(void *count) {
    CUstream stream;
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuStreamCreate(&stream, 1));
    launch_noops((long)count, stream);
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuStreamDestroy_v2(stream));
    return NULL;
}

static void mode_threads(void) {
    long threads = number(1, 4), count = number(2, 1000);
    pthread_t ids[256];
    start_device();
    launch_noops(0, NULL);
    if (threads > 256)
        threads = 256;
    for (long i = 0; i < threads; i++)
        pthread_create(&ids[i], NULL, thread_main, (void *)count);
    for (long i = 0; i < threads; i++)
        pthread_join(ids[i], NULL);
    printf("launched %ld threads %ld\n", threads * count, threads);
}

static void mode_streams(void) {
    long streams = number(1, 4), count = number(2, 100);
    CUstream made[256];
    start_device();
    if (streams > 256)
        streams = 256;
    for (long i = 0; i < streams; i++)
        CHECK(cuStreamCreate(&made[i], 1));
    for (long k = 0; k < count; k++)
        for (long i = 0; i < streams; i++)
            launch_noops(1, made[i]);
    CHECK(cuCtxSynchronize());
    for (long i = 0; i < streams; i++)
        CHECK(cuStreamDestroy_v2(made[i]));
    printf("launched %ld streams %ld\n", streams * count, streams);
}

static void mode_processes(void) {
    long processes = number(1, 2), count = number(2, 100), failed = 0;
    char text[32];
    snprintf(text, sizeof text, "%ld", count);
    for (long i = 0; i < processes; i++) {
        if (fork() == 0) {
            execl("/proc/self/exe", arguments[0], "launch", text, (char *)NULL);
            _exit(127);
        }
    }
    for (long i = 0; i < processes; i++) {
        int status;
        wait(&status);
        failed += status != 0;
    }
    printf("processes %ld launched %ld failed %ld\n", processes, processes * count, failed);
}

static void mode_graph(void) {
    long nodes = number(1, 20), launches = number(2, 100);
    CUstream stream;
    CUgraph graph;
    CUgraphExec executable;
    start_device();
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuStreamBeginCapture_v2(stream, 0));
    launch_noops(nodes, stream);
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    for (long i = 0; i < launches; i++)
        CHECK(cuGraphLaunch(executable, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuGraphExecDestroy(executable));
    CHECK(cuGraphDestroy(graph));
    printf("graph nodes %ld launches %ld kernels %ld\n", nodes, launches, nodes * launches);
}

static void mode_diamond(void) {
    enum { FIRST, LEFT, RIGHT, LAST, NODES };
    long launches = number(1, 3);
    CUstream stream;
    CUgraph graph;
    CUgraphExec executable;
    CUgraphNode nodes[NODES];
    CUDA_KERNEL_NODE_PARAMS node = {0};
    start_device();
    node.func = kernel("noop");
    node.gridDimX = node.gridDimY = node.gridDimZ = 1;
    node.blockDimX = 32, node.blockDimY = node.blockDimZ = 1;
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuGraphCreate(&graph, 0));
    CHECK(cuGraphAddKernelNode_v2(&nodes[FIRST], graph, NULL, 0, &node));
    CHECK(cuGraphAddKernelNode_v2(&nodes[LEFT], graph, &nodes[FIRST], 1, &node));
    CHECK(cuGraphAddKernelNode_v2(&nodes[RIGHT], graph, &nodes[FIRST], 1, &node));
    CHECK(cuGraphAddKernelNode_v2(&nodes[LAST], graph, &nodes[LEFT], 2, &node));
    CHECK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    for (long i = 0; i < launches; i++) {
        launch_noops(1, stream);
        CHECK(cuGraphLaunch(executable, stream));
    }
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuGraphExecDestroy(executable));
    CHECK(cuGraphDestroy(graph));
    printf("diamond launches %ld kernels %ld\n", launches, (NODES + 1) * launches);
}

static void mode_copies(void) {
    enum { BYTES = 1 << 16 };
    long count = number(1, 100);
    static unsigned char sent[BYTES], received[BYTES];
    CUdeviceptr one, two;
    start_device();
    CHECK(cuMemAlloc_v2(&one, BYTES));
    CHECK(cuMemAlloc_v2(&two, BYTES));
    for (long i = 0; i < count; i++) {
        memset(sent, (int)i + 1, BYTES);
        CHECK(cuMemsetD8Async(two, 0, BYTES, NULL));
        CHECK(cuMemcpyHtoD_v2(one, sent, BYTES));
        CHECK(cuMemcpyDtoDAsync_v2(two, one, BYTES, NULL));
        CHECK(cuMemcpyDtoH_v2(received, two, BYTES));
        if (memcmp(sent, received, BYTES) != 0) {
            printf("copies differ at %ld\n", i);
            exit(1);
        }
    }
    CHECK(cuMemFree_v2(one));
    CHECK(cuMemFree_v2(two));
    printf("copied %ld sets %ld bytes %ld\n", 3 * count, count, 3 * count * BYTES);
}

static void mode_compute(void) {
    unsigned n = (unsigned)number(1, 1024), wrong = 0, value = 0, square = 16, cells = 256;
    float factor = 0.5f, *host = malloc(n * sizeof *host), product[256], sum = 0;
    CUdeviceptr x, y, z, a, b, c, total;
    start_device();
    for (unsigned i = 0; i < n; i++)
        host[i] = (float)i;
    CHECK(cuMemAlloc_v2(&x, n * 4));
    CHECK(cuMemAlloc_v2(&y, n * 4));
    CHECK(cuMemAlloc_v2(&z, n * 4));
    CHECK(cuMemAlloc_v2(&total, 4));
    CHECK(cuMemcpyHtoD_v2(x, host, n * 4));
    unsigned blocks = (n + 255) / 256;
    launch(kernel("fill"), blocks, 256, NULL, (void *[]){&y, &value, &n});
    launch(kernel("saxpy"), blocks, 256, NULL, (void *[]){&y, &x, &factor, &n});
    launch(kernel("vector_add"), blocks, 256, NULL, (void *[]){&z, &x, &y, &n});
    launch(kernel("fill"), 1, 1, NULL, (void *[]){&total, &value, &(unsigned){1}});
    launch(kernel("accumulate"), blocks, 256, NULL, (void *[]){&total, &x, &n});
    CHECK(cuMemcpyDtoH_v2(host, z, n * 4));
    for (unsigned i = 0; i < n; i++)
        wrong += host[i] != 1.5f * (float)i;
    CHECK(cuMemcpyDtoH_v2(&sum, total, 4));
    CHECK(cuMemAlloc_v2(&a, 1024));
    CHECK(cuMemAlloc_v2(&b, 1024));
    CHECK(cuMemAlloc_v2(&c, 1024));
    for (unsigned i = 0; i < cells; i++)
        product[i] = (float)(i % square == i / square ? 2 : 0);
    CHECK(cuMemcpyHtoD_v2(a, product, 1024));
    for (unsigned i = 0; i < cells; i++)
        product[i] = (float)i;
    CHECK(cuMemcpyHtoD_v2(b, product, 1024));
    launch(kernel("matmul"), 1, 256, NULL, (void *[]){&c, &a, &b, &square});
    CHECK(cuMemcpyDtoH_v2(product, c, 1024));
    for (unsigned i = 0; i < cells; i++)
        wrong += product[i] != 2.0f * (float)i;
    printf("computed 6 wrong %u sum %.0f\n", wrong, sum);
    free(host);
    if (wrong)
        exit(1);
}

static void mode_memory(void) {
    CUdeviceptr plain, managed, ordered;
    CUstream stream;
    void *pinned;
    start_device();
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuMemAlloc_v2(&plain, 1 << 20));
    CHECK(cuMemAllocManaged(&managed, 1 << 16, 1));
    CHECK(cuMemHostAlloc(&pinned, 1 << 16, 0));
    CHECK(cuMemAllocAsync(&ordered, 1 << 18, stream));
    CHECK(cuMemsetD8Async(ordered, 1, 1 << 18, stream));
    CHECK(cuMemFreeAsync(ordered, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuMemFreeHost(pinned));
    CHECK(cuMemFree_v2(managed));
    CHECK(cuMemFree_v2(plain));
    printf("allocated 4 freed 4\n");
}

static void mode_virtual(void) {
    enum { BYTES = 2 << 20 };
    /* CUmemAllocationProp: pinned memory of device 0; CUmemAccessDesc: read and write for it. */
    const int32_t properties[8] = {1, 0, 1, 0, 0, 0, 0, 0}, access[3] = {1, 0, 3};
    unsigned value = 42, count = BYTES / 4, *received = malloc(BYTES), wrong = 0;
    CUdeviceptr first, again;
    unsigned long long memory;
    start_device();
    CHECK(cuMemAddressReserve(&first, BYTES, 0, 0, 0));
    CHECK(cuMemAddressFree(first, BYTES));
    CHECK(cuMemAddressReserve(&again, BYTES, 0, first, 0));
    CHECK(cuMemCreate(&memory, BYTES, properties, 0));
    CHECK(cuMemMap(again, BYTES, 0, memory, 0));
    CHECK(cuMemSetAccess(again, BYTES, access, 1));
    launch(kernel("fill"), (count + 255) / 256, 256, NULL, (void *[]){&again, &value, &count});
    CHECK(cuMemcpyDtoH_v2(received, again, BYTES));
    for (unsigned i = 0; i < count; i++)
        wrong += received[i] != value;
    CHECK(cuMemUnmap(again, BYTES));
    CHECK(cuMemRelease(memory));
    CHECK(cuMemAddressFree(again, BYTES));
    printf("mapped %u wrong %u same address %d\n", count, wrong, again == first);
    free(received);
}

static void mode_peer(void) {
    int devices = 0, sent = 7, received = 0;
    CUcontext other;
    CUdeviceptr here, there, back;
    CUstream stream;
    CUevent event;
    start_device();
    CHECK(cuDeviceGetCount(&devices));
    if (devices < 2) {
        printf("devices %d\n", devices);
        return;
    }
    CHECK(cuDevicePrimaryCtxRetain(&other, 1));
    CHECK(cuCtxSetCurrent(other));
    CHECK(cuMemAlloc_v2(&there, 4));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuMemAlloc_v2(&here, 4));
    CHECK(cuMemAlloc_v2(&back, 4));
    CHECK(cuMemcpyHtoD_v2(here, &sent, 4));
    CHECK(cuMemcpyPeerAsync(there, other, here, context, 4, NULL));
    CHECK(cuMemcpyPeerAsync(back, context, there, other, 4, NULL));
    CHECK(cuMemcpyDtoH_v2(&received, back, 4));
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuEventCreate(&event, 0));
    CHECK(cuEventRecord(event, stream));
    CHECK(cuCtxSetCurrent(other));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuEventSynchronize(event));
    printf("devices %d peer copies 2 same %d\n", devices, sent == received);
}

static void *runtime_library(void) {
    void *library = dlopen("libcudart.so.13", RTLD_NOW);
    if (!library)
        library = dlopen("libcudart.so.12", RTLD_NOW);
    if (!library) {
        fprintf(stderr, "failed dlopen %s\n", dlerror());
        exit(2);
    }
    return library;
}

static void mode_runtime_launch(void) {
    typedef struct {
        unsigned x, y, z;
    } extent;
    typedef int (*launch_kernel)(void *, extent, extent, void **, size_t, void *);
    launch_kernel launch_it = (launch_kernel)dlsym(runtime_library(), "cudaLaunchKernel");
    long count = number(1, 10);
    void *library, *noop;
    extent grid = {1, 1, 1}, block = {32, 1, 1};
    int result = 0;
    start_device();
#define DRIVER(name) ((int (*)())dlsym(driver_library, #name))
    CHECK(DRIVER(cuLibraryLoadData)(&library, KERNELS_PTX, NULL, NULL, 0, NULL, NULL, 0));
    CHECK(DRIVER(cuLibraryGetKernel)(&noop, library, "noop"));
    for (long i = 0; i < count; i++)
        result |= launch_it(noop, grid, block, NULL, 0, NULL);
    CHECK(cuCtxSynchronize());
    printf("launched %ld by the runtime result %d\n", count, result);
}

static void mode_runtime_graphs(void) {
    int (*launch_graph)(CUgraphExec, CUstream) = NULL;
    CUstream stream;
    CUgraph graph;
    CUgraphExec executable;
    *(void **)&launch_graph = dlsym(runtime_library(), "cudaGraphLaunch");
    start_device();
    CHECK(cuStreamCreate(&stream, 1));
    CHECK(cuStreamBeginCapture_v2(stream, 0));
    launch_noops(number(1, 20), stream);
    CHECK(cuStreamEndCapture(stream, &graph));
    CHECK(cuGraphInstantiateWithFlags(&executable, graph, 0));
    for (;;) {
        CHECK(launch_graph(executable, stream));
        CHECK(cuStreamSynchronize(stream));
    }
}

static void mode_runtime(void) {
    void *library = runtime_library(), *memory, *stream;
    unsigned char received[64];
    int result = 0;
#define RUNTIME(name) ((int (*)())dlsym(library, #name))
    result |= RUNTIME(cudaSetDevice)(0);
    result |= RUNTIME(cudaMalloc)(&memory, sizeof received);
    result |= RUNTIME(cudaStreamCreate)(&stream);
    result |= RUNTIME(cudaProfilerStart)();
    result |= RUNTIME(cudaMemset)(memory, 5, sizeof received);
    result |= RUNTIME(cudaMemcpyAsync)(received, memory, sizeof received, 2, stream);
    result |= RUNTIME(cudaStreamSynchronize)(stream);
    result |= RUNTIME(cudaProfilerStop)();
    result |= RUNTIME(cudaFree)(memory);
    result |= RUNTIME(cudaDeviceSynchronize)();
    result |= RUNTIME(cudaGetLastError)();
    printf("runtime calls 11 result %d value %d\n", result, received[63]);
}

static void mode_runtime_copies(void) {
    void *library = runtime_library(), *first, *second, *stream;
    unsigned char sent[4096] = {1, 2, 3}, received[4096];
    int result = 0;
    result |= RUNTIME(cudaSetDevice)(0);
    result |= RUNTIME(cudaMalloc)(&first, sizeof sent);
    result |= RUNTIME(cudaMalloc)(&second, sizeof sent);
    result |= RUNTIME(cudaStreamCreate)(&stream);
    result |= RUNTIME(cudaMemset)(second, 5, sizeof received);
    result |= RUNTIME(cudaDeviceSynchronize)();
    result |= RUNTIME(cudaProfilerStart)();
    result |= RUNTIME(cudaMemcpyAsync)(first, sent, sizeof sent, 1, stream);
    result |= RUNTIME(cudaMemcpyAsync)(received, second, sizeof received, 2, stream);
    result |= RUNTIME(cudaMemcpyAsync)(second, sent, 64, 1, stream);
    result |= RUNTIME(cudaStreamSynchronize)(stream);
    result |= RUNTIME(cudaProfilerStop)();
    printf("copied 3 result %d value %d\n", result, received[4095]);
}

static void mode_events(void) {
    CUstream first, second;
    CUevent start, middle, end;
    float millis;
    start_device();
    CHECK(cuStreamCreate(&first, 1));
    CHECK(cuStreamCreate(&second, 1));
    CHECK(cuEventCreate(&start, 0));
    CHECK(cuEventCreate(&middle, 0));
    CHECK(cuEventCreate(&end, 0));
    CHECK(cuEventRecord(start, first));
    launch_noops(10, first);
    CHECK(cuEventRecord(middle, first));
    CHECK(cuStreamWaitEvent(second, middle, 0));
    launch_noops(10, second);
    CHECK(cuEventRecord(end, second));
    CHECK(cuEventSynchronize(end));
    CHECK(cuEventElapsedTime(&millis, start, end));
    CHECK(cuEventDestroy_v2(start));
    CHECK(cuEventDestroy_v2(middle));
    CHECK(cuEventDestroy_v2(end));
    printf("events recorded 3 waited 2 kernels 20 ordered %d\n", millis >= 0);
}

static void mode_modules(void) {
    CUmodule again;
    CUfunction noop;
    start_device();
    launch_noops(1, NULL);
    for (int i = 0; i < 3; i++) {
        CHECK(cuModuleLoadData(&again, KERNELS_PTX));
        CHECK(cuModuleGetFunction(&noop, again, "noop"));
        launch(noop, 1, 1, NULL, NULL);
        CHECK(cuCtxSynchronize());
        CHECK(cuModuleUnload(again));
    }
    printf("modules loaded 4 unloaded 3 kernels 4\n");
}

static void mode_profiler(void) {
    start_device();
    launch_noops(10, NULL);
    CHECK(cuCtxSynchronize());
    CHECK(cuProfilerStart());
    launch_noops(20, NULL);
    CHECK(cuCtxSynchronize());
    CHECK(cuProfilerStop());
    launch_noops(30, NULL);
    CHECK(cuCtxSynchronize());
    printf("launched 10 20 30\n");
}

static void mode_window(void) {
    unsigned n = (unsigned)number(1, 1000), value = 7, zero = 0, one = 1;
    long sums = number(2, 0);
    size_t bytes = n * sizeof(float);
    float factor = 0.5f, *host = malloc(bytes), *pinned, sum = 0;
    CUdeviceptr x, y, z, total, table, fresh, unused;
    CUstream first, second;
    CUevent done;
    start_device();
    for (unsigned i = 0; i < n; i++)
        host[i] = (float)(i % 977) * 0.1f;
    CHECK(cuMemAlloc_v2(&x, bytes));
    CHECK(cuMemAlloc_v2(&y, bytes));
    CHECK(cuMemAlloc_v2(&z, bytes));
    CHECK(cuMemAlloc_v2(&total, 4));
    CHECK(cuMemAlloc_v2(&table, 64));
    CHECK(cuMemAlloc_v2(&unused, 1 << 20));
    CHECK(cuMemHostAlloc((void **)&pinned, bytes, 0));
    memcpy(pinned, host, bytes);
    CHECK(cuStreamCreate(&first, 1));
    CHECK(cuStreamCreate(&second, 1));
    CHECK(cuEventCreate(&done, 0));
    unsigned blocks = (n + 255) / 256;
    CHECK(cuMemcpyHtoD_v2(x, host, bytes));
    launch(kernel("fill"), blocks, 256, NULL, (void *[]){&y, &value, &n});
    launch(kernel("fill"), 1, 1, NULL, (void *[]){&total, &zero, &one});
    /* What a buffer points to is reached with it. */
    CHECK(cuMemcpyHtoD_v2(table, &z, sizeof z));
    CHECK(cuProfilerStart());
    CHECK(cuMemcpyHtoDAsync_v2(y, pinned, bytes, first));
    launch(kernel("saxpy"), blocks, 256, first, (void *[]){&y, &x, &factor, &n});
    CHECK(cuEventRecord(done, first));
    CHECK(cuStreamWaitEvent(second, done, 0));
    CHECK(cuMemAlloc_v2(&fresh, bytes));
    if (number(3, 0)) {
        launch(kernel("saxpy"), blocks, 256, second, (void *[]){&fresh, &x, &factor, &n});
    } else {
        CHECK(cuMemsetD8Async(fresh, 0, bytes, second));
        launch(kernel("vector_add"), blocks, 256, second, (void *[]){&fresh, &x, &y, &n});
    }
    CHECK(cuMemcpyDtoDAsync_v2(x, fresh, bytes, second));
    launch(kernel("fill"), 1, 2, second, (void *[]){&table, &value, &one});
    for (long i = 0; i < sums; i++)
        launch(kernel("accumulate"), blocks, 256, second, (void *[]){&total, &x, &n});
    CHECK(cuStreamSynchronize(second));
    CHECK(cuMemcpyDtoH_v2(&sum, total, 4));
    CHECK(cuMemFree_v2(fresh));
    CHECK(cuProfilerStop());
    launch(kernel("fill"), blocks, 256, NULL, (void *[]){&x, &zero, &n});
    CHECK(cuCtxSynchronize());
    printf("window sum %.1f\n", sum);
    free(host);
}

static void mode_temporary(void) {
    unsigned n = (unsigned)number(1, 1000), seven = 7, nine = 9;
    unsigned blocks = (n + 255) / 256;
    size_t bytes = n * sizeof(float);
    CUdeviceptr x, out, read, unread;
    CUstream stream;
    start_device();
    CHECK(cuMemAlloc_v2(&x, bytes));
    CHECK(cuMemAlloc_v2(&out, bytes));
    CHECK(cuStreamCreate(&stream, 1));
    launch(kernel("fill"), blocks, 256, stream, (void *[]){&x, &nine, &n});
    CHECK(cuMemsetD8Async(out, 0, bytes, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuProfilerStart());
    CHECK(cuMemAllocAsync(&read, bytes, stream));
    launch(kernel("fill"), blocks, 256, stream, (void *[]){&read, &seven, &n});
    launch(kernel("vector_add"), blocks, 256, stream, (void *[]){&out, &read, &x, &n});
    CHECK(cuMemFreeAsync(read, stream));
    CHECK(cuMemAllocAsync(&unread, bytes, stream));
    launch(kernel("fill"), blocks, 256, stream, (void *[]){&unread, &seven, &n});
    CHECK(cuMemFreeAsync(unread, stream));
    CHECK(cuStreamSynchronize(stream));
    CHECK(cuProfilerStop());
    printf("temporary %u\n", n);
}

static void mode_nvtx(void) {
    nvtx_event event;
    memset(&event, 0, sizeof event);
    event.version = 3;
    event.size = sizeof event;
    event.message_type = 1;
    event.message.ascii = "pushed with attributes";
    event.color_type = 1;
    event.color = 0xFF76B900;
    event.category = 7;
    event.payload_type = 1;
    event.payload.u64 = 42;
    start_device();
    nvtx_name_thread((uint32_t)syscall(SYS_gettid), "main thread");
    nvtx_name_category(7, "seventh");
    nvtx_mark("a mark");
    uint64_t range = nvtx_begin("a started range");
    int outer = nvtx_push("outer");
    launch_noops(2, NULL);
    int inner = nvtx_push_event(&event);
    launch_noops(3, NULL);
    nvtx_pop();
    int popped = nvtx_pop();
    nvtx_end(range);
    void *domain = nvtx_domain("launcher");
    nvtx_domain_category(domain, 7, "seventh of launcher");
    void *registered = nvtx_string(domain, "a registered name");
    event.message_type = 3;
    event.message.registered = registered;
    nvtx_domain_push(domain, &event);
    launch_noops(4, NULL);
    nvtx_domain_mark(domain, &event);
    nvtx_domain_pop(domain);
    CHECK(cuCtxSynchronize());
    printf("nvtx ranges 4 marks 2 kernels 9 levels %d %d %d\n", outer, inner, popped);
}

static void mode_fork(void) {
    start_device();
    launch_noops(100, NULL);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        /* CUDA is of no use here; the child only must be able to leave. */
        exit(cuCtxSynchronize() == 0 ? 1 : 0);
    }
    launch_noops(100, NULL);
    CHECK(cuCtxSynchronize());
    int status = -1;
    waitpid(child, &status, 0);
    printf("launched 200 child %d\n", status);
}

static void mode_segv(void) {
    start_device();
    launch_noops(100, NULL);
    CHECK(cuCtxSynchronize());
    printf("launched 100\n");
    fflush(stdout);
    signal(SIGSEGV, SIG_DFL);
    raise(SIGSEGV);
}

static void mode_exit_early(void) {
    start_device();
    launch_noops(100, NULL);
    printf("launched 100\n");
    fflush(stdout);
    _exit(3);
}

static void mode_beside(void) {
    CUstream streams[2];
    CUdeviceptr numbers;
    unsigned one = 1;
    float value = 0;
    long count = number(1, 100);
    start_device();
    for (int i = 0; i < 2; i++)
        CHECK(cuStreamCreate(&streams[i], 1));
    CHECK(cuMemAlloc_v2(&numbers, sizeof value));
    launch(kernel("fill"), 1, 1, streams[0], (void *[]){&numbers, &value, &one});
    launch_noops(count, streams[1]);
    CHECK(cuStreamSynchronize(streams[1]));
    printf("launched %ld beside 1\n", count);
    fflush(stdout);
    usleep(500000);
    _exit(0);
}

static void mode_unfinished(void) {
    start_device();
    launch_noops(3, NULL);
    printf("launched 3\n");
}

static void mode_forever(void) {
    start_device();
    for (long count = 0;;) {
        launch_noops(100, NULL);
        CHECK(cuCtxSynchronize());
        count += 100;
        printf("launched %ld\n", count);
        fflush(stdout);
        usleep(1000);
    }
}

static pthread_mutex_t turn_guard = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_changed = PTHREAD_COND_INITIALIZER;
static long turn;

static void uncalled(void *user, uint32_t domain, uint32_t id, const void *data) {
    (void)user, (void)domain, (void)id, (void)data;
}

/* 39 while CUPTI has a subscriber, else 0: the fake's libcuda has CUPTI's functions too, a real one has not (-1). */
static int ask_for_subscriber(void) {
    int (*subscribe)(void **, void (*)(void *, uint32_t, uint32_t, const void *), void *) = NULL;
    int (*unsubscribe)(void *) = NULL;
    void *mine;
    *(void **)&subscribe = dlsym(driver_library, "cuptiSubscribe");
    *(void **)&unsubscribe = dlsym(driver_library, "cuptiUnsubscribe");
    int result = subscribe && unsubscribe ? subscribe(&mine, uncalled, NULL) : -1;
    if (result == 0)
        unsubscribe(mine);
    return result;
}

static void *relay_main(void *own) {
    CHECK(cuCtxSetCurrent(context));
    for (;;) {
        pthread_mutex_lock(&turn_guard);
        while (turn % 2 != (long)own)
            pthread_cond_wait(&turn_changed, &turn_guard);
        pthread_mutex_unlock(&turn_guard);
        launch_noops(300, NULL);
        CHECK(cuCtxSynchronize());
        printf("turn %ld subscribed %d\n", turn, ask_for_subscriber());
        fflush(stdout);
        usleep(1000);
        pthread_mutex_lock(&turn_guard);
        turn++;
        pthread_cond_broadcast(&turn_changed);
        pthread_mutex_unlock(&turn_guard);
    }
    return NULL;
}

static void mode_relay(void) {
    pthread_t other;
    start_device();
    pthread_create(&other, NULL, relay_main, (void *)1);
    relay_main((void *)0);
}

static void *crowd_main(void *unused) {
    (void)unused;
    CUstream stream;
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuStreamCreate(&stream, 1));
    for (;;) {
        launch_noops(100, stream);
        CHECK(cuStreamSynchronize(stream));
    }
    return NULL;
}

static void mode_crowd(void) {
    pthread_t ids[256];
    long threads = number(1, 4);
    start_device();
    for (long i = 0; i < threads && i < 256; i++)
        pthread_create(&ids[i], NULL, crowd_main, NULL);
    printf("at work\n");
    fflush(stdout);
    pthread_join(ids[0], NULL);
}

static void mode_sleep(void) {
    start_device();
    launch_noops(1, NULL);
    CHECK(cuCtxSynchronize());
    printf("launched 1\n");
    fflush(stdout);
    sleep((unsigned)number(1, 1));
}

static void mode_closefds(void) {
    start_device();
    launch_noops(10, NULL);
    for (int descriptor = 3; descriptor < 4096; descriptor++)
        close(descriptor);
    for (int i = 0; i < 9; i++) {
        usleep(50000);
        launch_noops(10, NULL);
    }
    /* A real driver needs its descriptors for waiting; the fake does not. */
    CUresult result = cuCtxSynchronize();
    printf("launched 100 closed 1 sync %d\n", result == 0);
}

static void launch_at_exit(void) {
    launch_noops(5, NULL);
    CHECK(cuCtxSynchronize());
    printf("launched 5 at exit\n");
}

static void mode_at_exit(void) {
    start_device();
    atexit(launch_at_exit);
    launch_noops(10, NULL);
    CHECK(cuCtxSynchronize());
    printf("launched 10\n");
}

static void mode_exit(void) {
    start_device();
    launch_noops(10, NULL);
    CHECK(cuCtxSynchronize());
    printf("launched 10\n");
    exit((int)number(1, 7));
}

static void mode_client(void) {
    start_device();
    launch_noops(10, NULL);
    CHECK(cuCtxSynchronize());
    client_open();
    client_start();
    launch_noops(20, NULL);
    CHECK(cuCtxSynchronize());
    client_stop();
    launch_noops(30, NULL);
    CHECK(cuCtxSynchronize());
    printf("launched 60 client kernels %ld records %ld dropped %ld\n", client_kernels, client_records, client_dropped);
}

static const struct {
    const char *name;
    void (*run)(void);
} MODES[] = {
    {"launch", mode_launch},         {"threads", mode_threads},   {"streams", mode_streams},
    {"processes", mode_processes},   {"graph", mode_graph},       {"copies", mode_copies},
    {"compute", mode_compute},       {"memory", mode_memory},     {"events", mode_events},
    {"modules", mode_modules},       {"profiler", mode_profiler}, {"nvtx", mode_nvtx},
    {"fork", mode_fork},             {"segv", mode_segv},         {"exit_early", mode_exit_early},
    {"forever", mode_forever},       {"sleep", mode_sleep},       {"closefds", mode_closefds},
    {"exit", mode_exit},             {"client", mode_client},     {"virtual", mode_virtual},
    {"peer", mode_peer},             {"runtime", mode_runtime},   {"unfinished", mode_unfinished},
    {"beside", mode_beside},
    {"at_exit", mode_at_exit},       {"relay", mode_relay},       {"crowd", mode_crowd},
    {"window", mode_window},         {"temporary", mode_temporary}, {"diamond", mode_diamond},   {"runtime_launch", mode_runtime_launch},
    {"runtime_graphs", mode_runtime_graphs}, {"runtime_copies", mode_runtime_copies},
};

int main(int count, char **values) {
    argument_count = count;
    arguments = values;
    for (size_t i = 0; count > 1 && i < sizeof MODES / sizeof *MODES; i++) {
        if (strcmp(values[1], MODES[i].name) == 0) {
            MODES[i].run();
            return 0;
        }
    }
    fprintf(stderr, "usage: launcher MODE [NUMBER...]\n");
    return 64;
}
