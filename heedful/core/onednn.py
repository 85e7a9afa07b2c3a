"""oneDNN, the library by which torch multiplies matrices on a CPU where MKL is not the faster one."""

import torch


def onednn_knows(dtype: torch.dtype) -> bool:
    """Whether oneDNN is there and knows such numbers on this CPU."""
    if not torch.backends.mkldnn.is_available():
        return False
    return dtype == torch.float32 or (dtype == torch.bfloat16 and torch.ops.mkldnn._is_mkldnn_bf16_supported())
