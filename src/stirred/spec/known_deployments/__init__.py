"""What is publicly known of real deployments: their names, facts with sources, guarantees, budgets and registry
records."""
