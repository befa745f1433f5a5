# SPDX-License-Identifier: Apache-2.0
"""BERT with a classifier in PyTorch, under the names Hugging Face gives its parameters: what bert.h is compared with."""
import torch
from torch import nn
from torch.nn import functional as F


class Embeddings(nn.Module):
    def __init__(self, config):
        super().__init__()
        size = config["hidden_size"]
        self.word_embeddings = nn.Embedding(config["vocab_size"], size)
        self.position_embeddings = nn.Embedding(config["max_position_embeddings"], size)
        self.token_type_embeddings = nn.Embedding(config["type_vocab_size"], size)
        self.LayerNorm = nn.LayerNorm(size, eps=1e-12)

    def forward(self, tokens, types):
        positions = self.position_embeddings(torch.arange(tokens.shape[1]))
        return self.LayerNorm(self.word_embeddings(tokens) + self.token_type_embeddings(types) + positions)


class SelfAttention(nn.Module):
    def __init__(self, size, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(size, size)
        self.key = nn.Linear(size, size)
        self.value = nn.Linear(size, size)

    def forward(self, x, words):
        batch, count, size = x.shape
        query, key, value = (layer(x).view(batch, count, self.heads, -1).transpose(1, 2)
                             for layer in (self.query, self.key, self.value))
        scores = query @ key.transpose(2, 3) / query.shape[-1] ** 0.5
        scores = scores.masked_fill(~words[:, None, None, :], float("-inf"))
        return (scores.softmax(-1) @ value).transpose(1, 2).reshape(batch, count, size)


class Output(nn.Module):
    def __init__(self, inputs, size):
        super().__init__()
        self.dense = nn.Linear(inputs, size)
        self.LayerNorm = nn.LayerNorm(size, eps=1e-12)

    def forward(self, x, residual):
        return self.LayerNorm(self.dense(x) + residual)


class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        size = config["hidden_size"]
        self.attention = nn.ModuleDict({"self": SelfAttention(size, config["num_attention_heads"]),
                                        "output": Output(size, size)})
        self.intermediate = nn.ModuleDict({"dense": nn.Linear(size, config["intermediate_size"])})
        self.output = Output(config["intermediate_size"], size)

    def forward(self, x, words):
        x = self.attention["output"](self.attention["self"](x, words), x)
        return self.output(F.gelu(self.intermediate["dense"](x)), x)


class BertForSequenceClassification(nn.Module):
    def __init__(self, config):
        super().__init__()
        size = config["hidden_size"]
        layers = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))
        self.bert = nn.ModuleDict({"embeddings": Embeddings(config),
                                   "encoder": nn.ModuleDict({"layer": layers}),
                                   "pooler": nn.ModuleDict({"dense": nn.Linear(size, size)})})
        self.classifier = nn.Linear(size, config["num_labels"])

    def forward(self, tokens, types, words):
        x = self.bert["embeddings"](tokens, types)
        for layer in self.bert["encoder"]["layer"]:
            x = layer(x, words)
        return self.classifier(torch.tanh(self.bert["pooler"]["dense"](x[:, 0])))
