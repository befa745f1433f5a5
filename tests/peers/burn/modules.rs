// SPDX-License-Identifier: Apache-2.0
// Burn 0.22 and later: Burnpack, Safetensors and PyTorch's files.
//   save DIR     net and plain, fresh, in every format it writes, and a pack of quantized tensors; what they compute and hold
//   load FILE…   each file (net…, plain… or quantized…; torch… is a net in PyTorch's layout), and what comes of it
use burn::module::{Module, Param, ParamId};
use burn::nn::{
    attention::{MhaInput, MultiHeadAttention, MultiHeadAttentionConfig}, conv::{Conv2d, Conv2dConfig}, gru::{Gru, GruConfig}, BatchNorm, BatchNormConfig,
    Embedding, EmbeddingConfig, GroupNorm, GroupNormConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig, Lstm, LstmConfig,
};
use burn::tensor::{Bool, Int, Tensor};
use burn_store::{BurnToPyTorchAdapter, ModuleSnapshot, PyTorchToBurnAdapter, SafetensorsStore};

mod quantized;
mod shared;

pub type Device = burn::tensor::Device;
pub type Floats<const D: usize> = Tensor<D>;
pub type Ints<const D: usize> = Tensor<D, Int>;
pub type Model = Net;
pub type Tensors = Plain;

#[derive(Module, Debug)]
pub struct Net {
    square: Linear,
    fc: Linear,
    head: Linear,
    embedding: Embedding,
    conv: Conv2d,
    batch: BatchNorm,
    layer: LayerNorm,
    group: GroupNorm,
    lstm: Lstm,
    gru: Gru,
    attention: MultiHeadAttention,
    layers: Vec<Linear>,
}

#[derive(Module, Debug)]
pub struct Plain {
    one: Param<Tensor<1>>,
    line: Param<Tensor<1>>,
    matrix: Param<Tensor<2>>,
    cube: Param<Tensor<3>>,
    block: Param<Tensor<4>>,
    whole: Param<Tensor<2, Int>>,
    truth: Param<Tensor<1, Bool>>,
}

fn save<M: Module>(model: &M, folder: &str, name: &str) {
    model.clone().save_file(format!("{folder}/{name}.bpk")).unwrap();
    let mut store = SafetensorsStore::from_file(format!("{folder}/{name}.safetensors"));
    model.save_into(&mut store).unwrap();
}

fn said<E: std::fmt::Display>(error: E) {
    println!("error {}", error.to_string().replace('\n', " "));
}

fn load<M: Module>(fresh: M, file: &str, adapted: bool) -> Option<M> {
    if file.ends_with(".bpk") {
        return fresh.try_load_file(file).map_err(said).ok();
    }
    let mut model = fresh;
    let store = SafetensorsStore::from_file(file);
    let mut store = if adapted { store.with_from_adapter(PyTorchToBurnAdapter) } else { store };
    model.load_from(&mut store).map_err(said).ok().map(|_| model)
}

fn main() {
    let d = Device::default();
    let words: Vec<String> = std::env::args().collect();
    if words[1] == "save" {
        let (net, plain) = (shared::net(&d), shared::plain(1.0, &d));
        println!("file own");
        shared::outputs(&net, &d); // before they are saved: weights are made when they are first used, and a clone makes its own
        shared::tensors(&plain);
        save(&net, &words[2], "net");
        save(&plain, &words[2], "plain");
        let mut store = SafetensorsStore::from_file(format!("{}/torch.safetensors", words[2])).with_to_adapter(BurnToPyTorchAdapter);
        net.save_into(&mut store).unwrap();
        let packed = quantized::quantized(&d);
        println!("file quantized.bpk");
        quantized::show(&packed);
        packed.save_file(format!("{}/quantized.bpk", words[2])).unwrap();
        return;
    }
    for file in &words[2..] {
        println!("file {file}");
        let name = file.rsplit('/').next().unwrap();
        if name.starts_with("plain") {
            load(shared::plain(0.0, &d), file, false).iter().for_each(shared::tensors);
        } else if name.starts_with("quantized") {
            load(quantized::zeros(&d), file, false).iter().for_each(quantized::show);
        } else {
            load(shared::net(&d), file, name.starts_with("torch")).iter().for_each(|net| shared::outputs(net, &d));
        }
    }
}
