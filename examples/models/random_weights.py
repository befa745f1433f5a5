# SPDX-License-Identifier: Apache-2.0
"""Weights for models that are compared."""


def randomize(model):
    """Every parameter and statistic gets numbers that show when it is left out or taken for another one."""
    for name, tensor in model.state_dict().items():
        if not tensor.is_floating_point():
            continue
        norm_scale = tensor.dim() == 1 and name.endswith((".weight", ".running_var"))
        embedding = "embedd" in name or name.endswith(("wte.weight", "wpe.weight", "lm_head.weight"))
        if norm_scale and name.endswith("bn3.weight"):
            tensor.uniform_(0.1, 0.3)  # the end of a branch beside the main way: fifty of them must not make rounding grow
        elif norm_scale:
            tensor.uniform_(0.5, 1.5)
        elif embedding:
            tensor.uniform_(-0.5, 0.5)
        elif tensor.dim() == 1:
            tensor.uniform_(-0.1, 0.1)
        elif tensor.dim() > 1 and not name.endswith("attn.bias"):
            bound = (3 / tensor[0].numel()) ** 0.5  # what keeps the numbers from growing or fading
            tensor.uniform_(-bound, bound)
