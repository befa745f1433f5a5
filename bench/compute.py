# SPDX-License-Identifier: Apache-2.0
"""Jobs that compute: casts and transposes against memcpy, operations against torch."""
import json
import statistics

from measure import BENCH, Served, run, timed


def job_cast(table, folder):
    """cast_bench takes the turns itself; its ratio is to memcpy on as many threads."""
    out = folder / "cast.json"
    run(BENCH / "cast_bench", "--benchmark_out=" + str(out), "--benchmark_out_format=json")
    for result in json.loads(out.read_text())["benchmarks"]:
        name, threads = result["name"].split("/threads:")
        seconds = result["real_time"] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}[result["time_unit"]]
        aim = "≤ 1.3" if name in ("cast/f32_f16", "cast/f32_bf16") else "≤ 1.15" if name == "transpose/f32" else ""
        table.add(f"{name.replace('/', ' ')}, {count(int(threads.split('/')[0]))}", seconds, seconds / result["ratio"], "memcpy of the larger side", aim)


def job_packed(table, folder):
    """packed_bench takes the turns itself, on one core; a whole file beside cp, on all."""
    out = folder / "packed.json"
    run(BENCH / "packed_bench", "--benchmark_out=" + str(out), "--benchmark_out_format=json")
    aims = {"unpack fast bf16, AVX-512": "≤ 1.25", "unpack fast bf16, AVX2": "≤ 2.5"}
    for result in json.loads(out.read_text())["benchmarks"]:
        name = result["name"].split("/")[0]
        seconds = result["real_time"] * {"ns": 1e-9, "us": 1e-6, "ms": 1e-3}[result["time_unit"]]
        note = f"{result['GB/s']:.1f} GB/s; {result['size']:.3f} of the size"
        table.add(name, seconds, seconds / result["ratio"], "memcpy of the unpacked bytes", aims.get(name, ""), note=note)


def count(threads):
    return "1 thread" if threads == 1 else f"{threads} threads"


def torch_operations():
    """What the cases of ops_bench are in torch, eager."""
    import torch
    import torch.nn.functional as F
    torch.manual_seed(0)
    cases = {}

    def conv(name, inside, size, out, kernel, stride=1, groups=1):
        x, w, b = torch.randn(1, inside, size, size), torch.randn(out, inside // groups, kernel, kernel), torch.randn(out)
        run = lambda: F.relu(F.conv2d(x, w, b, stride, kernel // 2, 1, groups))  # noqa: E731
        cases[name], cases[name + " alone"] = run, run

    conv("conv 3-64 7x7/2 @224", 3, 224, 64, 7, 2)
    conv("conv 64-64 3x3 @56", 64, 56, 64, 3)
    conv("conv 128-128 3x3 @28", 128, 28, 128, 3)
    conv("conv 256-256 3x3 @14", 256, 14, 256, 3)
    conv("conv 512-512 3x3 @7", 512, 7, 512, 3)
    conv("conv 64-256 1x1 @56", 64, 56, 256, 1)
    conv("conv 1024-256 1x1 @14", 1024, 14, 256, 1)
    conv("conv 144-144 3x3 depthwise @56", 144, 56, 144, 3, 1, 144)
    x, w, b = torch.randn(128, 768), torch.randn(3072, 768), torch.randn(3072)
    y, w2, b2 = torch.randn(128, 3072), torch.randn(768, 3072), torch.randn(768)
    cases["linear 128x768x3072 gelu"] = lambda: F.gelu(F.linear(x, w, b), approximate="tanh")
    cases["linear 128x3072x768"] = lambda: F.linear(y, w2, b2)
    cases["linear 1x768x3072"] = lambda: F.linear(x[:1], w, b)
    cases["matmul 128x768x3072"] = lambda: x @ w2
    q, k, v = torch.randn(1, 128, 3, 12, 64).permute(2, 0, 3, 1, 4)
    mask = torch.full((128, 128), float("-inf")).triu(1)
    cases["attention 12x128x64 causal"] = lambda: torch.softmax(q @ k.transpose(-1, -2) * 0.125 + mask, -1) @ v
    scores, hidden, gamma = torch.randn(1536, 1024), torch.randn(1024, 768), torch.randn(768)
    cases["softmax 1536x1024"] = lambda: torch.softmax(scores, -1)
    cases["layer_norm 1024x768"] = lambda: F.layer_norm(hidden, (768,), gamma, gamma)
    cases["gelu 1024x768"] = lambda: F.gelu(hidden)
    cases["add 1024x768"] = lambda: hidden + hidden
    cases.update(torch_other_dtypes())
    return cases


def torch_other_dtypes():
    """Masks, indices and images of bytes."""
    import torch
    import torch.nn.functional as F
    cases = {}
    codes = {"BOOL": torch.bool, "U8": torch.uint8, "I32": torch.int32, "I64": torch.int64, "F64": torch.float64}
    targets = {"U8": torch.uint8, "F16": torch.float16, "F32": torch.float32, "I64": torch.int64}
    for code, dtype in codes.items():
        x = torch.randint(0, 4, (2048, 2048)).to(dtype)
        y = x.clone()
        cases[f"eq {code}"] = lambda x=x, y=y: x == y
        cases[f"add {code}"] = lambda x=x, y=y: x + y
        if dtype != torch.bool:
            cases[f"mul {code} number"] = lambda x=x: x * 3
            cases[f"max {code}"] = lambda x=x: x.amax()
            cases[f"max {code} dim 1"] = lambda x=x: x.amax(1)
        cases[f"sum {code} dim 0"] = lambda x=x: x.sum(0)
        cases[f"prod {code} dim 1"] = lambda x=x: x.prod(1)
        for to, target in targets.items():
            if target != dtype:
                cases[f"cast {code} {to}"] = lambda x=x, target=target: x.to(target)
    x = torch.randn(2048, 2048)
    for to, target in {"U8": torch.uint8, "I64": torch.int64, "BOOL": torch.bool}.items():
        cases[f"cast F32 {to}"] = lambda target=target: x.to(target)
    for dim in (0, 1):
        index = torch.arange(2048).unsqueeze(1 - dim).expand(2048, 2048).contiguous()
        cases[f"sum F32 dim {dim}"] = lambda dim=dim: x.sum(dim)
        cases[f"max F32 dim {dim}"] = lambda dim=dim: x.amax(dim)
        cases[f"prod F32 dim {dim}"] = lambda dim=dim: x.prod(dim)
        cases[f"gather F32 dim {dim}"] = lambda dim=dim, index=index: x.gather(dim, index)
        cases[f"scatter F32 dim {dim}"] = lambda dim=dim, index=index: x.scatter(dim, index, x)
    cases["sum F32"] = lambda: x.sum()
    image = torch.randn(8, 64, 56, 56)
    cases["pad 8x64x56x56"] = lambda: F.pad(image, (1, 1, 1, 1))
    cases["pad 8x64x56x56 reflect"] = lambda: F.pad(image, (1, 1, 1, 1), "reflect")
    return cases


def job_ops(table, folder):
    """Operations against torch in turn, with one thread and with two."""
    import torch
    for threads in (1, 2):
        torch.set_num_threads(threads)
        ours = Served([BENCH / "ops_bench", "--serve", "--threads", threads])

        def median_of(work):
            times = []
            while sum(times) < 0.1 or len(times) < 3:
                times.append(timed(work))
            return statistics.median(times)

        with torch.no_grad():
            for name, work in torch_operations().items():
                work()
                table.compare(f"{name}, {count(threads)}", lambda: ours.ask(name)[0], lambda: median_of(work), f"torch {torch.__version__}")
        ours.close()
