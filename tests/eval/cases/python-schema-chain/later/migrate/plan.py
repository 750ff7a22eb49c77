STEPS = ["add", "copy", "switch", "drop"]
