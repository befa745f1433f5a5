"""The models of forward_bench in torch, eager; and as ONNX files for ONNX Runtime."""
import inspect
import pathlib
import sys

import torch
import torch.nn.functional as F
import torchvision
from torch import nn


class Gpt2Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(768), nn.LayerNorm(768)
        # [in, out], multiplied by addmm, as in Hugging Face's Conv1D
        self.weights = nn.ParameterList([nn.Parameter(torch.randn(a, b) * 0.02) for a, b in ((768, 2304), (768, 768), (768, 3072), (3072, 768))])
        self.biases = nn.ParameterList([nn.Parameter(torch.zeros(b)) for b in (2304, 768, 3072, 768)])

    def conv1d(self, i, x):
        return torch.addmm(self.biases[i], x.reshape(-1, x.shape[-1]), self.weights[i]).reshape(*x.shape[:-1], -1)

    def forward(self, x, past, mask):
        batch, length = x.shape[0], x.shape[1]
        q, k, v = (t.reshape(batch, length, 12, 64).transpose(1, 2) for t in self.conv1d(0, self.ln_1(x)).split(768, -1))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        scores = q @ k.transpose(-1, -2) * 0.125
        if length > 1:
            scores = scores + mask
        mixed = (torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(batch, length, 768)
        x = x + self.conv1d(1, mixed)
        return x + self.conv1d(3, F.gelu(self.conv1d(2, self.ln_2(x)), approximate="tanh")), (k, v)


class Gpt2(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(50257, 768), nn.Embedding(1024, 768)
        self.h = nn.ModuleList([Gpt2Block() for _ in range(12)])
        self.ln_f = nn.LayerNorm(768)
        self.register_buffer("mask", torch.full((128, 128), float("-inf")).triu(1))

    def forward(self, tokens, past=None):
        before = 0 if past is None else past[0][0].shape[2]
        x = self.wte(tokens) + self.wpe(torch.arange(before, before + tokens.shape[1]))
        present = []
        for i, block in enumerate(self.h):
            x, keys_values = block(x, None if past is None else past[i], self.mask[:tokens.shape[1], :tokens.shape[1]])
            present.append(keys_values)
        return F.linear(self.ln_f(x), self.wte.weight), present


class Gpt2Logits(nn.Module):
    """For ONNX: flat inputs and outputs."""
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, tokens, *past):
        pairs = None if not past else [(past[2 * i], past[2 * i + 1]) for i in range(12)]
        logits, present = self.model(tokens, pairs)
        return (logits, *[t for pair in present for t in pair]) if past else logits


def mnist():
    return nn.Sequential(nn.Conv2d(1, 32, 3), nn.ReLU(), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(9216, 128), nn.ReLU(),
                         nn.Linear(128, 10), nn.LogSoftmax(-1))


def peers():
    """name: (module, inputs); the names are forward_bench's."""
    torch.manual_seed(0)
    resnet, vit, gpt, small = torchvision.models.resnet50().eval(), torchvision.models.vit_b_16().eval(), Gpt2().eval(), mnist().eval()
    image = torch.randn(1, 3, 224, 224)
    past = [torch.randn(1, 12, 128, 64) for _ in range(24)]
    logits = Gpt2Logits(gpt)
    return {
        "MNIST CNN, batch 1": (small, (torch.randn(1, 1, 28, 28),)),
        "MNIST CNN, batch 64": (small, (torch.randn(64, 1, 28, 28),)),
        "ResNet-50, batch 1": (resnet, (image,)),
        "ResNet-50, batch 1, not fused": (resnet, (image,)),
        "ResNet-50, batch 8": (resnet, (torch.randn(8, 3, 224, 224),)),
        "ViT-B/16, batch 1": (vit, (image,)),
        "GPT-2 small, prefill 128": (logits, (torch.arange(128).reshape(1, 128),)),
        "GPT-2 small, one token after 128": (logits, (torch.zeros(1, 1, dtype=torch.int64), *past)),
    }


def more_peers():
    """The rest of forward_bench's models, for the peers of today."""
    torch.manual_seed(0)
    sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "examples/models"))
    import bert
    import lstm_tagger
    import unet

    base = {"vocab_size": 30522, "max_position_embeddings": 512, "type_vocab_size": 2, "hidden_size": 768, "intermediate_size": 3072, "num_hidden_layers": 12, "num_attention_heads": 12, "num_labels": 2}
    resnet, mobilenet = torchvision.models.resnet18().eval(), torchvision.models.mobilenet_v2().eval()
    tagger, segmenter = lstm_tagger.LstmTagger(10000, 128, 256, 32).eval(), unet.UNet(3, 2, 32, 4).eval()
    logits = Gpt2Logits(Gpt2().eval())
    tokens = torch.arange(128).reshape(1, 128)
    cases = {"BERT base, 128 tokens": (bert.BertForSequenceClassification(base).eval(), (tokens, torch.zeros_like(tokens), torch.ones_like(tokens, dtype=torch.bool)))}
    for batch in (1, 8):
        images, named = torch.randn(batch, 3, 224, 224), ", batch 8" if batch > 1 else ""
        cases |= {
            f"ResNet-18, batch {batch}": (resnet, (images,)),
            f"MobileNet-v2, batch {batch}": (mobilenet, (images,)),
            f"U-Net, 256 x 256, batch {batch}": (segmenter, (torch.randn(batch, 3, 256, 256),)),
            f"LSTM tagger, 64 words{named}": (tagger, (torch.arange(64).expand(batch, 64).contiguous(),)),
        }
    past = [torch.randn(8, 12, 128, 64) for _ in range(24)]
    return cases | {"GPT-2 small, one token after 128, batch 8": (logits, (torch.zeros(8, 1, dtype=torch.int64), *past))}


def export(module, inputs, path):
    # The exporter that traces: the other one needs packages of its own. Old ones do not know the word.
    words = {"dynamo": False} if "dynamo" in inspect.signature(torch.onnx.export).parameters else {}
    # With gradients on, 1.13 leaves out attention's fast path, which it cannot export.
    with torch.enable_grad():
        torch.onnx.export(module, inputs, str(path), opset_version=14, do_constant_folding=True, **words)
