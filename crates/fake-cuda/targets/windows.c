/* A program whose window is recorded and run again: `windows CASE`. Between cuProfilerStart and cuProfilerStop each case
 * does one thing that a replay must get right, and says in one line what came out.
 *
 *   variables   a kernel that uses a variable of its module
 *   graph       a captured graph, launched twice
 *   changed     a graph whose kernel gets another parameter between two launches
 *   host        a function of the host within a stream, which writes what is then copied
 *   planes      copies and sets of rows and planes
 *   pinned      a kernel that reads memory of the host, which the program changes between two launches
 *   mapped      a kernel on memory that two mappings lie side by side for
 *   managed     a kernel and the host, in turns, on managed memory
 *   registered  a kernel that reads memory which the program took itself and registered
 *   collective  a kernel with the name of a collective
 *   texture     a kernel that is told the handle of a texture
 *   array       kernels that look at an array and paint it, and copies from and to it
 *   race        a kernel that does not wait for the stream that writes what it reads
 *   table       a kernel that follows an address which is copied in, to memory that nothing else refers to
 *   pointed     a kernel that follows an address in memory to a variable of its module
 *   twins       kernels of the same name in two libraries, of which one does nothing
 *   unused      a kernel, while another module is loaded that the window does not use
 *   reloaded    the same in modules that are loaded and unloaded in turn
 *   forever     kernels in a stream, until killed; the window is somebody else's
 *   looking     the same with a kernel that is told a texture
 *   counting    the same with a kernel that changes a variable of its module
 *   both        the same with kernels of the same name in two modules, of which one does nothing
 */
#define _GNU_SOURCE 1
#include <string.h>
#include <unistd.h>

#include "driver.h"

#define COUNT 1000u
#define BYTES (COUNT * sizeof(float))

typedef struct {
    size_t x, y;
    unsigned kind;
    const void *host;
    CUdeviceptr device;
    void *array;
    size_t pitch;
} rows_end;

typedef struct {
    rows_end source, destination;
    size_t width, height;
} rows;

typedef struct {
    size_t x, y, z, level;
    unsigned kind;
    const void *host;
    CUdeviceptr device;
    void *array, *reserved;
    size_t pitch, height;
} planes_end;

typedef struct {
    planes_end source, destination;
    size_t width, height, depth;
} planes;

typedef struct {
    CUfunction function;
    unsigned grid[3], block[3], shared;
    void **arguments, **extra;
    void *kernel, *context;
} kernel_node;

typedef struct {
    unsigned kind, handles;
    unsigned place_kind;
    int place;
    void *security;
    unsigned char rest[16];
} physical;

typedef struct {
    unsigned place_kind;
    int place;
    unsigned flags;
} access_to;

static CUresult (*cuModuleGetGlobal_v2)(CUdeviceptr *, size_t *, CUmodule, const char *);
static CUresult (*cuLaunchHostFunc)(CUstream, void (*)(void *), void *);
static CUresult (*cuMemcpy2DAsync_v2)(const rows *, CUstream);
static CUresult (*cuMemcpy3D_v2)(const planes *);
static CUresult (*cuMemsetD2D32Async)(CUdeviceptr, size_t, unsigned, size_t, size_t, CUstream);
static CUresult (*cuMemHostRegister_v2)(void *, size_t, unsigned);
static CUresult (*cuArray3DCreate_v2)(void **, const void *);
static CUresult (*cuSurfObjectCreate)(unsigned long long *, const void *);
static CUresult (*cuTexObjectCreate)(unsigned long long *, const void *, const void *, const void *);
static CUresult (*cuGraphGetNodes)(CUgraph, void **, size_t *);
static CUresult (*cuGraphExecKernelNodeSetParams_v2)(CUgraphExec, void *, const kernel_node *);

static float host[COUNT];
static CUdeviceptr x, y;
static CUstream first, second;

static void find(void *where, const char *name) {
    *(void **)where = dlsym(driver_library, name);
    if (!*(void **)where) {
        fprintf(stderr, "failed dlsym %s\n", name);
        exit(2);
    }
}

static void fill(CUdeviceptr to, unsigned value, unsigned count, CUstream stream) {
    launch(kernel("fill"), (count + 255) / 256, 256, stream, (void *[]){&to, &value, &count});
}

static void saxpy(CUdeviceptr to, CUdeviceptr from, float factor, CUstream stream) {
    unsigned count = COUNT;
    launch(kernel("saxpy"), 4, 256, stream, (void *[]){&to, &from, &factor, &count});
}

static void begin(void) {
    CHECK(cuCtxSynchronize());
    CHECK(cuProfilerStart());
}

/* The window ends; says what the first and the last number of y are. */
static void end(void) {
    CHECK(cuCtxSynchronize());
    CHECK(cuProfilerStop());
    CHECK(cuMemcpyDtoH_v2(host, y, BYTES));
    printf("window %g %g\n", host[0], host[COUNT - 1]);
}

static void variables(void) {
    CUdeviceptr counter;
    size_t bytes;
    unsigned start = 40, by = 2, got[3];
    find(&cuModuleGetGlobal_v2, "cuModuleGetGlobal_v2");
    CHECK(cuModuleGetGlobal_v2(&counter, &bytes, module, "counter"));
    CHECK(cuMemcpyHtoD_v2(counter, &start, sizeof start));
    begin();
    for (unsigned i = 0; i < 3; i++) {
        CUdeviceptr to = y + 4 * i;
        launch(kernel("bump"), 1, 1, first, (void *[]){&to, &by});
    }
    CHECK(cuCtxSynchronize());
    CHECK(cuProfilerStop());
    CHECK(cuMemcpyDtoH_v2(got, y, sizeof got));
    printf("window %u %u %u of %zu bytes\n", got[0], got[1], got[2], bytes);
}

static CUgraphExec captured(CUgraph *graph) {
    CUgraphExec ready;
    CHECK(cuStreamBeginCapture_v2(first, 0));
    CHECK(cuMemsetD8Async(y, 0, BYTES / 2, first));
    saxpy(y, x, 0.5f, first);
    CHECK(cuMemcpyDtoDAsync_v2(x, y, 64, first));
    CHECK(cuStreamEndCapture(first, graph));
    CHECK(cuGraphInstantiateWithFlags(&ready, *graph, 0));
    return ready;
}

static void graph(void) {
    CUgraph graph;
    CUgraphExec ready = captured(&graph);
    begin();
    CHECK(cuGraphLaunch(ready, first));
    saxpy(y, x, 2.0f, first);
    CHECK(cuGraphLaunch(ready, first));
    end();
}

static void changed(void) {
    CUgraph graph;
    void *nodes[8];
    size_t count = 8;
    unsigned elements = COUNT;
    float factor = 3.0f;
    kernel_node node = {kernel("saxpy"), {4, 1, 1}, {256, 1, 1}, 0, (void *[]){&y, &x, &factor, &elements}, 0, 0, 0};
    CUgraphExec ready = captured(&graph);
    find(&cuGraphGetNodes, "cuGraphGetNodes");
    find(&cuGraphExecKernelNodeSetParams_v2, "cuGraphExecKernelNodeSetParams_v2");
    CHECK(cuGraphGetNodes(graph, nodes, &count));
    begin();
    CHECK(cuGraphLaunch(ready, first));
    CHECK(cuGraphExecKernelNodeSetParams_v2(ready, nodes[1], &node));
    CHECK(cuGraphLaunch(ready, first));
    end();
}

static void double_all(void *numbers) {
    usleep(20000);
    for (unsigned i = 0; i < COUNT; i++)
        ((float *)numbers)[i] *= 2;
}

static void host_function(void) {
    float *pinned;
    find(&cuLaunchHostFunc, "cuLaunchHostFunc");
    CHECK(cuMemHostAlloc((void **)&pinned, BYTES, 0));
    memcpy(pinned, host, BYTES);
    begin();
    CHECK(cuMemcpyDtoHAsync_v2(pinned, x, BYTES, first));
    CHECK(cuLaunchHostFunc(first, double_all, pinned));
    CHECK(cuMemcpyHtoDAsync_v2(y, pinned, BYTES, first));
    saxpy(y, x, 1.0f, first);
    end();
}

static void plane_copies(void) {
    rows of_rows = {{4, 1, 1, host, 0, 0, 40}, {0, 0, 2, 0, y, 0, 80}, 32, 10};
    planes of_planes = {{0, 1, 1, 0, 2, 0, x, 0, 0, 40, 5}, {8, 0, 0, 0, 2, 0, y, 0, 0, 80, 4}, 20, 3, 2};
    find(&cuMemcpy2DAsync_v2, "cuMemcpy2DAsync_v2");
    find(&cuMemcpy3D_v2, "cuMemcpy3D_v2");
    find(&cuMemsetD2D32Async, "cuMemsetD2D32Async");
    begin();
    CHECK(cuMemcpy2DAsync_v2(&of_rows, first));
    CHECK(cuMemsetD2D32Async(y + 40, 80, 7, 5, 3, first));
    CHECK(cuStreamSynchronize(first));
    CHECK(cuMemcpy3D_v2(&of_planes));
    CHECK(cuCtxSynchronize());
    saxpy(y, x, 1.0f, first);
    end();
}

static void pinned_memory(void) {
    float *pinned;
    CHECK(cuMemHostAlloc((void **)&pinned, BYTES, 0));
    memcpy(pinned, host, BYTES);
    begin();
    saxpy(y, (CUdeviceptr)(size_t)pinned, 1.0f, first);
    CHECK(cuStreamSynchronize(first));
    for (unsigned i = 0; i < COUNT; i++)
        pinned[i] = 100;
    saxpy(y, (CUdeviceptr)(size_t)pinned, 1.0f, first);
    end();
}

static void mapped(void) {
    const size_t part = 2 << 20;
    CUdeviceptr base;
    unsigned long long handles[2];
    physical properties = {.kind = 1, .place_kind = 1};
    access_to all = {1, 0, 3};
    CHECK(cuMemAddressReserve(&base, 2 * part, 0, 0, 0));
    for (int i = 0; i < 2; i++) {
        CHECK(cuMemCreate(&handles[i], part, &properties, 0));
        CHECK(cuMemMap(base + i * part, part, 0, handles[i], 0));
    }
    CHECK(cuMemSetAccess(base, 2 * part, &all, 1));
    /* Half before the border and half behind it. */
    CUdeviceptr middle = base + part - BYTES / 2;
    CHECK(cuMemcpyHtoD_v2(middle, host, BYTES));
    begin();
    saxpy(y, middle, 1.0f, first);
    saxpy(middle, y, 1.0f, first);
    end();
}

static void managed(void) {
    CUdeviceptr both;
    CHECK(cuMemAllocManaged(&both, BYTES, 1));
    float *numbers = (float *)(size_t)both;
    memcpy(numbers, host, BYTES);
    begin();
    saxpy(both, x, 1.0f, first);
    CHECK(cuStreamSynchronize(first));
    for (unsigned i = 0; i < COUNT; i++)
        numbers[i] += 1;
    saxpy(y, both, 2.0f, first);
    end();
}

static void registered(void) {
    float *own;
    find(&cuMemHostRegister_v2, "cuMemHostRegister_v2");
    if (posix_memalign((void **)&own, 4096, BYTES) != 0)
        exit(2);
    memcpy(own, host, BYTES);
    CHECK(cuMemHostRegister_v2(own, BYTES, 0));
    begin();
    CHECK(cuMemcpyHtoDAsync_v2(y, own, BYTES, first));
    saxpy(y, x, 1.0f, first);
    CHECK(cuMemcpyDtoHAsync_v2(own, y, BYTES, first));
    end();
}

static void collective(void) {
    unsigned count = COUNT;
    float factor = 1.0f;
    begin();
    saxpy(y, x, 0.5f, first);
    launch(kernel("ncclDevKernel_AllReduce_Sum_f32"), 4, 256, first, (void *[]){&y, &x, &factor, &count});
    saxpy(y, x, 0.25f, first);
    end();
}

/* CUDA_RESOURCE_DESC, CUDA_TEXTURE_DESC and CUDA_ARRAY3D_DESCRIPTOR. */
typedef struct {
    unsigned kind;
    unsigned long long words[16];
    unsigned flags;
} resource;

typedef struct {
    size_t width, height, depth;
    unsigned format, channels, flags;
} array_shape;

static unsigned long long textured(resource *of) {
    unsigned long long how[13] = {0}, handle;
    find(&cuTexObjectCreate, "cuTexObjectCreate");
    CHECK(cuTexObjectCreate(&handle, of, how, NULL));
    return handle;
}

static void look(const char *name, CUdeviceptr to, unsigned long long handle) {
    unsigned count = COUNT;
    launch(kernel(name), 4, 256, first, (void *[]){&to, &handle, &count});
}

static void texture(void) {
    resource of = {2, {x, 0x0000000100000020ull, BYTES}, 0};
    /* One that nobody uses, so that the other has not the first handle. */
    textured(&of);
    unsigned long long handle = textured(&of);
    begin();
    look("look", y, handle);
    saxpy(x, y, 0.5f, first);
    look("look", y, handle);
    end();
}

static void array(void) {
    array_shape shape = {COUNT, 0, 0, 0x20, 1, 2};
    void *numbers;
    find(&cuArray3DCreate_v2, "cuArray3DCreate_v2");
    find(&cuMemcpy3D_v2, "cuMemcpy3D_v2");
    find(&cuSurfObjectCreate, "cuSurfObjectCreate");
    CHECK(cuArray3DCreate_v2(&numbers, &shape));
    planes to_array = {{0, 0, 0, 0, 1, host, 0, 0, 0, BYTES, 1}, {.kind = 3, .array = numbers}, BYTES, 1, 1};
    planes of_array = {{.x = 40, .kind = 3, .array = numbers}, {0, 0, 0, 0, 2, 0, x, 0, 0, BYTES, 1}, 400, 1, 1};
    CHECK(cuMemcpy3D_v2(&to_array));
    resource of = {0, {(size_t)numbers}, 0};
    unsigned long long handle = textured(&of), surface, late;
    CHECK(cuSurfObjectCreate(&surface, &of));
    begin();
    look("look_at_array", y, handle);
    unsigned count = COUNT;
    /* What one kernel paints the next one looks at. */
    saxpy(y, x, 2.0f, first);
    launch(kernel("paint"), 4, 256, first, (void *[]){&surface, &y, &count});
    late = textured(&of);
    look("look_at_array", y, late);
    CHECK(cuCtxSynchronize());
    CHECK(cuMemcpy3D_v2(&of_array));
    CHECK(cuCtxSynchronize());
    host[7] = -3;
    CHECK(cuMemcpy3D_v2(&to_array));
    look("look_at_array", x, handle);
    end();
}

static void looking(void) {
    resource of = {2, {x, 0x0000000100000020ull, BYTES}, 0};
    unsigned long long handle = textured(&of);
    for (;;) {
        look("look", y, handle);
        CHECK(cuStreamSynchronize(first));
        puts("round");
        fflush(stdout);
        usleep(1000);
    }
}

static void race(void) {
    CUevent ready;
    CHECK(cuEventCreate(&ready, 0));
    begin();
    fill(x, 5, COUNT, first);
    CHECK(cuEventRecord(ready, first));
    CHECK(cuStreamWaitEvent(second, ready, 0));
    fill(x, 0x40000000, COUNT, first);
    /* A wait is missing here. */
    saxpy(y, x, 1.0f, second);
    end();
}

static void forever(void) {
    /* The last words of x are where other memory lies. */
    CUdeviceptr other;
    CHECK(cuMemAlloc_v2(&other, 3 * BYTES));
    CHECK(cuMemcpyHtoD_v2(x + BYTES - sizeof other, &other, sizeof other));
    for (;;) {
        saxpy(y, x, 1.0f, first);
        CHECK(cuMemcpyDtoDAsync_v2(x, y, 64, first));
        CHECK(cuStreamSynchronize(first));
        puts("round");
        fflush(stdout);
        usleep(1000);
    }
}

static void counting(void) {
    unsigned by = 2;
    for (;;) {
        launch(kernel("bump"), 1, 1, first, (void *[]){&y, &by});
        CHECK(cuStreamSynchronize(first));
        puts("round");
        fflush(stdout);
        usleep(1000);
    }
}

static void follow(CUdeviceptr table, unsigned count) {
    launch(kernel("follow"), (count + 255) / 256, 256, first, (void *[]){&y, &table, &count});
}

static void table(void) {
    CUdeviceptr table, other;
    CHECK(cuMemAlloc_v2(&table, 64));
    CHECK(cuMemAlloc_v2(&other, BYTES));
    CHECK(cuMemcpyHtoD_v2(other, host, BYTES));
    fill(table, 0, 16, NULL);
    begin();
    CHECK(cuMemcpyHtoDAsync_v2(table, &other, sizeof other, first));
    follow(table, COUNT);
    end();
}

static void pointed(void) {
    CUdeviceptr table, counter;
    size_t bytes;
    unsigned value = 0x40400000;
    find(&cuModuleGetGlobal_v2, "cuModuleGetGlobal_v2");
    CHECK(cuModuleGetGlobal_v2(&counter, &bytes, module, "counter"));
    CHECK(cuMemcpyHtoD_v2(counter, &value, sizeof value));
    CHECK(cuMemAlloc_v2(&table, 64));
    CHECK(cuMemcpyHtoD_v2(table, &counter, sizeof counter));
    begin();
    follow(table, 1);
    end();
}

/* A kernel of a name that another module has too. */
static const char TWIN_PTX[] =
    ".version 7.0\n"
    ".target sm_52\n"
    ".address_size 64\n"
    ".visible .entry fill(.param .u64 target, .param .u32 value, .param .u32 n)\n"
    "{\nret;\n}\n";

static void fill_by(void *function, float value) {
    unsigned bits, count = COUNT;
    memcpy(&bits, &value, sizeof bits);
    launch(function, 4, 256, first, (void *[]){&y, &bits, &count});
}

static void twins(void) {
    CUresult (*load)(void **, const void *, void *, void *, unsigned, void *, void *, unsigned);
    CUresult (*get)(void **, void *, const char *);
    const char *texts[] = {KERNELS_PTX, TWIN_PTX};
    void *libraries[2], *kernels[2];
    find(&load, "cuLibraryLoadData");
    find(&get, "cuLibraryGetKernel");
    for (int i = 0; i < 2; i++) {
        CHECK(load(&libraries[i], texts[i], NULL, NULL, 0, NULL, NULL, 0));
        CHECK(get(&kernels[i], libraries[i], "fill"));
    }
    begin();
    fill_by(kernels[0], 7);
    fill_by(kernels[1], 9);
    end();
}

static void unused(void) {
    CUmodule twin;
    CUfunction function;
    CHECK(cuModuleLoadData(&twin, TWIN_PTX));
    CHECK(cuModuleGetFunction(&function, twin, "fill"));
    begin();
    fill_by(kernel("fill"), 7);
    end();
}

static void reloaded(void) {
    CUmodule last = NULL;
    unsigned again = 0;
    begin();
    for (int i = 0; i < 16; i++) {
        CUmodule loaded;
        CUfunction function;
        CHECK(cuModuleLoadData(&loaded, i % 2 ? TWIN_PTX : KERNELS_PTX));
        CHECK(cuModuleGetFunction(&function, loaded, "fill"));
        fill_by(function, (float)i);
        CHECK(cuStreamSynchronize(first));
        CHECK(cuModuleUnload(loaded));
        again += loaded == last;
        last = loaded;
    }
    end();
    fprintf(stderr, "handles again %u\n", again);
}

static void both(void) {
    CUmodule twin;
    CUfunction functions[2] = {kernel("fill")};
    CHECK(cuModuleLoadData(&twin, TWIN_PTX));
    CHECK(cuModuleGetFunction(&functions[1], twin, "fill"));
    for (float value = 1;; value++) {
        fill_by(functions[0], value);
        fill_by(functions[1], -value);
        saxpy(x, y, 0.5f, first);
        CHECK(cuStreamSynchronize(first));
        puts("round");
        fflush(stdout);
        usleep(1000);
    }
}

static const struct {
    const char *name;
    void (*run)(void);
} CASES[] = {
    {"variables", variables}, {"graph", graph},          {"changed", changed}, {"host", host_function},
    {"planes", plane_copies}, {"pinned", pinned_memory}, {"mapped", mapped},   {"race", race},
    {"managed", managed},     {"registered", registered}, {"collective", collective}, {"texture", texture},
    {"forever", forever},     {"counting", counting},  {"array", array}, {"looking", looking},
    {"table", table},         {"pointed", pointed},      {"twins", twins},     {"unused", unused},     {"reloaded", reloaded},
    {"both", both},
};

int main(int count, char **values) {
    start_device();
    for (unsigned i = 0; i < COUNT; i++)
        host[i] = (float)i * 0.25f;
    CHECK(cuMemAlloc_v2(&x, BYTES));
    CHECK(cuMemAlloc_v2(&y, BYTES));
    CHECK(cuMemcpyHtoD_v2(x, host, BYTES));
    fill(y, 0, COUNT, NULL);
    CHECK(cuStreamCreate(&first, 1));
    CHECK(cuStreamCreate(&second, 1));
    for (size_t i = 0; count > 1 && i < sizeof CASES / sizeof *CASES; i++) {
        if (strcmp(values[1], CASES[i].name) == 0) {
            CASES[i].run();
            return 0;
        }
    }
    fprintf(stderr, "usage: windows CASE\n");
    return 64;
}
