// SPDX-License-Identifier: Apache-2.0
#include "ops/rnn_steps.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "ops/args.h"
#include "ops/gemm.h"
#include "ops/kernels.h"
#include "ops/memory.h"
#include "ops/parallel.h"

namespace ballast::ops {
namespace {

// The values of one direction that every step changes.
class DirectionRun {
 public:
  DirectionRun(Cell kind, Direction& direction, Tensor& out, std::int64_t offset)
      : kind_(kind),
        cell_(*direction.cell),
        backward_(direction.backward),
        steps_(out.shape()[0]),
        batch_(out.shape()[1]),
        row_(out.shape()[2]),
        width_(gates_of(kind) * cell_.hidden),
        gates_(data_of(direction.gates)),
        hidden_(data_of(direction.hidden)),
        state_(direction.state.defined() ? data_of(direction.state) : nullptr),
        out_(data_of(out) + offset),
        memory_(new_floats({2, PackedRows::floats_for(batch_, cell_.output)})),
        packed_{PackedRows(batch_, cell_.output, data_of(memory_)),
                PackedRows(batch_, cell_.output, data_of(memory_) + memory_.shape()[1])} {
    packed_[0].fill(hidden_);
    if (kind == Cell::gru) recurrent_ = new_floats({batch_, width_});
    if (cell_.weight_hr.defined()) projected_ = new_floats({batch_, cell_.hidden});
  }

  [[nodiscard]] std::int64_t panels() const { return (cell_.hidden + panel_columns() - 1) / panel_columns(); }
  [[nodiscard]] std::int64_t work() const { return batch_ * cell_.output * width_; }

  // The hidden values of some panels' columns, in all samples.
  void run_panels(std::int64_t step, std::int64_t begin, std::int64_t end) {
    const std::int64_t first = begin * panel_columns();
    const std::int64_t count = std::min(end * panel_columns(), cell_.hidden) - first;
    float* own = gates_ + place(step) * batch_ * width_;
    const bool gru = kind_ == Cell::gru;
    float* sums = gru ? data_of(recurrent_) : own;
    for (std::int64_t gate = 0; gate < gates_of(kind_); ++gate) {
      for (std::int64_t panel = begin; panel < end; ++panel) {
        float* to = sums + gate * cell_.hidden + panel * panel_columns();
        multiply_panel(before(step), (*cell_.packed_hh)[static_cast<std::size_t>(gate)], panel,
                       {to, width_, !gru});
      }
    }
    float* values = projected_.defined() ? data_of(projected_) : hidden_;
    for (std::int64_t b = 0; b < batch_; ++b) {
      float* value = values + b * cell_.hidden + first;
      apply_gates(own + b * width_ + first, sums + b * width_ + first, b, first, value, count);
      if (!projected_.defined()) keep(step, b, first, value, count);
    }
  }

  // What only the whole of a step's values can give.
  void finish(std::int64_t step) {
    if (!projected_.defined()) return;
    gemm({data_of(projected_), batch_, cell_.hidden, cell_.hidden, 1}, matrix_of(cell_.weight_hr), hidden_,
         cell_.output);
    after(step).fill(hidden_);
    for (std::int64_t b = 0; b < batch_; ++b) write_out(step, b, 0, hidden_ + b * cell_.output, cell_.output);
  }

 private:
  [[nodiscard]] std::int64_t place(std::int64_t step) const { return backward_ ? steps_ - 1 - step : step; }
  // Threads read the values of the step before while others write this one's.
  [[nodiscard]] const PackedRows& before(std::int64_t step) const {
    return packed_[static_cast<std::size_t>(step % 2)];
  }
  [[nodiscard]] const PackedRows& after(std::int64_t step) const { return before(step + 1); }

  void apply_gates(float* own, float* back, std::int64_t sample, std::int64_t first, float* value,
                   std::int64_t count) {
    switch (kind_) {
      case Cell::lstm:
        return kernels().lstm_gates(own, cell_.hidden, state_ + sample * cell_.hidden + first, value, count);
      case Cell::gru: {
        const auto sum = kernels().binary[static_cast<std::size_t>(Binary::add)];
        for (std::int64_t gate = 0; cell_.bias_hh.defined() && gate < gates_of(kind_); ++gate) {
          float* to = back + gate * cell_.hidden;
          sum(to, 1, data_of(cell_.bias_hh) + gate * cell_.hidden + first, 1, to, count);
        }
        return kernels().gru_gates(own, back, cell_.hidden, value, count);
      }
      case Cell::rnn_tanh:
        return kernels().unary[static_cast<std::size_t>(Unary::tanh)](own, value, count, 0, 0);
      case Cell::rnn_relu:
        return kernels().unary[static_cast<std::size_t>(Unary::relu)](own, value, count, 0, 0);
    }
  }

  void keep(std::int64_t step, std::int64_t sample, std::int64_t first, const float* values,
            std::int64_t count) {
    after(step).put(sample, first, values, count);
    write_out(step, sample, first, values, count);
  }

  void write_out(std::int64_t step, std::int64_t sample, std::int64_t first, const float* values,
                 std::int64_t count) {
    std::memcpy(out_ + (place(step) * batch_ + sample) * row_ + first, values,
                static_cast<std::size_t>(count) * sizeof(float));
  }

  Cell kind_;
  const PreparedCell& cell_;
  bool backward_;
  std::int64_t steps_;
  std::int64_t batch_;
  std::int64_t row_;    // of the output
  std::int64_t width_;  // of the gates
  float* gates_;
  float* hidden_;
  float* state_;
  float* out_;
  Tensor memory_;
  std::array<PackedRows, 2> packed_;  // hidden values as products read them, of even and odd steps
  Tensor recurrent_;                  // GRU's products of a step
  Tensor projected_;                  // hidden values before the projection
};

// Direction by direction: one's weights may fit where two's do not.
void run_alone(DirectionRun& run, std::int64_t steps) {
  for (std::int64_t step = 0; step < steps; ++step) {
    run.run_panels(step, 0, run.panels());
    run.finish(step);
  }
}

void run_together(std::vector<DirectionRun>& runs, std::int64_t steps) {
  const std::int64_t panels = runs.front().panels();  // all directions have the same sizes
  for (std::int64_t step = 0; step < steps; ++step) {
    parallel(panels * static_cast<std::int64_t>(runs.size()), 1, [&](std::int64_t begin, std::int64_t end) {
      while (begin < end) {
        const std::int64_t own = begin / panels;
        const std::int64_t last = std::min(end, (own + 1) * panels);
        runs[static_cast<std::size_t>(own)].run_panels(step, begin - own * panels, last - own * panels);
        begin = last;
      }
    });
    for (DirectionRun& run : runs) run.finish(step);
  }
}

}  // namespace

std::int64_t gates_of(Cell cell) {
  return cell == Cell::lstm ? 4 : (cell == Cell::gru ? 3 : 1);
}

void run_steps(Cell cell, std::vector<Direction>& directions, Tensor& out) {
  std::vector<DirectionRun> runs;
  runs.reserve(directions.size());
  std::int64_t work = 0;
  std::int64_t offset = 0;
  for (Direction& direction : directions) {
    runs.emplace_back(cell, direction, out, offset);
    offset += direction.cell->output;
    work += runs.back().work();
  }
  if (usable_threads() == 1 || work < kThreadedProduct)
    for (DirectionRun& run : runs) run_alone(run, out.shape()[0]);
  else
    run_together(runs, out.shape()[0]);
}

}  // namespace ballast::ops
