"""What is put right in 2D before lifting."""
