// SPDX-License-Identifier: Apache-2.0
#include "ballast/diff.h"
#include "ballast/hash.h"
#include "ballast/scan.h"
#include "ballast/stats.h"
#include "ballast/verify.h"
#include "checkpoint.h"
#include "files.h"
#include "steps.h"
#include "watch.h"

namespace py {
namespace {

Ref distance(const ballast::Distance& distance) {
  return Dict()
      .set("count", distance.count)
      .set("differing", distance.differing)
      .set("outside", distance.outside)
      .set("first", distance.first)
      .set("max_abs", distance.max_abs)
      .set("max_rel", distance.max_rel)
      .set("max_ulp", distance.max_ulp)
      .set("cosine", distance.cosine)
      .set("rel_l2", distance.rel_l2)
      .set("l2_a", distance.l2_a)
      .set("l2_b", distance.l2_b)
      .set("l2_diff", distance.l2_diff)
      .set("nan_a", distance.nan_a)
      .set("nan_b", distance.nan_b)
      .object();
}

Ref difference(const ballast::TensorDiff& diff) {
  using ballast::Change;
  const bool compared =
      diff.change == Change::within || diff.change == Change::values || diff.change == Change::dtype;
  const bool in_a = diff.change != Change::only_b;
  const bool in_b = diff.change != Change::only_a;
  return Dict()
      .set("change", name(diff.change))
      .set("name", diff.name)
      .set("other", diff.other)
      .set("dtype_a", in_a ? to_python(info(diff.dtype_a).code) : none())
      .set("dtype_b", in_b ? to_python(info(diff.dtype_b).code) : none())
      .set("shape_a", in_a ? to_python(ballast::ShapeView(diff.shape_a)) : none())
      .set("shape_b", in_b ? to_python(ballast::ShapeView(diff.shape_b)) : none())
      .set("distance", compared ? distance(diff.distance) : none())
      .object();
}

// diff(a, b, {tolerance, relative, find_renamed, progress})
PyObject* diff(PyObject* /*module*/, PyObject* args) {
  return guarded([&] {
    PyObject* a = nullptr;
    PyObject* b = nullptr;
    PyObject* given = nullptr;
    if (PyArg_ParseTuple(args, "OOO", &a, &b, &given) == 0) throw Raised{};
    const Options options(given);
    const ballast::Checkpoint& left = checkpoint_of(a);
    const ballast::Checkpoint& right = checkpoint_of(b);
    const Watch watch(work_of(left) + work_of(right));
    const ballast::DiffOptions how{.tolerance = options.number("tolerance"),
                                   .relative = options.number("relative"),
                                   .find_renamed = options.flag("find_renamed", true),
                                   .progress = watch.progress(options.find("progress"))};
    const auto report = watch.run([&] { return ballast::diff(left, right, how); });
    return list_of(report.tensors, difference);
  });
}

Dict statistics(const ballast::TensorStats& stats) {
  Dict dict;
  return dict.set("count", stats.count)
      .set("nan", stats.nan)
      .set("inf", stats.inf)
      .set("zeros", stats.zeros)
      .set("min", stats.min)
      .set("max", stats.max)
      .set("mean", stats.mean)
      .set("std", stats.std)
      .set("absmax", stats.absmax());
}

struct Distribution {
  ballast::TensorStats stats;
  std::vector<double> quantiles = {};
  ballast::Histogram histogram = {};
};

std::vector<double> numbers_of(PyObject* sequence) {
  const Ref items(PySequence_List(sequence));
  std::vector<double> numbers;
  for (Py_ssize_t i = 0; i < PyList_Size(items.get()); ++i) {
    const double number = PyFloat_AsDouble(PyList_GetItem(items.get(), i));
    if (number == -1 && PyErr_Occurred() != nullptr) throw Raised{};
    numbers.push_back(number);
  }
  return numbers;
}

std::vector<Distribution> distributions(const std::vector<ballast::Tensor>& tensors,
                                        const std::vector<double>& shares, bool histogram,
                                        const ballast::Progress& progress) {
  std::vector<Distribution> all;
  if (shares.empty() && !histogram) {
    for (const ballast::TensorStats& stats : ballast::stats(tensors, progress)) all.push_back({stats});
    return all;
  }
  ballast::summary(
      tensors,
      [&](std::size_t, const ballast::Summary& summary) {
        Distribution& one = all.emplace_back(Distribution{summary.stats});
        for (const double share : shares) one.quantiles.push_back(summary.quantile(share));
        if (histogram) one.histogram = summary.histogram();
      },
      progress);
  return all;
}

Ref distribution(const Distribution& found, const std::vector<double>& shares, bool histogram) {
  const auto number = [](const auto& value) { return to_python(value); };
  Dict dict = statistics(found.stats);
  if (!shares.empty()) {
    const Ref quantiles(PyDict_New());
    for (std::size_t i = 0; i < shares.size(); ++i)
      check(PyDict_SetItem(quantiles.get(), to_python(shares[i]).get(), to_python(found.quantiles[i]).get()));
    dict.set("quantiles", quantiles);
  }
  if (histogram) {
    dict.set("histogram", Dict()
                              .set("edges", list_of(found.histogram.edges, number))
                              .set("counts", list_of(found.histogram.counts, number))
                              .object());
  }
  return dict.object();
}

// stats(checkpoint, quantiles, histogram, progress): a dict for each tensor that has data.
PyObject* stats(PyObject* /*module*/, PyObject* args) {
  return guarded([&] {
    PyObject* checkpoint_object = nullptr;
    PyObject* quantiles = nullptr;
    int histogram = 0;
    PyObject* progress = nullptr;
    if (PyArg_ParseTuple(args, "OOpO", &checkpoint_object, &quantiles, &histogram, &progress) == 0)
      throw Raised{};
    const std::vector<double> shares = numbers_of(quantiles);
    std::vector<ballast::Tensor> tensors;
    std::vector<std::string_view> names;
    for (const ballast::Entry entry : checkpoint_of(checkpoint_object)) {
      ballast::Tensor tensor = entry.tensor();
      if (!tensor.has_data()) continue;
      tensors.push_back(std::move(tensor));
      names.push_back(entry.name);
    }
    const Watch watch(work_of(checkpoint_of(checkpoint_object)));
    const ballast::Progress report = watch.progress(progress);
    const auto results = watch.run([&] { return distributions(tensors, shares, histogram != 0, report); });
    Ref dict(PyDict_New());
    for (std::size_t i = 0; i < results.size(); ++i)
      check(PyDict_SetItem(dict.get(), to_python(names[i]).get(),
                           distribution(results[i], shares, histogram != 0).get()));
    return dict;
  });
}

PyObject* check_integrity(PyObject* /*module*/, PyObject* path_object) {
  return guarded([&] {
    const std::string path = path_of(path_object);
    const auto sums = run_or_leave(work_at(path), [path] { return ballast::check_integrity(path); });
    return Dict().set("checked", sums.checked).set("without", sums.without).object();
  });
}

Ref verify_finding(const ballast::VerifyFinding& finding) {
  return Dict()
      .set("name", finding.name.empty() ? none() : to_python(finding.name))
      .set("kind", name(finding.kind))
      .set("count", finding.count)
      .set("first", finding.first)
      .set("detail", finding.detail)
      .object();
}

// verify(path, {io, root, include, exclude, receipt, tensors_only, allow_zeros, max_abs, inert, progress})
PyObject* verify(PyObject* /*module*/, PyObject* args) {
  return guarded([&] {
    PyObject* path_object = nullptr;
    PyObject* given = nullptr;
    if (PyArg_ParseTuple(args, "OO", &path_object, &given) == 0) throw Raised{};
    const std::string path = path_of(path_object);
    const Options options(given);
    ballast::VerifyOptions how;
    how.io = ballast::io_from_name(options.text("io"));
    how.inert = options.flag("inert");
    how.expansion = expansion_of(options);
    set_steps(how, options);
    how.receipt = options.path("receipt");
    how.tensors_only = options.flag("tensors_only");
    how.allow_zeros = options.flag("allow_zeros");
    how.max_abs = options.number("max_abs");
    const Watch watch(work_at(path));
    how.progress = watch.progress(options.find("progress"));
    const auto report = watch.run([&] { return ballast::verify(path, how); });
    return Dict()
        .set("findings", list_of(report.findings, verify_finding))
        .set("notes", report.notes)
        .object();
  });
}

Ref signature_finding(const ballast::SignatureFinding& finding) {
  return Dict().set("name", finding.name).set("kind", name(finding.kind)).object();
}

// What sign() and verify_signature() have in common: (path, signature, {key, passphrase_file, …}).
template <class Call>
PyObject* with_signature(PyObject* args, Call&& call) {
  return guarded([&] {
    PyObject* path_object = nullptr;
    PyObject* signature_object = nullptr;
    PyObject* given = nullptr;
    if (PyArg_ParseTuple(args, "OOO", &path_object, &signature_object, &given) == 0) throw Raised{};
    const std::string path = path_of(path_object);
    const std::string signature = path_of(signature_object);
    const Options options(given);
    ballast::SignatureOptions how;
    how.key = options.path("key");
    how.passphrase_file = options.path("passphrase_file");
    how.certificate = options.path("certificate");
    how.certificate_chain = options.texts("certificate_chain");
    how.ignore = options.texts("ignore");
    how.ignore_git = options.flag("ignore_git", true);
    how.allow_symlinks = options.flag("allow_symlinks");
    how.ignore_unsigned = options.flag("ignore_unsigned");
    how.overwrite = options.flag("overwrite");
    const Watch watch(work_at(path));
    how.progress = watch.progress(options.find("progress"));
    const ballast::SignatureReport report = watch.run([&] { return call(path, signature, how); });
    return Dict()
        .set("model", report.model)
        .set("signer", report.signer)
        .set("files", report.files)
        .set("bytes", report.bytes)
        .set("ignored", report.ignored)
        .set("findings", list_of(report.findings, signature_finding))
        .set("notes", report.notes)
        .object();
  });
}

PyObject* sign(PyObject* /*module*/, PyObject* args) {
  return with_signature(args, ballast::sign);
}

PyObject* verify_signature(PyObject* /*module*/, PyObject* args) {
  return with_signature(args, ballast::verify_signature);
}

PyObject* hash(PyObject* /*module*/, PyObject* args) {
  return guarded([&] {
    PyObject* checkpoint_object = nullptr;
    PyObject* progress = nullptr;
    if (PyArg_ParseTuple(args, "OO", &checkpoint_object, &progress) == 0) throw Raised{};
    const ballast::Checkpoint& checkpoint = checkpoint_of(checkpoint_object);
    const Watch watch(work_of(checkpoint));
    const ballast::Progress report = watch.progress(progress);
    const auto manifest = watch.run([&] { return ballast::hash(checkpoint, report); });
    Ref tensors(PyDict_New());
    for (const ballast::TensorHash& tensor : manifest.tensors)
      check(PyDict_SetItem(tensors.get(), to_python(tensor.name).get(), to_python(tensor.sha256).get()));
    return Dict().set("root", manifest.root).set("tensors", tensors).object();
  });
}

template <class Item>
Ref mention(const Item& item) {
  return Dict()
      .set("name", item.name)
      .set("offset", item.offset)
      .set("count", item.count)
      .set("verdict", name(item.verdict))
      .set("entry", item.entry)
      .object();
}

Ref finding(const ballast::ScanFinding& finding) {
  return Dict()
      .set("severity", name(finding.severity))
      .set("code", name(finding.code))
      .set("what", finding.what)
      .set("offset", finding.offset)
      .set("entry", finding.entry)
      .object();
}

PyObject* scan(PyObject* /*module*/, PyObject* args) {
  return guarded([&] {
    PyObject* path_object = nullptr;
    int checksums = 1;
    if (PyArg_ParseTuple(args, "Op", &path_object, &checksums) == 0) throw Raised{};
    const std::string path = path_of(path_object);
    const auto report =
        run_or_leave(work_at(path), [path, checksums] { return ballast::scan(path, checksums != 0); });
    return Dict()
        .set("format", report.format.name())
        .set("verdict", name(report.verdict()))
        .set("clean", report.clean())
        .set("findings", list_of(report.findings, finding))
        .set("globals", list_of(report.globals, mention<ballast::ScanGlobal>))
        .set("calls", list_of(report.calls, mention<ballast::ScanCall>))
        .object();
  });
}

PyMethodDef functions[] = {
    {"diff", diff, METH_VARARGS, nullptr},
    {"stats", stats, METH_VARARGS, nullptr},
    {"check_integrity", check_integrity, METH_O, nullptr},
    {"verify", verify, METH_VARARGS, nullptr},
    {"sign", sign, METH_VARARGS, nullptr},
    {"verify_signature", verify_signature, METH_VARARGS, nullptr},
    {"hash", hash, METH_VARARGS, nullptr},
    {"scan", scan, METH_VARARGS, nullptr},
    {nullptr, nullptr, 0, nullptr},
};

}  // namespace

void add_report_functions(PyObject* module) {
  check(PyModule_AddFunctions(module, functions));
}

}  // namespace py
