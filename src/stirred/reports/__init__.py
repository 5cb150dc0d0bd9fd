"""Draw figures and write pages from data that the other packages compute."""
