"""Operating system and hardware: devices, threads, files, archives."""
