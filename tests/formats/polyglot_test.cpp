// SPDX-License-Identifier: Apache-2.0
// Files of two kinds, made byte by byte; Python says that both readers take them.
#include "formats/polyglot.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "ballast/io.h"
#include "ballast/scan.h"
#include "base/file.h"
#include "formats/python.h"
#include "tensor/source_storage.h"

namespace ballast {
namespace {

using testing::IsEmpty;
namespace fs = std::filesystem;

// Every pair is checked by the other readers before Ballast sees it: an unpickler that only writes down what
// it would import, zipfile, tarfile.
constexpr const char* kMake = R"(
import gzip, io, json, lzma, pickle, struct, sys, tarfile, zipfile, zlib
out = sys.argv[1] + '/'
seen = []
class Recorder(pickle.Unpickler):
    def find_class(self, module, name):
        seen.append(f'{module}.{name}'); return str
def unpickles(data):
    seen.clear()
    stream = io.BytesIO(data)
    try:
        for _ in range(5): Recorder(stream).load()  # as PyTorch goes on behind its magic number, and others behind anything
    except Exception: pass
    return bool(seen)
def tarred(data):
    try: return bool(tarfile.open(fileobj=io.BytesIO(data), mode='r:').getmembers())
    except tarfile.TarError: return False
def safetensors(data, metadata=b'', length=0):
    text = b'{"__metadata__":{"a":"' + metadata + b'"},"x":{"dtype":"U8","shape":[%d],"data_offsets":[0,%d]}}' % (len(data), len(data))
    text = text.ljust(length)
    return struct.pack('<Q', len(text)) + text + data
# The length is an opcode that skips into the header; there, in a text, others hop to its end and into the data.
def safetensors_pickle(pickled):
    length, hops = ord('X') | 100 << 8, 200
    start = len('{"__metadata__":{"a":"') + 8
    data = bytes(9) + pickled
    tail = len(safetensors(data)) - len(data) - start
    text = bytearray(b'x' * (length + 8 - start - tail))
    for hop in range(hops): text[105 + 128 * hop - start:107 + 128 * hop - start] = b'U~'
    return safetensors(data, bytes(text))
called = b'\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.'
evil = b'cos\nsystem\n(S"true"\ntR.'
zipped = io.BytesIO()
with zipfile.ZipFile(zipped, 'w') as z: z.writestr('a/data.pkl', evil)
zipped = zipped.getvalue()
def tar(name):
    block = bytearray(512); block[:len(name)] = name; block[124:136] = b'00000000000\0'; block[156:157] = b'0'; block[257:265] = b'ustar\x0000'
    block[148:156] = b' ' * 8; block[148:156] = b'%06o\0 ' % sum(block)
    return bytes(block) + bytes(1024)
# An array whose bytes from 128 on are the rest of a tar's header.
def array_tar(spelling):
    block = bytearray(b'\x93NUMPY\1\0' + struct.pack('<H', 118) + b"{'descr':'|u1','fortran_order':False,'shape':(1536,)}".ljust(117) + b'\n' + bytes(384))
    block[128:136] = b'00000000'; block[136:148] = b'00000000000\0'; block[156:157] = b'0'; block[148:156] = b' ' * 8
    block[148:156] = spelling(sum(block)).ljust(8, b'\0')
    return bytes(block) + bytes(1152)
spellings = {'plain': lambda n: b'%06o\0 ' % n, 'plus': lambda n: b'+%o' % n, 'prefix': lambda n: b'0o%o' % n, 'large': lambda n: b'0O%o' % n, 'line': lambda n: b'0_%o' % n,
             'tab': lambda n: b'\t%o\r\n' % n, 'binary': lambda n: b'\x80' + n.to_bytes(7, 'big'), 'bare': lambda n: b'%08o' % n}
magic = b'\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19.'
streams = magic + b'\x80\2M\xe9\3.' + b'\x80\2}.' + evil + b'\x80\2].'
array = io.BytesIO(); array.write(b'\x93NUMPY\1\0\x46\0' + b"{'descr': '|u1', 'fortran_order': False, 'shape': (4,), }".ljust(69) + b'\n' + b'\0' * 4)
# The end of an archive where PyTorch's reader, and Python's since 3.14, find it: by zip64's locator, or before more bytes than a comment has.
end, start = zipped[-22:], len(zipped) - 22
end64 = struct.pack('<IQHHIIQQQQ', 0x06064b50, 44, 45, 45, 0, 0, 1, 1, start, 0)
def by_locator(front, gap):
    moved = end64[:48] + struct.pack('<Q', len(front)) + end64[56:]
    return front + zipped[:start] + moved + bytes(gap) + struct.pack('<IIQI', 0x07064b50, 0, len(front) + start, 1) + end[:8] + b'\xff' * 12 + end[20:]
def zlibbed(wbits):
    packer = zlib.compressobj(9, zlib.DEFLATED, wbits); return packer.compress(evil) + packer.flush()
files = {
    **{f'safetensors-locator-{gap}': ('zip', by_locator(safetensors(bytes(64)), gap)) for gap in (0, 1, 100, 60000)},
    **{f'safetensors-far-{gap}': ('zip', safetensors(bytes(64)) + zipped + bytes(gap)) for gap in (1, 65535, 65536, 68000, 69500, 120000)},
    'safetensors-decoys': ('zip', safetensors(bytes(64)) + zipped + b'PK\5\6'.ljust(22, b'\xff') * 500),
    **{f'pickle-{letters}': ('flatbuffers', b'\x80\2U\4' + letters.encode() + b'.') for letters in ('PTMF', 'ORTM', 'TFL3', 'ET12')},
    **{f'npy-{letters}': ('-', array.getvalue()[:80] + letters.encode() + array.getvalue()[84:]) for letters in ('PTMF', 'ET12')},
    **{f'lzma-{size}': ('lzma', lzma.compress(evil * size, format=lzma.FORMAT_ALONE)) for size in (1, 1000)},
    **{f'zlib-{wbits}': ('gzip', zlibbed(wbits)) for wbits in range(9, 16)},
    'gzip-tar': ('tar', gzip.compress(tar(b'model.pkl'))), 'gzip-zip': ('zip', gzip.compress(zipped)), 'gzip-gzip': ('gzip', gzip.compress(gzip.compress(evil))), 'gzip-lzma': ('lzma', gzip.compress(lzma.compress(evil, format=lzma.FORMAT_ALONE))),
    'safetensors-pickle': ('pickle', safetensors_pickle(called)), 'tar-pickle': ('pickle', tar(evil)),
    'pickle-zip': ('zip', pickle.dumps({'a': 1}) + zipped), 'safetensors-zip': ('zip', safetensors(bytes(64)) + zipped),
    'npy-zip': ('zip', array.getvalue() + zipped), 'json-zip': ('zip', b'{"weight_map": {}}' + zipped), 'tar-zip': ('zip', tar(b'a') + zipped),
    'pickle-hdf5': ('hdf5', pickle.dumps({}).ljust(512, b'\0') + b'\x89HDF\r\n\x1a\n' + bytes(64)),
    'pickle-zlib': ('gzip', zlib.compress(evil)), 'pickle-gzip': ('pickle', gzip.compress(evil)),
    'safetensors-module': ('pickle', safetensors(b'\n0cos\nx\1\n.', length=0x156)), 'safetensors-inst': ('pickle', safetensors(b'\n0(ios\nx\1\n.', length=0x156)),
    'safetensors-line': ('pickle', safetensors(b'\n0' + evil, length=0x1456)), 'safetensors-long': ('pickle', safetensors(b'\n0' + evil, length=0x40056)),
    'safetensors-second': ('pickle', safetensors(b'\n.' + evil, length=0x156)), 'safetensors-third': ('pickle', safetensors(b'\n.(N.' + evil, length=0x156)),
    'safetensors-streams': ('pickle', safetensors(b'\n0' + streams, length=0x156)), 'safetensors-text': ('pickle', safetensors(b'\n0L' + b'%dL\n.' % 0x1950a86a20f9469cfc6c + streams[13:], length=0x156)),
    **{f'npy-tar-{name}': ('tar', array_tar(spelling)) for name, spelling in spellings.items()},
    'zip-honest': ('', zipped), 'pickle-honest': ('', pickle.dumps({'a': 1})), 'tar-honest': ('', tar(b'pickle')), 'npy-honest': ('', array.getvalue()),
}
index = b'{"weight_map":{"x":"a.safetensors"},"metadata":{"x":"'
block = bytearray(index.ljust(512)); block[148:156] = b' ' * 8; block[148:156] = b'+%06o ' % sum(block)
files['index-honest'] = ('', index + b'"}}'); files['index-tar'] = ('', bytes(block) + b' ' * 1024 + b'"}}'); assert tarred(files['index-tar'][1])
files['a.safetensors'] = ('', struct.pack('<Q', 64) + b'{"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}'.ljust(64) + b'x')
for length in range(0x100, 0x300): files[f'safetensors-{length}'] = ('', safetensors(bytes(64), length=length))
with open(out + 'expect', 'w') as expect:
    for name, (wanted, data) in files.items():
        with open(out + name, 'wb') as f: f.write(data)
        others = {'pickle': unpickles(data), 'zip': zipfile.is_zipfile(io.BytesIO(data)), 'tar': tarred(data)}
        if name.startswith(('safetensors-locator', 'safetensors-far', 'safetensors-decoys')): others.pop('zip')  # not this Python's
        if wanted in others and 'gzip' not in name: assert others[wanted], name
        print(name, wanted or "-", file=expect)
)";

std::vector<std::string> formats_of(const std::vector<OtherReading>& readings) {
  std::vector<std::string> formats;
  for (const OtherReading& reading : readings) formats.push_back(reading.format);
  return formats;
}

TEST(Polyglot, EachSecondReadingIsFound) {
  const std::string folder = run_python("polyglots", kMake);
  std::ifstream expect(folder + "/expect");
  std::string file;
  std::string wanted;
  int count = 0;
  while (expect >> file >> wanted) {
    const auto found = formats_of(other_readings(*File::open(folder + "/" + file)));
    if (wanted == "-")
      EXPECT_THAT(found, IsEmpty()) << file;
    else
      EXPECT_THAT(found, testing::Contains(wanted)) << file;
    ++count;
  }
  EXPECT_GT(count, 500);
  EXPECT_EQ(scan(folder + "/index-honest").verdict(), Verdict::clean);
  EXPECT_EQ(scan(folder + "/index-tar").verdict(), Verdict::unknown);
}

TEST(Polyglot, ALengthThatReadsLikeAZipArchiveIsOne) {
  std::string text = "PK\3\4";
  text.append(4, '\0');
  text += "{}";
  text.append(0x04034B50 - 2, ' ');
  const auto bytes = Storage::borrow(static_cast<const void*>(text.data()), text.size());
  const auto source = memory_source(bytes, "a.safetensors");
  EXPECT_EQ(open(source).format, formats::safetensors);
  EXPECT_THAT(formats_of(other_readings(*source)), testing::Contains("zip"));
}

TEST(Polyglot, TheFixturesAreOneThingEachButForTheOneThatHoldsAZip) {
  int count = 0;
  for (const char* folder : {"torch", "torch_current", "burn", "onnx", "models"}) {
    for (const auto& entry :
         fs::recursive_directory_iterator(std::string(BALLAST_TEST_DATA) + "/fixtures/" + folder)) {
      if (!entry.is_regular_file() || entry.path().extension() == ".py") continue;
      const auto found = formats_of(other_readings(*File::open(entry.path().string())));
      const bool holds_zip = entry.path().filename() == "pickle_holding_zip_bytes.pkl";
      EXPECT_EQ(found, holds_zip ? std::vector<std::string>{"zip"} : std::vector<std::string>{})
          << entry.path();
      ++count;
    }
  }
  EXPECT_GT(count, 50);
}

// What somebody else unpacks may stand before a header of Safetensors, whose length its writer chooses: a
// gzip stream of blocks that are only stored. So bytes that are decrypted are looked at as packed ones, too.
TEST(Polyglot, BytesAsTheyLieOnTheDiskAreLookedAtAsPackedOnes) {
  const std::string folder = run_python("packed_bytes", R"(
import gzip, sys, zlib
open(sys.argv[1] + '/gz', 'wb').write(gzip.compress(b'abc', mtime=0))
open(sys.argv[1] + '/z', 'wb').write(zlib.compress(b'abc'))
open(sys.argv[1] + '/text', 'wb').write(b'x' * 100)
)");
  EXPECT_FALSE(readings_of_bytes(*File::open(folder + "/gz")).empty());
  EXPECT_FALSE(readings_of_bytes(*File::open(folder + "/z")).empty());
  EXPECT_TRUE(readings_of_bytes(*File::open(folder + "/text")).empty());
}

}  // namespace
}  // namespace ballast
