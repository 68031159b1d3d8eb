//go:build !linux

package mmap

// Stitch is there on Linux only.
func Stitch([]Part) (*Mapping, error) { return nil, ErrUnsupported }

// WillNeed does nothing: the system reads on first touch.
func WillNeed([]byte) {}

// Populate is there on Linux only.
func Populate([]byte) error { return ErrUnsupported }

func protected([]byte) bool { return false }
