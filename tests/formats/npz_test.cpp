// SPDX-License-Identifier: Apache-2.0
// NumPy's files: what numpy writes is read, what we write numpy reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ballast/io.h"
#include "base/bytes.h"
#include "base/scratch.h"
#include "formats/mutations.h"
#include "formats/python.h"

namespace ballast {
namespace {

using testing::ElementsAre;

using Npz = Scratch;

std::vector<std::byte> bytes_of(const Entry& entry) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(entry.bytes));
  entry.tensor().read(0, bytes);
  return bytes;
}

constexpr const char* kArrays = R"(
import sys, numpy as np
codes = ['|b1','|u1','|i1','<u2','<i2','<f2','<u4','<i4','<f4','<u8','<i8','<f8','<c8','<c16','>i4','>f8','>c8','>u2']
out = {}
for i, code in enumerate(codes):
    a = (np.arange(6) * 3 + i).reshape(2, 3).astype(code)
    out[f'c.{i}'] = a
    out[f'f.{i}'] = np.asfortranarray(a)
out['scalar'] = np.float32(2.5)
out['empty'] = np.zeros((0, 4), '<f4')
out['deep'] = np.asfortranarray(np.arange(24, dtype='<i8').reshape(2, 3, 4))
)";

// The row-major little-endian bytes of each array, as numpy has them.
constexpr const char* kBytes = R"(
import os
os.mkdir(sys.argv[1] + '/raw')
for name, a in out.items():
    a = np.asarray(a)
    with open(sys.argv[1] + '/raw/' + name, 'wb') as f:
        f.write(np.ascontiguousarray(a).astype(a.dtype.newbyteorder('<')).tobytes())
)";

TEST_F(Npz, ReadsWhatNumpyWrites) {
  const std::string folder =
      run_python("npz_read", std::string(kArrays) + kBytes +
                                 "np.savez(sys.argv[1] + '/a.npz', **out)\n"
                                 "np.savez_compressed(sys.argv[1] + '/z.npz', **out)\n");
  for (const std::string file : {"/a.npz", "/z.npz"}) {
    for (const Io io : {Io::map, Io::read}) {
      const Checkpoint checkpoint = open(folder + file, {.io = io});
      EXPECT_EQ(checkpoint.format.name(), "npz");
      ASSERT_EQ(checkpoint.size(), 18U * 2 + 3);
      for (const Entry& entry : checkpoint) {
        const std::string want = content(folder + "/raw/" + std::string(entry.name));
        const auto got = bytes_of(entry);
        EXPECT_EQ(as_text(got), want) << file << ' ' << entry.name;
      }
      EXPECT_EQ(Shape(checkpoint.at("deep").shape), Shape({2, 3, 4}));
      EXPECT_EQ(checkpoint.at("scalar").shape.size(), 0U);
      EXPECT_EQ(checkpoint.at("c.14").dtype, DType::i32);
    }
  }
}

TEST_F(Npz, StoredArraysAreViewsOfTheFile) {
  const std::string folder =
      run_python("npz_views", std::string(kArrays) + "np.savez(sys.argv[1] + '/a.npz', **out)\n");
  const Checkpoint checkpoint = open(folder + "/a.npz");
  EXPECT_TRUE(checkpoint.tensor("c.8").storage()->source_span());
  EXPECT_THAT(checkpoint.tensor("f.8").strides(), ElementsAre(1, 2)) << "column-major, not copied";
}

TEST_F(Npz, NumpyReadsWhatIsWritten) {
  const std::string folder =
      run_python("npz_source", std::string(kArrays) + "np.savez(sys.argv[1] + '/a.npz', **out)\n");
  save(open(folder + "/a.npz"), path("b.npz"));
  save(Checkpoint(), path("none.npz"));
  Checkpoint one;
  one.add("x", Tensor::from<float>({1, 2, 3, 4, 5, 6}, {2, 3}).t());
  save(one, path("x.npy"));
  run_python("npz_check", std::string(kArrays) + R"(
got = np.load(sys.argv[2])
assert set(got.files) == set(out), set(got.files) ^ set(out)
for name, a in out.items():
    b = got[name]
    a = np.asarray(a)
    assert b.shape == a.shape and b.dtype == a.dtype.newbyteorder('='), name
    assert (a == b).all(), name
assert np.load(sys.argv[3]).files == []
x = np.load(sys.argv[4])
assert x.dtype == np.float32 and x.tolist() == [[1, 4], [2, 5], [3, 6]]
assert np.load(sys.argv[4], mmap_mode='r').tolist() == x.tolist()
)",
             "'" + path("b.npz") + "' '" + path("none.npz") + "' '" + path("x.npy") + "'");
  EXPECT_TRUE(open(path("none.npz")).empty());
}

TEST_F(Npz, TheHeaderIsNumpysByteForByte) {
  Checkpoint one;
  one.add("x", Tensor::from<float>({1, 2, 3}, {3}));
  save(one, path("ours.npy"));
  const std::string folder = run_python(
      "npy_bytes", "import sys, numpy as np\nnp.save(sys.argv[1] + '/n.npy', np.array([1,2,3], '<f4'))\n");
  EXPECT_EQ(content(path("ours.npy")), content(folder + "/n.npy"));
}

TEST_F(Npz, OneArrayIsCalledLikeItsFile) {
  Checkpoint one;
  one.add("whatever", Tensor::from<std::int64_t>({5}, {1}));
  save(one, path("weights.npy"));
  const Checkpoint read = open(path("weights.npy"));
  EXPECT_EQ(read.format.name(), "npy");
  EXPECT_EQ(read[0].name, "weights");
  one.add("second", Tensor::from<std::int64_t>({5}, {1}));
  EXPECT_EQ(error_of([&] { save(one, path("two.npy")); }).code(), Errc::not_representable);
  Checkpoint narrow;
  narrow.add("b", Tensor::zeros(DType::bf16, {2}));
  EXPECT_EQ(error_of([&] { save(narrow, path("b.npz")); }).code(), Errc::not_representable);
}

TEST_F(Npz, NamesThatCouldNotBeReadBackAreNotWritten) {
  const Tensor x = Tensor::from<float>({1}, {1});
  Checkpoint alike;
  alike.add("Norm", x);
  alike.add("norm", x);
  EXPECT_EQ(error_of([&] { save(alike, path("a.npz")); }).code(), Errc::not_representable);
  Checkpoint upwards;
  upwards.add("../x", x);
  EXPECT_EQ(error_of([&] { save(upwards, path("a.npz")); }).code(), Errc::path_escape);
  EXPECT_TRUE(names().empty());
}

TEST_F(Npz, WhatIsNoTensorIsRefusedInWords) {
  const std::string folder = run_python("npz_odd", R"(
import sys, numpy as np
d = sys.argv[1] + '/'
np.save(d + 'struct.npy', np.zeros(3, [('a', '<f4'), ('b', '<i4')]))
np.save(d + 'object.npy', np.array([{}, 'x'], dtype=object), allow_pickle=True)
np.save(d + 'text.npy', np.array(['ab', 'c']))
np.save(d + 'date.npy', np.array(['2020-01-01'], dtype='M8[D]'))
np.save(d + 'long.npy', np.zeros(2, np.longdouble))
np.save(d + 'void.npy', np.zeros(2, 'V2'))
np.savez(d + 'object.npz', good=np.zeros(2), bad=np.array([{}], dtype=object))
)");
  for (const char* file :
       {"struct.npy", "object.npy", "text.npy", "date.npy", "long.npy", "void.npy", "object.npz"}) {
    EXPECT_EQ(error_of([&] { static_cast<void>(open(folder + "/" + file)); }).code(), Errc::unsupported)
        << file;
  }
}

std::string npy(const std::string& dict, const std::string& data = std::string(24, 'x')) {
  const std::string text = dict + "\n";
  return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(text.size()) + '\0' + text + data;
}

TEST(NpyHeader, IsReadStrictly) {
  const auto dict = [](const std::string& shape) {
    return "{'descr': '<f4', 'fortran_order': False, 'shape': " + shape + ", }";
  };
  EXPECT_EQ(verdict_of(npy(dict("(2, 3)"))), "ok");
  EXPECT_EQ(verdict_of(npy(dict("(2L, 3L)"))), "ok");
  EXPECT_EQ(verdict_of(npy("{\"shape\":(6,),\"descr\":\"<f4\",\"fortran_order\":True}")), "ok");
  EXPECT_EQ(verdict_of(npy(dict("(2, 4)"))), "truncated");
  EXPECT_EQ(verdict_of(npy(dict("(2, 2)"))), "trailing-data");
  EXPECT_EQ(verdict_of(npy(dict("(-2, 3)"))), "bad-npy");
  EXPECT_EQ(verdict_of(npy(dict("(2, x)"))), "bad-npy");
  EXPECT_EQ(verdict_of(npy(dict("(99999999999999999999,)"))), "size-overflow");
  EXPECT_EQ(verdict_of(npy(dict("(4294967296, 4294967296)"))), "size-overflow");
  EXPECT_EQ(verdict_of(npy("{'descr': '<f4', 'fortran_order': False}")), "bad-npy");
  EXPECT_EQ(verdict_of(npy("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (6,)}")),
            "bad-npy");
  EXPECT_EQ(verdict_of(npy("{'descr': '<f4', 'fortran_order': 0, 'shape': (6,)}")), "bad-npy");
  EXPECT_EQ(verdict_of(npy(dict("(6,)") + " import os")), "bad-npy");
  EXPECT_EQ(verdict_of(std::string("\x93NUMPY\4\0\1\0\0\0\n", 13)), "unsupported");
  EXPECT_EQ(verdict_of(std::string("\x93NUMPY\2\0\xFF\xFF\xFF\x7F", 12)), "header-too-large");
  std::string many = "(";
  for (int i = 0; i < 65; ++i) many += "1,";
  EXPECT_EQ(verdict_of(npy(dict(many + ")"))), "too-many");
  const std::string whole = npy(dict("(2, 3)"));
  for_each_cut(whole, [](std::size_t size, const std::string& verdict) { EXPECT_NE(verdict, "ok") << size; });
  EXPECT_GT(try_changed_bytes(whole), 500U);
}

// Under the sanitizers (preset asan) a product that overflows ends the test.
TEST(NpyHeader, EmptyArraysMayHaveDimensionsOfAnySize) {
  const std::vector<std::string> dims = {
      "0", "1", "3", "2147483648", "4611686018427387904", "9223372036854775807"};
  int count = 0;
  for (const std::string& a : dims) {
    for (const std::string& b : dims) {
      for (const std::string& c : dims) {
        if (a != "0" && b != "0" && c != "0") continue;
        for (const char* order : {"True", "False"}) {
          const std::string shape = "(" + a + ", " + b + ", " + c + ")";
          EXPECT_EQ(verdict_of(npy("{'descr': '<f4', 'fortran_order': " + std::string(order) +
                                       ", 'shape': " + shape + "}",
                                   "")),
                    "ok")
              << shape;
          ++count;
        }
      }
    }
  }
  EXPECT_EQ(count, 182);
}

TEST_F(Npz, EveryCutIsRefusedAndEveryChangeSurvived) {
  Checkpoint two;
  two.add("a", Tensor::from<float>({1, 2}, {2}));
  two.add("b", Tensor::from<std::int64_t>({1}, {}));
  save(two, path("t.npz"));
  const std::string whole = content(path("t.npz"));
  for_each_cut(whole, [](std::size_t size, const std::string& verdict) { EXPECT_NE(verdict, "ok") << size; });
  EXPECT_GT(try_changed_bytes(whole), 1000U);
}

TEST_F(Npz, ABombIsRefused) {
  const std::string folder = run_python("npz_bomb", R"(
import sys, numpy as np
np.savez_compressed(sys.argv[1] + '/bomb.npz', x=np.zeros(40_000_000, 'f4'))
)");
  EXPECT_EQ(error_of([&] { static_cast<void>(open(folder + "/bomb.npz")); }).code(), Errc::expansion_limit);
}

}  // namespace
}  // namespace ballast
