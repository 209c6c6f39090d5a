"""`python -m fakeapiserver` is the `fakeapiserver` command."""

import sys

from fakeapiserver.cli import main

sys.exit(main())
