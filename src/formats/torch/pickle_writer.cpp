// SPDX-License-Identifier: Apache-2.0
#include "formats/torch/pickle_writer.h"

#include "ballast/error.h"
#include "base/fail.h"
#include "formats/torch/pickle_text.h"
#include "formats/torch/tree_pickler.h"

namespace ballast::torch {

std::string pickle_tree(const Value& root, const SaveOptions& options, StorageTable& storages) {
  PickleEmitter emitter;
  TensorPickler tensors(emitter, storages, options.format == formats::torch_legacy);
  const FormOptions form_options{.plain_dict = options.plain_dict, .simplify = options.simplify};
  TreeSurvey survey(form_options, tensors);
  survey.run(root);
  storages.settle();
  TreePickler(form_options, survey, emitter, tensors).run(root);
  return std::move(emitter).finish();
}

std::string pickle_tensors(const Checkpoint& checkpoint, const SaveOptions& options, StorageTable& storages) {
  PickleEmitter emitter;
  TensorPickler tensors(emitter, storages, options.format == formats::torch_legacy);
  for (const Entry& entry : checkpoint) {
    if (!is_python_text(entry.name))
      fail(Errc::not_representable, quoted(entry.name), "a name that is not UTF-8");
    if (info(entry.dtype).kind == DTypeKind::quantized) {
      fail(Errc::not_representable, display(entry.name), "{} has no scale and zero point outside a tree",
           info(entry.dtype).code);
    }
    tensors.note(entry.tensor(), [&] { return display(entry.name); });
  }
  const FormOptions form_options{.plain_dict = options.plain_dict, .simplify = options.simplify};
  TreeSurvey survey(form_options, tensors);
  const bool has_metadata = options.metadata && !options.plain_dict;
  if (has_metadata) survey.run(*options.metadata);
  storages.settle();

  if (options.plain_dict)
    emitter.empty_dict();
  else
    emitter.ordered_dict();
  for (std::size_t i = 0; i < checkpoint.size(); ++i) {
    if (i % kBatch == 0) {
      if (i > 0) emitter.set_items();
      emitter.mark();
    }
    emitter.string(checkpoint[i].name);
    tensors.write(checkpoint[i].tensor());
  }
  if (!checkpoint.empty()) emitter.set_items();
  if (has_metadata) {
    emitter.empty_dict();
    emitter.mark();
    emitter.string("_metadata");
    TreePickler(form_options, survey, emitter, tensors).run(*options.metadata);
    emitter.set_items();
    emitter.build();
  }
  return std::move(emitter).finish();
}

}  // namespace ballast::torch
