//go:build !libdeflate || !cgo

package stream

// Backend names the library that inflates: "Go" or "libdeflate".
const Backend = "Go"

// Inflater inflates zlib streams. The zero value is ready for use, by one goroutine at a time.
type Inflater = flate
