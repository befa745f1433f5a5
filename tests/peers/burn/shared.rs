// SPDX-License-Identifier: Apache-2.0
// What every Burn computes with the model, and how it says it: `layer f32-bits…` for outputs, `tensor name dims f32-bits…` for tensors.
use super::*;

pub fn net(d: &Device) -> Model {
    Net {
        square: LinearConfig::new(3, 3).init(d),
        fc: LinearConfig::new(3, 2).init(d),
        head: LinearConfig::new(3, 4).with_bias(false).init(d),
        embedding: EmbeddingConfig::new(6, 3).init(d),
        conv: Conv2dConfig::new([2, 4], [3, 3]).init(d),
        batch: BatchNormConfig::new(4).init(d),
        layer: LayerNormConfig::new(4).init(d),
        group: GroupNormConfig::new(2, 4).init(d),
        lstm: LstmConfig::new(3, 4, true).init(d),
        gru: GruConfig::new(3, 4, true).init(d),
        attention: MultiHeadAttentionConfig::new(4, 2).init(d),
        layers: vec![LinearConfig::new(4, 3).init(d), LinearConfig::new(3, 3).init(d)],
    }
}

// Sixteenths: exact in half precision, too. With 0 for `scale` nothing but zeros, so that what a file did not fill is seen.
pub fn plain(scale: f32, d: &Device) -> Tensors {
    Plain {
        one: Param::from_tensor(ramp([1], d).mul_scalar(scale)),
        line: Param::from_tensor(ramp([7], d).mul_scalar(scale)),
        matrix: Param::from_tensor(ramp([3, 5], d).mul_scalar(scale)),
        cube: Param::from_tensor(ramp([2, 1, 4], d).mul_scalar(scale)),
        block: Param::from_tensor(ramp([2, 3, 1, 5], d).mul_scalar(scale)),
        whole: Param::initialized(ParamId::new(), ramp([2, 3], d).mul_scalar(16.0 * scale).int()),
        truth: Param::initialized(ParamId::new(), ramp([5], d).mul_scalar(scale).greater_elem(0.0)),
    }
}

pub fn ramp<const D: usize>(shape: [usize; D], d: &Device) -> Floats<D> {
    let count: usize = shape.iter().product();
    let values: Vec<f32> = (0..count).map(|i| ((i * 7 % 13) as f32) / 16.0 - 0.375).collect();
    Floats::<1>::from_floats(values.as_slice(), d).reshape(shape)
}

fn bits<const D: usize>(t: Floats<D>) -> String {
    t.into_data().iter::<f32>().map(|x| format!("{:08x}", x.to_bits())).collect::<Vec<_>>().join(" ")
}

fn show<const D: usize>(name: &str, t: Floats<D>) {
    println!("{} {}", name, bits(t));
}

pub fn show_tensor<const D: usize>(name: &str, t: Floats<D>) {
    let dims: Vec<String> = t.dims().iter().map(|n| n.to_string()).collect();
    println!("tensor {} {} {}", name, dims.join("x"), bits(t));
}

pub fn tensors(p: &Tensors) {
    show_tensor("one", p.one.val());
    show_tensor("line", p.line.val());
    show_tensor("matrix", p.matrix.val());
    show_tensor("cube", p.cube.val());
    show_tensor("block", p.block.val());
    show_tensor("whole", p.whole.val().float());
    show_tensor("truth", p.truth.val().float());
}

pub fn outputs(n: &Model, d: &Device) {
    let x = ramp([2, 3], d);
    show("square", n.square.forward(x.clone()));
    show("fc", n.fc.forward(x.clone()));
    show("head", n.head.forward(x));
    show("embedding", n.embedding.forward(Ints::<2>::from_data([[1, 4, 5]], d)));
    let image = n.conv.forward(ramp([1, 2, 4, 4], d));
    show("conv", image.clone());
    show("batch", n.batch.forward(image.clone()));
    show("group", n.group.forward(image));
    show("layer", n.layer.forward(ramp([2, 4], d)));
    let sequence = ramp([2, 5, 3], d);
    show("lstm", n.lstm.forward(sequence.clone(), None).0);
    show("gru", n.gru.forward(sequence, None));
    show("attention", n.attention.forward(MhaInput::self_attn(ramp([1, 3, 4], d))).context);
    show("layers", n.layers[1].forward(n.layers[0].forward(ramp([2, 4], d))));
}
