// SPDX-License-Identifier: Apache-2.0
#include "ballast/config.h"

#include <fstream>

#include "ballast/load_file.h"
#include "model/model_kit.h"

namespace ballast {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kFixtures = BALLAST_TEST_DATA "/fixtures/torch/files/";

struct NetConfig {
  int n_head;
  std::uint8_t n_layer;
  std::size_t d_model;
  double some_float;
  float some_int;
  bool some_bool;
  std::string some_str;
  std::vector<int> some_list_int;
  std::vector<std::string> some_list_str;
  std::array<double, 3> some_list_float;
  std::map<std::string, std::string> some_dict;
  friend bool operator==(const NetConfig&, const NetConfig&) = default;
};

const NetConfig kExpected{2,
                          3,
                          512,
                          0.1,
                          1,
                          true,
                          "hello",
                          {1, 2, 3},
                          {"hello", "world"},
                          {0.1, 0.2, 0.3},
                          {{"some_key", "some_value"}}};

TEST(Config, FromAPytorchFile) {
  EXPECT_EQ(load_config<NetConfig>(kFixtures + "import_config.pt", "my_config"), kExpected);
  EXPECT_EQ(load_config<NetConfig>(kFixtures + "import_config_legacy.pt", "my_config"), kExpected);
}

TEST(Config, ToJsonAndBack) {
  const std::string path = BALLAST_TEST_OUTPUT "/config.json";
  save_config(kExpected, path, {.overwrite = true});
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(
      text,
      R"({"n_head":2,"n_layer":3,"d_model":512,"some_float":0.1,"some_int":1.0,"some_bool":true,"some_str":"hello","some_list_int":[1,2,3],)"
      R"("some_list_str":["hello","world"],"some_list_float":[0.1,0.2,0.3],"some_dict":{"some_key":"some_value"}})"
      "\n");
  EXPECT_EQ(load_config<NetConfig>(path), kExpected);
  EXPECT_THROW(save_config(kExpected, path), Error);
}

template <class T>
std::string refusal(Errc code, const Value& value) {
  try {
    static_cast<void>(read_config<T>(value));
  } catch (const Error& error) {
    EXPECT_EQ(name(error.code()), name(code)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "nothing was thrown";
  return "";
}

template <class T>
struct One {
  T x;
};

template <class T>
std::string refused(const Value& value) {
  return refusal<One<T>>(Errc::type_mismatch, Value::dict({{"x", value}}));
}

template <class T>
T taken(const Value& value) {
  return read_config<One<T>>(Value::dict({{"x", value}})).x;
}

TEST(Config, NumbersMustFit) {
  EXPECT_EQ(taken<std::int8_t>(-128), -128);
  EXPECT_THAT(refused<std::int8_t>(128),
              HasSubstr(R"(config.x: is 128 of Python type "int", which is not between -128 and 127)"));
  EXPECT_EQ(taken<std::uint64_t>(Value::integer("18446744073709551615")), UINT64_MAX);
  EXPECT_THAT(refused<std::uint64_t>(Value::integer("18446744073709551616")), HasSubstr("between 0"));
  EXPECT_THAT(refused<std::int64_t>(Value::integer("9223372036854775808")), HasSubstr("between"));
  EXPECT_THAT(refused<unsigned>(-1), HasSubstr("between 0 and 4294967295"));
  EXPECT_THAT(refused<int>(2.0), HasSubstr("\"float\""));
  EXPECT_THAT(refused<int>(true), HasSubstr("\"bool\""));
  EXPECT_THAT(refused<bool>(1), HasSubstr("not a bool"));
  EXPECT_EQ(taken<double>(1LL << 53), 9007199254740992.0);
  EXPECT_THAT(refused<double>((1LL << 53) + 1), HasSubstr("exactly"));
  EXPECT_THAT(refused<float>(1e39), HasSubstr("range"));
  EXPECT_THAT(refused<std::string>(1), HasSubstr("not text"));
  EXPECT_THAT(refused<double>(Value()), HasSubstr("NoneType"));
}

template <class T>
void expect_range() {
  const auto text = [](auto value) { return Value::integer(std::to_string(value)); };
  EXPECT_EQ(taken<T>(text(std::numeric_limits<T>::max())), std::numeric_limits<T>::max());
  EXPECT_EQ(taken<T>(text(std::numeric_limits<T>::min())), std::numeric_limits<T>::min());
  const auto beyond = [&](const std::string& digits) { refused<T>(Value::integer(digits)); };
  if constexpr (sizeof(T) < 8) {
    beyond(std::to_string(static_cast<std::int64_t>(std::numeric_limits<T>::max()) + 1));
    beyond(std::to_string(static_cast<std::int64_t>(std::numeric_limits<T>::min()) - 1));
  }
  beyond("99999999999999999999999");
  beyond("-99999999999999999999999");
}

TEST(Config, EveryIntegerTypeHasItsRange) {
  expect_range<std::int8_t>();
  expect_range<std::uint8_t>();
  expect_range<std::int16_t>();
  expect_range<std::uint16_t>();
  expect_range<std::int32_t>();
  expect_range<std::uint32_t>();
  expect_range<std::int64_t>();
  expect_range<std::uint64_t>();
  expect_range<long>();
  expect_range<unsigned long long>();
  EXPECT_EQ(taken<long double>(0.5), 0.5L);
  EXPECT_EQ(taken<float>(0.5), 0.5F);
}

struct Scalars {
  bool bool_;
  std::int8_t int8;
  std::uint8_t uint8;
  std::int16_t int16;
  std::uint16_t uint16;
  std::int32_t int32;
  std::uint32_t uint32;
  std::int64_t int64;
  std::uint64_t uint64;
  float float16;
  float float32;
  double float64;
};

TEST(Config, NumpyScalarsAreNumbers) {
  for (const char* file : {"numpy_scalars.pt", "numpy_scalars_protocol5.pt"}) {
    const auto config = load_config<Scalars>(kFixtures + file);
    EXPECT_TRUE(config.bool_);
    EXPECT_EQ(config.int8, 3);
    EXPECT_EQ(config.uint64, 3U);
    EXPECT_EQ(config.float16, 3.0F);
    EXPECT_EQ(config.float64, 3.0);
  }
}

struct NestedArguments {
  int a;
};

struct Arguments {
  double lr;
  int batch;
  std::string name;
  std::vector<int> layers;
  NestedArguments nested;
};

TEST(Config, ANamespaceIsAStruct) {
  for (const char* file : {"value_namespace.pt", "value_namespace_protocol4.pt"}) {
    const auto arguments = load_config<Arguments>(kFixtures + file, "args");
    EXPECT_EQ(arguments.lr, 0.1);
    EXPECT_EQ(arguments.batch, 32);
    EXPECT_EQ(arguments.name, "run");
    EXPECT_THAT(arguments.layers, ElementsAre(1, 2));
    EXPECT_EQ(arguments.nested.a, 1);
  }
}

TEST(Config, TuplesAreSequences) {
  using Nest = std::tuple<std::tuple<int, std::tuple<int, std::array<int, 1>>>>;
  EXPECT_EQ(std::get<0>(std::get<1>(std::get<0>(load_config<Nest>(kFixtures + "value_tuples.pt", "nest")))),
            2);
  EXPECT_THAT(load_config<std::vector<int>>(kFixtures + "value_tuples.pt", "4"), ElementsAre(1, 2, 3, 4));
}

enum class Activation { relu, gelu, tanh_ = 7 };

struct Inner {
  Activation activation;
  std::optional<int> limit;
};

struct Outer {
  std::vector<Inner> layers;
  std::tuple<int, std::string> pair;
  std::map<std::string, std::vector<double>> table;
};

TEST(Config, NestedStructsEnumsOptionalsTuples) {
  const Value value =
      Value::dict({{"layers", Value::list({Value::dict({{"activation", "gelu"}}),
                                           Value::dict({{"activation", 7}, {"limit", 3}}),
                                           Value::dict({{"activation", "tanh"}, {"limit", Value()}})})},
                   {"pair", Value::tuple({1, "a"})},
                   {"table", Value::dict({{"k", Value::list({1, 2.5})}})},
                   {"not_in_the_struct", 1}});
  const auto config = read_config<Outer>(value);
  ASSERT_EQ(config.layers.size(), 3U);
  EXPECT_EQ(config.layers[0].activation, Activation::gelu);
  EXPECT_FALSE(config.layers[0].limit);
  EXPECT_EQ(config.layers[1].activation, Activation::tanh_);
  EXPECT_EQ(config.layers[1].limit, 3);
  EXPECT_FALSE(config.layers[2].limit);
  EXPECT_EQ(std::get<1>(config.pair), "a");
  EXPECT_THAT(config.table.at("k"), ElementsAre(1, 2.5));
}

struct Usual {
  std::optional<int> heads = 12;
  std::optional<Inner> inner = Inner{Activation::gelu, 5};
};

TEST(Config, AnOptionalThatIsNotThereStaysWhatTheStructSays) {
  const auto absent = read_config<Usual>(Value::dict({}));
  EXPECT_EQ(absent.heads, 12);
  EXPECT_EQ(absent.inner.value().limit, 5);
  const auto none = read_config<Usual>(Value::dict({{"heads", Value()}, {"inner", Value()}}));
  EXPECT_FALSE(none.heads);
  EXPECT_FALSE(none.inner);
  const auto given =
      read_config<Usual>(Value::dict({{"heads", 3}, {"inner", Value::dict({{"activation", "relu"}})}}));
  EXPECT_EQ(given.heads, 3);
  EXPECT_FALSE(given.inner.value().limit) << "what the file holds is read into a new one";
}

TEST(Config, ErrorsNameThePath) {
  const auto layer = [](const Value& activation) {
    return Value::dict({{"layers", Value::list({Value::dict({{"activation", "relu"}}),
                                                Value::dict({{"activation", activation}})})}});
  };
  EXPECT_THAT(refusal<Outer>(Errc::type_mismatch, layer("swish")),
              HasSubstr("config.layers[1].activation: is \"swish\" of Python type \"str\", which is not one "
                        "of Activation's relu, gelu, tanh"));
  EXPECT_THAT(refusal<Outer>(Errc::type_mismatch, layer(2)), HasSubstr("config.layers[1].activation"));
  EXPECT_THAT(refusal<Inner>(Errc::not_found, Value::dict({{"activatoin", "relu"}})),
              HasSubstr("config.activation: is not in the file; did you mean \"activatoin\"?"));
  EXPECT_THAT((refusal<One<std::array<int, 2>>>(Errc::type_mismatch, Value::dict({{"x", Value::list({1})}}))),
              HasSubstr("of 2 elements"));
  EXPECT_THAT(refusal<Inner>(Errc::type_mismatch, Value::list({})), HasSubstr("not a dict"));
}

TEST(Config, AMissingKeyOrFileIsAnError) {
  EXPECT_THROW(static_cast<void>(load_config<NetConfig>(kFixtures + "import_config.pt", "no_config")), Error);
  EXPECT_THROW(static_cast<void>(load_config<NetConfig>(kFixtures + "no_such_file.pt")), Error);
}

TEST(Config, AnErrorOfAFileNamesTheFileAndThePlaceInIt) {
  const auto refused = [](const std::string& file, const std::string& key) {
    try {
      static_cast<void>(load_config<std::vector<int>>(file, key));
    } catch (const Error& error) {
      return error.where();
    }
    return std::string();
  };
  const std::string file = kFixtures + "import_config.pt";
  EXPECT_EQ(refused(file, "my_config"), file + ": my_config");
  EXPECT_EQ(refused(file, ""), file + ": config");
}

TEST(Config, NumbersJsonDoesNotHaveAreRefused) {
  EXPECT_THROW(save_config(One<double>{std::numeric_limits<double>::quiet_NaN()},
                           BALLAST_TEST_OUTPUT "/nan.json", {.overwrite = true}),
               Error);
}

}  // namespace
}  // namespace ballast
