# SPDX-License-Identifier: Apache-2.0
"""What differs from the published safetensors package on purpose: (calls, its answer, ours, why), the first three as regular expressions."""

REASONS = [
    ("", "^PanicException|^SystemError", "", "the published package panics, or breaks inside Python; ours has an answer or an error"),
    ("", "^TypeError: .*(missing \\d+ required|takes .* arguments?|unexpected keyword)", "^TypeError: ", "a call with too many or too few arguments: Python's words, where pyo3 has its own"),
    ("", "'builtins\\.\\w+'", "'\\w+'", "a class's name in an error: without `builtins.`"),
    ("repr|closed file", "builtins\\.", "safe_open", "an open file's `repr` says what is in it"),
    ("", "invalid JSON in header", "^SafetensorError: .*invalid JSON in header", "what is wrong with a header's JSON: ours names the tensor and what is needed, the published one a line and column"),
    ("", "invalid UTF-8 in header", "invalid UTF-8 in header", "what is wrong with a header's JSON: ours names the tensor and what is needed, the published one a line and column"),
    ("case dup_", "", "^SafetensorError: .*twice", "a name or key that is in a header twice is refused: readers differ on which one counts"),
    ("", "", "has a NUL in it", "a NUL in a tensor's name is refused: elsewhere the name ends there"),
    ("'__metadata__'", "__metadata__|file", "a tensor cannot be called", "a tensor called `__metadata__` is refused: no reader opens such a file, the published one neither"),
    ("metadata alone", "7b7d2c225f", "file", "no tensors and empty metadata: the published package writes a header that is no JSON"),
    ("sizes|shape_|case wrap", "", "overflow computing", "a dimension of 2^63 or more beside a 0: refused, since no framework has such a tensor"),
    ("filename|folder", "OSError|I/O error", "FOLDER|an output needs a name|embedded null|Error: File|No such", "errors of the operating system: ours name the file and what to do, and are OSErrors, too"),
    ("", "argument 'filename': 'bytes' object", "", "a path may be bytes, as everywhere in Python"),
    ("deserialize|load", "argument 'bytes': '\\w+' object", "", "bytearray, memoryview and whatever else is bytes is read"),
    ("cpu", "device .*cpu.* is invalid", "", "`cpu:0` and `torch.device` mean the CPU"),
    ("device=device", "device\\(type", "is invalid", "`cpu:0` and `torch.device` mean the CPU"),
    ("(True|False|True_)$", "", "Unsupported slice index", "truth values as subscripts: 0 and 1 to the published package, new axes to NumPy; refused"),
    ("F8_|BF16|F4|sub|load\\(save\\)|load_file\\(save_file\\)|dt_|get_", "KeyError|AttributeError: module|shape '\\[4\\]' is invalid|not understood|TypeError: .*dtype", "^\\[|Error: Dtype not understood", "dtypes the published package saves and cannot load are loaded; those the framework lacks are one error"),
    ("", "KeyError", "^SafetensorError: Dtype not understood", "dtypes the published package saves and cannot load are loaded; those the framework lacks are one error"),
    ("sub, pread", "Could not find module", "Dtype not understood", "dtypes the published package saves and cannot load are loaded; those the framework lacks are one error"),
    ("same_range", "invalid offset for tensor", "invalid offset for tensor", "which of two tensors with one range is named: the published package draws it by lot"),
    ("SafetensorError is raised", "\\('a', 1\\)", "a", "the second argument of `SafetensorError` is its code"),
    ("(turned|stepped|backwards)$", "file|dict", "file|dict", "arrays that are no rows in memory are saved right; the published package saves other values, without a word"),
    (" complex", "file|dict|array", "file|dict|array", "a conjugate that PyTorch has not computed yet is saved as what it is; the published package saves other values, without a word"),
    ("turned", "view size is not compatible", "", "transposed tensors that share memory are found, and named"),
    ("_end_ptr|storage_ptr", "view size is not compatible|aten::view", "", "helpers of safetensors.torch answer for transposed and sparse tensors"),
    ("doubles|quantized", "KeyError: torch\\.", "", "helpers of safetensors.torch answer for dtypes that the published package does not know"),
    (r"^_\w+ #|^storage_\w+ #|_view2torch", "(Attribute|Value|Runtime|Type)Error", "Error", "what a private helper says of something that is no tensor: Python's words about another attribute"),
    ("_getdtype.*F4", "KeyError", "float4", "helpers of safetensors.torch answer for dtypes that the published package does not know"),
    (r"^save(_file)?\(contents\)", "", "expected mlx.core.array", "MLX: what is no tensor is no tensor; the published package saves numbers and lists as NumPy guesses"),
    (r"get_slice\(.\)\[…\] mmap", "InvalidArgument|OutOfRange|Currently|IndexError|too many|not support", "", "Paddle: a subscript it refuses is refused, or has NumPy's meaning, in our words"),
    ("rank_100", "dimension", "dimension", "100 dimensions: NumPy says no before Paddle does"),
    ("", "Could not find module", "", "Paddle: the published package cannot read by `pread`"),
    ("_to_ndarray", "", "non contiguous", "helpers of safetensors.torch refuse a tensor that is no rows in memory; the published ones give other values, without a word"),
    ("transposed", "non contiguous", "file", "Paddle: a transposed tensor is saved right; the published package refuses it"),
    ("leaves the dict alone", "ndarray", "", "a caller's dict of tensors stays as it was; the published package puts arrays into it"),
    ("", "'numpy.float32' object has no attribute 'ctypes'", "", "TensorFlow: scalars are saved; the published package cannot"),
    ("BF16", "PEP 3118", "", "MLX: bfloat16 is saved; the published package cannot"),
    ("F64", '"F32"', '"F64"', "MLX: float64 stays float64"),
    ("f4_odd", "KeyError", "no multiple of 2", "dtypes the published package saves and cannot load are loaded; those the framework lacks are one error"),
]

# Those for which an error may be of another class, too, by how they begin; for all others whoever catches the published error catches ours.
_OTHER = ("the published package panics", "dtypes the published", "a path may be bytes", "a dimension of 2^63", "MLX: what is no tensor", "helpers of safetensors.torch", "what a private helper", "Paddle: a subscript", "Paddle: the published", "100 dimensions")  # fmt: skip
OTHER_CLASSES = {why for *_, why in REASONS if why.startswith(_OTHER)}
