"""Every error that is meant for users, and the messages that are said in more than one place.

Each function makes one error, so that its wording stands in one place and can be tested; a message that is raised once
may stand where it is raised. A message says what is wrong (which table, which column, which type of value), then what
to do. The invariant of both: **no message contains a value read from the data**. Column names, plan values, counts of
rows and paths the user typed are allowed; cells are not.

Exceptions of the libraries below are caught where they arise and replaced by one of these ``from None``, since
their texts and their causes may quote cells.
"""

from stirred.errors.data import *
from stirred.errors.kinds import *
from stirred.errors.laboratory import *
from stirred.errors.mechanisms import *
from stirred.errors.plans import *
from stirred.errors.questions import *
from stirred.errors.releases import *
