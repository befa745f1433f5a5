# SPDX-License-Identifier: Apache-2.0
"""An LSTM tagger in PyTorch: what lstm_tagger.h is compared with."""
from torch import nn


class LstmTagger(nn.Module):
    def __init__(self, vocabulary, features, hidden, tag_count):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, features)
        self.lstm = nn.LSTM(features, hidden, num_layers=2, batch_first=True, bidirectional=True)
        self.tags = nn.Linear(2 * hidden, tag_count)

    def forward(self, words):
        return self.tags(self.lstm(self.embedding(words))[0])
