# SPDX-License-Identifier: Apache-2.0
"""GPT-2 in PyTorch, under the names Hugging Face gives its parameters: what gpt2.h is compared with."""
import torch
from torch import nn
from torch.nn import functional as F


class Conv1D(nn.Module):
    """A linear map whose weight is stored [in, out]."""

    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(inputs, outputs))
        self.bias = nn.Parameter(torch.zeros(outputs))

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(nn.Module):
    def __init__(self, config):
        super().__init__()
        size, positions = config["n_embd"], config["n_positions"]
        self.heads = config["n_head"]
        self.c_attn = Conv1D(size, 3 * size)
        self.c_proj = Conv1D(size, size)
        self.register_buffer("bias", torch.ones(1, 1, positions, positions).tril())

    def forward(self, x):
        batch, count, size = x.shape
        query, key, value = (part.view(batch, count, self.heads, -1).transpose(1, 2)
                             for part in self.c_attn(x).split(size, 2))
        scores = query @ key.transpose(2, 3) / query.shape[-1] ** 0.5
        scores = scores.masked_fill(self.bias[:, :, :count, :count] == 0, float("-inf"))
        return self.c_proj((scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, count, size))


class MLP(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.c_fc = Conv1D(size, 4 * size)
        self.c_proj = Conv1D(4 * size, size)

    def forward(self, x):
        return self.c_proj(F.gelu(self.c_fc(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.ln_1 = nn.LayerNorm(config["n_embd"])
        self.attn = Attention(config)
        self.ln_2 = nn.LayerNorm(config["n_embd"])
        self.mlp = MLP(config["n_embd"])

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


class Gpt2(nn.Module):
    def __init__(self, config):
        super().__init__()
        size = config["n_embd"]
        self.transformer = nn.ModuleDict({
            "wte": nn.Embedding(config["vocab_size"], size),
            "wpe": nn.Embedding(config["n_positions"], size),
            "h": nn.ModuleList(Block(config) for _ in range(config["n_layer"])),
            "ln_f": nn.LayerNorm(size)})
        self.lm_head = nn.Linear(size, config["vocab_size"], bias=False)
        self.lm_head.weight = self.transformer["wte"].weight

    def forward(self, tokens):
        x = self.transformer["wte"](tokens) + self.transformer["wpe"](torch.arange(tokens.shape[1]))
        for block in self.transformer["h"]:
            x = block(x)
        return self.lm_head(self.transformer["ln_f"](x))

    def generate(self, prompt, count):
        """The most likely tokens, one after the other, each computed from all before it; and the last one's logits."""
        tokens = prompt
        for _ in range(count):
            logits = self(tokens)[:, -1]
            tokens = torch.cat([tokens, logits.argmax(-1, keepdim=True)], 1)
        return tokens[:, prompt.shape[1]:], logits
