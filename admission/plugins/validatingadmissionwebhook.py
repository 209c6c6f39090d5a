"""Webhooks that may refuse a write, all asked at the same time.

Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/validating/dispatcher.go.
"""

import asyncio

from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.admission.webhook.configuration import Hook
from fakeapiserver.admission.webhook.generic import CallFailed, Webhook
from fakeapiserver.admission.webhook.matching import is_exempt
from fakeapiserver.admission.webhook.review import Subject
from fakeapiserver.apimachinery.errors import StatusError


class ValidatingAdmissionWebhook(Webhook):
    configurations = "validatingwebhookconfigurations.admissionregistration.k8s.io"
    mutating = False
    annotation = "validating.webhook.admission.k8s.io/"

    async def validate(self, attributes: Attributes) -> None:
        hooks = self.hooks()
        if not hooks or is_exempt(attributes):
            return
        seen = [(hook, subject) for hook in hooks if (subject := await self.subject(hook, attributes)) is not None]
        refusals = await asyncio.gather(
            *(
                self._ask(hook, attributes, subject, f"round_0_index_{index}")
                for index, (hook, subject) in enumerate(seen)
            )
        )
        for refusal in refusals:
            if refusal is not None:
                raise refusal

    async def _ask(self, hook: Hook, attributes: Attributes, subject: Subject, place: str) -> StatusError | None:
        """Its refusal."""
        try:
            await self.counted(hook, attributes, self.call(hook, attributes, subject))
        except StatusError as error:
            return error
        except CallFailed as error:
            return self.answer_to(hook, error, attributes, place)
        return None
