// SPDX-License-Identifier: Apache-2.0
// The bytes that are hashed are written out here once more, by hand; tests/cli/test_proof.py has them in
// Python.
#include "ballast/hash.h"

#include <gmock/gmock.h>

#include "base/bytes.h"
#include "base/scratch.h"
#include "formats/sha256.h"

namespace ballast {
namespace {

using ::testing::Ne;

std::string number(std::uint64_t value) {
  return {reinterpret_cast<const char*>(&value), 8};
}

std::string unhex(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += 2)
    out += static_cast<char>(std::stoi(text.substr(i, 2), nullptr, 16));
  return out;
}

TEST(Hash, IsOfNameDtypeShapeAndBytes) {
  Checkpoint in;
  in.add("fc.weight", Tensor::from<float>({1, 2, 3, 4, 5, 6}, {3, 2}).t());
  in.add("n", Tensor::from<std::int64_t>({-1}, {}));
  const Manifest manifest = hash(in);
  const float values[] = {1, 3, 5, 2, 4, 6};
  const std::string weight = "ballast tensor 1\n" + number(9) + "fc.weight" + number(3) + "F32" + number(2) +
                             number(2) + number(3) + std::string(reinterpret_cast<const char*>(values), 24);
  const std::string n =
      "ballast tensor 1\n" + number(1) + "n" + number(3) + "I64" + number(0) + std::string(8, '\xff');
  ASSERT_EQ(manifest.tensors.size(), 2U);
  const std::string first = testing::sha256(as_bytes(weight));
  const std::string second = testing::sha256(as_bytes(n));
  EXPECT_EQ(manifest.tensors[0].sha256, first);
  EXPECT_EQ(manifest.tensors[1].sha256, second);
  EXPECT_EQ(manifest.root, testing::sha256(as_bytes("ballast tensors 1\n" + unhex(std::min(first, second)) +
                                                    unhex(std::max(first, second)))));
}

TEST(Hash, TheRootDoesNotDependOnTheOrder) {
  const Tensor a = Tensor::from<float>({1, 2}, {2});
  const Tensor b = Tensor::from<float>({3}, {1});
  Checkpoint one;
  one.add("a", a);
  one.add("b", b);
  Checkpoint other;
  other.add("b", b);
  other.add("a", a);
  EXPECT_EQ(hash(one).root, hash(other).root);
}

TEST(Hash, EverythingThatCountsChangesIt) {
  const Tensor values = Tensor::from<float>({1, 2, 3, 4}, {4});
  const auto root = [](const std::string& name, const Tensor& tensor) {
    Checkpoint in;
    in.add(name, tensor);
    return hash(in).root;
  };
  const std::string plain = root("a", values);
  EXPECT_THAT(root("b", values), Ne(plain));
  EXPECT_THAT(root("a", values.reshape({2, 2})), Ne(plain));
  EXPECT_THAT(root("a", values.reshape({4, 1})), Ne(plain));
  EXPECT_THAT(root("a", Tensor::contiguous_view(DType::i32, {4}, values.storage())), Ne(plain));
  EXPECT_THAT(root("a", Tensor::from<float>({1, 2, 3, 5}, {4})), Ne(plain));
}

TEST(Hash, TiedNamesInTheMetadataCount) {
  const Tensor tensor = Tensor::from<float>({1, 2}, {2});
  Checkpoint twice;
  twice.add("wte.weight", tensor);
  twice.add("head.weight", tensor);
  Checkpoint once;
  once.add("wte.weight", tensor);
  once.metadata = Metadata{{"head.weight", "wte.weight"}, {"format", "pt"}};
  EXPECT_EQ(hash(twice).root, hash(once).root);
}

class HashFile : public Scratch {};

TEST_F(HashFile, IsSha256sums) {
  write(path("abc"), "abc");
  EXPECT_EQ(hash_file(path("abc")),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");  // FIPS 180-4
  write(path("empty"), "");
  EXPECT_EQ(hash_file(path("empty")), "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

}  // namespace
}  // namespace ballast
