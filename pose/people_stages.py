"""Construction of the stage that detects and tracks people, from a configuration."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from pose.config import PipelineConfig, is_one_pass, one_pass_model
from pose.registry import DETECTORS, ESTIMATORS, ONE_PASS, build
from pose.structures.skeletons import Skeleton
from pose.structures.stages import Detector, PeopleStage
from pose.tracking.config import TrackingConfig
from pose.tracking.one_pass import OnePassPeople
from pose.tracking.people_tracker import PeopleTracker
from pose.tracking.warm_up import warm_up_networks, warm_up_one_pass, warm_up_tracker
from pose.utils.times import StageTimes


def people_stages(
    config: PipelineConfig, times: StageTimes, detector: Detector | None = None, *, warm: bool = False
) -> tuple[Skeleton, Callable[[], PeopleStage]]:
    """Load the networks, and return the 2D skeleton and a factory of stages that detect and track people.

    All stages of the factory share the networks.

    Args:
        config: Configuration of the pipeline.
        times: Collector of the processing time of each stage.
        detector: Detector to use instead of the configured one; ignored with a network that finds boxes and keypoints
            in one pass.
        warm: Whether to run the networks once, so that the first frame is not slow.
    """
    options = config.stage_options
    tracking = TrackingConfig(
        tracker=config.tracker, max_people=config.max_people, detection_interval_s=config.detect_every
    )
    if warm:
        warm_up_tracker(config.tracker)
    if is_one_pass(config):
        network = build(ONE_PASS, config.detector, options, *one_pass_model(config))
        if warm:
            warm_up_one_pass(network)
        return network.skeleton, partial(OnePassPeople, network, tracking, times=times)
    if detector is None:
        detector = build(DETECTORS, config.detector, options, config.detector_model, "detector_model")
    estimator = build(ESTIMATORS, config.estimator, options, config.estimator_model, "estimator_model")
    if warm:
        warm_up_networks(detector, estimator)
    presence = ESTIMATORS[config.estimator].presence if config.presence_score is None else config.presence_score
    tracking = replace(tracking, min_presence=presence)
    return estimator.skeleton, partial(PeopleTracker, detector, estimator, tracking, times=times)
