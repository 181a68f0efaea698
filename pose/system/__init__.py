"""What the machine gives: devices, threads, quiet libraries."""
