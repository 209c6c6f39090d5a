"""Sets up the manager: every controller and every webhook."""

from fakeapiserver.controller_runtime import Manager

from welcome_operator.controllers import welcome as welcome_controller
# scaffold:imports


def setup(manager: Manager, *, webhooks: bool = True) -> None:
    """Adds them to the manager."""
    welcome_controller.setup_with_manager(manager)
    # scaffold:controllers
    if not webhooks:
        return
    # scaffold:webhooks
