package cache

import (
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

var pods = schema.GroupResource{Resource: "pods"}

func retryInternal(c *Config) { c.ReflectorOptions.MaxInternalErrorRetryDuration = 10 * time.Minute }
