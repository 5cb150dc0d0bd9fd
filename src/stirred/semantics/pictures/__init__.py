"""Pictures as data, which reports draw: lines, bars, panels, and axes on which curves can be read."""
