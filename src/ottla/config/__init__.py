"""Kafka's config names with their types, defaults and checks, and where each value comes from."""

from ottla.config.broker import BrokerConfig
from ottla.config.definition import ConfigDefinition, ConfigSource
from ottla.config.parse import ConfigType
from ottla.config.topic import TopicConfig

__all__ = ["BrokerConfig", "ConfigDefinition", "ConfigSource", "ConfigType", "TopicConfig"]
