"""The sentences of explanations: their texts and numbers, and which of them are true of a guarantee."""
