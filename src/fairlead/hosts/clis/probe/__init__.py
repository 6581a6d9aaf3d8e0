"""Running an agent CLI against a scripted model on loopback, to see what it really does with hooks."""
