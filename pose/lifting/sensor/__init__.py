"""Network that removes jitter, outliers, swaps and gaps from 3D skeletons of depth cameras."""
