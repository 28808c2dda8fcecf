// Ends the program with a line that says which call failed.
#pragma once

#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#define CHECK(call)                                                                  \
    do {                                                                             \
        cudaError_t status = (call);                                                 \
        if (status != cudaSuccess) {                                                 \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(status));          \
            exit(1);                                                                 \
        }                                                                            \
    } while (0)
