"""What the manager runs: every controller and every webhook."""

from fakeapiserver.controller_runtime import Manager

from welcome_operator.controllers import welcome
# scaffold:imports


def setup(manager: Manager, *, webhooks: bool = True) -> None:
    """Adds them to the manager."""
    welcome.setup_with_manager(manager)
    # scaffold:controllers
    if webhooks:
        server = manager.webhook_server  # noqa: F841 webhooks are registered with it
        # scaffold:webhooks
