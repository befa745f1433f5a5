// SPDX-License-Identifier: Apache-2.0
#include "ballast/error.h"

#include <cerrno>
#include <system_error>

#include "base/fail.h"

namespace ballast {

std::string_view name(Errc code) noexcept {
  switch (code) {
    case Errc::invalid_argument:
      return "invalid-argument";
    case Errc::not_found:
      return "not-found";
    case Errc::already_exists:
      return "already-exists";
    case Errc::unsupported:
      return "unsupported";
    case Errc::not_representable:
      return "not-representable";
    case Errc::file_not_found:
      return "file-not-found";
    case Errc::permission_denied:
      return "permission-denied";
    case Errc::io_error:
      return "io-error";
    case Errc::no_space:
      return "no-space";
    case Errc::not_regular_file:
      return "not-regular-file";
    case Errc::file_changed:
      return "file-changed";
    case Errc::unknown_format:
      return "unknown-format";
    case Errc::truncated:
      return "truncated";
    case Errc::trailing_data:
      return "trailing-data";
    case Errc::header_too_large:
      return "header-too-large";
    case Errc::bad_utf8:
      return "bad-utf8";
    case Errc::bad_json:
      return "bad-json";
    case Errc::duplicate_key:
      return "duplicate-key";
    case Errc::bad_name:
      return "bad-name";
    case Errc::bad_dtype:
      return "bad-dtype";
    case Errc::size_overflow:
      return "size-overflow";
    case Errc::size_mismatch:
      return "size-mismatch";
    case Errc::misaligned:
      return "misaligned";
    case Errc::offset_out_of_range:
      return "offset-out-of-range";
    case Errc::overlap:
      return "overlap";
    case Errc::gap:
      return "gap";
    case Errc::shape_mismatch:
      return "shape-mismatch";
    case Errc::forbidden_global:
      return "forbidden-global";
    case Errc::forbidden_opcode:
      return "forbidden-opcode";
    case Errc::bad_pickle:
      return "bad-pickle";
    case Errc::frame_violation:
      return "frame-violation";
    case Errc::type_mismatch:
      return "type-mismatch";
    case Errc::memo_range:
      return "memo-range";
    case Errc::too_deep:
      return "too-deep";
    case Errc::too_many:
      return "too-many";
    case Errc::expansion_limit:
      return "expansion-limit";
    case Errc::expanded_view:
      return "expanded-view";
    case Errc::missing_storage:
      return "missing-storage";
    case Errc::bad_zip:
      return "bad-zip";
    case Errc::zip_ambiguous:
      return "zip-ambiguous";
    case Errc::name_mismatch:
      return "name-mismatch";
    case Errc::duplicate_entry:
      return "duplicate-entry";
    case Errc::encrypted_flag:
      return "encrypted-flag";
    case Errc::unsupported_method:
      return "unsupported-method";
    case Errc::bad_crc:
      return "bad-crc";
    case Errc::bad_tar:
      return "bad-tar";
    case Errc::bad_gzip:
      return "bad-gzip";
    case Errc::bad_burn:
      return "bad-burn";
    case Errc::bad_npy:
      return "bad-npy";
    case Errc::bad_onnx:
      return "bad-onnx";
    case Errc::path_escape:
      return "path-escape";
    case Errc::missing_shard:
      return "missing-shard";
    case Errc::index_mismatch:
      return "index-mismatch";
    case Errc::bad_age:
      return "bad-age";
    case Errc::cannot_decrypt:
      return "cannot-decrypt";
    case Errc::bad_tag:
      return "bad-tag";
    case Errc::bad_bundle:
      return "bad-bundle";
    case Errc::bad_packed:
      return "bad-packed";
    case Errc::wrong_signature:
      return "wrong-signature";
    case Errc::load_failed:
      return "load-failed";
    case Errc::traced_value:
      return "traced-value";
    case Errc::baked_dimension:
      return "baked-dimension";
    case Errc::not_exportable:
      return "not-exportable";
    case Errc::onnx_invalid:
      return "onnx-invalid";
  }
  return "unknown";
}

Error::Error(Errc code, std::string where, const std::string& what)
    : std::runtime_error(where.empty() ? what : where + ": " + what), code_(code), where_(std::move(where)) {}

void fail_text(Errc code, std::string where, const std::string& what) {
  throw Error(code, std::move(where), what);
}

void fail_errno(int error_number, std::string where, const std::string& what) {
  const std::string reason = what + ": " + std::generic_category().message(error_number);
  switch (error_number) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      fail_text(Errc::no_space, std::move(where), reason);
    case ENOENT:
      fail_text(Errc::file_not_found, std::move(where), reason);
    case EACCES:
    case EPERM:
      fail_text(Errc::permission_denied, std::move(where), reason);
    case EEXIST:
      fail_text(Errc::already_exists, std::move(where), reason);
    default:
      fail_text(Errc::io_error, std::move(where), reason);
  }
}

}  // namespace ballast
