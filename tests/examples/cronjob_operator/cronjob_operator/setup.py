"""Sets up the manager: every controller and every webhook."""

from fakeapiserver.controller_runtime import Manager

from cronjob_operator.controllers import cronjob as cronjob_controller
from cronjob_operator.webhooks import cronjob as cronjob_webhooks
from cronjob_operator.webhooks import cronjob_conversion
# scaffold:imports


def setup(manager: Manager, *, webhooks: bool = True) -> None:
    """Adds them to the manager."""
    cronjob_controller.setup_with_manager(manager)
    # scaffold:controllers
    if not webhooks:
        return
    cronjob_webhooks.setup_webhook_with_manager(manager)
    cronjob_conversion.setup_conversion_with_manager(manager)
    # scaffold:webhooks
