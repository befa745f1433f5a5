// SPDX-License-Identifier: Apache-2.0
// ballast extract: one tensor of a file, or a slice of it, as a file of its own.
#include <charconv>
#include <chrono>

#include "ballast/error.h"
#include "ballast/quantized.h"
#include "commands.h"
#include "fail.h"
#include "state_dict.h"
#include "steps.h"
#include "text.h"
#include "written.h"

namespace tool {
namespace {

struct ExtractArguments {
  std::string file;
  std::string name;  // of a tensor, with an index in brackets or not
  std::string out;
  ballast::Format format;
  std::optional<std::string> root;
  std::optional<std::string> dtype;
  bool force = false;
  bool inert = false;
  bool check = true;
};

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(' ');
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(' ') - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char at) {
  std::vector<std::string_view> parts;
  for (std::size_t end = text.find(at); end != std::string_view::npos; end = text.find(at)) {
    parts.push_back(trimmed(text.substr(0, end)));
    text.remove_prefix(end + 1);
  }
  parts.push_back(trimmed(text));
  return parts;
}

// The words of NumPy's index, as ballast::Index has them.
class IndexText {
 public:
  explicit IndexText(std::string_view text) : text_(text) {}

  std::vector<ballast::Index> read() const {
    std::vector<std::string_view> items = split(text_, ',');
    if (items.size() > 1 && items.back().empty()) items.pop_back();  // as in Python: [1,]
    std::vector<ballast::Index> indices;
    for (const std::string_view item : items) indices.push_back(index_of(item));
    return indices;
  }

 private:
  [[noreturn]] void refuse(std::string_view item) const {
    fail(ballast::Errc::invalid_argument, fmt::format("[{}]", ballast::display(text_)),
         "{} is no index; numbers, start:stop:step, ... and None are, with commas between",
         ballast::quoted(item));
  }

  std::int64_t number(std::string_view item, std::string_view word) const {
    if (word.starts_with('+')) word.remove_prefix(1);
    std::int64_t value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc() || end != word.data() + word.size()) refuse(item);
    return value;
  }

  ballast::Index index_of(std::string_view item) const {
    if (item == "...") return ballast::ellipsis;
    if (item == "None") return ballast::new_axis;
    const std::vector<std::string_view> parts = split(item, ':');
    if (parts.size() == 1) return number(item, item);
    if (parts.size() > 3) refuse(item);
    const auto bound = [&](std::size_t part) -> std::optional<std::int64_t> {
      if (part >= parts.size() || parts[part].empty()) return std::nullopt;
      return number(item, parts[part]);
    };
    return ballast::Slice{bound(0), bound(1), bound(2)};
  }

  std::string_view text_;
};

struct Wanted {
  std::string name;
  std::optional<std::string> index;  // what stands in the brackets
};

// A tensor may have brackets in its name: the whole is looked for first.
Wanted wanted_of(const std::string& text, const ballast::Checkpoint& checkpoint) {
  const std::size_t open = text.rfind('[');
  if (checkpoint.contains(text) || open == std::string::npos || !text.ends_with(']')) return {text, {}};
  return {text.substr(0, open), text.substr(open + 1, text.size() - open - 2)};
}

ballast::Tensor tensor_named(const std::string& name, const ballast::Checkpoint& checkpoint) {
  // Integers with scales are the numbers they stand for; the scales themselves are there, too.
  if (ballast::is_quantized(checkpoint)) {
    const ballast::Checkpoint numbers = ballast::dequantize(checkpoint);
    if (numbers.contains(name)) return numbers.tensor(name);
  }
  if (checkpoint.contains(name)) return checkpoint.tensor(name);
  std::vector<std::string> names;
  for (const ballast::Entry entry : checkpoint) names.emplace_back(entry.name);
  const std::string_view near = nearest(name, names);
  fail(ballast::Errc::not_found, ballast::display(checkpoint.path), "no tensor {}{}", ballast::quoted(name),
       near.empty() ? "; 'ballast ls' lists them" : fmt::format("; did you mean {}?", ballast::quoted(near)));
}

std::string layout_name(ballast::Adapter adapter) {
  return adapter == ballast::Adapter::none ? "native" : std::string(ballast::name(adapter));
}

// The tensor alone, which still says whose numbers it has: a matrix of Burn's is not PyTorch's. Formats that
// have no place for it get a note beside them, as the numbers themselves are what was asked for.
ballast::Checkpoint alone(const std::string& name, const ballast::Tensor& tensor,
                          const ballast::Checkpoint& file, ballast::Format format, Session& session) {
  ballast::Checkpoint one;
  one.add(name, tensor);
  const std::string whose = layout_name(ballast::adapter_of(file));
  // As convert does: transformers reads what says so.
  if (whose == "pytorch" && file.format->holds_tree && format == ballast::formats::safetensors)
    one.metadata = ballast::Metadata{{"format", "pt"}};
  if (whose == "pytorch") return one;
  if (format->holds_layout || format->holds_metadata)
    one.metadata = {{"ballast.layout", whose}};
  else
    session.warn(
        fmt::format("{} has no place to say that the numbers have the layout {}", format.name(), whose));
  return one;
}

void report(Session& session, const ExtractArguments& arguments, const ballast::Checkpoint& file,
            const Wanted& wanted, const ballast::Tensor& tensor) {
  const std::string_view dtype = ballast::info(tensor.dtype()).code;
  if (session.json) {
    write_document(session.out, {{"schema", 1},
                                 {"input", {{"file", arguments.file}, {"format", file.format.name()}}},
                                 {"name", wanted.name},
                                 {"index", wanted.index ? Json(*wanted.index) : Json(nullptr)},
                                 {"output",
                                  {{"file", arguments.out},
                                   {"dtype", dtype},
                                   {"shape", shape_array(tensor.shape())},
                                   {"bytes", tensor.size_bytes()},
                                   {"file_bytes", size_of_file(arguments.out)}}}});
  } else if (!session.quiet) {
    session.out.print("wrote {}: {} {} {}, {}\n", ballast::display(arguments.out),
                      ballast::display(arguments.name), dtype, to_string(tensor.shape()),
                      human_bytes(tensor.size_bytes()));
  }
}

int extract(Session& session, const ExtractArguments& arguments) {
  require_free(arguments.out, arguments.force);
  ballast::require_apart({arguments.file}, {arguments.out});
  const ballast::Format format =
      ballast::format_for(arguments.out, arguments.format);  // what is wrong with it comes first
  const ballast::Checkpoint file =
      below(session.open(arguments.file, {.inert = arguments.inert}), arguments.root);
  const Wanted wanted = wanted_of(arguments.name, file);
  ballast::Tensor tensor = tensor_named(wanted.name, file);
  if (wanted.index) tensor = tensor.index(IndexText(*wanted.index).read());
  StepArguments cast;
  cast.dtype = arguments.dtype;
  ballast::Steps steps = steps_of(cast);
  steps.root = "";
  steps.keep_statistics = false;  // it was asked for by name
  const ballast::Stepped done =
      ballast::apply_steps(alone(wanted.name, tensor, file, format, session), steps);
  {
    ProgressBar bar = session.progress("extract", arguments.out);
    ballast::save(done.checkpoint, arguments.out,
                  {.format = arguments.format,
                   .check = arguments.check,
                   .overwrite = arguments.force,
                   .progress = bar.callback()});
  }
  report(session, arguments, file, wanted, done.checkpoint[0].tensor());
  session.out.flush();
  if (done.count->overflowed == 0) return kFine;
  session.warn(fmt::format("{}: {} too large for {}", ballast::display(arguments.out),
                           counted(done.count->overflowed, "value"),
                           ballast::info(done.checkpoint[0].dtype).code));
  return kFound;
}

}  // namespace

void add_extract(CLI::App& app, Session& session) {
  auto arguments = std::make_shared<ExtractArguments>();
  CLI::App& command =
      add_command(app, session, "extract", "write one tensor, or a slice of it, as a file of its own",
                  "  ballast extract model.pt fc.weight -o weight.npy\n"
                  "  ballast extract model.safetensors 'wte.weight[:10, ::2]' -o some.npy\n"
                  "  ballast extract model.safetensors fc.weight -o weight.npy --dtype f32");
  command.add_option("FILE", arguments->file, "A checkpoint of any format")->required();
  command
      .add_option("NAME", arguments->name,
                  "A tensor as ls lists it; NAME[1:3, ::2] is a part of it, as in NumPy")
      ->required();
  command
      .add_option("-o,--output", arguments->out,
                  "The file to write; its extension says the format (.npy, .safetensors, .pt, …)")
      ->type_name("OUT")
      ->required();
  add_format_option(command, arguments->format);
  add_root_option(command, arguments->root, kEverything);
  command.add_option("--dtype", arguments->dtype, "Cast it, if it is floating: f32, f16, bf16, f64, …")
      ->type_name("DTYPE");
  command.add_flag("-f,--force", arguments->force, "Overwrite OUT");
  add_inert_option(command, arguments->inert);
  add_no_check_option(command, arguments->check);
  add_io_option(command, session);
  command.callback([&session, arguments] {
    session.run = [&session, arguments] { return extract(session, *arguments); };
  });
}

}  // namespace tool
