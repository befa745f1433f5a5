// SPDX-License-Identifier: Apache-2.0
// ballast embed: C++ that links a record into a program. The bytes come in by the assembler's .incbin, so
// that a gigabyte compiles in no time; they lie in read-only memory on 64 bytes, and are never copied.
// CMake's ballast_embed() calls it.
#include <filesystem>

#include "ballast/detail/record_file.h"
#include "ballast/error.h"
#include "commands.h"
#include "fail.h"
#include "scaffold/names.h"

namespace tool {
namespace {

struct EmbedArguments {
  std::string record;
  std::string symbol;
  bool source = false;
};

void require_identifier(const std::string& symbol) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  bool fine = !symbol.empty() && is_letter(symbol[0]);
  for (const char c : symbol) fine = fine && (is_letter(c) || (c >= '0' && c <= '9'));
  if (!fine) fail(ballast::Errc::invalid_argument, "--symbol", "{} is no C++ name", ballast::quoted(symbol));
}

std::string enumerator(ballast::DType dtype) {
  if (dtype == ballast::DType::boolean) return "boolean";
  return lowered(ballast::info(dtype).code);
}

constexpr const char* kHeaderTop = R"(// Made by ballast embed from a record; do not edit.
#pragma once

#include <ballast/detail/embedded.h>

namespace {0} {{

/// The whole record: read-only, on 64 bytes, for as long as the program runs.
[[nodiscard]] std::span<const std::byte> bytes() noexcept;

/// Its tensors, as views of those bytes.
[[nodiscard]] inline ballast::Checkpoint record() {{ return ballast::open_record(bytes()); }}

/// Into a model: no files, and nothing is copied.
template <ballast::Module Model>
ballast::LoadReport load(Model& model, const ballast::LoadOptions& options = {{}}) {{
  return ballast::load_record(model, bytes(), options);
}}

inline constexpr ballast::embedded::Entry kTensors[] = {{
)";

constexpr const char* kHeaderEnd = R"(}};

/// {0}::values<"name">(): a std::span of the tensor's own type and size; a name that is not there does not compile.
template <ballast::embedded::Name name>
[[nodiscard]] auto values() noexcept {{
  constexpr std::size_t kAt = ballast::embedded::position(kTensors, name.view());
  static_assert(kAt < std::size(kTensors), "no tensor of this name was embedded");
  return ballast::embedded::values<kTensors, kAt>(bytes());
}}

}}  // namespace {0}
)";

std::string header_text(const std::string& symbol, const ballast::Checkpoint& record) {
  std::string text = fmt::format(kHeaderTop, symbol);
  for (const ballast::Entry entry : record) {
    const ballast::Tensor tensor = entry.tensor();
    if (tensor.storage()->packed_size())
      fail(ballast::Errc::unsupported, ballast::display(record.path),
           "tensor {} is packed, and a program uses embedded tensors where they lie: 'ballast convert {} "
           "OUT.record' unpacks them",
           ballast::quoted(entry.name), ballast::display(record.path));
    const std::uint64_t offset = tensor.storage()->source_span()->offset + tensor.bit_offset() / 8;
    text += fmt::format("    {{{}, ballast::DType::{}, {}, {}, {}}},\n", cpp_literal(entry.name),
                        enumerator(entry.dtype), tensor.numel(), entry.bytes, offset);
  }
  if (record.empty()) text += "    {\"\", ballast::DType::f32, 0, 0, 0},\n";
  return text + fmt::format(kHeaderEnd, symbol);
}

constexpr const char* kSource = R"(// Made by ballast embed from a record; do not edit.
#include "{0}.h"

// In the assembler's words, so that the compiler never sees the bytes.
__asm__(
    ".pushsection .rodata,\"a\",@progbits\n"
    ".balign 64\n"
    ".globl ballast_embedded_{0}\n"
    ".hidden ballast_embedded_{0}\n"
    "ballast_embedded_{0}:\n"
    ".incbin " {1} "\n"
    ".popsection\n");

extern "C" {{
extern const std::byte ballast_embedded_{0}[];
}}

std::span<const std::byte> {0}::bytes() noexcept {{
  return {{ballast_embedded_{0}, {2}}};
}}
)";

std::string source_text(const std::string& symbol, const std::string& record) {
  const std::filesystem::path path = std::filesystem::absolute(record);
  return fmt::format(kSource, symbol, cpp_literal(cpp_literal(path.string())),
                     std::filesystem::file_size(path));
}

// open_record() cannot know how a record is made at the command line.
void require_record(const Session& session, const std::string& path) {
  const ballast::Format format = session.open(path).format;
  if (format == ballast::formats::record) return;
  fail(ballast::Errc::unknown_format, ballast::display(path),
       "is {}, and a record is needed: 'ballast convert {} OUT.record' makes one", format.name(),
       ballast::display(path));
}

int embed(Session& session, const EmbedArguments& arguments) {
  require_identifier(arguments.symbol);
  require_record(session, arguments.record);
  const ballast::Checkpoint record = ballast::open_record(arguments.record);
  if (session.json) {
    write_document(session.out, {{"schema", 1},
                                 {"file", arguments.record},
                                 {"symbol", arguments.symbol},
                                 {"tensors", record.size()},
                                 {"header", header_text(arguments.symbol, record)},
                                 {"source", source_text(arguments.symbol, arguments.record)}});
    return kFine;
  }
  session.out.write(arguments.source ? source_text(arguments.symbol, arguments.record)
                                     : header_text(arguments.symbol, record));
  return kFine;
}

}  // namespace

void add_embed(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<EmbedArguments>();
  CLI::App& command = add_command(app, session, "embed", "print C++ that links a record into a program",
                                  "  ballast convert model.pt model.record\n"
                                  "  ballast embed model.record --symbol weights > weights.h\n"
                                  "  ballast embed model.record --symbol weights --source > weights.cpp");
  command.add_option("RECORD", arguments->record, "A Ballast record")->required();
  command
      .add_option("--symbol", arguments->symbol,
                  "The namespace of what is generated, and the name of its header")
      ->type_name("NAME")
      ->required();
  command.add_flag("--source", arguments->source, "Print the source file instead of the header");
  command.callback(
      [&session, arguments] { session.run = [&session, arguments] { return embed(session, *arguments); }; });
}

}  // namespace tool
