"""What a sampling design does to estimates and to privacy: variances, selections, amplification."""
