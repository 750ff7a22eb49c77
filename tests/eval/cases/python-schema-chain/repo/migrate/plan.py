STEPS = []
