"""Motion capture and benchmark readers, virtual cameras, augmentation."""
