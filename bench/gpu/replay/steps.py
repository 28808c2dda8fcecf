"""A window of a framework's work to record and run again: `steps.py CASE`, with one of CASES below."""

import sys

import torch


def transformer_step():
    model = torch.nn.Sequential(
        torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.LayerNorm(2048), torch.nn.Linear(2048, 512)
    ).cuda()
    layer = torch.nn.TransformerEncoderLayer(512, 8, batch_first=True, dropout=0.1).cuda()
    optimiser = torch.optim.AdamW([*model.parameters(), *layer.parameters()], lr=1e-3)
    inputs = torch.randn(32, 128, 512, device="cuda")
    wanted = torch.randn(32, 128, 512, device="cuda")

    def step():
        optimiser.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = ((layer(model(inputs)) - wanted) ** 2).mean()
        loss.backward()
        optimiser.step()
        return loss

    return step


def captured_inference():
    model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.GELU(), torch.nn.Linear(2048, 512)).cuda().eval()
    inputs = torch.randn(64, 512, device="cuda")
    with torch.no_grad():
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                model(inputs)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            result = model(inputs)

    def step():
        inputs.add_(0.125)
        graph.replay()
        return result.sum()

    return step


def triton_kernel():
    import triton_kernels

    a = torch.randn(1 << 20, device="cuda")
    b = torch.randn(1 << 20, device="cuda")
    rows = torch.randn(512, 1024, device="cuda")

    def step():
        return triton_kernels.add(a, b).sum() + triton_kernels.softmax(rows).sum()

    return step


def matmul():
    a = torch.randn(1024, 2048, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(2048, 4096, device="cuda", dtype=torch.bfloat16)
    bias = torch.randn(4096, device="cuda", dtype=torch.bfloat16)
    narrow = torch.randn(2048, 2048, device="cuda").to(torch.float8_e4m3fn)
    one = torch.ones((), device="cuda")

    def step():
        product = torch.addmm(bias, a, b)
        eighth = torch._scaled_mm(narrow, narrow.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16)
        return product.float().sum() + eighth.float().sum()

    return step


def convolution():
    torch.backends.cudnn.deterministic = True
    layer = torch.nn.Conv2d(64, 128, 3, padding=1).cuda().to(memory_format=torch.channels_last)
    images = torch.randn(16, 64, 56, 56, device="cuda").to(memory_format=torch.channels_last).requires_grad_()

    def step():
        with torch.autocast("cuda", dtype=torch.float16):
            result = layer(images)
        result.float().square().mean().backward()
        return result.float().sum()

    return step


def attention():
    from torch.nn.attention import SDPBackend, sdpa_kernel

    query, key, value = (torch.randn(4, 16, 1024, 128, device="cuda", dtype=torch.bfloat16) for _ in range(3))

    def step():
        with sdpa_kernel(SDPBackend.CUDNN_ATTENTION):
            return torch.nn.functional.scaled_dot_product_attention(query, key, value, is_causal=True).float().sum()

    return step


def resnet18(benchmark, deterministic=True):
    """One SGD step of torchvision's resnet18; with `benchmark`, cuDNN times its algorithms and takes the fastest."""
    import torchvision

    torch.backends.cudnn.benchmark = benchmark
    torch.backends.cudnn.deterministic = deterministic
    model = torchvision.models.resnet18().cuda()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.randn(16, 3, 96, 96, device="cuda")
    classes = torch.randint(0, 1000, (16,), device="cuda")

    def step():
        optimiser.zero_grad()
        loss = torch.nn.functional.cross_entropy(model(images), classes)
        loss.backward()
        optimiser.step()
        return loss

    return step


def solve():
    a = torch.randn(512, 512, device="cuda") + 512 * torch.eye(512, device="cuda")
    b = torch.randn(512, 64, device="cuda")
    return lambda: torch.linalg.solve(a, b).sum()


def eigh():
    a = torch.randn(256, 256, device="cuda")
    a = a + a.t()
    return lambda: torch.linalg.eigh(a).eigenvalues.sum()


def lstm():
    model = torch.nn.LSTM(128, 256, num_layers=2, batch_first=True).cuda()
    inputs = torch.randn(16, 64, 128, device="cuda")

    def step():
        model.zero_grad()
        result, _ = model(inputs)
        loss = result.square().mean()
        loss.backward()
        return loss

    return step


def batched():
    """cuBLAS' batched product, whose pointer tables the host builds."""
    import ctypes

    torch.zeros(1, device="cuda") @ torch.zeros(1, device="cuda")
    blas = ctypes.CDLL(next(line.split()[-1] for line in open("/proc/self/maps") if "libcublas.so" in line))
    handle = ctypes.c_void_p(torch.cuda.current_blas_handle())
    size, count = 64, 8
    # Each matrix in an allocation of its own, which nothing but the tables refers to.
    runtime = ctypes.CDLL(next(line.split()[-1] for line in open("/proc/self/maps") if "libcudart" in line))
    bytes_each = 4 * size * size

    def allocated(content):
        address = ctypes.c_void_p()
        assert runtime.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(bytes_each)) == 0
        values = content.contiguous()
        assert runtime.cudaMemcpy(address, ctypes.c_void_p(values.data_ptr()), ctypes.c_size_t(bytes_each), 1) == 0
        return address.value

    sides = [[allocated(torch.randn(size, size)) for _ in range(count)] for _ in range(3)]
    one, zero = ctypes.c_float(1), ctypes.c_float(0)
    tables = torch.zeros(3, count, dtype=torch.int64, device="cuda")

    def step():
        tables.copy_(torch.tensor(sides, dtype=torch.int64))
        a, b, c = (ctypes.c_void_p(tables[row].data_ptr()) for row in range(3))
        done = blas.cublasSgemmBatched(
            handle, 0, 0, size, size, size, ctypes.byref(one), a, size, b, size, ctypes.byref(zero), c, size, count
        )
        assert done == 0, done
        return tables.sum()

    return step


CASES = {
    "resnet18": lambda: resnet18(benchmark=False),
    "resnet18_benchmark": lambda: resnet18(benchmark=True),
    "resnet18_atomics": lambda: resnet18(benchmark=True, deterministic=False),
    "solve": solve,
    "eigh": eigh,
    "lstm": lstm,
    "batched": batched,
    "train": transformer_step,
    "graph": captured_inference,
    "triton": triton_kernel,
    "matmul": matmul,
    "convolution": convolution,
    "attention": attention,
}


def main():
    torch.manual_seed(0)
    step = CASES[sys.argv[1]]()
    for _ in range(5):
        step()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    result = step()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()
    print("result", float(result))


main()
