# SPDX-License-Identifier: Apache-2.0
"""The originals of the models that are loaded from folders: transformers' and diffusers', of PyPI, small and with random weights.

originals.py [FOLDER]   writes the first form of each into FOLDER (else into cases/ beside this script): <family>/ with config.json and weights as
                        save_pretrained() writes them, and <family>_case.safetensors with inputs and the original's outputs for them
tests/peers/models.py goes through all forms.
"""
import os
import pathlib
import sys

os.environ["HF_HUB_OFFLINE"] = "1"

import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

from random_weights import randomize  # noqa: E402


def greedy(step, first, count):
    """The most likely tokens after `first`, one after the other, and the logits of all but the last: each computed from all before it."""
    tokens = first
    for _ in range(count):
        logits = step(tokens)
        tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], 1)
    return tokens[:, first.shape[1] :], logits


def llama():
    import transformers

    def case(model, prompts):
        tokens, logits = greedy(lambda tokens: model(tokens, use_cache=False).logits, prompts[:1], 9)
        return {"prompts": prompts, "logits": model(prompts).logits, "tokens": tokens, "generated_logits": logits}

    def form(prompts, **more):
        sizes = dict(vocab_size=61, hidden_size=24, intermediate_size=38, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, max_position_embeddings=64)
        return transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**sizes, **more})), lambda model: case(model, torch.randint(0, 61, prompts))

    stretched = {"rope_type": "llama3", "rope_theta": 500.0, "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}
    yield form((2, 7), tie_word_embeddings=True)
    yield form((3, 1), num_key_value_heads=1, head_dim=10, attention_bias=True, mlp_bias=True)
    yield form((1, 13), num_hidden_layers=3, num_attention_heads=6, num_key_value_heads=6, rope_parameters=stretched, rms_norm_eps=1e-5)


def whisper():
    import transformers

    def case(model, batch, frames, tokens):
        sound, prompts = torch.randn(batch, model.config.num_mel_bins, frames), torch.randint(0, 53, (batch, tokens))
        appended, logits = greedy(lambda tokens: model(input_features=sound[:1], decoder_input_ids=tokens, use_cache=False).logits, prompts[:1], 7)
        return {"sound": sound, "prompts": prompts, "logits": model(input_features=sound, decoder_input_ids=prompts).logits, "tokens": appended, "generated_logits": logits}

    def form(batch, tokens, **more):
        sizes = dict(vocab_size=53, num_mel_bins=5, d_model=16, encoder_layers=2, encoder_attention_heads=2, encoder_ffn_dim=22, decoder_layers=2, decoder_attention_heads=4,
                     decoder_ffn_dim=26, max_source_positions=9, max_target_positions=24, pad_token_id=0, bos_token_id=1, eos_token_id=2, decoder_start_token_id=3)  # fmt: skip
        config = transformers.WhisperConfig(**{**sizes, **more})
        return transformers.WhisperForConditionalGeneration(config), lambda model: case(model, batch, 2 * config.max_source_positions, tokens)

    yield form(2, 4)
    yield form(1, 1, encoder_layers=3, decoder_layers=1, num_mel_bins=7, max_source_positions=13)


def clip():
    import transformers

    def case(model, images, length):
        tokens = torch.randint(3, 40, (3, length))
        tokens[0, 2], tokens[1, -1], tokens[2, 0] = 40, 40, 40  # where each text ends
        said = model(input_ids=tokens, pixel_values=images)
        return {"images": images, "tokens": tokens, "logits": said.logits_per_image, "text_embeds": said.text_embeds, "image_embeds": said.image_embeds}

    def form(batch, length, text=None, vision=None):
        texts = dict(vocab_size=41, hidden_size=12, intermediate_size=20, num_hidden_layers=2, num_attention_heads=2, max_position_embeddings=9, bos_token_id=1, eos_token_id=40)
        visions = dict(hidden_size=15, intermediate_size=22, num_hidden_layers=2, num_attention_heads=3, image_size=11, patch_size=3)
        config = transformers.CLIPConfig(text_config={**texts, **(text or {})}, vision_config={**visions, **(vision or {})}, projection_dim=10)
        sizes = config.vision_config
        return transformers.CLIPModel(config), lambda model: case(model, torch.randn(batch, sizes.num_channels, sizes.image_size, sizes.image_size), length)

    yield form(2, 7)
    yield form(1, 9, text={"eos_token_id": 2, "hidden_act": "gelu"}, vision={"num_channels": 1, "image_size": 8, "patch_size": 4, "hidden_act": "gelu"})


def convnext():
    import transformers

    def form(shape, **more):
        sizes = dict(num_channels=3, patch_size=2, num_stages=3, hidden_sizes=[4, 6, 9], depths=[1, 2, 1], num_labels=5)
        config = transformers.ConvNextConfig(**{**sizes, **more})

        def case(model):
            images = torch.randn(shape)
            return {"images": images, "logits": model(images).logits}

        return transformers.ConvNextForImageClassification(config), case

    yield form((2, 3, 17, 23))
    yield form((1, 1, 41, 33), num_channels=1, patch_size=4, num_stages=4, hidden_sizes=[3, 7, 8, 10], depths=[2, 1, 3, 1], layer_norm_eps=1e-6, num_labels=1000)


def efficientnet():
    import transformers

    def form(shape, **more):
        sizes = dict(num_channels=3, width_coefficient=0.25, depth_coefficient=1.1, depth_divisor=4, hidden_dim=24, kernel_sizes=[3, 5, 3], in_channels=[32, 16, 24],
                     out_channels=[16, 24, 40], strides=[1, 2, 2], num_block_repeats=[1, 2, 1], expand_ratios=[1, 4, 6], depthwise_padding=[], num_labels=5)  # fmt: skip
        config = transformers.EfficientNetConfig(**{**sizes, **more})

        def case(model):
            images = torch.randn(shape)
            return {"images": images, "logits": model(images).logits}

        return transformers.EfficientNetForImageClassification(config), case

    yield form((2, 3, 23, 30), width_coefficient=0.15, hidden_dim=192)
    yield form((1, 1, 33, 17), num_channels=1, width_coefficient=0.3, hidden_dim=384, depth_coefficient=1.8, depthwise_padding=[2], num_labels=10)


def diffusion_unet():
    import diffusers

    def form(batch, height, width, tokens, **more):
        sizes = dict(in_channels=3, out_channels=2, layers_per_block=1, block_out_channels=(4, 6), norm_num_groups=2, cross_attention_dim=5, attention_head_dim=2,
                     down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"), up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"))  # fmt: skip
        model = diffusers.UNet2DConditionModel(**{**sizes, **more})

        def case(model):
            images, times = torch.randn(batch, model.config.in_channels, height, width), torch.linspace(3, 999, batch).floor()
            text = torch.randn(batch, tokens, model.config.cross_attention_dim)
            return {"images": images, "times": times, "text": text, "noise": model(images, times, text).sample}

        return model, case

    yield form(2, 6, 10, 3)
    yield form(1, 11, 14, 5, use_linear_projection=True, layers_per_block=2, block_out_channels=(8, 12, 16), attention_head_dim=(1, 3, 4), freq_shift=1, flip_sin_to_cos=False,
               down_block_types=("DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"), up_block_types=("CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"))  # fmt: skip


def detr():
    import transformers

    def form(batch, height, width, **more):
        sizes = dict(d_model=16, num_queries=5, encoder_layers=2, encoder_attention_heads=2, encoder_ffn_dim=18, decoder_layers=2, decoder_attention_heads=4, decoder_ffn_dim=22, num_labels=3)
        config = transformers.DetrConfig(**{**sizes, **more})

        def case(model):
            images, pixels = torch.randn(batch, 3, height, width), torch.ones(batch, height, width, dtype=torch.bool)
            pixels[-1, height * 2 // 3 :], pixels[-1, :, width * 3 // 4 :] = False, False  # a smaller picture among others
            found = model(images, pixel_mask=pixels.long())
            return {"images": images, "pixels": pixels, "logits": found.logits, "boxes": found.pred_boxes}

        return transformers.DetrForObjectDetection(config), case

    def resnet(**more):
        sizes = dict(embedding_size=6, hidden_sizes=[8, 12, 16, 20], depths=[1, 1, 2, 1], layer_type="bottleneck", out_features=["stage4"])
        return transformers.ResNetConfig(**{**sizes, **more})

    yield form(2, 40, 65, backbone_config=resnet())
    yield form(3, 97, 64, backbone_config=resnet(depths=[2, 1, 1, 1]), d_model=24, decoder_layers=1)
    yield form(1, 75, 90)  # timm's ResNet-50, whole


def mamba():
    import transformers

    def case(model, prompts):
        tokens, logits = greedy(lambda tokens: model(tokens, use_cache=False).logits, prompts[:1], 9)
        return {"prompts": prompts, "logits": model(prompts).logits, "tokens": tokens, "generated_logits": logits}

    def form(prompts, **more):
        sizes = dict(vocab_size=47, hidden_size=14, state_size=5, num_hidden_layers=2, conv_kernel=4, expand=2, time_step_rank=3)
        return transformers.MambaForCausalLM(transformers.MambaConfig(**{**sizes, **more})), lambda model: case(model, torch.randint(0, 47, prompts))

    yield form((2, 7))
    yield form((1, 2), hidden_size=18, expand=3, conv_kernel=3, use_bias=True, use_conv_bias=False, num_hidden_layers=3, time_step_rank="auto")


FAMILIES = [llama, whisper, clip, convnext, efficientnet, diffusion_unet, detr, mamba]


def round_to_bf16(model):
    for tensor in model.state_dict().values():
        if tensor.is_floating_point():
            tensor.copy_(tensor.bfloat16())


def halve(folder):
    """The weights as most of them are published: BF16."""
    for path in folder.glob("*.safetensors"):
        tensors = load_file(path)
        save_file({name: tensor.bfloat16() if tensor.is_floating_point() else tensor for name, tensor in tensors.items()}, path)


def write(folder, model, make_case, seed=1, half=False, **how):
    """A folder as save_pretrained() leaves it, and beside it <folder>_case.safetensors, whose path is returned. With `half`, weights are BF16."""
    torch.manual_seed(seed)
    with torch.no_grad():
        randomize(model.eval())
        if half:
            round_to_bf16(model)
        model.save_pretrained(folder, **how)
        case = make_case(model)
    if half:
        halve(folder)
    (folder / "generation_config.json").unlink(missing_ok=True)
    path = folder.with_name(folder.name + "_case.safetensors")
    save_file({name: value.detach().contiguous().clone() for name, value in case.items()}, path)
    return path


def main():
    target = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else pathlib.Path(__file__).parent / "cases"
    torch.set_num_threads(1)
    for family in FAMILIES:
        write(target / family.__name__, *next(family()))


if __name__ == "__main__":
    main()
