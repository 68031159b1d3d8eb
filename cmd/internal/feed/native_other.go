//go:build !linux

package feed

import (
	"errors"

	"github.com/penstock/penstock/internal/sys/rank"
)

// newNative fails: the native transport is written for Linux.
func newNative(connection, rank.Lookup) (transport, error) {
	return nil, errors.New("--fd needs Linux without --inherit: here, the client opens the shared memory, as " +
		"penstock.DataLoader does")
}
