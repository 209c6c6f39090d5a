"""Scales the targets of autoscalers and reports the results (upstream: pkg/controller/podautoscaler/horizontal.go)."""

import logging
from collections.abc import Callable, Sequence
from typing import Final

from fakeapiserver.apimachinery import labels
from fakeapiserver.apimachinery.labels import Selector
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import NAMESPACE_INDEX
from fakeapiserver.client.errors import StatusError, TransportError
from fakeapiserver.client.workqueue import ItemExponentialFailureRateLimiter
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import HORIZONTAL_POD_AUTOSCALERS, PODS
from fakeapiserver.component_helpers.pods import selects
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import DeleteEvent, Event, UpdateEvent
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.reconcile import Request, Result
from fakeapiserver.controller_runtime.source import Informer
from fakeapiserver.controllers.horizontal_pod_autoscaler import replica_calculator as calculator
from fakeapiserver.controllers.horizontal_pod_autoscaler.computed import (
    FAILED,
    Computed,
    HPAError,
    InContext,
    InvalidVersion,
    Measured,
    Metric,
    MetricFailed,
    NoScale,
    Scale,
    Status,
    Uncomputable,
    field,
    measured,
    milli,
    quantity,
    resource_quantity,
    tolerances_of,
)
from fakeapiserver.controllers.horizontal_pod_autoscaler.metrics_client import MetricsClient
from fakeapiserver.controllers.horizontal_pod_autoscaler.monitor import Monitor, Observation
from fakeapiserver.controllers.horizontal_pod_autoscaler.replica_calculator import (
    CalculationError,
    Delays,
    Proposal,
    Tolerances,
)
from fakeapiserver.controllers.horizontal_pod_autoscaler.scales import Scales
from fakeapiserver.controllers.horizontal_pod_autoscaler.scaling import (
    History,
    Limits,
    Reason,
    counts_without_pods,
    normalize,
    normalize_with_behavior,
    scaled_to_zero,
)
from fakeapiserver.controllers.horizontal_pod_autoscaler.selector_store import SelectorStore

_ABLE: Final = "AbleToScale"
_ACTIVE: Final = "ScalingActive"
_LIMITED: Final = "ScalingLimited"
_SCALED_TO_ZERO: Final = "ScaledToZero"
_TOO_FEW: Final = "Current number of replicas below Spec.MinReplicas"

log = logging.getLogger(__name__)

# usage, target, current number of pods, tolerances
_PerPod = Callable[[int, int, int, Tolerances], Proposal]


class HorizontalController:
    """Requests are autoscalers, looked at once in a while, whatever happens."""

    def __init__(self, context: ControllerContext) -> None:
        settings = context.configuration
        self._client = context.client
        self._scales = Scales(context.client, context.mapper)
        self._clock = context.clock
        self._events = context.recorder("horizontal-pod-autoscaler")
        self.period = settings.horizontal_pod_autoscaler_sync_period
        self._downscale_window = settings.horizontal_pod_autoscaler_downscale_stabilization
        self._tolerance = settings.horizontal_pod_autoscaler_tolerance
        self._delays = Delays(
            settings.horizontal_pod_autoscaler_cpu_initialization_period,
            settings.horizontal_pod_autoscaler_initial_readiness_delay,
        )
        self._metrics = MetricsClient(context.client.rest, context.mapper, context.clock, self.period)
        self._histories: dict[Request, History] = {}
        self._selectors = SelectorStore()
        gates = settings.feature_gates
        self._observes_generations = gates.enabled("HPAGeneration")
        self._scales_to_zero = gates.enabled("HPAScaleToZero")
        self._is_newer = gates.at_least("v1.37")
        self.autoscalers = context.informer(HORIZONTAL_POD_AUTOSCALERS)
        self.pods = context.informer(PODS)
        self._monitor = Monitor(context.metrics, lambda: len(self.autoscalers.indexer.list_keys()))

    def autoscaler_changed(self, event: Event, queue: Queue) -> None:
        """Queues the autoscaler for its next interval; since 1.37 a new or changed one at once."""
        request = request_for(event.object_new if isinstance(event, UpdateEvent) else event.object)
        if isinstance(event, DeleteEvent):
            self._selectors.remove(request)
            return
        self._selectors.add(request)
        is_status = isinstance(event, UpdateEvent) and not (self._observes_generations and _is_changed(event))
        if self._is_newer and not is_status:
            queue.add(request)
        else:
            queue.add_rate_limited(request)

    async def reconcile(self, request: Request) -> Result | None:
        autoscaler = self.autoscalers.indexer.get_by_key(str(request))
        if autoscaler is None:
            self._histories.pop(request, None)
            return None
        observation = self._monitor.begin()
        try:
            await self._sync(request, autoscaler, observation)
        except HPAError as error:
            log.info("autoscaler %s: %s", request, error)
            observation.error = "spec" if isinstance(error.__cause__, InvalidVersion) else "internal"
        observation.end()
        return Result(requeue_after=self.period)

    async def _sync(self, request: Request, autoscaler: Object, observation: Observation) -> None:
        """HPAError."""
        spec, target = autoscaler["spec"], autoscaler["spec"]["scaleTargetRef"]
        generation = autoscaler["metadata"].get("generation", 0) if self._observes_generations else 0
        status = Status(autoscaler.get("status"), self._clock.now(), generation)
        reference = f"{target['kind']}/{request.namespace}/{target['name']}"
        scale = await self._scale_of(autoscaler, status, reference)
        current = scale.replicas
        history = self._histories.setdefault(request, History())
        history.begin(current, self._clock.now())
        lowest, highest = spec.get("minReplicas", 1), spec["maxReplicas"]

        computed, failure = None, ""
        if current == 0 and not self._leaves_zero(spec, status):
            desired, why = 0, ""
            message = "scaling is disabled since the replica count of the target is zero"
            status.set(_ACTIVE, "False", Reason("ScalingDisabled", message))
            if not self._scales_to_zero:
                status.remove(_SCALED_TO_ZERO)
        elif current > highest:
            desired, why = highest, "Current number of replicas above Spec.MaxReplicas"
        elif 0 < current < lowest:
            desired, why = lowest, _TOO_FEW
        else:
            try:
                computed = await self._compute(request, autoscaler, status, scale)
            except Uncomputable as error:
                status.show(current, error.statuses)
                await self._write(autoscaler, status)
                self._tell(autoscaler, "FailedComputeMetricsReplicas", str(error))
                text = f"failed to compute desired number of replicas based on listed metrics for {reference}: {error}"
                raise HPAError(text) from error
            failure = computed.failure
            desired, why = self._normalized(spec, status, history, current, computed)
        statuses = computed.statuses if computed is not None else None
        scaled = desired != current
        if scaled:
            await self._rescale(autoscaler, status, scale, desired, why, statuses)
            history.scaled(spec.get("behavior"), current, desired, self._clock.now())
            observation.scaled(current, desired)
        status.show(current, statuses, desired, scaled=scaled)
        if problem := await self._write(autoscaler, status):
            raise HPAError(problem)
        if failure:
            raise HPAError(failure)

    async def _scale_of(self, autoscaler: Object, status: Status, reference: str) -> Scale:
        """HPAError, with AbleToScale set."""
        try:
            scale = await self._scales.read(autoscaler["metadata"]["namespace"], autoscaler["spec"]["scaleTargetRef"])
        except NoScale as error:
            self._tell(autoscaler, "FailedGetScale", str(error))
            message = f"the HPA controller was unable to get the target's current scale: {error}"
            status.set(_ABLE, "False", Reason("FailedGetScale", message))
            await self._write(autoscaler, status)
            raise HPAError(f"failed to query scale subresource for {reference}: {error}") from error
        message = "the HPA controller was able to get the target's current scale"
        status.set(_ABLE, "True", Reason("SucceededGetScale", message))
        return scale

    def _normalized(
        self, spec: Object, status: Status, history: History, current: int, computed: Computed
    ) -> tuple[int, str]:
        """Returns the allowed number of pods, and why."""
        desired, why = max(computed.replicas, 0), ""
        if desired > current:
            why = f"{computed.name} above target"
        elif desired < current:
            why = "All metrics below target"
        limits = Limits(spec.get("minReplicas", 1), spec["maxReplicas"], self._downscale_window, self._clock.now())
        behavior = spec.get("behavior")
        if behavior is None:
            normalized = normalize(history, current, desired, limits)
        else:
            normalized = normalize_with_behavior(history, behavior, current, desired, limits)
        status.set(_ABLE, "True", normalized.able)
        status.set(_LIMITED, "True" if normalized.limited else "False", normalized.why)
        if current == 0 and normalized.replicas < limits.lowest:
            return limits.lowest, why or _TOO_FEW
        return normalized.replicas, why

    def _leaves_zero(self, spec: Object, status: Status) -> bool:
        """Reports whether a target without pods gets any again: if it was scaled to zero, and has to have pods or such metrics."""
        was_scaled = self._scales_to_zero and status.is_true(_SCALED_TO_ZERO)
        return was_scaled and (spec.get("minReplicas", 1) != 0 or counts_without_pods(spec))

    # -------------------------------------------------------------------------------- scales

    async def _rescale(
        self,
        autoscaler: Object,
        status: Status,
        scale: Scale,
        desired: int,
        why: str,
        statuses: Sequence[Object] | None,
    ) -> None:
        """HPAError."""
        current = scale.replicas
        try:
            await self._scales.write(autoscaler["metadata"]["namespace"], scale, desired)
        except (StatusError, TransportError, TimeoutError) as error:
            text = f"New size: {desired}; reason: {why}; error: {error}"
            self._tell(autoscaler, "FailedRescale", text)
            message = f"the HPA controller was unable to update the target scale: {error}"
            status.set(_ABLE, "False", Reason("FailedUpdateScale", message))
            status.show(current, statuses)
            await self._write(autoscaler, status)
            raise HPAError(f"failed to rescale: {error}") from error
        message = f"the HPA controller was able to update the target scale to {desired}"
        status.set(_ABLE, "True", Reason("SucceededRescale", message))
        self._events.event(autoscaler, "Normal", "SuccessfulRescale", f"New size: {desired}; reason: {why}")
        if self._scales_to_zero:
            status.set(_SCALED_TO_ZERO, *scaled_to_zero(autoscaler["spec"], current, desired))
        else:
            status.remove(_SCALED_TO_ZERO)

    # ------------------------------------------------------------------------------- metrics

    async def _compute(self, request: Request, autoscaler: Object, status: Status, scale: Scale) -> Computed:
        """The most that any metric asks for. Uncomputable, with ScalingActive set."""
        selector = self._selector(request, autoscaler, status, scale.status.get("selector") or "")
        specs = autoscaler["spec"].get("metrics") or []
        statuses: list[Object] = []
        best: Measured | None = None
        failures: list[tuple[str, Reason]] = []
        for spec in specs:
            try:
                computed = await self._measure(autoscaler, spec, scale, selector)
            except MetricFailed as error:
                self._tell(autoscaler, error.reason, str(error))
                message = f"the HPA was unable to compute the replica count: {error}"
                failures.append((error.context + str(error), Reason(error.reason, message)))
                statuses.append({"type": ""})
                continue
            statuses.append(computed.status)
            if best is None or best.replicas == 0 or computed.replicas > best.replicas:
                best = computed
        failure = ""
        if failures:
            failure = f"invalid metrics ({len(failures)} invalid out of {len(specs)}), first error is: {failures[0][0]}"
        if best is None or (failures and best.replicas < scale.replicas):
            status.set(_ACTIVE, "False", failures[0][1])
            raise Uncomputable(failure, statuses)
        message = f"the HPA was able to successfully calculate a replica count from {best.name}"
        status.set(_ACTIVE, "True", Reason("ValidMetricFound", message))
        return Computed(best.replicas, best.name, statuses, failure)

    def _selector(self, request: Request, autoscaler: Object, status: Status, text: str) -> Selector:
        """Returns the selector of the target's pods.

        Raises Uncomputable if it is invalid or another autoscaler has the same pods.
        """
        if not text:
            self._tell(autoscaler, "SelectorRequired", "selector is required")
            message = "the HPA target's scale is missing a selector"
            status.set(_ACTIVE, "False", Reason("InvalidSelector", message))
            raise Uncomputable("selector is required")
        try:
            selector = labels.parse(text)
        except ValueError as error:
            why = f"couldn't convert selector into a corresponding internal selector object: {error}"
            self._tell(autoscaler, "InvalidSelector", why)
            status.set(_ACTIVE, "False", Reason("InvalidSelector", why))
            raise Uncomputable(why) from None
        self._selectors.set(request, selector)
        others = self._selectors.selecting(request.namespace, self._pods(request.namespace, selector))
        if len(others) > 1:
            why = f"multiple HPAs: [{' '.join(map(str, others))}]"
            if self._is_newer:
                why = f"more than one HPA (e.g. [{' '.join(map(str, others[:2]))}])"
            why = f"pods by selector {text} are controlled by {why}"
            self._tell(autoscaler, "AmbiguousSelector", why)
            status.set(_ACTIVE, "False", Reason("AmbiguousSelector", why))
            raise Uncomputable(why)
        return selector

    def _pods(self, namespace: str, selector: Selector) -> Sequence[Object]:
        selected = selects(selector)
        return [pod for pod in self.pods.indexer.by_index(NAMESPACE_INDEX, namespace) if selected(pod)]

    async def _measure(self, autoscaler: Object, spec: Object, scale: Scale, selector: Selector) -> Measured:
        """MetricFailed."""
        kind = spec["type"]
        source = spec[field(kind)]
        namespace = autoscaler["metadata"]["namespace"]
        metric = Metric(namespace, source, scale, selector, tolerances_of(autoscaler["spec"], self._tolerance))
        match kind:
            case "Resource":
                measure, what = self._resource, f"{source['name']} resource metric"
            case "ContainerResource":
                measure, what = self._resource, f"{source['container']} container metric"
            case "Pods":
                measure, what = self._of_pods, "pods metric"
            case "Object":
                measure, what = self._of_object, "object metric"
            case _:
                measure, what = self._external, f"{metric.name} external metric"
        context = f"failed to get {what} value: "
        try:
            return await measure(metric)
        except InContext as error:
            raise MetricFailed(str(error.__cause__), FAILED[kind], f"{context}{error}: ") from error
        except CalculationError as error:
            raise MetricFailed(str(error), FAILED[kind], context) from error

    def _rules(self, metric: Metric) -> calculator.CalculationRules:
        return calculator.CalculationRules(metric.tolerances, self._delays, self._clock.now())

    async def _resource(self, metric: Metric) -> Measured:
        """CPU or memory, of pods or of one of their containers. CalculationError."""
        target = metric.source["target"]
        resource, container = metric.source["name"], metric.source.get("container", "")
        average, percent = target.get("averageValue"), target.get("averageUtilization")
        if average is None and percent is None:
            raise CalculationError(
                "invalid resource metric source: neither an average utilization target nor an average value (usage) target was set"
            )
        try:
            metrics = await self._metrics.resource(resource, metric.namespace, metric.selector, container)
        except CalculationError as error:
            what = "usage" if average is not None else "utilization"
            why = f"failed to get {resource} {what}: unable to get metrics for resource {resource}: {error}"
            raise CalculationError(why) from None
        pods, current = self._pods(metric.namespace, metric.selector), metric.scale.replicas
        rules = self._rules(metric)
        shown: Object
        if average is not None:
            try:
                proposal = calculator.plain_replicas(metrics, pods, current, milli(average), resource, rules)
            except CalculationError as error:
                raise CalculationError(f"failed to get {resource} usage: {error}") from None
            replicas, shown, name = (
                proposal.replicas,
                {"averageValue": resource_quantity(resource, proposal.usage)},
                "resource",
            )
        else:
            try:
                told = calculator.resource_replicas(metrics, pods, current, percent, resource, container, rules)
            except CalculationError as error:
                raise CalculationError(f"failed to get {resource} utilization: {error}") from None
            usage = resource_quantity(resource, told.usage)
            replicas, shown = told.replicas, {"averageUtilization": told.utilization, "averageValue": usage}
            name = f"{'container ' if container else ''}resource utilization (percentage of request)"
        if container:
            status = {"name": resource, "container": container, "current": shown}
            return measured(replicas, f"{resource} {name}", "ContainerResource", status)
        return measured(replicas, f"{resource} {name}", "Resource", {"name": resource, "current": shown})

    async def _of_pods(self, metric: Metric) -> Measured:
        """A custom metric of each pod. CalculationError."""
        series = metric.labels()
        try:
            metrics = await self._metrics.pods(metric.name, metric.namespace, metric.selector, series)
        except CalculationError as error:
            raise CalculationError(f"unable to get metric {metric.name}: {error}") from None
        target = milli(metric.source["target"]["averageValue"])
        pods, current = self._pods(metric.namespace, metric.selector), metric.scale.replicas
        proposal = calculator.plain_replicas(metrics, pods, current, target, "", self._rules(metric))
        shown = {"metric": metric.identifier, "current": {"averageValue": quantity(proposal.usage)}}
        return measured(proposal.replicas, f"pods metric {metric.name}", "Pods", shown)

    async def _of_object(self, metric: Metric) -> Measured:
        """A custom metric of another object. CalculationError, InContext."""
        series, target, described = metric.labels(), metric.source["target"], metric.source["describedObject"]
        value = target.get("value") if target["type"] == "Value" else None
        average = target.get("averageValue") if target["type"] == "AverageValue" else None
        if value is None and average is None:
            raise CalculationError(
                "invalid object metric source: neither a value target nor an average value target was set"
            )
        try:
            usage = await self._metrics.of_object(metric.name, metric.namespace, described, series)
        except CalculationError as error:
            told = CalculationError(_unreadable(metric, described, error, is_newer=self._is_newer))
            if value is not None:
                raise told from None
            raise InContext(f"failed to get {metric.name} object metric") from told
        proposal = self._of_value(metric, usage, value, average, calculator.value_per_pod_replicas)
        current = {"averageValue" if value is None else "value": quantity(proposal.usage)}
        name = metric.external_name if value is None else f"{described['kind']} metric {metric.name}"
        shown = {"describedObject": described, "metric": metric.identifier, "current": current}
        return measured(proposal.replicas, name, "Object", shown)

    async def _external(self, metric: Metric) -> Measured:
        """Evaluates an external metric. Raises CalculationError, InContext."""
        target, name = metric.source["target"], metric.name
        average = target.get("averageValue")
        value = target.get("value") if average is None else None
        if value is None and average is None:
            raise CalculationError(
                "invalid external metric source: neither a value target nor an average value target was set"
            )
        context = f"failed to get {name} external metric" if value is None else f"failed to get external metric {name}"
        try:
            series = metric.labels()
            try:
                usage = await self._metrics.external(name, metric.namespace, series)
            except CalculationError as error:
                place = f"{metric.namespace}/{name}/{labels.go_text(metric.identifier.get('selector'))}"
                raise CalculationError(f"unable to get external metric {place}: {error}") from None
            proposal = self._of_value(metric, usage, value, average, calculator.external_per_pod_replicas)
        except CalculationError as error:
            raise InContext(context) from error
        current = {"averageValue" if value is None else "value": quantity(proposal.usage)}
        return measured(
            proposal.replicas, metric.external_name, "External", {"metric": metric.identifier, "current": current}
        )

    def _of_value(
        self, metric: Metric, usage: int, value: str | None, average: str | None, per_pod: _PerPod
    ) -> Proposal:
        """By the value of something, in all or for each pod. CalculationError."""
        if value is None:
            assert average is not None
            return per_pod(usage, milli(average), metric.scale.status.get("replicas", 0), metric.tolerances)
        replicas = calculator.value_replicas(
            usage,
            milli(value),
            metric.scale.replicas,
            lambda: self._pods(metric.namespace, metric.selector),
            metric.tolerances,
        )
        return Proposal(replicas, usage)

    # ------------------------------------------------------------------------------- telling

    def _tell(self, autoscaler: Object, reason: str, message: str) -> None:
        self._events.event(autoscaler, "Warning", reason, message)

    async def _write(self, autoscaler: Object, status: Status) -> str:
        """Writes the status if it changed; returns the error, which was reported already, or ""."""
        if not status.differs(autoscaler.get("status")):
            return ""
        metadata = autoscaler["metadata"]
        try:
            autoscalers = self._client.resource(HORIZONTAL_POD_AUTOSCALERS, metadata["namespace"])
            await autoscalers.update_status({**autoscaler, "status": status.written()})
        except (StatusError, TransportError, TimeoutError) as error:
            self._tell(autoscaler, "FailedUpdateStatus", str(error))
            return f"failed to update status for {metadata['name']}: {error}"
        return ""


def _unreadable(metric: Metric, described: Object, error: CalculationError, *, is_newer: bool) -> str:
    """Returns the message about a metric of an object; before 1.37 upstream has its parts in each other's places."""
    kind, name = described["kind"], described["name"]
    if is_newer:
        return f"unable to get metric {metric.name} on {kind} {metric.namespace}/{name}: {error}"
    return f"unable to get metric {metric.name}: {kind} on {metric.namespace} {name}/{error}"


def _is_changed(event: UpdateEvent) -> bool:
    old, new = event.object_old["metadata"], event.object_new["metadata"]
    return bool(old.get("generation") != new.get("generation"))


def new(context: ControllerContext) -> Sequence[Controller]:
    reconciler = HorizontalController(context)
    controller = context.controller(
        reconciler,
        workers=context.configuration.concurrent_horizontal_pod_autoscaler_syncs,
        # Whatever came of it, its next turn is a period later.
        rate_limiter=ItemExponentialFailureRateLimiter(reconciler.period, reconciler.period),
    )
    controller.add_source(Informer(reconciler.autoscalers, reconciler.autoscaler_changed))
    return [controller]
