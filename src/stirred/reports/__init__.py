"""Every figure, drawn from data that the other rooms make."""
