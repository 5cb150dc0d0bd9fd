"""The confidential data of a swap, read into codes once, and what is counted in them: records, tables, strata,
rates."""
