"""Everything that the laboratory adds to lifters and forecasters by name.

Importing this module makes its attention mechanisms, network forms and forecasters selectable. Commands that train,
evaluate or export do so, and commands that load a checkpoint file.
"""

from pose.training import attention, forecast_recurrent, forms

__all__ = ["attention", "forecast_recurrent", "forms"]
