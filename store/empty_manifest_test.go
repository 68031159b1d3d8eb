package store

import (
	"errors"
	"io"
	"testing"
)

// An empty manifest is corrupt, and not the end of what its reader reads.
func TestEmptyManifest(t *testing.T) {
	if _, err := DecodeManifest(nil); !errors.Is(err, ErrCorrupt) || errors.Is(err, io.EOF) {
		t.Errorf("error %v", err)
	}
}
