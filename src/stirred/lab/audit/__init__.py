"""Does a program keep its promise? Exact losses, tests of programs by running them, and what a release betrays.

A program is run on inputs made for this purpose, never on confidential data, and what it writes is compared with the
law that it should have. An audit can show that a promise is broken; it can never show that it is kept.
"""
