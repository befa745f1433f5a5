// SPDX-License-Identifier: Apache-2.0
// A file with several state dicts: the one that fits the model is taken, else the error lists them. Every
// pair of names people use, and every way two of them can fit.
#include "ballast/io.h"
#include "ballast/steps.h"
#include "ballast/torch.h"
#include "base/scratch.h"
#include "model/model_kit.h"

namespace ballast {
namespace {

using namespace testing_kit;  // NOLINT(google-build-using-namespace)
using ::testing::AllOf;
using ::testing::HasSubstr;

struct Model {
  nn::Linear fc{2, 3};
  Tensor scale{DType::f32, {4}};
};

enum class Has : std::uint8_t { all, most, other_shape, other_names };

// `first` is in every value, to tell the state dicts apart.
Value state_dict(Has has, float first) {
  const Shape weight = has == Has::other_shape ? Shape{5, 2} : Shape{3, 2};
  const std::string name = has == Has::other_names ? "discriminate" : "fc";
  std::vector<std::pair<Value, Value>> pairs = {{name + ".weight", counting(weight, first)}};
  if (has != Has::most) pairs.push_back({name + ".bias", counting({weight[0]}, first)});
  if (has != Has::other_names && has != Has::other_shape) pairs.push_back({"scale", counting({4}, first)});
  return Value::dict(pairs);
}

class RootFit : public Scratch {
 protected:
  Checkpoint file_of(const std::vector<std::pair<Value, Value>>& pairs) {
    const std::string file = path(std::to_string(++files_) + ".pt");
    torch::save(Value::dict(pairs), file);
    return open(file);
  }

 private:
  int files_ = 0;
};

const std::vector<std::pair<std::string, std::string>> kPairs = {
    {"state_dict", "state_dict_ema"}, {"model", "ema"},         {"model", "model_ema"},
    {"params", "params_ema"},         {"net_g", "net_d"},       {"generator", "discriminator"},
    {"state_dict", "teacher"},        {"weights", "criterion"}, {"student", "teacher"}};

TEST_F(RootFit, TheOneThatFitsIsTakenAndTwoOrNoneAreListed) {
  const std::vector<Has> all = {Has::all, Has::most, Has::other_shape, Has::other_names};
  std::size_t taken = 0;
  std::size_t asked = 0;
  for (const auto& [a, b] : kPairs) {
    for (const Has first : all) {
      for (const Has second : all) {
        const Checkpoint file = file_of({{"epoch", 3},
                                         {a, state_dict(first, 100)},
                                         {"optimizer", Value::dict({{"lr", 0.1}})},
                                         {b, state_dict(second, 200)}});
        SCOPED_TRACE(a + " " + std::to_string(static_cast<int>(first)) + " " + b + " " +
                     std::to_string(static_cast<int>(second)));
        Model model;
        if ((first == Has::all) != (second == Has::all)) {
          const LoadReport report = load(model, file);
          EXPECT_TRUE(report.complete());
          EXPECT_EQ(floats(model.scale)[0], first == Has::all ? 100 : 200);
          EXPECT_THAT(report.text(), HasSubstr(first == Has::all ? "\"" + a + "\"" : "\"" + b + "\""));
          ++taken;
          continue;
        }
        const Error error = error_of([&] { load(model, file, {.missing = OnMissing::error}); });
        EXPECT_THAT(error.what(), AllOf(HasSubstr("\"" + a + "\""), HasSubstr("\"" + b + "\"")));
        EXPECT_FALSE(model.scale.has_data());
        ++asked;
        EXPECT_TRUE(first != Has::all || load(model, file, {.root = b}).complete());
      }
    }
  }
  EXPECT_EQ(taken, 6 * kPairs.size());
  EXPECT_EQ(asked, 10 * kPairs.size());
}

TEST_F(RootFit, APartialLoadDoesNotGuessBetweenTwo) {
  Model model;
  const Checkpoint file = file_of({{"model", state_dict(Has::most, 1)}, {"ema", state_dict(Has::most, 2)}});
  EXPECT_EQ(code_of([&] { load(model, file, {.missing = OnMissing::keep}); }), Errc::invalid_argument);
  // Only one of them has anything the model knows.
  const Checkpoint gan =
      file_of({{"generator", state_dict(Has::most, 1)}, {"discriminator", state_dict(Has::other_names, 2)}});
  EXPECT_EQ(load(model, gan, {.missing = OnMissing::keep}).applied.size(), 2U);
}

TEST_F(RootFit, OneModelUnderTwoNamesIsNoQuestion) {
  const Value weights = state_dict(Has::all, 1);
  Model model;
  EXPECT_TRUE(load(model, file_of({{"model", weights}, {"best", weights}})).complete());
}

TEST_F(RootFit, AModelOfThePartsTakesThemAll) {
  struct Gan {
    Model generator;
    std::unique_ptr<nn::Linear> discriminate;
    std::optional<Model> ema;
  } model;

  load(model, file_of({{"generator", state_dict(Has::all, 1)}, {"ema", state_dict(Has::all, 2)}}),
       {.unused = OnUnused::error});
  ASSERT_TRUE(model.ema);
  EXPECT_EQ(floats(model.generator.scale)[0], 1);
  EXPECT_EQ(floats(model.ema->scale)[0], 2);
}

TEST_F(RootFit, ThePrefixAndTheRulesCountForTheFit) {
  Model model;
  const Value wrapped = Value::dict({{"module.net.weight", counting({3, 2})},
                                     {"module.net.bias", counting({3})},
                                     {"module.scale", counting({4})}});
  const Checkpoint file = file_of({{"state_dict", wrapped}, {"other", state_dict(Has::other_names, 1)}});
  EXPECT_TRUE(load(model, file, {.rename = {{R"(\bnet\.)", "fc."}}}).complete());
}

// Names that only begin like an optimizer's, and parts beside other tensors, are parts of the model.
TEST_F(RootFit, NothingIsLeftOutOfAWholeModel) {
  struct Optics {
    Model encoder, optics;
    Tensor logit_scale{DType::f32, {}};
  } model;

  load(model,
       file_of({{"encoder", state_dict(Has::all, 1)},
                {"optics", state_dict(Has::all, 2)},
                {"logit_scale", counting({})}}),
       {.unused = OnUnused::error});
  EXPECT_EQ(floats(model.optics.scale)[0], 2);
  for (const Checkpoint& whole :
       {file_of({{"encoder", state_dict(Has::all, 1)}, {"optics", state_dict(Has::all, 2)}}),
        file_of({{"encoder", state_dict(Has::all, 1)}, {"logit_scale", counting({})}})})
    EXPECT_EQ(find_root(whole).checkpoint.size(), whole.size());
  for (const std::string training :
       {"optimizer", "opt", "opt_state", "optG", "lr_scheduler", "scaler", "rng_state"})
    EXPECT_EQ(
        find_root(file_of({{"encoder", state_dict(Has::all, 1)}, {training, state_dict(Has::all, 2)}})).path,
        "encoder");
}

}  // namespace
}  // namespace ballast
