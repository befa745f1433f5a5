// SPDX-License-Identifier: Apache-2.0
// What stays wide when a model is loaded or saved in 16 bits, and patterns that match nothing of it.
#include <gmock/gmock.h>

#include "ballast/load.h"
#include "ballast/module.h"
#include "ballast/nn.h"
#include "base/error_of.h"

namespace ballast {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

struct Net {
  std::vector<nn::Linear> layers{{2, 2}, {2, 2}};
  nn::LayerNorm norm{2};
  nn::BatchNorm2d batch{2};
};

Net filled() {
  Net net;
  init(net);
  return net;
}

// The dtypes of both layers' weights, of the norm and of the batch norm.
std::vector<DType> dtypes(const Net& net) {
  return {net.layers[0].weight.dtype(), net.layers[1].weight.dtype(), net.norm.gamma.dtype(),
          net.batch.gamma.dtype()};
}

struct Case {
  ModelCast cast;
  std::vector<DType> wanted;
};

std::vector<Case> cases() {
  constexpr DType f16 = DType::f16;
  constexpr DType f32 = DType::f32;
  return {
      {{.dtype = DType::f16}, {f16, f16, f16, f32}},
      {{.dtype = Precision::half, .keep_statistics = false}, {f16, f16, f16, f16}},
      {{.dtype = DType::f16, .keep_dtype = {R"(^layers\.1\.)"}}, {f16, f32, f16, f32}},
      {{.dtype = DType::f16, .keep_layers = {LayerKind::linear}}, {f32, f32, f16, f32}},
      {{.dtype = DType::f16, .keep_dtype = {"0.*weight"}, .keep_layers = {LayerKind::layer_norm}},
       {f32, f16, f32, f32}},
      {{.dtype = DType::f64, .keep_dtype = {"."}},
       {DType::f64, DType::f64, DType::f64, DType::f64}},  // wider
  };
}

TEST(KeepDtype, LoadingAndSavingAModelLeaveTheSameTensorsWide) {
  const Net source = filled();
  for (const auto& [cast, wanted] : cases()) {
    Net loaded;
    const LoadReport report = load(loaded, to_checkpoint(source),
                                   {.dtype = cast.dtype,
                                    .keep_dtype = cast.keep_dtype,
                                    .keep_statistics = cast.keep_statistics,
                                    .keep_layers = cast.keep_layers});
    EXPECT_EQ(dtypes(loaded), wanted);
    EXPECT_THAT(report.notes, IsEmpty());
    Net saved;
    load(saved, to_checkpoint(source, Adapter::pytorch, cast));
    EXPECT_EQ(dtypes(saved), wanted);
  }
}

TEST(KeepDtype, SavingAModelTakesTheNamesOfTheFileToo) {
  const auto dtype_of_norm = [](std::vector<std::string> keep) {
    return to_checkpoint(filled(), Adapter::pytorch, {.dtype = DType::f16, .keep_dtype = std::move(keep)})
        .tensor("norm.weight")
        .dtype();
  };
  EXPECT_EQ(dtype_of_norm({"norm.weight"}), DType::f32);  // gamma in the model, weight in the file
  EXPECT_EQ(dtype_of_norm({"norm.gamma"}), DType::f32);
  EXPECT_EQ(dtype_of_norm({"layers"}), DType::f16);
}

TEST(KeepDtype, SavingAModelRefusesAPatternThatMatchesNothing) {
  const auto save = [](Precision dtype) {
    static_cast<void>(
        to_checkpoint(filled(), Adapter::pytorch, {.dtype = dtype, .keep_dtype = {".", "zzz"}}));
  };
  EXPECT_EQ(code_of([&] { save(DType::f16); }), Errc::not_found);
  save(Precision::keep);  // nothing is cast
}

TEST(KeepDtype, PatternsThatMatchNothingOfTheModelAreNoted) {
  const Checkpoint file = to_checkpoint(filled());
  const auto notes = [&](const LoadOptions& options) {
    Net net;
    return load(net, file, options).notes;
  };
  EXPECT_THAT(notes({.dtype = DType::f16, .keep_dtype = {"zzz"}}),
              Contains(HasSubstr("keep_dtype pattern \"zzz\"")));
  EXPECT_THAT(notes({.reindex = {"zzz"}}), Contains(HasSubstr("reindex pattern \"zzz\"")));
  EXPECT_THAT(notes({.keep_positions = {"zzz"}}), Contains(HasSubstr("keep_positions pattern \"zzz\"")));
  EXPECT_THAT(notes({.reindex = {"layers"}, .keep_positions = {"layers"}}), IsEmpty());
  EXPECT_THAT(notes({.keep_dtype = {"zzz"}}), IsEmpty());  // nothing is cast
}

}  // namespace
}  // namespace ballast
