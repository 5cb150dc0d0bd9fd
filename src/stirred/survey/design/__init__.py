"""What a sampling design does to estimates and to privacy: standard errors, selections, amplification."""
