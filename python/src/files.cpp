// SPDX-License-Identifier: Apache-2.0
#include "files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "ballast/convert.h"
#include "ballast/io.h"
#include "ballast/runtime.h"
#include "ballast/safetensors.h"
#include "ballast/storage.h"
#include "checkpoint.h"
#include "memory.h"
#include "steps.h"
#include "tensor.h"
#include "watch.h"

namespace py {
namespace {

// A bytes object as memory that lives as long as it is used.
std::shared_ptr<const ballast::Storage> storage_of(PyObject* bytes) {
  char* data = nullptr;
  Py_ssize_t size = 0;
  check(PyBytes_AsStringAndSize(bytes, &data, &size));
  Py_INCREF(bytes);
  return ballast::Storage::borrow(static_cast<const void*>(data), static_cast<std::uint64_t>(size), [bytes] {
    if (Py_IsInitialized() == 0) return;
    const Locked gil;
    Py_DECREF(bytes);
  });
}

// open_bytes(bytes, {inert, expansion, identities, passphrase_file})
PyObject* open_bytes(PyObject* /*module*/, PyObject* args) {
  return guarded([&] {
    PyObject* bytes = nullptr;
    PyObject* options_object = nullptr;
    if (PyArg_ParseTuple(args, "OO", &bytes, &options_object) == 0) throw Raised{};
    const Options options(options_object);
    const ballast::OpenOptions how{.inert = options.flag("inert"),
                                   .expansion = expansion_of(options),
                                   .identities = options.texts("identities"),
                                   .passphrase_file = options.path("passphrase_file")};
    const auto source = ballast::memory_source(storage_of(bytes), "bytes");
    return wrap(run_or_leave(source->size(), [source, how] { return ballast::open(source, how); }));
  });
}

// How long a Safetensors file says its header is: all that is read when it is opened.
std::uint64_t header_of(const std::string& path) {
  std::array<unsigned char, 8> bytes{};
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // a pipe is not waited for
  if (file < 0) return 0;
  const ssize_t count = pread(file, bytes.data(), bytes.size(), 0);
  close(file);
  if (count != static_cast<ssize_t>(bytes.size())) return 0;
  std::uint64_t length = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) length = length << 8U | bytes[i];
  return length;
}

// open(path, {io, writable, inert, safetensors, identities, passphrase_file})
PyObject* open(PyObject* /*module*/, PyObject* args) {
  return guarded([&] {
    PyObject* path_object = nullptr;
    PyObject* options_object = nullptr;
    if (PyArg_ParseTuple(args, "OO", &path_object, &options_object) == 0) throw Raised{};
    const std::string path = path_of(path_object);
    const Options options(options_object);
    const ballast::Io io = ballast::io_from_name(options.text("io"));
    const bool writable = options.flag("writable");
    const bool inert = options.flag("inert");
    const double expansion = expansion_of(options);
    const bool safetensors = options.flag("safetensors");
    const ballast::OpenOptions how{.io = io,
                                   .inert = inert,
                                   .writable = writable,
                                   .expansion = expansion,
                                   .identities = options.texts("identities"),
                                   .passphrase_file = options.path("passphrase_file")};
    const std::uint64_t work = safetensors ? header_of(path) : work_at(path);
    return wrap(run_or_leave(work, [path, how, safetensors] {
      return safetensors ? ballast::safetensors::open(path, {.io = how.io, .writable = how.writable})
                         : ballast::open(path, how);
    }));
  });
}

// A Safetensors file that is a bytes object: a view of it.
PyObject* parse(PyObject* /*module*/, PyObject* bytes) {
  return guarded([&] {
    const auto storage = storage_of(bytes);
    return wrap(run_or_leave(storage->size(), [storage] { return ballast::safetensors::parse(storage); }));
  });
}

PyObject* from_specs(PyObject* /*module*/, PyObject* args) {
  return guarded([&] {
    PyObject* specs = nullptr;
    PyObject* metadata = nullptr;
    int keep_ties = 0;
    if (PyArg_ParseTuple(args, "OO|p", &specs, &metadata, &keep_ties) == 0) throw Raised{};
    return wrap(checkpoint_of_specs(specs, metadata, keep_ties != 0));
  });
}

PyObject* serialize(PyObject* /*module*/, PyObject* checkpoint) {
  return guarded([&] {
    const ballast::Checkpoint& source = checkpoint_of(checkpoint);
    const std::vector<std::byte> bytes =
        run_or_leave(work_of(source), [source] { return ballast::safetensors::serialize(source); });
    return Ref(PyBytes_FromStringAndSize(reinterpret_cast<const char*>(bytes.data()),
                                         static_cast<Py_ssize_t>(bytes.size())));
  });
}

ballast::Format format_of(const Options& options) {
  const std::string name = options.text("format");
  return name.empty() ? ballast::Format() : ballast::format_named(name);
}

ballast::Pack pack_of(const Options& options) {
  const std::string name = options.text("pack");
  return name.empty() ? ballast::Pack::none : ballast::pack_named(name);
}

// save(checkpoint, path, {format, overwrite, simplify, shard_bytes, recipients, …}), or
// save(checkpoint, path, {verbatim, durable}): a Safetensors file of these tensors and this metadata, as
// serialize() makes it
PyObject* save(PyObject* /*module*/, PyObject* args) {
  return guarded([&] {
    PyObject* checkpoint_object = nullptr;
    PyObject* path_object = nullptr;
    PyObject* options_object = nullptr;
    if (PyArg_ParseTuple(args, "OOO", &checkpoint_object, &path_object, &options_object) == 0) throw Raised{};
    const ballast::Checkpoint& checkpoint = checkpoint_of(checkpoint_object);
    const std::string path = path_of(path_object);
    const Options options(options_object);
    const Watch watch(work_of(checkpoint));
    const ballast::Progress progress = watch.progress(options.find("progress"));
    const bool overwrite = options.flag("overwrite", true);
    const bool durable = options.flag("durable", true);
    const bool verbatim = options.flag("verbatim");
    const ballast::SaveOptions how{.format = format_of(options),
                                   .simplify = options.flag("simplify"),
                                   .shard_bytes = static_cast<std::uint64_t>(options.number("shard_bytes")),
                                   .check = options.flag("check", true),
                                   .pack = pack_of(options),
                                   .recipients = options.texts("recipients"),
                                   .passphrase_file = options.path("passphrase_file"),
                                   .overwrite = overwrite,
                                   .progress = progress};
    watch.run([&] {
      if (verbatim && !path.ends_with(".age")) {  // which save() does not take without recipients
        ballast::safetensors::save(checkpoint, path,
                                   {.overwrite = overwrite, .durable = durable, .progress = progress});
      } else {
        ballast::save(checkpoint, path, how);
      }
      return true;
    });
    return none();
  });
}

ballast::ConvertOptions convert_options_of(const Options& given) {
  ballast::ConvertOptions options;
  options.io = ballast::io_from_name(given.text("io"));
  options.inert = given.flag("inert");
  options.expansion = expansion_of(given);
  options.check = given.flag("check", true);
  set_steps(options, given);
  if (given.find("adapter") != nullptr) options.adapter = ballast::adapter_named(given.text("adapter"));
  if (given.find("layout") != nullptr) options.layout = ballast::adapter_named(given.text("layout"));
  for (const ballast::RenameRule& layer : rename_rules_of(given.find("layers")))
    options.layers.push_back({layer.match, ballast::layer_kind_named(layer.to)});
  options.like = given.path("like");
  options.burn = given.text("burn");
  if (given.find("meta") != nullptr)
    options.meta = metadata_of(given.find("meta")).value_or(ballast::Metadata());
  if (given.flag("quantize_int8")) options.quantize = ballast::Quantize::int8;
  options.format = format_of(given);
  options.state_dict = given.flag("state_dict");
  options.simplify = given.flag("simplify");
  options.overwrite = given.flag("overwrite");
  options.shard_bytes = static_cast<std::uint64_t>(given.number("shard_bytes"));
  options.pack = pack_of(given);
  options.recipients = given.texts("recipients");
  options.passphrase_file = given.path("passphrase_file");
  options.receipt = given.path("receipt");
  return options;
}

// Those of the steps, and those of the conversion as a whole.
std::vector<std::string> notes_of(const ballast::Converted& done) {
  std::vector<std::string> notes = done.checkpoint.notes;
  for (const std::string& note : done.before.notes) {
    if (std::find(notes.begin(), notes.end(), note) == notes.end()) notes.push_back(note);
  }
  return notes;
}

Ref conversion(const ballast::Converted& done) {
  Dict dict;
  Ref names = list_of(done.checkpoint, [](const ballast::Entry& entry) { return to_python(entry.name); });
  return dict.set("tensors", names)
      .set("origins", done.origins)
      .set("root", done.root)
      .set("unmatched", done.unmatched)
      .set("cast", done.cast)
      .set("rounded", std::uint64_t{done.count->rounded})
      .set("overflowed", std::uint64_t{done.count->overflowed})
      .set("files", done.shards.files)
      .set("notes", notes_of(done))
      .object();
}

PyObject* convert(PyObject* /*module*/, PyObject* args) {
  return guarded([&] {
    PyObject* in_object = nullptr;
    PyObject* out_object = nullptr;
    PyObject* options_object = nullptr;
    if (PyArg_ParseTuple(args, "OOO", &in_object, &out_object, &options_object) == 0) throw Raised{};
    const std::string in = path_of(in_object);
    const std::string out = path_of(out_object);
    const Options given(options_object);
    ballast::ConvertOptions options = convert_options_of(given);
    const Watch watch(work_at(in));
    options.progress = watch.progress(given.find("progress"));
    return conversion(watch.run([&] { return ballast::convert(in, out, options); }));
  });
}

PyObject* open_value(PyObject* /*module*/, PyObject* args) {
  return guarded([&] {
    PyObject* path = nullptr;
    const char* dotted = nullptr;
    if (PyArg_ParseTuple(args, "Os", &path, &dotted) == 0) throw Raised{};
    return to_python(ballast::open_value(path_of(path), dotted));
  });
}

// [(target address, source address, bytes), …]: between memory that the caller keeps alive.
PyObject* copy_bytes(PyObject* /*module*/, PyObject* list) {
  return guarded([&] {
    std::vector<ByteCopy> copies;
    for (Py_ssize_t i = 0; i < PyList_Size(list); ++i) {
      unsigned long long target = 0;
      unsigned long long source = 0;
      unsigned long long size = 0;
      if (PyArg_ParseTuple(PyList_GetItem(list, i), "KKK", &target, &source, &size) == 0) throw Raised{};
      copies.push_back({reinterpret_cast<std::byte*>(static_cast<std::uintptr_t>(target)),
                        reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(source)), size});
    }
    {
      const Unlocked unlocked;
      copy_bytes(copies);
    }
    return none();
  });
}

PyObject* thread_count(PyObject* /*module*/, PyObject* /*unused*/) {
  return guarded([&] { return to_python(std::int64_t{ballast::thread_count()}); });
}

PyObject* set_thread_count(PyObject* /*module*/, PyObject* count) {
  return guarded([&] {
    ballast::set_thread_count(static_cast<int>(integer_of(count)));
    return none();
  });
}

// set_identities({identities, passphrase_file})
PyObject* set_identities(PyObject* /*module*/, PyObject* options_object) {
  return guarded([&] {
    const Options options(options_object);
    ballast::set_identities(options.texts("identities"), options.path("passphrase_file"));
    return none();
  });
}

PyMethodDef functions[] = {
    {"open", open, METH_VARARGS, nullptr},
    {"open_bytes", open_bytes, METH_VARARGS, nullptr},
    {"parse", parse, METH_O, nullptr},
    {"from_specs", from_specs, METH_VARARGS, nullptr},
    {"serialize", serialize, METH_O, nullptr},
    {"save", save, METH_VARARGS, nullptr},
    {"convert", convert, METH_VARARGS, nullptr},
    {"open_value", open_value, METH_VARARGS, nullptr},
    {"copy_bytes", copy_bytes, METH_O, nullptr},
    {"thread_count", thread_count, METH_NOARGS,
     "thread_count($module, /)\n--\n\nHow many threads Ballast works with."},
    {"set_thread_count", set_thread_count, METH_O,
     "set_thread_count($module, count, /)\n--\n\nFor work that starts after the call."},
    {"set_identities", set_identities, METH_O, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_file_functions(PyObject* module) {
  check(PyModule_AddFunctions(module, functions));
}

}  // namespace py
