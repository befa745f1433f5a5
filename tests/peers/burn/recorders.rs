// SPDX-License-Identifier: Apache-2.0
// Burn up to 0.21: records.
//   save DIR     net and plain, fresh, in every precision and by each recorder of MessagePack; what they compute and hold
//   load FILE…   each file (net… or plain…), and what comes of it
use burn::module::{Module, Param, ParamId};
use burn::nn::{
    attention::{MhaInput, MultiHeadAttention, MultiHeadAttentionConfig}, conv::{Conv2d, Conv2dConfig}, gru::{Gru, GruConfig}, BatchNorm, BatchNormConfig,
    Embedding, EmbeddingConfig, GroupNorm, GroupNormConfig, LayerNorm, LayerNormConfig, Linear, LinearConfig, Lstm, LstmConfig,
};
use burn::record::{
    DoublePrecisionSettings, FullPrecisionSettings, HalfPrecisionSettings, NamedMpkFileRecorder, NamedMpkGzFileRecorder, Recorder,
};
use burn::tensor::{backend::Backend, Bool, Int, Tensor};

mod shared;

pub type Native = burn::backend::NdArray;
pub type Device = burn::backend::ndarray::NdArrayDevice;
pub type Floats<const D: usize> = Tensor<Native, D>;
pub type Ints<const D: usize> = Tensor<Native, D, Int>;
pub type Model = Net<Native>;
pub type Tensors = Plain<Native>;

#[derive(Module, Debug)]
pub struct Net<B: Backend> {
    square: Linear<B>,
    fc: Linear<B>,
    head: Linear<B>,
    embedding: Embedding<B>,
    conv: Conv2d<B>,
    batch: BatchNorm<B>,
    layer: LayerNorm<B>,
    group: GroupNorm<B>,
    lstm: Lstm<B>,
    gru: Gru<B>,
    attention: MultiHeadAttention<B>,
    layers: Vec<Linear<B>>,
}

#[derive(Module, Debug)]
pub struct Plain<B: Backend> {
    one: Param<Tensor<B, 1>>,
    line: Param<Tensor<B, 1>>,
    matrix: Param<Tensor<B, 2>>,
    cube: Param<Tensor<B, 3>>,
    block: Param<Tensor<B, 4>>,
    whole: Param<Tensor<B, 2, Int>>,
    truth: Param<Tensor<B, 1, Bool>>,
}

fn save<M: Module<Native>>(model: &M, stem: String) {
    model.clone().save_file(format!("{stem}-full"), &NamedMpkFileRecorder::<FullPrecisionSettings>::new()).unwrap();
    model.clone().save_file(format!("{stem}-half"), &NamedMpkFileRecorder::<HalfPrecisionSettings>::new()).unwrap();
    model.clone().save_file(format!("{stem}-double"), &NamedMpkFileRecorder::<DoublePrecisionSettings>::new()).unwrap();
    model.clone().save_file(format!("{stem}-packed"), &NamedMpkGzFileRecorder::<FullPrecisionSettings>::new()).unwrap();
}

// Recorders put their own extension behind the name they are given.
fn load<M: Module<Native>>(fresh: M, file: &str, d: &Device) -> Option<M> {
    let record = match file.strip_suffix(".mpk.gz") {
        Some(stem) => NamedMpkGzFileRecorder::<FullPrecisionSettings>::new().load(stem.into(), d),
        None => NamedMpkFileRecorder::<FullPrecisionSettings>::new().load(file.trim_end_matches(".mpk").into(), d),
    };
    match record {
        Ok(record) => Some(fresh.load_record(record)),
        Err(error) => {
            println!("error {}", error.to_string().replace('\n', " "));
            None
        }
    }
}

fn main() {
    let d = Device::default();
    let words: Vec<String> = std::env::args().collect();
    if words[1] == "save" {
        let (net, plain) = (shared::net(&d), shared::plain(1.0, &d));
        println!("file own");
        shared::outputs(&net, &d); // before they are saved: weights are made when they are first used, and a clone makes its own
        shared::tensors(&plain);
        save(&net, format!("{}/net", words[2]));
        save(&plain, format!("{}/plain", words[2]));
        return;
    }
    for file in &words[2..] {
        println!("file {file}");
        if file.rsplit('/').next().unwrap().starts_with("plain") {
            load(shared::plain(0.0, &d), file, &d).iter().for_each(shared::tensors);
        } else {
            load(shared::net(&d), file, &d).iter().for_each(|net| shared::outputs(net, &d));
        }
    }
}
