"""Every callable that can be imported by name: module attributes, and methods of classes as dotted names.

In the parent: callables(python, packages, sample) → [(module, name)], sorted. The modules are found as files, without importing them, and
imported in children of `python` with stdout and stderr closed, a time limit and no network. Run as a program this file is such a child: modules on
stdin, one a line; on the original stdout "module<TAB>name" for each callable and "=module" behind each module.
"""
import os
import sys

PACKAGES = ("torch", "torchvision", "numpy", "torchgen", "functorch")
# Importing these does something: opens a browser, prints, starts a window, runs tests or a program.
SKIPPED = ("antigravity", "this", "idlelib", "turtledemo", "turtle", "test", "lib2to3.pgen2.conv", "ctypes.test", "unittest.test", "tkinter.test",
           "ensurepip", "torch.testing._internal", "torch.utils.benchmark.examples", "torch.utils.bottleneck", "torch.distributed.run",
           "numpy.core.cversions", "numpy._pyinstaller", "torch.contrib")
SECONDS = 20                                       # of processor time for one module
PATIENCE = 10 * SECONDS                            # the same by the clock, on a busy machine
BATCH = 200                                        # modules of one child
SOME = 30                                          # random modules of a sample


def is_skipped(module):
    parts = module.split(".")
    return (any(module == s or module.startswith(s + ".") for s in SKIPPED) or "tests" in parts or parts[-1] in ("__main__", "setup", "conftest"))


def isolate():
    """Nothing seen, nothing written by accident, no network where the kernel lets us, no memory without end."""
    import ctypes
    import resource
    out = os.fdopen(os.dup(1), "w", buffering=1)
    null = os.open(os.devnull, os.O_RDWR)
    for fd in (1, 2):
        os.dup2(null, fd)
    try:
        ctypes.CDLL(None).unshare(0x10000000 | 0x40000000)     # user and network namespaces
    except (OSError, AttributeError):
        pass
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    import signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    import socket
    socket.socket.connect = None
    return out


def callables_of(module):
    for name in dir(module):
        try:
            value = getattr(module, name)
        except BaseException:                      # lazy attributes may raise anything
            continue
        if not callable(value) or not isinstance(name, str):
            continue
        yield name
        if isinstance(value, type) and getattr(value, "__module__", None) == module.__name__:
            for inner in dir(value):
                try:
                    if callable(getattr(value, inner)):
                        yield f"{name}.{inner}"
                except BaseException:
                    continue


def child():
    modules = sys.stdin.read().split()
    out = isolate()
    import importlib
    import signal
    import warnings
    warnings.simplefilter("ignore")

    def late(*_):
        raise TimeoutError
    signal.signal(signal.SIGALRM, late)
    signal.signal(signal.SIGPROF, late)
    for name in modules:
        signal.alarm(PATIENCE)
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            found = sorted(set(callables_of(importlib.import_module(name))))
        except BaseException:                      # SystemExit and the like: modules are programs too
            found = []
        signal.alarm(0)
        signal.setitimer(signal.ITIMER_PROF, 0)
        out.write("".join(f"{name}\t{n}\n" for n in found if "\n" not in n and "\t" not in n) + f"={name}\n")
        out.flush()
    os._exit(0)


LISTING = r"""
import importlib.util, pkgutil, sys
def below(name, places):
    for item in pkgutil.iter_modules(places):
        full = name + "." + item.name
        print(full)
        if item.ispkg:
            below(full, [place + "/" + item.name for place in places])
for top in sorted(set(sys.stdlib_module_names) | set(sys.argv[1:])):
    try:
        spec = importlib.util.find_spec(top)
    except Exception:
        continue
    if spec is None:
        continue
    print(top)
    if spec.submodule_search_locations:
        below(top, list(spec.submodule_search_locations))
"""


def modules_of(python, packages):
    import subprocess
    listed = subprocess.run([python, "-B", "-c", LISTING, *packages], capture_output=True, text=True, check=True).stdout.split()
    return [m for m in listed if not is_skipped(m)]


def ask_child(python, modules):
    """Names of these modules. A module at which the child dies gives none; the ones behind it get a new child."""
    import subprocess
    names = []
    while modules:
        try:
            done = subprocess.run([python, "-B", os.path.abspath(__file__)], input="\n".join(modules), capture_output=True, text=True,
                                  timeout=PATIENCE * 10, env={**os.environ, "CUDA_VISIBLE_DEVICES": "", "PYTHONDONTWRITEBYTECODE": "1"})
            lines = done.stdout.splitlines()
        except subprocess.TimeoutExpired as late:
            seen = late.stdout or b""
            lines = (seen if isinstance(seen, str) else seen.decode(errors="replace")).splitlines()
        ended = sum(line.startswith("=") for line in lines)
        names += [tuple(line.split("\t")) for line in lines if line.count("\t") == 1]
        modules = modules[ended + 1:] if ended < len(modules) else []
    return names


CORE = ("builtins", "os", "posix", "subprocess", "pickle", "functools", "copyreg", "collections", "torch", "numpy")


def callables(python, packages=PACKAGES, sample=None, seed=1):
    """All of them and the number of modules; or `sample` names, half of them of CORE, half of a few random modules."""
    import random
    modules = modules_of(python, packages)
    if sample is None:
        batches = [modules[i:i + BATCH] for i in range(0, len(modules), BATCH)]
        return sorted({name for batch in batches for name in ask_child(python, batch)}), len(modules)
    rng = random.Random(seed)
    core = [m for m in CORE if m in modules]
    others = rng.sample([m for m in modules if m not in core], min(SOME, len(modules) - len(core)))
    names = []
    for group in (core, others):
        found = sorted(set(ask_child(python, group)))
        names += rng.sample(found, min(len(found), sample // 2))
    return sorted(names), len(core) + len(others)


if __name__ == "__main__":
    child()
