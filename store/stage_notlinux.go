//go:build !linux

package store

import "errors"

// exchange is there on Linux only; others rename in two steps.
func exchange(a, b string) error { return errors.ErrUnsupported }
