#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A public header as Doxygen is to read it: doxygen_filter.py HEADER.

The words a header opens with become those of a group that holds all of it. Members that mean the same in every class get their words here, once, where the
header has none of its own; of the layers (detail/nn) and operations (detail/ops) those that PyTorch has, too (docs/operations.md, cmake/torch_arguments.txt),
are said to be what PyTorch calls so. All others keep their silence, which Doxygen complains of. What is generated for the compiler alone (copies, moves,
iterators' types) is hidden."""
import pathlib
import re
import sys

# A declaration that begins so, and what it is.
EVERYWHERE = [
    (r"BALLAST_FIELDS\(.*\);$", None),
    (r"(?:~\w+|\w+\(\w+ ?&&\)|\w+\(const \w+&\))(?: noexcept)? = (?:default|delete);$", None),
    (r"(?:~\w+\(\)|(\w+)\((?:const )?\1&&?(?: \w+)?\)|\w+& operator=\((?:const )?\w+&&?(?: \w+)?\))(?: &)?(?: noexcept)?(?: = (?:default|delete))?;", None),
    (r"using (?:value_type|reference|pointer|difference_type|iterator_category|iterator|const_iterator|size_type)\b", None),
    (r"extern template\b", None),
    (r"(?:friend )?(?:constexpr )?bool operator==\(", "Equal when every member is."),
    (r"(?:inline )?std::ostream& operator<<\(", "Prints it, as to_string() does where there is one."),
    (r"\[\[nodiscard\]\] auto operator\(\)\(const auto&\.\.\. args\) const", "The same as forward()."),
    (r"static constexpr LayerKind kind\b", "Which layer it is: adapters go by this, never by a type's name."),
    (r"\[\[nodiscard\]\] (?:static )?Activation activation\(\)", "What a layer before it may apply in its place: conv.forward(x, relu.activation())."),
    (r"\[\[nodiscard\]\] static std::vector<\w+> without_sizes\(\)", "For load(): what an empty std::optional of it may become; take_sizes() says which."),
    (r"bool take_sizes\(std::span<const Shape> shapes\)", "For load(): becomes the layer whose parameters have these shapes, in their order; false where there is none."),
    (r"void adjust_initial\(std::string_view field, Tensor& value\) const", "For init(): changes the first value of a parameter, if this layer's is another than usual."),
    (r"Activation activation = \{\};", "Applied to the result."),
    (r"OpCache\* cache = nullptr;", "Where the call keeps what it prepared for the next one; nowhere when null."),
    (r"(?:nn::)?Place place\b", "Where it stands in the model; messages and graphs name it by that."),
    (r"static (?:constexpr )?void visit_fields\(", "Calls visit(name, member) for every member with a key, as the options have them."),
    (r"(?:\[\[nodiscard\]\] )?(?:const )?[\w:]+[&*]? (?:size|empty|begin|end|front|back|operator\[\])\((?:std::size_t \w+)?\)", "As of a standard container."),
    (r"(?:Iterator|Entry|reference|pointer|void) ?&? ?operator(?:\*|->|\+\+)\((?:int)?\)", "As of a standard iterator."),
    (r"(?:std::vector<rules::Rule> rules|bool strip_prefixes|std::vector<std::string> (?:include|exclude|reindex|keep_positions|keep_dtype)|Precision dtype"
     r"|bool keep_statistics|std::vector<RenameRule> rename|std::vector<LayerKind> keep_layers|OnQuantized quantized)\b",
     "A step: docs/options.md says of each what it does, and in which order they are taken."),
    (r"std::string match;", "The pattern on names: which tensors the rule takes."),
    (r"std::string to(?: = \{\})?;", "The name it gets; $1 stands for a group of the pattern."),
    (r"std::int64_t dim = 0;", "Along which dimension; a negative one counts from the last."),
    (r"Progress progress\b", "Called as work is done; see Progress."),
    (r"bool overwrite\b", "An output that exists is replaced; else Errc::already_exists."),
    (r"std::optional<std::string> passphrase_file\b|std::string passphrase_file\b", "A file whose first line opens what is encrypted."),
]
MEMBERS = {"Tensor gamma": "What scales, of the features' shape; undefined where there is none.",
           "Tensor beta": "What shifts, of the features' shape; undefined where there is none.",
           "Tensor running_mean": "The mean of training, [features]; undefined where none is kept.",
           "Tensor running_var": "The variance of training, [features]; undefined where none is kept."}


# Where a header stands in the reference: each is a group of its own in one of these (cmake/groups.dox), with the words it opens with; the parts of ops.h and
# nn.h stand in theirs.
GROUPS = {"errors": "error", "tensors": "tensor shape dtype storage dlpack stats", "proof": "diff hash verify scan", "graphs": "graph onnx",
          "files": "checkpoint value io format safetensors torch record record_file convert steps byte_source quantized onnx_file embedded file_options",
          "models": "load load_file module config adapter layer_kind", "running": "nn ops runtime operation attribute function ballast"}


def group_of(path):
    """(its name, its title, the group it stands in)."""
    stem = path.rsplit("/", 1)[-1].removesuffix(".h")
    for part, title in (("ops", "Operations"), ("nn", "Layers")):
        if f"/detail/{part}/" in path:
            return f"{part}_{stem}", f"{title}: {stem}", f"header_{part}"
    found = [group for group, stems in GROUPS.items() if stem in stems.split()]
    if not found:
        sys.exit(f"{path}: belongs to no group of cmake/doxygen_filter.py")
    return f"header_{stem}", f"ballast/{stem}.h" if "/detail/" not in path else f"ballast/detail/{stem}.h", found[0]


def opening_words(lines, path):
    """The words a header opens with, as the words of its group; as many lines as they were."""
    name, title, parent = group_of(path)
    brief = re.match(r".*?\.(?= |$)|.*", " ".join(line[3:] for line in lines[1:])).group()
    out = [f"/** @file {path.split('include/')[-1]} @brief {brief} @sa @ref {name} */ /** @defgroup {name} {title}"]
    block = None  # "list" or "code": lines that are indented
    for line in lines[1:]:
        indented = line.startswith("//   ")
        if indented and block is None:
            block = "list" if line.startswith("//   - ") else "code"
            if block == "code":
                out[-1] += " @code{.cpp}" if line[-1] in ";{" else " @code{.unparsed}"
        ends = "@endcode " if block == "code" and not indented else ""
        block = block if indented else None
        text = re.sub(r"\b(Gives|Throws|Owns|Threads|Costs):(?= |$)", r"<br><b>\1:</b>", line[3:])
        text = re.sub(r"^([a-z]\w*\(.*?\))", r"`\1`", text) if len(out) == 1 else text  # or it would get a capital
        out.append(ends + (text.removeprefix("<br>") if out[-1] == "" else text))
    out[-1] += (" @endcode" if block == "code" else "") + f" @ingroup {parent} */"
    return out


ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs/operations.md").read_text(encoding="utf-8")
# {"sum": ("`torch.sum`", "F32 F64 …")}: what docs/operations.md says of a function, which the tests hold against torch.
TORCH = {name: (torch, dtypes) for name, torch, dtypes in re.findall(r"^\| `(\w+)` \| ([^|]*?) \| ([^|]*?) \|", PAGE, re.M)}
# The layers that page names, which are torch.nn's.
LAYERS = set(re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| `\w+\.h` \| (.*) \|$", PAGE, re.M)))) - {"RotaryEmbedding"}
# {"ConvArgs": {"stride", …}}: PyTorch's arguments, by the struct that has them here (written by scripts/list-operations).
ARGUMENTS = {words[0]: set(words[1:]) for words in map(str.split, (ROOT / "cmake/torch_arguments.txt").read_text().splitlines()) if words[0] != "#"}


def as_in_torch(name):
    """"PyTorch's `torch.sum`, compared with it in F32, F64." None for what PyTorch has not: that needs words of its own."""
    torch, dtypes = TORCH.get(name, ("", ""))
    compared = f"compared with it in {', '.join(dtypes.split())}" if dtypes else "made of other operations"
    return f"PyTorch's {torch}, {compared}." if torch else None


def layers_of(name):
    """"`torch.nn.Conv1d`, `Conv2d`, `Conv3d`" for Conv, "" for what is no layer of PyTorch's."""
    found = [name] if name in LAYERS else [name + d for d in ("1d", "2d", "3d") if name + d in LAYERS]
    return "`torch.nn." + "`, `".join(found) + "`" if found else ""


def torch_words(path, scope, name, is_type, text):
    """What stands in PyTorch under the same name; None where it has nothing of that name."""
    if not scope and name in LAYERS and "/detail/nn/" in path:
        return f"PyTorch's {layers_of(name)}."
    throws = f"Throws what @ref {group_of(path)[0]} says."
    if is_type:
        if name in ARGUMENTS and (name.endswith("Options") or name.endswith("Args")):
            return "PyTorch's arguments, by their names."
        return f"PyTorch's {layers_of(name)}." if "/detail/nn/" in path and layers_of(name) else None
    if scope and name in ARGUMENTS.get(scope, ()):
        return f"PyTorch's `{name}`."
    if "/detail/nn/" in path:
        if name == "forward" and layers_of(scope):
            return f"What PyTorch's {layers_of(scope)} computes. {throws}"
        if name == scope and layers_of(scope):
            return f"With PyTorch's arguments; no memory is taken before weights are loaded. {throws}"
        if re.search(r"(Options(<N>)?|Args) options\b", text):
            return "What it was made with."
        return next((words for member, words in MEMBERS.items() if re.match(member + r"\b", text)), None)
    if name.startswith("operator") and not name.endswith("="):
        return "Element by element, with broadcasting, as in PyTorch."
    if name in ("operator==", "operator!=", "operator<=", "operator>="):
        return "Element by element, with broadcasting, as in PyTorch."
    return None if scope else as_in_torch(name)


def declared(line):
    """(name, is a type) of a declaration's first line, or None."""
    found = re.match(r"requires\(.*?\) (?:constexpr )?(\w+)\(\w", line)
    if found:
        return (found.group(1), False)
    found = re.match(r"(?:struct|class|enum class|enum) (\w+)", line)
    if found:
        return None if re.fullmatch(r"[\w ]+;", line) else (found.group(1), True)
    if re.match(r"(template|requires|namespace|public|private|protected|return|if|else|for|using \w+(<[^>]*>)?::|static_assert|#|//|\}|visit\(|:|&&|\|\|)", line):
        return None
    found = re.search(r"(operator\S+?|~?\w+)\(", line) or re.match(r"[\w:<>,&\*\s\[\]]*?[\s&\*](\w+)(?: = .*| ?\{.*)?;", line) or re.match(r"using (\w+) =", line)
    return (found.group(1), False) if found else None


def is_body_outside(lines):
    """Whether a member's body begins here, outside of its class, where what it is was said."""
    if not lines[0] or lines[0].startswith((" ", "/", "#", "}")):
        return False
    head = ""
    for line in lines:
        head += line + " "
        if line.endswith(("{", ";")):
            break
    return re.match(r"(template <[^>]*> )?\s*(requires .*? )?(?!using|struct|class|template|static|return)[^=({]*\b[A-Z]\w*(<[^>]*>)?::~?\w+\([^;]*\{ $", head) is not None


def main(path):
    lines = open(path, encoding="utf-8").read().splitlines()
    begin = next(number for number, line in enumerate(lines) if not line.startswith("//"))
    out, scopes, named, bodies = opening_words(lines[:begin], path), [], [], False
    of_torch = "/detail/nn/" in path or "/detail/ops/" in path
    pending = None  # where words for the next declaration belong: before its template line
    for number, line in enumerate(lines[begin:], begin):
        text = line.strip()
        if re.fullmatch(r"namespace ballast[\w:]* \{", line):  # inside it, or its members would be in no group
            out.append(f"{line} /** @addtogroup {group_of(path)[0]} */ /** @{{ */")
            continue
        if re.fullmatch(r"\}  // namespace ballast[\w:]*", line):
            out.append(f"/** @}} */ {line}")
            continue
        level = len(line) - len(line.lstrip())
        if bodies or is_body_outside(lines[number:number + 4]):
            out.append(line if bodies else f"/** @cond */ {line}")
            bodies = line != "}"
            out[-1] += "" if bodies else " /** @endcond */"
            continue
        # Members under @name, up to the next one or the end of what can be seen.
        if named and text.startswith("/// @name"):
            out[-1] = "/** @} */"
        elif named and (text == "private:" or (text == "};" and level < named[-1])):
            line, named = f"/** @}} */ {line.strip()}", []
        if text.startswith("/// @name"):
            named = [level]
            opened = False
        elif named and not text and not opened:
            out.append("/// @{")
            opened = True
            continue
        while scopes and level <= scopes[-1][1] and text and not text.startswith(("#", "//")):
            scopes.pop()
        has_words = "///<" in line or (out and out[-1].strip().startswith("///")) or re.match(r"\s*///<", "".join(lines[number + 1:number + 2]))
        if text.startswith(("template", "requires")) and not text.endswith(";"):
            if pending is None and not (out and out[-1].strip().startswith("///")):
                pending = len(out)
            elif pending is None:
                pending = -1
        at_member = level == (scopes[-1][1] + 2 if scopes else 0)
        words = None
        for pattern, said in EVERYWHERE:
            if at_member and re.match(pattern, text):
                words = said
                break
        else:
            pattern = None
        if pattern is not None and words is None:
            out.append("")  # hidden, and lines keep their numbers
            continue
        name = declared(text) if at_member else None
        if pattern is None and name and of_torch:
            words = torch_words(path, scopes[-1][0] if scopes else "", *name, text)
        is_function = name and not name[1] and not scopes and "/detail/ops/" in path and "(" in text and not name[0].startswith("operator")
        if is_function and has_words and TORCH.get(name[0], ("",))[0]:  # behind the words it has
            at = max(number for number, said in enumerate(out) if said.strip().startswith("///"))
            out[at] += " " + as_in_torch(name[0])
        if words and not has_words and pending != -1:
            if pending is None:
                line = f"/** {words} */ {text}"  # on the same line: lines keep their numbers
            else:
                out[pending] = f"/** {words} */ {out[pending].strip()}"
            out.append(line)
        else:
            out.append(line)
        if name or (text and not text.startswith(("template", "requires"))):
            pending = None
        found = re.match(r"(?:struct|class|enum class|enum) (\w+)", text)
        if found and not text.endswith(";"):
            scopes.append((found.group(1), level))
    print("\n".join(out))


if __name__ == "__main__":
    main(sys.argv[1])
