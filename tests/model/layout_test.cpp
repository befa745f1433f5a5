// SPDX-License-Identifier: Apache-2.0
// Whose layout a file has is never lost and never guessed wrongly in silence: what is loaded is right, or
// there is an error or a note. Over worlds, marks, shapes, names, formats and formats on the way.
#include <gmock/gmock.h>

#include <algorithm>

#include "ballast/ballast.h"
#include "base/error_of.h"
#include "base/scratch.h"

namespace ballast {
namespace {

using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;
using Layouts = Scratch;

struct Net {
  nn::Linear fc;
  nn::BatchNorm2d norm;
  nn::LayerNorm last;
};

struct Bare {
  nn::Linear fc;
};

struct Case {
  std::string data;   // whose layout the tensors have in truth
  Metadata metadata;  // what the file says
  bool square;
  bool norms;
  bool bias;
};

Tensor counted(const Shape& shape, float first) {
  std::vector<float> values(static_cast<std::size_t>(*try_numel(shape)));
  for (float& value : values) value = first++;
  return Tensor::from(std::span<const float>(values), shape);
}

constexpr std::int64_t kIn = 3;

std::int64_t out_of(const Case& each) {
  return each.square ? kIn : 2;
}

Tensor weight_of(const Case& each) {  // native: [in, out]
  return counted({kIn, out_of(each)}, 1);
}

Checkpoint checkpoint_of(const Case& each) {
  const bool is_torch = each.data == "pytorch";
  Checkpoint out;
  const Tensor weight = weight_of(each);
  out.add("fc.weight", is_torch ? weight.t() : weight);
  if (each.bias) out.add("fc.bias", counted({out_of(each)}, 50));
  if (each.norms) {
    for (const std::string layer : {"norm", "last"}) {
      out.add(layer + (is_torch ? ".weight" : ".gamma"), counted({2}, 60));
      out.add(layer + (is_torch ? ".bias" : ".beta"), counted({2}, 70));
    }
    out.add("norm.running_mean", counted({2}, 80));
    out.add("norm.running_var", counted({2}, 90));
  }
  if (!each.metadata.empty()) out.metadata = each.metadata;
  return out;
}

// Whether anything in the file could tell that a mark is wrong, or that it has Burn's layout without one.
bool shows_its_layout(const Case& each) {
  return each.norms || (each.bias && !each.square);
}

bool says_something_of_layouts(const std::vector<std::string>& notes) {
  return std::any_of(notes.begin(), notes.end(),
                     [](const std::string& note) { return note.find("layout") != std::string::npos; });
}

struct Outcome {
  bool right = false;
  bool said = false;  // an error or a note
};

Outcome load_and_compare(const Case& each, const std::string& path, std::vector<std::string> notes) {
  try {
    Tensor loaded;
    LoadReport report;
    if (each.norms) {
      Net net{.fc = {kIn, out_of(each), {.bias = each.bias}}, .norm = {2}, .last = {2}};
      report = load(net, path);
      loaded = net.fc.weight;
    } else {
      Bare net{.fc = {kIn, out_of(each), {.bias = each.bias}}};
      report = load(net, path);
      loaded = net.fc.weight;
    }
    notes.insert(notes.end(), report.notes.begin(), report.notes.end());
    const Tensor weight = weight_of(each);
    const Tensor found = loaded.contiguous();
    return {std::ranges::equal(found.span<float>(), weight.span<float>()), says_something_of_layouts(notes)};
  } catch (const Error&) {
    return {false, true};
  }
}

const std::vector<Metadata>& marks_of_files() {
  static const std::vector<Metadata> all = {{},
                                            {{"ballast.layout", "pytorch"}},
                                            {{"ballast.layout", "burn"}},
                                            {{"producer", "burn"}},
                                            {{"producer", "another"}},
                                            {{"format", "pt"}}};
  return all;
}

template <class Each>
void for_each_case(const Each& visit) {
  for (const std::string data : {"pytorch", "burn"})
    for (const Metadata& metadata : marks_of_files())
      for (const bool square : {true, false})
        for (const bool norms : {true, false})
          for (const bool bias : {true, false}) visit(Case{data, metadata, square, norms, bias});
}

std::string described(const Case& each, const std::string& source, const std::string& target) {
  std::string text = each.data + (each.square ? " square" : "") + (each.norms ? " norms" : "") +
                     (each.bias ? " bias" : "") + " in " + source + " by " + target;
  for (const auto& [key, value] : each.metadata) text += " " + key + "=" + value;
  return text;
}

TEST_F(Layouts, AreRightOrSaidForEveryMarkShapeNameAndFormatOnTheWay) {
  const std::vector<std::pair<std::string, Format>> sources = {{"safetensors", formats::safetensors},
                                                               {"pt", formats::torch_zip},
                                                               {"npz", formats::npz},
                                                               {"bpk", formats::bpk},
                                                               {"mpk", formats::mpk}};
  const std::vector<std::string> targets = {"", "safetensors", "pt", "npz", "bpk", "mpk", "record"};
  std::size_t count = 0;
  std::size_t right = 0;
  for_each_case([&](const Case& each) {
    for (const auto& [source, format] : sources) {
      const bool is_burns = source == "bpk" || source == "mpk";
      if (source == "npz" && !each.metadata.empty()) continue;  // it has no place for any
      const std::string in = path("in." + source);
      format->save(checkpoint_of(each), in, {.overwrite = true});  // as somebody else writes it
      for (const std::string& target : targets) {
        SCOPED_TRACE(described(each, source, target));
        Outcome outcome;
        if (target.empty()) {
          outcome = load_and_compare(each, in, {});
        } else {
          const std::string out = path("out." + target);
          try {
            const Converted done = convert(in, out, {.overwrite = true});
            outcome = load_and_compare(each, out, done.before.notes);
          } catch (const Error&) {
            outcome = {false, true};
          }
        }
        ++count;
        right += outcome.right ? 1U : 0U;
        const auto own = each.metadata.find("ballast.layout");
        const bool is_marked = own != each.metadata.end();
        const bool is_true = is_marked && own->second == each.data;
        const bool is_usual =
            !is_marked && each.data == (is_burns ? "burn" : "pytorch") &&
            (is_burns || !each.metadata.contains("producer") || each.metadata.at("producer") != "burn");
        // Without a bias a matrix may be an embedding, and fc is a name that tells.
        const bool must_be_right = (is_true || is_usual) && !(target == "npz" && each.data == "burn");
        if (must_be_right) {
          EXPECT_TRUE(outcome.right);
        }
        // A square matrix alone looks the same in every layout: then a mark is all there is.
        if (shows_its_layout(each) || is_true || is_burns) {
          EXPECT_TRUE(outcome.right || outcome.said);
        }
      }
    }
  });
  EXPECT_GT(count, 1000U);
  EXPECT_GT(right, count / 3);
  RecordProperty("cases", static_cast<int>(count));
}

// One of every kind of layer that Burn has, under names of people.
struct Zoo {
  nn::Linear square{3, 3};
  nn::Linear fc{3, 2};
  nn::Linear head{3, 4, {.bias = false}};
  nn::Embedding token_embedding{6, 3};
  nn::Conv1d conv1{2, 4, 3};
  nn::Conv2d conv2{3, 4, {2, 5}};
  nn::ConvTranspose2d up{4, 6, {2, 3}};
  nn::BatchNorm2d batch{5};
  nn::LayerNorm layer{4};
  nn::GroupNorm group{2, 6};
  nn::RMSNorm rms_norm{4};
  nn::PReLU prelu{3};
  nn::LSTM lstm{3, 4};
  nn::GRU gru{3, 4};
  nn::LSTM plain{3, 4, {.bias = false}};
  nn::MultiheadAttention attention{4, 2};
  std::vector<nn::Linear> layers = std::vector<nn::Linear>{{4, 3}, {3, 3}};
  Tensor bare{DType::f32, {2, 2}};
};

Zoo filled() {
  Zoo zoo;
  float next = 0;
  for_each_tensor(zoo, [&](std::string_view, Tensor& tensor, LayerKind) {
    if (tensor.dtype() == DType::i64) {
      tensor = Tensor::from<std::int64_t>({7}, {});
      return;
    }
    const Shape shape = tensor.shape();
    tensor = counted(shape, next);
    next += 100;
  });
  return zoo;
}

void expect_same(const Checkpoint& a, const Checkpoint& b) {
  ASSERT_EQ(a.size(), b.size());
  for (const Entry& entry : a) {
    ASSERT_TRUE(b.contains(entry.name)) << entry.name;
    const Tensor x = entry.tensor().contiguous();
    const Tensor y = b.tensor(entry.name).contiguous();
    EXPECT_EQ(x.shape(), y.shape()) << entry.name;
    if (x.dtype() == DType::f32) {
      EXPECT_TRUE(std::ranges::equal(x.span<float>(), y.span<float>())) << entry.name;
    }
  }
}

TEST(Adapt, GivesWhatAModelOfTheSameLayersIsSavedAs) {
  const Zoo zoo = filled();
  const Checkpoint torch = to_checkpoint(zoo, Adapter::pytorch);
  const Checkpoint burn = to_checkpoint(zoo, Adapter::burn);
  const Checkpoint native = to_checkpoint(zoo, Adapter::none);
  expect_same(adapt(torch, {.to = Adapter::burn}).checkpoint, burn);
  expect_same(adapt(torch, {.to = Adapter::none}).checkpoint, native);
  EXPECT_FALSE(burn.contains("batch.num_batches_tracked"));
  EXPECT_TRUE(native.contains("batch.num_batches_tracked"));
  // The way back: attention stays four Linears unless it is said, and what Burn lacks is lost.
  Checkpoint without;
  for (const Entry& entry : torch)
    if (entry.name != "batch.num_batches_tracked") without.add(entry.name, entry.tensor());
  const AdaptOptions back = {.to = Adapter::pytorch,
                             .layers = {{"^attention$", LayerKind::multihead_attention}}};
  expect_same(adapt(burn, back).checkpoint, without);
  expect_same(adapt(native, back).checkpoint, torch);
  EXPECT_EQ(adapt(burn, back).checkpoint.metadata->at("ballast.layout"), "pytorch");
}

TEST(Adapt, SaysWhereEveryTensorComesFrom) {
  const Adapted adapted = adapt(to_checkpoint(filled(), Adapter::pytorch), {.to = Adapter::burn});
  ASSERT_EQ(adapted.origins.size(), adapted.checkpoint.size());
  const auto origin = [&](std::string_view name) {
    return adapted.origins[*adapted.checkpoint.position(name)];
  };
  EXPECT_EQ(origin("batch.gamma"), "batch.weight");
  EXPECT_EQ(origin("lstm.cell_gate.input_transform.weight"), "lstm.weight_ih_l0");
  EXPECT_EQ(origin("attention.key.weight"), "attention.in_proj_weight");
}

Checkpoint one(const std::string& name, const Shape& shape) {
  Checkpoint out;
  out.add(name, counted(shape, 1));
  return out;
}

TEST(Adapt, RefusesWhatNothingDecidesAndTakesItWhenItIsSaid) {
  const AdaptOptions to_burn = {.to = Adapter::burn};
  for (const auto& [name, shape] :
       std::vector<std::pair<std::string, Shape>>{{"shared.weight", {4, 3}},
                                                  {"layers.0.weight", {3, 3}},
                                                  {"x.weight", {4}},
                                                  {"embed_proj.weight", {4, 3}}}) {
    const Checkpoint in = one(name, shape);
    const Error error = error_of([&] { static_cast<void>(adapt(in, to_burn)); });
    EXPECT_EQ(error.code(), Errc::unsupported) << name;
    EXPECT_THAT(error.what(), HasSubstr(name));
  }
  const Checkpoint in = one("shared.weight", {4, 3});
  const auto shape = [&](LayerKind kind) {
    const AdaptOptions said = {.to = Adapter::burn, .layers = {{"shared", kind}}};
    return Shape(adapt(in, said).checkpoint.at("shared.weight").shape);
  };
  EXPECT_EQ(shape(LayerKind::linear), Shape({3, 4}));
  EXPECT_EQ(shape(LayerKind::embedding), Shape({4, 3}));
  for (const Shape& wanted : {Shape{3, 4}, Shape{4, 3}}) {
    const Checkpoint like = one("shared.weight", wanted);
    EXPECT_EQ(Shape(adapt(in, {.to = Adapter::burn, .like = &like}).checkpoint.at("shared.weight").shape),
              wanted);
  }
  const Checkpoint other = one("shared.weight", {5, 3});
  EXPECT_EQ(error_of([&] {
              static_cast<void>(adapt(
                  in, {.to = Adapter::burn, .layers = {{"shared", LayerKind::linear}}, .like = &other}));
            }).code(),
            Errc::shape_mismatch);
  const Checkpoint kept = adapt(in, {.to = Adapter::burn, .undecided = OnUndecided::keep}).checkpoint;
  EXPECT_EQ(Shape(kept.at("shared.weight").shape), Shape({4, 3}));
}

TEST(Adapt, LeavesGpt2sMatricesAsTheyLieAndRefusesSquareOnesBetweenBothKinds) {
  Checkpoint in;
  in.add("h.0.c_fc.weight", counted({3, 8}, 1));  // [in, out], beside a bias [out]
  in.add("h.0.c_fc.bias", counted({8}, 1));
  in.add("h.0.c_proj.weight", counted({3, 3}, 1));
  in.add("h.0.c_proj.bias", counted({3}, 1));
  const Adapted adapted = adapt(in, {.to = Adapter::burn});
  EXPECT_EQ(Shape(adapted.checkpoint.at("h.0.c_fc.weight").shape), Shape({3, 8}));
  EXPECT_EQ(adapted.checkpoint.tensor("h.0.c_proj.weight").contiguous().span<float>()[1], 2.0F);
  in.add("h.0.linear.weight", counted({8, 3}, 1));  // PyTorch's, among them
  in.add("h.0.linear.bias", counted({8}, 1));
  EXPECT_THAT(error_of([&] { static_cast<void>(adapt(in, {.to = Adapter::burn})); }).what(),
              HasSubstr("c_proj.weight"));
}

TEST(Adapt, RefusesRecurrentLayersBurnDoesNotHave) {
  struct Deep {
    nn::LSTM lstm{3, 4, {.num_layers = 2}};
  } deep;
  for_each_tensor(deep,
                  [](std::string_view, Tensor& tensor, LayerKind) { tensor = counted(tensor.shape(), 1); });
  EXPECT_EQ(error_of([&] { static_cast<void>(adapt(to_checkpoint(deep), {.to = Adapter::burn})); }).code(),
            Errc::unsupported);
}

TEST_F(Layouts, OfAFileThatContradictsItselfMustBeSaid) {
  Checkpoint in;
  in.metadata = Metadata{{"producer", "burn"}};
  in.add("a.weight", counted({3, 2}, 1));
  in.add("a.bias", counted({2}, 1));
  in.add("b.weight", counted({3, 2}, 1));
  in.add("b.bias", counted({3}, 1));
  safetensors::save(in, path("in.safetensors"));
  EXPECT_EQ(error_of([&] { static_cast<void>(convert(path("in.safetensors"), path("out.bpk"))); }).code(),
            Errc::invalid_argument);
  static_cast<void>(convert(path("in.safetensors"), path("out.bpk"), {.adapter = Adapter::burn}));
  EXPECT_EQ(open(path("out.bpk")).metadata->at("ballast.layout"), "burn");
}

}  // namespace
}  // namespace ballast
