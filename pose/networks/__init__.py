"""Running networks: sessions, inputs, crops, model families that several stages share."""
