// SPDX-License-Identifier: Apache-2.0
// What the public headers say of ownership, laziness and threads, and of what a refusal leaves behind.
#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <thread>

#include "ballast/diff.h"
#include "ballast/hash.h"
#include "ballast/io.h"
#include "ballast/load_file.h"
#include "ballast/module.h"
#include "ballast/ops.h"
#include "ballast/quantized.h"
#include "ballast/record.h"
#include "ballast/steps.h"
#include "contracts/rows.h"

namespace ballast::contracts {
namespace {

/// Bytes that count how often they are made.
struct Counted {
  std::shared_ptr<std::atomic<int>> made = std::make_shared<std::atomic<int>>(0);

  [[nodiscard]] Tensor tensor(Shape shape) const {
    const std::uint64_t size = Tensor(DType::f32, shape).size_bytes();
    return Tensor::contiguous_view(DType::f32, std::move(shape),
                                   Storage::deferred(size, [made = made](std::span<std::byte> out) {
                                     ++*made;
                                     std::fill(out.begin(), out.end(), std::byte{0});
                                   }));
  }

  [[nodiscard]] Checkpoint checkpoint() const {
    Checkpoint result;
    result.add("fc.weight", tensor({2, 3}));
    result.add("fc.bias", tensor({2}));
    return result;
  }
};

struct Model {
  Tensor w = Tensor(DType::f32, {2});
};

struct Pair {
  Tensor w = Tensor(DType::f32, {2});
  Tensor v = Tensor(DType::f32, {2});
};

class Contracts : public Scratch {
 protected:
  const Place at{path(".")};
};

TEST(TensorSays, ItTakesSome200Bytes) {
  EXPECT_GE(sizeof(Tensor), 150U);
  EXPECT_LE(sizeof(Tensor), 250U);
}

TEST(TensorSays, ViewsReadNothingAndShareTheStorage) {
  const Counted counted;
  const Tensor x = counted.tensor({2, 3});
  for (const Tensor& view : {x.t(), x.permute({1, 0}), x.reshape({6}), x.index({0}), x[1], x.narrow(1, 0, 2),
                             x.unsqueeze(0), x.unsqueeze(0).squeeze(0), x.expand({4, 2, 3})})
    EXPECT_EQ(view.storage(), x.storage());
  EXPECT_EQ(*counted.made, 0);
}

TEST(TensorSays, ViewsOfAShapeAreShapes) {
  const Tensor x(DType::f32, {2, 3});
  for (const Tensor& view : {x.t(), x.reshape({6}), x[1], x.narrow(1, 0, 2), x.expand({4, 2, 3}),
                             x.contiguous(), x.clone(), x.to(DType::f16), x.to_lazy(DType::f16)}) {
    EXPECT_TRUE(view.defined());
    EXPECT_FALSE(view.has_data());
  }
}

TEST(TensorSays, ContiguousIsItselfAndCloneNever) {
  const Tensor x = of({2, 3});
  EXPECT_TRUE(x.contiguous().same_view(x));
  EXPECT_NE(x.clone().storage(), x.storage());
  EXPECT_NE(x.t().contiguous().storage(), x.storage());
  EXPECT_TRUE(x.to(DType::f32).same_view(x));
}

TEST(TensorSays, LazyCastsComputeWhenTheyAreReadAndCount) {
  const Counted counted;
  const auto count = std::make_shared<CastCount>();
  Tensor half = counted.tensor({4}).to_lazy(DType::f16, count);
  EXPECT_EQ(*counted.made, 0);
  drop(half.data());
  EXPECT_EQ(*counted.made, 1);
  drop(half.data());
  EXPECT_EQ(*counted.made, 1) << "data() keeps what it made";
  EXPECT_EQ(count->rounded, 0U);
}

TEST(TensorSays, ReadTakesNothingIntoMemory) {
  const Tensor wide = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  std::byte out[8];
  wide.t().read(4, out);  // the row-major form of the transposed: 1 3 2 4
  float values[2];
  std::memcpy(values, out, sizeof values);
  EXPECT_EQ(values[0], 3);
  EXPECT_EQ(values[1], 2);
}

TEST(TensorSays, AViewKeepsTheBytesOfATensorThatIsGone) {
  std::atomic<bool> released = false;
  static float memory[2] = {1, 2};
  Tensor view;
  {
    const Tensor x = Tensor::contiguous_view(
        DType::f32, {2}, Storage::borrow(memory, sizeof memory, [&] { released = true; }));
    view = x.narrow(0, 1, 1);
  }
  EXPECT_FALSE(released);
  EXPECT_EQ(view.item(), 2);
  view = Tensor();
  EXPECT_TRUE(released);
}

TEST(TensorSays, AskingWhetherItMayBeWrittenCountsAsAWrite) {
  Tensor x = of({2});
  const std::uint64_t before = x.storage()->version();
  EXPECT_TRUE(x.is_writable());
  EXPECT_NE(x.storage()->version(), before);
}

TEST(StorageSays, FillRunsOnceWithSuccessWhoeverAsks) {
  const Counted counted;
  const Tensor x = counted.tensor({1024});
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { drop(x.data()); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(*counted.made, 1);
}

TEST(StorageSays, WhatThrowsIsTriedAgain) {
  int calls = 0;
  const auto storage = Storage::deferred(1, [&](std::span<std::byte>) {
    if (++calls == 1) throw Error(Errc::io_error, "disk", "once");
  });
  EXPECT_EQ(code_of([&] { drop(storage->data()); }), Errc::io_error);
  EXPECT_FALSE(storage->ready());
  drop(storage->data());
  EXPECT_EQ(calls, 2);
}

TEST(CheckpointSays, CopiesShareBytesAndReadNone) {
  const Counted counted;
  const Checkpoint a = counted.checkpoint();
  const Checkpoint b = a;
  EXPECT_TRUE(b.tensor("fc.weight").same_view(a.tensor("fc.weight")));
  EXPECT_EQ(*counted.made, 0);
}

TEST(CheckpointSays, ATensorOutlivesIt) {
  Tensor kept;
  {
    Checkpoint checkpoint;
    checkpoint.add("w", floats({1, 2}));
    kept = checkpoint.tensor("w");
  }
  EXPECT_EQ(kept.span<float>()[1], 2);
}

TEST(ValueSays, ATextLivesAsLongAsItsValueOrOneItLiesIn) {
  constexpr std::string_view kWords = "some words that are long enough for a heap";
  Value list;
  std::string_view inside;
  {
    const Value text(kWords);
    list = Value::list({text});
    inside = text.as_string();
  }
  EXPECT_EQ(inside, kWords);
  const Value alone = list.element(0);
  list = Value();
  EXPECT_EQ(inside, kWords);
}

TEST(ValueSays, AnyValueOfAFileKeepsItsWholeTree) {
  std::string_view key;
  Value inner;
  {
    const Value tree = open_value(BALLAST_TEST_DATA "/fixtures/import/two_models.pt");
    key = tree.key(0).as_string();
    inner = tree.value(0);
  }
  EXPECT_EQ(inner.kind(), Kind::dict);
  EXPECT_EQ(key, "teacher");
}

TEST(StepsSay, NoneButInMemoryReadsBytes) {
  const Counted counted;
  const Checkpoint in = counted.checkpoint();
  drop(rename(in, {{"fc", "head"}}), strip_common_prefixes(in), reindex(in), filter(in, {"weight"}),
       cast(in, Precision::half), find_root(in), ties(in), root_candidates(in), dequantize(in),
       apply_steps(in, {.rename = {{"fc", "head"}}, .dtype = Precision::bf16}),
       rules::apply(in, {rules::Change{"weight", {rules::Transpose{0, 1}, rules::Cast{DType::f16}}}}));
  const Checkpoint parts[] = {in};
  drop(merge(parts), debug_keys(in, LoadOptions()));
  EXPECT_EQ(*counted.made, 0);
  drop(in_memory(in));
  EXPECT_EQ(*counted.made, 2);
}

TEST(LoadSays, NoByteIsReadUnlessAStepMustCompute) {
  const Counted counted;
  Checkpoint file;
  file.add("w", counted.tensor({2}));
  Model model;
  load(model, file);
  EXPECT_EQ(*counted.made, 0);
  EXPECT_TRUE(model.w.same_view(file.tensor("w")));
}

TEST(LoadSays, ARefusalLeavesTheModelAsItWas) {
  Checkpoint file;
  file.add("w", floats({1, 2}));
  file.add("v", floats({1, 2, 3}));
  Pair model;
  EXPECT_EQ(code_of([&] { load(model, file); }), Errc::load_failed);
  EXPECT_FALSE(model.w.has_data());
}

TEST_F(Contracts, OpenReadsNoTensorAndItsTensorsOutliveIt) {
  const std::string path = at.weights();
  Tensor kept;
  {
    const Checkpoint file = open(path, {.io = Io::read});
    kept = file.tensor("w");
    EXPECT_FALSE(kept.storage()->ready());
  }
  EXPECT_EQ(kept.span<float>()[1], 2);
}

TEST_F(Contracts, ARefusedSaveLeavesNoFile) {
  Checkpoint checkpoint;
  checkpoint.add("w", Tensor(DType::f32, {2}));
  for (const char* name : {"w.safetensors", "w.npz", "w.mpk", "w.bpk"})
    EXPECT_EQ(code_of([&] { save(checkpoint, at(name)); }), Errc::not_representable) << name;
  EXPECT_THAT(names(), testing::IsEmpty());
}

TEST_F(Contracts, AShapeAloneIsWrittenToPyTorchsFiles) {
  Checkpoint checkpoint;
  checkpoint.add("w", Tensor(DType::f32, {2}));
  save(checkpoint, at("w.pt"));
  EXPECT_FALSE(open(at("w.pt")).tensor("w").has_data());
}

TEST_F(Contracts, ARefusedSaveLeavesTheOldFile) {
  const std::string path = at.weights();
  const std::string before = content(path);
  Checkpoint checkpoint;
  checkpoint.add("w", Tensor::contiguous_view(DType::f32, {2}, Storage::deferred(8, [](std::span<std::byte>) {
                                                throw Error(Errc::io_error, "disk", "gone");
                                              })));
  EXPECT_EQ(code_of([&] { save(checkpoint, path, {.overwrite = true}); }), Errc::io_error);
  EXPECT_EQ(content(path), before);
  EXPECT_EQ(names().size(), 1U);
}

TEST_F(Contracts, AnAbandonedStreamLeavesNothing) {
  {
    safetensors::StreamWriter out(at("s"), {{"w", DType::f32, {2}}});
    out.write("w", 0, std::as_bytes(std::span("1234")).first(4));
  }
  EXPECT_THAT(names(), testing::IsEmpty());
}

TEST_F(Contracts, WhatSavePiecesThrowsComesThrough) {
  EXPECT_THROW(save_pieces(at("p"), false, [](const AppendBytes&) { throw 7; }), int);
  EXPECT_THAT(names(), testing::IsEmpty());
}

TEST_F(Contracts, OneFileIsOpenedBySeveralThreads) {
  const std::string path = at.weights();
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { right += open(path).tensor("w").span<float>()[1] == 2; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 4);
}

TEST_F(Contracts, ThrowingFromProgressStopsAndLeavesNothing) {
  Checkpoint checkpoint;
  checkpoint.add("w", of({1000, 1000}));
  EXPECT_THROW(save(checkpoint, at("w.safetensors"), {.progress = [](auto, auto) { throw 7; }}), int);
  EXPECT_THAT(names(), testing::IsEmpty());
  EXPECT_THROW(drop(hash(checkpoint, [](auto, auto) { throw 7; })), int);
  EXPECT_THROW(drop(diff(checkpoint, checkpoint, {.progress = [](auto, auto) { throw 7; }})), int);
}

TEST(OperationsSay, ResultsAreRowMajorAndTheirOwn) {
  const Tensor x = of({2, 3});
  for (Tensor result :
       {x + 1, relu(x.t()), sum(x, 0), softmax(x.t()), matmul(x, x.t()), flip(x, {0}), pad(x, {1, 1})}) {
    EXPECT_TRUE(result.is_contiguous());
    EXPECT_TRUE(result.is_writable());
    EXPECT_NE(result.storage(), x.storage());
  }
}

TEST(OperationsSay, MovementGivesViewsWhereTheyAreEnough) {
  const Tensor x = of({4, 2});
  for (const Tensor& view : {split(x, 2)[1], split(x, Dims{1, 3})[0], chunk(x, 2)[0], unbind(x)[3],
                             flatten(x, 0), unflatten(x, 0, {2, 2})})
    EXPECT_EQ(view.storage(), x.storage());
}

TEST(OperationsSay, SumsDoNotDependOnTheThreads) {
  Generator generator(1);
  const Tensor x = randn({300, 5000}, generator);
  const int before = thread_count();
  std::vector<std::vector<float>> seen;
  for (const int threads : {1, 2, 5}) {
    set_thread_count(threads);
    seen.push_back({sum(x).item<float>(), mean(x).item<float>(), sum(x, 0)[17].item<float>(),
                    norm(x).item<float>(), var(x, 1)[3].item<float>()});
  }
  set_thread_count(before);
  EXPECT_EQ(seen[0], seen[1]);
  EXPECT_EQ(seen[0], seen[2]);
}

TEST(OperationsSay, ARefusalInPlaceChangesNothing) {
  Tensor x = floats({1, 2});
  EXPECT_EQ(code_of([&] { x += of({3}); }), Errc::shape_mismatch);
  EXPECT_EQ(x.span<float>()[0], 1);
}

TEST(OperationsSay, OneTensorIsUsedBySeveralThreads) {
  const Tensor x = Tensor::from<float>({1, 2, 3, 4}, {2, 2});
  std::atomic<int> right = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back([&] { right += matmul(x, x).span<float>()[3] == 22; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(right, 4);
}

TEST(ModelSays, ACopySharesNothing) {
  const Model model{floats({1, 2})};
  const Model other = copy(model);
  EXPECT_NE(other.w.storage(), model.w.storage());
  EXPECT_EQ(parameters(model)[0].tensor.storage(), model.w.storage());
}

TEST(ModelSays, InitLeavesWhatWasLoaded) {
  Pair model;
  model.w = floats({1, 2});
  EXPECT_THAT(init(model), testing::ElementsAre("v"));
  EXPECT_EQ(model.w.span<float>()[1], 2);
}

}  // namespace
}  // namespace ballast::contracts
