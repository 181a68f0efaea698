"""What a lifter can learn of 2D poses alone: hidden ones, the next one, any from any others."""
