// SPDX-License-Identifier: Apache-2.0
// Members that are empty before the load: every wrapper, with every kind of layer in it, of every format.
// What comes out is compared with the same model whose member was there from the start.
#include "ballast/load_file.h"
#include "ballast/module.h"
#include "base/scratch.h"
#include "model/model_kit.h"

namespace ballast {
namespace {

using namespace testing_kit;  // NOLINT(google-build-using-namespace)
using ::testing::AllOf;
using ::testing::FloatNear;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pointwise;

template <class T>
struct InOptional {
  nn::Linear fc{2, 2};
  std::optional<T> part;

  void put(T value) { part.emplace(std::move(value)); }

  const T* get() const { return part ? &*part : nullptr; }
};

template <class T>
struct InUnique {
  nn::Linear fc{2, 2};
  std::unique_ptr<T> part;

  void put(T value) { part = std::make_unique<T>(std::move(value)); }

  const T* get() const { return part.get(); }
};

template <class T>
struct InShared {
  std::shared_ptr<T> part;
  nn::Linear fc{2, 2};

  void put(T value) { part = std::make_shared<T>(std::move(value)); }

  const T* get() const { return part.get(); }
};

template <class T>
struct InVector {  // the first stays empty
  nn::Linear fc{2, 2};
  std::vector<std::optional<T>> part = std::vector<std::optional<T>>(2);

  void put(T value) { part[1].emplace(std::move(value)); }

  const T* get() const { return part[1] && !part[0] ? &*part[1] : nullptr; }
};

template <class T>
struct Between {
  std::unique_ptr<T> inner;
};

template <class T>
struct InNested {
  nn::Linear fc{2, 2};
  std::optional<std::unique_ptr<Between<T>>> part;

  void put(T value) {
    part.emplace(std::make_unique<Between<T>>());
    (*part)->inner = std::make_unique<T>(std::move(value));
  }

  const T* get() const { return part && *part ? (*part)->inner.get() : nullptr; }
};

template <class T>
struct InVariant {
  nn::Linear fc{2, 2};
  std::variant<std::monostate, T> part;

  void put(T value) { part = std::move(value); }

  const T* get() const { return std::get_if<T>(&part); }
};

template <class T>
struct InMap {
  nn::Linear fc{2, 2};
  std::map<std::string, std::optional<T>> part = {{"a", std::nullopt}, {"b", std::nullopt}};

  void put(T value) { part["b"].emplace(std::move(value)); }

  const T* get() const { return part.at("b") && !part.at("a") ? &*part.at("b") : nullptr; }
};

template <class T>
struct InFlat {  // its keys lie beside those of fc
  nn::Linear fc{2, 2};
  Flat<std::optional<T>> part{};

  void put(T value) { part->emplace(std::move(value)); }

  const T* get() const { return *part ? &**part : nullptr; }
};

struct Known {  // shapes by default
  nn::Linear a{3, 2};
  Tensor scale{DType::f32, {4}};
};

using Values = std::map<std::string, std::vector<float>>;

template <class Model>
Values values_of(const Model& model) {
  Values values;
  for_each_tensor(model, [&](std::string_view path, const Tensor& tensor, LayerKind) {
    values.emplace(std::string(path) + to_string(tensor.shape()), floats(tensor));
  });
  return values;
}

// A model's tensors, as several sources give them.
struct Sources {
  std::vector<Checkpoint> files;
  Values values;
};

class EmptyMember : public Scratch {
 protected:
  template <class Model>
  static Sources in_memory(const Model& model) {
    return {{to_checkpoint(model), to_checkpoint(model, Adapter::none)}, values_of(model)};
  }

  template <class Model>
  Sources in_every_format(const Model& model) {
    Sources sources{{}, values_of(model)};
    for (const Format format : writable_formats()) {
      if (format == formats::npy) continue;  // one array
      const std::string file = path("model" + std::to_string(++written_) + "." + std::string(format.name()));
      save(model, file, {.format = format});
      sources.files.push_back(open(file));
    }
    return sources;
  }

  template <class Model>
  void stays_empty(const Sources& sources) {
    for (const Checkpoint& file : sources.files) {
      SCOPED_TRACE(file.path);
      Model model;
      const LoadReport report = load(model, file, {.unused = OnUnused::error});
      EXPECT_EQ(model.get(), nullptr);
      EXPECT_EQ(report.applied.size(), 2U);
      ++cases_;
    }
  }

  template <class Model>
  void is_filled(const Sources& sources) {
    for (const Checkpoint& file : sources.files) {
      SCOPED_TRACE(file.path);
      Model model;
      load(model, file, {.unused = OnUnused::error});
      ASSERT_NE(model.get(), nullptr);
      EXPECT_EQ(values_of(model), sources.values);
      ++cases_;
    }
  }

  template <template <class> class Wrapper, class T>
  void present_and_absent(const T& layer) {
    SCOPED_TRACE(std::string(detail::type_name<Wrapper<T>>()) + " of " + std::string(detail::type_name<T>()));
    Wrapper<T> held;
    init(held);  // fc alone
    stays_empty<Wrapper<T>>(in_memory(held));
    held.put(layer);
    init(held);
    is_filled<Wrapper<T>>(in_memory(held));
  }

  template <class Model>
  void present_and_absent_in(const Sources& with, const Sources& without) {
    SCOPED_TRACE(detail::type_name<Model>());
    is_filled<Model>(with);
    stays_empty<Model>(without);
  }

  template <class T>
  void in_every_wrapper(const T& layer, const Sources& without) {
    present_and_absent<InOptional>(layer);
    present_and_absent<InUnique>(layer);
    present_and_absent<InShared>(layer);
    present_and_absent<InVector>(layer);
    present_and_absent<InNested>(layer);
    present_and_absent<InVariant>(layer);
    present_and_absent<InMap>(layer);
    present_and_absent<InFlat>(layer);
    // Writing is what takes time: where the keys are the same, the files are.
    InOptional<T> held;
    held.put(layer);
    init(held);
    const Sources with = in_every_format(held);
    present_and_absent_in<InOptional<T>>(with, without);
    present_and_absent_in<InUnique<T>>(with, without);
    present_and_absent_in<InShared<T>>(with, without);
    present_and_absent_in<InVariant<T>>(with, without);
  }

  std::size_t written_ = 0;
  std::size_t cases_ = 0;
};

TEST_F(EmptyMember, IsFilledWhenTheFileHasItAndStaysEmptyWhenNot) {
  InOptional<nn::Linear> alone;
  init(alone);
  const Sources without = in_every_format(alone);
  in_every_wrapper(nn::Linear{3, 5}, without);
  in_every_wrapper(nn::Linear{4, 4}, without);  // the transpose would fit too
  in_every_wrapper(nn::Linear{1, 1, {.bias = false}}, without);
  in_every_wrapper(nn::Linear{7, 2, {.bias = false}}, without);
  in_every_wrapper(nn::Embedding{7, 3}, without);
  in_every_wrapper(nn::Bilinear{2, 3, 4}, without);
  in_every_wrapper(nn::Bilinear{2, 2, 2, {.bias = false}}, without);
  in_every_wrapper(nn::PReLU{1}, without);
  in_every_wrapper(nn::PReLU{6}, without);
  in_every_wrapper(Known{}, without);
  EXPECT_EQ(cases_, 10U * 2U * (8U * 2U + 4U * (writable_formats().size() - 1)));
}

TEST_F(EmptyMember, WhatTheFileMadeComputesLikeWhatWasThere) {
  for (const bool bias : {true, false}) {
    InOptional<nn::Linear> held;
    held.put({3, 5, {.bias = bias}});
    init(held);
    Sources sources = in_every_format(held);
    sources.files.push_back(to_checkpoint(held, Adapter::none));
    for (const Checkpoint& file : sources.files) {
      InOptional<nn::Linear> model;
      load(model, file);
      ASSERT_TRUE(model.part);
      EXPECT_EQ(model.part->in_features, 3);
      EXPECT_EQ(model.part->out_features, 5);
      EXPECT_EQ(model.part->options.bias, bias);
      EXPECT_EQ(model.part->place.path, "part");
      const Tensor x = counting({2, 3});
      EXPECT_EQ(floats(model.part->weight.contiguous()), floats(held.part->weight.contiguous()));
      // Weights that lie otherwise are summed in another order.
      EXPECT_THAT(floats(model.part->forward(x)), Pointwise(FloatNear(1e-5F), floats(held.part->forward(x))));
    }
  }
}

// The file holds the member's tensors but the last; what is left makes no such layer, or one without a bias.
template <class T>
void without_its_first(const std::vector<std::pair<std::string, Shape>>& rest) {
  std::vector<std::pair<std::string, Shape>> tensors = {{"fc.weight", {2, 2}}, {"fc.bias", {2}}};
  tensors.insert(tensors.end(), rest.begin(), rest.end());
  InOptional<T> optional;
  InUnique<T> unique;
  for (const LoadReport& report :
       {failed_load(optional, checkpoint(tensors)), failed_load(unique, checkpoint(tensors))}) {
    ASSERT_EQ(report.mismatched.size(), 1U);
    EXPECT_EQ(report.mismatched[0].target, "part");
    EXPECT_THAT(report.mismatched[0].reason, HasSubstr("is not in the file"));
  }
  EXPECT_EQ(optional.get(), nullptr);
  EXPECT_EQ(unique.get(), nullptr);
  EXPECT_FALSE(optional.fc.weight.has_data());
}

TEST_F(EmptyMember, PartlyInTheFileIsAnError) {
  without_its_first<nn::Linear>({{"part.bias", {5}}});
  without_its_first<nn::Bilinear>({{"part.bias", {5}}});
  without_its_first<Known>({{"part.a.bias", {2}}, {"part.scale", {4}}});
  without_its_first<Known>({{"part.scale", {4}}});
  without_its_first<nn::Embedding>({{"part.wieght", {5, 2}}});
}

TEST_F(EmptyMember, ShapesThatMakeNoSuchLayerAreAnError) {
  const auto refused = [](const std::vector<std::pair<std::string, Shape>>& part, const std::string& why) {
    std::vector<std::pair<std::string, Shape>> tensors = {{"fc.weight", {2, 2}}, {"fc.bias", {2}}};
    tensors.insert(tensors.end(), part.begin(), part.end());
    InOptional<nn::Linear> model;
    EXPECT_THAT(failed_load(model, checkpoint(tensors)).text(), HasSubstr(why));
    EXPECT_FALSE(model.part);
  };
  refused({{"part.weight", {5, 3, 1}}, {"part.bias", {5}}}, "\"part.weight\" is F32 [5, 3, 1] in the file");
  refused({{"part.weight", {5, 3, 1}}}, "\"part.weight\" is F32 [5, 3, 1] in the file");
  refused({{"part.weight", {5, 3}}, {"part.bias", {3}}}, "\"part.bias\" is F32 [3] in the file");
  refused({{"part.weight", {5, 3}}, {"part.bias", {5}}, {"part.lora_A", {2, 2}}}, "\"part.lora_A\"");
}

template <class T>
void must_be_put_there(const std::vector<std::pair<std::string, Shape>>& part) {
  std::vector<std::pair<std::string, Shape>> tensors = {{"fc.weight", {2, 2}}, {"fc.bias", {2}}};
  InOptional<T> optional;
  InUnique<T> unique;
  EXPECT_TRUE(load(optional, checkpoint(tensors)).complete());
  EXPECT_TRUE(load(unique, checkpoint(tensors)).complete());
  tensors.insert(tensors.end(), part.begin(), part.end());
  const auto told = AllOf(HasSubstr("part"), HasSubstr("put it there before the load"));
  EXPECT_THAT(failed_load(optional, checkpoint(tensors)).text(), told);
  EXPECT_THAT(failed_load(unique, checkpoint(tensors)).text(), told);
  const LoadOptions without = {.exclude = {R"(^part\.)"}};
  EXPECT_TRUE(load(optional, checkpoint(tensors), without).complete());
  EXPECT_TRUE(load(unique, checkpoint(tensors), without).complete());
  EXPECT_FALSE(optional.part || unique.part);
}

// Strides, paddings, groups, epsilons and heads are in no file.
TEST_F(EmptyMember, WhatShapesDoNotDescribeMustBePutThere) {
  must_be_put_there<nn::Conv2d>({{"part.weight", {2, 2, 3, 3}}, {"part.bias", {2}}});
  must_be_put_there<nn::LayerNorm>({{"part.weight", {2}}, {"part.bias", {2}}});
  must_be_put_there<nn::MultiheadAttention>({{"part.in_proj_weight", {6, 2}}});
  must_be_put_there<nn::Sequential<nn::Linear, nn::ReLU>>({{"part.0.weight", {2, 2}}});
}

TEST_F(EmptyMember, AnEmptyVectorExplainsNothing) {
  struct Model {
    std::optional<std::vector<nn::Linear>> layers;
  } model;

  EXPECT_THAT(failed_load(model, checkpoint({{"layers.0.weight", {2, 2}}})).text(),
              HasSubstr("\"layers.0.weight\" is in the file, and a new one has no such tensor"));
  EXPECT_FALSE(model.layers);
}

TEST_F(EmptyMember, ExcludedKeysAreNotThere) {
  const auto file =
      checkpoint({{"fc.weight", {2, 2}}, {"fc.bias", {2}}, {"part.weight", {5, 3}}, {"part.bias", {5}}});
  InOptional<nn::Linear> model;
  EXPECT_TRUE(load(model, file, {.exclude = {"^part"}}).complete());
  EXPECT_FALSE(model.part);
  // Half of it is no layer without a bias.
  EXPECT_THAT(failed_load(model, file, {.exclude = {R"(^part\.bias$)"}}).text(), HasSubstr("kept out"));
  EXPECT_TRUE(load(model, file, {.variants = Variants::held}).complete());
  EXPECT_FALSE(model.part);
}

struct List {
  Tensor weight{DType::f32, {2}};
  std::unique_ptr<List> next;
};

TEST_F(EmptyMember, AListIsAsLongAsTheFileSays) {
  for (std::size_t length = 1; length <= 30; ++length) {
    std::vector<std::pair<std::string, Shape>> tensors;
    std::string prefix;
    for (std::size_t i = 0; i < length; ++i) {
      tensors.push_back({prefix + "weight", {2}});
      prefix += "next.";
    }
    List list;
    load(list, checkpoint(tensors), {.unused = OnUnused::error});
    std::size_t found = 0;
    for (const List* at = &list; at != nullptr; at = at->next.get()) {
      EXPECT_EQ(floats(at->weight), (std::vector<float>{1 + 2.0F * static_cast<float>(found),
                                                        2 + 2.0F * static_cast<float>(found)}));
      ++found;
    }
    EXPECT_EQ(found, length);
  }
}

// safetensors' save_model() writes a tied tensor once and its other name into the metadata.
TEST_F(EmptyMember, ATiedNameInTheMetadataIsThere) {
  struct Model {
    nn::Embedding embedding{4, 2};
    std::optional<nn::Linear> head;
    std::unique_ptr<nn::Linear> second;
  } model;

  Checkpoint file = checkpoint({{"embedding.weight", {4, 2}}});
  file.metadata = Metadata{{"head.weight", "embedding.weight"}, {"second.weight", "embedding.weight"}};
  EXPECT_TRUE(load(model, file).complete());
  ASSERT_TRUE(model.head && model.second);
  EXPECT_EQ(floats(model.head->weight.t()), floats(model.embedding.weight));
  EXPECT_EQ(floats(model.second->weight.t()), floats(model.embedding.weight));
  EXPECT_FALSE(model.head->options.bias);
}

TEST_F(EmptyMember, VectorsWithGapsKeepTheirPositions) {
  struct Model {
    std::vector<std::optional<nn::Linear>> layers = std::vector<std::optional<nn::Linear>>(4);
  };

  for (unsigned there = 1; there < 16; ++there) {  // every set of positions
    std::vector<std::pair<std::string, Shape>> tensors;
    for (unsigned i = 0; i < 4; ++i)
      if ((there >> i & 1U) != 0) tensors.push_back({"layers." + std::to_string(i) + ".weight", {3, 2}});
    Model model;
    load(model, checkpoint(tensors), {.unused = OnUnused::error});
    for (unsigned i = 0; i < 4; ++i) EXPECT_EQ(model.layers[i].has_value(), (there >> i & 1U) != 0);
  }
}

}  // namespace
}  // namespace ballast
