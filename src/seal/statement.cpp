// SPDX-License-Identifier: Apache-2.0
#include "seal/statement.h"

#include <algorithm>
#include <optional>

#include "base/fail.h"
#include "base/json_scanner.h"
#include "base/json_writer.h"
#include "seal/once.h"

namespace ballast::seal {
namespace {

constexpr std::string_view kType = "https://in-toto.io/Statement/v1";
constexpr std::string_view kPredicate = "https://model_signing/signature/v1.0";
constexpr std::string_view kPredicateOf02 = "https://model_signing/Digests/v0.1";

std::string root_digest(const std::vector<SignedFile>& files) {
  Sha256 sha;
  for (const SignedFile& file : files) sha.update(file.digest);
  return hex(sha.finish());
}

std::optional<std::uint8_t> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<std::uint8_t>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<std::uint8_t>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<std::uint8_t>(c - 'A' + 10);
  return std::nullopt;
}

std::optional<Sha256::Digest> digest_in(std::string_view text) {
  Sha256::Digest digest{};
  if (text.size() != 2 * digest.size()) return std::nullopt;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    const auto high = hex_digit(text[2 * i]);
    const auto low = hex_digit(text[2 * i + 1]);
    if (!high || !low) return std::nullopt;
    digest[i] = static_cast<std::byte>(*high << 4U | *low);
  }
  return digest;
}

class StatementReader : OnceReader {
 public:
  explicit StatementReader(JsonScanner& json) : OnceReader(json) {}

  Statement read() {
    object("the statement", [&](std::string_view key) {
      if (key == "_type") return set(type_, key);
      if (key == "predicateType") return set(predicate_type_, key);
      if (key == "subject") return array(key, [&] { subject(); });
      if (key == "predicate") return predicate();
      skip_once(json_);
    });
    json_.finish();
    check_types();
    if (*predicate_type_ == kPredicateOf02) {
      statement_.ignored.clear();  // as all else of its predicate, which said nothing then
      for (const Subject& subject : subjects_) add(subject.name, subject.sha256);
    } else {
      check_predicate();
    }
    return sorted();
  }

 private:
  struct Subject {
    std::string_view name;  // they lie in the text
    std::string_view sha256;
  };

  struct Resource {
    std::string_view name;
    std::string_view digest;
    std::string_view algorithm;
  };

  void subject() {
    std::optional<std::string_view> name;
    std::optional<std::string_view> sha256;
    object("a subject", [&](std::string_view key) {
      if (key == "name") return set(name, key);
      if (key != "digest") return skip_once(json_);
      object("digest of a subject", [&](std::string_view algorithm) {
        if (algorithm == "sha256") return set(sha256, algorithm);
        skip_once(json_);
      });
    });
    if (!name || !sha256) missing("name and sha256 of each subject");
    subjects_.push_back({*name, *sha256});
  }

  // In statements of 0.2 it is something else, and nothing of it counts.
  void predicate() {
    if (json_.peek() != Kind::object) return skip_once(json_);
    object_once(json_, [&](std::string_view key) {
      if (key == "resources" && json_.peek() == Kind::array) {
        has_resources_ = true;
        return json_.array([&] { resource(); });
      }
      if (key == "serialization" && json_.peek() == Kind::object) return serialization();
      skip_once(json_);
    });
  }

  void resource() {
    std::optional<std::string_view> name;
    std::optional<std::string_view> digest;
    std::optional<std::string_view> algorithm;
    object("a resource", [&](std::string_view key) {
      if (key == "name") return set(name, key);
      if (key == "digest") return set(digest, key);
      if (key == "algorithm") return set(algorithm, key);
      skip_once(json_);
    });
    if (!name || !digest || !algorithm) missing("name, digest and algorithm of each resource");
    resources_.push_back({*name, *digest, *algorithm});
  }

  void serialization() {
    object("serialization", [&](std::string_view key) {
      if (key == "method") return set(method_, key);
      if (key == "hash_type") return set(hash_type_, key);
      if (key == "allow_symlinks") return symlinks();
      if (key != "ignore_paths") return skip_once(json_);
      array(key, [&] { statement_.ignored.emplace_back(text("a path of ignore_paths")); });
    });
  }

  void symlinks() {
    expect(Kind::boolean, "allow_symlinks", "true or false");
    has_symlinks_ = true;
    statement_.allow_symlinks = json_.take_text("true");
    if (!statement_.allow_symlinks) json_.skip_value();
  }

  void check_types() const {
    if (!type_ || *type_ != kType)
      fail(Errc::bad_bundle, where(), "what is signed is {}, and not a statement ({})",
           type_ ? quoted(*type_) : "of no type", kType);
    if (!predicate_type_) missing("predicateType");
    if (*predicate_type_ != kPredicate && *predicate_type_ != kPredicateOf02)
      fail(Errc::unsupported, where(), "states {}, and not the files of a model ({})",
           quoted(*predicate_type_), kPredicate);
  }

  void check_predicate() {
    if (!method_ || !hash_type_ || !has_symlinks_)
      missing("serialization with method, hash_type and allow_symlinks");
    if (*method_ != "files")
      fail(Errc::unsupported, where(),
           "was signed by the method {}; files as a whole are the one that is read", quoted(*method_));
    if (*hash_type_ != "sha256")
      fail(Errc::unsupported, where(), "was signed with hashes of kind {}; sha256 is the one that is read",
           quoted(*hash_type_));
    if (!has_resources_) missing("resources");
    if (subjects_.size() != 1)
      fail(Errc::bad_bundle, where(), "has {} subjects, a model is one", subjects_.size());
    for (const Resource& resource : resources_) {
      if (resource.algorithm != "sha256")
        fail(Errc::unsupported, where(),
             "{} was signed with a hash of kind {}; sha256 is the one that is read", quoted(resource.name),
             quoted(resource.algorithm));
      add(resource.name, resource.digest);
    }
    statement_.model = subjects_.front().name;
    if (const std::string root = root_digest(statement_.files); root != subjects_.front().sha256)
      fail(Errc::bad_bundle, where(), "its files hash to {}, its subject is {}", root,
           quoted(subjects_.front().sha256));
  }

  void add(std::string_view name, std::string_view digest) {
    std::string plain = plain_path(name);
    if (plain.empty())
      fail(Errc::bad_bundle, where(), "{} is not the path of a file in a model", quoted(name));
    const auto bytes = digest_in(digest);
    if (!bytes)
      fail(Errc::bad_bundle, where(), "the digest of {} is not the 64 hexadecimal digits of SHA-256",
           quoted(name));
    statement_.files.push_back({std::move(plain), *bytes});
  }

  Statement sorted() {
    auto& files = statement_.files;
    std::sort(files.begin(), files.end(),
              [](const SignedFile& a, const SignedFile& b) { return before_path(a.name, b.name); });
    const auto twice =
        std::adjacent_find(files.begin(), files.end(),
                           [](const SignedFile& a, const SignedFile& b) { return a.name == b.name; });
    if (twice != files.end()) fail(Errc::duplicate_key, where(), "names {} twice", quoted(twice->name));
    return std::move(statement_);
  }

  void set(std::optional<std::string_view>& to, std::string_view key) { to = text(key); }

  [[noreturn]] void missing(std::string_view what) const {
    fail(Errc::bad_bundle, where(), "the signed statement has no {}", what);
  }

  Statement statement_;
  std::optional<std::string_view> type_;
  std::optional<std::string_view> predicate_type_;
  std::optional<std::string_view> method_;
  std::optional<std::string_view> hash_type_;
  std::vector<Subject> subjects_;
  std::vector<Resource> resources_;
  bool has_resources_ = false;
  bool has_symlinks_ = false;
};

}  // namespace

bool before_path(std::string_view a, std::string_view b) noexcept {
  const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c); };
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [&](char x, char y) { return rank(x) < rank(y); });
}

std::string plain_path(std::string_view path) {
  if (path.starts_with('/') || path.find('\0') != std::string_view::npos) return {};
  std::string plain;
  while (!path.empty()) {
    const std::string_view part = path.substr(0, path.find('/'));
    path.remove_prefix(std::min(path.size(), part.size() + 1));
    if (part == "..") return {};
    if (part.empty() || part == ".") continue;
    if (!plain.empty()) plain += '/';
    plain += part;
  }
  return plain.empty() ? "." : plain;
}

Statement read_statement(std::string text, const std::string& where) {
  if (!is_utf8(text)) fail(Errc::bad_utf8, where, "what is signed is not UTF-8 text");
  text.append(JsonScanner::kPadding, '\0');
  JsonScanner json({text.data(), text.size() - JsonScanner::kPadding}, where);
  return StatementReader(json).read();
}

std::string statement_text(const Statement& statement) {
  JsonWriter json;
  json.begin_object().member("_type", kType).key("subject").begin_array().begin_object();
  json.member("name", statement.model).key("digest").begin_object();
  json.member("sha256", root_digest(statement.files)).end_object().end_object().end_array();
  json.member("predicateType", kPredicate).key("predicate").begin_object().key("resources").begin_array();
  for (const SignedFile& file : statement.files)
    json.begin_object()
        .member("name", file.name)
        .member("digest", hex(file.digest))
        .member("algorithm", "sha256")
        .end_object();
  json.end_array()
      .key("serialization")
      .begin_object()
      .member("method", "files")
      .member("hash_type", "sha256");
  json.member("allow_symlinks", statement.allow_symlinks).key("ignore_paths").begin_array();
  for (const std::string& path : statement.ignored) json.value(path);
  json.end_array().end_object().end_object().end_object();
  return std::move(json).text();
}

}  // namespace ballast::seal
