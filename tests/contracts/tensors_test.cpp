// SPDX-License-Identifier: Apache-2.0
// Tensors, storages, DLPack, statistics.
#include <cctype>

#include "ballast/byte_source.h"
#include "ballast/dlpack.h"
#include "ballast/graph.h"
#include "ballast/runtime.h"
#include "ballast/stats.h"
#include "contracts/rows.h"

namespace ballast::contracts {
namespace {

std::shared_ptr<const Storage> of_other_device() {
  static float memory[4] = {};
  return Storage::borrow(static_cast<const void*>(memory), sizeof memory, {}, {DeviceType::cuda, 0});
}

Tensor on_other_device() {
  return Tensor::contiguous_view(DType::f32, {4}, of_other_device());
}

Tensor packed_bits() {  // F4: two to a byte
  return Tensor::empty(DType::f4, {8});
}

// A file's bytes may lie anywhere.
Tensor misaligned() {
  return Tensor::contiguous_view(DType::f32, {1}, Storage::heap(8, true), 1);
}

dlpack::ManagedTensorVersioned* exported() {
  return to_dlpack_versioned(floats({1, 2}));
}

template <class Change>
void import_changed(const Change& change) {
  dlpack::ManagedTensorVersioned* managed = exported();
  dlpack::ManagedTensorVersioned copy = *managed;
  const std::unique_ptr<dlpack::ManagedTensorVersioned, void (*)(dlpack::ManagedTensorVersioned*)> owner(
      managed, managed->deleter);
  copy.deleter = nullptr;
  change(copy);
  drop(from_dlpack(&copy));
}

const Row kRows[] = {
    {"Tensor::Tensor a negative dimension", Errc::size_overflow,
     [](auto&) { drop(Tensor(DType::f32, {-1})); }},
    {"Tensor::Tensor more bits than can be counted", Errc::size_overflow,
     [](auto&) { drop(Tensor(DType::f64, {std::int64_t{1} << 58})); }},
    {"Tensor::Tensor outside the storage", Errc::offset_out_of_range,
     [](auto&) { drop(Tensor(DType::f32, {2}, {1}, Storage::heap(7))); }},
    {"Tensor::Tensor before the storage", Errc::offset_out_of_range,
     [](auto&) { drop(Tensor(DType::f32, {2}, {-1}, Storage::heap(8))); }},
    {"Tensor::Tensor no storage", Errc::invalid_argument,
     [](auto&) { drop(Tensor(DType::f32, {2}, {1}, nullptr)); }},
    {"Tensor::Tensor too few strides", Errc::invalid_argument,
     [](auto&) {
       drop(Tensor(DType::f32, {2, 2}, {1}, Storage::heap(16)));
     }},
    {"Tensor::contiguous_view behind the storage", Errc::offset_out_of_range,
     [](auto&) { drop(Tensor::contiguous_view(DType::f32, {1}, Storage::heap(4), 1)); }},
    {"Tensor::contiguous_view an absurd offset", Errc::size_overflow,
     [](auto&) { drop(Tensor::contiguous_view(DType::f32, {1}, Storage::heap(4), UINT64_MAX)); }},
    {"Tensor::empty", Errc::size_overflow, [](auto&) { drop(Tensor::empty(DType::f32, {-2})); }},
    {"Tensor::zeros", Errc::size_overflow, [](auto&) { drop(Tensor::zeros(DType::f32, {-2})); }},
    {"Tensor::from too few", Errc::size_mismatch,
     [](auto&) {
       drop(Tensor::from<float>({1, 2}, {3}));
     }},
    {"Tensor::from too many", Errc::size_mismatch,
     [](auto&) {
       drop(Tensor::from<float>({1, 2}, {1}));
     }},
    {"Tensor::size", Errc::shape_mismatch, [](auto&) { drop(of({2}).size(1)); }},
    {"Tensor::data a shape alone", Errc::invalid_argument,
     [](auto&) { drop(Tensor(DType::f32, {2}).data()); }},
    {"Tensor::data undefined", Errc::invalid_argument, [](auto&) { drop(Tensor().data()); }},
    {"Tensor::data another device", Errc::unsupported, [](auto&) { drop(on_other_device().data()); }},
    {"Tensor::data inside a byte", Errc::misaligned,
     [](auto&) { drop(packed_bits().narrow(0, 1, 2).data()); }},
    {"Tensor::mutable_data read-only", Errc::invalid_argument,
     [](auto&) {
       static const float memory[2] = {};
       drop(Tensor::contiguous_view(DType::f32, {2}, Storage::borrow(memory, sizeof memory)).mutable_data());
     }},
    {"Tensor::mutable_data a shape alone", Errc::invalid_argument,
     [](auto&) { drop(Tensor(DType::f32, {2}).mutable_data()); }},
    {"Tensor::mutable_data inside a byte", Errc::misaligned,
     [](auto&) { drop(packed_bits().narrow(0, 1, 2).mutable_data()); }},
    {"Tensor::span another dtype", Errc::bad_dtype, [](auto&) { drop(floats({1}).span<double>().size()); }},
    {"Tensor::span strided", Errc::shape_mismatch,
     [](auto&) {
       drop(of({2, 3}).t().span<float>().size());
     }},
    {"Tensor::span misaligned", Errc::misaligned, [](auto&) { drop(misaligned().span<float>().size()); }},
    {"Tensor::mutable_span a shape alone", Errc::invalid_argument,
     [](auto&) { drop(Tensor(DType::f32, {2}).mutable_span<float>().size()); }},
    {"Tensor::read", Errc::offset_out_of_range,
     [](auto&) {
       std::byte out[5];
       floats({1}).read(0, out);
     }},
    {"Tensor::read a shape alone", Errc::invalid_argument,
     [](auto&) {
       std::byte out[4];
       Tensor(DType::f32, {1}).read(0, out);
     }},
    {"Tensor::read another device", Errc::unsupported,
     [](auto&) {
       std::byte out[4];
       on_other_device().read(0, out);
     }},
    {"Tensor::item two elements", Errc::shape_mismatch,
     [](auto&) {
       drop(floats({1, 2}).item());
     }},
    {"Tensor::item too large", Errc::not_representable,
     [](auto&) { drop(Tensor::from<int>({300}, {1}).item<std::uint8_t>()); }},
    {"Tensor::item NaN", Errc::not_representable,
     [](auto&) { drop(floats({std::numeric_limits<float>::quiet_NaN()}).item<int>()); }},
    {"Tensor::item beyond float", Errc::not_representable,
     [](auto&) { drop(Tensor::from<double>({1e300}, {1}).item<float>()); }},
    {"Tensor::item complex", Errc::bad_dtype, [](auto&) { drop(Tensor::zeros(DType::c64, {1}).item()); }},
    {"Tensor::transpose", Errc::shape_mismatch,
     [](auto&) {
       drop(of({2, 3}).transpose(0, 2));
     }},
    {"Tensor::permute twice", Errc::shape_mismatch,
     [](auto&) {
       drop(of({2, 3}).permute({0, 0}));
     }},
    {"Tensor::permute too few", Errc::shape_mismatch,
     [](auto&) {
       drop(of({2, 3}).permute({0}));
     }},
    {"Tensor::reshape", Errc::shape_mismatch,
     [](auto&) {
       drop(of({2, 3}).reshape({4}));
     }},
    {"Tensor::reshape with -1", Errc::shape_mismatch,
     [](auto&) {
       drop(of({2, 3}).reshape({4, -1}));
     }},
    {"Tensor::index outside", Errc::offset_out_of_range, [](auto&) { drop(of({2}).index({2})); }},
    {"Tensor::index too many", Errc::shape_mismatch,
     [](auto&) {
       drop(of({2}).index({0, 0}));
     }},
    {"Tensor::index step 0", Errc::invalid_argument,
     [](auto&) {
       drop(of({2}).index({Slice{{}, {}, 0}}));
     }},
    {"Tensor::index two ellipses", Errc::invalid_argument,
     [](auto&) {
       drop(of({2}).index({ellipsis, ellipsis}));
     }},
    {"Tensor::operator[] outside", Errc::offset_out_of_range, [](auto&) { drop(of({2})[-3]); }},
    {"Tensor::operator[] no dimension", Errc::shape_mismatch, [](auto&) { drop(of({})[0]); }},
    {"Tensor::narrow", Errc::shape_mismatch, [](auto&) { drop(of({2}).narrow(0, 1, 2)); }},
    {"Tensor::narrow before", Errc::shape_mismatch, [](auto&) { drop(of({2}).narrow(0, -1, 1)); }},
    {"Tensor::unsqueeze", Errc::shape_mismatch, [](auto&) { drop(of({2}).unsqueeze(2)); }},
    {"Tensor::squeeze", Errc::shape_mismatch, [](auto&) { drop(of({2}).squeeze(1)); }},
    {"Tensor::expand", Errc::shape_mismatch, [](auto&) { drop(of({2}).expand({3})); }},
    {"Tensor::expand fewer dimensions", Errc::shape_mismatch,
     [](auto&) {
       drop(of({1, 2}).expand({2}));
     }},
    {"Tensor::clone another device", Errc::unsupported, [](auto&) { drop(on_other_device().clone()); }},
    {"Tensor::to complex", Errc::bad_dtype, [](auto&) { drop(floats({1}).to(DType::c64)); }},
    {"Tensor::to_lazy quantized", Errc::bad_dtype, [](auto&) { drop(floats({1}).to_lazy(DType::qi8)); }},
    {"Storage::read outside", Errc::offset_out_of_range,
     [](auto&) {
       std::byte out[2];
       Storage::heap(2)->read(1, out);
     }},
    {"Storage::read another device", Errc::unsupported,
     [](auto&) {
       std::byte out[2];
       of_other_device()->read(0, out);
     }},
    {"Storage::of", Errc::truncated,
     [](auto&) { drop(Storage::of(*memory_source(Storage::heap(4), "m"), 2, 3)); }},
    {"ByteSource::read", Errc::truncated,
     [](auto&) { drop(memory_source(Storage::heap(4), "m")->read(2, 3)); }},
    {"ByteSource::read an absurd length", Errc::truncated,
     [](auto&) { drop(memory_source(Storage::heap(4), "m")->read(1, UINT64_MAX)); }},
    {"window", Errc::truncated, [](auto&) { drop(window(memory_source(Storage::heap(4), "m"), 3, 2)); }},
    {"file_source not there", Errc::file_not_found, [](auto& at) { drop(file_source(at("none"))); }},
    {"file_source a folder", Errc::not_regular_file, [](auto& at) { drop(file_source(at("."))); }},
    {"file_source a zero byte", Errc::invalid_argument,
     [](auto&) { drop(file_source(std::string("a\0b", 3))); }},
    {"ByteSource::check_unchanged", Errc::file_changed,
     [](auto& at) {
       const auto source = file_source(at.with("grows", "1234"), Io::read);
       at.with("grows", "12345678");
       source->check_unchanged();
     }},
    {"io_from_name", Errc::invalid_argument, [](auto&) { drop(io_from_name("mmap")); }},
    {"set_thread_count", Errc::invalid_argument, [](auto&) { set_thread_count(0); }},
    {"to_dlpack a shape alone", Errc::invalid_argument,
     [](auto&) { drop(to_dlpack(Tensor(DType::f32, {1}))); }},
    {"to_dlpack read-only", Errc::not_representable,
     [](auto&) {
       static const float memory[2] = {};
       drop(to_dlpack(Tensor::contiguous_view(DType::f32, {2}, Storage::borrow(memory, sizeof memory))));
     }},
    {"to_dlpack_versioned quantized", Errc::not_representable,
     [](auto&) { drop(to_dlpack_versioned(Tensor::zeros(DType::qi8, {1}))); }},
    {"to_dlpack_versioned inside a byte", Errc::not_representable,
     [](auto&) { drop(to_dlpack_versioned(packed_bits().narrow(0, 1, 2))); }},
    {"from_dlpack null", Errc::invalid_argument,
     [](auto&) { drop(from_dlpack(static_cast<dlpack::ManagedTensor*>(nullptr))); }},
    {"from_dlpack version", Errc::unsupported,
     [](auto&) { import_changed([](auto& m) { m.version.major = 2; }); }},
    {"from_dlpack device", Errc::unsupported,
     [](auto&) { import_changed([](auto& m) { m.dl_tensor.device.device_type = 7; }); }},
    {"from_dlpack padded", Errc::unsupported,
     [](auto&) { import_changed([](auto& m) { m.flags = dlpack::kSubByteTypePadded; }); }},
    {"from_dlpack type", Errc::bad_dtype,
     [](auto&) { import_changed([](auto& m) { m.dl_tensor.dtype.lanes = 4; }); }},
    {"from_dlpack no address", Errc::invalid_argument,
     [](auto&) { import_changed([](auto& m) { m.dl_tensor.data = nullptr; }); }},
    {"from_dlpack sizes", Errc::size_overflow,
     [](auto&) {
       import_changed([](auto& m) {
         static std::int64_t shape[] = {INT64_MAX};
         m.dl_tensor.shape = shape;
       });
     }},
    {"stats a shape alone", Errc::invalid_argument, [](auto&) { drop(stats(Tensor(DType::f32, {2}))); }},
    {"stats another device", Errc::unsupported, [](auto&) { drop(stats(on_other_device())); }},
    {"histogram no bins", Errc::invalid_argument, [](auto&) { drop(histogram(floats({1}), 0, 1, 0)); }},
    {"histogram upside down", Errc::invalid_argument, [](auto&) { drop(histogram(floats({1}), 1, 0, 4)); }},
    {"Summary::quantile", Errc::invalid_argument, [](auto&) { drop(summary(floats({1})).quantile(1.5)); }},
    {"Summary::histogram", Errc::invalid_argument, [](auto&) { drop(summary(floats({1})).histogram(0)); }},
    {"Plane::Plane axes", Errc::invalid_argument,
     [](auto&) {
       drop(Plane(of({2, 2}), {0, 2}));
     }},
    {"Plane::Plane indices", Errc::invalid_argument,
     [](auto&) {
       drop(Plane(of({2, 2, 2}), {0, 1}, {2}));
     }},
    {"Plane::Plane shapes", Errc::shape_mismatch,
     [](auto&) {
       drop(Plane(of({2, 2}), of({2, 3}), Delta::difference));
     }},
    {"Plane::tile", Errc::invalid_argument,
     [](auto&) {
       drop(Plane(of({2, 2})).tile(-1, 0, 0));
     }},
};

BALLAST_CONTRACTS(Tensors, kRows);

}  // namespace
}  // namespace ballast::contracts
