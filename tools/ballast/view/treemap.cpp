// SPDX-License-Identifier: Apache-2.0
// files/F/treemap: all below a piece of the names as rectangles, laid out here so that a page of any machine
// can draw 100,000 tensors. Squarified (Bruls, Huizing, van Wijk 2000): rows of boxes as square as can be.
#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <queue>
#include <span>

#include "view/app.h"

namespace tool::view {
namespace {

constexpr std::size_t kMostBoxes = 4000;
constexpr double kSmallestSide = 3;  // pixels: what is smaller is drawn as its group

struct BoxRect {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;
};

struct MapItem {
  double weight;
  bool is_tensor;
  std::uint32_t at;
};

class Treemap {
 public:
  /// `values`: what tensors are coloured by; none at all, or one for each.
  Treemap(const Document& document, const NameTree& tree, bool by_bytes, std::vector<float> values)
      : document_(document), tree_(tree), by_bytes_(by_bytes), values_(std::move(values)) {}

  // The largest first: when there are enough boxes, what is left is small, and drawn as groups.
  void lay_out(std::uint32_t root, const BoxRect& where) {
    Queue waiting;
    waiting.push({root, where});
    while (!waiting.empty()) {
      const Waiting next = waiting.top();
      waiting.pop();
      if (where_fits(next.rect) && boxes_ + waiting.size() < kMostBoxes)
        split(next, waiting);
      else
        put(-1, next.node, next.rect);
    }
  }

  [[nodiscard]] std::string bytes() const {
    Json head = {{"groups", Json::array()}, {"dtypes", Json::array()}, {"rest", rest_}};
    for (const std::uint32_t group : groups_) head["groups"].push_back(tree_.path_of(group));
    for (const ballast::DType dtype : dtypes_) head["dtypes"].push_back(ballast::info(dtype).code);
    std::string text = to_text(head);
    text.append((4 - text.size() % 4) % 4, ' ');
    const auto size = static_cast<std::uint32_t>(text.size());
    std::string out(reinterpret_cast<const char*>(&size), sizeof size);
    out += text;
    out.append(reinterpret_cast<const char*>(numbers_.data()), numbers_.size() * sizeof(std::int32_t));
    return out;
  }

 private:
  struct Waiting {
    std::uint32_t node;
    BoxRect rect;
  };

  struct IsSmaller {
    bool operator()(const Waiting& a, const Waiting& b) const { return area(a.rect) < area(b.rect); }
  };

  using Queue = std::priority_queue<Waiting, std::vector<Waiting>, IsSmaller>;

  static double area(const BoxRect& rect) { return rect.width * rect.height; }

  static bool where_fits(const BoxRect& rect) {
    return rect.width >= kSmallestSide && rect.height >= kSmallestSide;
  }

  [[nodiscard]] double weight_of(const NameNode& node) const {
    return static_cast<double>(by_bytes_ ? node.bytes : node.parameters);
  }

  // A tensor under a second name has no room of its own.
  [[nodiscard]] double weight_of(const Row& row) const {
    if (!row.tied_to.empty()) return 0;
    return static_cast<double>(by_bytes_ ? row.bytes : row.parameters);
  }

  [[nodiscard]] std::vector<MapItem> items_of(std::uint32_t node) const {
    std::vector<MapItem> items;
    for (const std::uint32_t tensor : tree_[node].tensors)
      items.push_back({weight_of(document_.rows()[tensor]), true, tensor});
    for (const std::uint32_t top : tree_[node].children) {
      const std::uint32_t child = tree_.end_of_chain(top);
      const NameNode& below = tree_[child];
      if (below.children.empty() && below.tensors.size() == 1)
        items.push_back({weight_of(document_.rows()[below.tensors[0]]), true, below.tensors[0]});
      else
        items.push_back({weight_of(below), false, child});
    }
    std::erase_if(items, [](const MapItem& item) { return item.weight <= 0; });
    std::stable_sort(items.begin(), items.end(),
                     [](const MapItem& a, const MapItem& b) { return a.weight > b.weight; });
    return items;
  }

  static double worst_ratio(double largest, double smallest, double sum, double side) {
    const double squared = side * side;
    return std::max(squared * largest / (sum * sum), sum * sum / (squared * smallest));
  }

  // Rows of boxes along the shorter side of what is left; those too small to see are one box of their group.
  void split(const Waiting& of, Queue& waiting) {
    const std::vector<MapItem> items = items_of(of.node);
    double total = 0;
    for (const MapItem& item : items) total += item.weight;
    if (total <= 0) return;
    const double scale = area(of.rect) / total;
    BoxRect left = of.rect;
    for (std::size_t i = 0; i < items.size();) {
      if (boxes_ + waiting.size() + 1 >= kMostBoxes || !where_fits(left)) {
        rest_ += items.size() - i;
        put(-1, of.node, left);
        return;
      }
      const double side = std::min(left.width, left.height);
      double sum = items[i].weight * scale;
      const double largest = sum;
      std::size_t end = i + 1;
      while (end < items.size()) {
        const double next = items[end].weight * scale;
        const double last = items[end - 1].weight * scale;
        if (worst_ratio(largest, next, sum + next, side) > worst_ratio(largest, last, sum, side)) break;
        sum += next;
        ++end;
      }
      put_row({items.data() + i, end - i}, scale, sum, left, waiting);
      i = end;
    }
  }

  void put_row(std::span<const MapItem> row, double scale, double sum, BoxRect& left, Queue& waiting) {
    const bool is_column = left.width >= left.height;
    const double thickness = sum / (is_column ? left.height : left.width);
    double along = is_column ? left.y : left.x;
    for (const MapItem& item : row) {
      const double length = item.weight * scale / thickness;
      const BoxRect box =
          is_column ? BoxRect{left.x, along, thickness, length} : BoxRect{along, left.y, length, thickness};
      along += length;
      if (item.is_tensor)
        put(static_cast<std::int64_t>(item.at), 0, box);
      else
        waiting.push({item.at, box});
    }
    if (is_column) {
      left.x += thickness;
      left.width -= thickness;
    } else {
      left.y += thickness;
      left.height -= thickness;
    }
  }

  // Edges are rounded, not sizes: neighbours meet.
  void put(std::int64_t tensor, std::uint32_t node, const BoxRect& rect) {
    const auto edge = [](double at) { return static_cast<std::int32_t>(std::lround(at)); };
    const std::int32_t x = edge(rect.x);
    const std::int32_t y = edge(rect.y);
    const std::int32_t width = edge(rect.x + rect.width) - x;
    const std::int32_t height = edge(rect.y + rect.height) - y;
    if (width <= 0 || height <= 0) {
      ++rest_;
      return;
    }
    auto name = static_cast<std::int32_t>(tensor);
    ballast::DType dtype = ballast::DType::f32;
    if (tensor < 0) {
      groups_.push_back(node);
      name = -static_cast<std::int32_t>(groups_.size());
      std::uint64_t most = 0;
      for (const auto& [each, bytes] : tree_[node].dtypes) {
        if (bytes >= most) dtype = each;
        most = std::max(most, bytes);
      }
    } else {
      dtype = document_.rows()[static_cast<std::size_t>(tensor)].dtype;
    }
    const float value = values_.empty() ? std::numeric_limits<float>::quiet_NaN()
                        : tensor < 0    ? largest_below(node)
                                        : values_[static_cast<std::size_t>(tensor)];
    numbers_.insert(numbers_.end(),
                    {x, y, width, height, name, number_of_dtype(dtype), std::bit_cast<std::int32_t>(value)});
    ++boxes_;
  }

  [[nodiscard]] float largest_below(std::uint32_t node) const {
    float most = std::numeric_limits<float>::quiet_NaN();
    for (const std::uint32_t tensor : tree_[node].tensors) most = std::fmax(most, values_[tensor]);
    for (const std::uint32_t child : tree_[node].children) most = std::fmax(most, largest_below(child));
    return most;
  }

  std::int32_t number_of_dtype(ballast::DType dtype) {
    const auto found = std::find(dtypes_.begin(), dtypes_.end(), dtype);
    if (found == dtypes_.end()) dtypes_.push_back(dtype);
    return static_cast<std::int32_t>(std::find(dtypes_.begin(), dtypes_.end(), dtype) - dtypes_.begin());
  }

  const Document& document_;
  const NameTree& tree_;
  bool by_bytes_;
  std::vector<float> values_;
  std::vector<std::uint32_t> groups_;
  std::vector<ballast::DType> dtypes_;
  std::vector<std::int32_t> numbers_;
  std::size_t boxes_ = 0;
  std::uint64_t rest_ = 0;  // too small to see, or too many
};

}  // namespace

Response get_treemap(const Call& call) {
  Document& document = call.document();
  const NameTree& tree = document.tree(call.query.flag("fold", true));
  const std::uint32_t node = tree.find(call.query.text("path"));
  const auto width = static_cast<double>(call.query.number("w", 800, 1, 20'000));
  const auto height = static_cast<double>(call.query.number("h", 600, 1, 20'000));
  Treemap map(document, tree, call.query.one_of("by", {"bytes", "parameters"}) == "bytes",
              measured_by(call, call.query.one_of("colour", {"none", "std", "absmax", "change"})));
  map.lay_out(node, {0, 0, width, height});
  return binary_response(map.bytes());
}

}  // namespace tool::view
