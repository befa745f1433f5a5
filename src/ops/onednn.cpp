// SPDX-License-Identifier: Apache-2.0
#include "ops/onednn.h"

#include <array>

#include "ops/parallel.h"
#include "tensor/resident.h"

namespace ballast::ops {
namespace {

dnnl::stream& stream() {
  thread_local dnnl::stream own(engine());
  return own;
}

}  // namespace

// Grows to the largest a thread ever needed, and stays: fresh memory for every call would cost more than the
// calls.
void* scratch_of(std::size_t size) {
  thread_local std::shared_ptr<Storage> scratch;
  if (!scratch || scratch->size() < size) scratch = Storage::heap(size);
  return scratch->mutable_data();
}

dnnl::engine& engine() {
  static dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}

dnnl::memory::dims dims_of(const Dims& dims) {
  return {dims.begin(), dims.end()};
}

Desc strided(const Dims& shape, const Dims& strides) {
  return {dims_of(shape), dnnl::memory::data_type::f32, dims_of(strides)};
}

Desc any_order(const Dims& shape) {
  return {dims_of(shape), dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
}

dnnl::memory memory_of(const Desc& desc, const void* data) {
  return {desc, engine(), const_cast<void*>(data)};
}

void reorder(const Desc& from, const void* in, const Desc& to, void* out) {
  dnnl::memory source = memory_of(from, in);
  dnnl::memory target = memory_of(to, out);
  const ThreadScope threads;
  guarded("reorder", [&] {
    dnnl::reorder(source, target).execute(stream(), source, target);
    stream().wait();
  });
}

dnnl::memory reordered(const Desc& from, const void* data, const Desc& to) {
  dnnl::memory target(to, engine());
  reorder(from, data, to, target.get_data_handle());
  return target;
}

// What an order of blocks consists of, as oneDNN's own comparison of two of them sees it.
static CacheKey& add_order(CacheKey& key, const Desc& desc) {
  const dnnl_memory_desc_t& order = desc.data;
  const auto& blocks = order.format_desc.blocking;
  key.add(order.ndims).add(static_cast<std::int64_t>(order.extra.flags)).add(blocks.inner_nblks);
  for (int i = 0; i < order.ndims; ++i)
    key.add(order.dims[i]).add(order.padded_dims[i]).add(blocks.strides[i]);
  for (int i = 0; i < blocks.inner_nblks; ++i) key.add(blocks.inner_blks[i]).add(blocks.inner_idxs[i]);
  return key;
}

SharedWeight ordered(OpCache* cache, const Tensor& weight, const Desc& from, const Tensor& values,
                     const Desc& to) {
  const bool has_name = to.data.format_kind == dnnl_blocked;
  CacheKey key;
  key.add(weight);
  return cached_part<OrderedWeight>(has_name ? cache : nullptr, has_name ? add_order(key, to) : key, [&] {
    OrderedWeight made{reordered(from, values.data(), to)};
    give_back_pages(weight);
    return made;
  });
}

bool is_step_when_finite(Activation activation) {
  return activation.kind == Activation::Kind::relu || activation.kind == Activation::Kind::relu6;
}

Attributes attributes_for(Activation activation, bool finite) {
  Attributes result{{}, activation};
  result.attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  const bool leaks = activation.kind == Activation::Kind::leaky_relu && activation.number() != 0;
  if (!leaks && !(finite && is_step_when_finite(activation))) return result;
  dnnl::post_ops steps;
  if (activation.kind == Activation::Kind::relu6)
    steps.append_eltwise(1, dnnl::algorithm::eltwise_bounded_relu, 6, 0);
  else
    steps.append_eltwise(1, dnnl::algorithm::eltwise_relu,
                         leaks ? static_cast<float>(activation.number()) : 0.0F, 0);
  result.attr.set_post_ops(steps);
  result.left = {};
  return result;
}

// By the interface for C: the other one takes a hash table, made and thrown away at every call.
void execute(const dnnl::primitive& primitive, const Desc& scratch,
             std::initializer_list<Argument> arguments) {
  constexpr std::size_t kMost = 8;
  const ThreadScope threads;
  const dnnl::memory own = memory_of(scratch, scratch_of(scratch.get_size()));
  std::array<dnnl_exec_arg_t, kMost> given{{{DNNL_ARG_SCRATCHPAD, own.get()}}};
  std::size_t count = 1;
  for (const Argument& argument : arguments)
    if (argument.memory) given.at(count++) = {argument.index, argument.memory.get()};
  dnnl::error::wrap_c_api(
      dnnl_primitive_execute(primitive.get(), stream().get(), static_cast<int>(count), given.data()),
      "could not execute a primitive");
  stream().wait();
}

}  // namespace ballast::ops
