// Kernels to put in the place of `scatter` of streams.cu: the same one, one that computes something else, one that writes
// where nothing is, and one that never ends.

#define INDEX (blockIdx.x * blockDim.x + threadIdx.x)

extern "C" __global__ void same(float *const *tables, int tables_count, float by) {
    for (int t = 0; t < tables_count; t++) tables[t][INDEX] = tables[t][INDEX] * by + t;
}

extern "C" __global__ void other(float *const *tables, int tables_count, float by) {
    for (int t = 0; t < tables_count; t++) tables[t][INDEX] = tables[t][INDEX] * by - t;
}

extern "C" __global__ void fault(float *const *tables, int tables_count, float by) {
    *(volatile float *)8 = tables[0][INDEX] * by + tables_count;
}

extern "C" __global__ void hang(float *const *tables, int tables_count, float by) {
    while (*(volatile int *)tables[0] != 0x12345678 || tables_count > 0) __nanosleep(1000);
}
