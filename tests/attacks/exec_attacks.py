"""Globals that can run code, touch files or open the network, each reached by some opcode route."""
from pickle_asm import (BUILD, EMPTY_DICT, NEWOBJ, NEWOBJ_EX, POP, REDUCE, call, code, get, glob, inst, new, obj,
                        persistent, pickle, put, short_str, stack_glob, tuple_of, val)
from torch_parts import ECHO, PRINT, Sample, legacy, legacy_tensor, tensor, torch_zip

INERT = new(glob("mynet.layers", "Block"))

# group: [(module, name, arguments)]. Arguments are harmless on purpose.
TABLE = {
    "process": [
        ("os", "system", (ECHO,)), ("posix", "system", (ECHO,)), ("nt", "system", (ECHO,)), ("os", "popen", (ECHO,)),
        ("posix", "popen", (ECHO,)), ("os", "execvp", ("echo", ["echo", "x"])), ("os", "spawnlp", (0, "echo", "echo")),
        ("os", "posix_spawn", ("echo", ["echo"], {})), ("os", "startfile", ("x",)), ("os", "putenv", ("BALLAST", "1")),
        ("os", "remove", ("ballast-no-such-file",)), ("posix", "fork", ()),
        ("subprocess", "Popen", (["echo", "x"],)), ("subprocess", "run", (["echo", "x"],)),
        ("subprocess", "call", (["echo", "x"],)), ("subprocess", "check_output", (["echo", "x"],)),
        ("subprocess", "getoutput", (ECHO,)), ("_posixsubprocess", "fork_exec", ()),
        ("_winapi", "CreateProcess", (None, "echo")), ("commands", "getoutput", (ECHO,)), ("popen2", "popen3", (ECHO,)),
        ("pty", "spawn", ("echo",)), ("platform", "popen", (ECHO,)), ("distutils.spawn", "spawn", (["echo"],)),
        ("multiprocessing.util", "spawnv_passfds", (b"echo", [], [])),
        ("asyncio.subprocess", "create_subprocess_shell", (ECHO,)),
        ("asyncio.unix_events", "_UnixSubprocessTransport._start", (None, ["echo"])),
        ("test.support.script_helper", "assert_python_ok", ("-c", PRINT)), ("uuid", "_get_command_stdout", ("echo",)),
        ("ctypes.util", "_get_soname", ("x",)), ("pydoc", "pipepager", ("x", ECHO)),
         ("_aix_support", "_read_cmd_output", (ECHO,)),
        ("_osx_support", "_read_output", (ECHO,)), ("imaplib", "IMAP4_stream", (ECHO,)),
         ("webbrowser", "open", ("about:blank",)),
        ("antigravity", "geohash", (0, 0, b"x")),
    ],
    "interpreter": [
        ("builtins", "eval", (PRINT,)), ("builtins", "exec", (PRINT,)), ("builtins", "compile", (PRINT, "x", "exec")),
        ("builtins", "__import__", ("antigravity",)), ("builtins", "open", ("ballast-no-such-file",)),
        ("builtins", "setattr", (INERT, "a", 1)), ("builtins", "delattr", (INERT, "a")), ("builtins", "globals", ()),
        ("builtins", "vars", ()), ("builtins", "input", ("x",)), ("builtins", "breakpoint", ()),
         ("builtins", "help", ()),
        ("__builtin__", "eval", (PRINT,)), ("__builtin__", "execfile", ("x.py",)),
         ("__builtin__", "apply", (INERT, ())),
        ("__builtin__", "file", ("x",)), ("__builtin__", "reload", (INERT,)),
        ("runpy", "run_path", ("x.py",)), ("runpy", "_run_code", (PRINT, {})),
         ("importlib", "import_module", ("antigravity",)),
        ("importlib.machinery", "SourceFileLoader", ("x", "x.py")), ("imp", "load_source", ("x", "x.py")),
        ("pkgutil", "resolve_name", ("os:system",)), ("zipimport", "zipimporter", ("x.zip",)),
         ("marshal", "loads", (b"N",)),
        ("types", "FunctionType", (None, {})), ("types", "CodeType", ()), ("code", "interact", ()),
        ("code", "InteractiveInterpreter", ()), ("codeop", "compile_command", (PRINT,)), ("timeit", "timeit", (PRINT,)),
        ("timeit", "main", ([PRINT],)), ("pdb", "run", (PRINT,)), ("bdb", "Bdb.run", (None, PRINT)),
         ("cProfile", "run", (PRINT,)),
        ("profile", "runctx", (PRINT, {}, {})), ("trace", "Trace.run", (None, PRINT)),
         ("doctest", "debug_script", (PRINT,)),
        ("idlelib.run", "Executive.runcode", (None, PRINT)),
         ("idlelib.autocomplete", "AutoComplete.get_entity", (None, PRINT)),
        ("lib2to3.pgen2.pgen", "ParserGenerator.make_label", (None, None, PRINT)), ("ensurepip", "_run_pip", (["-h"],)),
        ("pip", "main", (["-h"],)), ("pip._internal", "main", (["-h"],)), ("setuptools", "setup", ()),
        ("venv", "create", ("x",)), ("site", "addsitedir", ("x",)), ("logging.config", "_resolve", ("os.system",)),
        ("typing", "get_type_hints", (INERT,)), ("dataclasses", "_create_fn", ("f", [], [PRINT])),
         ("inspect", "getattr_static", (INERT, "x")),
    ],
    "indirection": [
        ("operator", "attrgetter", ("system",)), ("operator", "methodcaller", ("system", ECHO)),
         ("_operator", "attrgetter", ("x",)),
        ("functools", "reduce", (INERT, [1, 2])), ("_functools", "reduce", (INERT, [1, 2])), ("sys", "modules", ()),
        ("sys", "setprofile", (INERT,)), ("sys", "_getframe", ()), ("gc", "get_objects", ()),
         ("atexit", "register", (INERT,)),
        ("threading", "Thread", ()), ("_thread", "start_new_thread", (INERT, ())),
         ("concurrent.futures", "ProcessPoolExecutor", ()),
        ("weakref", "finalize", (INERT, INERT)), ("sched", "scheduler", ()), ("signal", "signal", (2, INERT)),
    ],
    "files": [
        ("shutil", "rmtree", ("ballast-no-such-dir",)), ("shutil", "copyfile", ("x", "y")), ("io", "open", ("x",)),
        ("_io", "open", ("x",)), ("io", "FileIO", ("x",)), ("_io", "FileIO", ("x",)), ("codecs", "open", ("x",)),
        ("tempfile", "mktemp", ()), ("fileinput", "input", (["x"],)), ("linecache", "getline", ("x", 1)),
         ("shelve", "open", ("x",)),
        ("dbm", "open", ("x",)), ("sqlite3", "connect", ("x",)), ("tarfile", "open", ("x",)),
         ("zipfile", "ZipFile", ("x",)),
        ("glob", "glob", ("*",)), ("mmap", "mmap", (-1, 16)), ("logging", "FileHandler", ("ballast.log",)),
        ("distutils.file_util", "write_file", ("x", [])),
    ],
    "network": [
        ("socket", "create_connection", (("127.0.0.1", 9),)), ("_socket", "socket", ()),
         ("urllib.request", "urlopen", ("http://127.0.0.1:9",)),
        ("http.client", "HTTPConnection", ("127.0.0.1",)), ("ftplib", "FTP", ("127.0.0.1",)),
         ("smtplib", "SMTP", ("127.0.0.1",)),
        ("ssl", "get_server_certificate", (("127.0.0.1", 9),)), ("requests", "get", ("http://127.0.0.1:9",)),
         ("xmlrpc.client", "ServerProxy", ("http://127.0.0.1:9",)),
        ("socketserver", "TCPServer", (("127.0.0.1", 0), INERT)),
    ],
    "native": [
        ("ctypes", "CDLL", ("libc.so.6",)), ("_ctypes", "dlopen", ("libc.so.6", 0)), ("cffi", "FFI", ()),
        ("ctypes", "pythonapi.PyRun_SimpleString", (b"0",)), ("winreg", "OpenKey", ()),
    ],
    "pickles": [
        ("pickle", "loads", (b"N.",)), ("_pickle", "loads", (b"N.",)), ("cPickle", "loads", (b"N.",)),
         ("pickle", "Unpickler", ()),
        ("dill", "loads", (b"N.",)), ("dill._dill", "_create_function", ()), ("cloudpickle", "loads", (b"N.",)),
        ("cloudpickle.cloudpickle", "_make_function", ()), ("joblib", "load", ("x",)),
         ("joblib.numpy_pickle", "load", ("x",)),
        ("copyreg", "add_extension", ("os", "system", 1)), ("jsonpickle", "decode", ("{}",)),
         ("yaml", "unsafe_load", ("x",)),
        ("pandas", "read_pickle", ("x",)), ("pandas", "eval", ("1",)), ("hydra.utils", "instantiate", ({},)),
        ("sklearn.externals.joblib", "load", ("x",)), ("keras.models", "load_model", ("x",)),
    ],
    "torch": [
        ("torch", "load", ("x.pt",)), ("torch.serialization", "load", ("x.pt",)), ("torch.hub", "load", ("x/y", "z")),
        ("torch.hub", "download_url_to_file", ("http://127.0.0.1:9", "x")), ("torch.jit", "load", ("x.pt",)),
         ("torch.jit", "script", (INERT,)),
        ("torch.jit.unsupported_tensor_ops", "execWrapper", (PRINT, {}, {})),
         ("torch.utils.cpp_extension", "load", ("x", [])),
        ("torch.utils.cpp_extension", "load_inline", ("x", "")), ("torch.ops", "load_library", ("x.so",)),
         ("torch.classes", "load_library", ("x.so",)),
        ("torch.utils.bottleneck.__main__", "run_cprofile", (PRINT, {})), ("torch.utils.collect_env", "run", (ECHO,)),
        ("torch._dynamo.guards", "GuardBuilder.get", (None, PRINT)),
         ("torch._inductor.codecache", "compile_file", ("x", "y", "z")),
        ("torch.utils._config_module", "ConfigModule.load_config", (None, b"N.")),
         ("torch.fx.graph_module", "_forward_from_src", (PRINT, {})),
        ("torch.fx.experimental.symbolic_shapes", "ShapeEnv.evaluate_guards_expression", (None, PRINT, [])),
        ("torch.package", "PackageImporter", ("x",)), ("torch.distributed.rpc", "rpc_sync", ("a", INERT)),
         ("torch", "save", (1, "x")),
        ("torch.utils.data.datapipes.utils.decoder", "basichandlers", ("pickle", b"N.")),
         ("torch.utils.model_zoo", "load_url", ("http://127.0.0.1:9",)),
        ("torch.multiprocessing", "spawn", (INERT,)),
    ],
    "numpy": [
        ("numpy", "load", ("x.npy",)), ("numpy", "fromfile", ("x",)), ("numpy.lib.npyio", "load", ("x",)),
         ("numpy.testing", "runstring", (PRINT, {})),
        ("numpy.testing._private.utils", "runstring", (PRINT, {})),
         ("numpy.testing._private.utils", "measure", (PRINT,)),
        ("numpy.f2py.crackfortran", "param_eval", (PRINT, {}, {})), ("numpy.f2py.crackfortran", "myeval", (PRINT,)),
        ("numpy.distutils.exec_command", "exec_command", (ECHO,)), ("numpy.ctypeslib", "load_library", ("x", ".")),
    ],
}


def by_reduce(m, n, args):
    return 2, call(glob(m, n), *args)


def by_stack_global(m, n, args):
    return 4, call(stack_glob(m, n), *args)


def by_inst(m, n, args):
    return 2, inst(m, n, *args)


def by_obj(m, n, args):
    return 2, obj(glob(m, n), *args)


def by_newobj(m, n, args):
    return 2, code(glob(m, n), tuple_of(args), NEWOBJ)


def by_newobj_ex(m, n, args):
    return 4, code(stack_glob(m, n), tuple_of(args), EMPTY_DICT, NEWOBJ_EX)


def by_setstate(m, n, args):
    """An inert object is given the function as its own __setstate__, then BUILD is asked to call it."""
    return 2, code(INERT, val({"__setstate__": glob(m, n)}), BUILD, val(args[0] if args else None), BUILD)


def by_reduce_dict(m, n, args):
    return 2, code(INERT, val({"__reduce__": (glob(m, n), tuple_of(args))}), BUILD)


def by_mention(m, n, args):
    """Never called, only held."""
    return 2, glob(m, n)


def by_persid(m, n, args):
    return 2, persistent(("storage", glob(m, n), "0", "cpu", 4))


def by_memo(m, n, args):
    return 2, code(glob(m, n), put(1), POP, get(1), tuple_of(args), REDUCE)


def by_memo_names(m, n, args):
    return 4, code(short_str(n), put(1), POP, short_str(m), put(2), get(1), b"\x93", tuple_of(args), REDUCE)


def by_popped(m, n, args):
    return 2, code(call(glob(m, n), *args), POP, val("nothing to see"))


def by_reconstructor(m, n, args):
    return 2, call(glob("copyreg", "_reconstructor"), glob(m, n), glob("builtins", "object"), None)


ROUTES = {"reduce": by_reduce, "stackglobal": by_stack_global, "inst": by_inst, "obj": by_obj, "newobj": by_newobj,
          "newobjex": by_newobj_ex, "setstate": by_setstate, "reducedict": by_reduce_dict, "mention": by_mention,
          "persid": by_persid, "memo": by_memo, "memonames": by_memo_names, "popped": by_popped,
              "reconstructor": by_reconstructor}


def in_pickle(version, call_code):
    return "pkl", pickle({"note": call_code}, version)


def in_zip(version, call_code):
    return "pt", torch_zip({"weight": tensor(), "note": call_code}, version=version)


def in_legacy(version, call_code):
    return "pth", legacy({"weight": legacy_tensor(), "note": call_code}, version=version)


CONTAINERS = (in_pickle, in_zip, in_legacy)


def samples():
    count = 0
    for group, rows in TABLE.items():
        for module, name, args in rows:
            route = list(ROUTES)[count % len(ROUTES)]
            ext, data = CONTAINERS[count % len(CONTAINERS)](*ROUTES[route](module, name, args))
            count += 1
            label = ("%s.%s" % (module, name)).replace("_", "-").replace(".", "-").lower().strip("-")
            yield Sample("exec-%03d-%s" % (count, label), ext, "forbidden-global", "exec",
                         "%s: %s.%s by %s" % (group, module, name, route), data)
    for module, name, args in (("posix", "system", (ECHO,)), ("builtins", "eval", (PRINT,)),
        ("subprocess", "Popen", (["echo"],))):
        for route, make in ROUTES.items():
            ext, data = in_pickle(*make(module, name, args))
            yield Sample("route-%s-%s" % (name.lower(), route), ext, "forbidden-global", "route",
                         "%s.%s by %s" % (module, name, route), data)
