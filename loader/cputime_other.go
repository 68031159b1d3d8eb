//go:build !unix

package loader

import "time"

// processTime is not known here.
func processTime() time.Duration { return 0 }
