// SPDX-License-Identifier: Apache-2.0
// A matrix in every scheme of quantization that this Burn can compute: values × stores × scales. What its backend has no code for is left out.
use burn::module::{Module, Param};
use burn::tensor::quantization::{QuantScheme, QuantStore, QuantValue, ScaleDtype};
use burn::tensor::Tensor;

use super::Device;

#[derive(Module, Debug)]
pub struct Quantized {
    all: Vec<Param<Tensor<2>>>,
}

fn schemes() -> Vec<QuantScheme> {
    use QuantStore::{Native, PackedNative, PackedU32};
    use QuantValue::{E2M1, E4M3, E5M2, Q2F, Q2S, Q4F, Q4S, Q8F, Q8S};
    use ScaleDtype::{BF16, F16, F32, UE4M3, UE8M0};
    let mut all = vec![];
    for value in [Q8S, Q8F, Q4S, Q4F, Q2S, Q2F, E4M3, E5M2, E2M1] {
        for store in [Native, PackedU32(0), PackedU32(1), PackedNative(0), PackedNative(1)] {
            let plain = QuantScheme::default().with_value(value).with_store(store);
            all.push(plain);
            for scale in [F32, F16, BF16, UE4M3, UE8M0] {
                all.extend([plain.per_tensor(scale), plain.per_block([4], scale), plain.per_block([5, 2], scale)]);
            }
            all.extend([plain.per_block([4], UE4M3).per_tensor(F32), plain.per_block([5, 2], F16).per_tensor(F32)]);
        }
    }
    all
}

// Odd values, so that scales are no whole numbers; two shapes: lines of words that are full, and lines that are not.
fn matrix(shape: [usize; 2], d: &Device) -> Tensor<2> {
    let values: Vec<f32> = (0..shape[0] * shape[1]).map(|i| ((i * 37 % 101) as f32 - 50.3) / 7.7 * (1.0 + i as f32 / 16.0)).collect();
    Tensor::<1>::from_floats(values.as_slice(), d).reshape(shape)
}

pub fn quantized(d: &Device) -> Quantized {
    std::panic::set_hook(Box::new(|_| {})); // backends say by a panic what they do not have
    let mut all = vec![];
    for scheme in schemes() {
        for shape in [[20, 16], [15, 12]] {
            let step = || {
                let made = matrix(shape, d).quantize_dynamic(&scheme);
                let _ = (made.clone().into_data(), made.clone().dequantize().into_data());
                made
            };
            if let Ok(made) = std::panic::catch_unwind(std::panic::AssertUnwindSafe(step)) {
                all.push(Param::from_tensor(made));
            }
        }
    }
    let _ = std::panic::take_hook();
    Quantized { all }
}

// As many plain ones, for files in which they are no longer quantized.
pub fn zeros(d: &Device) -> Quantized {
    let plain = |t: &Param<Tensor<2>>| Param::from_tensor(Tensor::zeros(t.val().dims(), d));
    Quantized { all: quantized(d).all.iter().map(plain).collect() }
}

pub fn show(q: &Quantized) {
    for (number, t) in q.all.iter().enumerate() {
        super::shared::show_tensor(&format!("all.{number}"), t.val().dequantize());
    }
}
