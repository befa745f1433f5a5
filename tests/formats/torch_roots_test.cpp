// SPDX-License-Identifier: Apache-2.0
// State dicts and optimizers inside the checkpoints of tests/fixtures/torch, against what torch says of them.
#include <gtest/gtest.h>
#include <simdjson.h>

#include "ballast/error.h"
#include "ballast/io.h"
#include "ballast/steps.h"
#include "ballast/torch.h"
#include "base/error_of.h"

namespace ballast {
namespace {

using simdjson::dom::element;
using simdjson::dom::object;

const std::string kFolder = BALLAST_TEST_DATA "/fixtures/torch";

std::string file(const std::string& name) {
  return kFolder + "/files/" + name;
}

TEST(Root, IsFoundWhereTorchUsersPutIt) {
  simdjson::dom::parser parser;
  const object files = parser.load(kFolder + "/expect.json")["files"];
  std::size_t claims = 0;
  for (const auto [name, expected] : files) {
    std::string_view where;
    if (expected["state_dict_root"].get(where) != simdjson::SUCCESS ||
        name == "zip_storage_longer_than_declared.pt")
      continue;
    SCOPED_TRACE(std::string(name));
    ++claims;
    const bool inert = name.starts_with("legacy_trailing");
    const FoundRoot found = find_root(open(file(std::string(name)), {.inert = inert}));
    EXPECT_EQ(found.path, where);
    std::size_t below = 0;  // tensors named below the root, all of them and in order
    for (const element tensor : expected["tensors"].get_array()) {
      std::string_view full = tensor["name"];
      if (!where.empty() && !full.starts_with(std::string(where) + ".")) continue;
      if (!where.empty()) full.remove_prefix(where.size() + 1);
      ASSERT_LT(below, found.checkpoint.size());
      EXPECT_EQ(found.checkpoint[below++].name, full);
    }
    EXPECT_EQ(below, found.checkpoint.size());
  }
  EXPECT_GT(claims, 700U);
}

TEST(Root, SeveralStateDictsAreAQuestionThatListsThem) {
  simdjson::dom::parser parser;
  const object files = parser.load(kFolder + "/expect.json")["files"];
  std::size_t questions = 0;
  for (const auto [name, expected] : files) {
    element paths;
    if (expected["state_dict_roots"].get(paths) != simdjson::SUCCESS) continue;
    SCOPED_TRACE(std::string(name));
    ++questions;
    const Checkpoint checkpoint = open(file(std::string(name)));
    const Error error = error_of([&] { static_cast<void>(find_root(checkpoint)); });
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    for (const std::string_view path : paths.get_array())
      EXPECT_NE(std::string(error.what()).find("\"" + std::string(path) + "\""), std::string::npos)
          << error.what();
  }
  EXPECT_EQ(questions, 8U);
}

TEST(Root, ExplicitPathsReachAnyPart) {
  const Checkpoint checkpoint = open(file("state_under_model.pt"));
  EXPECT_EQ(root(checkpoint, "ema")[0].name, "w");
  EXPECT_EQ(root(checkpoint, "ema").tensor("w").shape(), (Shape{2}));
}

TEST(Root, AWrongPathListsTheCandidates) {
  const Checkpoint checkpoint = open(file("state_under_model.pt"));
  try {
    static_cast<void>(root(checkpoint, "modell"));
    FAIL();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::not_found);
    EXPECT_NE(std::string(error.what()).find("\"model\""), std::string::npos) << error.what();
  }
  EXPECT_EQ(code_of([&] { static_cast<void>(root(checkpoint, "epoch")); }), Errc::type_mismatch);
}

TEST(Root, PartsWithoutAUsualNameAreTakenTogether) {
  const FoundRoot found = find_root(open(file("state_nested.pt")));
  EXPECT_EQ(found.path, "");
  EXPECT_TRUE(found.checkpoint.contains("layer1.weight"));
}

TEST(Optimizer, EntriesAreReachedByParameterName) {
  simdjson::dom::parser parser;
  const object files = parser.load(kFolder + "/expect.json")["files"];
  std::size_t checked = 0;
  for (const auto [name, expected] : files) {
    element names;
    if (expected["parameter_names"].get(names) != simdjson::SUCCESS) continue;
    SCOPED_TRACE(std::string(name));
    const OptimizerState state = optimizer_state(open(file(std::string(name))));
    std::size_t i = 0;
    for (const element parameter : names.get_array()) {
      ASSERT_LT(i, state.parameters.size());
      const bool alone = name.find("_alone") != std::string_view::npos;  // no model in the file
      EXPECT_EQ(state.parameters[i++].name, alone ? std::string_view() : std::string_view(parameter));
    }
    EXPECT_EQ(i, state.parameters.size());
    ++checked;
  }
  EXPECT_GE(checked, 20U);
}

TEST(Optimizer, MomentsAndHyperParametersAreThere) {
  const OptimizerState adam = optimizer_state(open(file("optim_adam.pt")));
  EXPECT_EQ(adam.family, "adam");
  EXPECT_EQ(adam.path, "optimizer");
  EXPECT_EQ(adam.at("bn.bias").value("exp_avg").as_tensor().shape(), Shape({3}));
  EXPECT_TRUE(adam.at("unused.weight").values.empty());
  ASSERT_EQ(adam.groups.size(), 1U);
  EXPECT_EQ(adam.groups[0][0].first, "lr");
  EXPECT_EQ(adam.groups[0][0].second.as_float(), 1e-3);
  EXPECT_EQ(optimizer_state(open(file("optim_sgd_momentum.pt"))).family, "sgd");
  EXPECT_EQ(optimizer_state(open(file("optim_rmsprop.pt"))).family, "rmsprop");
  EXPECT_EQ(optimizer_state(open(file("optim_adagrad.pt"))).family, "adagrad");
  EXPECT_EQ(code_of([&] { static_cast<void>(adam.at("fc.weigth")); }), Errc::not_found);
}

TEST(Optimizer, OneThatDoesNotFitTheModelIsRefused) {
  const Checkpoint checkpoint = open(file("optim_adam.pt"));
  Checkpoint swapped = checkpoint;
  swapped.tree = Value::dict({{"optimizer", checkpoint.value("optimizer")}});
  EXPECT_EQ(code_of([&] { static_cast<void>(optimizer_state(open(file("state_plain_dict.pt")))); }),
            Errc::not_found);
}

}  // namespace
}  // namespace ballast
