"""Integer tables fitted to the noisy measurements from the root down, with everything kept that a plan keeps
exactly."""
