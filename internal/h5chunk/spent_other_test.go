//go:build !unix

package h5chunk

import "time"

var began = time.Now()

// spent returns the time since the tests began.
func spent() time.Duration { return time.Since(began) }
