"""Tests of the package, by unittest."""

import warnings

# Some tests have more workers than a small machine has cores, and -W error turns warnings into errors.
warnings.filterwarnings("ignore", message="This DataLoader will create")
