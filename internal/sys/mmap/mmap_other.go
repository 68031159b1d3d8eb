//go:build !linux

package mmap

// Stitch exists on Linux only.
func Stitch([]Part) (*Mapping, error) { return nil, ErrUnsupported }

// WillNeed does nothing: the system reads on first touch.
func WillNeed([]byte) {}

// Populate exists on Linux only.
func Populate([]byte) error { return ErrUnsupported }

// Resident exists on Linux only.
func Resident([]byte) (resident, pages int, err error) { return 0, 0, ErrUnsupported }

// ReportsResident is true on Linux only.
func ReportsResident(string) bool { return false }

func protected([]byte) bool { return false }
