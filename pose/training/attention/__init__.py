"""Attention mechanisms of the laboratory. Importing this package adds them to `pose.lifting.attention.ATTENTIONS`.

To add a mechanism, write a module and add a line below. The tests then cover it automatically.
"""

from pose.lifting.attention import ATTENTIONS
from pose.training.attention.adaptive_span import AdaptiveSpanAttention
from pose.training.attention.blocks import BlockAttention
from pose.training.attention.co_attention import CoAttentionHalves
from pose.training.attention.composed import ComposedAttention, KeyValueAttention, KeyValuePredictAttention
from pose.training.attention.fnet import FNetAttention
from pose.training.attention.multi_dimensional import MultiDimensionalAttention
from pose.training.attention.performer import PerformerAttention
from pose.training.attention.reformer import ReformerAttention
from pose.training.attention.sparse import SparseAttention
from pose.training.attention.transformer_xl import TransformerXLAttention

ATTENTIONS |= {
    "sparse": SparseAttention,
    "adaptive-span": AdaptiveSpanAttention,
    "blocks": BlockAttention,
    "transformer-xl": TransformerXLAttention,
    "reformer": ReformerAttention,
    "performer": PerformerAttention,
    "fnet": FNetAttention,
    "composed": ComposedAttention,
    "multi-dimensional": MultiDimensionalAttention,
    "key-value": KeyValueAttention,
    "key-value-predict": KeyValuePredictAttention,
    "co-attention": CoAttentionHalves,
}
