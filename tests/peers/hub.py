# SPDX-License-Identifier: Apache-2.0
"""hub.py: programs of the Hugging Face world, run with the published safetensors and again under ballast.compat: the same files, the same tensors.

    hub.py                              both, and the comparison
    hub.py published|ballast FOLDER     the programs once; prints what they loaded
"""
import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

import torch

os.environ["HF_HUB_OFFLINE"] = "1"


def bert():
    import transformers

    torch.manual_seed(1)
    config = transformers.BertConfig(vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24, max_position_embeddings=16)
    return transformers.BertForMaskedLM(config)  # its head is tied to its embedding


def blank():
    """Zeros, so that what a file did not fill is seen."""
    model = bert()
    for parameter in model.parameters():
        parameter.data.zero_()
    return model


def transformers_whole(folder):
    bert().save_pretrained(folder)
    return type(bert()).from_pretrained(folder).state_dict()


def transformers_shards(folder):
    bert().save_pretrained(folder, max_shard_size="8KB")
    assert len(list(folder.glob("*.safetensors"))) > 1
    return type(bert()).from_pretrained(folder).state_dict()


def transformers_half(folder):
    bert().to(torch.bfloat16).save_pretrained(folder)
    return type(bert()).from_pretrained(folder, dtype=torch.bfloat16).state_dict()


def hub_model(folder):
    import huggingface_hub

    huggingface_hub.save_torch_model(bert(), folder)
    model = blank()
    huggingface_hub.load_torch_model(model, folder)
    return model.state_dict()


def accelerate_model(folder):
    import accelerate

    accelerate.Accelerator().save_model(bert(), folder, max_shard_size="8KB")
    model = blank()
    accelerate.load_checkpoint_in_model(model, str(folder))
    return model.state_dict()


def peft_adapter(folder):
    import peft

    torch.manual_seed(2)
    model = peft.get_peft_model(bert(), peft.LoraConfig(r=2, target_modules=["query", "value"], init_lora_weights=False))
    model.save_pretrained(folder)
    return peft.PeftModel.from_pretrained(bert(), folder).state_dict()


def unet():
    import diffusers

    torch.manual_seed(3)
    return diffusers.UNet2DConditionModel(
        sample_size=8, in_channels=2, out_channels=2, layers_per_block=1, block_out_channels=(4, 8), norm_num_groups=2, cross_attention_dim=8, attention_head_dim=2,
        down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    )  # fmt: skip


def diffusers_model(folder):
    unet().save_pretrained(folder)
    return type(unet()).from_pretrained(folder).state_dict()


def diffusers_lora(folder):
    import peft

    model = unet()
    model.add_adapter(peft.LoraConfig(r=2, target_modules=["to_q", "to_v"], init_lora_weights=False))
    model.save_lora_adapter(folder)
    other = unet()
    other.load_lora_adapter(folder, prefix=None, weight_name="pytorch_lora_weights.safetensors", use_safetensors=True)
    return other.state_dict()


PROGRAMS = [transformers_whole, transformers_shards, transformers_half, hub_model, accelerate_model, peft_adapter, diffusers_model, diffusers_lora]


def require_filled(tensors):
    zeros = [name for name, tensor in tensors.items() if "embeddings.weight" in name and not tensor.any()]
    if zeros:
        raise AssertionError(f"nothing was loaded into {zeros}")


def digest(tensor):
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return f"{tensor.dtype} {list(tensor.shape)} {hashlib.sha256(flat.view(torch.uint8).numpy().tobytes()).hexdigest()}"


def file_digest(path):
    """All of it but the order of the metadata, which the published package draws by lot."""
    data = path.read_bytes()
    end = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:end])
    header["__metadata__"] = sorted(header.get("__metadata__", {}).items())
    return hashlib.sha256(json.dumps(header).encode() + data[end:]).hexdigest()


def run_all(folder):
    for program in PROGRAMS:
        place = folder / program.__name__
        place.mkdir(parents=True)
        try:
            loaded = {name: tensor for name, tensor in program(place).items() if torch.is_tensor(tensor)}
            require_filled(loaded)
            found = {name: digest(tensor) for name, tensor in loaded.items()}
        except Exception as error:
            found = {"error": f"{type(error).__name__}: {error}"}
        for path in place.rglob("*.safetensors"):
            found[str(path.relative_to(place))] = file_digest(path)
        print("RESULT " + json.dumps([program.__name__, found]), flush=True)


def results_of(which, folder):
    environment = {**os.environ, "PYTHONHASHSEED": "0"}  # sets are written in their order
    done = subprocess.run([sys.executable, "-B", __file__, which, str(folder / which)], capture_output=True, text=True, env=environment)
    return dict(json.loads(line[7:]) for line in done.stdout.splitlines() if line.startswith("RESULT ")), done.stderr


def main():
    if len(sys.argv) > 2:
        if sys.argv[1] == "ballast":
            import ballast.compat

            ballast.compat.install()
        run_all(pathlib.Path(sys.argv[2]))
        return
    from exchange import Direction

    with tempfile.TemporaryDirectory() as name:
        published, _ = results_of("published", pathlib.Path(name))
        ours, said = results_of("ballast", pathlib.Path(name))
    for program in (function.__name__ for function in PROGRAMS):
        direction = Direction("programs under ballast.compat", program.replace("_", " "))
        wanted, found = published.get(program, {"error": "it ended"}), ours.get(program, {"error": said[-300:]})
        if "error" in wanted:
            direction.refused[wanted["error"]] += 1
        else:
            direction.same += sum(found.get(key) == value for key, value in wanted.items())
            direction.different += [f"{program}: {found.get('error', key)}" for key, value in wanted.items() if found.get(key) != value]
        print(json.dumps(direction.line()))


if __name__ == "__main__":
    main()
