// SPDX-License-Identifier: Apache-2.0
// What Burn's own readers find in files, without a model: pytorch-reader in .pt, burn-pack in .bpk.
//   files FILE…          for each: `tensor name dtype dims bytes-in-hex`, by name; or `error text`
//   files copy IN OUT    a .bpk as burn-pack writes it
use std::collections::BTreeMap;

type Rows = BTreeMap<String, (String, Vec<usize>, Vec<u8>)>;

fn from_pytorch(file: &str) -> Result<Rows, String> {
    let tensors = pytorch_reader::PytorchReader::new(file).map_err(|e| e.to_string())?.into_tensors();
    let row = |t: &pytorch_reader::Tensor| Ok::<_, String>((format!("{:?}", t.dtype()), t.shape().to_vec(), t.read().map_err(|e| e.to_string())?));
    tensors.iter().map(|(name, t)| Ok((name.clone(), row(t)?))).collect()
}

fn from_burnpack(file: &str) -> Result<Rows, String> {
    let tensors = burn_pack::Reader::from_file(file).and_then(|reader| reader.into_tensors()).map_err(|e| e.to_string())?;
    let row = |t: &burn_pack::Tensor| Ok::<_, String>((format!("{:?}", t.dtype), t.shape.to_vec(), t.to_bytes().map_err(|e| e.to_string())?.to_vec()));
    tensors.iter().map(|t| Ok((t.name.clone(), row(t)?))).collect()
}

fn copy(from: &str, to: &str) -> Result<(), burn_pack::Error> {
    burn_pack::Writer::new(burn_pack::Reader::from_file(from)?.into_tensors()?).write_to_file(to)
}

fn main() {
    let words: Vec<String> = std::env::args().collect();
    if words[1] == "copy" {
        return copy(&words[2], &words[3]).unwrap();
    }
    for file in std::env::args().skip(1) {
        println!("file {file}");
        let found = if file.ends_with(".bpk") { from_burnpack(&file) } else { from_pytorch(&file) };
        match found {
            Ok(rows) => {
                for (name, (dtype, dims, bytes)) in rows {
                    let dims: Vec<String> = dims.iter().map(|n| n.to_string()).collect();
                    let hex: String = bytes.iter().map(|b| format!("{b:02x}")).collect();
                    println!("tensor\t{name}\t{dtype}\t{}\t{hex}", dims.join("x"));
                }
            }
            Err(text) => println!("error {}", text.replace('\n', " ")),
        }
    }
}
