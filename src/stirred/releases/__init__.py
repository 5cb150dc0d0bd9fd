"""What every mechanism shares on the road plan -> check -> release: see :mod:`stirred.releases.protocols`."""
