"""Opens the files and frames that a user gives, and reads them into encoded columns."""
