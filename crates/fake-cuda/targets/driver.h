/* The driver's functions, found at run time: a program built with this needs no SDK and runs against any libcuda. */
#ifndef TRACESMITH_DRIVER_H
#define TRACESMITH_DRIVER_H

#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels.h"

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef struct Context *CUcontext;
typedef struct Module *CUmodule;
typedef struct Function *CUfunction;
typedef struct Stream *CUstream;
typedef struct Event *CUevent;
typedef struct Graph *CUgraph;
typedef struct GraphExec *CUgraphExec;
typedef struct GraphNode *CUgraphNode;
typedef struct {
    CUfunction func;
    unsigned gridDimX, gridDimY, gridDimZ, blockDimX, blockDimY, blockDimZ, sharedMemBytes;
    void **kernelParams, **extra;
    void *kern, *ctx;
} CUDA_KERNEL_NODE_PARAMS;

#define DRIVER_FUNCTIONS(X)                                                                      \
    X(CUresult, cuInit, (unsigned))                                                              \
    X(CUresult, cuGetErrorName, (CUresult, const char **))                                       \
    X(CUresult, cuDeviceGet, (CUdevice *, int))                                                  \
    X(CUresult, cuDeviceGetCount, (int *))                                                       \
    X(CUresult, cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice))                               \
    X(CUresult, cuCtxSetCurrent, (CUcontext))                                                    \
    X(CUresult, cuCtxSynchronize, (void))                                                        \
    X(CUresult, cuMemAddressReserve, (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long)) \
    X(CUresult, cuMemAddressFree, (CUdeviceptr, size_t))                                         \
    X(CUresult, cuMemCreate, (unsigned long long *, size_t, const void *, unsigned long long))   \
    X(CUresult, cuMemRelease, (unsigned long long))                                              \
    X(CUresult, cuMemMap, (CUdeviceptr, size_t, size_t, unsigned long long, unsigned long long)) \
    X(CUresult, cuMemUnmap, (CUdeviceptr, size_t))                                               \
    X(CUresult, cuMemSetAccess, (CUdeviceptr, size_t, const void *, size_t))                     \
    X(CUresult, cuMemcpyPeerAsync, (CUdeviceptr, CUcontext, CUdeviceptr, CUcontext, size_t, CUstream)) \
    X(CUresult, cuModuleLoadData, (CUmodule *, const void *))                                    \
    X(CUresult, cuModuleGetFunction, (CUfunction *, CUmodule, const char *))                     \
    X(CUresult, cuModuleUnload, (CUmodule))                                                      \
    X(CUresult, cuMemAlloc_v2, (CUdeviceptr *, size_t))                                          \
    X(CUresult, cuMemFree_v2, (CUdeviceptr))                                                     \
    X(CUresult, cuMemHostAlloc, (void **, size_t, unsigned))                                     \
    X(CUresult, cuMemFreeHost, (void *))                                                         \
    X(CUresult, cuMemAllocManaged, (CUdeviceptr *, size_t, unsigned))                            \
    X(CUresult, cuMemAllocAsync, (CUdeviceptr *, size_t, CUstream))                              \
    X(CUresult, cuMemFreeAsync, (CUdeviceptr, CUstream))                                         \
    X(CUresult, cuMemcpyHtoD_v2, (CUdeviceptr, const void *, size_t))                            \
    X(CUresult, cuMemcpyDtoH_v2, (void *, CUdeviceptr, size_t))                                  \
    X(CUresult, cuMemcpyDtoDAsync_v2, (CUdeviceptr, CUdeviceptr, size_t, CUstream))              \
    X(CUresult, cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream))             \
    X(CUresult, cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream))                   \
    X(CUresult, cuMemsetD8Async, (CUdeviceptr, unsigned char, size_t, CUstream))                 \
    X(CUresult, cuMemsetD32_v2, (CUdeviceptr, unsigned, size_t))                                 \
    X(CUresult, cuStreamCreate, (CUstream *, unsigned))                                          \
    X(CUresult, cuStreamDestroy_v2, (CUstream))                                                  \
    X(CUresult, cuStreamSynchronize, (CUstream))                                                 \
    X(CUresult, cuStreamWaitEvent, (CUstream, CUevent, unsigned))                                \
    X(CUresult, cuEventCreate, (CUevent *, unsigned))                                            \
    X(CUresult, cuEventRecord, (CUevent, CUstream))                                              \
    X(CUresult, cuEventSynchronize, (CUevent))                                                   \
    X(CUresult, cuEventElapsedTime, (float *, CUevent, CUevent))                                 \
    X(CUresult, cuEventDestroy_v2, (CUevent))                                                    \
    X(CUresult, cuLaunchKernel, (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned,   \
                                 unsigned, unsigned, CUstream, void **, void **))                \
    X(CUresult, cuStreamBeginCapture_v2, (CUstream, int))                                        \
    X(CUresult, cuStreamEndCapture, (CUstream, CUgraph *))                                       \
    X(CUresult, cuGraphCreate, (CUgraph *, unsigned))                                            \
    X(CUresult, cuGraphClone, (CUgraph *, CUgraph))                                              \
    X(CUresult, cuGraphAddKernelNode_v2, (CUgraphNode *, CUgraph, const CUgraphNode *, size_t,   \
                                          const CUDA_KERNEL_NODE_PARAMS *))                      \
    X(CUresult, cuGraphInstantiateWithFlags, (CUgraphExec *, CUgraph, unsigned long long))       \
    X(CUresult, cuGraphLaunch, (CUgraphExec, CUstream))                                          \
    X(CUresult, cuGraphExecDestroy, (CUgraphExec))                                               \
    X(CUresult, cuGraphDestroy, (CUgraph))                                                       \
    X(CUresult, cuProfilerStart, (void))                                                         \
    X(CUresult, cuProfilerStop, (void))

#define DECLARE(result, name, arguments) static result(*name) arguments;
DRIVER_FUNCTIONS(DECLARE)

/* Ends the program with a line that says which call failed. */
static void check_call(CUresult result, const char *call) {
    if (result == 0)
        return;
    const char *name = "unknown";
    if (cuGetErrorName)
        cuGetErrorName(result, &name);
    fprintf(stderr, "failed %s %d %s\n", call, result, name);
    exit(2);
}
#define CHECK(call) check_call((call), #call)

static void *driver_library;

static void load_driver(void) {
    driver_library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (!driver_library) {
        fprintf(stderr, "failed dlopen %s\n", dlerror());
        exit(2);
    }
#define FIND(result, name, arguments)                                        \
    *(void **)&name = dlsym(driver_library, #name);                          \
    if (!name) {                                                             \
        fprintf(stderr, "failed dlsym %s\n", #name);                         \
        exit(2);                                                             \
    }
    DRIVER_FUNCTIONS(FIND)
}

static CUcontext context;
static CUmodule module;

static CUfunction kernel(const char *name) {
    CUfunction function;
    CHECK(cuModuleGetFunction(&function, module, name));
    return function;
}

/* The driver ready to launch on the first device, with the kernels loaded. */
static void start_device(void) {
    CUdevice device;
    load_driver();
    CHECK(cuInit(0));
    CHECK(cuDeviceGet(&device, 0));
    CHECK(cuDevicePrimaryCtxRetain(&context, device));
    CHECK(cuCtxSetCurrent(context));
    CHECK(cuModuleLoadData(&module, KERNELS_PTX));
}

static void launch(CUfunction function, unsigned blocks, unsigned threads, CUstream stream, void **arguments) {
    CHECK(cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, arguments, NULL));
}

#endif
