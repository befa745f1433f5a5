// SPDX-License-Identifier: Apache-2.0
// The numbers of the fields Ballast looks at: onnx.proto's, whose messages and fields have these names.
#pragma once

#include <cstdint>

namespace ballast::onnx_file {

// NOLINTBEGIN(readability-identifier-naming): the names of ONNX's schema
namespace model_proto {
inline constexpr std::uint32_t ir_version = 1, producer_name = 2, producer_version = 3, domain = 4,
                               model_version = 5, doc_string = 6, graph = 7, opset_import = 8,
                               metadata_props = 14, training_info = 20, functions = 25, configuration = 26;
}

namespace opset_proto {
inline constexpr std::uint32_t domain = 1, version = 2;
}

namespace entry_proto {
inline constexpr std::uint32_t key = 1, value = 2;
}

namespace training_proto {
inline constexpr std::uint32_t initialization = 1, algorithm = 2;
}

namespace function_proto {
inline constexpr std::uint32_t name = 1, node = 7, domain = 10;
}

namespace graph_proto {
inline constexpr std::uint32_t node = 1, name = 2, initializer = 5, input = 11, output = 12,
                               sparse_initializer = 15;
}

namespace node_proto {
inline constexpr std::uint32_t input = 1, output = 2, name = 3, op_type = 4, attribute = 5, domain = 7;
}

namespace attribute_proto {
inline constexpr std::uint32_t name = 1, tensor = 5, graph = 6, tensors = 10, graphs = 11, sparse_tensor = 22;
}

namespace tensor_proto {
inline constexpr std::uint32_t dims = 1, data_type = 2, segment = 3, float_data = 4, int32_data = 5,
                               string_data = 6, int64_data = 7, name = 8, raw_data = 9, double_data = 10,
                               uint64_data = 11, external_data = 13, data_location = 14;
}

namespace sparse_proto {
inline constexpr std::uint32_t values = 1, indices = 2, dims = 3;
}

namespace value_proto {
inline constexpr std::uint32_t name = 1, type = 2;
}

namespace type_proto {
inline constexpr std::uint32_t tensor = 1, sequence = 4, map = 5, opaque = 7, sparse_tensor = 8, optional = 9;
inline constexpr std::uint32_t element = 1, shape = 2;  // of tensor and sparse tensor; element of the others
inline constexpr std::uint32_t map_key = 1, map_value = 2;             // of map
inline constexpr std::uint32_t dim = 1, dim_value = 1, dim_param = 2;  // of a shape, of a dim
}  // namespace type_proto
// NOLINTEND(readability-identifier-naming)

}  // namespace ballast::onnx_file
