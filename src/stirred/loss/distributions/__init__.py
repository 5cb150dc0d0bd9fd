"""Privacy losses as random variables: the law of one mechanism's loss, and bounds on the sum of many."""
