"""Network inference: sessions, inputs, crops, and model families shared by several stages."""
